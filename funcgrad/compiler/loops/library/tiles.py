"""Matrix products of real numbers, cut into tiles that any thread can compute alone.

BLAS brings threads of its own, which wait for each other by spinning: where one of them has no
processor, all stand still until it gets one. A tile of the result depends on no other tile, so that
the threads of `runtime.threads` take tiles as they come, and who has no processor holds up one
tile at most.

A tile walks over the summed axis in blocks of `DEPTH`. Of each block, its columns of B are
copied into panels of a few vectors, its rows of A into panels of a few rows, and for each pair of
panels the inner loop keeps a small matrix of sums in registers (Goto and van de Geijn, 2008).
Every element of the result is a sum of blocks, each a chain of fused multiplications and additions:
the same whatever the tiles are and whoever computes them.

Complex numbers are pairs of real ones: where B's element is ``c + di``, its panel has two rows
``(c, d)`` and ``(-d, c)``, which A's ``a`` and ``b`` of ``a + bi`` are multiplied with, in two sums
of their own: so the product of a matrix and its own adjoint has a diagonal that is real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import TILE_WORDS
from funcgrad.compiler.loops.language import Expression, Variable, call, of
from funcgrad.compiler.loops.library.elements import Index, Program
from funcgrad.compiler.machine import FEW, SUM_BLOCK, VECTOR_BYTES

DEPTH = SUM_BLOCK // 2
"""Greatest length of a block of the summed axis: a panel of A stays in the nearest cache."""

SPAN = SUM_BLOCK
"""Columns of B that are walked along together where A has few rows: their sums stay there, too."""

FEW_ROWS = 2 * FEW
"""The most rows of A that are few: copies of B would take longer than they save."""

_STEPS = FEW  # rows of B that are added up in registers, between loads and stores of sums

_GIVEN, _RESULT, _PANELS, _OWN = range(1, 5)
"""Scopes of memory: of A and B, C, panels of B, and what is on the stack."""


@dataclass(frozen=True)
class Shape:
    """Shape of the inner loop on one processor.

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
    """Kinds of tiles of a product, by the suffix of the name of their function."""

    TILES = "tiles"
    """Parts of any matrix."""
    FEW = "few"
    """All of them are of a few rows of A, at least one column of it, and of B as it lies there."""
    MIRRORED = "mirrored"
    """Tiles of a matrix that is symmetric: half of them are copies."""


def rows_at_once(counts: Sequence[int], rows: int) -> tuple[int, ...]:
    """The numbers of rows, of some, that so many rows are taken in, each the greatest that fits."""
    found = []
    for at_once in counts:
        if rows >= at_once:
            found.append(at_once)
            rows %= at_once
    return tuple(found) or (1,)


@dataclass(frozen=True)
class Matrix:
    """An operand, or a part of one.

    Attributes:
        address: Where it begins.
        row: Bytes from row to row.
        column: Bytes from column to column.
        is_trans: Whether rows are neighbours.
        line: Bytes from one stored row to the next one.
    """

    address: Expression
    row: Expression
    column: Expression
    is_trans: Expression
    line: Expression


class InRegisters(Program):
    """Products of matrices whose sums are in registers."""

    def copy(
        self,
        to: tuple[Expression, Index],
        source: tuple[Expression, Index],
        scopes: tuple[int, int],
    ) -> None:
        self.store(*to, call("load", *source, scopes[1]), scopes[0])

    def multiply(
        self, numbers: Sequence[Expression], panel: Sequence[Expression], sums: Sequence[Variable]
    ) -> None:
        """Add products of a number of each row and the vectors of a panel to sums, row by row."""
        for r, number in enumerate(numbers):
            for x, total in zip(panel, sums[r * len(panel) :], strict=False):
                self.change(total, call("muladd", number, x, total))

    def add_all(
        self, sums: Sequence[Variable], places: Sequence[tuple[Expression, Expression]],
        adds: Expression, scope: int,
    ) -> None:  # fmt: skip
        """Add vectors to those in memory, or write them: at a pointer, by an index each."""
        with self.when(adds):
            for total, place in zip(sums, places, strict=True):
                self.change(total, call("load", *place, scope) + total)
        for total, place in zip(sums, places, strict=True):
            self.store(*place, total, scope)


