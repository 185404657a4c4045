"""Random bits, and the uniform numbers made of them: floats and integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import INT64, UINT64
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.primitives import elementwise as primitive
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.shape import broadcast_to
from funcgrad.random.keys import canonical_shape, parts_of, random_bits, refuse_sharding
from funcgrad.random.parameters import (
    array_of,
    floating_dtype,
    parameter,
    parameter_shape,
    sample_dtype,
)


def bits(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Random bits.

    Args: dtype: uint8, uint16, uint32 or uint64, which is the default.
    Returns: Unsigned integers, all values equally likely.
    Example: print(fg.random.bits(fg.random.key(0), (2,), np.uint32)) -> [4070199207 4202968722]
    """
    refuse_sharding("bits", out_sharding)
    wanted = sample_dtype(dtype, UINT64)
    if wanted.kind != "u":
        raise DtypeError(f"random.bits needs an unsigned dtype, got {wanted}.")
    return random_bits("bits", key, canonical_shape("bits", shape), wanted)


_MANTISSA = {4: 23, 8: 52}


def units(name: str, key: ArrayLike, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Random floats in [0, 1).

    Args:
        name: The function that draws, for messages.
        key: A key.
        shape: The shape.
        dtype: float32 or float64.
    """
    return unit_of(random_bits(name, key, shape, np.dtype(f"u{dtype.itemsize}")), dtype)


def unit_of(drawn: Array, dtype: np.dtype[Any]) -> Array:
    """Unsigned integers as floats in [0, 1)."""
    width = dtype.itemsize
    discarded = drawn.dtype.type(8 * width - _MANTISSA[width])
    whole = primitive.convert(primitive.right_shift.bind(drawn, discarded), dtype)
    # Exact: the same as filling the mantissa of a number in [1, 2) and subtracting 1.
    return primitive.mul.bind(whole, dtype.type(0.5 ** _MANTISSA[width]))


def uniform(
    key: ArrayLike,
    shape: int | Sequence[int] = (),
    dtype: Any = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: None = None,
) -> Array:
    """Uniform floats in ``[minval, maxval)``.

    Args:
        minval: Lower bound, a scalar or an array that broadcasts to ``shape``.
        maxval: Upper bound, likewise.

    Returns:
        Multiples of the machine epsilon between 0 and 1, scaled to the bounds. With
        ``dtype=np.float32`` they are the numbers that JAX draws by default.
    Example: print(fg.random.uniform(fg.random.key(0), (2,), np.float32)) -> [0.947667  0.9785799]
    """
    refuse_sharding("uniform", out_sharding)
    wanted = floating_dtype("uniform", dtype)
    lengths = parameter_shape("uniform", shape, minval, maxval)
    unit = units("uniform", key, lengths, wanted)
    if type(minval) is float and type(maxval) is float and (minval, maxval) == (0.0, 1.0):
        return unit
    low, high = parameter("uniform", minval, wanted), parameter("uniform", maxval, wanted)
    scaled = primitive.mul.bind(unit, primitive.sub.bind(high, low))
    # Rounding may leave the interval at its lower end.
    return primitive.maximum.bind(low, primitive.add.bind(scaled, low))


def randint(
    key: ArrayLike,
    shape: int | Sequence[int],
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Uniform integers in ``minval .. maxval - 1``.

    Args:
        minval: Smallest value, a scalar or an array that broadcasts to ``shape``.
        maxval: End of the range, likewise; where it is not above ``minval`` the result is
            ``minval``. One more than the largest value of the dtype is allowed.
        dtype: Integer dtype, by default int64.

    Returns:
        Integers. Their probabilities differ by at most one part in 2**64 (2**32 for dtypes of up
        to 32 bits) of the length of the range.
    Example: print(fg.random.randint(fg.random.key(0), (5,), 0, 10)) -> [5 1 5 7 3]
    """
    refuse_sharding("randint", out_sharding)
    wanted = sample_dtype(dtype, INT64)
    if wanted.kind not in "iu":
        raise DtypeError(f"random.randint needs an integer dtype, got {wanted}.")
    lengths = parameter_shape("randint", shape, minval, maxval)
    low, high = _bound("minval", minval), _bound("maxval", maxval)
    # Narrow dtypes are drawn from 32 bits.
    sampled = np.dtype(np.int32) if wanted.itemsize < 4 else wanted
    limits, wider = np.iinfo(wanted), np.iinfo(sampled)
    beyond = _exceeds(high, limits.max)
    low = _clipped(low, limits.min, limits.max, sampled)
    high = _clipped(high, limits.min, min(limits.max + 1, wider.max), sampled)
    drawn = _randint(key, lengths, low, high, beyond if sampled == wanted else None, sampled)
    return primitive.convert(drawn, wanted)


def _bound(name: str, value: ArrayLike) -> Array:
    """A bound as an array of integers."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        raise ArgumentError(f"random.randint: {name}={value} does not fit into 64 bits.")
    array = array_of("randint", value)
    dtype = aval_of(array).dtype
    if dtype.kind == "c":
        raise DtypeError(f"random.randint: {name} must be an integer, got {aval_of(array)}.")
    return primitive.convert(array, dtype if dtype.kind in "iu" else np.dtype(np.int64))


def _exceeds(bound: Array, limit: int) -> Array | None:
    """Mask of the bounds above ``limit``, or ``None`` if their dtype has none there."""
    dtype = aval_of(bound).dtype
    if np.iinfo(dtype).max <= limit:
        return None
    return primitive.greater.bind(bound, dtype.type(limit))


def _clipped(bound: Array, low: int, high: int, dtype: np.dtype[Any]) -> Array:
    """A bound limited to ``low .. high``, as ``dtype``."""
    own = aval_of(bound).dtype
    limits = np.iinfo(own)
    if limits.min < low:
        bound = primitive.maximum.bind(bound, own.type(low))
    if limits.max > high:
        bound = primitive.minimum.bind(bound, own.type(high))
    return primitive.convert(bound, dtype)


def _randint(
    key: ArrayLike,
    shape: tuple[int, ...],
    low: Array,
    high: Array,
    beyond: Array | None,
    dtype: np.dtype[Any],
) -> Array:
    """Integers of 32 or 64 bits from twice as many random bits, modulo the length of the range."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    upper, lower = (random_bits("randint", each, shape, unsigned) for each in parts_of(key))
    is_range = primitive.greater.bind(high, low)
    difference = primitive.sub.bind(
        primitive.convert(high, unsigned), primitive.convert(low, unsigned)
    )
    span = primitive.select.bind(is_range, difference, unsigned.type(1))
    if beyond is not None:
        # The range includes the largest value. If it is everything, the length wraps to 0; then
        # NumPy's remainder by 0 would give 0, and all bits are wanted: handled below.
        longer = primitive.bitwise_and.bind(beyond, is_range)
        span = primitive.add.bind(span, primitive.convert(longer, unsigned))
    return _modulo(upper, lower, span, low, dtype, may_wrap=beyond is not None)


def _modulo(
    upper: Array, lower: Array, span: Array, low: Array, dtype: np.dtype[Any], may_wrap: bool
) -> Array:
    unsigned = aval_of(span).dtype
    zero, one = unsigned.type(0), unsigned.type(1)
    is_everything = primitive.equal.bind(span, zero)
    if may_wrap:
        span = primitive.select.bind(is_everything, one, span)
    half = unsigned.type(1 << 4 * unsigned.itemsize)
    root = primitive.remainder.bind(half, span)
    factor = primitive.remainder.bind(primitive.mul.bind(root, root), span)
    high_part = primitive.mul.bind(primitive.remainder.bind(upper, span), factor)
    total = primitive.add.bind(high_part, primitive.remainder.bind(lower, span))
    offset = primitive.remainder.bind(total, span)
    if may_wrap:
        offset = primitive.select.bind(is_everything, lower, offset)
    drawn = primitive.add.bind(low, primitive.convert(offset, dtype))
    return broadcast_to(drawn, shape_of(upper))
