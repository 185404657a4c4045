"""Circular functions and their inverses."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.compiler.native.slow_paths import call_where
from funcgrad.compiler.native.vecmath.arithmetic import (
    INF,
    by_double,
    by_width,
    finite_sum,
    nearest,
    polynomial,
)

# pi, pi/2 and pi/4 less their 64-bit values.
_PI_LOW = 1.2246467991473532e-16

# ------------------------------------------------------------------------- circular functions

# sin(pi r) / r by powers of r**2 on |r| <= 1/2, for results of 32 bits.
_SIN_PI = (
    -0.007028303855203096, 0.08205035020147247, -0.599252186531583, 2.550163317938427,
    -5.167712764593, 3.141592653536132,
)  # fmt: skip
# 1/pi in two parts, less the leading digits whose products with numbers from the bound upwards are
# even: so the products are small enough to be rounded, and hold all digits that matter.
_WINDOWS = (
    (0.0, 0.31830988618379064, 3.583247455607534e-17),
    (2.0**48, 4.264359902114714e-08, 3.037013244824923e-24),
    (2.0**71, 1.4685477701859047e-16, 5.227808012450389e-31),
    (2.0**94, 4.397883766728235e-22, 1.2592086916704748e-39),
    (2.0**117, 1.2355694379560214e-29, 1.8916281941480338e-45),
)


def _half_turns(a: Any) -> tuple[Any, Any, Any]:
    """``a / pi`` less the nearest integer, in two parts, and that integer up to even ones.

    For every finite ``a`` of 32 bits, held in 64 (after Payne and Hanek 1983).
    """
    high, low = (a.constant(c) for c in _WINDOWS[0][1:])
    for bound, next_high, next_low in _WINDOWS[1:]:
        beyond = a >= bound
        high, low = beyond.select(next_high, high), beyond.select(next_low, low)
    n, k = nearest(a, high)
    return a.fma(high, -n), low, k


def _sin_pi(r: Any) -> Any:
    return r * polynomial(r * r, _SIN_PI)


def _short_sin(x: Any) -> Any:
    a = x.absolute()
    head, low, k = _half_turns(a)
    value = _sin_pi(a.fma(low, head))
    return (value.bits() ^ (k << 63) ^ (x.bits() & -(2**63))).as_float()


def _quarter_less(a: Any, head: Any, low: Any) -> Any:
    """``1/2 - |head + a low|``, exact also where that is small."""
    return a.copysign(head).fma(-low, 0.5 - head.absolute())


def _short_cos(x: Any) -> Any:
    a = x.absolute()
    head, low, k = _half_turns(a)
    return (_sin_pi(_quarter_less(a, head, low)).bits() ^ (k << 63)).as_float()


def _short_tan(x: Any) -> Any:
    a = x.absolute()
    head, low, _ = _half_turns(a)
    tangent = _sin_pi(a.fma(low, head)) / _sin_pi(_quarter_less(a, head, low))
    return (tangent.bits() ^ (x.bits() & -(2**63))).as_float()


# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 by powers of r**2 on |r| <= pi / 4.
_SIN = (
    1.5918129294866608e-10, -2.5051131845003624e-08, 2.755731610255244e-06,
    -0.00019841269836758574, 0.008333333333330948, -0.16666666666666666,
)  # fmt: skip
_COS = (
    -1.1382632425521717e-11, 2.08761462684032e-09, -2.7557317271729793e-07,
    2.480158729876569e-05, -0.0013888888888887398, 0.041666666666666664,
)  # fmt: skip
# pi / 2 in three parts (Cody and Waite 1980, with fused products), and where they suffice.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_ORDINARY = 2.0**30


def _quarter_turns(x: Any) -> tuple[Any, Any, Any]:
    """``x`` less the nearest multiple of pi / 2, in two parts, and that multiple's integer."""
    n, k = nearest(x, 2 / math.pi)
    head = n.fma(-_HALF_PI[0], x)  # exact
    product = n * _HALF_PI[1]
    r = head - product
    # Rounding errors of the difference and the product (Knuth's sum).
    taken = r - head
    lost = (head - (r - taken)) - (product + taken)
    return r, n.fma(-_HALF_PI[2], lost - n.fma(_HALF_PI[1], -product)), k


def _sin_and_cos(r: Any, rest: Any) -> tuple[Any, Any, Any, Any]:
    """Sine and cosine of ``r + rest`` for ``|r| <= pi / 4``, each as a large part and a small."""
    z = r * r
    half = z * 0.5
    first = 1 - half
    small = ((1 - first) - half) + (z * z).fma(polynomial(z, _COS), -(r * rest))
    return r, (r * z).fma(polynomial(z, _SIN), rest), first, small


def _long_sin(x: Any) -> Any:
    r, rest, k = _quarter_turns(x)
    sine, sine_low, cosine, cosine_low = _sin_and_cos(r, rest)
    value = ((k & 1) == 0).select(sine + sine_low, cosine + cosine_low)
    value = (value.bits() ^ ((k >> 1) << 63)).as_float()
    value = (x == 0).select(x, value)
    return call_where(x.absolute() > _ORDINARY, "sin", (x,), value)


def _long_cos(x: Any) -> Any:
    r, rest, k = _quarter_turns(x)
    sine, sine_low, cosine, cosine_low = _sin_and_cos(r, rest)
    value = ((k & 1) == 0).select(cosine + cosine_low, sine + sine_low)
    value = (value.bits() ^ (((k + 1) >> 1) << 63)).as_float()
    return call_where(x.absolute() > _ORDINARY, "cos", (x,), value)


