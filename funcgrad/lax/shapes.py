"""Functions that move, repeat and make elements, and never compute with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax.operands import (
    Array,
    ArrayLike,
    Shape,
    array_operand,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    check_kinds,
    check_operand,
    checked,
    same_dtype,
)
from funcgrad.primitives import shape as primitive
from funcgrad.primitives.creation import Full, Iota
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
    "broadcasted_iota", "collapse", "concatenate", "empty", "expand_dims", "full", "full_like",
    "iota", "pad", "reshape", "rev", "shape_as_value", "split", "squeeze", "stack", "tile",
    "transpose", "unstack",
]  # fmt: skip


def _static_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises: ShapeError: If a length is negative.
    """
    lengths = tuple(map(int, primitive.lengths_in(shape)))
    if any(n < 0 for n in lengths):
        raise ShapeError(f"lax.{name}: lengths must not be negative, got {lengths}.")
    return lengths


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that all ``shapes`` broadcast to.

    Args: *shapes: Shapes, tuples of integers.
    Raises: ShapeError: If they do not fit together.
    Example: fg.lax.broadcast_shapes((3, 1), (4,)) -> (3, 4)
    """
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        listed = ", ".join(map(str, shapes))
        raise ShapeError(
            f"lax.broadcast_shapes: Incompatible shapes for broadcasting: {listed} do not fit "
            "together. Axes are aligned from the right; lengths must be equal or 1."
        ) from None


def broadcast(operand: ArrayLike, sizes: Shape, *, out_sharding: Any = None) -> Array:
    """``operand`` repeated along new leading axes.

    Args: sizes: Lengths of the new axes.
    Returns: An array of shape ``(*sizes, *operand.shape)``.
    Example: fg.lax.broadcast(np.arange(2.0), (3,))
        -> array([[0., 1.],
                  [0., 1.],
                  [0., 1.]])
    """
    check_placement("lax.broadcast", out_sharding=out_sharding)
    x = array_operand("broadcast", operand)
    return primitive.broadcast_to(x, (*_static_shape("broadcast", sizes), *shape_of(x)))


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Shape,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """``operand`` repeated to ``shape``, its axes placed where it is said.

    Args: broadcast_dimensions: For every axis of ``operand`` its place in the result, ascending.
            Axes of length 1 are repeated.
    Returns: An array of ``shape``.
    Example: print(fg.lax.broadcast_in_dim(np.array([1, 2]), (2, 3), (0,)))
        -> [[1 1 1]
            [2 2 2]]
    """
    check_placement("lax.broadcast_in_dim", out_sharding=out_sharding)
    x = array_operand("broadcast_in_dim", operand)
    target = _static_shape("broadcast_in_dim", shape)
    places = tuple(broadcast_dimensions)
    own = shape_of(x)
    ascending = all(a < b for a, b in pairwise(places))
    fits = len(places) == len(own) and all(0 <= p < len(target) for p in places)
    if not fits or not ascending:
        raise ShapeError(
            f"lax.broadcast_in_dim: broadcast_dimensions {places} must name one axis of {target}, "
            f"in ascending order, for every axis of {aval_of(x)}."
        )
    kept = [1] * len(target)
    for place, n in zip(places, own, strict=True):
        kept[place] = n
    return checked(primitive.BroadcastTo(target), primitive.reshape(x, tuple(kept)))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """``x`` with leading axes of length 1, so that it has ``rank`` axes.

    Args: rank: Number of axes of the result.
    Example: fg.lax.broadcast_to_rank(np.arange(2.0), 3).shape -> (1, 1, 2)
    """
    x = array_operand("broadcast_to_rank", x)
    missing = rank - len(shape_of(x))
    if missing < 0:
        raise ShapeError(f"lax.broadcast_to_rank: {aval_of(x)} has more than {rank} axes.")
    return primitive.reshape(x, (*(1,) * missing, *shape_of(x)))


def reshape(
    operand: ArrayLike,
    new_sizes: Shape,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The elements in row-major order under another shape.

    Args:
        new_sizes: The new shape.
        dimensions: Order in which the axes are read, by default the given one.
    Returns: An array of shape ``new_sizes``.
    Example: fg.lax.reshape(np.arange(4.0), (2, 2))
        -> array([[0., 1.],
                  [2., 3.]])
    """
    check_placement("lax.reshape", out_sharding=out_sharding)
    x = array_operand("reshape", operand)
    if dimensions is not None:
        x = transpose(x, dimensions)
    shape = _static_shape("reshape", new_sizes)
    if math.prod(shape) != math.prod(shape_of(x)):
        raise ShapeError(
            f"lax.reshape: {aval_of(x)} has {math.prod(shape_of(x))} elements, shape {shape} has "
            f"{math.prod(shape)}. -1 is not accepted here; funcgrad.numpy.reshape takes it."
        )
    return primitive.reshape(x, shape)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """``arr`` broadcast to the shape of another array, by NumPy's rules.

    Args:
        arr: Array.
        like_arr: Array of the wanted shape.
    Example: print(fg.lax.broadcast_like(np.array([1, 2]), np.zeros((2, 2))))
        -> [[1 2]
            [1 2]]
    """
    shape = shape_of(array_operand("broadcast_like", like_arr))
    return checked(primitive.BroadcastTo(shape), array_operand("broadcast_like", arr))


