"""Matrix products of real numbers, cut into tiles that any thread can compute alone.

BLAS brings threads of its own, which wait for each other by spinning: where one of them has no
processor, all stand still until it gets one. A tile of the result depends on no other tile, so that
the threads of `runtime.threads` take tiles as they come, and who has no processor holds up one
tile at most.

A tile walks over the summed axis in blocks of `Shape.depth`. Of each block, its columns of B are
copied into panels of a few vectors, its rows of A into panels of a few rows, and for each pair of
panels the inner loop keeps a small matrix of sums in registers (Goto and van de Geijn, 2008).
Every element of the result is a sum of blocks, each a chain of fused multiplications and additions:
the same whatever the tiles are and whoever computes them.

Complex numbers are pairs of real ones: where B's element is ``c + di``, its panel has two rows
``(c, d)`` and ``(-d, c)``, which A's ``a`` and ``b`` of ``a + bi`` are multiplied with, in two sums
of their own: so the product of a matrix and its own adjoint has a diagonal that is real.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum
from functools import partial

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import TILE_WORDS
from funcgrad.compiler.native.assembly import Code, VectorAssembly

DEPTH = 256
"""Greatest length of a block of the summed axis: a panel of A stays in the nearest cache."""

SPAN = 512
"""Columns of B that are walked along together where A has few rows: their sums stay there, too."""

FEW = 8
"""The most rows of A that are few: copies of B would take longer than they save."""

CACHE_LINE = 64
"""Bytes that come from memory together."""

_STEPS = 4  # rows of B that are added up in registers, between loads and stores of sums


@dataclass(frozen=True)
class Shape:
    """What the inner loop looks like on one processor.

    Attributes:
        lanes: Numbers in a vector.
        rows: Numbers of rows that it can have, descending; multiples of 4.
        vectors: Greatest number of vectors in a row.
        few: Numbers of rows of A that are multiplied with rows of B where those are, descending.
    """

    lanes: int
    rows: tuple[int, ...]
    vectors: int
    few: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Columns of a panel of B."""
        return self.lanes * self.vectors


