"""Linear algebra on matrices and stacks of matrices, with NumPy's names.

The primitives work on floating matrices with equal stacks; this file brings arguments into that
form. Eigenvalues of general matrices are always complex, because whether they happen to be real
depends on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.dialect import fails_as_nan, reads_both_triangles
from funcgrad.base.signatures import share
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import FLOAT64, is_complex, is_inexact, real_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import contracting, diagonals, reducing
from funcgrad.numpy.contracting import matmul, tensordot, vecdot
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.promotion import as_value, normalize_axes, normalize_axis, promote, strong
from funcgrad.numpy.reducing import kept, safe_sqrt
from funcgrad.numpy.shaping import matrix_transpose, ravel
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives import shape as s
from funcgrad.primitives.matrices import adjoint
from funcgrad.primitives.matrices import matmul as multiply
from funcgrad.primitives.reductions import ReduceMax, ReduceMin
from funcgrad.primitives.shape import ReduceSum, shape_of

__all__ = [
    "EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky",
    "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot",
    "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv",
    "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

LinAlgError = np.linalg.LinAlgError


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """Orthonormal columns and upper triangular coefficients."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """Sign (or phase) of a determinant and logarithm of its size."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """Left singular vectors (columns), singular values, right singular vectors (rows)."""

    U: Any
    S: Any
    Vh: Any


def floating(*args: Any, function: str) -> list[Any]:
    """Values of one floating or complex dtype; exact ones become float64."""
    values = [strong(v) for v in promote(*[as_value(a, function) for a in args])]
    return [v if is_inexact(aval_of(v).dtype) else p.convert(v, FLOAT64) for v in values]


def matrix(a: Any, function: str) -> Any:
    """A floating or complex value with two axes at least."""
    (x,) = floating(a, function=function)
    if len(shape_of(x)) < 2:
        raise LinAlgError(f"{function} needs a matrix or a stack of matrices, got {aval_of(x)}.")
    return x


def square(a: Any, function: str) -> Any:
    """A floating or complex value whose last two axes are equal."""
    x = matrix(a, function)
    if shape_of(x)[-1] != shape_of(x)[-2]:
        raise LinAlgError(
            f"{function} needs square matrices (the last two axes equal), got {aval_of(x)}."
        )
    return x


def _factored(operation: Any, x: Any) -> Any:
    """Apply a factorisation; in dialects that ask for it, matrices that are not finite give nan."""
    if not fails_as_nan() or not aval_of(x).size:
        return operation.bind(x)
    zero, shape = aval_of(x).dtype.type(0), shape_of(x)
    axes = (len(shape) - 2, len(shape) - 1)
    spoiled = ReduceSum(axes).bind(p.mul.bind(p.stop_gradient.bind(x), zero))  # 0, or nan
    is_finite = p.equal.bind(spoiled, zero)

    def unless_spoiled(value: Any, other: float) -> Any:
        ones = (1,) * (len(shape_of(value)) - len(shape) + 2)
        here = s.reshape(is_finite, (*shape[:-2], *ones))
        return p.select.bind(here, value, aval_of(value).dtype.type(other))

    found = operation.bind(unless_spoiled(x, 0.0))
    if not isinstance(found, list | tuple):
        return unless_spoiled(found, np.nan)
    return [unless_spoiled(value, np.nan) for value in found]


# Systems and inverses.


def solve(a: Any, b: Any) -> Any:
    """Solution of linear equations.

    As `numpy.linalg.solve`: ``x`` with ``a x = b``.

    Args:
        a: Square matrices, ``(..., n, n)``.
        b: One vector ``(n,)``, or matrices of right-hand sides ``(..., n, k)``.
    Returns: The solutions, of the shape of ``b`` (stacks broadcast).
    Raises: LinAlgError: If a matrix is singular.
    Example: print(fg.numpy.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])))
        -> [1.  0.5]
    """
    a, b = floating(a, b, function="solve")
    a = square(a, "solve")
    is_vector = len(shape_of(b)) == 1
    if is_vector:
        b = s.reshape(b, (*shape_of(b), 1))
    n = shape_of(a)[-1]
    if len(shape_of(b)) < 2 or shape_of(b)[-2] != n:
        raise ShapeError(f"solve: {aval_of(b)} is no right-hand side of equations {aval_of(a)}.")
    out = _solved(a, b)
    return s.reshape(out, shape_of(out)[:-1]) if is_vector else out


def _solved(a: Any, b: Any) -> Any:
    operation = primitives.Solve(is_checked=not fails_as_nan())
    stack = shape_of(b)[:-2]
    if len(shape_of(a)) == 2 and stack:
        # One matrix for all: factored once, the stack becomes more columns.
        front = s.moveaxis_to_front(b, len(stack))
        wide = s.reshape(front, (shape_of(b)[-2], -(-aval_of(b).size // max(shape_of(b)[-2], 1))))
        out = s.reshape(operation.bind(a, wide), shape_of(front))
        return s.moveaxis_from_front(out, len(stack))
    lead = np.broadcast_shapes(shape_of(a)[:-2], stack)
    a = s.broadcast_to(a, (*lead, *shape_of(a)[-2:]))
    return operation.bind(a, s.broadcast_to(b, (*lead, *shape_of(b)[-2:])))


def inv(a: Any) -> Any:
    """Inverse of matrices, as `numpy.linalg.inv`.

    Example: fg.numpy.linalg.inv(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 0.6, -0.2],
                  [-0.2,  0.4]])
    """
    return primitives.Inv(nan_if_singular=fails_as_nan()).bind(square(a, "inv"))


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Pseudo-inverse of matrices.

    As `numpy.linalg.pinv`, with one known tolerance for all matrices.

    Derivatives are those at constant rank.

    Example: fg.numpy.linalg.pinv(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[ 0.6, -0.2],
                  [-0.2,  0.4]])
    """
    x = matrix(a, "pinv")
    return _factored(primitives.Pinv(_tolerance(x, rcond, rtol, "pinv", 1e-15)), x)


