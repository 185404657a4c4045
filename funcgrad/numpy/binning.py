"""Numbers of elements in bins: `digitize`, `bincount` and histograms.

Bins are searched by bisection, and their numbers counted by a scatter-add. Edges are checked
as NumPy checks them, traced ones when they are computed.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import BOOL, FLOAT64, INT64, is_complex, is_inexact
from funcgrad.errors import ArgumentError, ConcretizationTypeError, ShapeError
from funcgrad.numpy import creating, joining, shaping
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.indexing import demanded_places, getitem
from funcgrad.numpy.neighbouring import diff
from funcgrad.numpy.ordering import searchsorted, value_if_known
from funcgrad.numpy.promotion import as_value, promote, result_dtype, strong
from funcgrad.numpy.reducing import max, min, sum
from funcgrad.numpy.selecting import where
from funcgrad.observers.messages import message
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.indexing import ScatterAdd, as_index
from funcgrad.primitives.shape import shape_of

__all__ = [
    "bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
]  # fmt: skip


def digitize(x: Any, bins: Any, right: bool = False, *, method: str = "scan") -> Any:
    """Index of the bin of each element.

    As `numpy.digitize`; ``bins`` must be monotonic.

    ``method`` is of no effect.

    Args:
        right: Whether the right edge belongs to a bin; of ``interp``, the value above the last
            point.
        method: Accepted; one way is used, which gives the same.
    Example: fg.numpy.digitize(np.array([0.5, 2.5]), np.array([0.0, 1.0, 2.0])) -> array([1, 3])
    """
    values, bins = as_value(x, "digitize"), strong(as_value(bins, "digitize"))
    for given in (values, bins):
        if is_complex(aval_of(given).dtype):
            raise TypeError(f"digitize: complex numbers have no order, got {aval_of(given)}.")
    side = "left" if right else "right"
    known = value_if_known(bins)
    descends = _descends(bins if known is None else known)
    if known is None:
        bins = where(descends, bins[::-1], bins)
    elif descends:
        bins = bins[::-1]
    place = searchsorted(_checked_edges("digitize", bins, "or decrease "), values, side)
    from_end = e.subtract(shape_of(bins)[0], place)
    if known is None:
        return where(descends, from_end, place)
    return from_end if descends else place


def _descends(bins: Any) -> Any:
    """Whether the first of the edges that differs from ``bins[0]`` is not above it."""
    if bins.ndim != 1 or bins.size < 2:
        return np.False_
    differs = bins != bins[0]
    # A nan differs from itself, and what follows it is below it.
    return differs.any() & ~(bins[0] < bins[np.argmax(differs)])


def _checked_edges(name: str, edges: Any, also: str = "") -> Any:
    """Edges, which are a line and ascend; traced ones are checked when they are computed."""
    if len(shape_of(edges)) != 1:
        raise ShapeError(f"{name}: bins are a line of edges, got {aval_of(edges)}.")
    known = value_if_known(edges)
    rule = f"{name}: bins must increase {also}monotonically"
    if known is not None:
        if np.any(known[:-1] > known[1:]):
            raise ValueError(f"{rule}, got {known}.")
        return edges
    return _unless(e.greater(edges[:-1], edges[1:]).any(), f"{rule}.", edges)


def _unless(is_wrong: Any, message: str, edges: Any) -> Any:
    """Edges, if a traced condition is false when they are computed."""
    if INDEX_RULE.clamps:
        return edges
    start = demanded_places(p.convert(is_wrong, INT64), 0, 0, message)
    return getitem(edges, e.add(start, np.arange(shape_of(edges)[0])))


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Number of occurrences of each integer, or sums of weights.

    As `numpy.bincount`; traced ``x`` needs the ``length`` of the result.

    Args:
        x: Line of non-negative integers.
        weights: What to add up instead of ones; differentiable.
        minlength: Least length of the result.
        length: Length of the result, for any values: those beyond it are dropped.
    Example: fg.numpy.bincount(np.array([0, 1, 1, 3])) -> array([1, 2, 0, 1])
    """
    check_placement("bincount", out_sharding=out_sharding)
    x = strong(as_value(x, "bincount"))
    x = p.convert(x, INT64) if aval_of(x).dtype == BOOL else x
    if aval_of(x).dtype.kind not in "iu" or len(shape_of(x)) != 1:
        raise TypeError(f"bincount needs a line of integers, got {aval_of(x)}.")
    if not isinstance(x, Tracer):
        if x.size and x.min() < 0:
            raise ValueError("'list' argument must have no negative elements")
        length = length or builtins.max(int(x.max()) + 1 if x.size else 0, minlength)
    if length is None and not aval_of(x).size:
        length = minlength
    if length is None:
        raise ConcretizationTypeError(
            message(
                x,
                "the length of the result of bincount depends on values, but its argument is",
                "Fix the length: funcgrad.numpy.bincount(x, length=n); NumPy's function does not "
                "take it.",
            )
        )
    if weights is None:
        weights = np.ones(shape_of(x), np.int64)
    else:
        weights = p.convert(strong(as_value(weights, "bincount")), FLOAT64)
    start = np.zeros(length, aval_of(weights).dtype)
    # Negative numbers would count from the end: they are sent beyond it.
    index = where(e.less(x, 0), length, as_index(x))
    return ScatterAdd((0,), "fill").bind(start, weights, index)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Edges of the bins of a histogram.

    As `numpy.histogram_bin_edges`, for a number of bins or edges.

    Example: fg.numpy.histogram_bin_edges(np.array([0.0, 1.0]), bins=4)
        -> array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if isinstance(bins, str):
        raise ArgumentError("histogram: bins must be a number or edges, not the name of a rule.")
    if not isinstance(bins, int | np.integer):
        return _checked_edges("histogram", as_value(bins, "histogram"))
    x = strong(as_value(a, "histogram"))
    if range is not None:
        low, high = map(as_value, range)
    elif aval_of(x).size:
        low, high = min(x), max(x)
    else:
        low, high = np.float64(0), np.float64(1)
    dtype = result_dtype([*map(aval_of, (low, high, x)), aval_of(0.0)])
    is_point = e.equal(low, high)
    low, high = where(is_point, e.subtract(low, 0.5), low), where(is_point, e.add(high, 0.5), high)
    # Of ends that are not finite, the edges between them are not, or are equal.
    with np.errstate(all="ignore"):
        edges = creating.linspace(low, high, int(bins) + 1, dtype=dtype)
        is_wrong = e.logical_not(e.less(edges[:-1], edges[1:]).all())
    rule = f"histogram: the range must be finite, ascend, and have room for {bins} bins"
    if isinstance(is_wrong, Tracer):
        return _unless(is_wrong, f"{rule}.", edges)
    if is_wrong:
        raise ValueError(f"{rule}, got [{low}, {high}].")
    return edges


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any]:
    """Number of elements in bins.

    As `numpy.histogram`, for a known number of bins or edges.

    Args: density: Whether counts are divided so that the integral is 1.
    Example: fg.numpy.histogram(np.array([0.1, 0.2, 0.9]), bins=2, range=(0.0, 1.0))
        -> (array([2, 1]), array([0. , 0.5, 1. ]))
    """
    edges = histogram_bin_edges(a, bins, range)
    x, bounds = map(strong, promote(shaping.ravel(as_value(a, "histogram")), edges))
    n = builtins.max(shape_of(bounds)[0] - 1, 0)
    place = e.subtract(searchsorted(bounds, x, "right"), 1)
    if shape_of(bounds)[0]:
        # The last bin includes its right edge, and a last edge that is nan includes nan.
        place = where(_is_same(x, getitem(bounds, -1)), n - 1, place)
    counted = np.ones(shape_of(x), np.int64)
    if weights is not None:
        counted = shaping.ravel(strong(as_value(weights, "histogram")))
    start = np.zeros(n, aval_of(counted).dtype)
    outside = e.logical_or(e.less(place, 0), e.greater_equal(place, n))
    counts = ScatterAdd((0,), "fill").bind(start, counted, where(outside, n, place))
    if density:
        counts = e.divide(e.divide(counts, diff(edges)), sum(counts))
    return counts, edges


