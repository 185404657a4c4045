"""The benchmarks that need fresh processes: cold compilation, reuse of kernels, import time.

Run as a program it is the fresh process itself and prints one line of JSON:

    python fresh.py cold LIBRARY [--started]    seconds of trace, lower and compile
    python fresh.py reuse                       kernels compiled, then those for a new batch size
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from libraries import CONSTRUCTORS, funcgrad_library
from models import Training, digits_training
from stopwatch import Comparison

PHASES = ("trace", "lower", "compile")


def cold_compile(names: list[str], rounds: int, started: bool) -> dict[str, Comparison]:
    """Seconds of each phase, and of all, for the digits step: one new process per sample.

    The cache of funcgrad is a new, empty folder each time; that of JAX is off.
    """
    result = {phase: Comparison({name: [] for name in names}) for phase in (*PHASES, "total")}
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            with tempfile.TemporaryDirectory() as cache:
                seconds = run_fresh(cache, "cold", name, *(["--started"] if started else []))
            seconds["total"] = sum(seconds[phase] for phase in PHASES)
            for phase, comparison in result.items():
                comparison.samples[name].append(seconds[phase])
    return result


def kernel_reuse() -> list[dict[str, int]]:
    """Counts of compiled kernels in two processes, one after the other, on one cache folder."""
    with tempfile.TemporaryDirectory() as cache:
        return [run_fresh(cache, "reuse") for _ in range(2)]


def import_times(modules: list[str], rounds: int) -> Comparison:
    """Wall-clock seconds of ``python -c 'import module'``, a bare interpreter included.

    Modules come as compiled bytecode, as installed packages have it.
    """
    result = Comparison({module: [] for module in modules})
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(rounds + 1):
            for module in modules:
                start = time.perf_counter()
                command = [sys.executable, "-c", f"import {module}"]
                subprocess.run(command, env=environment, check=True)
                if turn:  # the first round writes the bytecode and fills the page cache
                    result.samples[module].append(time.perf_counter() - start)
    return result


def run_fresh(cache: str, *arguments: str) -> dict[str, Any]:
    """Run this file in a new process."""
    environment = {
        **os.environ,
        "FUNCGRAD_CACHE_DIR": cache,
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
    command = [sys.executable, str(Path(__file__)), *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts


# In the fresh process.


def measure_cold(name: str, started: bool) -> dict[str, float]:
    """Time the three phases once, everything imported; ``started``: after a first, other jit."""
    for module in ("numba", "jax", "funcgrad"):
        try:
            importlib.import_module(module)
        except ImportError:
            if module == name:
                raise
    library = CONSTRUCTORS[name]()
    training = digits_training(library)
    if started:
        x = library.to_own_array(np.ones(3, np.float32))
        library.wait(library.root.jit(lambda x: x * 2 + 1)(x))
    return phases_of(training)


def phases_of(training: Training) -> dict[str, float]:
    """Seconds of trace, lower and compile of a training step."""
    moments = [time.perf_counter()]
    traced = training.step.trace(training.state, training.x, training.labels)
    moments.append(time.perf_counter())
    lowered = traced.lower()
    moments.append(time.perf_counter())
    lowered.compile()
    moments.append(time.perf_counter())
    spans = (end - start for start, end in itertools.pairwise(moments))
    return dict(zip(PHASES, spans, strict=True))


def count_kernels() -> dict[str, int]:
    """Count the kernels that digits steps at two batch sizes compile; was Numba needed?"""
    library = funcgrad_library()
    training, other = digits_training(library, 128), digits_training(library, 57)
    training()
    first = training.step.cache_info()
    training.x, training.labels = other.x, other.labels
    training()
    second = training.step.cache_info()
    return {
        "compiled": first.kernels_compiled,
        "loaded": first.kernels_loaded,
        "compiled_for_new_batch": second.kernels_compiled - first.kernels_compiled,
        "traces": second.traces,
        "numba_imported": int("numba" in sys.modules),
    }


def main() -> None:
    """Entry point of the fresh process."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    cold = commands.add_parser("cold")
    cold.add_argument("library")
    cold.add_argument("--started", action="store_true")
    commands.add_parser("reuse")
    args = parser.parse_args()
    is_cold = args.command == "cold"
    print(json.dumps(measure_cold(args.library, args.started) if is_cold else count_kernels()))


if __name__ == "__main__":
    main()
