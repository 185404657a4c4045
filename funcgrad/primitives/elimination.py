"""LU factors of sparse matrices whose pattern, and so the pattern of the factors, is known before.

Pivots stay on the diagonal. Rows are eliminated in groups of up to `GROUP_ROWS` neighbours that
share their pattern, in an order that keeps factors sparse. What is known of a pattern is a table of
integers (`lowering.ELIMINATION_HEAD`), which both operations take as their first argument. Compiled
programs have kernels of their own for them: `loops.library.elimination`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.errors import ShapeError
from funcgrad.lowering import ELIMINATION_HEAD as HEAD
from funcgrad.lowering import ELIMINATION_RECORD as RECORD
from funcgrad.lowering import GROUP_ROWS, Array, EliminationCall, Extern, Form, Routine
from funcgrad.primitives.families import shape_of, undefined
from funcgrad.primitives.matrices import INT32
from funcgrad.primitives.shape import Concatenate, Slice, reshape


class Tables:
    """A table with names."""

    def __init__(self, table: Any) -> None:
        head = dict(zip(HEAD, table[: len(HEAD)].tolist(), strict=True))
        self.size, self.groups = head["size"], head["groups"]
        count = (self.groups + 1) * len(RECORD)
        records = table[head["records"] :][:count].reshape(-1, len(RECORD))
        self.records: Any = records.astype(np.int64)
        _, columns, sources, multiples, entries = self.records[-1]
        self.columns = table[head["columns"] :][:columns]
        self.sources = table[head["sources"] :][:sources]
        self.rows = table[head["rows"] :][:multiples]
        self.places = table[head["places"] :][:entries]
        self.numbers = table[head["numbers"] :][:entries]
        self.order = table[head["order"] :][: self.size]
        self.n_columns = int(columns)
        self.n_factors = int(GROUP_ROWS * (columns + multiples))

    def span(self, group: int, name: str) -> slice:
        """The rows, columns, ... of a group."""
        k = RECORD.index(name)
        return slice(int(self.records[group, k]), int(self.records[group + 1, k]))


class _Static(Primitive):
    """Operation of a table, which is the same for all elements of a stack."""

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
        if dims[0] is not None:
            each = (
                self.bind(
                    *(a if d is None else _row(a, i) for a, d in zip(args, dims, strict=True))
                )
                for i in range(size)
            )
            return Concatenate(0).bind(*(reshape(x, (1, *shape_of(x))) for x in each)), 0
        rest = [
            a if d is not None else np.broadcast_to(a, (size, *shape_of(a)))
            for a, d in zip(args[1:], dims[1:], strict=True)
        ]
        return self.bind(args[0], *rest), 0

    def form(self, name: str, numbers: int, *avals: ShapedArray) -> Form:
        """The form: a kernel for the table, the arguments, the result and memory of its own."""
        out = self.abstract_eval(*avals)
        if not out.size or out.dtype.kind != "f":
            return Extern()
        stack = avals[-1].shape[:-1]
        arrays = [Array(x.shape, x.dtype) for x in (*avals, out)]
        arrays.append(Array((*stack, numbers), out.dtype))
        call = EliminationCall(name, tuple(range(len(arrays))))
        return Routine(tuple(arrays), (len(avals),), (call,), len(stack))


def _row(x: Value, i: int) -> Value:
    shape = shape_of(x)
    zeros = (0,) * (len(shape) - 1)
    part = Slice((i, *zeros), (i + 1, *shape[1:]), (1,) * len(shape)).bind(x)
    return reshape(part, shape[1:])


class SparseFactor(_Static):
    """LU factors without exchanges of rows: ``bind(table, entries)``, for `FactoredSparseSolve`.

    Where a pivot is zero they are nan, and so are solutions that depend on it.

    Args:
        unknowns: Number of rows.
        count: How many numbers the factors have.
    """

    unknowns: int
    count: int

    def impl(self, table: Any, entries: Any) -> Any:
        known = Tables(table)
        out = np.empty((*entries.shape[:-1], self.count), entries.dtype)
        for place in np.ndindex(entries.shape[:-1]):
            out[place] = _factored(known, entries[place])
        return out

    def abstract_eval(self, table: ShapedArray, entries: ShapedArray) -> ShapedArray:
        _check(self.name, table, entries)
        return shaped((*entries.shape[:-1], self.count), entries.dtype)

    def lower(self, *avals: ShapedArray) -> Form:
        return self.form("factor", GROUP_ROWS * self.unknowns, *avals)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        if tangents[1] is not None:
            undefined(self.name, "entries")()
        return self.bind(*primals), None


class FactoredSparseSolve(_Static):
    """``x`` with ``a x = b``, or ``a^T x = b``: ``bind(table, factors, b)`` by a `SparseFactor`.

    Args: is_transposed: Whether the transposed matrix is meant.
    """

    is_transposed: bool = False

    def impl(self, table: Any, factors: Any, right: Any) -> Any:
        known = Tables(table)
        solve = _solved_transposed if self.is_transposed else _solved
        out = np.empty_like(right)
        for place in np.ndindex(right.shape[:-1]):
            out[(*place, known.order)] = solve(known, factors[place], right[place][known.order])
        return out

    def abstract_eval(
        self, table: ShapedArray, factors: ShapedArray, right: ShapedArray
    ) -> ShapedArray:
        _check(self.name, table, factors, right)
        return right.strong()

    def lower(self, *avals: ShapedArray) -> Form:
        name = "solve_transposed" if self.is_transposed else "solve"
        return self.form(name, avals[-1].shape[-1] + GROUP_ROWS, *avals)

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        table, factors, _ = primals
        if tangents[1] is not None:
            undefined(self.name, "factors")()
        return self.bind(*primals), self.bind(table, factors, tangents[2])

    def transpose(self, ct: Any, table: Any, factors: Any, right: Any) -> Sequence[Any]:
        transposed = replace(self, is_transposed=not self.is_transposed)
        return None, None, transposed.bind(table, factors, ct)


def _check(name: str, table: ShapedArray, *rest: ShapedArray) -> None:
    stacks = {x.shape[:-1] for x in rest}
    dtypes = {x.dtype for x in rest}
    is_right = table.ndim == 1 and table.dtype == INT32 and all(x.ndim for x in rest)
    if not (is_right and len(stacks) == len(dtypes) == 1):
        raise ShapeError(
            f"{name} needs a table and vectors, got {table}, {', '.join(map(str, rest))}."
        )


def _parts(known: Tables, factors: Any) -> tuple[Any, Any]:
    """The stored columns of U, and of L."""
    both = factors.reshape(-1, GROUP_ROWS)
    return both[: known.n_columns], both[known.n_columns :]


def _factored(known: Tables, entries: Any) -> Any:
    found = np.zeros(known.n_factors, entries.dtype)
    upper, lower = _parts(known, found)
    with np.errstate(all="ignore"):
        for group in range(known.groups):
            _eliminate(known, group, entries, upper, lower)
    return found


def _eliminate(known: Tables, group: int, entries: Any, upper: Any, lower: Any) -> None:
    """Fill in the factors of a group of rows, by those of the groups before it."""
    work = np.zeros((known.size, GROUP_ROWS), entries.dtype)
    span = known.span(group, "entry")
    work.ravel()[known.places[span]] = entries[known.numbers[span]]
    at = known.span(group, "multiple").start
    for source in known.sources[known.span(group, "source")].tolist():
        rows, columns = known.span(source, "row"), known.span(source, "column")
        for p, row in enumerate(range(rows.start, rows.stop)):
            block = upper[columns, p]
            multiple = work[row] * block[p]
            lower[at] = multiple
            behind = known.columns[columns][p + 1 :]
            work[behind] -= block[p + 1 :, None] * multiple
            at += 1
    rows, columns = known.span(group, "row"), known.span(group, "column")
    count = rows.stop - rows.start
    block = work[known.columns[columns]]
    for p in range(count):
        block[p, p] = np.divide(block[p, p] != 0, block[p, p])  # nan if it is zero
        block[p, p + 1 : count] *= block[p, p]
        block[p + 1 :, p + 1 : count] -= block[p + 1 :, p, None] * block[p, p + 1 : count]
    upper[columns] = block


def _solved(known: Tables, factors: Any, right: Any) -> Any:
    x = np.array(right)
    upper, lower = _parts(known, factors)
    for group in range(known.groups):
        rows, block = known.span(group, "row"), upper[known.span(group, "column")]
        span, count = known.span(group, "multiple"), rows.stop - rows.start
        x[rows] -= x[known.rows[span]] @ lower[span, :count]
        for p in range(count):
            x[rows.start + p + 1 : rows.stop] -= block[p, p + 1 : count] * x[rows.start + p]
    for group in reversed(range(known.groups)):
        rows, columns = known.span(group, "row"), known.span(group, "column")
        block, count = upper[columns], rows.stop - rows.start
        x[rows] -= x[known.columns[columns][count:]] @ block[count:, :count]
        for p in reversed(range(count)):
            x[rows.start + p] *= block[p, p]
            x[rows.start : rows.start + p] -= block[p, :p] * x[rows.start + p]
    return x


def _solved_transposed(known: Tables, factors: Any, right: Any) -> Any:
    x = np.array(right)
    upper, lower = _parts(known, factors)
    for group in range(known.groups):
        rows, columns = known.span(group, "row"), known.span(group, "column")
        block, count = upper[columns], rows.stop - rows.start
        for p in range(count):
            before = x[rows.start : rows.start + p]
            x[rows.start + p] = (x[rows.start + p] - block[p, :p] @ before) * block[p, p]
        x[known.columns[columns][count:]] -= block[count:, :count] @ x[rows]
    for group in reversed(range(known.groups)):
        rows, block = known.span(group, "row"), upper[known.span(group, "column")]
        span, count = known.span(group, "multiple"), rows.stop - rows.start
        for p in reversed(range(count)):
            x[rows.start + p] -= block[p, p + 1 : count] @ x[rows.start + p + 1 : rows.stop]
        x[known.rows[span]] -= lower[span, :count] @ x[rows]
    return x
