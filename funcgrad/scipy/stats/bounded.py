"""Distributions of numbers between two ends."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.primitives import special as s
from funcgrad.primitives.special_distributions import ndtri_exp
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import Continuous, Moments, both, either, family
from funcgrad.scipy.stats.positive import central_moments

__all__ = ["beta", "loguniform", "powerlaw", "truncnorm", "uniform", "wrapcauchy"]

_INF = math.inf


uniform = family(
    Continuous,
    "uniform",
    "Uniform distribution between ``loc`` and ``loc + scale``.",
    "logpdf(np.array([0.5, 0.75]), 0.0, 2.0) -> array([-0.69314718, -0.69314718])",
    support_of=lambda: (0.0, 1.0),
    log_density=lambda y: 0 * y,
    below=lambda y: y,
    above=lambda y: 1 - y,
    quantile=lambda q: q,
    entropy_of=lambda: 0.0,
    moments=lambda: (0.5, 1 / 12, 0.0, -1.2),
)


def _beta_ends(a: Any, b: Any) -> tuple[Any, Any]:
    ends = []
    for own, other in ((a, b), (b, a)):
        infinite = f.select(own < 1, f.constant(_INF, own), -_INF)
        ends.append(f.select(own == 1, f.log(other), infinite))
    return ends[0], ends[1]


def _beta_entropy(a: Any, b: Any) -> Any:
    slopes = (a - 1) * f.digamma(a) + (b - 1) * f.digamma(b)
    return f.betaln(a, b) - slopes + (a + b - 2) * f.digamma(a + b)


def _beta_moments(a: Any, b: Any) -> Moments:
    n, product = a + b, a * b
    var = product / (n * n * (n + 1))
    skew = 2 * (b - a) * f.sqrt((n + 1) / product) / (n + 2)
    square = (a - b) * (a - b) * (n + 1) - product * (n + 2)
    return a / n, var, skew, 6 * square / (product * (n + 2) * (n + 3))


beta = family(
    Continuous,
    "beta",
    "Beta distribution: a density proportional to ``x**(a - 1) (1 - x)**(b - 1)``.",
    "logpdf(np.array([0.3, 0.45]), 2.0, 3.0) -> array([0.56758396, 0.49072495])",
    ("a", "b"),
    support_of=lambda a, b: (0.0, 1.0),
    log_density=lambda y, a, b: f.log_beta_kernel(y, 1 - y, a, b) - f.log(y) - f.log1p(-y),
    log_density_at_ends=_beta_ends,
    below=lambda y, a, b: f.betainc(a, b, y),
    above=lambda y, a, b: f.betaincc(a, b, y),
    log_below=lambda y, a, b: f.log_betainc(a, b, y),
    log_above=lambda y, a, b: f.log_betaincc(a, b, y),
    quantile=lambda q, a, b: f.beta_quantile(a, b, q),
    quantile_above=lambda q, a, b: f.beta_quantile_above(a, b, q),
    entropy_of=_beta_entropy,
    moments=_beta_moments,
)


def _powerlaw_ends(a: Any) -> tuple[Any, Any]:
    infinite = f.select(a < 1, f.constant(_INF, a), -_INF)
    return f.select(a == 1, 0.0, infinite), None


def _powerlaw_moments(a: Any) -> Moments:
    skew = -2 * (a - 1) / (a + 3) * f.sqrt((a + 2) / a)
    kurtosis = 6 * (a * a * a - a * a - 6 * a + 2) / (a * (a + 3) * (a + 4))
    return a / (a + 1), a / ((a + 2) * (a + 1) * (a + 1)), skew, kurtosis


powerlaw = family(
    Continuous,
    "powerlaw",
    "Power-law distribution on the interval from 0 to 1: `cdf` is ``x**a``.",
    "logpdf(np.array([0.5, 0.75]), 3.0) -> array([-0.28768207,  0.52324814])",
    ("a",),
    {"a": "Exponent, positive."},
    support_of=lambda a: (0.0, 1.0),
    log_density=lambda y, a: f.log(a) + f.xlogy(a - 1, y),
    log_density_at_ends=_powerlaw_ends,
    below=lambda y, a: f.power(y, a),
    above=lambda y, a: -f.expm1(a * f.log(y)),
    log_below=lambda y, a: a * f.log(y),
    log_above=lambda y, a: f.log1mexp(a * f.log(y)),
    quantile=lambda q, a: f.power(q, 1 / a),
    quantile_above=lambda q, a: f.exp(f.log1p(-q) / a),
    entropy_of=lambda a: 1 - 1 / a - f.log(a),
    moments=_powerlaw_moments,
)


class Truncnorm(Continuous, a="Lower end, before scaling.", b="Upper end, before scaling."):
    """Truncated normal distribution, between ``a`` and ``b``.

    Example: fg.scipy.stats.truncnorm.logpdf(np.array([0.5, 0.75]), -1.0, 1.0)
        -> array([-0.66222339, -0.81847339])
    """

    name = "truncnorm"
    shapes = ("a", "b")

    def is_valid(self, a: Any, b: Any) -> Any:
        return a < b

    def support_of(self, a: Any, b: Any) -> tuple[Any, Any]:
        return a, b

    def log_density(self, y: Any, a: Any, b: Any) -> Any:
        return -0.5 * (y * y) - f.HALF_LOG_2PI - _log_mass(a, b)

    def below(self, y: Any, a: Any, b: Any) -> Any:
        return f.exp(self.log_below(y, a, b))

    def above(self, y: Any, a: Any, b: Any) -> Any:
        return f.exp(self.log_above(y, a, b))

    def log_below(self, y: Any, a: Any, b: Any) -> Any:
        return _log_share(_log_mass(a, y), _log_mass(y, b), _log_mass(a, b))

    def log_above(self, y: Any, a: Any, b: Any) -> Any:
        return _log_share(_log_mass(y, b), _log_mass(a, y), _log_mass(a, b))

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        is_left = a < 0
        low, high = f.select(is_left, a, -a), f.select(is_left, b, -b)
        logs = f.logaddexp(f.log_ndtr(low) + f.log1p(-q), f.log_ndtr(high) + f.log(q))
        out = ndtri_exp.bind(logs)
        out = f.select(is_left, out, -out)
        # Near 0 the probability has lost the digits that a small number has: a step of Newton's.
        missing = q * _difference(a, b) - _difference(a, out)
        step = missing * f.exp(0.5 * (out * out) + f.HALF_LOG_2PI)
        out = f.select(f.absolute(out) < 0.5, out + step, out)
        return f.maximum(a, f.minimum(b, out))

    def quantile_above(self, q: Any, a: Any, b: Any) -> Any:
        return -self.quantile(q, -b, -a)

    def entropy_of(self, a: Any, b: Any) -> Any:
        mass = _log_mass(a, b)
        low, high = _edge(a, mass), _edge(b, mass)
        return f.HALF_LOG_2PI + mass + 0.5 * (1 + _times(a, low) - _times(b, high))

    def moments(self, a: Any, b: Any) -> Moments:
        mass = _log_mass(a, b)
        low, high = _edge(a, mass), _edge(b, mass)
        # Means of powers, by parts: m_k = (k - 1) m_(k-2) + a**(k-1) low - b**(k-1) high.
        terms = [low - high]
        for _ in range(3):
            low, high = _times(a, low), _times(b, high)
            terms.append(low - high)
        m1 = terms[0]
        m2 = 1 + terms[1]
        m3 = 2 * m1 + terms[2]
        m4 = 3 * m2 + terms[3]
        var = m2 - m1 * m1
        third = m3 - 3 * m1 * m2 + 2 * m1 * m1 * m1
        fourth = m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1 * m1 * m1 * m1
        return m1, var, third / (var * f.sqrt(var)), fourth / (var * var) - 3


def _difference(a: Any, b: Any) -> Any:
    """The probability of normal numbers between ``a`` and ``b``, accurate near 0."""
    return 0.5 * (s.erf.bind(b * math.sqrt(0.5)) - s.erf.bind(a * math.sqrt(0.5)))


def _log_mass(a: Any, b: Any) -> Any:
    """Logarithm of the probability of normal numbers between ``a`` and ``b``."""
    is_right = a > 0
    low, high = f.select(is_right, -b, a), f.select(is_right, -a, b)
    log_high = f.log_ndtr(high)
    tail = log_high + f.log1mexp(f.log_ndtr(low) - log_high)
    inside = _difference(low, high)
    middle = f.select(inside < 0.5, f.log(inside), f.log1p(-f.ndtr(low) - f.ndtr(-high)))
    return f.select(either(high > 0, low > -1), middle, tail)


def _log_share(part: Any, rest: Any, whole: Any) -> Any:
    """Logarithm of a part, by the other part where that is the smaller one."""
    share, other = part - whole, rest - whole
    return f.select(share < -f.LOG_2, share, f.log1p(-f.exp(other)))


def _edge(x: Any, mass: Any) -> Any:
    """The normal density at an end, relative to the mass."""
    return f.exp(-0.5 * x * x - f.HALF_LOG_2PI - mass)


def _times(x: Any, density: Any) -> Any:
    """A product with the density at an end, which is 0 at infinity."""
    return f.select(density == 0, 0.0, x * density)


class Wrapcauchy(Continuous, c="Mean resultant length, between 0 and 1."):
    """Wrapped Cauchy distribution on the circle, of angles from 0 to ``2 pi``.

    Example: fg.scipy.stats.wrapcauchy.logpdf(np.array([0.5, 0.75]), 0.3)
        -> array([-1.35851189, -1.50292165])
    """

    name = "wrapcauchy"
    shapes = ("c",)

    def is_valid(self, c: Any) -> Any:
        return both(c > 0, c < 1)

    def support_of(self, c: Any) -> tuple[Any, Any]:
        return 0.0, 2 * math.pi

    def log_density(self, y: Any, c: Any) -> Any:
        half, rest = f.sin(0.5 * y), 1 - c
        distance = rest * rest + 4 * c * (half * half)
        return f.log(rest * (1 + c) / distance) - 2 * f.HALF_LOG_2PI

    def below(self, y: Any, c: Any) -> Any:
        half = 0.5 * y
        return f.arctan2((1 + c) * f.sin(half), (1 - c) * f.cos(half)) * (1 / math.pi)

    def above(self, y: Any, c: Any) -> Any:
        half = 0.5 * y
        return f.arctan2((1 + c) * f.sin(half), (c - 1) * f.cos(half)) * (1 / math.pi)

    def quantile(self, q: Any, c: Any) -> Any:
        angle = math.pi * q
        return 2 * f.arctan2((1 - c) * f.sin(angle), (1 + c) * f.cos(angle))

    def quantile_above(self, q: Any, c: Any) -> Any:
        angle = math.pi * q
        return 2 * f.arctan2((1 - c) * f.sin(angle), -(1 + c) * f.cos(angle))

    def entropy_of(self, c: Any) -> Any:
        return 2 * f.HALF_LOG_2PI + f.log1p(-c * c)

    def moments(self, c: Any) -> Moments:
        # The density is (1 + 2 sum(c**k cos(k x))) / (2 pi): a dilogarithm.
        var = math.pi**2 / 3 + 4 * s.spence.bind(1 - c)
        return math.pi + 0 * c, var, 0 * c, None


def _loguniform_moments(a: Any, b: Any) -> Moments:
    span = f.log(b / a)
    powers = [f.power(a, f.constant(n, a)) * f.expm1(n * span) / (n * span) for n in range(1, 5)]
    return central_moments(*powers)


loguniform = family(
    Continuous,
    "loguniform",
    "Log-uniform distribution between ``a`` and ``b``: the logarithm is uniform.",
    "logpdf(np.array([2.0, 3.0]), 1.0, 10.0) -> array([-1.52717963, -1.93264473])",
    ("a", "b"),
    {"a": "Lower end, positive.", "b": "Upper end, greater than ``a``."},
    is_valid=lambda a, b: both(a > 0, a < b),
    support_of=lambda a, b: (a, b),
    log_density=lambda y, a, b: -f.log(y) - f.log(f.log(b / a)),
    below=lambda y, a, b: f.log(y / a) / f.log(b / a),
    above=lambda y, a, b: f.log(b / y) / f.log(b / a),
    quantile=lambda q, a, b: a * f.exp(q * f.log(b / a)),
    quantile_above=lambda q, a, b: b * f.exp(-q * f.log(b / a)),
    entropy_of=lambda a, b: 0.5 * (f.log(a) + f.log(b)) + f.log(f.log(b / a)),
    moments=_loguniform_moments,
)

truncnorm, wrapcauchy = Truncnorm(), Wrapcauchy()