def _tolerance(x: Any, rcond: Any, rtol: Any, function: str, default: float | None = None) -> float:
    """A relative tolerance as a number; by default rounding errors of matrices of this size."""
    if rcond is not None and rtol is not None:
        raise ArgumentError(f"{function}: there are two tolerances; pass one of them.")
    given = rcond if rtol is None else rtol
    if given is None:
        if default is not None:
            return default
        return float(np.finfo(aval_of(x).dtype).eps) * max(shape_of(x)[-2:])
    if isinstance(given, Tracer) or np.size(given) != 1:
        raise ArgumentError(f"{function}: the tolerance must be one known number.")
    return float(np.asarray(given).reshape(()))


def lstsq(
    a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = True
) -> tuple[Any, Any, Any, Any]:
    """Least-squares solution of linear equations.

    As `numpy.linalg.lstsq`: the shortest ``x`` that minimises ``|a x - b|``.

    Args:
        a: One matrix, ``(m, n)``.
        b: A vector ``(m,)`` or a matrix ``(m, k)``.
        numpy_resid: Accepted for JAX's signature: residuals are NumPy's.
    Returns: Solution; sums of squared residuals (empty if ``m <= n`` or the rank is known to be
        deficient); rank; singular values.

    Example:
        >>> fg.numpy.linalg.lstsq(
        ...     np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0, 5.0])
        ... )[0]
        array([1., 2.])
    """
    a, b = floating(a, b, function="lstsq")
    if len(shape_of(matrix(a, "lstsq"))) != 2 or len(shape_of(b)) not in (1, 2):
        raise LinAlgError(f"lstsq needs one matrix and a vector or matrix, got {aval_of(b)}.")
    tolerance = _tolerance(a, rcond, None, "lstsq")
    x = matmul(_factored(primitives.Pinv(tolerance), a), b)
    values = _factored(primitives.SingularValues(), a)
    rank = _rank(values, tolerance)
    m, n = shape_of(a)
    is_deficient = not isinstance(rank, Tracer) and rank < n
    if m <= n or is_deficient:
        return x, np.empty(0, real_dtype(aval_of(x).dtype)), rank, values
    rest = p.sub.bind(b, matmul(a, x))
    squares = ReduceSum((0,)).bind(_square_size(rest))
    return x, s.reshape(squares, shape_of(squares) or (1,)), rank, values


