"""Folds over axes: sums, products, extremes, and their places.

Dtypes are NumPy's: sums of bools and small integers are of 64 bits. Where a derivative does not
exist the convention is a finite one: ties of an extreme share its tangent equally.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.base.signatures import docstring, explained
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import BOOL, INT64, PYTHON_SCALARS
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.numpy.elementwise import truth
from funcgrad.numpy.meanings import MEANINGS
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axes,
    normalize_axis,
    strong,
    to_dtype,
)
from funcgrad.numpy.shaping import ravel
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions
from funcgrad.primitives import shape as s
from funcgrad.primitives.shape import ReduceSum, shape_of

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "max", "min", "prod", "ptp",
    "sum",
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
    own = aval_of(x).dtype
    if dtype is None and (own.kind in "fc" or (not promote_integers and own != BOOL)):
        return x
    return p.convert(x, _accumulator(own) if dtype is None else checked_dtype(dtype, function))


def mask_of(where: Any, x: Any, function: str) -> Any:
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


def kept(out: Any, shape: tuple[int, ...], axes: Sequence[int], keepdims: Any) -> Any:
    """The result of a fold, with axes of length 1 in place of the folded ones if asked for."""
    if not keepdims:
        return out
    return s.reshape(out, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def folded_axes(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The folded axes; a list of them is refused, as NumPy does."""
    if isinstance(axis, list):
        raise ArgumentError(f"{name}: axis must be an int, a tuple of them or None, got {axis}.")
    return normalize_axes(axis, ndim, name)


def fold(primitive: Callable[..., Primitive], x: Any, axis: Any, keepdims: Any, name: str) -> Any:
    shape = shape_of(x)
    axes = folded_axes(axis, len(shape), name)
    return kept(folding(primitive, axes).bind(x) if axes else x, shape, axes, keepdims)


@lru_cache(4096)
def folding(primitive: Callable[..., Primitive], axes: tuple[int, ...]) -> Primitive:
    """The operation along known axes, remembered."""
    return primitive(axes)


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

    Example: fg.numpy.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) -> array([4., 6.])
    """
    refuse_out(out, "sum")
    x = summand(a, dtype, "sum", promote_integers)
    mask = mask_of(where, x, "sum")
    if mask is not None:
        x = p.select.bind(mask, x, p.zero_of(x))
    total = fold(ReduceSum, x, axis, keepdims, "sum")
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

    Example: fg.numpy.prod(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) -> array([3., 8.])
    """
    refuse_out(out, "prod")
    x = summand(a, dtype, "prod", promote_integers)
    mask = mask_of(where, x, "prod")
    if mask is not None:
        x = p.select.bind(mask, x, p.ones_like(x))
    product = fold(reductions.ReduceProd, x, axis, keepdims, "prod")
    if aval_of(x).dtype.kind == "c" and not folded_axes(axis, len(shape_of(x)), "prod"):
        product = p.mul.bind(product, p.ones_like(x))  # as NumPy: infinite parts are not the same
    if initial is None:
        return product
    start = _start(initial, aval_of(x).dtype, "prod")
    if aval_of(x).dtype.kind != "c":
        return p.mul.bind(product, start)
    # Complex numbers with infinite parts are not what they are times 1.
    chosen = np.ones(shape_of(x), bool) if mask is None else mask
    is_product = fold(reductions.ReduceAny, chosen, axis, keepdims, "prod")
    factor = p.select.bind(is_product, start, p.ones_like(x))
    return p.select.bind(is_product, p.mul.bind(product, factor), start)


FOLDED = {
    "a": "Array, number or traced value.",
    "axis": "Axis, or tuple of axes, counted from the end if negative; all by default.",
    "out": "``None``; results are new arrays.",
    "keepdims": "Whether reduced axes stay, with length 1.",
    "initial": "Number that is compared, too; needed where there are no elements.",
    "where": "Mask of the elements that count; needs ``initial``.",
}
PLACES = {
    **FOLDED,
    "axis": "The axis, counted from the end if negative; by default the array is flattened.",
}
del PLACES["initial"], PLACES["where"]
SMALL = "np.array([[1.0, 2.0], [3.0, 4.0]])"
WITH_NAN = "np.array([[1.0, np.nan], [3.0, 4.0]])"


