"""Powers and roots."""

from __future__ import annotations

from typing import Any

from funcgrad.compiler.native.vecmath import arithmetic
from funcgrad.compiler.native.vecmath.exponentials import LN2, exp_of_sum
from funcgrad.compiler.native.vecmath.logarithms import (
    exponent_and_mantissa,
    normalized,
    short_log_of_normal,
)

# m ** (-1/3) on 1 <= m <= 2, and the cube roots of 2 and 1/2.
_INVERSE_CBRT = (
    -0.016511679091286462, 0.15224956438221762, -0.5865141615889806, 1.2271496200207155,
    -1.5540274077106597, 1.7776471684890054,
)  # fmt: skip
_CBRT2 = 1.2599210498948732


@arithmetic.by_double
def cbrt(digits: int, x: Any) -> Any:
    a = x.absolute()
    normal, shift = (a, 0.0) if digits == 32 else normalized(a)
    bits = normal.bits()
    k = bits >> arithmetic.MANTISSA[64]
    one = arithmetic.pattern(1.0, 64)
    m = ((bits & ((1 << arithmetic.MANTISSA[64]) - 1)) | one).as_float()
    # 2**e m = (2**third)**3 y with 1/2 <= y < 4.
    e = arithmetic.as_float(k - 1023) + shift
    n, third = arithmetic.nearest(e, 1 / 3)
    left = n.fma(-3.0, e)
    first = arithmetic.polynomial(m, _INVERSE_CBRT)
    below, above = left < 0, left > 0
    factor = below.select(x.constant(_CBRT2), above.select(x.constant(1 / _CBRT2), 1.0))
    first = first * factor
    y = m * below.select(x.constant(0.5), above.select(x.constant(2.0), 1.0))
    # One step of Newton's method for y ** (-1/3), and one for the root.
    inverse = first.fma((1 - (y * first) * (first * first)) * (1 / 3), first)
    square = inverse * inverse
    root = y * square
    if digits == 64:
        power = root * root
        excess = power.fma(root, -y) + root.fma(root, -power) * root
        root = root - excess * square * (1 / 3)
    value = root * arithmetic.power_of_two(third, 64)
    return ((a > 0) & (a < arithmetic.INF)).select(value, a).copysign(x)


@arithmetic.by_double
def hypot(digits: int, x: Any, y: Any) -> Any:
    a, b = x.absolute(), y.absolute()
    large, small = (a > b).select(a, b), (a > b).select(b, a)
    scale = (large > 2.0**510).select(x.constant(2.0**-600), 1.0)
    scale = (large < 2.0**-450).select(x.constant(2.0**600), scale)
    back = (large > 2.0**510).select(x.constant(2.0**600), 1.0)
    back = (large < 2.0**-450).select(x.constant(2.0**-600), back)
    if digits == 64:
        large, small = large * scale, small * scale
    value = large.fma(large, small * small).sqrt()
    if digits == 64:
        value = value * back
    return ((a == arithmetic.INF) | (b == arithmetic.INF)).select(x.constant(arithmetic.INF), value)


# (atanh(s) / s - 1 - z / 3) / z**2 by powers of z = s**2, for (1 + s) / (1 - s) within a factor
# sqrt(2) of 1.
_ATANH = (
    0.06457356091967545, 0.06642934418772871, 0.07692788731654072, 0.09090904105460941,
    0.11111111135663404, 0.14285714285669004, 0.20000000000000015,
)  # fmt: skip
_THIRD = (0.3333333333333333, 1.850371707708594e-17)


def _product(a: Any, a_low: Any, b: Any, b_low: Any) -> tuple[Any, Any]:
    """The product of two numbers in two parts each, in two parts (Dekker 1971)."""
    high = a * b
    return high, a.fma(b, -high) + a.fma(b_low, a_low * b)


def _sum(a: Any, b: Any) -> tuple[Any, Any]:
    """``a + b`` exactly in two parts, for ``|a| >= |b|`` or ``a == 0``."""
    high = a + b
    return high, (a - high) + b


def _log_in_parts(x: Any) -> tuple[Any, Any]:
    """``log x`` for positive finite ``x`` to about 66 binary digits."""
    normal, shift = normalized(x)
    k, m = exponent_and_mantissa(normal)
    k = arithmetic.as_float(k) + shift
    numerator, denominator = m - 1, m + 1
    s = numerator / denominator
    lost = m - (denominator - 1)
    s_low = (s.fma(-denominator, numerator) - s * lost) / denominator
    z, z_low = _product(s, s_low, s, s_low)
    # atanh(s) = s (1 + z (1/3 + z (1/5 + ...))), outer terms in two parts.
    inner = z * arithmetic.polynomial(z, _ATANH)
    u, u_low = _sum(s.constant(_THIRD[0]), inner)
    w, w_low = _product(z, z_low, u, u_low + _THIRD[1])
    v, v_low = _sum(s.constant(1.0), w)
    t, t_low = _product(s * 2, s_low * 2, v, v_low + w_low)
    base = k * LN2[64][0]
    high, low = _sum(base, t)
    return _sum(high, low + k.fma(LN2[64][1], t_low))


def log_of_base(x: Any) -> tuple[Any, ...]:
    """``log |x|`` in parts, of 64 bits: what all powers of one number have in common."""
    digits, a = x.width, x.widened().absolute()
    regular = (a > 0) & (a < arithmetic.INF)
    safe = regular.select(a, 1.0)
    log, *low = (short_log_of_normal(safe),) if digits == 32 else _log_in_parts(safe)
    return regular.select(log, (a == 0).select(a.constant(-arithmetic.INF), a)), *low


@arithmetic.by_double
def power_by_log(digits: int, x: Any, y: Any, *log: Any) -> Any:
    """``x ** y`` from what `log_of_base` gives for ``x``."""
    product, rest = log[0] * y, x.constant(0.0)
    if digits == 64:
        rest = log[0].fma(y, -product) + log[1] * y
        rest = (rest.absolute() < 1).select(rest, 0.0)
    value = exp_of_sum(digits, product, rest)
    whole = y.rint() == y
    half = y * 0.5
    odd = whole & (half.rint() != half)
    value = odd.select(value.copysign(x), value)
    value = ((x < 0) & (x > -arithmetic.INF) & ~whole).select(arithmetic.NAN, value)
    one = (y == 0) | (x == 1) | ((x == -1) & (y.absolute() == arithmetic.INF))
    return one.select(1.0, value)


def pow(x: Any, y: Any) -> Any:
    return power_by_log(x, y, *log_of_base(x))
