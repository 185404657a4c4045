"""Derivatives of gamma-distributed numbers in the parameter of their distribution.

A sample ``x`` is a function of the parameter ``a`` at a fixed probability ``P(a, x)``, whatever
algorithm drew it: by the implicit function theorem ``dx/da = -(dP/da) / (dP/dx)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.primitive import Value
from funcgrad.errors import MissingRuleError
from funcgrad.primitives.elementwise import Smooth, exp, log, zero_of
from funcgrad.primitives.gamma_functions import digamma, lgamma
from funcgrad.primitives.special import derivatives_of_incomplete


def _log_slope(a: Any, logarithm: Any) -> Any:
    """Derivative of the logarithm of a sample, in double precision."""
    a, logarithm = (np.asarray(v, np.float64) for v in (a, logarithm))
    with np.errstate(all="ignore"):
        x = np.exp(logarithm)
        log_density = a * logarithm - x - lgamma.function(a)  # of the logarithm
        whole = -derivatives_of_incomplete().gammainc_da.function(a, x) * np.exp(-log_density)
        # Where x is negligible beside 1, P(a, x) is x**a / gamma(a + 1).
        small = (digamma.function(a + 1) - logarithm) / a
    return np.where(logarithm < -36.0, small, whole)


def _of_logarithm(a: Any, logarithm: Any) -> Any:
    return _log_slope(a, logarithm).astype(np.asarray(logarithm).dtype)[()]


def _of_sample(a: Any, x: Any) -> Any:
    with np.errstate(all="ignore"):
        slope = _log_slope(a, np.log(np.asarray(x, np.float64))) * x
    return np.where(np.asarray(x) == 0, 0, slope).astype(np.asarray(x).dtype)[()]


def _undefined(*args: Any) -> Value:
    raise MissingRuleError(
        "the derivative of a gamma-distributed number has no derivative with respect to the "
        "parameter: samples are differentiable once. Wrap the parameter in funcgrad.stop_gradient."
    )


def _row(name: str, function: Any, *partials: Any) -> Smooth:
    return Smooth(name, function, partials, f"{name}({{0}}, {{1}})", kinds="f", code_kinds="")


gamma_slope = _row(
    "gamma_slope",
    _of_sample,
    _undefined,
    lambda a, x, y: digamma.bind(a) - log.bind(x) - y * ((a - 1) / x - 1),
)
"""``dx/da`` of a gamma-distributed number ``x``, of ``(a, x)``."""

log_gamma_slope = _row(
    "log_gamma_slope",
    _of_logarithm,
    _undefined,
    lambda a, x, y: digamma.bind(a) - x - y * (a - exp.bind(x)),
)
"""The same of its logarithm."""

gamma_sample = _row(
    "gamma_sample",
    lambda a, x: np.broadcast_to(x, np.broadcast_shapes(np.shape(a), np.shape(x)))[()],
    lambda a, x, y: gamma_slope.bind(a, y),
    lambda a, x, y: zero_of(y),
)
"""A sample ``x`` of ``(a, x)``, as a function of its parameter ``a`` alone."""

log_gamma_sample = _row(
    "log_gamma_sample",
    gamma_sample.function,
    lambda a, x, y: log_gamma_slope.bind(a, y),
    lambda a, x, y: zero_of(y),
)
"""The same of its logarithm."""
