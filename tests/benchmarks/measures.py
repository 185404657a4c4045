"""What is measured of a row, as records: the processes of ``process.py`` do the work.

A process may use as many processors as the run has threads, by its affinity, which it inherits
before it imports anything: funcgrad, XLA, OpenBLAS and PyTorch size their pools by that, and
whatever other threads they start share these processors.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.benchmarks.workload import Row

ROOT = Path(__file__).parents[2]
MODULE = "tests.benchmarks.process"
TIMEOUT_SECONDS = 900

NO_JAX_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "false"}


def cache_of_funcgrad(folder: str) -> dict[str, str]:
    """Let funcgrad keep its kernels in a folder."""
    return {"FUNCGRAD_CACHE_DIR": f"{folder}/funcgrad"}


def cache_of_all(folder: str) -> dict[str, str]:
    """Let funcgrad and JAX keep what they compiled, XLA all of it."""
    return {
        **cache_of_funcgrad(folder),
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


@dataclass(frozen=True)
class Setting:
    """How rows are measured.

    Args:
        libraries: funcgrad and its peers, funcgrad first.
        dtype: "float32" or "float64".
        size: "small", "normal" or "large".
        threads: Processors that a measured process may use.
        rounds: Samples of every side.
        first_rounds: New processes for each first call.
        busy_calls: Single calls beside a spinning process.
    """

    libraries: Sequence[str]
    dtype: str
    size: str
    threads: int
    rounds: int
    first_rounds: int
    busy_calls: int


@dataclass(frozen=True)
class Record:
    """One figure of one row for every side: the samples, or why there are none.

    Args:
        row: Name of the row.
        group: The group that it belongs to.
        title: What it computes.
        measure: "run", "first call", "memory", ...: a key of `report.MEASURES`.
        dtype: As in `Setting`, like the next two.
        size: -
        threads: -
        samples: Seconds, bytes or counts of each side, funcgrad first.
        error: Why there are no samples.
    """

    row: str
    group: str
    title: str
    measure: str
    dtype: str
    size: str
    threads: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    error: str = ""


class Failure(Exception):
    """A process that gave no result; its last words are the message."""


def record(row: Row, setting: Setting, measure: str, **given: Any) -> Record:
    """A record of this row under this setting."""
    return Record(
        row.name,
        row.group,
        row.title(setting.size),
        measure,
        setting.dtype,
        setting.size,
        setting.threads,
        **given,
    )


def measure_speed(row: Row, setting: Setting) -> list[Record]:
    """Steady state: all sides in one process, turn by turn."""
    if server(setting.libraries, setting.threads).is_stopped:
        server.cache_clear()
    found = server(setting.libraries, setting.threads).figures("speed", row, setting)
    return [record(row, setting, name, samples=samples) for name, samples in found.items()]


def measure_busy(row: Row, setting: Setting) -> list[Record]:
    """Single calls, alone and beside a process that spins."""
    found = child("busy", row, setting, setting.libraries, setting.busy_calls)
    return [record(row, setting, name, samples=samples) for name, samples in found.items()]


def measure_first(row: Row, setting: Setting) -> list[Record]:
    """First calls: with an empty cache, then in a second process with a cache that knows them."""
    compile_sources()
    samples: dict[str, dict[str, list[float]]] = {}
    for turn in range(setting.first_rounds):
        order = setting.libraries if turn % 2 == 0 else list(reversed(setting.libraries))
        for name in order:
            for measure, figure in first_figures(name, row, setting).items():
                samples.setdefault(measure, {}).setdefault(name, []).append(figure)
    in_order = {
        measure: {name: sides[name] for name in setting.libraries if name in sides}
        for measure, sides in samples.items()
    }
    return [record(row, setting, measure, samples=sides) for measure, sides in in_order.items()]


@cache
def compile_sources() -> None:
    """Let sources have their bytecode, as installed packages have theirs."""
    folders = [str(ROOT / name) for name in ("funcgrad", "tests/benchmarks")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], check=True)


def first_figures(library: str, row: Row, setting: Setting) -> dict[str, float]:
    """Seconds and counts of first calls in one library, by measure.

    JAX has no cache on disk unless it is asked for one, so its first call is not to pay for that: a
    process between the two, which is not measured, fills it.
    """
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        caches = {"cold": NO_JAX_CACHE | cache_of_funcgrad(cache), "warm": cache_of_all(cache)}
        for state, environment in caches.items():
            if state == "warm" and library == "jax":
                child("first", row, setting, [library], 1, environment)
            start = time.perf_counter()
            found = child("first", row, setting, [library], 1, environment)
            if not found:
                return {}
            figures[f"first call, {state}"] = found["call"]
            figures[f"process start to result, {state}"] = found["ready"] - start
            figures |= {f"{name}, {state}": count for name, count in found["counts"].items()}
    return figures


def measure_memory(row: Row, setting: Setting) -> list[Record]:
    """Growth of the resident set during a call, each library in a process of its own."""
    samples = {}
    for name in setting.libraries:
        found = child("memory", row, setting, [name], 1)
        if found:
            samples[name] = [found["bytes"]]
    return [record(row, setting, "memory", samples=samples)]


MEASURES = {
    "speed": measure_speed,
    "first": measure_first,
    "busy": measure_busy,
    "memory": measure_memory,
}


MAIN_RECORDS = {"speed": "run", "first": "first call, cold", "busy": "busy", "memory": "memory"}
"""The record that every measure gives: the one that says so where it failed."""


def measure(name: str, row: Row, setting: Setting) -> list[Record]:
    """Measure a row; a failure is a record too, so that the other rows are still measured."""
    try:
        return MEASURES[name](row, setting)
    except Failure as error:
        return [record(row, setting, MAIN_RECORDS[name], error=str(error))]


class Server:
    """A process that has imported libraries, and forks one for each row: `process.serve`.

    Args:
        libraries: The libraries.
        threads: Processors that it and its forks may use.
    """

    def __init__(self, libraries: Sequence[str], threads: int) -> None:
        environment = {**os.environ, **NO_JAX_CACHE}
        with confined(threads):
            self.process = subprocess.Popen(
                [sys.executable, "-m", MODULE, "serve", "--libraries", *libraries],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        atexit.register(self.stop)

    @property
    def is_stopped(self) -> bool:
        """Did it end?"""
        return self.process.poll() is not None

    def stop(self) -> None:
        """End it, and a measurement that is under way."""
        atexit.unregister(self.stop)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def figures(self, measure: str, row: Row, setting: Setting) -> dict[str, Any]:
        """What a fork measures.

        Raises:
            Failure: It gave no result. The server is stopped then.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        arguments = [measure, row.group, row.name, "--libraries", *setting.libraries]
        arguments += ["--dtype", setting.dtype, "--size", setting.size]
        arguments += ["--rounds", str(setting.rounds)]
        try:
            self.process.stdin.write(f"{shlex.join(arguments)}\n".encode())
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_SECONDS)
            if not ready:
                raise Failure(f"no result after {TIMEOUT_SECONDS} s")
            line = self.process.stdout.readline()
            if not line:
                raise Failure("the libraries could not be imported")
        except (OSError, Failure) as error:
            self.stop()
            raise Failure(str(error)) from error
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise Failure(found["error"])
        return found


