"""Special functions: SciPy's values, closed-form derivatives.

One row per function: its name in `scipy.special`, its partial derivatives, and the scalar
expression of its kernel where there is one. Formulas are those of the Digital Library of
Mathematical Functions (dlmf.nist.gov), whose sections are named. SciPy is imported when the first
of them is evaluated, so that importing funcgrad does not pay for it.

The gamma function and what else the derivatives of these are made of is in `gamma_functions`; the
tables that few programs need are those of `special_tables`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive, Value
from funcgrad.dtypes import is_complex
from funcgrad.primitives.elementwise import (
    Derivative,
    Smooth,
    add,
    cbrt,
    exp,
    exp2,
    expm1,
    is_origin,
    log,
    log1p,
    logistic,
    sign,
    sin,
    sub,
    unscale,
)
from funcgrad.primitives.gamma_functions import (
    beta,
    betaln,
    binom,
    digamma,
    formula,
    gamma,
    lgamma,
    log_ratio,
    of_scipy,
    rgamma,
    scipy_row,
    xlog1py,
    xlogy,
    zeta,
)
from funcgrad.primitives.quotients import quotient

_SQRT_PI = math.sqrt(math.pi)
_SQRT_2PI = math.sqrt(2 * math.pi)
_LN10 = math.log(10.0)


# Error functions, DLMF 7.
erf = scipy_row(
    "erf", lambda x, y: (2 / _SQRT_PI) * exp.bind(-(x * x)), code="erf({0})", kinds="fc"
)
erfc = scipy_row(
    "erfc",
    lambda x, y: (-2 / _SQRT_PI) * exp.bind(-(x * x)),
    kinds="fc",
    parts=formula("erfc"),
)
erfcx = scipy_row(
    "erfcx", lambda x, y: 2 * x * y - 2 / _SQRT_PI, kinds="fc", parts=formula("erfcx")
)
dawsn = scipy_row("dawsn", lambda x, y: 1 - 2 * x * y, kinds="fc")
erfinv = scipy_row("erfinv", lambda x, y: (_SQRT_PI / 2) * exp.bind(y * y), parts=formula("erfinv"))
erfcinv = scipy_row(
    "erfcinv", lambda x, y: (-_SQRT_PI / 2) * exp.bind(y * y), parts=formula("erfcinv")
)
ndtr = scipy_row(
    "ndtr",
    lambda x, y: (1 / _SQRT_2PI) * exp.bind(-0.5 * x * x),
    kinds="fc",
    parts=formula("ndtr"),
)
ndtri = scipy_row("ndtri", lambda x, y: _SQRT_2PI * exp.bind(0.5 * y * y), parts=formula("ndtri"))


def _over_erfcx(x: Value) -> Value:
    """The quotient of the normal density and `ndtr`, both of which vanish far on the left."""
    return (2 / _SQRT_2PI) / erfcx.bind(-math.sqrt(0.5) * x)


def _normal_hazard(x: Any) -> Any:
    x = np.asarray(x)
    value = (2 / _SQRT_2PI) / erfcx.function(-math.sqrt(0.5) * x.astype(np.float64))
    return value.astype(x.dtype)[()]


normal_hazard = Smooth(
    "normal_hazard",
    _normal_hazard,
    [lambda x, y: -y * (x + y)],
    "normal_hazard({0})",
    kinds="f",
    code_kinds="",
    parts=formula("normal_hazard"),
)
log_ndtr = scipy_row(
    "log_ndtr",
    lambda x, y: (_over_erfcx if is_complex(aval_of(x).dtype) else normal_hazard.bind)(x),
    kinds="fc",
    parts=formula("log_ndtr"),
)


# Incomplete gamma and beta functions, DLMF 8.
def derivatives_of_incomplete() -> Any:
    """The module `incomplete`, which is loaded when a derivative is first taken."""
    return load("funcgrad.primitives.incomplete")


def _incomplete(name: str, sign: int = 1) -> Derivative:
    """A function of `incomplete`, of the arguments without the value."""

    def slope(*args: Value) -> Value:
        value = getattr(derivatives_of_incomplete(), name)(*args[:-1])
        return value if sign > 0 else -value

    return slope


def _incomplete_inverse(shape: str, density: str, sign: int = 1) -> Derivative:
    """The same of the inverse, by the implicit function: ``p`` is the last argument but one."""

    def slope(*args: Value) -> Value:
        module = derivatives_of_incomplete()
        *shapes, _, x = args
        below = getattr(module, density)(*shapes, x)
        above = -getattr(module, shape)(*shapes, x) if shape else sign
        return above / below

    return slope


gammainc = scipy_row("gammainc", _incomplete("gamma_slope_in_shape"), _incomplete("gamma_density"))
gammaincc = scipy_row(
    "gammaincc", _incomplete("gamma_slope_in_shape", -1), _incomplete("gamma_density", -1)
)
gammaincinv = scipy_row(
    "gammaincinv",
    _incomplete_inverse("gamma_slope_in_shape", "gamma_density"),
    _incomplete_inverse("", "gamma_density"),
)
gammainccinv = scipy_row(
    "gammainccinv",
    _incomplete_inverse("gamma_slope_in_shape", "gamma_density"),
    _incomplete_inverse("", "gamma_density", -1),
)
betainc = scipy_row(
    "betainc",
    _incomplete("beta_slope_in_a"),
    _incomplete("beta_slope_in_b"),
    _incomplete("beta_density"),
)

entr = scipy_row(
    "entr",
    lambda x, y: -log.bind(x) - 1,
    code="select({0} < 0, -1e999, select({0} == 0, 0.0, -{0} * log({0})))",
)


def _of_positive(code: str, at_zero: str) -> str:
    """The code of a function of positive numbers, infinite where one of them is negative.

    Args:
        code: Its code.
        at_zero: That for ``x = 0``.
    """
    is_zero = "bitwise_and({0} == 0, {1} >= 0)"
    is_nan = "bitwise_or(isnan({0}), isnan({1}))"
    edge = f"select({is_zero}, {at_zero}, select({is_nan}, {{0}} + {{1}}, 1e999))"
    return f"select(bitwise_and({{0}} > 0, {{1}} > 0), {code}, {edge})"


# The logarithm of a quotient, also where that is near 1, or too small or too large.
_QUOTIENT = "{0} / {1}"
_HAS_QUOTIENT = f"bitwise_and({_QUOTIENT} > 1e-30, {_QUOTIENT} < 1e30)"
_FAR_LOG = f"select({_HAS_QUOTIENT}, log({_QUOTIENT}), log({{0}}) - log({{1}}))"
_SHARE = "({0} - {1}) / {1}"
_LOG_RATIO = f"select(abs({_SHARE}) < 0.5, log1p({_SHARE}), {_FAR_LOG})"
# With v = (x - y) / (x + y), log(x / y) is 2 artanh(v): nothing cancels where v is small.
_V = "({0} - {1}) / ({0} + {1})"
_ARTANH = functools.reduce(
    lambda text, k: f"({text} * ({_V} * ({_V})) + {2 / (2 * k + 1)!r})", range(16, 0, -1), "0.0"
)
_NEAR_DIVERGENCE = f"({{0}} - {{1}}) * ({_V}) + {{0}} * ({_V}) * ({_V} * ({_V})) * {_ARTANH}"
_DIVERGENCE = f"select(abs({_V}) < 0.33, {_NEAR_DIVERGENCE}, {{0}} * {_FAR_LOG} - {{0}} + {{1}})"

# Where both arguments are 0 the event is excluded, and changes nothing.
rel_entr = scipy_row(
    "rel_entr",
    lambda x, y, out: log_ratio.bind(x, y) + 1,
    lambda x, y, out: -unscale.bind(x, y),
    code=_of_positive(f"{{0}} * {_LOG_RATIO}", "abs({0})"),
    level_at=is_origin,
)
kl_div = scipy_row(
    "kl_div",
    lambda x, y, out: log_ratio.bind(x, y),
    lambda x, y, out: 1 - unscale.bind(x, y),
    code=_of_positive(_DIVERGENCE, "{1}"),
    level_at=is_origin,
)
logit = scipy_row("logit", lambda x, y: 1 / (x * (1 - x)), parts=formula("logit"))
log_expit = scipy_row(
    "log_expit", lambda x, y: logistic.bind(-x), code="-(log1p(exp(-abs({0}))) - minimum({0}, 0))"
)


# Bessel functions of integer order, DLMF 10. Derivatives of those that are finite at 0 are made of
# the neighbouring orders (DLMF 10.6.1, 10.29.1), which needs no quotient by x.
@functools.lru_cache(1024)
def bessel_j(order: int) -> Smooth:
    """The Bessel function of the first kind of an integer order from 2 on."""
    return _of_order("jv", order, f"j{order}", lambda x, y: _mean(sub, _J, bessel_j, order, x))


@functools.lru_cache(1024)
def bessel_i(order: int) -> Smooth:
    """The modified Bessel function of the first kind of an integer order from 2 on."""
    return _of_order("iv", order, f"i{order}", lambda x, y: _mean(add, _I, bessel_i, order, x))


@functools.lru_cache(1024)
def bessel_ie(order: int) -> Smooth:
    """``exp(-|x|)`` times `bessel_i`."""

    def slope(x: Value, y: Value) -> Value:
        return _mean(add, _IE, bessel_ie, order, x) - sign.bind(x) * y

    return _of_order("ive", order, f"i{order}e", slope)


def _of_order(function: str, order: int, name: str, slope: Derivative) -> Smooth:
    evaluate = of_scipy(function, order, casts=True)
    counterpart = {"iv": "bessel_i", "ive": "bessel_ie"}.get(function)
    parts = formula(counterpart, order) if counterpart and order == _LAST_ORDER else None
    return Smooth(name, evaluate, [slope], f"{name}({{0}})", kinds="f", code_kinds="", parts=parts)


_LAST_ORDER = 2
"""Highest order of derivatives with formulas: those of others are made of them."""


def _mean(
    operation: Primitive,
    low: tuple[Primitive, ...],
    family: Callable[[int], Primitive],
    order: int,
    x: Value,
) -> Value:
    """Half the sum, or difference, of the functions of the orders below and above."""
    below, above = (low[n] if n < len(low) else family(n) for n in (order - 1, order + 1))
    return 0.5 * operation.bind(below.bind(x), above.bind(x))


i0 = scipy_row("i0", lambda x, y: i1.bind(x), parts=formula("bessel_i", 0))
i1: Smooth = scipy_row(
    "i1", lambda x, y: _mean(add, _I, bessel_i, 1, x), parts=formula("bessel_i", 1)
)
i0e = scipy_row("i0e", lambda x, y: i1e.bind(x) - sign.bind(x) * y, parts=formula("bessel_ie", 0))
i1e: Smooth = scipy_row(
    "i1e",
    lambda x, y: _mean(add, _IE, bessel_ie, 1, x) - sign.bind(x) * y,
    parts=formula("bessel_ie", 1),
)
k0 = scipy_row("k0", lambda x, y: -k1.bind(x))
k1: Smooth = scipy_row("k1", lambda x, y: -k0.bind(x) - y / x)
k0e = scipy_row("k0e", lambda x, y: y - k1e.bind(x))
k1e: Smooth = scipy_row("k1e", lambda x, y: y - k0e.bind(x) - y / x)
j0 = scipy_row("j0", lambda x, y: -j1.bind(x))
j1: Smooth = scipy_row("j1", lambda x, y: _mean(sub, _J, bessel_j, 1, x))
y0 = scipy_row("y0", lambda x, y: -y1.bind(x))
y1: Smooth = scipy_row("y1", lambda x, y: y0.bind(x) - y / x)
_I: tuple[Smooth, ...] = (i0, i1)
_IE: tuple[Smooth, ...] = (i0e, i1e)
_J: tuple[Smooth, ...] = (j0, j1)

# Exponential integrals, DLMF 6, and the dilogarithm, DLMF 25.12.
expi = scipy_row("expi", lambda x, y: exp.bind(x) / x, kinds="fc")
exp1 = scipy_row("exp1", lambda x, y: -exp.bind(-x) / x, kinds="fc")

spence = scipy_row(
    "spence", lambda x, y: -quotient("log1p").bind(x - 1), kinds="fc", parts=formula("spence")
)
exp10 = scipy_row("exp10", lambda x, y: _LN10 * y, code="pow(10.0, {0})")
cosm1 = scipy_row("cosm1", lambda x, y: -sin.bind(x))
exprel = scipy_row("exprel", lambda x, y: quotient("expm1", 1).bind(x))

SCIPY_UFUNCS: dict[str, Primitive] = {
    "expit": logistic,
    "gammaln": lgamma,
    "psi": digamma,
    "_zeta": zeta,
    "cbrt": cbrt,
    "exp2": exp2,
    "expm1": expm1,
    "log1p": log1p,
    **{
        p.name: p
        for p in (
            erf, erfc, erfcx, dawsn, erfinv, erfcinv, ndtr, ndtri, log_ndtr, gamma, rgamma, beta,
            betaln, binom, gammainc, gammaincc, gammaincinv, gammainccinv, betainc, xlogy, xlog1py,
            entr, rel_entr, kl_div, logit, log_expit, i0, i1, i0e, i1e, k0, k1, k0e, k1e, j0, j1,
            y0, y1, expi, exp1, spence, exp10, cosm1, exprel,
        )
    },
}  # fmt: skip
"""Primitives of this file by the names of the ufuncs of `scipy.special` that they evaluate."""
