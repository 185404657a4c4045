"""Elementary functions as branch-free formulas that vectorise.

Every function takes and gives scalars of one float type (32 or 64 bits) with Python's operators and
the methods of `compiler.emission.Emitted`; LLVM turns a loop around it into vector code, because it
holds selections instead of branches. All are right for signed zeros, subnormals, infinities and
NaN. Polynomials are Chebyshev fits of the remainder after the exact leading terms; their errors
stay below 0.15 units in the last place, and rounding does the rest. Bounds are asserted by
`tests/compiler/test_vecmath.py`.

This file knows arithmetic only. Functions that are not here are libm's (`compiler.elementary`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

INF = math.inf
NAN = math.nan

_MANTISSA = {32: 23, 64: 52}
_BIAS = {32: 127, 64: 1023}
# Adding and subtracting 1.5 * 2**mantissa rounds to an integer, whose value the low bits then hold.
_ROUNDER = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}
_PATTERN = {
    32: (struct.Struct("<f"), struct.Struct("<i")),
    64: (struct.Struct("<d"), struct.Struct("<q")),
}


def pattern(number: float, width: int) -> int:
    """The bit pattern of a float as a signed integer."""
    floating, integer = _PATTERN[width]
    return int(integer.unpack(floating.pack(number))[0])


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Horner's rule; the coefficient of the highest power comes first."""
    total = x.constant(coefficients[0])
    for c in coefficients[1:]:
        total = total.fma(x, c)
    return total


def nearest(x: Any, scale: float) -> tuple[Any, Any]:
    """``rint(x * scale)`` as a float and as an integer; NaN gives an arbitrary integer."""
    rounder = _ROUNDER[x.width]
    shifted = x.fma(scale, rounder)
    return shifted - rounder, shifted.bits() - pattern(rounder, x.width)


def power_of_two(i: Any, width: int) -> Any:
    """``2.0 ** i`` for integers whose power is a normal number."""
    return ((i + _BIAS[width]) << _MANTISSA[width]).as_float()


def split(value: float, bits: int) -> tuple[float, float]:
    """``value`` as a number with few bits, whose small multiples are exact, and a rest."""
    scale = 2.0 ** (bits - math.frexp(value)[1])
    high = round(value * scale) / scale
    return high, value - high


# -------------------------------------------------------------------------------- exponentials

_LOG2_E = 1.4426950408889634
# log 2 = high + low; high has trailing zeros, so that k * high is exact for every exponent k.
_LN2 = {
    32: (0.693359375, -2.1219444005469057e-04),
    64: (0.6931471803691238, 1.9082149292705877e-10),
}
# (exp(r) - 1 - r) / r**2 on |r| <= log(2) / 2.
_EXP = {
    32: (
        0.001392619766942992, 0.008363190325615149, 0.041666554532615786, 0.166665769219854, 0.5,
    ),
    64: (
        2.510040371657669e-08, 2.7620112139572367e-07, 2.7557268421682613e-06,
        2.4801521246131495e-05, 0.0001984126986307828, 0.0013888888917245787,
        0.008333333333330056, 0.041666666666624066, 0.16666666666666669, 0.5,
    ),
}  # fmt: skip
_EXP_RANGE = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}


def _reduced(x: Any) -> tuple[Any, Any]:
    """``k`` and ``r`` of ``x = k log 2 + r`` with ``|r| <= log(2) / 2``."""
    n, k = nearest(x, _LOG2_E)
    high, low = _LN2[x.width]
    return k, n.fma(-low, n.fma(-high, x))


def _clamped(x: Any, low: float, high: float) -> Any:
    """``x`` limited to a range; NaN stays."""
    x = (x > high).select(x.constant(high), x)
    return (x < low).select(x.constant(low), x)


def _scaled(x: Any, k: Any) -> Any:
    """``x * 2**k``, rounded once, also where 2**k is not a normal number."""
    half = k >> 1
    return x * power_of_two(half, x.width) * power_of_two(k - half, x.width)


def exp(x: Any) -> Any:
    k, r = _reduced(_clamped(x, *_EXP_RANGE[x.width]))
    return _scaled((r * r).fma(polynomial(r, _EXP[x.width]), r) + 1, k)


def exp2(x: Any) -> Any:
    high = {32: 129.0, 64: 1025.0}[x.width]
    low = {32: -151.0, 64: -1076.0}[x.width]
    x = _clamped(x, low, high)
    n, k = nearest(x, 1.0)
    r = (x - n) * math.log(2.0)
    return _scaled((r * r).fma(polynomial(r, _EXP[x.width]), r) + 1, k)


def expm1(x: Any) -> Any:
    low = {32: -20.0, 64: -50.0}[x.width]
    k, r = _reduced(_clamped(x, low, _EXP_RANGE[x.width][1]))
    p = (r * r).fma(polynomial(r, _EXP[x.width]), r)
    # 2**k p + (2**k - 1) in two factors of 2**k, for 2**k itself may overflow.
    half = k >> 1
    first, second = power_of_two(half, x.width), power_of_two(k - half, x.width)
    one = power_of_two(half - k, x.width)
    return (x == 0).select(x, first.fma(p, first - one) * second)


# ---------------------------------------------------------------------------------- logarithms

_SQRT_HALF = math.sqrt(0.5)
# 32 bits: (log(1 + f) - f + f**2 / 2) / f**3. 64 bits, with s = f / (2 + f) and z = s**2:
# (log(1 + f) - 2 s) / (s z).
_LOG = {
    32: (
        0.069717021688571, -0.11479881637220293, 0.11685456399996576, -0.12425670944167712,
        0.14249052607511728, -0.16667802800331588, 0.20000715895198923, -0.24999996954701278,
        0.3333333117945526,
    ),
    64: (
        0.14618236865830497, 0.15331576916675838, 0.18182893480846, 0.2222221107497463,
        0.2857142862634218, 0.39999999999898694, 0.666666666666667,
    ),
}  # fmt: skip


