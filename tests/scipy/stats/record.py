"""Write `recorded.py`: densities and distribution functions by mpmath, with their conditions.

Run by hand with SciPy (for the points) and mpmath, from the root of the repository:

    python -m tests.scipy.stats.record
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import scipy.stats

from tests.scipy.stats.cases import CONTINUOUS, DISCRETE, PROBABILITIES

mp.mp.dps = 50

HEADER = '''"""Written by `tests.scipy.stats.record` with mpmath.

Rows of a distribution: parameters, number, and then for the logarithm of the density, the
distribution function and its complement the value and the condition: by how much relative changes
of the arguments are magnified (for the logarithm: in absolute changes).
"""

# fmt: off
RECORDED = {
'''

Formula = Callable[..., Any]


def normal_tail(x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) / 2


def upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def beta_lower(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def beta_upper(a: Any, b: Any, x: Any) -> Any:
    below = beta_lower(a, b, x)
    return 1 - below if below < 0.9 else beta_lower(b, a, 1 - x)


def log_gamma_density(x: Any, a: Any) -> Any:
    return (a - 1) * mp.log(x) - x - mp.loggamma(a)


def log_beta(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def t_tail(x: Any, v: Any) -> Any:
    tail = beta_lower(v / 2, mp.mpf(1) / 2, v / (v + x * x)) / 2
    return tail if x > 0 else 1 - tail


def circular(x: Any, k: Any) -> Any:
    return mp.quad(lambda u: mp.exp(k * mp.cos(u)), mp.linspace(-mp.pi, x, 9)) / (
        2 * mp.pi * mp.besseli(0, k)
    )


def f_share(x: Any, n: Any, d: Any) -> Any:
    return n * x / (d + n * x)


def wrapped(x: Any, c: Any) -> Any:
    return mp.atan2((1 + c) * mp.sin(x / 2), (1 - c) * mp.cos(x / 2)) / mp.pi


def between(a: Any, b: Any) -> Any:
    """The probability of normal numbers between ``a`` and ``b``."""
    return normal_tail(a) - normal_tail(b) if b > 0 else normal_tail(-b) - normal_tail(-a)


def truncated(x: Any, y: Any, a: Any, b: Any) -> Any:
    return between(x, y) / between(a, b)


LOG_NORMAL = mp.log(2 * mp.pi) / 2
# Logarithm of the density, distribution function, its complement.
FORMULAS: dict[str, tuple[Formula, Formula, Formula]] = {
    "norm": (lambda x: -x * x / 2 - LOG_NORMAL, lambda x: normal_tail(-x), normal_tail),
    "laplace": (
        lambda x: -abs(x) - mp.log(2),
        lambda x: mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2,
        lambda x: mp.exp(-x) / 2 if x > 0 else 1 - mp.exp(x) / 2,
    ),
    "logistic": (
        lambda x: -x - 2 * mp.log1p(mp.exp(-x)),
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: 1 / (1 + mp.exp(x)),
    ),
    "cauchy": (
        lambda x: -mp.log(mp.pi * (1 + x * x)),
        lambda x: mp.atan2(1, -x) / mp.pi,
        lambda x: mp.atan2(1, x) / mp.pi,
    ),
    "t": (
        lambda x, v: (
            mp.loggamma((v + 1) / 2)
            - mp.loggamma(v / 2)
            - mp.log(v * mp.pi) / 2
            - (v + 1) / 2 * mp.log1p(x * x / v)
        ),
        lambda x, v: t_tail(-x, v),
        t_tail,
    ),
    "gumbel_r": (
        lambda x: -x - mp.exp(-x),
        lambda x: mp.exp(-mp.exp(-x)),
        lambda x: -mp.expm1(-mp.exp(-x)),
    ),
    "gumbel_l": (
        lambda x: x - mp.exp(x),
        lambda x: -mp.expm1(-mp.exp(x)),
        lambda x: mp.exp(-mp.exp(x)),
    ),
    "gennorm": (
        lambda x, b: mp.log(b / 2) - mp.loggamma(1 / b) - abs(x) ** b,
        lambda x, b: upper(1 / b, (-x) ** b) / 2 if x < 0 else 1 - upper(1 / b, x**b) / 2,
        lambda x, b: upper(1 / b, x**b) / 2 if x > 0 else 1 - upper(1 / b, (-x) ** b) / 2,
    ),
    "vonmises": (
        lambda x, k: k * mp.cos(x) - mp.log(2 * mp.pi * mp.besseli(0, k)),
        circular,
        lambda x, k: circular(-x, k),
    ),
    "expon": (lambda x: -x, lambda x: -mp.expm1(-x), lambda x: mp.exp(-x)),
    "gamma": (log_gamma_density, lambda x, a: lower(a, x), lambda x, a: upper(a, x)),
    "erlang": (log_gamma_density, lambda x, a: lower(a, x), lambda x, a: upper(a, x)),
    "chi2": (
        lambda x, v: log_gamma_density(x / 2, v / 2) - mp.log(2),
        lambda x, v: lower(v / 2, x / 2),
        lambda x, v: upper(v / 2, x / 2),
    ),
    "invgamma": (
        lambda x, a: log_gamma_density(1 / x, a) - 2 * mp.log(x),
        lambda x, a: upper(a, 1 / x),
        lambda x, a: lower(a, 1 / x),
    ),
    "f": (
        lambda x, n, d: (
            n / 2 * mp.log(f_share(x, n, d))
            + d / 2 * mp.log1p(-f_share(x, n, d))
            - mp.log(x)
            - log_beta(n / 2, d / 2)
        ),
        lambda x, n, d: beta_lower(n / 2, d / 2, f_share(x, n, d)),
        lambda x, n, d: beta_upper(n / 2, d / 2, f_share(x, n, d)),
    ),
    "lognorm": (
        lambda x, s: -((mp.log(x) / s) ** 2) / 2 - mp.log(s * x) - LOG_NORMAL,
        lambda x, s: normal_tail(-mp.log(x) / s),
        lambda x, s: normal_tail(mp.log(x) / s),
    ),
    "weibull_min": (
        lambda x, c: mp.log(c) + (c - 1) * mp.log(x) - x**c,
        lambda x, c: -mp.expm1(-(x**c)),
        lambda x, c: mp.exp(-(x**c)),
    ),
    "weibull_max": (
        lambda x, c: mp.log(c) + (c - 1) * mp.log(-x) - (-x) ** c,
        lambda x, c: mp.exp(-((-x) ** c)),
        lambda x, c: -mp.expm1(-((-x) ** c)),
    ),
    "pareto": (
        lambda x, b: mp.log(b) - (b + 1) * mp.log(x),
        lambda x, b: -mp.expm1(-b * mp.log(x)),
        lambda x, b: x**-b,
    ),
    "lomax": (
        lambda x, c: mp.log(c) - (c + 1) * mp.log1p(x),
        lambda x, c: -mp.expm1(-c * mp.log1p(x)),
        lambda x, c: (1 + x) ** -c,
    ),
    "rayleigh": (
        lambda x: mp.log(x) - x * x / 2,
        lambda x: -mp.expm1(-x * x / 2),
        lambda x: mp.exp(-x * x / 2),
    ),
    "maxwell": (
        lambda x: mp.log(2 / mp.pi) / 2 + 2 * mp.log(x) - x * x / 2,
        lambda x: lower(mp.mpf(3) / 2, x * x / 2),
        lambda x: upper(mp.mpf(3) / 2, x * x / 2),
    ),
    "halfnorm": (
        lambda x: mp.log(2 / mp.pi) / 2 - x * x / 2,
        lambda x: mp.erf(x / mp.sqrt(2)),
        lambda x: 2 * normal_tail(x),
    ),
    "halfcauchy": (
        lambda x: mp.log(2 / mp.pi) - mp.log1p(x * x),
        lambda x: 2 / mp.pi * mp.atan(x),
        lambda x: 2 / mp.pi * mp.atan2(1, x),
    ),
    "uniform": (lambda x: 0 * x, lambda x: x, lambda x: 1 - x),
    "beta": (
        lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - log_beta(a, b),
        lambda x, a, b: beta_lower(a, b, x),
        lambda x, a, b: beta_upper(a, b, x),
    ),
    "powerlaw": (
        lambda x, a: mp.log(a) + (a - 1) * mp.log(x),
        lambda x, a: x**a,
        lambda x, a: -mp.expm1(a * mp.log(x)),
    ),
    "truncnorm": (
        lambda x, a, b: -x * x / 2 - LOG_NORMAL - mp.log(between(a, b)),
        lambda x, a, b: truncated(a, x, a, b),
        lambda x, a, b: truncated(x, b, a, b),
    ),
    "wrapcauchy": (
        lambda x, c: mp.log((1 - c * c) / (2 * mp.pi * (1 + c * c - 2 * c * mp.cos(x)))),
        wrapped,
        lambda x, c: 1 - wrapped(x, c),
    ),
    "loguniform": (
        lambda x, a, b: -mp.log(x) - mp.log(mp.log(b / a)),
        lambda x, a, b: mp.log(x / a) / mp.log(b / a),
        lambda x, a, b: mp.log(b / x) / mp.log(b / a),
    ),
}


def binomial(n: Any, k: Any) -> Any:
    return mp.gamma(n + 1) / (mp.gamma(k + 1) * mp.gamma(n - k + 1))


MASSES: dict[str, Formula] = {
    "bernoulli": lambda k, p: p if k else 1 - p,
    "binom": lambda k, n, p: binomial(n, k) * p**k * (1 - p) ** (n - k),
    "nbinom": lambda k, n, p: mp.gamma(k + n) / mp.gamma(n) / mp.gamma(k + 1) * p**n * (1 - p) ** k,
    "geom": lambda k, p: p * (1 - p) ** (k - 1),
    "poisson": lambda k, m: mp.exp(k * mp.log(m) - m - mp.loggamma(k + 1)),
    "betabinom": lambda k, n, a, b: binomial(n, k) * mp.beta(k + a, n - k + b) / mp.beta(a, b),
    "hypergeom": lambda k, m, n, d: binomial(n, k) * binomial(m - n, d - k) / binomial(m, d),
    "randint": lambda k, low, high: 1 / (high - low) + 0 * k,
}


def condition(function: Formula, args: list[Any], is_log: bool) -> float:
    """By how much relative changes of the arguments are magnified."""
    value = function(*args)
    total = mp.mpf(0)
    for i, x in enumerate(args):

        def along(v: Any, i: int = i) -> Any:
            return function(*args[:i], v, *args[i + 1 :])

        step = abs(x) * mp.mpf(10) ** -18 if x else mp.mpf(10) ** -18
        slope = (along(x + step) - along(x - step)) / (2 * step)
        total += abs(x * slope)
    return float(total if is_log else total / abs(value))


def points(distribution: Any, parameters: tuple[float, ...]) -> list[float]:
    ends = [
        distribution.ppf(PROBABILITIES, *parameters),
        distribution.isf(PROBABILITIES, *parameters),
    ]
    found = np.unique(np.concatenate(ends))
    low, high = distribution.support(*parameters)
    return [float(x) for x in found if np.isfinite(x) and low < x < high]


def literal(value: Any) -> str:
    return repr(float(value))


def main() -> None:
    lines = [HEADER]
    for name, choices in CONTINUOUS.items():
        lines.append(f"    {name!r}: [\n")
        for parameters in choices:
            for x in points(getattr(scipy.stats, name), parameters):
                args = [mp.mpf(v) for v in (x, *parameters)]
                row = [f"{parameters!r}", literal(x)]
                for i, formula in enumerate(FORMULAS[name]):
                    row += [literal(formula(*args)), f"{condition(formula, args, i == 0):.3g}"]
                lines.append(f"        ({', '.join(row)}),\n")
        lines.append("    ],\n")
    lines.append("}\nMASSES = {\n")
    for name, choices in DISCRETE.items():
        lines.append(f"    {name!r}: [\n")
        for parameters in choices:
            distribution = getattr(scipy.stats, name)
            low, high = distribution.support(*parameters)
            mean, spread = distribution.mean(*parameters), distribution.std(*parameters)
            places = {low, *(round(mean + c * spread) for c in (-6, -2, 0, 1, 4, 9))}
            if high <= mean + 60 * spread + 60:
                places.add(high)
            own = [mp.mpf(v) for v in parameters]
            top = int(min(high, mean + 60 * spread + 60))
            masses = {k: MASSES[name](k, *own) for k in range(int(low), top + 1)}
            for k in sorted(p for p in places if low <= p <= high):
                below = mp.fsum(v for j, v in masses.items() if j <= k)
                above = mp.fsum(v for j, v in masses.items() if j > k)
                values = (mp.log(masses[int(k)]), below, above)
                lines.append(
                    f"        ({parameters!r}, {float(k)!r}, {', '.join(map(literal, values))}),\n"
                )
        lines.append("    ],\n")
    lines.append("}\n")
    Path(__file__).with_name("recorded.py").write_text("".join(lines))


if __name__ == "__main__":
    main()
