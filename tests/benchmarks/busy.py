"""How much a call slows down beside another program: one process that spins on a core.

    python tests/benchmarks/busy.py
    python tests/benchmarks/busy.py --rows digits-step --calls 500 --check

Every call is timed alone: first on a quiet machine, then beside a process that does nothing but
spin, which this program starts and ends itself. A program that needs all cores can lose the share
of one; it loses far more where threads that have a processor wait for one that has none.

The table shows the quiet median, and as multiples of it the longest quiet call, the median beside
the other process, and the longest call there. With ``--check`` the exit code is 1 where funcgrad
exceeds the bounds.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from libraries import Library, load_all
from models import Training, batch, momentum_state, wide_step
from report import duration, machine
from rows import ROWS
from stopwatch import Side, Spread

MEDIAN_BOUND, WORST_BOUND = 3.0, 6.0
"""Multiples of the quiet median that a call beside one spinning process may take."""

INTERRUPTION = 5e-4
"""Seconds that the system itself may interrupt any program for: no shorter call is too long."""

PAUSE_SECONDS = 0.2
"""From the start of the other process to the first call: the system spreads both over the cores."""

WARM_UPS = 3
"""Calls before those that are timed."""

SMALL_SIZES = (2, 16, 16, 1)
EXAMPLE = Path(__file__).parents[2] / "examples" / "train_digits.py"


@dataclass(frozen=True)
class Row:
    """One kind of call.

    Args:
        title: What is called.
        sides: Makes the competitors from the loaded libraries.
        share: Which part of the calls are made: long ones need fewer.
    """

    title: str
    sides: Callable[[Mapping[str, Library]], list[Side]]
    share: float = 1.0


def benchmark(key: str, title: str = "") -> Row:
    """A row of the benchmarks."""
    return Row(title or ROWS[key].title, lambda libraries: ROWS[key].sides(libraries, False))


def small_network(libraries: Mapping[str, Library]) -> list[Side]:
    """A training step that lasts some microseconds."""
    sides = []
    for name, library in libraries.items():
        rng = np.random.default_rng(0)
        state, data = momentum_state(SMALL_SIZES, rng), batch(SMALL_SIZES, 32, rng)
        training = Training(library, wide_step(library), state, data)
        sides.append(Side(name, training, training.wait))
    return sides


def example(libraries: Mapping[str, Library]) -> list[Side]:
    """The training of the example, without its pictures."""
    spec = importlib.util.spec_from_file_location("train_digits", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = program  # where its dataclasses look for their types
    spec.loader.exec_module(program)
    program.tqdm = SilentBar
    arguments = program.parse_arguments([])
    digits = program.load_data(arguments.dtype)
    return [Side("funcgrad", partial(program.train, arguments, digits))]


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


BUSY_ROWS = {
    "small-network": Row("train step, MLP 2-16-16-1, momentum, batch 32, float32", small_network),
    "digits-step": benchmark("digits-step"),
    "recurrence-gradient": benchmark(
        "recurrence-gradient", "loss and gradient of the recurrent network"
    ),
    "wide-step": benchmark("wide-step"),
    "example": Row("examples/train_digits.py: 25 epochs", example, 0.05),
}


@contextmanager
def spinning_process() -> Iterator[None]:
    """A process that spins, as long as the block runs."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            time.sleep(PAUSE_SECONDS)
            yield
        finally:
            process.kill()


def durations(side: Side, calls: int) -> list[float]:
    """Seconds of every single call, its result waited for."""
    result = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(WARM_UPS):
            side.call()
            side.finish()
        for _ in range(calls):
            start = time.perf_counter()
            side.call()
            side.finish()
            result.append(time.perf_counter() - start)
    finally:
        gc.enable()
    return result


@dataclass(frozen=True)
class Result:
    """Seconds of the calls of one side."""

    quiet: Sequence[float]
    busy: Sequence[float]

    def multiple(self, seconds: float) -> float:
        """A duration as a multiple of the quiet median."""
        return seconds / statistics.median(self.quiet)

    @property
    def is_within_bounds(self) -> bool:
        longest = max(self.busy)
        is_short = self.multiple(longest) <= WORST_BOUND or longest <= INTERRUPTION
        return is_short and self.multiple(statistics.median(self.busy)) <= MEDIAN_BOUND

    def cells(self) -> list[str]:
        """The figures of a line of the table."""
        multiples = (max(self.quiet), statistics.median(self.busy), max(self.busy))
        return [duration(Spread.of(self.quiet)), *(f"{self.multiple(s):.2f}" for s in multiples)]


def measure(side: Side, calls: int) -> Result:
    """Time one side alone and beside the other process."""
    quiet = durations(side, calls)
    with spinning_process():
        busy = durations(side, calls)
    return Result(quiet, busy)


HEADING = ["what", "side", "quiet: median [quartiles]", "worst", "busy: median", "worst"]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure calls beside a process that spins.")
    parser.add_argument("--calls", type=int, default=200, help="timed calls of each side")
    parser.add_argument(
        "--rows", nargs="+", choices=BUSY_ROWS, default=list(BUSY_ROWS), metavar="ROW"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 beyond the bounds")
    args = parser.parse_args()
    if args.calls < 1:
        parser.error("argument --calls: at least 1")
    return args


def main() -> None:
    """Entry point."""
    args = parse_arguments()
    print(machine() + "\n")
    for cells in (HEADING, ["---"] * len(HEADING)):
        print("| " + " | ".join(cells) + " |")
    is_good = True
    for key in args.rows:
        row = BUSY_ROWS[key]
        libraries = {library.name: library for library in load_all()}
        for number, side in enumerate(row.sides(libraries)):
            result = measure(side, max(round(args.calls * row.share), 1))
            title = "" if number else row.title
            print("| " + " | ".join([title, side.name, *result.cells()]) + " |", flush=True)
            is_good &= number > 0 or result.is_within_bounds
    sys.exit(int(args.check and not is_good))


if __name__ == "__main__":
    main()
