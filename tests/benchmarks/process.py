"""One measurement of one row, in a process of its own; prints a line of JSON.

    python -m tests.benchmarks.process speed networks wide-step --libraries funcgrad jax

``measures.py`` starts these processes and says which processors they may use. Libraries are
imported by name, each only where it is measured: a first call includes its import.

Where the import is not measured, one process imports the libraries for many rows:

    python -m tests.benchmarks.process serve --libraries funcgrad jax

It reads arguments as above, a line for each measurement, and forks a process for it, which has the
libraries, but none of the threads and compiled programs of other rows.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import shlex
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.benchmarks.libraries import Library, compiled_loops, load, peers_of
from tests.benchmarks.sides import Call, prepare, sides, verified_calls
from tests.benchmarks.spinning import durations, spinning_process
from tests.benchmarks.stopwatch import Side, interleave
from tests.benchmarks.workload import Row, converted, row_of


def verified_sides(args: argparse.Namespace) -> list[Side]:
    """What is timed, after its results were compared with NumPy's."""
    row = row_of(args.group, args.row)
    problem = row.workload.problem(args.size)
    if problem.loops:
        problem = replace(problem, reference=compiled_loops(problem.reference))
    libraries = load(peers_of(problem, args.libraries), args.dtype)
    calls = verified_calls(libraries, row, problem, args.dtype)
    return sides(calls, problem, args.dtype)


def measure_speed(args: argparse.Namespace) -> dict[str, Any]:
    """Seconds per call of every side and of the limit, round by round."""
    found = verified_sides(args)
    # By name, because it imports Numba, which a first call is to be measured without.
    limits = importlib.import_module("tests.benchmarks.limits")
    problem = row_of(args.group, args.row).workload.problem(args.size)
    limit = limits.limit_of(args.row, converted(problem.arguments, args.dtype))
    if limit is not None:
        found.append(Side(*limit))
    return {"run": interleave(found, args.rounds)}


def measure_busy(args: argparse.Namespace) -> dict[str, Any]:
    """Median and longest of single calls, alone and beside a process that spins."""
    result: dict[str, Any] = {}
    for side in verified_sides(args):
        quiet = durations(side, args.rounds)
        with spinning_process():
            busy = durations(side, args.rounds)
        for name, samples in (("quiet", quiet), ("busy", busy)):
            result.setdefault(name, {})[side.name] = [statistics.median(samples)]
            result.setdefault(f"{name}-worst", {})[side.name] = [max(samples)]
    return result


def measure_first(args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the first call, and the moment of its result less what made its arguments.

    Moments are those of ``time.perf_counter``, which the processes of one machine share.
    """
    start = time.perf_counter()
    row = row_of(args.group, args.row)
    problem = row.workload.problem(args.size)
    making = time.perf_counter() - start
    (library,) = load(args.libraries, args.dtype).values()
    call = prepare(library, row, problem, args.dtype)
    if call is None:
        return {}
    start = time.perf_counter()
    call()
    call.finish()
    end = time.perf_counter()
    counts = kernel_counts(library, row, call, args) if problem.mode != "eager" else {}
    return {"call": end - start, "ready": end - making, "counts": counts}


def kernel_counts(
    library: Library, row: Row, call: Call, args: argparse.Namespace
) -> dict[str, int]:
    """Kernels that the first call and another size compiled, and whether that took Numba."""
    if library.name != "funcgrad":
        return {}
    first = call.program.cache_info()
    with_numba = int(any(name.startswith("numba") for name in sys.modules))
    other = prepare(library, row, row.workload.problem("small"), args.dtype)
    assert other is not None
    other()
    return {
        "kernels": first.kernels_compiled + first.kernels_loaded,
        "kernels compiled": first.kernels_compiled,
        "kernels for another size": other.program.cache_info().kernels_compiled,
        "Numba imported": with_numba,
    }


def measure_memory(args: argparse.Namespace) -> dict[str, Any]:
    """Bytes by which the resident set grows at most during a call that is traced and compiled."""
    row = row_of(args.group, args.row)
    (library,) = load(args.libraries, args.dtype).values()
    for size in dict.fromkeys(("small", args.size)):  # the small one warms the library up
        call = prepare(library, row, row.workload.problem(size), args.dtype)
        if call is None:
            return {}
        if hasattr(call.program, "lower"):
            call.program = call.program.lower(call.state, *call.others).compile()
        before = reset_peak()
        call()
        call.finish()
    return {"bytes": peak_bytes() - before}


def reset_peak() -> int:
    """Let the peak of the resident set start anew from what it is now; return that."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    """The largest resident set since the last reset."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


MEASURES = {
    "speed": measure_speed,
    "busy": measure_busy,
    "first": measure_first,
    "memory": measure_memory,
}


def serve(libraries: Sequence[str]) -> None:
    """Answer each line of arguments by a line of JSON from a process of its own."""
    load(libraries, "float32")
    gc.freeze()
    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # JAX: no backend has started yet
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            answer(shlex.split(line))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if status:
            code = os.waitstatus_to_exitcode(status)
            print(json.dumps({"error": f"exit code {code}"}), flush=True)


def answer(arguments: Sequence[str]) -> None:
    """Print the figures of one measurement, or why there are none."""
    try:
        args = parser().parse_args(arguments)
        found = MEASURES[args.measure](args)
    except Exception as error:  # whatever a library raises: the other rows are still measured
        found = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(found), flush=True)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser()
    found.add_argument("measure", choices=[*MEASURES, "serve"])
    found.add_argument("group", nargs="?")
    found.add_argument("row", nargs="?")
    found.add_argument("--libraries", nargs="+", default=["funcgrad"])
    found.add_argument("--dtype", default="float32")
    found.add_argument("--size", default="normal")
    found.add_argument("--rounds", type=int, default=9)
    return found


def main() -> None:
    """Entry point."""
    args = parser().parse_args()
    if args.measure == "serve":
        serve(args.libraries)
    else:
        print(json.dumps(MEASURES[args.measure](args)))


if __name__ == "__main__":
    main()
