"""Forms of square matrices under unitary changes of basis: Schur's, Hessenberg's, tridiagonal.

With ``M = Z^H dA Z`` and ``W = Z^H dZ``, which is anti-Hermitian, ``A = Z T Z^H`` gives

    M = W T + dT - T W

of which the part where ``T`` has zeros determines ``W``. SciPy evaluates everything here, inside
compiled programs too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import BOOL, is_complex, real_dtype
from funcgrad.lowering import Array, Extern, Form, LapackCall, Ref, Routine
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import matrices as m
from funcgrad.primitives.families import Recipe, shape_of
from funcgrad.primitives.linalg import Solve, inverse_gaps
from funcgrad.primitives.shape import BroadcastTo, Concatenate, Reshape

Sort = str | Callable[..., bool] | None


class Schur(m.ByMatrix):
    """``A = Z T Z^H`` with (quasi-) triangular ``T``; results are ``T``, ``Z`` and a number.

    Of real matrices ``T`` is real: a pair of complex eigenvalues is a block of two rows. The number
    (int32) says how many eigenvalues were sorted to the front.

    Args: sort: Which eigenvalues come first, as SciPy has it.
    """

    sort: Sort = None

    signature = "nn->nn,nn,"
    kinds = "aai"

    def one(self, *matrices: Any) -> Any:
        output = "complex" if is_complex(matrices[0].dtype) else "real"
        if self.sort is None:
            return [*m.scipy_linalg().schur(matrices[0], output), 0]
        return m.scipy_linalg().schur(matrices[0], output, sort=self.sort)

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        return Extern() if callable(self.sort) else super().lower(*avals)

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        t, z, *w = recipe(_Gees(is_complex(a.aval.dtype)), a)
        stack = a.aval.shape[:-2]
        if self.sort is None:
            return [t, z, recipe(BroadcastTo(stack), m.INT32.type(0))]
        flags = recipe(p.Convert(m.INT32), _are_first(recipe, str(self.sort), w))
        return recipe(_Trsen(), t, z, flags)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """In the basis of eigenvectors of ``T`` its zeros are decoupled.

        With ``T V = V D`` and ``W = V X V^-1``: ``X D - D X = V^-1 (M - dT) V``. The matrices ``V``
        and ``dT`` are upper triangular up to the blocks, so that the part below the blocks needs
        nothing else of ``W`` than that part.
        """
        (a,), (ta,) = primals, tangents
        t, z, count = self.bind(a)
        inner = m.matmul(m.adjoint(z), m.matmul(ta, z))
        in_block = _in_blocks(t)
        w, v = _SchurVectors().bind(t)
        turning = self._below(_similar(v, p.convert(inner, aval_of(v).dtype)), in_block)
        turning = p.scale.bind(turning, inverse_gaps(w))
        turning = m.matrix_transpose(
            Solve().bind(m.matrix_transpose(v), m.matrix_transpose(m.matmul(v, turning)))
        )
        turning = self._below(turning, in_block)
        if not is_complex(aval_of(t).dtype):
            turning = p.real.bind(turning)
        turning = p.sub.bind(turning, m.adjoint(turning))
        moved = p.sub.bind(inner, _commutator(turning, t))
        if not is_complex(aval_of(t).dtype):
            rotation = _inside_blocks(moved, t, in_block)
            moved = p.sub.bind(moved, _commutator(rotation, t))
            turning = p.add.bind(turning, rotation)
        kept = p.add.bind(
            m.upper(moved), p.select.bind(in_block, moved, aval_of(moved).dtype.type(0))
        )
        return [t, z, count], [kept, m.matmul(z, turning), None]

    def _below(self, x: Value, in_block: Value) -> Value:
        return p.select.bind(in_block, aval_of(x).dtype.type(0), m.strictly_lower(x))


def _are_first(recipe: Recipe, sort: str, w: Sequence[Any]) -> Any:
    """Flags of the eigenvalues that come first, which are complex or given by their parts."""
    zero, one = (real_dtype(w[0].aval.dtype).type(x) for x in (0, 1))
    if sort in ("lhp", "rhp"):
        re = recipe(p.real, w[0]) if is_complex(w[0].aval.dtype) else w[0]
        return recipe(p.less, re, zero) if sort == "lhp" else recipe(p.less_equal, zero, re)
    size = recipe(p.absolute, w[0] if len(w) == 1 else recipe(p.from_parts, *w))
    return recipe(p.less_equal, size, one) if sort == "iuc" else recipe(p.less, one, size)


class _Gees(m.ByLapack):
    """The factors of `Schur`, not sorted, and the eigenvalues (of real matrices their parts)."""

    is_complex: bool

    @property
    def signature(self) -> str:  # type: ignore[override]
        return "nn->nn,nn,n" if self.is_complex else "nn->nn,nn,n,n"

    def one(self, *matrices: Any) -> Any:
        (gees,) = m.scipy_linalg().get_lapack_funcs(("gees",), matrices)
        t, _, *w, z, _work, _info = gees(lambda *_w: None, matrices[0])
        return [t, z, *w]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (a,) = avals
        *stack, n, _n = a.shape
        size = (m.BLOCK + 2) * n
        values = 1 if self.is_complex else 2
        arrays = (
            Array(a.shape, a.dtype),
            m.by_column(a, 0),
            m.by_column(a),
            *[Array((*stack, n), a.dtype)] * values,
            Array((*stack, size), a.dtype),
            *[Array((*stack, n), real_dtype(a.dtype))] * self.is_complex,
            *[Array(tuple(stack), m.INT32)] * 2,
        )
        *w, work, more, last = map(Ref, range(3, 6 + values))
        rest, (count, info) = (
            ((more,), (last, Ref(6 + values))) if self.is_complex else ((), (more, last))
        )
        words = "V", "N", 0, n, Ref(1), n, count, *w, Ref(2), n, work, size, *rest, 0, info
        return self.form("gees", a, words, arrays, range(1, 3 + values))


class _Trsen(m.ByLapack):
    """The factors of `Schur` with the flagged eigenvalues first, and how many these are."""

    signature = "nn,nn,n->nn,nn,"
    kinds = "aai"

    def one(self, *matrices: Any) -> Any:
        t, z, flags = matrices
        (trsen,) = m.scipy_linalg().get_lapack_funcs(("trsen",), (t,))
        found = trsen(flags, t, z, job="N")
        return [*found[:2], found[3 if is_complex(t.dtype) else 4]]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        t, z, flags = avals
        *stack, n = flags.shape
        arrays = (
            *(Array(x.shape, x.dtype) for x in avals),
            m.by_column(t, 0),
            m.by_column(z, 1),
            *(Array(flags.shape, t.dtype) for _ in range(3)),
            *(Array(tuple(stack), m.INT32) for _ in range(3)),
        )
        values: tuple[Ref, ...] = Ref(5), Ref(6)
        integers: tuple[Ref | int, ...] = Ref(9), 1
        if is_complex(t.dtype):
            values, integers = values[:1], ()
        found = *values, Ref(8), 0, 0, Ref(7), n, *integers
        words = "N", "V", Ref(2), n, Ref(3), n, Ref(4), n, *found, Ref(10)
        return self.form("trsen", t, words, arrays, (3, 4, 8))


def _in_blocks(t: Value) -> Value:
    """Mask of the nonzero entries below the diagonal of a quasi-triangular matrix."""
    below = m.strictly_lower(p.stop_gradient.bind(t))
    return p.equal.bind(p.equal.bind(below, aval_of(t).dtype.type(0)), np.bool_(False))


def _inside_blocks(moved: Value, t: Value, in_block: Value) -> Value:
    """The rotation of each block of two rows that keeps the elements of its diagonal equal.

    A block ``[[a, b], [c, a]]`` turned by ``w`` has ``a + w (b + c)`` and ``a - w (b + c)`` there.
    """
    zero, one = aval_of(t).dtype.type(0), aval_of(t).dtype.type(1)
    total = p.add.bind(t, m.matrix_transpose(t))
    total = p.add.bind(total, total)
    is_known = p.select.bind(p.equal.bind(total, zero), np.zeros((), BOOL), in_block)
    entries = m.diagonal(moved)
    apart = p.sub.bind(m.as_column(entries), m.as_row(entries))
    angle = p.div.bind(apart, p.select.bind(is_known, total, one))
    lower = p.select.bind(is_known, angle, zero)
    return p.sub.bind(lower, m.matrix_transpose(lower))


def _commutator(x: Value, y: Value) -> Value:
    return p.sub.bind(m.matmul(x, y), m.matmul(y, x))


def _similar(v: Value, x: Value) -> Value:
    """``v^-1 x v``."""
    return Solve().bind(v, m.matmul(x, v))


class _SchurVectors(m.ByMatrix):
    """Eigenvalues and eigenvectors of quasi-triangular matrices, in the order of the diagonal.

    The length of the vectors is of no account: derivatives keep it as it is in this basis.
    """

    signature = "nn->n,nn"
    kinds = "cc"

    def one(self, *matrices: Any) -> Any:
        (t,) = matrices
        basis = np.eye(len(t))
        if not is_complex(t.dtype):
            t, basis = m.scipy_linalg().rsf2csf(t, basis.astype(t.dtype))
        return [np.diagonal(t), basis @ _vectors_of_triangle(t)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (t,), (tt,) = primals, tangents
        w, v = self.bind(t)
        inner = _similar(v, p.convert(tt, aval_of(v).dtype))
        return [w, v], [m.diagonal(inner), m.matmul(v, p.scale.bind(inner, inverse_gaps(w)))]


def _vectors_of_triangle(t: Any) -> Any:
    """Eigenvectors of one triangular matrix with ones on their diagonal."""
    n = len(t)
    out = np.eye(n, dtype=t.dtype)
    least = np.finfo(t.dtype).eps * max(np.abs(t).max(), np.finfo(t.dtype).tiny)
    for k in range(1, n):
        shifted = t[:k, :k] - t[k, k] * np.eye(k, dtype=t.dtype)
        gaps = np.diagonal(shifted)
        np.fill_diagonal(shifted, np.where(np.abs(gaps) < least, least, gaps))
        out[:k, k] = m.scipy_linalg().solve_triangular(shifted, -t[:k, k])
    return out


class Hessenberg(m.ByMatrix):
    """``A = Q H Q^H`` with ``H`` zero below its first subdiagonal; results are ``H`` and ``Q``.

    The first column of ``Q`` is that of the identity; with it and a subdiagonal without zeros all
    else is determined but for signs.
    """

    signature = "nn->nn,nn"

    def one(self, *matrices: Any) -> Any:
        return m.scipy_linalg().hessenberg(matrices[0], calc_q=True)

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        n, dtype = a.aval.shape[-1], a.aval.dtype
        if n <= 2:
            return [a, recipe(BroadcastTo(a.aval.shape), np.eye(n, dtype=dtype))]
        packed, factors = recipe(_Gehrd(), a)
        is_below = np.tri(n, n, -2, dtype=BOOL)
        h = recipe(p.select, is_below, dtype.type(0), packed)
        return [h, recipe(_Orghr(), packed, factors)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        h, q = self.bind(a)
        n = shape_of(a)[-1]
        if n <= 2:
            return [h, q], [ta, None]
        inner = m.matmul(m.adjoint(q), m.matmul(ta, q))
        turning = _hessenberg_turning(inner, h, n)
        moved = p.sub.bind(inner, _commutator(turning, h))
        kept = m.where_held(~np.tri(n, n, -2, dtype=BOOL), moved)
        return [h, q], [kept, m.matmul(q, turning)]


def _hessenberg_turning(inner: Value, h: Value, n: int) -> Value:
    """``W = Q^H dQ``, column by column: the zeros of column ``j`` of ``H`` give column ``j+1``."""
    every = slice(None)
    rows = np.arange(n)[:, None]
    one = aval_of(h).dtype.type(1)
    columns = [p.mul.bind(m.part(h, every, slice(0, 1)), aval_of(h).dtype.type(0))]
    for j in range(n - 1):
        known = Concatenate(len(shape_of(h)) - 1).bind(*columns)
        product = m.matmul(known, m.part(h, slice(0, j + 1), slice(j, j + 1)))
        rest = p.sub.bind(m.part(inner, every, slice(j, j + 1)), product)
        rest = p.add.bind(rest, m.matmul(h, columns[j]))
        edge = m.part(h, slice(j + 1, j + 2), slice(j, j + 1))
        is_zero = p.equal.bind(edge, aval_of(h).dtype.type(0))
        rest = p.div.bind(rest, p.select.bind(is_zero, one, edge))
        below = m.where_held(rows > j + 1, rest)
        if is_complex(aval_of(h).dtype):
            # The subdiagonal stays real, so that imaginary parts there turn the column of Q.
            phase = p.convert(p.imag.bind(m.where_held(rows == j + 1, rest)), aval_of(h).dtype)
            below = p.add.bind(below, p.mul.bind(phase, aval_of(h).dtype.type(1j)))
        columns.append(p.select.bind(is_zero, aval_of(h).dtype.type(0), below))
    lower = Concatenate(len(shape_of(h)) - 1).bind(*columns)
    return p.sub.bind(lower, m.adjoint(m.strictly_lower(lower)))


class PackedHessenberg(m.ByMatrix):
    """`Hessenberg` as LAPACK leaves it: ``H`` with the reflections below, and their factors."""

    signature = "nn->nn,r"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        return {**super().lengths(avals), "r": max(avals[0].shape[-1] - 1, 0)}

    def one(self, *matrices: Any) -> Any:
        (gehrd,) = m.scipy_linalg().get_lapack_funcs(("gehrd",), matrices)
        return list(gehrd(matrices[0])[:2])

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        *stack, n, _n = a.aval.shape
        if n == 1:
            return [a, _nothing(recipe, stack, a.aval.dtype)]
        return recipe(_Gehrd(), a)


def _nothing(recipe: Recipe, stack: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """The factors of no reflections."""
    return recipe(BroadcastTo((*stack, 0)), np.zeros(0, dtype))


class _Gehrd(PackedHessenberg):
    """`PackedHessenberg` of matrices that are neither empty nor of other than finite elements."""

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (a,) = avals
        *stack, n, _n = a.shape
        size = m.BLOCK * n
        arrays = (
            Array(a.shape, a.dtype),
            Array(a.shape, a.dtype, m.by_columns(a), start=0),
            Array((*stack, n - 1), a.dtype),
            Array((*stack, size), a.dtype),
            Array(tuple(stack), m.INT32),
        )
        words = n, 1, n, Ref(1), n, Ref(2), Ref(3), size, Ref(4)
        return Routine(arrays, (1, 2), (LapackCall("gehrd", a.dtype, words),), len(stack))


class _Orghr(m.ByMatrix):
    """Q of `Hessenberg`, given what LAPACK leaves of it."""

    signature = "nn,r->nn"
    takes_nan = True

    def one(self, *matrices: Any) -> Any:
        name = "unghr" if is_complex(matrices[0].dtype) else "orghr"
        (function,) = m.scipy_linalg().get_lapack_funcs((name,), matrices)
        return [function(*matrices)[0]]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        a, factors = avals
        *stack, n, _n = a.shape
        size = m.BLOCK * n
        arrays = (
            Array(a.shape, a.dtype),
            Array(factors.shape, a.dtype),
            Array(a.shape, a.dtype, m.by_columns(a), start=0),
            Array((*stack, size), a.dtype),
            Array(tuple(stack), m.INT32),
        )
        words = n, 1, n, Ref(2), n, Ref(1), Ref(3), size, Ref(4)
        name = "unghr" if is_complex(a.dtype) else "orghr"
        return Routine(arrays, (2,), (LapackCall(name, a.dtype, words),), len(stack))


class PackedTridiagonal(m.ByMatrix):
    """Hermitian ``A = Q T Q^H`` as LAPACK leaves it, with the diagonals of ``T``.

    Results: ``T`` with the reflections in the triangle that is read; its diagonal; the diagonal
    next to it; the factors of the reflections.
    """

    lower_triangle: bool

    signature = "nn->nn,n,r,r"
    kinds = "arra"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        return {**super().lengths(avals), "r": max(avals[0].shape[-1] - 1, 0)}

    def one(self, *matrices: Any) -> Any:
        name = "hetrd" if is_complex(matrices[0].dtype) else "sytrd"
        (reduce,) = m.scipy_linalg().get_lapack_funcs((name,), matrices)
        return list(reduce(matrices[0], lower=self.lower_triangle)[:4])

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        *stack, n, _n = a.aval.shape
        if n == 1:
            value = recipe(Reshape((*stack, 1)), a)
            size = recipe(p.real, value) if is_complex(a.aval.dtype) else value
            nothing = [_nothing(recipe, stack, x) for x in (size.aval.dtype, a.aval.dtype)]
            return [a, size, *nothing]
        return recipe(_Sytrd(self.lower_triangle), a)


class _Sytrd(PackedTridiagonal):
    """`PackedTridiagonal` of matrices that are neither empty nor of other than finite elements."""

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (a,) = avals
        *stack, n, _n = a.shape
        size, real_one = m.BLOCK * n, real_dtype(a.dtype)
        arrays = (
            Array(a.shape, a.dtype),
            Array(a.shape, a.dtype, m.by_columns(a), start=0),
            Array((*stack, n), real_one),
            Array((*stack, n - 1), real_one),
            Array((*stack, n - 1), a.dtype),
            Array((*stack, size), a.dtype),
            Array(tuple(stack), m.INT32),
        )
        half = "L" if self.lower_triangle else "U"
        words = half, n, Ref(1), n, Ref(2), Ref(3), Ref(4), Ref(5), size, Ref(6)
        name = "hetrd" if is_complex(a.dtype) else "sytrd"
        return Routine(arrays, (1, 2, 3, 4), (LapackCall(name, a.dtype, words),), len(stack))


class GeneralizedSchur(m.ByMatrix):
    """``A = Q S Z^H`` and ``B = Q T Z^H`` with (quasi-) triangular ``S`` and ``T``.

    Results: ``S``, ``T``, ``alpha``, ``beta`` (both complex, their quotients are the eigenvalues),
    ``Q``, ``Z``.

    Args: sort: Which eigenvalues come first, as `scipy.linalg.ordqz` has it; none of them by
            default.
    """

    sort: Sort = None

    signature = "nn,nn->nn,nn,n,n,nn,nn"
    kinds = "aaccaa"

    def one(self, *matrices: Any) -> Any:
        output = "complex" if is_complex(matrices[0].dtype) else "real"
        if self.sort is not None:
            return m.scipy_linalg().ordqz(*matrices, sort=self.sort, output=output)
        s, t, q, z = m.scipy_linalg().qz(*matrices, output=output)
        return [s, t, np.diagonal(s), np.diagonal(t), q, z]
