"""Logarithms of the incomplete gamma functions, where these themselves are below all numbers, too.

There they are a density times a continued fraction (DLMF 8.9), which far in a tail converges at
once; so are the derivatives.
"""

from __future__ import annotations

import math

from funcgrad.primitives.deviance import binet, deviance
from funcgrad.primitives.elementwise import log as log_
from funcgrad.primitives.expressions import (
    Expression,
    anywhere,
    apply,
    exp,
    log,
    log1p,
    where,
)
from funcgrad.primitives.families import undefined
from funcgrad.primitives.incomplete import scaled_slope
from funcgrad.primitives.special import digamma, gammainc, gammaincc, lgamma, xlogy
from funcgrad.primitives.special_rows import Written

_HALF_LOG_2PI = 0.9189385332046727
_TINY = 1e-280
_LARGE = 10.0
_TERMS = 8


def _log_kernel(a: Expression, x: Expression) -> Expression:
    """``log(x**a exp(-x) / gamma(a))``."""
    return 0.5 * log(a) - _HALF_LOG_2PI - apply(binet, a) - apply(deviance, a, x)


def _below(a: Expression, x: Expression) -> Expression:
    """The reciprocal of ``gamma(a) P(a, x) exp(x) / x**a``, where ``x`` is far below ``a``."""
    t = a + 2.0 * _TERMS
    for n in range(2 * _TERMS, 0, -1):
        c = -(a + float((n - 1) // 2)) if n % 2 else a * 0.0 + float(n // 2)
        t = a + (n - 1.0) + c * x / t
    return t


def _above(a: Expression, x: Expression) -> Expression:
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

    def logarithm(a: Expression, x: Expression) -> Expression:
        value = apply(own, a, x)
        out = where(value < 0.5, log(value), log1p(-apply(other, a, x)))
        is_tiny = value < _TINY
        if not anywhere(is_tiny):
            return out
        tail = _log_kernel(a, x) - log(fraction(a, x))
        # At the ends, and where there is no distribution, SciPy's values are right.
        is_inside = is_tiny & (x > 0.0) & (x < 1e308) & (a > 0.0)
        return where(is_inside, tail, out)

    def slope(a: Expression, x: Expression) -> Expression:
        """The derivative in ``a``: of both the slope and the value the density is left out."""
        value = apply(own, a, x)
        scaled, kernel = scaled_slope(a, x)
        out = where(value < _TINY, scaled * fraction(a, x), scaled * (kernel / value))
        return where((x > 0.0) & (x < math.inf), float(sign) * out, 0.0)

    what = f"the derivative of {name} in a"
    in_a = Written(f"{name}_da", slope, undefined(what, "a"), undefined(what, "x"))

    def density(a: Expression, x: Expression) -> Expression:
        """That of the distribution, over the value."""
        value = apply(own, a, x)
        plain = exp(apply(xlogy, a - 1.0, x) - x - apply(lgamma, a))
        kernel = exp(_log_kernel(a, x)) / x
        near = where((a > _LARGE) & (x > 0.0), kernel, plain) / value
        return float(sign) * where(value < _TINY, fraction(a, x) / x, near)

    in_x = Written(
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
