"""Linear algebra of stacked matrices: the last two axes are the matrix, the others count matrices.

Derivations use the notation ``dA`` for the tangent of ``A`` and ``A^H`` for the conjugate
transpose; they follow M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), and for complex matrices S. F. Walter, L. Lehmann, "Algorithmic
differentiation of linear algebra functions" (2010). Rules are written with primitives, so that
derivatives of every order follow.

Conventions where a derivative is not unique:

* `Cholesky` and `Eigh` read one triangle, as LAPACK does; so only it receives a gradient. Functions
  that want symmetric gradients make their argument symmetric first.
* Eigenvectors of equal eigenvalues, and singular vectors of equal singular values, may be rotated
  into each other (those of both sides together): the derivative leaves out that rotation. So it is
  finite, and right for every function that does not depend on the choice of the vectors.
  Eigenvalues count as equal when they differ by less than rounding.
* The phases of complex eigenvectors of `Eigh` and of singular vectors are left where they are
  (``v^H dv`` is zero); those of `Eig` and `Qr` follow LAPACK, which makes the largest component of
  an eigenvector and the diagonal of ``R`` real.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.core.avals import Shape, ShapedArray, aval_of, shaped
from funcgrad.core.primitive import Value
from funcgrad.core.program import Program, Var
from funcgrad.dtypes import BOOL, INT64, complex_dtype, is_complex, real_dtype
from funcgrad.errors import MissingRuleError, ShapeError
from funcgrad.lowering import (
    MOST_SMALL,
    Array,
    Form,
    LapackCall,
    LibraryCall,
    Ref,
    Routine,
    Together,
    UfuncCall,
)
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import Recipe, either, places_in, shape_of, zero_jvp
from funcgrad.primitives.indexing import Demand, Gather, along_axis_indices, take_along_axis
from funcgrad.primitives.matrices import (
    BLOCK,
    INT32,
    NUMPY_LOOPS,
    ByMatrix,
    Factorization,
    System,
    adjoint,
    as_column,
    as_row,
    by_columns,
    by_kernel,
    by_numpy,
    check_matrix,
    check_square,
    check_system,
    conjugated,
    diagonal,
    diagonal_part,
    double,
    hermitian_of_lower,
    identity_like,
    is_small,
    matmul,
    matrix_transpose,
    part,
    per_matrix,
    product,
    real_of,
    scipy_linalg,
    strictly_lower,
    upper,
    where_held,
    zero_of,
)
from funcgrad.primitives.reductions import ArgMax, ReduceAll, ReduceAny, ReduceMax, ReduceProd
from funcgrad.primitives.shape import (
    BroadcastTo,
    Concatenate,
    ReduceSum,
    Reshape,
    Slice,
    Transpose,
    reshape,
)

# ----------------------------------------------------------------------------- systems and inverses

_SMALL = 24
"""Stacks of triangular systems up to this order are solved by one call for the whole stack."""


@dataclass(frozen=True)
class TriangularSolve(System):
    """``x`` with ``a x = b`` for triangular ``a``; only that triangle is read.

    ``bind(a, b)``, ``a`` of shape ``(..., n, n)``, ``b`` of shape ``(..., n, k)``.

    Args:
        lower_triangle: Which triangle of ``a`` is read.
        transpose_a: Whether ``a^T x = b`` is solved instead.
        unit_diagonal: Whether the diagonal is taken to be 1 and not read.
        is_checked: Whether singular matrices are an error; else their solutions are not finite.
    """

    lower_triangle: bool
    transpose_a: bool = False
    unit_diagonal: bool = False
    is_checked: bool = True

    def impl(self, a: Any, b: Any) -> Any:
        a, b = np.asarray(a), np.asarray(b)
        if not b.size:
            return np.zeros(b.shape, b.dtype)
        return self._solved(a, b) if self.is_checked else _or_nan(self._solved, a, b)

    def _solved(self, a: Any, b: Any) -> Any:
        if a.ndim > 2 and a.shape[-1] <= _SMALL:
            # Pivoting finds nothing to move in an upper triangle, so that zeros stay zeros.
            turn = slice(None) if self.lower_triangle == self.transpose_a else slice(None, None, -1)
            upper = self._triangle(a).swapaxes(-1, -2) if self.transpose_a else self._triangle(a)
            x = np.linalg.solve(upper[..., turn, turn], b[..., turn, :])
            return np.ascontiguousarray(x[..., turn, :])
        return np.array(per_matrix(self._solve_one, a, b)).reshape(b.shape)

    def _triangle(self, a: Any) -> Any:
        matrix = np.tril(a) if self.lower_triangle else np.triu(a)
        if self.unit_diagonal:
            diagonal = np.arange(a.shape[-1])
            matrix[..., diagonal, diagonal] = 1
        return matrix

    def _solve_one(self, a: Any, b: Any) -> Any:
        return scipy_linalg().solve_triangular(
            a,
            b,
            trans=int(self.transpose_a),
            lower=self.lower_triangle,
            unit_diagonal=self.unit_diagonal,
            check_finite=False,
        )

    def lower(self, a: ShapedArray, b: ShapedArray) -> Form:
        if is_small(a, b):
            return by_kernel(
                "triangular",
                [a, b],
                [b],
                b.shape[-1],
                may_fail=self.is_checked,
                lower=self.lower_triangle,
                transposed=self.transpose_a,
                unit=self.unit_diagonal,
            )
        # LAPACK sees the transpose of a matrix that is stored row by row.
        triangle, turn = "U" if self.lower_triangle else "L", "N" if self.transpose_a else "T"
        shape = triangle, turn, self.unit_diagonal
        return Routine(
            (Array(a.shape, a.dtype), Array(b.shape, b.dtype), *_substitution_arrays(b, 1)),
            (2,),
            tuple(_substitution(b, shape, 0, 2, self.is_checked)),
            a.ndim - 2,
        )

    def refusal(self, operand: int, value: int, position: int, *avals: Any, **_: Any) -> Exception:
        a = avals[0]
        if a.ndim > 2 and a.shape[-1] <= _SMALL:
            return super().refusal(operand, value, position, *avals)
        return np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {value - 1}")

    def abstract_eval(self, a: ShapedArray, b: ShapedArray) -> ShapedArray:
        check_system(self.name, a, b)
        return shaped(b.shape, b.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a, b), (ta, tb) = primals, tangents
        out = self.bind(a, b)
        if ta is not None:
            # a dx = db - da x
            moved = p.neg.bind(matmul(self._read(ta), out))
            tb = moved if tb is None else p.add.bind(tb, moved)
        return out, self.bind(a, tb)

    def _read(self, ta: Value) -> Value:
        """The part of a tangent that the operation reads, transposed if it does so."""
        read = matrix_transpose(ta) if not self.lower_triangle else ta
        strict = strictly_lower(read)
        read = strict if self.unit_diagonal else p.add.bind(strict, diagonal_part(read))
        return matrix_transpose(read) if self.lower_triangle == self.transpose_a else read

    def transpose(self, ct: Any, a: Any, b: Any) -> Sequence[Any]:
        return None, replace(self, transpose_a=not self.transpose_a).bind(a, ct)


def _substitution_arrays(b: ShapedArray, source: int) -> tuple[Array, ...]:
    """Arrays that `_substitution` works on, of which the first one is the result.

    Args:
        b: Type of the right-hand sides.
        source: The number of their array.
    """
    return (
        Array(b.shape, b.dtype, start=source),
        Array(b.shape[:-1], b.dtype),
        Array(b.shape[:-2], INT32),
        Array((), b.dtype, value=1),
    )


def _substitution(
    b: ShapedArray, shape: tuple[str, str, bool], matrix: int, first: int, is_checked: bool = True
) -> Iterator[LapackCall]:
    """The solution of a triangular system.

    LAPACK's routine detects zeros on the diagonal, but needs right-hand sides by columns, and wakes
    threads even for tiny systems with several of them; BLAS's does neither. So LAPACK solves for
    one right-hand side, to detect zeros, and BLAS for all of them, from the right of the transpose
    that row-major memory is to it. Threads take blocks of right-hand sides, whose size depends on
    the shapes alone.

    Args:
        b: Type of the right-hand sides.
        shape: "U" or "L", of the matrix as LAPACK sees it; "T" to solve with the transpose, else
            "N"; whether the diagonal is taken to be 1.
        matrix: Number of the array of matrices.
        first: Number of the first of `_substitution_arrays`.
        is_checked: Whether zeros on the diagonal are a failure.
    """
    (triangle, turn, is_unit), (n, k) = shape, b.shape[-2:]
    unit, lead = "U" if is_unit else "N", max(n, 1)
    a, info, one = Ref(matrix), Ref(first + 2), Ref(first + 3)
    column = Ref(first if k == 1 else first + 1)  # the other one's results are of no use
    options = triangle, turn, unit, n, min(k, 1)
    if is_checked:
        yield LapackCall("trtrs", b.dtype, (*options, a, lead, column, lead, info), may_fail=True)
        if k < 2:
            return
    turn = "N" if turn == "T" else "T"
    size = _FEW_SIDES if k <= 8 * _FEW_SIDES else 2 * _FEW_SIDES
    whole, rest = divmod(k, size)
    is_single = math.prod(b.shape[:-2]) == 1
    bounds = [(0, size, whole)] if is_single else [(i * size, size, 1) for i in range(whole)]
    for start, length, blocks in [*bounds, (whole * size, rest, 1)]:
        if length and blocks:
            part = Ref(first, start, length)
            words = "R", triangle, turn, unit, length, n, one, a, lead, part, k
            yield LapackCall("trsm", b.dtype, words, blocks=blocks)


_FEW_SIDES = 64
"""Right-hand sides of a triangular system that are worth a call."""


class LuFactor(Factorization):
    """``P A = L U`` with rows exchanged for stability; ``A`` of shape ``(..., m, n)``.

    Results: ``L`` below and ``U`` on and above the diagonal of one matrix (the unit diagonal of
    ``L`` is not stored); pivots (int32): row ``i`` was exchanged with row ``pivots[i]``; the
    permutation (int32) with ``A[permutation] = L U``.
    """

    multiple_results = True

    def impl(self, a: Any) -> Any:
        a = np.asarray(a)
        k = min(a.shape[-2:])
        lu = np.array(a)
        pivots = np.zeros((*a.shape[:-2], k), np.int32)
        permutation = np.zeros(a.shape[:-1], np.int32)
        for place in places_in(a.shape[:-2]):
            if k:
                lu[place], pivots[place] = _getrf(a[place])
            permutation[place] = _permutation_of(pivots[place], a.shape[-2])
        return [lu, pivots, permutation]

    def lower(self, a: ShapedArray) -> Form:
        if is_small(a):
            return by_kernel("lu", [a], self.abstract_eval(a))
        recipe = Recipe(a)
        lu, counted = recipe(_Getrf(), *recipe.inputs)
        permutation = recipe(_Exchanged(a.shape[-2]), counted)
        return recipe.form(lu, recipe(p.sub, counted, np.int32(1)), permutation)

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        check_matrix(self.name, a)
        pivots = shaped((*a.shape[:-2], min(a.shape[-2:])), np.dtype(np.int32))
        return [shaped(a.shape, a.dtype), pivots, shaped(a.shape[:-1], np.dtype(np.int32))]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """``L^-1 P dA U^-1 = L^-1 dL + dU U^-1``: a strictly lower plus an upper triangle.

        Where A is not square, L and U are completed by columns and rows of the identity.
        """
        (a,), (ta,) = primals, tangents
        packed, pivots, permutation = self.bind(a)
        rows, columns = shape_of(a)[-2:]
        k = min(rows, columns)
        index = reshape(permutation, (*shape_of(permutation), 1))
        permuted = take_along_axis(ta, index, len(shape_of(a)) - 2)
        left, right = _completed(packed, rows, k, True), _completed(packed, columns, k, False)
        inner = TriangularSolve(True, unit_diagonal=True).bind(left, permuted)
        both = matrix_transpose(TriangularSolve(False, True).bind(right, matrix_transpose(inner)))
        unit_left = p.add.bind(strictly_lower(left), identity_like(left))
        d_left = matmul(unit_left, strictly_lower(both))
        d_right = matmul(upper(both), upper(right))
        return [packed, pivots, permutation], [p.add.bind(d_left, d_right), None, None]


class _Getrf(Factorization):
    """The packed factors of `LuFactor`, and the pivots counted from 1.

    Args: may_fail: Whether a pivot that is 0 is a failure, or the factors are asked for anyway.
    """

    may_fail: bool = False

    failure = "Singular matrix"

    multiple_results = True

    def impl(self, a: Any) -> Any:
        lu, pivots, _ = LuFactor().impl(a)
        return [lu, pivots + np.int32(1)]

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        return LuFactor().abstract_eval(a)[:2]

    def lower(self, a: ShapedArray) -> Form:
        m, n = a.shape[-2:]
        stack = a.shape[:-2]
        arrays = (
            Array(a.shape, a.dtype),
            Array(a.shape, a.dtype, by_columns(a), start=0),
            Array((*stack, min(m, n)), INT32),
            Array(stack, INT32),
        )
        arguments = (m, n, Ref(1), max(m, 1), Ref(2), Ref(3))
        call = LapackCall("getrf", a.dtype, arguments, may_fail=self.may_fail)
        return Routine(arrays, (1, 2), (call,), len(stack))


class _Exchanged(Factorization):
    """The order of so many rows after exchanges that are counted from 1.

    Args:
        rows: Number of rows.
        is_undone: Whether they are exchanged from the last pivot to the first.
    """

    rows: int
    is_undone: bool = False

    def impl(self, pivots: Any) -> Any:
        pivots = np.asarray(pivots)
        out = np.zeros((*pivots.shape[:-1], self.rows), np.int32)
        for place in places_in(pivots.shape[:-1]):
            order = _permutation_of(pivots[place] - 1, self.rows)
            out[place] = np.argsort(order) if self.is_undone else order
        return out

    def abstract_eval(self, pivots: ShapedArray) -> ShapedArray:
        return shaped((*pivots.shape[:-1], self.rows), INT32)

    def lower(self, pivots: ShapedArray) -> Form:
        out = self.abstract_eval(pivots)
        arrays = (Array(pivots.shape, INT32), Array(out.shape, INT32, counts=True))
        # Rows are moved as they are, so that numbers of 32 bits pass for float32.
        step = -1 if self.is_undone else 1
        arguments = (1, Ref(1), max(self.rows, 1), 1, pivots.shape[-1], Ref(0), step)
        call = LapackCall("laswp", np.dtype(np.float32), arguments)
        return Routine(arrays, (1,), (call,), pivots.ndim - 1)


@lru_cache(64)
def _lapack(name: str, dtype: np.dtype[Any]) -> Any:
    """SciPy's function of a routine, which it takes longer to find than to call."""
    return scipy_linalg().get_lapack_funcs((name,), dtype=dtype)[0]


