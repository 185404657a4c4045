"""Quotients by one number, remainders of floats, and quotients of integers, in vectors.

Processors take as long for a division of floats as for eight to sixteen other instructions, and
have no vectors for the others. Where all elements are divided by the same number, its reciprocal is
computed once, and the product with it corrected by the remainder, which a fused product gives
exactly (Markstein, 1990; Brisebarre, Muller and Raina, "Accelerating correctly rounded
floating-point division when the divisor is known in advance", 2004).

A quotient that is rounded to an integer is off by one at most, and a fused product then gives the
remainder exactly: it is a multiple of the last place of the smaller number, and smaller than the
divisor. Only where the quotient itself is no exact integer is another way taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from funcgrad.compiler.native.llvm import F64, I32, I64
from funcgrad.compiler.native.slow_paths import call_where, choose_where, every_quotient
from funcgrad.compiler.native.vecmath.arithmetic import NAN, ROUNDER, as_float, nearest, pattern

EXACT = 2.0**51
"""Quotients of 64-bit floats below this are rounded to integers by an addition."""


_PLAIN, _SMALL = {32: 2.0**30, 64: 2.0**100}, {32: 2.0**-90, 64: 2.0**-900}
"""Between the first number and its reciprocal divisors have an exact remainder for all numerators
that are not less than the second one, and their quotients are normal numbers; by bits."""


class Divisor(NamedTuple):
    """Numbers that quotients by a number need.

    Attributes:
        number: The number.
        sign: One, with the sign of it.
        size: Its magnitude.
        reciprocal: The reciprocal of that; NaN where quotients need a division.
    """

    number: Any
    sign: Any
    size: Any
    reciprocal: Any


def divisor(y: Any) -> Divisor:
    """Numbers that quotients by ``y`` need."""
    size, plain = y.absolute(), _PLAIN[y.width]
    is_plain = (size > 1 / plain) & (size < plain)
    return Divisor(y, y.constant(1).copysign(y), size, is_plain.select(1 / size, NAN))


def quotient(x: Any, y: Divisor) -> Any:
    """``x / y``, with the bits of a division, which rare numerators and divisors take."""
    a = x * y.sign
    near = a * y.reciprocal
    beyond = near.fma(y.size, -a)
    exact = (-beyond).fma(y.reciprocal, near)
    rare = exact.isnan() | (a.absolute() < _SMALL[x.width]) & (a != 0)
    return choose_where(rare, exact, lambda: x / y.number)


def _remainder(x: Any, y: Any) -> Any:
    a, b = x.absolute(), y.absolute()
    quotient = a / b
    n, _ = nearest(quotient, 1.0)
    rest = n.fma(-b, a)
    rest = (rest < 0).select(rest + b, rest).copysign(x)
    # Also of infinite and undefined arguments: comparisons with NaN are false.
    usual = (quotient < EXACT) & (b < float("inf"))
    return call_where(~usual, "fmod", (x, y), rest)


def fmod(x: Any, y: Any) -> Any:
    """The remainder with the sign of ``x``; exact, as it always is a number of the type."""
    if x.width == 64:
        return _remainder(x, y)
    return _remainder(x.widened(), y.widened()).narrowed()


def integer_quotient(a: Any, b: Any) -> Any:
    """``a / b`` toward zero, where that is defined.

    Args:
        a: Integers.
        b: Integers, not zero, and not -1 under the smallest integer.
    """
    if not a.lanes:
        return a.divided(b)
    if a.width <= 32:  # both and the quotient are exact enough as floats
        ratio = a.cast(F64, "f") / b.cast(F64, "f")
        is_wide = a.kind == "u" and a.width == 32
        return ratio.whole(I64 if is_wide else I32).cast(a.element, a.kind)
    limit = int(EXACT)
    is_small = _within(a, limit) & _within(b, limit)
    ratio = (as_float(a) / as_float(b)).intrinsic("trunc")
    usual = a.like((ratio + ROUNDER[64]).bits() - pattern(ROUNDER[64], 64))
    return choose_where(~is_small, usual, lambda: every_quotient(a, b))


def _within(x: Any, limit: int) -> Any:
    """Whether the magnitude of integers is less than a limit."""
    return x < limit if x.kind == "u" else (x < limit) & (x > -limit)
