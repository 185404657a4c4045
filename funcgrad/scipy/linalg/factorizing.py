"""Factorisations of matrices, by SciPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import (
    creating,
    joining,
    linalg,
    ordering,
    rearranging,
    selecting,
    shaping,
    taking,
)
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import linalg as primitives
from funcgrad.primitives import shape as s
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.matrices import adjoint, as_column, as_row, identity_like, part
from funcgrad.primitives.pencils import Balance, ColumnPivots, Cossin, Ldl
from funcgrad.primitives.schur import GeneralizedSchur, Hessenberg, Schur
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.linalg import operands

__all__ = [
    "cdf2rdf", "cho_factor", "cholesky", "cossin", "hessenberg", "ldl", "lu", "lu_factor",
    "matrix_balance", "ordqz", "polar", "qr", "qr_multiply", "qz", "rq", "rsf2csf", "schur", "svd",
    "svdvals",
]  # fmt: skip


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Cholesky factor of positive definite matrices: upper by default, as in SciPy.

    Args:
        a: Hermitian matrices, ``(..., n, n)``; one triangle is read.
        lower: Whether ``L`` with ``a = L L^H`` is returned, and the lower triangle read; else
            ``U`` with ``a = U^H U``, from the upper triangle.
    Returns: The factors.
    Example: print(fg.scipy.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])))
        -> [[2. 1.]
            [0. 2.]]
    """
    return linalg.cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """The Cholesky factor for `cho_solve`, and which one it is.

    Example: np.triu(fg.scipy.linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 5.0]]))[0])
        -> array([[2., 1.],
                  [0., 2.]])
    """
    return cholesky(a, lower), lower


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """Factors of matrices with rows exchanged, ``P a = L U``, for `lu_solve`.

    Returns: ``L`` (below the diagonal) and ``U`` in one matrix, and the exchanges of rows (int32):
        row ``i`` with row ``pivots[i]``.

    Example:
        >>> lu, pivots = fg.scipy.linalg.lu_factor(np.array([[1.0, 2.0], [2.0, 2.0]]))
        >>> print(lu, pivots)
        [[2.  2. ]
         [0.5 1. ]] [1 1]
    """
    packed, pivots, _ = primitives.LuFactor().bind(linalg.matrix(a, "lu_factor"))
    return packed, pivots


def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """LU decomposition with partial pivoting.

    As `scipy.linalg.lu`: ``a = P L U`` with a permutation, and triangular matrices.

    Args:
        permute_l: Whether ``P L`` and ``U`` are returned.
        p_indices: Whether the permutation is given as indices (int32): ``a = L[p] @ U``.
    Returns: The factors.

    Example:
        >>> p, l, u = fg.scipy.linalg.lu(np.array([[1.0, 2.0], [2.0, 2.0]]))
        >>> print(p @ l @ u)
        [[1. 2.]
         [2. 2.]]
    """
    x = linalg.matrix(a, "lu")
    m, n = shape_of(x)[-2:]
    k = min(m, n)
    packed, _, order = primitives.LuFactor().bind(x)
    left = creating.tril(part(packed, slice(None), slice(k)), -1)
    left = left + np.eye(m, k, dtype=aval_of(x).dtype)
    right = creating.triu(part(packed, slice(k), slice(None)))
    if permute_l:
        index = as_column(ordering.argsort(order))
        return take_along_axis(left, index, len(shape_of(x)) - 2), right
    if p_indices:
        return p.convert(ordering.argsort(order), np.dtype(np.int32)), left, right
    places = p.equal.bind(as_row(order), np.arange(m, dtype=np.int32)[:, None])
    return p.convert(places, aval_of(x).dtype), left, right


def ldl(
    A: Any,
    lower: bool = True,
    hermitian: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any, Any]:
    """LDL decomposition of a Hermitian matrix.

    As `scipy.linalg.ldl`: ``A = L D L^H``, ``L`` permuted, ``D`` with blocks of one or two rows.

    Args:
        A: Hermitian or symmetric matrices, ``(..., n, n)``; one triangle is read.
        hermitian: Whether complex matrices are Hermitian; else symmetric.
    Returns: ``L``, ``D`` and the rows (int32) that make ``L`` triangular. Derivatives keep the
        blocks.
    Example: fg.scipy.linalg.ldl(np.array([[2.0, 1.0], [1.0, 3.0]]))[1]
        -> array([[2. , 0. ],
                  [0. , 2.5]])
    """
    factor, d, order = Ldl(bool(lower), bool(hermitian)).bind(operands.square(A, "ldl"))
    return factor, d, order


