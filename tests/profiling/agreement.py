"""``python -m tests.profiling.agreement``: profiles beside the system's sampler, and their cost.

The system's sampler is ``perf``, which watches the process while it is profiled: all its threads,
without the clocks. Kernels of one line have line tables here as well. It shows, for each program,
the largest difference of a line's share, in points, and what a call costs more under a profile.
Both are in processor time, so that other processes do not count: shares on all threads, and costs
in many short bursts with and without a profile by turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import lax
from funcgrad.compiler import timing
from funcgrad.compiler.runtime import executable
from funcgrad.compiler.timing import TimedProgram
from funcgrad.profiling import session

SECONDS = 4.0
"""Processor time in which a program is watched, and profiled."""
ROUNDS, BURST = 60, 0.02
"""Bursts of calls with a profile and without, and the seconds of each."""
MOST_POINTS, MOST_COST = 5.0, 0.05


def chain(x: Any) -> Any:
    a = np.sin(x) * 2
    b = np.exp(-a)
    c = np.tanh(b) + a
    return np.sum(c / (1 + b))


def mixture(x: Any) -> Any:
    near = np.log(1 + np.exp(-(x**2)))
    far = np.sqrt(1 + x**2)
    both = np.log1p(near) * far
    return np.mean(both)


def recurrence(x: Any) -> Any:
    def body(c: Any, t: Any) -> Any:
        a = np.sin(c) * t
        b = np.exp(-a) + c
        return b, np.sum(b)

    c, ys = lax.scan(body, x, np.linspace(0, 1, 50))
    return np.sum(c) + np.sum(ys)


def softmax(x: Any) -> Any:
    shifted = x - np.max(x, axis=1)[:, None]
    powers = np.exp(shifted)
    rows = powers / np.sum(powers, axis=1)[:, None]
    return np.sum(np.log(rows + 1e-3))


def heat(u: Any) -> Any:
    def step(i: Any, u: Any) -> Any:
        inner = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        warm = inner + 0.01 * np.tanh(inner)
        return np.concatenate([u[:1], warm, u[-1:]])

    return np.sum(lax.fori_loop(0, 50, step, u))


X, ROWS = np.linspace(0.1, 2, 50_000), np.linspace(0, 1, 40_000).reshape(200, 200)
PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "chain": (fg.jit(chain), X),
    "chain, gradient": (fg.jit(fg.grad(chain)), X),
    "chain, checkpoint": (fg.jit(fg.grad(fg.checkpoint(chain))), X),
    "mixture": (fg.jit(mixture), X),
    "mixture, gradient": (fg.jit(fg.grad(mixture)), X),
    "recurrence": (fg.jit(recurrence), np.ones(200)),
    "recurrence, gradient": (fg.jit(fg.grad(recurrence)), np.ones(200)),
    "softmax": (fg.jit(softmax), ROWS),
    "softmax, gradient": (fg.jit(fg.grad(softmax)), ROWS),
    "softmax, mapped": (fg.jit(fg.vmap(softmax)), np.stack([ROWS] * 4)),
    "heat": (fg.jit(heat), np.linspace(0, 1, 3000)),
}


def difference(name: str) -> float:
    """The largest difference of the share of a line, in points, that `profile` and perf find."""
    f, x = PROGRAMS[name]
    f(x)
    seconds = SECONDS * _wait(f, x)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "1000", "-o", str(data)]
        perf = subprocess.Popen([*command, "-p", str(os.getpid())], stderr=subprocess.DEVNULL)
        profile = fg.profile(f, seconds=seconds)(x)
        perf.terminate()
        perf.wait()
        text = subprocess.run(
            ["perf", "script", "-i", str(data), "-F", "ip"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    places = np.array([int(word, 16) for word in text.split()], np.uint64).astype(np.int64)
    expected = _shares(profile.measured.programs, places)
    times = {line.location.short(): line.threads - line.python for line in profile.lines}
    total = sum(times.values())
    lines = {*expected, *(line for line, t in times.items() if t > 0)}
    return max(100 * abs(expected.get(x, 0.0) - times.get(x, 0.0) / total) for x in lines)


def _shares(programs: list[TimedProgram], places: np.ndarray) -> dict[str, float]:
    """Shares of lines, by where the processors were."""
    shares: dict[str, float] = {}
    for program in programs:
        for step in program.steps:
            if step.kernel is None:
                continue
            table, inside = step.kernel.table, places - step.kernel.address
            n = np.sum((inside >= table.first) & (inside < table.end))
            found = step.kernel.shares(places)
            for line, count in found.items():
                key = f"{line.unscoped.short()}"  # type: ignore[union-attr]
                shares[key] = shares.get(key, 0.0) + n * count / sum(found.values())
    total = sum(shares.values())
    return {line: share / total for line, share in shares.items()}


def _wait(f: Callable[..., Any], x: Any) -> float:
    """How much longer calls take than their processor time, where others use the processor."""
    start, taken = time.perf_counter(), 0.0
    while time.perf_counter() - start < 0.5:
        taken += _seconds(f, x, 1, time.thread_time)
    return max(1.0, (time.perf_counter() - start) / taken)


def cost(name: str) -> float:
    """How much longer calls take under a profile, in processor time."""
    f, x = PROGRAMS[name]
    clocks = session._Session(lambda: f(x))
    executable.observers.append(clocks.found)
    count = 1
    f(x)
    while _seconds(f, x, count) < BURST:
        count *= 2
    ratios = []
    try:
        for k in range(ROUNDS):
            with_clocks, without = (_burst(clocks, f, x, count, k % 2 == i) for i in (0, 1))
            ratios.append(with_clocks / without if k % 2 == 0 else without / with_clocks)
    finally:
        executable.observers.clear()
        for program in clocks.programs.values():
            program.stop()
        session.forget_call_paths()
    return float(np.median(ratios)) - 1


def _burst(
    clocks: session._Session, f: Callable[..., Any], x: Any, count: int, is_on: bool
) -> float:
    """The time of some calls, under a profile or without."""
    clocks.is_measuring = is_on
    for program in clocks.programs.values():
        (program.start if is_on else program.stop)()
    session.forget_call_paths()
    f(x)
    f(x)
    if not is_on:
        return _seconds(f, x, count)
    clocks.sampler.start()
    with session.StackSampler(clocks.sampler.drain):
        taken = _seconds(f, x, count)
    clocks.sampler.stop()
    return taken


def _seconds(
    f: Callable[..., Any], x: Any, count: int, clock: Callable[[], float] = time.process_time
) -> float:
    start = clock()
    for _ in range(count):
        f(x)
    return clock() - start


def main(arguments: list[str]) -> int:
    """Compare all programs; 1 if a line's share or a cost is off by more than it may be."""
    bad = 0
    timing.MANY_LINES = 1  # perf sees no clocks: it needs the lines of all kernels
    for name in arguments or PROGRAMS:
        points, more = difference(name), cost(name)
        bad += points > MOST_POINTS or more > MOST_COST
        print(f"{name:22} {points:5.1f} points, {more:+.1%}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
