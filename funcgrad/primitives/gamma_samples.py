"""Derivatives of gamma-distributed numbers in the parameter of their distribution.

A sample ``x`` is a function of the parameter ``a`` at a fixed probability ``P(a, x)``, whatever
algorithm drew it: by the implicit function theorem ``dx/da = -(dP/da) / (dP/dx)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.primitive import Value
from funcgrad.errors import MissingRuleError
from funcgrad.primitives import expressions as e
from funcgrad.primitives.elementwise import Derivative, Smooth, equal, exp, log, zero_of
from funcgrad.primitives.expressions import Expression
from funcgrad.primitives.gamma_functions import digamma, lgamma
from funcgrad.primitives.special import derivatives_of_incomplete
from funcgrad.primitives.special_rows import Written


def _log_slope(a: Expression, logarithm: Expression) -> Expression:
    """Derivative of the logarithm of a sample."""
    x = e.exp(logarithm)
    log_density = a * logarithm - x - e.apply(lgamma, a)  # of the logarithm
    whole = -derivatives_of_incomplete().slope_in_shape(a, x) * e.exp(-log_density)
    # Where x is negligible beside 1, P(a, x) is x**a / gamma(a + 1).
    small = (e.apply(digamma, a + 1.0) - logarithm) / a
    return e.where(logarithm < -36.0, small, whole)


def _slope(a: Expression, x: Expression) -> Expression:
    return e.where(e.apply(equal, x, 0.0), 0.0, _log_slope(a, e.log(x)) * x)


def _undefined(*args: Any) -> Value:
    raise MissingRuleError(
        "the derivative of a gamma-distributed number has no derivative with respect to the "
        "parameter: samples are differentiable once. Wrap the parameter in funcgrad.stop_gradient."
    )


gamma_slope = Written(
    "gamma_slope",
    _slope,
    _undefined,
    lambda a, x, y: digamma.bind(a) - log.bind(x) - y * ((a - 1) / x - 1),
)
"""``dx/da`` of a gamma-distributed number ``x``, of ``(a, x)``."""

log_gamma_slope = Written(
    "log_gamma_slope",
    _log_slope,
    _undefined,
    lambda a, x, y: digamma.bind(a) - x - y * (a - exp.bind(x)),
)
"""The same of its logarithm."""


def _sample(name: str, slope: Derivative) -> Smooth:
    return Smooth(
        name,
        lambda a, x: np.broadcast_to(x, np.broadcast_shapes(np.shape(a), np.shape(x)))[()],
        [lambda a, x, y: slope(a, y), lambda a, x, y: zero_of(y)],
        "{1}",
        kinds="f",
    )


gamma_sample = _sample("gamma_sample", gamma_slope.bind)
"""A sample ``x`` of ``(a, x)``, as a function of its parameter ``a`` alone."""

log_gamma_sample = _sample("log_gamma_sample", log_gamma_slope.bind)
"""The same of its logarithm."""
