"""Elements that lie a few steps apart, or anywhere, are computed in vectors.

They are points in space, reversed rows, and lookups at computed places.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

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


@pytest.mark.parametrize("dtype", [np.int8, bool, np.int16])
def test_bytes_are_not_permuted(dtype: Any) -> None:
    """LLVM searches for minutes for instructions of AVX2 that do it."""
    x = np.ones((5, 8), dtype)
    compiled = fg.jit(lambda x: fnp.any(x != 0, axis=-1))
    assert "load_apart" not in compiled.lower(x).as_text()
    assert "load_apart" in compiled.lower(x.astype(np.int32)).as_text()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("step", [2, 3, 8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_that_lie_far_apart(dtype: Any) -> None:
    """Lanes are loaded and stored one by one where that is little beside the arithmetic."""

    def turned(x: Any) -> Any:
        out = x[:, 3]
        for k in range(20):
            out = np.tanh(out * x[:, 7] + k) + out
        return np.stack([out, np.exp(-out), *(x[:, k] for k in range(9))], -1)

    compiled = fg.jit(turned)
    text = compiled.lower(np.ones((50, 11), dtype)).as_text()
    assert "load_each(" in text
    assert "store_each(" in text
    for n in LENGTHS:
        x = RNG.normal(size=(n, 11)).astype(dtype)
        near(compiled(x), turned(x), dtype)


def heavy(x: Any) -> Any:
    """Enough work for vectors."""
    return np.tanh(x / 100) * 0.5 + np.cos(x)


MODES = ["fill", "clip", "wrap"]
TABLE = 100 * RNG.normal(size=(21, 5))


def near(found: Any, expected: Any, dtype: Any) -> None:
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", [np.float64, np.int16, bool])
@pytest.mark.parametrize("index", [np.int64, np.int32, np.uint8, np.uint64])
def test_lookups_are_those_of_numpy(dtype: Any, index: Any) -> None:
    table = np.abs(TABLE[:, 0]).astype(dtype)
    f = fg.jit(lambda t, i: heavy(t[i] * 1.0) + t[i // 2])
    for n in LENGTHS:
        places = RNG.integers(0, 21, n).astype(index)
        with np.errstate(all="ignore"):
            expected = heavy(table[places] * 1.0) + table[places // 2]
        near(f(table, places), expected, dtype)


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_lookups(mode: str) -> None:
    def f(t: Any, i: Any) -> Any:
        return heavy(fnp.at(t)[i * 3 - 9, i % 5].get(mode=mode, fill_value=7.0))

    for n in LENGTHS:
        i = RNG.integers(-9, 40, n)
        near(fg.jit(f)(TABLE, i), f(TABLE, i), np.float64)


def test_rows_and_columns_at_computed_places() -> None:
    i, j = RNG.integers(0, 21, 40), RNG.integers(0, 5, (21, 30))
    for f in (
        lambda t, i, j: heavy(t[i]),
        lambda t, i, j: heavy(t[:, i % 5]),
        lambda t, i, j: heavy(fnp.take_along_axis(t, j, axis=1)),
        lambda t, i, j: np.sum(heavy(t[i, i % 5] * t[i[::-1], 2])),
        lambda t, i, j: np.max(heavy(fnp.take_along_axis(t, j, axis=1)), axis=1),
        lambda t, i, j: heavy(fg.lax.dynamic_slice(t, (i[0], 1), (3, 4))),
    ):
        near(fg.jit(f)(TABLE, i, j), f(TABLE, i, j), np.float64)


@pytest.mark.parametrize("wrong", [21, -22, 2**40, -(2**40)])
@pytest.mark.parametrize("place", [0, 39])
def test_wrong_places_are_refused(wrong: int, place: int) -> None:
    f = fg.jit(lambda t, i: heavy(t[i]))
    i = RNG.integers(-21, 21, 40)
    near(f(TABLE[:, 0], i), heavy(TABLE[i, 0]), np.float64)
    i[place] = wrong
    with pytest.raises(fg.errors.OutOfBoundsError, match=str(wrong)) as caught:
        f(TABLE[:, 0], i)
    assert "test_apart.py" in str(caught.value)


def test_lookups_are_in_vectors() -> None:
    text = fg.jit(lambda t, i: heavy(t[i])).lower(TABLE[:, 0], np.arange(9)).as_text()
    assert "load_each(" in text


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


def turned(x: Any, k: Any) -> tuple[Any, ...]:
    """Rows read forwards and backwards from computed places on, to which they come back."""
    n = len(x)
    i = np.arange(n)
    places = (k - 1 - i) % n, (i + k) % n, fnp.where(i < k, i + 1, i - k), fnp.clip(k - i, 0, n - 1)
    return tuple(np.sum(x[place] * x) for place in places)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_lookups_that_go_on_or_back(dtype: Any) -> None:
    compiled = fg.jit(turned)
    assert "load_run(" in compiled.lower(np.ones(40, dtype), 3).as_text()
    for n in LENGTHS:
        x = RNG.integers(-9, 9, n).astype(dtype)
        for k in {0, n // 2, n - 1}:
            for found, expected in zip(compiled(x, k), turned(x, k), strict=True):
                assert found == expected
