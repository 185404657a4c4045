"""Interleaved timing: several sides measured turn by turn in one process, compared by ratio.

One *sample* of a side is the mean time of enough calls to last ``SAMPLE_SECONDS``; a *round* takes
a sample of every side, each round starting with another side, so that a slow phase of the machine
hits all of them. Ratios are formed within a round and then summarised by median and quartiles.

Left out: statistics beyond that, and any notion of what is being timed.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.heap import small_heap

SAMPLE_SECONDS = 0.05
# Workers of BLAS and of PyTorch spin for a while after their last product; they must not disturb
# the next side. It starts when the process has been idle for a moment, or after the longest pause.
LONGEST_PAUSE_SECONDS = 0.25
IDLE_SECONDS = 0.01


@dataclass(frozen=True)
class Side:
    """One competitor: ``call`` does the work once, ``finish`` waits for work still in flight."""

    name: str
    call: Callable[[], object]
    finish: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of some samples."""

    median: float
    lower: float
    upper: float

    @staticmethod
    def of(samples: Sequence[float]) -> Spread:
        """Summarise ``samples``; a single sample is its own quartiles."""
        if len(samples) == 1:
            return Spread(samples[0], samples[0], samples[0])
        lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
        return Spread(median, lower, upper)


def ratios(samples: Sequence[float], reference: Sequence[float]) -> list[float]:
    """How many times longer one side takes than another, round by round."""
    return [one / other for one, other in zip(samples, reference, strict=True)]


def interleave(sides: Sequence[Side], rounds: int) -> dict[str, list[float]]:
    """Time every side ``rounds`` times in turn: the seconds per call of each, round by round."""
    gc.collect()
    with small_heap():
        calls = {side.name: calls_per_sample(side) for side in sides}
        result: dict[str, list[float]] = {side.name: [] for side in sides}
        for turn in range(rounds):
            first = turn % len(sides)
            for side in (*sides[first:], *sides[:first]):
                settle()
                result[side.name].append(sample(side, calls[side.name]))
    return result


def settle() -> None:
    """Wait until no thread of this process computes."""
    end = time.perf_counter() + LONGEST_PAUSE_SECONDS
    while time.perf_counter() < end:
        used = time.process_time()
        time.sleep(IDLE_SECONDS)
        if time.process_time() - used < IDLE_SECONDS / 10:
            return


def calls_per_sample(side: Side) -> int:
    """Find by doubling how many calls last ``SAMPLE_SECONDS``; doubles as the warm-up."""
    sample(side, 1)
    calls = 1
    while calls * (seconds := sample(side, calls)) < SAMPLE_SECONDS / 2:
        calls *= 2
    return max(1, round(SAMPLE_SECONDS / seconds))


def sample(side: Side, calls: int) -> float:
    """Mean seconds per call over ``calls`` calls.

    The collector of cycles runs, since who makes cycles is to pay for them.
    """
    call = side.call
    gc.collect()
    # In the pause threads have gone to sleep, and so has the clock of the processor.
    for _ in range(calls // 10):
        call()
    if calls >= 10:
        side.finish()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    side.finish()
    return (time.perf_counter() - start) / calls
