"""Elementary functions of compiled code: errors in units in the last place, and special values.

References are mpmath's, and NumPy's at the edges.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.native.vecmath import FORMULAS

DTYPES = [np.float32, np.float64]
N = 400


@pytest.fixture(autouse=True)
def _keep_subnormals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCGRAD_KEEP_SUBNORMALS", "1")


class Points:
    """Arguments: random ones of several kinds, and such as are hard."""

    def __init__(self, dtype: Any, seed: str) -> None:
        self.info: Any = np.finfo(dtype)
        self.random = np.random.default_rng(zlib.crc32(seed.encode()))

    def between(self, low: float, high: float, n: int = N) -> np.ndarray:
        return self.random.uniform(low, high, n)

    def wide(self, low: int | None = None, high: int | None = None, n: int = N) -> np.ndarray:
        """Numbers of every magnitude, of both signs."""
        low = self.info.minexp - self.info.nmant if low is None else low
        high = self.info.maxexp if high is None else high
        return self.random.choice([-1.0, 1.0], n) * 2.0 ** self.random.uniform(low, high, n)

    def around(self, *centers: float) -> np.ndarray:
        """Numbers at all small distances from some."""
        distances = self.wide(-self.info.nmant, -2, N // 4)
        return np.concatenate([c * (1 + distances) for c in centers])

    def below_one(self) -> np.ndarray:
        return np.abs(1 - abs(self.wide(high=-2)))

    def turns(self) -> np.ndarray:
        """Numbers near multiples of pi / 2, small and huge."""
        powers = np.pi / 2 * 2.0 ** np.arange(self.info.maxexp - 1)
        hard = hardest(self.info.dtype)
        if self.info.dtype == np.float64:  # huge ones are libm's, whose errors are larger there
            hard = hard[np.abs(hard) < 2.0**30]
        return np.concatenate([np.arange(1, N) * np.pi / 2, powers, hard])


def hardest(dtype: Any) -> np.ndarray:
    """The numbers of a type that are nearest to a multiple of pi / 2, one of every exponent.

    From the continued fraction of 2**e / (pi / 2), whose convergents give the smallest
    remainders of integers (Muller et al., Handbook of Floating-Point Arithmetic, 11.3.2).
    """
    info: Any = np.finfo(dtype)
    found = []
    with mpmath.workprec(2 * info.maxexp + 200):
        for exponent in range(-info.nmant, info.maxexp - info.nmant, 1 + info.maxexp // 512):
            ratio = mpmath.ldexp(1, exponent) / (mpmath.pi / 2)
            before, last, rest = 0, 1, ratio
            while last < 2 ** (info.nmant + 1):
                if last >= 2**info.nmant:
                    found.append(float(np.ldexp(float(last), exponent)))
                rest = 1 / (rest - mpmath.floor(rest))
                before, last = last, before + int(mpmath.floor(rest)) * last
    return np.array(found)


def exponential_range(p: Points) -> float:
    return 0.6931 * p.info.maxexp


DOMAINS: dict[str, Callable[[Points], list[np.ndarray]]] = {
    "sin": lambda p: [p.between(-10, 10), p.between(-1e4, 1e4), p.wide(), p.turns()],
    "cos": lambda p: [p.between(-10, 10), p.between(-1e4, 1e4), p.wide(), p.turns()],
    "tan": lambda p: [p.between(-10, 10), p.between(-1e4, 1e4), p.wide(), p.turns()],
    "arcsin": lambda p: [p.between(-1, 1), p.wide(high=0), p.around(0.5, -0.5), p.below_one()],
    "arccos": lambda p: [p.between(-1, 1), p.wide(high=0), p.around(0.5, -0.5), p.below_one()],
    "arctan": lambda p: [p.between(-4, 4), p.wide(), p.around(0.66, 1.0, -1.5)],
    "sinh": lambda p: [p.between(-2, 2), p.wide(high=6), exponential_range(p) * p.between(-1, 1)],
    "cosh": lambda p: [p.between(-2, 2), p.wide(high=6), exponential_range(p) * p.between(-1, 1)],
    "tanh": lambda p: [p.between(-2, 2), p.wide(high=6)],
    "exp": lambda p: [p.between(-2, 2), p.wide(high=6), exponential_range(p) * p.between(-1, 1)],
    "exp2": lambda p: [p.between(-2, 2), p.wide(high=6), p.info.maxexp * p.between(-1, 1)],
    "expm1": lambda p: [p.between(-2, 2), p.wide(high=6), exponential_range(p) * p.between(-1, 1)],
    "log": lambda p: [p.between(0, 3), abs(p.wide()), p.around(1.0)],
    "log2": lambda p: [p.between(0, 3), abs(p.wide()), p.around(1.0)],
    "log10": lambda p: [p.between(0, 3), abs(p.wide()), p.around(1.0)],
    "log1p": lambda p: [p.between(-1, 3), abs(p.wide()), p.wide(high=-1)],
    "arcsinh": lambda p: [p.between(-4, 4), p.wide(), p.around(2.0**30)],
    "arccosh": lambda p: [
        p.between(1, 10), abs(p.wide(low=1)), 1 + abs(p.wide(high=-1)), p.around(2.0**30),
    ],
    "arctanh": lambda p: [p.between(-1, 1), p.wide(high=0), p.below_one()],
    "cbrt": lambda p: [p.between(-4, 4), p.wide()],
    "erf": lambda p: [p.between(-6, 6), p.wide(high=2), p.around(1.0)],
    "erfc": lambda p: [p.between(-6, 9), p.between(-26, 26), p.wide(high=2), p.around(0.8)],
    "expit": lambda p: [p.between(-4, 4), p.wide(high=6)],
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "erf": fg.scipy.special.erf,
    "erfc": fg.scipy.special.erfc,
    "expit": fg.nn.sigmoid,
}
EXACT: dict[str, Callable[..., Any]] = {
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "arctan2": mpmath.atan2,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "power": mpmath.power,
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
}
# Units in the last place; 1.5 where nothing is said.
BOUNDS = {"tanh": 2.7, "expit": 2.7, "expm1": 1.8, "power": 2.0, "erfc": 2.0}


def function(name: str) -> Callable[..., Any]:
    return FUNCTIONS.get(name) or getattr(np, name)


def errors(name: str, found: np.ndarray, args: list[np.ndarray]) -> Iterator[float]:
    """Distances from the exact values, in units in the last place of the result's type."""
    exact = EXACT.get(name) or getattr(mpmath, name)
    info: Any = np.finfo(found.dtype)
    largest = mpmath.mpf(float(info.max))
    for value, *point in zip(found.tolist(), *[a.tolist() for a in args], strict=True):
        expected = exact(*[mpmath.mpf(x) for x in point])
        exponent = mpmath.frexp(expected)[1] if expected else -10000
        unit = mpmath.ldexp(1, max(int(exponent) - 1, int(info.minexp)) - info.nmant)
        if abs(expected) > largest + unit / 2:
            yield 0.0 if value == np.sign(float(mpmath.sign(expected))) * np.inf else np.inf
        else:
            yield float(abs(mpmath.mpf(value) - expected) / unit)


