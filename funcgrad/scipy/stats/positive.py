"""Distributions of positive numbers."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.primitives import special as s
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import Continuous
from funcgrad.scipy.stats.formulas import where_defined

_INF = math.inf
_LOG_2_OVER_PI = math.log(2 / math.pi)


class Positive(Continuous):
    """Support: from 0 on."""

    def support_of(self, *parameters: Any) -> tuple[Any, Any]:
        return 0.0, _INF


def _power_at_zero(exponent: Any, otherwise: Any) -> Any:
    """Logarithm at 0 of a density of ``otherwise`` times a power: it is 0, finite or infinite."""
    infinite = f.select(exponent < 0, f.constant(_INF, exponent), -_INF)
    return f.select(exponent == 0, otherwise, infinite)


class Expon(Positive):
    """Exponential distribution: the density is ``exp(-x)``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.expon.logpdf(np.array([2.0, 3.0]))
        array([-2., -3.])
    """

    name = "expon"

    def log_density(self, y: Any) -> Any:
        return -y

    def below(self, y: Any) -> Any:
        return -f.expm1(-y)

    def above(self, y: Any) -> Any:
        return f.exp(-y)

    def log_below(self, y: Any) -> Any:
        return f.log1mexp(-y)

    def log_above(self, y: Any) -> Any:
        return -y

    def quantile(self, q: Any) -> Any:
        return -f.log1p(-q)

    def quantile_above(self, q: Any) -> Any:
        return -f.log(q)

    def entropy_of(self) -> Any:
        return 1.0

    def moments(self) -> tuple[Any, Any, Any, Any]:
        return 1.0, 1.0, 2.0, 6.0


class Gamma(Positive):
    """Gamma distribution: a density proportional to ``x**(a - 1) exp(-x)``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.gamma.logpdf(np.array([2.0, 3.0]), 3.0)
        array([-1.30685282, -1.4959226 ])
    """

    name = "gamma"
    shapes = ("a",)

    def log_density(self, y: Any, a: Any) -> Any:
        return f.log_gamma_kernel(y, a) - f.log(y)

    def log_density_at_ends(self, a: Any) -> tuple[Any, Any]:
        return _power_at_zero(a - 1, 0.0), None

    def below(self, y: Any, a: Any) -> Any:
        return f.gammainc(a, y)

    def above(self, y: Any, a: Any) -> Any:
        return f.gammaincc(a, y)

    def log_below(self, y: Any, a: Any) -> Any:
        return f.log_gammainc(a, y)

    def log_above(self, y: Any, a: Any) -> Any:
        return f.log_gammaincc(a, y)

    def quantile(self, q: Any, a: Any) -> Any:
        return s.gammaincinv.bind(a, q)

    def quantile_above(self, q: Any, a: Any) -> Any:
        return s.gammainccinv.bind(a, q)

    def entropy_of(self, a: Any) -> Any:
        # a + lgamma(a) + (1 - a) digamma(a), of which the terms in log(a) cancel for large a.
        stirling = f.binet.bind(a) + f.HALF_LOG_2PI + 0.5 * f.log(a)
        return stirling + (1 - a) * f.digamma_minus_log(a)

    def moments(self, a: Any) -> tuple[Any, Any, Any, Any]:
        return a, a, 2 / f.sqrt(a), 6 / a


class Erlang(Gamma):
    """Erlang distribution: `gamma` with an integer parameter, a number of events.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.erlang.logpdf(np.array([2.0, 3.0]), 3)
        array([-1.30685282, -1.4959226 ])
    """

    name = "erlang"


class Chi2(Positive):
    """Chi-square distribution: the sum of squares of ``df`` standard normal variables.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.chi2.logpdf(np.array([2.0, 3.0]), 3.0)
        array([-1.57236494, -1.86963239])
    """

    name = "chi2"
    shapes = ("df",)

    def log_density(self, y: Any, df: Any) -> Any:
        return gamma.log_density(0.5 * y, 0.5 * df) - f.LOG_2

    def log_density_at_ends(self, df: Any) -> tuple[Any, Any]:
        return _power_at_zero(df - 2, -f.LOG_2), None

    def below(self, y: Any, df: Any) -> Any:
        return f.gammainc(0.5 * df, 0.5 * y)

    def above(self, y: Any, df: Any) -> Any:
        return f.gammaincc(0.5 * df, 0.5 * y)

    def log_below(self, y: Any, df: Any) -> Any:
        return f.log_gammainc(0.5 * df, 0.5 * y)

    def log_above(self, y: Any, df: Any) -> Any:
        return f.log_gammaincc(0.5 * df, 0.5 * y)

    def quantile(self, q: Any, df: Any) -> Any:
        return 2 * gamma.quantile(q, 0.5 * df)

    def quantile_above(self, q: Any, df: Any) -> Any:
        return 2 * gamma.quantile_above(q, 0.5 * df)

    def entropy_of(self, df: Any) -> Any:
        return gamma.entropy_of(0.5 * df) + f.LOG_2

    def moments(self, df: Any) -> tuple[Any, Any, Any, Any]:
        return df, 2 * df, f.sqrt(8 / df), 12 / df


class Invgamma(Positive):
    """Inverse gamma distribution: the reciprocal of a gamma variable.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.invgamma.logpdf(np.array([2.0, 3.0]), 3.0)
        array([-3.9657359 , -5.42092967])
    """

    name = "invgamma"
    shapes = ("a",)

    def log_density(self, y: Any, a: Any) -> Any:
        return f.log_gamma_kernel(1 / y, a) - f.log(y)

    def log_density_at_ends(self, a: Any) -> tuple[Any, Any]:
        return -_INF, None

    def below(self, y: Any, a: Any) -> Any:
        return f.gammaincc(a, 1 / y)

    def above(self, y: Any, a: Any) -> Any:
        return f.gammainc(a, 1 / y)

    def log_below(self, y: Any, a: Any) -> Any:
        return f.log_gammaincc(a, 1 / y)

    def log_above(self, y: Any, a: Any) -> Any:
        return f.log_gammainc(a, 1 / y)

    def quantile(self, q: Any, a: Any) -> Any:
        return 1 / s.gammainccinv.bind(a, q)

    def quantile_above(self, q: Any, a: Any) -> Any:
        return 1 / s.gammaincinv.bind(a, q)

    def entropy_of(self, a: Any) -> Any:
        stirling = f.binet.bind(a) + f.HALF_LOG_2PI - 1.5 * f.log(a)
        return stirling - (1 + a) * f.digamma_minus_log(a)

    def moments(self, a: Any) -> tuple[Any, Any, Any, Any]:
        mean = where_defined(a > 1, 1 / (a - 1), _INF)
        var = where_defined(a > 2, 1 / ((a - 1) * (a - 1) * (a - 2)), _INF)
        skew = where_defined(a > 3, 4 * f.sqrt(a - 2) / (a - 3))
        kurtosis = where_defined(a > 4, 6 * (5 * a - 11) / ((a - 3) * (a - 4)))
        return mean, var, skew, kurtosis


class F(Positive):
    """F distribution: the ratio of mean squares of ``dfn`` and ``dfd`` standard normal variables.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.f.logpdf(np.array([1.0, 1.5]), 3.0, 5.0)
        array([-1.01839412, -1.50306259])
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

    def moments(self, n: Any, d: Any) -> tuple[Any, Any, Any, Any]:
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


