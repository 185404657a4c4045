"""``python -m tests.profiling.agreement``: profiles beside the system's sampler, and their cost.

The system's sampler is ``perf``, which watches a process that runs a program over and over without
a profile; the program's kernels are the copies with line tables, so that their instructions have
lines. Instructions elsewhere, in libraries, belong to the one line of a program that calls them. It
shows, for each program, the largest difference of a line's share, in points, and what a call costs
more under a profile, in processor time, both by turns in one process.
"""

from __future__ import annotations

import json
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
from funcgrad.compiler.runtime import executable
from funcgrad.compiler.timing import TimedProgram
from funcgrad.profiling import session

SECONDS = 4.0
ROUNDS = 7
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


def watched(name: str) -> dict[str, float]:
    """Shares of lines in this process, which runs a program while ``perf`` looks at it."""
    f, x = PROGRAMS[name]
    found: list[executable.Executable] = []
    executable.observers.append(found.append)
    f(x)
    executable.observers.clear()
    programs = [TimedProgram(each, np.zeros(2, np.int64), True) for each in dict.fromkeys(found)]
    for program in programs:
        program.start()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "1000", "-o", str(data)]
        perf = subprocess.Popen([*command, "-p", str(os.getpid())], stderr=subprocess.DEVNULL)
        start = time.process_time()
        while time.process_time() - start < SECONDS:
            for each in dict.fromkeys(found):
                each(x)
        perf.terminate()
        perf.wait()
        text = subprocess.run(
            ["perf", "script", "-i", str(data), "-F", "ip"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    places = np.array([int(word, 16) for word in text.split()], np.uint64).astype(np.int64)
    shares: dict[str, float] = {}
    for program in programs:
        for step in program.steps:
            if step.kernel is not None:
                for line, count in step.kernel.shares(places).items():
                    key = f"{line.unscoped.short()}"  # type: ignore[union-attr]
                    shares[key] = shares.get(key, 0.0) + count
    total = sum(shares.values())
    return {line: share / total for line, share in shares.items()}


def difference(name: str) -> float:
    """The largest difference of the share of a line, in points."""
    seen = subprocess.run(
        [sys.executable, "-m", "tests.profiling.agreement", "--watched", name],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    expected = json.loads(seen.splitlines()[-1])
    f, x = PROGRAMS[name]
    profile = fg.profile(f, seconds=SECONDS)(x)
    times = {line.location.short(): line.seconds - line.python for line in profile.lines}
    total = sum(times.values())
    lines = {*expected, *(line for line, t in times.items() if t > 0)}
    return max(100 * abs(expected.get(x, 0.0) - times.get(x, 0.0) / total) for x in lines)


def cost(name: str) -> float:
    """How much longer calls take under a profile, in processor time."""
    f, x = PROGRAMS[name]
    clocks = session._Session(lambda: f(x))
    executable.observers.append(clocks.found)
    times: dict[bool, list[float]] = {True: [], False: []}
    count = 1
    while _seconds(f, x, count) < 0.1:
        count *= 2
    try:
        for _ in range(ROUNDS):
            for is_on in times:
                clocks.is_measuring = is_on
                for program in clocks.programs.values():
                    (program.start if is_on else program.stop)()
                session.forget_call_paths()
                f(x)
                f(x)
                if not is_on:
                    times[False].append(_seconds(f, x, count))
                    continue
                clocks.sampler.start()
                with session.StackSampler(clocks.sampler.drain):
                    times[True].append(_seconds(f, x, count))
                clocks.sampler.stop()
    finally:
        executable.observers.clear()
        for program in clocks.programs.values():
            program.stop()
        session.forget_call_paths()
    return float(np.median(np.array(times[True]) / np.array(times[False]))) - 1


def _seconds(f: Callable[..., Any], x: Any, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        f(x)
    return time.process_time() - start


def main(arguments: list[str]) -> int:
    """Compare all programs; 1 if a line's share or a cost is off by more than it may be."""
    if arguments[:1] == ["--watched"]:
        print(json.dumps(watched(arguments[1])))
        return 0
    bad = 0
    for name in arguments or PROGRAMS:
        points, more = difference(name), cost(name)
        bad += points > MOST_POINTS or more > MOST_COST
        print(f"{name:22} {points:5.1f} points, {more:+.1%}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
