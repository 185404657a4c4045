"""Eigenvalues and eigenvectors of matrices, pairs of matrices, and matrices given by diagonals."""

from __future__ import annotations

from typing import Any

from funcgrad.base.defaults import only_defaults
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy import linalg
from funcgrad.numpy.indexing import getitem
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives.banded import EighTridiagonal, dense_of
from funcgrad.primitives.elementwise import less_equal
from funcgrad.primitives.matrices import adjoint, hermitian_of_lower
from funcgrad.primitives.pencils import GeneralizedEig, TwoSidedEig
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.linalg import operands

__all__ = [
    "eig", "eig_banded", "eigh", "eigh_tridiagonal", "eigvals", "eigvals_banded", "eigvalsh",
    "eigvalsh_tridiagonal",
]  # fmt: skip


def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues and right eigenvectors of matrices.

    As `scipy.linalg.eig`: ``a v = w v``, or ``a v = w b v``; results are complex.

    Args:
        b: Matrices of the same shape.
        left: Whether left eigenvectors are returned, ``u^H a = w u^H b``.
        right: Whether right ones are.
        homogeneous_eigvals: Must be false.

    Returns:
        Eigenvalues, left, and right eigenvectors, of length 1, as columns. Derivatives are for
        distinct eigenvalues and regular ``b``.
    Raises: ArgumentError: For homogeneous eigenvalues: `qz` has them on its diagonals.

    Example:
        >>> w, v = fg.scipy.linalg.eig(np.diag([2.0, 6.0]), np.diag([1.0, 2.0]))
        >>> print(w.real)
        [2. 3.]
    """
    if homogeneous_eigvals:
        raise ArgumentError(
            "eig: eigenvalues are quotients here. The diagonals of both matrices of qz are "
            "homogeneous ones."
        )
    w, u, v = _two_sided(a, b, left)
    found = [*([u] if left else []), *([v] if right else [])]
    return (w, *found) if found else w


def _two_sided(a: Any, b: Any, left: bool) -> tuple[Any, Any, Any]:
    if b is not None:
        a, b = operands.matrices("eig", a, b)
        operands.square(a, "eig")
        operands.check_equal_shapes("eig", a, b)
        w, u, v = GeneralizedEig().bind(a, b)
        return w, u, v
    a = operands.square(a, "eig")
    if left:
        w, u, v = TwoSidedEig().bind(a)
        return w, u, v
    w, v = primitives.Eig().bind(a)
    return w, None, v


def eigvals(
    a: Any,
    b: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of matrices.

    As `scipy.linalg.eigvals`: eigenvalues, complex, of matrices or of pairs of them.

    Args:
        b: Second matrix, for example of a generalised eigenvalue problem.
        homogeneous_eigvals: Whether eigenvalues are pairs of numerators and denominators.
    Example: fg.scipy.linalg.eigvals(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([1.38196601+0.j, 3.61803399+0.j])
    """
    if b is None and not homogeneous_eigvals:
        return linalg.eigvals(a)
    return eig(a, b, right=False, homogeneous_eigvals=homogeneous_eigvals)


def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
    turbo: bool = True,
    eigvals: None = None,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    As `scipy.linalg.eigh`: eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Args:
        a: Hermitian matrices, ``(..., n, n)``; one triangle is read.
        b: Positive definite matrices of the same shape.
        subset_by_value: Two known numbers; eigenvalues above the first and not above the second
            are returned, of one matrix. How many these are must be known.
        turbo: Accepted for JAX's signature.
        eigvals: Must be None: ask for ``subset_by_index``.
    Returns: Eigenvalues and eigenvectors (columns).

    Example:
        >>> a, b = np.diag([2.0, 6.0]), np.diag([1.0, 2.0])
        >>> print(fg.scipy.linalg.eigh(a, b, eigvals_only=True))
        [2. 3.]
        >>> print(fg.scipy.linalg.eigh(a, eigvals_only=True, subset_by_index=[1, 1]))
        [6.]
    """
    only_defaults("eigh", eigvals=eigvals)
    if b is None:
        a = operands.square(a, "eigh")
        read = a if lower else adjoint(a)
        if eigvals_only and subset_by_index is None and subset_by_value is None:
            return primitives.Eigvalsh().bind(read)
        w, v = primitives.Eigh().bind(read)
    else:
        w, v = _of_pencil(a, b, lower, type)
    w, v = _subset("eigh", w, v, subset_by_index, subset_by_value)
    return w if eigvals_only else (w, v)


def _of_pencil(a: Any, b: Any, lower: bool, type: int) -> tuple[Any, Any]:
    """With ``b = L L^H`` the equations are those of ``L^-1 a L^-H`` or of ``L^H a L``."""
    operands.choice("eigh", "type", type, (1, 2, 3))
    a, b = operands.matrices("eigh", a, b)
    operands.square(a, "eigh")
    operands.check_equal_shapes("eigh", a, b)
    a, b = (x if lower else adjoint(x) for x in (a, b))
    a = hermitian_of_lower(a)
    factor = primitives.Cholesky().bind(b)
    solve = primitives.TriangularSolve(True)
    if type == 1:
        inner = solve.bind(factor, adjoint(solve.bind(factor, a)))
    else:
        inner = linalg.matmul(adjoint(factor), linalg.matmul(a, factor))
    w, v = primitives.Eigh().bind(inner)
    if type == 3:
        return w, linalg.matmul(factor, v)
    return w, primitives.TriangularSolve(False).bind(adjoint(factor), v)


def _subset(function: str, w: Any, v: Any, index: Any, value: Any) -> tuple[Any, Any]:
    if index is not None and value is not None:
        raise ValueError(f"{function}: choose eigenvalues by index or by value, not by both.")
    if index is not None:
        first, last = (int(i) for i in index)
        n = shape_of(w)[-1]
        if not 0 <= first <= last < n:
            raise ValueError(f"{function}: there are {n} eigenvalues, not those {first} to {last}.")
        places = slice(first, last + 1)
    elif value is not None:
        places = _between(function, w, value)
    else:
        return w, v
    return getitem(w, (..., places)), getitem(v, (..., places))


def _between(function: str, w: Any, bounds: Any) -> slice:
    """The places of eigenvalues in an interval that is open below."""
    if len(shape_of(w)) != 1:
        raise ArgumentError(f"{function}: eigenvalues of a stack cannot be chosen by value.")
    low, high = (float(x) for x in bounds)
    if low >= high:
        raise ValueError(f"{function}: the interval from {low} to {high} is empty.")
    first, last = (less_equal.bind(w, aval_of(w).dtype.type(x)).sum() for x in (low, high))
    return slice(int(first), int(last))


def eigvalsh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Eigenvalues of Hermitian matrices.

    As `scipy.linalg.eigvalsh`: the eigenvalues of `eigh`.

    Args:
        b: Second matrix, for example of a generalised eigenvalue problem.
        subset_by_value: Interval of the eigenvalues that are returned.
    Example: fg.scipy.linalg.eigvalsh(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([1.38196601, 3.61803399])
    """
    return eigh(
        a,
        b,
        lower=lower,
        eigvals_only=True,
        type=type,
        subset_by_index=subset_by_index,
        subset_by_value=subset_by_value,
    )


