"""Linear algebra with JAX's names of `jax.lax.linalg`: strict about dtypes, stacks equal.

Results are ordered as JAX orders them, such as eigenvectors before eigenvalues in `eigh`. What
LAPACK leaves packed (reflections below a triangle) has no derivatives; the matrices made of it by
`householder_product` and `ormqr` have.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.defaults import only_defaults
from funcgrad.base.dialect import fails_as_nan
from funcgrad.base.namespaces import present
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax.operands import array_operand, checked, same_dtype
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives import matrices
from funcgrad.primitives.banded import PERTURB, RAISE, SPOIL, BandedSolve, shifted
from funcgrad.primitives.elementwise import add, convert, mul, scale, select
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.pencils import ColumnPivots, TwoSidedEig
from funcgrad.primitives.schur import PackedHessenberg, PackedTridiagonal, Schur
from funcgrad.primitives.shape import Concatenate, Pad, Slice, reshape, shape_of

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update", "eig",
    "eigh", "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qdwh",
    "qr", "schur", "svd", "symmetric_product", "triangular_solve", "tridiagonal",
    "tridiagonal_solve",
]  # fmt: skip


class EigImplementation(enum.Enum):
    """Names of libraries for `eig`: LAPACK it is."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Names of algorithms for `eigh`: LAPACK chooses."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Names of algorithms for `svd`: LAPACK's is by division of the problem."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _symmetrized(x: Any) -> Any:
    return mul.bind(add.bind(x, matrices.adjoint(x)), aval_of(x).dtype.type(0.5))


