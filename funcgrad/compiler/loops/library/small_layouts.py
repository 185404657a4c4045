"""The layouts of small matrices: several in the lanes of vectors, or one whose rows are vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from funcgrad.compiler.loops.language import Expression, Variable, call, equal, of
from funcgrad.compiler.loops.library.elements import Element, Index
from funcgrad.compiler.loops.library.small_matrices import (
    ARRAYS,
    MOST_IN_LANES,
    Memory,
    SmallMatrices,
)
from funcgrad.compiler.machine import FEW
from funcgrad.lowering import MOST_SMALL


class InLanes(SmallMatrices):
    """Small matrices, as many at a time as a vector has lanes.

    Element ``(i, j)`` of all of them is one vector; so what is a loop over the numbers of one
    matrix elsewhere is here the same loop over vectors, without any tails. Matrices come into this
    form, and leave it, by transposition in registers. If there are too few, the last one fills the
    other lanes.
    """

    most = MOST_IN_LANES
    most_columns = 16

    def __init__(self, name: str, letter: str, lanes: int) -> None:
        super().__init__(name, letter, lanes)
        self.group = lanes
        self.step = lanes * self.unit
        slack = lanes * lanes  # the last block may be filled up
        self.rooms = self.most**2 * self.step + slack, self.most * 16 * self.step + slack

    def one(self, place: Index) -> Expression:
        return self.near(place)

    def filled(self, number: Expression | float) -> Expression:
        return call("splat", number, self.lanes)

    def vectors_of(self, columns: Expression) -> Expression:
        return columns

    def matrices(self, pointer: Variable) -> Memory:
        return Memory(pointer, 1, self.let(self.n * self.step), self.step, self.lanes)

    def sides(self, pointer: Variable) -> Memory:
        return Memory(pointer, 2, self.let(self.vectors * self.step), self.step, self.lanes)

    @contextmanager
    def columns(self, first: Expression) -> Iterator[tuple[Expression, Expression]]:
        with self.count(first, self.n) as c:
            yield c, c

    def of_matrix(self, t: Variable, name: str) -> Memory:
        every = getattr(self, name)
        return Memory(self.let(call("advance", every.pointer, t)), every.scope, self.lanes)

    def is_any(self, flags: Expression) -> Expression:
        return call("across_maximum", flags)

    def first_bad(self) -> tuple[Expression, Expression]:
        is_bad = self.let(call("not_equal", self.integer(self.bad, 0), 0))
        which = call("select", is_bad, self.near(0), self.lanes)
        return self.is_any(is_bad), self.let(call("across_minimum", which))

    # Into lanes and out of them.

    def _move(
        self, x: str, first: Index, count: Expression, own: Expression, scope: int, gives: bool
    ) -> None:
        """So many numbers of every matrix, a square block at a time.

        What lanes without a matrix write again is what stands there.
        """
        lanes = self.lanes
        rows = [self.let(call("advance", self.array(self.real, x, t), first)) for t in range(lanes)]
        whole = self.let(count & -lanes)
        with self.count(0, whole, lanes) as i:
            self._move_block(rows, call("lanes", i, lanes), own, i, scope, gives)
        with self.when(whole < count):
            some = self.let(call("some_lanes", whole, count, lanes))
            self._move_block(rows, some, own, whole, scope, gives)

    def _move_block(
        self,
        rows: Sequence[Variable],
        index: Expression,
        own: Expression,
        i: Expression,
        scope: int,
        gives: bool,
    ) -> None:
        columns = [self.near((i + t) * self.lanes) for t in range(self.lanes)]
        if gives:
            found = [self.let(call("load", own, column, scope)) for column in columns]
            for row, x in zip(rows, self.transposed(found), strict=True):
                self.store(row, index, call(self.real, x), ARRAYS)
        else:
            found = [self.let(call("f64", call("load", row, index, ARRAYS))) for row in rows]
            for column, x in zip(columns, self.transposed(found), strict=True):
                self.store(own, column, x, scope)

    def move(self, array: str, gives: bool) -> None:
        self._move(array, 0, self.m * self.n * self.unit, self.a.pointer, self.a.scope, gives)

    def pack_lower(self) -> Memory:
        self.move("a", False)
        a = self.a
        return Memory(a.pointer, a.scope, a.step, a.line, a.gap)

    def unpack_lower(self, to: str) -> None:
        with self.count(0, self.n) as i, self.count(i + 1, self.n) as j:
            self.put(self.zero, self.a, self.a.place(i, j))
        self.move(to, True)

    def deliver(self, x: Element, to: str) -> None:
        for q, part in enumerate(x):
            self.store(self.a.pointer, self.near(q * self.lanes), part, self.a.scope)
        self._move(to, 0, call("i64", len(x)), self.a.pointer, self.a.scope, True)

    def move_sides(self, array: str, start: Variable, columns: Variable, gives: bool) -> None:
        b, unit = self.b, self.unit
        # Rows that lie side by side, as those of all columns do, are one row.
        is_all = self.let(columns >= self.k)
        rows = self.let(call("select", is_all, 1, self.n))
        count = self.let(call("select", is_all, self.n, 1) * columns * unit)
        with self.count(0, rows) as i:
            own = self.let(call("advance", b.pointer, i * b.line))
            first = self.let((i * self.k + start) * unit)
            self._move(array, first, count, own, b.scope, gives)

    def identity(self, start: Variable, columns: Variable) -> None:
        with self.count(0, self.n) as i, self.count(0, columns) as c:
            one = call("select", equal(start + c, i), 1.0, 0.0)
            ones = (self.filled(one), self.filled(0.0))[: self.unit]
            self.put(ones, self.b, self.b.place(i, c))

    # Algorithms.

    def exchange(
        self, x: Memory, rows: Expression, first: Index, p: Expression, place: Memory
    ) -> None:
        of = self.integer(place, p)
        top = self.let(p * x.line)
        with self.count(first, rows) as i:
            is_it = self.let(equal(of, i))
            with self.when(self.is_any(is_it)):
                row = self.let(i * x.line)
                with self.count(0, x.line, self.lanes) as j:
                    self._trade(x, is_it, top + j, row + j)

    def _trade(self, x: Memory, flags: Expression, one: Expression, other: Expression) -> None:
        a, b = (self.let(call("load", x.pointer, self.near(at), x.scope)) for at in (one, other))
        self.store(x.pointer, self.near(one), call("select", flags, b, a), x.scope)
        self.store(x.pointer, self.near(other), call("select", flags, a, b), x.scope)

    def exchange_columns(self, p: Variable) -> None:
        a, place = self.a, self.integer(self.exchanges, p)
        with self.count(p + 1, self.n) as j:
            is_it = self.let(equal(place, j))
            with self.when(self.is_any(is_it)), self.count(0, self.n) as i:
                for q in range(self.unit):
                    self._trade(a, is_it, a.place(i, p) + q * a.gap, a.place(i, j) + q * a.gap)

    def update(self, row: Memory, top: Memory, p: Variable, factor: Element) -> None:
        self.put(factor, row, p * row.step)
        with self.count(p + 1, self.n) as j:
            at = self.let(j * row.step)
            old, other = self.vector(row, at), self.vector(top, at)
            self.put(self.less_product(old, factor, other), row, at)


class InRows(SmallMatrices):
    """One small matrix at a time, whose rows are vectors.

    For matrices that are too few, or too large, to fill the lanes of vectors with: what is done to
    a row is done to as many of its numbers at a time as a vector has lanes, what is done to a
    column to one number after the other. Rows are filled up to whole vectors; real parts come
    first.
    """

    most = MOST_SMALL
    group = 1

    def __init__(self, name: str, letter: str, lanes: int) -> None:
        super().__init__(name, letter, lanes)
        self.most_columns = _WIDE * lanes
        numbers = -(-MOST_SMALL // lanes) * lanes
        self.rooms = numbers * numbers * self.unit, MOST_SMALL * _WIDE * lanes * self.unit

    def one(self, place: Index) -> Expression:
        return of(place)

    def filled(self, number: Expression | float) -> Expression:
        return number if isinstance(number, Expression) else call("f64", number)

    def vectors_of(self, columns: Expression) -> Expression:
        return (columns + (self.lanes - 1)) // self.lanes

    def _memory(self, pointer: Variable, scope: int, vectors: Expression, step: int) -> Memory:
        gap = self.let(vectors * self.lanes)
        return Memory(pointer, scope, self.let(gap * self.unit), step, gap)

    def matrices(self, pointer: Variable) -> Memory:
        return self._memory(pointer, 1, self.vectors_of(self.n), 1)

    def sides(self, pointer: Variable) -> Memory:
        return self._memory(pointer, 2, self.vectors, self.lanes)

    @contextmanager
    def columns(self, first: Expression) -> Iterator[tuple[Expression, Expression]]:
        with self.count(first & -self.lanes, self.n, self.lanes) as c:
            yield c, self._numbers(c)

    def _numbers(self, first: Expression) -> Expression:
        """The numbers of the columns of a vector."""
        return self.near(first) + 0

    def of_matrix(self, t: Variable, name: str) -> Memory:
        return getattr(self, name)

    def is_any(self, flags: Expression) -> Expression:
        return flags

    def first_bad(self) -> tuple[Expression, Expression]:
        return call("not_equal", self.integer(self.bad, 0), 0), of(0)

    # Into rows and out of them.

    def _parts(self, x: Expression) -> Element:
        """Elements of an array as real and imaginary parts."""
        if self.unit == 1:
            return (self.let(call("f64", x)),)
        wide = self.let(call("c128", x))
        return self.let(call("real", wide)), self.let(call("imag", wide))

    def _stored(self, x: Element) -> Expression:
        """The reverse."""
        return call(self.dtype, *(call(self.real, part) for part in x))

    def _move(
        self, x: Memory, array: str, first: Index, sizes: tuple[Expression, ...], gives: bool
    ) -> None:
        """Columns from one on of a matrix with so many rows, columns, and columns to be moved."""
        rows, line, columns = sizes
        pointer = self.array(self.dtype, array)
        whole = self.let(columns & -self.lanes)
        with self.count(0, rows) as i:
            at = self.let(call("advance", pointer, i * line + first))
            own = self.let(i * x.line)
            with self.count(0, whole, self.lanes) as c:
                self._move_vector(x, own + c, at, self.near(c), gives)
            with self.when(whole < columns):
                index = call("some_lanes", whole, columns, self.lanes)
                self._move_vector(x, own + whole, at, index, gives)

    def _move_vector(
        self, x: Memory, own: Expression, at: Expression, index: Expression, gives: bool
    ) -> None:
        if gives:
            self.store(at, index, self._stored(self.vector(x, own)), ARRAYS)
        else:
            self.put(self._parts(call("load", at, index, ARRAYS)), x, own)

    def move(self, array: str, gives: bool) -> None:
        self._move(self.a, array, 0, (self.m, self.n, self.n), gives)

    def move_sides(self, array: str, start: Variable, columns: Variable, gives: bool) -> None:
        self._move(self.b, array, start, (self.n, self.k, columns), gives)

    def pack_lower(self) -> Memory:
        pointer = self.array(self.dtype, "a")
        for i, j in self._blocks():
            rows = []
            index = call("some_lanes", j, self.n, self.lanes)
            for t in range(self.lanes):
                row = call("minimum", i + t, self.n - 1)
                at = call("advance", pointer, row * self.n)
                rows.append(self._parts(call("load", at, index, ARRAYS)))
            transposed = [self.transposed([row[q] for row in rows]) for q in range(self.unit)]
            for t, x in enumerate(zip(*transposed, strict=True)):
                self.put(x, self.a, (j + t) * self.a.line + i)
        return self.a

    def unpack_lower(self, to: str) -> None:
        pointer = self.array(self.dtype, to)
        for i, j in self._blocks():
            columns = [self.vector(self.a, (j + t) * self.a.line + i) for t in range(self.lanes)]
            transposed = [self.transposed([x[q] for x in columns]) for q in range(self.unit)]
            for t, x in enumerate(zip(*transposed, strict=True)):
                row = self.let(i + t)
                with self.when(row < self.n):
                    at = self.let(call("advance", pointer, row * self.n))
                    found = self.choose(self._numbers(j) <= row, x, self.zero)
                    index = call("some_lanes", j, self.n, self.lanes)
                    self.store(at, index, self._stored(found), ARRAYS)
                    with self.count(i + self.lanes, self.n, self.lanes) as c:
                        index = call("some_lanes", c, self.n, self.lanes)
                        self.store(at, index, self._stored(self.zero_vectors), ARRAYS)

    def _blocks(self) -> Iterator[tuple[Variable, Variable]]:
        """The first rows and columns of square blocks of a lower triangle."""
        with self.count(0, self.n, self.lanes) as i, self.count(0, i + 1, self.lanes) as j:
            yield i, j

    def deliver(self, x: Element, to: str) -> None:
        pointer = self.array(self.real, to)
        for q, part in enumerate(x):
            self.store(pointer, q, call(self.real, part), ARRAYS)

    def identity(self, start: Variable, columns: Variable) -> None:
        with self.count(0, self.n) as i, self.count(0, columns, self.lanes) as c:
            one = call("select", equal(self._numbers(start + c), i), 1.0, 0.0)
            self.put((one, *self.zero_vectors[1:]), self.b, i * self.b.line + c)

    @property
    def zero_vectors(self) -> Element:
        """Zeros in a vector."""
        return (call("splat", 0.0, self.lanes),) * self.unit

    # Algorithms.

    def exchange(
        self, x: Memory, rows: Expression, first: Index, p: Expression, place: Memory
    ) -> None:
        q = self.integer(place, p)
        # Pivots may come from anywhere.
        is_other = call("not_equal", p, q) & (q >= 0) & (q < rows)
        with self.when(is_other), self.count(0, x.line, self.lanes) as c:
            places = [self.near(i * x.line + c) for i in (p, q)]
            a, b = (self.let(call("load", x.pointer, at, x.scope)) for at in places)
            self.store(x.pointer, places[0], b, x.scope)
            self.store(x.pointer, places[1], a, x.scope)

    def exchange_columns(self, p: Variable) -> None:
        a, q = self.a, self.integer(self.exchanges, p)
        with self.when(call("not_equal", p, q)), self.count(0, self.n) as i:
            x, y = (self.element(a, a.place(i, j)) for j in (p, q))
            self.put_one(y, a, a.place(i, p))
            self.put_one(x, a, a.place(i, q))

    def update(self, row: Memory, top: Memory, p: Variable, factor: Element) -> None:
        first = self.let(p & -self.lanes)
        old, other = self.vector(row, first), self.vector(top, first)
        numbers = self.let(self._numbers(first))
        new = self.less_product(old, factor, other)
        kept = self.choose(equal(numbers, p), factor, old)
        self.put(self.choose(numbers > p, new, kept), row, first)
        with self.count(first + self.lanes, self.n, self.lanes) as j:
            old, other = self.vector(row, j), self.vector(top, j)
            self.put(self.less_product(old, factor, other), row, j)


_WIDE = FEW
"""Vectors of right-hand sides that are worked on together."""
