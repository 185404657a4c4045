"""Functions of whole rows: softmax and its relatives, standardisation, one-hot rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import FLOAT64
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.numpy import promotion
from funcgrad.numpy.elementwise import truth
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import broadcast_to, drop_axes, reshape, shape_of
from funcgrad.scipy.exponentials import (
    Axis,
    floating,
    fold_sum,
    log_normalized,
    log_sum,
    masked,
    normalized,
)

__all__ = ["log_softmax", "logmeanexp", "one_hot", "softmax", "standardize"]

Array = Any
ArrayLike = Any


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """``exp(x) / sum(exp(x))`` along an axis: positive numbers of sum 1.

    Args:
        axis: The axis, a tuple of them, or ``None`` for all.
        where: Bools that broadcast with ``x``: which elements take part; the others give 0.
    Returns: An array of the shape of ``x``.
    Example: print(fg.nn.softmax(np.array([[0.0, 0.0], [0.0, 1000.0]])))
        -> [[0.5 0.5]
            [0.  1. ]]
    """
    return normalized("softmax", x, axis, where)


def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """``x - log(sum(exp(x)))`` along an axis: the logarithm of `softmax`.

    Args:
        axis: The axis, a tuple of them, or ``None`` for all.
        where: Bools that broadcast with ``x``: which elements take part; the others give -inf.
    Returns: An array of the shape of ``x``, accurate where `softmax` is small.
    Example: print(fg.nn.log_softmax(np.array([0.0, 1000.0]))) -> [-1000.     0.]
    """
    return log_normalized("log_softmax", x, axis, where)


def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """``log(mean(exp(x)))`` without overflow.

    Args: keepdims: Whether the axes stay, with length 1.
    Returns: The logarithm of the mean.
    Example: print(fg.nn.logmeanexp(np.array([1000.0, 1000.0]))) -> 1000.0
    """
    (x,) = floating("logmeanexp", x)
    total = log_sum("logmeanexp", x, axis, None, keepdims, False, where)
    if where is not None:
        x = broadcast_to(x, np.broadcast_shapes(shape_of(x), shape_of(where)))
    axes = promotion.normalize_axes(axis, len(shape_of(x)), "logmeanexp")
    count = _count(x, axes, where)
    if shape_of(count) and not keepdims:
        count = reshape(count, drop_axes(shape_of(x), axes))
    return total - p.log.bind(count)


def _count(x: Array, axes: tuple[int, ...], where: ArrayLike | None) -> Array:
    """How many elements take part along ``axes``, in the dtype of ``x``."""
    dtype = aval_of(x).dtype
    if where is None:
        return dtype.type(math.prod(shape_of(x)[i] for i in axes))
    taken = p.convert(truth(promotion.as_value(where)), dtype)
    return fold_sum(broadcast_to(taken, shape_of(x)), axes)


def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "stable",
) -> Array:
    """``(x - mean) / sqrt(variance + epsilon)`` along an axis.

    Args:
        mean: The mean, if known; it broadcasts with ``x``.
        variance: The variance, if known; it broadcasts with ``x``.
        algorithm: ``"stable"`` or ``"fast"``, which are the same here.

    Returns:
        An array of the shape of ``x``. The variance is that of the deviations from the mean,
        which loses no digits where the mean is large.
    Example: print(fg.nn.standardize(np.array([1.0, 3.0]), epsilon=0.0)) -> [-1.  1.]
    """
    if algorithm not in ("stable", "fast"):
        raise ArgumentError(
            f"standardize: algorithm must be 'stable' or 'fast', got {algorithm!r}."
        )
    (x,) = floating("standardize", x)
    axes = promotion.normalize_axes(axis, len(shape_of(x)), "standardize")
    count = _count(x, axes, where)

    def average(values: Array) -> Array:
        return fold_sum(masked(values, where, 0.0), axes) / count

    centered = x - (average(x) if mean is None else promotion.as_value(mean))
    if variance is None:
        variance = average(centered * centered)
    else:
        variance = promotion.promote(centered, promotion.as_value(variance))[1]
    return centered * p.rsqrt.bind(*floating("standardize", variance + epsilon))


def one_hot(x: ArrayLike, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Rows of zeros with a one at the index that an integer names.

    Args:
        x: Array of integers; those outside ``0 .. num_classes - 1`` give zeros only.
        num_classes: Length of the rows.
        dtype: Dtype of the result, by default float64.
        axis: Where the new axis is in the result.
    Returns: An array of one more axis, of length ``num_classes``.

    Raises:
        ArgumentError: If ``num_classes`` is negative.
        DtypeError: If ``x`` is complex.
    Example: print(fg.nn.one_hot(np.array([0, 2]), 3))
        -> [[1. 0. 0.]
            [0. 0. 1.]]
    """
    x = promotion.strong(promotion.as_value(x, "one_hot"))
    own, count = aval_of(x).dtype, int(num_classes)
    if count < 0:
        raise ArgumentError(f"one_hot: num_classes must not be negative, got {num_classes}.")
    if own.kind not in "iuf":
        raise DtypeError(f"one_hot needs an array of integers, got {aval_of(x)}.")
    wanted = FLOAT64 if dtype is None else promotion.checked_dtype(dtype, "one_hot")
    shape = shape_of(x)
    place = promotion.normalize_axis(axis, len(shape) + 1, "one_hot")
    # Indices are compared as int64: a class may not fit into a narrow dtype.
    index = x if own.kind == "f" else p.convert(x, np.dtype(np.int64))
    classes = np.arange(count, dtype=aval_of(index).dtype)
    column = classes.reshape([count if i == place else 1 for i in range(len(shape) + 1)])
    column_of_x = reshape(index, (*shape[:place], 1, *shape[place:]))
    return p.convert(p.equal.bind(column_of_x, column), wanted)
