"""Numbers by their bits and divisors: mantissa and exponent, common divisors, packed bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import BOOL, INT64
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import promotion
from funcgrad.numpy.composed import ldexp
from funcgrad.numpy.reducing import sum
from funcgrad.numpy.shaping import constant_pad, moveaxis, ravel
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.bits import Bitcast, gcd_of, nextafter, population_count
from funcgrad.primitives.shape import reshape, shape_of

INT32, UINT8 = np.dtype(np.int32), np.dtype(np.uint8)

__all__ = ["bitwise_count", "frexp", "gcd", "lcm", "packbits", "spacing", "unpackbits"]


def _whole(x: Any, function: str) -> Any:
    value = promotion.as_value(x, function)
    if aval_of(value).dtype.kind not in "biu":
        raise DtypeError(f"{function} needs integers, got {aval_of(value)}.")
    return value


def bitwise_count(x: Any) -> Any:
    """Number of bits that are set in the absolute value.

    As `numpy.bitwise_count`.

    Args: x: Array of integers or bools.
    Returns: Array of uint8.
    Raises: DtypeError: If ``x`` holds no integers.
    Example: print(fg.numpy.bitwise_count([0, 7, -8])) -> [0 3 1]
    """
    value = promotion.strong(_whole(x, "bitwise_count"))
    if aval_of(value).dtype == BOOL:
        return p.convert(value, UINT8)
    return p.convert(population_count.bind(e.absolute(value)), UINT8)


def gcd(x1: Any, x2: Any) -> Any:
    """Greatest common divisor.

    As `numpy.gcd`.

    Args:
        x1: Array of integers.
        x2: Array of integers.
    Raises: DtypeError: If an argument holds no integers.
    Example: print(fg.numpy.gcd([12, 0, -9], 6)) -> [6 6 3]
    """
    return gcd_of.bind(*_integers(x1, x2, "gcd"))


def lcm(x1: Any, x2: Any) -> Any:
    """Least common multiple.

    As `numpy.lcm`: the least common multiples of absolute values; 0 if either is 0.

    Args:
        x1: Array of integers.
        x2: Array of integers.
    Raises: DtypeError: If an argument holds no integers.
    Example: print(fg.numpy.lcm([4, 0, -9], 6)) -> [12  0 18]
    """
    x, y = _integers(x1, x2, "lcm")
    divisor = gcd(x, y)
    # Not the larger one of both: the divisor of the least integer by itself is negative.
    zero, one = map(aval_of(x).dtype.type, (0, 1))
    divisor = p.select.bind(p.equal.bind(divisor, zero), one, divisor)
    quotient = p.floor_divide.bind(e.absolute(x), divisor)
    return p.mul.bind(quotient, e.absolute(y))


def _integers(x1: Any, x2: Any, function: str) -> tuple[Any, Any]:
    """Both in the dtype of integers that holds them, bools beside integers as 0 and 1."""
    x, y = map(promotion.strong, promotion.promote(_whole(x1, function), _whole(x2, function)))
    dtype = aval_of(x).dtype
    if dtype == BOOL:
        raise DtypeError(f"{function} needs integers, got {aval_of(x)}.")
    if dtype.kind not in "iu":
        raise DtypeError(
            f"{function}: no integer dtype holds both {aval_of(x1)} and {aval_of(x2)}."
        )
    return x, y


def frexp(x: Any) -> tuple[Any, Any]:
    """Mantissa and exponent to base 2.

    As `numpy.frexp`: numbers as ``mantissa * 2**exponent``, the mantissa in [0.5, 1).

    Args: x: Real array.
    Returns: The mantissa, of a floating dtype, which is differentiable, and the exponent, int32. Of
        0, infinities and nan they are the number itself and 0.

    Example:
        >>> mantissa, exponent = fg.numpy.frexp([8.0, -0.75])
        >>> print(mantissa, exponent)
        [ 0.5  -0.75] [4 0]
    """
    (x,) = map(promotion.strong, promotion.promote_inexact(promotion.as_value(x, "frexp")))
    dtype = aval_of(x).dtype
    if dtype.kind != "f":
        raise DtypeError(f"frexp is not defined for complex numbers, got {aval_of(x)}.")
    info, fixed = np.finfo(dtype), p.stop_gradient.bind(x)
    # Subnormal numbers are made normal first, so that all have an exponent of their own.
    is_small = p.less.bind(p.absolute.bind(fixed), info.smallest_normal)
    factor = p.select.bind(is_small, dtype.type(2.0 ** (info.nmant + 1)), dtype.type(1))
    bits = Bitcast(np.dtype(f"i{dtype.itemsize}")).bind(p.mul.bind(fixed, factor))
    word = aval_of(bits).dtype.type
    field = p.bitwise_and.bind(
        p.right_shift.bind(bits, word(info.nmant)), word(2 ** (info.bits - info.nmant - 1) - 1)
    )
    bias = p.select.bind(is_small, word(info.nmant + info.maxexp - 1), word(info.maxexp - 2))
    exponent = p.convert(p.sub.bind(field, bias), INT64)
    has_none = p.bitwise_or.bind(
        p.equal.bind(fixed, dtype.type(0)), p.bitwise_not.bind(p.isfinite.bind(fixed))
    )
    exponent = p.select.bind(has_none, np.int64(0), exponent)
    return ldexp(x, e.negative(exponent)), p.convert(exponent, INT32)


def spacing(x: Any) -> Any:
    """Distance to the next floating-point number.

    As `numpy.spacing`: the distance to the next number away from 0, with the sign of ``x``.

    Args: x: Real array.
    Returns: The distances, whose derivative is 0; that of 0 is the least positive number.
    Example: print(float(fg.numpy.spacing(1.0)), float(fg.numpy.spacing(-3.0)))
        -> 2.220446049250313e-16 -4.440892098500626e-16
    """
    (x,) = map(promotion.strong, promotion.promote_inexact(promotion.as_value(x, "spacing")))
    dtype = aval_of(x).dtype
    if dtype.kind != "f":
        raise DtypeError(f"spacing is not defined for complex numbers, got {aval_of(x)}.")
    size = p.absolute.bind(p.stop_gradient.bind(x))
    # Of the largest number it is the distance to the one before, as that has the same exponent.
    largest = np.finfo(dtype).max
    is_last = p.equal.bind(size, largest)
    low = p.select.bind(is_last, np.nextafter(largest, dtype.type(0)), size)
    gap = p.sub.bind(nextafter.bind(low, dtype.type(np.inf)), low)
    is_negative = p.less.bind(p.stop_gradient.bind(x), dtype.type(0))
    return p.select.bind(is_negative, p.neg.bind(gap), gap)


_BITS_OF_BYTE = np.arange(8, dtype=np.uint8)


def _bit_order(bitorder: str, function: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{function}: bitorder must be 'big' or 'little', got {bitorder!r}.")
    return _BITS_OF_BYTE[::-1] if bitorder == "big" else _BITS_OF_BYTE


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Bits packed into bytes.

    As `numpy.packbits`: eight truth values to a byte.

    Args:
        a: Array of integers or bools.
        axis: Where eight become one; by default all of ``a`` is one line.
        bitorder: ``"big"``: the first is the highest bit; or ``"little"``.
    Returns: Array of uint8; where the length is no multiple of 8, bits that are missing are 0.
    Example: print(fg.numpy.packbits([1, 0, 0, 0, 0, 0, 1, 1, 1])) -> [131 128]
    """
    shifts = _bit_order(bitorder, "packbits")
    x = e.truth(promotion.strong(_whole(a, "packbits")))
    if axis is None:
        x, axis = ravel(x), 0
    axis = promotion.normalize_axis(axis, len(shape_of(x)), "packbits")
    x = moveaxis(x, axis, -1)
    *lead, n = shape_of(x)
    whole = constant_pad(x, [(0, 0)] * len(lead) + [(0, -n % 8)])
    bytes_ = reshape(p.convert(whole, UINT8), (*lead, math.ceil(n / 8), 8))
    return moveaxis(sum(p.left_shift.bind(bytes_, shifts), -1, UINT8), -1, axis)


