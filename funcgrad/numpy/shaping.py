"""Functions that reshape arrays: axes moved, added, dropped, broadcast; padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import dialect
from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import INT64, PYTHON_SCALARS
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axes,
    normalize_axis,
    strong,
    to_dtype,
)
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.objects import HoldsArray, unwrapped
from funcgrad.primitives.shape import shape_of

__all__ = [
    "astype", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to",
    "expand_dims", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis",
    "squeeze", "swapaxes", "transpose",
]  # fmt: skip


def static_ints(shape: Any) -> tuple[int, ...]:
    """A shape from an int or a sequence of ints."""
    return tuple(int(n.__index__()) for n in s.lengths_in(shape))


def astype(x: Any, dtype: Any, copy: bool = False, *, device: Any = None) -> Any:
    """``x`` converted to ``dtype``; complex to real drops the imaginary part.

    Example: fg.numpy.astype(np.array([1.7, -1.7]), np.int64) -> array([ 1, -1])
    """
    check_placement("astype", device=device)
    if isinstance(x, HoldsArray):
        return x.astype(dtype)
    x, target = as_value(x, "astype"), checked_dtype(dtype, "astype")
    found = p.Convert(target).bind(x) if type(x) in PYTHON_SCALARS else p.convert(x, target)
    if (rule := dialect().converted) is not None and isinstance(found, Tracer):
        found = rule(found, np.dtype(dtype))
    return found.copy() if copy and found is x and isinstance(x, np.ndarray) else found


def traced_integer(k: Any, function: str) -> Any:
    """A number of a diagonal, a distance or a count as a traced int64, or None if it is known."""
    k = unwrapped(k)
    if not isinstance(k, Tracer):
        return None
    if k.dtype.kind not in "iu" or k.shape:
        raise ArgumentError(
            f"{function} needs an integer, got a traced {k.aval} inside {k.owner.what}. Convert it "
            "with .astype(int)."
        )
    return p.convert(k, INT64)


def reshape(
    a: Any,
    shape: Any = None,
    order: str = "C",
    *,
    newshape: Any = None,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Any:
    """Elements in another shape.

    As `numpy.reshape`, in the orders ``"C"`` and ``"F"``; one length may be -1.

    With ``copy=True`` the result shares no memory with an ndarray.

    Args: newshape: Old name of ``shape``.
    Example: fg.numpy.reshape(np.arange(6.0), (2, 3))
        -> array([[0., 1., 2.],
                  [3., 4., 5.]])
    """
    check_placement("reshape", out_sharding=out_sharding)
    if order != "C":
        return _reshape_by_columns(a, static_ints(newshape if shape is None else shape), order)
    a = as_value(a, "reshape")
    shape = static_ints(newshape if shape is None else shape)
    size = aval_of(a).size
    if -1 in shape:
        known = int(np.prod([n for n in shape if n != -1], dtype=np.int64))
        if shape.count(-1) > 1 or not known or size % known:
            raise ShapeError(
                f"reshape: {aval_of(a)} with {size} elements does not fit shape {shape}."
            )
        shape = tuple(size // known if n == -1 else n for n in shape)
    found = s.reshape(a, shape)
    if copy is None or not isinstance(found, np.ndarray):
        return found
    if not copy and not np.shares_memory(found, a):
        raise ValueError("reshape(copy=False): this shape needs a copy of the array.")
    return found.copy() if copy else found


def _reshape_by_columns(a: Any, shape: tuple[int, ...], order: str) -> Any:
    """With the first axis counting fastest: the transpose of the transpose, reshaped."""
    if order != "F":
        raise ShapeError(
            f"reshape: order={order!r} is that of an array's memory, which traced arrays have not: "
            "give 'C' or 'F'."
        )
    return transpose(reshape(transpose(a), shape[::-1]))


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """Elements as a vector.

    As `numpy.ravel`, in the orders ``"C"`` and ``"F"``.

    Example: fg.numpy.ravel(np.array([[1.0, 2.0], [3.0, 4.0]])) -> array([1., 2., 3., 4.])
    """
    check_placement("ravel", out_sharding=out_sharding)
    return reshape(a, (-1,) if aval_of(as_value(a)).size else (0,), order)


def transpose(a: Any, axes: Any = None) -> Any:
    """An array with its axes in another order, reversed by default, as `numpy.transpose`.

    Args: axes: Axes, as integers.
    Example: fg.numpy.transpose(np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[1., 3.],
                  [2., 4.]])
    """
    a = as_value(a, "transpose")
    ndim = len(shape_of(a))
    if axes is None:
        order = tuple(reversed(range(ndim)))
    else:
        order = tuple(normalize_axis(i, ndim, "transpose") for i in np.atleast_1d(axes))
    return a if order == tuple(range(ndim)) else s.Transpose(order).bind(a)


permute_dims = transpose


def matrix_transpose(x: Any) -> Any:
    """The last two axes exchanged.

    Example: fg.numpy.matrix_transpose(np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[1., 3.],
                  [2., 4.]])
    """
    return swapaxes(x, -1, -2)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An array with an axis moved back to a position.

    As `numpy.rollaxis`: move an axis to before another.

    Example: fg.numpy.rollaxis(np.ones((2, 3, 4)), 2).shape -> (4, 2, 3)
    """
    ndim = len(shape_of(as_value(a, "rollaxis")))
    axis = normalize_axis(axis, ndim, "rollaxis")
    start = ndim if start == ndim else normalize_axis(start, ndim, "rollaxis")
    return moveaxis(a, axis, start - 1 if axis < start else start)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """An array with two axes exchanged, as `numpy.swapaxes`.

    Example: fg.numpy.swapaxes(np.array([[1.0, 2.0], [3.0, 4.0]]), 0, 1)
        -> array([[1., 3.],
                  [2., 4.]])
    """
    a = as_value(a, "swapaxes")
    ndim = len(shape_of(a))
    i, j = normalize_axis(axis1, ndim, "swapaxes"), normalize_axis(axis2, ndim, "swapaxes")
    order = list(range(ndim))
    order[i], order[j] = j, i
    return transpose(a, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """An array with axes in other positions, as `numpy.moveaxis`.

    Args:
        source: Axes that move.
        destination: New positions of these axes.
    Example: fg.numpy.moveaxis(np.ones((2, 3, 4)), 0, -1).shape -> (3, 4, 2)
    """
    a = as_value(a, "moveaxis")
    ndim = len(shape_of(a))
    pairs = zip(np.atleast_1d(destination), np.atleast_1d(source), strict=True)
    placed = {
        normalize_axis(int(d), ndim, "moveaxis"): normalize_axis(int(o), ndim, "moveaxis")
        for d, o in pairs
    }
    rest = iter(i for i in range(ndim) if i not in placed.values())
    return transpose(a, [placed[i] if i in placed else next(rest) for i in range(ndim)])


def expand_dims(a: Any, axis: Any) -> Any:
    """An array with further axes of length 1, as `numpy.expand_dims`.

    Example: fg.numpy.expand_dims(np.array([1.0, 2.0]), 0) -> array([[1., 2.]])
    """
    a = as_value(a, "expand_dims")
    count = len(axis) if isinstance(axis, tuple | list) else 1
    axes = normalize_axes(axis, len(shape_of(a)) + count, "expand_dims")
    rest = iter(shape_of(a))
    shape = tuple(1 if i in axes else next(rest) for i in range(len(shape_of(a)) + count))
    return s.reshape(a, shape)


def squeeze(a: Any, axis: Any = None) -> Any:
    """An array without axes of length 1, as `numpy.squeeze`.

    Args: axis: Axis, or tuple of axes, to remove; by default all of length 1.
    Example: fg.numpy.squeeze(np.ones((1, 2))) -> array([1., 1.])
    """
    a = as_value(a, "squeeze")
    shape = shape_of(a)
    if axis is None:
        axes = tuple(i for i, n in enumerate(shape) if n == 1)
    else:
        axes = normalize_axes(axis, len(shape), "squeeze")
    if any(shape[i] != 1 for i in axes):
        raise ShapeError(
            f"squeeze: an axis of {aval_of(a)} among {axes} has a length other than 1."
        )
    return s.reshape(a, s.drop_axes(shape, axes))


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """An array broadcast to a shape, as `numpy.broadcast_to`.

    Example: fg.numpy.broadcast_to(np.array([1.0, 2.0]), (2, 2))
        -> array([[1., 2.],
                  [1., 2.]])
    """
    check_placement("broadcast_to", out_sharding=out_sharding)
    return s.broadcast_to(strong(as_value(array, "broadcast_to")), static_ints(shape))


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Arrays broadcast against each other, as `numpy.broadcast_arrays`.

    Args: *args: Operands: arrays, numbers or traced values. They broadcast.
    Example: fg.numpy.broadcast_arrays([1.0, 2.0], [3.0, 4.0]) -> (array([1., 2.]), array([3., 4.]))
    """
    values = [strong(as_value(a)) for a in args]
    shape = np.broadcast_shapes(*map(shape_of, values))
    return tuple(s.broadcast_to(v, shape) for v in values)


def _at_least(*arrays: Any, shape: Any) -> Any:
    results = []
    for a in arrays:
        a = as_value(a)
        results.append(s.reshape(strong(a), shape(shape_of(a))))
    return results[0] if len(results) == 1 else results


def atleast_1d(*arrays: Any) -> Any:
    """Arrays with at least one axis, as `numpy.atleast_1d`.

    Example: fg.numpy.atleast_1d([1.0, 2.0]) -> array([1., 2.])
    """
    return _at_least(*arrays, shape=lambda n: n or (1,))


def atleast_2d(*arrays: Any) -> Any:
    """Arrays with at least two axes, as `numpy.atleast_2d`.

    Example: fg.numpy.atleast_2d([1.0, 2.0]) -> array([[1., 2.]])
    """
    return _at_least(*arrays, shape=lambda n: (1,) * (2 - len(n)) + n)


def atleast_3d(*arrays: Any) -> Any:
    """Arrays with at least three axes, as `numpy.atleast_3d`.

    Example: fg.numpy.atleast_3d([1.0, 2.0])
        -> array([[[1.],
                   [2.]]])
    """
    table = {0: (1, 1, 1)}
    return _at_least(
        *arrays,
        shape=lambda n: (
            table.get(len(n)) or ((1, *n, 1) if len(n) == 1 else (*n, 1) if len(n) == 2 else n)
        ),
    )


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad_widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """``(before, after)`` for every axis, in any of NumPy's spellings."""
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(i, pad_width.get(i - ndim, 0)) for i in range(ndim)]
        pad_width = [(w, w) if isinstance(w, int) else w for w in pad_width]
    widths = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    return [(int(low), int(high)) for low, high in widths]


def constant_pad(array: Any, widths: Sequence[tuple[int, int]], fill: Any = 0) -> Any:
    """``array`` with ``fill`` around it."""
    array = strong(array)
    fill = to_dtype(fill, aval_of(array).dtype)
    lows, highs = [w[0] for w in widths], [w[1] for w in widths]
    return s.Pad(tuple(lows), tuple(highs), (0,) * len(lows)).bind(array, fill)
