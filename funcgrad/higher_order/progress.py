"""Bars of tqdm for loops that take long.

A loop that shows its progress is run by Python in parts, each of which is the loop itself,
compiled, over some of the steps: nothing is called from inside of native code, and every step
computes what it would compute without a bar. Without tqdm there are no parts.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
import warnings
from collections.abc import Iterator
from typing import Any, overload

from funcgrad.base.imports import load
from funcgrad.errors import ArgumentError, ProgressWarning
from funcgrad.observers.source import current_location

PARTS = 100
"""In how many parts, about, a loop is run whose number of steps is known."""

_SHORT, _LONG = 0.05, 0.2
"""Seconds that a part of other loops takes, about."""

_BACKWARD = ", backward"

_has_warned = False


def checked_label(progress: Any, what: str) -> str | None:
    """The label of a bar, if there is one to show.

    Args:
        progress: What the user gave: a label, or ``None`` for no bar.
        what: The loop, for messages.
    Raises: ArgumentError: If it is neither.
    """
    if progress is None:
        return None
    if not isinstance(progress, str):
        location = current_location()
        where = "" if location is None else f"\n  at            {location}"
        raise ArgumentError(
            f"{what}: progress is the label of a bar, a string, or None; got {progress!r}.{where}"
        )
    if importlib.util.find_spec("tqdm") is None:
        _warn_once()
        return None
    return progress


def _warn_once() -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        text = "progress is not shown, because tqdm is not installed: pip install tqdm."
        warnings.warn(ProgressWarning(text), stacklevel=4)


@overload
def backward(label: str) -> str: ...
@overload
def backward(label: None) -> None: ...
def backward(label: str | None) -> str | None:
    """The label of the transposed loop."""
    if label is None:
        return None
    return label.removesuffix(_BACKWARD) if label.endswith(_BACKWARD) else label + _BACKWARD


def progress_bar(label: str, total: int | None = None, unit: str = "step") -> Any:
    """A bar, to be entered by ``with``, which closes it whatever happens.

    Args:
        label: What stands before it.
        total: How far it goes; ``None`` for a counter.
        unit: What it counts.
    """
    tqdm = load("tqdm.auto").tqdm
    return tqdm(total=total, desc=label, unit=unit, leave=None)


def parts_of(length: int, reverse: bool) -> list[tuple[int, int]]:
    """About `PARTS` parts of a range, in the order in which they are run.

    All but the last have the same length, so that there are two programs at most. None has a single
    step, unless there is no other: one step is compiled as what it does, not as a loop, which may
    round differently.
    """
    step = max(2, length // PARTS)
    ends = [*range(step, length - 1, step), length]
    parts = list(zip([0, *ends], ends, strict=False))
    return [(length - stop, length - start) for start, stop in parts] if reverse else parts


def counted_parts() -> Iterator[int]:
    """Numbers of steps for a loop that ends somewhere, so that each takes a tenth of a second."""
    count = 1
    while True:
        start = time.monotonic()
        yield count
        seconds = time.monotonic() - start
        if seconds < _SHORT:
            count *= 2
        elif seconds > _LONG:
            count = max(1, count // 2)
