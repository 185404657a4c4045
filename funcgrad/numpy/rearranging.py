"""Elements in another order: flipped, rotated, rolled, repeated, in windows, as other dtypes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from funcgrad.base.defaults import only_defaults
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import INT64, real_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import shaping
from funcgrad.numpy.joining import concatenate, stack, unstack
from funcgrad.numpy.promotion import as_value, checked_dtype, normalize_axes, normalize_axis, strong
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.bits import Bitcast
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.shape import shape_of

__all__ = [
    "flip", "fliplr", "flipud", "roll", "rot90", "tile",
]  # fmt: skip


def flip(m: Any, axis: Any = None) -> Any:
    """Elements in reversed order along axes, as `numpy.flip`.

    Example: fg.numpy.flip(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        -> array([[3., 4.],
                  [1., 2.]])
    """
    m = as_value(m, "flip")
    return s.Reverse(normalize_axes(axis, len(shape_of(m)), "flip")).bind(m)


def fliplr(m: Any) -> Any:
    """Elements in reversed order along the second axis, as `numpy.fliplr`.

    Example: fg.numpy.fliplr(np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[2., 1.],
                  [4., 3.]])
    """
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """Elements in reversed order along the first axis, as `numpy.flipud`.

    Example: fg.numpy.flipud(np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[3., 4.],
                  [1., 2.]])
    """
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """An array rotated by multiples of 90 degrees.

    As `numpy.rot90`; for squares ``k`` may be traced.

    Args: axes: Axes, as integers.
    Example: fg.numpy.rot90(np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[2., 4.],
                  [1., 3.]])
    """
    turns = shaping.traced_integer(k, "rot90")
    if turns is not None:
        return _rotated(strong(as_value(m, "rot90")), turns, axes)
    i, j = axes
    k %= 4
    if k == 0:
        return as_value(m)
    if k == 2:
        return flip(m, (i, j))
    return shaping.swapaxes(flip(m, j), i, j) if k == 1 else flip(shaping.swapaxes(m, i, j), j)


def _rotated(m: Any, turns: Any, axes: tuple[int, int]) -> Any:
    """A square rotated by a traced number of quarters."""
    lengths = {shape_of(m)[axis] for axis in axes}
    if len(lengths) > 1:
        raise ShapeError(
            f"rot90: by a traced number of quarters, the shape of {aval_of(m)} would depend on a "
            "value. Pass a known k, or a square."
        )
    quarter = p.remainder.bind(turns, np.int64(4))
    out = m
    for k in (1, 2, 3):
        out = p.select.bind(p.equal.bind(quarter, np.int64(k)), rot90(m, k, axes), out)
    return out


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements shifted along axes, those that leave at one end entering at the other.

    As `numpy.roll`; the distances may be traced.

    Args:
        shift: Number of positions by which elements are shifted.
        axis: Axis, or tuple of axes, counted from the end if negative. By default elements move
            along the flattened array.
    Example: fg.numpy.roll(np.arange(4.0), 1) -> array([3., 0., 1., 2.])
    """
    a = as_value(a, "roll")
    if axis is None:
        return shaping.reshape(roll(shaping.ravel(a), shift, 0), shape_of(a))
    shift = as_value(shift, "roll")
    if isinstance(shift, Tracer):
        return _rolled(a, shift, np.atleast_1d(axis))
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    for distance, ax in zip(shifts.tolist(), axes.tolist(), strict=True):
        index = normalize_axis(ax, len(shape_of(a)), "roll")
        n = shape_of(a)[index]
        k = distance % n if n else 0
        if k:
            a = concatenate([s.cut(a, index, n - k, n), s.cut(a, index, 0, n - k)], index)
    return a