def _square(name: str, x: Any) -> Any:
    x = array_operand(f"linalg.{name}", x)
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"lax.linalg.{name} needs square matrices, got {aval_of(x)}.")
    return x


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """Lower triangular ``L`` with ``x = L L^H``.

    Args: x: Positive definite matrices, ``(..., n, n)``.
    Returns: The factors.
    Raises: numpy.linalg.LinAlgError: If a matrix is not positive definite (JAX's are nan then).
    Example: fg.lax.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
        -> array([[2., 0.],
                  [1., 2.]])
    """
    x = _square("cholesky", x)
    factor = primitives.Cholesky(nan_if_indefinite=fails_as_nan())
    return checked(factor, _symmetrized(x) if symmetrize_input else x)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper factor of ``R^T R + w w^T``, with a positive diagonal.

    Args:
        r_matrix: Upper triangular real matrices ``R``, ``(..., n, n)``.
        w_vector: Vectors ``w``, ``(..., n)``.
    Returns: The factors, ``(..., n, n)``.
    Example: fg.lax.linalg.cholesky_update(np.array([[3.0]]), np.array([4.0])) -> array([[5.]])
    """
    r, w = same_dtype("linalg.cholesky_update", r_matrix, w_vector)
    r = _square("cholesky_update", r)
    if shape_of(w) != shape_of(r)[:-1]:
        raise ShapeError(f"lax.linalg.cholesky_update: {aval_of(w)} does not fit {aval_of(r)}.")
    rows = Concatenate(len(shape_of(r)) - 2).bind(matrices.upper(r), matrices.as_row(w))
    _, out = primitives.Qr().bind(rows)
    one = aval_of(r).dtype.type(1)
    signs = select.bind(matrices.diagonal(out) < 0, -one, one)
    return scale.bind(out, matrices.as_column(signs))


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues and eigenvectors of general matrices, complex.

    Args:
        x: Matrices, ``(..., n, n)``.
        compute_left_eigenvectors: Whether ``u`` with ``u^H x = w u^H`` is returned.
        compute_right_eigenvectors: Whether ``v`` with ``x v = w v`` is returned.
        enable_eigvec_derivs: Without effect: vectors always have derivatives.
    Returns: The list of eigenvalues, left and right eigenvectors, as far as asked for.
    Example: fg.lax.linalg.eig(np.array([[2.0, 1.0], [1.0, 3.0]]))[0]
        -> array([1.38196601+0.j, 3.61803399+0.j])
    """
    x = _square("eig", x)
    if compute_left_eigenvectors:
        w, u, v = checked(TwoSidedEig(), x)
        return [w, u, v] if compute_right_eigenvectors else [w, u]
    if compute_right_eigenvectors:
        return list(checked(primitives.Eig(), x))
    return [checked(primitives.Eigvals(), x)]


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues, in this order, of Hermitian matrices.

    Args:
        x: Matrices, ``(..., n, n)``.
        sort_eigenvalues: Without effect: they ascend.
        subset_by_index: First and end of the eigenvalues that are returned.
    Returns: Eigenvectors (columns), and eigenvalues.

    Example:
        >>> v, w = fg.lax.linalg.eigh(np.diag([3.0, 2.0]))
        >>> w
        array([2., 3.])
    """
    x = _square("eigh", x)
    if symmetrize_input:
        x = _symmetrized(x)
    w, v = checked(primitives.Eigh(), x if lower else matrices.adjoint(x))
    if subset_by_index is not None:
        first, end = _range("eigh", subset_by_index, shape_of(w)[-1])
        w, v = _last(w, first, end), matrices.part(v, slice(None), slice(first, end))
    return v, w


def _range(name: str, subset: tuple[int, int], count: int) -> tuple[int, int]:
    first, end = subset
    if not 0 <= first <= end <= count:
        raise ArgumentError(
            f"lax.linalg.{name}: subset_by_index must lie in (0, {count}), got {subset}."
        )
    return first, end


def _last(w: Any, first: int, end: int) -> Any:
    """Some of the elements along the last axis."""
    *stack, _ = shape_of(w)
    ndim = len(stack) + 1
    return Slice((*(0,) * (ndim - 1), first), (*stack, end), (1,) * ndim).bind(w)


def hessenberg(a: Any) -> tuple[Any, Any]:
    """Hessenberg's form as LAPACK leaves it: reflections below it, and their factors.

    It has no derivative; `funcgrad.scipy.linalg.hessenberg` has.

    Args: a: A matrix, or a stack of them.
    Example: fg.lax.linalg.hessenberg(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> (array([[2., 1.],
                  [1., 3.]]), array([0.]))
    """
    packed, taus = checked(PackedHessenberg(), _square("hessenberg", a))
    return packed, taus


def _reflections(a: Any, taus: Any) -> tuple[Any, Any]:
    """``V`` and ``T`` of the product of reflections, ``1 - V T V^H``.

    ``T^-1`` is the strict upper triangle of ``V^H V`` with ``1 / tau`` on its diagonal. Source: R.
    Schreiber and C. Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989) 53.
    """
    m, k = shape_of(a)[-2], shape_of(taus)[-1]
    v = matrices.strictly_lower(matrices.part(a, slice(None), slice(k)))
    v = add.bind(v, np.eye(m, k, dtype=aval_of(a).dtype))
    inner = matrices.matmul(matrices.adjoint(v), v)
    coupling = scale.bind(
        matrices.matrix_transpose(matrices.strictly_lower(matrices.matrix_transpose(inner))),
        matrices.as_column(taus),
    )
    unit = scale.bind(matrices.identity_like(inner), matrices.as_column(taus))
    return v, primitives.TriangularSolve(False, unit_diagonal=True).bind(coupling, unit)


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of a product of reflections ``1 - tau v v^H``.

    Args: a: Matrices, ``(..., m, n)``, whose columns below the diagonal are the vectors.
    Returns: Matrices of the shape of ``a`` with orthonormal columns.

    Example:
        >>> packed, taus = fg.numpy.linalg.qr(np.array([[3.0], [4.0]]), mode="raw")
        >>> fg.lax.linalg.householder_product(packed.T, taus)
        array([[-0.6],
               [-0.8]])
    """
    a, taus = _packed("householder_product", a, taus)
    m, n = shape_of(a)[-2:]
    v, t = _reflections(a, taus)
    moved = matrices.matmul(
        v, matrices.matmul(t, matrices.adjoint(matrices.part(v, slice(n), slice(None))))
    )
    return np.eye(m, n, dtype=aval_of(a).dtype) - moved


