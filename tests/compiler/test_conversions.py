"""Conversions of floats to integers that cannot hold them: as NumPy's, eagerly and compiled.

NumPy leaves to the processor what a float out of range becomes. The rule of x86-64, which
docs/numerics.md promises for compiled code on every processor, is computed here with Python's
integers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

FLOATS = "df"
INTEGERS = "lbihLBHI"
POWERS = [
    s * 2.0**k * m for s in (1, -1) for k in (7, 15, 16, 31, 32, 62, 63, 64) for m in (1, 1.5)
]
VALUES = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, -0.0, -1.5, 300.5, -40000.0, *POWERS]


def converted(x: float, dtype: str) -> int:
    """What an integer dtype makes of a float, of any size."""
    own = np.dtype(dtype)
    bits = 8 * own.itemsize
    way = 64 if bits == 64 or dtype == "I" else 32
    if dtype == "L" and x >= 2.0**63:
        number = _in_range(x - 2.0**63, 64) + 2**63
    else:
        number = _in_range(x, way)
    number %= 1 << bits
    return number - (1 << bits) if own.kind == "i" and number >> (bits - 1) else number


def _in_range(x: float, bits: int) -> int:
    """The integer, or the least one where there is none: what the instruction returns."""
    return int(x) if abs(x) < 2.0 ** (bits - 1) else -(2 ** (bits - 1))


def rounded(dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(VALUES).astype(dtype)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("times", [1, 40])
def test_floats_out_of_range(times: int, dtype: str, to: str) -> None:
    x = np.repeat(rounded(dtype), times)
    expected = np.array([converted(float(v), to) for v in x], to)
    np.testing.assert_array_equal(fg.jit(lambda x: x.astype(to))(x), expected)
    spread = np.repeat(x, 2)[::2]
    np.testing.assert_array_equal(fg.jit(lambda x: x.astype(to))(spread), expected)
    back = fg.jit(lambda x: x.astype(to).astype(np.float64))(x)
    np.testing.assert_array_equal(back, expected.astype(np.float64))
    is_small = fg.jit(lambda x: (x.astype(to) < 5) & (x.astype(to) > 0))(x)
    np.testing.assert_array_equal(is_small, (expected < 5) & (expected > 0))
    if to != "I":  # NumPy itself has two answers there
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(x.astype(to), expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", FLOATS)
@pytest.mark.parametrize("dtype", "lIL")
def test_integers_by_way_of_floats(dtype: str, way: str) -> None:
    """LLVM may take the float for one in range, and leave it out."""
    x = np.array([2**32 + 5, 3 * 10**9, 2**31, 2**53, 2**62 + 7, 1] * 8).astype(dtype)
    for to in INTEGERS:
        f = fg.jit(lambda x, to=to: x.astype(way).astype(to))
        expected = np.array([converted(float(v), to) for v in x.astype(way)], to)
        np.testing.assert_array_equal(f(x), expected)


@pytest.mark.parametrize("dtype", "df")
def test_known_floats_out_of_range(dtype: str) -> None:
    for value in rounded(dtype)[:12:2]:
        for to in INTEGERS:
            f = fg.jit(lambda y, value=value, to=to: y + fnp.full(3, value).astype(to))
            expected = np.array([converted(float(value), to)] * 3, to)
            np.testing.assert_array_equal(f(np.zeros(3, to)), expected)


@pytest.mark.parametrize("dtype", "df")
def test_indices_made_of_floats_are_clamped(dtype: str) -> None:
    x = rounded(dtype)
    table = np.arange(10.0)
    places = [min(max(i + 10 if i < 0 else i, 0), 9) for i in (converted(float(v), "l") for v in x)]

    def f(x: Any) -> Any:
        return fnp.at(fnp.asarray(table))[x.astype(np.int64)].get(mode="clip")

    np.testing.assert_array_equal(fg.jit(f)(x), table[places])
    np.testing.assert_array_equal(fg.jit(fg.vmap(f))(x), table[places])
    looped = fg.jit(lambda x: fg.lax.map(f, x))
    np.testing.assert_array_equal(looped(x), table[places])