def _rank(values: Any, tolerance: float) -> Any:
    """How many singular values are not negligible."""
    if not shape_of(values)[-1]:
        return np.zeros(shape_of(values)[:-1], np.int64)
    largest = getitem(values, (..., slice(0, 1)))
    bound = p.mul.bind(largest, aval_of(values).dtype.type(tolerance))
    return reducing.sum(p.greater.bind(values, bound), -1)


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Rank of matrices, from their singular values, as `numpy.linalg.matrix_rank`.

    Args:
        A: Matrix, or a stack of matrices.
        tol: Singular values below this count as zero.
    Example: fg.numpy.linalg.matrix_rank(np.array([[2.0, 1.0], [1.0, 3.0]])) -> np.int64(2)
    """
    (x,) = floating(A, function="matrix_rank")
    if len(shape_of(x)) < 2:
        return p.convert(reducing.any(p.not_equal.bind(x, p.zero_of(x))), np.dtype(np.int64))
    values = _factored(primitives.SingularValues(), x)
    if tol is None or rtol is not None:
        return _rank(values, _tolerance(x, tol, rtol, "matrix_rank"))
    bound = p.convert(strong(as_value(tol)), aval_of(values).dtype)
    bound = s.reshape(bound, (*shape_of(bound), 1))
    return reducing.sum(p.greater.bind(values, bound), -1)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Solution of linear equations of an array with respect to `tensordot`.

    As `numpy.linalg.tensorsolve`.

    Args:
        b: Right-hand side, or the second operand.
        axes: Axes over which products are summed; of ``tensorsolve``, those of ``a`` that go to its
            end.
    Example: fg.numpy.linalg.tensorsolve(2 * np.eye(4).reshape(2, 2, 2, 2), np.ones((2, 2)))
        -> array([[0.5, 0.5],
                  [0.5, 0.5]])
    """
    a, b = floating(a, b, function="tensorsolve")
    ndim = len(shape_of(a))
    if axes is not None:
        last = [normalize_axis(i, ndim, "tensorsolve") for i in axes]
        a = s.Transpose((*(i for i in range(ndim) if i not in last), *last)).bind(a)
    unknown = shape_of(a)[len(shape_of(b)) :]
    size = aval_of(b).size
    if size * size != aval_of(a).size:
        raise LinAlgError(f"tensorsolve: {aval_of(a)} and {aval_of(b)} are no square system.")
    x = solve(s.reshape(a, (size, size)), ravel(b))
    return s.reshape(x, unknown)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """Inverse of an array with respect to `tensordot`, as `numpy.linalg.tensorinv`.

    Args: ind: How many axes of ``a`` belong to the result.
    Example: fg.numpy.linalg.tensorinv(2 * np.eye(4).reshape(2, 2, 2, 2)).shape -> (2, 2, 2, 2)
    """
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    (x,) = floating(a, function="tensorinv")
    rows, columns = shape_of(x)[:ind], shape_of(x)[ind:]
    n = int(np.prod(columns, dtype=np.int64))
    return s.reshape(inv(s.reshape(x, (aval_of(x).size // max(n, 1), n))), (*columns, *rows))


# Determinants and factorizations.


def det(a: Any) -> Any:
    """Determinant of matrices.

    As `numpy.linalg.det`; its gradient exists for singular matrices too.

    Example: fg.numpy.linalg.det(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> np.float64(5.000000000000001)
    """
    return primitives.Det().bind(square(a, "det"))


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant.

    As `numpy.linalg.slogdet`; ``method`` ("lu" or "qr") is accepted without effect.

    Args: method: Accepted for JAX's signature; without effect.
    Example: fg.numpy.linalg.slogdet(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> SlogdetResult(sign=np.float64(1.0), logabsdet=np.float64(1.6094379124341005))
    """
    if method not in (None, "lu", "qr"):
        raise ArgumentError(f"slogdet: method must be None, 'lu' or 'qr', got {method!r}.")
    return SlogdetResult(*primitives.Slogdet().bind(square(a, "slogdet")))


def symmetrized(x: Any, is_asked: bool | None) -> Any:
    """Half the sum of matrices and their conjugate transposes, if asked for, or by the dialect."""
    if not (reads_both_triangles() if is_asked is None else is_asked):
        return x
    return p.mul.bind(p.add.bind(x, adjoint(x)), aval_of(x).dtype.type(0.5))


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool | None = None) -> Any:
    """Cholesky factor of positive definite matrices, as `numpy.linalg.cholesky`.

    With ``symmetrize_input`` both triangles are read: half the sum of the matrix and its conjugate
    transpose takes its place.

    Args: upper: Whether the factor is the upper triangle.
    Example: fg.numpy.linalg.cholesky(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[1.41421356, 0.        ],
                  [0.70710678, 1.58113883]])
    """
    x = symmetrized(square(a, "cholesky"), symmetrize_input)
    factor = primitives.Cholesky(nan_if_indefinite=fails_as_nan())
    return adjoint(factor.bind(adjoint(x))) if upper else factor.bind(x)


def qr(a: Any, mode: str = "reduced") -> Any:
    """QR decomposition of matrices.

    As `numpy.linalg.qr`; the reflections of mode "raw" have no derivative.

    Args: mode: ``"reduced"``, ``"complete"``, ``"r"`` or ``"raw"``: what is returned.
    Example: abs(fg.numpy.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]])).R)
        -> array([[5. , 2.2],
                  [0. , 0.4]])
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ArgumentError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}.")
    if mode == "raw":
        packed, taus = primitives.RawQr().bind(matrix(a, "qr"))
        return matrix_transpose(packed), taus
    q, r = primitives.Qr(mode == "complete").bind(matrix(a, "qr"))
    return r if mode == "r" else QRResult(q, r)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular value decomposition of matrices, as `numpy.linalg.svd`.

    Derivatives of the vectors of matrices that are not square need ``full_matrices=False``. With
    ``subset_by_index``, ``(first, end)``, only these values and their vectors are returned.

    Args:
        full_matrices: Whether the factors are square.
        compute_uv: Whether to compute the singular vectors.
        subset_by_index: The first of these singular values and the one after the last, as a pair.
    Example: fg.numpy.linalg.svd(np.array([[2.0, 1.0], [1.0, 3.0]])).S
        -> array([3.61803399, 1.38196601])
    """
    x = matrix(a, "svd")
    if subset_by_index is not None:
        return _some_singular(x, full_matrices, compute_uv, subset_by_index)
    if not compute_uv:
        return _factored(primitives.SingularValues(), x)
    is_completed = full_matrices and shape_of(x)[-1] != shape_of(x)[-2]
    return SVDResult(*_factored(primitives.Svd(is_completed), x))


def _some_singular(x: Any, full_matrices: bool, compute_uv: bool, subset: tuple[int, int]) -> Any:
    first, end = subset
    count = min(shape_of(x)[-2:])
    if not 0 <= first <= end <= count:
        raise ArgumentError(f"svd: subset_by_index must lie in (0, {count}), got {subset}.")
    if full_matrices and (first, end) != (0, count):
        raise ArgumentError("svd: with full_matrices all singular values are needed.")
    if not compute_uv:
        return getitem(_factored(primitives.SingularValues(), x), (..., slice(first, end)))
    u, values, vh = _factored(primitives.Svd(full_matrices), x)
    if full_matrices:
        return SVDResult(u, values, vh)
    places = slice(first, end)
    return SVDResult(
        getitem(u, (..., places)),
        getitem(values, (..., places)),
        getitem(vh, (..., places, slice(None))),
    )


def svdvals(x: Any, /) -> Any:
    """Singular values of matrices, as `numpy.linalg.svdvals`.

    Example: fg.numpy.linalg.svdvals(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([3.61803399, 1.38196601])
    """
    return _factored(primitives.SingularValues(), matrix(x, "svdvals"))


def _lower_of(a: Any, UPLO: str | None, function: str, is_symmetrized: bool | None) -> Any:
    """Hermitian matrices whose lower triangle is the one to be read."""
    x = symmetrized(square(a, function), is_symmetrized)
    triangle = "L" if UPLO is None else UPLO.upper()
    if triangle not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return x if triangle == "L" else adjoint(x)


def eigh(a: Any, UPLO: str | None = "L", symmetrize_input: bool | None = None) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    As `numpy.linalg.eigh`; with ``symmetrize_input`` as in `cholesky`.

    Example: fg.numpy.linalg.eigh(np.array([[2.0, 1.0], [1.0, 3.0]])).eigenvalues
        -> array([1.38196601, 3.61803399])
    """
    return EighResult(*primitives.Eigh().bind(_lower_of(a, UPLO, "eigh", symmetrize_input)))


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool | None = None) -> Any:
    """Eigenvalues of Hermitian matrices.

    As `numpy.linalg.eigvalsh`; with ``symmetrize_input`` as in `cholesky`.

    Example: fg.numpy.linalg.eigvalsh(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([1.38196601, 3.61803399])
    """
    return primitives.Eigvalsh().bind(_lower_of(a, UPLO, "eigvalsh", symmetrize_input))


