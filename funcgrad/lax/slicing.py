"""Windows of arrays, with static and with traced starts.

Traced starts are clamped so that the window lies inside the array; negative ones count from the
end before that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import DtypeError, OutOfBoundsError, ShapeError
from funcgrad.lax.operands import (
    Array,
    ArrayLike,
    Shape,
    array_operand,
    canonical_axis,
    checked,
    same_dtype,
)
from funcgrad.lax.shapes import squeeze
from funcgrad.primitives import indexing
from funcgrad.primitives import shape as primitive
from funcgrad.primitives.elementwise import add, less, select
from funcgrad.primitives.families import shape_of

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "index_in_dim", "slice", "slice_in_dim",
]  # fmt: skip


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """``operand[start_indices[0]:limit_indices[0]:strides[0], ...]`` with static bounds.

    Args:
        start_indices: First index per axis, not negative.
        limit_indices: End per axis, at most its length.
        strides: Step per axis, by default 1.
    Returns: The elements inside the bounds.
    Example: fg.lax.slice(np.arange(5.0), (1,), (4,)) -> array([1., 2., 3.])
    """
    x = array_operand("slice", operand)
    steps = (1,) * len(start_indices) if strides is None else tuple(map(int, strides))
    starts, limits = tuple(map(int, start_indices)), tuple(map(int, limit_indices))
    if not len(starts) == len(limits) == len(steps) == len(shape_of(x)):
        raise ShapeError(f"lax.slice: {aval_of(x)} needs a start, limit and stride for every axis.")
    return checked(primitive.Slice(starts, limits, steps), x)


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """`slice` along one axis, where negative and missing bounds mean what they do in Python.

    Args:
        start_index: First index, by default 0.
        limit_index: End, by default the length.
        stride: Positive step.
    Returns: The elements inside the bounds.
    Example: print(fg.lax.slice_in_dim(np.arange(6), 1, -1, stride=2)) -> [1 3]
    """
    x = array_operand("slice_in_dim", operand)
    own = shape_of(x)
    place = canonical_axis("slice_in_dim", axis, len(own))
    n = own[place]
    start = 0 if start_index is None else start_index + n * (start_index < 0)
    limit = n if limit_index is None else limit_index + n * (limit_index < 0)
    starts, limits, strides = [0] * len(own), list(own), [1] * len(own)
    starts[place], limits[place], strides[place] = start, limit, stride
    return slice(x, starts, limits, strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at one static index along an axis.

    Args: index: The index; negative ones count from the end.
    Returns: The slice.
    Raises: OutOfBoundsError: If there is no such index.
    Example: fg.lax.index_in_dim(np.arange(6.0).reshape(2, 3), 1, 0) -> array([[3., 4., 5.]])
    """
    x = array_operand("index_in_dim", operand)
    place = canonical_axis("index_in_dim", axis, len(shape_of(x)))
    n = shape_of(x)[place]
    if not -n <= index < n:
        raise OutOfBoundsError(
            f"lax.index_in_dim: index {index} is out of bounds for axis {place} of {aval_of(x)}."
        )
    out = slice_in_dim(x, index % n, index % n + 1, axis=place)
    return out if keepdims else squeeze(out, (place,))


def _starts(
    name: str,
    x: Array,
    start_indices: ArrayLike | Sequence[ArrayLike],
    is_counted: bool | Sequence[bool],
) -> list[Array]:
    """One int scalar per axis, negative ones counted from the end where ``is_counted``."""
    own = shape_of(x)
    if isinstance(start_indices, np.ndarray | Tracer):
        count = shape_of(start_indices)[0] if shape_of(start_indices) else 0
        parts = [index_in_dim(start_indices, i, keepdims=False) for i in range(count)]
    else:
        parts = [array_operand(name, i) for i in start_indices]
    if len(parts) != len(own):
        raise ShapeError(f"lax.{name}: {aval_of(x)} needs one start per axis, got {len(parts)}.")
    flags = [is_counted] * len(own) if isinstance(is_counted, bool) else list(is_counted)
    rows = zip(parts, own, flags, strict=True)
    return [_from_end(name, i, n) if flag else i for i, n, flag in rows]


