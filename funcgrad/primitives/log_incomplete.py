"""Logarithms of incomplete gamma and beta functions, also where these are below all numbers.

There they are a density times a continued fraction (DLMF 8.9, 8.17.22), which far in a tail
converges at once; so are the derivatives.
"""

from __future__ import annotations

import math

from funcgrad.core.primitive import Value
from funcgrad.primitives import expressions as e
from funcgrad.primitives import incomplete_beta, special_distributions
from funcgrad.primitives.deviance import binet, deviance
from funcgrad.primitives.elementwise import log as log_
from funcgrad.primitives.elementwise import log1p as log1p_
from funcgrad.primitives.families import undefined
from funcgrad.primitives.gamma_functions import betaln, digamma, lgamma, xlog1py, xlogy
from funcgrad.primitives.incomplete import scaled_slope
from funcgrad.primitives.special import betainc, gammainc, gammaincc
from funcgrad.primitives.special_rows import Written

_HALF_LOG_2PI = 0.9189385332046727
_TINY = 1e-280
_LARGE = 10.0
_TERMS = 8


def _log_kernel(a: e.Expression, x: e.Expression) -> e.Expression:
    """``log(x**a exp(-x) / gamma(a))``."""
    return 0.5 * e.log(a) - _HALF_LOG_2PI - e.apply(binet, a) - e.apply(deviance, a, x)


