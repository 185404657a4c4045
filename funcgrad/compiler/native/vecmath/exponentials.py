"""Exponentials and what is made of them: hyperbolic functions and the logistic function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcgrad.compiler.native.vecmath.arithmetic import (
    by_double,
    clamped,
    in_double,
    nearest,
    polynomial,
    power_of_two,
    scaled,
)

_LOG2_E = 1.4426950408889634
# log 2 = high + low; high has trailing zeros, so that k * high is exact for every exponent k.
LN2 = {32: (0.693359375, -2.1219444005469057e-04), 64: (0.6931471803691238, 1.9082149292705877e-10)}
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
    high, low = LN2[x.width]
    return k, n.fma(-low, n.fma(-high, x))


def _of_range(reduce: Callable[[Any], Any], x: Any, low: float, high: float) -> Any:
    """``2**k exp(r)`` for numbers up to ``high``; 0 below ``low``, where underflow takes long."""
    vanishes = x < low
    x = vanishes.select(x.constant(0.0), (x > high).select(x.constant(high), x))
    k, r = reduce(x)
    power = scaled((r * r).fma(polynomial(r, _EXP[x.width]), r) + 1, k)
    return vanishes.select(0.0, power)


def exp_in_range(x: Any) -> Any:
    """``exp(x)`` where that is neither too large nor too small for a normal number."""
    k, r = _reduced(x)
    return ((r * r).fma(polynomial(r, _EXP[x.width]), r) + 1) * power_of_two(k, x.width)


def exp(x: Any) -> Any:
    return _of_range(_reduced, x, *_EXP_RANGE[x.width])


def exp2(x: Any) -> Any:
    def reduced(x: Any) -> tuple[Any, Any]:
        n, k = nearest(x, 1.0)
        return k, (x - n) * math.log(2.0)

    return _of_range(reduced, x, *{32: (-151.0, 129.0), 64: (-1076.0, 1025.0)}[x.width])


def expm1(x: Any) -> Any:
    low = {32: -20.0, 64: -50.0}[x.width]
    k, r = _reduced(clamped(x, low, _EXP_RANGE[x.width][1]))
    p = (r * r).fma(polynomial(r, _EXP[x.width]), r)
    # 2**k p + (2**k - 1) in two factors of 2**k, for 2**k itself may overflow.
    half = k >> 1
    first, second = power_of_two(half, x.width), power_of_two(k - half, x.width)
    one = power_of_two(half - k, x.width)
    return (x == 0).select(x, first.fma(p, first - one) * second)


# The same for numbers of 64 bits whose results are as exact as 32 bits can say.
_SHORT_EXP = (
    0.0001989198131397769, 0.0013934541928270264, 0.008333310024225292, 0.04166645680967788,
    0.16666666682534356, 0.5000000014286223,
)  # fmt: skip


_NORMAL_RANGE = -708.0, 709.0


def _short_reduced(x: Any) -> tuple[Any, Any]:
    """``2**k`` and ``exp(r) - 1`` of ``x = k log 2 + r``."""
    n, k = nearest(x, _LOG2_E)
    r = n.fma(-math.log(2.0), x)
    return power_of_two(k, 64), (r * r).fma(polynomial(r, _SHORT_EXP), r)


@in_double
def short_exp(x: Any) -> Any:
    """``exp(x)``; 0 where that is too small for a normal number, and ``exp(709)`` at most."""
    low, high = _NORMAL_RANGE
    power, part = _short_reduced(clamped(x, low, high))
    return (x < low).select(0.0, power.fma(part, power))


@in_double
def short_expm1(x: Any) -> Any:
    """``exp(x) - 1``; ``exp(709)`` at most."""
    power, part = _short_reduced(clamped(x, -50.0, _NORMAL_RANGE[1]))
    return power.fma(part, power - 1)


def exp_of_sum(digits: int, x: Any, rest: Any) -> Any:
    """``exp(x + rest)`` of 64-bit numbers; ``rest`` is at most a few last places of ``x``.

    It is not asked for where results need no more than 32 digits.
    """
    if digits == 32:
        return short_exp(x)
    low, high = _EXP_RANGE[64]
    outside = (x > high) | (x < low)
    x = clamped(x, low, high)
    n, k = nearest(x, _LOG2_E)
    head = n.fma(-LN2[64][0], x)
    rest = n.fma(-LN2[64][1], outside.select(0.0, rest))
    r = head + rest
    rest = (head - r) + rest
    return scaled(((r * r).fma(polynomial(r, _EXP[64]), rest) + r) + 1, k)


# ------------------------------------------------------------------------- hyperbolic functions

# (sinh(r) - r) / r**3 and (cosh(r) - 1) / r**2 by powers of r**2 on |r| <= log(2) / 2.
_SINH = {
    32: (0.00019891478597021972, 0.008333310483870853, 0.16666666682067435),
    64: (
        2.51008589602596e-08, 2.7557267459727636e-06, 0.00019841269863700523,
        0.008333333333329931, 0.16666666666666669,
    ),
}  # fmt: skip
_COSH = {
    32: (2.4868533846344907e-05, 0.0013888838109196045, 0.041666666789891914, 0.4999999999995328),
    64: (
        2.091854357185285e-09, 2.7557262176723747e-07, 2.4801587337477324e-05,
        0.0013888888888878683, 0.04166666666666668, 0.5,
    ),
}  # fmt: skip


def _hyperbolic(digits: int, x: Any, is_sinh: bool) -> Any:
    """``sinh |x|`` or ``cosh |x|`` by the theorem of addition for ``k log 2 + r``."""
    x = clamped(x.absolute(), 0.0, 712.0)
    n, k = nearest(x, _LOG2_E)
    head = n.fma(-LN2[64][0], x)
    r = n.fma(-LN2[64][1], head)
    rest = n.fma(-LN2[64][1], head - r)
    z = r * r
    sinh_r = (r * z).fma(polynomial(z, _SINH[digits]), rest)  # less r
    cosh_r = z * polynomial(z, _COSH[digits])  # less 1
    # 2**-k sinh(k log 2) and 2**-k cosh(k log 2).
    part = power_of_two(((k > 60).select(60, k) * -2) - 1, 64)
    sinh_k, cosh_k = 0.5 - part, part + 0.5
    one, other = (sinh_k, cosh_k) if is_sinh else (cosh_k, sinh_k)
    lost = (0.5 - one) - part if is_sinh else (0.5 - one) + part
    high = other.fma(r, one)
    low = other.fma(r, (one - high) + lost)
    return scaled(high + (low + one.fma(cosh_r, other * sinh_r)), k)


@by_double
def sinh(digits: int, x: Any) -> Any:
    return _hyperbolic(digits, x, is_sinh=True).copysign(x)


@by_double
def cosh(digits: int, x: Any) -> Any:
    return _hyperbolic(digits, x, is_sinh=False)


def tanh(x: Any) -> Any:
    a = x.absolute()
    limit = {32: 10.0, 64: 22.0}[x.width]
    a = (a > limit).select(x.constant(limit), a)
    # From exp(2a) - 1 where that is large and from exp(-2a) - 1 where it is small.
    large = a > 0.5
    k, r = _reduced(large.select(a * 2, a * -2))
    p = (r * r).fma(polynomial(r, _EXP[x.width]), r)
    power = power_of_two(k, x.width)
    t = power.fma(p, power - 1)
    quotient = large.select(x.constant(2.0), -t) / (t + 2)
    return large.select(1 - quotient, quotient).copysign(x)


def expit(x: Any) -> Any:
    small = exp(-x.absolute())
    return (x >= 0).select(x.constant(1.0), small) / (small + 1)