server = cache(Server)
"""One for the same libraries and number of threads."""


def child(
    measure: str,
    row: Row,
    setting: Setting,
    libraries: Sequence[str],
    rounds: int,
    caches: Mapping[str, str] = NO_JAX_CACHE,
) -> dict[str, Any]:
    """Run ``process.py`` and read what it prints.

    Args:
        measure: What it measures.
        row: Of which row.
        setting: Dtype, size and threads.
        libraries: The libraries that it loads.
        rounds: Samples that it takes.
        caches: Environment variables that say where compiled programs are kept.

    Raises:
        Failure: It ended without a result.
    """
    command = [sys.executable, "-m", MODULE, measure, row.group, row.name]
    command += ["--libraries", *libraries, "--rounds", str(rounds)]
    command += ["--dtype", setting.dtype, "--size", setting.size]
    environment = {**os.environ, **caches}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with confined(setting.threads):
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"no result after {TIMEOUT_SECONDS} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line[:1].strip()]  # no traceback
        raise Failure((lines or [f"exit code {done.returncode}"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def confined(threads: int) -> Iterator[None]:
    """Processes started in the block may use only so many processors."""
    available = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(available)[:threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, available)


def import_record(modules: Sequence[str], rounds: int) -> Record:
    """Wall-clock seconds of ``python -c 'import module'``, a bare interpreter included.

    Modules come as compiled bytecode, as installed packages have it.
    """
    samples: dict[str, list[float]] = {module: [] for module in modules}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(rounds + 1):
            for module in modules:
                start = time.perf_counter()
                command = [sys.executable, "-c", f"import {module}"]
                subprocess.run(command, env=environment, cwd=ROOT, check=True)
                if turn:  # the first round writes the bytecode and fills the page cache
                    samples[module].append(time.perf_counter() - start)
    title = "Import in a new process"
    return Record("import", "dispatch", title, "import", "", "", 1, samples)
