"""Rates of this machine, measured when the cost of a program is first asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from funcgrad.api.staging import StagedFunction
from funcgrad.compiler.pipeline import compile_program
from funcgrad.core.trace import EVAL, using_trace
from funcgrad.reports import Machine

_ROWS = 512
_LARGE = 1 << 22
"""Numbers of an array that no cache holds."""
_SMALL = 1 << 13
"""Numbers of an array that every core has in its caches."""
_RUNS = 5


@cache
def measured_machine() -> Machine:
    """The rates of products of matrices, elementary functions and copies."""
    flops, functions = {}, {}
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        matrix = np.ones((_ROWS, _ROWS), dtype)
        flops[dtype.itemsize] = 2 * _ROWS**3 / _seconds(np.matmul, matrix, matrix)
        row = np.ones(_LARGE >> 2, dtype)
        functions[dtype.itemsize] = row.size / _seconds(lambda x: np.exp(x).sum(), row)
    large, small = np.ones(_LARGE), np.ones(_SMALL)
    memory = large.nbytes / _seconds(np.sum, large)
    cache_rate = small.nbytes / _seconds(np.sum, small)
    return Machine(flops, functions, memory, max(memory, cache_rate))


def _seconds(function: Callable[..., Any], *args: np.ndarray) -> float:
    """The time of the fastest of some calls, compiled."""
    with using_trace(EVAL):
        run = compile_program(StagedFunction(function, args, {}, "measured_machine").program)
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        run(*args)
        times.append(time.perf_counter() - start)
    return min(times)
