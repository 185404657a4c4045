"""Origins of infinities: the operation that made the one that another operation was given.

While a run is followed, every operation whose results hold an infinity is noted with its operands.
An infinity is traced back from a result to an operand that has one at the same place, if the
operation acts on corresponding elements, and to any operand that has one, if it moves or combines
elements, until an operation has made it of finite operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.observers.source import SourceLocation, current_location

Index = tuple[int, ...]


@dataclass(frozen=True)
class Made:
    """An operation of which a result holds an infinity, or a NaN.

    Attributes:
        operation: Its name.
        operands: What it was given.
        result: The result.
        is_elementwise: Whether it acts on corresponding elements.
        location: The user's line, if it is known.
    """

    operation: str
    operands: tuple[Any, ...]
    result: Any
    is_elementwise: bool
    location: SourceLocation | None = None

    def is_like(self, other: Made) -> bool:
        """Whether an operation of another run did the same at the same line."""
        if (self.operation, self.location) != (other.operation, other.location):
            return False
        return np.array_equal(self.result, other.result, equal_nan=True)

    def infinite_operand(self, index: Index) -> tuple[Any, Index] | None:
        """The operand that gave the result its entry at an index, and where in it, if one did."""
        shape = np.shape(self.result)
        for x in self.operands:
            if not holds_infinity(x):
                continue
            if not self.is_elementwise:
                return x, _first_infinity(x)
            if len(np.shape(x)) <= len(shape):
                there = _index_before_broadcasting(index, np.shape(x))
                if np.isinf(np.asarray(x)[there]):
                    return x, there
        return None


@dataclass(frozen=True)
class Cause:
    """The origin of an infinity.

    Attributes:
        made: The operation that made it; ``None`` if it came in from outside.
        value: What holds it.
    """

    made: Made | None
    value: Any


class Origins:
    """The operations of one run that made infinities, or passed them on.

    Args:
        given: Values that come in from outside.
        stop_at: The operation, of another run, at which this run ends.
    """

    def __init__(self, given: Sequence[Any] = (), stop_at: Made | None = None) -> None:
        self.given = [x for x in given if isinstance(x, np.ndarray)]
        self.stop_at = stop_at
        self.cause: Cause | None = None
        # By the identity of results, which are kept, so that no other has it.
        self._made: dict[int, Made] = {}

    def note(
        self, operation: str, operands: Sequence[Any], results: Sequence[Any], is_elementwise: bool
    ) -> Made | None:
        """Take note of an operation; gives it if the run is to stop here."""
        given = tuple(x for x in operands if x is not None)
        for result in results:
            if holds_infinity(result) and not any(result is x for x in given):
                location = current_location()
                made = Made(operation, given, result, is_elementwise, location)
                self._made.setdefault(id(result), made)
                if self.stop_at is not None and made.is_like(self.stop_at):
                    return made
        return None

    def explain(
        self, operation: str, operands: Sequence[Any], result: Any, is_elementwise: bool
    ) -> None:
        """Find the cause of a NaN among the infinities that the operation was given."""
        given = tuple(x for x in operands if x is not None)
        made = Made(operation, given, result, is_elementwise)
        index: Index = tuple(int(i) for i in np.argwhere(np.isnan(result))[0])
        while (found := made.infinite_operand(index)) is not None:
            value, index = found
            maker = self._maker_of(value)
            if maker is None:
                self.cause = Cause(None, value)
                return
            made = maker
            if np.shape(maker.result) != np.shape(value):
                index = _first_infinity(maker.result)
            self.cause = Cause(maker, maker.result)

    def like(self, made: Made) -> Made | None:
        """The operation of this run that gave what an operation of another run gave."""
        for own in self._made.values():
            if own.is_like(made):
                return own
        return None

    def _maker_of(self, value: Any) -> Made | None:
        found = self._made.get(id(value))
        if found is not None or not isinstance(value, np.ndarray):
            return found
        if any(np.may_share_memory(value, x) for x in self.given):
            return None
        # Views, as the steps of a loop get of what it scans over; and what a loop has stacked.
        latest = list(self._made.values())[::-1]
        for made in latest:
            if isinstance(made.result, np.ndarray) and np.may_share_memory(value, made.result):
                return made
            if np.shape(made.result) == value.shape[1:] and any(
                np.array_equal(row, made.result, equal_nan=True) for row in value
            ):
                return made
        return None


_following: ContextVar[Origins | None] = ContextVar("funcgrad_origins", default=None)

followed = _following.get
"""Follower of the run of this thread and context, if there is one."""


@contextmanager
def following(origins: Origins) -> Iterator[None]:
    """Follow the infinities of a block, in which non-finite values are watched for."""
    token = _following.set(origins)
    try:
        yield
    finally:
        _following.reset(token)


def holds_infinity(value: Any) -> bool:
    """Whether it is a number or an array, not traced, with an infinity."""
    if not isinstance(value, np.ndarray | np.generic | float | complex):
        return False
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(np.isinf(array).any())


def _first_infinity(value: Any) -> Index:
    return tuple(int(i) for i in np.argwhere(np.isinf(value))[0])


def _index_before_broadcasting(index: Index, shape: tuple[int, ...]) -> Index:
    last = index[len(index) - len(shape) :]
    return tuple(0 if n == 1 else i for i, n in zip(last, shape, strict=True))
