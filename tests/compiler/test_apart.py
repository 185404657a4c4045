"""Elements that lie a few steps apart are computed in vectors: points in space, reversed rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg

LENGTHS = (1, 2, 7, 8, 9, 15, 16, 17, 33, 64, 100, 1003)
RNG = np.random.default_rng(0)


def of_points(x: Any) -> Any:
    return np.tanh(x[..., 0] * x[..., -1] / (2 + np.cos(x[..., 1])))


def backwards(x: Any) -> Any:
    return np.tanh(x[::-1, 0]) / (1 + x[:, 1] * x[:, 1])


def largest(x: Any) -> Any:
    return np.max(np.exp(x[:, 0] / 100) * x[:, 1] / 3.7)


def total(x: Any) -> Any:
    return np.sum(np.exp(x[:, 0] / 100) * x[:, 1] * x[:, 1])


def flags(x: Any) -> Any:
    return np.tanh(np.where(x[:, 0] > 0, x[:, 1], 0.5)) * (x[:, 1] > x[:, 0])


@pytest.mark.parametrize("step", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int16])
@pytest.mark.parametrize("f", [of_points, backwards, largest, total, flags])
def test_results_are_those_of_numpy(f: Callable[..., Any], dtype: Any, step: int) -> None:
    compiled = fg.jit(f)
    for n in LENGTHS:
        x = (100 * RNG.normal(size=(n, step))).astype(dtype)
        tolerance = 1e-5 if np.result_type(f(x)) != np.float64 else 1e-12
        np.testing.assert_allclose(compiled(x), f(x), rtol=tolerance, atol=tolerance)


def test_the_kernel_is_in_vectors() -> None:
    text = fg.jit(of_points).lower(np.ones((50, 3))).as_text()
    assert text.count("load_apart(") == 3
    assert "load_apart(" in fg.jit(backwards).lower(np.ones((50, 1))[:, [0, 0]]).as_text()


PAGES = """
import ctypes, mmap
import numpy as np
import funcgrad as fg

size = mmap.PAGESIZE
pages = mmap.mmap(-1, 3 * size)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
libc = ctypes.CDLL(None, use_errno=True)
for page in (0, 2):
    address = ctypes.c_void_p(start + page * size)
    assert libc.mprotect(address, ctypes.c_size_t(size), 0) == 0
f = fg.jit(lambda x: np.tanh(x[:, -1] / (2 + np.cos(x[:, -1]))))
backwards = fg.jit(lambda x: np.tanh(x[::-1, 0] / (2 + np.cos(x[::-1, 0]))))
for step in (1, 2, 3, 8):
    for n in (1, 3, 8, 16, 17, 40):
        for offset in (size, 2 * size - 8 * n * step):
            x = np.frombuffer(pages, np.float64, n * step, offset).reshape(n, step)
            x[:] = 0.5
            for g in (f, backwards):
                assert np.allclose(g(x), np.tanh(0.5 / (2 + np.cos(0.5))))
print("done")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages of memory")
def test_nothing_is_read_beside_the_array() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PAGES], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
