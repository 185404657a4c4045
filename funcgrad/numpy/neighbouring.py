"""Relations of neighbours: differences, slopes, areas, angles without jumps, interpolation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import BOOL, FLOAT64, is_complex, is_inexact
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.ordering import searchsorted
from funcgrad.numpy.promotion import (
    as_value,
    normalize_axes,
    normalize_axis,
    promote,
    promote_to_double,
    strong,
    to_dtype,
)
from funcgrad.numpy.reducing import all as all_true
from funcgrad.numpy.reducing import sum
from funcgrad.numpy.selecting import clip, where
from funcgrad.numpy.shaping import broadcast_to, ravel, reshape
from funcgrad.numpy.taking import part
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.cumulative import Cumsum
from funcgrad.primitives.ordering import ArgSort
from funcgrad.primitives.shape import shape_of

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbouring elements along an axis, as `numpy.diff`.

    Args:
        n: How often to take differences.
        prepend: Values to put before the first one.
        append: Values to append after the last one.
    Example: fg.numpy.diff(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) -> array([[2., 2.]])
    """
    x = strong(as_value(a, "diff"))
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return x
    axis = normalize_axis(axis, len(shape_of(x)), "diff")
    ends = [None if v is None else _as_end(v, x, axis) for v in (prepend, append)]
    if ends[0] is not None or ends[1] is not None:
        x = concatenate([v for v in (ends[0], x, ends[1]) if v is not None], axis)
    for _ in range(n):
        later, earlier = part(x, axis, 1, None), part(x, axis, None, -1)
        x = (p.not_equal if aval_of(x).dtype == BOOL else p.sub).bind(later, earlier)
    return x


def _as_end(v: Any, x: Any, axis: int) -> Any:
    v = as_value(v, "diff")
    if shape_of(v):
        return v
    return broadcast_to(v, tuple(1 if i == axis else n for i, n in enumerate(shape_of(x))))


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbouring elements of a flattened array, as `numpy.ediff1d`.

    Args:
        to_end: Values behind the differences.
        to_begin: Values in front of the differences.
    Example: fg.numpy.ediff1d(np.array([1.0, 2.0, 4.0, 7.0])) -> array([1., 2., 3.])
    """
    x = ravel(strong(as_value(ary, "ediff1d")))
    dtype = aval_of(x).dtype
    parts = [
        to_begin if to_begin is None else to_dtype(ravel(as_value(to_begin)), dtype),
        e.subtract(getitem(x, slice(1, None)), getitem(x, slice(None, -1))),
        to_end if to_end is None else to_dtype(ravel(as_value(to_end)), dtype),
    ]
    return concatenate([q for q in parts if q is not None])


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives of samples by finite differences.

    As `numpy.gradient`: central differences, one-sided at the ends.

    Args:
        f: Samples.
        *varargs: Distances between samples, or their coordinates, for each axis.
        edge_order: Order of the differences at the ends, 1 or 2.
    Example: fg.numpy.gradient(np.array([1.0, 2.0, 4.0, 7.0])) -> array([1. , 1.5, 2.5, 3. ])
    """
    x = _not_integer(strong(as_value(f, "gradient")))
    axes = normalize_axes(axis, len(shape_of(x)), "gradient")
    if isinstance(axis, tuple | list):
        axes = tuple(normalize_axis(i, len(shape_of(x)), "gradient") for i in axis)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = varargs if len(varargs) == len(axes) else (varargs or (1.0,)) * len(axes)
    out = []
    for i, spacing in zip(axes, spacings, strict=True):
        if shape_of(x)[i] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least "
                "(edge_order + 1) elements are required."
            )
        out.append(_slopes(x, as_value(spacing, "gradient"), i, edge_order))
    return out[0] if axis is not None and not isinstance(axis, tuple | list) else _alone(out)


def _alone(out: list[Any]) -> Any:
    return out[0] if len(out) == 1 else tuple(out)


def _not_integer(x: Any) -> Any:
    """Integers as float64, since their differences would wrap around."""
    return to_dtype(x, np.dtype(np.float64)) if aval_of(x).dtype.kind in "iu" else x


