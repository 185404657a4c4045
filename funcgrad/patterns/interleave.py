"""Elements of several vectors in the order of a matrix's entries.

Row by row, entries come from the diagonals in turn, again and again: an element of one, then of the
next one. Such stretches of an order are stacks of slices, which one kernel writes together with
what computes them. Other orders are lookups among all elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.records import dataclass

MOST_IN_TURN = 16
"""The most vectors that are interleaved, which is as many as one kernel writes."""

LEAST_TURNS = 8
"""The least number of periods in an interleaved stretch."""

MOST_STRETCHES = 8
"""The most stretches of an order; beyond them it is a gather."""

MOST_ALONE = 32
"""The most elements of an order that are in no stretch."""

SAMPLES = (4, 2, 6)
"""Positions that are tried for the period of a stretch, in eighths of the rest of the order."""


@dataclass(frozen=True)
class Stretch:
    """A part of an order.

    Args:
        start: The number of its first element.
        stop: The number after its last one.
        period: How many elements come in turn; 0 for elements in no order.
    """

    start: int
    stop: int
    period: int


def in_order(parts: Sequence[Any], sizes: Sequence[int], source: Any, dtype: Any) -> Any:
    """Elements of vectors in a given order.

    Args:
        parts: Vectors, and scalars for those whose elements are all equal.
        sizes: Their lengths.
        source: The number of each element among those of all vectors, one after the other.
        dtype: The dtype of the result.
    """
    order = Order(parts, sizes, source)
    stretches = order.stretches()
    if stretches is None:
        flat = fnp.concatenate(
            [fnp.broadcast_to(x, (n,)) for x, n in zip(parts, sizes, strict=True)]
        )
        is_small = sum(sizes) <= np.iinfo(np.int32).max
        return fnp.take(
            flat.astype(dtype), source.astype(np.int32) if is_small else source, mode="clip"
        )
    return fnp.concatenate([order.elements(stretch) for stretch in stretches]).astype(dtype)


class Order:
    """An order of elements of vectors.

    Args:
        parts: The vectors.
        sizes: Their lengths.
        source: The number of each element.
    """

    def __init__(self, parts: Sequence[Any], sizes: Sequence[int], source: Any) -> None:
        ends = np.cumsum(sizes)
        self.parts = parts
        self.owner = np.searchsorted(ends, source, "right")
        is_one = np.array([np.ndim(x) == 0 for x in parts])
        starts = ends - sizes
        self.place = np.where(is_one[self.owner], 0, source - starts[self.owner])

    def stretches(self) -> list[Stretch] | None:
        """Split an order into interleaved stretches and the rest; ``None`` if it is a gather."""
        found: list[Stretch] = []
        waiting = [(0, len(self.owner))]
        while waiting:
            start, stop = waiting.pop()
            stretch = self._stretch(start, stop)
            found.append(stretch or Stretch(start, stop, 0))
            if stretch is not None:
                waiting += [(start, stretch.start), (stretch.stop, stop)]
            if sum(s.period > 0 for s in found) > MOST_STRETCHES:
                return None
        alone = sum(s.stop - s.start for s in found if not s.period)
        if alone > MOST_ALONE or not any(s.period for s in found):
            return None
        found.sort(key=lambda s: s.start)
        return [s for s in found if s.start < s.stop]

    def _stretch(self, start: int, stop: int) -> Stretch | None:
        """A stretch of a part of the order, if there is one where it is looked for."""
        for eighths in SAMPLES:
            middle = start + (stop - start) * eighths // 8
            for period in range(1, MOST_IN_TURN + 1):
                if middle + 3 * period > stop:
                    break
                if self._is_in_turn(middle, period):
                    stretch = self._whole(middle, period, start, stop)
                    if stretch.stop - stretch.start >= LEAST_TURNS * period:
                        return stretch
        return None

    def _is_in_turn(self, start: int, period: int) -> bool:
        """Whether three turns of elements are alike."""
        owner = self.owner[start : start + 3 * period].reshape(3, period)
        place = self.place[start : start + 3 * period].reshape(3, period)
        return not (np.diff(owner, axis=0).any() or np.diff(place, 2, axis=0).any())

    def _whole(self, middle: int, period: int, start: int, stop: int) -> Stretch:
        """The longest stretch around some turns."""
        turn = np.diff(self.place[middle : middle + 2 * period].reshape(2, period), axis=0)[0]
        first = start + (middle - start) % period
        owner, place = self.owner[start:stop], self.place[start:stop]
        steps = np.resize(np.roll(turn, first - start), stop - start - period)
        is_alike = (owner[period:] == owner[:-period]) & (place[period:] - place[:-period] == steps)
        others = np.flatnonzero(~is_alike) + start
        number = int(np.searchsorted(others, middle))
        low = int(others[number - 1]) + 1 if number else start
        high = int(others[number]) + period if number < len(others) else stop
        return Stretch(low, high - (high - low) % period, period)

    def elements(self, stretch: Stretch) -> Any:
        """The elements of a part of the order."""
        return fnp.stack(list(self._columns(stretch)), axis=-1).reshape(
            stretch.stop - stretch.start
        )

    def _columns(self, stretch: Stretch) -> Iterator[Any]:
        """The elements of each turn, or single ones."""
        period = stretch.period or stretch.stop - stretch.start
        turns = (stretch.stop - stretch.start) // period
        for i in range(stretch.start, stretch.start + period):
            part, place = self.parts[self.owner[i]], int(self.place[i])
            if np.ndim(part) == 0:
                yield fnp.broadcast_to(part, (turns,))
                continue
            step = int(self.place[i + period]) - place if turns > 1 else 1
            if step == 0:
                yield fnp.broadcast_to(part[place], (turns,))
            else:
                last = place + step * (turns - 1)
                yield (
                    part[place : last + 1 : step]
                    if step > 0
                    else part[last : place + 1 : -step][::-1]
                )
