"""Derivatives of the incomplete gamma and beta functions in all of their arguments.

Densities are made of `deviance` and `binet` where parameters are large, so that they lose no
digits. The derivative of ``P(a, x)`` in ``a`` is a mean of ``log(t) - digamma(a)`` over the gamma
density up to ``x``, or over that beyond it with the other sign; on one of the two sides nothing
changes its sign, and the derivative is accurate however small it is.
"""

from __future__ import annotations

import math

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.primitives import expressions as e
from funcgrad.primitives import incomplete_beta
from funcgrad.primitives.deviance import binet, binet_slope, deviance
from funcgrad.primitives.elementwise import bitwise_and, less, log, log1p, select, zero_of
from funcgrad.primitives.elementwise import exp as exp_
from funcgrad.primitives.elementwise import sqrt as sqrt_
from funcgrad.primitives.expressions import log as log_of
from funcgrad.primitives.expressions import log1p as log1p_of
from funcgrad.primitives.families import undefined
from funcgrad.primitives.gamma_functions import betaln, digamma, lgamma, xlog1py, xlogy
from funcgrad.primitives.quadrature import unit_legendre
from funcgrad.primitives.special_rows import Written

_SQRT_2PI = math.sqrt(2 * math.pi)
_LARGE = 10.0


def _times_exp(factor: Value, exponent: Value) -> Value:
    """``factor * exp(exponent)``, also where the exponential alone would be too small."""
    root = exp_.bind(exponent * 0.5)
    return root * factor * root


def gamma_density(a: Value, x: Value) -> Value:
    """``x**(a-1) exp(-x) / gamma(a)``, the derivative of gammainc in x."""
    plain = exp_.bind(xlogy.bind(a - 1, x) - x - lgamma.bind(a))
    kernel = _times_exp(sqrt_.bind(a) / (_SQRT_2PI * x), -deviance.bind(a, x) - binet.bind(a))
    number = aval_of(x).dtype.type
    is_large = bitwise_and.bind(less.bind(number(_LARGE), a), less.bind(zero_of(x), x))
    return select.bind(is_large, kernel, plain)


def beta_density(a: Value, b: Value, x: Value) -> Value:
    """``x**(a-1) (1-x)**(b-1) / beta(a, b)``, the derivative of betainc in x."""
    plain = exp_.bind(xlogy.bind(a - 1, x) + xlog1py.bind(b - 1, -x) - betaln.bind(a, b))
    n, rest = a + b, 1 - x
    away = deviance.bind(a, n * x) + deviance.bind(b, n * rest)
    stirling = binet.bind(n) - binet.bind(a) - binet.bind(b)
    spread_ = sqrt_.bind(a * (b / n)) / (_SQRT_2PI * x * rest)
    number = aval_of(x).dtype.type
    is_inside = bitwise_and.bind(less.bind(zero_of(x), x), less.bind(x, number(1)))
    is_large = bitwise_and.bind(less.bind(number(2 * _LARGE), n), is_inside)
    return select.bind(is_large, _times_exp(spread_, stirling - away), plain)


# ------------------------------------------------------------------------- the shape of gammainc

_RULES = {64: (48, 40.0), 32: (28, 20.0)}
"""By digits of the result: nodes of Gauss's rule, and ``d`` where terms below ``exp(-d)`` times the
largest are left out."""


def _log_ratio(x: e.Expression, a: e.Expression) -> e.Expression:
    """``log(x / a)``."""
    difference = x - a
    is_near = e.absolute(difference) < 0.5 * a
    return e.where(is_near, log1p_of(e.where(is_near, difference / a, 0.0)), log_of(x / a))


def scaled_slope(a: e.Expression, x: e.Expression) -> tuple[e.Expression, e.Expression]:
    """The derivative of ``P(a, x)`` in ``a``, over the second result, ``x**a exp(-x) / gamma(a)``.

    With ``t = x exp(y)`` beyond ``x``, with ``t = x exp(-y)`` below, where one term of
    ``P(a, x) = P(a + 1, x) + x**a exp(-x) / gamma(a + 1)`` is taken out so that the rest decays.
    Gauss's rule in ``y``, up to where the density has vanished.
    """
    n_nodes, drop = _RULES[a.digits]
    nodes, weights = unit_legendre(n_nodes)
    rise = _log_ratio(x, a + 1.0) + 0.5 / (a + 1.0) - e.apply(binet_slope, a + 1.0)
    is_above = rise > 0.0  # log(x) - digamma(a + 1)
    shape = e.where(is_above, a, a + 1.0)
    sign = e.where(is_above, a * 0.0 + 1.0, -1.0)
    height = e.where(is_above, rise + 1.0 / a, -rise)
    # The exponent is convex, and starts with this slope; the curvature is x exp(sign y).
    steep = sign * (x - shape)
    share = drop / x
    beyond = e.minimum(e.sqrt(2.0 * share), log1p_of(share + log1p_of(share) + 1.0))
    below = (drop + e.sqrt(drop * drop + 8.0 * drop * x)) / (2.0 * x)
    length = e.minimum(drop / steep, e.where(is_above, beyond, below))
    y = e.spread(length) * nodes
    signed = e.spread(sign) * y
    weight = e.exp(e.spread(shape) * signed - e.spread(x) * e.expm1(signed))
    integral = e.total(weight * (e.spread(height) + y) * weights) * length
    scaled = e.where(is_above, integral, (integral * x + height) / a)
    kernel = e.exp(-e.apply(deviance, a, x) - e.apply(binet, a)) * e.sqrt(a) / _SQRT_2PI
    return -scaled, kernel


def slope_in_shape(a: e.Expression, x: e.Expression) -> e.Expression:
    """The derivative of ``P(a, x)`` in ``a``."""
    scaled, kernel = scaled_slope(a, x)
    is_inside = (x > 0.0) & (a > 0.0) & (x < math.inf) & (a < math.inf)
    # Where nothing is left of the density, or at an end, the derivative is 0.
    gone = e.where(is_inside, 0.0, e.where((a > 0.0) & (x > -1e-300), 0.0 * a, math.nan))
    return e.where(is_inside & (kernel > 0.0), scaled * kernel, gone)


gammainc_da = Written(
    "gammainc_da",
    slope_in_shape,
    undefined("the derivative of gammainc in a", "a"),
    lambda a, x, y: gamma_density(a, x) * (log.bind(x) - digamma.bind(a)),
)
gamma_slope_in_shape = gammainc_da.bind


# -------------------------------------------------------------------------- the shapes of betainc


def _beta_slope(place: int) -> Written:
    name, shape = (("betainc_da", "a"), ("betainc_db", "b"))[place]

    def in_x(a: Value, b: Value, x: Value, y: Value) -> Value:
        logarithm = log1p.bind(-x) if place else log.bind(x)
        own = digamma.bind(b if place else a)
        return beta_density(a, b, x) * (logarithm - own + digamma.bind(a + b))

    what = f"the derivative of betainc in {shape}"
    formula = incomplete_beta.slope_in_shape(place)
    return Written(name, formula, undefined(what, "a"), undefined(what, "b"), in_x)


betainc_da, betainc_db = _beta_slope(0), _beta_slope(1)
"""Derivatives of the regularised incomplete beta function in its shapes."""
beta_slope_in_a, beta_slope_in_b = betainc_da.bind, betainc_db.bind
