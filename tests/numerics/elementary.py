"""Elementary functions: where they are tried, and what their exact values are.

What is in `funcgrad.compiler.native.vecmath` is held to this by `tests/compiler/test_vecmath.py`;
`measure` makes the tables of docs/numerics.md of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np

import funcgrad as fg
from funcgrad.scipy import special

N = 400


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
    "erf": special.erf,
    "erfc": special.erfc,
    "expit": fg.nn.sigmoid,
    "log_expit": special.log_expit,
    "softplus": special.softplus,
    "logit": special.logit,
    "exprel": special.exprel,
    "cosm1": special.cosm1,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "entr": special.entr,
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
    "fmod": lambda x, y: x - y * mpmath.sign(x / y) * mpmath.floor(abs(x / y)),
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
    "log_expit": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "logit": lambda p: mpmath.log(p / (1 - p)),
    "exprel": lambda x: mpmath.expm1(x) / x,
    "cosm1": lambda x: -2 * mpmath.sin(x / 2) ** 2,
    "sinc": mpmath.sincpi,
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "xlogy": lambda x, y: x * mpmath.log(y),
    "xlog1py": lambda x, y: x * mpmath.log1p(y),
    "entr": lambda x: -x * mpmath.log(x),
}
COMPOSED: dict[str, Callable[[Points], list[np.ndarray]]] = {
    "sqrt": lambda p: [p.between(0, 3), abs(p.wide())],
    "log_expit": lambda p: [p.between(-4, 4), p.wide(high=6)],
    "softplus": lambda p: [p.between(-4, 4), p.wide(high=6)],
    "logit": lambda p: [p.between(1e-3, 0.999), p.below_one(), p.around(0.5)],
    "exprel": lambda p: [p.between(-2, 2), p.wide(high=6)],
    "cosm1": lambda p: [p.between(-2, 2), p.wide(high=0)],
    "sinc": lambda p: [p.between(-0.9, 0.9), p.wide(high=-1)],
    "entr": lambda p: [p.between(0.01, 0.8), abs(p.wide(high=-1))],
}
"""Functions that compiled code makes of several others."""

TWO = ("arctan2", "hypot", "power", "fmod")
COMPOSED_OF_TWO = ("logaddexp", "xlogy", "xlog1py")


def function(name: str) -> Callable[..., Any]:
    return FUNCTIONS.get(name) or getattr(np, name)


def precision(name: str) -> int:
    """Bits that the exact value takes."""
    return 2500 if name in ("sin", "cos", "tan", "cosh", "sinh", "fmod") else 300


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


def worst(name: str, found: np.ndarray, args: list[np.ndarray]) -> tuple[float, list[float]]:
    """The largest of the errors, and where it is."""
    with mpmath.workprec(precision(name)):
        error = np.fromiter(errors(name, found, args), float)
    place = error.argmax()
    return float(error[place]), [a[place].item() for a in args]


def sample(name: str, dtype: Any) -> list[np.ndarray]:
    """Arguments over the whole range of a function; the same ones each time."""
    points = Points(dtype, name)
    with np.errstate(over="ignore"):
        if name in (*TWO, *COMPOSED_OF_TWO):
            x, y = (a.astype(dtype) for a in pairs(name, points))
            some = np.isfinite(x) & np.isfinite(y)
            return [x[some], y[some]]
        x = np.concatenate((DOMAINS | COMPOSED)[name](points)).astype(dtype)
    x = x[np.isfinite(x)]
    if name.startswith("log") and name in DOMAINS:
        x = x[(x != 0) & (x > -1)]
    if name == "logit":
        x = x[(x > 0) & (x < 1)]
    return [x[np.abs(x) < 1] if name == "arctanh" else x]


def pairs(name: str, points: Points) -> list[np.ndarray]:
    if name == "power":
        x = np.concatenate([abs(points.wide()), points.between(0.1, 3), points.around(1.0)])
        x = x.astype(points.info.dtype)
        x = x[(x != 0) & (x != 1) & np.isfinite(x)].astype(float)
        y = points.between(-1.1, 1.1, x.size) * points.info.maxexp / np.log2(x)
        y = np.where(points.between(0, 1, x.size) < 0.3, np.rint(y), y)
        return [np.where(np.rint(y) == y, points.random.choice([-1, 1], x.size), 1) * x, y]
    if name == "logaddexp":
        x = np.concatenate([points.between(0, 30), points.between(0, 700), abs(points.wide(0, 6))])
        return [x, x + points.between(0, 20, x.size)]  # positive: nothing cancels
    if name in ("xlogy", "xlog1py"):
        x = np.concatenate([points.between(-3, 3), points.wide(-20, 20)])
        return [x, np.concatenate([points.between(1.5, 3), abs(points.wide(-20, -2))])]
    return [
        np.concatenate([points.between(-3, 3), points.wide(), points.wide(-20, 20), points.wide()])
        for _ in range(2)
    ]
