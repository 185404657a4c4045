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

from funcgrad.compiler.abi import LANES_SLOT, TILE_WORDS
from funcgrad.compiler.native.assembly import Assembly
from funcgrad.records import dataclass

DEPTH = 256
"""Greatest length of a block of the summed axis: a panel of A stays in the nearest cache."""

SPAN = 512
"""Columns of B that are walked along together where A has few rows: their sums stay there, too."""

FEW = 8
"""The most rows of A that are few: copies of B would take longer than they save."""

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


def tiles_symbol(letter: str) -> str:
    return f"fg_{letter}tiles"


def tiles_assembly(letter: str, shape: Shape) -> str:
    """The tiles of products of matrices of BLAS's type ``letter``: s, d, c or z."""
    return _Assembly(letter, shape).text()


class _Assembly(Assembly):
    """The functions that a tile is computed with.

    Attributes:
        unit: How many real numbers make an element.
    """

    def __init__(self, letter: str, shape: Shape) -> None:
        super().__init__(4 if letter in "sc" else 8, shape.lanes)
        self.letter = letter
        self.unit = 2 if letter in "cz" else 1
        self.shape = shape
        self.four = f"<4 x {self.scalar}>"

    def text(self) -> str:
        for rows in self.shape.rows:
            for vectors in range(1, self.shape.vectors + 1):
                self._inner(rows, vectors)
        if self.unit == 1:
            self._pack_lines()
            self._pack_rows("vectors", self.shape.lanes, self.vector)
            self._pack_rows("fours", 4, self.four)
        else:
            self._pack_complex_rows()
            self._pack_complex_columns()
        self._put()
        if self.unit == 1:
            self._mirror()
        self._choose()
        if self.unit == 1:
            for vectors in range(1, self.shape.vectors + 1):
                self._narrow(vectors)
            for rows in self.shape.few:
                self._few(rows)
        self._tile()
        self._tiles()
        suffix = f"v{self.shape.lanes}f{8 * self.size}"
        self.lines += [
            f"declare {self.vector} @llvm.fmuladd.{suffix}({', '.join([self.vector] * 3)})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare void @llvm.masked.store.{suffix}.p0({self.vector}, ptr, i32, "
            f"<{self.shape.lanes} x i1>)",
            f"declare {self.vector} @llvm.masked.load.{suffix}.p0(ptr, i32, "
            f"<{self.shape.lanes} x i1>, {self.vector})",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare i64 @llvm.cttz.i64(i64, i1)",
        ]
        return "\n".join(self.lines)

    # The functions.

    def _inner(self, rows: int, vectors: int) -> None:
        """C (+)= a panel of A times a panel of B, in registers."""
        arguments = (
            "i64 %k, ptr noalias %a, ptr noalias %b, i64 %b.step, ptr noalias %c, i64 %c.line, "
            "i1 %adds"
        )
        places = list(itertools.product(range(rows), range(vectors)))
        suffix = f"v{self.shape.lanes}f{8 * self.size}"
        with self.function(f"inner{rows}x{vectors}", arguments):
            for r, v in places:  # C is needed at the end
                place = self.at("%c", ("%c.line", r), (str(v), self.shape.lanes * self.size))
                self.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")
            self.do("%some = icmp sgt i64 %k, 0")
            self.do("br i1 %some, label %turn, label %out")
            self.start("turn")
            self.do("%i = phi i64 [ 0, %entry ], [ %i.next, %turn ]")
            self.do("%pa = phi ptr [ %a, %entry ], [ %pa.next, %turn ]")
            self.do("%pb = phi ptr [ %b, %entry ], [ %pb.next, %turn ]")
            for r, v in places:
                before = f"[ zeroinitializer, %entry ], [ %n.{r}.{v}, %turn ]"
                self.do(f"%s.{r}.{v} = phi {self.vector} {before}")
            for v in range(vectors):
                self.do(f"%pb.{v} = getelementptr inbounds {self.vector}, ptr %pb, i64 {v}")
                self.do(f"%b.{v} = load {self.vector}, ptr %pb.{v}, align {self.size}")
            for r in range(rows):
                self.do(f"%pa.{r} = getelementptr inbounds {self.scalar}, ptr %pa, i64 {r}")
                self.do(f"%a.{r} = load {self.scalar}, ptr %pa.{r}")
                self.do(f"%x.{r} = insertelement {self.vector} poison, {self.scalar} %a.{r}, i64 0")
                self.do(
                    f"%y.{r} = shufflevector {self.vector} %x.{r}, {self.vector} poison, "
                    f"<{self.shape.lanes} x i32> zeroinitializer"
                )
                for v in range(vectors):
                    operands = ", ".join(
                        f"{self.vector} %{x}" for x in (f"y.{r}", f"b.{v}", f"s.{r}.{v}")
                    )
                    call = f"call {self.vector} @llvm.fmuladd.{suffix}({operands})"
                    self.do(f"%n.{r}.{v} = {call}")
            self.do(f"%pa.next = getelementptr inbounds i8, ptr %pa, i64 {rows * self.size}")
            self.do("%pb.next = getelementptr inbounds i8, ptr %pb, i64 %b.step")
            self.do("%i.next = add nsw i64 %i, 1")
            self.do("%more = icmp slt i64 %i.next, %k")
            self.do("br i1 %more, label %turn, label %out")
            self.start("out")
            for r, v in places:
                after = f"[ zeroinitializer, %entry ], [ %n.{r}.{v}, %turn ]"
                self.do(f"%o.{r}.{v} = phi {self.vector} {after}")
            for r, v in places:
                line = self.at("%c", ("%c.line", r))
                self.do(f"%c.{r}.{v} = getelementptr inbounds {self.vector}, ptr {line}, i64 {v}")
            self.do("br i1 %adds, label %add, label %set")
            self.start("set")
            for r, v in places:
                self._store(f"%o.{r}.{v}", f"%c.{r}.{v}")
            self.do("ret void")
            self.start("add")
            for r, v in places:
                old = self.let(f"load {self.vector}, ptr %c.{r}.{v}, align {self.size}")
                self._store(self.let(f"fadd {self.vector} {old}, %o.{r}.{v}"), f"%c.{r}.{v}")

    def _store(self, value: str, place: str) -> None:
        self.do(f"store {self.vector} {value}, ptr {place}, align {self.size}")

    def _pack_lines(self) -> None:
        """A panel of ``width`` lines that lie side by side in memory: four by four, transposed.

        Lines beyond the last one repeat it; nobody reads what becomes of them.
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
                with self.count("0", whole, 4) as i:
                    rows = [
                        self.let(f"load {self.four}, ptr {at}, align {self.size}")
                        for at in [self.at(line, (i, self.size)) for line in lines]
                    ]
                    for q, column in enumerate(self._transposed(rows)):
                        place = self.at(to, (self.mul(self.add(i, str(q)), "%width"), self.size))
                        self.do(f"store {self.four} {column}, ptr {place}, align {self.size}")
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
                    self.do(f"store {self.scalar} 0.0, ptr {self.at(to, (j, self.size))}")

    def _pack_complex_rows(self) -> None:
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

    def _pack_complex_columns(self) -> None:
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
                real = self.let(f"load {self.scalar}, ptr {source}")
                imaginary = self.let(f"load {self.scalar}, ptr {self.at(source, ('1', self.size))}")
                negative = self.let(f"fneg {self.scalar} {imaginary}")
                for to, pair in ((first, (real, imaginary)), (second, (negative, real))):
                    place = self.at(to, (j, 2 * self.size))
                    for q, value in enumerate(pair):
                        at = self.at(place, (str(q), self.size))
                        self.do(f"store {self.scalar} {value}, ptr {at}")
            with self.count(self.mul("%count", 2), "%width") as j:
                for to in (first, second):
                    self.do(f"store {self.scalar} 0.0, ptr {self.at(to, (j, self.size))}")

    def _put(self) -> None:
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
                    new = self._load(kind, self.at(source, (j, self.size)))
                    n = next(self._numbers)
                    before = self.block
                    self.do(f"br i1 %adds, label %sum{n}, label %set{n}")
                    self.start(f"sum{n}")
                    total = self.let(f"fadd {kind} {self._load(kind, place)}, {new}")
                    self.do(f"br label %set{n}")
                    self.start(f"set{n}")
                    value = self.let(f"phi {kind} [ {new}, %{before} ], [ {total}, %sum{n} ]")
                    self.do(f"store {kind} {value}, ptr {place}, align {self.size}")

    def _mirror(self) -> None:
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
                block = [self._load(self.four, line) for line in lines]
                for q, column in enumerate(self._transposed(block)):
                    place = self.at("%to", (self.add(j, str(q)), "%line"), (i, self.size))
                    self.do(f"store {self.four} {column}, ptr {place}, align {self.size}")
            for rows, columns in (
                ((whole[0], "%rows"), ("0", "%columns")),
                (("0", whole[0]), (whole[1], "%columns")),
            ):
                with self.count(*rows) as i, self.count(*columns) as j:
                    source = self.at("%from", (i, "%line"), (j, self.size))
                    self.copy(self.scalar, self.at("%to", (j, "%line"), (i, self.size)), source)

    def _choose(self) -> None:
        """The inner loop for so many rows and vectors."""
        arguments = (
            "i64 %which.rows, i64 %vectors, i64 %k, ptr %a, ptr %b, i64 %b.step, ptr %c, "
            "i64 %c.line, i1 %adds"
        )
        passed = "i64 %k, ptr %a, ptr %b, i64 %b.step, ptr %c, i64 %c.line, i1 %adds"
        shape = self.shape
        with self.function("choose", arguments):
            code = self.add(self.mul("%which.rows", 16), "%vectors")
            kinds = list(itertools.product(shape.rows, range(1, shape.vectors + 1)))
            cases = " ".join(f"i64 {16 * r + v}, label %case{r}x{v}" for r, v in kinds)
            self.do(f"switch i64 {code}, label %done [ {cases} ]")
            for r, v in kinds:
                self.start(f"case{r}x{v}")
                self.do(f"call void @inner{r}x{v}({passed})")
                self.do("br label %done")
            self.start("done")

    def _narrow(self, vectors: int) -> None:
        """C = A times a panel of B that has all columns, without panels of A.

        Few columns do not pay for copies of A: its numbers are read where they are. The last rows
        are computed together with some that have been already.
        """
        rows, lanes = self.shape.rows[0], self.shape.lanes
        suffix = f"v{lanes}f{8 * self.size}"
        arguments = (
            "i64 %rows, i64 %columns, i64 %k, ptr noalias %a, i64 %a.row, i64 %a.column, "
            "ptr noalias %b, ptr noalias %c, i64 %c.line"
        )
        with self.function(f"narrow{vectors}", arguments):
            mask = self._mask(self.sub("%columns", str((vectors - 1) * lanes)))
            last = self.sub("%rows", str(rows))
            with self.count("0", "%rows", rows) as counter:
                i = self.least(counter, last)
                lines = [self.at("%a", (self.add(i, str(r)), "%a.row")) for r in range(rows)]
                places = list(itertools.product(range(rows), range(vectors)))
                before = self.block
                self.do("br label %turn")
                self.start("turn")
                self.do(f"%p = phi i64 [ 0, %{before} ], [ %p.next, %turn ]")
                for r, v in places:
                    start = f"[ zeroinitializer, %{before} ], [ %n.{r}.{v}, %turn ]"
                    self.do(f"%s.{r}.{v} = phi {self.vector} {start}")
                row = self.at("%b", ("%p", vectors * lanes * self.size))
                panel = [
                    self._load(self.vector, self.at(row, (str(v), lanes * self.size)))
                    for v in range(vectors)
                ]
                distance = self.mul("%p", "%a.column")
                for r, line in enumerate(lines):
                    place = self.let(f"getelementptr inbounds i8, ptr {line}, i64 {distance}")
                    same = self._spread(self._load(self.scalar, place))
                    for v in range(vectors):
                        operands = ", ".join(
                            f"{self.vector} {x}" for x in (same, panel[v], f"%s.{r}.{v}")
                        )
                        self.do(
                            f"%n.{r}.{v} = call {self.vector} @llvm.fmuladd.{suffix}({operands})"
                        )
                self.do("%p.next = add nsw i64 %p, 1")
                self.do("%more = icmp slt i64 %p.next, %k")
                self.do("br i1 %more, label %turn, label %out")
                self.start("out")
                for r, v in places:
                    line = self.at("%c", (self.add(i, str(r)), "%c.line"))
                    place = self.at(line, (str(v), lanes * self.size))
                    if v < vectors - 1:
                        self._store(f"%n.{r}.{v}", place)
                        continue
                    self.do(
                        f"call void @llvm.masked.store.{suffix}.p0({self.vector} %n.{r}.{v}, "
                        f"ptr {place}, i32 {self.size}, <{lanes} x i1> {mask})"
                    )

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
            mask = self._mask(self.sub("%columns", whole))
            with self.count("0", "%columns", lanes) as j:
                place = self.at("%sums", (j, self.size))
                for r in range(rows):
                    self._store("zeroinitializer", self.at(place, (str(r), line)))
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
                    with self.when(self.let(f"icmp slt i64 {whole}, %columns")):
                        self._add_rows(whole, near, numbers, mask)
            for r in range(rows):
                from_sums = self.at("%sums", (str(r), line))
                to = self.at("%c", ("%c.line", r))
                with self.count("0", whole, lanes) as j:
                    self._put_sum(self.at(from_sums, (j, self.size)), self.at(to, (j, self.size)))
                with self.when(self.let(f"icmp slt i64 {whole}, %columns")):
                    places = self.at(from_sums, (whole, self.size)), self.at(to, (whole, self.size))
                    self._put_sum(*places, mask)

    def _spread_number(self, row: int, column: str) -> str:
        """An element of A in all lanes."""
        number = self._load(self.scalar, self.at("%a", (str(row), "%a.row"), (column, "%a.column")))
        return self._spread(number)

    def _add_rows(self, j: str, near: list[str], numbers: list[list[str]], mask: str) -> None:
        """Add products with a vector of each of some rows of B to the sums of every row of A."""
        panel = [self._load_masked(self.at(line, (j, self.size)), mask) for line in near]
        for r, row in enumerate(numbers):
            place = self.at("%sums", (str(r), SPAN * self.size), (j, self.size))
            total = self._load(self.vector, place)
            for x, y in zip(row, panel, strict=True):
                total = self._fused(x, y, total)
            self._store(total, place)

    def _fused(self, x: str, y: str, z: str) -> str:
        operands = ", ".join(f"{self.vector} {v}" for v in (x, y, z))
        return self.let(f"call {self.vector} @llvm.fmuladd.{self.suffix}({operands})")

    def _load_masked(self, place: str, mask: str) -> str:
        if not mask:
            return self._load(self.vector, place)
        lanes = self.shape.lanes
        return self.let(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {place}, i32 {self.size}, "
            f"<{lanes} x i1> {mask}, {self.vector} zeroinitializer)"
        )

    def _put_sum(self, place: str, to: str, mask: str = "") -> None:
        """C (+)= a vector of sums."""
        total = self._load(self.vector, place)
        n, before = next(self._numbers), self.block
        self.do(f"br i1 %adds, label %sum{n}, label %set{n}")
        self.start(f"sum{n}")
        new = self.let(f"fadd {self.vector} {self._load_masked(to, mask)}, {total}")
        self.do(f"br label %set{n}")
        self.start(f"set{n}")
        value = self.let(f"phi {self.vector} [ {total}, %{before} ], [ {new}, %sum{n} ]")
        if not mask:
            self._store(value, to)
            return
        self.do(
            f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {to}, "
            f"i32 {self.size}, <{self.shape.lanes} x i1> {mask})"
        )

    def _tile(self) -> None:
        """One tile: its rows of A, columns of B (in real numbers), and place in C."""
        shape, size = self.shape, self.size
        arguments = (
            "i64 %rows, i64 %columns, i64 %k, ptr %a, i64 %a.line, i64 %a.trans, "
            "ptr %b, i64 %b.line, i64 %b.trans, ptr %c, i64 %c.line, ptr noalias %panels"
        )
        greatest, width = shape.rows[0], shape.width
        with self.function("tile", arguments):
            panel = self.let(f"alloca [{greatest * DEPTH} x {self.scalar}], align 64")
            edge = self.let(f"alloca [{greatest * width} x {self.scalar}], align 64")
            # Bytes from row to row, and from column to column.
            a_row, a_column = self._distances("a")
            b_row, b_column = self._distances("b")
            if self.unit == 1:
                self._few_tile(a_row, a_column)
                self._narrow_tile(a_row, a_column)
            is_empty = self.let("icmp eq i64 %k, 0")
            end = self.let(f"select i1 {is_empty}, i64 1, i64 %k")
            depth = DEPTH // self.unit
            with self.count("0", end, depth) as p:
                k = self.least(self.sub("%k", p), str(depth))
                turns = self.mul(k, self.unit)
                adds = self.let(f"icmp sgt i64 {p}, 0")
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
                        all_rows = self.let(f"icmp eq i64 {rows}, {chosen}")
                        all_columns = self.let(f"icmp eq i64 {columns}, {padded}")
                        is_whole = self.let(f"and i1 {all_rows}, {all_columns}")
                        place = self.at("%c", (i, "%c.line"), (j, size))
                        to = self.let(f"select i1 {is_whole}, ptr {place}, ptr {edge}")
                        line = self.let(f"select i1 {is_whole}, i64 %c.line, i64 {width * size}")
                        adds_here = self.let(f"and i1 {is_whole}, {adds}")
                        half = self.mul(self.mul(k, chosen), size)
                        for part in range(self.unit):
                            from_a = self.at(panel, (half, part))
                            part_of_b = self.at(from_b, (step, part))
                            self.do(
                                f"call void @choose(i64 {chosen}, i64 {vectors}, i64 {k}, "
                                f"ptr {from_a}, ptr {part_of_b}, i64 {self.mul(step, self.unit)}, "
                                f"ptr {to}, i64 {line}, i1 {'true' if part else adds_here})"
                            )
                        with self.when(self.let(f"xor i1 {is_whole}, true")):
                            self.do(
                                f"call void @put(ptr {place}, i64 %c.line, ptr {edge}, "
                                f"i64 {rows}, i64 {columns}, i1 {adds})"
                            )

    def _few_tile(self, a_row: str, a_column: str) -> None:
        """The tile, and the end, where A has few rows and B's lie as they are read."""
        is_low = self.let(f"icmp sle i64 %rows, {FEW}")
        is_plain = self.let("icmp eq i64 %b.trans, 0")
        is_some = self.let("icmp sge i64 %k, 1")
        holds = self.let(f"and i1 {is_low}, {self.let(f'and i1 {is_plain}, {is_some}')}")
        n = next(self._numbers)
        sums = self.let(f"alloca [{self.shape.few[0] * SPAN} x {self.scalar}], align 64")
        self.do(f"br i1 {holds}, label %few{n}, label %many{n}")
        self.start(f"few{n}")
        with (
            self.count("0", "%columns", SPAN) as j,
            self.count("0", "%k", DEPTH) as p,
        ):
            columns = self.least(self.sub("%columns", j), str(SPAN))
            k = self.least(self.sub("%k", p), str(DEPTH))
            adds = self.let(f"icmp sgt i64 {p}, 0")
            b = self.at("%b", (p, "%b.line"), (j, self.size))
            start = "0"
            for rows in self.shape.few:
                left = self.sub("%rows", start)
                end = self.add(start, self.let(f"and i64 {left}, {-rows}"))
                with self.count(start, end, rows) as i:
                    a = self.at("%a", (i, a_row), (p, a_column))
                    c = self.at("%c", (i, "%c.line"), (j, self.size))
                    self.do(
                        f"call void @few{rows}(i64 {columns}, i64 {k}, ptr {a}, i64 {a_row}, "
                        f"i64 {a_column}, ptr {b}, i64 %b.line, ptr {c}, i64 %c.line, i1 {adds}, "
                        f"ptr {sums})"
                    )
                start = end
        self.do("ret void")
        self.start(f"many{n}")

    def _narrow_tile(self, a_row: str, a_column: str) -> None:
        """The tile, and the end, where it has few columns and one block of the summed axis."""
        shape = self.shape
        tests = [
            self.let(f"icmp {test}")
            for test in (
                f"sle i64 %columns, {shape.width}",
                f"sge i64 %rows, {shape.rows[0]}",
                f"sle i64 %k, {DEPTH}",
                "sge i64 %k, 1",
            )
        ]
        holds = tests[0]
        for test in tests[1:]:
            holds = self.let(f"and i1 {holds}, {test}")
        n = next(self._numbers)
        self.do(f"br i1 {holds}, label %narrow{n}, label %wide{n}")
        self.start(f"narrow{n}")
        vectors = self.let(f"sdiv i64 {self.add('%columns', str(shape.lanes - 1))}, {shape.lanes}")
        padded = self.mul(vectors, shape.lanes)
        self._pack("b", f"ptr %panels, i64 {padded}, ptr %b", ("", ""), "%k", "%columns")
        words = (
            f"i64 %rows, i64 %columns, i64 %k, ptr %a, i64 {a_row}, i64 {a_column}, ptr %panels, "
            "ptr %c, i64 %c.line"
        )
        cases = " ".join(f"i64 {v}, label %narrow{n}x{v}" for v in range(1, shape.vectors + 1))
        self.do(f"switch i64 {vectors}, label %narrow{n}end [ {cases} ]")
        for v in range(1, shape.vectors + 1):
            self.start(f"narrow{n}x{v}")
            self.do(f"call void @narrow{v}({words})")
            self.do(f"br label %narrow{n}end")
        self.start(f"narrow{n}end")
        self.do("ret void")
        self.start(f"wide{n}")

    def _distances(self, name: str) -> tuple[str, str]:
        """Bytes from row to row, and from column to column, of an operand."""
        near = self.unit * self.size
        is_trans = self.let(f"icmp ne i64 %{name}.trans, 0")
        row = self.let(f"select i1 {is_trans}, i64 {near}, i64 %{name}.line")
        return row, self.let(f"select i1 {is_trans}, i64 %{name}.line, i64 {near}")

    def _elements(self, columns: str) -> str:
        """The elements that so many real numbers are."""
        return columns if self.unit == 1 else self.let(f"sdiv i64 {columns}, {self.unit}")

    def _pack(self, name: str, words: str, distances: tuple[str, str], k: str, count: str) -> None:
        """Fill a panel of an operand."""
        if self.unit == 2:
            function = "pack_rows" if name == "a" else "pack_columns"
            row, column = distances
            self.do(
                f"call void @{function}({words}, i64 {row}, i64 {column}, i64 {k}, i64 {count})"
            )
            return
        words = f"{words}, i64 %{name}.line, i64 {k}, i64 {count}"
        # Along k in A's rows and in B's columns if that is transposed.
        is_long = "eq" if name == "a" else "ne"
        is_lines = self.let(f"icmp {is_long} i64 %{name}.trans, 0")
        with self.when(is_lines):
            self.do(f"call void @pack_lines({words})")
        with self.when(self.let(f"xor i1 {is_lines}, true")):
            self.do(f"call void @pack_{'fours' if name == 'a' else 'vectors'}({words})")

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
            fits = self.let(f"icmp sle i64 {rows}, {fewer}")
            chosen = self.let(f"select i1 {fits}, i64 {fewer}, i64 {chosen}")
        return chosen

    def _tiles(self) -> None:
        """The step: claims scratch memory, computes its tiles, releases it."""
        with self.function(tiles_symbol(self.letter), "ptr %slots, ptr %args", "i64"):
            for place, word in enumerate(TILE_WORDS):
                self.do(f"%{word}.p = getelementptr inbounds i64, ptr %args, i64 {place}")
                self.do(f"%{word} = load i64, ptr %{word}.p")
            lanes = self.at("%slots", (str(LANES_SLOT), 8))
            self.do("br label %look")
            self.start("look")
            taken = self.let(f"load atomic i64, ptr {lanes} monotonic, align 8")
            free = self.let(f"xor i64 {taken}, -1")
            lane = self.let(f"call i64 @llvm.cttz.i64(i64 {free}, i1 false)")
            bit = self.let(f"shl i64 1, {lane}")
            claimed = self.let(f"or i64 {taken}, {bit}")
            pair = self.let(f"cmpxchg ptr {lanes}, i64 {taken}, i64 {claimed} acquire monotonic")
            won = self.let(f"extractvalue {{ i64, i1 }} {pair}, 1")
            self.do(f"br i1 {won}, label %claimed, label %look")
            self.start("claimed")
            scratch = self._base("scratch", "scratch_offset")
            panels = self.at(scratch, (lane, "%lane"))
            a, b, c = (self._base(f"slot_{x}", f"offset_{x}") for x in "abc")
            near = self.unit * self.size
            c_line = self.mul("%n", near)
            is_symmetric = self.let("icmp ne i64 %symmetric, 0")
            is_a_trans = self.let("icmp ne i64 %trans_a, 0")
            is_b_trans = self.let("icmp ne i64 %trans_b, 0")
            a_row = self.let(f"select i1 {is_a_trans}, i64 {near}, i64 %line_a")
            b_column = self.let(f"select i1 {is_b_trans}, i64 %line_b, i64 {near}")
            with self.count("%begin", "%end") as tile:
                of_matrix = self.mul("%rows", "%columns")
                matrix = self.let(f"sdiv i64 {tile}, {of_matrix}")
                rest = self.let(f"srem i64 {tile}, {of_matrix}")
                i = self.mul(self.let(f"sdiv i64 {rest}, %columns"), "%tile_m")
                j = self.mul(self.let(f"srem i64 {rest}, %columns"), "%tile_n")
                rows = self.least(self.sub("%m", i), "%tile_m")
                columns = self.mul(self.least(self.sub("%n", j), "%tile_n"), self.unit)
                is_right = self.let(f"icmp sgt i64 {j}, {i}")
                is_copy = self.let(f"and i1 {is_symmetric}, {is_right}")
                with self.when(self.let(f"xor i1 {is_copy}, true")):
                    at_a = self.at(a, (matrix, "%stride_a"), (i, a_row))
                    at_b = self.at(b, (matrix, "%stride_b"), (j, b_column))
                    of_c = self.at(c, (matrix, "%stride_c"))
                    at_c = self.at(of_c, (i, c_line), (j, near))
                    self.do(
                        f"call void @tile(i64 {rows}, i64 {columns}, i64 %k, "
                        f"ptr {at_a}, i64 %line_a, i64 %trans_a, "
                        f"ptr {at_b}, i64 %line_b, i64 %trans_b, ptr {at_c}, i64 {c_line}, "
                        f"ptr {panels})"
                    )
                    if self.unit == 1:
                        is_left = self.let(f"icmp slt i64 {j}, {i}")
                        with self.when(self.let(f"and i1 {is_symmetric}, {is_left}")):
                            across = self.at(of_c, (j, c_line), (i, near))
                            self.do(
                                f"call void @mirror(i64 {rows}, i64 {columns}, ptr {at_c}, "
                                f"ptr {across}, i64 {c_line})"
                            )
            others = self.let(f"xor i64 {bit}, -1")
            self.let(f"atomicrmw and ptr {lanes}, i64 {others} release")

    def _base(self, slot: str, offset: str) -> str:
        place = self.at("%slots", (f"%{slot}", 8))
        base = self.let(f"load ptr, ptr {place}")
        return self.let(f"getelementptr inbounds i8, ptr {base}, i64 %{offset}")
