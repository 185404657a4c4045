"""Sums of products whose operands lie in memory in any regular order, such as windows that slide.

A matrix product packs its operands into panels. Windows of an array overlap: packed, they would be
many times the array. Here nothing is packed. Tables say where the rows of A, the terms of the sums
and the outer indices are, as distances in bytes; only the columns lie side by side, in B and C. An
inner loop keeps a few rows of a few vectors of sums in registers. For every term it loads the
vectors of B from where they are, and each number of A into all lanes of a vector.

Every element of the result is a sum of blocks of terms, each a chain of fused multiplications and
additions, the same whoever computes it.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from funcgrad.compiler.abi import STRIDED_WORDS
from funcgrad.compiler.loops.builder import read_word
from funcgrad.compiler.loops.language import WORDS, Expression, call, of
from funcgrad.compiler.loops.library import tiles
from funcgrad.compiler.loops.library.elements import Index
from funcgrad.compiler.loops.library.tiles import InRegisters, Shape

_FEW_ROWS = (4, 2, 1)
MANY_ROWS, MANY_VECTORS = (8, 6, *_FEW_ROWS), 3
"""The rows and vectors of sums for which most processors have registers."""

_GIVEN, _RESULT, _TABLES = range(1, 4)
"""Scopes of memory: of A and B, C, and the tables."""


def inner_shape(itemsize: int, features: str) -> Shape:
    """Lanes, rows and vectors of inner loops, for a processor with these features of LLVM."""
    packed = tiles.inner_shape(itemsize, features)
    has_many = packed.rows[0] > _FEW_ROWS[0]
    return Shape(packed.lanes, *((MANY_ROWS, MANY_VECTORS) if has_many else (_FEW_ROWS, 2)))


class Strided(InRegisters):
    """Strided products: the sums of groups of rows.

    Args:
        letter: BLAS's type: s or d.
        shape: What its inner loops can look like.
        rows: How many rows its inner loops have (`tiles.rows_at_once`).
        is_near: Whether the rows of A are neighbours.
    """

    def __init__(self, letter: str, shape: Shape, rows: tuple[int, ...], is_near: bool) -> None:
        super().__init__(letter, shape.lanes)
        self.rows = rows
        self.vectors = shape.vectors
        self.is_near = is_near

    def entry(self, table: Expression, k: Index) -> Expression:
        """A number of a table."""
        return call("load", table, k, _TABLES)

    def inner(
        self, rows: int, vectors: int, a: Expression, b: Expression, c: Expression,
        line: Expression, strip: Expression, adds: Expression,
    ) -> None:  # fmt: skip
        """C (+)= some terms of some rows and strips."""
        words = [[read_word(WORDS, strip + (3 * v + k)) for k in range(3)] for v in range(vectors)]
        masks = [self.let(call("some_lanes", 0, count, self.lanes)) for *_, count in words]
        from_b = [self.pointer(b + distance) for distance, *_ in words]
        distances = [
            of(r * self.size) if self.is_near else self.entry(line, 2 * r) for r in range(rows)
        ]
        from_a = [self.pointer(a + distance) for distance in distances]
        sums = [self.let(self.zeros) for _ in range(rows * vectors)]
        term = self.let(self.table)
        with self.count(0, self.terms):
            in_a, in_b = (self.let(self.entry(term, k)) for k in range(2))
            panel = [
                self.let(call("load", call("offset", at, in_b), mask, _GIVEN))
                for at, mask in zip(from_b, masks, strict=True)
            ]
            numbers = [self.let(call("load", call("offset", at, in_a), 0, _GIVEN)) for at in from_a]
            self.multiply(numbers, panel, sums)
            self.change(term, call("advance", term, 2))
        targets = [self.let(c + self.entry(line, 2 * r + 1)) for r in range(rows)]
        places = [
            (self.pointer(target + distance), mask)
            for target, ((_, distance, _), mask) in itertools.product(
                targets, zip(words, masks, strict=True)
            )
        ]
        self.add_all(sums, places, adds, _RESULT)

    def write(self) -> None:
        """The step: all sums of its groups of rows."""
        words: dict[str, Expression] = {
            x: self.let(y) for x, y in self.given(STRIDED_WORDS).items()
        }
        a, b, c = (self.address(words, x) for x in "abc")
        outer, lines, blocks, self.table = (
            self.let(call("ptr_i64", self.address(words, x)))
            for x in ("outer", "rows", "blocks", "terms")
        )
        self.terms = words["terms"]
        with self.count(words["begin"], words["end"]) as unit:
            rest = self.let(unit // words["strip_groups"])
            of_outer = self.let(rest // words["groups"])
            own = [
                self.let(base + self.entry(outer, of_outer * 3 + k))
                for k, base in enumerate((a, b, c))
            ]
            first = self.let((rest - of_outer * words["groups"]) * words["group_rows"])
            end = self.let(call("minimum", first + words["group_rows"], words["rows"]))
            of_strips = self.let(unit - rest * words["strip_groups"])
            strip = self.let(of_strips * words["group_strips"])
            last = self.let(call("minimum", strip + words["group_strips"], words["strips"]))
            with self.count(0, words["blocks"]) as k:
                block = [
                    self.let(base + self.entry(blocks, k * 2 + q)) for q, base in enumerate(own[:2])
                ]
                s, adds = self.let(strip), self.let(k > 0)
                with self.repeat(s < last):
                    vectors = self.let(call("minimum", last - s, words["panel"]))
                    self._all_rows((first, end), lines, (*block, own[2]), vectors, s, adds)
                    self.change(s, s + words["panel"])

    def _all_rows(
        self, span: tuple[Expression, Expression], lines: Expression,
        places: tuple[Expression, ...], vectors: Expression, s: Expression, adds: Expression,
    ) -> None:  # fmt: skip
        """Rows of one panel of strips, as many at a time as inner loops have."""
        first, end = span
        a, b, c = places
        strip = self.let(s * 3 + len(STRIDED_WORDS))
        r = self.let(first)
        with self.repeat(r < end):
            *others, least = self.rows
            chosen: Expression = of(least)
            for more in reversed(others):
                chosen = call("select", end - r >= more, more, chosen)
            chosen = self.let(chosen)
            given: dict[str, Any] = {
                "a": self.let(a + r * self.size) if self.is_near else a,
                "b": b,
                "c": c,
                "line": self.let(call("advance", lines, r * 2)),
                "strip": strip,
                "adds": adds,
            }
            self.by_number(
                chosen,
                {n: partial(self._of_rows, n, vectors, given) for n in self.rows},
                least,
            )
            self.change(r, r + chosen)

    def _of_rows(self, rows: int, vectors: Expression, given: dict[str, Any]) -> None:
        """The inner loop of so many rows."""
        counts = range(1, self.vectors + 1)
        cases = {n: partial(self.inner, rows, n, **given) for n in counts}
        self.by_number(vectors, cases, self.vectors)