class Lognorm(Positive):
    """Log-normal distribution: the logarithm is normal, with standard deviation ``s``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.lognorm.logpdf(np.array([2.0, 3.0]), 0.5)
        array([-1.87984456, -3.73830156])
    """

    name = "lognorm"
    shapes = ("s",)

    def log_density(self, y: Any, sigma: Any) -> Any:
        logarithm = f.log(y)
        z = logarithm / sigma
        return -0.5 * z * z - f.log(sigma) - logarithm - f.HALF_LOG_2PI

    def log_density_at_ends(self, sigma: Any) -> tuple[Any, Any]:
        return -_INF, None

    def below(self, y: Any, sigma: Any) -> Any:
        return f.ndtr(f.log(y) / sigma)

    def above(self, y: Any, sigma: Any) -> Any:
        return f.ndtr(-f.log(y) / sigma)

    def log_below(self, y: Any, sigma: Any) -> Any:
        return f.log_ndtr(f.log(y) / sigma)

    def log_above(self, y: Any, sigma: Any) -> Any:
        return f.log_ndtr(-f.log(y) / sigma)

    def quantile(self, q: Any, sigma: Any) -> Any:
        return f.exp(sigma * f.ndtri(q))

    def quantile_above(self, q: Any, sigma: Any) -> Any:
        return f.exp(-sigma * f.ndtri(q))

    def entropy_of(self, sigma: Any) -> Any:
        return f.HALF_LOG_2PI + 0.5 + f.log(sigma)

    def moments(self, sigma: Any) -> tuple[Any, Any, Any, Any]:
        square = sigma * sigma
        growth, excess = f.exp(square), f.expm1(square)
        third = f.expm1(4 * square) + 2 * f.expm1(3 * square) + 3 * f.expm1(2 * square)
        return f.exp(0.5 * square), growth * excess, f.sqrt(excess) * (growth + 2), third