def _getrf(a: Any) -> tuple[Any, Any]:
    lu, pivots, _ = _lapack("getrf", a.dtype)(a)  # a zero pivot is no error here: the factors exist
    return lu, pivots


def _permutation_of(pivots: Any, rows: int) -> Any:
    order = list(range(rows))
    for i, j in enumerate(pivots.tolist()):
        order[i], order[j] = order[j], order[i]
    return order


class Permutation(Factorization):
    """The order of rows (int32) that the exchanges of an LU factorization lead to.

    ``bind(pivots)``, integers of shape ``(..., n)``: row ``i`` is exchanged with row ``pivots[i]``,
    from the first to the last.
    """

    jvp = zero_jvp

    def impl(self, pivots: Any) -> Any:
        pivots = np.asarray(pivots)
        out = np.empty(pivots.shape, np.int32)
        for place in places_in(pivots.shape[:-1]):
            out[place] = _permutation_of(pivots[place], pivots.shape[-1])
        return out

    def lower(self, pivots: ShapedArray) -> Form:
        recipe = Recipe(pivots)
        counted = recipe(p.add, recipe(p.Convert(INT32), *recipe.inputs), np.int32(1))
        return recipe.form(recipe(_Exchanged(pivots.shape[-1]), counted))

    def abstract_eval(self, pivots: ShapedArray) -> ShapedArray:
        if not pivots.ndim or pivots.dtype.kind not in "iu":
            raise ShapeError(f"{self.name} needs integers with at least one axis, got {pivots}.")
        return shaped(pivots.shape, np.dtype(np.int32))


def _completed(packed: Value, n: int, k: int, is_left: bool) -> Value:
    """The first ``k`` columns (or rows) of the packed factors, completed to ``(n, n)``."""
    block = part(packed, slice(None), slice(k)) if is_left else part(packed, slice(k), slice(None))
    if n == k:
        return block
    shape = shape_of(block)
    rest = np.eye(n, dtype=aval_of(packed).dtype)
    rest = rest[:, k:] if is_left else rest[k:]
    rest = np.broadcast_to(rest, (*shape[:-2], *rest.shape))
    return Concatenate(len(shape) - (1 if is_left else 2)).bind(block, rest)


