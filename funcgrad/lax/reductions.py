"""Folds over axes, running folds, the places of extremes, and sorting."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ArgumentError
from funcgrad.lax import elementwise
from funcgrad.lax.operands import (
    Array,
    ArrayLike,
    array_operand,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    check_kinds,
    checked,
    same_dtype,
)
from funcgrad.lax.shapes import transpose
from funcgrad.primitives import cumulative, reductions, sorting
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.shape import ReduceSum


def _reduction(name: str, kind: type[Primitive], summary: str, kinds: str) -> Callable[..., Array]:
    def function(operand: ArrayLike, axes: Sequence[int]) -> Array:
        x = array_operand(name, operand)
        check_kinds(name, aval_of(x).dtype, kinds)
        counted = tuple(sorted(canonical_axes(name, axes, len(shape_of(x)))))
        return checked(kind(counted), x) if counted else x  # type: ignore[call-arg]

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"{summary}\n\nThe reduced axes are dropped; the dtype stays."
    return function


reduce_sum = _reduction("reduce_sum", ReduceSum, "Sum over ``axes``.", "iufc")
reduce_prod = _reduction("reduce_prod", reductions.ReduceProd, "Product over ``axes``.", "iufc")
reduce_max = _reduction(
    "reduce_max", reductions.ReduceMax, "Maximum over ``axes``; nan if any element is nan.", "biuf"
)
reduce_min = _reduction(
    "reduce_min", reductions.ReduceMin, "Minimum over ``axes``; nan if any element is nan.", "biuf"
)
reduce_or = _reduction(
    "reduce_or", reductions.ReduceAny, "Whether any of the bools along ``axes`` is true.", "b"
)
reduce_and = _reduction(
    "reduce_and", reductions.ReduceAll, "Whether all of the bools along ``axes`` are true.", "b"
)

_Monoid = tuple[Callable[..., Array], Callable[..., Array]]
_MONOIDS: dict[Any, _Monoid] = {
    key: (combine, fold)
    for combine, fold, keys in (
        (elementwise.add, reduce_sum, (elementwise.add, operator.add, np.add)),
        (elementwise.mul, reduce_prod, (elementwise.mul, operator.mul, np.multiply)),
        (elementwise.max, reduce_max, (elementwise.max, np.maximum)),
        (elementwise.min, reduce_min, (elementwise.min, np.minimum)),
        (elementwise.bitwise_or, reduce_or, (elementwise.bitwise_or, operator.or_, np.logical_or)),
        (
            elementwise.bitwise_and,
            reduce_and,
            (elementwise.bitwise_and, operator.and_, np.logical_and),
        ),
    )
    for key in keys
}


def reduce(
    operands: ArrayLike,
    init_values: ArrayLike,
    computation: Callable[[Array, Array], Array],
    dimensions: Sequence[int],
) -> Array:
    """A fold over ``dimensions`` that starts with ``init_values``.

    Args:
        operands: Array.
        init_values: Scalar of its dtype.
        computation: One of the known associative operations: ``add``, ``mul``, ``max``, ``min``,
            and for bools ``bitwise_or``, ``bitwise_and``, of `lax`, `operator` or NumPy.
        dimensions: The axes, which are dropped.

    Returns:
        The folded array.

    Raises:
        ArgumentError: For any other ``computation``.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> print(lax.reduce(np.arange(4.0), 10.0, lax.add, (0,)))
        16.0
    """
    if computation not in _MONOIDS:
        raise ArgumentError(
            f"lax.reduce knows lax.add, mul, max, min, bitwise_or and bitwise_and, not "
            f"{getattr(computation, '__name__', computation)!r}. For other associative operations "
            "use lax.associative_scan, for any operation lax.scan."
        )
    combine, fold = _MONOIDS[computation]
    x, init = same_dtype("reduce", array_operand("reduce", operands), init_values)
    return combine(init, fold(x, dimensions))


def argmax(operand: ArrayLike, axis: int, index_dtype: Any = np.int64) -> Array:
    """Index of the first maximum along an axis, which is dropped.

    Args:
        operand: Array of real numbers or bools; nan counts as largest.
        axis: The axis.
        index_dtype: Integer dtype of the result.

    Returns:
        The indices.
    """
    return _place("argmax", reductions.ArgMax, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: Any = np.int64) -> Array:
    """Index of the first minimum along an axis, which is dropped.

    Args:
        operand: Array of real numbers or bools; nan counts as smallest.
        axis: The axis.
        index_dtype: Integer dtype of the result.

    Returns:
        The indices.
    """
    return _place("argmin", reductions.ArgMin, operand, axis, index_dtype)


def _place(name: str, kind: Any, operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    x = array_operand(name, operand)
    check_kinds(name, aval_of(x).dtype, "biuf")
    wanted = canonical_dtype(index_dtype)
    check_kinds(name, wanted, "iu")
    return convert(checked(kind(canonical_axis(name, axis, len(shape_of(x)))), x), wanted)


def _running(name: str, kind: Any, summary: str, kinds: str) -> Callable[..., Array]:
    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        x = array_operand(name, operand)
        check_kinds(name, aval_of(x).dtype, kinds)
        return kind(canonical_axis(name, axis, len(shape_of(x))), bool(reverse)).bind(x)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"{summary} along ``axis``, from the far end if ``reverse``."
    return function


cumsum = _running("cumsum", cumulative.Cumsum, "Running sum", "iufc")
cumprod = _running("cumprod", cumulative.Cumprod, "Running product", "iufc")
cummax = _running("cummax", cumulative.Cummax, "Running maximum", "iuf")
cummin = _running("cummin", cumulative.Cummin, "Running minimum", "iuf")
cumlogsumexp = _running(
    "cumlogsumexp", cumulative.Cumlogsumexp, "Running logarithm of the sum of exponentials", "f"
)


def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Any:
    """``operand`` in ascending order along an axis; of several arrays the first ones decide.

    Args:
        operand: Array, or a tuple of arrays of one shape that are permuted together.
        dimension: The axis.
        is_stable: Equal elements always keep their order; accepted for JAX's signature.
        num_keys: How many of the arrays decide, the first one first.

    Returns:
        The sorted array or tuple of arrays; nan comes last.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> keys, values = lax.sort((np.array([3, 1, 2]), np.array([0, 1, 2])))
        >>> print(values)
        [1 2 0]
    """
    arrays = operand if isinstance(operand, tuple | list) else (operand,)
    arrays = [array_operand("sort", x) for x in arrays]
    if not 1 <= num_keys <= len(arrays):
        raise ArgumentError(f"lax.sort: num_keys={num_keys} of {len(arrays)} operands.")
    axis = canonical_axis("sort", dimension, len(shape_of(arrays[0])))
    if len(arrays) == 1:
        out = [sorting.Sort(axis).bind(arrays[0])]
    else:
        out = sorting.sort_together(arrays, axis, num_keys)
    return tuple(out) if isinstance(operand, tuple | list) else out[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """``keys`` in ascending order along an axis, and ``values`` permuted likewise."""
    keys, values = sort((keys, values), dimension, is_stable)
    return keys, values


def top_k(operand: ArrayLike, k: int, axis: int = -1) -> tuple[Array, Array]:
    """The ``k`` largest elements along an axis, descending, and their indices.

    Args:
        operand: Array of real numbers; nan counts as largest.
        k: How many.
        axis: The axis.

    Returns:
        Values, and indices (int64); of equal elements the first comes first.

    Example:
        >>> import numpy as np
        >>> from funcgrad import lax
        >>> values, places = lax.top_k(np.array([1.0, 4.0, 2.0]), 2)
        >>> print(values, places)
        [4. 2.] [1 2]
    """
    x = array_operand("top_k", operand)
    ndim = len(shape_of(x))
    place = canonical_axis("top_k", axis, ndim)
    order = [i for i in range(ndim) if i != place] + [place]
    values, places = checked(sorting.TopK(int(k)), transpose(x, order))
    back = [int(i) for i in np.argsort(order)]
    return transpose(values, back), transpose(places, back)
