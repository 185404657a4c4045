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

from funcgrad.base.records import dataclass
from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import BOOL, is_complex, real_dtype
from funcgrad.lowering import Array, Extern, Form, LapackCall, Ref, Routine
from funcgrad.primitives.elementwise import (
    Convert,
    absolute,
    add,
    convert,
    div,
    equal,
    from_parts,
    imag,
    less,
    less_equal,
    mul,
    real,
    scale,
    select,
    stop_gradient,
    sub,
)
from funcgrad.primitives.families import Recipe, shape_of
from funcgrad.primitives.linalg import Solve, inverse_gaps
from funcgrad.primitives.matrices import (
    BLOCK,
    INT32,
    ByLapack,
    ByMatrix,
    adjoint,
    as_column,
    as_row,
    by_column,
    by_columns,
    diagonal,
    matmul,
    matrix_transpose,
    part,
    scipy_linalg,
    strictly_lower,
    upper,
    where_held,
)
from funcgrad.primitives.shape import BroadcastTo, Concatenate, Reshape

Sort = str | Callable[..., bool] | None


@dataclass(frozen=True)
class Schur(ByMatrix):
    """``A = Z T Z^H`` with (quasi-) triangular ``T``; results are ``T``, ``Z`` and a number.

    Of real matrices ``T`` is real: a pair of complex eigenvalues is a block of two rows. The number
    (int32) says how many eigenvalues were sorted to the front.

    Args:
        sort: Which eigenvalues come first, as SciPy has it.
    """

    sort: Sort = None

    signature = "nn->nn,nn,"
    kinds = "aai"

    def one(self, *matrices: Any) -> Any:
        output = "complex" if is_complex(matrices[0].dtype) else "real"
        if self.sort is None:
            return [*scipy_linalg().schur(matrices[0], output), 0]
        return scipy_linalg().schur(matrices[0], output, sort=self.sort)

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        return Extern() if callable(self.sort) else super().lower(*avals)

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        t, z, *w = recipe(_Gees(is_complex(a.aval.dtype)), a)
        stack = a.aval.shape[:-2]
        if self.sort is None:
            return [t, z, recipe(BroadcastTo(stack), INT32.type(0))]
        flags = recipe(Convert(INT32), _are_first(recipe, str(self.sort), w))
        return recipe(_Trsen(), t, z, flags)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """In the basis of eigenvectors of ``T`` its zeros are decoupled.

        With ``T V = V D`` and ``W = V X V^-1``: ``X D - D X = V^-1 (M - dT) V``. The matrices ``V``
        and ``dT`` are upper triangular up to the blocks, so that the part below the blocks needs
        nothing else of ``W`` than that part.
        """
        (a,), (ta,) = primals, tangents
        t, z, count = self.bind(a)
        inner = matmul(adjoint(z), matmul(ta, z))
        in_block = _in_blocks(t)
        w, v = _SchurVectors().bind(t)
        turning = self._below(_similar(v, convert(inner, aval_of(v).dtype)), in_block)
        turning = scale.bind(turning, inverse_gaps(w))
        turning = matrix_transpose(
            Solve().bind(matrix_transpose(v), matrix_transpose(matmul(v, turning)))
        )
        turning = self._below(turning, in_block)
        if not is_complex(aval_of(t).dtype):
            turning = real.bind(turning)
        turning = sub.bind(turning, adjoint(turning))
        moved = sub.bind(inner, _commutator(turning, t))
        if not is_complex(aval_of(t).dtype):
            rotation = _inside_blocks(moved, t, in_block)
            moved = sub.bind(moved, _commutator(rotation, t))
            turning = add.bind(turning, rotation)
        kept = add.bind(upper(moved), select.bind(in_block, moved, aval_of(moved).dtype.type(0)))
        return [t, z, count], [kept, matmul(z, turning), None]

    def _below(self, x: Value, in_block: Value) -> Value:
        return select.bind(in_block, aval_of(x).dtype.type(0), strictly_lower(x))


def _are_first(recipe: Recipe, sort: str, w: Sequence[Any]) -> Any:
    """Flags of the eigenvalues that come first, which are complex or given by their parts."""
    zero, one = (real_dtype(w[0].aval.dtype).type(x) for x in (0, 1))
    if sort in ("lhp", "rhp"):
        re = recipe(real, w[0]) if is_complex(w[0].aval.dtype) else w[0]
        return recipe(less, re, zero) if sort == "lhp" else recipe(less_equal, zero, re)
    size = recipe(absolute, w[0] if len(w) == 1 else recipe(from_parts, *w))
    return recipe(less_equal, size, one) if sort == "iuc" else recipe(less, one, size)