def _is_same(x: Any, y: Any) -> Any:
    """Whether two are equal or both nan."""
    same = e.equal(x, y)
    if not is_inexact(aval_of(x).dtype):
        return same
    return e.logical_or(same, e.logical_and(e.isnan(x), e.isnan(y)))


def _bin_of(x: Any, edges: Any) -> Any:
    """The number of the bin of each element, that of no bin being the number of bins."""
    x, bounds = map(strong, promote(x, edges))
    n = shape_of(bounds)[0] - 1
    number = e.subtract(searchsorted(bounds, x, "right"), 1)
    number = where(e.equal(x, getitem(bounds, -1)), n - 1, number)
    outside = e.logical_or(e.less(number, 0), e.greater_equal(number, n))
    outside = e.logical_or(outside, e.isnan(x))
    return where(outside, n, number)


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, list[Any]]:
    """Number of points in bins of several dimensions.

    As `numpy.histogramdd`: how many points lie in each box of a grid.

    Args:
        sample: Points, ``(n, d)``, or a list of ``d`` lines of coordinates.
        bins: A number of bins for all axes, or for each axis a number or a line of edges.
        range: For each axis the least and greatest edge, or None.
        density: Whether to divide by the volume of boxes and the number of points.
        weights: What to add up instead of ones, ``(n,)``; differentiable.
    Returns: The counts, floats with one axis per coordinate, and a list of edges.
    Raises: ShapeError: If ``bins`` or ``range`` does not have an entry for each axis.

    Example:
        >>> points = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.9]])
        >>> counts, edges = fg.numpy.histogramdd(points, 2)
        >>> print(counts.tolist())
        [[1.0, 0.0], [0.0, 2.0]]
    """
    points = as_value(sample, "histogramdd")
    if isinstance(sample, list | tuple) or len(shape_of(points)) < 2:
        points = s.Transpose((1, 0)).bind(shaping.atleast_2d(points))
    d = shape_of(points)[1]
    each = [bins] * d if isinstance(bins, int | np.integer) else list(bins)
    spans = [None] * d if range is None else list(range)
    if len(each) != d or len(spans) != d:
        raise ShapeError(f"histogramdd: {aval_of(points)} needs bins and range for {d} axes.")
    lines = [getitem(points, (slice(None), i)) for i in builtins.range(d)]
    axes = zip(lines, each, spans, strict=True)
    edges = [histogram_bin_edges(*axis) for axis in axes]
    counted = np.ones(shape_of(points)[0])
    if weights is not None:
        counted = p.convert(strong(as_value(weights, "histogramdd")), FLOAT64)
    places = [_bin_of(x, bounds) for x, bounds in zip(lines, edges, strict=True)]
    start = np.zeros([shape_of(bounds)[0] - 1 for bounds in edges], aval_of(counted).dtype)
    counts = ScatterAdd(tuple(builtins.range(d)), "fill").bind(start, counted, *places)
    if density:
        total = sum(counts)
        for axis, bounds in enumerate(edges):
            rest = (1,) * (d - axis - 1)
            counts = e.divide(counts, shaping.reshape(diff(bounds), (-1, *rest)))
        counts = e.divide(counts, total)
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Any, Any, Any]:
    """Number of points in bins of the plane.

    As `numpy.histogram2d`: how many points lie in each rectangle of a grid.

    Args:
        x: First coordinates, ``(n,)``.
        y: Second coordinates, ``(n,)``.
        bins: A number of bins or a line of edges for both axes, or a pair of them.
        range: For each axis the least and greatest edge, or None.
        density: As in `histogramdd`.
        weights: As in `histogramdd`.
    Returns: The counts, the edges of the first axis and those of the second.
    Example: print(fg.numpy.histogram2d([0.0, 1.0], [0.0, 1.0], 2)[0].tolist())
        -> [[1.0, 0.0], [0.0, 1.0]]
    """
    is_number = isinstance(bins, int | np.integer)
    pair = bins if is_number or len(bins) == 2 else [bins, bins]
    points = joining.stack(promote(as_value(x, "histogram2d"), as_value(y, "histogram2d")), 1)
    counts, edges = histogramdd(points, pair, range, density, weights)
    return counts, edges[0], edges[1]
