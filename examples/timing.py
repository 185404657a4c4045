"""Shared by the example programs: the time of calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

Key = TypeVar("Key")


def fastest(calls: dict[Key, Callable[..., Any]], *given: Any, rounds: int) -> dict[Key, float]:
    """The least seconds of every call, of several rounds through all of them."""
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):  # alternating, so that all meet the same disturbances
        for key, call in calls.items():
            start = time.perf_counter()
            call(*given)
            seconds[key] = min(seconds[key], time.perf_counter() - start)
    return seconds
