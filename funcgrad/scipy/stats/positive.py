"""Distributions of positive numbers."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.primitives import special as s
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import Continuous, Moments, family, mapped, reflected
from funcgrad.scipy.stats.formulas import where_defined
from funcgrad.scipy.stats.symmetric import norm

_INF = math.inf
_LOG_2_OVER_PI = math.log(2 / math.pi)
_QUARTER = math.pi / 2


class Positive(Continuous):
    """Support: from 0 on."""

    def support_of(self, *parameters: Any) -> tuple[Any, Any]:
        return 0.0, _INF


def _power_at_zero(exponent: Any, otherwise: Any) -> Any:
    """Logarithm at 0 of a density of ``otherwise`` times a power: it is 0, finite or infinite."""
    infinite = f.select(exponent < 0, f.constant(_INF, exponent), -_INF)
    return f.select(exponent == 0, otherwise, infinite)


def central_moments(m1: Any, m2: Any, m3: Any, m4: Any) -> Moments:
    """Mean, variance, skewness and excess kurtosis of the means of powers."""
    var = m2 - m1 * m1
    third = m3 - 3 * m1 * var - m1 * m1 * m1
    fourth = m4 - 4 * m1 * third - 6 * m1 * m1 * var - m1 * m1 * m1 * m1
    return m1, var, third / (var * f.sqrt(var)), fourth / (var * var) - 3


expon = family(
    Positive,
    "expon",
    "Exponential distribution: the density is ``exp(-x)``.",
    "logpdf(np.array([2.0, 3.0])) -> array([-2., -3.])",
    log_density=lambda y: -y,
    below=lambda y: -f.expm1(-y),
    above=lambda y: f.exp(-y),
    log_below=lambda y: f.log1mexp(-y),
    log_above=lambda y: -y,
    quantile=lambda q: -f.log1p(-q),
    quantile_above=lambda q: -f.log(q),
    entropy_of=lambda: 1.0,
    moments=lambda: (1.0, 1.0, 2.0, 6.0),
)


def _gamma_entropy(a: Any) -> Any:
    # a + lgamma(a) + (1 - a) digamma(a), of which the terms in log(a) cancel for large a.
    stirling = f.binet.bind(a) + f.HALF_LOG_2PI + 0.5 * f.log(a)
    return stirling + (1 - a) * f.digamma_minus_log(a)


gamma = family(
    Positive,
    "gamma",
    "Gamma distribution: a density proportional to ``x**(a - 1) exp(-x)``.",
    "logpdf(np.array([2.0, 3.0]), 3.0) -> array([-1.30685282, -1.4959226 ])",
    ("a",),
    log_density=lambda y, a: f.log_gamma_kernel(y, a) - f.log(y),
    log_density_at_ends=lambda a: (_power_at_zero(a - 1, 0.0), None),
    below=lambda y, a: f.gammainc(a, y),
    above=lambda y, a: f.gammaincc(a, y),
    log_below=lambda y, a: f.log_gammainc(a, y),
    log_above=lambda y, a: f.log_gammaincc(a, y),
    quantile=lambda q, a: s.gammaincinv.bind(a, q),
    quantile_above=lambda q, a: s.gammainccinv.bind(a, q),
    entropy_of=_gamma_entropy,
    moments=lambda a: (a, a, 2 / f.sqrt(a), 6 / a),
)

erlang = family(
    type(gamma),
    "erlang",
    "Erlang distribution: `gamma` with an integer parameter, a number of events.",
    "logpdf(np.array([2.0, 3.0]), 3) -> array([-1.30685282, -1.4959226 ])",
)

chi2 = family(
    Positive,
    "chi2",
    "Chi-square distribution: the sum of squares of ``df`` standard normal variables.",
    "logpdf(np.array([2.0, 3.0]), 3.0) -> array([-1.57236494, -1.86963239])",
    ("df",),
    **mapped(gamma, lambda y, df: 0.5 * y, lambda z, df: 2 * z, lambda like, df: (0.5 * df,)),
    log_density=lambda y, df: gamma.log_density(0.5 * y, 0.5 * df) - f.LOG_2,
    log_density_at_ends=lambda df: (_power_at_zero(df - 2, -f.LOG_2), None),
    entropy_of=lambda df: gamma.entropy_of(0.5 * df) + f.LOG_2,
    moments=lambda df: (df, 2 * df, f.sqrt(8 / df), 12 / df),
)


def _invgamma_entropy(a: Any) -> Any:
    stirling = f.binet.bind(a) + f.HALF_LOG_2PI - 1.5 * f.log(a)
    return stirling - (1 + a) * f.digamma_minus_log(a)


def _invgamma_moments(a: Any) -> Moments:
    mean = where_defined(a > 1, 1 / (a - 1), _INF)
    var = where_defined(a > 2, 1 / ((a - 1) * (a - 1) * (a - 2)), _INF)
    skew = where_defined(a > 3, 4 * f.sqrt(a - 2) / (a - 3))
    kurtosis = where_defined(a > 4, 6 * (5 * a - 11) / ((a - 3) * (a - 4)))
    return mean, var, skew, kurtosis


invgamma = family(
    Positive,
    "invgamma",
    "Inverse gamma distribution: the reciprocal of a gamma variable.",
    "logpdf(np.array([2.0, 3.0]), 3.0) -> array([-3.9657359 , -5.42092967])",
    ("a",),
    **mapped(gamma, lambda y, a: 1 / y, lambda z, a: 1 / z, lambda like, a: (a,), True),
    log_density=lambda y, a: f.log_gamma_kernel(1 / y, a) - f.log(y),
    log_density_at_ends=lambda a: (-_INF, None),
    entropy_of=_invgamma_entropy,
    moments=_invgamma_moments,
)


class F(Positive):
    """F distribution: the ratio of mean squares of ``dfn`` and ``dfd`` standard normal variables.

    Example: fg.scipy.stats.f.logpdf(np.array([1.0, 1.5]), 3.0, 5.0)
        -> array([-1.01839412, -1.50306259])
    """

    name = "f"
    shapes = ("dfn", "dfd")

    def _shares(self, y: Any, n: Any, d: Any) -> tuple[Any, Any]:
        """The shares of the two sums of squares in their total, neither of which overflows."""
        ratio, inverse = y * (n / d), (d / n) / y
        is_near = y < 1
        share = f.select(is_near, ratio / (1 + ratio), 1 / (1 + inverse))
        rest = f.select(is_near, 1 / (1 + ratio), inverse / (1 + inverse))
        return share, rest

    def log_density(self, y: Any, n: Any, d: Any) -> Any:
        return f.log_beta_kernel(*self._shares(y, n, d), 0.5 * n, 0.5 * d) - f.log(y)

    def log_density_at_ends(self, n: Any, d: Any) -> tuple[Any, Any]:
        return _power_at_zero(n - 2, 0 * d), None

    def below(self, y: Any, n: Any, d: Any) -> Any:
        share, rest = self._shares(y, n, d)
        near, far = f.betainc(0.5 * n, 0.5 * d, share), f.betaincc(0.5 * d, 0.5 * n, rest)
        return f.select(share < rest, near, far)

    def above(self, y: Any, n: Any, d: Any) -> Any:
        share, rest = self._shares(y, n, d)
        near, far = f.betaincc(0.5 * n, 0.5 * d, share), f.betainc(0.5 * d, 0.5 * n, rest)
        return f.select(share < rest, near, far)

    def log_below(self, y: Any, n: Any, d: Any) -> Any:
        share, rest = self._shares(y, n, d)
        near, far = f.log_betainc(0.5 * n, 0.5 * d, share), f.log_betaincc(0.5 * d, 0.5 * n, rest)
        return f.select(share < rest, near, far)

    def log_above(self, y: Any, n: Any, d: Any) -> Any:
        share, rest = self._shares(y, n, d)
        near, far = f.log_betaincc(0.5 * n, 0.5 * d, share), f.log_betainc(0.5 * d, 0.5 * n, rest)
        return f.select(share < rest, near, far)

    def quantile(self, q: Any, n: Any, d: Any) -> Any:
        share = f.beta_quantile(0.5 * n, 0.5 * d, q)
        rest = f.beta_quantile_above(0.5 * d, 0.5 * n, q)
        logs = f.log_beta_quantile(0.5 * n, 0.5 * d, q)
        tail = f.exp(f.log(d / n) + logs)
        return f.select(logs < f.TINY_LOG, tail, d * share / (n * rest))

    def quantile_above(self, q: Any, n: Any, d: Any) -> Any:
        share = f.beta_quantile_above(0.5 * n, 0.5 * d, q)
        rest = f.beta_quantile(0.5 * d, 0.5 * n, q)
        logs = f.log_beta_quantile(0.5 * d, 0.5 * n, q)
        tail = f.exp(f.log(d / n) - logs)
        return f.select(logs < f.TINY_LOG, tail, d * share / (n * rest))

    def entropy_of(self, n: Any, d: Any) -> Any:
        half_n, half_d = 0.5 * n, 0.5 * d
        total = half_n + half_d
        slopes = (1 - half_n) * f.digamma(half_n) - (1 + half_d) * f.digamma(half_d)
        return f.log(d / n) + f.betaln(half_n, half_d) + slopes + total * f.digamma(total)

    def moments(self, n: Any, d: Any) -> Moments:
        mean = where_defined(d > 2, d / (d - 2), _INF)
        var = 2 * d * d * (n + d - 2) / (n * (d - 2) * (d - 2) * (d - 4))
        skew = (2 * n + d - 2) / (d - 6) * f.sqrt(8 * (d - 4) / (n * (n + d - 2)))
        square = (n + d - 2) * n * (5 * d - 22) + (d - 4) * (d - 2) * (d - 2)
        kurtosis = 12 * square / (n * (d - 6) * (d - 8) * (n + d - 2))
        return (
            mean,
            where_defined(d > 4, var, _INF),
            where_defined(d > 6, skew),
            where_defined(d > 8, kurtosis),
        )


f_distribution = F()


def _lognorm_density(y: Any, sigma: Any) -> Any:
    logarithm = f.log(y)
    z = logarithm / sigma
    return -0.5 * z * z - f.log(sigma) - logarithm - f.HALF_LOG_2PI


def _lognorm_moments(sigma: Any) -> Moments:
    square = sigma * sigma
    growth, excess = f.exp(square), f.expm1(square)
    third = f.expm1(4 * square) + 2 * f.expm1(3 * square) + 3 * f.expm1(2 * square)
    return f.exp(0.5 * square), growth * excess, f.sqrt(excess) * (growth + 2), third


lognorm = family(
    Positive,
    "lognorm",
    "Log-normal distribution: the logarithm is normal, with standard deviation ``s``.",
    "logpdf(np.array([2.0, 3.0]), 0.5) -> array([-1.87984456, -3.73830156])",
    ("s",),
    **mapped(norm, lambda y, sigma: f.log(y) / sigma, lambda z, sigma: f.exp(sigma * z)),
    log_density=_lognorm_density,
    log_density_at_ends=lambda sigma: (-_INF, None),
    entropy_of=lambda sigma: f.HALF_LOG_2PI + 0.5 + f.log(sigma),
    moments=_lognorm_moments,
)

weibull_min = family(
    Positive,
    "weibull_min",
    "Weibull distribution of minima: `sf` is ``exp(-x**c)``.",
    "logpdf(np.array([0.5, 0.75]), 2.0) -> array([-0.25      , -0.15703489])",
    ("c",),
    **mapped(expon, lambda y, c: f.power(y, c), lambda z, c: f.power(z, 1 / c)),
    log_density=lambda y, c: f.log(c) + f.xlogy(c - 1, y) - f.power(y, c),
    log_density_at_ends=lambda c: (_power_at_zero(c - 1, 0.0), None),
    entropy_of=lambda c: f.EULER + 1 - f.EULER / c - f.log(c),
    moments=lambda c: central_moments(*(f.gamma(1 + n / c) for n in (1, 2, 3, 4))),
)

weibull_max = family(
    Continuous,
    "weibull_max",
    "Weibull distribution of maxima, on ``x <= 0``: ``-x`` has the distribution `weibull_min`.",
    "logpdf(np.array([-0.5, -1.0]), 2.0) -> array([-0.25      , -0.30685282])",
    ("c",),
    **reflected(weibull_min),
)


def _pareto_moments(b: Any, mean: Any) -> Moments:
    """The moments of a tail of exponent ``b``, shifted so that the mean is ``mean``."""
    var = b / ((b - 1) * (b - 1) * (b - 2))
    skew = 2 * (b + 1) * f.sqrt(b - 2) / ((b - 3) * f.sqrt(b))
    kurtosis = 6 * (b * b * b + b * b - 6 * b - 2) / (b * (b - 3) * (b - 4))
    return (
        where_defined(b > 1, mean, _INF),
        where_defined(b > 2, var, _INF),
        where_defined(b > 3, skew),
        where_defined(b > 4, kurtosis),
    )


pareto = family(
    Continuous,
    "pareto",
    "Pareto distribution on ``x >= 1``: `sf` is ``x**-b``.",
    "logpdf(np.array([2.0, 3.0]), 3.0) -> array([-1.67397643, -3.29583687])",
    ("b",),
    **mapped(expon, lambda y, b: b * f.log(y), lambda z, b: f.exp(z / b))
    | {"above": lambda y, b: f.power(y, -b), "quantile_above": lambda q, b: f.power(q, -1 / b)},
    support_of=lambda b: (1.0, _INF),
    log_density=lambda y, b: f.log(b) - (b + 1) * f.log(y),
    entropy_of=lambda b: 1 + 1 / b - f.log(b),
    moments=lambda b: _pareto_moments(b, b / (b - 1)),
)

lomax = family(
    Positive,
    "lomax",
    "Lomax distribution, a Pareto distribution that begins at 0: `sf` is ``(1 + x)**-c``.",
    "logpdf(np.array([2.0, 3.0]), 3.0) -> array([-3.29583687, -4.44656516])",
    ("c",),
    **mapped(expon, lambda y, c: c * f.log1p(y), lambda z, c: f.expm1(z / c)),
    log_density=lambda y, c: f.log(c) - (c + 1) * f.log1p(y),
    entropy_of=lambda c: 1 + 1 / c - f.log(c),
    moments=lambda c: _pareto_moments(c, 1 / (c - 1)),
)


def _rayleigh_moments() -> Moments:
    rest, pi = 4 - math.pi, math.pi
    skew = 2 * (pi - 3) * math.sqrt(pi) / rest**1.5
    return math.sqrt(pi / 2), rest / 2, skew, 6 * pi / rest - 16 / rest**2


rayleigh = family(
    Positive,
    "rayleigh",
    "Rayleigh distribution: `sf` is ``exp(-x**2 / 2)``; the length of two normal variables.",
    "logpdf(np.array([0.5, 0.75])) -> array([-0.81814718, -0.56893207])",
    **mapped(expon, lambda y: 0.5 * (y * y), lambda z: f.sqrt(2 * z)),
    log_density=lambda y: f.log(y) - 0.5 * (y * y),
    log_density_at_ends=lambda: (-_INF, None),
    entropy_of=lambda: 0.5 * f.EULER + 1 - 0.5 * f.LOG_2,
    moments=_rayleigh_moments,
)


def _maxwell_moments() -> Moments:
    pi = math.pi
    rest = 3 * pi - 8
    skew = math.sqrt(2) * (32 - 10 * pi) / rest**1.5
    kurtosis = (-12 * pi * pi + 160 * pi - 384) / rest**2
    return 2 * math.sqrt(2 / pi), 3 - 8 / pi, skew, kurtosis


maxwell = family(
    Positive,
    "maxwell",
    "Maxwell distribution: the length of a vector of three standard normal variables.",
    "logpdf(np.array([0.5, 0.75])) -> array([-1.73708571, -1.0824055 ])",
    **mapped(
        gamma,
        lambda y: 0.5 * (y * y),
        lambda z: f.sqrt(2 * z),
        lambda like: (f.constant(1.5, like),),
    ),
    log_density=lambda y: 0.5 * _LOG_2_OVER_PI + 2 * f.log(y) - 0.5 * (y * y),
    log_density_at_ends=lambda: (-_INF, None),
    entropy_of=lambda: f.EULER + f.HALF_LOG_2PI - 0.5,
    moments=_maxwell_moments,
)


def _halfnorm_log_above(y: Any) -> Any:
    near = f.log1p(-s.erf.bind(y * math.sqrt(0.5)))
    return f.select(y < 0.5, near, f.LOG_2 + f.log_ndtr(-y))


def _halfnorm_moments() -> Moments:
    pi = math.pi
    skew = math.sqrt(2) * (4 - pi) / (pi - 2) ** 1.5
    return math.sqrt(2 / pi), 1 - 2 / pi, skew, 8 * (pi - 3) / (pi - 2) ** 2


halfnorm = family(
    Positive,
    "halfnorm",
    "Half-normal distribution: the absolute value of a standard normal variable.",
    "logpdf(np.array([0.5, 0.75])) -> array([-0.35079135, -0.50704135])",
    log_density=lambda y: 0.5 * _LOG_2_OVER_PI - 0.5 * (y * y),
    below=lambda y: s.erf.bind(y * math.sqrt(0.5)),
    above=lambda y: 2 * f.ndtr(-y),
    log_above=_halfnorm_log_above,
    quantile=lambda q: math.sqrt(2) * s.erfinv.bind(q),
    quantile_above=lambda q: math.sqrt(2) * s.erfcinv.bind(q),
    entropy_of=lambda: 0.5 * math.log(math.pi / 2) + 0.5,
    moments=_halfnorm_moments,
)


halfcauchy = family(
    Positive,
    "halfcauchy",
    "Half-Cauchy distribution: the absolute value of a Cauchy variable.",
    "logpdf(np.array([0.5, 0.75])) -> array([-0.67472626, -0.89786981])",
    log_density=lambda y: _LOG_2_OVER_PI - f.log1p_square(y),
    below=lambda y: f.arctan2(y, f.constant(1, y)) * (2 / math.pi),
    above=lambda y: f.arctan2(f.constant(1, y), y) * (2 / math.pi),
    quantile=lambda q: f.select(q < 0.5, f.tan(_QUARTER * q), 1 / f.tan(_QUARTER * (1 - q))),
    quantile_above=lambda q: f.select(q < 0.5, 1 / f.tan(_QUARTER * q), f.tan(_QUARTER * (1 - q))),
    entropy_of=lambda: math.log(2 * math.pi),
    moments=lambda: (_INF, _INF, math.nan, math.nan),
)
