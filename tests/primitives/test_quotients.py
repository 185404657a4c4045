"""Derivatives of high order of functions that are 0/0 somewhere, near and at that place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import funcgrad as fg
from funcgrad.primitives.quotients import quotient

DERIVATIVES: dict[str, Callable[[int, Any], Any]] = {
    "sin": lambda n, x: mp.sin(x + n * mp.pi / 2),
    "expm1": lambda n, x: mp.exp(x) if n else mp.expm1(x),
    "log1p": lambda n, x: -mp.factorial(n - 1) / (-1 - x) ** n if n else mp.log1p(x),
}
"""The numerators and their derivatives."""

PLACES = {
    "sin": [k * x for k in (1, -1) for x in (0.0, 1e-320, 1e-8, 0.3, 0.59, 0.94, 0.96, 2, 5, 40)],
    "expm1": [k * x for k in (1, -1) for x in (0.0, 1e-320, 1e-8, 0.3, 0.59, 0.94, 0.96, 2, 5, 40)],
    "log1p": [0.0, 1e-320, -1e-8, 0.3, 0.99, 1.01, 3.0, 100.0, -0.33, -0.34, -0.9],
}
ORDERS = (1, 12)


def exact(name: str, n: int, x: float) -> float:
    """The n-th derivative of a quotient, by the product rule with more digits than it loses."""
    derivative = DERIVATIVES[name]
    with mp.workdps(400):
        if abs(x) < 1e-20:
            return float(derivative(n + 1, mp.mpf(0)) / (n + 1))
        total = derivative(0, mp.mpf(x)) / x
        for k in range(1, n + 1):
            total = (derivative(k, mp.mpf(x)) - k * total) / x
        return float(total)


def expected(name: str, n: int) -> np.ndarray:
    return np.array([exact(name, n, x) for x in PLACES[name]])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=() if n in ORDERS else pytest.mark.nightly) for n in range(17)]
)
def test_derivatives_of_quotients(name: str, n: int) -> None:
    x = np.array(PLACES[name])
    right = expected(name, n)
    # Neighbouring orders have derivatives of similar sizes, but for their zeros.
    scale = np.abs(right) + (1e-2 / (n + 1) if name == "sin" else 0.0)
    for found in (quotient(name, n).bind(x), fg.jit(quotient(name, n).bind)(x)):
        assert np.max(np.abs(found - right) / scale) < 2e-15 * 2.2**n
    single = x.astype(np.float32)
    close = np.abs(x) < 6
    for found in (quotient(name, n).bind(single), fg.jit(quotient(name, n).bind)(single)):
        assert found.dtype == np.float32
        error = np.abs(found - right) / scale
        assert np.max(error[close]) < 1e-5 * (n + 1)


def nth(f: Callable[[Any], Any], n: int) -> Callable[[Any], Any]:
    """The n-th derivative, one `jvp` inside of the other."""
    if n == 0:
        return f
    inner = nth(f, n - 1)
    return lambda x: fg.jvp(inner, (x,), (1.0,))[1]


def test_sinc_has_derivatives_of_every_order_at_zero() -> None:
    for n in (1, 2, 6, 11, 12):
        sign = (1, 0, -1, 0)[n % 4]
        right = sign * math.pi**n / (n + 1)
        assert nth(np.sinc, n)(0.0) == pytest.approx(right, rel=1e-13, abs=1e-13)
    assert fg.jit(nth(np.sinc, 8))(0.0) == pytest.approx(math.pi**8 / 9, rel=1e-13)
    assert nth(np.sinc, 3)(1j * 0.0) == 0


def test_sinc_is_numpys_at_special_values() -> None:
    x = np.array([0.0, -0.0, 1e-320, 1e-300, 0.5, 1e5, np.nan])
    for dtype in (np.float64, np.float32):
        given = x.astype(dtype)
        np.testing.assert_allclose(fg.jit(np.sinc)(given), np.sinc(given), rtol=1e-5)


# Everything that is made of these, in derivatives of an order beyond every series of five terms.
CASES: dict[str, tuple[int, Callable[[Any], Any], Callable[[Any], Any], tuple[float, ...]]] = {
    "exprel": (
        7,
        scipy.special.exprel,
        lambda x: mp.expm1(x) / x if x else mp.mpf(1),
        (1e-9, -0.0099, 0.0101, 1.0),
    ),
    "spence": (
        7,
        scipy.special.spence,
        lambda x: mp.polylog(2, 1 - x),
        (1.0 + 1e-9, 1.0009, 0.9989, 1.4),
    ),
    "special.boxcox": (
        7,
        lambda p: scipy.special.boxcox(2.5, p),
        lambda p: mp.expm1(p * mp.log(2.5)) / p,
        (1e-9, 1e-3, 0.02),
    ),
    "stats.boxcox": (
        3,
        lambda p: fg.scipy.stats.boxcox(2.5, p),
        lambda p: mp.expm1(p * mp.log(2.5)) / p,
        (0.0, 1e-9, 1e-3, 1.2),
    ),
    "logarithmic chirp": (
        6,
        lambda r: fg.scipy.signal.chirp(0.1, 1.0, 1.0, fg.numpy.exp(r), method="logarithmic"),
        lambda r: mp.cos(2 * mp.pi * mp.expm1(0.1 * r) / r),
        (1e-3, 0.02, 1.5),
    ),
    "hyperbolic chirp": (
        6,
        lambda r: fg.scipy.signal.chirp(0.5, 1.0, 1.0, 1 + r, method="hyperbolic"),
        lambda r: mp.cos(-2 * mp.pi * (1 + r) / r * mp.log(1 - 0.5 * r / (1 + r))),
        (1e-3, 0.02, 0.7),
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_what_is_made_of_quotients(name: str) -> None:
    order, function, same, places = CASES[name]
    derivative = nth(function, order)
    for x in places:
        with mp.workdps(80):
            around = mp.mpf(x) if x else mp.mpf("1e-30")
            right = float(mp.diff(same, around, order))
        assert derivative(x) == pytest.approx(right, rel=1e-9)
