"""``python -m tests.profiling.agreement``: profiles beside what else tells the time of lines.

It shows, for each program, the largest difference of a line's share, in points, from

- the system's sampler ``perf``, which watches the process while it is profiled: all its threads,
  without the clocks. Where a processor was becomes a line by the tables of the profile;
- the same program compiled so that LLVM moves nothing from block to block, and so loses no line:
  other code, whose tables are right by themselves. For a program that is not compiled: a clock
  that is read between its statements;

then the share of the samples that are of no line, and what a call costs more under a profile.
Everything is in processor time, so that other processes do not count: shares on all threads, and
costs in many short bursts with and without a profile by turns.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import funcgrad as fg
from funcgrad import lax
from funcgrad.compiler import timing
from funcgrad.compiler.runtime import executable
from funcgrad.profiling import session
from funcgrad.profiling.timing import TimedProgram

SECONDS = 4.0
"""Processor time in which a program is watched, and profiled."""
ROUNDS, BURST = 60, 0.02
"""Bursts of calls with a profile and without, and the seconds of each."""
MOST_POINTS, MOST_COST, MOST_WITHOUT = 5.0, 0.05, 0.05
MOST_OTHERWISE, MOST_EAGER = 12.0, 12.0
"""Points by which shares may differ from those of other code, and where the interpreter's lock
lets nobody look: many short operations are met less often than a long one."""


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

EAGER: dict[str, tuple[Callable[..., Any], Any]] = {
    "chain, eager": (chain, X),
    "mixture, eager": (mixture, X),
    "softmax, eager": (softmax, ROWS),
}


def difference(name: str) -> tuple[float, float]:
    """Compare `profile` and perf.

    Returns:
        The largest difference of the share of a line, in points, and the share of no line.
    """
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
    expected, without = _shares(profile.measured.programs, places)
    found = _native(profile)
    return points(expected, found), max(without, 1 - profile.coverage)


def points(expected: dict[str, float], found: dict[str, float]) -> float:
    """The largest difference of two shares of a line, in points."""
    return max(100 * abs(expected.get(x, 0.0) - found.get(x, 0.0)) for x in {*expected, *found})


def _native(profile: fg.profiling.Profile) -> dict[str, float]:
    """The shares of lines in the time of compiled programs, on all threads."""
    times = {line.location.short(): line.threads - line.python for line in profile.lines}
    total = sum(times.values())
    return {line: float(t / total) for line, t in times.items() if t > 0}


def unmoved(names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Shares of lines in programs of which LLVM moves nothing, which is a matter of processes."""
    if not names:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.profiling.agreement", UNMOVED, *names]
        environment = {**os.environ, "FUNCGRAD_CACHE_DIR": folder}
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(ran.stdout)


UNMOVED = "--unmoved"


def _print_unmoved(names: Sequence[str]) -> None:
    llvm.set_option("", "--disable-machine-sink")
    found = {}
    for name in names:
        f, x = PROGRAMS[name]
        f(x)
        found[name] = _native(fg.profile(f, seconds=SECONDS * _wait(f, x))(x))
    print(json.dumps(found))


def clocked(f: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    """A function that notes the time before its first statement and behind each of them."""
    lines, first = inspect.getsourcelines(f)
    module = ast.parse("\n" * (first - 1) + textwrap.dedent("".join(lines)))
    (definition,) = module.body
    assert isinstance(definition, ast.FunctionDef)
    body: list[ast.stmt] = [*ast.parse("_note()").body]
    for statement in definition.body:
        texts = ["_note()"]
        if isinstance(statement, ast.Return) and statement.value is not None:
            name = ast.Name("_result", ast.Store())
            statement = ast.copy_location(ast.Assign([name], statement.value), statement)
            texts.append("return _result")
        body += [statement, *(row for text in texts for row in ast.parse(text).body)]
        for row in body[-len(texts) :]:
            _move(row, statement)
    _move(body[0], definition.body[0])
    definition.body = body
    names = {**globals(), "_note": lambda: times.append(time.perf_counter())}
    exec(compile(ast.fix_missing_locations(module), __file__, "exec"), names)
    return names[f.__name__]


def _move(row: ast.stmt, place: ast.stmt) -> None:
    """Give a statement the lines of another one."""
    for node in ast.walk(row):
        ast.copy_location(node, place)


def eager(name: str) -> tuple[float, float]:
    """Compare `profile` with a clock that is read between statements.

    Returns:
        The largest difference of the share of a line, in points, and the share of no line.
    """
    f, x = EAGER[name]
    times: list[float] = []
    g = clocked(f, times)
    g(x)
    n = len(times)
    profile = fg.profile(g, seconds=SECONDS)(x)
    calls = np.reshape(times, (-1, n))[-profile.measured.n_calls - 1 : -1]
    taken = np.diff(calls, axis=1).sum(0) / (profile.seconds * profile.measured.n_calls)
    first = f.__code__.co_firstlineno
    statements = ast.parse(textwrap.dedent(inspect.getsource(f))).body[0].body  # type: ignore[attr-defined]
    keys = [f"{Path(__file__).name}:{first + row.lineno - 1}" for row in statements]
    found = {line.location.short(): line.seconds / profile.seconds for line in profile.lines}
    return points(dict(zip(keys, taken, strict=True)), found), 1 - profile.coverage


def _shares(programs: list[TimedProgram], places: np.ndarray) -> tuple[dict[str, float], float]:
    """Shares of lines by where the processors were, and of no line."""
    shares: dict[str, float] = {}
    without = 0.0
    for program in programs:
        for step in program.steps:
            if step.kernel is None:
                continue
            n = len(step.kernel.inside(places))
            without += step.kernel.without_line(places)
            found = step.kernel.shares(places)
            for line, count in found.items():
                key = f"{line.unscoped.short()}"  # type: ignore[union-attr]
                shares[key] = shares.get(key, 0.0) + n * count / sum(found.values())
    total = sum(shares.values())
    return {line: share / total for line, share in shares.items()}, without / total


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
    """Compare all programs; 1 if a share or a cost is off by more than it may be."""
    timing.MANY_LINES = 1  # perf sees no clocks: it needs the lines of all kernels
    if arguments[:1] == [UNMOVED]:
        _print_unmoved(arguments[1:])
        return 0
    bad, names = 0, arguments or [*PROGRAMS, *EAGER]
    otherwise = unmoved([name for name in names if name in PROGRAMS])
    for name in names:
        if name in EAGER:
            off, without = eager(name)
            bad += off > MOST_EAGER or without > MOST_WITHOUT
            print(f"{name:22} {off:5.1f} points, {without:.1%} of no line", flush=True)
            continue
        f, x = PROGRAMS[name]
        off, without = difference(name)
        moved = points(otherwise[name], _native(fg.profile(f, seconds=SECONDS * _wait(f, x))(x)))
        more = cost(name)
        bad += off > MOST_POINTS or without > MOST_WITHOUT
        bad += moved > MOST_OTHERWISE or more > MOST_COST
        print(
            f"{name:22} {off:5.1f} points, {moved:5.1f} beside unmoved code, "
            f"{without:.1%} of no line, {more:+.1%}",
            flush=True,
        )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
