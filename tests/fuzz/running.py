"""Runs random programs, many of them, and reports those for which a property does not hold.

Nearly all programs are checked by the interpreter only, in a few milliseconds; every so manieth is
compiled, in all ways. Programs that end the process (by a fault of memory) are found by running
batches in children of their own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

from tests.fuzz.guards import survives
from tests.fuzz.language import Program
from tests.fuzz.properties import CHEAP, COMPILED, holds
from tests.fuzz.shrinking import shrunk
from tests.fuzz.writing import seeded

COMPILED_EVERY = 200
"""One of so many programs is compiled."""
BATCH = 500
"""Programs of one task, of which about one in so many is compiled."""
SHRINKING = 15.0
"""Seconds for one failure."""


@dataclass(frozen=True)
class Failure:
    """A program for which a property does not hold."""

    seed: int
    name: str
    message: str
    program: Program

    def __str__(self) -> str:
        test = self.program.as_test(self.name)
        return f"# seed {self.seed}: {self.message[:600]}\n{test}"


def names_for(seed: int, compiled_every: int = COMPILED_EVERY) -> list[str]:
    """The properties that are checked for the program of a number."""
    return [*CHEAP, *(COMPILED if compiled_every and seed % compiled_every == 0 else ())]


def problem(name: str, program: Program) -> str:
    """What is wrong with a program, or nothing; what may be fatal happens in a child."""
    if name == "guarded":
        return survives(lambda: _raise(holds(name, program)))
    error = holds(name, program)
    return "" if error is None else f"{type(error).__name__}: {error}"


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error


def checked(seed: int, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Properties that do not hold for the program of a number, each with what is wrong."""
    program = seeded(seed)
    for name in names:
        message = problem(name, program)
        if message:
            yield name, message


def reduced(seed: int, name: str, message: str, seconds: float) -> Failure:
    """A failure, shrunk."""
    kind = message.split(":")[0]
    program = seeded(seed)
    small = shrunk(program, lambda p: problem(name, p).split(":")[0] == kind, seconds)
    return Failure(seed, name, problem(name, small) or message, small)


def run_batch(first: int, last: int, compiled_every: int) -> list[tuple[int, str, str]]:
    """The failures among the programs of these numbers, not shrunk."""
    found = []
    for seed in range(first, last):
        found += [(seed, *bad) for bad in checked(seed, names_for(seed, compiled_every))]
    return found


def run(
    first: int,
    count: int | None,
    seconds: float,
    jobs: int = 1,
    compiled_every: int = COMPILED_EVERY,
    most: int = 20,
) -> tuple[int, list[Failure]]:
    """Check programs until there are enough, the time is over, or too many of them fail.

    Returns:
        How many were checked, and what was found.
    """
    start = time.monotonic()
    found: list[Failure] = []
    seen: set[str] = set()
    done = 0
    batches = _batches(first, count, min(compiled_every or BATCH, BATCH))
    with ProcessPoolExecutor(jobs, get_context("fork")) if jobs > 1 else _Here() as pool:
        while time.monotonic() - start < seconds and len(found) < most:
            chosen = [b for b, _ in zip(batches, range(jobs), strict=False)]
            if not chosen:
                break
            futures = [pool.submit(run_batch, a, b, compiled_every) for a, b in chosen]
            for (a, b), future in zip(chosen, futures, strict=True):
                try:
                    rows = future.result()
                except BrokenProcessPool:
                    return done, [*found, *_fatal(a, b, compiled_every)]
                done += b - a
                for seed, name, message in rows:
                    key = message[:60]
                    if key not in seen and len(found) < most:
                        seen.add(key)
                        found.append(reduced(seed, name, message, SHRINKING))
                        print(found[-1], flush=True)
            rate = done / (time.monotonic() - start)
            print(
                f"{done} programs, {rate:.0f}/s, {len(found)} failures", file=sys.stderr, flush=True
            )
    return done, found


def _batches(first: int, count: int | None, size: int) -> Iterator[tuple[int, int]]:
    end = None if count is None else first + count
    while end is None or first < end:
        last = first + size if end is None else min(first + size, end)
        yield first, last
        first = last


def _fatal(first: int, last: int, compiled_every: int) -> list[Failure]:
    """The programs that ended a worker."""
    found = []
    for seed in range(first, last):
        for name in names_for(seed, compiled_every):
            message = survives(lambda name=name, seed=seed: problem(name, seeded(seed)))  # type: ignore[misc]
            if message:
                found.append(Failure(seed, name, message, seeded(seed)))
    return found


class _Here:
    """A pool of no processes: whatever is submitted has been run."""

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, function: object, *args: object) -> _Here:
        assert callable(function)
        self._result = function(*args)
        return self

    def result(self) -> list[tuple[int, str, str]]:
        return self._result


def workers() -> int:
    """As many processes as there are cores for this one."""
    return len(os.sched_getaffinity(0))
