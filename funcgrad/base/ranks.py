"""Axes whose lanes are processes: the interface of those who exchange arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any


class Ranks:
    """An axis whose lanes are processes: the name of such an axis in programs.

    Attributes:
        label: What users call it.
        size: The number of processes.
        index: The number of this one.
        deterministic: Whether sums are formed in an order that does not depend on the machine.
        has_background: Whether compiled programs may move messages, and compute while they are
            under way.
        has_scattered_background: Whether that holds for parts of totals, too.
        halving: Distances of the processes that add halves of what they have, one after the other,
            so that each gets its part of a total; none where `part_of_total` is faster.

    Subclasses exchange arrays: contiguous ones of equal shapes in all processes.
    """

    label: Hashable
    size: int
    index: int
    deterministic: bool
    has_background: bool = False
    has_scattered_background: bool = False
    halving: tuple[int, ...] = ()

    def total(self, x: Any) -> Any:
        """The sum of the arrays of all processes."""
        raise NotImplementedError

    def gathered(self, x: Any) -> Any:
        """The arrays of all processes, stacked."""
        raise NotImplementedError

    def part_of_total(self, x: Any) -> Any:
        """The element of the sum, along its first axis, that has the number of this process."""
        raise NotImplementedError

    def exchanged(self, x: Any) -> Any:
        """Element ``i`` goes to process ``i``; what arrives, in the order of its senders."""
        raise NotImplementedError

    def passed(self, x: Any, destination: int | None, source: int | None) -> Any:
        """Return the array that ``source`` sends while this process sends to ``destination``."""
        raise NotImplementedError

    def native(self, operation: str, *details: Any) -> tuple[Any, ...]:
        """The native calls of one of the operations above; none where there are no such calls."""
        return ()

    def failure(self, operation: str, code: int) -> Exception:
        """The error for a call of native code that has failed."""
        raise NotImplementedError

    def demand_agreement(self, value: int, what: str) -> None:
        """Raise an error, in all processes, unless they give the same number."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return repr(self.label)


def ranks_in(names: Iterable[Hashable]) -> frozenset[Ranks]:
    """Return the axes whose lanes are processes."""
    return frozenset(name for name in names if isinstance(name, Ranks))


def demand_agreement(names: Iterable[Hashable], value: int, what: str) -> None:
    """Raise an error unless a number is equal in all processes of the axes.

    Args:
        names: Of axes, of which those of arrays do not matter.
        value: The number, on which it depends whether processes meet in collectives.
        what: What messages call it.
    Raises: DistributedError: In all processes.
    """
    for axis in sorted(ranks_in(names), key=lambda axis: str(axis.label)):
        axis.demand_agreement(value, what)
