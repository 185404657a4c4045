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


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "complex64"])
@pytest.mark.parametrize("length", [2, 15, 33, 48, 63, 80, 150, 300])
def test_edges_of_rows_of_all_lengths(length: int, dtype: str) -> None:
    """Ranges that begin, end, or do both in a vector, in rows that are there and in others."""
    x = np.random.default_rng(length).integers(0, 5, (5, length)).astype(dtype)

    def inner(np: Any, x: Any) -> Any:
        y = np.pad(x[1:-1, 1:] * x[:-2, :-1], ((1, 1), (1, 0))) + np.pad(x[:, 1:], ((0, 0), (0, 1)))
        return y * x - np.pad(x[2:, 1:-1] + x[:-2, 2:] * x[1:-1, 1:-1], 1)

    def around(np: Any, x: Any) -> Any:
        both = np.roll(x, 1, 1) * np.roll(x, -1, 1) + np.roll(x, 2, 0)
        return both - x * np.concatenate([x[:, :1], x[:, :-1]], axis=1) + np.roll(x, -1, 0) * x

    for f in (inner, around):
        found = fg.jit(lambda x, f=f: f(fnp, x))(x)
        np.testing.assert_array_equal(found, f(np, x))


BOXES = [(1, 1, 38, 198), (30, 40, 31, 41), (0, 0, 40, 7), (39, 190, 40, 200), (5, 0, 6, 200)]
"""First and last rows and columns: most of an array, an element, edges, a corner, a row."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", range(1, len(BOXES) + 1))
def test_small_boxes_cost_the_rows_that_they_are_in(n: int, dtype: str) -> None:
    """Other rows belong to the core, whichever boxes have their borders where."""
    x, y = np.random.default_rng(n).normal(size=(2, 40, 200)).astype(dtype)

    def f(x: Any, y: Any) -> Any:
        for a, b, c, d in BOXES[-n:] + BOXES[:1]:
            x = x.at[a:c, b:d].add(y[: c - a, : d - b])
        return 2 * x, x.sum(axis=0), np.exp(x)[:, ::-1]

    expected = x.copy()
    for a, b, c, d in BOXES[-n:] + BOXES[:1]:
        expected[a:c, b:d] += y[: c - a, : d - b]
    double, total, turned = fg.jit(f)(x, y)
    np.testing.assert_array_equal(double, 2 * expected)
    np.testing.assert_allclose(total, expected.sum(axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(turned, np.exp(expected)[:, ::-1], rtol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_outer_products_of_short_vectors_are_written_to_their_places(n: int) -> None:
    """Elements of both axes that are written out are stored where they belong, without copies."""
    x, y = np.random.default_rng(0).normal(size=(2, 50, n))
    f = fg.jit(lambda x, y: x[:, :, None] * y[:, None, :])
    np.testing.assert_array_equal(f(x, y), x[:, :, None] * y[:, None, :])
    assert f.lower(x, y).as_text().count("\n  kernel ") == 1


@pytest.mark.parametrize("columns", [40, 64, 100, 203])
def test_what_whole_vectors_leave_of_a_core_belongs_to_its_edge(columns: int) -> None:
    """So its statements are there with masks once, whatever the length of the row."""
    x = np.random.default_rng(columns).normal(size=(9, columns)).astype(np.float32)

    def f(x: Any) -> Any:
        inner = x[1:-1, 1:-1] - x[1:-1, :-2] * x[1:-1, 2:]
        return fnp.pad(inner, 1) + x

    compiled = fg.jit(f)
    np.testing.assert_allclose(compiled(x), f(x), rtol=1e-6)
    padded = compiled.lower(x).as_text().split("def kernel")[-1]
    assert padded.count("first_lanes(") == 1
    assert "some_lanes(" not in padded


@pytest.mark.parametrize(("columns", "in_lanes"), [(40, False), (1000, True)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_rows_with_an_element_at_their_edge_are_vectors(
    columns: int, in_lanes: bool, dtype: str
) -> None:
    """LLVM would search both edges and the core for vectors; edges would be most of short rows."""
    x, y = np.random.default_rng(0).normal(size=(2, 300, columns)).astype(dtype)

    def f(x: Any, y: Any) -> Any:
        return x + fnp.concatenate([y[:, :1], y[:, :-1]], -1)

    compiled = fg.jit(f)
    np.testing.assert_array_equal(compiled(x, y), f(x, y))
    assert ("lanes(" in compiled.lower(x, y).as_text()) == in_lanes