def check(name: str, args: list[np.ndarray]) -> None:
    found = fg.jit(function(name))(*args)
    assert found.dtype == args[0].dtype
    with mpmath.workprec(2500 if name in ("sin", "cos", "tan", "cosh", "sinh") else 300):
        error = np.fromiter(errors(name, found, args), float)
    worst = error.argmax()
    place = [a[worst].item() for a in args]
    assert error[worst] <= BOUNDS.get(name, 1.5), f"{error[worst]} ulp at {place}: {found[worst]}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DOMAINS)
def test_errors(name: str, dtype: Any) -> None:
    points = Points(dtype, name)
    with np.errstate(over="ignore"):
        x = np.concatenate(DOMAINS[name](points)).astype(dtype)
    x = x[np.isfinite(x)]
    if name.startswith("log"):
        x = x[(x != 0) & (x > -1)]
    check(name, [x[np.abs(x) < 1] if name == "arctanh" else x])


def pairs(name: str, points: Points) -> list[np.ndarray]:
    if name == "power":
        x = np.concatenate([abs(points.wide()), points.between(0.1, 3), points.around(1.0)])
        x = x.astype(points.info.dtype)
        x = x[(x != 0) & (x != 1) & np.isfinite(x)].astype(float)
        y = points.between(-1.1, 1.1, x.size) * points.info.maxexp / np.log2(x)
        y = np.where(points.between(0, 1, x.size) < 0.3, np.rint(y), y)
        return [np.where(np.rint(y) == y, points.random.choice([-1, 1], x.size), 1) * x, y]
    return [
        np.concatenate([points.between(-3, 3), points.wide(), points.wide(-20, 20), points.wide()])
        for _ in range(2)
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["arctan2", "hypot", "power"])
def test_errors_of_two_arguments(name: str, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        x, y = (a.astype(dtype) for a in pairs(name, Points(dtype, name)))
    some = np.isfinite(x) & np.isfinite(y)
    check(name, [x[some], y[some]])


def test_rare_arguments_among_others() -> None:
    """Arguments that formulas do not cover, at all places of a vector, for several functions."""
    x = np.linspace(-9, 9, 103)
    for place in range(20):
        huge = x.copy()
        huge[place :: 20 + place] *= 1e80
        found = fg.jit(lambda x: np.sin(x) + 2 * np.cos(x) + 4 * np.tan(x))(huge)
        expected = np.sin(huge) + 2 * np.cos(huge) + 4 * np.tan(huge)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("name", DOMAINS)
def test_loops_over_few_numbers(name: str, n: int, dtype: Any) -> None:
    """They may call libm where arrays use formulas; results differ by rounding only."""
    f = function(name)
    x = np.linspace(0.2, 0.9, n).astype(dtype) + (name == "arccosh")

    def step(carry: Any, _: Any) -> tuple[Any, None]:
        return f(x + 0 * carry), None

    found = fg.jit(lambda x: fg.lax.scan(step, x, None, length=3)[0])(x)
    np.testing.assert_array_max_ulp(found, fg.jit(f)(x), maxulp=4)


EDGES = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 1e-310, 5e-324, 1e-40, 1e308, 1e38, 3e9, np.inf]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*DOMAINS, "arctan2", "hypot", "power"])
def test_edges(name: str, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.array([*EDGES, *[-e for e in EDGES], np.nan]).astype(dtype)
        args = [x]
        if name in ("arctan2", "hypot", "power"):
            args = [a.ravel() for a in np.meshgrid(x, x)]
        found, expected = fg.jit(function(name))(*args), function(name)(*args)
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=0)
    np.testing.assert_array_equal(
        np.signbit(found[expected == 0]), np.signbit(expected[expected == 0])
    )


NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "pow": "power",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({name for name, _ in FORMULAS}))
def test_formulas_are_tested(name: str) -> None:
    assert NAMES.get(name, name) in [*DOMAINS, "arctan2", "hypot", "power"]
