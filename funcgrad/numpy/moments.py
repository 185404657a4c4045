"""Means, variances and standard deviations.

Dtypes are NumPy's: means of integers are float64. The derivative of a standard deviation that is 0
is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import NUMPY, dialect, fails_as_nan
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import FLOAT64, inexact_dtype, is_complex, is_inexact, real_dtype
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.numpy import promotion, reducing
from funcgrad.numpy.skipping_nan import nan_mask
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.shape import ReduceSum, shape_of

__all__ = ["average", "mean", "nanmean", "nanstd", "nanvar", "std", "var"]


def _mean_dtype(x: Any, dtype: Any, function: str) -> np.dtype[Any]:
    """The dtype of the mean of ``x``: the one that is asked for, or a floating one."""
    if dtype is not None:
        return promotion.checked_dtype(dtype, function)
    return _divisible(aval_of(x).dtype)


def _measured(a: Any, dtype: Any, function: str) -> Any:
    """``a`` in the dtype of its mean."""
    x = promotion.strong(promotion.as_value(a, function))
    return p.convert(x, _mean_dtype(x, dtype, function))


def _divisible(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which sums of ``dtype`` are divided."""
    if dialect() is NUMPY:
        return dtype if is_inexact(dtype) else FLOAT64
    return inexact_dtype(dtype)


def _count(x: Any, axes: Sequence[int], keepdims: Any, mask: Any, dtype: np.dtype[Any]) -> Any:
    """How many elements are folded, in the real dtype in which sums of ``dtype`` are divided."""
    dtype = real_dtype(_divisible(dtype))
    if mask is None:
        number = 1
        for axis in axes:
            number *= shape_of(x)[axis]
        return dtype.type(number)
    return p.convert(reducing.sum(mask, tuple(axes), keepdims=keepdims), dtype)