def _long_tan(x: Any) -> Any:
    r, rest, k = _quarter_turns(x)
    sine, sine_low, cosine, cosine_low = _sin_and_cos(r, rest)
    even = (k & 1) == 0
    top, top_low = even.select(sine, -cosine), even.select(sine_low, -cosine_low)
    bottom, bottom_low = even.select(cosine, sine), even.select(cosine_low, sine_low)
    over, under = top + top_low, bottom + bottom_low
    quotient = over / under
    # Rounding errors of the two sums and the quotient.
    lost = quotient.fma(-under, over) + ((top - over) + top_low)
    lost = lost - quotient * ((bottom - under) + bottom_low)
    value = quotient + lost / under
    value = (x == 0).select(x, value)
    return call_where(x.absolute() > _ORDINARY, "tan", (x,), value)


sin = by_width(_short_sin, _long_sin)
cos = by_width(_short_cos, _long_cos)
tan = by_width(_short_tan, _long_tan)

# ------------------------------------------------------------------------------------- inverses

# (atan(t) - t) / t**3 by powers of t**2 on |t| <= 0.66.
_ARCTAN = {
    32: (
        0.015094776431566525, -0.04374838312037731, 0.06965316162657675, -0.08954494565217073,
        0.11096728558688464, -0.14284954096410726, 0.1999998446869656, -0.3333333328062652,
    ),
    64: (
        -0.0022319891352206526, 0.009707111443534448, -0.021238750553036773, 0.03243682581339053,
        -0.04078179705754501, 0.0469055587314416, -0.052492302938732534, 0.058803712056046245,
        -0.06666465331501162, 0.07692293559129824, -0.09090908439563972, 0.11111111092947706,
        -0.14285714285447954, 0.19999999999998452, -0.3333333333333333,
    ),
}  # fmt: skip


def _angle(digits: int, small: Any, large: Any, swapped: Any, reflected: Any | None) -> Any:
    """The angle of two sides ``0 <= small <= large``.

    It is measured from the large side, or from the small one if ``swapped``; ``reflected`` takes it
    from pi.
    """
    far = small > large * 0.66
    t = far.select(small - large, small) / far.select(small + large, large)
    z = t * t
    tail = t * z * polynomial(z, _ARCTAN[digits])
    eighths = far.select(t.constant(1.0), 0.0)
    eighths = swapped.select(2 - eighths, eighths)
    backwards = swapped
    if reflected is not None:
        eighths = reflected.select(4 - eighths, eighths)
        backwards = swapped ^ reflected
    t, tail = backwards.select(-t, t), backwards.select(-tail, tail)
    base = eighths * (math.pi / 4)
    lost = eighths.fma(math.pi / 4, -base)
    return finite_sum(base, t, tail + eighths.fma(_PI_LOW / 4, lost))


@by_double
def atan(digits: int, x: Any) -> Any:
    a = x.absolute()
    swapped = a > 1
    small, large = swapped.select(1.0, a), swapped.select(a, 1.0)
    return _angle(digits, small, large, swapped, None).copysign(x)


@by_double
def atan2(digits: int, y: Any, x: Any) -> Any:
    a, b = y.absolute(), x.absolute()
    swapped = a > b
    small, large = swapped.select(b, a), swapped.select(a, b)
    small = (small == INF).select(1.0, small)
    large = (((a == INF) & (b == INF)) | (large == 0)).select(1.0, large)
    if digits == 64:  # their sum must be finite, and 0.66 of them distinct
        scale = (large > 2.0**1000).select(x.constant(0.25), 1.0)
        scale = (large < 2.0**-900).select(x.constant(2.0**100), scale)
        small, large = small * scale, large * scale
    value = _angle(digits, small, large, swapped, x.bits() < 0).copysign(y)
    return (x.isnan() | y.isnan()).select(x + y, value)


# (asin(s) - s) / s**3 by powers of s**2 on |s| <= 1/2.
_ARCSIN = {
    32: (
        0.03369084720283012, 0.017149238357677253, 0.03110066273549457, 0.04459940152851218,
        0.07500094543497424, 0.16666666337430908,
    ),
    64: (
        0.028757851367421566, -0.014851887071247204, 0.01740087944269402, 0.005457506718640358,
        0.01032281435018578, 0.011479177415184906, 0.013971212973552933, 0.017352392720869973,
        0.02237217294214989, 0.030381944138531247, 0.04464285714635543, 0.07499999999998433,
        0.16666666666666669,
    ),
}  # fmt: skip


def _half_angle(digits: int, x: Any) -> tuple[Any, Any, Any]:
    """``s`` and ``asin(s) - s`` for ``|x|`` or, if flagged, for ``sqrt((1 - |x|) / 2)``."""
    a = x.absolute()
    wide = a > 0.5
    z = wide.select((1 - a) * 0.5, a * a)
    s = wide.select(z.sqrt(), a)
    return wide, s, s * z * polynomial(z, _ARCSIN[digits])


@by_double
def asin(digits: int, x: Any) -> Any:
    wide, s, tail = _half_angle(digits, x)
    base = wide.select(x.constant(math.pi / 2), 0.0)
    factor = wide.select(x.constant(-2.0), 1.0)
    low = wide.select(x.constant(_PI_LOW / 2), 0.0)
    return finite_sum(base, factor * s, factor.fma(tail, low)).copysign(x)


@by_double
def acos(digits: int, x: Any) -> Any:
    wide, s, tail = _half_angle(digits, x)
    # pi/2 less the angle, or twice the angle, or pi less twice the angle.
    halves = wide.select((x < 0).select(x.constant(2.0), 0.0), 1.0)
    factor = wide.select(x.constant(2.0), -1.0).copysign(wide.select(x, -x))
    return finite_sum(halves * (math.pi / 2), factor * s, factor.fma(tail, halves * (_PI_LOW / 2)))