def shape_as_value(shape: Shape) -> Array:
    """A shape as an array of integers.

    Example: fg.lax.shape_as_value((2, 3)) -> array([2, 3])
    """
    return np.array(_static_shape("shape_as_value", shape), np.int64)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """``operand`` with the axes ``start_dimension .. stop_dimension - 1`` merged into one.

    Args:
        start_dimension: First merged axis.
        stop_dimension: End of the merged axes, by default all.
    Returns: The reshaped array.
    Example: fg.lax.collapse(np.ones((2, 3, 4)), 0, 2).shape -> (6, 4)
    """
    x = array_operand("collapse", operand)
    own = shape_of(x)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(own))
    merged = math.prod(own[start:stop])
    return primitive.reshape(x, (*own[:start], merged, *own[stop:]))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """``array`` without the axes ``dimensions``, which have length 1.

    Example: fg.lax.squeeze(np.ones((1, 2)), (0,)) -> array([1., 1.])
    """
    x = array_operand("squeeze", array)
    own = shape_of(x)
    axes = canonical_axes("squeeze", dimensions, len(own))
    long = [a for a in axes if own[a] != 1]
    if long:
        raise ShapeError(f"lax.squeeze: axes {long} of {aval_of(x)} are not of length 1.")
    return primitive.reshape(x, primitive.drop_axes(own, axes))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """``array`` with axes of length 1 that are at ``dimensions`` of the result.

    Example: fg.lax.expand_dims(np.ones(2), (0,)) -> array([[1., 1.]])
    """
    x = array_operand("expand_dims", array)
    ndim = len(shape_of(x)) + len(dimensions)
    lengths = list(shape_of(x))
    for axis in sorted(canonical_axes("expand_dims", dimensions, ndim)):
        lengths.insert(axis, 1)
    return primitive.reshape(x, tuple(lengths))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permuted axes: axis ``i`` of the result is axis ``permutation[i]`` of ``operand``.

    Args: permutation: The axes of the operand, in the order of the result.
    Example: fg.lax.transpose(np.arange(6.0).reshape(2, 3), (1, 0))
        -> array([[0., 3.],
                  [1., 4.],
                  [2., 5.]])
    """
    x = array_operand("transpose", operand)
    order = tuple(int(i) for i in permutation)
    if sorted(order) != list(range(len(shape_of(x)))):
        raise ShapeError(
            f"lax.transpose: {order} is not a permutation of the axes of {aval_of(x)}."
        )
    return primitive.Transpose(order).bind(x)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """``operand`` with the elements along ``dimensions`` in opposite order.

    Example: fg.lax.rev(np.arange(3.0), (0,)) -> array([2., 1., 0.])
    """
    x = array_operand("rev", operand)
    return primitive.Reverse(canonical_axes("rev", dimensions, len(shape_of(x)))).bind(x)


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """``operand`` with elements put before, behind and between its own.

    Args:
        padding_value: Scalar of its dtype.
        padding_config: ``(low, high, interior)`` for every axis; negative low and high cut.
    Returns: The padded array.
    Example: print(fg.lax.pad(np.array([1, 2]), 0, [(1, 0, 1)])) -> [0 1 0 2]
    """
    x = array_operand("pad", operand)
    x, fill = same_dtype("pad", x, padding_value)
    config = [tuple(map(int, row)) for row in padding_config]
    if len(config) != len(shape_of(x)) or any(len(row) != 3 or row[2] < 0 for row in config):
        raise ShapeError(
            f"lax.pad: {aval_of(x)} needs one (low, high, interior) per axis, interior >= 0, got "
            f"{config}."
        )
    lows, highs, interiors = zip(*config, strict=True) if config else ((), (), ())
    return checked(primitive.Pad(lows, highs, interiors), x, fill)


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """The operands, of one dtype, one after the other along an axis.

    Args: operands: At least one array.
    Returns: The joined array.
    Example: fg.lax.concatenate([np.zeros(2), np.ones(1)], 0) -> array([0., 0., 1.])
    """
    if not len(operands):
        raise ArgumentError("lax.concatenate needs at least one array.")
    arrays = [array_operand("concatenate", x) for x in operands]
    arrays = same_dtype("concatenate", *arrays)
    axis = canonical_axis("concatenate", dimension, len(shape_of(arrays[0])))
    return checked(primitive.Concatenate(axis), *arrays) if len(arrays) > 1 else arrays[0]


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """The operands, of one type, along a new axis.

    Args:
        operands: Arrays of one shape and dtype.
        axis: The new axis.
    Example: fg.lax.stack([np.zeros(2), np.ones(2)])
        -> array([[0., 0.],
                  [1., 1.]])
    """
    rank = len(shape_of(operands[0])) + 1 if len(operands) else 1
    place = canonical_axis("stack", axis, rank)
    return concatenate([expand_dims(x, (place,)) for x in operands], place)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of ``x`` along an axis, without that axis.

    Args: axis: The new axis.
    Example: fg.lax.unstack(np.arange(2.0)) -> (array(0.), array(1.))
    """
    x = array_operand("unstack", x)
    place = canonical_axis("unstack", axis, len(shape_of(x)))
    sizes = (1,) * shape_of(x)[place]
    return tuple(squeeze(part, (place,)) for part in split(x, sizes, place))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Consecutive pieces of the given ``sizes`` along an axis.

    Args: sizes: Lengths of the pieces; their sum is the length of the axis.
    Returns: One array per size.
    Example: fg.lax.split(np.arange(4.0), (1, 3)) -> [array([0.]), array([1., 2., 3.])]
    """
    x = array_operand("split", operand)
    own = shape_of(x)
    place = canonical_axis("split", axis, len(own))
    sizes = tuple(int(n.__index__()) for n in sizes)
    if sum(sizes) != own[place]:
        raise ShapeError(f"lax.split: sizes {sizes} do not add up to axis {place} of {aval_of(x)}.")
    pieces, start = [], 0
    for size in sizes:
        starts = tuple(start if i == place else 0 for i in range(len(own)))
        limits = tuple(start + size if i == place else n for i, n in enumerate(own))
        pieces.append(primitive.Slice(starts, limits, (1,) * len(own)).bind(x))
        start += size
    return pieces


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """``operand`` repeated ``reps[i]`` times along axis ``i``.

    Args: reps: How often each axis is repeated.
    Example: fg.lax.tile(np.arange(2.0), (2,)) -> array([0., 1., 0., 1.])
    """
    x = array_operand("tile", operand)
    own = shape_of(x)
    if len(reps) != len(own):
        raise ShapeError(f"lax.tile: {aval_of(x)} needs one count per axis, got {tuple(reps)}.")
    spread = tuple(m for n in own for m in (1, n))
    repeated = tuple(m for n, count in zip(own, reps, strict=True) for m in (count, n))
    out = primitive.broadcast_to(primitive.reshape(x, spread), repeated)
    return primitive.reshape(out, tuple(n * count for n, count in zip(own, reps, strict=True)))


def iota(dtype: Any, size: int) -> Array:
    """``0, 1, ..., size - 1``.

    Args:
        dtype: Integer, floating or complex dtype.
        size: Length.
    Returns: A one-dimensional array.
    Example: fg.lax.iota(np.int64, 3) -> array([0, 1, 2])
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: Any, shape: Shape, dimension: int, *, out_sharding: Any = None
) -> Array:
    """``0, 1, 2, ...`` along one axis, repeated along the others.

    Args: dtype: Integer, floating or complex dtype.
    Returns: An array of ``shape``.
    Example: fg.lax.broadcasted_iota(np.int64, (2, 3), 1)
        -> array([[0, 1, 2],
                  [0, 1, 2]])
    """
    wanted = canonical_dtype(dtype)
    check_placement("lax.broadcasted_iota", out_sharding=out_sharding)
    check_kinds("broadcasted_iota", wanted, "iufc")
    lengths = _static_shape("broadcasted_iota", shape)
    axis = canonical_axis("broadcasted_iota", dimension, len(lengths))
    return Iota(lengths, axis, wanted).bind()