def eig(a: Any) -> EigResult:
    """Eigenvalues and right eigenvectors of matrices.

    As `numpy.linalg.eig`, with complex results for real matrices too.

    Example: fg.numpy.linalg.eig(np.array([[2.0, 1.0], [1.0, 3.0]])).eigenvalues
        -> array([1.38196601+0.j, 3.61803399+0.j])
    """
    return EigResult(*_factored(primitives.Eig(), square(a, "eig")))


def eigvals(a: Any) -> Any:
    """Eigenvalues of matrices.

    As `numpy.linalg.eigvals`, with complex results for real matrices too.

    Example: fg.numpy.linalg.eigvals(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([1.38196601+0.j, 3.61803399+0.j])
    """
    return _factored(primitives.Eigvals(), square(a, "eigvals"))


# Norms.


def _size(x: Any) -> Any:
    """Absolute values."""
    return p.absolute.bind(x)


def _square_size(x: Any) -> Any:
    """Squares of absolute values."""
    if is_complex(aval_of(x).dtype):
        return p.real.bind(p.mul.bind(x, p.conj.bind(x)))
    return p.integer_power(x, 2)


def _largest(sizes: Any, axes: tuple[int, ...]) -> Any:
    """The largest size, 0 of none."""
    shape = shape_of(sizes)
    if all(shape[i] for i in axes):
        return ReduceMax(axes).bind(sizes)
    return np.zeros(s.drop_axes(shape, axes), aval_of(sizes).dtype)


