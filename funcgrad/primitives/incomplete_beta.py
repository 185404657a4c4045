"""The incomplete beta function and its inverse with derivatives in all arguments.

What distributions are made of: beta, binomial, Fisher's F, Student's t. Values are SciPy's.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from funcgrad.core.primitive import Value
from funcgrad.errors import MissingRuleError
from funcgrad.primitives.elementwise import Smooth, exp, log, log1p
from funcgrad.primitives.families import UfuncFunction
from funcgrad.primitives.special import betaln, digamma, xlog1py, xlogy

_MOST_TERMS = 100_000
"""Enough for parameters of 10**9, for which terms are of a size over some thousands of them."""


def _of_scipy(ufunc: str) -> UfuncFunction:
    return UfuncFunction("scipy.special._ufuncs", ufunc)


_betainc = _of_scipy("betainc")


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


def _slope(a: Any, b: Any, x: Any, rest: Any) -> tuple[Any, Any]:
    """Derivatives in ``a`` and in ``b`` where ``x`` is below the mean."""
    total, by_a, by_b = _series(a, b, x)
    logs = a * np.log(x) + b * np.log(rest) - betaln.function(a, b)
    front = np.exp(logs) / a
    digamma_sum = digamma.function(a + b)
    in_a = np.log(x) - 1 / a - digamma.function(a) + digamma_sum
    in_b = np.log(rest) - digamma.function(b) + digamma_sum
    return front * (in_a * total + by_a), front * (in_b * total + by_b)


def _in_parameter(place: int, a: Any, b: Any, x: Any) -> Any:
    """Derivative in the parameter of that place."""
    dtype = np.asarray(x).dtype
    a, b, x = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, x)))
    out = np.where((x >= 0) & (x <= 1) & (a > 0) & (b > 0), 0.0, np.nan)
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0) & np.isfinite(a + b)
    is_low = inside & (x <= (a + 1) / (a + b + 2))
    is_high = inside & ~is_low
    out[is_low] = _slope(a[is_low], b[is_low], x[is_low], 1 - x[is_low])[place]
    out[is_high] = -_slope(b[is_high], a[is_high], 1 - x[is_high], x[is_high])[1 - place]
    return out.astype(dtype)[()]


def _undefined(argument: str) -> Any:
    def partial(*args: Any) -> Value:
        raise MissingRuleError(
            f"the derivative of the incomplete beta function in a parameter has no derivative with "
            f"respect to {argument}. Wrap that argument in funcgrad.stop_gradient, or give the "
            "enclosing function its own rule with funcgrad.custom_jvp."
        )

    return partial


def _density(a: Value, b: Value, x: Value) -> Value:
    return exp.bind(xlogy.bind(a - 1, x) + xlog1py.bind(b - 1, -x) - betaln.bind(a, b))


def _slope_row(name: str, place: int) -> Smooth:
    def in_x(a: Value, b: Value, x: Value, y: Value) -> Value:
        logarithm = log1p.bind(-x) if place else log.bind(x)
        own = digamma.bind(b if place else a)
        return _density(a, b, x) * (logarithm - own + digamma.bind(a + b))

    return Smooth(
        name,
        functools.partial(_in_parameter, place),
        [_undefined("a"), _undefined("b"), in_x],
        f"{name}({{0}}, {{1}}, {{2}})",
        kinds="f",
        code_kinds="",
    )


betainc_da, betainc_db = _slope_row("betainc_da", 0), _slope_row("betainc_db", 1)
"""Derivatives of the regularised incomplete beta function in its parameters."""

beta_below = Smooth(
    "beta_below",
    _betainc,
    [
        lambda a, b, x, y: betainc_da.bind(a, b, x),
        lambda a, b, x, y: betainc_db.bind(a, b, x),
        lambda a, b, x, y: _density(a, b, x),
    ],
    "beta_below({0}, {1}, {2})",
    kinds="f",
    code_kinds="",
)
"""The regularised incomplete beta function of ``(a, b, x)``."""

beta_above = Smooth(
    "beta_above",
    _of_scipy("betaincc"),
    [
        lambda a, b, x, y: -betainc_da.bind(a, b, x),
        lambda a, b, x, y: -betainc_db.bind(a, b, x),
        lambda a, b, x, y: -_density(a, b, x),
    ],
    "beta_above({0}, {1}, {2})",
    kinds="f",
    code_kinds="",
)
"""``1 - beta_below``, accurate where that is small."""

beta_quantile = Smooth(
    "beta_quantile",
    _of_scipy("betaincinv"),
    [
        lambda a, b, q, x: -betainc_da.bind(a, b, x) / _density(a, b, x),
        lambda a, b, q, x: -betainc_db.bind(a, b, x) / _density(a, b, x),
        lambda a, b, q, x: 1 / _density(a, b, x),
    ],
    "beta_quantile({0}, {1}, {2})",
    kinds="f",
    code_kinds="",
)
"""The inverse of `beta_below` in ``x``."""

beta_quantile_above = Smooth(
    "beta_quantile_above",
    _of_scipy("betainccinv"),
    [
        lambda a, b, q, x: -betainc_da.bind(a, b, x) / _density(a, b, x),
        lambda a, b, q, x: -betainc_db.bind(a, b, x) / _density(a, b, x),
        lambda a, b, q, x: -1 / _density(a, b, x),
    ],
    "beta_quantile_above({0}, {1}, {2})",
    kinds="f",
    code_kinds="",
)
"""The inverse of `beta_above` in ``x``."""
