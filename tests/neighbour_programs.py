"""Programs of libraries for JAX, on JAX and on funcgrad: a table of docs/interop_jax.md.

    python -m tests.neighbour_programs                      all programs
    python -m tests.neighbour_programs training robertson   some of them
    python -m tests.neighbour_programs --write              and the table of the page

Every program of ``tests/programs/neighbours`` runs in processes of its own, by turns with JAX and
with the stand-in, on one thread. What is measured, as processor time, is a call, at its fastest,
and the time from the start of the process to the first result: with an empty folder for kernels,
and with what the first process has left there. ``--write`` keeps the rows of other programs.
Results are compared; draws of a sampler, by their means. The libraries are those of
``python -m tests.neighbours``, and numpyro.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.neighbours import FUNCGRAD, JAX
from tests.recording import PAGE, ROOT, write_between

FOLDER = ROOT / "tests" / "programs" / "neighbours"
BEGIN, END = "<!-- programs -->", "<!-- end of programs -->"
SECONDS = 1.0
"""How long calls are repeated."""
SHORTEST = 0.05
"""How long calls are repeated that are timed together."""


@dataclass(frozen=True)
class Run:
    """A process that has run a program.

    Attributes:
        first: Seconds from its start to the first result.
        call: Seconds of a call.
        means: Of every array of the result.
        is_random: Whether the result are draws.
    """

    first: float
    call: float
    means: tuple[float, ...]
    is_random: bool


@dataclass(frozen=True)
class Row:
    """A program on both.

    Attributes:
        title: What it does.
        jax: A process with JAX.
        fresh: The first process with funcgrad.
        again: A later one.
    """

    title: str
    jax: Run
    fresh: Run
    again: Run

    @property
    def calls(self) -> float:
        """How many times as long a call takes on JAX."""
        return self.jax.call / self.again.call

    @property
    def starts(self) -> float:
        """How many times as long it takes to the first result on JAX."""
        return self.jax.first / self.again.first

    def cells(self) -> list[str]:
        """The row of the table."""
        calls = [f"{float(f'{1e3 * run.call:.3g}'):g} ms" for run in (self.jax, self.again)]
        starts = [f"{run.first:.1f} s" for run in (self.jax, self.fresh, self.again)]
        return [self.title, *calls, f"{self.calls:.2g}", *starts, f"{self.starts:.2g}"]


def spent_on(call: Callable[[], Any]) -> float:
    """Processor time of a call, of as many as take `SHORTEST` together.

    That of threads which run at the moment is not counted to its end, so that a single short call
    seems to take none where another thread runs it.
    """
    start = time.process_time()
    calls, spent = 0, 0.0
    while spent < SHORTEST:
        call()
        calls, spent = calls + 1, time.process_time() - start
    return spent / calls


def run_program(way: str, name: str) -> None:
    """Run a program in this process, and print what was measured."""
    if way == FUNCGRAD:
        importlib.import_module("funcgrad.interop.jax").install()
    module = importlib.import_module(f"tests.programs.neighbours.{name}")
    jax = importlib.import_module("jax")
    call = module.make()
    result = jax.block_until_ready(call())
    first = time.process_time()
    best, end = math.inf, first + SECONDS
    while time.process_time() < end:
        best = min(best, spent_on(lambda: jax.block_until_ready(call())))
    means = [float(leaf.mean()) for leaf in jax.tree.leaves(result)]
    is_random = getattr(module, "IS_RANDOM", False)
    print(json.dumps({"first": first, "call": best, "means": means, "is_random": is_random}))


def measure(way: str, name: str, kernels: str) -> Run:
    """Run a program in a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "FUNCGRAD_CACHE_DIR": kernels,
        "FUNCGRAD_NUM_THREADS": "1",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "tests.neighbour_programs", "--inside", way, name]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Run(found["first"], found["call"], tuple(found["means"]), found["is_random"])


def compare(name: str) -> Row:
    """Measure a program on both.

    Raises:
        ValueError: If the results differ.
    """
    title = (FOLDER / f"{name}.py").read_text().partition('"""')[2].partition(".\n")[0]
    title = title.partition('."""')[0]
    with tempfile.TemporaryDirectory() as kernels:
        fresh = measure(FUNCGRAD, name, kernels)
        row = Row(title, measure(JAX, name, kernels), fresh, measure(FUNCGRAD, name, kernels))
    tolerance = 0.5 if row.jax.is_random else 2e-3
    for a, b in zip(row.jax.means, row.again.means, strict=True):
        if abs(a - b) > tolerance * (1 + abs(a)):
            raise ValueError(f"{name}: {row.jax.means} on JAX, {row.again.means} here")
    return row


def table_of(rows: list[list[str]]) -> str:
    """The table of the page, with geometric means of the ratios."""
    head = ["", "a call: JAX", "funcgrad", "JAX / funcgrad"]
    head += ["first result: JAX", "funcgrad, first process", "later ones", "JAX / later ones"]
    means = [
        math.exp(sum(math.log(float(row[column])) for row in rows) / len(rows))
        for column in (3, len(head) - 1)
    ]
    last = ["mean", "", "", f"{means[0]:.2g}", "", "", "", f"{means[1]:.2g}"]
    cells = [head, ["---"] * len(head), *rows, last]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def write_table(rows: list[Row]) -> None:
    """Put rows into the table of the page, in place of those of the same programs."""
    names = ("jax", "diffrax", "blackjax", "numpyro", "tinygp", "equinox", "optax", "jaxopt")
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in (*names, "optimistix"))
    made = f"On one thread, {time.strftime('%Y-%m-%d')}, by `python -m tests.neighbour_programs`"
    before = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].splitlines()
    table = [line.strip("| ").split(" | ") for line in before if line.startswith("| ")]
    kept = {cells[0]: cells for cells in table[2:-1]} | {row.title: row.cells() for row in rows}
    text = table_of(list(kept.values()))
    write_between(PAGE, BEGIN, END, f"{made} ({versions}), processor time:\n\n{text}")


def main(arguments: list[str]) -> int:
    known = sorted(path.stem for path in FOLDER.glob("*.py"))
    parser = argparse.ArgumentParser(prog="tests.neighbour_programs")
    parser.add_argument("names", nargs="*", choices=[*known, []], help="programs; all by default")
    parser.add_argument("--write", action="store_true", help="write the table of the page")
    parser.add_argument("--inside", choices=[JAX, FUNCGRAD], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        run_program(options.inside, options.names[0])
        return 0
    rows = []
    for name in options.names or known:
        rows.append(compare(name))
        print(" | ".join(rows[-1].cells()), flush=True)
    print(table_of([row.cells() for row in rows]))
    if options.write:
        write_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
