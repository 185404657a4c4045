"""Contractions that no matrices in memory describe, as tables of distances.

One letter of the result becomes the columns of a `Product`: it must be free in one operand, B,
where its elements lie side by side. Everything else may lie anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.library.tiles import NOMINAL, inner_shape
from funcgrad.compiler.machine import (
    ACROSS,
    SEVERAL,
    SHORT_AXIS,
    SUM_BLOCK,
    UNALIGNED,
    VECTOR_BYTES,
)
from funcgrad.compiler.nest.builder import Builder
from funcgrad.compiler.nest.layout import Operand, Value, View, whole
from funcgrad.compiler.nest.nodes import Product, Tables
from funcgrad.lowering import Contraction

_MOST_ROWS, _MOST_TERMS, _MOST_COLUMNS = SUM_BLOCK, 2 * SUM_BLOCK, 2 * SUM_BLOCK

_Loop = tuple[str, int, int]
"""A letter, how many of its indices are iterated over, and their distance."""


@dataclass(frozen=True)
class _Choice:
    """Choice of the letter whose axis becomes the columns.

    Attributes:
        letter: The letter.
        is_rhs: Whether B is the second operand.
        copies: Whether B must be copied first.
        cost: About how many cycles it takes.
    """

    letter: str
    is_rhs: bool
    copies: bool
    cost: float


class Letters:
    """The letters of a contraction, and what they stand for.

    Attributes:
        lengths: The length of the axis of each letter.
        batch: Those of the result and of both operands.
        rows: Those of the result and of the first operand alone.
        columns: Those of the result and of the second operand alone.
        summed: Those of which the result is a sum.
    """

    def __init__(self, builder: Builder, form: Contraction, x: Operand, y: Operand) -> None:
        self.builder = builder
        self.form = form
        self.operands = (x, y)
        self.lengths = dict(zip(form.lhs, x.shape, strict=True))
        self.lengths |= dict(zip(form.rhs, y.shape, strict=True))
        self.batch = [c for c in form.out if c in form.lhs and c in form.rhs]
        self.rows = [c for c in form.out if c in form.lhs and c not in form.rhs]
        self.columns = [c for c in form.out if c in form.rhs and c not in form.lhs]
        self.summed = [c for c in form.lhs if c not in form.out]

    def size(self, letters: Iterable[str]) -> int:
        """Elements along the axes of some letters."""
        return math.prod(self.lengths[c] for c in letters)


class Strider(Letters):
    """A contraction of two views as a strided product."""

    def __init__(
        self, builder: Builder, form: Contraction, x: Operand, y: Operand, sliding: Iterable[str]
    ) -> None:
        super().__init__(builder, form, x, y)
        self.x = builder.stored(x)
        self.y = builder.stored(y)
        self.itemsize: int = x.dtype.itemsize
        self.sliding = frozenset(sliding)
        self.choice = min(self._choices(), key=lambda choice: choice.cost, default=None)

    @property
    def is_possible(self) -> bool:
        """Whether there are columns, and more work than small loops unroll."""
        is_large = self.size(self.lengths) >= SEVERAL**3
        return self.choice is not None and is_large and self.x.dtype.kind in "fiu"

    def _choices(self) -> Iterator[_Choice]:
        form = self.form
        for is_rhs in (False, True):
            own, other = (form.rhs, form.lhs) if is_rhs else (form.lhs, form.rhs)
            b = self.y if is_rhs else self.x
            n_rows = self.size(c for c in form.out if c in other and c not in own)
            free = self.size(c for c in form.out if c in own and c not in other)
            for c in own:
                if c not in form.out or c in other:
                    continue
                copies = b.strides[own.index(c)] != 1 and self.lengths[c] > 1
                yield _Choice(c, is_rhs, copies, self._cost(c, n_rows, free, copies, b))

    def _cost(self, letter: str, n_rows: int, free: int, copies: bool, b: View) -> float:
        vectors = -(-self.lengths[letter] * self.itemsize // VECTOR_BYTES)
        strips = vectors * free // max(self.lengths[letter], 1)
        rows, _, width = inner_shape(self.itemsize, NOMINAL).fitted(n_rows, strips)
        # Two loads and two products a cycle, a product every fourth in the same register.
        rate = min(2.0, rows * width / 4, 2 * rows * width / (rows + width))
        others = math.prod(self.lengths.values()) / self.lengths[letter]
        cost = others * vectors / rate
        if copies:
            cost += UNALIGNED * math.prod(b.shape)
        size = self.size(self.form.out)
        if letter != self._last():
            cost += UNALIGNED * size  # if somebody wants the other order at the end
        # Elements that would lie side by side, as they have a channel in common, or a place.
        places = [c for c in self.form.out if c in self.sliding]
        if self.size(places if letter in self.sliding else letter) * self.itemsize < VECTOR_BYTES:
            cost += ACROSS * size  # of what follows
        return cost

    def _last(self) -> str:
        """The letter of the result along which elements lie side by side."""
        return next((c for c in reversed(self.form.out) if self.lengths[c] > 1), self.form.out[-1:])

    def result(self) -> Operand:
        """The contraction, as a view of a strided product."""
        assert self.choice is not None
        letter, form = self.choice.letter, self.form
        a, b, a_labels, b_labels = self.x, self.y, form.lhs, form.rhs
        if not self.choice.is_rhs:
            a, b, a_labels, b_labels = b, a, b_labels, a_labels
        if self.choice.copies:
            order = b_labels.replace(letter, "") + letter
            b, b_labels = self._moved(b, b_labels, order), order
        out_order = form.out
        if letter != self._last():
            # Windows last, as where channels come first: what is computed of them goes along them.
            sliding = [c for c in form.out if c in self.sliding and c != letter]
            others = [c for c in form.out if c not in (*sliding, letter)]
            out_order = "".join([*others, *sliding, letter])
        value = Value(tuple(self.lengths[c] for c in out_order), a.dtype)
        value.is_free = out_order != form.out
        rows = self._rows([c for c in out_order if c in a_labels and c not in b_labels])
        a, a_labels = self._near(a, a_labels, rows)
        in_a = dict(zip(a_labels, a.strides, strict=True))
        in_b = dict(zip(b_labels, b.strides, strict=True))
        in_out = dict(zip(out_order, value.strides, strict=True))
        lines = self._lines([c for c in out_order if c in b_labels and c not in a_labels], letter)
        outer = [c for c in out_order if c not in (letter, *rows, *lines)]
        blocks, terms = self._terms(in_a, in_b, self.size(rows))
        distances = (
            self._table(self._every(outer), (in_a, in_b, in_out)),
            self._table(self._every(rows), (in_a, in_out)),
            self._table(blocks, (in_a, in_b)),
            self._table(terms, (in_a, in_b)),
        )
        of_lines = self._table(self._every(lines), (in_b, in_out))
        tables = Tables(distances, self.lengths[letter], of_lines)
        self.builder.add(Product((a, b), (value,), tables))
        shape = tuple(self.lengths[c] for c in form.out)
        return View(value, shape, tuple(in_out[c] for c in form.out))

    def _near(self, a: View, labels: str, rows: list[str]) -> tuple[View, str]:
        """A with neighbouring rows, if that costs little."""
        step = 1
        for c in reversed(rows):
            if self.lengths[c] > 1 and a.strides[labels.index(c)] != step:
                break
            step *= self.lengths[c]
        else:
            return a, labels
        assert self.choice is not None
        if 2 * ACROSS * math.prod(a.shape) > self.choice.cost:
            return a, labels
        order = "".join([*(c for c in labels if c not in rows), *rows])
        return self._moved(a, labels, order), order

    def _moved(self, x: View, labels: str, order: str) -> View:
        """A copy of an operand with its axes in another order."""
        return whole(self.builder.copy(x.permuted([labels.index(c) for c in order])))

    def _rows(self, letters: list[str]) -> list[str]:
        """The last of some letters, up to a reasonable number of rows."""
        rows: list[str] = []
        for c in reversed(letters):
            if rows and self.size([*rows, c]) > _MOST_ROWS:
                break
            rows.insert(0, c)
        return rows

    def _terms(
        self, in_a: dict[str, int], in_b: dict[str, int], n_rows: int
    ) -> tuple[list[_Loop], list[_Loop]]:
        """Loops over summed letters in the order of B, those of blocks and those of a block."""
        letters = sorted(self.summed, key=lambda c: (-abs(in_b[c]), -abs(in_a[c])))
        blocks = [(c, self.lengths[c], 1) for c in letters]
        terms: list[_Loop] = []
        size = 1
        while blocks:
            c, n, _ = blocks.pop()
            if terms and n * size > _MOST_TERMS:
                # Where all rows are computed at once, nobody reads the terms of a block again.
                most = max(_MOST_TERMS // size, 1) if n_rows <= SHORT_AXIS else 1
                part = max(d for d in range(1, most + 1) if n % d == 0)
                blocks.append((c, n // part, part))
                terms.insert(0, (c, part, 1))
                break
            terms.insert(0, (c, n, 1))
            size *= n
        return blocks, terms

    def _lines(self, free: list[str], letter: str) -> list[str]:
        """The last free letters of B but the columns, up to a reasonable number of lines."""
        lines: list[str] = []
        for c in reversed([c for c in free if c != letter]):
            if lines and self.size([*lines, c, letter]) > _MOST_COLUMNS:
                break
            lines.insert(0, c)
        return lines

    def _every(self, letters: Iterable[str]) -> list[_Loop]:
        """Loops over all of some letters."""
        return [(c, self.lengths[c], 1) for c in letters]

    def _table(self, loops: Sequence[_Loop], strides: Sequence[dict[str, int]]) -> np.ndarray:
        """Bytes to the elements at all indices of some loops, one column for each array."""
        table = np.zeros((1, len(strides)), np.int64)
        for c, length, step in loops:
            distance = np.array([of.get(c, 0) * step * self.itemsize for of in strides])
            moves = np.arange(length)[:, None] * distance
            table = (table[:, None, :] + moves[None, :, :]).reshape(-1, len(strides))
        return table
