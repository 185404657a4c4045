"""Arithmetic of formulas: polynomials, bit patterns, powers of two, and 32 bits by way of 64.

A formula that is given ``digits`` works on 64-bit numbers and is as exact as numbers of ``digits``
bits are: coefficients of 32 digits are short. So most functions of 32-bit numbers are short
formulas, whose only visible error is that of the last rounding.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

INF = math.inf
NAN = math.nan

MANTISSA = {32: 23, 64: 52}
_BIAS = {32: 127, 64: 1023}
# Adding and subtracting 1.5 * 2**mantissa rounds to an integer, whose value the low bits then hold.
ROUNDER = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}
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


def nearest(x: Any, scale: Any) -> tuple[Any, Any]:
    """``rint(x * scale)`` as a float and as an integer; NaN gives an arbitrary integer."""
    rounder = ROUNDER[x.width]
    shifted = x.fma(scale, rounder)
    return shifted - rounder, shifted.bits() - pattern(rounder, x.width)


def power_of_two(i: Any, width: int) -> Any:
    """``2.0 ** i`` for integers whose power is a normal number."""
    return ((i + _BIAS[width]) << MANTISSA[width]).as_float()


def scaled(x: Any, k: Any) -> Any:
    """``x * 2**k``, rounded once, also where 2**k is not a normal number."""
    half = k >> 1
    return x * power_of_two(half, x.width) * power_of_two(k - half, x.width)


def clamped(x: Any, low: float, high: float) -> Any:
    """``x`` limited to a range; NaN stays."""
    x = (x > high).select(x.constant(high), x)
    return (x < low).select(x.constant(low), x)


def as_float(k: Any) -> Any:
    """A small integer as a float, without the conversion that AVX2 lacks for 64 bits."""
    rounder = ROUNDER[k.width]
    return (k + pattern(rounder, k.width)).as_float() - rounder


def finite_sum(base: Any, x: Any, rest: Any) -> Any:
    """``base + x + rest`` rounded once or nearly so; ``base`` is 0 or larger than ``x``."""
    high = base + x
    return high + (((base - high) + x) + rest)


def by_double(core: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of both widths from one that takes ``digits`` and 64-bit numbers."""
    by_digits = functools.partial(core, 32), functools.partial(core, 64)
    return functools.update_wrapper(by_width(*by_digits), core)


def in_double(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of both widths from one of 64-bit numbers."""
    return functools.update_wrapper(by_width(formula, formula), formula)


def by_width(short: Callable[..., Any], long: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of both widths from two of 64-bit numbers, the first one for those of 32 bits."""

    def formula(*args: Any) -> Any:
        if args[0].width == 64:
            return long(*args)
        return short(*[x.widened() for x in args]).narrowed()

    return formula
