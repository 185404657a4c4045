"""Runs random programs, many of them, and reports those for which a property does not hold.

Nearly all programs are checked by the interpreter only, in a few milliseconds; every so manieth is
compiled, in all ways. Programs that end the process (by a fault of memory) are found by running
batches in children of their own.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from tests.fuzz.guards import survives
from tests.fuzz.language import Program
from tests.fuzz.properties import CHEAP, COMPILED, holds
from tests.fuzz.shrinking import shrunk
from tests.fuzz.writing import seeded
from tests.heap import small_heap

COMPILED_EVERY = 200
"""One of so many programs is compiled."""
BATCH = 500
"""Programs of one task, of which about one in so many is compiled."""
SHRINKING = 15.0
"""Seconds for one failure."""
TOLD_EVERY = 60.0
"""Seconds between two reports of how far it is; then all processes are fresh ones."""

Batch = tuple[int, int]
"""The numbers of the first program, and of the one after the last."""


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


def alike(first: str, second: str) -> bool:
    """Whether two messages are of the same kind of error, about the same thing."""
    kinds = [re.sub(r"\(.*|\d", "", ":".join(x.split(":")[:2])) for x in (first, second)]
    return kinds[0] == kinds[1]


def reduced(seed: int, name: str, message: str, seconds: float) -> Failure:
    """A failure, shrunk."""
    program = seeded(seed)
    small = shrunk(program, lambda p: alike(problem(name, p), message), seconds)
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
    search = _Search(compiled_every, most)
    start = time.monotonic()
    batches = _batches(first, count, min(compiled_every or BATCH, BATCH))
    told = start
    with small_heap():
        while not search.is_full:
            left = start + seconds - time.monotonic()
            ended = search.run(batches, left, jobs) if left > 0 else True
            now = time.monotonic()
            if ended or now - told > TOLD_EVERY:
                told = now
                said = f"{search.done} programs, {search.done / (now - start):.0f}/s, "
                print(f"{said}{len(search.found)} failures", file=sys.stderr, flush=True)
            if ended:
                break
    return search.done, search.found


class _Search:
    """What has been checked and found.

    Args:
        compiled_every: One of so many programs is compiled.
        most: Failures after which to stop.
    """

    def __init__(self, compiled_every: int, most: int) -> None:
        self.compiled_every = compiled_every
        self.most = most
        self.done = 0
        self.found: list[Failure] = []
        self._seen: set[str] = set()

    @property
    def is_full(self) -> bool:
        return len(self.found) >= self.most

    def run(self, batches: Iterator[Batch], seconds: float, jobs: int) -> bool:
        """Check batches for a while; whether there are no more of them, or no more time.

        Every job has a batch at any time. A batch that ends its process ends the others, too, so
        all that were on their way are looked through, one program at a time, and new processes
        are started by the next call.
        """
        end = time.monotonic() + min(seconds, TOLD_EVERY)
        pending: dict[Any, Batch] = {}
        with ProcessPoolExecutor(jobs, get_context("fork")) if jobs > 1 else _Here() as pool:
            while not self.is_full:
                if time.monotonic() < end:
                    for _, batch in zip(range(jobs - len(pending)), batches, strict=False):
                        pending[pool.submit(run_batch, *batch, self.compiled_every)] = batch
                if not pending:
                    break
                for future in list(wait(pending, return_when=FIRST_COMPLETED).done):
                    try:
                        rows = future.result()
                    except BrokenProcessPool:
                        for first, last in pending.values():
                            self.found += _fatal(first, last, self.compiled_every)
                            self.done += last - first
                        return False
                    first, last = pending.pop(future)
                    self.done += last - first
                    self._note(rows)
        return time.monotonic() < end or seconds <= TOLD_EVERY

    def _note(self, rows: Sequence[tuple[int, str, str]]) -> None:
        for seed, name, message in rows:
            key = message[:60]
            if key not in self._seen and not self.is_full:
                self._seen.add(key)
                self.found.append(reduced(seed, name, message, SHRINKING))
                print(self.found[-1], flush=True)


def _batches(first: int, count: int | None, size: int) -> Iterator[Batch]:
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

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future
