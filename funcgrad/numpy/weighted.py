"""Quantiles of numbers that count by weights, as NumPy's method ``"inverted_cdf"``."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import FLOAT64, INT64
from funcgrad.errors import ShapeError
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.cumulative import Cumsum
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.ordering import ArgSort
from funcgrad.primitives.shape import ReduceSum, shape_of


def weights_like(weights: Any, shape: tuple[int, ...], axes: tuple[int, ...], name: str) -> Any:
    """Weights in the shape of the numbers; those of one axis stand for all lines along it.

    Raises: ShapeError: If they are of another shape.
    """
    w = p.convert(strong(as_value(weights, name)), FLOAT64)
    if shape_of(w) == shape:
        return w
    if len(axes) != 1 or shape_of(w) != (shape[axes[0]],):
        raise ShapeError(
            f"{name}: weights must have the shape {shape} of the array, or that of the one axis "
            f"along which it goes, got {shape_of(w)}."
        )
    column = s.reshape(w, tuple(n if i == axes[0] else 1 for i, n in enumerate(shape)))
    return s.broadcast_to(column, shape)


def weighted_pick(lines: Any, weights: Any, q: Any, skips_nan: bool) -> Any:
    """Quantiles ``q``, in front, of lines along the last axis.

    The least number of a line whose weight, with that of all smaller ones, is a part ``q`` of the
    whole. nan where a line has one, or nan counts nothing.
    """
    axis = len(shape_of(lines)) - 1
    length = shape_of(lines)[axis]
    if skips_nan:
        weights = p.select.bind(p.isnan.bind(lines), np.float64(0), weights)
    order = ArgSort(axis).bind(lines)
    lines, weights = (take_along_axis(x, order, axis) for x in (lines, weights))
    running = Cumsum(axis).bind(weights)
    total = s.broadcast_to(_last(running), shape_of(running))
    part = p.div.bind(running, total)
    rows = (aval_of(q).size, *shape_of(part))
    level = s.broadcast_to(s.reshape(p.convert(q, FLOAT64), (rows[0], *(1,) * (axis + 1))), rows)
    part = s.broadcast_to(part, rows)
    is_below = p.bitwise_or.bind(p.less.bind(part, level), p.equal.bind(part, np.float64(0)))
    count = ReduceSum((axis + 1,)).bind(p.convert(is_below, INT64))
    place = p.minimum.bind(count, np.int64(length - 1))
    spread = s.broadcast_to(lines, rows)
    column = s.reshape(place, (*shape_of(place), 1))
    found = s.reshape(take_along_axis(spread, column, axis + 1), shape_of(place))
    if skips_nan:
        return found
    largest = s.broadcast_to(s.reshape(_last(lines), shape_of(lines)[:-1]), shape_of(found))
    return p.select.bind(p.isnan.bind(largest), largest, found)


def _last(x: Any) -> Any:
    """The last elements along the last axis, which stays."""
    shape = shape_of(x)
    starts = (*(0,) * (len(shape) - 1), shape[-1] - 1)
    return s.Slice(starts, shape, (1,) * len(shape)).bind(x)
