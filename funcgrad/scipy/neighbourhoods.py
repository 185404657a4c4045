"""Sums, extremes and ranks of the neighbours of every element, with all of SciPy's boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import is_complex
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lowering import Slide
from funcgrad.primitives.contraction import LETTERS
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import extended

__all__ = ["bordered", "borders", "extreme", "neighbours", "ranked", "weighted"]


def borders(function: str, length: int, origin: int) -> tuple[int, int]:
    """How many neighbours there are before and behind an element in a window.

    Raises: ArgumentError: If the origin moves the window off the element.
    """
    before = length // 2 + origin
    if not 0 <= before < max(length, 1):
        raise ArgumentError(f"{function}: origin {origin} is not within a window of {length}.")
    return before, length - before - 1


def bordered(
    function: str,
    x: Any,
    shape: Sequence[int],
    origins: Sequence[int],
    modes: Sequence[str],
    cval: Any,
) -> Any:
    """``x`` with as many elements around it as windows of a shape reach."""
    for axis, (n, origin, mode) in enumerate(zip(shape, origins, modes, strict=True)):
        before, after = borders(function, n, origin)
        if before or after:
            x = extended(x, axis, before, after, mode, cval)
    return x


def weighted(
    function: str,
    x: Any,
    weights: Any,
    axes: Sequence[int],
    origins: Sequence[int],
    modes: Sequence[str],
    cval: Any,
) -> Any:
    """Weighted sums of neighbours along some axes, one for each axis of ``weights``.

    Args:
        function: Named in messages.
        x: Floating or complex array.
        weights: Array of the same dtype.
        axes: Which axis of ``x`` each axis of the weights goes along.
        origins: Shift of the window along each of them.
        modes: What stands beyond the ends.
        cval: What stands there in mode "constant".
    Returns: An array like ``x``.
    """
    ndim = len(shape_of(x))
    if not prod(shape_of(x)):
        return x
    lengths, shifts, kinds = [1] * ndim, [0] * ndim, ["constant"] * ndim
    for axis, n, origin, mode in zip(axes, shape_of(weights), origins, modes, strict=True):
        lengths[axis], shifts[axis], kinds[axis] = n, origin, mode
    sizes = shape_of(x)
    x = bordered(function, x, lengths, shifts, kinds, cval)
    letters = LETTERS[:ndim]
    rhs = "".join(letters[i] for i in axes)
    slides = tuple((letters[i], Slide(sizes[i], lengths[i], 1, 1, 0)) for i in sorted(axes))
    return Convolution(letters, rhs, letters, slides).bind(x, weights)


def neighbours(
    function: str,
    x: Any,
    footprint: np.ndarray,
    origins: Sequence[int],
    modes: Sequence[str],
    cval: Any,
) -> Any:
    """The neighbours that a footprint chooses of every element, along a new last axis."""
    places = np.argwhere(footprint)
    if not len(places):
        raise ShapeError(f"{function}: the footprint is empty.")
    sizes = shape_of(x)
    whole = bordered(function, x, footprint.shape, origins, modes, cval)
    cuts = [tuple(slice(k, k + n) for k, n in zip(p, sizes, strict=True)) for p in places.tolist()]
    return fnp.stack([whole[index] for index in cuts], axis=-1)


def ranked(
    function: str,
    x: Any,
    rank: int,
    footprint: np.ndarray,
    origins: Sequence[int],
    modes: Sequence[str],
    cval: Any,
) -> Any:
    """The neighbour of every element that has a rank among them, 0 for the least."""
    _check_ordered(function, x)
    count = int(np.count_nonzero(footprint))
    if not -count <= rank < count:
        raise ArgumentError(f"{function}: rank {rank} is not within a footprint of {count}.")
    if rank % count in (0, count - 1):
        return extreme(function, x, rank % count > 0, footprint, origins, modes, cval)
    found = neighbours(function, x, footprint, origins, modes, cval)
    return fnp.sort(found, axis=-1)[..., rank % count]


def extreme(
    function: str,
    x: Any,
    is_max: bool,
    footprint: np.ndarray,
    origins: Sequence[int],
    modes: Sequence[str],
    cval: Any,
) -> Any:
    """The greatest, or the least, neighbour of every element."""
    _check_ordered(function, x)
    if not np.all(footprint):
        found = neighbours(function, x, footprint, origins, modes, cval)
        return (fnp.max if is_max else fnp.min)(found, axis=-1)
    whole = bordered(function, x, footprint.shape, origins, modes, cval)
    end, fold = _end(aval_of(x).dtype, is_max), lax.max if is_max else lax.min
    strides, pads = (1,) * footprint.ndim, [(0, 0)] * footprint.ndim
    for axis, n in enumerate(footprint.shape):
        if n > 1:  # a box is a line along every axis, one after the other
            line = tuple(n if i == axis else 1 for i in range(footprint.ndim))
            whole = lax.reduce_window(whole, end, fold, line, strides, pads)
    return whole


def _end(dtype: np.dtype[Any], is_max: bool) -> Any:
    """Bound that no element is beyond."""
    if dtype.kind == "b":
        return dtype.type(not is_max)
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).min if is_max else np.iinfo(dtype).max)
    return dtype.type(-np.inf if is_max else np.inf)


def _check_ordered(function: str, x: Any) -> None:
    if is_complex(aval_of(x).dtype):
        raise ArgumentError(f"{function}: complex numbers have no order, got {aval_of(x)}.")
