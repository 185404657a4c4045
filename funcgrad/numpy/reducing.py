"""Folds over axes and along them: sums, extremes, moments, order statistics, running sums.

Dtypes are NumPy's: sums of bools and small integers are of 64 bits, means of integers are float64.
Where a derivative does not exist the convention is a finite one: ties of an extreme share its
tangent equally, and the derivative of a standard deviation that is 0 is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import NUMPY, dialect
from funcgrad.base.placement import check_placement
from funcgrad.base.signatures import docstring, explain, explained
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import (
    BOOL,
    FLOAT64,
    INT64,
    PYTHON_SCALARS,
    inexact_dtype,
    is_complex,
    is_inexact,
    real_dtype,
)
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.numpy.elementwise import truth
from funcgrad.numpy.meanings import MEANINGS
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axes,
    normalize_axis,
    promote,
    result_dtype,
    strong,
    to_dtype,
)
from funcgrad.numpy.shaping import ravel
from funcgrad.numpy.weighted import weighted_pick, weights_like
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.cumulative import Cummax, Cummin, Cumprod, Cumsum
from funcgrad.primitives.indexing import Gather, take_along_axis
from funcgrad.primitives.reductions import (
    ArgMax,
    ArgMin,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
)
from funcgrad.primitives.shape import ReduceSum, shape_of
from funcgrad.primitives.sorting import Sort

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod",
    "cumsum", "cumulative_prod", "cumulative_sum", "max", "mean", "median", "min", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "percentile", "prod",
    "ptp", "quantile", "std", "sum", "var",
]  # fmt: skip


def refuse_out(out: Any, function: str) -> None:
    """Raise unless ``out`` is None: results are always new arrays."""
    if out is not None:
        raise ArgumentError(
            f"{function}: out= is not supported, results are always new arrays. Leave it away and "
            f"bind the result: y = {function}(...)."
        )


def _accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which NumPy adds and multiplies many elements of ``dtype``."""
    if dtype.kind in "bi":
        return INT64
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def summand(a: Any, dtype: Any, function: str, promote_integers: bool = True) -> Any:
    """``a`` in the dtype in which it is added or multiplied."""
    x = strong(as_value(a, function))
    if dtype is None and not promote_integers and aval_of(x).dtype != BOOL:
        return x
    wanted = _accumulator(aval_of(x).dtype) if dtype is None else checked_dtype(dtype, function)
    return p.convert(x, wanted)


def _mean_dtype(x: Any, dtype: Any, function: str) -> np.dtype[Any]:
    """The dtype of the mean of ``x``: the one that is asked for, or a floating one."""
    if dtype is not None:
        return checked_dtype(dtype, function)
    return _divisible(aval_of(x).dtype)


def _measured(a: Any, dtype: Any, function: str) -> Any:
    """``a`` in the dtype of its mean."""
    x = strong(as_value(a, function))
    return p.convert(x, _mean_dtype(x, dtype, function))


