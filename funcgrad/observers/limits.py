"""Limits of time and memory, for the code of one context.

What runs for long asks here: compiled programs before they start and while they run, and loops that
Python takes the steps of. What a limit does not reach is one call of NumPy or LAPACK.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar

from funcgrad.base.records import dataclass
from funcgrad.errors import MemoryLimitError, TimeLimitError

NEVER = (1 << 63) - 1
"""The deadline of what has none."""


@dataclass(frozen=True)
class Limits:
    """Time and memory that a block may use.

    Attributes:
        seconds: How long it may take; infinite for no limit.
        deadline: When it has to end, in ns of the monotonic clock.
        memory: Bytes that a compiled program may need besides its arguments; ``None`` for no limit.
    """

    seconds: float
    deadline: int
    memory: int | None

    def within(self, outer: Limits) -> Limits:
        """The stricter ones of these and others."""
        late = min(self, outer, key=lambda x: x.deadline)
        given = [x for x in (self.memory, outer.memory) if x is not None]
        return Limits(late.seconds, late.deadline, min(given, default=None))

    def late(self, what: str) -> TimeLimitError:
        """The error of something that was stopped.

        Args: what: What it was, and where.
        """
        return TimeLimitError(
            f"the limit of {self.seconds:g} seconds has passed in {what}\n"
            "Give `limits(seconds=...)` more time, or the program less to do."
        )

    def check_time(self, what: Callable[[], str]) -> None:
        """Raise if the time is over.

        Args: what: Tells what is about to run, and where.
        Raises: TimeLimitError: It is over.
        """
        if time.monotonic_ns() >= self.deadline:
            raise self.late(what())

    def check_memory(self, needed: int, what: str, largest: str) -> None:
        """Raise if something needs more memory than there may be.

        Args:
            needed: Bytes.
            what: What needs them.
            largest: Its largest array, and where it is made.
        Raises: MemoryLimitError: It needs more.
        """
        if self.memory is not None and needed > self.memory:
            raise MemoryLimitError(
                f"{what} needs {format_bytes(needed)} besides its arguments, more than the limit "
                f"of {format_bytes(self.memory)}; nothing has been computed. Its largest array is "
                f"{largest}\nCompute in smaller pieces (lax.map with batch_size, lax.scan), "
                "recompute with checkpoint, or give `limits(memory=...)` more."
            )


_LIMITS: ContextVar[Limits | None] = ContextVar("funcgrad_limits", default=None)

current_limits = _LIMITS.get
"""The limits of the current context."""

set_limits = _LIMITS.set
reset_limits = _LIMITS.reset


def check_time(what: Callable[[], str]) -> None:
    """Raise if the current context has no time left.

    Args: what: Tells what is about to run, and where.
    Raises: TimeLimitError: It has none.
    """
    limits = current_limits()
    if limits is not None:
        limits.check_time(what)


def format_bytes(n: float) -> str:
    """A number of bytes with a decimal unit, as ``24.6 MB``."""
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.2f} GB"


def format_seconds(seconds: float) -> str:
    """A time with a unit, as ``1.51 ms``; nothing for none."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return "" if not seconds else "< 1 ns"