def _vector_norm(x: Any, axes: tuple[int, ...], order: Any) -> Any:
    """Norms over ``axes``; where the 2-norm and roots are 0 so are their derivatives."""
    if order is None or order == 2:
        return safe_sqrt(ReduceSum(axes).bind(_square_size(x)))
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if order == np.inf:
        return _largest(_size(x), axes)
    if order == -np.inf:
        return ReduceMin(axes).bind(_size(x))
    dtype = real_dtype(aval_of(x).dtype)
    if order == 0:
        return ReduceSum(axes).bind(p.convert(p.not_equal.bind(x, p.zero_of(x)), dtype))
    if order == 1:
        return ReduceSum(axes).bind(_size(x))
    total = ReduceSum(axes).bind(p.power.bind(_size(x), dtype.type(order)))
    is_zero = p.equal.bind(total, p.zero_of(total))
    if order < 0:
        return p.power.bind(total, dtype.type(1 / order))
    root = p.power.bind(p.select.bind(is_zero, p.ones_like(total), total), dtype.type(1 / order))
    return p.select.bind(is_zero, p.zero_of(total), root)


def _matrix_norm(x: Any, axes: tuple[int, int], order: Any) -> Any:
    if order in (None, "fro", "f"):
        return _vector_norm(x, tuple(sorted(axes)), None)
    row, column = axes
    if order in (1, -1, np.inf, -np.inf):
        summed, other = (row, column) if order in (1, -1) else (column, row)
        lines = ReduceSum((summed,)).bind(_size(x))
        across = (other - (other > summed),)
        return _largest(lines, across) if order > 0 else ReduceMin(across).bind(lines)
    if order not in (2, -2, "nuc"):
        raise ValueError("Invalid norm order for matrices.")
    ndim = len(shape_of(x))
    rest = tuple(i for i in range(ndim) if i not in axes)
    order_of_axes = (*rest, row, column)
    moved = x if order_of_axes == tuple(range(ndim)) else s.Transpose(order_of_axes).bind(x)
    values = _factored(primitives.SingularValues(), moved)
    last = (len(rest),)
    if order == "nuc":
        return ReduceSum(last).bind(values)
    return _largest(values, last) if order == 2 else ReduceMin(last).bind(values)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norm of vectors or matrices, as `numpy.linalg.norm`.

    Where the 2-norm or the Frobenius norm is 0 its derivative is taken to be 0.

    Args: axis: The axis of vectors, or the pair of axes of matrices; by default a vector, a matrix
            or a flattened array is taken whole.
    Example: print(fg.grad(fg.numpy.linalg.norm)(np.zeros(2))) -> [0. 0.]
    """
    (x,) = floating(x, function="norm")
    shape = shape_of(x)
    if axis is None:
        axes = tuple(range(len(shape)))
        if ord is None:
            return kept(_vector_norm(x, axes, None), shape, axes, keepdims)
    else:
        given = axis if isinstance(axis, tuple | list) else (axis,)
        axes = tuple(normalize_axis(i, len(shape), "norm") for i in given)
    if len(axes) == 1:
        return kept(_vector_norm(x, axes, ord), shape, axes, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if axes[0] == axes[1]:
        raise ValueError("Duplicate axes given.")
    return kept(_matrix_norm(x, (axes[0], axes[1]), ord), shape, axes, keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Norm of vectors.

    As `numpy.linalg.vector_norm`: over all elements, or over ``axis``.

    Example: fg.numpy.linalg.vector_norm(np.array([3.0, 4.0])) -> np.float64(5.0)
    """
    (x,) = floating(x, function="vector_norm")
    shape = shape_of(x)
    axes = normalize_axes(axis, len(shape), "vector_norm")
    return kept(_vector_norm(x, axes, ord), shape, axes, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norm of matrices.

    As `numpy.linalg.matrix_norm`, of the last two axes.

    Example: fg.numpy.linalg.matrix_norm(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> np.float64(3.872983346207417)
    """
    return norm(matrix(x, "matrix_norm"), ord, (-2, -1), keepdims)


def cond(x: Any, p: Any = None) -> Any:
    """Condition number of matrices, as `numpy.linalg.cond`.

    Args: p: Which norm.
    Example: fg.numpy.linalg.cond(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> np.float64(2.6180339887498953)
    """
    x = matrix(x, "cond")
    if not aval_of(x).size:
        raise LinAlgError(f"cond is not defined on empty arrays, got {aval_of(x)}.")
    if p in (None, 2, -2):
        values = _factored(primitives.SingularValues(), x)
        first, last = getitem(values, (..., 0)), getitem(values, (..., -1))
        return last / first if p == -2 else first / last
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


# Products.


def matrix_power(a: Any, n: int) -> Any:
    """Integer power of matrices.

    As `numpy.linalg.matrix_power`, by repeated squaring.

    Args: n: The power, an integer.
    Example: fg.numpy.linalg.matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 3)
        -> array([[1., 3.],
                  [0., 1.]])
    """
    x = strong(as_value(a, "matrix_power"))
    if len(shape_of(x)) < 2 or shape_of(x)[-1] != shape_of(x)[-2]:
        raise LinAlgError(f"matrix_power needs square matrices, got {aval_of(x)}.")
    n = int(n.__index__())
    if n == 0:
        return s.broadcast_to(np.eye(shape_of(x)[-1], dtype=aval_of(x).dtype), shape_of(x))
    if n < 0:
        x, n = inv(x), -n
    if n == 3:  # in NumPy's order
        return multiply(multiply(x, x), x)
    out = None
    while n:
        if n & 1:
            out = x if out is None else multiply(out, x)
        n >>= 1
        x = multiply(x, x) if n else x
    return out


def multi_dot(arrays: Sequence[Any], *, out: None = None, precision: Any = None) -> Any:
    """Product of several matrices in the cheapest order.

    As `numpy.linalg.multi_dot`: a product of matrices in the cheapest order.

    The first and the last may be vectors. ``precision`` is accepted without effect: products have
    that of their dtype.

    Args: arrays: Matrices; the first and the last one may be vectors.
    Example: fg.numpy.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 1))])
        -> array([[12.],
                  [12.]])
    """
    reducing.refuse_out(out, "multi_dot")
    values = [as_value(a, "multi_dot") for a in arrays]
    if len(values) < 2:
        raise ValueError("Expecting at least two arrays.")
    is_row, is_column = (len(shape_of(values[i])) == 1 for i in (0, -1))
    if is_row:
        values[0] = s.reshape(values[0], (1, *shape_of(values[0])))
    if is_column:
        values[-1] = s.reshape(values[-1], (*shape_of(values[-1]), 1))
    if any(len(shape_of(v)) != 2 for v in values):
        raise LinAlgError("multi_dot needs matrices; only the first and last may be vectors.")
    product = _chain(values, _splits([*(shape_of(v)[0] for v in values), shape_of(values[-1])[1]]))
    drop = [i for i, is_vector in enumerate((is_row, is_column)) if is_vector]
    return s.reshape(product, s.drop_axes(shape_of(product), drop))


def _splits(lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each run of a chain of matrices, after which matrix to split it (Cormen et al., 15.2)."""
    count = len(lengths) - 1
    cost = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            costs = {
                k: cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1]
                for k in range(i, j)
            }
            splits[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[splits[i, j]]
    return splits


def _chain(values: Sequence[Any], splits: dict[tuple[int, int], int]) -> Any:
    def product(i: int, j: int) -> Any:
        if i == j:
            return values[i]
        k = splits[i, j]
        return matmul(product(i, k), product(k + 1, j))

    return product(0, len(values) - 1)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Cross product of vectors of three elements.

    As `numpy.linalg.cross`.

    Example: fg.numpy.linalg.cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
        -> array([0., 0., 1.])
    """
    return contracting.cross(x1, x2, axis=axis)


def outer(x1: Any, x2: Any, /) -> Any:
    """Products of all pairs of elements of two vectors.

    As `numpy.linalg.outer`, of two vectors.

    Example: fg.numpy.linalg.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        -> array([[3., 4.],
                  [6., 8.]])
    """
    for x in (x1, x2):
        if len(shape_of(as_value(x, "outer"))) != 1:
            raise ValueError(f"outer needs two vectors, got {aval_of(as_value(x))}.")
    return contracting.outer(x1, x2)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Diagonals of matrices.

    As `numpy.linalg.diagonal`, of the last two axes.

    Example: fg.numpy.linalg.diagonal(np.array([[2.0, 1.0], [1.0, 3.0]])) -> array([2., 3.])
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sum of the diagonals of matrices.

    As `numpy.linalg.trace`, of the last two axes.

    Example: fg.numpy.linalg.trace(np.array([[2.0, 1.0], [1.0, 3.0]])) -> np.float64(5.0)
    """
    return diagonals.trace(x, offset, -2, -1, dtype)


share(
    __name__,
    {
        "a": "Matrix, or a stack of matrices.",
        "x": "Matrix or vector, or a stack of them.",
    },
)