def inner_shape(itemsize: int, features: str) -> Shape:
    """The inner loop that fits into the registers of a processor with these features of LLVM."""
    names = set(features.split(","))
    if "+avx512f" in names:
        return Shape(64 // itemsize, (8, 4), 2, (4, 2, 1))
    if "+avx" in names:
        return Shape(32 // itemsize, (4,), 3, (2, 1))
    if "+neon" in names:
        return Shape(16 // itemsize, (8, 4), 2, (4, 2, 1))
    return Shape(16 // itemsize, (4,), 2, (2, 1))


class Kind(Enum):
    """What tiles of a product are, and what the name of their function ends with."""

    TILES = "tiles"
    """Parts of any matrix."""
    FEW = "few"
    """All of them are of a few rows of A, at least one column of it, and of B as it lies there."""
    MIRRORED = "mirrored"
    """Those of a matrix that is symmetric: half of them are copies."""


def tiles_code(letter: str, shape: Shape, kind: Kind = Kind.TILES) -> Code:
    """The tiles of products of matrices of BLAS's type ``letter``: s, d, c or z."""
    return _Assembly(letter, shape, kind).text()


class _Assembly(VectorAssembly):
    """The functions that a tile is computed with.

    Attributes:
        unit: How many real numbers make an element.
    """

    def __init__(self, letter: str, shape: Shape, kind: Kind) -> None:
        super().__init__(4 if letter in "sc" else 8, shape.lanes)
        self.kind = kind
        self.letter = letter
        self.unit = 2 if letter in "cz" else 1
        self.shape = shape
        self.four = f"<4 x {self.scalar}>"

    def text(self) -> Code:
        self._tiles()
        return self.finished()

    # The functions.

    def _inner(self, rows: int, vectors: int) -> None:
        """C (+)= a panel of A times a panel of B, in registers."""
        arguments = (
            "i64 %k, ptr noalias %a, ptr noalias %b, i64 %b.step, ptr noalias %c, i64 %c.line, "
            "i1 %adds"
        )
        places = list(itertools.product(range(rows), range(vectors)))
        with self.function(f"inner{rows}x{vectors}", arguments):
            for r, v in places:  # C is needed at the end
                place = self.at("%c", ("%c.line", r), (str(v), self.line))
                self._prefetch(place, 1)
            carried = [
                ("ptr", "%a"),
                ("ptr", "%b"),
                *[(self.vector, "zeroinitializer")] * len(places),
            ]
            with self.turns("0", "%k", *carried, is_certain=False) as (_, (a, b, *sums), new):
                panel = [self.load(self.after(b, v * self.line)) for v in range(vectors)]
                near = (self.after(a, r * self.size) for r in range(rows))
                sums = self.multiplied(near, panel, sums)
                new += [self.after(a, rows * self.size), self.after(b, "%b.step"), *sums]
            lines = [self.at("%c", ("%c.line", r)) for r in range(rows)]
            to = [(lines[r], v * self.line) for r, v in places]
            self.put_sums(new[2:], to, [""] * len(to))

    def _prefetch(self, place: str, is_written: int) -> None:
        """Let the line of memory that has an address come into the nearest cache."""
        hints = [("i32", x) for x in (is_written, 3, 1)]
        self.invoke("void", "llvm.prefetch.p0", ("ptr", place), *hints)

    def write_pack_lines(self) -> None:
        """A panel of ``width`` lines that lie side by side in memory: four by four, transposed.

        Lines beyond the last one repeat it; nobody reads what becomes of them. Those of the next
        panel are on their way meanwhile: several short lines are no stream that a processor sees.
        """
        arguments = "ptr noalias %to, i64 %width, ptr noalias %from, i64 %line, i64 %k, i64 %count"
        with self.function("pack_lines", arguments):
            last = self.sub("%count", "1")
            whole = self.let("and i64 %k, -4")
            with self.count("0", "%width", 4) as first:
                lines = []
                for q in range(4):
                    number = self.least(self.add(first, str(q)), last)
                    lines.append(self.at("%from", (number, "%line")))
                to = self.at("%to", (first, self.size))
                with self.count("0", "%k", CACHE_LINE // self.size) as i:
                    for line in lines:
                        self._prefetch(self.at(line, (i, self.size), ("%width", "%line")), 0)
                with self.count("0", whole, 4) as i:
                    rows = [
                        self.load(at, kind=self.four)
                        for at in [self.at(line, (i, self.size)) for line in lines]
                    ]
                    for q, column in enumerate(self._transposed(rows)):
                        place = self.at(to, (self.mul(self.add(i, str(q)), "%width"), self.size))
                        self.store(column, place, kind=self.four)
                with self.count(whole, "%k") as i:
                    place = self.at(to, (self.mul(i, "%width"), self.size))
                    for q, line in enumerate(lines):
                        source = self.at(line, (i, self.size))
                        self.copy(self.scalar, self.at(place, (str(q), self.size)), source)

    def _transposed(self, rows: list[str]) -> list[str]:
        def shuffle(pair: Sequence[str], places: Sequence[int]) -> str:
            a, b = (f"{self.four} {x}" for x in pair)
            mask = ", ".join(f"i32 {p}" for p in places)
            return self.let(f"shufflevector {a}, {b}, <4 x i32> <{mask}>")

        pairs = rows[:2], rows[2:]
        low = [shuffle(pair, (0, 4, 1, 5)) for pair in pairs]
        high = [shuffle(pair, (2, 6, 3, 7)) for pair in pairs]
        halves = ((0, 1, 4, 5), (2, 3, 6, 7))
        return [shuffle(pair, half) for pair in (low, high) for half in halves]

    def write_pack_vectors(self) -> None:
        self._pack_rows("vectors", self.shape.lanes, self.vector)

    def write_pack_fours(self) -> None:
        self._pack_rows("fours", 4, self.four)

    def _pack_rows(self, name: str, step: int, kind: str) -> None:
        """A panel of ``k`` rows of ``width`` neighbours, filled up with zeros."""
        arguments = "ptr noalias %to, i64 %width, ptr noalias %from, i64 %line, i64 %k, i64 %count"
        with self.function(f"pack_{name}", arguments):
            row_bytes = self.mul("%width", self.size)
            whole = self.let(f"and i64 %count, {-step}")
            with self.count("0", "%k") as i:
                to = self.at("%to", (i, row_bytes))
                source = self.at("%from", (i, "%line"))
                with self.count("0", whole, step) as j:
                    self.copy(kind, self.at(to, (j, self.size)), self.at(source, (j, self.size)))
                with self.count(whole, "%count") as j:
                    places = self.at(to, (j, self.size)), self.at(source, (j, self.size))
                    self.copy(self.scalar, *places)
                with self.count("%count", "%width") as j:
                    self.store("0.0", self.at(to, (j, self.size)), kind=self.scalar)

    def write_pack_rows(self) -> None:
        """A panel of A: real parts of ``width`` rows, ``k`` times; then their imaginary parts.

        Rows beyond the last one repeat it; nobody reads what becomes of them.
        """
        arguments = "ptr noalias %to, i64 %width, ptr noalias %from, i64 %row, i64 %column"
        with self.function("pack_rows", f"{arguments}, i64 %k, i64 %count"):
            last = self.sub("%count", "1")
            with self.count("0", "%width") as i:
                line = self.at("%from", (self.least(i, last), "%row"))
                to = self.at("%to", (i, self.size))
                with self.count("0", "%k") as p:
                    source = self.at(line, (p, "%column"))
                    for q in range(2):
                        row = self.add(self.mul("%k", q), p)
                        place = self.at(to, (self.mul(row, "%width"), self.size))
                        self.copy(self.scalar, place, self.at(source, (str(q), self.size)))

    def write_pack_columns(self) -> None:
        """A panel of B: two rows for each of ``k``, filled up with zeros."""
        arguments = "ptr noalias %to, i64 %width, ptr noalias %from, i64 %row, i64 %column"
        with (
            self.function("pack_columns", f"{arguments}, i64 %k, i64 %count"),
            self.count("0", "%k") as p,
        ):
            line = self.at("%from", (p, "%row"))
            first = self.at("%to", (p, self.mul("%width", 2 * self.size)))
            second = self.at(first, ("%width", self.size))
            with self.count("0", "%count") as j:
                source = self.at(line, (j, "%column"))
                real = self.load(source, kind=self.scalar)
                imaginary = self.load(self.after(source, self.size), kind=self.scalar)
                negative = self.let(f"fneg {self.scalar} {imaginary}")
                for to, pair in ((first, (real, imaginary)), (second, (negative, real))):
                    place = self.at(to, (j, 2 * self.size))
                    for q, value in enumerate(pair):
                        at = self.at(place, (str(q), self.size))
                        self.store(value, at, kind=self.scalar)
            with self.count(self.mul("%count", 2), "%width") as j:
                for to in (first, second):
                    self.store("0.0", self.at(to, (j, self.size)), kind=self.scalar)

    def write_put(self) -> None:
        """C (+)= the part of a matrix that lies in C."""
        arguments = (
            "ptr noalias %c, i64 %c.line, ptr noalias %from, i64 %rows, i64 %columns, i1 %adds"
        )
        with self.function("put", arguments), self.count("0", "%rows") as i:
            line = self.at("%c", (i, "%c.line"))
            source = self.at("%from", (i, self.shape.width * self.size))
            whole = self.let("and i64 %columns, -4")
            for kind, first, end, step in (
                (self.four, "0", whole, 4),
                (self.scalar, whole, "%columns", 1),
            ):
                with self.count(first, end, step) as j:
                    place = self.at(line, (j, self.size))
                    new = self.load(self.at(source, (j, self.size)), kind=kind)
                    self._add_to(place, new, kind=kind)

    def _add_to(self, place: str, new: str, mask: str = "", kind: str = "") -> None:
        """C (+)= numbers that lie side by side."""
        kind = kind or self.vector
        n, before = next(self._numbers), self.block
        self.fork("%adds", f"sum{n}", f"set{n}")
        self.start(f"sum{n}")
        total = self.let(f"fadd {kind} {self.load(place, mask, kind)}, {new}")
        self.go(f"set{n}")
        self.start(f"set{n}")
        self.store(self.phi(kind, {before: new, f"sum{n}": total}), place, mask, kind)

    def write_mirror(self) -> None:
        """Copy a tile of C to where its transpose belongs."""
        with self.function(
            "mirror", "i64 %rows, i64 %columns, ptr noalias %from, ptr noalias %to, i64 %line"
        ):
            whole = [self.let(f"and i64 {n}, -4") for n in ("%rows", "%columns")]
            with self.count("0", whole[0], 4) as i, self.count("0", whole[1], 4) as j:
                lines = [
                    self.at("%from", (self.add(i, str(q)), "%line"), (j, self.size))
                    for q in range(4)
                ]
                block = [self.load(line, kind=self.four) for line in lines]
                for q, column in enumerate(self._transposed(block)):
                    place = self.at("%to", (self.add(j, str(q)), "%line"), (i, self.size))
                    self.store(column, place, kind=self.four)
            for rows, columns in (
                ((whole[0], "%rows"), ("0", "%columns")),
                (("0", whole[0]), (whole[1], "%columns")),
            ):
                with self.count(*rows) as i, self.count(*columns) as j:
                    source = self.at("%from", (i, "%line"), (j, self.size))
                    self.copy(self.scalar, self.at("%to", (j, "%line"), (i, self.size)), source)

    def write_choose(self) -> None:
        """The inner loop for so many rows and vectors."""
        arguments = (
            "i64 %which.rows, i64 %vectors, i64 %k, ptr %a, ptr %b, i64 %b.step, ptr %c, "
            "i64 %c.line, i1 %adds"
        )
        passed = "i64 %k, ptr %a, ptr %b, i64 %b.step, ptr %c, i64 %c.line, i1 %adds"
        kinds = itertools.product(self.shape.rows, range(1, self.shape.vectors + 1))
        functions = {16 * r + v: (f"inner{r}x{v}", partial(self._inner, r, v)) for r, v in kinds}
        with self.function("choose", arguments):
            self.use_by_number(self.add(self.mul("%which.rows", 16), "%vectors"), functions, passed)

    def _narrow(self, vectors: int) -> None:
        """C = A times a panel of B that has all columns, without panels of A.

        Few columns do not pay for copies of A: its numbers are read where they are. The last rows
        are computed together with some that have been already.
        """
        rows, lanes = self.shape.rows[0], self.shape.lanes
        arguments = (
            "i64 %rows, i64 %columns, i64 %k, ptr noalias %a, i64 %a.row, i64 %a.column, "
            "ptr noalias %b, ptr noalias %c, i64 %c.line"
        )
        with self.function(f"narrow{vectors}", arguments):
            mask = self.mask(self.sub("%columns", str((vectors - 1) * lanes)))
            last = self.sub("%rows", str(rows))
            with self.count("0", "%rows", rows) as counter:
                i = self.least(counter, last)
                lines = [self.at("%a", (self.add(i, str(r)), "%a.row")) for r in range(rows)]
                places = list(itertools.product(range(rows), range(vectors)))
                sums = [(self.vector, "zeroinitializer")] * len(places)
                with self.turns("0", "%k", *sums) as (p, old, new):
                    row = self.at("%b", (p, vectors * self.line))
                    panel = [self.load(self.after(row, v * self.line)) for v in range(vectors)]
                    distance = self.mul(p, "%a.column")
                    near = (self.after(line, distance) for line in lines)
                    new += self.multiplied(near, panel, old)
                for (r, v), total in zip(places, new, strict=True):
                    line = self.at("%c", (self.add(i, str(r)), "%c.line"))
                    is_last = v == vectors - 1
                    self.store(total, self.after(line, v * self.line), mask if is_last else "")

    def _few(self, rows: int) -> None:
        """C (+)= a few rows of A times a block of rows of B, along which it walks.

        The sums are in memory, so that B is read as it lies there: its rows may be any power of two
        apart, and neighbours in them come one after the other.
        """
        lanes = self.shape.lanes
        line = SPAN * self.size
        arguments = (
            "i64 %columns, i64 %k, ptr noalias %a, i64 %a.row, i64 %a.column, "
            "ptr noalias %b, i64 %b.line, ptr noalias %c, i64 %c.line, i1 %adds, ptr noalias %sums"
        )
        with self.function(f"few{rows}", arguments):
            whole = self.let(f"and i64 %columns, {-lanes}")
            mask = self.mask(self.sub("%columns", whole))
            with self.count("0", "%columns", lanes) as j:
                place = self.at("%sums", (j, self.size))
                for r in range(rows):
                    self.store("zeroinitializer", self.at(place, (str(r), line)))
            turns = self.let(f"and i64 %k, {-_STEPS}")
            for first, end, steps in (("0", turns, _STEPS), (turns, "%k", 1)):
                with self.count(first, end, steps) as p:
                    near = [self.at("%b", (self.add(p, str(q)), "%b.line")) for q in range(steps)]
                    numbers = [
                        [self._spread_number(r, self.add(p, str(q))) for q in range(steps)]
                        for r in range(rows)
                    ]
                    with self.count("0", whole, lanes) as j:
                        self._add_rows(j, near, numbers, "")
                    with self.when(self.test("slt", whole, "%columns")):
                        self._add_rows(whole, near, numbers, mask)
            for r in range(rows):
                from_sums = self.at("%sums", (str(r), line))
                to = self.at("%c", ("%c.line", r))
                with self.count("0", whole, lanes) as j:
                    total = self.load(self.at(from_sums, (j, self.size)))
                    self._add_to(self.at(to, (j, self.size)), total)
                with self.when(self.test("slt", whole, "%columns")):
                    total = self.load(self.at(from_sums, (whole, self.size)))
                    self._add_to(self.at(to, (whole, self.size)), total, mask)

    def _spread_number(self, row: int, column: str) -> str:
        """An element of A in all lanes."""
        place = self.at("%a", (str(row), "%a.row"), (column, "%a.column"))
        return self.spread(self.load(place, kind=self.scalar))

    def _add_rows(self, j: str, near: list[str], numbers: list[list[str]], mask: str) -> None:
        """Add products with a vector of each of some rows of B to the sums of every row of A."""
        panel = [self.load(self.at(line, (j, self.size)), mask) for line in near]
        for r, row in enumerate(numbers):
            place = self.at("%sums", (str(r), SPAN * self.size), (j, self.size))
            total = self.load(place)
            for x, y in zip(row, panel, strict=True):
                total = self.fused(x, y, total)
            self.store(total, place)

    def write_tile(self) -> None:
        """One tile: its rows of A, columns of B (in real numbers), and place in C."""
        shape, size = self.shape, self.size
        arguments = (
            "i64 %rows, i64 %columns, i64 %k, ptr %a, i64 %a.line, i64 %a.trans, "
            "ptr %b, i64 %b.line, i64 %b.trans, ptr %c, i64 %c.line, ptr noalias %panels"
        )
        greatest, width = shape.rows[0], shape.width
        with self.function("tile", arguments):
            # Bytes from row to row, and from column to column.
            a_row, a_column = self._distances("a")
            if self.kind is Kind.FEW:
                self._few_tile(a_row, a_column)
                return
            panel = self.room(f"[{greatest * DEPTH} x {self.scalar}]", 64)
            edge = self.room(f"[{greatest * width} x {self.scalar}]", 64)
            b_row, b_column = self._distances("b")
            if self.unit == 1:
                self._narrow_tile(a_row, a_column)
            is_empty = self.test("eq", "%k", "0")
            end = self.pick(is_empty, "1", "%k")
            depth = DEPTH // self.unit
            with self.count("0", end, depth) as p:
                k = self.least(self.sub("%k", p), str(depth))
                turns = self.mul(k, self.unit)
                adds = self.test("sgt", p, "0")
                a, b = self.at("%a", (p, a_column)), self.at("%b", (p, b_row))
                with self.count("0", "%columns", width) as j:
                    columns, padded, _ = self._columns(j)
                    to = self.at("%panels", (j, self.mul(turns, size)))
                    source = self.at(b, (self._elements(j), b_column))
                    words = f"ptr {to}, i64 {padded}, ptr {source}"
                    self._pack("b", words, (b_row, b_column), k, self._elements(columns))
                with self.count("0", "%rows", greatest) as i:
                    rows = self.least(self.sub("%rows", i), str(greatest))
                    chosen = self._chosen_rows(rows)
                    source = self.at(a, (i, a_row))
                    words = f"ptr {panel}, i64 {chosen}, ptr {source}"
                    self._pack("a", words, (a_row, a_column), k, rows)
                    with self.count("0", "%columns", width) as j:
                        columns, padded, vectors = self._columns(j)
                        from_b = self.at("%panels", (j, self.mul(turns, size)))
                        step = self.mul(padded, size)
                        all_rows = self.test("eq", rows, chosen)
                        all_columns = self.test("eq", columns, padded)
                        is_whole = self.every(all_rows, all_columns)
                        place = self.at("%c", (i, "%c.line"), (j, size))
                        to = self.let(f"select i1 {is_whole}, ptr {place}, ptr {edge}")
                        line = self.pick(is_whole, "%c.line", width * size)
                        adds_here = self.every(is_whole, adds)
                        half = self.mul(self.mul(k, chosen), size)
                        for part in range(self.unit):
                            from_a = self.at(panel, (half, part))
                            part_of_b = self.at(from_b, (step, part))
                            self.use(
                                "choose",
                                f"i64 {chosen}, i64 {vectors}, i64 {k}, "
                                f"ptr {from_a}, ptr {part_of_b}, i64 {self.mul(step, self.unit)}, "
                                f"ptr {to}, i64 {line}, i1 {'true' if part else adds_here}",
                            )
                        with self.when(self.lacks(is_whole)):
                            self.use(
                                "put",
                                f"ptr {place}, i64 %c.line, ptr {edge}, "
                                f"i64 {rows}, i64 {columns}, i1 {adds}",
                            )

    def _few_tile(self, a_row: str, a_column: str) -> None:
        """The tile where A has few rows and B's lie as they are read."""
        sums = self.room(f"[{self.shape.few[0] * SPAN} x {self.scalar}]", 64)
        with (
            self.count("0", "%columns", SPAN) as j,
            self.count("0", "%k", DEPTH) as p,
        ):
            columns = self.least(self.sub("%columns", j), str(SPAN))
            k = self.least(self.sub("%k", p), str(DEPTH))
            adds = self.test("sgt", p, "0")
            b = self.at("%b", (p, "%b.line"), (j, self.size))
            start = "0"
            for rows in self.shape.few:
                left = self.sub("%rows", start)
                end = self.add(start, self.let(f"and i64 {left}, {-rows}"))
                with self.count(start, end, rows) as i:
                    a = self.at("%a", (i, a_row), (p, a_column))
                    c = self.at("%c", (i, "%c.line"), (j, self.size))
                    words = (
                        f"i64 {columns}, i64 {k}, ptr {a}, i64 {a_row}, i64 {a_column}, ptr {b}, "
                        f"i64 %b.line, ptr {c}, i64 %c.line, i1 {adds}, ptr {sums}"
                    )
                    self.use(f"few{rows}", words, partial(self._few, rows))
                start = end

    def _narrow_tile(self, a_row: str, a_column: str) -> None:
        """The tile, and the end, where it has few columns and one block of the summed axis."""
        shape = self.shape
        holds = self.every(
            self.test("sle", "%columns", shape.width),
            self.test("sge", "%rows", shape.rows[0]),
            self.test("sle", "%k", DEPTH),
            self.test("sge", "%k", "1"),
        )
        n = next(self._numbers)
        self.fork(holds, f"narrow{n}", f"wide{n}")
        self.start(f"narrow{n}")
        vectors = self.let(f"sdiv i64 {self.add('%columns', str(shape.lanes - 1))}, {shape.lanes}")
        padded = self.mul(vectors, shape.lanes)
        self._pack("b", f"ptr %panels, i64 {padded}, ptr %b", ("", ""), "%k", "%columns")
        words = (
            f"i64 %rows, i64 %columns, i64 %k, ptr %a, i64 {a_row}, i64 {a_column}, ptr %panels, "
            "ptr %c, i64 %c.line"
        )
        counts = range(1, shape.vectors + 1)
        functions = {v: (f"narrow{v}", partial(self._narrow, v)) for v in counts}
        self.use_by_number(vectors, functions, words)
        self.leave()
        self.start(f"wide{n}")

    def _distances(self, name: str) -> tuple[str, str]:
        """Bytes from row to row, and from column to column, of an operand."""
        near = self.unit * self.size
        is_trans = self.test("ne", f"%{name}.trans", "0")
        row = self.pick(is_trans, near, f"%{name}.line")
        return row, self.pick(is_trans, f"%{name}.line", near)

    def _elements(self, columns: str) -> str:
        """The elements that so many real numbers are."""
        return columns if self.unit == 1 else self.let(f"sdiv i64 {columns}, {self.unit}")

    def _pack(self, name: str, words: str, distances: tuple[str, str], k: str, count: str) -> None:
        """Fill a panel of an operand."""
        if self.unit == 2:
            row, column = distances
            words = f"{words}, i64 {row}, i64 {column}, i64 {k}, i64 {count}"
            self.use("pack_rows" if name == "a" else "pack_columns", words)
            return
        words = f"{words}, i64 %{name}.line, i64 {k}, i64 {count}"
        # Along k in A's rows and in B's columns if that is transposed.
        is_long = "eq" if name == "a" else "ne"
        is_lines = self.let(f"icmp {is_long} i64 %{name}.trans, 0")
        with self.when(is_lines):
            self.use("pack_lines", words)
        with self.when(self.lacks(is_lines)):
            self.use("pack_fours" if name == "a" else "pack_vectors", words)

    def _columns(self, j: str) -> tuple[str, str, str]:
        """A panel's columns, with padding, and in vectors."""
        lanes = self.shape.lanes
        columns = self.least(self.sub("%columns", j), str(self.shape.width))
        vectors = self.let(f"sdiv i64 {self.add(columns, str(lanes - 1))}, {lanes}")
        return columns, self.mul(vectors, lanes), vectors

    def _chosen_rows(self, rows: str) -> str:
        """The smallest inner loop that has so many rows."""
        chosen = str(self.shape.rows[0])
        for fewer in self.shape.rows[1:]:
            fits = self.test("sle", rows, fewer)
            chosen = self.pick(fits, fewer, chosen)
        return chosen

    def _tiles(self) -> None:
        """The step: claims scratch memory, computes its tiles, releases it."""
        with self.function(f"fg_{self.letter}{self.kind.value}", "ptr %slots, ptr %args", "i64"):
            self.name_words(TILE_WORDS)
            panels, lane = self.claim()
            a, b, c = (self.array(f"%slot_{x}", f"%offset_{x}") for x in "abc")
            near = self.unit * self.size
            c_line = self.mul("%n", near)
            is_a_trans = self.test("ne", "%trans_a", "0")
            is_b_trans = self.test("ne", "%trans_b", "0")
            a_row = self.pick(is_a_trans, near, "%line_a")
            b_column = self.pick(is_b_trans, "%line_b", near)
            with self.count("%begin", "%end") as tile:
                of_matrix = self.mul("%rows", "%columns")
                matrix = self.let(f"sdiv i64 {tile}, {of_matrix}")
                rest = self.let(f"srem i64 {tile}, {of_matrix}")
                i = self.mul(self.let(f"sdiv i64 {rest}, %columns"), "%tile_m")
                j = self.mul(self.let(f"srem i64 {rest}, %columns"), "%tile_n")
                rows = self.least(self.sub("%m", i), "%tile_m")
                columns = self.mul(self.least(self.sub("%n", j), "%tile_n"), self.unit)
                at_a = self.at(a, (matrix, "%stride_a"), (i, a_row))
                at_b = self.at(b, (matrix, "%stride_b"), (j, b_column))
                of_c = self.at(c, (matrix, "%stride_c"))
                at_c = self.at(of_c, (i, c_line), (j, near))
                words = (
                    f"i64 {rows}, i64 {columns}, i64 %k, ptr {at_a}, i64 %line_a, i64 %trans_a, "
                    f"ptr {at_b}, i64 %line_b, i64 %trans_b, ptr {at_c}, i64 {c_line}, ptr {panels}"
                )
                if self.kind is Kind.MIRRORED:
                    across = self.at(of_c, (j, c_line), (i, near))
                    with self.when(self.test("sle", j, i)):
                        self.use("tile", words)
                    with self.when(self.test("slt", j, i)):
                        self.use(
                            "mirror",
                            f"i64 {rows}, i64 {columns}, ptr {at_c}, ptr {across}, i64 {c_line}",
                        )
                else:
                    self.use("tile", words)
            self.release(lane)
