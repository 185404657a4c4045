"""Systems and eigenvalues of matrices that are stored by their diagonals.

``ab[u + i - j, j] = a[i, j]`` for a matrix with ``u`` diagonals above the main one. Compiled
programs call LAPACK, and SciPy for those that are constant along diagonals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of, shaped
from funcgrad.core.primitive import Value
from funcgrad.dtypes import BOOL, is_complex
from funcgrad.errors import ShapeError
from funcgrad.lowering import Array, Extern, Form, LapackCall, Ref, Routine
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.families import Recipe, instantiate, shape_of, undefined
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.linalg import Cholesky, inverse_gaps
from funcgrad.primitives.matrices import (
    INT32,
    ByLapack,
    ByMatrix,
    adjoint,
    as_row,
    by_column,
    by_columns,
    conjugated,
    diagonal,
    matmul,
    matrix_transpose,
    part,
    scipy_linalg,
    where_held,
)
from funcgrad.primitives.reductions import ReduceMax


def dense_of(ab: Value, above: int) -> Value:
    """The matrices whose diagonals are the rows of ``ab``, the first ``above`` the main one."""
    n = shape_of(ab)[-1]
    shape = (*shape_of(ab)[:-2], n, n)
    out: Value = np.broadcast_to(np.zeros((), aval_of(ab).dtype), shape)
    for row in range(shape_of(ab)[-2]):
        line = part(ab, slice(row, row + 1), slice(None))
        out = p.add.bind(out, where_held(np.eye(n, k=above - row, dtype=BOOL), line))
    return out


def band_of(a: Value, below: int, above: int) -> Value:
    """The diagonals of matrices, as the rows of ``ab``."""
    ndim, n = len(shape_of(a)), shape_of(a)[-1]
    total = s.ReduceSum((ndim - 2,))
    rows = [
        as_row(total.bind(where_held(np.eye(n, k=k, dtype=BOOL), a)))
        for k in range(above, -below - 1, -1)
    ]
    return s.Concatenate(ndim - 2).bind(*rows)


def band_transpose(ab: Value, below: int, above: int) -> Value:
    """The diagonals of the transposed matrices, which have ``below`` above the main one."""
    n = shape_of(ab)[-1]
    rows = [
        shifted(part(ab, slice(above + k, above + k + 1), slice(None)), k, n)
        for k in range(below, -above - 1, -1)
    ]
    return s.Concatenate(len(shape_of(ab)) - 2).bind(*rows)


def shifted(row: Value, count: int, n: int) -> Value:
    """A row moved to the right by ``count`` places (to the left if negative), zeros come in."""
    count = max(-n, min(n, count))
    if not count:
        return row
    axis = len(shape_of(row)) - 1
    zeros = np.broadcast_to(np.zeros((), aval_of(row).dtype), (*shape_of(row)[:-1], abs(count)))
    if count > 0:
        return s.Concatenate(axis).bind(zeros, part(row, slice(None), slice(0, n - count)))
    return s.Concatenate(axis).bind(part(row, slice(None), slice(-count, n)), zeros)


def band_matmul(ab: Value, x: Value, above: int) -> Value:
    """The product of matrices, given by their diagonals, with ``x``, ``(..., n, k)``."""
    n = shape_of(x)[-2]
    transposed = matrix_transpose(x)
    out = None
    for row in range(shape_of(ab)[-2]):
        line = part(ab, slice(row, row + 1), slice(None))
        term = shifted(p.scale.bind(line, transposed), row - above, n)
        out = term if out is None else p.add.bind(out, term)
    assert out is not None
    return matrix_transpose(out)


RAISE, SPOIL, PERTURB = "raise", "spoil", "perturb"
"""Treatments of singular systems."""


class BandedSolve(ByMatrix):
    """``x`` with ``a x = b``: ``bind(ab, b)``.

    Args:
        below: Number of diagonals below the main one.
        above: Number of those above.
        if_singular: `RAISE`; `SPOIL`: the solutions of singular matrices are not finite; `PERTURB`:
            they are those of matrices nearby, with rounding errors for pivots that are zero.
    """

    below: int
    above: int
    if_singular: str = RAISE

    signature = "rn,nk->nk"
    kinds = "1"
    takes_nan = True

    def abstract_eval(self, *avals: ShapedArray) -> Any:
        _check_rows(self.name, avals[0], self.below + self.above + 1)
        return super().abstract_eval(*avals)

    def one(self, *matrices: Any) -> Any:
        ab, b = matrices
        if not b.size:
            return [b]
        count = (self.below, self.above)
        if self.if_singular == RAISE:
            return [scipy_linalg().solve_banded(count, ab, b, check_finite=False)]
        room = np.zeros((self.below, ab.shape[-1]), ab.dtype)
        factors, pivots = BandedFactor(*count).one(np.concatenate([room, ab]).T)
        if self.if_singular == PERTURB:
            pivot = factors[:, sum(count)]
            pivot[pivot == 0] = _least_pivot(np.max(np.abs(ab)), ab.dtype)
        return FactoredBandedSolve(*count).one(factors, pivots, b)

    def lower(self, ab: ShapedArray, b: ShapedArray) -> Form:
        recipe = Recipe(ab, b)
        band, sides = recipe.inputs
        if not b.size:
            return recipe.form(sides)
        # LAPACK wants room for the diagonals that exchanges of rows fill.
        *stack, _, n = ab.shape
        room = np.zeros((*stack, self.below, n), ab.dtype)
        if self.below:
            band = recipe(s.Concatenate(ab.ndim - 2), room, band)
        if self.if_singular == RAISE:
            return recipe.form(recipe(_Gbsv(self.below, self.above), band, sides))
        ndim = ab.ndim
        transposed = recipe(s.Transpose((*range(ndim - 2), ndim - 1, ndim - 2)), band)
        factors, pivots = recipe(BandedFactor(self.below, self.above), transposed)
        if self.if_singular == PERTURB:
            factors = self._perturbed(recipe, factors)
        solve = FactoredBandedSolve(self.below, self.above)
        return recipe.form(recipe(solve, factors, pivots, sides))

    def _perturbed(self, recipe: Recipe, factors: Any) -> Any:
        """The factors with small numbers for pivots that are zero."""
        ab, shape = recipe.inputs[0].aval, factors.aval.shape
        sizes = recipe(p.absolute, recipe.inputs[0])
        greatest = recipe(ReduceMax((ab.ndim - 2, ab.ndim - 1)), sizes)
        eps = _least_pivot(1, ab.dtype)
        least = recipe(p.mul, greatest, eps)
        least = recipe(p.select, recipe(p.equal, least, least.aval.dtype.type(0)), eps, least)
        least = recipe(s.Reshape((*shape[:-2], 1, 1)), recipe(p.Convert(ab.dtype), least))
        is_pivot = np.arange(shape[-1]) == self.below + self.above
        is_zero = recipe(p.equal, factors, ab.dtype.type(0))
        return recipe(p.select, recipe(p.bitwise_and, is_zero, is_pivot), least, factors)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (ab, b), (tab, tb) = primals, tangents
        out = self.bind(ab, b)
        if tab is not None:
            moved = p.neg.bind(band_matmul(tab, out, self.above))
            tb = moved if tb is None else p.add.bind(tb, moved)
        return out, self.bind(ab, tb)

    def transpose(self, ct: Any, ab: Any, b: Any) -> Sequence[Any]:
        transposed = band_transpose(ab, self.below, self.above)
        return None, replace(self, below=self.above, above=self.below).bind(transposed, ct)


def _least_pivot(size: Any, dtype: np.dtype[Any]) -> Any:
    """Rounding errors of numbers of a size, and of 1 if that is zero."""
    eps = np.finfo(dtype).eps
    return eps * size if size else eps


class _Gbsv(ByMatrix):
    """`BandedSolve` with rows of zeros before the diagonals, as many as there are below."""

    below: int
    above: int

    signature = "rn,nk->nk"
    takes_nan = True

    def one(self, *matrices: Any) -> Any:
        return BandedSolve(self.below, self.above).one(matrices[0][self.below :], matrices[1])

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        return np.linalg.LinAlgError("singular matrix")

    def lower(self, ab: ShapedArray, b: ShapedArray) -> Form:
        n, k = b.shape[-2:]
        stack = b.shape[:-2]
        arrays = (
            Array(ab.shape, ab.dtype),
            Array(b.shape, b.dtype),
            Array(ab.shape, ab.dtype, by_columns(ab), start=0),
            Array(b.shape, b.dtype, by_columns(b), start=1),
            Array((*stack, n), INT32),
            Array(stack, INT32),
        )
        counts = (n, self.below, self.above, k)
        arguments = (*counts, Ref(2), ab.shape[-2], Ref(4), Ref(3), n, Ref(5))
        call = LapackCall("gbsv", b.dtype, arguments, may_fail=True)
        return Routine(arrays, (3,), (call,), len(stack))


class BandedFactor(ByMatrix):
    """LU factors of matrices that are stored by their diagonals, with rows exchanged.

    ``bind(columns)`` with ``columns[j, below + above + i - j] = a[i, j]``, as LAPACK stores them:
    the first ``below`` numbers of every column are room for the diagonals that exchanges fill.
    Results are for `FactoredBandedSolve`: the factors, and pivots (int32) counted from 1.

    Args:
        below: Number of diagonals below the main one.
        above: Number of those above.
    """

    below: int
    above: int

    signature = "nr->nr,n"
    kinds = "ai"
    takes_nan = True

    def abstract_eval(self, *avals: ShapedArray) -> Any:
        _check_columns(self.name, avals[0], self.below, self.above)
        return super().abstract_eval(*avals)

    def one(self, *matrices: Any) -> Any:
        (columns,) = matrices
        (gbtrf,) = scipy_linalg().get_lapack_funcs(("gbtrf",), (columns,))
        factors, pivots, _ = gbtrf(columns.T, self.below, self.above)
        return [factors.T, pivots + 1]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (columns,) = avals
        if not math.prod(columns.shape):
            return Extern()
        n, rows = columns.shape[-2:]
        stack = columns.shape[:-2]
        arrays = (
            Array(columns.shape, columns.dtype),
            Array(columns.shape, columns.dtype, start=0),
            Array((*stack, n), INT32),
            Array(stack, INT32),
        )
        arguments = (n, n, self.below, self.above, Ref(1), rows, Ref(2), Ref(3))
        call = LapackCall("gbtrf", columns.dtype, arguments)
        return Routine(arrays, (1, 2), (call,), len(stack))


class FactoredBandedSolve(ByMatrix):
    """``x`` with ``a x = b``, or ``a^T x = b``: ``bind(factors, pivots, b)`` by a `BandedFactor`.

    Args:
        below: Number of diagonals of ``a`` below the main one.
        above: Number of those above.
        is_transposed: Whether the transposed matrix is meant.
    """

    below: int
    above: int
    is_transposed: bool = False

    signature = "nr,n,nk->nk"
    kinds = "2"
    takes_nan = True

    def abstract_eval(self, *avals: ShapedArray) -> Any:
        _check_columns(self.name, avals[0], self.below, self.above)
        return super().abstract_eval(*avals)

    def one(self, *matrices: Any) -> Any:
        factors, pivots, b = matrices
        if not b.size:
            return [b]
        (gbtrs,) = scipy_linalg().get_lapack_funcs(("gbtrs",), (factors, b))
        way = int(self.is_transposed)
        return [gbtrs(factors.T, self.below, self.above, b, pivots - 1, trans=way)[0]]

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        factors, pivots, b = avals
        if not b.size:
            return Extern()
        n, k = b.shape[-2:]
        stack = b.shape[:-2]
        arrays = (
            Array(factors.shape, factors.dtype),
            Array(pivots.shape, INT32),
            Array(b.shape, b.dtype),
            Array(b.shape, b.dtype, by_columns(b), start=2),
            Array(stack, INT32),
        )
        way = "T" if self.is_transposed else "N"
        places = (Ref(0), factors.shape[-1], Ref(1), Ref(3), n, Ref(4))
        call = LapackCall("gbtrs", b.dtype, (way, n, self.below, self.above, k, *places))
        return Routine(arrays, (3,), (call,), len(stack))

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        factors, pivots, _ = primals
        if tangents[0] is not None:
            undefined(self.name, "factors")()
        return self.bind(*primals), self.bind(factors, pivots, tangents[2])

    def transpose(self, ct: Any, factors: Any, pivots: Any, b: Any) -> Sequence[Any]:
        transposed = replace(self, is_transposed=not self.is_transposed)
        return None, None, transposed.bind(factors, pivots, ct)


class PositiveBandedSolve(ByMatrix):
    """`BandedSolve` for positive definite matrices, of which one half of the diagonals is given."""

    lower_half: bool

    signature = "rn,nk->nk"
    takes_nan = True

    def one(self, *matrices: Any) -> Any:
        ab, b = matrices
        if not b.size:
            return [b]
        return [scipy_linalg().solveh_banded(ab, b, lower=self.lower_half, check_finite=False)]

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        return np.linalg.LinAlgError(f"{value}th leading minor not positive definite")

    def lower(self, ab: ShapedArray, b: ShapedArray) -> Form:
        if not b.size:
            recipe = Recipe(ab, b)
            return recipe.form(recipe.inputs[1])
        n, k = b.shape[-2:]
        arrays = (
            Array(ab.shape, ab.dtype),
            Array(b.shape, b.dtype),
            Array(ab.shape, ab.dtype, by_columns(ab), start=0),
            Array(b.shape, b.dtype, by_columns(b), start=1),
            Array(b.shape[:-2], INT32),
        )
        half, rows = "L" if self.lower_half else "U", ab.shape[-2]
        arguments = (half, n, rows - 1, k, Ref(2), rows, Ref(3), n, Ref(4))
        call = LapackCall("pbsv", b.dtype, arguments, may_fail=True)
        return Routine(arrays, (3,), (call,), b.ndim - 2)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (ab, b), (tab, tb) = primals, tangents
        out = self.bind(ab, b)
        if tab is not None:
            count = shape_of(ab)[-2] - 1
            moved = p.neg.bind(band_matmul(whole_band(tab, self.lower_half), out, count))
            tb = moved if tb is None else p.add.bind(tb, moved)
        return out, self.bind(ab, tb)

    def transpose(self, ct: Any, ab: Any, b: Any) -> Sequence[Any]:
        return None, self.bind(conjugated(ab), ct)


def whole_band(half: Value, is_lower: bool) -> Value:
    """All diagonals of Hermitian matrices, from one half of them; of the main one real parts."""
    count, n = shape_of(half)[-2] - 1, shape_of(half)[-1]
    places = slice(1, None) if is_lower else slice(0, count)
    main = part(half, slice(0, 1) if is_lower else slice(count, None), slice(None))
    if is_complex(aval_of(half).dtype):
        main = p.mul.bind(p.add.bind(main, p.conj.bind(main)), aval_of(half).dtype.type(0.5))
    if not count:
        return main
    given = part(half, places, slice(None))
    rows = []
    for i in range(count):
        # Row i of the other half, from above: diagonal count - i, or -1 - i.
        k = count - i if is_lower else -1 - i
        own = count - 1 - i
        line = part(given, slice(own, own + 1), slice(None))
        rows.append(shifted(conjugated(line), k, n))
    other = s.Concatenate(len(shape_of(half)) - 2).bind(*rows)
    order = (other, main, given) if is_lower else (given, main, other)
    return s.Concatenate(len(shape_of(half)) - 2).bind(*order)


class BandedCholesky(ByMatrix):
    """The Cholesky factor of positive definite matrices, both given by one half of the diagonals.

    Derivatives are computed with whole matrices.

    Args: lower_half: Whether these are the lower halves: ``a = c c^H``; else ``a = c^H c``.
    """

    lower_half: bool

    signature = "rn->rn"

    def one(self, *matrices: Any) -> Any:
        (ab,) = matrices
        found = scipy_linalg().cholesky_banded(ab, lower=self.lower_half)
        count, n = len(ab) - 1, ab.shape[1]
        for k in range(1, count + 1):  # what stands outside of the matrix is left as it was
            row = found[k] if self.lower_half else found[count - k]
            if self.lower_half:
                row[max(n - k, 0) :] = 0
            else:
                row[:k] = 0
        return [found]

    def harmless(self, aval: ShapedArray) -> Any:
        rows, n = aval.shape[-2:]
        return np.tile(np.eye(rows)[:, [0 if self.lower_half else -1]], n)

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        (found,) = recipe(_Pbtrf(self.lower_half), *inputs)
        rows, n = found.aval.shape[-2:]
        row, column = np.ogrid[:rows, :n]
        is_inside = row + column < n if self.lower_half else row + column >= rows - 1
        wide = recipe(s.BroadcastTo(found.aval.shape), is_inside)
        return [recipe(p.select, wide, found, found.aval.dtype.type(0))]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (ab,), (tab,) = primals, tangents
        count = shape_of(ab)[-2] - 1
        above = 0 if self.lower_half else count
        whole, moved = dense_of(ab, above), dense_of(tab, above)
        if not self.lower_half:
            whole, moved = adjoint(whole), adjoint(moved)
        _, change = Cholesky().jvp([whole], [moved])
        if self.lower_half:
            return self.bind(ab), band_of(change, count, 0)
        return self.bind(ab), band_of(adjoint(change), 0, count)


class _Pbtrf(ByLapack):
    """`BandedCholesky` of finite elements, with what stands outside of the matrix left there."""

    lower_half: bool

    signature = "rn->rn"

    def one(self, *matrices: Any) -> Any:
        return [scipy_linalg().cholesky_banded(matrices[0], lower=self.lower_half)]

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        return np.linalg.LinAlgError(f"{value}-th leading minor not positive definite")

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        (ab,) = avals
        *stack, rows, n = ab.shape
        arrays = Array(ab.shape, ab.dtype), by_column(ab, 0), Array(tuple(stack), INT32)
        words = "L" if self.lower_half else "U", n, rows - 1, Ref(1), rows, Ref(2)
        return self.form("pbtrf", ab, words, arrays, (1,))


class EighTridiagonal(ByMatrix):
    """Eigenvalues, ascending, and eigenvectors of real symmetric tridiagonal matrices.

    ``bind(d, e)`` with the main diagonals, ``(..., n)``, and those next to them, ``(..., n - 1)``.
    """

    signature = "n,e->n,nn"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        found = super().lengths(avals)
        if found["e"] != max(found["n"] - 1, 0):
            raise ShapeError(
                f"{self.name} needs one element less next to the diagonal than on it, got "
                f"{avals[0]} and {avals[1]}."
            )
        return found

    def one(self, *matrices: Any) -> Any:
        return scipy_linalg().eigh_tridiagonal(*matrices)

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        d, e = inputs
        if d.aval.shape[-1] == 1:
            return [d, recipe(s.BroadcastTo((*d.aval.shape, 1)), np.ones((), d.aval.dtype))]
        return recipe(_Stevd(), d, e)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        d, e = primals
        td, te = (instantiate(t, x) for t, x in zip(tangents, primals, strict=True))
        w, v = self.bind(d, e)
        n = shape_of(d)[-1]
        moved = p.mul.bind(s.reshape(td, (*shape_of(td), 1)), v)
        if n > 1:
            zero = np.broadcast_to(np.zeros((), aval_of(e).dtype), (*shape_of(e)[:-1], 1))
            lower = as_row(s.Concatenate(len(shape_of(e)) - 1).bind(te, zero))
            transposed = matrix_transpose(v)
            down = shifted(p.mul.bind(lower, transposed), 1, n)
            up = p.mul.bind(lower, shifted(transposed, -1, n))
            moved = p.add.bind(moved, matrix_transpose(p.add.bind(down, up)))
        inner = matmul(matrix_transpose(v), moved)
        rotation = p.scale.bind(inner, p.convert(inverse_gaps(w), aval_of(v).dtype))
        return [w, v], [diagonal(inner), matmul(v, rotation)]


class _Stevd(EighTridiagonal):
    """`EighTridiagonal` of matrices of two rows or more, of finite elements."""

    takes_nan = True

    def lower(self, *avals: ShapedArray, **_: Any) -> Form:
        d, e = avals
        *stack, n = d.shape
        size, integers = 1 + 4 * n + n * n, 3 + 5 * n
        vectors = shaped((*d.shape, n), d.dtype)
        arrays = (
            Array(d.shape, d.dtype),
            Array(e.shape, e.dtype),
            Array(d.shape, d.dtype, start=0),
            Array(e.shape, e.dtype, start=1),
            by_column(vectors),
            Array((*stack, size), d.dtype),
            Array((*stack, integers), INT32),
            Array(tuple(stack), INT32),
        )
        words = "V", n, Ref(2), Ref(3), Ref(4), n, Ref(5), size, Ref(6), integers, Ref(7)
        return Routine(arrays, (2, 4), (LapackCall("stevd", d.dtype, words, True),), len(stack))


def toeplitz_of(c: Value, r: Value) -> Value:
    """Stacked matrices with first columns ``c``, and first rows ``r`` but for the first element."""
    axis = len(shape_of(c)) - 1
    m, n = shape_of(c)[-1], shape_of(r)[-1]
    rest = s.Slice((*(0,) * axis, 1), shape_of(r), (1,) * (axis + 1)).bind(r)
    line = s.Concatenate(axis).bind(s.Reverse((axis,)).bind(c), rest)
    places = (m - 1) - np.arange(m)[:, None] + np.arange(n)
    found = Gather((axis,), "clip").bind(line, places)
    return s.moveaxis_from_front(s.moveaxis_from_front(found, axis + 1), axis + 1)


class ToeplitzSolve(ByMatrix):
    """``x`` with ``a x = b``, ``a`` constant along its diagonals: ``bind(c, r, b)``.

    ``c`` are the first columns, ``r`` the first rows, of which the first element is not read.
    """

    signature = "n,n,nk->nk"
    kinds = "2"

    def one(self, *matrices: Any) -> Any:
        c, r, b = matrices
        return [scipy_linalg().solve_toeplitz((c, r), b) if b.size else b]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        c, r, b = primals
        out = self.bind(c, r, b)
        tb = tangents[2]
        if aval_of(out).size and (tangents[0] is not None or tangents[1] is not None):
            tc, tr = (instantiate(t, x) for t, x in zip(tangents[:2], (c, r), strict=True))
            moved = p.neg.bind(matmul(toeplitz_of(tc, tr), out))
            tb = moved if tb is None else p.add.bind(tb, moved)
        return out, None if tb is None else self.bind(c, r, tb)

    def transpose(self, ct: Any, c: Any, r: Any, b: Any) -> Sequence[Any]:
        n = shape_of(c)[-1]
        if not n:
            return None, None, ct
        axis = len(shape_of(c)) - 1
        first = s.Slice((0,) * (axis + 1), (*shape_of(c)[:-1], 1), (1,) * (axis + 1)).bind(c)
        rest = s.Slice((*(0,) * axis, 1), shape_of(r), (1,) * (axis + 1)).bind(r)
        column = s.Concatenate(axis).bind(first, rest)
        return None, None, self.bind(column, c, ct)


def _check_columns(name: str, columns: ShapedArray, below: int, above: int) -> None:
    rows = 2 * below + above + 1
    if columns.ndim < 2 or columns.shape[-1] != rows:
        raise ShapeError(f"{name} needs columns of {rows} numbers, got {columns}.")


def _check_rows(name: str, ab: ShapedArray, rows: int) -> None:
    if ab.ndim < 2 or ab.shape[-2] != rows:
        raise ShapeError(f"{name} needs {rows} diagonals as rows, got {ab}.")