def _packed(name: str, a: Any, taus: Any) -> tuple[Any, Any]:
    a, taus = (array_operand(f"linalg.{name}", x) for x in same_dtype(f"linalg.{name}", a, taus))
    shape = shape_of(a)
    fits = len(shape) >= 2 and shape_of(taus)[:-1] == shape[:-2]
    if not fits or shape_of(taus)[-1] > min(shape[-2:]) or shape[-2] < shape[-1]:
        raise ShapeError(
            f"lax.linalg.{name} needs reflections (..., m, n), m >= n, and up to n factors, got "
            f"{aval_of(a)} and {aval_of(taus)}."
        )
    return a, taus


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """A matrix times a product of reflections, which is not formed.

    Args:
        a: Matrices, ``(..., m, n)``, as in `householder_product`.
        c: Matrices, ``(..., m, l)``, or ``(..., l, m)`` if not ``left``.
        left: Whether the product stands on the left.
        transpose: Whether its conjugate transpose takes its place.
    Returns: The products, of the shape of ``c``.
    Example: fg.lax.linalg.ormqr(np.eye(2), np.array([2.0]), np.eye(2))
        -> array([[-1.,  0.],
                  [ 0.,  1.]])
    """
    a, taus = _packed("ormqr", a, taus)
    (c,) = same_dtype("linalg.ormqr", c)
    v, t = _reflections(a, taus)
    t = matrices.adjoint(t) if transpose else t
    if left:
        return c - matrices.matmul(v, matrices.matmul(t, matrices.matmul(matrices.adjoint(v), c)))
    return c - matrices.matmul(matrices.matmul(matrices.matmul(c, v), t), matrices.adjoint(v))


