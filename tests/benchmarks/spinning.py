"""A process that spins on a core, as another program on the machine would, and calls beside it."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks.stopwatch import Side

PAUSE_SECONDS = 0.2
"""From the start of the other process to the first call: the system spreads both over the cores."""

WARM_UPS = 3
"""Calls before those that are timed."""


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