_MODES = {"full": "complete", "economic": "reduced", "r": "complete", "raw": "raw"}


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """QR decomposition of matrices.

    As `scipy.linalg.qr`: ``a = Q R``.

    Args:
        mode: "full"; "economic"; "r" for ``R`` of "full" alone, in a tuple; "raw" for the
            reflections and their factors, which have no derivative, and ``R``.
        pivoting: Whether columns are exchanged, so that the diagonal of ``R`` descends. Then the
            order of columns (int32) is the last result: ``a[:, order] = Q R``.
    Returns: A tuple of the results. Of a tall matrix the derivative needs mode "economic".
    Raises: ArgumentError: For another mode.

    Example:
        >>> q, r = fg.scipy.linalg.qr(np.array([[3.0], [4.0]]), mode="economic")
        >>> print(q @ r)
        [[3.]
         [4.]]
    """
    operands.choice("qr", "mode", mode, tuple(_MODES))
    x = linalg.matrix(a, "qr")
    last: tuple[Any, ...] = ()
    if pivoting:
        order = ColumnPivots().bind(x)
        x = take_along_axis(x, as_row(order), len(shape_of(x)) - 1)
        last = (order,)
    if mode == "raw":
        packed, taus = primitives.RawQr().bind(x)
        k = min(shape_of(x)[-2:])
        return ((packed, taus), creating.triu(part(packed, slice(k), slice(None))), *last)
    out = tuple(linalg.qr(x, _MODES[mode]))
    return (*(out[1:] if mode == "r" else out), *last)


