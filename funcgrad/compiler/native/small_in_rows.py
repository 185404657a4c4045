"""One small matrix at a time, whose rows are vectors.

For matrices that are too few, or too large, to fill the lanes of vectors with: what is done to a
row is done to as many of its numbers at a time as a vector has lanes, what is done to a column to
one number after the other. Rows are filled up to whole vectors; real parts come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from funcgrad.compiler.native.elements import Element
from funcgrad.compiler.native.small_matrices import SIDES, SmallMatrices
from funcgrad.lowering import MOST_SMALL

_WIDE = 4
"""Vectors of right sides that are worked on together."""


class InRows(SmallMatrices):
    """The layout."""

    most = MOST_SMALL
    step = 8

    def __init__(self, letter: str, lanes: int) -> None:
        super().__init__(letter, lanes)
        numbers = -(-MOST_SMALL // lanes) * lanes
        self.rooms = numbers * numbers * self.unit, MOST_SMALL * _WIDE * lanes * self.unit
        self.side_step = self.line

    def single(self) -> AbstractContextManager[None]:
        return self.alone()

    def line_of(self, columns: str) -> str:
        return self.mul(self.vectors_of(columns), self.line * self.unit)

    def gap_of(self, columns: str) -> str:
        return self.mul(self.vectors_of(columns), self.line)

    def side_gap(self, vectors: str) -> str:
        return self.mul(vectors, self.line)

    def coefficient(self, place: str, gap: str) -> Element:
        with self.alone():
            x = self.element(place, gap)
        return tuple(self.spread(part) for part in x)

    def divisor_at(self, place: str, gap: str) -> tuple[str, ...]:
        with self.alone():
            divisor = self.divisor(self.element(place, gap))
        return tuple(self.spread(part) for part in divisor)

    def group(self) -> str:
        return "1"

    def vectors_of(self, columns: str) -> str:
        return self.let(f"sdiv i64 {self.add(columns, str(self.lanes - 1))}, {self.lanes}")

    @property
    def most_columns(self) -> int:
        return _WIDE * self.lanes

    # Into rows and out of them.

    def _rows(self, name: str) -> Iterator[tuple[list[str], str, str, list[str]]]:
        """The function that moves columns of a matrix.

        Yields where the parts of a vector of elements are in memory, where it is in its row, how
        far its imaginary part is from there, and masks of the parts.
        """
        size = self.unit * self.nbytes
        with (
            self.function(name, f"ptr noalias %rows, {SIDES}"),
            self.count("0", "%n") as i,
            self.count("0", "%vectors") as v,
        ):
            first = self.mul(v, self.lanes)
            column = self.add("%start", first)
            place = self.at("%matrix", (i, self.mul("%k", size)), (column, size))
            row = self.at("%rows", (i, self.mul("%vectors", self.line * self.unit)))
            rest = self.mul(self.sub("%columns", first), self.unit)
            numbers = [str(q * self.lanes) for q in range(self.unit)]
            places = [self.at(place, (number, self.nbytes)) for number in numbers]
            masks = [self.mask(self.sub(rest, number)) for number in numbers]
            yield places, self.at(row, (v, self.line)), self.side_gap("%vectors"), masks

    def write_take(self) -> None:
        for places, row, gap, masks in self._rows("take"):
            parts = [self.read(place, mask) for place, mask in zip(places, masks, strict=True)]
            self.put(self.apart(parts), row, gap)

    def write_give(self) -> None:
        for places, row, gap, masks in self._rows("give"):
            parts = self.together(self.element(row, gap))
            for part, place, mask in zip(parts, places, masks, strict=True):
                self.write(part, place, mask)

    def pack(self) -> None:
        self._move("take", "a")

    def pack_lower(self) -> None:
        self.use("take_lower", "ptr %a.own, ptr %a, i64 %n")

    def unpack_lower(self, to: str) -> None:
        self.use("give_lower", f"ptr %a.own, ptr %{to}, i64 %n")

    def unpack(self, to: str) -> None:
        self._move("give", to)

    def _move(self, function: str, x: str) -> None:
        place = f"i64 %m, i64 %n, i64 0, i64 %n, i64 {self.vectors_of('%n')}"
        self.use(function, f"ptr %a.own, ptr %{x}, i64 0, i64 0, {place}")

    def deliver(self, x: Element, to: str) -> None:
        for q, part in enumerate(x):
            place = self.at(f"%{to}", (str(q), self.nbytes))
            if self.nbytes != 8:
                part = self.let(f"fptrunc double {part} to {self.stored}")
            self.do(f"store {self.stored} {part}, ptr {place}")

    def write_identity(self) -> None:
        with (
            self.function("identity", f"ptr noalias %rows, {SIDES}"),
            self.count("0", "%n") as i,
            self.count("0", "%vectors") as v,
        ):
            columns = self._columns(self.add("%start", self.mul(v, self.lanes)))
            is_one = self.compare("icmp eq", columns, self.same(i))
            one = self.choose(is_one, self.number(1.0), self.number(0.0))
            row = self.at("%rows", (i, self.mul("%vectors", self.line * self.unit)))
            ones = (one, self.number(0.0))[: self.unit]
            self.put(ones, self.at(row, (v, self.line)), self.side_gap("%vectors"))

    def pack_pivots(self, source: str) -> None:
        with self.count("0", "%n") as p:
            short = self.let(f"load i32, ptr {self.at(f'%{source}', (p, 4))}")
            place = self.at("%pivots", (p, 8))
            self.do(f"store i64 {self.let(f'sext i32 {short} to i64')}, ptr {place}")

    def unpack_pivots(self, pivots: str, orders: str) -> None:
        words = f"ptr %pivots, ptr %{pivots}, ptr %{orders}, i64 {self.least('%m', '%n')}, i64 %m"
        self.use("pivots", words)

    def _blocks(self, name: str) -> Iterator[tuple[str, str, list[list[str]], list[str]]]:
        """The function that moves the lower triangle of a matrix, a square block at a time.

        Yields the numbers of the first row and column of a block, where the parts of its rows are
        in memory, and where those of the upper triangle are, column by column.
        """
        size = self.unit * self.nbytes
        with (
            self.function(name, "ptr noalias %rows, ptr noalias %matrix, i64 %n"),
            self.count("0", "%n", self.lanes) as i,
            self.count("0", self.add(i, "1"), self.lanes) as j,
        ):
            line = self.line_of("%n")
            last = self.sub("%n", "1")
            places = []
            for t in range(self.lanes):
                row = self.least(self.add(i, str(t)), last)
                place = self.at("%matrix", (row, self.mul("%n", size)), (j, size))
                parts = [str(q * self.lanes) for q in range(self.unit)]
                places.append([self.at(place, (part, self.nbytes)) for part in parts])
            columns = [
                self.at("%rows", (self.add(j, str(t)), line), (i, 8)) for t in range(self.lanes)
            ]
            yield i, j, places, columns

    def write_take_lower(self) -> None:
        for _, j, places, columns in self._blocks("take_lower"):
            rest = self.mul(self.sub("%n", j), self.unit)
            masks = [self.mask(self.sub(rest, str(q * self.lanes))) for q in range(self.unit)]
            rows = [
                self.apart([self.read(*pair) for pair in zip(parts, masks, strict=True)])
                for parts in places
            ]
            self._put_turned(rows, columns)

    def _put_turned(self, rows: Sequence[Element], columns: Sequence[str]) -> None:
        gap = self.gap_of("%n")
        turned = [self.transposed([row[q] for row in rows]) for q in range(self.unit)]
        for t, place in enumerate(columns):
            self.put(self.conjugate(tuple(parts[t] for parts in turned)), place, gap)

    def write_give_lower(self) -> None:
        for i, j, places, columns in self._blocks("give_lower"):
            gap = self.gap_of("%n")
            found = [self.conjugate(self.element(place, gap)) for place in columns]
            turned = [self.transposed([x[q] for x in found]) for q in range(self.unit)]
            for t, parts in enumerate(places):
                row = self.add(i, str(t))
                with self.when(self.test("slt", row, "%n")):
                    is_lower = self.mask(self.add(self.sub(row, j), "1"))
                    zeros = (self.number(0.0),) * self.unit
                    x = self.choose_element(is_lower, tuple(p[t] for p in turned), zeros)
                    self._write_row(x, parts, self.sub("%n", j))
                    with self.count(self.add(i, str(self.lanes)), "%n", self.lanes) as c:
                        distance = self.mul(self.sub(c, j), self.unit * self.nbytes)
                        right = [self.at(part, ("1", distance)) for part in parts]
                        self._write_row(zeros, right, self.sub("%n", c))

    def _write_row(self, x: Element, places: Sequence[str], rest: str) -> None:
        count = self.mul(rest, self.unit)
        for q, (part, place) in enumerate(zip(self.together(x), places, strict=True)):
            self.write(part, place, self.mask(self.sub(count, str(q * self.lanes))))

    # Algorithms.

    def write_swap(self) -> None:
        arguments = "ptr %x, i64 %line, i64 %vectors, i64 %p, i64 %q"
        with self.function("swap", arguments), self.count("0", "%vectors") as v:
            places = [self.at("%x", (i, "%line"), (v, self.line)) for i in ("%p", "%q")]
            x, y = (self.load(place) for place in places)
            self.store(y, places[0])
            self.store(x, places[1])

    def _exchanged(self, x: str, line: str, vectors: str, p: str, rows: str) -> None:
        q = self.let(f"load i64, ptr {self.at('%pivots', (p, 8))}")
        is_other = self.test("ne", p, q)
        is_row = self.test("ult", q, rows)  # pivots may come from anywhere
        with self.when(self.let(f"and i1 {is_other}, {is_row}")):
            self.use("swap", f"ptr {x}, i64 {line}, i64 {vectors}, i64 {p}, i64 {q}")

    def exchange(self, rows: str, line: str, p: str) -> None:
        vectors = self.let(f"sdiv i64 {line}, {self.line}")
        self._exchanged("%a", line, vectors, p, rows)

    def write_exchange_all(self) -> None:
        """The exchanges of all pivots; the last one first where ``%undo`` is 1."""
        arguments = "ptr noalias %x, i64 %rows, i64 %vectors, ptr noalias %pivots, i64 %undo"
        with self.function("exchange_all", arguments), self.count("0", "%rows") as q:
            line = self.mul("%vectors", self.line)
            self._exchanged("%x", line, "%vectors", self.from_either_end(q), "%rows")

    def exchange_columns(self, p: str, line: str, gap: str) -> None:
        q = self.let(f"load i64, ptr {self.at('%columns', (p, 8))}")
        is_other = self.test("ne", p, q)
        with self.when(is_other), self.alone(), self.count("0", "%n") as i:
            places = [self.place("%a", i, line, j) for j in (p, q)]
            x, y = (self.element(place, gap) for place in places)
            self.put(y, places[0], gap)
            self.put(x, places[1], gap)

    def across(self, x: str, kind: str) -> str:
        return self.spread(x, kind)

    def update(self, row: str, top: str, p: str, factor: Element, gap: str) -> None:
        factors = tuple(self.spread(part) for part in factor)
        first = self.let(f"and i64 {p}, {-self.lanes}")
        columns = self._columns(first)
        is_here = self.compare("icmp eq", columns, self.same(p))
        is_after = self.compare("icmp sgt", columns, self.same(p))
        at = self.at(row, (first, 8))
        old = self.element(at, gap)
        new = self.less_product(old, factors, self.element(self.at(top, (first, 8)), gap))
        old = self.choose_element(is_here, factors, old)
        for part, place in zip(
            self.choose_element(is_after, new, old), self.places(at, gap), strict=True
        ):
            # Volatile, or else it is a store with a mask, for which later loads have to wait.
            self.do(f"store volatile {self.vector} {part}, ptr {place}, align 8")
        with self.count(self.add(first, str(self.lanes)), "%n", self.lanes) as j:
            at = self.at(row, (j, 8))
            other = self.element(self.at(top, (j, 8)), gap)
            self.put(self.less_product(self.element(at, gap), factors, other), at, gap)

    def _columns(self, first: str) -> str:
        """The numbers of the columns of a vector."""
        numbers = ", ".join(f"i64 {t}" for t in range(self.lanes))
        return self.whole("add", self.same(first), f"<{numbers}>")

    def update_symmetric(self, j: str, root: str, line: str, gap: str) -> None:
        # The matrix is that of the upper triangle: what is left of the diagonal does not matter.
        top = self.at("%a", (j, line))
        roots = self.spread(root)
        with self.count(self.let(f"and i64 {j}, {-self.lanes}"), "%n", self.lanes) as c:
            at = self.at(top, (c, 8))
            x = tuple(self.real("fdiv", part, roots) for part in self.element(at, gap))
            is_corner = self.compare("icmp eq", self._columns(c), self.same(j))
            corner = (roots, self.number(0.0))[: self.unit]
            self.put(self.choose_element(is_corner, corner, x), at, gap)
        with self.count(self.add(j, "1"), "%n") as i:
            row = self.at("%a", (i, line))
            factor = self.coefficient(self.at(top, (i, 8)), gap)
            with self.count(self.let(f"and i64 {i}, {-self.lanes}"), "%n", self.lanes) as c:
                at = self.at(row, (c, 8))
                other = self.element(self.at(top, (c, 8)), gap)
                new = self.less_product(self.element(at, gap), factor, other, is_turned=True)
                self.put(new, at, gap)

    def is_bad(self) -> tuple[str, str]:
        bad = self.let("load i64, ptr %bad, align 8")
        return self.test("ne", bad, "0"), "0"

    def write_spoil(self) -> None:
        with self.function("spoil", "ptr noalias %x, i64 %vectors, ptr noalias %bad"):
            bad = self.let("load i64, ptr %bad, align 8")
            is_bad = self.test("ne", bad, "0")
            with self.when(is_bad), self.count("0", "%vectors") as j:
                self.store(self.nan, self.at("%x", (j, self.line)))
