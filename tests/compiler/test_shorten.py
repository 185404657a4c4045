"""Integers of 64 bits that are computed with 32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

RNG = np.random.default_rng(0)
FLOATS = RNG.normal(size=(40, 100))
BYTES = RNG.integers(-128, 127, (40, 100), dtype=np.int8)
WORDS = RNG.integers(-(2**15), 2**15, (40, 100), dtype=np.int16)
INTEGERS = RNG.integers(-(2**31), 2**31, (40, 100), dtype=np.int32)
LARGE = np.full((40, 100), 2**31 - 1, dtype=np.int32)


def kernels(program: Callable[..., Any], *arguments: Any) -> str:
    return fg.jit(program).lower(*arguments).as_text().partition("\n# kernel")[2]


SHORT: dict[str, tuple[Callable[..., Any], Any]] = {
    "flags": (lambda x: fnp.sum(x > 0, axis=1), FLOATS),
    "columns": (lambda x: fnp.sum(x > 0, axis=0) > 10, FLOATS),
    "bytes": (lambda x: fnp.sum(x, axis=1) * 3 > 4, BYTES),
    "products": (lambda x: fnp.sum(x.astype(np.int64) * x[::-1], axis=1), BYTES),
    "distances": (lambda x: fnp.sum(fnp.abs(x.astype(int) - x[:1]), axis=1), BYTES),
    "extremes": (lambda x: fnp.max(x.astype(int) * 2 - 1, axis=1), BYTES),
    "places": (lambda x: fnp.argmax(x.astype(int) * x[::-1], axis=1), BYTES),
    "floats": (lambda x: fnp.sum(x > 0, axis=1) / 7, FLOATS),
    "bits": (lambda x: fnp.argmin(fnp.sum(fnp.bitwise_count(x), 1)), BYTES.reshape(500, 8)),
}


@pytest.mark.parametrize("name", SHORT)
def test_bounds_decide(name: str) -> None:
    program, x = SHORT[name]
    np.testing.assert_array_equal(fg.jit(program)(x), program(x), strict=True)
    assert "i32(" in kernels(program, x)


LONG: dict[str, tuple[Callable[..., Any], Any]] = {
    "sums of long ones": (lambda x: fnp.sum(x, axis=1), INTEGERS),
    "greatest sums": (lambda x: fnp.sum(x, axis=1), LARGE),
    "products of words": (lambda x: fnp.sum(x.astype(np.int64) * x, axis=1), WORDS),
    "products of products": (lambda x: fnp.sum(x.astype(int) * x * x * x * x, 1), BYTES),
    "an overflow on the way": (lambda x: fnp.sum((x.astype(int) << 40) >> 40, 1), BYTES),
    "a comparison of products": (
        lambda x: fnp.where(x.astype(int) * x * 3 > 2**31, 1, 0).sum(1),
        WORDS,
    ),
    "a difference of what is beyond": (
        lambda x: fnp.sum((x.astype(int) + 2**31) - 2**31, 1),
        WORDS,
    ),
    "differences of extremes": (lambda x: fnp.max(x.astype(int), 1) - np.int64(2**31), LARGE),
}


@pytest.mark.parametrize("name", LONG)
def test_others_have_64(name: str) -> None:
    program, x = LONG[name]
    np.testing.assert_array_equal(fg.jit(program)(x), program(x), strict=True)


def test_both_are_read() -> None:
    def program(x: Any, y: Any) -> Any:
        count = fnp.sum(x > 0, axis=1)
        return count, count > 20, count * y, y[count % 40]

    y = RNG.integers(-(2**60), 2**60, 40)
    found, wanted = fg.jit(program)(FLOATS, y), program(FLOATS, y)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_loops_count() -> None:
    def step(i: Any, c: Any) -> Any:
        count, x = c
        return count + fnp.sum(x > i, axis=1), x * 1.5

    def program(x: Any) -> Any:
        return fg.lax.fori_loop(0, 5, step, (fnp.zeros(40, int), x))[0]

    wanted, x = np.zeros(40, int), FLOATS
    for i in range(5):
        wanted, x = wanted + np.sum(x > i, axis=1), x * 1.5
    np.testing.assert_array_equal(fg.jit(program)(FLOATS), wanted)
