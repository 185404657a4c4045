"""Elementary functions of densities, and logarithms that lose no digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import special as s
from funcgrad.primitives.deviance import binet, binet_slope, deviance
from funcgrad.primitives.log_incomplete import log_betainc as log_betainc_row
from funcgrad.primitives.log_incomplete import log_betaincc as log_betaincc_row
from funcgrad.primitives.log_incomplete import log_gammainc as log_gammainc_row
from funcgrad.primitives.log_incomplete import log_gammaincc as log_gammaincc_row
from funcgrad.primitives.special_distributions import betaincc as betaincc_row
from funcgrad.primitives.special_distributions import betainccinv, betaincinv

exp, log, log1p, expm1, sqrt, power = (
    f.bind for f in (p.exp, p.log, p.log1p, p.expm1, p.sqrt, p.power)
)
absolute, floor, ceil, sin, cos, tan, arctan2 = (
    f.bind for f in (p.absolute, p.floor, p.ceil, p.sin, p.cos, p.tan, p.arctan2)
)
minimum, maximum, stop_gradient = p.minimum.bind, p.maximum.bind, p.stop_gradient.bind
lgamma, digamma, gamma = s.lgamma.bind, s.digamma.bind, s.gamma.bind
gammainc, gammaincc = s.gammainc.bind, s.gammaincc.bind
log_gammainc, log_gammaincc = log_gammainc_row.bind, log_gammaincc_row.bind
betainc, betaincc = s.betainc.bind, betaincc_row.bind
log_betainc, log_betaincc = log_betainc_row.bind, log_betaincc_row.bind
beta_quantile_above = betainccinv.bind
ndtr, ndtri, log_ndtr, betaln = s.ndtr.bind, s.ndtri.bind, s.log_ndtr.bind, s.betaln.bind
xlogy, xlog1py = s.xlogy.bind, s.xlog1py.bind

LOG_2 = math.log(2)
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
EULER = 0.5772156649015328606


def select(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where the condition holds, else ``y``; one of them may be a number of Python."""
    if type(x) in (int, float):
        x = aval_of(y).dtype.type(x)
    if type(y) in (int, float):
        y = aval_of(x).dtype.type(y)
    return p.select.bind(condition, x, y)


def constant(value: float, like: Any) -> Any:
    """A number in the dtype of a value."""
    return aval_of(like).dtype.type(value)


TINY_LOG = -80.0
"""Logarithm of shares beside which 1 is infinite, in both precisions."""


def log_beta_quantile(a: Any, b: Any, q: Any) -> Any:
    """Logarithm of the quantile of a beta distribution where that is negligible beside 1 and b."""
    return (log(q) + log(a) + log_beta(a, b)) / a


def log_beta(a: Any, b: Any) -> Any:
    """Logarithm of the beta function, of which nothing cancels where parameters are large."""
    low, high = minimum(a, b), maximum(a, b)
    n = low + high
    stirling = binet.bind(low) + binet.bind(high) - binet.bind(n)
    powers = low * log(low / n) - 0.5 * log(low) + (high - 0.5) * log1p(-low / n)
    return HALF_LOG_2PI + stirling + powers


def beta_quantile(a: Any, b: Any, q: Any) -> Any:
    """The quantile of a beta distribution; SciPy's is never below the least normal number."""
    logs = log_beta_quantile(a, b, q)
    return select(logs + log1p(b) < TINY_LOG, exp(logs), betaincinv.bind(a, b, q))


def where_defined(condition: Any, x: Any, otherwise: float = math.nan) -> Any:
    """A moment where it exists, and what it is called elsewhere."""
    return select(condition, x, otherwise)


def log1p_square(x: Any) -> Any:
    """``log(1 + x**2)``, whose square does not overflow."""
    limit = 1e8 if aval_of(x).dtype.itemsize == 8 else 1e4
    size = absolute(x)
    return select(size < limit, log1p(x * x), 2 * log(size))


def log1mexp(x: Any) -> Any:
    """``log(1 - exp(x))`` for negative ``x``."""
    return select(x > -LOG_2, log(-expm1(x)), log1p(-exp(x)))


def logaddexp(x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))``."""
    return maximum(x, y) + log1p(exp(-absolute(x - y)))


def log_of(probability: Any, complement: Any) -> Any:
    """Logarithm of a probability, by its complement where that is the smaller one."""
    return select(probability < 0.5, log(probability), log1p(-complement))


def log_beta_kernel(x: Any, rest: Any, a: Any, b: Any) -> Any:
    """``log(x**a * rest**b / beta(a, b))`` where ``x + rest`` is 1."""
    n = a + b
    spread = 0.5 * (log(a) + log(b / n)) - HALF_LOG_2PI
    stirling = binet.bind(n) - binet.bind(a) - binet.bind(b)
    return spread + stirling - deviance.bind(a, n * x) - deviance.bind(b, n * rest)


def log_gamma_kernel(x: Any, a: Any) -> Any:
    """``log(x**a * exp(-x) / gamma(a))``."""
    return 0.5 * log(a) - HALF_LOG_2PI - binet.bind(a) - deviance.bind(a, x)


def digamma_minus_log(a: Any) -> Any:
    """``digamma(a) - log(a)``, accurate for large ``a``."""
    return binet_slope.bind(a) - 0.5 / a


def is_infinite(bound: Any) -> bool:
    """Whether an end of a support is known to be infinite."""
    return isinstance(bound, float) and not np.isfinite(bound)