def _slopes(x: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """Differences along one axis, by the formulas of NumPy, which decide what infinities give."""
    n = shape_of(x)[axis]
    h = spacing
    if shape_of(h):
        if shape_of(h) != (n,):
            raise ShapeError(
                f"gradient: the distances along an axis of length {n} must be a number or the "
                f"coordinates, an array of shape ({n},), got {aval_of(h)}."
            )
        h = diff(_not_integer(h))
        if isinstance(h, np.ndarray) and (h == h[0]).all():
            h = h[0]

    def tap(start: int, stop: int | None) -> Any:
        return part(x, axis, start, stop)

    before, at, after = (tap(i, n - 2 + i) for i in range(3))
    if shape_of(h):
        h = reshape(h, [-1 if i == axis else 1 for i in range(len(shape_of(x)))])
        first, last = part(h, axis, 0, 1), part(h, axis, n - 2, None)
        inner = _through(before, at, after, part(h, axis, 0, n - 2), part(h, axis, 1, None), h)
    else:
        first = last = h
        inner = e.divide(e.subtract(after, before), e.multiply(2.0, h))
    if edge_order == 1:
        ends = [
            e.divide(e.subtract(tap(i + 1, i + 2), tap(i, i + 1)), step)
            for i, step in ((0, first), (n - 2, last))
        ]
    elif shape_of(h):
        second, next_to_last = part(h, axis, 1, 2), part(h, axis, n - 3, n - 2)
        forward = _one_sided(first, second)
        backward = [e.negative(w) for w in _one_sided(last, next_to_last)[::-1]]
        ends = [_weighted(forward, tap, 0), _weighted(backward, tap, n - 3)]
    else:
        forward, backward = ([e.divide(c, h) for c in cs] for cs in (_FORWARD, _BACKWARD))
        ends = [_weighted(forward, tap, 0), _weighted(backward, tap, n - 3)]
    out = concatenate([ends[0], inner, ends[1]], axis)
    dtype = aval_of(x).dtype if is_inexact(aval_of(x).dtype) else FLOAT64
    return out if aval_of(out).dtype == dtype else p.convert(out, dtype)


_FORWARD, _BACKWARD = (-1.5, 2.0, -0.5), (0.5, -2.0, 1.5)


def _through(before: Any, at: Any, after: Any, left: Any, right: Any, steps: Any) -> Any:
    """Slopes in the middle of parabolas through three points at known or traced distances.

    NumPy takes another formula, which does not read the point in the middle, where all distances
    are the same: a traced one then counts for nothing, and still has its derivative.
    """
    both = e.add(left, right)
    first = e.divide(e.negative(right), e.multiply(left, both))
    middle = e.divide(e.subtract(right, left), e.multiply(left, right))
    last = e.divide(left, e.multiply(right, both))
    own = e.multiply(middle, at)
    if not isinstance(steps, np.ndarray):
        weight, point = (strong(v) for v in promote(middle, at))
        unread = p.scale.bind(*(broadcast_to(v, shape_of(own)) for v in (weight, point)))
        own = where(all_true(e.equal(steps, part(ravel(steps), 0, 0, 1))), unread, own)
    return e.add(e.add(e.multiply(first, before), own), e.multiply(last, after))


def _one_sided(near: Any, far: Any) -> list[Any]:
    """The weights of three points in the slope of their parabola at the first of them."""
    both = e.add(near, far)
    return [
        e.divide(e.negative(e.add(e.multiply(2.0, near), far)), e.multiply(near, both)),
        e.divide(both, e.multiply(near, far)),
        e.divide(e.negative(near), e.multiply(far, both)),
    ]


def _weighted(weights: Sequence[Any], tap: Callable[[int, int], Any], start: int) -> Any:
    """A weighted sum of three neighbours."""
    a, b, c = (e.multiply(w, tap(start + i, start + i + 1)) for i, w in enumerate(weights))
    return e.add(e.add(a, b), c)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along an axis by the trapezoidal rule, as `numpy.trapezoid`.

    Args: dx: Distance between samples, if ``x`` is not given.
    Example: fg.numpy.trapezoid(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(10.0)
    """
    y, given = strong(as_value(y, "trapezoid")), axis
    axis = normalize_axis(axis, len(shape_of(y)), "trapezoid")
    if x is None:
        widths = as_value(dx, "trapezoid")
    else:
        widths = diff(x) if len(shape_of(as_value(x))) == 1 else diff(x, axis=given)
        if len(shape_of(widths)) == 1:
            column = [-1 if i == axis else 1 for i in range(len(shape_of(y)))]
            widths = reshape(widths, column)
    pairs = e.add(part(y, axis, 1, None), part(y, axis, None, -1))
    return sum(e.divide(e.multiply(widths, pairs), 2.0), axis)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Angles without jumps of a period.

    As `numpy.unwrap`: jumps of more than half a period are taken out.

    Args: discont: Smallest jump that counts as a turn; by default half of ``period``.
    Example: fg.numpy.unwrap(np.array([0.0, 3.0, 6.5 - 2 * np.pi]))
        -> array([0.        , 3.        , 0.21681469])
    """
    x = strong(as_value(p, "unwrap"))
    axis = normalize_axis(axis, len(shape_of(x)), "unwrap")
    steps = diff(x, axis=axis)
    if not is_inexact(aval_of(x).dtype) and isinstance(period, float):
        x, steps = e.add(x, 0.0), e.add(steps, 0.0)  # differences of integers are exact before
    exact = not is_inexact(aval_of(x).dtype)
    half = period // 2 if exact else period / 2
    wrapped = e.subtract(e.remainder(e.add(steps, half), period), half)
    if not exact or period % 2 == 0:
        at_edge = e.logical_and(e.equal(wrapped, -half), e.greater(steps, 0))
        wrapped = where(at_edge, half, wrapped)
    correction = e.subtract(wrapped, steps)
    limit = half if discont is None else discont
    correction = where(e.less(e.absolute(steps), limit), 0, correction)
    rest = e.add(part(x, axis, 1, None), Cumsum(axis).bind(correction))
    return concatenate([part(x, axis, 0, 1), rest], axis)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Piecewise linear interpolation.

    As `numpy.interp`; ``xp`` must ascend. All of the arrays may be traced.

    With ``left="extrapolate"`` or ``right="extrapolate"`` the first or the last line goes on.

    Args:
        xp: Points at which the values are known, increasing.
        fp: Values at the points ``xp``.
        left: Value to the left of the first point, by default the first value.
        right: Whether the right edge belongs to a bin; of ``interp``, the value above the last
            point.
    Example: fg.numpy.interp(np.array([0.5, 2.0]), np.array([0.0, 1.0]), np.array([10.0, 20.0]))
        -> array([15., 20.])
    """
    for given in (x, xp):
        if is_complex(aval_of(as_value(given, "interp")).dtype):
            raise TypeError(f"interp: places have an order, got {aval_of(as_value(given))}.")
    x, xp = promote_to_double(as_value(x, "interp"), as_value(xp, "interp"))
    (fp,) = promote_to_double(as_value(fp, "interp"))
    if len(shape_of(xp)) != 1 or shape_of(xp) != shape_of(fp):
        raise ShapeError(
            f"interp: xp and fp must be lines of one length, got {aval_of(xp)} and {aval_of(fp)}."
        )
    if not shape_of(xp)[0]:
        raise ShapeError("interp: there are no points, xp is empty.")
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    n = shape_of(xp)[0]
    if n == 1:
        inside = broadcast_to(getitem(fp, 0), shape_of(x))
    else:
        after = clip(searchsorted(xp, x, "right"), 1, n - 1)
        before = e.subtract(after, 1)
        x0, x1, f0, f1 = (getitem(v, i) for v in (xp, fp) for i in (before, after))
        width = e.subtract(x1, x0)
        slope = e.divide(e.subtract(f1, f0), where(e.equal(width, 0), 1, width))
        inside = e.add(e.multiply(slope, e.subtract(x, x0)), f0)
        # Infinite values: from the other end, or what both ends have, or what this end has.
        from_end = e.add(e.multiply(slope, e.subtract(x, x1)), f1)
        is_known = e.logical_or(e.equal(x, x0), e.logical_and(e.isnan(from_end), e.equal(f0, f1)))
        inside = where(e.isnan(inside), where(is_known, f0, from_end), inside)
    first, last = (getitem(fp, i) for i in (0, -1))
    out = inside
    if not _goes_on(left, "left"):
        out = where(e.less(x, getitem(xp, 0)), first if left is None else left, out)
    if _goes_on(right, "right"):
        return where(e.equal(x, getitem(xp, -1)), last, out)
    out = where(e.greater_equal(x, getitem(xp, -1)), last, out)
    if right is not None:
        out = where(e.greater(x, getitem(xp, -1)), right, out)
    return where(e.isnan(x), x, out)


def _goes_on(beyond: Any, side: str) -> bool:
    if isinstance(beyond, str) and beyond != "extrapolate":
        raise ArgumentError(f"interp: {side} is a number or 'extrapolate', got {beyond!r}.")
    return isinstance(beyond, str)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """One period of the support, sorted, with a neighbour on both sides."""
    x, xp = e.remainder(x, period), e.remainder(xp, period)
    order = ArgSort(0).bind(xp)
    xp, fp = getitem(xp, order), getitem(fp, order)
    ends = (slice(-1, None), slice(0, 1))
    xp = concatenate(
        [e.subtract(getitem(xp, ends[0]), period), xp, e.add(getitem(xp, ends[1]), period)]
    )
    return x, xp, concatenate([getitem(fp, ends[0]), fp, getitem(fp, ends[1])])
