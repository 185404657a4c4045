"""Repeats of a sequence: runs in which the same few tokens come again and again.

``repeats : [token] -> [(start, period, count)]``, longest periods first, in time ``n log n``.

Two places are alike at level ``q`` if the ``2**q`` tokens from there on are equal; the levels
follow from each other by doubling (Karp, Miller, Rosenberg: "Rapid identification of repeated
patterns in strings, trees and arrays", STOC 1972). Within a run the next place that is alike is one
period away, at every level that no shorter repeat within the period deceives. So a loop that holds
loops is found before these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

Integers = np.ndarray[Any, np.dtype[np.int64]]

_MAX_PERIODS = 6
"""How many periods are tried at a level."""

_MOST = 1 << 62
"""Numbers that stand for several are smaller."""

_NARROW = 4
"""Operands of most operations: longer lists are compared one by one."""


class Repeats:
    """The repeats of a sequence, from which those that were taken are removed.

    Args:
        tokens: The sequence.
        least: How many tokens a run must have beyond its first period.
    """

    def __init__(self, tokens: Integers, least: int) -> None:
        self._tokens = np.array(tokens, np.int64)
        self._least = least
        self._next_unique = -1

    def take(self, start: int, stop: int) -> None:
        """Remove a part, so that no further run reaches into it."""
        n = stop - start
        self._tokens[start:stop] = np.arange(self._next_unique, self._next_unique - n, -1)
        self._next_unique -= n

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Start, period and length (all in tokens) of every run, longest periods first."""
        tried: set[tuple[int, int, int]] = set()
        for distances in reversed(self._distances()):
            for period in self._periods(distances):
                for start, length in self.stretches(period, 0, len(self._tokens)):
                    run = (start, period, length)
                    if run not in tried:
                        tried.add(run)
                        yield run

    def stretches(self, period: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Starts and lengths of the runs of one period in a part of the sequence."""
        part = self._tokens[start:stop]
        is_equal = np.zeros(max(0, len(part) - period) + 2, bool)
        is_equal[1:-1] = part[period:] == part[:-period]
        edges = np.flatnonzero(is_equal[1:] != is_equal[:-1])
        for first, end in edges.reshape(-1, 2).tolist():
            begin = start + first
            if end - first >= max(self._least, period) and not self._is_multiple(begin, period):
                yield begin, end - first + period

    def _is_multiple(self, start: int, period: int) -> bool:
        """Whether a run of that period has a shorter one that divides it."""
        part = self._tokens[start : start + period]
        return any(
            period % n == 0 and np.array_equal(part[n:], part[:-n])
            for n in range(1, period // 2 + 1)
        )

    def _distances(self) -> list[Integers]:
        """For every level, how far from every place the next one is that is alike."""
        places, levels, length = self._tokens, [], 1
        while len(places) > self._least:
            order, is_alike = _ordered(places)
            distances = np.diff(order)[is_alike]
            if not len(distances):
                break
            levels.append(distances)
            if len(places) <= length:
                break
            ranks = np.empty_like(order)
            ranks[order] = np.cumsum(np.concatenate([[False], ~is_alike]))
            places = ranks[:-length] * len(ranks) + ranks[length:]
            length *= 2
        return levels

    def _periods(self, distances: Integers) -> list[int]:
        """The most frequent distances, longest first."""
        values, counts = np.unique(distances, return_counts=True)
        frequent = np.argsort(counts, kind="stable")[-_MAX_PERIODS:]
        enough = [int(values[i]) for i in frequent if counts[i] * 2 >= self._least]
        return sorted(enough, reverse=True)


def _ordered(numbers: Integers) -> tuple[Integers, Integers]:
    """Places of numbers in their order, and which of them is like the one before.

    Sorting numbers takes a fraction of the time of sorting their places, which here are their last
    digits, if there is room for them.
    """
    bits = len(numbers).bit_length()
    if int(numbers.max(initial=0)) >= _MOST >> bits or numbers.min(initial=0) < 0:
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
    else:
        keys = np.sort(numbers << bits | np.arange(len(numbers)))
        ordered, order = keys >> bits, keys & ((1 << bits) - 1)
    return order, ordered[1:] == ordered[:-1]


# Tokens from what equations are.


def numbered(
    things: Sequence[Any], key_of: Callable[[Any], Hashable]
) -> tuple[Integers, int, list[Any]]:
    """Numbers of things by their keys, how many keys there are, and a thing for each.

    The key of each object is asked for once, however often it is there.
    """
    identities = np.fromiter(map(id, things), np.int64)
    _, firsts, places = np.unique(identities, return_index=True, return_inverse=True)
    keys: dict[Hashable, int] = {}
    members: list[Any] = []
    numbers = []
    for i in firsts.tolist():
        number = keys.setdefault(key_of(things[i]), len(keys))
        if number == len(members):
            members.append(things[i])
        numbers.append(number)
    return np.array(numbers, np.int64)[places], len(members), members


def flattened(groups: Iterable[Sequence[Any]]) -> tuple[list[Any], Integers]:
    """Members of groups, one behind the other: where each group begins, and the last one ends.

    Groups are not kept: a garbage collection would traverse those of all equations.
    """
    members: list[Any] = []
    ends = [0]
    for group in groups:
        members += group
        ends.append(len(members))
    return members, np.array(ends, np.int64)


def rows_numbered(heads: Integers, ends: Integers, entries: Integers) -> Integers:
    """Numbers of rows, equal ones for equal rows.

    Args:
        heads: The first entry of each.
        ends: Where the others begin, and where those of the last row end.
        entries: The others.
    """
    lengths = np.diff(ends)
    base = int(lengths.max(initial=0)) + 1
    numbers, end = heads * base + lengths, (int(heads.max(initial=0)) + 1) * base
    entries = entries - entries.min(initial=0)
    base = int(entries.max(initial=0)) + 1
    for k in range(_NARROW):
        if end > _MOST // base:
            _, numbers = np.unique(numbers, return_inverse=True)
            end = len(numbers)
        (rows,) = np.nonzero((lengths > k) & (lengths <= _NARROW))
        digits = np.zeros(len(numbers), np.int64)
        digits[rows] = entries[ends[rows] + k]
        numbers, end = numbers * base + digits, end * base
    known: dict[Any, int] = {}
    _, heads = np.unique(numbers, return_inverse=True)
    for i in np.flatnonzero(lengths > _NARROW).tolist():
        key = (int(heads[i]), entries[ends[i] : ends[i + 1]].tobytes())
        heads[i] = len(numbers) + known.setdefault(key, len(known))
    return heads