class WeibullMin(Positive):
    """Weibull distribution of minima: `sf` is ``exp(-x**c)``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.weibull_min.logpdf(np.array([0.5, 0.75]), 2.0)
        array([-0.25      , -0.15703489])
    """

    name = "weibull_min"
    shapes = ("c",)

    def log_density(self, y: Any, c: Any) -> Any:
        return f.log(c) + f.xlogy(c - 1, y) - f.power(y, c)

    def log_density_at_ends(self, c: Any) -> tuple[Any, Any]:
        return _power_at_zero(c - 1, 0.0), None

    def below(self, y: Any, c: Any) -> Any:
        return -f.expm1(-f.power(y, c))

    def above(self, y: Any, c: Any) -> Any:
        return f.exp(-f.power(y, c))

    def log_below(self, y: Any, c: Any) -> Any:
        return f.log1mexp(-f.power(y, c))

    def log_above(self, y: Any, c: Any) -> Any:
        return -f.power(y, c)

    def quantile(self, q: Any, c: Any) -> Any:
        return f.power(-f.log1p(-q), 1 / c)

    def quantile_above(self, q: Any, c: Any) -> Any:
        return f.power(-f.log(q), 1 / c)

    def entropy_of(self, c: Any) -> Any:
        return f.EULER + 1 - f.EULER / c - f.log(c)

    def moments(self, c: Any) -> tuple[Any, Any, Any, Any]:
        return central_moments(*(f.gamma(1 + n / c) for n in (1, 2, 3, 4)))


def central_moments(m1: Any, m2: Any, m3: Any, m4: Any) -> tuple[Any, Any, Any, Any]:
    """Mean, variance, skewness and excess kurtosis of the means of powers."""
    var = m2 - m1 * m1
    third = m3 - 3 * m1 * var - m1 * m1 * m1
    fourth = m4 - 4 * m1 * third - 6 * m1 * m1 * var - m1 * m1 * m1 * m1
    return m1, var, third / (var * f.sqrt(var)), fourth / (var * var) - 3


class WeibullMax(Continuous):
    """Weibull distribution of maxima, on ``x <= 0``: ``-x`` has the distribution `weibull_min`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.weibull_max.logpdf(np.array([-0.5, -1.0]), 2.0)
        array([-0.25      , -0.30685282])
    """

    name = "weibull_max"
    shapes = ("c",)

    def support_of(self, c: Any) -> tuple[Any, Any]:
        return -_INF, 0.0

    def log_density(self, y: Any, c: Any) -> Any:
        return weibull_min.log_density(-y, c)

    def log_density_at_ends(self, c: Any) -> tuple[Any, Any]:
        return None, weibull_min.log_density_at_ends(c)[0]

    def below(self, y: Any, c: Any) -> Any:
        return weibull_min.above(-y, c)

    def above(self, y: Any, c: Any) -> Any:
        return weibull_min.below(-y, c)

    def log_below(self, y: Any, c: Any) -> Any:
        return weibull_min.log_above(-y, c)

    def log_above(self, y: Any, c: Any) -> Any:
        return weibull_min.log_below(-y, c)

    def quantile(self, q: Any, c: Any) -> Any:
        return -weibull_min.quantile_above(q, c)

    def quantile_above(self, q: Any, c: Any) -> Any:
        return -weibull_min.quantile(q, c)

    def entropy_of(self, c: Any) -> Any:
        return weibull_min.entropy_of(c)

    def moments(self, c: Any) -> tuple[Any, Any, Any, Any]:
        mean, var, skew, kurtosis = weibull_min.moments(c)
        return -mean, var, -skew, kurtosis


