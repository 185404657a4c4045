"""LU factors of sparse matrices of which all places are known, and solutions by them.

Rows are eliminated in groups of a few, which are the lanes of vectors: for every column that one of
them has, there is a vector. A group is spread in memory with room for all columns. For each group
before it that it is reduced by, its pivots give vectors of multiples, and every column of that
group is one load, a few multiplications by numbers, and one store. So no two entries of a row need
be neighbours, and what is loaded by its number is a vector all the same. Rows that fill up a group
are zero.

Tables say where everything is: `lowering.ELIMINATION_HEAD`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from funcgrad.compiler.abi import ELIMINATION_WORDS
from funcgrad.compiler.loops.language import Expression, Variable, call, equal
from funcgrad.compiler.loops.library.elements import Index, Program, muladd
from funcgrad.lowering import ELIMINATION_HEAD, ELIMINATION_RECORD, GROUP_ROWS

_TABLE, _GIVEN, _FACTORS, _WORK, _RESULT = range(1, 6)
"""Scopes of memory."""


class Elimination(Program):
    """The step: `abi.ELIMINATION_WORDS`.

    Args:
        name: What is computed: ``"factor"``, ``"solve"`` or ``"solve_transposed"``.
        letter: BLAS's letter of the type: s or d.
    """

    def __init__(self, name: str, letter: str) -> None:
        super().__init__(letter, GROUP_ROWS)
        self.name = name

    def write(self) -> None:
        words = self.given(ELIMINATION_WORDS)
        self.table = self.pointer(self.address(words, "t"), "i32")
        head = {name: self.let(self.integer(k)) for k, name in enumerate(ELIMINATION_HEAD)}
        self.unknowns, self.groups = head["size"], head["groups"]
        self.head = head
        last = self.record(self.groups)
        self.n_columns = last["column"]
        with self.count(words["begin"], words["end"]) as t:
            arrays = [
                self.pointer(self.address(words, x) + t * words[f"stride_{x}"]) for x in "abcd"
            ]
            getattr(self, f"_{self.name}")(*arrays)

    # Tables.

    def integer(self, place: Index) -> Expression:
        return call("i64", call("load", self.table, place, _TABLE))

    def entry(self, name: str, place: Index) -> Variable:
        """A number of a part of the table."""
        return self.let(self.integer(self.head[name] + place))

    def record(self, group: Expression) -> dict[str, Variable]:
        """Begins of everything that a group has."""
        at = self.let(self.head["records"] + group * len(ELIMINATION_RECORD))
        return {name: self.let(self.integer(at + k)) for k, name in enumerate(ELIMINATION_RECORD)}

    def spans(self, group: Expression) -> tuple[dict[str, Variable], dict[str, Variable]]:
        """Begins and ends of everything that a group has."""
        return self.record(group), self.record(group + 1)

    def by_rows(self, count: Expression, act: Callable[[int], None]) -> None:
        """Statements for the number of rows of a group."""
        self.by_number(count, {g: partial(act, g) for g in range(1, GROUP_ROWS + 1)}, GROUP_ROWS)

    # Numbers.

    def vector(self, pointer: Expression, place: Index, scope: int) -> Variable:
        return self.let(call("load", pointer, self.near(place), scope))

    def number(self, pointer: Expression, place: Index, scope: int) -> Variable:
        return self.let(call("load", pointer, place, scope))

    @property
    def lane(self) -> Expression:
        """The number of every lane."""
        return self.near(0)

    # Factors.

    def _factor(self, given: Variable, factors: Variable, work: Variable, _: Variable) -> None:
        self.given_entries, self.factors, self.work = given, factors, work
        with self.count(0, self.unknowns) as i:
            self.store(work, self.near(i * GROUP_ROWS), self.zeros, _WORK)
        with self.count(0, self.groups) as group:
            begin, end = self.spans(group)
            with self.count(begin["entry"], end["entry"]) as k:
                x = self.number(given, self.entry("numbers", k), _GIVEN)
                self.store(work, self.entry("places", k), x, _WORK)
            at = self.let((self.n_columns + begin["multiple"]) * GROUP_ROWS)
            with self.count(begin["source"], end["source"]) as k:
                first, after = self.spans(self.entry("sources", k))
                rows = self.let(after["row"] - first["row"])
                self.by_rows(rows, partial(self._reduce, first, after["column"], at))
                self.change(at, at + rows * GROUP_ROWS)
            rows = self.let(end["row"] - begin["row"])
            self.by_rows(rows, partial(self._finish, begin, end["column"]))

    def _taken(self, row: Expression) -> Variable:
        """A column of the group, which is cleared for the next one."""
        x = self.vector(self.work, row * GROUP_ROWS, _WORK)
        self.store(self.work, self.near(row * GROUP_ROWS), self.zeros, _WORK)
        return x

    def _reduce(self, first: dict[str, Variable], end: Variable, at: Variable, count: int) -> None:
        """Take multiples of the rows of a group off the spread ones."""
        multiples: list[Variable] = []
        for p in range(count):
            x = self._taken(first["row"] + p)
            place = self.let((first["column"] + p) * GROUP_ROWS)
            for q, multiple in enumerate(multiples):
                x = self.let(muladd(multiple, self.number(self.factors, place + q, _FACTORS), x))
            x = self.let(x * self.number(self.factors, place + p, _FACTORS))
            self.store(self.factors, self.near(at + p * GROUP_ROWS), x, _FACTORS)
            multiples.append(self.let(-x))
        with self.count(first["column"] + count, end) as j:
            place = self.let(self.entry("columns", j) * GROUP_ROWS)
            x = self.vector(self.work, place, _WORK)
            for q, multiple in enumerate(multiples):
                u = self.number(self.factors, j * GROUP_ROWS + q, _FACTORS)
                x = self.let(muladd(multiple, u, x))
            self.store(self.work, self.near(place), x, _WORK)

    def _finish(self, begin: dict[str, Variable], end: Variable, count: int) -> None:
        """Eliminate the rows of the group among themselves, and store their factors."""
        multiples: list[Variable] = []
        for p in range(count):
            place = self.let((begin["column"] + p) * GROUP_ROWS)
            x = self._reduced(self._taken(begin["row"] + p), multiples, place)
            pivot = self.number(self.factors, place + p, _FACTORS)
            # Nan if it is zero: solutions of singular systems are.
            one = call("select", equal(pivot, 0.0), 0.0, call(self.real, 1.0))
            inverse = self.let(one / pivot)
            below = self.let(x * inverse)
            multiples.append(self.let(call("select", self.lane > p, -below, 0.0)))
            kept = call("select", self.lane > p, below, x)
            kept = call("select", equal(self.lane, p), inverse, kept)
            self.store(self.factors, self.near(place), kept, _FACTORS)
        with self.count(begin["column"] + count, end) as j:
            x = self._taken(self.entry("columns", j))
            self._reduced(x, multiples[: count - 1], j * GROUP_ROWS)

    def _reduced(self, x: Variable, multiples: list[Variable], place: Index) -> Variable:
        """A column of the group after the elimination of its first rows, as it is stored."""
        self.store(self.factors, self.near(place), x, _FACTORS)
        for q, multiple in enumerate(multiples):
            x = self.let(muladd(multiple, self.number(self.factors, place + q, _FACTORS), x))
            self.store(self.factors, self.near(place), x, _FACTORS)
        return x

    # Solutions.

    def _begun(self, factors: Variable, right: Variable, work: Variable) -> None:
        self.factors, self.work = factors, work
        with self.count(0, self.unknowns) as i:
            x = self.number(right, self.entry("order", i), _GIVEN)
            self.store(work, i, x, _WORK)
        self.store(work, self.near(self.unknowns), self.zeros, _WORK)

    def _ended(self, result: Variable) -> None:
        with self.count(0, self.unknowns) as i:
            self.store(result, self.entry("order", i), self.number(self.work, i, _WORK), _RESULT)

    def _solve(self, factors: Variable, right: Variable, result: Variable, work: Variable) -> None:
        self._begun(factors, right, work)
        with self.count(0, self.groups) as group:
            begin, end = self.spans(group)
            x = self.vector(work, begin["row"], _WORK)
            self._less_columns(x, (begin["multiple"], end["multiple"]), "rows", self.n_columns)
            self.store(work, self.near(begin["row"]), x, _WORK)
            self.by_rows(
                self.let(end["row"] - begin["row"]), partial(self._forwards_within, begin, x)
            )
        with self.count(0, self.groups) as i:
            begin, end = self.spans(self.let(self.groups - 1 - i))
            rows = self.let(end["row"] - begin["row"])
            x = self.vector(work, begin["row"], _WORK)
            self._less_columns(x, (begin["column"] + rows, end["column"]), "columns", 0)
            self.store(work, self.near(begin["row"]), x, _WORK)
            self.by_rows(rows, partial(self._backwards_within, begin, x))
        self._ended(result)

    def _less_columns(
        self, x: Variable, span: tuple[Expression, Expression], part: str, first: Index
    ) -> None:
        """Subtract columns times the numbers that belong to them, two at a time."""
        begin, end = span
        other = self.let(self.zeros)
        pairs = self.let(begin + ((end - begin) // 2) * 2)

        def add(total: Variable, j: Expression) -> None:
            y = self.let(-self.number(self.work, self.entry(part, j), _WORK))
            self.change(
                total,
                muladd(self.vector(self.factors, (first + j) * GROUP_ROWS, _FACTORS), y, total),
            )

        with self.count(begin, pairs, 2) as j:
            add(x, j)
            add(other, j + 1)
        with self.when(pairs < end):
            add(x, pairs)
        self.change(x, x + other)

    def _forwards_within(self, begin: dict[str, Variable], x: Variable, count: int) -> None:
        for p in range(count - 1):
            column = self.vector(self.factors, (begin["column"] + p) * GROUP_ROWS, _FACTORS)
            y = self.let(-self.number(self.work, begin["row"] + p, _WORK))
            self.change(x, muladd(call("select", self.lane > p, column, 0.0), y, x))
            self.store(self.work, self.near(begin["row"]), x, _WORK)

    def _backwards_within(self, begin: dict[str, Variable], x: Variable, count: int) -> None:
        for p in reversed(range(count)):
            column = self.vector(self.factors, (begin["column"] + p) * GROUP_ROWS, _FACTORS)
            inverse = self.number(self.factors, (begin["column"] + p) * GROUP_ROWS + p, _FACTORS)
            y = self.let(self.number(self.work, begin["row"] + p, _WORK) * inverse)
            self.change(x, muladd(call("select", self.lane < p, column, 0.0), -y, x))
            self.change(x, call("select", equal(self.lane, p), y, x))
            self.store(self.work, self.near(begin["row"]), x, _WORK)

    def _solve_transposed(
        self, factors: Variable, right: Variable, result: Variable, work: Variable
    ) -> None:
        self._begun(factors, right, work)
        with self.count(0, self.groups) as group:
            begin, end = self.spans(group)
            rows = self.let(end["row"] - begin["row"])
            self.by_rows(rows, partial(self._within_transposed, begin, False))
            x = self.vector(work, begin["row"], _WORK)
            self._spread(x, (begin["column"] + rows, end["column"]), "columns", 0)
        with self.count(0, self.groups) as i:
            begin, end = self.spans(self.let(self.groups - 1 - i))
            rows = self.let(end["row"] - begin["row"])
            self.by_rows(rows, partial(self._within_transposed, begin, True))
            x = self.vector(work, begin["row"], _WORK)
            self._spread(x, (begin["multiple"], end["multiple"]), "rows", self.n_columns)
        self._ended(result)

    def _spread(
        self, x: Variable, span: tuple[Expression, Expression], part: str, first: Index
    ) -> None:
        """Subtract products of columns and a vector from the numbers that belong to them."""
        with self.count(*span) as j:
            column = self.vector(self.factors, (first + j) * GROUP_ROWS, _FACTORS)
            place = self.entry(part, j)
            old = self.number(self.work, place, _WORK)
            self.store(self.work, place, old - call("across_radd", column * x), _WORK)

    def _within_transposed(self, begin: dict[str, Variable], is_lower: bool, count: int) -> None:
        found: dict[int, Variable] = {}
        for p in reversed(range(count)) if is_lower else range(count):
            place = self.let((begin["column"] + p) * GROUP_ROWS)
            y = self.number(self.work, begin["row"] + p, _WORK)
            for q, other in found.items():
                y = self.let(y - self.number(self.factors, place + q, _FACTORS) * other)
            if not is_lower:
                y = self.let(y * self.number(self.factors, place + p, _FACTORS))
            found[p] = y
            self.store(self.work, begin["row"] + p, y, _WORK)
