"""Offsets of buffers with known lifetimes in one range of memory.

`packed` reuses memory of what has ended by best fit, in the order in which buffers begin. Where
holes between buffers then take more than a tenth of what lives at once, buffers are placed again,
the largest first, each at the lowest offset that is free while it lives.

Source:
    Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, arXiv:2001.03288.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from funcgrad.base.records import dataclass
from funcgrad.compiler.machine import VECTOR_BYTES


@dataclass
class Buffer:
    """Memory that is needed from one step of a plan to another.

    Attributes:
        nbytes: Its size.
        first: The step that writes it.
        last: The last step that needs it.
        offset: Where it lies.
    """

    nbytes: int
    first: int
    last: int
    offset: int = field(default=0)

    @property
    def room(self) -> int:
        """Its size in whole vectors."""
        return -(-max(self.nbytes, 1) // VECTOR_BYTES) * VECTOR_BYTES


class Offset(int):
    """Offset of a buffer, or of a place in it: an integer that knows the buffer.

    Attributes:
        owner: The value whose buffer it is.
        start: Where the buffer begins.
    """

    owner: Any
    start: int

    def __new__(cls, offset: int, owner: Any, start: int) -> Offset:
        found = super().__new__(cls, offset)
        found.owner, found.start = owner, start
        return found

    def __add__(self, nbytes: int) -> Offset:
        return Offset(int(self) + nbytes, self.owner, self.start)

    __radd__ = __add__


def packed(buffers: Sequence[Buffer]) -> int:
    """Give buffers, sorted by their first steps, their offsets.

    Returns: The size of the range.
    """
    size, least = _in_order(buffers), live_bytes(buffers)
    if 10 * size <= 11 * least:
        return size
    before = [buffer.offset for buffer in buffers]
    again = _by_size(buffers)
    if again >= size:
        for buffer, offset in zip(buffers, before, strict=True):
            buffer.offset = offset
    return min(again, size)


def live_bytes(buffers: Iterable[Buffer]) -> int:
    """The most bytes that live at once: no offsets need less."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        changes[buffer.first] = changes.get(buffer.first, 0) + buffer.room
        changes[buffer.last + 1] = changes.get(buffer.last + 1, 0) - buffer.room
    live = most = 0
    for step in sorted(changes):
        live += changes[step]
        most = max(most, live)
    return most


def _in_order(buffers: Sequence[Buffer]) -> int:
    free = _FreeRanges()
    ends: dict[int, list[Buffer]] = {}
    step = 0
    for buffer in buffers:
        for now in range(step, buffer.first):
            for old in ends.pop(now, ()):
                free.give(old.offset, old.room)
        step = buffer.first
        buffer.offset = free.take(buffer.room)
        ends.setdefault(buffer.last, []).append(buffer)
    return free.size


def _by_size(buffers: Sequence[Buffer]) -> int:
    placed: list[Buffer] = []  # by offset
    for buffer in sorted(buffers, key=lambda buffer: (-buffer.room, buffer.first)):
        buffer.offset = 0
        for other in (x for x in placed if x.first <= buffer.last and buffer.first <= x.last):
            if other.offset - buffer.offset >= buffer.room:
                break
            buffer.offset = max(buffer.offset, other.offset + other.room)
        bisect.insort(placed, buffer, key=lambda other: other.offset)
    return max(buffer.offset + buffer.room for buffer in buffers)


class _FreeRanges:
    """Best-fit allocation of a range that grows as needed."""

    def __init__(self) -> None:
        self.size = 0
        self.lengths: dict[int, int] = {}  # of free ranges, by where they begin; never adjacent
        self.ends: dict[int, int] = {}  # where free ranges begin, by where they end
        self.fits: list[tuple[int, int]] = []  # (length, begin) of free ranges, ascending

    def take(self, length: int) -> int:
        i = bisect.bisect_left(self.fits, (length, 0))
        if i < len(self.fits):
            found, offset = self.fits[i]
            self._remove(offset)
            if found > length:
                self._add(offset + length, found - length)
            return offset
        offset = self.size
        if self.size in self.ends:
            offset = self.ends[self.size]
            self._remove(offset)
        self.size = offset + length
        return offset

    def give(self, offset: int, length: int) -> None:
        if offset + length in self.lengths:
            length += self._remove(offset + length)
        if offset in self.ends:
            before = self.ends[offset]
            length += self._remove(before)
            offset = before
        self._add(offset, length)

    def _add(self, offset: int, length: int) -> None:
        self.lengths[offset] = length
        self.ends[offset + length] = offset
        bisect.insort(self.fits, (length, offset))

    def _remove(self, offset: int) -> int:
        length = self.lengths.pop(offset)
        del self.ends[offset + length]
        del self.fits[bisect.bisect_left(self.fits, (length, offset))]
        return length
