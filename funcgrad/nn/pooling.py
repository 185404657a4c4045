"""Pooling: the largest, smallest or mean element of windows, with flax's conventions.

Features are the last axis; windows slide along the axes before it, and all further axes in front
are batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.annotations import ShapeLike
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.exponentials import floating

Array = Any
ArrayLike = Any
Padding = str | int | Sequence[int | tuple[int, int]]
"""``"SAME"``, ``"VALID"``, ``"SAME_LOWER"``, one number for all ends, or one number or pair
``(low, high)`` for every axis along which windows slide."""


def per_axis(name: str, what: str, values: int | Sequence[int], count: int) -> tuple[int, ...]:
    """One positive integer for each of ``count`` axes."""
    found = (values,) * count if isinstance(values, int | np.integer) else tuple(values)
    if len(found) != count or any(v < 1 for v in found):
        raise located(
            ArgumentError,
            f"{name}: {what} must be one integer of at least 1, or {count} of them, one per "
            f"axis of the window, got {values}.",
        )
    return tuple(map(int, found))


def pads_of(name: str, padding: Padding, count: int) -> str | list[tuple[int, int]]:
    """The padding as `lax` takes it."""
    if isinstance(padding, str):
        return padding
    if isinstance(padding, int | np.integer):
        return [(int(padding), int(padding))] * count
    pads = [(p, p) if isinstance(p, int | np.integer) else tuple(p) for p in padding]
    if len(pads) != count or any(len(pair) != 2 for pair in pads):
        raise located(
            ArgumentError,
            f"{name}: padding must be 'SAME', 'VALID', 'SAME_LOWER', an integer, or {count} "
            f"integers or pairs (low, high), one per axis of the window, got {padding!r}.",
        )
    return [(int(low), int(high)) for low, high in pads]


def max_pool(
    inputs: ArrayLike,
    window_shape: ShapeLike,
    strides: ShapeLike | None = None,
    padding: Padding = "VALID",
) -> Array:
    """The largest element of every window.

    Args:
        strides: Distance of windows, by default 1, as in flax. PyTorch's default is the length of
            the window.
        padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, an integer, or one integer or pair for
            every axis. What is beyond the ends is smaller than everything.
    Returns: An array (batch, ..., features) with one element for every window. Of several largest
        elements the first one has the derivative.

    Raises:
        ArgumentError: If there is not one number for every axis of the window.
        ShapeError: If ``inputs`` has too few axes.

    Example:
        >>> image = np.arange(16.0).reshape(1, 4, 4, 1)
        >>> print(fg.nn.max_pool(image, (2, 2), strides=2)[0, :, :, 0])
        [[ 5.  7.]
         [13. 15.]]
    """
    return pooled_extreme("nn.max_pool", lax.max, inputs, window_shape, strides, padding)


def min_pool(
    inputs: ArrayLike,
    window_shape: ShapeLike,
    strides: ShapeLike | None = None,
    padding: Padding = "VALID",
) -> Array:
    """The smallest element of every window; arguments and result are as in `max_pool`.

    Args: padding: As `max_pool`.
    Example: fg.nn.min_pool(np.arange(4.0).reshape(1, 4, 1), (2,), (2,))
        -> array([[[0.],
                   [2.]]])
    """
    return pooled_extreme("nn.min_pool", lax.min, inputs, window_shape, strides, padding)


def pooled_extreme(
    name: str,
    choose: Callable[[Any, Any], Any],
    inputs: ArrayLike,
    window_shape: ShapeLike,
    strides: ShapeLike | None,
    padding: Padding,
) -> Array:
    """`max_pool` or `min_pool` under the name of a function or a layer."""
    x = strong(as_value(inputs, name))
    dtype, is_max = aval_of(x).dtype, choose is lax.max
    if dtype.kind == "f":
        beyond = -np.inf if is_max else np.inf
    elif dtype.kind == "b":
        beyond = not is_max
    else:
        beyond = np.iinfo(dtype).min if is_max else np.iinfo(dtype).max
    window, steps, pads = _windows(name, x, window_shape, strides, padding)
    return lax.reduce_window(x, dtype.type(beyond), choose, window, steps, pads)


def avg_pool(
    inputs: ArrayLike,
    window_shape: ShapeLike,
    strides: ShapeLike | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Array:
    """The mean element of every window.

    Args:
        padding: As in `max_pool`; zeros are beyond the ends.
        count_include_pad: Whether these zeros are counted, as in flax and PyTorch.
    Returns: An array (batch, ..., features) with one element for every window.

    Raises:
        ArgumentError: If there is not one number for every axis of the window.
        ShapeError: If ``inputs`` has too few axes.

    Example:
        >>> row = np.array([1.0, 2.0, 6.0]).reshape(1, 3, 1)
        >>> print(fg.nn.avg_pool(row, 3, padding="SAME", count_include_pad=False)[0, :, 0])
        [1.5 3.  4. ]
    """
    return pooled_mean("nn.avg_pool", inputs, window_shape, strides, padding, count_include_pad)


def pooled_mean(
    name: str,
    inputs: ArrayLike,
    window_shape: ShapeLike,
    strides: ShapeLike | None,
    padding: Padding,
    count_include_pad: bool,
) -> Array:
    """`avg_pool` under the name of a function or a layer."""
    (x,) = floating(name, inputs)
    window, steps, pads = _windows(name, x, window_shape, strides, padding)
    dtype = aval_of(x).dtype
    total = lax.reduce_window(x, dtype.type(0), lax.add, window, steps, pads)
    if count_include_pad:
        return total * (1.0 / math.prod(window))
    return total / _counts(shape_of(x), shape_of(total), window, steps, pads).astype(dtype)


def _windows(
    name: str, x: Array, window_shape: ShapeLike, strides: ShapeLike | None, padding: Padding
) -> tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, int]]]:
    """Lengths, distances and padding of windows along all axes of an array."""
    count = 1 if isinstance(window_shape, int | np.integer) else len(window_shape)
    window = per_axis(name, "window_shape", window_shape, count)
    steps = per_axis(name, "strides", 1 if strides is None else strides, count)
    shape = shape_of(x)
    leading = len(shape) - count - 1
    if leading < 0:
        raise located(
            ShapeError,
            f"{name}: a window {window} slides along {count} axes before the last one, which "
            f"are the features, but the input is {aval_of(x)}.",
        )
    pads = pads_of(name, padding, count)
    if isinstance(pads, str):
        pads = lax.padtype_to_pads(shape[leading:-1], window, steps, pads)
    ones, zeros = (1,) * leading, [(0, 0)] * leading
    return (*ones, *window, 1), (*ones, *steps, 1), [*zeros, *pads, (0, 0)]


def _counts(
    shape: Sequence[int],
    windows: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> np.ndarray:
    """How many elements there are in every window, for arrays that broadcast to the result."""
    counts = np.ones((), np.int64)
    for n, many, k, stride, (low, _) in zip(shape, windows, window, strides, pads, strict=True):
        first = np.arange(many if k > 1 or low else 1) * stride - low
        along = np.minimum(first + k, n) - np.maximum(first, 0) if k > 1 or low else [1]
        counts = np.multiply.outer(counts, along)
    return counts


__all__ = ["avg_pool", "max_pool", "min_pool"]