def full(shape: Shape, fill_value: ArrayLike, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array filled with a scalar.

    Args:
        shape: Its shape.
        fill_value: The scalar.
        dtype: Its dtype, by default that of the scalar.
    Returns: A new array.
    Raises: ShapeError: If ``fill_value`` is no scalar.
    Example: fg.lax.full((2,), 7.0) -> array([7., 7.])
    """
    check_placement("lax.full", sharding=sharding)
    fill = array_operand("full", fill_value)
    wanted = aval_of(fill).dtype if dtype is None else canonical_dtype(dtype)
    return checked(Full(_static_shape("full", shape)), convert(fill, wanted))


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    shape: Shape | None = None,
    sharding: Any = None,
) -> Array:
    """An array like ``x``, filled with a scalar.

    Args:
        x: Array that gives shape and dtype.
        fill_value: The scalar.
        dtype: Another dtype.
        shape: Another shape.
    Returns: A new array.
    Example: fg.lax.full_like(np.ones(2), 7.0) -> array([7., 7.])
    """
    check_placement("lax.full_like", sharding=sharding)
    aval = aval_of(check_operand("full_like", x))
    wanted = aval.dtype if dtype is None else dtype
    return full(aval.shape if shape is None else shape, fill_value, wanted)


def empty(shape: Shape, dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of zeros: a traced program has no uninitialised memory.

    Example: fg.lax.empty((2,), np.float64).shape -> (2,)
    """
    check_placement("lax.empty", out_sharding=out_sharding)
    return full(shape, 0, dtype)