def _from_end(name: str, index: Array, n: int) -> Array:
    aval = aval_of(index)
    if aval.dtype.kind not in "iu" or aval.shape:
        raise DtypeError(f"lax.{name}: a start must be an integer scalar, got {aval}.")
    if aval.dtype.kind == "u":
        return index
    index = indexing.as_index(index)
    return select.bind(less.bind(index, np.int64(0)), add.bind(index, np.int64(n)), index)


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Shape,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The window of static shape at a start that may be traced.

    Args: slice_sizes: Shape of the window.
    Returns: An array of shape ``slice_sizes``.
    Example: print(fg.lax.dynamic_slice(np.arange(5), (4,), (3,))) -> [2 3 4]
    """
    x = array_operand("dynamic_slice", operand)
    starts = _starts("dynamic_slice", x, start_indices, allow_negative_indices)
    return checked(indexing.DynamicSlice(tuple(map(int, slice_sizes))), x, *starts)


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_slice` along one axis.

    Args: slice_size: Length of the window.
    Returns: The window.
    Example: fg.lax.dynamic_slice_in_dim(np.arange(5.0), 1, 3) -> array([1., 2., 3.])
    """
    x = array_operand("dynamic_slice_in_dim", operand)
    own = shape_of(x)
    place = canonical_axis("dynamic_slice_in_dim", axis, len(own))
    starts = [start_index if i == place else 0 for i in range(len(own))]
    sizes = [slice_size if i == place else n for i, n in enumerate(own)]
    return dynamic_slice(x, starts, sizes, allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    allow_negative_indices: bool = True,
) -> Array:
    """The slice at one index, which may be traced, along an axis.

    Returns: The slice.
    Example: fg.lax.dynamic_index_in_dim(np.arange(6.0).reshape(2, 3), 1, 0)
        -> array([[3., 4., 5.]])
    """
    x = array_operand("dynamic_index_in_dim", operand)
    place = canonical_axis("dynamic_index_in_dim", axis, len(shape_of(x)))
    out = dynamic_slice_in_dim(x, index, 1, place, allow_negative_indices)
    return out if keepdims else squeeze(out, (place,))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """``operand`` with the window at a start that may be traced replaced.

    Returns: An array like ``operand``.
    Example: print(fg.lax.dynamic_update_slice(np.zeros(4), np.ones(2), (1,))) -> [0. 1. 1. 0.]
    """
    x = array_operand("dynamic_update_slice", operand)
    x, update = same_dtype("dynamic_update_slice", x, array_operand("dynamic_update_slice", update))
    starts = _starts("dynamic_update_slice", x, start_indices, allow_negative_indices)
    return checked(indexing.DynamicUpdateSlice(), x, update, *starts)


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_update_slice` along one axis.

    Returns: An array like ``operand``.
    Example: fg.lax.dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0)
        -> array([0., 1., 1., 0.])
    """
    x = array_operand("dynamic_update_slice_in_dim", operand)
    place = canonical_axis("dynamic_update_slice_in_dim", axis, len(shape_of(x)))
    starts = [start_index if i == place else 0 for i in range(len(shape_of(x)))]
    return dynamic_update_slice(x, update, starts, allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    allow_negative_indices: bool = True,
) -> Array:
    """``operand`` with the slice at one index, which may be traced, replaced.

    Args: update: The new slice, with the axis (of length 1) or without it.
    Returns: An array like ``operand``.
    Example: fg.lax.dynamic_update_index_in_dim(np.zeros(3), 7.0, 1, 0) -> array([0., 7., 0.])
    """
    x = array_operand("dynamic_update_index_in_dim", operand)
    place = canonical_axis("dynamic_update_index_in_dim", axis, len(shape_of(x)))
    x, update = same_dtype("dynamic_update_index_in_dim", x, update)
    if len(shape_of(update)) != len(shape_of(x)):
        shape = shape_of(update)
        update = primitive.reshape(update, (*shape[:place], 1, *shape[place:]))
    return dynamic_update_slice_in_dim(x, update, index, place, allow_negative_indices)