def rq(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """RQ decomposition of a matrix.

    As `scipy.linalg.rq`: ``a = R Q``, with modes "full", "economic" and "r".

    Args: mode: ``"full"``, ``"r"`` or ``"economic"``: what is returned.
    Example: np.abs(fg.scipy.linalg.rq(np.array([[3.0, 1.0], [4.0, 2.0]]))[0])
        -> array([[0.4472136 , 3.13049517],
                  [0.        , 4.47213595]])
    """
    operands.choice("rq", "mode", mode, ("full", "economic", "r"))
    x = linalg.matrix(a, "rq")
    kind = "reduced" if mode == "economic" else "complete"
    # With rows and columns in opposite order, and transposed, it is the other factorisation.
    q, r = linalg.qr(adjoint(rearranging.flip(x, (-2, -1))), kind)
    r, q = (rearranging.flip(adjoint(y), (-2, -1)) for y in (r, q))
    return r if mode == "r" else (r, q)


def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """Product with the orthogonal factor of a QR decomposition.

    As `scipy.linalg.qr_multiply`: ``c Q``, or ``Q c`` if ``mode`` is "left", and ``R``.

    Args:
        c: Matrix or vector that is multiplied.
        mode: ``"full"``, ``"r"`` or ``"economic"``: what is returned.
        pivoting: Whether columns are exchanged.
        conjugate: Whether to multiply by the conjugate of Q.
        overwrite_c: Without effect: arguments are never changed.
    Example: np.abs(fg.scipy.linalg.qr_multiply(np.array([[3.0, 1.0], [4.0, 2.0]]), np.eye(2))[1])
        -> array([[5. , 2.2],
                  [0. , 0.4]])
    """
    operands.choice("qr_multiply", "mode", mode, ("left", "right"))
    a, c = linalg.floating(a, c, function="qr_multiply")
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = q.conj() if conjugate else q
    is_vector = len(shape_of(c)) == 1
    if is_vector:
        (n,) = shape_of(c)
        c = s.reshape(c, (n, 1) if mode == "left" else (1, n))
    inner = (
        (shape_of(q)[-1], shape_of(c)[-2]) if mode == "left" else (shape_of(c)[-1], shape_of(q)[-2])
    )
    if inner[0] != inner[1]:
        raise ShapeError(f"qr_multiply: {aval_of(c)} does not fit the factor {aval_of(q)}.")
    out = linalg.matmul(q, c) if mode == "left" else linalg.matmul(c, q)
    return (shaping.ravel(out) if is_vector else out, *rest)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Singular value decomposition of matrices.

    As `numpy.linalg.svd`, a tuple; the last three arguments are without effect.

    Args:
        full_matrices: Whether U and V are square.
        compute_uv: Whether to compute the singular vectors.
    Example: fg.scipy.linalg.svd(np.array([[2.0, 1.0], [1.0, 3.0]]))[1]
        -> array([3.61803399, 1.38196601])
    """
    out = linalg.svd(a, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Singular values of matrices, descending.

    Example: fg.scipy.linalg.svdvals(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([3.61803399, 1.38196601])
    """
    return linalg.svdvals(a)


def polar(
    a: Any,
    side: str = "right",
    *,
    method: str = "svd",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:
    """Polar decomposition of a matrix.

    As `scipy.linalg.polar`: ``a = u p`` (``p u`` on the left side) with positive ``p``.

    Args:
        side: "right" or "left".
        method: Accepted for JAX's signature, as are the next two: there is one method.
        eps: See there.
        max_iterations: See there.
    Returns: ``u``, with orthonormal rows or columns, and ``p``.
    Example: print(fg.scipy.linalg.polar(np.array([[0.0, -2.0], [2.0, 0.0]]))[1])
        -> [[2. 0.]
            [0. 2.]]
    """
    operands.choice("polar", "side", side, ("right", "left"))
    w, values, vh = linalg.svd(linalg.matrix(a, "polar"), full_matrices=False)
    values = p.convert(values, aval_of(w).dtype)
    if side == "right":
        return linalg.matmul(w, vh), linalg.matmul(adjoint(vh) * as_row(values), vh)
    return linalg.matmul(w, vh), linalg.matmul(w * as_row(values), adjoint(w))


Sort = str | Callable[..., bool] | None
_OUTPUTS = ("real", "complex", "r", "c")


def schur(
    a: Any,
    output: str = "real",
    lwork: Any = None,
    overwrite_a: bool = False,
    sort: Sort = None,
    check_finite: bool = True,
) -> Any:
    """Schur form of a matrix.

    As `scipy.linalg.schur`: ``a = Z T Z^H`` with (quasi-) triangular ``T``.

    Derivatives are for distinct eigenvalues.

    Returns: ``T`` and ``Z``, and with ``sort`` how many eigenvalues came first.

    Example:
        >>> a = np.array([[1.0, 2.0], [0.0, 3.0]])
        >>> t, z = fg.scipy.linalg.schur(a)
        >>> print(t)
        [[1. 2.]
         [0. 3.]]
    """
    operands.choice("schur", "output", output, _OUTPUTS)
    x = operands.square(a, "schur")
    t, z, count = Schur(sort).bind(operands.as_complex(x) if output in ("complex", "c") else x)
    return (t, z) if sort is None else (t, z, count)


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Complex Schur form from the real one.

    As `scipy.linalg.rsf2csf`: a rotation for each block of two rows, from the last one on.

    Args:
        T: Real Schur form, block upper triangular, ``(..., n, n)``.
        Z: Unitary matrix of the decomposition; leading axes broadcast.
    Example: fg.scipy.linalg.rsf2csf(np.array([[1.0, 2.0], [0.0, 3.0]]), np.eye(2))[0]
        -> array([[1.+0.j, 2.+0.j],
                  [0.+0.j, 3.+0.j]])
    """
    t, z = operands.matrices("rsf2csf", T, Z)
    operands.check_equal_shapes("rsf2csf", t, z)
    t, z = operands.as_complex(t), operands.as_complex(z)
    n = shape_of(t)[-1]
    if n < 2:
        return t, z

    def step(i: Any, state: Any) -> Any:
        t, z = state
        return _without_block(t, z, n - 2 - i)

    return lax.fori_loop(0, n - 1, step, (t, z))


def _without_block(t: Any, z: Any, k: Any) -> tuple[Any, Any]:
    """A Schur form rotated so that the element below the diagonal in column ``k`` vanishes."""
    n, place = shape_of(t)[-1], np.arange(shape_of(t)[-1])
    rows = lax.dynamic_slice_in_dim(t, k, 2, -2)
    block = lax.dynamic_slice_in_dim(rows, k, 2, -1)
    below, last = block[..., 1, 0], block[..., 1, 1]
    size = linalg.norm(block[..., 0, 0, None], axis=-1) + linalg.norm(last[..., None], axis=-1)
    is_block = abs(below) > np.finfo(aval_of(t).dtype).eps * size
    shift = linalg.eigvals(block)[..., 0] - last
    r = linalg.norm(joining.stack([shift, below], -1), axis=-1)
    r = selecting.where(is_block, r, 1)
    # The identity where there is no block.
    c, s = selecting.where(is_block, shift / r, 1), selecting.where(is_block, below / r, 0)
    rotation = joining.stack([joining.stack([c.conj(), s], -1), joining.stack([-s, c], -1)], -2)
    back = rotation.conj().swapaxes(-1, -2)

    def rotated(x: Any, is_kept: Any) -> Any:
        columns = lax.dynamic_slice_in_dim(x, k, 2, -1)
        made = selecting.where(is_kept[:, None], columns, linalg.matmul(columns, back))
        return lax.dynamic_update_slice_in_dim(x, made, k, -1)

    rows = selecting.where(place < k, rows, linalg.matmul(rotation, rows))
    t = rotated(lax.dynamic_update_slice_in_dim(t, rows, k, -2), place > k + 1)
    is_below = (place[:, None] == k + 1) & (place == k)
    return selecting.where(is_below, 0, t), rotated(z, np.zeros(n, np.bool_))


def cdf2rdf(w: Any, v: Any) -> tuple[Any, Any]:
    """Real form of complex eigenvalues and eigenvectors.

    As `scipy.linalg.cdf2rdf`: real blocks in place of pairs of complex eigenvalues.

    It takes concrete arrays, because values say which eigenvalues are a pair.

    Args:
        w: Eigenvalues.
        v: Eigenvectors, as columns.

    Example:
        >>> fg.scipy.linalg.cdf2rdf(
        ...     np.array([1.0 + 2.0j, 1.0 - 2.0j]), np.array([[1.0, 1.0], [1.0j, -1.0j]])
        ... )[0]
        array([[ 1.,  2.],
               [-2.,  1.]])
    """
    operands.refuse_traced("cdf2rdf", w, v)
    return _cdf2rdf(np.asarray(w), np.asarray(v))


def _cdf2rdf(w: Any, v: Any) -> tuple[Any, Any]:
    n = w.shape[-1] if w.ndim else 0
    if v.shape != (*w.shape, n):
        raise ValueError(f"cdf2rdf: vectors of shape {v.shape} for values of shape {w.shape}.")
    values = np.zeros(v.shape, w.real.dtype)
    values[..., range(n), range(n)] = w.real
    vectors = np.array(v.real)
    for place in np.ndindex(w.shape[:-1]):
        pairs = np.flatnonzero(w[place].imag)
        if len(pairs) % 2:
            raise ValueError("cdf2rdf: complex eigenvalues must come in pairs.")
        for j, k in pairs.reshape(-1, 2):
            values[(*place, j, k)] = w[(*place, j)].imag
            values[(*place, k, j)] = w[(*place, k)].imag
            first, second = v[place][:, j], v[place][:, k]
            vectors[place][:, j] = (0.5j * (first - second)).real
            vectors[place][:, k] = (0.5 * (first + second)).real
    return values, vectors


def hessenberg(
    a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg form of a matrix.

    As `scipy.linalg.hessenberg`: ``a = Q H Q^H``, ``H`` zero below its first subdiagonal.

    Args: calc_q: Whether ``Q`` is returned as well.
    Returns: ``H``, or ``H`` and ``Q``.
    Example: fg.scipy.linalg.hessenberg(np.array([[2.0, 1.0], [1.0, 3.0]]))
        -> array([[2., 1.],
                  [1., 3.]])
    """
    h, q = Hessenberg().bind(operands.square(a, "hessenberg"))
    return (h, q) if calc_q else h


def _pencil(function: str, A: Any, B: Any, output: str) -> list[Any]:
    operands.choice(function, "output", output, _OUTPUTS)
    a, b = operands.matrices(function, A, B)
    operands.square(a, function)
    operands.check_equal_shapes(function, a, b)
    return (
        [operands.as_complex(a), operands.as_complex(b)] if output in ("complex", "c") else [a, b]
    )


def qz(
    A: Any,
    B: Any,
    output: str = "real",
    lwork: Any = None,
    sort: None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any, Any, Any]:
    """Generalised Schur form of two matrices.

    As `scipy.linalg.qz`: ``A = Q AA Z^H``, ``B = Q BB Z^H``; it has no derivative.

    The eigenvalues have derivatives by ``eig(A, B)``.

    Example: np.abs(fg.scipy.linalg.qz(np.diag([1.0, 2.0]), np.eye(2))[0])
        -> array([[1., 0.],
                  [0., 2.]])
    """
    if sort is not None:
        raise ArgumentError("qz: sort must be None; ordqz sorts eigenvalues.")
    s, t, _, _, q, z = GeneralizedSchur().bind(*_pencil("qz", A, B, output))
    return s, t, q, z


def ordqz(
    A: Any,
    B: Any,
    sort: Sort = "lhp",
    output: str = "real",
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """Generalised Schur form with ordered eigenvalues.

    As `scipy.linalg.ordqz`: `qz` with sorted eigenvalues ``alpha / beta``, without derivative.

    ``alpha`` and ``beta`` are complex.

    Example: fg.scipy.linalg.ordqz(np.diag([1.0, -2.0]), np.eye(2))[2] -> array([-2.+0.j,  1.+0.j])
    """
    return tuple(GeneralizedSchur(sort).bind(*_pencil("ordqz", A, B, output)))


def cossin(
    X: Any,
    p: int | None = None,
    q: int | None = None,
    separate: bool = False,
    swap_sign: bool = False,
    compute_u: bool = True,
    compute_vh: bool = True,
) -> Any:
    """Cosine-sine decomposition of a unitary matrix.

    As `scipy.linalg.cossin`.

    It has no derivative: its factors may be turned against each other in each block.

    Args:
        X: Unitary matrices, ``(..., n, n)``, or the four blocks of them.
        p: Number of rows of the first block.
        q: Number of its columns.
        separate: Whether the blocks of the factors are returned, and angles.
        swap_sign: Whether the sines of the second block of rows are the negative ones.
        compute_u: Accepted without effect: both factors are computed.
        compute_vh: Likewise.
    Returns: ``U``, ``C`` and ``V^H``, or ``(U1, U2)``, angles and ``(V1^H, V2^H)``.
    Example: np.abs(fg.scipy.linalg.cossin(np.array([[0.6, -0.8], [0.8, 0.6]]), 1, 1)[1])
        -> array([[0.6, 0.8],
                  [0.8, 0.6]])
    """
    if p is None and q is None and isinstance(X, list | tuple):
        first = linalg.matrix(X[0], "cossin")
        p, q = shape_of(first)[-2:]
        X = taking.block([[X[0], X[1]], [X[2], X[3]]])
    x = operands.square(X, "cossin")
    n = shape_of(x)[-1]
    p, q = p or 0, q or 0
    if not (0 < p < n and 0 < q < n):
        raise ValueError(
            f"cossin: a block of {p} rows and {q} columns does not split {aval_of(x)}."
        )
    u, angles, c, vh = Cossin(p, q, bool(swap_sign)).bind(x)
    if not separate:
        return u, c, vh
    rows, columns = (slice(p), slice(p, n)), (slice(q), slice(q, n))
    blocks = tuple(part(u, r, r) for r in rows), tuple(part(vh, r, r) for r in columns)
    return blocks[0], angles, blocks[1]


def matrix_balance(
    A: Any,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
    overwrite_a: bool = False,
) -> Any:
    """Similar matrix with rows and columns of nearly equal norms.

    As `scipy.linalg.matrix_balance`: ``B = T^-1 A T`` with rows and columns of like size.

    Scales are powers of 2, so that ``T`` is constant as far as derivatives go.

    Args:
        permute: Whether rows and columns may be exchanged.
        scale: Whether they may be scaled.
        separate: Whether the scales and the order (int32) are returned in place of ``T``.
    Returns: ``B`` and ``T``, or ``B`` and the pair.
    Example: fg.scipy.linalg.matrix_balance(np.array([[1.0, 100.0], [0.01, 1.0]]))[0]
        -> array([[1.    , 1.5625],
                  [0.64  , 1.    ]])
    """
    a = operands.square(A, "matrix_balance")
    scales, order = Balance(bool(permute), bool(scale)).bind(a)
    scales = p.convert(scales, aval_of(a).dtype)
    ndim = len(shape_of(a))
    moved = take_along_axis(a, as_column(order), ndim - 2)
    moved = take_along_axis(moved, as_row(order), ndim - 1)
    inside = take_along_axis(scales, order, ndim - 2)
    balanced = moved * as_row(inside) / as_column(inside)
    if separate:
        return balanced, (scales, order)
    unit = identity_like(a) * as_column(scales)
    return balanced, take_along_axis(unit, as_row(order), ndim - 1)
