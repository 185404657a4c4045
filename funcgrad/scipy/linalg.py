"""`scipy.linalg` on arrays and traced values: factorisations, and systems that they solve.

SciPy's names, arguments and defaults; stacks of matrices are allowed everywhere. Options about
memory and about checking values (``overwrite_a``, ``check_finite``) are accepted without effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.namespaces import present
from funcgrad.numpy import elementwise, linalg, ordering, shaping
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives import shape as s
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.shape import shape_of

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "eigvalsh", "inv",
    "lu_factor", "lu_solve", "qr", "solve", "solve_triangular", "svd", "svdvals", "toeplitz",
]  # fmt: skip

svdvals = linalg.svdvals

_TRANSPOSITIONS: dict[Any, int] = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _system(function: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrix and right sides with equal stacks, and whether ``b`` was a vector."""
    a, b = linalg.floating(a, b, function=function)
    is_vector = len(shape_of(b)) == 1
    column = s.reshape(b, (*shape_of(b), 1)) if is_vector else b
    square = len(shape_of(a)) >= 2 and shape_of(a)[-1] == shape_of(a)[-2]
    if not square or len(shape_of(column)) < 2 or shape_of(column)[-2] != shape_of(a)[-1]:
        raise ShapeError(f"{function}: {aval_of(b)} is no right side of equations {aval_of(a)}.")
    stack = np.broadcast_shapes(shape_of(a)[:-2], shape_of(column)[:-2])
    a = s.broadcast_to(a, (*stack, *shape_of(a)[-2:]))
    return a, s.broadcast_to(column, (*stack, *shape_of(column)[-2:])), is_vector