@dataclass(frozen=True)
class _Gees(ByLapack):
    """The factors of `Schur`, not sorted, and the eigenvalues (of real matrices their parts)."""

    is_complex: bool

    @property
    def signature(self) -> str:  # type: ignore[override]
        return "nn->nn,nn,n" if self.is_complex else "nn->nn,nn,n,n"

    def one(self, *matrices: Any) -> Any:
        (gees,) = scipy_linalg().get_lapack_funcs(("gees",), matrices)
        t, _, *w, z, _work, _info = gees(lambda *_w: None, matrices[0])
        return [t, z, *w]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (a,) = avals
        *stack, n, _n = a.shape
        size = (BLOCK + 2) * n
        values = 1 if self.is_complex else 2
        arrays = (
            Array(a.shape, a.dtype),
            by_column(a, 0),
            by_column(a),
            *[Array((*stack, n), a.dtype)] * values,
            Array((*stack, size), a.dtype),
            *[Array((*stack, n), real_dtype(a.dtype))] * self.is_complex,
            *[Array(tuple(stack), INT32)] * 2,
        )
        *w, work, more, last = map(Ref, range(3, 6 + values))
        rest, (count, info) = (
            ((more,), (last, Ref(6 + values))) if self.is_complex else ((), (more, last))
        )
        words = "V", "N", 0, n, Ref(1), n, count, *w, Ref(2), n, work, size, *rest, 0, info
        return self.form("gees", a, words, arrays, range(1, 3 + values))