def _divisible(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which sums of ``dtype`` are divided."""
    if dialect() is NUMPY:
        return dtype if is_inexact(dtype) else FLOAT64
    return inexact_dtype(dtype)


def _mask(where: Any, x: Any, function: str) -> Any:
    """A mask of the shape of ``x``, or None if there is none: for True, and as in JAX for None."""
    if where is None or where is True:
        return None
    mask = as_value(where, function)
    if aval_of(mask).dtype != BOOL and type(mask) not in PYTHON_SCALARS:
        raise DtypeError(
            f"{function}: where= must be a bool array, got {aval_of(mask)}. Compare it: where != 0."
        )
    mask = truth(mask)
    shape, own = shape_of(x), shape_of(mask)
    if len(own) > len(shape) or np.broadcast_shapes(own, shape) != shape:
        raise ShapeError(
            f"{function}: where= has shape {own}, which does not broadcast to that of {aval_of(x)}."
        )
    return s.broadcast_to(mask, shape)


def _start(initial: Any, dtype: np.dtype[Any], function: str) -> Any:
    """The scalar with which a fold starts."""
    start = as_value(initial, function)
    if shape_of(start):
        raise ShapeError(
            f"{function}: initial= must be a scalar, got {aval_of(start)}. Combine the result with "
            "an array afterwards."
        )
    # As a Python number, so that one that is out of range is refused.
    return to_dtype(start.item() if isinstance(start, np.ndarray | np.generic) else start, dtype)


def _kept(out: Any, shape: tuple[int, ...], axes: Sequence[int], keepdims: Any) -> Any:
    """The result of a fold, with axes of length 1 in place of the folded ones if asked for."""
    if not keepdims:
        return out
    return s.reshape(out, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _axes(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The folded axes; a list of them is refused, as NumPy does."""
    if isinstance(axis, list):
        raise ArgumentError(f"{name}: axis must be an int, a tuple of them or None, got {axis}.")
    return normalize_axes(axis, ndim, name)


def _fold(primitive: Callable[..., Primitive], x: Any, axis: Any, keepdims: Any, name: str) -> Any:
    shape = shape_of(x)
    axes = _axes(axis, len(shape), name)
    return _kept(primitive(axes).bind(x) if axes else x, shape, axes, keepdims)


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    promote_integers: bool = True,
) -> Any:
    """Sum of the elements along axes.

    As `numpy.sum`; without ``promote_integers`` narrow ones keep their dtype, and may wrap.

    Args:
        promote_integers: Whether integers narrower than 64 bits are added in 64 bits; otherwise
            they keep their dtype, and may wrap.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([4., 6.])
    """
    refuse_out(out, "sum")
    x = summand(a, dtype, "sum", promote_integers)
    mask = _mask(where, x, "sum")
    if mask is not None:
        x = p.select.bind(mask, x, p.zero_of(x))
    total = _fold(ReduceSum, x, axis, keepdims, "sum")
    if initial is None:
        return total
    return p.add.bind(total, _start(initial, aval_of(x).dtype, "sum"))


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    promote_integers: bool = True,
) -> Any:
    """Product of the elements along axes.

    As `numpy.prod`. Its derivative is exact where elements are 0.

    Without ``promote_integers`` narrow integers keep their dtype, and may wrap.

    Args:
        promote_integers: Whether integers narrower than 64 bits are added in 64 bits; otherwise
            they keep their dtype, and may wrap.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.prod(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([3., 8.])
    """
    refuse_out(out, "prod")
    x = summand(a, dtype, "prod", promote_integers)
    mask = _mask(where, x, "prod")
    if mask is not None:
        x = p.select.bind(mask, x, p.ones_like(x))
    product = _fold(ReduceProd, x, axis, keepdims, "prod")
    if aval_of(x).dtype.kind == "c" and not _axes(axis, len(shape_of(x)), "prod"):
        product = p.mul.bind(product, p.ones_like(x))  # as NumPy: infinite parts are not the same
    if initial is None:
        return product
    start = _start(initial, aval_of(x).dtype, "prod")
    if aval_of(x).dtype.kind != "c":
        return p.mul.bind(product, start)
    # Complex numbers with infinite parts are not what they are times 1.
    chosen = np.ones(shape_of(x), bool) if mask is None else mask
    is_product = _fold(ReduceAny, chosen, axis, keepdims, "prod")
    factor = p.select.bind(is_product, start, p.ones_like(x))
    return p.select.bind(is_product, p.mul.bind(product, factor), start)


_MEANINGS = {
    "a": "Array, number or traced value.",
    "axis": "Axis, or tuple of axes, counted from the end if negative; all by default.",
    "out": "``None``; results are new arrays.",
    "keepdims": "Whether reduced axes stay, with length 1.",
    "initial": "Number that is compared, too; needed where there are no elements.",
    "where": "Mask of the elements that count; needs ``initial``.",
}
_PLACES = {
    **_MEANINGS,
    "axis": "The axis, counted from the end if negative; by default the array is flattened.",
}
del _PLACES["initial"], _PLACES["where"]
_SMALL = "np.array([[1.0, 2.0], [3.0, 4.0]])"
_WITH_NAN = "np.array([[1.0, np.nan], [3.0, 4.0]])"


