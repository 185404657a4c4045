"""`limits`: what a block of code may take of time and memory."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from funcgrad.api.checkpointing import parse_bytes
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.jit import limited
from funcgrad.observers.limits import NEVER, Limits

__all__ = ["limits"]


@contextmanager
def limits(*, seconds: float | None = None, memory: int | str | None = None) -> Iterator[None]:
    """Limit the time and the memory of compiled functions within a block.

    Compiled programs check the clock between steps, between the parts of large steps, and in loops:
    they stop a few hundredths of a second after the limit. Their memory is known before they run.
    Eager code checks the clock at every call of a compiled function and at every step of a `lax`
    loop. A single call of NumPy or LAPACK cannot be stopped.

    A nested block can only tighten the limits of the outer one.

    Args:
        seconds: How long the block may take, wall-clock time from here on.
        memory: How much memory a compiled function may need for its results and on the way to them,
            in bytes, or as text such as ``"2GB"`` (powers of ten).

    Raises:
        TimeLimitError: A ``TimeoutError``: which function, which step of it, at which line.
        MemoryLimitError: A ``MemoryError``: which function, how much it needs, its largest array.
        ArgumentError: A limit is not a positive number.

    Example:
        >>> outer = fg.jit(lambda x: np.sort(np.outer(x, x), axis=0))
        >>> with fg.limits(seconds=10, memory="100MB"):
        ...     y = outer(np.ones(1000))
        >>> with fg.limits(memory="1MB"):
        ...     y = outer(np.ones(1000))
        Traceback (most recent call last):
            ...
        funcgrad.errors.MemoryLimitError: ...
    """
    with limited(_limits(seconds, memory)):
        yield


def _limits(seconds: float | None, memory: int | str | None) -> Limits:
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        raise ArgumentError(f"limits: seconds must be a positive number, got {seconds!r}.")
    deadline = NEVER
    if seconds is not None and seconds < _LONGEST:
        deadline = time.monotonic_ns() + int(seconds * 1e9)
    nbytes = None if memory is None else parse_bytes(memory, "limits")
    return Limits(math.inf if seconds is None else float(seconds), deadline, nbytes)


_LONGEST = 1e9
"""Seconds from which on there is no limit: thirty years."""
