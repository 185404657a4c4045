"""Order statistics: quantiles and medians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import FLOAT64, INT64, is_inexact
from funcgrad.numpy.promotion import as_value, normalize_axes, result_dtype, strong, to_dtype
from funcgrad.numpy.reducing import SMALL, WITH_NAN, named, refuse_out, sum, without_axes
from funcgrad.numpy.weighted import weighted_pick, weights_like
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.indexing import Gather, take_along_axis
from funcgrad.primitives.shape import shape_of
from funcgrad.primitives.sorting import Sort

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]


_CONTINUOUS: dict[str, tuple[float, float]] = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (0.375, 0.375),
}
"""Methods that interpolate: the parameters of the plotting position (Hyndman & Fan 1996)."""


def _position(q: Any, n: Any, method: str) -> tuple[Any, Any, Any]:
    """Position of the ``q`` quantile among ``n`` sorted elements.

    Returns: Index below, index above (both as floats, not yet cut to the array), and the weight of
        the element above.
    """
    one = p.ones_like(q)
    scaled = p.mul.bind(q, n)
    if method in _CONTINUOUS:
        alpha, beta = map(aval_of(q).dtype.type, _CONTINUOUS[method])
        offset = p.add.bind(alpha, p.mul.bind(q, 1 - alpha - beta))
        place = p.sub.bind(p.add.bind(scaled, offset), one)
        place = _cut(place, n)
        below = p.floor.bind(place)
        return below, p.add.bind(below, one), p.sub.bind(place, below)
    return _stepped_position(q, n, scaled, method)


def _cut(place: Any, n: Any) -> Any:
    """A position cut to ``0 .. n-1``."""
    high = p.maximum.bind(p.sub.bind(n, p.ones_like(n)), p.zero_of(n))
    return p.minimum.bind(p.maximum.bind(place, p.zero_of(place)), high)


def _stepped_position(q: Any, n: Any, scaled: Any, method: str) -> tuple[Any, Any, Any]:
    """Position for the methods whose quantiles are elements or means of two; see `_position`."""
    one, zero = p.ones_like(q), p.zero_of(q)
    half = one / (one + one)
    spread = p.mul.bind(q, p.sub.bind(n, one))
    previous = p.sub.bind(scaled, one)
    if method == "lower":
        low = high = p.floor.bind(spread)
    elif method == "higher":
        low = high = p.ceil.bind(spread)
    elif method == "midpoint":
        low, high = p.floor.bind(spread), p.ceil.bind(spread)
    elif method == "nearest":
        low = high = p.rint.bind(spread)
    elif method == "inverted_cdf":
        low = high = p.ceil.bind(previous)
    elif method == "averaged_inverted_cdf":
        low, high = p.ceil.bind(previous), p.floor.bind(scaled)
    elif method == "closest_observation":
        # The element whose number is nearest; of two equally near the one of even number.
        low = high = p.sub.bind(p.rint.bind(scaled), one)
    else:
        known = ", ".join([*_CONTINUOUS, "lower", "higher", "midpoint", "nearest", "inverted_cdf"])
        raise ValueError(
            f"quantile: {method!r} is not a method. Known are {known}, averaged_inverted_cdf and "
            "closest_observation."
        )
    low, high = _cut(low, n), _cut(high, n)
    return low, high, p.select.bind(p.equal.bind(low, high), zero, half)


def _lines(x: Any, axis: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    """The folded axes as one last axis; and which they were."""
    shape = shape_of(x)
    axes = normalize_axes(axis, len(shape), name)
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    order = (*rest, *axes)
    moved = x if order == tuple(range(len(shape))) else s.Transpose(order).bind(x)
    length = 1
    for i in axes:
        length *= shape[i]
    lines = s.reshape(moved, (*(shape[i] for i in rest), length))
    return lines, axes


def _quantile(
    a: Any,
    q: Any,
    axis: Any,
    method: str,
    keepdims: Any,
    name: str,
    skips_nan: bool,
    weights: Any = None,
) -> Any:
    x = strong(as_value(a, name))
    q = as_value(q, name)
    if aval_of(x).dtype.kind not in "biuf":
        raise TypeError(f"{name} is not defined for {aval_of(x)}: its elements have no order.")
    if not isinstance(q, Tracer) and not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    dtype = result_dtype([aval_of(v) for v in (x, q, 0.0)])
    shape = shape_of(x)
    lines, axes = _lines(p.convert(x, dtype), axis, name)
    q = to_dtype(q, dtype)
    flat = s.reshape(q, (aval_of(q).size,))
    *rows, length = shape_of(lines)
    if not length:
        if name in ("quantile", "percentile"):
            raise IndexError(f"{name}: an axis of length 0 has no quantiles.")
        picked = np.full((*shape_of(flat), *rows), np.nan, dtype)
    elif weights is None:
        picked = _pick(Sort(len(shape_of(lines)) - 1).bind(lines), flat, method, skips_nan)
    else:
        if method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        own, _ = _lines(weights_like(weights, shape, axes, name), axis, name)
        picked = weighted_pick(lines, own, flat, skips_nan)
    lanes = tuple(1 if i in axes else n for i, n in enumerate(shape))
    lanes = lanes if keepdims else s.drop_axes(shape, axes)
    out = s.reshape(picked, (*shape_of(q), *lanes))
    return without_axes(out)


def _pick(lines: Any, q: Any, method: str, skips_nan: bool) -> Any:
    """Quantiles ``q``, in front, of sorted lines along the last axis; nan where a line has one."""
    axis = len(shape_of(lines)) - 1
    dtype, length = aval_of(lines).dtype, shape_of(lines)[axis]
    if skips_nan:
        count = sum(p.bitwise_not.bind(p.isnan.bind(lines)), axis, keepdims=True)
        low, high, weight = _position(q, p.convert(count, dtype), method)
        below, above = (take_along_axis(lines, _index(i, length), axis) for i in (low, high))
        return s.moveaxis_to_front(_between(below, above, weight), axis)
    low, high, weight = _position(q, dtype.type(length), method)
    gather = Gather((axis,))
    below, above = (gather.bind(lines, _index(i, length)) for i in (low, high))
    out = _between(below, above, s.reshape(weight, (*shape_of(weight), *(1,) * axis)))
    largest = gather.bind(lines, np.int64(length - 1))
    return p.select.bind(p.isnan.bind(largest), largest, out)


def _index(place: Any, length: int) -> Any:
    limit = aval_of(place).dtype.type(length - 1)
    inside = p.minimum.bind(p.maximum.bind(place, p.zero_of(place)), limit)
    return p.convert(inside, INT64)


def _between(low: Any, high: Any, weight: Any) -> Any:
    """``low + weight (high - low)``; where the weight is 0 it is ``low``."""
    is_end = p.equal.bind(weight, p.zero_of(weight))
    is_far = p.bitwise_or.bind(p.isinf.bind(low), p.isinf.bind(high))
    is_apart = p.bitwise_and.bind(is_far, p.bitwise_not.bind(is_end))
    # Infinities are kept away from the difference, and zeros from infinities: they would be nan.
    kept = p.bitwise_or.bind(is_end, is_far)
    finite_low, finite_high = (p.select.bind(kept, p.zero_of(v), v) for v in (low, high))
    line = p.add.bind(finite_low, p.mul.bind(weight, p.sub.bind(finite_high, finite_low)))
    far_low, far_high = (p.select.bind(is_apart, v, p.zero_of(v)) for v in (low, high))
    inside = p.select.bind(is_end, p.ones_like(weight), weight)
    rest = p.select.bind(is_end, inside, p.sub.bind(p.ones_like(weight), weight))
    far = p.add.bind(p.mul.bind(rest, far_low), p.mul.bind(inside, far_high))
    return p.select.bind(is_end, low, p.select.bind(is_far, far, line))


def _percent(a: Any, q: Any) -> Any:
    """Percentages as fractions, in the dtype of a floating array if they are Python numbers."""
    q = as_value(q, "percentile")
    dtype = aval_of(as_value(a, "percentile")).dtype
    if isinstance(q, int | float) and dtype.kind == "f":
        q = dtype.type(q)
    q = strong(q)
    q = q if is_inexact(aval_of(q).dtype) else p.convert(q, FLOAT64)
    return p.div.bind(q, aval_of(q).dtype.type(100))


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    out_sharding: Any = None,
    weights: Any = None,
) -> Any:
    """Percentiles of the elements along axes.

    As `numpy.percentile`; ``q`` may be traced.

    Weights need the method ``"inverted_cdf"``; they have no derivative.

    Example: fg.numpy.percentile(np.array([1.0, 2.0, 3.0, 4.0]), 25) -> np.float64(1.75)
    """
    refuse_out(out, "percentile")
    check_placement("percentile", out_sharding=out_sharding)
    return _quantile(a, _percent(a, q), axis, method, keepdims, "percentile", False, weights)


def _quantiles(name: str, summary: str, call: str) -> Callable[..., Any]:
    skips_nan, is_percent = name.startswith("nan"), name.endswith("percentile")

    def function(
        a: Any,
        q: Any,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
    ) -> Any:
        refuse_out(out, name)
        share = _percent(a, q) if is_percent else q
        return _quantile(a, share, axis, method, keepdims, name, skips_nan, weights)

    notes = (
        f"As `numpy.{name}`; ``q`` may be traced.\n\n"
        'Weights need the method ``"inverted_cdf"``; they have no derivative.'
    )
    return named(function, name, summary, call, notes)


quantile = _quantiles(
    "quantile",
    "Quantiles of the elements along axes.",
    "np.array([1.0, 2.0, 3.0, 4.0]), 0.25) -> np.float64(1.75)",
)
nanquantile = _quantiles(
    "nanquantile",
    "Quantiles of the elements along axes that are not nan.",
    "np.array([1.0, np.nan, 3.0]), 0.5) -> np.float64(2.0)",
)
nanpercentile = _quantiles(
    "nanpercentile",
    "Percentiles of the elements along axes that are not nan.",
    "np.array([1.0, np.nan, 3.0]), 50) -> np.float64(2.0)",
)


def _median(name: str, summary: str, data: str, shown: str) -> Callable[..., Any]:
    skips_nan = name.startswith("nan")

    def function(
        a: Any,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Any:
        refuse_out(out, name)
        return _quantile(a, 0.5, axis, "linear", keepdims, name, skips_nan)

    call = f"{data}, axis=0) -> {shown}"
    return named(function, name, summary, call, f"As `numpy.{name}`.")


median = _median("median", "Median of the elements along axes.", SMALL, "array([2., 3.])")
nanmedian = _median(
    "nanmedian", "Median of the elements along axes that are not nan.", WITH_NAN, "array([2., 4.])"
)