def _named(
    function: Callable[..., Any],
    name: str,
    summary: str,
    call: str,
    notes: str = "",
    table: Mapping[str, str] = MEANINGS,
) -> Callable[..., Any]:
    """Name one function of a family, and describe it; its example is a call, without the name."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring(summary, {}, f"fg.numpy.{name}({call}", notes)
    function.__doc__ = explained(function, table)
    return function


def _extreme(
    primitive: Callable[..., Primitive], pairwise: Any, name: str, summary: str, shown: str
) -> Callable[..., Any]:
    def function(
        a: Any,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        refuse_out(out, name)
        x = strong(as_value(a, name))
        mask = _mask(where, x, name)
        if initial is None:
            if mask is not None:
                raise ValueError(
                    f"{name}: where= needs initial=, the result where nothing is left."
                )
            return _fold(primitive, x, axis, keepdims, name)
        start = _start(initial, aval_of(x).dtype, name)
        if mask is not None:
            x = p.select.bind(mask, x, start)
        shape, axes = shape_of(x), _axes(axis, len(shape_of(x)), name)
        if not aval_of(x).size:
            found = s.broadcast_to(start, s.drop_axes(shape, axes))
            return _kept(found, shape, axes, keepdims)
        return pairwise.bind(_fold(primitive, x, axis, keepdims, name), start)

    call = f"{_SMALL}, axis=0) -> {shown}"
    return _named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`. Elements that tie share the derivative equally.",
        _MEANINGS,
    )


max = amax = _extreme(
    ReduceMax, p.maximum, "max", "Greatest element along axes.", "array([3., 4.])"
)
min = amin = _extreme(
    ReduceMin, p.minimum, "min", "Smallest element along axes.", "array([1., 2.])"
)


def any(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether any element along axes is true, as `numpy.any`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.any(np.array([[True, False], [True, True]]), axis=0)
        array([ True,  True])
    """
    refuse_out(out, "any")
    x = truth(as_value(a, "any"))
    mask = _mask(where, x, "any")
    if mask is not None:
        x = p.bitwise_and.bind(mask, x)
    return _fold(ReduceAny, x, axis, keepdims, "any")


