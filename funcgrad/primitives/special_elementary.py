"""Special functions with derivatives in elementary terms: powers, integrals, angles, losses.

Formulas are those of the Digital Library of Mathematical Functions (dlmf.nist.gov), whose sections
are named.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import real_dtype
from funcgrad.lowering import Array, Routine, UfuncCall
from funcgrad.primitives.elementwise import (
    Smooth,
    absolute,
    convert,
    cos,
    cosh,
    equal,
    exp,
    from_parts,
    imag,
    log,
    log1p,
    maximum,
    minimum,
    ones_like,
    power,
    select,
    sin,
    sinh,
    sqrt,
    zero_of,
)
from funcgrad.primitives.families import UfuncFunction, zero_jvp
from funcgrad.primitives.gamma_functions import digamma, xlogy
from funcgrad.primitives.quotients import quotient
from funcgrad.primitives.special_rows import MODULE, Special, SpecialParts, table

_SQRT_PI = math.sqrt(math.pi)
_SQRT_2PI = math.sqrt(2 * math.pi)
_DEGREE = math.pi / 180


class Step(Special):
    """A function that is constant almost everywhere."""

    jvp = zero_jvp


# The gamma function, DLMF 5; zeta functions, DLMF 25.
loggamma = Special("loggamma", "x", lambda x, y: digamma.bind(x), kinds="fc")
gammasgn = Step("gammasgn", "x", None)
poch = Special(
    "poch",
    "z m",
    lambda a, m, y: y * (digamma.bind(a + m) - digamma.bind(a)),
    lambda a, m, y: y * digamma.bind(a + m),
)
zetac = Special("zetac", "x", None)
stirling = Special("_stirling2_inexact", "N K", None, None)
riemann_zeta = Special("_riemann_zeta", "x", None, kinds="fc")


# Powers and their inverses. Where the exponent is small Box and Cox's powers are logarithms:
# ``(x**p - 1) / p`` is ``log(x) exprel(p log(x))``.
def _power(x: Value, exponent: Value) -> Value:
    return exp.bind(xlogy.bind(exponent, x))


def _power_slope(logarithm: Value, p: Value) -> Value:
    """The derivative of Box and Cox's power in its exponent."""
    return logarithm * logarithm * quotient("expm1", 1).bind(p * logarithm)


boxcox = Special(
    "boxcox",
    "x lmbda",
    lambda x, p, y: _power(x, p - 1),
    lambda x, p, y: _power_slope(log.bind(x), p),
)
boxcox1p = Special(
    "boxcox1p",
    "x lmbda",
    lambda x, p, y: exp.bind((p - 1) * log1p.bind(x)),
    lambda x, p, y: _power_slope(log1p.bind(x), p),
)
inv_boxcox = Special(
    "inv_boxcox",
    "y lmbda",
    lambda y, p, x: _power(x, 1 - p),
    lambda y, p, x: -_power_slope(log.bind(x), p) * _power(x, 1 - p),
)
inv_boxcox1p = Special(
    "inv_boxcox1p",
    "y lmbda",
    lambda y, p, x: exp.bind((1 - p) * log1p.bind(x)),
    lambda y, p, x: -_power_slope(log1p.bind(x), p) * exp.bind((1 - p) * log1p.bind(x)),
)
powm1 = Special(
    "powm1", "x y", lambda x, p, y: p * power.bind(x, p - 1), lambda x, p, y: (y + 1) * log.bind(x)
)


# Error functions of complex numbers, DLMF 7.
erfi = Special("erfi", "z", lambda z, y: (2 / _SQRT_PI) * exp.bind(z * z), kinds="fc")
wofz = Special(
    "wofz", "z", lambda z, y: (2 / _SQRT_PI) * aval_of(z).dtype.type(1j) - 2 * z * y, kinds="c"
)


def _dispersion(x: Value, sigma: Value, gamma: Value) -> Value:
    """The imaginary part that belongs to Voigt's profile."""
    z = from_parts.bind(x, gamma)
    scale = convert(math.sqrt(2) * sigma, aval_of(z).dtype)
    return imag.bind(wofz.bind(z / scale)) / (_SQRT_2PI * sigma)


def _voigt_dx(x: Value, s: Value, g: Value, y: Value) -> Value:
    return (g * _dispersion(x, s, g) - x * y) / (s * s)


def _voigt_dg(x: Value, s: Value, g: Value, y: Value) -> Value:
    return (x * _dispersion(x, s, g) + g * y - 1 / math.pi) / (s * s)


voigt_profile = Special(
    "voigt_profile",
    "x sigma gamma",
    _voigt_dx,
    # It is homogeneous of degree -1 in all three.
    lambda x, s, g, y: -(y + x * _voigt_dx(x, s, g, y) + g * _voigt_dg(x, s, g, y)) / s,
    _voigt_dg,
)


