"""Seconds until pattern and colours of a derivative are known, and bytes for each of its entries.

    python -m tests.benchmarks.patterns [--unknowns 10000] [--rows plane updates]

Functions are array programs, scans, and loops of Python over single elements, which are traced
one operation after the other. Bytes are the peak of what is allocated until the first derivative
is there, less what is there before: if memory is linear in entries, they do not depend on how many
unknowns there are.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import sparsity

SMALL = 16
"""Unknowns of the programs that are traced first, so that everything is imported."""


@dataclass(frozen=True)
class Row:
    """A function of a vector.

    Args:
        kind: "hessian", or "jacobian".
        function: Of the number of unknowns.
        entries: For each unknown, about.
    """

    kind: str
    function: Callable[[int], Callable[[Any], Any]]
    entries: int


def chain(n: int) -> Callable[[Any], Any]:
    """Rosenbrock's function by slices."""
    return lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def plane(n: int) -> Callable[[Any], Any]:
    """Five-point stencil with an exponential, by two loops of Python."""
    m = int(np.sqrt(n))

    def run(x: Any) -> Any:
        rows = []
        for i in range(1, m - 1):
            for j in range(1, m - 1):
                u = x[i * m + j]
                around = x[i * m + j - 1] + x[i * m + j + 1]
                around += x[(i - 1) * m + j] + x[(i + 1) * m + j]
                rows.append(4.0 * u - around - 0.1 * np.exp(u))
        return np.stack(rows)

    return run


def updates(n: int) -> Callable[[Any], Any]:
    """Broyden's tridiagonal system, an element at a time."""

    def run(x: Any) -> Any:
        y = fnp.zeros(n)
        for i in range(1, n - 1):
            y = y.at[i].set((3.0 - 2.0 * x[i]) * x[i] - x[i - 1] - 2.0 * x[i + 1])
        return y

    return run


def steps(n: int) -> Callable[[Any], Any]:
    """Defects of steps of a pendulum: angles, then speeds."""
    m = n // 2

    def run(x: Any) -> Any:
        def step(state: Any, now: Any) -> tuple[Any, Any]:
            angle, speed = state
            return now, (now[0] - angle - 0.1 * speed, now[1] - speed + 0.1 * np.sin(angle))

        return fg.lax.scan(step, (0.0, 1.0), (x[:m], x[m : 2 * m]))[1]

    return run


ROWS = {
    "chain": Row("hessian", chain, 3),
    "plane": Row("jacobian", plane, 5),
    "updates": Row("jacobian", updates, 3),
    "steps": Row("jacobian", steps, 3),
}


def colored(row: Row, n: int) -> sparsity.Coloring:
    """Pattern and colours of a derivative at once."""
    f, x = row.function(n), np.full(n, 0.5)
    if row.kind == "hessian":
        return sparsity.coloring(sparsity.hessian_sparsity(f)(x), "symmetric")
    return sparsity.coloring(sparsity.jacobian_sparsity(f)(x), "both")


def measure(name: str, n: int) -> dict[str, Any]:
    """Seconds of processor time, and bytes, of one row."""
    row = ROWS[name]
    colored(row, SMALL)
    start = time.process_time()
    colors = colored(row, n)
    seconds = time.process_time() - start
    transformation = fg.hessian if row.kind == "hessian" else fg.jacfwd
    derivative = transformation(row.function(n), sparse=True)
    tracemalloc.start()
    entries = sum(block.nnz for block in fg.tree.leaves(derivative(np.full(n, 0.5))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = {"row": name, "unknowns": n, "seconds": seconds, "colors": colors.n_colors}
    return {**found, "entries": entries, "bytes": peak / entries}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unknowns", type=int, default=10_000)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    args = parser.parse_args()
    for name in args.rows:
        print(json.dumps(measure(name, args.unknowns)), flush=True)


if __name__ == "__main__":
    main()