class Pareto(Continuous):
    """Pareto distribution on ``x >= 1``: `sf` is ``x**-b``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.pareto.logpdf(np.array([2.0, 3.0]), 3.0)
        array([-1.67397643, -3.29583687])
    """

    name = "pareto"
    shapes = ("b",)

    def support_of(self, b: Any) -> tuple[Any, Any]:
        return 1.0, _INF

    def log_density(self, y: Any, b: Any) -> Any:
        return f.log(b) - (b + 1) * f.log(y)

    def below(self, y: Any, b: Any) -> Any:
        return -f.expm1(-b * f.log(y))

    def above(self, y: Any, b: Any) -> Any:
        return f.power(y, -b)

    def log_below(self, y: Any, b: Any) -> Any:
        return f.log1mexp(-b * f.log(y))

    def log_above(self, y: Any, b: Any) -> Any:
        return -b * f.log(y)

    def quantile(self, q: Any, b: Any) -> Any:
        return f.exp(-f.log1p(-q) / b)

    def quantile_above(self, q: Any, b: Any) -> Any:
        return f.power(q, -1 / b)

    def entropy_of(self, b: Any) -> Any:
        return 1 + 1 / b - f.log(b)

    def moments(self, b: Any) -> tuple[Any, Any, Any, Any]:
        return pareto_moments(b, b / (b - 1))


def pareto_moments(b: Any, mean: Any) -> tuple[Any, Any, Any, Any]:
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


class Lomax(Positive):
    """Lomax distribution, a Pareto distribution that begins at 0: `sf` is ``(1 + x)**-c``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.lomax.logpdf(np.array([2.0, 3.0]), 3.0)
        array([-3.29583687, -4.44656516])
    """

    name = "lomax"
    shapes = ("c",)

    def log_density(self, y: Any, c: Any) -> Any:
        return f.log(c) - (c + 1) * f.log1p(y)

    def below(self, y: Any, c: Any) -> Any:
        return -f.expm1(-c * f.log1p(y))

    def above(self, y: Any, c: Any) -> Any:
        return f.exp(-c * f.log1p(y))

    def log_below(self, y: Any, c: Any) -> Any:
        return f.log1mexp(-c * f.log1p(y))

    def log_above(self, y: Any, c: Any) -> Any:
        return -c * f.log1p(y)

    def quantile(self, q: Any, c: Any) -> Any:
        return f.expm1(-f.log1p(-q) / c)

    def quantile_above(self, q: Any, c: Any) -> Any:
        return f.expm1(-f.log(q) / c)

    def entropy_of(self, c: Any) -> Any:
        return 1 + 1 / c - f.log(c)

    def moments(self, c: Any) -> tuple[Any, Any, Any, Any]:
        return pareto_moments(c, 1 / (c - 1))


class Rayleigh(Positive):
    """Rayleigh distribution: `sf` is ``exp(-x**2 / 2)``; the length of two normal variables.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.rayleigh.logpdf(np.array([0.5, 0.75]))
        array([-0.81814718, -0.56893207])
    """

    name = "rayleigh"

    def log_density(self, y: Any) -> Any:
        return f.log(y) - 0.5 * (y * y)

    def log_density_at_ends(self) -> tuple[Any, Any]:
        return -_INF, None

    def below(self, y: Any) -> Any:
        return -f.expm1(-0.5 * (y * y))

    def above(self, y: Any) -> Any:
        return f.exp(-0.5 * (y * y))

    def log_below(self, y: Any) -> Any:
        return f.log1mexp(-0.5 * (y * y))

    def log_above(self, y: Any) -> Any:
        return -0.5 * (y * y)

    def quantile(self, q: Any) -> Any:
        return f.sqrt(-2 * f.log1p(-q))

    def quantile_above(self, q: Any) -> Any:
        return f.sqrt(-2 * f.log(q))

    def entropy_of(self) -> Any:
        return 0.5 * f.EULER + 1 - 0.5 * f.LOG_2

    def moments(self) -> tuple[Any, Any, Any, Any]:
        rest, pi = 4 - math.pi, math.pi
        skew = 2 * (pi - 3) * math.sqrt(pi) / rest**1.5
        return math.sqrt(pi / 2), rest / 2, skew, 6 * pi / rest - 16 / rest**2


