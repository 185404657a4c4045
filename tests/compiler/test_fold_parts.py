"""Extremes of assembled arrays: what a loop asks of an array that it has replaced a part of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.compiler.plans import plan

INSIDE = np.s_[1:-1, 1:-1]


def flood(x: Any) -> Any:
    """Heights that rise to those of their neighbours, until none does."""

    def moves(state: Any) -> Any:
        return state[1] & (state[2] < 50)

    def rise(state: Any) -> Any:
        x, _, count = state
        new = fnp.maximum(x[INSIDE], fnp.maximum(x[2:, 1:-1], x[1:-1, 2:]) - 1)
        following = x.at[INSIDE].set(new)
        return following, ~fnp.all(following == x), count + 1

    return fg.lax.while_loop(moves, rise, (x, x[0, 0] < 300, 0))


def flood_by_numpy(x: np.ndarray) -> Any:
    count = 0
    while True:
        following = x.copy()
        new = np.maximum(x[INSIDE], np.maximum(x[2:, 1:-1], x[1:-1, 2:]) - 1)
        following[INSIDE], count = new, count + 1
        if (following == x).all() or count == 50:
            return following, not (following == x).all(), count
        x = following


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(64, 70), (6, 300), (3, 3)])
def test_a_loop_until_nothing_changes(shape: tuple[int, int], dtype: str) -> None:
    x = np.random.default_rng(0).integers(10, 200, shape).astype(dtype)
    for found, expected in zip(fg.jit(flood)(x), flood_by_numpy(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_changes_is_folded_where_it_is_computed() -> None:
    x = np.arange(64 * 70).reshape(64, 70)
    body = plan(flood, x).partition("  do")[2]
    (step,) = (line for line in body.splitlines() if "[62,68]" in line)
    assert "bool[]" in step


def replaced(x: Any, y: Any, xp: Any) -> Any:
    """Both arrays with parts of the other one."""
    if xp is np:
        one, two = x.copy(), y.copy()
        one[1:-1], two[1:-1] = y[1:-1] * 3, x[1:-1] + 2
        return one, two
    return x.at[1:-1].set(y[1:-1] * 3), y.at[1:-1].set(x[1:-1] + 2)


EXTREMES: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "of one": lambda one, two, x, y, xp: (xp.max(one), xp.min(one), xp.max(two)),
    "of both": lambda one, two, x, y, xp: (xp.max(one - two), xp.any(one > two), xp.max(two)),
    "of changes": lambda one, two, x, y, xp: (xp.max(abs(one - x)), xp.any(one != x)),
    "of itself": lambda one, two, x, y, xp: (
        xp.any(one != one),
        xp.all(one == one),
        xp.max(one - one),
    ),
    "beside others": lambda one, two, x, y, xp: (xp.min(xp.abs(x) - one), xp.min(xp.abs(x) + y)),
    "and a sum": lambda one, two, x, y, xp: (xp.max(one - x), xp.sum(one != x)),
    "of rows": lambda one, two, x, y, xp: (xp.max(one - x, axis=0), xp.max(one - x)),
    "turned": lambda one, two, x, y, xp: (xp.max(one[::-1] - x), xp.max(one.T - x.T)),
}


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name: str, dtype: str) -> None:
    def program(x: Any, y: Any, xp: Any = fnp) -> Any:
        one, two = replaced(x, y, xp)
        return one, two, *EXTREMES[name](one, two, x, y, xp)

    x, y = np.random.default_rng(0).integers(-9, 9, (2, 90, 80)).astype(dtype)
    for found, expected in zip(fg.jit(program)(x, y), program(x, y, np), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_differ_from_themselves(value: float) -> None:
    """At an edge, which stays as it is: the difference of two infinities is no number."""
    x = np.ones((300, 300))
    x[0, 7] = value

    def program(x: Any) -> Any:
        y = x.at[INSIDE].set(x[2:, 1:-1] * 2.0)
        return y, fnp.max(fnp.abs(y - x)), fnp.any(y != x)

    _, most, is_changed = fg.jit(program)(x)
    assert np.isnan(most)
    assert is_changed
