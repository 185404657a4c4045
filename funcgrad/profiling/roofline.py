"""Rates of this machine, and what bounds a line by them.

The roofline model (Williams, Waterman and Patterson, 2009): a computation takes at least the time
of its arithmetic at the highest rate that the machine reaches, and at least the time of moving its
bytes at the rate of the cache, or of the memory, that holds them. The rates are measured once on a
machine and kept beside the compiled kernels, where nobody else writes.
"""

from __future__ import annotations

import os
import platform
import time
from functools import cache
from typing import Any

import numpy as np

from funcgrad.api.machine import measured_machine
from funcgrad.api.staging import StagedFunction
from funcgrad.base.digests import digest
from funcgrad.base.records import dataclass
from funcgrad.compiler.pipeline import compile_program
from funcgrad.compiler.runtime import kernel_store
from funcgrad.compiler.runtime.threads import default_threads
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.costs import Cost
from funcgrad.lax import fori_loop
from funcgrad.reports import Machine

LEVELS = {"L1 cache": 1 << 14, "L2 cache": 1 << 18, "L3 cache": 1 << 22, "memory": 1 << 26}
"""Bytes of arrays that lie in each level of memory, of which nearly all processors have four."""

FAR = 0.1
"""Part of the roofline below which neither arithmetic nor memory bounds a line."""


@dataclass(frozen=True)
class Roofline:
    """Rates of a machine with all threads.

    Attributes:
        machine: Operations per second, in products of matrices, and elementary functions.
        bandwidths: Bytes per second by level of memory.
    """

    machine: Machine
    bandwidths: dict[str, float]

    def bound(self, cost: Cost, seconds: float, itemsize: int = 8) -> tuple[str, float]:
        """Find the bound of a computation, and the least time that it can take.

        Args:
            cost: The computation, each time that it runs.
            seconds: The time that it takes.
            itemsize: Bytes of its numbers.
        """
        size = 4 if itemsize <= 4 else 8
        level, rate = "memory", self.bandwidths["memory"]
        for name, nbytes in LEVELS.items():
            if cost.nbytes <= 2 * nbytes:
                level, rate = name, self.bandwidths[name]
                break
        times = {
            "arithmetic": cost.flops / self.machine.flops[size],
            "functions": cost.transcendentals / self.machine.functions[size],
            level: cost.nbytes / rate,
        }
        least = max(times["arithmetic"] + times["functions"], times[level])
        if not least:
            return "", 0.0
        # Few numbers at a time, one after the other: neither the processor nor memory is busy.
        if least < FAR * seconds:
            return "latency", least
        return max(times, key=times.__getitem__), least

    def __str__(self) -> str:
        rows = [f"{self.machine.flops[8] / 1e9:.3g} Gflop/s in float64"]
        rows += [f"{self.machine.flops[4] / 1e9:.3g} in float32"]
        rows += [f"{rate / 1e9:.3g} GB/s from {name}" for name, rate in self.bandwidths.items()]
        return ", ".join(rows)


@cache
def roofline() -> Roofline:
    """The rates of this machine: from the folder of compiled kernels, else measured."""
    facts = sorted(map(str, kernel_store.machine_facts().items()))
    key = digest(repr(("rates", platform.node(), os.cpu_count(), *facts)).encode())
    known = kernel_store.recalled(key)
    if known is None:
        machine = measured_machine()
        known = {
            "flops": [machine.flops[4], machine.flops[8]],
            "functions": [machine.functions[4], machine.functions[8]],
            "memory": machine.memory,
            "cache": machine.cache,
            "bandwidths": {name: _bandwidth(n) for name, n in LEVELS.items()},
        }
        kernel_store.noted(key, known)
    flops, functions = (dict(zip((4, 8), known[x], strict=True)) for x in ("flops", "functions"))
    machine = Machine(flops, functions, known["memory"], known["cache"])
    return Roofline(machine, known["bandwidths"])


_RUNS = 7
_READ = 1 << 24
"""Bytes that one measurement reads, at least."""


def _bandwidth(nbytes: int) -> float:
    """Bytes per second of reading an array over and over, on all threads."""
    rows = max(_READ // nbytes, 1)
    n_threads = 1 if rows == 1 else default_threads()  # large arrays are shared by threads

    def read(x: Any) -> Any:
        return fori_loop(0, rows, lambda i, total: np.sum(x * total) * 0.0 + 1.0, 1.0)

    array = np.ones(nbytes // 8)
    with using_trace(EVAL):
        run = compile_program(StagedFunction(read, (array,), {}, "bandwidth").program)
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        run(array)
        times.append(time.perf_counter() - start)
    return n_threads * rows * nbytes / min(times)