class Tiles(InRegisters):
    """The tiles of products of matrices.

    Args:
        letter: BLAS's type: s, d, c or z.
        shape: What the inner loops look like.
        kind: What the tiles are.
        few: How many rows of A are taken at once where those are few (`rows_at_once`): no more is
            compiled than a product runs.
    """

    def __init__(self, letter: str, shape: Shape, kind: Kind, few: tuple[int, ...] = ()) -> None:
        super().__init__(letter, shape.lanes)
        self.kind = kind
        self.shape = shape
        self.rows_of_few = few

    # Inner loops.

    def inner(
        self, rows: int, vectors: int, k: Expression, a: tuple[Sequence[Expression], Expression],
        b: tuple[Expression, Expression], c: Sequence[Expression], columns: Expression,
        adds: Expression,
    ) -> None:  # fmt: skip
        """C (+)= rows of A times a panel of B, in registers.

        Args:
            rows: How many rows.
            vectors: Vectors of a row of the panel.
            k: How many rows it has.
            a: Where rows of A begin, and how many bytes their numbers are apart.
            b: Where the panel is, and how far its rows are apart.
            c: Where the sums of each row belong.
            columns: How many of them there are.
            adds: Whether to add them there.
        """
        lines = [self.pointer(line) for line in c[:rows]]
        tail = self.let(call("some_lanes", (vectors - 1) * self.lanes, columns, self.lanes))
        indices = [*(self.near(v * self.lanes) for v in range(vectors - 1)), tail]
        places = [(line, index) for line in lines for index in indices]
        for line in lines:  # C is needed at the end
            for v in range(vectors):
                self.evaluate(call("prefetch", call("advance", line, v * self.lanes), 1))
        starts, at_b = [self.pointer(start) for start in a[0][:rows]], self.pointer(b[0])
        distance, sums = self.let(call("i64", 0)), [self.let(self.zeros) for _ in places]
        with self.count(0, k):
            panel = [
                self.let(call("load", at_b, self.near(v * self.lanes), _PANELS))
                for v in range(vectors)
            ]
            numbers = [
                self.let(call("load", call("offset", start, distance), 0, _GIVEN))
                for start in starts
            ]
            self.multiply(numbers, panel, sums)
            self.change(distance, distance + a[1])
            self.change(at_b, call("advance", at_b, b[1]))
        self.add_all(sums, places, adds, _RESULT)

    def few(
        self, rows: int, sizes: tuple[Expression, Expression], a: Matrix, b: Matrix,
        c: tuple[Expression, Expression], sums: Expression, adds: Expression,
    ) -> None:  # fmt: skip
        """C (+)= a few rows of A times a block of rows of B, along which it walks.

        The sums are in memory, so that B is read as it lies there: its rows may be any power of two
        apart, and neighbours in them come one after the other.
        """
        columns, k = sizes
        whole = self.let(columns & -self.lanes)
        tail = call("some_lanes", whole, columns, self.lanes)
        with self.count(0, columns, self.lanes) as j:
            for r in range(rows):
                self.store(sums, self.near(j + r * SPAN), self.zeros, _OWN)
        turns = self.let(k & -_STEPS)
        for first, end, steps in ((of(0), turns, _STEPS), (turns, k, 1)):
            with self.count(first, end, steps) as p:
                lines = [self.pointer(b.address + (p + q) * b.row) for q in range(steps)]
                starts = [self.pointer(a.address + a.row * r + p * a.column) for r in range(rows)]
                numbers = [
                    [
                        self.let(call("load", call("offset", start, a.column * q), 0, _GIVEN))
                        for q in range(steps)
                    ]
                    for start in starts
                ]
                with self.count(0, whole, self.lanes) as j:
                    self._add_rows(sums, j, lines, numbers, self.near(j))
                with self.when(whole < columns):
                    self._add_rows(sums, whole, lines, numbers, tail)
        for r in range(rows):
            line = self.pointer(c[0] + c[1] * r)
            own = self.let(call("advance", sums, r * SPAN))
            with self.count(0, whole, self.lanes) as j:
                total = self.let(call("load", own, self.near(j), _OWN))
                self.add_all([total], [(line, self.near(j))], adds, _RESULT)
            with self.when(whole < columns):
                total = self.let(call("load", own, self.near(whole), _OWN))
                self.add_all([total], [(line, tail)], adds, _RESULT)

    def _add_rows(
        self, sums: Expression, j: Expression, lines: Sequence[Expression],
        numbers: Sequence[Sequence[Expression]], index: Expression,
    ) -> None:  # fmt: skip
        """Add products with a vector of each of some rows of B to the sums of every row of A."""
        panel = [self.let(call("load", line, index, _GIVEN)) for line in lines]
        for r, row in enumerate(numbers):
            place = self.near(j + r * SPAN)
            total = call("load", sums, place, _OWN)
            for x, y in zip(row, panel, strict=True):
                total = call("muladd", x, y, total)
            self.store(sums, place, total, _OWN)

    # Panels.

    def pack_lines(
        self, to: tuple[Expression, int], width: Expression, x: Matrix, k: Expression,
        count: Expression,
    ) -> None:  # fmt: skip
        """A panel of ``width`` lines that lie side by side in memory: four by four, transposed.

        Lines beyond the last one repeat it; nobody reads what becomes of them. Those of the next
        panel are on their way meanwhile: several short lines are no stream that a processor sees.
        """
        whole, scope = self.let(k & -4), to[1]
        with self.count(0, width, 4) as first:
            numbers = [call("minimum", first + q, count - 1) for q in range(4)]
            lines = [self.pointer(x.address + number * x.line) for number in numbers]
            own = self.pointer(to[0] + first * self.size)
            with self.count(0, k, VECTOR_BYTES // self.size) as i:
                for line in lines:
                    ahead = call("offset", call("advance", line, i), width * x.line)
                    self.evaluate(call("prefetch", ahead, 0))
            with self.count(0, whole, 4) as i:
                rows = [self.let(call("load", line, self.near(i, 4), _GIVEN)) for line in lines]
                for q, column in enumerate(self.transposed(rows)):
                    self.store(own, self.near((i + q) * width, 4), column, scope)
            with self.count(whole, k) as i:
                for q, line in enumerate(lines):
                    self.copy((own, i * width + q), (line, i), (scope, _GIVEN))

    def pack_rows(
        self, to: tuple[Expression, int], width: Expression, x: Matrix, k: Expression,
        count: Expression, step: int,
    ) -> None:  # fmt: skip
        """A panel of ``k`` rows of ``width`` neighbours, filled up with zeros."""
        whole, scopes = self.let(count & -step), (to[1], _GIVEN)
        with self.count(0, k) as i:
            own = self.pointer(to[0] + i * width * self.size)
            source = self.pointer(x.address + i * x.line)
            with self.count(0, whole, step) as j:
                self.copy((own, self.near(j, step)), (source, self.near(j, step)), scopes)
            with self.count(whole, count) as j:
                self.copy((own, j), (source, j), scopes)
            with self.count(count, width) as j:
                self.store(own, j, 0.0, scopes[0])

    def pack_complex_rows(
        self, to: Expression, width: Expression, a: Matrix, k: Expression, count: Expression
    ) -> None:
        """A panel of A: real parts of ``width`` rows, ``k`` times; then their imaginary parts.

        Rows beyond the last one repeat it; nobody reads what becomes of them.
        """
        with self.count(0, width) as i:
            source = self.pointer(a.address + call("minimum", i, count - 1) * a.row)
            parts = [self.pointer(to + (k * width * q + i) * self.size) for q in range(2)]
            with self.count(0, k):
                for q, part in enumerate(parts):
                    self.copy((part, 0), (source, q), (_GIVEN, _GIVEN))
                    self.change(part, call("advance", part, width))
                self.change(source, call("offset", source, a.column))

    def pack_complex_columns(
        self, to: Expression, width: Expression, b: Matrix, k: Expression, count: Expression
    ) -> None:
        """A panel of B: two rows for each of ``k``, filled up with zeros."""
        with self.count(0, k) as p:
            line = self.pointer(b.address + p * b.row)
            first = self.pointer(to + p * width * (2 * self.size))
            second = self.let(call("advance", first, width))
            with self.count(0, count) as j:
                re, im = (self.let(call("load", line, q, _GIVEN)) for q in range(2))
                for own, pair in ((first, (re, im)), (second, (-im, re))):
                    for q, part in enumerate(pair):
                        self.store(own, j * 2 + q, part, _PANELS)
                self.change(line, call("offset", line, b.column))
            with self.count(count * 2, width) as j:
                for own in (first, second):
                    self.store(own, j, 0.0, _PANELS)

    def pack(
        self, name: str, to: tuple[Expression, int], width: Expression, x: Matrix, k: Expression,
        count: Expression,
    ) -> None:  # fmt: skip
        """Fill a panel of an operand."""
        if self.unit == 2:
            pack = self.pack_complex_rows if name == "a" else self.pack_complex_columns
            pack(to[0], width, x, k, count)
            return
        # Along k in A's rows and in B's columns if that is transposed.
        with self.when(~x.is_trans if name == "a" else x.is_trans):
            self.pack_lines(to, width, x, k, count)
        with self.otherwise():
            self.pack_rows(to, width, x, k, count, 4 if name == "a" else self.lanes)

    # Tiles.

    def tile(
        self, sizes: tuple[Expression, Expression, Expression], a: Matrix, b: Matrix,
        c: tuple[Expression, Expression], panels: Expression,
    ) -> None:  # fmt: skip
        """One tile: its rows of A, columns of B (in real numbers), and place in C."""
        m, n, k_all = sizes
        shape, depth = self.shape, DEPTH // self.unit
        panel = self.let(call("room", shape.rows[0] * DEPTH * self.size))
        with self.count(0, call("maximum", k_all, 1), depth) as p:
            k = self.let(call("minimum", k_all - p, depth))
            block = self._part(a, p * a.column)
            self._pack_all(n, k, self._part(b, p * b.row), panels)
            self._rows((m, n, k), block, (panel, panels), c, self.let(p > 0))

    def _of_vectors(self, vectors: Expression, write: Callable[[int], None]) -> None:
        """Statements for the number of vectors in a row of a panel of B."""
        cases = {v: partial(write, v) for v in range(self.shape.vectors, 0, -1)}
        self.by_number(vectors, cases, 1)

    def _pack_all(self, n: Expression, k: Expression, b: Matrix, panels: Expression) -> None:
        """Copy a block of rows of B into panels."""
        with self.count(0, n, self.shape.width) as j:
            columns, padded, _ = self._columns(n, j)
            part = self._part(b, self._elements(j) * b.column)
            to = self.let(panels + j * k * (self.unit * self.size))
            self.pack("b", (to, _PANELS), padded, part, k, self._elements(columns))

    def _elements(self, columns: Expression) -> Expression:
        """The elements that so many real numbers are."""
        return columns if self.unit == 1 else self.let(columns // self.unit)

    def _rows(
        self, sizes: tuple[Expression, Expression, Expression], a: Matrix,
        own: tuple[Expression, Expression], c: tuple[Expression, Expression], adds: Expression,
    ) -> None:  # fmt: skip
        """C (+)= a block of columns of A times the panels of B that belong to it.

        Few columns do not pay for a copy of A: its numbers are read where they are. In the place of
        rows beyond the last one that is computed again.
        """
        m, n, k = sizes
        panel, panels = own
        greatest, width, unit = self.shape.rows[0], self.shape.width, self.unit
        is_few = self.let(n <= (width if unit == 1 else 0))
        with self.count(0, m, greatest) as i:
            rows = self.let(call("minimum", m - i, greatest))
            chosen: Expression = of(greatest)
            for fewer in self.shape.rows[1:]:
                chosen = call("select", rows <= fewer, fewer, chosen)
            chosen, part = self.let(chosen), self._part(a, i * a.row)
            with self.when(~is_few):
                self.pack("a", (panel, _GIVEN), chosen, part, k, rows)
            start, row, column = (
                self.let(call("select", is_few, there, copied))
                for there, copied in (
                    (part.address, panel),
                    (a.row, of(self.size)),
                    (a.column, chosen * self.size),
                )
            )
            numbers = [self.let(call("minimum", rows - 1, r)) for r in range(greatest)]
            starts = [self.let(start + number * row) for number in numbers]
            lines = [self.let(c[0] + (i + number) * c[1]) for number in numbers]
            with self.count(0, n, width) as j:
                columns, padded, vectors = self._columns(n, j)
                with self.count(0, unit) as q:
                    moved = [x + k * chosen * q * self.size for x in starts] if unit > 1 else starts
                    b = self.let(panels + (j * k * unit + padded * q) * self.size)
                    inner = partial(
                        self._inner_of, k=k, a=(moved, column), b=(b, self.let(padded * unit)),
                        c=[line + j * self.size for line in lines], columns=columns,
                        adds=self.let(adds | (q > 0)),
                    )  # fmt: skip
                    cases = {r: partial(inner, vectors, r) for r in self.shape.rows}
                    self.by_number(chosen, cases, self.shape.rows[-1])

    def _inner_of(self, vectors: Expression, rows: int, **places: Any) -> None:
        """The inner loop of so many rows."""
        self._of_vectors(vectors, lambda v: self.inner(rows, v, **places))

    def few_tile(
        self, sizes: tuple[Expression, Expression, Expression], a: Matrix, b: Matrix,
        c: tuple[Expression, Expression],
    ) -> None:  # fmt: skip
        """The tile where A has few rows and B's lie as they are read."""
        m, n, k_all = sizes
        sums = self.pointer(call("room", self.rows_of_few[0] * SPAN * self.size))
        with self.count(0, n, SPAN) as j, self.count(0, k_all, DEPTH) as p:
            columns = self.let(call("minimum", n - j, SPAN))
            k = self.let(call("minimum", k_all - p, DEPTH))
            part = self._part(b, p * b.row + j * self.size)
            start: Expression = of(0)
            for rows in self.rows_of_few:
                end = self.let(start + ((m - start) & -rows))
                with self.count(start, end, rows) as i:
                    block = self._part(a, i * a.row + p * a.column)
                    to = self.let(c[0] + i * c[1] + j * self.size), c[1]
                    self.few(rows, (columns, k), block, part, to, sums, self.let(p > 0))
                start = end

    def mirror(
        self, rows: Expression, columns: Expression, source: Expression, to: Expression,
        line: Expression,
    ) -> None:  # fmt: skip
        """Copy a tile of C to where its transpose belongs."""
        whole = [self.let(n & -4) for n in (rows, columns)]
        with self.count(0, whole[0], 4) as i, self.count(0, whole[1], 4) as j:
            lines = [self.pointer(source + (i + q) * line) for q in range(4)]
            block = [self.let(call("load", at, self.near(j, 4), _RESULT)) for at in lines]
            for q, column in enumerate(self.transposed(block)):
                self.store(self.pointer(to + (j + q) * line), self.near(i, 4), column, _RESULT)
        for first, end, other in (
            (whole[0], rows, of(0)),
            (of(0), whole[0], whole[1]),
        ):
            with self.count(first, end) as i, self.count(other, columns) as j:
                at, across = self.pointer(source + i * line), self.pointer(to + j * line)
                self.copy((across, i), (at, j), (_RESULT, _RESULT))

    def write(self) -> None:
        """The step: claims scratch memory, computes its tiles, releases it."""
        words: dict[str, Expression] = {x: self.let(y) for x, y in self.given(TILE_WORDS).items()}
        panels, lane = self.claimed(words)
        a, b, c = (self.address(words, x) for x in "abc")
        near = self.unit * self.size
        c_line = self.let(words["n"] * near)
        rows_of = {}
        for x in "ab":
            is_trans = self.let(call("not_equal", words[f"trans_{x}"], 0))
            line = words[f"line_{x}"]
            row = self.let(call("select", is_trans, near, line))
            column = self.let(call("select", is_trans, line, near))
            rows_of[x] = row, column, is_trans, line
        with self.count(words["begin"], words["end"]) as tile:
            of_matrix = self.let(words["rows"] * words["columns"])
            matrix = self.let(tile // of_matrix)
            rest = self.let(tile - matrix * of_matrix)
            number = self.let(rest // words["columns"])
            i = self.let(number * words["tile_m"])
            j = self.let((rest - number * words["columns"]) * words["tile_n"])
            rows = self.let(call("minimum", words["m"] - i, words["tile_m"]))
            elements = call("minimum", words["n"] - j, words["tile_n"])
            columns = self.let(elements * self.unit)
            at_a = Matrix(
                self.let(a + matrix * words["stride_a"] + i * rows_of["a"][0]), *rows_of["a"]
            )
            at_b = Matrix(
                self.let(b + matrix * words["stride_b"] + j * rows_of["b"][1]), *rows_of["b"]
            )
            own = self.let(c + matrix * words["stride_c"])
            at_c = self.let(own + i * c_line + j * near), c_line
            sizes = rows, columns, words["k"]
            if self.kind is Kind.FEW:
                self.few_tile(sizes, at_a, at_b, at_c)
            elif self.kind is Kind.TILES:
                self.tile(sizes, at_a, at_b, at_c, panels)
            else:
                with self.when(j <= i):
                    self.tile(sizes, at_a, at_b, at_c, panels)
                with self.when(j < i):
                    across = self.let(own + j * c_line + i * near)
                    self.mirror(rows, columns, at_c[0], across, c_line)
        self.release(lane)

    def _part(self, x: Matrix, nbytes: Expression) -> Matrix:
        return Matrix(self.let(x.address + nbytes), x.row, x.column, x.is_trans, x.line)

    def _columns(self, n: Expression, j: Expression) -> tuple[Expression, Expression, Expression]:
        """A panel's columns, with padding, and in vectors."""
        columns = self.let(call("minimum", n - j, self.shape.width))
        vectors = self.let((columns + (self.lanes - 1)) // self.lanes)
        return columns, self.let(vectors * self.lanes), vectors
