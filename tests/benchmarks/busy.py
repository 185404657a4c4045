"""How much a call slows down beside another program, and whether that is more than its share.

    python -m tests.benchmarks.busy
    python -m tests.benchmarks.busy --only digits-step --calls 500 --check

Every call is timed alone: first on a quiet machine, then beside a process that does nothing but
spin. A program that needs all cores can lose the share of one; it loses far more where threads that
have a processor wait for one that has none.

The table shows the quiet median, and as multiples of it the longest quiet call, the median beside
the other process, and the longest call there. With ``--check`` the exit code is 1 where funcgrad
exceeds the bounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.libraries import installed
from tests.benchmarks.measures import Setting, measure_busy
from tests.benchmarks.report import OURS, machine, quantity, table
from tests.benchmarks.spinning import durations, spinning_process
from tests.benchmarks.stopwatch import Side, Spread
from tests.benchmarks.workload import all_rows

MEDIAN_BOUND, WORST_BOUND = 3.0, 6.0
"""Multiples of the quiet median that a call beside one spinning process may take."""

INTERRUPTION = 5e-4
"""Seconds that the system itself may interrupt any program for: no shorter call is too long."""

ROWS = ("small-network", "digits-step", "recurrence-gradient", "wide-step")
EXAMPLE = Path(__file__).parents[2] / "examples" / "train_digits.py"
EXAMPLE_SHARE = 0.05
"""Part of the calls that are made of the example, which lasts long."""


class SilentBar:
    """Takes the place of the example's progress bar."""

    def __init__(self, items: Any, **_: Any) -> None:
        self.items = items

    def __enter__(self) -> SilentBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def write(self, *_: Any, **__: Any) -> None:
        pass


def example() -> Side:
    """The training of the example, without its pictures."""
    spec = importlib.util.spec_from_file_location("train_digits", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = program  # where its dataclasses look for their types
    sys.path.insert(0, str(EXAMPLE.parent))  # where examples have what they share
    spec.loader.exec_module(program)
    program.tqdm = SilentBar
    arguments = program.parse_arguments([])
    digits = program.load_data(arguments.dtype)
    return Side(OURS, partial(program.train, arguments, digits))


@dataclass(frozen=True)
class Result:
    """Seconds of the calls of one side: medians and longest, alone and beside the other process."""

    quiet: float
    quiet_worst: float
    busy: float
    busy_worst: float

    @property
    def is_within_bounds(self) -> bool:
        """Is it slowed down by no more than its share?"""
        is_short = self.busy_worst <= max(WORST_BOUND * self.quiet, INTERRUPTION)
        return is_short and self.busy <= MEDIAN_BOUND * self.quiet

    def cells(self) -> list[str]:
        """The figures of a line of the table."""
        multiples = (self.quiet_worst, self.busy, self.busy_worst)
        quiet = Spread(self.quiet, self.quiet, self.quiet)
        return [quantity(quiet, "s"), *(f"{seconds / self.quiet:.2f}" for seconds in multiples)]


def measure_row(name: str, calls: int) -> tuple[str, dict[str, Result]]:
    """Title and results of a row of the benchmarks, by library."""
    row = all_rows()[name]
    setting = Setting(
        libraries=(OURS, *installed(["jax"])),
        dtype="float32",
        size="normal",
        threads=len(os.sched_getaffinity(0)),
        rounds=1,
        first_rounds=1,
        busy_calls=calls,
    )
    found = {each.measure: each.samples for each in measure_busy(row, setting)}
    order = ("quiet", "quiet-worst", "busy", "busy-worst")
    sides = found["quiet"]
    results = {side: Result(*(found[measure][side][0] for measure in order)) for side in sides}
    return row.title("normal"), results


def measure_example(calls: int) -> tuple[str, dict[str, Result]]:
    """Title and result of the example."""
    side, count = example(), max(round(calls * EXAMPLE_SHARE), 1)
    quiet = durations(side, count)
    with spinning_process():
        busy = durations(side, count)
    figures = (statistics.median(quiet), max(quiet), statistics.median(busy), max(busy))
    return "examples/train_digits.py: 25 epochs", {OURS: Result(*figures)}


HEADING = ["what", "side", "quiet: median", "worst", "busy: median", "worst"]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure calls beside a process that spins.")
    parser.add_argument("--calls", type=int, default=200, help="timed calls of each side")
    names = [*ROWS, "example"]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="ROW")
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond the bounds")
    args = parser.parse_args()
    if args.calls < 1:
        parser.error("argument --calls: at least 1")
    return args


def main() -> None:
    """Entry point."""
    args = parse_arguments()
    lines, is_good = [], True
    for name in args.only:
        is_example = name == "example"
        title, found = measure_example(args.calls) if is_example else measure_row(name, args.calls)
        lines += [[title, side, *result.cells()] for side, result in found.items()]
        is_good &= found[OURS].is_within_bounds
    print(f"{machine()}\n\n{table(HEADING, lines)}")
    sys.exit(int(args.check and not is_good))


if __name__ == "__main__":
    main()