# Integrals, DLMF 6 to 8.
def _expn_slope(n: Value, x: Value, y: Value) -> Value:
    """``-E(n - 1)``; for ``n = 0`` that of ``exp(-x) / x``."""
    is_zero = equal.bind(n, zero_of(n))
    one = aval_of(n).dtype.type(1)
    below = expn.bind(select.bind(is_zero, ones_like(n), n) - one, x)
    return select.bind(is_zero, -y * (1 + 1 / x), -below)


expn: Special = Special("expn", "n x", None, _expn_slope, integers=1)


def _over_x(numerator: Value, x: Value) -> Value:
    """``numerator / x``, 1 at 0."""
    is_zero = equal.bind(x, zero_of(x))
    apart = select.bind(is_zero, ones_like(x), x)
    return select.bind(is_zero, ones_like(x), numerator / apart)


sici = SpecialParts(
    "sici", "x", "si ci",
    lambda x, outs: [lambda: (_over_x(sin.bind(x), x), cos.bind(x) / x)],
    kinds="fc",
)  # fmt: skip
shichi = SpecialParts(
    "shichi", "x", "shi chi",
    lambda x, outs: [lambda: (_over_x(sinh.bind(x), x), cosh.bind(x) / x)],
    kinds="fc",
)  # fmt: skip
fresnel = SpecialParts(
    "fresnel", "x", "s c",
    lambda z, outs: [
        lambda: (sin.bind((math.pi / 2) * z * z), cos.bind((math.pi / 2) * z * z))
    ],
    kinds="fc",
)  # fmt: skip


# Lambert's function, DLMF 4.13, and Wright's.
class LambertW(Smooth):
    """The solution of ``w exp(w) = z`` on branch ``k``."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.ufunc = UfuncFunction(MODULE, "_lambertw")
        partials = [lambda k, z, w: zero_of(z), lambda k, z, w: exp.bind(-w) / (1 + w)]
        options: dict[str, Any] = {"kinds": "c", "code_kinds": "", "mixed": True}
        super().__init__("lambertw", self._evaluate, partials, "lambertw({0}, {1})", **options)

    def _evaluate(self, k: Any, z: Any) -> Any:
        return self.ufunc(z, k, real_dtype(aval_of(z).dtype).type(self.tolerance))

    def lower(self, *avals: ShapedArray) -> Any:
        k, z = avals
        shape = np.broadcast_shapes(k.shape, z.shape)
        tolerance = Array((), real_dtype(z.dtype), value=self.tolerance)
        arrays = (Array(shape, k.dtype), Array(shape, z.dtype), Array(shape), tolerance)
        call = UfuncCall(MODULE, ("_lambertw",), (1, 0, 3, 2))
        return Routine(arrays, (2,), (call,), len(shape))


wrightomega = Special("wrightomega", "z", lambda z, w: w / (1 + w), kinds="fc")
wright_bessel: Special = Special(
    "wright_bessel", "a b x", None, None, lambda a, b, x, y: wright_bessel.bind(a, a + b, x)
)
log_wright_bessel: Special = Special(
    "log_wright_bessel", "a b x", None, None,
    lambda a, b, x, y: exp.bind(log_wright_bessel.bind(a, a + b, x) - y),
)  # fmt: skip


# Angles in degrees.
sindg: Special = Special("sindg", "x", lambda x, y: _DEGREE * cosdg.bind(x))
cosdg: Special = Special("cosdg", "x", lambda x, y: -_DEGREE * sindg.bind(x))
tandg = Special("tandg", "x", lambda x, y: _DEGREE * (1 + y * y))
cotdg = Special("cotdg", "x", lambda x, y: -_DEGREE * (1 + y * y))
radian = Special(
    "radian",
    "d m s",
    lambda d, m, s, y: _DEGREE * ones_like(d),
    lambda d, m, s, y: _DEGREE / 60 * ones_like(d),
    lambda d, m, s, y: _DEGREE / 3600 * ones_like(d),
)
rounded = Step("round", "x", None)


# Losses.
def _root(delta: Value, r: Value) -> Value:
    u = r / delta
    return sqrt.bind(1 + u * u)


huber = Special(
    "huber",
    "delta r",
    lambda delta, r, y: maximum.bind(absolute.bind(r) - delta, zero_of(r)),
    lambda delta, r, y: maximum.bind(-delta, minimum.bind(r, delta)),
)
pseudo_huber = Special(
    "pseudo_huber",
    "delta r",
    lambda d, r, y: y * (r / d) * (r / d) / (d * _root(d, r) * (1 + _root(d, r))),
    lambda d, r, y: r / _root(d, r),
)

TABLE = table(
    loggamma, gammasgn, poch, zetac, stirling, riemann_zeta, boxcox, boxcox1p, inv_boxcox,
    inv_boxcox1p, powm1, erfi, wofz, voigt_profile, expn, sici, shichi, fresnel, wrightomega,
    wright_bessel, log_wright_bessel, sindg, cosdg, tandg, cotdg, radian, rounded, huber,
    pseudo_huber,
)  # fmt: skip
"""Primitives by the names of SciPy's ufuncs."""
