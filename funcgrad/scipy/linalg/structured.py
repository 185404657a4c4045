"""Matrices with a structure: made of a vector or two, and constant ones, which are SciPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.core.avals import aval_of
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.numpy import elementwise, joining, linalg, rearranging, selecting, shaping
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.promotion import as_value, promote, strong
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.linalg.operands import choice, refuse_traced, stacked

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "diagsvd", "fiedler",
    "fiedler_companion", "hankel", "ishermitian", "issymmetric", "khatri_rao", "leslie", "toeplitz",
]  # fmt: skip


def block_diag(*arrs: Any) -> Any:
    """A matrix with the given matrices on its diagonal and zeros elsewhere.

    Args: *arrs: Matrices; vectors are rows, scalars are 1 by 1. Leading axes count matrices.
    Returns: The matrix, or a stack of them.
    Example: print(fg.scipy.linalg.block_diag(np.ones((1, 2)), 3.0))
        -> [[1. 1. 0.]
            [0. 0. 3.]]
    """
    blocks = [shaping.atleast_2d(a) for a in arrs or ([[]],)]
    blocks = stacked(blocks, [2] * len(blocks))
    width = sum(shape_of(b)[-1] for b in blocks)
    rows, left = [], 0
    for block in blocks:
        n = shape_of(block)[-1]
        around = (*((0, 0) for _ in shape_of(block)[:-1]), (left, width - left - n))
        rows.append(shaping.constant_pad(block, around))
        left += n
    return joining.concatenate(rows, -2)


def toeplitz(c: Any, r: Any = None) -> Any:
    """A matrix that is constant along diagonals, or a stack of them.

    Args:
        c: First column, ``(..., m)``.
        r: First row, ``(..., n)``, of which the first element is not read; ``conj(c)`` by default.
            Leading axes broadcast with those of ``c``.
    Returns: The matrices, ``(..., m, n)``.
    Example: print(fg.scipy.linalg.toeplitz(np.array([1, 2, 3])))
        -> [[1 2 3]
            [2 1 2]
            [3 2 1]]
    """
    columns = _vector(c, "toeplitz")
    rows = elementwise.conj(columns) if r is None else _vector(r, "toeplitz")
    m, n = shape_of(columns)[-1], shape_of(rows)[-1]
    columns, rows = stacked([columns, rows], [1, 1])
    line = joining.concatenate([rearranging.flip(columns, -1), rows[..., 1:]], -1)
    return line[..., (m - 1) - np.arange(m)[:, None] + np.arange(n)]


def hankel(c: Any, r: Any = None) -> Any:
    """A matrix that is constant along antidiagonals, or a stack of them.

    Args:
        c: First column, ``(..., m)``.
        r: Last row, ``(..., n)``, of which the first element is not read; zeros by default.
    Returns: The matrices, ``(..., m, n)``.
    Example: print(fg.scipy.linalg.hankel(np.array([1, 2]), np.array([0, 3, 4])))
        -> [[1 2 3]
            [2 3 4]]
    """
    columns = _vector(c, "hankel")
    rows = columns * 0 if r is None else _vector(r, "hankel")
    m, n = shape_of(columns)[-1], shape_of(rows)[-1]
    columns, rows = stacked([columns, rows], [1, 1])
    line = joining.concatenate([columns, rows[..., 1:]], -1)
    return line[..., np.arange(m)[:, None] + np.arange(n)]


def circulant(c: Any) -> Any:
    """A matrix whose columns are one vector, rolled by a place each, or a stack of them.

    Args: c: First column, ``(..., n)``.
    Returns: The matrices, ``(..., n, n)``.
    Example: print(fg.scipy.linalg.circulant(np.array([1, 2, 3])))
        -> [[1 3 2]
            [2 1 3]
            [3 2 1]]
    """
    column = _vector(c, "circulant")
    n = shape_of(column)[-1]
    return column[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


def _vector(x: Any, function: str) -> Any:
    return shaping.atleast_1d(strong(as_value(x, function)))


def companion(a: Any) -> Any:
    """Companion matrix of a polynomial.

    As `scipy.linalg.companion`: a matrix whose eigenvalues are the roots of a polynomial.

    Args: a: Coefficients, ``(..., n)``, of the highest power first, which is not zero.
    Returns: The matrices, ``(..., n - 1, n - 1)``.
    Example: print(fg.scipy.linalg.companion(np.array([1.0, -3.0, 2.0])))
        -> [[ 3. -2.]
            [ 1.  0.]]
    """
    (a,) = linalg.floating(_vector(a, "companion"), function="companion")
    n = shape_of(a)[-1]
    if n < 2:
        raise ValueError(f"companion needs two coefficients at least, got {aval_of(a)}.")
    if not is_traced(a) and np.any(a[..., 0] == 0):
        raise ValueError("companion: the first coefficient must not be zero.")
    first = (-a[..., 1:] / a[..., :1])[..., None, :]
    rest = np.broadcast_to(
        np.eye(n - 2, n - 1, dtype=aval_of(a).dtype), (*shape_of(a)[:-1], n - 2, n - 1)
    )
    return joining.concatenate([first, rest], -2)


def fiedler(a: Any) -> Any:
    """Fiedler's matrix of a vector.

    As `scipy.linalg.fiedler`: the distances of all pairs, ``|a_i - a_j|``.

    Example: fg.scipy.linalg.fiedler(np.array([1.0, 2.0, 3.0]))
        -> array([[0., 1., 2.],
                  [1., 0., 1.],
                  [2., 1., 0.]])
    """
    a = _vector(a, "fiedler")
    return elementwise.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: Any) -> Any:
    """Fiedler's companion matrix of a polynomial.

    As `scipy.linalg.fiedler_companion`: a band with the eigenvalues of `companion`.

    Example: fg.scipy.linalg.fiedler_companion(np.array([1.0, 2.0, 3.0]))
        -> array([[-2., -3.],
                  [ 1.,  0.]])
    """
    (a,) = linalg.floating(_vector(a, "fiedler_companion"), function="fiedler_companion")
    n = shape_of(a)[-1] - 1
    if n < 0 or (not is_traced(a) and np.any(a[..., 0] == 0)):
        raise ValueError("fiedler_companion: there must be a first coefficient, not zero.")
    if n < 2:
        return (-a / a[..., :1])[..., 1:, None] if n == 1 else a[..., :0]
    a = a / a[..., :1]
    # Every element is a coefficient with its sign changed, or a constant.
    source = np.zeros((n, n), np.int64)
    constant = np.zeros((n, n), aval_of(a).dtype)
    for i in range(2, n, 2):
        source[i, i - 1] = i + 1
    for i in range(0, n - 1, 2):
        source[i, i + 1] = i + 2
    source[0, 0] = 1
    constant[1, 0] = 1
    constant[range(3, n, 2), range(1, n - 2, 2)] = 1
    constant[range(0, n - 2, 2), range(2, n, 2)] = 1
    return selecting.where(source > 0, -a[..., source], constant)


def leslie(f: Any, s: Any) -> Any:
    """Leslie's matrix of fecundities and survival rates.

    As `scipy.linalg.leslie`: fecundities in the first row, survivals below the diagonal.

    Args: f: Rates of birth.
    Example: fg.scipy.linalg.leslie(np.array([0.1, 2.0, 1.0]), np.array([0.2, 0.8]))
        -> array([[0.1, 2. , 1. ],
                  [0.2, 0. , 0. ],
                  [0. , 0.8, 0. ]])
    """
    f, s = (strong(x) for x in promote(_vector(f, "leslie"), _vector(s, "leslie")))
    n = shape_of(f)[-1]
    if shape_of(s)[-1] != n - 1 or n < 2:
        raise ValueError(f"leslie needs one fecundity more than survivals, got {n}.")
    f, s = stacked([f, s], [1, 1])
    below = selecting.where(np.eye(n - 1, dtype=bool), s[..., None, :], s[..., None, :] * 0)
    below = shaping.constant_pad(below, (*((0, 0) for _ in shape_of(below)[:-1]), (0, 1)))
    return joining.concatenate([f[..., None, :], below], -2)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """Matrix whose product with a vector is a convolution.

    As `scipy.linalg.convolution_matrix`: ``convolve(a, v, mode)`` for ``v`` of ``n`` elements.

    Args:
        a: Vectors, ``(..., m)``.
        n: Number of columns.
        mode: "full", "same" or "valid".
    Returns: The matrices.
    Example: print(fg.scipy.linalg.convolution_matrix(np.array([1, 2]), 2))
        -> [[1 0]
            [2 1]
            [0 2]]
    """
    choice("convolution_matrix", "mode", mode, ("full", "valid", "same"))
    a = _vector(a, "convolution_matrix")
    m = shape_of(a)[-1]
    if n <= 0 or not m:
        raise ValueError("convolution_matrix: n must be positive, and `a` have elements.")
    trim = {"full": 0, "same": min(n, m) - 1, "valid": 2 * (min(n, m) - 1)}[mode]
    first = trim // 2
    rows = np.arange(first, m + n - 1 - (trim - first))[:, None] - np.arange(n)
    inside = (rows >= 0) & (rows < m)
    found = a[..., np.where(inside, rows, 0)]
    return selecting.where(inside, found, found * 0)


def khatri_rao(a: Any, b: Any) -> Any:
    """Khatri-Rao product: Kronecker products of the columns.

    As `scipy.linalg.khatri_rao`: column-wise Kronecker products.

    Args: b: Second matrix, for example of a generalised eigenvalue problem.
    Example: fg.scipy.linalg.khatri_rao(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[1., 0.],
                  [3., 0.],
                  [0., 2.],
                  [0., 4.]])
    """
    a, b = (strong(x) for x in promote(as_value(a, "khatri_rao"), as_value(b, "khatri_rao")))
    if len(shape_of(a)) < 2 or len(shape_of(b)) < 2 or shape_of(a)[-1] != shape_of(b)[-1]:
        raise ValueError(
            f"khatri_rao needs matrices with equal numbers of columns, got {aval_of(a)} and "
            f"{aval_of(b)}."
        )
    out = a[..., :, None, :] * b[..., None, :, :]
    *stack, m, n, k = shape_of(out)
    return out.reshape((*stack, m * n, k))


def diagsvd(s: Any, M: int, N: int) -> Any:
    """Matrix of singular values.

    As `scipy.linalg.diagsvd`: an ``(M, N)`` matrix with ``s`` on its diagonal.

    Args:
        M: Number of rows.
        N: Number of columns.
    Example: fg.scipy.linalg.diagsvd(np.array([3.0, 1.0]), 2, 3)
        -> array([[3., 0., 0.],
                  [0., 1., 0.]])
    """
    s = _vector(s, "diagsvd")
    if shape_of(s)[-1] != min(M, N):
        raise ValueError(f"diagsvd: {aval_of(s)} does not fill the diagonal of {(M, N)}.")
    places = np.minimum(np.arange(M)[:, None], np.arange(N))
    if not min(M, N):
        return np.zeros((*shape_of(s)[:-1], M, N), aval_of(s).dtype)
    found = s[..., np.minimum(places, min(M, N) - 1)]
    return selecting.where(np.eye(M, N, dtype=bool), found, found * 0)


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """Matrix of the discrete Fourier transform.

    As `scipy.linalg.dft`: the matrix of the discrete Fourier transform, in a complex ``dtype``.

    Args:
        n: Number of rows.
        scale: ``None``, ``"sqrtn"`` or ``"n"``: by what to divide.
        dtype: Dtype of the matrix, ``complex128`` by default.
    Example: fg.scipy.linalg.dft(2).real
        -> array([[ 1.,  1.],
                  [ 1., -1.]])
    """
    refuse_traced("dft", n)
    found = load("scipy.linalg").dft(n, scale)
    if dtype is not None and np.dtype(dtype).kind != "c":
        raise DtypeError(f"dft: the matrix is complex, but dtype={np.dtype(dtype).name} is not.")
    return found if dtype is None else found.astype(dtype)


_HOST_FUNCTIONS = host_functions(
    "scipy.linalg",
    """
    hadamard helmert hilbert invhilbert invpascal pascal bandwidth clarkson_woodruff_transform
    qr_delete qr_insert qr_update find_best_blas_type get_blas_funcs get_lapack_funcs
    """,
)
vars().update(_HOST_FUNCTIONS)
__all__ += _HOST_FUNCTIONS


def issymmetric(a: Any, atol: float | None = None, rtol: float | None = None) -> Any:
    """Whether a matrix is symmetric.

    As `scipy.linalg.issymmetric`.

    Args:
        atol: Absolute tolerance; without both tolerances elements must be equal.
        rtol: Relative tolerance.
    Returns: Booleans.
    Example: fg.scipy.linalg.issymmetric(np.array([[2.0, 1.0], [1.0, 3.0]])) -> True
    """
    return _equals_transpose(a, atol, rtol, False)


def ishermitian(a: Any, atol: float | None = None, rtol: float | None = None) -> Any:
    """Whether a matrix is Hermitian.

    As `scipy.linalg.ishermitian`.

    Example: fg.scipy.linalg.ishermitian(np.array([[2.0, 1.0], [1.0, 3.0]])) -> True
    """
    return _equals_transpose(a, atol, rtol, True)


def _equals_transpose(a: Any, atol: float | None, rtol: float | None, conjugates: bool) -> Any:
    a = strong(as_value(a, "ishermitian" if conjugates else "issymmetric"))
    if len(shape_of(a)) < 2 or shape_of(a)[-1] != shape_of(a)[-2]:
        raise ShapeError(f"only square matrices are symmetric or not, got {aval_of(a)}.")
    transposed = linalg.matrix_transpose(elementwise.conj(a) if conjugates else a)
    if atol is None and rtol is None:
        found = (a == transposed).all((-2, -1))
    else:
        bound = (atol or 0.0) + (rtol or 0.0) * elementwise.abs(transposed)
        found = (elementwise.abs(a - transposed) <= bound).all((-2, -1))
    return found if is_traced(found) or found.ndim else bool(found)