def _rolled(a: Any, shift: Tracer, axes: np.ndarray) -> Any:
    """``a`` moved by traced distances."""
    if shift.dtype.kind not in "iu":
        raise ArgumentError(f"roll needs integer distances, got {shift.aval}: use .astype(int).")
    (count,) = np.broadcast_shapes(shaping.atleast_1d(shift).shape, axes.shape)
    distances = s.broadcast_to(p.convert(strong(shift), INT64), (count,))
    for i, axis in enumerate(np.broadcast_to(axes, (count,)).tolist()):
        index = normalize_axis(axis, len(shape_of(a)), "roll")
        n = shape_of(a)[index]
        if n:
            distance = s.reshape(s.cut(distances, 0, i, i + 1), ())
            places = p.remainder.bind(p.sub.bind(np.arange(n), distance), np.int64(n))
            a = s.moveaxis_from_front(Gather((index,)).bind(a, places), index)
    return a


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Windows as `numpy.lib.stride_tricks.sliding_window_view`; a copy where ``x`` is traced."""
    x = as_value(x, "sliding_window_view")
    if writeable:
        raise ArgumentError(
            "sliding_window_view: traced arrays are immutable. Leave `writeable` away."
        )
    lengths = shaping.static_ints(window_shape)
    ndim = len(shape_of(x))
    given = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    axes = [normalize_axis(i, ndim, "sliding_window_view") for i in given]
    if len(lengths) != len(axes):
        raise ValueError(
            f"sliding_window_view: {len(lengths)} window lengths were given for {len(axes)} axes."
        )
    for i, length in zip(axes, lengths, strict=True):
        count = shape_of(x)[i] - length + 1
        if length < 0 or count < 1:
            raise ValueError(
                f"sliding_window_view: a window of length {length} does not fit into axis {i} of "
                f"{aval_of(x)}."
            )
        places = np.arange(count)[:, None] + np.arange(length)
        # The axes of the index come first: one takes the place of the axis, one becomes the last.
        windows = shaping.moveaxis(Gather((i,)).bind(x, places), 1, -1)
        x = shaping.moveaxis(windows, 0, i)
    return x


def view(x: Any, dtype: Any = None, type: Any = None) -> Any:
    """Read the bytes of the last axis as another dtype, in a copy, as `numpy.ndarray.view`.

    Complex numbers and their parts keep derivatives; other bits have none.
    """
    only_defaults("view", type=None if type is np.ndarray else type)
    if dtype is None or (isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray)):
        return x
    x, wanted = strong(x), checked_dtype(dtype, "view")
    own, shape = aval_of(x).dtype, shape_of(x)
    if wanted == own:
        return x
    if wanted.itemsize != own.itemsize and (
        not shape or shape[-1] * own.itemsize % wanted.itemsize
    ):
        raise ShapeError(
            f"x.view({wanted}): the last axis of {aval_of(x)} does not hold a whole number of "
            "elements of that dtype."
        )
    if own.kind == "c" and wanted == real_dtype(own):
        parts = stack([p.real.bind(x), p.imag.bind(x)], -1)
        return s.reshape(parts, (*shape[:-1], 2 * shape[-1]))
    if wanted.kind == "c" and own == real_dtype(wanted):
        pairs = s.reshape(x, (*shape[:-1], shape[-1] // 2, 2))
        return p.from_parts.bind(*unstack(pairs, -1))
    if own.kind == "b" and wanted.itemsize == 1:
        return p.convert(x, wanted)
    ratio = wanted.itemsize // own.itemsize
    if ratio > 1:
        return Bitcast(wanted).bind(s.reshape(x, (*shape[:-1], shape[-1] // ratio, ratio)))
    bits = Bitcast(wanted).bind(x)
    if ratio:
        return bits
    return s.reshape(bits, (*shape[:-1], shape[-1] * own.itemsize // wanted.itemsize))


def tile(A: Any, reps: Any) -> Any:
    """An array repeated along its axes, as `numpy.tile`.

    Args:
        A: Array that is repeated.
        reps: How often, for each axis.
    Example: fg.numpy.tile(np.array([1.0, 2.0]), 2) -> array([1., 2., 1., 2.])
    """
    a = strong(as_value(A, "tile"))
    counts = shaping.static_ints(reps)
    ndim = max(len(counts), len(shape_of(a)))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - len(shape_of(a))) + shape_of(a)
    column = s.reshape(a, tuple(n for m in shape for n in (1, m)))
    wide = s.broadcast_to(
        column, tuple(n for c, m in zip(counts, shape, strict=True) for n in (c, m))
    )
    return s.reshape(wide, tuple(c * m for c, m in zip(counts, shape, strict=True)))
