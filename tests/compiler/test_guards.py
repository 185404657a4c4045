"""Guards of kernels: what is not there costs nothing, wherever it would be."""

from __future__ import annotations

import mmap
import time
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

SHAPE = 12, 40, 40


def _after_pages(dtype: str, is_written: bool) -> np.ndarray:
    """An array behind pages that were written before, or never."""
    x = np.random.default_rng(0).normal(size=SHAPE).astype(dtype)
    size = -(-x.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, 2 * size), np.uint8)
    if is_written:
        memory[:size] = 1
    memory[size : size + x.nbytes] = x.reshape(-1).view(np.uint8)
    return memory[size : size + x.nbytes].view(dtype).reshape(SHAPE)


def _added(x: Any, pad: Any) -> Any:
    """The sum of an array at neighbouring places, as derivatives of stencils add them."""
    widths = [(k, 2 - k) for k in range(3)]
    return sum(pad(x, (across, (1, 1), along)) for across in widths for along in widths)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_not_there_are_not_touched(dtype: str) -> None:
    """Loads with an empty mask take hundreds of nanoseconds at pages that nobody has written."""
    compiled = fg.jit(lambda x: _added(x, fnp.pad))
    arrays = [_after_pages(dtype, is_written) for is_written in (True, False)]
    best = [float("inf"), float("inf")]
    for _ in range(20):
        for k, x in enumerate(arrays):
            begin = time.thread_time()
            found = compiled(x)
            best[k] = min(best[k], time.thread_time() - begin)
    np.testing.assert_array_equal(found, _added(arrays[0], np.pad))
    assert best[1] < 3 * best[0]
