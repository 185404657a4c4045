"""Derivatives at extreme arguments: huge, tiny, subnormal, infinite, zeros of both signs, nan.

A derivative that is finite is found finite, and right: `ROWS` has derivatives in closed form, which
mpmath evaluates at the very argument. At infinite arguments it is their limit. What overflows is
infinite; what the function is not defined for is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special as special

import funcgrad as fg
from tests.cases import ELEMENTARY

INF, NAN = math.inf, math.nan


@dataclass(frozen=True)
class Row:
    """A function of one argument.

    Args:
        function: Written with NumPy and SciPy.
        slope: Its derivative, for finite arguments of the domain.
        low: Lower end of the domain.
        high: Upper end.
        at_low: Limit of the derivative at minus infinity; ``nan`` if there is none.
        at_high: Limit at infinity.
        absolute: The slope is right to so many units of rounding of 1, where it is much smaller
            than 1: it is made of the value, without another elementary function.
    """

    function: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    low: float = -INF
    high: float = INF
    at_low: float = 0.0
    at_high: float = 0.0
    absolute: float = 0.0


def logistic_slope(x: Any) -> Any:
    small = mp.exp(-abs(x))
    return small / (1 + small) ** 2


def normal(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def log_ndtr_slope(x: Any) -> Any:
    if abs(x) < 100:
        return normal(x) / mp.ncdf(x)
    return -x - 1 / x + 2 / x**3 if x < 0 else mp.mpf(0)  # Mills' ratio, DLMF 7.12.1


def sinc_slope(x: Any) -> Any:
    t = mp.pi * x
    if abs(x) < 1e-20:
        return -mp.pi * t / 3
    return mp.cos(t) / x - mp.sin(t) / (t * x)


ROWS: dict[str, Row] = {
    "exp": Row(np.exp, mp.exp, at_high=INF),
    "exp2": Row(np.exp2, lambda x: mp.power(2, x) * mp.log(2), at_high=INF),
    "expm1": Row(np.expm1, mp.exp, at_high=INF, absolute=2),
    "log": Row(np.log, lambda x: 1 / x, low=0),
    "log2": Row(np.log2, lambda x: 1 / (x * mp.log(2)), low=0),
    "log10": Row(np.log10, lambda x: 1 / (x * mp.log(10)), low=0),
    "log1p": Row(np.log1p, lambda x: 1 / (1 + x), low=-1),
    "sqrt": Row(np.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), low=0),
    "rsqrt": Row(fg.lax.rsqrt, lambda x: -1 / (2 * x * mp.sqrt(x)), low=0),
    "cbrt": Row(np.cbrt, lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2)),
    "sin": Row(np.sin, mp.cos, at_low=NAN, at_high=NAN),
    "cos": Row(np.cos, lambda x: -mp.sin(x), at_low=NAN, at_high=NAN),
    "tan": Row(np.tan, lambda x: mp.sec(x) ** 2, at_low=NAN, at_high=NAN),
    "arcsin": Row(np.arcsin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), -1, 1),
    "arccos": Row(np.arccos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), -1, 1),
    "arctan": Row(np.arctan, lambda x: 1 / (1 + x * x)),
    "sinh": Row(np.sinh, mp.cosh, at_low=INF, at_high=INF),
    "cosh": Row(np.cosh, mp.sinh, at_low=-INF, at_high=INF),
    "tanh": Row(np.tanh, lambda x: mp.sech(x) ** 2, absolute=2),
    "arcsinh": Row(np.arcsinh, lambda x: 1 / mp.hypot(x, 1)),
    "arccosh": Row(np.arccosh, lambda x: 1 / (mp.sqrt(x - 1) * mp.sqrt(x + 1)), low=1),
    "arctanh": Row(np.arctanh, lambda x: 1 / ((1 - x) * (1 + x)), -1, 1),
    "square": Row(np.square, lambda x: 2 * x, at_low=-INF, at_high=INF),
    "cube": Row(lambda x: x**3, lambda x: 3 * x * x, at_low=INF, at_high=INF),
    "seventh power": Row(lambda x: x**7, lambda x: 7 * x**6, at_low=INF, at_high=INF),
    "reciprocal": Row(np.reciprocal, lambda x: -1 / (x * x)),
    "inverse square": Row(lambda x: x**-2, lambda x: -2 / x**3),
    "quotient": Row(lambda x: 1 / x, lambda x: -1 / (x * x)),
    "absolute": Row(np.absolute, mp.sign, at_low=-1, at_high=1),
    # Beyond, the rounding of pi * x decides, as in NumPy.
    "sinc": Row(np.sinc, sinc_slope, -80, 80),
    "expit": Row(special.expit, logistic_slope, absolute=2),
    "logit": Row(special.logit, lambda x: 1 / (x * (1 - x)), 0, 1),
    "log_expit": Row(special.log_expit, lambda x: 1 / (1 + mp.exp(x)), at_low=1),
    "erf": Row(special.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    "erfc": Row(special.erfc, lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    "ndtr": Row(special.ndtr, normal),
    "log_ndtr": Row(special.log_ndtr, log_ndtr_slope, at_low=INF),
    "gammaln": Row(special.gammaln, mp.digamma, low=0, at_high=INF),
    "digamma": Row(special.digamma, lambda x: mp.psi(1, x), low=0),
    "entr": Row(special.entr, lambda x: -mp.log(x) - 1, low=0, at_high=-INF),
    "softplus": Row(fg.nn.softplus, lambda x: 1 / (1 + mp.exp(-x)), at_high=1),
    "sigmoid": Row(fg.nn.sigmoid, logistic_slope, absolute=2),
    "log_sigmoid": Row(fg.nn.log_sigmoid, lambda x: 1 / (1 + mp.exp(x)), at_low=1),
}
"""Functions and their derivatives, of `ROWS`."""


def extremes(dtype: Any) -> np.ndarray:
    """Of every kind, of both signs."""
    info: Any = np.finfo(dtype)
    big = [1e300, 1e200, 1e155, 1e154] if dtype == np.float64 else [1e38, 1e30, 1e20, 1e19]
    sizes = [
        0.0, info.smallest_subnormal, info.tiny, 2 * info.tiny, info.max, info.max / 4, info.eps,
        *(1 / x for x in big), *big, 1.0, 1 - info.eps, 1 + info.eps, 0.5, 3.0, 20.0, 80.0, 1e5,
        1e10, INF,
    ]  # fmt: skip
    return np.array([*sizes, *(-x for x in sizes), NAN], dtype)


def exact(row: Row, x: float) -> float | None:
    """The derivative at an argument; ``None`` where there is none."""
    if math.isnan(x):
        return NAN
    if math.isinf(x):
        limit = row.at_high if x > 0 else row.at_low
        return None if math.isnan(limit) or not row.low <= x <= row.high else limit
    if not row.low < x < row.high:  # ends of domains are conventions: docs/derivatives.md
        return None
    if abs(x) > 1e4 and row.slope in (mp.exp, mp.cosh, mp.sinh):  # too large for mpmath as well
        x = math.copysign(1e4, x)
    try:
        with mp.workprec(2600):  # for sines of huge arguments
            return as_float(row.slope(mp.mpf(x)))
    except ZeroDivisionError:
        return None


def as_float(x: Any) -> float:
    """Rounded; infinite beyond the largest number."""
    if mp.isinf(x) or mp.isnan(x):
        return float(x)
    return float(mp.sign(x)) * (INF if mp.mag(x) > 1100 else float(abs(x)))


def check(found: Any, expected: np.ndarray, absolute: float, what: str) -> None:
    """Compare with exact derivatives, rounded to the dtype of what was found."""
    info: Any = np.finfo(found.dtype)
    rtol = 1e-13 if found.dtype == np.float64 else 2e-6
    with np.errstate(all="ignore"):
        rounded = expected.astype(found.dtype).astype(float)
        found = found.astype(float)
        is_right = np.isnan(rounded) & np.isnan(found) | (found == rounded)
        # Not more precise than subnormal numbers are.
        bound = rtol * np.abs(rounded) + 2 * float(info.tiny) + absolute * float(info.eps)
        is_right |= np.abs(found - rounded) <= bound
        # A last digit decides whether the largest number overflows.
        is_right |= np.isinf(found) & (np.abs(rounded) * (1 + rtol) >= float(info.max))
    assert is_right.all(), f"{what}: {found[~is_right][:5]} instead of {rounded[~is_right][:5]}"


def forward(function: Any) -> Any:
    return lambda x: fg.jvp(function, (x,), (np.ones_like(x),))[1]


def reverse(function: Any) -> Any:
    return fg.grad(lambda x: np.sum(function(x)))


@pytest.fixture(autouse=True)
def _keep_subnormals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_KEEP_SUBNORMALS", "1")


DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
WAYS = [
    pytest.param(lambda f: f, id="eager"),
    pytest.param(fg.jit, id="compiled", marks=pytest.mark.nightly),
]
SAMPLE = ("log2", "arcsinh", "log_ndtr", "tanh")
"""Compiled in every run."""


def check_row(row: Row, dtype: Any, wrap: Any) -> None:
    xs = extremes(dtype)
    exact_slopes = [exact(row, x) for x in xs.tolist()]
    known = np.array([slope is not None for slope in exact_slopes])
    x = xs[known]
    expected = np.array([slope for slope in exact_slopes if slope is not None])
    for name, derivative in (("forward", forward), ("reverse", reverse)):
        with np.errstate(all="ignore"):
            found = wrap(derivative(row.function))(x)
        assert found.dtype == dtype
        for k in range(x.size):
            check(found[k : k + 1], expected[k : k + 1], row.absolute, f"{name} at {x[k]}")


@pytest.mark.sampled(8)
@DTYPES
@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_of_one_argument(name: str, wrap: Any, dtype: Any) -> None:
    check_row(ROWS[name], dtype, wrap)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_compiled(name: str) -> None:
    check_row(ROWS[name], np.float64, fg.jit)


def test_every_elementary_function_has_a_row() -> None:
    rows = {row.primitive.name for row in ELEMENTARY}
    named = {"logistic": "expit", "abs": "absolute"}
    missing = {named.get(name, name) for name in rows} - set(ROWS)
    assert not missing, f"write the derivatives of {missing} with mpmath, as rows of ROWS here"


# Two arguments.

Slopes = tuple[Any, Any]


def power(x: Any, y: Any) -> Any:
    """Of a positive number; far beyond the range of double precision not to the digit."""
    return mp.exp(max(min(y * mp.log(x), mp.mpf(10**5)), mp.mpf(-(10**5))))


def of_power(x: Any, y: Any) -> Slopes:
    return y * power(x, y - 1), power(x, y) * mp.log(x)


def of_logaddexp(x: Any, y: Any) -> Slopes:
    return 1 / (1 + power(mp.e, y - x)), 1 / (1 + power(mp.e, x - y))


def of_logaddexp2(x: Any, y: Any) -> Slopes:
    return 1 / (1 + power(2, y - x)), 1 / (1 + power(2, x - y))


def of_arctan2(y: Any, x: Any) -> Slopes:
    square = x * x + y * y
    return x / square, -y / square


def of_choice(better: bool) -> Callable[[Any, Any], Slopes]:
    def slopes(x: Any, y: Any) -> Slopes:
        first = mp.mpf("0.5") if x == y else mp.mpf((x > y) == better)
        return first, 1 - first

    return slopes


PAIRS: dict[str, tuple[Any, Callable[[Any, Any], Slopes], bool]] = {
    "add": (np.add, lambda x, y: (mp.mpf(1), mp.mpf(1)), False),
    "subtract": (np.subtract, lambda x, y: (mp.mpf(1), mp.mpf(-1)), False),
    "multiply": (np.multiply, lambda x, y: (y, x), False),
    "divide": (np.divide, lambda x, y: (1 / y, -x / (y * y)), False),
    "power": (np.power, of_power, True),
    "arctan2": (np.arctan2, of_arctan2, False),
    "hypot": (np.hypot, lambda x, y: (x / mp.hypot(x, y), y / mp.hypot(x, y)), False),
    "logaddexp": (np.logaddexp, of_logaddexp, False),
    "logaddexp2": (np.logaddexp2, of_logaddexp2, False),
    "maximum": (np.maximum, of_choice(True), False),
    "minimum": (np.minimum, of_choice(False), False),
    "xlogy": (special.xlogy, lambda x, y: (mp.log(y), x / y), True),
    "xlog1py": (special.xlog1py, lambda x, y: (mp.log1p(y), x / (1 + y)), True),
}
"""Function, its two derivatives, and whether it is for positive arguments only."""
PAIR_SAMPLE = ("power", "hypot")


def exact_pair(slopes: Callable[[Any, Any], Slopes], x: float, y: float) -> list[float | None]:
    """Both derivatives; where one argument is infinite, what they tend to, if to anything."""
    if math.isnan(x) or math.isnan(y) or (math.isinf(x) and math.isinf(y)):
        return [None, None]
    found = []
    for far in ("1e5000", "1e7000"):
        at = [mp.sign(v) * mp.mpf(far) if math.isinf(v) else mp.mpf(v) for v in (x, y)]
        try:
            with mp.workprec(400):
                found.append([as_float(s) for s in slopes(*at)])
        except ZeroDivisionError:
            return [None, None]
        except (TypeError, ValueError):  # complex
            return [None, None]
    return [a if a == b else None for a, b in zip(*found, strict=True)]


def check_pair(name: str, dtype: Any, wrap: Any) -> None:
    function, slopes, is_positive = PAIRS[name]
    info: Any = np.finfo(dtype)
    big = 1e300 if dtype == np.float64 else 1e37
    sizes = [0.0, info.tiny, 1 / big, 0.5, 1.0, 3.0, 700.0, big, info.max, INF]
    values = np.array(sizes[1:] if is_positive else [*sizes, *(-s for s in sizes)], dtype)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    exact_slopes = [
        exact_pair(slopes, *point) for point in zip(x.tolist(), y.tolist(), strict=True)
    ]
    with np.errstate(all="ignore"):
        value = function(x, y)
        # Where a value overflows, so does what is made of it.
        is_known = ~np.isnan(value) & (np.isfinite(value) | np.isinf(x) | np.isinf(y))
        found = wrap(fg.grad(lambda x, y: np.sum(function(x, y)), (0, 1)))(x, y)
    for k in range(x.size):
        for slope, ours, what in zip(exact_slopes[k], found, ("first", "second"), strict=True):
            if is_known[k] and slope is not None:
                check(ours[k : k + 1], np.array([slope]), 2.0, f"{what} at {x[k]}, {y[k]}")


@pytest.mark.sampled(6)
@DTYPES
@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_of_two_arguments(name: str, wrap: Any, dtype: Any) -> None:
    check_pair(name, dtype, wrap)


@pytest.mark.parametrize("name", PAIR_SAMPLE)
def test_a_sample_of_pairs_compiled(name: str) -> None:
    check_pair(name, np.float64, fg.jit)


def test_overflow_of_what_is_only_looked_at_is_nobodys_error() -> None:
    scales = np.array([1e200, 1e-200, 2.0])
    with np.errstate(all="raise"):
        found = fg.grad(lambda x: np.sum(np.sin(x) * scales))(np.ones(3))
    np.testing.assert_allclose(found, scales * math.cos(1.0), rtol=1e-15)