def _answer(x: Any, is_vector: bool) -> Any:
    return s.reshape(x, shape_of(x)[:-1]) if is_vector else x


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve ``a x = b`` for triangular ``a``; the other triangle is not read.

    Args:
        a: Matrices, ``(..., n, n)``.
        b: A vector ``(n,)``, or right sides ``(..., n, k)``.
        trans: Which system: 0 or "N" for ``a``, 1 or "T" for its transpose, 2 or "C" for its
            conjugate transpose.
        lower: Whether ``a`` is lower triangular.
        unit_diagonal: Whether the diagonal is taken to be 1 and not read.
        overwrite_b: Without effect.
        check_finite: Without effect.

    Returns:
        The solutions, of the shape of ``b`` (stacks broadcast).

    Raises:
        ArgumentError: If ``trans`` is none of these.
        ShapeError: If ``a`` is not square or ``b`` does not fit.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> a = np.array([[2.0, 0.0], [1.0, 1.0]])
        >>> print(fg.scipy.linalg.solve_triangular(a, np.array([2.0, 3.0]), lower=True))
        [1. 2.]
    """
    if trans not in _TRANSPOSITIONS:
        raise ArgumentError(f"solve_triangular: trans must be 0, 1, 2, N, T or C, got {trans!r}.")
    a, b, is_vector = _system("solve_triangular", a, b)
    kind = _TRANSPOSITIONS[trans]
    a = elementwise.conj(a) if kind == 2 else a
    return _answer(primitives.TriangularSolve(lower, kind > 0, unit_diagonal).bind(a, b), is_vector)


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Cholesky factor of positive definite matrices: upper by default, as in SciPy.

    Args:
        a: Hermitian matrices, ``(..., n, n)``; one triangle is read.
        lower: Whether ``L`` with ``a = L L^H`` is returned, and the lower triangle read; else
            ``U`` with ``a = U^H U``, from the upper triangle.
        overwrite_a: Without effect.
        check_finite: Without effect.

    Returns:
        The factors.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.scipy.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])))
        [[2. 1.]
         [0. 2.]]
    """
    return linalg.cholesky(a, upper=not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """The Cholesky factor for `cho_solve`, and which one it is."""
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Solve ``a x = b`` with the result of `cho_factor`.

    Args:
        c_and_lower: The factor, and whether it is the lower one.
        b: A vector ``(n,)``, or right sides ``(..., n, k)``.
        overwrite_b: Without effect.
        check_finite: Without effect.

    Returns:
        The solutions, of the shape of ``b``.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> factor = fg.scipy.linalg.cho_factor(np.diag([4.0, 1.0]))
        >>> print(fg.scipy.linalg.cho_solve(factor, np.array([4.0, 3.0])))
        [1. 3.]
    """
    c, lower = c_and_lower
    half = solve_triangular(c, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(c, half, trans=2 if lower else 0, lower=lower)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """Factors of matrices with rows exchanged, ``P a = L U``, for `lu_solve`.

    Args:
        a: Matrices, ``(..., m, n)``.
        overwrite_a: Without effect.
        check_finite: Without effect.

    Returns:
        ``L`` (below the diagonal) and ``U`` in one matrix, and the exchanges of rows (int32): row
        ``i`` with row ``pivots[i]``.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> lu, pivots = fg.scipy.linalg.lu_factor(np.array([[1.0, 2.0], [2.0, 2.0]]))
        >>> print(lu, pivots)
        [[2.  2. ]
         [0.5 1. ]] [1 1]
    """
    packed, pivots, _ = primitives.LuFactor().bind(linalg.matrix(a, "lu_factor"))
    return packed, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve ``a x = b`` with the result of `lu_factor`.

    Args:
        lu_and_piv: The factors of ``a``, square, and its exchanges of rows.
        b: A vector ``(n,)``, or right sides ``(..., n, k)``.
        trans: 1 for the transpose of ``a`` in its place, 2 for its conjugate transpose.
        overwrite_b: Without effect.
        check_finite: Without effect.

    Returns:
        The solutions, of the shape of ``b``.

    Raises:
        ArgumentError: If ``trans`` is none of these.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> factors = fg.scipy.linalg.lu_factor(np.array([[1.0, 2.0], [2.0, 2.0]]))
        >>> print(fg.scipy.linalg.lu_solve(factors, np.array([3.0, 4.0])))
        [1. 1.]
    """
    packed, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise ArgumentError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}.")
    a, b, is_vector = _system("lu_solve", packed, b)
    order = primitives.Permutation().bind(as_value(pivots, "lu_solve"))
    if trans == 0:
        x = primitives.TriangularSolve(True, unit_diagonal=True).bind(a, _rows(b, order))
        return _answer(primitives.TriangularSolve(False).bind(a, x), is_vector)
    a = elementwise.conj(a) if trans == 2 else a
    x = primitives.TriangularSolve(False, True).bind(a, b)
    x = primitives.TriangularSolve(True, True, True).bind(a, x)
    return _answer(_rows(x, ordering.argsort(order)), is_vector)


def _rows(b: Any, order: Any) -> Any:
    """The rows of every matrix in another order."""
    stack = shape_of(b)[:-2]
    order = s.broadcast_to(order, (*stack, shape_of(order)[-1]))
    return take_along_axis(b, s.reshape(order, (*shape_of(order), 1)), len(stack))


_STRUCTURES = {
    None: "general", "gen": "general", "sym": "general", "her": "general", "pos": "positive",
    "general": "general", "symmetric": "general", "hermitian": "general",
    "positive definite": "positive", "upper triangular": "upper", "lower triangular": "lower",
}  # fmt: skip


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """Solve ``a x = b``.

    Args:
        a: Matrices, ``(..., n, n)``.
        b: A vector ``(n,)``, or right sides ``(..., n, k)``.
        lower: For positive definite matrices, which triangle is read.
        overwrite_a: Without effect.
        overwrite_b: Without effect.
        check_finite: Without effect.
        assume_a: "pos" or "positive definite" matrices are solved by `cho_solve`, "upper
            triangular" and "lower triangular" ones by substitution; "general" ("gen"), "symmetric"
            ("sym") and "hermitian" ("her") ones alike, as are those of which nothing is said.
        transposed: Whether the transpose of ``a`` takes its place.

    Returns:
        The solutions, of the shape of ``b``.

    Raises:
        ArgumentError: If ``assume_a`` is none of these.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.scipy.linalg.solve(np.diag([4.0, 2.0]), np.ones(2), assume_a="pos"))
        [0.25 0.5 ]
    """
    if assume_a not in _STRUCTURES:
        known = ", ".join(repr(name) for name in _STRUCTURES)
        raise ArgumentError(f"solve: assume_a must be one of {known}, got {assume_a!r}.")
    structure = _STRUCTURES[assume_a]
    if structure in ("upper", "lower"):
        return solve_triangular(a, b, int(transposed), structure == "lower")
    if transposed:
        a, lower = linalg.matrix_transpose(a), not lower
    return cho_solve(cho_factor(a, lower), b) if structure == "positive" else linalg.solve(a, b)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """As `numpy.linalg.inv`."""
    return linalg.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """As `numpy.linalg.det`."""
    return linalg.det(a)