@dataclass(frozen=True)
class FactoredSolve(System):
    """``x`` with ``a x = b``, given the LU factors of ``a``.

    ``bind(a, lu, pivots, b)``. The factors say how to compute, not what: derivatives are those with
    respect to ``a`` and ``b``, at the cost of substitutions only.

    Args:
        transpose_a: Whether ``a^T x = b`` is solved instead.
        is_checked: As of `TriangularSolve`.
    """

    transpose_a: bool = False
    is_checked: bool = True

    def impl(self, a: Any, lu: Any, pivots: Any, b: Any) -> Any:
        b = np.asarray(b)
        if not b.size:
            return np.zeros(b.shape, b.dtype)
        results = [
            self._solve_one(lu[place], pivots[place], b[place]) for place in places_in(b.shape[:-2])
        ]
        return np.array(results).reshape(b.shape)

    def _solve_one(self, lu: Any, pivots: Any, b: Any) -> Any:
        if not lu.diagonal().all():
            if not self.is_checked:
                return np.full_like(b, np.nan)
            raise np.linalg.LinAlgError("Singular matrix")
        x, _ = _lapack("getrs", lu.dtype)(lu, pivots, b, trans=int(self.transpose_a))
        return x

    def lower(self, a: ShapedArray, lu: ShapedArray, pivots: ShapedArray, b: ShapedArray) -> Form:
        if is_small(lu, b):
            numbers = shaped(pivots.shape, INT32)
            # The kernel does not need the matrices themselves.
            return by_kernel(
                "factored",
                [a, lu, numbers, b],
                [b],
                b.shape[-1],
                may_fail=self.is_checked,
                reads=(1, 2, 3),
                transposed=self.transpose_a,
            )
        recipe = Recipe(a, lu, pivots, b)
        counted = recipe(p.add, recipe(p.Convert(INT32), recipe.inputs[2]), np.int32(1))
        order = recipe(_Exchanged(b.shape[-2], self.transpose_a), counted)
        order = recipe(Reshape((*order.aval.shape, 1)), order)
        solve = _Substituted(self.transpose_a, self.is_checked)
        sides = recipe.inputs[3]
        if not b.size:
            return recipe.form(sides)
        if self.transpose_a:
            sides = recipe(solve, recipe.inputs[1], sides)
            return recipe.form(_rows_of(recipe, sides, order))
        return recipe.form(recipe(solve, recipe.inputs[1], _rows_of(recipe, sides, order)))

    def abstract_eval(
        self, a: ShapedArray, lu: ShapedArray, pivots: ShapedArray, b: ShapedArray
    ) -> ShapedArray:
        check_system(self.name, a, b)
        return shaped(b.shape, b.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        a, lu, pivots, b = primals
        ta, tb = tangents[0], tangents[3]
        out = self.bind(a, lu, pivots, b)
        if ta is not None:
            moved = p.neg.bind(matmul(matrix_transpose(ta) if self.transpose_a else ta, out))
            tb = moved if tb is None else p.add.bind(tb, moved)
        return out, None if tb is None else self.bind(a, lu, pivots, tb)

    def transpose(self, ct: Any, a: Any, lu: Any, pivots: Any, b: Any) -> Sequence[Any]:
        transposed = replace(self, transpose_a=not self.transpose_a)
        return None, None, None, transposed.bind(a, lu, pivots, ct)


def _rows_of(recipe: Recipe, x: Var, order: Var) -> Any:
    """The rows of stacked matrices in another order."""
    shape = x.aval.shape
    indices = along_axis_indices(shape, order, len(shape) - 2)
    return recipe(Gather(tuple(range(len(shape))), "clip"), x, *indices)


@dataclass(frozen=True)
class _Substituted(System):
    """`FactoredSolve` without exchanges of rows and without the matrices themselves.

    Args:
        transpose_a: As there.
        is_checked: Whether a zero on the diagonal is a failure, which takes a call.
    """

    transpose_a: bool
    is_checked: bool = True

    def impl(self, lu: Any, b: Any) -> Any:
        pivots = np.broadcast_to(np.arange(b.shape[-2]), b.shape[:-1])
        return FactoredSolve(self.transpose_a, self.is_checked).impl(lu, lu, pivots, b)

    def abstract_eval(self, lu: ShapedArray, b: ShapedArray) -> ShapedArray:
        return shaped(b.shape, b.dtype)

    def lower(self, lu: ShapedArray, b: ShapedArray) -> Form:
        arrays = Array(lu.shape, lu.dtype, by_columns(lu)), Array(b.shape, b.dtype)
        turn = "T" if self.transpose_a else "N"
        calls = [
            _substitution(b, (triangle, turn, triangle == "L"), 0, 2, self.is_checked)
            for triangle in ("UL" if self.transpose_a else "LU")
        ]
        every = tuple(itertools.chain(*calls))
        return Routine((*arrays, *_substitution_arrays(b, 1)), (2,), every, b.ndim - 2)


def _diagonal_of_factors(recipe: Recipe, packed: Var) -> Any:
    """The diagonal of packed factors, which lie column by column."""
    shape = packed.aval.shape
    *stack, n, _ = shape
    flat = recipe(Reshape((*stack, n * n)), recipe(Transpose(by_columns(packed.aval)), packed))
    ones = (1,) * len(stack)
    return recipe(Slice((0,) * (len(stack) + 1), (*stack, n * n), (*ones, n + 1)), flat)


@dataclass(frozen=True)
class Solve(System):
    """``x`` with ``a x = b``; ``a`` of shape ``(..., n, n)``, ``b`` of shape ``(..., n, k)``.

    Args: is_checked: As of `TriangularSolve`.
    """

    is_checked: bool = True

    def impl(self, a: Any, b: Any) -> Any:
        return np.linalg.solve(a, b) if self.is_checked else _or_nan(np.linalg.solve, a, b)

    def lower(self, a: ShapedArray, b: ShapedArray) -> Form:
        if is_small(a, b):
            return by_kernel("solve", [a, b], [b], b.shape[-1], may_fail=self.is_checked)
        if not math.prod(b.shape):
            return by_numpy(["solve"], [a, b], [b], a.ndim - 2, may_fail=True)
        # LAPACK sees the transpose of a matrix that is stored row by row: it factors that.
        (*stack, n, k), info = b.shape, Ref(5)
        arrays = (
            Array(a.shape, a.dtype),
            Array(b.shape, b.dtype),
            Array(a.shape, a.dtype, start=0),
            Array(b.shape, b.dtype, by_columns(b), start=1),
            Array((*stack, n), INT32),
            Array(tuple(stack), INT32),
        )
        lu, sides, pivots = Ref(2), Ref(3), Ref(4)
        calls = (
            LapackCall("getrf", a.dtype, (n, n, lu, n, pivots, info), self.is_checked),
            LapackCall(
                "getrs", a.dtype, ("T", n, k, lu, n, pivots, sides, n, info), self.is_checked
            ),
        )
        return Routine(arrays, (3,), calls, len(stack))

    def abstract_eval(self, a: ShapedArray, b: ShapedArray) -> ShapedArray:
        check_system(self.name, a, b)
        return shaped(b.shape, b.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        # Factored once, for the solution, its tangents and their transposes.
        (a, b), (ta, tb) = primals, tangents
        lu, pivots, _ = LuFactor().bind(p.stop_gradient.bind(a))
        solve = FactoredSolve(is_checked=self.is_checked)
        return solve.jvp([a, lu, pivots, b], [ta, None, None, tb])

    def transpose(self, ct: Any, a: Any, b: Any) -> Sequence[Any]:
        return None, self.bind(matrix_transpose(a), ct)


class Inv(Factorization):
    """The inverse of every matrix.

    Args: nan_if_singular: Whether singular matrices have nan as their inverse, instead of an error:
            for the derivatives of what exists for singular matrices as well.
    """

    nan_if_singular: bool = False

    failure = "Singular matrix"

    def impl(self, a: Any) -> Any:
        return _or_nan(np.linalg.inv, a) if self.nan_if_singular else np.linalg.inv(a)

    def lower(self, a: ShapedArray) -> Form:
        may_fail = not self.nan_if_singular
        if is_small(a):
            return by_kernel("inv", [a], [a], a.shape[-1], may_fail)
        if not math.prod(a.shape):
            return by_numpy(["inv"], [a], [a], a.ndim - 2, may_fail)
        recipe, n = Recipe(a), a.shape[-1]
        packed, counted = recipe(_Getrf(may_fail), *recipe.inputs)
        order = recipe(_Exchanged(n), counted)
        order = recipe(Reshape((*order.aval.shape, 1)), order)
        # The rows of the identity, exchanged.
        sides = recipe(p.Convert(a.dtype), recipe(p.equal, order, np.arange(n, dtype=INT32)))
        out = recipe(_Substituted(False, is_checked=False), packed, sides)
        if may_fail:
            return recipe.form(out)
        diagonal = _diagonal_of_factors(recipe, packed)
        is_singular = recipe(ReduceAny((a.ndim - 2,)), recipe(p.equal, diagonal, a.dtype.type(0)))
        is_singular = recipe(Reshape((*is_singular.aval.shape, 1, 1)), is_singular)
        return recipe.form(recipe(p.select, is_singular, a.dtype.type(np.nan), out))

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        check_square(self.name, a)
        return shaped(a.shape, a.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        # d(A^-1) = -A^-1 dA A^-1
        (a,), (ta,) = primals, tangents
        out = self.bind(a)
        if not self.nan_if_singular:
            return out, p.neg.bind(matmul(out, matmul(ta, out)))
        known, spoiler = _without_nan(out)
        return out, p.scale.bind(p.neg.bind(matmul(known, matmul(ta, known))), spoiler)


def _without_nan(x: Value) -> tuple[Value, Value]:
    """``x`` with 1 for nan, and what to `scale` a product of matrices with that should be nan.

    Products of matrices spread nan to tangents that are 0; this does not.
    """
    one = aval_of(x).dtype.type(1)
    is_nan = p.isnan.bind(x)
    return p.select.bind(is_nan, one, x), p.select.bind(is_nan, aval_of(x).dtype.type(np.nan), one)


def _or_nan(function: Callable[..., Any], *matrices: Any) -> Any:
    """A function of matrices to matrices of the last one's shape, nan where it fails."""
    try:
        return function(*matrices)
    except np.linalg.LinAlgError:
        last = matrices[-1]
        if np.ndim(last) == 2:
            return np.full_like(last, np.nan)
        one_by_one = per_matrix(partial(_or_nan, function), *map(np.asarray, matrices))
        return np.reshape(one_by_one, np.shape(last))


class Pinv(Factorization):
    """The Moore-Penrose inverse of every matrix.

    Args:
        rcond: Singular values up to this part of the greatest count as zero.
        least: So do those up to that and this.
    """

    rcond: float
    least: float = 0.0

    def impl(self, a: Any) -> Any:
        if not self.least:
            return np.linalg.pinv(a, rcond=self.rcond)
        u, s, vh = np.linalg.svd(np.conj(a), full_matrices=False)
        is_large = s > self.least + self.rcond * np.max(s, -1, keepdims=True, initial=0)
        inverse = np.where(is_large, 1 / np.where(is_large, s, 1), 0)
        out = np.swapaxes(vh, -1, -2) @ (inverse[..., None] * np.swapaxes(u, -1, -2))
        return out.astype(np.asarray(a).dtype, copy=False)

    def lower(self, a: ShapedArray) -> Form:
        recipe = Recipe(a)
        x = recipe.inputs[0]
        if 0 in a.shape:
            return recipe.form(recipe(BroadcastTo(self.abstract_eval(a).shape), a.dtype.type(0)))
        u, s, vh = recipe(Svd(), recipe(p.conj, x) if is_complex(a.dtype) else x)
        rank = a.ndim - 1
        zero, one = s.aval.dtype.type(0), s.aval.dtype.type(1)
        largest = recipe(ReduceMax((rank - 1,)), s)
        least = recipe(p.mul, largest, s.aval.dtype.type(self.rcond))
        least = recipe(p.add, least, s.aval.dtype.type(self.least))
        is_large = recipe(p.less, recipe(Reshape((*least.aval.shape, 1)), least), s)
        inverse = recipe(
            p.select, is_large, recipe(p.div, one, recipe(p.select, is_large, s, one)), zero
        )
        inverse = recipe(Reshape((*s.aval.shape, 1)), inverse)
        if is_complex(a.dtype):
            inverse = recipe(p.Convert(a.dtype), inverse)
        swap = Transpose(by_columns(a))
        left, right = recipe(swap, vh), recipe(p.mul, inverse, recipe(swap, u))
        return recipe.form(recipe(product(a.ndim), left, right))

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        check_matrix(self.name, a)
        *stack, m, n = a.shape
        return shaped((*stack, n, m), a.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """``dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P`` at constant rank.

        Source: G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10 (1973) 413.
        """
        (a,), (ta,) = primals, tangents
        out = self.bind(a)
        adjoint_ta = adjoint(ta)
        inside = _narrow_product(out, ta, out)
        left = _narrow_product(out, adjoint(out), adjoint_ta)
        right = _narrow_product(adjoint_ta, adjoint(out), out)
        left = p.sub.bind(left, _narrow_product(left, a, out))
        right = p.sub.bind(right, _narrow_product(out, a, right))
        return out, p.sub.bind(p.add.bind(left, right), inside)


def _narrow_product(x: Value, y: Value, z: Value) -> Value:
    """``x y z`` of a flat, a tall and a flat matrix, or the reverse, by way of the small product.

    A matrix as large as the square of the long side is never made.
    """
    rows, columns = shape_of(x)[-2:]
    return matmul(matmul(x, y), z) if rows <= columns else matmul(x, matmul(y, z))


# ------------------------------------------------------------------------------------- determinants


_MOST_COMPLETE = 32
"""Matrices of up to so many rows are factored with complete pivoting for their cofactors."""


class Cofactors(Factorization):
    """``det(A) A^-T``, the gradient of the determinant, which exists for singular A as well.

    It is computed from one LU factorization, ``P A = L U``, for which A need not be well
    conditioned. The factors are those of a matrix that differs from A by rounding. The determinant
    is the product of the diagonal of U, up to its sign, and so belongs to the factors with a small
    relative error. And every row of ``U^-1 L^-1 P`` is right for factors of which each element
    differs by rounding, which changes the determinant by rounding. So each column of the result
    is that of a matrix close to A, as if it were computed from singular values.

    Only where a pivot is 0, or so small that the inverse overflows, there is no such product. Then
    the singular values of A are taken: ``A = W S V^H`` has the cofactors ``det(W) conj(W) S' V^T
    det(V^H)``, of which ``S'`` has products of all singular values but one on its diagonal.

    Source of the bounds: N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002),
    chapters 9 and 14.
    """

    def impl(self, a: Any) -> Any:
        a = np.asarray(a)
        out = np.zeros(a.shape, a.dtype)
        if out.size:
            for place in places_in(a.shape[:-2]):
                out[place] = _cofactors(a[place].astype(double(a.dtype)))
        return out

    def lower(self, a: ShapedArray) -> Form:
        recipe = Recipe(a)
        if is_small(a) and a.shape[-1] <= _MOST_COMPLETE:
            found = recipe(_Adjugate(), *recipe.inputs)
            return recipe.form(recipe(Transpose(by_columns(a)), found))
        if not math.prod(a.shape):
            return recipe.form(*recipe.inputs)
        inverse = recipe(Inv(nan_if_singular=True), *recipe.inputs)
        if is_small(a):
            # In double precision, as the kernel of the inverse factors it: with the same factors.
            sign, size = recipe(Slogdet(), recipe(p.Convert(double(a.dtype)), *recipe.inputs))
            sign = recipe(p.Convert(a.dtype), sign)
        else:
            sign, size = _sign_and_logarithm(recipe, *recipe.inputs)
        is_good = recipe(ReduceAll((a.ndim - 2, a.ndim - 1)), recipe(p.isfinite, inverse))
        is_known = recipe(ReduceAll((a.ndim - 2, a.ndim - 1)), recipe(p.isfinite, *recipe.inputs))
        is_bad = recipe(p.less, is_good, is_known)
        some_bad = recipe(ReduceAny(tuple(range(a.ndim - 2))), is_bad)
        index = recipe(p.Convert(INT64), some_bad)
        branches = _by_inverse_or_singular_values(a)
        given = *recipe.inputs, inverse, sign, size, is_bad
        return recipe.form(*recipe(either(*branches), index, *given))

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        check_square(self.name, a)
        return shaped(a.shape, a.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        # C = det(A) A^-T:  dC = tr(A^-1 dA) C - A^-T dA^T C, for regular A only.
        (a,), (ta,) = primals, tangents
        out = self.bind(a)
        inverse, spoiler = _without_nan(Inv(nan_if_singular=True).bind(a))
        trace = _trace_of_product(inverse, ta)
        product = matmul(matrix_transpose(inverse), matmul(matrix_transpose(ta), out))
        change = p.sub.bind(p.scale.bind(reshape(trace, (*shape_of(trace), 1, 1)), out), product)
        return out, p.scale.bind(change, spoiler)


def _cofactors(a: Any) -> Any:
    """Cofactors of one matrix, given by its elements."""
    lu, pivots = _getrf(a)
    (getri,) = scipy_linalg().get_lapack_funcs(("getri",), (lu,))
    inverse, info = getri(lu, pivots)
    if info or (not np.isfinite(inverse).all() and np.isfinite(a).all()):
        return _cofactors_of_singular(a)
    diagonal = np.diagonal(lu)
    size = np.abs(diagonal)
    turns = np.count_nonzero(pivots != np.arange(len(pivots))) % 2
    sign = np.prod(diagonal / size) * (-1 if turns else 1)
    # Half of it before and half of it after the inverse, because the determinant may overflow.
    half = np.exp(np.sum(np.log(size)) / 2)
    return (inverse.T * half) * (half * sign)


def _cofactors_of_singular(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    scale = np.prod(np.where(np.eye(len(s), dtype=BOOL), 1, s), -1)
    return (np.conj(u) * (scale * (np.linalg.det(u) * np.linalg.det(vh)))) @ np.conj(vh)


def _by_inverse_or_singular_values(a: ShapedArray) -> tuple[Program, Program]:
    """How the cofactors of large matrices are found.

    The arguments of both programs are ``(a, inverse, sign, size, is_bad)``: ``is_bad`` says which
    matrices of the stack need their singular values, ``size`` is the logarithm of the absolute
    values of the determinants and ``sign`` their signs.

    Returns: The program that takes the inverse of all, and the one for stacks some of which are
        bad.
    """
    sign, size = shaped(a.shape[:-2], a.dtype), shaped(a.shape[:-2], np.dtype(np.float64))
    avals = a, a, sign, size, shaped(a.shape[:-2], BOOL)
    regular, singular = Recipe(*avals), Recipe(*avals)
    matrices, *_, is_bad = singular.inputs
    is_bad = singular(Reshape((*is_bad.aval.shape, 1, 1)), is_bad)
    kept = singular(p.select, is_bad, matrices, np.eye(a.shape[-1], dtype=a.dtype))
    found = _by_singular_values(singular, kept)
    found = singular(p.select, is_bad, found, _by_inverse(singular))
    return regular.form(_by_inverse(regular)).program, singular.form(found).program


def _by_inverse(recipe: Recipe) -> Any:
    a, inverse, sign, size, _ = recipe.inputs
    # Half of it before and half of it after the inverse, because the determinant may overflow.
    half = recipe(p.Convert(a.aval.dtype), recipe(p.exp, recipe(p.mul, size, np.float64(0.5))))
    column = (*half.aval.shape, 1, 1)
    transposed = recipe(Transpose(by_columns(a.aval)), inverse)
    first = recipe(p.mul, transposed, recipe(Reshape(column), half))
    return recipe(p.mul, first, recipe(Reshape(column), recipe(p.mul, half, sign)))


def _by_singular_values(recipe: Recipe, a: Var) -> Any:
    u, s, vh = recipe(Svd(full_matrices=True), a)
    n, dtype = a.aval.shape[-1], a.aval.dtype
    row = (*s.aval.shape[:-1], 1, n)
    others = recipe(BroadcastTo(a.aval.shape), recipe(Reshape(row), s))
    others = recipe(p.select, np.eye(n, dtype=BOOL), s.aval.dtype.type(1), others)
    scale = recipe(ReduceProd((a.aval.ndim - 1,)), others)
    turn = recipe(p.mul, recipe(Det(), u), recipe(Det(), vh))
    if is_complex(dtype):
        u, vh = recipe(p.conj, u), recipe(p.conj, vh)
        scale = recipe(p.Convert(dtype), scale)
    scale = recipe(p.mul, scale, recipe(Reshape((*turn.aval.shape, 1)), turn))
    left = recipe(p.mul, u, recipe(Reshape(row), scale))
    return recipe(product(a.aval.ndim), left, vh)


class _Adjugate(Factorization):
    """``det(A) A^-1``, the transpose of `Cofactors`, for small matrices."""

    def impl(self, a: Any) -> Any:
        return np.swapaxes(Cofactors().impl(a), -1, -2)

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        return Cofactors().abstract_eval(a)

    def lower(self, a: ShapedArray) -> Form:
        return by_kernel("adjugate", [a], [a], a.shape[-1])


def _trace_of_product(x: Value, tangent: Value) -> Value:
    """``tr(x tangent)`` of every pair of matrices."""
    ndim = len(shape_of(x))
    return ReduceSum((ndim - 2, ndim - 1)).bind(p.scale.bind(tangent, matrix_transpose(x)))


class Det(Factorization):
    """The determinant of every matrix."""

    def impl(self, a: Any) -> Any:
        return np.linalg.det(a)

    def lower(self, a: ShapedArray) -> Form:
        outs = [self.abstract_eval(a)]
        if is_small(a):
            return by_kernel("det", [a], outs)
        if not math.prod(a.shape):
            return by_numpy(["det"], [a], outs, a.ndim - 2)
        recipe = Recipe(a)
        sign, size = _sign_and_logarithm(recipe, *recipe.inputs)
        # No product of pivots overflows on the way.
        found = recipe(p.Convert(a.dtype), recipe(p.exp, size))
        return recipe.form(recipe(p.mul, found, sign))

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        check_square(self.name, a)
        return shaped(a.shape[:-2], a.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        ndim = len(shape_of(a))
        change = ReduceSum((ndim - 2, ndim - 1)).bind(p.scale.bind(ta, Cofactors().bind(a)))
        return self.bind(a), change


class Slogdet(Factorization):
    """Sign (phase, if complex) and logarithm of the absolute value of the determinant."""

    multiple_results = True

    def impl(self, a: Any) -> Any:
        return list(np.linalg.slogdet(a))

    def lower(self, a: ShapedArray) -> Form:
        if is_small(a):
            return by_kernel("slogdet", [a], self.abstract_eval(a))
        if not math.prod(a.shape):
            return by_numpy(["slogdet"], [a], self.abstract_eval(a), a.ndim - 2)
        recipe = Recipe(a)
        sign, size = _sign_and_logarithm(recipe, *recipe.inputs)
        return recipe.form(sign, recipe(p.Convert(real_dtype(a.dtype)), size))

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        check_square(self.name, a)
        return [shaped(a.shape[:-2], a.dtype), shaped(a.shape[:-2], real_dtype(a.dtype))]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        # d log det A = tr(A^-1 dA): the real part changes the size, the imaginary part the phase.
        (a,), (ta,) = primals, tangents
        sign, size = self.bind(a)
        trace = _trace_of_product(Inv(nan_if_singular=True).bind(a), ta)
        if not is_complex(aval_of(a).dtype):
            return [sign, size], [None, trace]
        turning = p.mul.bind(
            p.convert(p.imag.bind(trace), aval_of(a).dtype), aval_of(a).dtype.type(1j)
        )
        return [sign, size], [p.scale.bind(turning, sign), p.real.bind(trace)]


def _sign_and_logarithm(recipe: Recipe, a: Var) -> tuple[Any, Any]:
    """The determinant of large matrices from the diagonal of their factors.

    The sign is in their dtype, the logarithm of the absolute value in double precision.
    """
    dtype, axis = a.aval.dtype, (a.aval.ndim - 2,)
    packed, counted = recipe(_Getrf(), a)
    diagonal = _diagonal_of_factors(recipe, packed)
    one, zero = dtype.type(1), dtype.type(0)
    size = recipe(p.absolute, diagonal)
    is_zero = recipe(ReduceAny(axis), recipe(p.equal, size, size.aval.dtype.type(0)))
    own = np.arange(1, a.aval.shape[-1] + 1, dtype=INT32)
    turns = recipe(p.not_equal, counted, own)
    sign = recipe(p.select, turns, dtype.type(-1), one)
    if is_complex(dtype):
        # A product of numbers of size 1.
        sign = recipe(p.mul, sign, recipe(p.div, diagonal, recipe(p.Convert(dtype), size)))
    else:
        sign = recipe(p.select, recipe(p.less, diagonal, zero), recipe(p.neg, sign), sign)
    sign = recipe(p.select, is_zero, zero, recipe(ReduceProd(axis), sign))
    logarithm = recipe(p.log, recipe(p.Convert(np.dtype(np.float64)), size))
    total = recipe(ReduceSum(axis), logarithm)
    return sign, recipe(p.select, is_zero, np.float64(-np.inf), total)


# ----------------------------------------------------------------------------------- factorizations


class Cholesky(Factorization):
    """Lower triangular ``L`` with ``L L^H = A``; the lower triangle of ``A`` is read.

    Args: nan_if_indefinite: Whether matrices that are not positive definite have a factor of nan,
            instead of an error.
    """

    nan_if_indefinite: bool = False

    failure = "Matrix is not positive definite"

    def impl(self, a: Any) -> Any:
        if not self.nan_if_indefinite:
            return np.linalg.cholesky(a)
        return np.tril(_or_nan(np.linalg.cholesky, a))

    def lower(self, a: ShapedArray) -> Form:
        recipe = Recipe(a)
        if self.nan_if_indefinite and a.size:
            return recipe.form(_factored_or_nan(recipe, *recipe.inputs))
        if is_small(a):
            return by_kernel("cholesky", [a], [a], may_fail=True)
        if not math.prod(a.shape):
            return recipe.form(*recipe.inputs)
        if a.dtype == double(a.dtype):
            return recipe.form(_lower_triangle(recipe, _factored(recipe, *recipe.inputs)))
        packed, codes = recipe(_PackedCholesky(may_fail=False), *recipe.inputs)
        pivot, own = (
            recipe(p.absolute, _diagonal_of_factors(recipe, x)) for x in (packed, *recipe.inputs)
        )
        least = recipe(p.mul, own, own.aval.dtype.type(_LEAST_PIVOT))
        is_good = recipe(
            ReduceAll((a.ndim - 2,)), recipe(p.less, least, recipe(p.mul, pivot, pivot))
        )
        is_done = recipe(ReduceAll((a.ndim - 2,)), recipe(p.equal, codes, INT32.type(0)))
        is_bad = recipe(p.not_equal, recipe(p.select, is_done, is_good, is_done), np.True_)
        some_bad = recipe(ReduceAny(tuple(range(a.ndim - 2))), is_bad)
        index = recipe(p.Convert(INT64), some_bad)
        given = index, *recipe.inputs, packed, is_bad
        return recipe.form(*recipe(either(*_once_or_twice(a)), *given))

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        check_square(self.name, a)
        return shaped(a.shape, a.dtype)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """``L^-1 dA L^-H = L^-1 dL + (L^-1 dL)^H``: the lower triangle with half the diagonal."""
        (a,), (ta,) = primals, tangents
        out = self.bind(a)
        solve = TriangularSolve(True)
        half = solve.bind(out, hermitian_of_lower(ta))
        both = solve.bind(out, adjoint(half))
        diagonal = p.mul.bind(diagonal_part(both), aval_of(a).dtype.type(0.5))
        return out, matmul(out, p.add.bind(strictly_lower(both), diagonal))


def _lower_triangle(recipe: Recipe, packed: Var) -> Any:
    is_lower = np.tri(packed.aval.shape[-1], dtype=BOOL)
    return recipe(p.select, is_lower, packed, packed.aval.dtype.type(0))


def _factored_or_nan(recipe: Recipe, a: Var) -> Any:
    """The factors, with nan in the lower triangle for matrices that are not positive definite."""
    if is_small(a.aval):
        packed = recipe(_SmallCholesky(), a)
        sizes = recipe(p.absolute, _diagonal_of_factors(recipe, packed))
        is_good = recipe(p.less, sizes.aval.dtype.type(0), sizes)
    else:
        packed, codes = recipe(_PackedCholesky(may_fail=False), a)
        is_good = recipe(p.equal, codes, INT32.type(0))
    is_good = recipe(ReduceAll((is_good.aval.ndim - 1,)), is_good)
    is_good = recipe(Reshape((*is_good.aval.shape, 1, 1)), is_good)
    return _lower_triangle(recipe, recipe(p.select, is_good, packed, a.aval.dtype.type(np.nan)))


def _factored(recipe: Recipe, a: Var) -> Any:
    """The packed factors of `Cholesky`, by way of double precision."""
    wide = recipe(p.Convert(double(a.aval.dtype)), a)
    return recipe(p.Convert(a.aval.dtype), recipe(_PackedCholesky(), wide)[0])


def _once_or_twice(a: ShapedArray) -> tuple[Program, Program]:
    """Factor large matrices in single precision, and again in double where that is not enough.

    Single precision takes half the time of double, which `numpy.linalg` computes in. Matrices that
    are nearly singular are factored once more: it fails for them, or loses the small pivots. The
    arguments of both programs are ``(a, packed, is_bad)``.

    Returns: The program where no matrix is bad, and the one for stacks in which some are.
    """
    avals = a, a, shaped(a.shape[:-2], BOOL)
    once, twice = Recipe(*avals), Recipe(*avals)
    matrices, packed, is_bad = twice.inputs
    is_bad = twice(Reshape((*is_bad.aval.shape, 1, 1)), is_bad)
    kept = twice(p.select, is_bad, matrices, np.eye(a.shape[-1], dtype=a.dtype))
    packed = twice(p.select, is_bad, _factored(twice, kept), packed)
    found = _lower_triangle(once, once.inputs[1])
    return once.form(found).program, twice.form(_lower_triangle(twice, packed)).program


class _SmallCholesky(Factorization):
    """`Cholesky` of small matrices; pivots that are not positive are found in the result."""

    name = "small_cholesky"

    def impl(self, a: Any) -> Any:
        return Cholesky(nan_if_indefinite=True).impl(a)

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        return a

    def lower(self, a: ShapedArray) -> Form:
        return by_kernel("cholesky", [a], [a])


class _PackedCholesky(Factorization):
    """`Cholesky` with anything above the diagonal, for large matrices, in their own dtype.

    Its second result is not 0 where LAPACK found a matrix not to be positive definite.

    LAPACK sees the transpose ``U^H U`` of the matrix. It is factored block by block: the block on
    the diagonal; what is right of it, a triangular system; and what that takes off the rest of the
    upper triangle, in columns of blocks.

    Args: may_fail: Whether that is a failure.
    """

    may_fail: bool = True

    failure = Cholesky.failure

    multiple_results = True

    def impl(self, a: Any) -> Any:
        codes = self.abstract_eval(aval_of(a))[1].shape
        try:
            return [Cholesky().impl(a), np.zeros(codes, INT32)]
        except np.linalg.LinAlgError:
            if self.may_fail:
                raise
            return [a, np.ones(codes, INT32)]

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        check_square(self.name, a)
        n_blocks = -(-a.shape[-1] // _size_of_blocks(a.shape[-1]))
        return [shaped(a.shape, a.dtype), shaped((*a.shape[:-2], n_blocks), INT32)]

    def lower(self, a: ShapedArray) -> Form:
        arrays = (
            Array(a.shape, a.dtype),
            Array(a.shape, a.dtype, start=0),
            Array(self.abstract_eval(a)[1].shape, INT32),
            Array((), a.dtype, value=1),
            Array((), a.dtype, value=-1),
        )
        calls = tuple(self._calls(a.shape[-1], a.dtype))
        return Routine(arrays, (1, 2), calls, a.ndim - 2)

    def _calls(self, n: int, dtype: np.dtype[Any]) -> Iterator[LibraryCall]:
        one, minus = Ref(3), Ref(4)
        size = _size_of_blocks(n)
        adjoint = "C" if is_complex(dtype) else "T"

        def block(i: int, j: int) -> Ref:
            return Ref(1, i + j * n)

        def rest(k: int, rows: int, j: int, columns: int) -> LapackCall:
            first = k + rows
            factors = block(k, first), n, block(k, j), n
            sizes = j + columns - first, columns, rows
            words = adjoint, "N", *sizes, minus, *factors, one, block(first, j), n
            return LapackCall("gemm", dtype, words)

        for k in range(0, n, size):
            rows, after = min(size, n - k), min(k + size, n)
            arguments = "U", rows, block(k, k), n, Ref(2, k // size)
            yield LapackCall("potrf", dtype, arguments, may_fail=self.may_fail)
            options, corner = ("L", "U", adjoint, "N"), block(k, k)
            columns = [(j, min(size, n - j)) for j in range(after, n, size)]
            if columns:
                yield Together(
                    tuple(
                        LapackCall(
                            "trsm", dtype, (*options, rows, w, one, corner, n, block(k, j), n)
                        )
                        for j, w in columns
                    )
                )
                yield Together(tuple(rest(k, rows, j, w) for j, w in columns))


_LEAST_PIVOT = 2.0**-11
"""The part of an element of the diagonal that a pivot keeps, at least, in single precision: about
the root of its rounding."""

_BLOCK = 64
"""Rows of the blocks of matrices of moderate size."""


def _size_of_blocks(n: int) -> int:
    """Rows of the blocks that a matrix of so many rows is factored by."""
    return _BLOCK if n <= 8 * _BLOCK else 2 * _BLOCK


def inverse_gaps(w: Value) -> Value:
    """``1 / (w_j - w_i)`` for ``w`` along the last axis; 0 if equal.

    Differences below rounding count as equal.
    """
    dtype = real_dtype(aval_of(w).dtype)
    n = shape_of(w)[-1]
    gap = p.sub.bind(as_row(w), as_column(w))
    if not n:
        return gap
    size = p.absolute.bind(w)
    largest = ReduceMax((len(shape_of(w)) - 1,)).bind(p.stop_gradient.bind(size))
    least = p.mul.bind(largest, dtype.type(n * np.finfo(dtype).eps))
    is_equal = p.less_equal.bind(p.absolute.bind(gap), reshape(least, (*shape_of(least), 1, 1)))
    one = aval_of(w).dtype.type(1)
    return _where_not(is_equal, p.div.bind(one, p.select.bind(is_equal, one, gap)))


def _where_not(mask: Value, x: Value) -> Value:
    return p.select.bind(mask, zero_of(x), x)


class Eigh(Factorization):
    """Eigenvalues, ascending, and eigenvectors (columns) of Hermitian matrices.

    The lower triangle is read.
    """

    failure = "Eigenvalues did not converge"

    multiple_results = True

    def impl(self, a: Any) -> Any:
        return list(np.linalg.eigh(a))

    def lower(self, a: ShapedArray) -> Form:
        return by_numpy(["eigh_lo"], [a], self.abstract_eval(a), a.ndim - 2, may_fail=True)

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        check_square(self.name, a)
        return [shaped(a.shape[:-1], real_dtype(a.dtype)), shaped(a.shape, a.dtype)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """With ``M = V^H dA V``: ``dw = diag M``, ``dV = V N``, ``N_ij = M_ij / (w_j - w_i)``."""
        (a,), (ta,) = primals, tangents
        w, v = self.bind(a)
        inner = matmul(adjoint(v), matmul(hermitian_of_lower(ta), v))
        rotation = p.scale.bind(inner, p.convert(inverse_gaps(w), aval_of(v).dtype))
        return [w, v], [real_of(diagonal(inner)), matmul(v, rotation)]


class Eigvalsh(Factorization):
    """Eigenvalues of Hermitian matrices, ascending; the lower triangle is read."""

    failure = "Eigenvalues did not converge"

    def impl(self, a: Any) -> Any:
        return np.linalg.eigvalsh(a)

    def lower(self, a: ShapedArray) -> Form:
        outs = [self.abstract_eval(a)]
        return by_numpy(["eigvalsh_lo"], [a], outs, a.ndim - 2, may_fail=True)

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        return Eigh().abstract_eval(a)[0]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        w, v = Eigh().bind(a)
        inner = matmul(adjoint(v), matmul(hermitian_of_lower(ta), v))
        return w, real_of(diagonal(inner))


class Eig(Factorization):
    """Eigenvalues and eigenvectors (columns) of general matrices, complex also for real ones."""

    failure = "Eigenvalues did not converge"

    multiple_results = True

    def lower(self, a: ShapedArray) -> Form:
        recipe = Recipe(a)
        return recipe.form(*recipe(_UnsafeEig(), _only_finite(recipe)))

    def impl(self, a: Any) -> Any:
        dtype = complex_dtype(np.asarray(a).dtype)
        return [np.asarray(x, dtype) for x in np.linalg.eig(a)]

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        check_square(self.name, a)
        dtype = complex_dtype(a.dtype)
        return [shaped(a.shape[:-1], dtype), shaped(a.shape, dtype)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """Derive as for `Eigh` with ``M = V^-1 dA V``, then restore length and phase."""
        (a,), (ta,) = primals, tangents
        w, v = self.bind(a)
        inner = Solve().bind(v, matmul(p.convert(ta, aval_of(v).dtype), v))
        free = matmul(v, p.scale.bind(inner, inverse_gaps(w)))
        return [w, v], [
            diagonal(inner),
            p.add.bind(free, p.scale.bind(as_row(keeping_length(v, free)), v)),
        ]


def keeping_length(v: Value, dv: Value, is_real: bool = True) -> Value:
    """``c`` such that ``dv + v c`` keeps columns of unit length.

    Args:
        v: Stacked matrices.
        dv: Their tangent.
        is_real: Whether the largest component of a column is real, and stays so.
    """
    ndim = len(shape_of(v))
    dtype = aval_of(v).dtype
    total = ReduceSum((ndim - 2,))
    longer = p.real.bind(total.bind(p.scale.bind(dv, conjugated(v))))
    if not shape_of(v)[-1] or not is_real:
        return p.convert(p.neg.bind(longer), dtype)
    largest = ArgMax(ndim - 2).bind(p.stop_gradient.bind(p.absolute.bind(v)))
    is_largest = p.equal.bind(as_row(largest), np.arange(shape_of(v)[-2])[:, None])
    component = p.real.bind(total.bind(where_held(is_largest, v)))
    turning = p.unscale.bind(p.imag.bind(total.bind(where_held(is_largest, dv))), component)
    rotated = p.mul.bind(p.convert(turning, dtype), dtype.type(1j))
    return p.neg.bind(p.add.bind(p.convert(longer, dtype), rotated))


class Eigvals(Factorization):
    """Eigenvalues of general matrices, complex also for real ones."""

    failure = "Eigenvalues did not converge"

    def lower(self, a: ShapedArray) -> Form:
        recipe = Recipe(a)
        return recipe.form(recipe(_UnsafeEigvals(), _only_finite(recipe)))

    def impl(self, a: Any) -> Any:
        return np.asarray(np.linalg.eigvals(a), complex_dtype(np.asarray(a).dtype))

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        return Eig().abstract_eval(a)[0]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        w, v = Eig().bind(a)
        inner = Solve().bind(v, matmul(p.convert(ta, aval_of(v).dtype), v))
        return w, diagonal(inner)


class _UnsafeEig(Eig):
    """`Eig` of matrices of finite elements."""

    def lower(self, a: ShapedArray) -> Form:
        return by_numpy(["eig"], [a], self.abstract_eval(a), a.ndim - 2, may_fail=True)


class _UnsafeEigvals(Eigvals):
    """`Eigvals` of matrices of finite elements."""

    def lower(self, a: ShapedArray) -> Form:
        return by_numpy(["eigvals"], [a], [self.abstract_eval(a)], a.ndim - 2, may_fail=True)


def _only_finite(recipe: Recipe) -> Any:
    """The argument of a recipe, which raises where NumPy refuses nan and inf."""
    (a,) = recipe.inputs
    is_finite = recipe(ReduceAll(tuple(range(a.aval.ndim))), recipe(p.isfinite, a))
    number = recipe(p.select, is_finite, INT64.type(0), INT64.type(1))
    message = "Array must not contain infs or NaNs"
    demand = Demand((0,), message=message, error=np.linalg.LinAlgError)
    is_known = recipe(p.equal, recipe(demand, np.zeros(1, INT64), number), INT64.type(0))
    return recipe(p.select, recipe(BroadcastTo(a.aval.shape), is_known), a, a.aval.dtype.type(0))


class Qr(Factorization):
    """``A = Q R`` with orthonormal columns of ``Q`` and upper triangular ``R``.

    Args: full_matrices: Whether ``Q`` is completed to a square matrix. Its derivative then exists
            only if that adds nothing (no more rows than columns).
    """

    full_matrices: bool = False

    multiple_results = True

    def impl(self, a: Any) -> Any:
        return list(np.linalg.qr(a, "complete" if self.full_matrices else "reduced"))

    def lower(self, a: ShapedArray) -> Form:
        recipe = Recipe(a)
        *stack, m, n = a.shape
        rows, starts, steps = self.abstract_eval(a)[1].shape[-2], (0,) * a.ndim, (1,) * a.ndim
        is_completed = self.full_matrices and m > n
        is_large = min(m, n) > MOST_SMALL and not is_completed
        dtype = a.dtype if is_large else double(a.dtype)
        packed, factors = recipe(_Reflections(dtype), *recipe.inputs)
        first = recipe(Slice(starts, (*stack, m, min(m, n)), steps), packed)
        q = recipe(_ProductOfReflections(is_completed), first, factors)
        r = recipe(Slice(starts, (*stack, rows, n), steps), packed)
        q, r = (recipe(p.Convert(a.dtype), x) for x in (q, r))
        return recipe.form(q, recipe(p.select, np.tri(rows, n, -1, dtype=BOOL), a.dtype.type(0), r))

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        check_matrix(self.name, a)
        *stack, m, n = a.shape
        k = m if self.full_matrices else min(m, n)
        return [shaped((*stack, m, k), a.dtype), shaped((*stack, k, n), a.dtype)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """With ``N = dA R^-1``: ``Q^H N = Q^H dQ + dR R^-1``, anti-Hermitian plus upper triangle.

        Of a wide matrix the first square block is factored; the rest of ``R`` is ``Q^H A``.
        """
        (a,), (ta,) = primals, tangents
        m, n = shape_of(a)[-2:]
        if self.full_matrices and m > n:
            raise MissingRuleError(
                f"qr of {aval_of(a)} with full matrices has no derivative: the completion of Q is "
                'not unique. Use mode="reduced".'
            )
        q, r = self.bind(a)
        square = slice(min(m, n))
        d_q, d_r = _qr_tangents(q, part(r, square, square), part(ta, slice(None), square))
        if m < n:
            rest = slice(m, n)
            own, moved = part(a, slice(None), rest), part(ta, slice(None), rest)
            d_rest = p.add.bind(matmul(adjoint(d_q), own), matmul(adjoint(q), moved))
            d_r = Concatenate(len(shape_of(a)) - 1).bind(d_r, d_rest)
        return [q, r], [d_q, d_r]


class _Reflections(Factorization):
    """LAPACK's factors of A: R with the reflections below, and their factors.

    Args: dtype: That which they are computed in.
    """

    dtype: np.dtype[Any]

    multiple_results = True

    def impl(self, a: Any) -> Any:
        packed, factors = np.linalg.qr(np.asarray(a, self.dtype), "raw")
        return [np.ascontiguousarray(np.swapaxes(packed, -1, -2)), factors]

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        *stack, m, n = a.shape
        return [shaped(a.shape, self.dtype), shaped((*stack, min(m, n)), self.dtype)]

    def lower(self, a: ShapedArray) -> Form:
        *stack, m, n = a.shape
        is_by_numpy = self.dtype == double(a.dtype)
        call: LibraryCall
        arrays: tuple[Array, ...] = (
            Array(a.shape, a.dtype),
            Array(a.shape, self.dtype, None if is_by_numpy else by_columns(a), start=0),
            Array((*stack, min(m, n)), self.dtype),
        )
        if is_by_numpy:  # its loops leave the results where the matrix was
            names = ("qr_r_raw", "qr_r_raw_m" if m < n else "qr_r_raw_n")
            call = UfuncCall(NUMPY_LOOPS, names, (1, 2))
        else:
            size = BLOCK * n
            arrays += Array((*stack, size), self.dtype), Array(tuple(stack), INT32)
            call = LapackCall("geqrf", self.dtype, (m, n, Ref(1), m, Ref(2), Ref(3), size, Ref(4)))
        return Routine(arrays, (1, 2), (call,), len(stack))


class _ProductOfReflections(Factorization):
    """Q of `Qr`, given the columns with reflections, and their factors.

    Args: is_completed: Whether there are more columns than reflections.
    """

    is_completed: bool

    def impl(self, packed: Any, factors: Any) -> Any:
        *stack, m, k = packed.shape
        q = np.zeros((*stack, m, m if self.is_completed else k), packed.dtype)
        q[..., :k] = packed
        name = "ungqr" if is_complex(q.dtype) else "orgqr"
        (function,) = scipy_linalg().get_lapack_funcs((name,), (q,))
        for place in np.ndindex(*stack):
            q[place] = function(q[place], factors[place])[0]
        return q

    def abstract_eval(self, packed: ShapedArray, factors: ShapedArray) -> ShapedArray:
        *stack, m, k = packed.shape
        return shaped((*stack, m, m if self.is_completed else k), packed.dtype)

    def lower(self, packed: ShapedArray, factors: ShapedArray) -> Form:
        *stack, m, k = packed.shape
        q, dtype = self.abstract_eval(packed, factors), packed.dtype
        if dtype == double(dtype):
            name = "qr_complete" if self.is_completed else "qr_reduced"
            arrays = tuple(Array(x.shape, dtype) for x in (packed, factors, q))
            return Routine(arrays, (2,), (UfuncCall(NUMPY_LOOPS, (name,), (0, 1, 2)),), len(stack))
        size = BLOCK * k
        arrays = (
            Array(packed.shape, dtype),
            Array(factors.shape, dtype),
            Array(q.shape, dtype, by_columns(q), start=0),
            Array((*stack, size), dtype),
            Array(tuple(stack), INT32),
        )
        words = m, k, k, Ref(2), m, Ref(1), Ref(3), size, Ref(4)
        name = "ungqr" if is_complex(dtype) else "orgqr"
        return Routine(arrays, (2,), (LapackCall(name, dtype, words),), len(stack))


class RawQr(ByMatrix):
    """``A = Q R`` as LAPACK leaves it: ``R`` with the reflections below, and their factors."""

    signature = "mn->mn,k"

    def lengths(self, avals: Sequence[ShapedArray]) -> dict[str, int]:
        return {**super().lengths(avals), "k": min(avals[0].shape[-2:])}

    def one(self, *matrices: Any) -> Any:
        packed, taus = np.linalg.qr(matrices[0], "raw")
        return [packed.T, taus]

    def natively(self, recipe: Recipe, *inputs: Any) -> Any:
        dtype = inputs[0].aval.dtype
        found = recipe(_Reflections(double(dtype)), *inputs)
        return [recipe(p.Convert(dtype), x) for x in found]


def _qr_tangents(q: Value, r: Value, ta: Value) -> tuple[Value, Value]:
    right = matrix_transpose(TriangularSolve(False, True).bind(r, matrix_transpose(ta)))
    inner = matmul(adjoint(q), right)
    lower = strictly_lower(inner)
    turning = p.sub.bind(lower, adjoint(lower))
    if is_complex(aval_of(q).dtype):
        # The diagonal of R stays real, so imaginary parts there turn the columns of Q.
        diagonal = diagonal_part(inner)
        turning = p.add.bind(
            turning, p.sub.bind(diagonal, p.convert(p.real.bind(diagonal), ta.dtype))
        )
    outside = p.sub.bind(right, matmul(q, inner))
    return p.add.bind(matmul(q, turning), outside), matmul(p.sub.bind(inner, turning), r)


class Svd(Factorization):
    """``A = U diag(s) V^H`` with ``s`` descending; results are ``U, s, V^H``.

    Args: full_matrices: Whether U and V are square. Derivatives then exist only of square A.
    """

    full_matrices: bool = False

    failure = "SVD did not converge"

    multiple_results = True

    def impl(self, a: Any) -> Any:
        return list(np.linalg.svd(a, full_matrices=self.full_matrices))

    def lower(self, a: ShapedArray) -> Form:
        kind = "f" if self.full_matrices else "s"
        side = "m" if a.shape[-2] < a.shape[-1] else "n"
        names = [f"svd_{kind}", f"svd_{side}_{kind}"]
        return by_numpy(names, [a], self.abstract_eval(a), a.ndim - 2, may_fail=True)

    def abstract_eval(self, a: ShapedArray) -> list[ShapedArray]:
        check_matrix(self.name, a)
        *stack, m, n = a.shape
        k = min(m, n)
        rows, columns = (m, n) if self.full_matrices else (k, k)
        shapes: list[Shape] = [(*stack, m, rows), (*stack, k), (*stack, columns, n)]
        dtypes = [a.dtype, real_dtype(a.dtype), a.dtype]
        return [shaped(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        """With ``M = U^H dA V``: ``M = (U^H dU) S + dS - S (V^H dV)``, the brackets anti-Hermitian.

        So ``dS`` is the real part of its diagonal, and both brackets follow from M and its
        adjoint.
        """
        (a,), (ta,) = primals, tangents
        if self.full_matrices and shape_of(a)[-1] != shape_of(a)[-2]:
            raise MissingRuleError(
                f"svd of {aval_of(a)} with full matrices has no derivative: the completion of U "
                "and V is not unique. Pass full_matrices=False, or compute_uv=False."
            )
        u, s, vh = self.bind(a)
        v = adjoint(vh)
        inner = matmul(adjoint(u), matmul(ta, v))
        turn_u, turn_v = _svd_rotations(inner, s)
        d_u = p.add.bind(matmul(u, turn_u), _from_outside(u, matmul(ta, v), s))
        d_v = p.add.bind(matmul(v, turn_v), _from_outside(v, matmul(adjoint(ta), u), s))
        return [u, s, vh], [d_u, real_of(diagonal(inner)), adjoint(d_v)]


def _svd_rotations(inner: Value, s: Value) -> tuple[Value, Value]:
    """``U^H dU`` and ``V^H dV`` from ``M = U^H dA V``, by their sum and their difference.

    ``M - M^H = (s_i + s_j) (U^H dU - V^H dV)`` holds for equal singular values too, and of complex
    matrices it says how far both phases move apart: half goes to each. Only the sum, from ``M +
    M^H = (s_j - s_i) (U^H dU + V^H dV)``, is not determined there.
    """
    dtype = aval_of(inner).dtype
    conjugate = adjoint(inner)
    total = p.convert(_inverse_of(p.add.bind(as_row(s), as_column(s))), dtype)
    apart = p.scale.bind(p.sub.bind(inner, conjugate), total)
    along = p.scale.bind(p.add.bind(inner, conjugate), p.convert(inverse_gaps(s), dtype))
    half = dtype.type(0.5)
    return p.mul.bind(p.add.bind(along, apart), half), p.mul.bind(p.sub.bind(along, apart), half)


def _inverse_of(s: Value) -> Value:
    """``1 / s``, and 0 where ``s`` is 0."""
    one = aval_of(s).dtype.type(1)
    is_zero = p.equal.bind(s, zero_of(s))
    return _where_not(is_zero, p.div.bind(one, p.select.bind(is_zero, one, s)))


def _from_outside(u: Value, moved: Value, s: Value) -> Value:
    """Part from outside of the space of ``u``: ``(1 - u u^H) moved / s``."""
    outside = p.sub.bind(moved, matmul(u, matmul(adjoint(u), moved)))
    return p.scale.bind(outside, as_row(_inverse_of(p.convert(s, aval_of(u).dtype))))


class SingularValues(Factorization):
    """Singular values, descending."""

    failure = "SVD did not converge"

    def impl(self, a: Any) -> Any:
        return np.linalg.svd(a, compute_uv=False)

    def lower(self, a: ShapedArray) -> Form:
        names = ["svd", "svd_m" if a.shape[-2] < a.shape[-1] else "svd_n"]
        return by_numpy(names, [a], [self.abstract_eval(a)], a.ndim - 2, may_fail=True)

    def abstract_eval(self, a: ShapedArray) -> ShapedArray:
        return Svd().abstract_eval(a)[1]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (a,), (ta,) = primals, tangents
        u, s, vh = Svd().bind(a)
        inner = matmul(adjoint(u), matmul(ta, adjoint(vh)))
        return s, real_of(diagonal(inner))
