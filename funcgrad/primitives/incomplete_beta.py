"""Derivatives of the incomplete beta function in its shapes, as formulas.

The distributions need them: beta, binomial, Fisher's F, Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from funcgrad.primitives import expressions as e
from funcgrad.primitives.deviance import binet, binet_slope, deviance

_MOST_TERMS = 100_000.0
"""Enough for parameters of 10**9, for which terms are of a size over some thousands of them."""

_LEAST = {64: 1e-18, 32: 1e-12}
"""By digits of the result, the size of the first term that is left out."""


def _series(
    a: e.Expression, b: e.Expression, x: e.Expression
) -> tuple[e.Expression, e.Expression, e.Expression]:
    """Terms of ``x**a (1-x)**b / (a B(a, b)) * sum(t_n)`` (DLMF 8.17.8), all of them positive.

    Returns: The sums of ``t_n``, of ``t_n * dlog(t_n)/da`` and of ``t_n * dlog(t_n)/db``, of
        ``t_n = x**n (a+b)_n / (a+1)_n``.
    """

    def is_open(*state: e.Expression) -> e.Expression:
        a, b, x, n, term, _, slope_b, total, *_ = state
        up, down = a + b + (n - 1.0), a + n
        is_left = term * (1.0 + slope_b) > _LEAST[a.digits] * total
        return (is_left | (x * up > 0.999 * down)) & (n < _MOST_TERMS)

    def step(*state: e.Expression) -> tuple[e.Expression, ...]:
        a, b, x, n, term, slope_a, slope_b, total, by_a, by_b = state
        up, down = a + b + n, a + 1.0 + n
        term = term * (x * up / down)
        # 1 / up - 1 / down, without cancellation.
        slope_a, slope_b = slope_a + (1.0 - b) / (up * down), slope_b + 1.0 / up
        sums = total + term, by_a + term * slope_a, by_b + term * slope_b
        return a, b, x, n + 1.0, term, slope_a, slope_b, *sums

    zero = a * 0.0
    one = zero + 1.0
    *_, total, by_a, by_b = e.repeated(
        is_open, step, a, b, x, zero, one, zero, zero, one, zero, zero
    )
    return total, by_a, by_b


def _slope(
    a: e.Expression, b: e.Expression, x: e.Expression, rest: e.Expression
) -> tuple[e.Expression, tuple[e.Expression, e.Expression]]:
    """The function where ``x`` is below the mean, and derivatives of its logarithm in shapes."""
    total, by_a, by_b = _series(a, b, x)
    n = a + b
    away = e.apply(deviance, a, n * x) + e.apply(deviance, b, n * rest)
    stirling = e.apply(binet, n) - e.apply(binet, a) - e.apply(binet, b)
    front = e.exp(stirling - away) * e.sqrt(a * (b / n) / (2.0 * math.pi)) / a
    in_a = e.log(n * x / a) + _log_less_digamma(a) - _log_less_digamma(n) - 1.0 / a
    in_b = e.log(n * rest / b) + _log_less_digamma(b) - _log_less_digamma(n)
    return front * total, (in_a + by_a / total, in_b + by_b / total)


def _log_less_digamma(a: e.Expression) -> e.Expression:
    return 0.5 / a - e.apply(binet_slope, a)


def slope_in_shape(place: int, is_below: bool | None = None) -> e.Formula:
    """The formula of the derivative in the parameter of a place, 0 or 1, at ``(a, b, x)``.

    Args:
        place: The place.
        is_below: Whose derivative it is: that of the function itself (``None``), or of the
            logarithm of it, or of its complement (``False``).
    """

    def formula(a: e.Expression, b: e.Expression, x: e.Expression) -> e.Expression:
        is_valid = (x >= 0.0) & (x <= 1.0) & (a > 0.0) & (b > 0.0)
        is_inside = (x > 0.0) & (x < 1.0) & is_valid & (a + b < math.inf)
        own, other, y = (
            e.where(is_inside, v, inner) for v, inner in ((a, 1.0), (b, 1.0), (x, 0.5))
        )
        is_exchanged = y > (own + 1.0) / (own + other + 2.0)
        exchange = _exchanged(is_exchanged)
        value, slopes = _slope(*exchange(own, other), *exchange(y, 1.0 - y))
        slope = exchange(*slopes)[place]
        if is_below is None:
            found = e.where(is_exchanged, -value * slope, value * slope)
        else:  # the other one is the larger of the two
            rest = -value * slope / (1.0 - value)
            found = (
                e.where(is_exchanged, rest, slope)
                if is_below
                else e.where(is_exchanged, slope, rest)
            )
        return e.where(is_inside, found, e.where(is_valid, x * 0.0, math.nan))

    return formula


def _exchanged(
    condition: e.Expression,
) -> Callable[[e.Expression, e.Expression], tuple[e.Expression, e.Expression]]:
    """Two values, in the other order where a condition holds."""
    return lambda p, q: (e.where(condition, q, p), e.where(condition, p, q))