def _below(a: e.Expression, x: e.Expression) -> e.Expression:
    """The reciprocal of ``gamma(a) P(a, x) exp(x) / x**a``, where ``x`` is far below ``a``."""
    t = a + 2.0 * _TERMS
    for n in range(2 * _TERMS, 0, -1):
        c = -(a + float((n - 1) // 2)) if n % 2 else a * 0.0 + float(n // 2)
        t = a + (n - 1.0) + c * x / t
    return t


def _above(a: e.Expression, x: e.Expression) -> e.Expression:
    """The reciprocal of ``gamma(a) Q(a, x) exp(x) / x**a``, where ``x`` is far above ``a``."""
    distance = x - a
    t = distance + (2.0 * _TERMS + 1.0)
    for k in range(_TERMS, 0, -1):
        t = distance + (2.0 * k - 1.0) - float(k) * (float(k) - a) / t
    return t


def _row(name: str, is_below: bool) -> Written:
    own, other, fraction = gammainc, gammaincc, _below
    if not is_below:
        own, other, fraction = gammaincc, gammainc, _above
    sign = 1 if is_below else -1

    def logarithm(a: e.Expression, x: e.Expression) -> e.Expression:
        value = e.apply(own, a, x)
        out = e.where(value < 0.5, e.log(value), e.log1p(-e.apply(other, a, x)))
        is_tiny = value < _TINY
        if not e.anywhere(is_tiny):
            return out
        tail = _log_kernel(a, x) - e.log(fraction(a, x))
        # At the ends, and where there is no distribution, SciPy's values are right.
        is_inside = is_tiny & (x > 0.0) & (x < 1e308) & (a > 0.0)
        return e.where(is_inside, tail, out)

    def slope(a: e.Expression, x: e.Expression) -> e.Expression:
        """The derivative in ``a``: of both the slope and the value the density is left out."""
        value = e.apply(own, a, x)
        scaled, kernel = scaled_slope(a, x)
        out = e.where(value < _TINY, scaled * fraction(a, x), scaled * (kernel / value))
        return e.where((x > 0.0) & (x < math.inf), float(sign) * out, 0.0)

    what = f"the derivative of {name} in a"
    in_a = Written(
        f"{name}_da",
        slope,
        undefined(what, "a"),
        lambda a, x, y: in_x.bind(a, x) * (log_.bind(x) - digamma.bind(a) - y),
    )

    def density(a: e.Expression, x: e.Expression) -> e.Expression:
        """Density of the distribution over its value."""
        value = e.apply(own, a, x)
        plain = e.exp(e.apply(xlogy, a - 1.0, x) - x - e.apply(lgamma, a))
        kernel = e.exp(_log_kernel(a, x)) / x
        near = e.where((a > _LARGE) & (x > 0.0), kernel, plain) / value
        return float(sign) * e.where(value < _TINY, fraction(a, x) / x, near)

    in_x: Written = Written(
        f"{name}_dx",
        density,
        lambda a, x, y: y * (log_.bind(x) - digamma.bind(a) - in_a.bind(a, x)),
        lambda a, x, y: y * ((a - 1) / x - 1 - y),
    )
    return Written(
        name, logarithm, lambda a, x, y: in_a.bind(a, x), lambda a, x, y: in_x.bind(a, x)
    )


log_gammainc, log_gammaincc = _row("log_gammainc", True), _row("log_gammaincc", False)
"""``log(P(a, x))`` and ``log(Q(a, x))``."""


# ---------------------------------------------------------------------------------------- betainc


def _log_beta_kernel(
    a: e.Expression, b: e.Expression, x: e.Expression, rest: e.Expression
) -> e.Expression:
    """``log(x**a rest**b / beta(a, b))`` where ``x + rest`` is 1."""
    n = a + b
    stirling = e.apply(binet, n) - e.apply(binet, a) - e.apply(binet, b)
    away = e.apply(deviance, a, n * x) + e.apply(deviance, b, n * rest)
    return 0.5 * (e.log(a) + e.log(b / n)) - _HALF_LOG_2PI + stirling - away


def _beta_fraction(a: e.Expression, b: e.Expression, x: e.Expression) -> e.Expression:
    """The reciprocal of ``I(a, b, x)`` over that kernel, where ``x`` is far below the mean."""
    t = a * 0.0 + 1.0
    for n in range(2 * _TERMS, 0, -1):
        m, under = float(n // 2), (a + (n - 1.0)) * (a + float(n))
        d = -(a + m) * (a + b + m) / under if n % 2 else m * (b - m) / under
        t = d * x / t + 1.0
    return t * a


def _beta_row(name: str, is_below: bool) -> Written:
    own, other = betainc, special_distributions.betaincc
    if not is_below:
        own, other = other, own
    sign = 1.0 if is_below else -1.0

    def fraction(a: e.Expression, b: e.Expression, x: e.Expression) -> e.Expression:
        return _beta_fraction(a, b, x) if is_below else _beta_fraction(b, a, 1.0 - x)

    def logarithm(a: e.Expression, b: e.Expression, x: e.Expression) -> e.Expression:
        value = e.apply(own, a, b, x)
        out = e.where(value < 0.5, e.log(value), e.log1p(-e.apply(other, a, b, x)))
        is_tiny = value < _TINY
        if not e.anywhere(is_tiny):
            return out
        tail = _log_beta_kernel(a, b, x, 1.0 - x) - e.log(fraction(a, b, x))
        is_inside = is_tiny & (x > 0.0) & (x < 1.0) & (a > 0.0) & (b > 0.0)
        return e.where(is_inside, tail, out)

    def density(a: e.Expression, b: e.Expression, x: e.Expression) -> e.Expression:
        """Density of the distribution over its value."""
        value = e.apply(own, a, b, x)
        plain = e.apply(xlogy, a - 1.0, x) + e.apply(xlog1py, b - 1.0, -x) - e.apply(betaln, a, b)
        product = x * (1.0 - x)
        kernel = e.exp(_log_beta_kernel(a, b, x, 1.0 - x)) / product
        is_large = (a + b > 2.0 * _LARGE) & (product > 0.0)
        near = e.where(is_large, kernel, e.exp(plain)) / value
        return sign * e.where(value < _TINY, fraction(a, b, x) / product, near)

    def in_shape(place: int) -> Written:
        letter = "ab"[place]
        what = f"the derivative of {name} in {letter}"
        return Written(
            f"{name}_d{letter}",
            incomplete_beta.slope_in_shape(place, is_below),
            undefined(what, "a"),
            undefined(what, "b"),
            lambda a, b, x, y: mixed(place, a, b, x, y),
        )

    def mixed(place: int, a: Value, b: Value, x: Value, slope: Value) -> Value:
        logarithm = log1p_.bind(-x) if place else log_.bind(x)
        mean = digamma.bind(b if place else a) - digamma.bind(a + b)
        return in_x.bind(a, b, x) * (logarithm - mean - slope)

    in_a, in_b = in_shape(0), in_shape(1)
    in_x: Written = Written(
        f"{name}_dx",
        density,
        lambda a, b, x, y: mixed(0, a, b, x, in_a.bind(a, b, x)),
        lambda a, b, x, y: mixed(1, a, b, x, in_b.bind(a, b, x)),
        lambda a, b, x, y: y * ((a - 1) / x - (b - 1) / (1 - x) - y),
    )
    return Written(
        name,
        logarithm,
        lambda a, b, x, y: in_a.bind(a, b, x),
        lambda a, b, x, y: in_b.bind(a, b, x),
        lambda a, b, x, y: in_x.bind(a, b, x),
    )


log_betainc, log_betaincc = _beta_row("log_betainc", True), _beta_row("log_betaincc", False)
"""``log(I(a, b, x))`` and ``log(1 - I(a, b, x))``."""
