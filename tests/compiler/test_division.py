"""Quotients and remainders of compiled code are NumPy's to the bit, also where they are rare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import funcgrad as fg

FUNCTIONS = [np.floor_divide, np.remainder, np.fmod]
SAMPLE = ["i", "l", "L", "f", "d"]
CODES = [
    pytest.param(code, marks=() if code in SAMPLE else pytest.mark.nightly) for code in "bBhHiIlLfd"
]
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _keep_subnormals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_KEEP_SUBNORMALS", "1")


def integers(code: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of all sizes, and those about which a way by floats could be wrong."""
    info = np.iinfo(code)
    near = [2**k + d for k in (24, 31, 51, 52, 53) for d in (-1, 0, 1)]
    values = [0, 1, 2, 3, 7, info.max // 2, *near, info.max - 1, info.max]
    values += [-v for v in values] + [info.min, info.min + 1]
    edges = np.array([v for v in values if info.min <= v <= info.max], code)
    x, y = np.meshgrid(edges, edges)
    yield x.ravel(), y.ravel()
    x, y = (RNG.integers(info.min, info.max, 3000, code, True) for _ in range(2))
    y >>= RNG.integers(0, info.bits - 1, 3000).astype(code)
    yield x, y
    yield y, x
    yield x[:5], y[:5]


def floats(code: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    info: Any = np.finfo(code)
    values = [0.0, 0.1, 0.5, 1.0, 2.5, 3.0, 1e10, 2.0**51, 2.0**52 + 1, info.max, info.tiny]
    values += [info.smallest_subnormal, np.inf]
    edges = np.array([*values, *(-v for v in values), np.nan], code)
    x, y = np.meshgrid(edges, edges)
    yield x.ravel(), y.ravel()
    sizes = 2.0 ** RNG.uniform(info.minexp, info.maxexp, 3000)
    wide = (RNG.choice([-1.0, 1.0], 3000) * sizes).astype(code)
    yield wide, RNG.permutation(wide)
    yield wide * RNG.integers(1, 1000, 3000).astype(code), wide
    yield (100 * RNG.normal(size=3000)).astype(code), np.full(3000, 0.7, code)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_are_those_of_numpy(function: Callable[..., Any], code: str) -> None:
    compiled = fg.jit(function)
    with np.errstate(all="ignore"):
        for x, y in floats(code) if code in "fd" else integers(code):
            found, expected = compiled(x, y), function(x, y)
            np.testing.assert_array_equal(found, expected, strict=True)
            if code in "fd":
                some = ~np.isnan(expected)
                np.testing.assert_array_equal(np.signbit(found)[some], np.signbit(expected)[some])


@pytest.mark.parametrize("code", ["i", "l", "f"])
def test_one_number_at_a_time(code: str) -> None:
    x = np.arange(-9, 10).astype(code)
    found = fg.jit(lambda x: fg.lax.map(lambda v: (v // 4, v % 4, v % -3), x))(x)
    for ours, theirs in zip(found, (x // 4, x % 4, x % -3), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", "bBhHiIlL")
def test_powers_of_two_that_are_known(code: str) -> None:
    info = np.iinfo(code)
    powers = [1 << k for k in range(info.bits) if 1 << k <= info.max]
    known = [np.dtype(code).type(n) for n in (*powers[:3], *powers[-2:], 3, 0)]
    (x, _), *_ = integers(code)
    for values in (x, x[:3]):
        with np.errstate(all="ignore"):
            expected = [(values // n, values % n) for n in known]
        found = fg.jit(lambda x: [(x // n, x % n) for n in known])(values)
        one_by_one = fg.jit(lambda x: fg.lax.map(lambda v: [(v // n, v % n) for n in known], x))(
            values
        )
        for ours in (found, one_by_one):
            for (q, r), (quotient, remainder) in zip(ours, expected, strict=True):
                np.testing.assert_array_equal(q, quotient, strict=True)
                np.testing.assert_array_equal(r, remainder, strict=True)


@pytest.mark.parametrize("code", "fd")
def test_quotients_by_one_number_are_those_of_a_division(code: str) -> None:
    """They are products with its reciprocal, corrected."""
    info: Any = np.finfo(code)
    digits = RNG.random(2000) + 1
    x = np.concatenate([digits, -digits * 1e9, 2 - digits * info.eps, [0.0, -0.0, np.inf, np.nan]])
    x = np.concatenate([x, [info.max, -info.max, 1.0, 49.0]]).astype(code)
    few = [0.0, np.inf, info.max, info.tiny, info.smallest_subnormal, 49.0, 2 - info.eps, 1e30]
    numbers = np.array([*few, *digits[:40], *RNG.integers(1, 999, 40)], code)
    by = fg.jit(lambda x, y: x / y)
    with np.errstate(all="ignore"):
        for y in np.concatenate([numbers, -numbers, [np.array(np.nan, code)]]):
            for part in (x, x[-11:]):
                found = np.asarray(by(part, y)).view(f"i{info.dtype.itemsize}")
                known = (part / y).view(found.dtype)
                is_nan = np.isnan(part / y)
                np.testing.assert_array_equal(found[~is_nan], known[~is_nan], f"{y!r}")
                assert np.isnan(np.asarray(by(part, y))[is_nan]).all()
