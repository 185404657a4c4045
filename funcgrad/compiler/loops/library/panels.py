"""Copies of what tiles of products read, and of the tiles of symmetric results.

Panels of B, a few vectors wide, lie behind each other in a copy, as blocks of rows of A do, in the
order in which the inner loops of `loops.library.tiles` read them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from funcgrad.compiler.loops.language import Expression, Variable, call, of
from funcgrad.compiler.loops.library.elements import Program
from funcgrad.compiler.machine import FEW, SEVERAL, VECTOR_BYTES

AHEAD = SEVERAL
"""Rows between what is read of B where it is and what is fetched: with half as many, products took
up to a tenth longer, with more as long."""

UNMASKED = VECTOR_BYTES // 4
"""Bytes of vectors of which some lanes are loaded one by one: loops ask whether all are there."""

GIVEN, RESULT, READ, TABLES = range(1, 5)
"""Scopes of memory: of A and B while they are copied, C, what inner loops read, and tables."""


class Copies(IntEnum):
    """Copies of panels of B."""

    NONE = 0
    """B is read where it is: columns are neighbours."""
    ROWS = 1
    """Rows are copied."""
    COLUMNS = 2
    """Columns, whose terms are neighbours, are transposed."""


PANEL_WORDS = ["panel", "width", "panels", "b", "terms", "left", "term_b", "column_b"]
"""Arguments of `PanelCopy`: where to, how many real numbers for each term, and how many panels;
from where; how many terms, and columns that are there."""


def parameters_of(names: Sequence[str]) -> Mapping[str, Any]:
    return {"parameters": dict.fromkeys(names, "i64")}


class Part(Program):
    """A part of a product that is compiled by itself, and called by its address."""

    def argument(self, name: str) -> Variable:
        """An argument, by its name."""
        return Variable(name)

    def some(self, first: Expression | int, end: Expression) -> Variable:
        """The index of a vector before an end."""
        word = "some_lanes" if self.lanes * self.size > UNMASKED else "first_lanes"
        return self.let(call(word, first, end, self.lanes))


class BlockCopy(Part):
    """Copy a block of rows of A that are neighbours: those of each inner loop by terms.

    Args:
        letter: The type of numbers.
        lanes: Real numbers in a vector.
        n_rows: Rows of the inner loop.
    """

    facts = parameters_of(["to", "a", "terms", "begin", "end", "term_a"])

    def __init__(self, letter: str, lanes: int, n_rows: int) -> None:
        super().__init__(letter, lanes)
        self.n_rows = n_rows

    def write(self) -> None:
        begin, end, k = (self.argument(x) for x in ("begin", "end", "terms"))
        every = self.near(0, self.n_rows)
        with self.count(begin, end, self.n_rows) as i:
            rows = self.let(call("first_lanes", 0, end - i, self.n_rows))
            own = self.pointer(self.argument("to") + (i - begin) * k * self.size)
            at = self.pointer(self.argument("a") + i * self.size)
            with self.count(0, k):
                self.store(own, every, call("load", at, rows, GIVEN), READ)
                self.change(own, call("advance", own, self.n_rows))
                self.change(at, call("offset", at, self.argument("term_a")))


class PanelCopy(Part):
    """Copy panels of B, which lie behind each other then, the last one filled up with anything.

    Args:
        letter: The type of numbers.
        lanes: Real numbers in a vector.
        copies: What is copied.
    """

    facts = parameters_of(PANEL_WORDS)

    def __init__(self, letter: str, lanes: int, copies: Copies) -> None:
        super().__init__(letter, lanes)
        self.copies = copies

    def write(self) -> None:
        given = [self.argument(x) for x in PANEL_WORDS]
        if self.unit == 2:
            self.of_pairs(*given)
        elif self.copies is Copies.COLUMNS:
            self.of_columns(*given)
        else:
            self.of_rows(*given)

    def of_rows(
        self, panel: Expression, width: Expression, panels: Expression, b: Expression,
        k: Expression, count: Expression, step: Expression, _: Expression,
    ) -> None:  # fmt: skip
        """Copy rows: whole vectors of each, then the last one, of which some lanes are there."""
        line, most = self.let(width * self.size), self.let(panels * width)
        whole = self.let(call("minimum", most, count // self.lanes * self.lanes))
        ahead = self.let(step * call("maximum", of(AHEAD) // panels, 1))
        with self.count(0, k) as p:
            at, to = self.pointer(b + p * step), self.pointer(panel + p * line)
            with self.count(0, panels) as j:
                self.evaluate(call("prefetch", call("offset", at, ahead), 0))
                end = self.let(call("minimum", width, whole - j * width))
                with self.count(0, end, self.lanes) as first:
                    index = self.near(first)
                    self.store(to, index, call("load", at, index, GIVEN), READ)
                self.change(at, call("advance", at, width))
                self.change(to, call("offset", to, k * line))
        with self.when(whole < most):
            inside = self.let(whole - whole // width * width)
            to = self.pointer(panel + ((whole - inside) * k + inside) * self.size)
            at, index = self.pointer(b + whole * self.size), self.some(0, count - whole)
            with self.count(0, k):
                self.store(to, self.near(0), call("load", at, index, GIVEN), READ)
                self.change(to, call("offset", to, line))
                self.change(at, call("offset", at, step))

    def of_columns(
        self, panel: Expression, width: Expression, panels: Expression, b: Expression,
        k: Expression, count: Expression, _: Expression, step: Expression,
    ) -> None:  # fmt: skip
        """Copy columns that lie side by side: four by four, transposed, or two by two.

        Columns beyond the last one repeat it; nobody reads what becomes of them. The next ones are
        on their way meanwhile: several short ones are no stream that a processor sees.
        """
        side = math.gcd(self.lanes, FEW)
        whole = self.let(k & -side)
        with self.count(0, panels * width, side) as first:
            numbers = [call("minimum", first + q, count - 1) for q in range(side)]
            lines = [self.pointer(b + number * step) for number in numbers]
            inside = self.let(first - first // width * width)
            own = self.pointer(panel + ((first - inside) * k + inside) * self.size)
            with self.count(0, k, VECTOR_BYTES // self.size) as i:
                for line in lines:
                    ahead = call("offset", call("advance", line, i), step * side)
                    self.evaluate(call("prefetch", ahead, 0))
            with self.count(0, whole, side) as i:
                rows = [self.let(call("load", line, self.near(i, side), GIVEN)) for line in lines]
                for q, column in enumerate(self.transposed(rows)):
                    self.store(own, self.near((i + q) * width, side), column, READ)
            with self.count(whole, k) as i:
                for q, line in enumerate(lines):
                    self.store(own, i * width + q, call("load", line, i, GIVEN), READ)

    def of_pairs(
        self, panel: Expression, width: Expression, panels: Expression, b: Expression,
        k: Expression, count: Expression, step: Expression, across: Expression,
    ) -> None:  # fmt: skip
        """Copy panels of complex numbers: two rows for each term, filled up with zeros."""
        with self.count(0, panels) as j:
            start = self.let(j * width)
            filled = self.let(call("minimum", count - start, width))
            with self.count(0, k) as p:
                line = self.pointer(b + (start >> 1) * across + p * step)
                first = self.pointer(panel + (start * k + p * width) * (2 * self.size))
                second = self.let(call("advance", first, width))
                with self.count(0, filled, 2) as i:
                    re, im = (self.let(call("load", line, q, GIVEN)) for q in range(2))
                    for own, pair in ((first, (re, im)), (second, (-im, re))):
                        for q, part in enumerate(pair):
                            self.store(own, i + q, part, READ)
                    self.change(line, call("offset", line, across))
                with self.count(filled, width) as i:
                    for own in (first, second):
                        self.store(own, i, 0.0, READ)


class MirrorCopy(Part):
    """Copy a tile of C to where its transpose belongs."""

    facts = parameters_of(["rows", "columns", "source", "to", "row_c"])

    def write(self) -> None:
        rows, columns, source, to, line = map(self.argument, self.facts["parameters"])
        whole = [self.let(n & -4) for n in (rows, columns)]
        with self.count(0, whole[0], 4) as i, self.count(0, whole[1], 4) as j:
            lines = [self.pointer(source + (i + q) * line) for q in range(4)]
            block = [self.let(call("load", at, self.near(j, 4), RESULT)) for at in lines]
            for q, column in enumerate(self.transposed(block)):
                self.store(self.pointer(to + (j + q) * line), self.near(i, 4), column, RESULT)
        for first, end, other in (
            (whole[0], rows, of(0)),
            (of(0), whole[0], whole[1]),
        ):
            with self.count(first, end) as i, self.count(other, columns) as j:
                at, across = self.pointer(source + i * line), self.pointer(to + j * line)
                self.store(across, i, call("load", at, j, RESULT), RESULT)
