"""Sums of products, cut into tiles that any thread can compute alone.

BLAS brings threads of its own, which wait for each other by spinning: where one of them has no
processor, all stand still until it gets one. A tile of the result depends on no other tile, so that
the threads of `runtime.threads` take tiles as they come, and who has no processor holds up one
tile at most.

A tile goes through blocks of terms, and in each through panels of B, a few vectors wide. For every
few rows of A, an inner loop keeps a small matrix of sums in registers: for each term, it loads the
vectors of B, and each number of A into all lanes of a vector. Rows, terms and outer indices are at
even distances, as in matrices, or where tables say, as those of windows that slide. Vectors of B
are read where they are, or from a copy of the panel (Goto and van de Geijn, 2008) which is worth it
if many rows need it; columns of B that lie apart are transposed on the way.

Every element of the result is a sum of blocks, each a chain of fused multiplications and additions:
the same whatever the tiles are and whoever computes them.

Complex numbers are pairs of real ones: where B's element is ``c + di``, its panel has two rows
``(c, d)`` and ``(-d, c)``, which A's ``a`` and ``b`` of ``a + bi`` are multiplied with, in two sums
of their own: so the product of a matrix and its own adjoint has a diagonal that is real.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import TILE_TABLES, TILE_WORDS
from funcgrad.compiler.loops.language import Expression, Variable, call, equal, of
from funcgrad.compiler.loops.library.elements import Program
from funcgrad.compiler.machine import FEW, SEVERAL, SHORT_AXIS, SUM_BLOCK, VECTOR_BYTES

DEPTH = SUM_BLOCK // 2
"""Greatest length of a block of terms that are at even distances."""

AHEAD = SEVERAL
"""Rows between what is read of B where it is and what is fetched: with half as many, products took
up to a tenth longer, with more as long."""

_GIVEN, _RESULT, _PANELS, _TABLES = range(1, 5)
"""Scopes of memory: of A and B, C, the copy of a panel, and tables."""


@dataclass(frozen=True)
class Shape:
    """Inner loops that fit into the registers of a processor.

    Attributes:
        lanes: Numbers in a vector.
        rows: The most rows of an inner loop.
        sums: The most vectors of sums.
    """

    lanes: int
    rows: int
    sums: int

    def fitted(self, rows: int, vectors: int) -> tuple[int, tuple[int, ...], int]:
        """The rows of inner loops for so many, the vectors that they have, and those of a panel.

        As even as can be: little is computed in vain. Products of other columns, and of many rows,
        share a program.
        """
        at_once = _even(rows, self.rows) if rows < FEW * self.rows else self.rows
        widths = [min(self.sums // at_once, SHORT_AXIS)]
        while widths[-1] > 1:
            widths.append(-(-widths[-1] // 2))
        even = _even(vectors, widths[0])
        return at_once, tuple(widths), even if even in widths else widths[0]


def _even(count: int, most: int) -> int:
    """The size of groups, as few and as even as can be."""
    count = max(count, 1)
    return -(-count // -(-count // most))


NOMINAL = "+avx512f"
"""Features of the nominal processor of `machine`."""


def inner_shape(itemsize: int, features: str) -> Shape:
    """The inner loops that a processor with these features of LLVM has registers for."""
    names = set(features.split(","))
    if NOMINAL in names:
        return Shape(64 // itemsize, 8, 24)
    if "+avx" in names:
        return Shape(32 // itemsize, 4, 12)
    return Shape(16 // itemsize, *((8, 24) if "+neon" in names else (4, 8)))


class Kind(Enum):
    """Places of the numbers of a panel of B."""

    TABLED = "tabled"
    """In the array, like those of A, at distances of tables."""
    PLAIN = "plain"
    """In the array, in rows."""
    ROWS = "rows"
    """In copies of rows."""
    COLUMNS = "columns"
    """In copies of columns that lie side by side."""


@dataclass(frozen=True)
class Form:
    """Form of the tiles of a product.

    Attributes:
        kind: Where B is read.
        rows: Rows of the inner loop.
        vectors: Vectors that panels have.
        is_near: Whether rows of A are neighbours, and multiples of those of the inner loop: if
            there are copies of B's panels, there is one of a block of A, too, by terms.
        is_mirrored: Whether the result is symmetric: half of the tiles are copies.
    """

    kind: Kind
    rows: int
    vectors: tuple[int, ...]
    is_near: bool = False
    is_mirrored: bool = False


_Panel = Sequence[tuple[Expression, Expression]]
"""Pointers to vectors, and their indices."""

_Strips = list[tuple[Expression, Expression, Expression]]
"""Distances of vectors of columns in B and in C, and the index of each there."""


class Tiles(Program):
    """The tiles of a product.

    Args:
        letter: BLAS's type: s, d, c or z.
        lanes: Real numbers in a vector.
        form: Its form.
    """

    def __init__(self, letter: str, lanes: int, form: Form) -> None:
        super().__init__(letter, lanes)
        self.form = form
        self.is_tabled = form.kind is Kind.TABLED
        self.has_copies = form.kind in (Kind.ROWS, Kind.COLUMNS)
        self.has_block = self.has_copies and form.is_near
        self.words: dict[str, Expression] = {}
        self.tables: dict[str, Variable] = {}

    # Distances.

    def entry(self, table: str, row: Expression | int, k: int) -> Variable:
        """A number of a table."""
        at = row * TILE_TABLES[table] + k
        return self.let(call("load", self.tables[table], at, _TABLES))

    def outer(self, o: Expression) -> list[Expression]:
        """The distances to an outer index in A, B and C."""
        if self.is_tabled:
            return [self.entry("outer", o, k) for k in range(3)]
        return [o * self.words[f"stride_{x}"] for x in "abc"]

    def line(self, i: Expression) -> tuple[Expression, Expression]:
        """The distances to a row in A and C."""
        if self.is_tabled:
            return self.entry("lines", i, 0), self.entry("lines", i, 1)
        return i * self.words["row_a"], i * self.words["row_c"]

    def block(self, p: Expression) -> tuple[Expression, Expression, Expression]:
        """The distances to a block of terms in A and B, and how many terms it has."""
        terms = self.words["terms"]
        if self.is_tabled:
            return self.entry("blocks", p, 0), self.entry("blocks", p, 1), terms
        most = DEPTH // self.unit
        first = self.let(p * most)
        in_a, in_b = (first * self.words[f"term_{x}"] for x in "ab")
        return in_a, in_b, self.let(call("minimum", terms - first, most))

    def strips(self, s: Expression, vectors: int) -> _Strips:
        """The vectors of the columns of a panel."""
        if self.is_tabled:
            rows = [[self.entry("strips", s + v, k) for k in range(3)] for v in range(vectors)]
            return [(b, c, self._some(0, count)) for b, c, count in rows]
        first = self.let(s * self.lanes)
        in_b = self.let(s * (self.lanes // self.unit) * self.words["column_b"])
        *whole, last = (v * self.lanes for v in range(vectors))
        indices = [*map(self.near, whole), self._some(last, self.words["columns"] - first)]
        return [(in_b, first * self.size, index) for index in indices]

    def _some(self, first: int, end: Expression) -> Variable:
        return self.let(call("some_lanes", first, end, self.lanes))

    # The inner loop.

    def inner(
        self, k: Expression, a: Sequence[tuple[Expression, int]], b: _Panel, c: _Panel,
        steps: tuple[Expression, Expression], adds: Expression,
    ) -> None:  # fmt: skip
        """C (+)= some terms of rows of A times a panel of B, in registers.

        Args:
            k: How many terms.
            a: Pointers to the rows, and indices there.
            b: The vectors of the panel.
            c: Where the sums of each row belong.
            steps: How many bytes terms are apart.
            adds: Whether to add the sums there.
        """
        if self.has_copies:
            for n, (line, _) in enumerate(c):  # they are needed at the end
                ahead = call("advance", line, n % len(b) * self.lanes)
                self.evaluate(call("prefetch", ahead, 1))
        sums = [self.let(self.zeros) for _ in c]
        moves = [self.let(call("i64", 0)) for _ in steps]
        with self.count(0, k) as t:
            if self.is_tabled:
                moves = [self.entry("terms", t, q) for q in range(2)]
            scope = _PANELS if self.has_copies else _GIVEN
            panel = [self.let(call("load", call("offset", x, moves[1]), i, scope)) for x, i in b]
            if self.form.kind is Kind.PLAIN:  # rows that follow are on their way
                at = call("offset", b[0][0], moves[1] + steps[1] * AHEAD)
                for v in range(len(b)):
                    self.evaluate(call("prefetch", call("advance", at, v * self.lanes), 0))
            for r, (x, i) in enumerate(a):
                at = call("offset", x, moves[0])
                number = self.let(call("load", at, i, _PANELS if self.has_block else _GIVEN))
                for y, total in zip(panel, sums[r * len(b) :], strict=False):
                    self.change(total, call("muladd", number, y, total))
            if not self.is_tabled:
                for moved, step in zip(moves, steps, strict=True):
                    self.change(moved, moved + step)
        with self.when(adds):
            for total, place in zip(sums, c, strict=True):
                self.change(total, call("load", *place, _RESULT) + total)
        for total, place in zip(sums, c, strict=True):
            self.store(*place, total, _RESULT)

    def rows(
        self, first: Expression, end: Expression, k: Expression, at: Sequence[Expression],
        strips: _Strips, panel: Expression, adds: Expression,
    ) -> None:  # fmt: skip
        """C (+)= rows of A times a panel of B. Rows beyond the last one repeat it."""
        a, b, c = at
        width = len(strips) * self.lanes * self.size
        term_a = of(self.form.rows * self.size) if self.has_block else self.words["term_a"]
        with self.count(first, end, self.form.rows) as i:
            last = end - i - 1
            numbers = [i, *(i + call("minimum", last, r) for r in range(1, self.form.rows))]
            lines = [self.line(self.let(number)) for number in numbers]
            targets = [self.let(c + in_c) for _, in_c in lines]
            places = [
                (pointer, index)
                for target in targets
                for pointer, index in self._pointers(target, [(x, i) for _, x, i in strips])
            ]
            for q in range(self.unit):
                starts = [self.let(a + in_a + q * self.size) for in_a, _ in lines]
                if self.form.is_near:
                    copied = a + (i - first) * k * self.size
                    start = self.pointer(copied if self.has_block else starts[0])
                    rows = [(start, r) for r in range(self.form.rows)]
                else:
                    rows = [(self.pointer(start), 0) for start in starts]
                vectors: _Panel
                if self.has_copies:
                    own = self.pointer(panel + q * width)
                    vectors = [(own, self.near(v * self.lanes)) for v in range(len(strips))]
                    steps = term_a, of(width * self.unit)
                else:
                    vectors = self._pointers(b, [(x, i) for x, _, i in strips])
                    steps = term_a, self.words["term_b"]
                self.inner(k, rows, vectors, places, steps, self.let(adds | (q > 0)) if q else adds)

    def _pointers(self, base: Expression, places: _Panel) -> _Panel:
        """Pointers for distances from an address: one for all vectors that have the same."""
        made: dict[int, Variable] = {}
        for distance, _ in places:
            if id(distance) not in made:
                made[id(distance)] = self.pointer(base + distance)
        return [(made[id(distance)], index) for distance, index in places]

    # Copies of panels.

    def pack_block(
        self, to: Expression, a: Expression, k: Expression, span: tuple[Expression, Expression]
    ) -> None:
        """Copy a block of rows of A that are neighbours: those of each inner loop by terms."""
        rows = self.near(0, self.form.rows)
        with self.count(*span, self.form.rows) as i:
            own = self.pointer(to + (i - span[0]) * k * self.size)
            at = self.pointer(a + i * self.size)
            with self.count(0, k):
                self.store(own, rows, call("load", at, rows, _GIVEN), _PANELS)
                self.change(own, call("advance", own, self.form.rows))
                self.change(at, call("offset", at, self.words["term_a"]))

    def pack(
        self, panel: Expression, strips: _Strips, b: Expression, k: Expression, s: Expression
    ) -> None:
        """Copy a panel: vectors of each term, filled up with anything."""
        source = self.let(b + strips[0][0])
        count = self.let(self.words["columns"] - s * self.lanes)
        width = len(strips) * self.lanes
        if self.unit == 2:
            self.pack_complex(panel, width, source, k, count)
        elif self.form.kind is Kind.COLUMNS:
            self.pack_columns(panel, width, source, k, count)
        else:
            to, at = self.pointer(panel), self.pointer(source)
            with self.count(0, k):
                for v, (_, _, index) in enumerate(strips):
                    found = call("load", at, index, _GIVEN)
                    self.store(to, self.near(v * self.lanes), found, _PANELS)
                self.change(to, call("advance", to, width))
                self.change(at, call("offset", at, self.words["term_b"]))

    def pack_columns(
        self, panel: Expression, width: int, b: Expression, k: Expression, count: Expression
    ) -> None:
        """Copy columns that lie side by side: four by four, transposed, or two by two.

        Columns beyond the last one repeat it; nobody reads what becomes of them. The next ones are
        on their way meanwhile: several short ones are no stream that a processor sees.
        """
        side = math.gcd(width, FEW)
        whole, step = self.let(k & -side), self.words["column_b"]
        with self.count(0, width, side) as first:
            numbers = [call("minimum", first + q, count - 1) for q in range(side)]
            lines = [self.pointer(b + number * step) for number in numbers]
            own = self.pointer(panel + first * self.size)
            with self.count(0, k, VECTOR_BYTES // self.size) as i:
                for line in lines:
                    ahead = call("offset", call("advance", line, i), step * side)
                    self.evaluate(call("prefetch", ahead, 0))
            with self.count(0, whole, side) as i:
                rows = [self.let(call("load", line, self.near(i, side), _GIVEN)) for line in lines]
                for q, column in enumerate(self.transposed(rows)):
                    self.store(own, self.near((i + q) * width, side), column, _PANELS)
            with self.count(whole, k) as i:
                for q, line in enumerate(lines):
                    self.store(own, i * width + q, call("load", line, i, _GIVEN), _PANELS)

    def pack_complex(
        self, panel: Expression, width: int, b: Expression, k: Expression, count: Expression
    ) -> None:
        """Copy a panel of complex numbers: two rows for each term, filled up with zeros."""
        filled = self.let(call("minimum", count, width))
        with self.count(0, k) as p:
            line = self.pointer(b + p * self.words["term_b"])
            first = self.pointer(panel + p * (2 * width * self.size))
            second = self.let(call("advance", first, width))
            with self.count(0, filled, 2) as j:
                re, im = (self.let(call("load", line, q, _GIVEN)) for q in range(2))
                for own, pair in ((first, (re, im)), (second, (-im, re))):
                    for q, part in enumerate(pair):
                        self.store(own, j + q, part, _PANELS)
                self.change(line, call("offset", line, self.words["column_b"]))
            with self.count(filled, width) as j:
                for own in (first, second):
                    self.store(own, j, 0.0, _PANELS)

    # Tiles.

    def tile(
        self, at: Sequence[Expression], spans: Sequence[tuple[Expression, Expression]],
        panel: Expression,
    ) -> None:  # fmt: skip
        """One tile: its rows of A and strips of B, at an outer index."""
        a, b, c = at
        (first, end), (strip, last) = spans
        with self.count(0, self.words["blocks"]) as p:
            in_a, in_b, k = self.block(p)
            own = self.let(a + in_a), self.let(b + in_b), c
            adds, s = self.let(p > 0), self.let(strip)
            if self.has_block:
                line = self.words["panel"] * (self.lanes * self.size)
                copy = self.let(panel + line * DEPTH)
                self.pack_block(copy, own[0], k, (first, end))
                own = copy, *own[1:]

            def run(vectors: int) -> None:
                strips = self.strips(s, vectors)
                if self.has_copies:
                    self.pack(panel, strips, own[1], k, s)
                self.rows(first, end, k, own, strips, panel, adds)
                self.change(s, s + vectors)

            widths = self.form.vectors
            with self.repeat(s < last):
                left = self.let(call("minimum", last - s, self.words["panel"]))
                chosen = of(widths[-1])
                for v in widths[-2::-1]:
                    chosen = self.let(call("select", left >= v, of(v), chosen))
                self.by_number(chosen, {v: partial(run, v) for v in widths}, widths[-1])

    def mirror(
        self, rows: Expression, columns: Expression, source: Expression, to: Expression
    ) -> None:
        """Copy a tile of C to where its transpose belongs."""
        line = self.words["row_c"]
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
                self.store(across, i, call("load", at, j, _RESULT), _RESULT)

    def _units(self) -> Iterator[list[Variable]]:
        """The outer index, the group of rows and that of strips, of each unit in turn."""
        counts = [self.words["groups"], self.words["strip_groups"]]
        begin = self.words["begin"]
        rest = self.let(begin // counts[1])
        o = self.let(rest // counts[0])
        i, j = self.let(rest - o * counts[0]), self.let(begin - rest * counts[1])
        with self.count(begin, self.words["end"]):
            yield [o, i, j]
            self.change(j, j + 1)
            for index, count, outer in ((j, counts[1], i), (i, counts[0], o)):
                with self.when(equal(index, count)):
                    self.change(index, call("i64", 0))
                    self.change(outer, outer + 1)

    def write(self) -> None:
        """The step: claims scratch memory, computes its tiles, releases it."""
        words = self.words = {x: self.let(y) for x, y in self.given(TILE_WORDS).items()}
        panel, lane = self.claimed(words) if self.has_copies else (of(0), of(0))
        base = [self.address(words, x) for x in "abc"]
        if self.is_tabled:
            self.tables = {x: self.pointer(words[f"table_{x}"], "i64") for x in TILE_TABLES}
        for o, i, j in self._units():
            at = [self.let(x + distance) for x, distance in zip(base, self.outer(o), strict=True)]
            spans = []
            for index, axis in ((i, "rows"), (j, "strips")):
                first = self.let(index * words[f"tile_{axis}"])
                end = self.let(call("minimum", first + words[f"tile_{axis}"], words[axis]))
                spans.append((first, end))
            if not self.form.is_mirrored:
                self.tile(at, spans, panel)
                continue
            with self.when(j <= i):
                self.tile(at, spans, panel)
            with self.when(j < i):
                (first, end), (strip, _) = spans
                column = self.let(strip * self.lanes)
                columns = call("minimum", words["tile_rows"], words["columns"] - column)
                places = (first, column), (column, first)
                here, across = (
                    self.let(at[2] + x * words["row_c"] + y * self.size) for x, y in places
                )
                self.mirror(self.let(end - first), self.let(columns), here, across)
        if self.has_copies:
            self.release(lane)
