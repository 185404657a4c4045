"""Peak memory and time of the gradient of a deep chain, plain and with checkpoints.

    python -m tests.benchmarks.memory [--layers 100] [--width 512] [--batch 2048]

Every row is measured in a process of its own: the growth of its largest resident set over what it
had with the arguments in place and everything traced and compiled, and the seconds of that call.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funcgrad as fg

ROWS = ("plain", "sequential", "120MB", "200MB", "400MB")


def layer(w: Any, x: Any) -> Any:
    return np.tanh(x @ w)


def loss(kind: str, n_layers: int) -> Callable[..., Any]:
    """The function whose value and gradient are measured."""

    def run(w: Any, x: Any) -> Any:
        layers = [partial(layer, w)] * n_layers
        if kind == "sequential":
            return np.sum(fg.checkpoint_sequential(layers)(x) ** 2)
        for step in layers:
            x = step(x)
        return np.sum(x**2)

    return fg.checkpoint(run, budget=kind) if kind.endswith("MB") else run


def measure(kind: str, mode: str, n_layers: int, width: int, batch: int) -> dict[str, float]:
    """Bytes and seconds of one call in this process, and what a plan says."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(width, width)).astype(np.float32) / np.float32(np.sqrt(width))
    x = rng.normal(size=(batch, width)).astype(np.float32)
    function = loss(kind, n_layers)
    gradient = fg.value_and_grad(function, (0, 1))
    stated = {}
    if kind.endswith("MB"):
        plan = function.plan(w, x)
        peak = plan.compiled_peak_bytes if mode == "jit" else plan.predicted_peak_bytes
        stated = {"stated": peak, "extra": plan.extra_work}
    call = fg.jit(gradient).lower(w, x).compile() if mode == "jit" else gradient
    for _ in range(3):  # the buffers and threads of BLAS
        layer(w, x).T @ x
    before = peak_bytes()
    start = time.perf_counter()
    call(w, x)
    seconds = time.perf_counter() - start
    return {"bytes": peak_bytes() - before, "seconds": seconds, **stated}


def peak_bytes() -> int:
    """The largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fresh(*arguments: Any) -> dict[str, float]:
    """`measure` in a new process."""
    command = [sys.executable, __file__, "--row", *map(str, arguments)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def report(n_layers: int, width: int, batch: int) -> None:
    print(f"gradient of {n_layers} x tanh(x @ w), width {width}, batch {batch}, float32")
    print(f"{'':<18}{'peak MB':>9}{'of plain':>10}{'seconds':>9}{'of plain':>10}{'stated MB':>11}")
    for mode in ("eager", "jit"):
        plain = {}
        for kind in ROWS:
            found = fresh(kind, mode, n_layers, width, batch)
            plain = plain or found
            stated = f"{found['stated'] / 1e6:11.1f}" if "stated" in found else ""
            print(
                f"{mode + ', ' + kind:<18}{found['bytes'] / 1e6:9.1f}"
                f"{found['bytes'] / plain['bytes']:10.0%}{found['seconds']:9.2f}"
                f"{found['seconds'] / plain['seconds']:10.2f}{stated}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=100)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--row", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        kind, mode, *sizes = options.row
        print(json.dumps(measure(kind, mode, *map(int, sizes))))
    else:
        report(options.layers, options.width, options.batch)


if __name__ == "__main__":
    main()
