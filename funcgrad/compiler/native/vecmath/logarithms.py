"""Logarithms, and the inverse hyperbolic functions, which are logarithms of sums."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.compiler.native.vecmath import arithmetic
from funcgrad.compiler.native.vecmath.exponentials import LN2

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


def exponent_and_mantissa(x: Any) -> tuple[Any, Any]:
    """Integer ``k`` and ``m`` of a normal ``x = 2**k m`` with ``sqrt(1/2) <= m < sqrt(2)``."""
    mantissa = arithmetic.MANTISSA[x.width]
    bits = x.bits()
    k = (bits - arithmetic.pattern(_SQRT_HALF, x.width)) >> mantissa
    return k, (bits - (k << mantissa)).as_float()


def normalized(x: Any) -> tuple[Any, Any]:
    """``x`` times a power of two that makes it normal, and that power's negative exponent."""
    lowest = {32: 2.0**-126, 64: 2.0**-1022}[x.width]
    shift = arithmetic.MANTISSA[x.width] + 2
    tiny = x < lowest
    return tiny.select(x * 2.0**shift, x), tiny.select(x.constant(-float(shift)), 0.0)


def _log_tail(f: Any) -> Any:
    """``log(1 + f) - f + f**2 / 2`` for ``sqrt(1/2) <= 1 + f < sqrt(2)``."""
    if f.width == 32:
        return f * f * f * arithmetic.polynomial(f, _LOG[32])
    s = f / (f + 2)
    z = s * s
    return s * z.fma(arithmetic.polynomial(z, _LOG[64]), f * f * 0.5)


def _log_of(k: Any, f: Any) -> Any:
    """``k log 2 + log(1 + f)``, smallest terms first."""
    high, low = LN2[f.width]
    return k.fma(high, f - ((f * f * 0.5) - k.fma(low, _log_tail(f))))


def _where_defined(value: Any, x: Any, at: float) -> Any:
    """``value`` above the pole of a logarithm, -inf on it, NaN below, and inf at inf."""
    value = (x == arithmetic.INF).select(x, value)
    below = (x == at).select(x.constant(-arithmetic.INF), x.constant(arithmetic.NAN))
    return (x > at).select(value, below)


def log(x: Any) -> Any:
    normal, shift = normalized(x)
    k, m = exponent_and_mantissa(normal)
    return _where_defined(_log_of(arithmetic.as_float(k) + shift, m - 1), x, 0.0)


def _log_base(x: Any, unit: tuple[float, float], inverse: tuple[float, float]) -> Any:
    """Logarithm to another base: ``unit`` is log_base(2), ``inverse`` 1 / log(base), in parts."""
    normal, shift = normalized(x)
    k, m = exponent_and_mantissa(normal)
    k = arithmetic.as_float(k) + shift
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
    64: (0.3010299956640665, -8.532344317057107e-14),
}


def log1p(x: Any) -> Any:
    u = x + 1
    rounded = u - 1
    lost = (1 - (u - rounded)) + (x - rounded)  # exactly 1 + x - u
    k, m = exponent_and_mantissa(u)
    correction = lost * arithmetic.power_of_two(-k, x.width)
    # Where x is huge the correction is nothing, and its scale not a number.
    f = (m - 1) + (x < 2.0**100).select(correction, 0.0)
    return (x == 0).select(x, _where_defined(_log_of(arithmetic.as_float(k), f), x, -1.0))


# (2 atanh(s) - 2 s) / s**3 by powers of s**2, for numbers of 64 bits whose results are as exact as
# 32 bits can say, also if they are exponents of powers.
_SHORT_ATANH = (
    0.19363884986633198, 0.22191337428065783, 0.28571755535032944, 0.3999999879244169,
    0.6666666666737868,
)  # fmt: skip


def _short_log_of(k: Any, f: Any) -> Any:
    """``k log 2 + log(1 + f)`` for ``sqrt(1/2) <= 1 + f < sqrt(2)``."""
    s = f / (f + 2)
    z = s * s
    return k.fma(math.log(2.0), (s * z).fma(arithmetic.polynomial(z, _SHORT_ATANH), s * 2))