_SELECTIONS = {
    0: "all", 1: "value", 2: "index", "a": "all", "v": "value", "i": "index",
    "all": "all", "value": "value", "index": "index",
}  # fmt: skip


def _selected(function: str, w: Any, v: Any, select: Any, bounds: Any) -> tuple[Any, Any]:
    operands.choice(function, "select", select, tuple(_SELECTIONS))
    kind = _SELECTIONS[select]
    index, value = (bounds if kind == which else None for which in ("index", "value"))
    return _subset(function, w, v, index, value)


def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: str | int = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of a banded Hermitian matrix.

    As `scipy.linalg.eig_banded`, by way of whole matrices.

    Args:
        a_band: Halves of the diagonals of Hermitian matrices, ``(..., m, n)``.
        lower: Whether these are the main one and those below; else those above and the main one.
        max_ev: Without effect.
    Returns: Eigenvalues and eigenvectors (columns).
    Example: fg.scipy.linalg.eig_banded(np.array([[0.0, 1.0], [2.0, 3.0]]))[0]
        -> array([1.38196601, 3.61803399])
    """
    band = linalg.matrix(a_band, "eig_banded")
    whole = dense_of(band, 0 if lower else shape_of(band)[-2] - 1)
    w, v = primitives.Eigh().bind(whole if lower else adjoint(whole))
    w, v = _selected("eig_banded", w, v, select, select_range)
    return w if eigvals_only else (w, v)


def eigvals_banded(
    a_band: Any,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: str | int = "a",
    select_range: Any = None,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues of a banded Hermitian matrix.

    As `scipy.linalg.eigvals_banded`: the eigenvalues of `eig_banded`.

    Args: a_band: The diagonals of a symmetric band matrix, as rows.
    Example: fg.scipy.linalg.eigvals_banded(np.array([[0.0, 1.0], [2.0, 3.0]]))
        -> array([1.38196601, 3.61803399])
    """
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: str | int = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
    *,
    key: None = None,
) -> Any:
    """Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix.

    As `scipy.linalg.eigh_tridiagonal`.

    SciPy evaluates it, in compiled programs too.

    Args:
        e: Diagonals next to them, ``(..., n - 1)``.
        tol: Without effect.
        key: Accepted for JAX's signature.
    Returns: Eigenvalues, ascending, and eigenvectors (columns).
    Example: print(fg.scipy.linalg.eigh_tridiagonal(np.zeros(2), np.ones(1), eigvals_only=True))
        -> [-1.  1.]
    """
    d, e = linalg.floating(d, e, function="eigh_tridiagonal")
    if operands.is_complex_value(d):
        raise TypeError("eigh_tridiagonal: the diagonals must be real.")
    d, e = operands.stacked([d, e], [1, 1])
    w, v = EighTridiagonal().bind(d, e)
    w, v = _selected("eigh_tridiagonal", w, v, select, select_range)
    return w if eigvals_only else (w, v)


def eigvalsh_tridiagonal(
    d: Any,
    e: Any,
    select: str | int = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues of a real symmetric tridiagonal matrix.

    As `scipy.linalg.eigvalsh_tridiagonal`: the eigenvalues of `eigh_tridiagonal`.

    Args:
        e: The elements next to the diagonal.
        tol: Without effect.
    Example: fg.scipy.linalg.eigvalsh_tridiagonal(np.array([2.0, 3.0]), np.array([1.0]))
        -> array([1.38196601, 3.61803399])
    """
    return eigh_tridiagonal(d, e, True, select, select_range)