def all(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether all elements along axes are true, as `numpy.all`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.all(np.array([[True, False], [True, True]]), axis=0)
        array([ True, False])
    """
    refuse_out(out, "all")
    x = truth(as_value(a, "all"))
    mask = _mask(where, x, "all")
    if mask is not None:
        x = p.bitwise_or.bind(p.bitwise_not.bind(mask), x)
    return _fold(ReduceAll, x, axis, keepdims, "all")


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Number of elements along axes that are not zero, as `numpy.count_nonzero`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.count_nonzero(np.array([0.0, 2.0, 0.0, 3.0]))
        np.int64(2)
    """
    return sum(truth(as_value(a, "count_nonzero")), axis, keepdims=keepdims)


def _place_of(
    primitive: Callable[..., Primitive], name: str, summary: str, shown: str
) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        refuse_out(out, name)
        x = strong(as_value(a, name))
        shape = shape_of(x)
        if axis is None:
            found = primitive(0).bind(ravel(x))
            return s.reshape(found, (1,) * len(shape)) if keepdims else found
        index = normalize_axis(axis, len(shape), name)
        return _kept(primitive(index).bind(x), shape, (index,), keepdims)

    call = f"{_SMALL}, axis=0) -> {shown}"
    return _named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`: the first one, if there are several.",
        _PLACES,
    )


argmax = _place_of(ArgMax, "argmax", "Index of the greatest element.", "array([1, 1])")
argmin = _place_of(ArgMin, "argmin", "Index of the smallest element.", "array([0, 0])")


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Difference of the greatest and the smallest element along axes, as `numpy.ptp`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.ptp(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([2., 2.])
    """
    refuse_out(out, "ptp")
    x = strong(as_value(a, "ptp"))
    return p.sub.bind(max(x, axis, None, keepdims), min(x, axis, None, keepdims))


# Moments.


def _count(x: Any, axes: Sequence[int], keepdims: Any, mask: Any, dtype: np.dtype[Any]) -> Any:
    """How many elements are folded, in the real dtype in which sums of ``dtype`` are divided."""
    dtype = real_dtype(_divisible(dtype))
    if mask is None:
        number = 1
        for axis in axes:
            number *= shape_of(x)[axis]
        return dtype.type(number)
    return p.convert(sum(mask, tuple(axes), keepdims=keepdims), dtype)


def _mean(x: Any, axis: Any, keepdims: Any, mask: Any, name: str) -> Any:
    """The mean in the dtype of ``x``: truncated if that is exact."""
    axes = _axes(axis, len(shape_of(x)), name)
    kept = x if mask is None else p.select.bind(mask, x, p.zero_of(x))
    total = _fold(ReduceSum, kept, axes, keepdims, name)
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

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.mean(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([2., 3.])
    """
    refuse_out(out, "mean")
    x = _measured(a, dtype, "mean")
    return _mean(x, axis, keepdims, _mask(where, x, "mean"), "mean")


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

    What skips nan, by its name, is nan where nothing is left of the count.
    """
    if correction is not None and ddof != 0:
        raise ValueError(f"{name}: ddof= and correction= are two names of one number, give one.")
    ddof = ddof if correction is None else correction
    x = strong(as_value(a, name))
    skips_nan = name.startswith("nan") and is_inexact(aval_of(x).dtype)
    if skips_nan:
        _check_inexact(x, dtype, name)
    inner = _mean_dtype(x, dtype, name)
    # Distances from a mean that lost its fraction or imaginary part do not lose theirs.
    loses = not is_inexact(inner) or (is_complex(aval_of(x).dtype) and not is_complex(inner))
    x = x if loses else p.convert(x, inner)
    mask = _nan_mask(x, where, name) if skips_nan else _mask(where, x, name)
    if mask is not None:
        x = p.select.bind(mask, x, p.zero_of(x))
    axes = _axes(axis, len(shape_of(x)), name)
    center = (
        _mean(p.convert(x, inner), axes, True, mask, name)
        if mean is None
        else to_dtype(as_value(mean), inner)
    )
    square = _square_size(p.sub.bind(*promote(x, center)))
    if mask is not None:
        square = p.select.bind(mask, square, p.zero_of(square))
    summed = inner if dtype is not None and not is_inexact(inner) else real_dtype(inner)
    total = _fold(ReduceSum, p.convert(square, summed), axes, keepdims, name)
    count = _count(x, axes, keepdims, mask, summed)
    left = p.sub.bind(count, to_dtype(ddof, aval_of(count).dtype))
    zero = p.zero_of(left)
    out = p.div.bind(p.convert(total, aval_of(left).dtype), p.maximum.bind(left, zero))
    if skips_nan:
        nan = aval_of(out).dtype.type(np.nan)
        out = p.select.bind(p.less_equal.bind(left, zero), nan, out)
    return without_axes(out if dtype is None else p.convert(out, inner))


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
    return p.convert(safe_sqrt(p.convert(square, _divisible(dtype))), dtype)


def safe_sqrt(x: Any) -> Any:
    """The square root, whose derivatives at 0 are taken to be 0."""
    is_zero = p.equal.bind(x, p.zero_of(x))
    root = p.sqrt.bind(p.select.bind(is_zero, p.ones_like(x), x))
    return without_axes(p.select.bind(is_zero, p.zero_of(x), root))


def without_axes(x: Any) -> Any:
    """``x``, with a known array without axes made a scalar, as NumPy's folds return."""
    return x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x


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
        refuse_out(out, name)
        found = _variance(a, axis, dtype, ddof, keepdims, where, mean, correction, name)
        return _root(found) if is_root else found

    data = _WITH_NAN if name.startswith("nan") else _SMALL
    notes = f"As `numpy.{name}`." + " Where it is 0 its derivative is taken to be 0." * is_root
    return _named(function, name, summary, f"{data}, axis=0) -> {shown}", notes)


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
    w = strong(as_value(weights, "average"))
    shape = shape_of(x)
    if shape_of(w) == shape:
        return w
    if axis is None:
        raise TypeError("average: weights of another shape than the array need an axis.")
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = [normalize_axis(i, len(shape), "average") for i in given]
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

    Args:
        returned: Whether to return the sum of the weights, too.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.average(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([2., 3.])
    """
    x = _measured(a, None, "average")
    axis = tuple(axis) if isinstance(axis, list) else axis
    if weights is None:
        axes = _axes(axis, len(shape_of(x)), "average")
        result = mean(x, axes, keepdims=keepdims)
        dtype = aval_of(x).dtype
        total = p.convert(_count(x, axes, keepdims, None, dtype), dtype)
    else:
        w = _fitted_weights(weights, x, axis)
        x, w = promote(x, w)
        total = sum(w, axis, keepdims=keepdims)
        if not isinstance(total, Tracer) and np.any(total == 0):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = p.div.bind(sum(p.mul.bind(x, w), axis, keepdims=keepdims), total)
    return (result, s.broadcast_to(total, shape_of(result))) if returned else result


# Order statistics.

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

    Returns:
        Index below, index above (both as floats, not yet cut to the array), and the weight of the
        element above.
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

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.percentile(np.array([1.0, 2.0, 3.0, 4.0]), 25)
        np.float64(1.75)
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
    return _named(function, name, summary, call, notes)


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
    return _named(function, name, summary, call, f"As `numpy.{name}`.")


median = _median("median", "Median of the elements along axes.", _SMALL, "array([2., 3.])")
nanmedian = _median(
    "nanmedian",
    "Median of the elements along axes that are not nan.",
    _WITH_NAN,
    "array([2., 4.])",
)


# Folds that skip nan.


def _present(x: Any) -> Any:
    """The mask of elements that are not nan, or None if the dtype has no nan."""
    return p.bitwise_not.bind(p.isnan.bind(x)) if is_inexact(aval_of(x).dtype) else None


def _filled(a: Any, fill: complex, name: str) -> Any:
    """``a`` with ``fill`` in place of nan."""
    x = strong(as_value(a, name))
    mask = _present(x)
    return x if mask is None else p.select.bind(mask, x, aval_of(x).dtype.type(fill))


def _nan_fold(
    fold: Callable[..., Any], fill: int, name: str, summary: str, shown: str
) -> Callable[..., Any]:
    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        return fold(_filled(a, fill, name), axis, dtype, out, keepdims, initial, where)

    call = f"{_WITH_NAN}, axis=0) -> {shown}"
    return _named(function, name, summary, call, f"As `numpy.{name}`.")


nansum = _nan_fold(
    sum, 0, "nansum", "Sum of the elements along axes; nan counts as 0.", "array([4., 4.])"
)
nanprod = _nan_fold(
    prod, 1, "nanprod", "Product of the elements along axes; nan counts as 1.", "array([3., 4.])"
)


def _check_inexact(x: Any, dtype: Any, name: str) -> None:
    """Raise if numbers that may be nan are asked for in a dtype that has no nan."""
    own = aval_of(x).dtype
    if is_inexact(own) and not is_inexact(_mean_dtype(x, dtype, name)):
        raise DtypeError(
            f"{name}: dtype={np.dtype(dtype)} has no nan, which the result for {aval_of(x)} may "
            "be. Leave dtype= away and convert the result."
        )


def _nan_mask(x: Any, where: Any, name: str) -> Any:
    present, mask = _present(x), _mask(where, x, name)
    if present is None or mask is None:
        return present if mask is None else mask
    return p.bitwise_and.bind(present, mask)


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

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.nanmean(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0)
        array([2., 4.])
    """
    refuse_out(out, "nanmean")
    x = strong(as_value(a, "nanmean"))
    _check_inexact(x, dtype, "nanmean")
    x = _measured(x, dtype, "nanmean")
    return _mean(x, axis, keepdims, _nan_mask(x, where, "nanmean"), "nanmean")


def _nan_extreme(
    extreme: Callable[..., Any], fill: float, name: str, summary: str, shown: str
) -> Callable[..., Any]:
    def function(
        a: Any,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        x = strong(as_value(a, name))
        present = _present(x)
        if present is None:
            return extreme(x, axis, out, keepdims, initial, where)
        # Beyond all numbers in both parts: complex numbers are ordered by the second part, too.
        beyond = complex(fill, fill) if aval_of(x).dtype.kind == "c" else fill
        found = extreme(_filled(x, beyond, name), axis, out, keepdims, initial, where)
        if initial is not None:
            return found
        # Where nothing but nan was seen the result is nan.
        is_empty = p.bitwise_not.bind(any(present, axis, keepdims=keepdims))
        return p.select.bind(is_empty, aval_of(x).dtype.type(np.nan), found)

    call = f"{_WITH_NAN}, axis=0) -> {shown}"
    return _named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`, without its warning where all elements are nan.",
        _MEANINGS,
    )