@dataclass(frozen=True)
class _Trsen(ByLapack):
    """The factors of `Schur` with the flagged eigenvalues first, and how many these are."""

    signature = "nn,nn,n->nn,nn,"
    kinds = "aai"

    def one(self, *matrices: Any) -> Any:
        t, z, flags = matrices
        (trsen,) = scipy_linalg().get_lapack_funcs(("trsen",), (t,))
        found = trsen(flags, t, z, job="N")
        return [*found[:2], found[3 if is_complex(t.dtype) else 4]]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        t, z, flags = avals
        *stack, n = flags.shape
        arrays = (
            *(Array(x.shape, x.dtype) for x in avals),
            by_column(t, 0),
            by_column(z, 1),
            *(Array(flags.shape, t.dtype) for _ in range(3)),
            *(Array(tuple(stack), INT32) for _ in range(3)),
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
    below = strictly_lower(stop_gradient.bind(t))
    return equal.bind(equal.bind(below, aval_of(t).dtype.type(0)), np.bool_(False))


def _inside_blocks(moved: Value, t: Value, in_block: Value) -> Value:
    """The rotation of each block of two rows that keeps the elements of its diagonal equal.

    A block ``[[a, b], [c, a]]`` turned by ``w`` has ``a + w (b + c)`` and ``a - w (b + c)`` there.
    """
    zero, one = aval_of(t).dtype.type(0), aval_of(t).dtype.type(1)
    total = add.bind(t, matrix_transpose(t))
    total = add.bind(total, total)
    is_known = select.bind(equal.bind(total, zero), np.zeros((), BOOL), in_block)
    entries = diagonal(moved)
    apart = sub.bind(as_column(entries), as_row(entries))
    angle = div.bind(apart, select.bind(is_known, total, one))
    lower = select.bind(is_known, angle, zero)
    return sub.bind(lower, matrix_transpose(lower))


def _commutator(x: Value, y: Value) -> Value:
    return sub.bind(matmul(x, y), matmul(y, x))


def _similar(v: Value, x: Value) -> Value:
    """``v^-1 x v``."""
    return Solve().bind(v, matmul(x, v))


@dataclass(frozen=True)
class _SchurVectors(ByMatrix):
    """Eigenvalues and eigenvectors of quasi-triangular matrices, in the order of the diagonal.

    The length of the vectors is of no account: derivatives keep it as it is in this basis.
    """

    signature = "nn->n,nn"
    kinds = "cc"

    def one(self, *matrices: Any) -> Any:
        (t,) = matrices
        basis = np.eye(len(t))
        if not is_complex(t.dtype):
            t, basis = scipy_linalg().rsf2csf(t, basis.astype(t.dtype))
        return [np.diagonal(t), basis @ _vectors_of_triangle(t)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (t,), (tt,) = primals, tangents
        w, v = self.bind(t)
        inner = _similar(v, convert(tt, aval_of(v).dtype))
        return [w, v], [diagonal(inner), matmul(v, scale.bind(inner, inverse_gaps(w)))]


def _vectors_of_triangle(t: Any) -> Any:
    """Eigenvectors of one triangular matrix with ones on their diagonal."""
    n = len(t)
    out = np.eye(n, dtype=t.dtype)
    least = np.finfo(t.dtype).eps * max(np.abs(t).max(), np.finfo(t.dtype).tiny)
    for k in range(1, n):
        shifted = t[:k, :k] - t[k, k] * np.eye(k, dtype=t.dtype)
        gaps = np.diagonal(shifted)
        np.fill_diagonal(shifted, np.where(np.abs(gaps) < least, least, gaps))
        out[:k, k] = scipy_linalg().solve_triangular(shifted, -t[:k, k])
    return out


@dataclass(frozen=True)
class Hessenberg(ByMatrix):
    """``A = Q H Q^H`` with ``H`` zero below its first subdiagonal; results are ``H`` and ``Q``.

    The first column of ``Q`` is that of the identity; with it and a subdiagonal without zeros all
    else is determined but for signs.
    """

    signature = "nn->nn,nn"

    def one(self, *matrices: Any) -> Any:
        return scipy_linalg().hessenberg(matrices[0], calc_q=True)

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        n, dtype = a.aval.shape[-1], a.aval.dtype
        if n <= 2:
            return [a, recipe(BroadcastTo(a.aval.shape), np.eye(n, dtype=dtype))]
        packed, factors = recipe(_Gehrd(), a)
        is_below = np.tri(n, n, -2, dtype=BOOL)
        h = recipe(select, is_below, dtype.type(0), packed)
        return [h, recipe(_Orghr(), packed, factors)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        h, q = self.bind(a)
        n = shape_of(a)[-1]
        if n <= 2:
            return [h, q], [ta, None]
        inner = matmul(adjoint(q), matmul(ta, q))
        turning = _hessenberg_turning(inner, h, n)
        moved = sub.bind(inner, _commutator(turning, h))
        kept = where_held(~np.tri(n, n, -2, dtype=BOOL), moved)
        return [h, q], [kept, matmul(q, turning)]


def _hessenberg_turning(inner: Value, h: Value, n: int) -> Value:
    """``W = Q^H dQ``, column by column: the zeros of column ``j`` of ``H`` give column ``j+1``."""
    every = slice(None)
    rows = np.arange(n)[:, None]
    one = aval_of(h).dtype.type(1)
    columns = [mul.bind(part(h, every, slice(0, 1)), aval_of(h).dtype.type(0))]
    for j in range(n - 1):
        known = Concatenate(len(shape_of(h)) - 1).bind(*columns)
        product = matmul(known, part(h, slice(0, j + 1), slice(j, j + 1)))
        rest = sub.bind(part(inner, every, slice(j, j + 1)), product)
        rest = add.bind(rest, matmul(h, columns[j]))
        edge = part(h, slice(j + 1, j + 2), slice(j, j + 1))
        is_zero = equal.bind(edge, aval_of(h).dtype.type(0))
        rest = div.bind(rest, select.bind(is_zero, one, edge))
        below = where_held(rows > j + 1, rest)
        if is_complex(aval_of(h).dtype):
            # The subdiagonal stays real, so that imaginary parts there turn the column of Q.
            phase = convert(imag.bind(where_held(rows == j + 1, rest)), aval_of(h).dtype)
            below = add.bind(below, mul.bind(phase, aval_of(h).dtype.type(1j)))
        columns.append(select.bind(is_zero, aval_of(h).dtype.type(0), below))
    lower = Concatenate(len(shape_of(h)) - 1).bind(*columns)
    return sub.bind(lower, adjoint(strictly_lower(lower)))


@dataclass(frozen=True)
class PackedHessenberg(ByMatrix):
    """`Hessenberg` as LAPACK leaves it: ``H`` with the reflections below, and their factors."""

    signature = "nn->nn,r"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        return {**super().lengths(avals), "r": max(avals[0].shape[-1] - 1, 0)}

    def one(self, *matrices: Any) -> Any:
        (gehrd,) = scipy_linalg().get_lapack_funcs(("gehrd",), matrices)
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


@dataclass(frozen=True)
class _Gehrd(PackedHessenberg):
    """`PackedHessenberg` of matrices that are neither empty nor of other than finite elements."""

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (a,) = avals
        *stack, n, _n = a.shape
        size = BLOCK * n
        arrays = (
            Array(a.shape, a.dtype),
            Array(a.shape, a.dtype, by_columns(a), start=0),
            Array((*stack, n - 1), a.dtype),
            Array((*stack, size), a.dtype),
            Array(tuple(stack), INT32),
        )
        words = n, 1, n, Ref(1), n, Ref(2), Ref(3), size, Ref(4)
        return Routine(arrays, (1, 2), (LapackCall("gehrd", a.dtype, words),), len(stack))


@dataclass(frozen=True)
class _Orghr(ByMatrix):
    """Q of `Hessenberg`, given what LAPACK leaves of it."""

    signature = "nn,r->nn"
    takes_nan = True

    def one(self, *matrices: Any) -> Any:
        name = "unghr" if is_complex(matrices[0].dtype) else "orghr"
        (function,) = scipy_linalg().get_lapack_funcs((name,), matrices)
        return [function(*matrices)[0]]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        a, factors = avals
        *stack, n, _n = a.shape
        size = BLOCK * n
        arrays = (
            Array(a.shape, a.dtype),
            Array(factors.shape, a.dtype),
            Array(a.shape, a.dtype, by_columns(a), start=0),
            Array((*stack, size), a.dtype),
            Array(tuple(stack), INT32),
        )
        words = n, 1, n, Ref(2), n, Ref(1), Ref(3), size, Ref(4)
        name = "unghr" if is_complex(a.dtype) else "orghr"
        return Routine(arrays, (2,), (LapackCall(name, a.dtype, words),), len(stack))


@dataclass(frozen=True)
class PackedTridiagonal(ByMatrix):
    """Hermitian ``A = Q T Q^H`` as LAPACK leaves it, with the diagonals of ``T``.

    Results: ``T`` with the reflections in the triangle that is read; its diagonal; the diagonal
    next to it; the factors of the reflections.

    Args:
        lower_triangle: Which triangle is read.
    """

    lower_triangle: bool

    signature = "nn->nn,n,r,r"
    kinds = "arra"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        return {**super().lengths(avals), "r": max(avals[0].shape[-1] - 1, 0)}

    def one(self, *matrices: Any) -> Any:
        name = "hetrd" if is_complex(matrices[0].dtype) else "sytrd"
        (reduce,) = scipy_linalg().get_lapack_funcs((name,), matrices)
        return list(reduce(matrices[0], lower=self.lower_triangle)[:4])

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (a,) = inputs
        *stack, n, _n = a.aval.shape
        if n == 1:
            value = recipe(Reshape((*stack, 1)), a)
            size = recipe(real, value) if is_complex(a.aval.dtype) else value
            nothing = [_nothing(recipe, stack, x) for x in (size.aval.dtype, a.aval.dtype)]
            return [a, size, *nothing]
        return recipe(_Sytrd(self.lower_triangle), a)


@dataclass(frozen=True)
class _Sytrd(PackedTridiagonal):
    """`PackedTridiagonal` of matrices that are neither empty nor of other than finite elements."""

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (a,) = avals
        *stack, n, _n = a.shape
        size, real_one = BLOCK * n, real_dtype(a.dtype)
        arrays = (
            Array(a.shape, a.dtype),
            Array(a.shape, a.dtype, by_columns(a), start=0),
            Array((*stack, n), real_one),
            Array((*stack, n - 1), real_one),
            Array((*stack, n - 1), a.dtype),
            Array((*stack, size), a.dtype),
            Array(tuple(stack), INT32),
        )
        half = "L" if self.lower_triangle else "U"
        words = half, n, Ref(1), n, Ref(2), Ref(3), Ref(4), Ref(5), size, Ref(6)
        name = "hetrd" if is_complex(a.dtype) else "sytrd"
        return Routine(arrays, (1, 2, 3, 4), (LapackCall(name, a.dtype, words),), len(stack))


@dataclass(frozen=True)
class GeneralizedSchur(ByMatrix):
    """``A = Q S Z^H`` and ``B = Q T Z^H`` with (quasi-) triangular ``S`` and ``T``.

    Results: ``S``, ``T``, ``alpha``, ``beta`` (both complex, their quotients are the eigenvalues),
    ``Q``, ``Z``.

    Args:
        sort: Which eigenvalues come first, as `scipy.linalg.ordqz` has it; none of them by default.
    """

    sort: Sort = None

    signature = "nn,nn->nn,nn,n,n,nn,nn"
    kinds = "aaccaa"

    def one(self, *matrices: Any) -> Any:
        output = "complex" if is_complex(matrices[0].dtype) else "real"
        if self.sort is not None:
            return scipy_linalg().ordqz(*matrices, sort=self.sort, output=output)
        s, t, q, z = scipy_linalg().qz(*matrices, output=output)
        return [s, t, np.diagonal(s), np.diagonal(t), q, z]
