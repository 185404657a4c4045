"""Small matrices, as many at a time as a vector has lanes.

Element ``(i, j)`` of all of them is one vector; so what is a loop over the numbers of one matrix
elsewhere is here the same loop over vectors, without any tails. Matrices come into this form, and
leave it, by transposition in registers. If there are too few, the last one fills the other lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

from funcgrad.compiler.native.elements import Element
from funcgrad.compiler.native.small_matrices import SIDES, SmallMatrices

MOST_IN_LANES = 32
"""Rows and columns of the largest matrix: memory for all lanes stays in a near cache."""

_COLUMNS = 16

_MATRICES = "ptr noalias %lanes, ptr noalias %matrix, i64 %stride, i64 %last, i64 %count"


class InLanes(SmallMatrices):
    """The layout."""

    most = MOST_IN_LANES

    def __init__(self, letter: str, lanes: int) -> None:
        super().__init__(letter, lanes)
        self.step = self.side_step = self.line * self.unit
        doubles, slack = lanes * self.unit, lanes * lanes  # the last block may be filled up
        self.rooms = (
            MOST_IN_LANES * MOST_IN_LANES * doubles + slack,
            MOST_IN_LANES * _COLUMNS * doubles + slack,
        )

    def single(self) -> AbstractContextManager[None]:
        return nullcontext()

    def line_of(self, columns: str) -> str:
        return self.mul(columns, self.step)

    def gap_of(self, columns: str) -> str:
        return str(self.line)

    def side_gap(self, vectors: str) -> str:
        return str(self.line)

    def coefficient(self, place: str, gap: str) -> Element:
        return self.element(place, gap)

    def divisor_at(self, place: str, gap: str) -> tuple[str, ...]:
        return self.divisor(self.element(place, gap))

    def group(self) -> str:
        return str(self.lanes)

    def vectors_of(self, columns: str) -> str:
        return columns

    @property
    def most_columns(self) -> int:
        return _COLUMNS

    # Into lanes and out of them.

    def _blocks(self, name: str) -> Iterator[tuple[list[str], str, str]]:
        """The function that moves so many numbers of every matrix, a square block at a time.

        Yields where the rows of a block are in memory, where its columns are in lanes, and a mask
        of the numbers that are there; once for whole blocks, once for the last one.
        """
        with self.function(name, _MATRICES):
            numbers = [self.least(str(i), "%last") for i in range(self.lanes)]
            matrices = [self.at("%matrix", (number, "%stride")) for number in numbers]
            whole = self.let(f"and i64 %count, {-self.lanes}")
            with self.count("0", whole, self.lanes) as i:
                rows = [self.at(matrix, (i, self.nbytes)) for matrix in matrices]
                yield rows, self.at("%lanes", (i, self.line)), ""
            with self.when(self.test("slt", whole, "%count")):
                rows = [self.at(matrix, (whole, self.nbytes)) for matrix in matrices]
                mask = self.mask(self.sub("%count", whole))
                yield rows, self.at("%lanes", (whole, self.line)), mask

    def write_pack(self) -> None:
        for rows, lanes, mask in self._blocks("pack"):
            for i, row in enumerate(self.transposed([self.read(row, mask) for row in rows])):
                self.store(row, self.at(lanes, (str(i), self.line)))

    def write_unpack(self) -> None:
        # What lanes without a matrix write again is what stands there.
        for rows, lanes, mask in self._blocks("unpack"):
            columns = [self.load(self.at(lanes, (str(i), self.line))) for i in range(self.lanes)]
            for row, place in zip(self.transposed(columns), rows, strict=True):
                self.write(row, place, mask)

    def pack(self) -> None:
        count = self.mul(self.mul("%m", "%n"), self.unit)
        self.use("pack", f"ptr %a.own, ptr %a, i64 %stride_a, i64 %last, i64 {count}")

    def pack_lower(self) -> None:
        self.pack()

    def unpack_lower(self, to: str) -> None:
        zeros = (self.number(0.0),) * self.unit
        line, gap = self.line_of("%n"), self.gap_of("%n")
        with self.count("0", "%n") as i, self.count(self.add(i, "1"), "%n") as j:
            self.put(zeros, self.place("%a.own", i, line, j), gap)
        self.unpack(to)

    def unpack(self, to: str) -> None:
        self._unpack_into(to, self.mul(self.mul("%m", "%n"), self.unit))

    def deliver(self, x: Element, to: str) -> None:
        for q, part in enumerate(x):
            self.store(part, self.at("%a.own", (str(q), self.line)))
        self._unpack_into(to, str(len(x)))

    def _unpack_into(self, to: str, count: str) -> None:
        words = f"ptr %{to}, i64 %stride_{to}, i64 %last, i64 {count}"
        self.use("unpack", f"ptr %a.own, {words}")

    def write_take(self) -> None:
        self._move_sides("take", "pack")

    def write_give(self) -> None:
        self._move_sides("give", "unpack")

    def _move_sides(self, name: str, function: str) -> None:
        words = "i64 %stride, i64 %last"
        with self.function(name, f"ptr noalias %lanes, {SIDES}"):
            is_all = self.test("eq", "%columns", "%k")
            with self.when(is_all):
                count = self.mul(self.mul("%n", "%k"), self.unit)
                self.use(function, f"ptr %lanes, ptr %matrix, {words}, i64 {count}")
            with self.when(self.lacks(is_all)), self.count("0", "%n") as i:
                size = self.unit * self.nbytes
                lanes = self.at("%lanes", (i, self.mul("%columns", self.step)))
                row = self.at("%matrix", (i, self.mul("%k", size)), ("%start", size))
                count = self.mul("%columns", self.unit)
                self.use(function, f"ptr {lanes}, ptr {row}, {words}, i64 {count}")

    def write_identity(self) -> None:
        with (
            self.function("identity", f"ptr noalias %lanes, {SIDES}"),
            self.count("0", "%n") as i,
            self.count("0", "%columns") as c,
        ):
            is_one = self.let(f"icmp eq i64 {i}, {self.add('%start', c)}")
            one = self.let(f"select i1 {is_one}, double 1.0, double 0.0")
            ones = (self.spread(one), self.number(0.0))[: self.unit]
            lanes = self.at("%lanes", (i, self.mul("%columns", self.step)), (c, self.step))
            self.put(ones, lanes, self.line)

    def write_pack_numbers(self) -> None:
        """Integers of 32 bits of every matrix, as integers of 64 bits in lanes."""
        with self.function("pack_numbers", _MATRICES), self.count("0", str(self.lanes)) as t:
            matrix = self.at("%matrix", (self.least(t, "%last"), "%stride"))
            with self.count("0", "%count") as p:
                short = self.let(f"load i32, ptr {self.at(matrix, (p, 4))}")
                place = self.at("%lanes", (p, self.line), (t, 8))
                self.do(f"store i64 {self.let(f'sext i32 {short} to i64')}, ptr {place}")

    def pack_pivots(self, source: str) -> None:
        words = f"ptr %{source}, i64 %stride_{source}, i64 %last, i64 %n"
        self.use("pack_numbers", f"ptr %pivots, {words}")

    def unpack_pivots(self, pivots: str, orders: str) -> None:
        count = self.least("%m", "%n")
        with self.count("0", self.add("%last", "1")) as t:
            places = [self.at(f"%{x}", (t, f"%stride_{x}")) for x in (pivots, orders)]
            own = self.at("%pivots", (t, 8))
            words = ", ".join(f"ptr {place}" for place in (own, *places))
            self.use("pivots", f"{words}, i64 {count}, i64 %m")

    # Algorithms.

    def write_exchange(self) -> None:
        """Rows ``%p`` and, in every lane, the one that is given change their places."""
        arguments = "ptr noalias %x, i64 %rows, i64 %line, i64 %vectors, i64 %first, i64 %p"
        with self.function("exchange", f"{arguments}, {self.integers} %place"):
            top = self.at("%x", ("%p", "%line"))
            with self.count("%first", "%rows") as i:
                mask = self.compare("icmp eq", "%place", self.same(i))
                with self.when(self.is_some(mask)):
                    row = self.at("%x", (i, "%line"))
                    with self.count("0", "%vectors") as j:
                        places = [self.at(line, (j, self.line)) for line in (top, row)]
                        x, y = (self.load(place) for place in places)
                        self.store(self.choose(mask, y, x), places[0])
                        self.store(self.choose(mask, x, y), places[1])

    def exchange(self, rows: str, line: str, p: str) -> None:
        place = self.integers_at(self.at("%pivots", (p, self.line)))
        vectors = self.mul("%n", self.unit)
        words = f"ptr %a, i64 {rows}, i64 {line}, i64 {vectors}, i64 {self.add(p, '1')}, i64 {p}"
        self.use("exchange", f"{words}, {self.integers} {place}")

    def write_exchange_all(self) -> None:
        """The exchanges of all pivots; the last one first where ``%undo`` is 1."""
        arguments = "ptr noalias %x, i64 %rows, i64 %vectors, ptr noalias %pivots, i64 %undo"
        with self.function("exchange_all", arguments), self.count("0", "%rows") as q:
            p = self.from_either_end(q)
            place = self.integers_at(self.at("%pivots", (p, self.line)))
            words = f"i64 {self.mul('%vectors', self.line)}, i64 %vectors, i64 0, i64 {p}"
            self.use("exchange", f"ptr %x, i64 %rows, {words}, {self.integers} {place}")

    def exchange_columns(self, p: str, line: str, gap: str) -> None:
        place = self.integers_at(self.at("%columns", (p, self.line)))
        with self.count(self.add(p, "1"), "%n") as j:
            mask = self.compare("icmp eq", place, self.same(j))
            with self.when(self.is_some(mask)), self.count("0", "%n") as i:
                places = [self.place("%a", i, line, column) for column in (p, j)]
                x, y = (self.element(at, gap) for at in places)
                self.put(self.choose_element(mask, y, x), places[0], gap)
                self.put(self.choose_element(mask, x, y), places[1], gap)

    def across(self, x: str, kind: str) -> str:
        return x

    def update(self, row: str, top: str, p: str, factor: Element, gap: str) -> None:
        self.put(factor, self.at(row, (p, self.step)), gap)
        with self.count(self.add(p, "1"), "%n") as j:
            at = self.at(row, (j, self.step))
            other = self.element(self.at(top, (j, self.step)), gap)
            self.put(self.less_product(self.element(at, gap), factor, other), at, gap)

    def update_symmetric(self, j: str, root: str, line: str, gap: str) -> None:
        after = self.add(j, "1")
        self.put((root, self.number(0.0))[: self.unit], self.place("%a", j, line, j), gap)
        with self.count(after, "%n") as i:
            row = self.at("%a", (i, line))
            at = self.at(row, (j, self.step))
            factor = tuple(self.real("fdiv", part, root) for part in self.element(at, gap))
            self.put(factor, at, gap)
            with self.count(after, self.add(i, "1")) as c:
                at = self.at(row, (c, self.step))
                other = self.element(self.place("%a", c, line, j), gap)
                new = self.less_product(self.element(at, gap), other, factor, is_turned=True)
                self.put(new, at, gap)

    def is_bad(self) -> tuple[str, str]:
        kind = f"i{self.lanes}"
        mask = self.compare("icmp ne", self.integers_at("%bad"), self.integer(0))
        bits = self.let(f"bitcast {self.flags} {mask} to {kind}")
        lane = self.invoke(kind, f"llvm.cttz.{kind}", (kind, bits), ("i1", "false"))
        return self.let(f"icmp ne {kind} {bits}, 0"), self.let(f"zext {kind} {lane} to i64")

    def write_spoil(self) -> None:
        with self.function("spoil", "ptr noalias %x, i64 %vectors, ptr noalias %bad"):
            mask = self.compare("icmp ne", self.integers_at("%bad"), self.integer(0))
            with self.when(self.is_some(mask)), self.count("0", "%vectors") as j:
                place = self.at("%x", (j, self.line))
                old = self.load(place)
                self.store(self.choose(mask, self.nan, old), place)
