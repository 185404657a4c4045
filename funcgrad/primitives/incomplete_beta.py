"""Derivatives of the incomplete beta function in its shapes, as numbers.

The distributions need them: beta, binomial, Fisher's F, Student's t.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from funcgrad.primitives.deviance import binet, binet_slope, deviance

_MOST_TERMS = 100_000
"""Enough for parameters of 10**9, for which terms are of a size over some thousands of them."""


def _series(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """Terms of ``x**a (1-x)**b / (a B(a, b)) * sum(t_n)`` (DLMF 8.17.8), all of them positive.

    Returns:
        The sums of ``t_n``, of ``t_n * dlog(t_n)/da`` and of ``t_n * dlog(t_n)/db``, of
        ``t_n = x**n (a+b)_n / (a+1)_n``.
    """
    term = np.ones_like(a)
    total, by_a, by_b = np.ones_like(a), np.zeros_like(a), np.zeros_like(a)
    slope_a, slope_b = np.zeros_like(a), np.zeros_like(a)
    n, active = 0, np.arange(a.size)
    while active.size and n < _MOST_TERMS:
        up, down = a[active] + b[active] + n, a[active] + 1 + n
        term[active] *= x[active] * up / down
        slope_b[active] += 1 / up
        # 1 / up - 1 / down, without cancellation.
        slope_a[active] += (1 - b[active]) / (up * down)
        part = term[active]
        total[active] += part
        by_a[active] += part * slope_a[active]
        by_b[active] += part * slope_b[active]
        n += 1
        is_left = part * (1 + slope_b[active]) > 1e-18 * total[active]
        active = active[is_left | (x[active] * up > 0.999 * down)]
    return total, by_a, by_b


def _slope(a: Any, b: Any, x: Any, rest: Any) -> tuple[Any, tuple[Any, Any]]:
    """The function where ``x`` is below the mean, and derivatives of its logarithm in shapes."""
    total, by_a, by_b = _series(a, b, x)
    n = a + b
    away = deviance.function(a, n * x) + deviance.function(b, n * rest)
    stirling = binet.function(n) - binet.function(a) - binet.function(b)
    front = np.exp(stirling - away) * np.sqrt(a * (b / n) / (2 * np.pi)) / a
    in_a = np.log(n * x / a) + _log_less_digamma(a) - _log_less_digamma(n) - 1 / a
    in_b = np.log(n * rest / b) + _log_less_digamma(b) - _log_less_digamma(n)
    return front * total, (in_a + by_a / total, in_b + by_b / total)


def _log_less_digamma(a: Any) -> Any:
    return 0.5 / a - binet_slope.function(a)


def _in_parameter(place: int, a: Any, b: Any, x: Any, of: bool | None = None) -> Any:
    """Derivative in the parameter of that place.

    Args:
        place: 0 or 1.
        a: The first parameter.
        b: The second parameter.
        x: Where it is evaluated.
        of: Of the function itself, or of the logarithm of it (``True``), of its complement.
    """
    dtype = np.asarray(x).dtype
    a, b, x = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, x)))
    out = np.where((x >= 0) & (x <= 1) & (a > 0) & (b > 0), 0.0, np.nan)
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0) & np.isfinite(a + b)
    is_low = inside & (x <= (a + 1) / (a + b + 2))
    for is_here, is_turned in ((is_low, False), (inside & ~is_low, True)):
        own, rest = x[is_here], 1 - x[is_here]
        shapes = (a[is_here], b[is_here])
        if is_turned:
            value, slopes = _slope(*shapes[::-1], rest, own)
        else:
            value, slopes = _slope(*shapes, own, rest)
        slope = slopes[place ^ is_turned]
        if of is None:
            slope = -value * slope if is_turned else value * slope
        elif of is is_turned:  # the larger of the two
            slope = -value * slope / (1 - value)
        out[is_here] = slope
    return out.astype(dtype)[()]


in_a, in_b = functools.partial(_in_parameter, 0), functools.partial(_in_parameter, 1)
"""Derivatives of the regularised incomplete beta function of ``(a, b, x)`` in ``a``, in ``b``."""


def log_slope(is_below: bool, place: int, a: Any, b: Any, x: Any) -> Any:
    """Derivative of its logarithm, or of that of its complement, in the parameter of a place."""
    return _in_parameter(place, a, b, x, is_below)