def named(
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
        mask = mask_of(where, x, name)
        if initial is None:
            if mask is not None:
                raise ValueError(
                    f"{name}: where= needs initial=, the result where nothing is left."
                )
            return fold(primitive, x, axis, keepdims, name)
        start = _start(initial, aval_of(x).dtype, name)
        if mask is not None:
            x = p.select.bind(mask, x, start)
        shape, axes = shape_of(x), folded_axes(axis, len(shape_of(x)), name)
        if not aval_of(x).size:
            found = s.broadcast_to(start, s.drop_axes(shape, axes))
            return kept(found, shape, axes, keepdims)
        return pairwise.bind(fold(primitive, x, axis, keepdims, name), start)

    call = f"{SMALL}, axis=0) -> {shown}"
    return named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`. Elements that tie share the derivative equally.",
        FOLDED,
    )


max = amax = _extreme(
    reductions.ReduceMax, p.maximum, "max", "Greatest element along axes.", "array([3., 4.])"
)
min = amin = _extreme(
    reductions.ReduceMin, p.minimum, "min", "Smallest element along axes.", "array([1., 2.])"
)


def any(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether any element along axes is true, as `numpy.any`.

    Example: fg.numpy.any(np.array([[True, False], [True, True]]), axis=0) -> array([ True,  True])
    """
    refuse_out(out, "any")
    x = truth(as_value(a, "any"))
    mask = mask_of(where, x, "any")
    if mask is not None:
        x = p.bitwise_and.bind(mask, x)
    return fold(reductions.ReduceAny, x, axis, keepdims, "any")


def all(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Whether all elements along axes are true, as `numpy.all`.

    Example: fg.numpy.all(np.array([[True, False], [True, True]]), axis=0) -> array([ True, False])
    """
    refuse_out(out, "all")
    x = truth(as_value(a, "all"))
    mask = mask_of(where, x, "all")
    if mask is not None:
        x = p.bitwise_or.bind(p.bitwise_not.bind(mask), x)
    return fold(reductions.ReduceAll, x, axis, keepdims, "all")


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Number of elements along axes that are not zero, as `numpy.count_nonzero`.

    Example: fg.numpy.count_nonzero(np.array([0.0, 2.0, 0.0, 3.0])) -> np.int64(2)
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
        return kept(primitive(index).bind(x), shape, (index,), keepdims)

    call = f"{SMALL}, axis=0) -> {shown}"
    return named(
        function,
        name,
        summary,
        call,
        f"As `numpy.{name}`: the first one, if there are several.",
        PLACES,
    )


argmax = _place_of(reductions.ArgMax, "argmax", "Index of the greatest element.", "array([1, 1])")
argmin = _place_of(reductions.ArgMin, "argmin", "Index of the smallest element.", "array([0, 0])")


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """Difference of the greatest and the smallest element along axes, as `numpy.ptp`.

    Example: fg.numpy.ptp(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0) -> array([2., 2.])
    """
    refuse_out(out, "ptp")
    x = strong(as_value(a, "ptp"))
    return p.sub.bind(max(x, axis, None, keepdims), min(x, axis, None, keepdims))


def safe_sqrt(x: Any) -> Any:
    """The square root, whose derivatives at 0 are taken to be 0."""
    is_zero = p.equal.bind(x, p.zero_of(x))
    if not isinstance(is_zero, Tracer) and not is_zero.any():
        return without_axes(p.sqrt.bind(x))
    root = p.sqrt.bind(p.select.bind(is_zero, p.ones_like(x), x))
    return without_axes(p.select.bind(is_zero, p.zero_of(x), root))


def without_axes(x: Any) -> Any:
    """``x``, with a known array without axes made a scalar, as NumPy's folds return."""
    return x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x
