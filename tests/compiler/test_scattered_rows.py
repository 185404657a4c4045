"""Rows and columns that loops put at computed places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax

N = 40
PAIRS = np.array([[0, 3], [3, 0], [5, 5], [-1, 2], [7, -40], [39, 39], [4, 8]])

Row = Callable[[Any, Any], Any]


def rotation(read: Row, change: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A loop in which two rows become their sum and difference, whose places may be one."""

    def step(a: Any, pair: Any) -> Any:
        p, q = pair[0], pair[1]
        x, y = read(a, p), read(a, q)
        return change(change(a, p, x + y), q, x - y), None

    return lambda a, pairs: lax.scan(step, a, pairs)[0]


WAYS: dict[str, tuple[Row, Callable[[Any, Any, Any], Any]]] = {
    "rows": (lambda a, i: a[i], lambda a, i, x: a.at[i].set(x)),
    "columns": (lambda a, i: a[:, i], lambda a, i, x: a.at[:, i].set(x)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_a_rotation_of_rows(way: str, dtype: Any) -> None:
    read, change = WAYS[way]
    a = np.random.default_rng(0).integers(-9, 9, (N, N)).astype(dtype)
    program = rotation(read, change)
    found, wanted = fg.jit(program)(a, PAIRS), a.copy()
    for p, q in PAIRS:
        x, y = (np.copy(read(wanted, i)) for i in (p, q))
        for i, z in ((p, x + y), (q, x - y)):
            wanted[(i, slice(None)) if way == "rows" else (slice(None), i)] = z
    np.testing.assert_array_equal(found, wanted)


def test_rows_beyond_the_ends_are_left_out() -> None:
    a, places = np.arange(3.0 * N).reshape(3, N), np.array([0, 3, -4, 1, 9, -1])

    def step(a: Any, i: Any) -> Any:
        return a.at[i].set(a[0] * 2 + fnp.arange(N)), None

    found, wanted = fg.jit(lambda a, i: lax.scan(step, a, i)[0])(a, places), a.copy()
    for i in (i for i in places if -3 <= i < 3):
        wanted[i] = wanted[0] * 2 + np.arange(N)
    np.testing.assert_array_equal(found, wanted)


def test_windows_that_slide_over_what_is_read_are_computed_first() -> None:
    x, starts = np.arange(60), np.array([1, 0, 30, 2])

    def step(x: Any, i: Any) -> Any:
        return lax.dynamic_update_slice(x, x[:30] + x[5:35], (i,)), None

    found, wanted = fg.jit(lambda x, i: lax.scan(step, x, i)[0])(x, starts), x.copy()
    for i in starts:
        wanted[i : i + 30] = wanted[:30] + wanted[5:35]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shift", [0, 1])
def test_what_is_put_back_stays(shift: int) -> None:
    places = np.arange(N)

    def body(k: Any, a: Any) -> Any:
        old = a[:, (k + shift) % N]
        return a.at[:, k].set(fnp.where(places > k, 2.0 * old - k, old))

    a = np.arange(1.0 * N * N).reshape(N, N)
    found, wanted = fg.jit(lambda a: lax.fori_loop(0, N, body, a))(a), a.copy()
    for k in range(N):
        old = wanted[:, (k + shift) % N].copy()
        wanted[:, k] = np.where(places > k, 2.0 * old - k, old)
    np.testing.assert_array_equal(found, wanted)


def test_an_index_is_looked_at_once() -> None:
    a, b, i = np.arange(9.0), np.arange(9.0), np.array([3, -2, 8])
    program = fg.jit(lambda a, b, i: a[i] * b[i])
    np.testing.assert_array_equal(program(a, b, i), a[i] * b[i])
    with pytest.raises(IndexError, match="9"):
        program(a, b, np.array([3, 9, 1]))
    text = program.lower(a, b, i).as_text()
    assert text.count("minimum(u64(") == 1
