"""Matrix pencils, factorisations that are not unique, and Riccati equations.

SciPy evaluates everything here, inside compiled programs too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import is_complex, real_dtype
from funcgrad.lowering import Array, Form, LapackCall, Ref, Routine
from funcgrad.primitives.elementwise import (
    add,
    conj,
    convert,
    equal,
    from_parts,
    mul,
    neg,
    scale,
    select,
    stop_gradient,
    sub,
)
from funcgrad.primitives.families import Recipe, instantiate, shape_of, zero_jvp
from funcgrad.primitives.linalg import Inv, Pinv, Solve, Svd, inverse_gaps, keeping_length
from funcgrad.primitives.matrices import (
    BLOCK,
    INT32,
    ByLapack,
    ByMatrix,
    adjoint,
    as_row,
    assemble,
    by_column,
    by_columns,
    conjugated,
    diagonal,
    diagonal_part,
    hermitian_of_lower,
    identity_like,
    matmul,
    matrix_transpose,
    scipy_linalg,
    strictly_lower,
)
from funcgrad.primitives.matrix_functions import Sylvester
from funcgrad.primitives.shape import Slice, Transpose


class TwoSidedEig(ByMatrix):
    """Eigenvalues ``w``, left eigenvectors ``u^H a = w u^H`` and right ones ``a v = w v``.

    The vectors are columns, of length 1, and their largest component is real.
    """

    signature = "nn->n,nn,nn"
    kinds = "ccc"

    def one(self, *matrices: Any) -> Any:
        return scipy_linalg().eig(matrices[0], left=True)

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        if is_complex(a.aval.dtype):
            return recipe(_Geev(True), a)
        wr, wi, u, v = recipe(_Geev(False), a)
        return [recipe(from_parts, wr, wi), *(assemble(recipe, wi, x) for x in (u, v))]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        w, u, v = self.bind(a)
        ta = convert(ta, aval_of(v).dtype)
        inner = Solve().bind(v, matmul(ta, v))
        left = Solve().bind(u, matmul(adjoint(ta), u))
        rotated = [
            _rotated(v, scale.bind(inner, inverse_gaps(w)), True),
            _rotated(u, scale.bind(left, inverse_gaps(conjugated(w))), True),
        ]
        return [w, u, v], [diagonal(inner), rotated[1], rotated[0]]


def _rotated(v: Value, rotation: Value, is_real: bool) -> Value:
    free = matmul(v, rotation)
    return add.bind(free, scale.bind(as_row(keeping_length(v, free, is_real)), v))


class _Geev(ByLapack):
    """Eigenvalues (of real matrices their parts), left and right eigenvectors as in `assemble`."""

    is_complex: bool

    @property
    def signature(self) -> str:  # type: ignore[override]
        return "nn->n,nn,nn" if self.is_complex else "nn->n,n,nn,nn"

    def one(self, *matrices: Any) -> Any:
        (geev,) = scipy_linalg().get_lapack_funcs(("geev",), matrices)
        return geev(matrices[0])[: 3 if self.is_complex else 4]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (a,) = avals
        *stack, n, _n = a.shape
        size = 2 * (BLOCK + 2) * n
        values = 1 if self.is_complex else 2
        arrays = (
            Array(a.shape, a.dtype),
            by_column(a, 0),
            *[Array((*stack, n), a.dtype)] * values,
            *[by_column(a)] * 2,
            Array((*stack, size), a.dtype),
            *[Array((*stack, 2 * n), real_dtype(a.dtype))] * self.is_complex,
            Array(tuple(stack), INT32),
        )
        *found, work, more = map(Ref, range(2, 6 + values))
        left, right = found[-2:]
        rest = [more, Ref(6 + values)] if self.is_complex else [more]
        vectors: list[int | Ref] = [left, n, right, n, work, size, *rest]
        words = "V", "V", n, Ref(1), n, *found[:-2], *vectors
        return self.form("geev", a, words, arrays, range(2, 4 + values))


class GeneralizedEig(ByMatrix):
    """Eigenvalues ``w``, left ones of the vectors, ``u^H a = w u^H b``, and right ones.

    ``a v = w b v``. The vectors are columns of length 1, with phases of no account. Derivatives are
    for regular ``b``.
    """

    signature = "nn,nn->n,nn,nn"
    kinds = "ccc"

    def one(self, *matrices: Any) -> Any:
        w, u, v = scipy_linalg().eig(*matrices, left=True)
        return [w, *(x / np.linalg.norm(x, axis=0) for x in (u, v))]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """With ``M = (b v)^-1 (da v - db v w)``: ``dw = diag M``, ``dv = v M_ij / (w_j - w_i)``."""
        w, u, v = self.bind(*primals)
        dtype = aval_of(v).dtype
        b = convert(primals[1], dtype)
        ta, tb = (convert(instantiate(t, x), dtype) for t, x in zip(tangents, primals, strict=True))
        inner = _pencil_change(b, ta, tb, v, w)
        left = _pencil_change(adjoint(b), adjoint(ta), adjoint(tb), u, conjugated(w))
        rotated = [
            _rotated(v, scale.bind(inner, inverse_gaps(w)), False),
            _rotated(u, scale.bind(left, inverse_gaps(conjugated(w))), False),
        ]
        return [w, u, v], [diagonal(inner), rotated[1], rotated[0]]


def _pencil_change(b: Value, ta: Value, tb: Value, v: Value, w: Value) -> Value:
    moved = sub.bind(matmul(ta, v), scale.bind(matmul(tb, v), as_row(w)))
    return Solve().bind(matmul(b, v), moved)


class Ldl(ByMatrix):
    """``P A P^T = L D L^H`` with unit triangular ``L`` and blocks of one or two rows in ``D``.

    Results: ``P^T L``, ``D`` and the permutation (int32) of ``P``. Derivatives keep the blocks.

    Args:
        lower_triangle: Which triangle is read, and ``L`` is.
        hermitian: Whether complex matrices are Hermitian; else symmetric, and ``L^T`` takes the
            place of ``L^H``.
    """

    lower_triangle: bool = True
    hermitian: bool = True

    signature = "nn->nn,nn,n"
    kinds = "aai"

    def one(self, *matrices: Any) -> Any:
        a = matrices[0].copy()
        if self.hermitian and is_complex(a.dtype):
            np.fill_diagonal(a, np.diagonal(a).real)
        return scipy_linalg().ldl(a, self.lower_triangle, self.hermitian)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """``L^-1 dA L^-H = N D + dD + D N^H`` with ``N = L^-1 dL`` zero in the blocks of ``D``."""
        (a,), (ta,) = primals, tangents
        factor, d, order = self.bind(a)
        moved = Solve().bind(factor, self._read(ta))
        inner = self._transposed(Solve().bind(factor, self._transposed(moved)))
        zero = aval_of(d).dtype.type(0)
        known = stop_gradient.bind(d)
        is_zero = equal.bind(known, zero)
        triangle = strictly_lower(inner)
        if not self.lower_triangle:
            triangle = sub.bind(sub.bind(inner, triangle), diagonal_part(inner))
        outside = select.bind(is_zero, triangle, zero)
        inside = sub.bind(select.bind(is_zero, zero, inner), zero)
        inside = add.bind(sub.bind(inside, diagonal_part(inside)), diagonal_part(inner))
        right = Solve().bind(matrix_transpose(d), matrix_transpose(outside))
        return [factor, d, order], [matmul(factor, matrix_transpose(right)), inside, None]

    def _transposed(self, x: Value) -> Value:
        return adjoint(x) if self.hermitian else matrix_transpose(x)

    def _read(self, ta: Value) -> Value:
        """The tangent of the matrix of which one triangle is read."""
        lower = ta if self.lower_triangle else self._transposed(ta)
        if self.hermitian:
            return hermitian_of_lower(lower)
        strict = strictly_lower(lower)
        return add.bind(add.bind(strict, matrix_transpose(strict)), diagonal_part(lower))


class ColumnPivots(ByMatrix):
    """The order of columns (int32) in which each has the longest part outside of those before."""

    signature = "mn->n"
    kinds = "i"
    jvp = zero_jvp

    def one(self, *matrices: Any) -> Any:
        return [scipy_linalg().qr(matrices[0], mode="r", pivoting=True)[1]]

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        free = np.zeros((*a.aval.shape[:-2], a.aval.shape[-1]), INT32)
        return [recipe(sub, recipe(_Geqp3(), a, free), INT32.type(1))]


class _Geqp3(ByMatrix):
    """Columns in the order of `ColumnPivots`, from 1 on; the second argument is zeros."""

    signature = "mn,n->n"
    kinds = "i"
    takes_nan = True

    def one(self, *matrices: Any) -> Any:
        return [ColumnPivots().one(matrices[0])[0] + 1]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        a, free = avals
        *stack, m, n = a.shape
        size = 2 * n + (n + 1) * BLOCK
        arrays = (
            Array(a.shape, a.dtype),
            Array(free.shape, INT32),
            Array(a.shape, a.dtype, by_columns(a), start=0),
            Array(free.shape, INT32, start=1),
            Array((*stack, min(m, n)), a.dtype),
            Array((*stack, size), a.dtype),
            Array((*stack, 2 * n), real_dtype(a.dtype)),
            Array(tuple(stack), INT32),
        )
        more = (Ref(6),) if is_complex(a.dtype) else ()
        words = m, n, Ref(2), m, Ref(3), Ref(4), Ref(5), size, *more, Ref(7)
        return Routine(arrays, (3,), (LapackCall("geqp3", a.dtype, words),), len(stack))


class NullSpace(ByMatrix):
    """Orthonormal columns, the last right singular vectors, which span the null space.

    The derivative turns them at constant rank, and not among themselves.

    Args: size: How many; the rank is that of the matrix otherwise.
    """

    size: int

    signature = "mn->nk"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        return {**super().lengths(avals), "k": self.size}

    def one(self, *matrices: Any) -> Any:
        n = matrices[0].shape[1]
        return [np.conj(np.linalg.svd(matrices[0])[2][n - self.size :].T)]

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        _, _, rows = recipe(Svd(full_matrices=True), *inputs)
        *stack, n, _n = rows.aval.shape
        starts, steps = (*(0 for _ in stack), n - self.size, 0), (1,) * rows.aval.ndim
        last = recipe(Slice(starts, rows.aval.shape, steps), rows)
        columns = recipe(Transpose(by_columns(last.aval)), last)
        return [recipe(conj, columns) if is_complex(columns.aval.dtype) else columns]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        # A N = 0:  dA N + A dN = 0, and dN is in the space of the rows of A.
        (a,), (ta,) = primals, tangents
        out = self.bind(a)
        dtype = real_dtype(aval_of(a).dtype)
        inverse = Pinv(float(np.finfo(dtype).eps) * max(shape_of(a)[-2:])).bind(a)
        return out, neg.bind(matmul(inverse, matmul(ta, out)))


class Balance(ByMatrix):
    """Scales (powers of 2) and order (int32) of rows and columns that balance a matrix.

    Args:
        permutes: Whether rows and columns may be exchanged.
        scales: Whether they may be scaled.
    """

    permutes: bool = True
    scales: bool = True

    signature = "nn->n,n"
    kinds = "ri"
    jvp = zero_jvp

    def one(self, *matrices: Any) -> Any:
        _, found = scipy_linalg().matrix_balance(
            matrices[0], self.permutes, self.scales, separate=True
        )
        return list(found)


class Cossin(ByMatrix):
    """The cosine-sine decomposition ``X = U C V^H`` of unitary matrices in four blocks.

    Results: ``U``, the angles, ``C`` and ``V^H``.

    Args:
        rows: Number of rows of the first block.
        columns: Number of its columns.
        swaps_sign: Whether the sines of the second block of rows are the negative ones.
    """

    rows: int
    columns: int
    swaps_sign: bool = False

    signature = "nn->nn,r,nn,nn"
    kinds = "araa"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        n, p, q = avals[0].shape[-1], self.rows, self.columns
        return {**super().lengths(avals), "r": min(p, n - p, q, n - q)}

    def one(self, *matrices: Any) -> Any:
        split = {"p": self.rows, "q": self.columns, "swap_sign": self.swaps_sign}
        u, c, vh = scipy_linalg().cossin(matrices[0], **split)
        _, angles, _ = scipy_linalg().cossin(matrices[0], **split, separate=True)
        return [u, angles, c, vh]


class ContinuousRiccati(ByMatrix):
    """The stabilising ``X`` with ``a^H X + X a - g^H r^-1 g + q = 0``, ``g = b^H X + s^H``.

    ``bind(a, b, q, r, s)``; of ``q`` and ``r`` the Hermitian parts are taken.
    """

    signature = "nn,nm,nn,mm,nm->nn"

    def one(self, *matrices: Any) -> Any:
        a, b, q, r, s = matrices
        return [scipy_linalg().solve_continuous_are(a, b, _hermitian(q), _hermitian(r), None, s)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """With ``k = r^-1 g`` and ``n = a - b k``: ``n^H dX + dX n = -dF``, ``dF`` for fixed X."""
        a, b, _, r, s = primals
        ta, tb, tq, tr, ts = _tangents_of_riccati(primals, tangents)
        x = self.bind(*primals)
        gain = Solve().bind(_hermitian_part(r), add.bind(matmul(adjoint(b), x), adjoint(s)))
        d_gain = add.bind(matmul(adjoint(tb), x), adjoint(ts))
        change = _riccati_change(matmul(adjoint(ta), x), tq, gain, d_gain, tr)
        closed = sub.bind(a, matmul(b, gain))
        return x, Sylvester().bind(adjoint(closed), closed, neg.bind(change))


class DiscreteRiccati(ByMatrix):
    """The stabilising ``X`` with ``a^H X a - X - g^H h^-1 g + q = 0``.

    ``g = b^H X a + s^H`` and ``h = r + b^H X b``; ``bind(a, b, q, r, s)``, of ``q`` and ``r`` the
    Hermitian parts are taken.
    """

    signature = "nn,nm,nn,mm,nm->nn"

    def one(self, *matrices: Any) -> Any:
        a, b, q, r, s = matrices
        return [scipy_linalg().solve_discrete_are(a, b, _hermitian(q), _hermitian(r), None, s)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """With ``k = h^-1 g`` and ``n = a - b k``: ``n^H dX n - dX = -dF``, ``dF`` for fixed X."""
        a, b, _, r, s = primals
        ta, tb, tq, tr, ts = _tangents_of_riccati(primals, tangents)
        x = self.bind(*primals)
        xa, xb = matmul(x, a), matmul(x, b)
        weight = add.bind(_hermitian_part(r), matmul(adjoint(b), xb))
        gain = Solve().bind(weight, add.bind(matmul(adjoint(b), xa), adjoint(s)))
        d_gain = add.bind(matmul(adjoint(tb), xa), matmul(adjoint(b), matmul(x, ta)))
        d_gain = add.bind(d_gain, adjoint(ts))
        half = matmul(adjoint(tb), xb)
        d_weight = add.bind(tr, add.bind(half, adjoint(half)))
        change = _riccati_change(matmul(adjoint(ta), xa), tq, gain, d_gain, d_weight)
        return x, stein(adjoint(sub.bind(a, matmul(b, gain))), change)


def _hermitian(x: Any) -> Any:
    return (x + np.conj(x.T)) / 2


def _hermitian_part(x: Value) -> Value:
    return mul.bind(add.bind(x, adjoint(x)), aval_of(x).dtype.type(0.5))


def _tangents_of_riccati(
    primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[Value, ...]:
    ta, tb, tq, tr, ts = (instantiate(t, x) for t, x in zip(tangents, primals, strict=True))
    return ta, tb, _hermitian_part(tq), _hermitian_part(tr), ts


def _riccati_change(moved: Value, tq: Value, gain: Value, d_gain: Value, d_weight: Value) -> Value:
    """``dF`` for fixed X: ``moved - dg^H k`` and its adjoint, ``dq`` and ``k^H dh k``."""
    half = sub.bind(moved, matmul(adjoint(d_gain), gain))
    change = add.bind(tq, add.bind(half, adjoint(half)))
    return add.bind(change, matmul(adjoint(gain), matmul(d_weight, gain)))


def stein(a: Value, q: Value) -> Value:
    """``x`` with ``a x a^H - x + q = 0``, as a Lyapunov equation of ``(a - 1) (a + 1)^-1``.

    ``a`` must not have the eigenvalue -1. Source: Z. Gajic and M. T. J. Qureshi, "Lyapunov Matrix
    Equation in System Stability and Control", Academic Press 1995.
    """
    one = identity_like(a)
    inverse = Inv().bind(add.bind(a, one))
    moved = matmul(inverse, sub.bind(a, one))
    right = matmul(inverse, matmul(q, adjoint(inverse)))
    right = mul.bind(right, aval_of(a).dtype.type(-2))
    return Sylvester().bind(moved, adjoint(moved), right)