def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Any:
    """Bytes unpacked into bits.

    As `numpy.unpackbits`: the bits of bytes, one number each.

    Args:
        a: Array of uint8.
        axis: Where one becomes eight; by default all of ``a`` is one line.
        count: How many bits to return, more than there are being 0; a negative number is how many
            to leave away at the end.
        bitorder: ``"big"``: the highest bit comes first; or ``"little"``.
    Returns: Array of uint8, zeros and ones.
    Raises: DtypeError: If ``a`` holds no uint8.
    Example: print(fg.numpy.unpackbits(np.array([131], np.uint8))) -> [1 0 0 0 0 0 1 1]
    """
    shifts = _bit_order(bitorder, "unpackbits")
    x = promotion.strong(promotion.as_value(a, "unpackbits"))
    if aval_of(x).dtype != UINT8:
        raise DtypeError(f"unpackbits needs an array of uint8, got {aval_of(x)}.")
    if axis is None:
        x, axis = ravel(x), 0
    axis = promotion.normalize_axis(axis, len(shape_of(x)), "unpackbits")
    x = moveaxis(x, axis, -1)
    shape = shape_of(x)
    bits = p.bitwise_and.bind(
        p.right_shift.bind(reshape(x, (*shape, 1)), shifts), promotion.to_dtype(1, UINT8)
    )
    n = shape[-1] * 8
    line = reshape(bits, (*shape[:-1], n))
    if count is not None:
        kept = count if count >= 0 else max(n + count, 0)
        line = line[..., :kept]
        line = constant_pad(line, [(0, 0)] * (len(shape) - 1) + [(0, max(kept - n, 0))])
    return moveaxis(line, -1, axis)
