"""``python -m tests.nightly``: everything slow, one step after the other, and a table of what ran.

Every step is a command of its own, which can be run alone, too. A step that fails does not keep the
others from running. The table is written as it stands in docs/reliability.md. ``--brief`` runs each
step in a small form, to see that it runs at all.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Step:
    """A part of the nightly run.

    Attributes:
        name: What ``--only`` calls it.
        command: Arguments of Python.
        what: What it shows.
        brief: What a brief run puts in the place of the last arguments: see `briefly`.
    """

    name: str
    command: tuple[str, ...]
    what: str
    brief: tuple[str, ...] = ()

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
        "programs",
        (
            *("-m", "tests.fuzz", "--programs", "1000000", "--seed", "1000000"),
            *("--jobs", str(CORES), "--compiled-every", "1000", "--seconds", "36000"),
        ),
        "a million random programs, of which a thousand are compiled in all ways",
        ("--programs", "300", "--seed", "1000000", "--compiled-every", "150", "--seconds", "300"),
    ),
    Step(
        "soak",
        ("-m", "tests.soak", "--minutes", "30"),
        "memory of a process that runs for long",
        ("--minutes", "0.2", "--threads", "4", "--warm-up", "50", "--growth", "1"),
    ),
    Step(
        "matrix",
        ("-m", "tests.matrix"),
        "lowest and newest dependencies, wheel and source",
        ("--python", f"{sys.version_info.major}.{sys.version_info.minor}", "--which", "newest"),
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

    @property
    def row(self) -> str:
        """As a row of a table of Markdown."""
        verdict = "passed" if self.code == 0 else f"**failed ({self.code})**"
        hours, rest = divmod(round(self.seconds), 3600)
        took = f"{hours}:{rest // 60:02}:{rest % 60:02}"
        said = self.last_line.strip("= ").replace("|", "/")
        return f"| {self.step.name} | {verdict} | {took} | {said} |"


HEAD = ("| step | result | h:m:s | last line |", "| --- | --- | --- | --- |")


def run(step: Step) -> Outcome:
    """Run a step; what it prints is passed on."""
    start = time.monotonic()
    last = ""
    with subprocess.Popen(
        [sys.executable, *step.command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return Outcome(step, time.monotonic() - start, last, process.returncode)


def run_all(steps: Sequence[Step]) -> int:
    """Run steps, and print the table; 1 if any has failed."""
    outcomes = []
    for step in steps:
        print(f"\n== {step.name}: python {shlex.join(step.command)}", flush=True)
        outcomes.append(run(step))
    print("\n" + "\n".join([*HEAD, *(outcome.row for outcome in outcomes)]))
    return int(any(outcome.code for outcome in outcomes))


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