def eigh(a: Any, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    """Eigenvalues, ascending, and eigenvectors (columns) of hermitian matrices."""
    triangle = "L" if lower else "U"
    return linalg.eigvalsh(a, triangle) if eigvals_only else tuple(linalg.eigh(a, triangle))


def eigvalsh(a: Any, *, lower: bool = True) -> Any:
    """Eigenvalues of hermitian matrices, ascending."""
    return linalg.eigvalsh(a, "L" if lower else "U")


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """As `numpy.linalg.svd`, a tuple."""
    out = linalg.svd(a, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


_MODES = {"full": "complete", "economic": "reduced", "r": "r"}


def qr(a: Any, mode: str = "full") -> Any:
    """``Q`` and ``R`` with ``a = Q R``; modes "full", "economic" and "r" (of "full" shape)."""
    if mode not in _MODES:
        raise ArgumentError(f"qr: mode must be full, economic or r, got {mode!r}.")
    if mode == "r":
        return (linalg.qr(a, "complete")[1],)
    return tuple(linalg.qr(a, _MODES[mode]))


def block_diag(*arrs: Any) -> Any:
    """A matrix with the given matrices on its diagonal and zeros elsewhere.

    Args:
        *arrs: Matrices; vectors are rows, scalars are 1 by 1.

    Returns:
        The matrix.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.scipy.linalg.block_diag(np.ones((1, 2)), 3.0))
        [[1. 1. 0.]
         [0. 0. 3.]]
    """
    blocks = [shaping.atleast_2d(a) for a in arrs or ([[]],)]
    for block in blocks:
        if len(shape_of(block)) != 2:
            raise ShapeError(f"block_diag takes matrices, got {aval_of(block)}.")
    width = sum(shape_of(b)[1] for b in blocks)
    rows, left = [], 0
    for block in blocks:
        n = shape_of(block)[1]
        rows.append(shaping.constant_pad(block, ((0, 0), (left, width - left - n))))
        left += n
    return shaping.concatenate(rows)


def toeplitz(c: Any, r: Any = None) -> Any:
    """A matrix that is constant along diagonals, or a stack of them.

    Args:
        c: First column, ``(..., m)``.
        r: First row, ``(..., n)``, of which the first element is not read; ``conj(c)`` by default.
            Leading axes broadcast with those of ``c``.

    Returns:
        The matrices, ``(..., m, n)``.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.scipy.linalg.toeplitz(np.array([1, 2, 3])))
        [[1 2 3]
         [2 1 2]
         [3 2 1]]
    """
    columns = shaping.atleast_1d(as_value(c, "toeplitz"))
    rows = elementwise.conj(columns) if r is None else shaping.atleast_1d(as_value(r, "toeplitz"))
    m, n = shape_of(columns)[-1], shape_of(rows)[-1]
    lead = np.broadcast_shapes(shape_of(columns)[:-1], shape_of(rows)[:-1])
    columns = shaping.broadcast_to(columns, (*lead, m))
    rows = shaping.broadcast_to(rows, (*lead, n))
    line = shaping.concatenate([shaping.flip(columns, -1), rows[..., 1:]], -1)
    return line[..., (m - 1) - np.arange(m)[:, None] + np.arange(n)]


present(__name__)