def _mean(x: Any, axis: Any, keepdims: Any, mask: Any, name: str) -> Any:
    """The mean in the dtype of ``x``: truncated if that is exact."""
    axes = reducing.folded_axes(axis, len(shape_of(x)), name)
    kept = x if mask is None else p.select.bind(mask, x, p.zero_of(x))
    total = reducing.fold(ReduceSum, kept, axes, keepdims, name)
    own = aval_of(x).dtype
    divided = _divisible(own)
    count = p.convert(_count(x, axes, keepdims, mask, own), divided)
    return p.convert(p.div.bind(p.convert(total, divided), count), own)


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Mean of the elements along axes, as `numpy.mean`.

    Example: fg.numpy.mean(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) -> array([2., 3.])
    """
    reducing.refuse_out(out, "mean")
    x = _measured(a, dtype, "mean")
    return _mean(x, axis, keepdims, reducing.mask_of(where, x, "mean"), "mean")


def _variance(
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: Any,
    where: Any,
    mean: Any,
    correction: Any,
    name: str,
) -> Any:
    """Mean of squared distances from the mean, with ``ddof`` taken off the count.

    Functions that skip nan return nan where the count is not positive; in JAX all functions do.
    """
    if correction is not None and ddof != 0:
        raise ValueError(f"{name}: ddof= and correction= are two names of one number, give one.")
    ddof = ddof if correction is None else correction
    x = promotion.strong(promotion.as_value(a, name))
    skips_nan = name.startswith("nan") and is_inexact(aval_of(x).dtype)
    if skips_nan:
        _check_inexact(x, dtype, name)
    inner = _mean_dtype(x, dtype, name)
    # Distances from a mean that lost its fraction or imaginary part do not lose theirs.
    loses = not is_inexact(inner) or (is_complex(aval_of(x).dtype) and not is_complex(inner))
    x = x if loses else p.convert(x, inner)
    mask = nan_mask(x, where, name) if skips_nan else reducing.mask_of(where, x, name)
    if mask is not None:
        x = p.select.bind(mask, x, p.zero_of(x))
    axes = reducing.folded_axes(axis, len(shape_of(x)), name)
    center = (
        _mean(p.convert(x, inner), axes, True, mask, name)
        if mean is None
        else promotion.to_dtype(promotion.as_value(mean), inner)
    )
    square = _square_size(p.sub.bind(*promotion.promote(x, center)))
    if mask is not None:
        square = p.select.bind(mask, square, p.zero_of(square))
    summed = inner if dtype is not None and not is_inexact(inner) else real_dtype(inner)
    total = reducing.fold(ReduceSum, p.convert(square, summed), axes, keepdims, name)
    count = _count(x, axes, keepdims, mask, summed)
    left = p.sub.bind(count, promotion.to_dtype(ddof, aval_of(count).dtype))
    zero = p.zero_of(left)
    out = p.div.bind(p.convert(total, aval_of(left).dtype), p.maximum.bind(left, zero))
    if skips_nan or fails_as_nan():
        nan = aval_of(out).dtype.type(np.nan)
        out = p.select.bind(p.less_equal.bind(left, zero), nan, out)
    return reducing.without_axes(out if dtype is None else p.convert(out, inner))


def _square_size(distance: Any) -> Any:
    dtype = aval_of(distance).dtype
    if is_complex(dtype):
        return p.real.bind(p.mul.bind(distance, p.conj.bind(distance)))
    if is_inexact(dtype):
        return p.integer_power(distance, 2)
    return p.mul.bind(distance, distance)


def _root(square: Any) -> Any:
    """The standard deviation for a variance."""
    dtype = aval_of(square).dtype
    return p.convert(reducing.safe_sqrt(p.convert(square, _divisible(dtype))), dtype)


def _spread(name: str, summary: str, shown: str) -> Callable[..., Any]:
    is_root = name.endswith("std")

    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: Any = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
        mean: Any = None,
        correction: Any = None,
    ) -> Any:
        reducing.refuse_out(out, name)
        found = _variance(a, axis, dtype, ddof, keepdims, where, mean, correction, name)
        return _root(found) if is_root else found

    data = reducing.WITH_NAN if name.startswith("nan") else reducing.SMALL
    notes = f"As `numpy.{name}`." + " Where it is 0 its derivative is taken to be 0." * is_root
    return reducing.named(function, name, summary, f"{data}, axis=0) -> {shown}", notes)


var = _spread("var", "Variance of the elements along axes.", "array([1., 1.])")
std = _spread("std", "Standard deviation of the elements along axes.", "array([1., 1.])")
nanvar = _spread(
    "nanvar", "Variance of the elements along axes that are not nan.", "array([1., 0.])"
)
nanstd = _spread(
    "nanstd", "Standard deviation of the elements along axes that are not nan.", "array([1., 0.])"
)


def _fitted_weights(weights: Any, x: Any, axis: Any) -> Any:
    """Weights of the shape of ``x``; along axes that they lack they repeat."""
    w = promotion.strong(promotion.as_value(weights, "average"))
    shape = shape_of(x)
    if shape_of(w) == shape:
        return w
    if axis is None:
        raise TypeError("average: weights of another shape than the array need an axis.")
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = [promotion.normalize_axis(i, len(shape), "average") for i in given]
    if shape_of(w) != tuple(shape[i] for i in axes):
        raise ShapeError(
            f"average: weights {aval_of(w)} do not have the lengths of axes {axes} of {aval_of(x)}."
        )
    order = tuple(int(i) for i in np.argsort(axes))
    w = s.Transpose(order).bind(w) if len(order) > 1 else w
    return s.broadcast_to(
        s.reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(shape))), shape
    )


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Weighted mean along axes, as `numpy.average`.

    Args: returned: Whether to return the sum of the weights, too.
    Example: fg.numpy.average(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) -> array([2., 3.])
    """
    x = _measured(a, None, "average")
    axis = tuple(axis) if isinstance(axis, list) else axis
    if weights is None:
        axes = reducing.folded_axes(axis, len(shape_of(x)), "average")
        result = mean(x, axes, keepdims=keepdims)
        dtype = aval_of(x).dtype
        total = p.convert(_count(x, axes, keepdims, None, dtype), dtype)
    else:
        w = _fitted_weights(weights, x, axis)
        given = aval_of(promotion.as_value(a))
        if not is_inexact(aval_of(w).dtype) and not is_inexact(given.dtype):
            w = p.convert(w, aval_of(x).dtype)
        x, w = promotion.promote(x, w)
        total = reducing.sum(w, axis, keepdims=keepdims)
        if not isinstance(total, Tracer) and np.any(total == 0):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = p.div.bind(reducing.sum(p.mul.bind(x, w), axis, keepdims=keepdims), total)
    return (result, s.broadcast_to(total, shape_of(result))) if returned else result


def _check_inexact(x: Any, dtype: Any, name: str) -> None:
    """Raise if numbers that may be nan are asked for in a dtype that has no nan."""
    own = aval_of(x).dtype
    if is_inexact(own) and not is_inexact(_mean_dtype(x, dtype, name)):
        raise DtypeError(
            f"{name}: dtype={np.dtype(dtype)} has no nan, which the result for {aval_of(x)} may "
            "be. Leave dtype= away and convert the result."
        )


def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Mean of the elements along axes that are not nan, as `numpy.nanmean`.

    Example: fg.numpy.nanmean(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0) -> array([2., 4.])
    """
    reducing.refuse_out(out, "nanmean")
    x = promotion.strong(promotion.as_value(a, "nanmean"))
    _check_inexact(x, dtype, "nanmean")
    x = _measured(x, dtype, "nanmean")
    return _mean(x, axis, keepdims, nan_mask(x, where, "nanmean"), "nanmean")
