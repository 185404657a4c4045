"""Neighbours of which not all are there are accessed in pieces where a processor has no masks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, mmap, sys
import numpy as np
import funcgrad as fg
from funcgrad.compiler.native import llvm_backend

has_masks = sys.argv[1] == "masks"
llvm_backend.has_masks = lambda verb, width: has_masks
size = mmap.PAGESIZE
pages = mmap.mmap(-1, 3 * size)
address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
libc = ctypes.CDLL(None, use_errno=True)
for page in (0, 2):
    assert libc.mprotect(ctypes.c_void_p(address + page * size), size, 0) == 0


def rows(x, y):
    return x.at[:, 1:-1].set(y + y)


def shifted(x):
    for _ in range(3):
        x = x.at[:, :-1].set(x[:, 1:])
    return x


dtypes, sizes = (np.int8, np.float32), (1, 13, 100)
if sys.argv[2] == "all":
    dtypes = (np.int8, np.int16, np.int32, np.float32, np.float64, np.complex64)
    sizes = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 63, 64, 65, 100, 127, 200, 255, 257)
for dtype in dtypes:
    double, rowed, moved = fg.jit(lambda x: x + x), fg.jit(rows), fg.jit(shifted)
    product = fg.jit(lambda a, b: a @ b)
    rng = np.random.default_rng(0)
    for n in sizes:
        x, y = (rng.integers(0, 50, (3, k)).astype(dtype) for k in (n + 2, n))
        expected = x.copy()
        expected[:, 1:-1] = y + y
        np.testing.assert_array_equal(rowed(x, y), expected)
        expected = np.concatenate([x[:, 3:], x[:, -1:].repeat(min(3, n + 2), 1)], 1)
        np.testing.assert_array_equal(moved(x), expected[:, : n + 2])
        if np.dtype(dtype).kind != "i":
            a, b = (rng.integers(0, 9, shape).astype(dtype) for shape in ((40, 5), (5, n)))
            np.testing.assert_array_equal(product(a, b), a @ b)
        for start in (size, 2 * size - n * np.dtype(dtype).itemsize):
            x = np.frombuffer(pages, dtype, n, start)
            x[:] = y[0]
            np.testing.assert_array_equal(double(x), y[0] + y[0])
print("done")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages of memory")
@pytest.mark.parametrize("masks", ["masks", "pieces"])
@pytest.mark.parametrize("which", ["few", pytest.param("all", marks=pytest.mark.nightly)])
def test_no_other_elements_are_accessed(which: str, masks: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, masks, which],
        env={**os.environ, "FUNCGRAD_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