class Maxwell(Positive):
    """Maxwell distribution: the length of a vector of three standard normal variables.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.maxwell.logpdf(np.array([0.5, 0.75]))
        array([-1.73708571, -1.0824055 ])
    """

    name = "maxwell"

    def log_density(self, y: Any) -> Any:
        return 0.5 * _LOG_2_OVER_PI + 2 * f.log(y) - 0.5 * (y * y)

    def log_density_at_ends(self) -> tuple[Any, Any]:
        return -_INF, None

    def below(self, y: Any) -> Any:
        return f.gammainc(f.constant(1.5, y), 0.5 * (y * y))

    def above(self, y: Any) -> Any:
        return f.gammaincc(f.constant(1.5, y), 0.5 * (y * y))

    def log_below(self, y: Any) -> Any:
        return f.log_gammainc(f.constant(1.5, y), 0.5 * (y * y))

    def log_above(self, y: Any) -> Any:
        return f.log_gammaincc(f.constant(1.5, y), 0.5 * (y * y))

    def quantile(self, q: Any) -> Any:
        return f.sqrt(2 * s.gammaincinv.bind(f.constant(1.5, q), q))

    def quantile_above(self, q: Any) -> Any:
        return f.sqrt(2 * s.gammainccinv.bind(f.constant(1.5, q), q))

    def entropy_of(self) -> Any:
        return f.EULER + f.HALF_LOG_2PI - 0.5

    def moments(self) -> tuple[Any, Any, Any, Any]:
        pi = math.pi
        rest = 3 * pi - 8
        skew = math.sqrt(2) * (32 - 10 * pi) / rest**1.5
        kurtosis = (-12 * pi * pi + 160 * pi - 384) / rest**2
        return 2 * math.sqrt(2 / pi), 3 - 8 / pi, skew, kurtosis


class Halfnorm(Positive):
    """Half-normal distribution: the absolute value of a standard normal variable.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.halfnorm.logpdf(np.array([0.5, 0.75]))
        array([-0.35079135, -0.50704135])
    """

    name = "halfnorm"

    def log_density(self, y: Any) -> Any:
        return 0.5 * _LOG_2_OVER_PI - 0.5 * (y * y)

    def below(self, y: Any) -> Any:
        return s.erf.bind(y * math.sqrt(0.5))

    def above(self, y: Any) -> Any:
        return 2 * f.ndtr(-y)

    def log_above(self, y: Any) -> Any:
        near = f.log1p(-s.erf.bind(y * math.sqrt(0.5)))
        return f.select(y < 0.5, near, f.LOG_2 + f.log_ndtr(-y))

    def quantile(self, q: Any) -> Any:
        return math.sqrt(2) * s.erfinv.bind(q)

    def quantile_above(self, q: Any) -> Any:
        return math.sqrt(2) * s.erfcinv.bind(q)

    def entropy_of(self) -> Any:
        return 0.5 * math.log(math.pi / 2) + 0.5

    def moments(self) -> tuple[Any, Any, Any, Any]:
        pi = math.pi
        skew = math.sqrt(2) * (4 - pi) / (pi - 2) ** 1.5
        return math.sqrt(2 / pi), 1 - 2 / pi, skew, 8 * (pi - 3) / (pi - 2) ** 2


class Halfcauchy(Positive):
    """Half-Cauchy distribution: the absolute value of a Cauchy variable.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.scipy.stats.halfcauchy.logpdf(np.array([0.5, 0.75]))
        array([-0.67472626, -0.89786981])
    """

    name = "halfcauchy"

    def log_density(self, y: Any) -> Any:
        return _LOG_2_OVER_PI - f.log1p_square(y)

    def below(self, y: Any) -> Any:
        return f.arctan2(y, f.constant(1, y)) * (2 / math.pi)

    def above(self, y: Any) -> Any:
        return f.arctan2(f.constant(1, y), y) * (2 / math.pi)

    def quantile(self, q: Any) -> Any:
        half = 0.5 * math.pi
        return f.select(q < 0.5, f.tan(half * q), 1 / f.tan(half * (1 - q)))

    def quantile_above(self, q: Any) -> Any:
        half = 0.5 * math.pi
        return f.select(q < 0.5, 1 / f.tan(half * q), f.tan(half * (1 - q)))

    def entropy_of(self) -> Any:
        return math.log(2 * math.pi)

    def moments(self) -> tuple[Any, Any, Any, Any]:
        return _INF, _INF, math.nan, math.nan


expon, gamma, erlang, chi2, invgamma, f_distribution = (
    Expon(), Gamma(), Erlang(), Chi2(), Invgamma(), F(),
)  # fmt: skip
lognorm, weibull_min, weibull_max, pareto, lomax = (
    Lognorm(), WeibullMin(), WeibullMax(), Pareto(), Lomax(),
)  # fmt: skip
rayleigh, maxwell, halfnorm, halfcauchy = Rayleigh(), Maxwell(), Halfnorm(), Halfcauchy()
