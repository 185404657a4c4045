"""Sums of products, cut into tiles that any thread can compute alone.

BLAS brings threads of its own, which wait for each other by spinning: where one of them has no
processor, all stand still until it gets one. A tile of the result depends on no other tile, so that
the threads of `runtime.threads` take tiles as they come, and who has no processor holds up one
tile at most.

The loops around are one program for all products of a type (`Tiles`), and parts of them others, of
which only those are compiled that a product needs.

A tile goes through blocks of terms, in each through blocks of rows of A, and for each of these
through panels of B, a few vectors wide. For every few rows, an inner loop keeps a small matrix of
sums in registers: for each term, it loads the vectors of B, and each number of A into all lanes of
a vector. Rows, terms and outer indices are at even distances, as in matrices, or where tables say,
as those of windows that slide. Vectors of B are read where they are, or from copies of the tile's
panels (Goto and van de Geijn, 2008), which are worth it if many rows need them; columns of B that
lie apart are transposed on the way.

Every element of the result is a sum of blocks, each a chain of fused multiplications and additions:
the same whatever the tiles are and whoever computes them.

Complex numbers are pairs of real ones: where B's element is ``c + di``, its panel has two rows
``(c, d)`` and ``(-d, c)``, which A's ``a`` and ``b`` of ``a + bi`` are multiplied with, in two sums
of their own: so the product of a matrix and its own adjoint has a diagonal that is real.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import TILE_TABLES, TILE_WORDS
from funcgrad.compiler.loops.builder import read_word
from funcgrad.compiler.loops.language import WORDS, Expression, Variable, call, equal, of
from funcgrad.compiler.loops.library.elements import PAIRS, Program
from funcgrad.compiler.loops.library.panels import (
    AHEAD,
    READ,
    RESULT,
    TABLES,
    Part,
    parameters_of,
)
from funcgrad.compiler.machine import (
    CACHES,
    FEW,
    SHORT_AXIS,
    SUM_BLOCK,
    VECTOR_BYTES,
    registers,
)

DEPTH = SUM_BLOCK // 2
"""Greatest length of a block of terms that are at even distances."""

NEAR_BYTES = CACHES[0][0] // 2
"""Size of the sums of a tile that `TileLines` adds to, at most."""


@dataclass(frozen=True)
class Shape:
    """Inner loops that fit into the registers of a processor.

    Attributes:
        lanes: Numbers in a vector.
        registers: Vectors that the processor has registers for.
    """

    lanes: int
    registers: int

    def width(self, rows: int) -> int:
        """The most vectors of an inner loop: its sums, and what is loaded for them.

        Of rows and vectors, the fewer ones are kept until they have been multiplied with the
        others, which come one by one. A mask is loaded again for each term, if it has no register.
        """
        widths = range(2, SHORT_AXIS + 1)
        fitting = (v for v in widths if rows * v + min(rows, v) + 1 <= self.registers)
        return max(fitting, default=1)

    @property
    def rows(self) -> int:
        """The most rows of an inner loop: about three times as many as vectors.

        A number of A costs a load, as a vector of B does, but is near, and no part of a copy.
        """
        return max(n for n in _COUNTS if n <= 3 * self.width(n))

    @property
    def counts(self) -> list[int]:
        """Numbers of rows for which there are inner loops."""
        return [n for n in _COUNTS if n <= self.rows]

    def fitted(self, rows: int, vectors: int) -> tuple[int, tuple[int, ...], int]:
        """The rows of inner loops for so many, the vectors that they have, and those of a panel.

        Little is computed in vain, where a group of rows counts as one more, since it reads B.
        Products of other columns, and of most numbers of rows, share a program.
        """
        at_once = self.rows
        if rows < FEW * at_once:
            at_once = min(self.counts, key=lambda n: (-(-max(rows, 1) // n) * (n + 1), -n))
        widths = [self.width(at_once)]
        while widths[-1] > 1:
            widths.append(-(-widths[-1] // 2))
        even = _even(vectors, widths[0])
        return at_once, tuple(widths), even if even in widths else widths[0]


def _even(count: int, most: int) -> int:
    """The size of groups, as few and as even as can be."""
    count = max(count, 1)
    return -(-count // -(-count // most))


_COUNTS = (1, *range(2, SHORT_AXIS + 1, 2))
"""Numbers of rows for which there are inner loops, if registers suffice."""

NOMINAL = "+avx512f"
"""Features of the nominal processor of `machine`."""


def inner_shape(itemsize: int, features: str) -> Shape:
    """The inner loops that a processor with these features of LLVM has registers for."""
    nbytes, count = registers(features)
    return Shape(nbytes // itemsize, count)


_Panel = Sequence[tuple[Expression, Expression]]
"""Distances of vectors, and their indices."""

_Vectors = Sequence[tuple[Variable, Expression]]
"""Pointers to vectors, and their indices."""

_Places = Sequence[tuple[Expression, Expression]]
"""Pointers, and the indices of what is loaded there."""

_Strips = tuple[_Panel, _Panel]
"""Distances of vectors of columns, and the index of each there: in B, and in C."""

_Span = tuple[Expression, Expression]
"""A range of rows, or of strips."""

_Lines = tuple[Expression, Expression, Expression, Expression]
"""The address of rows of A, and the distances of groups of rows, of rows in them, and of terms."""

Inner = tuple[int, int]
"""How many rows and vectors an inner loop has."""

ROW_WORDS = [
    "begin", "end", "terms", "a", "row_a", "next_a", "term_a", "b", "term_b", "c", "row_c",
    "left_b", "left_c", "adds", "strip", *(f"table_{x}" for x in ("lines", "terms", "strips")),
]  # fmt: skip
"""Arguments of `TileRows`: the range of rows; how many terms; `_Lines`; the address of a panel of B
and how far terms are apart; the address in C and the distance of rows; how many columns there are,
in B and in C; whether sums are added to C; and where tables say it, the first strip, and tables."""


class TileRows(Part):
    """C (+)= rows of A times a panel of B.

    Args:
        letter: The type of numbers (`elements.LETTERS`).
        lanes: Real numbers in a vector.
        inner: The inner loop.
        is_tabled: Whether distances are those of tables.
    """

    facts = parameters_of(ROW_WORDS)

    def __init__(self, letter: str, lanes: int, inner: Inner, is_tabled: bool = False) -> None:
        super().__init__(letter, lanes)
        self.n_rows, self.n_vectors = inner
        self.is_tabled = is_tabled
        self.tables: dict[str, Variable] = {}

    def entry(self, table: str, row: Expression | int, k: int) -> Variable:
        """A number of a table."""
        at = row * TILE_TABLES[table] + k
        return self.let(call("load", self.tables[table], at, TABLES))

    def lines(self, i: Expression, last: Expression) -> tuple[list[Expression], list[Expression]]:
        """The addresses in A and C of the rows from one on; those beyond the last one repeat it."""
        a, c, row_c = (self.argument(x) for x in ("a", "c", "row_c"))
        numbers = [of(0), *(call("minimum", last, r) for r in range(1, self.n_rows))]
        if self.is_tabled:
            numbers = [self.let(i + number) for number in numbers]
            return (
                [a + self.entry("lines", n, 0) for n in numbers],
                [c + self.entry("lines", n, 1) for n in numbers],
            )
        start, to = self.let(a + i * self.argument("row_a")), self.let(c + i * row_c)
        return (
            [start + number * self.argument("next_a") for number in numbers],
            [to + number * row_c for number in numbers],
        )

    def strips(self) -> _Strips:
        """The vectors of the columns of the panel."""
        if self.is_tabled:
            numbers = [self.argument("strip") + v for v in range(self.n_vectors)]
            rows = [[self.entry("strips", s, k) for k in range(3)] for s in numbers]
            indices = [self.some(0, count) for _, _, count in rows]
            in_b, in_c = ([row[k] for row in rows] for k in range(2))
            return list(zip(in_b, indices, strict=True)), list(zip(in_c, indices, strict=True))
        *whole, last = (v * self.lanes for v in range(self.n_vectors))

        here = of(0)

        def panel(end: Expression) -> _Panel:
            return [(here, index) for index in (*map(self.near, whole), self.some(last, end))]

        return panel(self.argument("left_b")), panel(self.argument("left_c"))

    def inner(self, a: Sequence[Expression], b: _Vectors, c: _Vectors, adds: Expression) -> None:
        """C (+)= some terms of rows of A times a panel of B, in registers.

        Args:
            a: Pointers to the rows.
            b: The vectors of the panel: if there are no tables, with one pointer, which moves.
            c: Where the sums of each row belong.
            adds: Whether to add the sums there.
        """
        step_a, step_b = self.argument("term_a"), self.argument("term_b")
        sums = [self.let(self.zeros) for _ in c]
        moved, ahead = self.let(call("i64", 0)), self.let(step_b * AHEAD)
        for line, _ in c[:: len(b)]:  # rows of C are on their way while terms are added
            for v in (0, len(b) * self.lanes - 1):
                self.evaluate(call("prefetch", call("advance", line, v), 0))
        with self.count(0, self.argument("terms")) as t:
            far: Expression = moved
            columns: list[Expression] = [x for x, _ in b]
            if self.is_tabled:
                far, in_b = (self.entry("terms", t, q) for q in range(2))
                columns = [call("offset", x, in_b) for x in columns]
            if not self.is_tabled:  # rows that follow are on their way
                at = call("offset", b[0][0], ahead)
                for v in range(0, len(b) * self.lanes, VECTOR_BYTES // self.size):
                    self.evaluate(call("prefetch", call("advance", at, v), 0))
            places = [(x, i) for x, (_, i) in zip(columns, b, strict=True)]
            self.products([(call("offset", x, far), of(0)) for x in a], places, sums)
            if not self.is_tabled:
                self.change(moved, moved + step_a)
                self.change(b[0][0], call("offset", b[0][0], step_b))
        with self.when(adds):
            for total, place in zip(sums, c, strict=True):
                self.change(total, call("load", *place, RESULT) + total)
        for total, place in zip(sums, c, strict=True):
            self.store(*place, total, RESULT)

    def products(self, a: _Places, b: _Places, sums: Sequence[Variable]) -> None:
        """Add the products of numbers of A and vectors of B to their sums.

        The more there are of one kind, the sooner the next one of them takes its register.
        """
        pairs = [(r, v) for r in range(len(a)) for v in range(len(b))]
        if len(a) < len(b):
            pairs.sort(key=lambda pair: pair[1])
        loaded: dict[tuple[int, int], Variable] = {}
        for r, v in pairs:
            for key, place in (((0, r), a[r]), ((1, v), b[v])):
                if key not in loaded:
                    loaded[key] = self.let(call("load", *place, READ))
            total = sums[r * len(b) + v]
            word = "muladd_pairs" if self.letter == PAIRS else "muladd"
            self.change(total, call(word, loaded[0, r], loaded[1, v], total))

    def write(self) -> None:
        """All rows, a few at a time; of complex numbers first the real parts of A, then others."""
        names = ("lines", "terms", "strips") if self.is_tabled else ()
        self.tables = {x: self.pointer(self.argument(f"table_{x}"), "i64") for x in names}
        width = self.n_vectors * self.lanes * self.size
        strips, adds = self.strips(), self.let(self.argument("adds") > 0)
        begin, end = self.argument("begin"), self.argument("end")
        with self.count(begin, end, self.n_rows) as i, self.parts() as q:
            starts, targets = self.lines(i, end - i - 1)
            lines = [self.pointer(start + q * self.size) for start in starts]
            places = [x for target in targets for x in self._pointers(target, strips[1])]
            vectors = self._pointers(self.let(self.argument("b") + q * width), strips[0])
            self.inner(lines, vectors, places, adds if self.unit == 1 else adds | (q > 0))

    @contextmanager
    def parts(self) -> Iterator[Expression]:
        """Statements for each real number of an element."""
        if self.unit == 1:
            yield of(0)
            return
        with self.count(0, self.unit) as q:
            yield q

    def _pointers(self, base: Expression, places: _Panel) -> _Vectors:
        """Pointers for distances from an address: one for all vectors that have the same."""
        made: dict[int, Variable] = {}
        for distance, _ in places:
            if id(distance) not in made:
                made[id(distance)] = self.pointer(base + distance)
        return [(made[id(distance)], index) for distance, index in places]


LINE_WORDS = [
    "begin", "end", "terms", "a", "row_a", "term_a", "b", "term_b", "c", "row_c", "columns",
]  # fmt: skip
"""Arguments of `TileLines`, as those of `TileRows`."""


class TileLines(Part):
    """C = a few rows of A times B, which is read along a few of its rows at a time.

    B comes from memory once, as processors expect it: line after line. The sums stay near instead
    of in registers. They are chains in the order of terms, as those of `TileRows`.

    Args:
        letter: The type of numbers.
        lanes: Real numbers in a vector.
        n_rows: Rows of A, at most: those beyond the last one repeat it.
    """

    facts = parameters_of(LINE_WORDS)

    def __init__(self, letter: str, lanes: int, n_rows: int) -> None:
        super().__init__(letter, lanes)
        self.n_rows = n_rows

    def write(self) -> None:
        begin, end, k, a, row_a, _, _, _, c, row_c, columns = map(self.argument, LINE_WORDS)
        last = end - begin - 1
        numbers = [self.let(begin + call("minimum", last, r)) for r in range(self.n_rows)]
        factors = [self.pointer(a + i * row_a) for i in numbers]
        sums = [self.pointer(c + i * row_c) for i in numbers]
        for line in sums:
            with self.count(0, columns, self.lanes) as j:
                self.store(line, self.some(j, columns), self.zeros, RESULT)
        whole = self.let(k & -FEW)
        with self.count(0, whole, FEW) as t:
            self.terms(t, FEW, factors, sums)
        with self.count(whole, k) as t:
            self.terms(t, 1, factors, sums)

    def terms(
        self, t: Expression, count: int, factors: Sequence[Variable], sums: Sequence[Variable]
    ) -> None:
        """Add some terms to the sums of all columns."""
        _, _, _, _, _, term_a, b, term_b, _, _, columns = map(self.argument, LINE_WORDS)
        at = [self.let(t + q) for q in range(count)]
        numbers = [
            [self.let(call("load", call("offset", x, q * term_a), 0, READ)) for q in at]
            for x in factors
        ]
        lines = [self.pointer(b + q * term_b) for q in at]
        whole = self.let(columns - columns % self.lanes)

        def add(index: Expression) -> None:
            vectors = [self.let(call("load", line, index, READ)) for line in lines]
            totals = [self.let(call("load", line, index, RESULT)) for line in sums]
            word = "muladd_pairs" if self.letter == PAIRS else "muladd"
            for x, total in zip(numbers, totals, strict=True):
                for number, vector in zip(x, vectors, strict=True):
                    self.change(total, call(word, number, vector, total))
            for line, total in zip(sums, totals, strict=True):
                self.store(line, index, total, RESULT)

        with self.count(0, whole, self.lanes) as j:
            add(self.near(j))
        with self.when(whole < columns):
            add(self.some(whole, columns))


class Tiles(Program):
    """The step of a product: it goes from tile to tile, and calls what does the work.

    Args:
        letter: The type of numbers.
        lanes: Real numbers in a vector.
        is_tabled: Whether distances are those of tables.
        within: The rows, and the vectors, of inner loops that are written into it: then it calls
            nothing, and copies nothing.
    """

    facts: Mapping[str, Any] = {"is_brief": True}

    def __init__(
        self,
        letter: str,
        lanes: int,
        is_tabled: bool = False,
        within: tuple[int, tuple[int, ...]] | None = None,
    ) -> None:
        super().__init__(letter, lanes)
        self.is_tabled = is_tabled
        self.within = within
        self.tables: dict[str, Variable] = {}
        self.words: dict[str, Expression] = {}
        self.waiting: Expression = of(0)

    def run(self, code: str | Expression, *operands: Expression | int) -> None:
        """Call a part, which is another program."""
        address = self.words[code] if isinstance(code, str) else code
        self.let(call("call_address", address, *operands))

    def entry(self, table: str, row: Expression, k: int) -> Variable:
        """A number of a table."""
        at = row * TILE_TABLES[table] + k
        return self.let(call("load", self.tables[table], at, TABLES))

    def outer(self, o: Expression) -> list[Expression]:
        """The distances to an outer index in A, B and C."""
        if self.is_tabled:
            return [self.entry("outer", o, k) for k in range(3)]
        return [o * self.words[f"stride_{x}"] for x in "abc"]

    def block(self, p: Expression) -> tuple[Expression, Expression, Expression]:
        """The distances to a block of terms in A and B, and how many terms it has."""
        terms = self.words["terms"]
        if self.is_tabled:
            return self.entry("blocks", p, 0), self.entry("blocks", p, 1), terms
        most = DEPTH // self.unit
        first = self.let(p * most)
        in_a, in_b = (first * self.words[f"term_{x}"] for x in "ab")
        return in_a, in_b, self.let(call("minimum", terms - first, most))

    def tile(self, at: Sequence[Expression], spans: Sequence[_Span], panels: Expression) -> None:
        """One tile: its rows of A and strips of B, at an outer index."""
        a, b, c = at
        words, (span, strips) = self.words, spans
        with self.count(0, words["blocks"]) as p:
            in_a, in_b, k = self.block(p)
            own_a, own_b = self.let(a + in_a), self.let(b + in_b)
            adds = self.let(call("select", p > 0, 1, 0))
            self.copy_panels(own_b, k, strips, panels)
            first = self.let(span[0])
            with self.repeat(first < span[1]):
                last = self.let(call("minimum", first + words["block_rows"], span[1]))
                lines = self.block_of_rows(own_a, k, (first, last), panels)
                self.block_of_tile((first, last), strips, k, lines, own_b, panels, c, adds)
                self.change(first, last)

    def block_of_tile(
        self, block: _Span, strips: _Span, k: Expression, lines: _Lines, b: Expression,
        panels: Expression, c: Expression, adds: Expression,
    ) -> None:  # fmt: skip
        """Some rows of a tile: along the rows of B, or panel by panel, each near for all rows."""
        words, s = self.words, self.let(strips[0])
        if not self.is_tabled:
            with self.when(words["lines_code"] > 0):
                self.along_lines(block, strips, k, lines, b, c, adds)
                self.change(s, strips[1])
        tables = [words[f"table_{x}"] for x in ("lines", "terms", "strips")]
        with self.repeat(s < strips[1]):
            vectors, code = self.chosen(self.let(call("minimum", strips[1] - s, words["panel"])))
            width, first = self.let(vectors * self.lanes), self.let(s * self.lanes)
            there = self.let(words["columns"] - first)
            source, step, of_b = map(self.let, (b + self.column(first), words["term_b"], there))
            with self.when(words["panel_code"] > 0):
                self.change(source, panels + self.bytes_of(s - strips[0], k))
                self.change(step, width * (self.unit * self.size))
                self.change(of_b, width)
            to = c if self.is_tabled else c + first * self.size
            ends = to, words["row_c"], of_b, there, adds, s
            given = *block, k, *lines, source, step, *ends, *tables
            if self.within is None:
                self.run(code, *given)
            else:
                widths = self.within[1]
                cases = {v: partial(self.written, v, given) for v in widths}
                self.by_number(vectors, cases, widths[-1])
            self.change(s, s + vectors)

    def along_lines(
        self, block: _Span, strips: _Span, k: Expression, lines: _Lines, b: Expression,
        c: Expression, adds: Expression,
    ) -> None:  # fmt: skip
        """Some rows of a tile with all of its columns; what is added to others waits for that."""
        words, (a, row_a, _, term_a) = self.words, lines
        first = self.let(strips[0] * self.lanes)
        columns = self.let(call("minimum", strips[1] * self.lanes, words["columns"]) - first)
        to, row = self.let(c + first * self.size), self.let(words["row_c"])
        with self.when(adds > 0):
            self.change(row, columns * self.size)
            self.change(to, self.waiting - block[0] * row)
        given = to, row, columns
        b = b + self.column(first)
        self.run("lines_code", *block, k, a, row_a, term_a, b, words["term_b"], *given)
        with self.when(adds > 0), self.count(*block) as i:
            own = self.pointer(c + first * self.size + i * words["row_c"])
            waiting = self.pointer(to + i * row)
            with self.count(0, columns) as j:
                total = call("load", own, j, RESULT) + call("load", waiting, j, RESULT)
                self.store(own, j, total, RESULT)

    def column(self, number: Expression) -> Expression:
        """The distance to a column of B, which is counted in real numbers."""
        if self.is_tabled:
            return of(0)
        return (number if self.unit == 1 else number >> 1) * self.words["column_b"]

    def bytes_of(self, strips: Expression, k: Expression) -> Expression:
        """Bytes of copies of so many strips of B with so many terms."""
        return strips * k * (self.lanes * self.unit * self.size)

    def copy_panels(self, b: Expression, k: Expression, strips: _Span, panels: Expression) -> None:
        """Copy the panels of a tile, if they are: all whole ones at once, along the rows of B."""
        words = self.words
        if self.within is not None:
            return
        with self.when(words["panel_code"] > 0):
            s = self.let(strips[0])
            with self.repeat(s < strips[1]):
                left = self.let(strips[1] - s)
                vectors, _ = self.chosen(self.let(call("minimum", left, words["panel"])))
                count, first = self.let(left // vectors), self.let(s * self.lanes)
                to, source = panels + self.bytes_of(s - strips[0], k), b + self.column(first)
                ends = words["columns"] - first, words["term_b"], words["column_b"]
                self.run("panel_code", to, vectors * self.lanes, count, source, k, *ends)
                self.change(s, s + count * vectors)

    def chosen(self, left: Expression) -> tuple[Variable, Variable]:
        """How many vectors the widest inner loop has for so many at most, and its code."""
        if self.within is not None:
            *wide, found = map(of, self.within[1])
            for v in reversed(wide):
                found = call("select", left >= v, v, found)
            return self.let(found), self.let(of(0))
        inner = self.let(call("i64", TILE_WORDS.index("vectors_0")))
        with self.repeat(read_word(WORDS, inner) > left):
            self.change(inner, inner + 2)
        return self.let(read_word(WORDS, inner)), self.let(read_word(WORDS, inner + 1))

    def written(self, vectors: int, given: Sequence[Expression]) -> None:
        """Write an inner loop where it would be called."""
        assert self.within is not None
        for name, value in zip(ROW_WORDS, given, strict=True):
            self.assign(name, value)
        rows = TileRows(self.letter, self.lanes, (self.within[0], vectors), self.is_tabled)
        rows.body, rows._fresh = self.body, self._fresh
        rows.write()

    def block_of_rows(
        self, a: Expression, k: Expression, span: _Span, panels: Expression
    ) -> _Lines:
        """The places of rows of A, in the array or in a copy."""
        words, row = self.words, self.words["row_a"]
        found = [self.let(x) for x in (a, row, row, words["term_a"])]
        if self.within is not None:
            return found[0], found[1], found[2], found[3]
        with self.when(words["block_code"] > 0):
            depth = call("minimum", words["terms"], DEPTH)
            copy = self.let(panels + self.bytes_of(words["tile_strips"], depth))
            self.run("block_code", copy, a, k, *span, words["term_a"])
            line = self.let(k * self.size)
            size = of(self.size)
            inside = copy - span[0] * line, line, size, size * words["inner_rows"]
            for x, value in zip(found, inside, strict=True):
                self.change(x, value)
        return found[0], found[1], found[2], found[3]

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
        panel, lane = self.let(of(0)), self.let(of(0))
        if self.within is None:
            with self.when(words["panel_code"] > 0):
                for x, value in zip((panel, lane), self.claimed(words), strict=True):
                    self.change(x, value)
        base = [self.address(words, x) for x in "abc"]
        if not self.is_tabled:
            self.waiting = self.let(call("room", NEAR_BYTES))
        names = ("outer", "blocks") if self.is_tabled else ()
        self.tables = {x: self.pointer(words[f"table_{x}"], "i64") for x in names}
        for o, i, j in self._units():
            at = [self.let(x + distance) for x, distance in zip(base, self.outer(o), strict=True)]
            spans = []
            for index, axis in ((i, "rows"), (j, "strips")):
                first = self.let(index * words[f"tile_{axis}"])
                end = self.let(call("minimum", first + words[f"tile_{axis}"], words[axis]))
                spans.append((first, end))
            if self.within is not None:
                self.tile(at, spans, panel)
                continue
            # Of a symmetric result, half of the tiles are copies.
            with self.when(equal(words["mirror_code"], 0) | (j <= i)):
                self.tile(at, spans, panel)
            with self.when((words["mirror_code"] > 0) & (j < i)):
                (first, end), (strip, _) = spans
                column = self.let(strip * self.lanes)
                columns = call("minimum", words["tile_rows"], words["columns"] - column)
                here, across = (
                    self.let(at[2] + x * words["row_c"] + y * self.size)
                    for x, y in ((first, column), (column, first))
                )
                self.run("mirror_code", end - first, columns, here, across, words["row_c"])
        if self.within is None:
            with self.when(words["panel_code"] > 0):
                self.release(lane)
