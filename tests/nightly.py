"""``python -m tests.nightly``: everything slow, one step after the other, and a table of what ran.

Every step is a command of its own, which can be run alone, too. A step that fails does not keep the
others from running. The table is written as it stands in docs/reliability.md, and below it every
test that was skipped, with the reason. A test that was skipped because a library to compare with is
missing makes its step fail: ``pip install '.[dev,docs,peers]'`` has all. ``--brief`` runs each step
in a small form, to see that it runs at all.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ("jax", "torch", "autograd", "pandas", "xarray", "sklearn", "distributed", "mpi4py")
"""Libraries that results are compared with, or that run programs of ours."""

COMPARED = (
    "tests/api/test_checking.py",
    "tests/api/test_processes.py",
    "tests/benchmarks/test_benchmarks.py",
    "tests/benchmarks/test_workloads.py",
    "tests/interop/test_autograd.py",
    "tests/interop/test_autograd_functions.py",
    "tests/interop/test_posteriors.py",
    "tests/interop/test_tables.py",
    "tests/lax/test_convolution.py",
    "tests/numpy/test_array_api.py",
    "tests/programs/test_programs.py",
    "tests/test_programs_of_pages.py",
    "tests/base/test_pytree.py",
    "tests/test_which_of_my_code.py",
)
"""Files with tests that need a peer, of which other runs skip some."""

COMPILED = (
    "tests/compiler",
    "tests/higher_order",
    "tests/lax",
    "tests/nn",
    "tests/numpy",
    "tests/primitives",
    "tests/random",
    "tests/test_compiled_laws.py",
)
"""Tests that compile most of the kernels of the suite."""

SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (.*)$")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Step:
    """A part of the nightly run.

    Attributes:
        name: What ``--only`` calls it.
        command: Arguments of Python.
        what: What it shows.
        brief: What a brief run puts in the place of the last arguments: see `briefly`.
        variables: Variables of the environment, with their values.
        needs: A folder without which the step is not run.
    """

    name: str
    command: tuple[str, ...]
    what: str
    brief: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    needs: str = ""

    def briefly(self) -> Step:
        """The same in a minute or so, which shows that it runs, and little else."""
        return replace(self, command=(*self.command[:2], *self.brief))


STEPS = (
    Step(
        "tests",
        ("-m", "pytest", "-q", "-n", str(CORES), "-m", "nightly"),
        "all rows of all tables, of which every run takes a sample",
        ("-q", "-m", "nightly", "tests/fuzz/test_fuzz.py", "-k", "compiler[5]"),
    ),
    Step(
        "properties",
        (
            *("-m", "pytest", "-q", "-n", str(CORES), "-m", "hypothesis"),
            *("--hypothesis-profile", "nightly"),
        ),
        "tests that hypothesis writes examples for: others each time, ten times as many",
        ("-q", "-m", "hypothesis", "--hypothesis-profile", "nightly", "tests/base/test_pytree.py"),
    ),
    Step(
        "peers",
        ("-m", "pytest", "-q", "-n", str(CORES), "-m", "nightly or not nightly", *COMPARED),
        "comparisons with JAX, PyTorch, autograd, pandas and xarray, of which none may be skipped",
        ("-q", "tests/interop/test_tables.py", "tests/base/test_pytree.py", "-k", "jax or series"),
    ),
    Step(
        "public path",
        ("-m", "pytest", "-q", "-n", str(CORES), *COMPILED),
        "tests of compiled code, whose kernels Numba's public interface compiles",
        ("-q", "tests/compiler/test_integers.py", "-k", "bools or negative"),
        (("FUNCGRAD_NUMBA", "public"),),
    ),
    Step(
        "programs",
        (
            *("-m", "tests.fuzz", "--programs", "1000000", "--seed", "1000000"),
            *("--jobs", str(CORES), "--compiled-every", "1000", "--seconds", "36000"),
        ),
        "a million random programs, of which a thousand are compiled in all ways",
        ("--programs", "300", "--seed", "1000000", "--compiled-every", "150", "--seconds", "300"),
    ),
    Step(
        "special values",
        ("-m", "tests.fuzz.special_values", "--chains", "100000", "--jobs", str(CORES)),
        "chains of operations at special values, compiled against NumPy",
        ("--chains", "24"),
    ),
    Step(
        "soak",
        ("-m", "tests.soak", "--minutes", "30"),
        "memory of a process that runs for long",
        ("--minutes", "0.2", "--threads", "4", "--warm-up", "50", "--growth", "1"),
    ),
    Step(
        "processors",
        ("-m", "tests.processors"),
        "programs for ARM under an emulator, and numeric tests without AVX-512 and without AVX",
        ("--brief",),
    ),
    Step(
        "exports",
        ("-m", "tests.exports"),
        "a hundred programs as files of C: compilers, bits, times, another processor, no Python",
        ("--programs", "1"),
    ),
    Step(
        "posteriors",
        ("-m", "tests.posteriors"),
        "gradients of log densities by address, beside Stan's and PyTensor's where they are there",
        ("linear", "--peers"),
    ),
    Step(
        "matrix",
        ("-m", "tests.matrix"),
        "lowest and newest dependencies, wheel and source",
        ("--python", f"{sys.version_info.major}.{sys.version_info.minor}", "--which", "newest"),
    ),
    Step(
        "neighbours",
        ("-m", "tests.neighbours", "--most", "16", "--write"),
        "suites of libraries for JAX, both ways; without arguments, it says how to get them",
        ("tinygp", "--most", "1", "--files", "noise"),
        needs="neighbours",
    ),
    Step(
        "meshes",
        ("-m", "tests.meshes"),
        "JAX's own tests of shard_map, on 1, 2 and 4 ranks; without them, it says how to get them",
        ("--ranks", "1", "-k", "test_jit_against_ref"),
        needs="meshes",
    ),
    Step(
        "suite of JAX",
        ("-m", "tests.suite_of_jax"),
        "JAX's own tests of its public functions; without them, it says where they are",
        ("polynomial_test", "lax_scipy_spectral_dac_test"),
        needs="suite-of-jax",
    ),
    Step(
        "neighbour programs",
        ("-m", "tests.neighbour_programs", "--write"),
        "programs of these libraries: the time of a call and to the first result",
        ("kalman_filter",),
        needs="neighbours",
    ),
    Step(
        "CUTEst",
        ("-m", "tests.cutest", "--sources", "cutest"),
        "sparse derivatives of CUTEst's problems beside dense ones, and asdex's colours and times",
        ("ROSENBR", "HS6", "TORSION1", "--sources", "cutest"),
        needs="cutest",
    ),
    Step(
        "NPBench",
        ("-m", "tests.npbench", "--sources", "npbench", "--peers", "--write"),
        "programs of NPBench beside NumPy, Numba's and JAX's versions, with their gradients",
        ("--sources", "npbench", "--only", "atax,lu"),
        needs="npbench",
    ),
)
"""In order."""


@dataclass(frozen=True)
class Outcome:
    """How a step ended."""

    step: Step
    seconds: float
    last_line: str
    code: int
    skipped: tuple[str, ...] = ()
    was_run: bool = True

    @property
    def without_peers(self) -> list[str]:
        """What was skipped because a library to compare with is not there."""
        return [row for row in self.skipped if peer_missing_in(row) is not None]

    @property
    def has_failed(self) -> bool:
        return bool(self.code or self.without_peers)

    @property
    def row(self) -> str:
        """As a row of a table of Markdown."""
        verdict = f"**failed ({self.code or 'no peer'})**" if self.has_failed else "passed"
        verdict = verdict if self.was_run else "not run"
        hours, rest = divmod(round(self.seconds), 3600)
        took = f"{hours}:{rest // 60:02}:{rest % 60:02}"
        said = self.last_line.strip("= ").replace("|", "/")
        return f"| {self.step.name} | {verdict} | {took} | {said} |"


def peer_missing_in(row: str) -> str | None:
    """The library whose absence is the reason of a skip."""
    found = re.search(
        r"could not import '(\w+)|\b([\w.]+) is not installed|there is no ([\w.]+)", row
    )
    names = found[0].replace("'", " ").split() if found is not None else []
    parts = {part for name in names for part in name.split(".")}
    return next((peer for peer in PEERS if peer in parts), None)


HEAD = ("| step | result | h:m:s | last line |", "| --- | --- | --- | --- |")


def run(step: Step) -> Outcome:
    """Run a step, if it has what it needs; what it prints is passed on."""
    if step.needs and not (ROOT / step.needs).is_dir():
        why = f"there is no folder {step.needs}: python {shlex.join(step.command[:2])} says why"
        return Outcome(step, 0.0, why, 0, was_run=False)
    start = time.monotonic()
    last, skipped = "", []
    with subprocess.Popen(
        [sys.executable, *step.command],
        cwd=ROOT,
        env={**os.environ, **dict(step.variables)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
            if SKIPPED.match(line):
                skipped.append(line.strip())
    return Outcome(step, time.monotonic() - start, last, process.returncode, tuple(skipped))


def run_all(steps: Sequence[Step]) -> int:
    """Run steps, and print the table and what was skipped; 1 if any has failed."""
    outcomes = []
    for step in steps:
        print(f"\n== {step.name}: python {shlex.join(step.command)}", flush=True)
        outcomes.append(run(step))
    print("\n" + "\n".join([*HEAD, *(outcome.row for outcome in outcomes)]))
    for outcome in outcomes:
        for row in outcome.skipped:
            note = "a peer is missing: " if row in outcome.without_peers else ""
            print(f"{outcome.step.name}: {note}{row}")
    return int(any(outcome.has_failed for outcome in outcomes))


def main(args: Sequence[str] | None = None) -> int:
    """Run what is asked for."""
    names = [step.name for step in STEPS]
    parser = argparse.ArgumentParser(prog="python -m tests.nightly", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="STEP")
    parser.add_argument("--brief", action="store_true", help="each step in a small form")
    parser.add_argument("--list", action="store_true", help="show the steps")
    options = parser.parse_args(args)
    steps = [step for step in STEPS if step.name in options.only]
    steps = [step.briefly() for step in steps] if options.brief else steps
    if options.list:
        for step in steps:
            print(f"{step.name:10} {step.what}\n{'':10} python {shlex.join(step.command)}")
        return 0
    return run_all(steps)


if __name__ == "__main__":
    sys.exit(main())