def _exponent_and_mantissa(x: Any) -> tuple[Any, Any]:
    """Integer ``k`` and ``m`` of a normal ``x = 2**k m`` with ``sqrt(1/2) <= m < sqrt(2)``."""
    mantissa = _MANTISSA[x.width]
    bits = x.bits()
    k = (bits - pattern(_SQRT_HALF, x.width)) >> mantissa
    return k, (bits - (k << mantissa)).as_float()


def _as_float(k: Any) -> Any:
    """A small integer as a float, without the conversion that AVX2 lacks for 64 bits."""
    rounder = _ROUNDER[k.width]
    return (k + pattern(rounder, k.width)).as_float() - rounder


def _normalized(x: Any) -> tuple[Any, Any]:
    """``x`` times a power of two that makes it normal, and that power's negative exponent."""
    lowest = {32: 2.0**-126, 64: 2.0**-1022}[x.width]
    shift = _MANTISSA[x.width] + 2
    tiny = x < lowest
    return tiny.select(x * 2.0**shift, x), tiny.select(x.constant(-float(shift)), 0.0)


def _log_tail(f: Any) -> Any:
    """``log(1 + f) - f + f**2 / 2`` for ``sqrt(1/2) <= 1 + f < sqrt(2)``."""
    if f.width == 32:
        return f * f * f * polynomial(f, _LOG[32])
    s = f / (f + 2)
    z = s * s
    return s * z.fma(polynomial(z, _LOG[64]), f * f * 0.5)


def _log_of(k: Any, f: Any) -> Any:
    """``k log 2 + log(1 + f)``, smallest terms first."""
    high, low = _LN2[f.width]
    return k.fma(high, f - ((f * f * 0.5) - k.fma(low, _log_tail(f))))


def _where_defined(value: Any, x: Any, at: float) -> Any:
    """``value`` above the pole of a logarithm, -inf on it, NaN below, and inf at inf."""
    value = (x == INF).select(x, value)
    below = (x == at).select(x.constant(-INF), x.constant(NAN))
    return (x > at).select(value, below)


def log(x: Any) -> Any:
    normal, shift = _normalized(x)
    k, m = _exponent_and_mantissa(normal)
    return _where_defined(_log_of(_as_float(k) + shift, m - 1), x, 0.0)


def _log_base(x: Any, unit: tuple[float, float], inverse: tuple[float, float]) -> Any:
    """Logarithm to another base: ``unit`` is log_base(2), ``inverse`` 1 / log(base), in parts."""
    normal, shift = _normalized(x)
    k, m = _exponent_and_mantissa(normal)
    k = _as_float(k) + shift
    f = m - 1
    # f - f**2/2 + tail in two parts: the head has half the bits, so that its product is exact.
    half = f * f * 0.5
    keep = -(1 << {32: 12, 64: 27}[x.width])
    head = ((f - half).bits() & keep).as_float()
    rest = _log_tail(f) + ((f - head) - half)
    low = k.fma(unit[1], rest.fma(inverse[0], (head + rest) * inverse[1]))
    value = k * unit[0]
    first = head * inverse[0]
    total = value + first
    # The error of the last sum (|k| >= 1 is larger than the fraction, or k is 0).
    return _where_defined(total + (low + ((value - total) + first)), x, 0.0)


def log2(x: Any) -> Any:
    return _log_base(x, (1.0, 0.0), _INVERSE_LN2[x.width])


def log10(x: Any) -> Any:
    return _log_base(x, _LOG10_2[x.width], _INVERSE_LN10[x.width])


_INVERSE_LN2 = {
    32: (1.44287109375, -1.7605285393074155e-04),
    64: (1.4426950216293335, 1.9259629911266175e-08),
}
_INVERSE_LN10 = {
    32: (0.434326171875, -3.168997134827671e-05),
    64: (0.4342944622039795, 1.9699272335463627e-08),
}
_LOG10_2 = {
    32: (0.3010292053222656, 7.903415529813617e-07),
    64: (0.30102999566406652, 0.0),
}


def log1p(x: Any) -> Any:
    u = x + 1
    rounded = u - 1
    lost = (1 - (u - rounded)) + (x - rounded)  # exactly 1 + x - u
    k, m = _exponent_and_mantissa(u)
    correction = lost * power_of_two(-k, x.width)
    # Where x is huge the correction is nothing, and its scale not a number.
    f = (m - 1) + (x < 2.0**100).select(correction, 0.0)
    return (x == 0).select(x, _where_defined(_log_of(_as_float(k), f), x, -1.0))


# ------------------------------------------------------------------------- hyperbolic functions


def tanh(x: Any) -> Any:
    a = x.absolute()
    limit = {32: 10.0, 64: 22.0}[x.width]
    a = (a > limit).select(x.constant(limit), a)
    # From exp(2a) - 1 where that is large and from exp(-2a) - 1 where it is small.
    large = a > 0.5
    t = expm1(large.select(a * 2, a * -2))
    quotient = large.select(x.constant(2.0), -t) / (t + 2)
    return large.select(1 - quotient, quotient).copysign(x)


def expit(x: Any) -> Any:
    small = exp(-x.absolute())
    return (x >= 0).select(x.constant(1.0), small) / (small + 1)


FORMULAS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (exp, exp2, expm1, log, log1p, tanh, expit)
}