def short_log_of_normal(x: Any) -> Any:
    """``log(x)`` of positive normal numbers of 64 bits."""
    k, m = exponent_and_mantissa(x)
    return _short_log_of(arithmetic.as_float(k), m - 1)


@arithmetic.in_double
def short_log(x: Any) -> Any:
    """``log(x)`` of normal numbers."""
    return _where_defined(short_log_of_normal(x), x, 0.0)


@arithmetic.in_double
def short_log1p(x: Any) -> Any:
    """``log(1 + x)``."""
    k, m = exponent_and_mantissa(x + 1)
    floating = arithmetic.as_float(k)
    f = (floating == 0).select(x, m - 1)
    return _where_defined(_short_log_of(floating, f), x, -1.0)


# ----------------------------------------------------------------- inverse hyperbolic functions


def _log1p_of_sum(digits: int, x: Any, rest: Any, doublings: Any) -> Any:
    """``log(1 + x + rest) + doublings log 2`` for ``x >= 0`` and a rest of few last places."""
    u = x + 1
    k, m = exponent_and_mantissa(u)
    floating = arithmetic.as_float(k) + doublings
    # Below sqrt(2) the fraction is x itself.
    same = floating == 0
    f = same.select(x, m - 1)
    if digits == 32:
        return _short_log_of(floating, f)
    half = f * f * 0.5
    high, low = LN2[64]
    # Rounding errors change the logarithm by their share of the mantissa; the inverse of that
    # needs few digits. Where x is huge the loss is nothing, and its scale not a number.
    lost = (x > 1).select(1 - (u - x), x - (u - 1)) + rest
    lost = (x < 2.0**100).select(lost * arithmetic.power_of_two(-k, 64), 0.0)
    lost = same.select(rest, lost) * (1 - f * (1 - f * (1 - f * (1 - f))))
    return floating.fma(high, f - (half - (floating.fma(low, _log_tail(f)) + lost)))


@arithmetic.by_double
def asinh(digits: int, x: Any) -> Any:
    a = x.absolute()
    huge = a > 2.0**30
    b = huge.select(1.0, a)
    # a + sqrt(1 + a**2) - 1, in two parts.
    square = b * b
    root = (square + 1).sqrt()
    rest = square / (root + 1) if digits == 64 else (a > 2.0**-20).select(root - 1, square * 0.5)
    total = b + rest
    lost = (b - total) + rest
    total, lost = huge.select(a - 1, total), huge.select(0.0, lost)
    doublings = huge.select(x.constant(1.0), 0.0)
    value = _log1p_of_sum(digits, total, lost, doublings)
    return (a < arithmetic.INF).select(value, a).copysign(x)


@arithmetic.by_double
def acosh(digits: int, x: Any) -> Any:
    huge = x > 2.0**30
    t = huge.select(1.0, x) - 1
    # (x - 1) + sqrt((x - 1) (x + 1)), in two parts.
    square = t.fma(t, t * 2)
    root = square.sqrt()
    total = t + root
    larger = t > root
    lost = larger.select((t - total) + root, (root - total) + t)
    if digits == 64:
        missing = t.fma(t, t * 2 - square) - root.fma(root, -square)
        lost = lost + (t > 0).select(missing / (root * 2), 0.0)
    total, lost = huge.select(x - 1, total), huge.select(0.0, lost)
    doublings = huge.select(x.constant(1.0), 0.0)
    value = _log1p_of_sum(digits, total, lost, doublings)
    value = (x < arithmetic.INF).select(value, x)
    return (x >= 1).select(value, arithmetic.NAN)


@arithmetic.by_double
def atanh(digits: int, x: Any) -> Any:
    a = x.absolute()
    below = a < 1
    b = below.select(a, 0.0)
    numerator, denominator = b * 2, 1 - b
    quotient = numerator / denominator
    zero = rest = x.constant(0.0)
    if digits == 64:
        lost = (1 - denominator) - b
        rest = (quotient.fma(-denominator, numerator) - quotient * lost) / denominator
    value = _log1p_of_sum(digits, quotient, rest, zero) * 0.5
    outside = (a == 1).select(x.constant(arithmetic.INF), arithmetic.NAN)
    return below.select(value, outside).copysign(x)