def lu(x: Any) -> tuple[Any, Any, Any]:
    """``L`` and ``U`` in one matrix, exchanges of rows, and the permutation (both int32).

    Args: x: Matrix, or a stack of matrices.
    Example: fg.lax.linalg.lu(np.array([[1.0, 2.0], [2.0, 2.0]]))[2] -> array([1, 0], dtype=int32)
    """
    packed, pivots, order = checked(primitives.LuFactor(), array_operand("linalg.lu", x))
    return packed, pivots, order


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The order of ``permutation_size`` rows after exchanges: ``pivots``, ``(..., k)`` integers.

    Args:
        pivots: Rows that were exchanged, integers ``(..., k)``.
        permutation_size: Number of rows of the matrix.
    Example: fg.lax.linalg.lu_pivots_to_permutation(np.array([1, 1]), 3)
        -> array([1, 0, 2], dtype=int32)
    """
    pivots = array_operand("linalg.lu_pivots_to_permutation", pivots)
    *stack, k = shape_of(pivots)
    if permutation_size < k:
        raise ShapeError(f"{permutation_size} rows cannot be exchanged {k} times.")
    rest = np.broadcast_to(
        np.arange(k, permutation_size, dtype=aval_of(pivots).dtype), (*stack, permutation_size - k)
    )
    return checked(primitives.Permutation(), Concatenate(len(stack)).bind(pivots, rest))


def _padded(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Matrices with zeros around them."""
    stack = [(0, 0)] * (len(shape_of(x)) - 2)
    lows, highs = zip(*stack, rows, columns, strict=True)
    zero = aval_of(x).dtype.type(0)
    return Pad(tuple(lows), tuple(highs), (0,) * len(lows)).bind(x, zero)


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """The polar decomposition ``x = u h``, by singular values and in no iterations.

    Args:
        x: Matrices of full rank, ``(..., m, n)`` with ``m >= n``.
        is_hermitian: Without effect.
        max_iterations: Without effect.
        eps: Without effect.
        dynamic_shape: The shape of the part at the upper left that counts; what is beyond it counts
            as 0.

    Returns:
        ``u`` with orthonormal columns, ``h`` Hermitian and positive, the number of iterations, and
        whether they have converged, which is True.
    Raises: ShapeError: If ``m < n``.

    Example:
        >>> u, h, *_ = fg.lax.linalg.qdwh(np.array([[0.0, -2.0], [2.0, 0.0]]))
        >>> print(h)
        [[2. 0.]
         [0. 2.]]
    """
    x = array_operand("linalg.qdwh", x)
    shape = shape_of(x)
    if len(shape) < 2 or shape[-2] < shape[-1]:
        raise ShapeError(f"lax.linalg.qdwh needs (..., m, n) with m >= n, got {aval_of(x)}.")
    if dynamic_shape is not None:
        rows, columns = dynamic_shape
        u, h, *rest = qdwh(matrices.part(x, slice(0, rows), slice(0, columns)))
        beyond = (0, shape[-2] - rows), (0, shape[-1] - columns)
        return _padded(u, *beyond), _padded(h, beyond[1], beyond[1]), *rest
    u, values, vh = checked(primitives.Svd(False), x)
    values = convert(values, aval_of(u).dtype)
    h = matrices.matmul(mul.bind(matrices.adjoint(vh), matrices.as_row(values)), vh)
    return matrices.matmul(u, vh), h, np.int32(0), np.bool_(True)


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Any, ...]:
    """``x = Q R``, and with ``pivoting`` the order (int32) of columns: ``x[:, order] = Q R``.

    Args:
        x: Matrices, ``(..., m, n)``.
        pivoting: Whether columns are exchanged, so that the diagonal of ``R`` descends.
        full_matrices: Whether ``Q`` is square. Of a tall matrix it has no derivative then.
    Returns: ``Q``, ``R`` and, with ``pivoting``, the order.
    Example: abs(fg.lax.linalg.qr(np.array([[2.0, 1.0], [1.0, 3.0]]))[1])
        -> array([[2.23606798, 2.23606798],
                  [0.        , 2.23606798]])
    """
    x = array_operand("linalg.qr", x)
    if not pivoting:
        return tuple(checked(primitives.Qr(full_matrices), x))
    order = checked(ColumnPivots(), x)
    x = take_along_axis(x, matrices.as_row(order), len(shape_of(x)) - 1)
    return (*primitives.Qr(full_matrices).bind(x), order)


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> Any:
    """``x = Z T Z^H`` with (quasi-) triangular ``T``: the pair of ``T`` and ``Z``, or ``T`` alone.

    The last two arguments are without effect, as in JAX.

    Args:
        x: Matrix, or a stack of matrices.
        compute_schur_vectors: Whether to return the unitary matrix, too.
        sort_eig_vals: ``False``.
        select_callable: ``None``.
    Example: fg.lax.linalg.schur(np.array([[2.0, 1.0], [1.0, 3.0]]))[0].shape -> (2, 2)
    """
    only_defaults("lax.linalg.schur", sort_eig_vals=sort_eig_vals, select_callable=select_callable)
    t, z, _ = checked(Schur(), _square("schur", x))
    return (t, z) if compute_schur_vectors else t


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Singular values, with ``U`` before and ``V^H`` after them if ``compute_uv``.

    Args:
        x: Matrices, ``(..., m, n)``.
        full_matrices: Whether ``U`` and ``V`` are square. They have no derivatives then, unless
            ``x`` is.
        compute_uv: Whether vectors are returned.
        subset_by_index: First and end of the singular values that are returned.
    Returns: The values, or a tuple of the three.
    Example: fg.lax.linalg.svd(np.array([[2.0, 1.0], [1.0, 3.0]]))[1]
        -> array([3.61803399, 1.38196601])
    """
    x = array_operand("linalg.svd", x)
    places = None
    if subset_by_index is not None:
        count = min(shape_of(x)[-2:])
        places = slice(*_range("svd", subset_by_index, count))
        if full_matrices and places != slice(0, count):
            raise ArgumentError("lax.linalg.svd: with full_matrices all values are needed.")
    if not compute_uv:
        values = checked(primitives.SingularValues(), x)
        return values if places is None else _last(values, places.start, places.stop)
    is_completed = full_matrices and shape_of(x)[-1] != shape_of(x)[-2]
    u, values, vh = checked(primitives.Svd(is_completed), x)
    if places is None or full_matrices:
        return u, values, vh
    values = _last(values, places.start, places.stop)
    return matrices.part(u, slice(None), places), values, matrices.part(vh, places, slice(None))


def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Any:
    """``alpha a a^T + beta c`` with symmetric ``c``.

    Args:
        a_matrix: Matrices, ``(..., m, n)``.
        c_matrix: Matrices, ``(..., m, m)``.
        alpha: A factor.
        beta: A factor.
        symmetrize_output: Whether the upper triangle is made that of the lower one.
    Returns: Matrices, ``(..., m, m)``.
    Example: fg.lax.linalg.symmetric_product(np.ones((2, 3)), np.zeros((2, 2)))
        -> array([[3., 3.],
                  [3., 3.]])
    """
    a, c = same_dtype("linalg.symmetric_product", a_matrix, c_matrix)
    if shape_of(c) != (*shape_of(a)[:-1], shape_of(a)[-2]):
        raise ShapeError(f"lax.linalg.symmetric_product: {aval_of(c)} does not fit {aval_of(a)}.")
    out = alpha * matrices.matmul(a, matrices.matrix_transpose(a)) + beta * c
    if not symmetrize_output:
        return out
    return add.bind(matrices.upper(matrices.matrix_transpose(out)), matrices.strictly_lower(out))


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """``x`` with ``op(a) x = b``, or ``x op(a) = b`` if not ``left_side``.

    Args:
        a: Triangular matrices, ``(..., m, m)``.
        b: Matrices, ``(..., m, n)`` or, if not ``left_side``, ``(..., n, m)``; or ``(..., m)``.
        left_side: On which side ``a`` stands.
        transpose_a: Whether ``a`` is transposed.
        conjugate_a: Whether it is conjugated.
        unit_diagonal: Whether its diagonal is taken to be 1 and not read.
    Returns: The solutions, of the shape of ``b``.

    Example:
        >>> a = np.array([[2.0, 0.0], [1.0, 1.0]])
        >>> fg.lax.linalg.triangular_solve(a, np.array([[2.0], [3.0]]), left_side=True, lower=True)
        array([[1.],
               [2.]])
    """
    a, b = same_dtype("linalg.triangular_solve", a, b)
    a = _square("triangular_solve", a)
    a = matrices.conjugated(a) if conjugate_a else a
    is_vector = len(shape_of(b)) == len(shape_of(a)) - 1
    if is_vector:
        b = matrices.as_column(b) if left_side else matrices.as_row(b)
    solve = primitives.TriangularSolve(
        lower, transpose_a == left_side, unit_diagonal, not fails_as_nan()
    )
    if left_side:
        out = checked(solve, a, b)
    else:
        out = matrices.matrix_transpose(checked(solve, a, matrices.matrix_transpose(b)))
    return reshape(out, (*shape_of(a)[:-1],)) if is_vector else out


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """The tridiagonal form of Hermitian matrices as LAPACK leaves it, without derivatives.

    Args: a: Matrices, ``(..., n, n)``; one triangle is read.
    Returns: The form with reflections in that triangle; its diagonal; the diagonal next to it; the
        factors of the reflections.
    Example: fg.lax.linalg.tridiagonal(np.array([[2.0, 1.0], [1.0, 3.0]]))[0]
        -> array([[2., 1.],
                  [1., 3.]])
    """
    packed, d, e, taus = checked(PackedTridiagonal(lower), _square("tridiagonal", a))
    return packed, d, e, taus


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """The solution of tridiagonal systems.

    Args:
        dl: ``dl[i] = a[i, i - 1]``, ``(..., m)``; the first element is not read.
        d: Diagonals, ``(..., m)``.
        du: ``du[i] = a[i, i + 1]``, ``(..., m)``; the last element is not read.
        b: Right-hand sides, ``(..., m, n)``.
        perturb_singular: Whether singular matrices are replaced by such as differ from them by
            rounding errors.
    Returns: The solutions, of the shape of ``b``.
    Raises: numpy.linalg.LinAlgError: If a matrix is singular, unless it is perturbed.

    Example:
        >>> one = np.ones(2)
        >>> fg.lax.linalg.tridiagonal_solve(0 * one, 2 * one, one, np.array([[4.0], [2.0]]))
        array([[1.5],
               [1. ]])
    """
    dl, d, du, b = same_dtype("linalg.tridiagonal_solve", dl, d, du, b)
    shape = shape_of(d)
    if not shape_of(dl) == shape_of(du) == shape or shape_of(b)[:-1] != shape:
        types = ", ".join(str(aval_of(x)) for x in (dl, d, du, b))
        raise ShapeError(f"lax.linalg.tridiagonal_solve: shapes do not fit: {types}.")
    n = shape[-1]
    rows = [
        shifted(matrices.as_row(du), 1, n),
        matrices.as_row(d),
        shifted(matrices.as_row(dl), -1, n),
    ]
    band = Concatenate(len(shape) - 1).bind(*rows)
    if_singular = PERTURB if perturb_singular else SPOIL if fails_as_nan() else RAISE
    return checked(BandedSolve(1, 1, if_singular), band, b)


present(__name__)
