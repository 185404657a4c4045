"""Remainders of floats and quotients of integers, which processors have no vectors for.

A quotient that is rounded to an integer is off by one at most, and a fused product then gives the
remainder exactly: it is a multiple of the last place of the smaller number, and smaller than the
divisor. Only where the quotient itself is no exact integer is another way taken.
"""

from __future__ import annotations

from typing import Any

from funcgrad.compiler.native.llvm import F64, I32, I64
from funcgrad.compiler.native.slow_paths import call_where, choose_where, every_quotient
from funcgrad.compiler.native.vecmath.arithmetic import ROUNDER, as_float, nearest, pattern

EXACT = 2.0**51
"""Quotients of 64-bit floats below this are rounded to integers by an addition."""


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
    if x.kind == "u":
        return x < limit
    return (x < limit) & (x > -limit)
