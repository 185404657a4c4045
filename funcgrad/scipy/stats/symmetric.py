"""Distributions on the whole line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import special as s
from funcgrad.primitives.quadrature import unit_legendre
from funcgrad.primitives.shape import ReduceSum, broadcast_to, reshape, shape_of
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import Continuous, Moments, family, reflected

__all__ = [
    "cauchy", "gennorm", "gumbel_l", "gumbel_r", "laplace", "logistic", "norm", "t", "vonmises",
]  # fmt: skip

_INF = math.inf
_APERY = 1.2020569031595943


class _OnTheLine(Continuous):
    def support_of(self, *parameters: Any) -> tuple[Any, Any]:
        return -_INF, _INF


class _Symmetric(_OnTheLine):
    """Distributions with an even density: the survival function is `cdf` at ``-x``."""

    def above(self, y: Any, *parameters: Any) -> Any:
        return self.below(-y, *parameters)

    def log_above(self, y: Any, *parameters: Any) -> Any:
        return self.log_below(-y, *parameters)

    def quantile_above(self, q: Any, *parameters: Any) -> Any:
        return -self.quantile(q, *parameters)


norm = family(
    _Symmetric,
    "norm",
    "Normal distribution of mean ``loc`` and standard deviation ``scale``.",
    "logpdf(np.array([0.5, 0.75]), 0.0, 2.0) -> array([-1.64333571, -1.68239821])",
    log_density=lambda y: -0.5 * (y * y) - f.HALF_LOG_2PI,
    below=lambda y: f.ndtr(y),
    log_below=lambda y: f.log_ndtr(y),
    quantile=lambda q: f.ndtri(q),
    entropy_of=lambda: f.HALF_LOG_2PI + 0.5,
    moments=lambda: (0.0, 1.0, 0.0, 0.0),
)

laplace = family(
    _Symmetric,
    "laplace",
    "Laplace distribution: the density is ``exp(-abs(x)) / 2``.",
    "logpdf(np.array([0.5, 0.75])) -> array([-1.19314718, -1.44314718])",
    log_density=lambda y: -f.absolute(y) - f.LOG_2,
    below=lambda y: f.select(y < 0, 0.5 * f.exp(y), 1 - 0.5 * f.exp(-y)),
    log_below=lambda y: f.select(y < 0, y - f.LOG_2, f.log1p(-0.5 * f.exp(-y))),
    quantile=lambda q: f.select(q < 0.5, f.log(2 * q), -f.log(2 * (1 - q))),
    entropy_of=lambda: f.LOG_2 + 1,
    moments=lambda: (0.0, 2.0, 0.0, 3.0),
)


def _logistic_density(y: Any) -> Any:
    size = f.absolute(y)
    return -size - 2 * f.log1p(f.exp(-size))


logistic = family(
    _Symmetric,
    "logistic",
    "Logistic distribution: `cdf` is ``1 / (1 + exp(-x))``.",
    "logpdf(np.array([0.5, 0.75])) -> array([-1.44815397, -1.52374201])",
    log_density=_logistic_density,
    below=lambda y: p.logistic.bind(y),
    log_below=lambda y: s.log_expit.bind(y),
    quantile=lambda q: s.logit.bind(q),
    entropy_of=lambda: 2.0,
    moments=lambda: (0.0, math.pi**2 / 3, 0.0, 1.2),
)


def _cauchy_quantile(q: Any) -> Any:
    middle = f.tan(math.pi * (q - 0.5))
    rest = f.select(q < 0.5, q, 1 - q)
    tail = 1 / f.tan(math.pi * rest)
    return f.select(rest > 0.25, middle, f.select(q < 0.5, -tail, tail))


cauchy = family(
    _Symmetric,
    "cauchy",
    "Cauchy distribution: the density is ``1 / (pi (1 + x**2))``.",
    "logpdf(np.array([0.5, 0.75])) -> array([-1.36787344, -1.59101699])",
    log_density=lambda y: -math.log(math.pi) - f.log1p_square(y),
    below=lambda y: f.arctan2(f.constant(1, y), -y) * (1 / math.pi),
    quantile=_cauchy_quantile,
    entropy_of=lambda: math.log(4 * math.pi),
    moments=lambda: (math.nan, math.nan, math.nan, math.nan),
)


class T(_Symmetric):
    """Student's t-distribution with ``df`` degrees of freedom.

    Example: fg.scipy.stats.t.logpdf(np.array([0.5, 0.75]), 3.0)
        -> array([-1.16097426, -1.34458936])
    """

    name = "t"
    shapes = ("df",)

    def log_density(self, y: Any, df: Any) -> Any:
        half = 0.5 * df
        ratio = f.binet.bind(half + 0.5) - f.binet.bind(half) + half * f.log1p(0.5 / half) - 0.5
        return ratio - f.HALF_LOG_2PI - (half + 0.5) * f.log1p_square(y / f.sqrt(df))

    def below(self, y: Any, df: Any) -> Any:
        half, one_half = 0.5 * df, f.constant(0.5, y)
        square = y * y
        near = 0.5 * f.betaincc(one_half, half, square / (df + square))
        far = 0.5 * f.betainc(half, one_half, 1 / (1 + y * (y / df)))
        tail = f.select(square < df, near, far)
        return f.select(y < 0, tail, 1 - tail)

    def log_below(self, y: Any, df: Any) -> Any:
        half, one_half = 0.5 * df, f.constant(0.5, y)
        square = y * y
        near = f.log_betaincc(one_half, half, square / (df + square))
        far = f.log_betainc(half, one_half, 1 / (1 + y * (y / df)))
        tail = f.select(square < df, near, far) - f.LOG_2
        return f.select(y < 0, tail, f.log1p(-f.exp(tail)))

    def quantile(self, q: Any, df: Any) -> Any:
        half, one_half = 0.5 * df, f.constant(0.5, q)
        rest = f.select(q < 0.5, q, 1 - q)
        # The shares of the two squares in their sum, of which the smaller one is exact.
        middle = f.beta_quantile(one_half, half, 2 * f.absolute(q - 0.5))
        near = f.select(rest > 0.25, middle, f.beta_quantile_above(one_half, half, 2 * rest))
        far = f.beta_quantile(half, one_half, 2 * rest)
        square = f.select(near < 0.5, near / (1 - near), (1 - far) / far)
        size = f.sqrt(df * square)
        logs = f.log_beta_quantile(half, one_half, 2 * rest)
        tail = f.exp(0.5 * (f.log(df) - logs))  # where the square overflows, this does not
        size = f.select(logs < f.TINY_LOG, tail, size)
        return f.select(q < 0.5, -size, size)

    def entropy_of(self, df: Any) -> Any:
        half = 0.5 * df
        slope = f.digamma(half + 0.5) - f.digamma(half)
        return (half + 0.5) * slope + 0.5 * f.log(df) + f.betaln(half, f.constant(0.5, df))

    def moments(self, df: Any) -> Moments:
        mean = f.where_defined(df > 1, 0 * df, _INF)
        var = f.where_defined(df > 2, df / (df - 2), _INF)
        var = f.where_defined(df > 1, var)
        kurtosis = f.where_defined(df > 4, 6 / (df - 4), _INF)
        kurtosis = f.where_defined(df > 2, kurtosis)
        return mean, var, f.where_defined(df > 3, 0 * df), kurtosis


gumbel_r = family(
    _OnTheLine,
    "gumbel_r",
    "Gumbel distribution of maxima: `cdf` is ``exp(-exp(-x))``.",
    "logpdf(np.array([0.5, 0.75])) -> array([-1.10653066, -1.22236655])",
    log_density=lambda y: -y - f.exp(-y),
    below=lambda y: f.exp(-f.exp(-y)),
    above=lambda y: -f.expm1(-f.exp(-y)),
    log_below=lambda y: -f.exp(-y),
    # Beyond 700 the probability is exp(-y) to the last digit, and then underflows.
    log_above=lambda y: f.select(y > 50, -y, f.log1mexp(-f.exp(-y))),
    quantile=lambda q: -f.log(-f.log(q)),
    quantile_above=lambda q: -f.log(-f.log1p(-q)),
    entropy_of=lambda: f.EULER + 1,
    moments=lambda: (f.EULER, math.pi**2 / 6, 12 * math.sqrt(6) * _APERY / math.pi**3, 2.4),
)

gumbel_l = family(
    _OnTheLine,
    "gumbel_l",
    "Gumbel distribution of minima: ``-x`` has the distribution `gumbel_r`.",
    "logpdf(np.array([0.5, 0.75])) -> array([-1.14872127, -1.36700002])",
    **reflected(gumbel_r),
)


class Gennorm(_Symmetric):
    """Generalised normal distribution: a density proportional to ``exp(-abs(x)**beta)``.

    Example: fg.scipy.stats.gennorm.logpdf(np.array([0.5, 0.75]), 1.5)
        -> array([-0.94438574, -1.2403514 ])
    """

    name = "gennorm"
    shapes = ("beta",)

    def log_density(self, y: Any, beta: Any) -> Any:
        return f.log(0.5 * beta) - f.lgamma(1 / beta) - f.power(f.absolute(y), beta)

    def below(self, y: Any, beta: Any) -> Any:
        tail = 0.5 * f.gammaincc(1 / beta, f.power(f.absolute(y), beta))
        return f.select(y < 0, tail, 1 - tail)

    def log_below(self, y: Any, beta: Any) -> Any:
        shape, power = 1 / beta, f.power(f.absolute(y), beta)
        near = f.log1p(-0.5 * f.gammaincc(shape, power))
        return f.select(y < 0, f.log_gammaincc(shape, power) - f.LOG_2, near)

    def quantile(self, q: Any, beta: Any) -> Any:
        rest = f.select(q < 0.5, q, 1 - q)
        size = f.power(s.gammainccinv.bind(1 / beta, 2 * rest), 1 / beta)
        return f.select(q < 0.5, -size, size)

    def entropy_of(self, beta: Any) -> Any:
        return 1 / beta - f.log(0.5 * beta) + f.lgamma(1 / beta)

    def moments(self, beta: Any) -> Moments:
        first, third, fifth = (f.lgamma(n / beta) for n in (1, 3, 5))
        zero = 0 * beta
        return zero, f.exp(third - first), zero, f.exp(fifth + first - 2 * third) - 3


class Vonmises(_OnTheLine):
    """Von Mises distribution on the circle: a density proportional to ``exp(kappa cos(x))``.

    Example: fg.scipy.stats.vonmises.logpdf(np.array([0.5, 0.75]), 2.0)
        -> array([-0.90670548, -1.19849287])
    """

    name = "vonmises"
    shapes = ("kappa",)

    def is_valid(self, kappa: Any) -> Any:
        return kappa >= 0

    def log_density(self, y: Any, kappa: Any) -> Any:
        half = f.sin(0.5 * y)
        # exp(kappa (cos(y) - 1)), of which i0e(kappa) is the mean.
        return -2 * kappa * (half * half) - 2 * f.HALF_LOG_2PI - f.log(s.i0e.bind(kappa))

    def below(self, y: Any, kappa: Any) -> Any:
        turns = f.stop_gradient(f.floor((y + math.pi) * (0.5 / math.pi)))
        angle = y - turns * (2 * math.pi)
        size = f.absolute(angle)
        tail = _circular_tail(size, kappa) * f.exp(self.log_density(size, kappa))
        return f.select(angle < 0, tail, 1 - tail) + turns

    def above(self, y: Any, kappa: Any) -> Any:
        return self.below(-y, kappa)

    def quantile(self, q: Any, kappa: Any) -> Any:
        """By bisection, with derivatives of the implicit function."""
        shape = np.broadcast_shapes(shape_of(q), shape_of(kappa))
        rest = f.select(q < 0.5, q, 1 - q)
        rest, kappa = broadcast_to(rest, shape), broadcast_to(kappa, shape)

        def residual(size: Any) -> Any:
            return _circular_tail(size, kappa) * f.exp(self.log_density(size, kappa)) - rest

        def bisect(function: Any, start: Any) -> Any:
            def halve(_: Any, ends: Any) -> Any:
                low, high = ends
                middle = 0.5 * (low + high)
                is_far = function(middle) > 0  # the tail is larger: further out
                return f.select(is_far, middle, low), f.select(is_far, high, middle)

            return lax.fori_loop(0, 60, halve, (start, start + math.pi))[0]

        ones = np.ones(shape, aval_of(rest).dtype)
        start = f.stop_gradient(0 * rest)
        size = lax.custom_root(residual, start, bisect, lambda g, y: y / g(ones))
        return f.select(q < 0.5, -size, size)

    def quantile_above(self, q: Any, kappa: Any) -> Any:
        return -self.quantile(q, kappa)

    def moments(self, kappa: Any) -> Moments:
        return 0 * kappa, None, 0 * kappa, None

    def entropy_of(self, kappa: Any) -> Any:
        zeroth, first = s.i0e.bind(kappa), s.i1e.bind(kappa)
        return kappa - kappa * first / zeroth + 2 * f.HALF_LOG_2PI + f.log(zeroth)


_NODES, _WEIGHTS = unit_legendre(48)


def _circular_tail(size: Any, kappa: Any) -> Any:
    """Von Mises distribution function at ``-size``, for ``size`` in ``[0, pi]``.

    The density there times the integral of its ratio to that density, by Gauss's rule up to where
    the ratio is below ``exp(-40)``: few digits are lost however small the result is.
    """
    half = f.sin(0.5 * size)
    reach = half * half + 20 / kappa
    is_whole = reach >= 1  # the ratio is larger all the way
    bent = 2 * p.arcsin.bind(f.sqrt(f.select(is_whole, 0.5, reach)))
    length = f.select(is_whole, math.pi, bent) - size
    dtype = aval_of(size).dtype
    size, kappa, length = (
        reshape(broadcast_to(v, shape_of(length)), (*shape_of(length), 1))
        for v in (size, kappa, length)
    )
    step = length * (0.5 * _NODES).astype(dtype)  # halves of the distances
    ratio = f.exp(-2 * kappa * f.sin(step + size) * f.sin(step))
    integrand = ratio * _WEIGHTS.astype(dtype) * length
    return ReduceSum((len(shape_of(integrand)) - 1,)).bind(integrand)


t, gennorm, vonmises = T(), Gennorm(), Vonmises()