nanmax = _nan_extreme(
    max, -np.inf, "nanmax", "Greatest element along axes that is not nan.", "array([3., 4.])"
)
nanmin = _nan_extreme(
    min, np.inf, "nanmin", "Smallest element along axes that is not nan.", "array([1., 4.])"
)


def _nan_place(
    place: Callable[..., Any], fill: float, name: str, summary: str, shown: str
) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        x = strong(as_value(a, name))
        present = _present(x)
        is_known = present is not None and not isinstance(present, Tracer)
        if is_known and not np.all(np.any(present, axis=axis)):
            raise ValueError("All-NaN slice encountered")
        return place(_filled(x, fill, name), axis, out, keepdims=keepdims)

    call = f"{_WITH_NAN}, axis=0) -> {shown}"
    return _named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`; for a traced slice of nothing but nan it is 0.",
        _PLACES,
    )


nanargmax = _nan_place(
    argmax, -np.inf, "nanargmax", "Index of the greatest element that is not nan.", "array([1, 1])"
)
nanargmin = _nan_place(
    argmin, np.inf, "nanargmin", "Index of the smallest element that is not nan.", "array([0, 1])"
)


# Running folds.


def _along(x: Any, primitive: Callable[..., Primitive]) -> Callable[..., Primitive]:
    """The running fold of the dtype of ``x``: sums of bools are "or", products are "and"."""
    if aval_of(x).dtype != BOOL:
        return primitive
    return Cummax if primitive is Cumsum else Cummin


def _running(x: Any, axis: Any, primitive: Callable[..., Primitive], name: str) -> Any:
    primitive = _along(x, primitive)
    if axis is None:
        return primitive(0).bind(ravel(x))
    return primitive(normalize_axis(axis, len(shape_of(x)), name)).bind(x)


def _cumulative(
    primitive: Callable[..., Primitive], name: str, summary: str, shown: str, notes: str = ""
) -> Callable[..., Any]:
    fill = {"nancumsum": 0, "nancumprod": 1}.get(name)

    def function(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        refuse_out(out, name)
        x = a if fill is None else _filled(a, fill, name)
        return _running(summand(x, dtype, name), axis, primitive, name)

    call = f"{_SMALL if fill is None else _WITH_NAN}, axis=0) -> {shown}"
    return _named(function, name, summary, call, f"As `numpy.{name}`.{notes}", MEANINGS | _PLACES)


cumsum = _cumulative(
    Cumsum, "cumsum", "Cumulative sum along an axis.", "array([[1., 2.],\n       [4., 6.]])"
)
cumprod = _cumulative(
    Cumprod,
    "cumprod",
    "Cumulative product along an axis.",
    "array([[1., 2.],\n       [3., 8.]])",
    " Its derivative is exact where elements are 0.",
)
nancumsum = _cumulative(
    Cumsum,
    "nancumsum",
    "Cumulative sum along an axis; nan counts as 0.",
    "array([[1., 0.],\n       [4., 4.]])",
)
nancumprod = _cumulative(
    Cumprod,
    "nancumprod",
    "Cumulative product along an axis; nan counts as 1.",
    "array([[1., 1.],\n       [3., 4.]])",
)


def _with_initial(
    name: str, x: Any, axis: Any, dtype: Any, include: bool, primitive: Any, first: int
) -> Any:
    x = summand(x, dtype, name)
    x = x if shape_of(x) else s.reshape(x, (1,))
    shape = shape_of(x)
    if axis is None and len(shape) != 1:
        raise ValueError(f"{name} of {aval_of(x)} needs an axis.")
    index = normalize_axis(0 if axis is None else axis, len(shape), name)
    out = _along(x, primitive)(index).bind(x)
    if not include:
        return out
    zeros = (0,) * len(shape)
    lows = tuple(int(i == index) for i in range(len(shape)))
    return s.Pad(lows, zeros, zeros).bind(out, aval_of(x).dtype.type(first))


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: None = None,
    include_initial: bool = False,
) -> Any:
    """Cumulative sum along an axis, as `numpy.cumulative_sum`.

    Args:
        axis: The axis, counted from the end if negative. A vector needs none.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.cumulative_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([[1., 2.],
               [4., 6.]])
    """
    refuse_out(out, "cumulative_sum")
    return _with_initial("cumulative_sum", x, axis, dtype, include_initial, Cumsum, 0)


def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: None = None,
    include_initial: bool = False,
) -> Any:
    """Cumulative product along an axis, as `numpy.cumulative_prod`.

    Args:
        axis: The axis, counted from the end if negative. A vector needs none.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.cumulative_prod(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([[1., 2.],
               [3., 8.]])
    """
    refuse_out(out, "cumulative_prod")
    return _with_initial("cumulative_prod", x, axis, dtype, include_initial, Cumprod, 1)


explain(globals(), MEANINGS)
