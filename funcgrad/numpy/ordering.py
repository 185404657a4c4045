"""Sorting, searching in sorted arrays, and places that meet a condition.

Results whose shape depends on values (`nonzero`, `unique`) need values: they are computed where
these are known, which includes eager gradients; elsewhere ``size=`` fixes the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.dialect import dialect
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import COMPLEX128, INT64, is_complex, is_inexact
from funcgrad.errors import ArgumentError, ConcretizationTypeError, ShapeError
from funcgrad.numpy.elementwise import truth
from funcgrad.numpy.indexing import demanded_places, getitem
from funcgrad.numpy.joining import concatenate, stack
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axis,
    promote,
    promote_to_compare,
    strong,
    to_dtype,
)
from funcgrad.numpy.reducing import sum as total
from funcgrad.numpy.shaping import moveaxis, ravel, reshape
from funcgrad.observers.messages import message
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.cumulative import Cumsum
from funcgrad.primitives.indexing import Gather, ScatterSet
from funcgrad.primitives.ordering import ArgSort, SearchSorted
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.primitives.shape import Reverse, broadcast_to, shape_of
from funcgrad.primitives.sorting import Sort

__all__ = [
    "argpartition", "argsort", "argwhere", "flatnonzero", "lexsort", "nonzero", "partition",
    "searchsorted", "sort", "sort_complex", "unique",
]  # fmt: skip


def _lines(a: Any, axis: int | None, function: str) -> tuple[Any, int]:
    """An array and the axis to sort along; all of it in one line for ``axis=None``."""
    x = strong(as_value(a, function))
    if axis is None or (function.startswith("arg") and not shape_of(x) and axis in (0, -1)):
        x, axis = ravel(x), 0
    return x, normalize_axis(axis, len(shape_of(x)), function)


def _refuse_order(order: Any, function: str) -> None:
    if order is not None:
        raise ArgumentError(
            f"{function}: order= names fields of structured arrays; there are none."
        )


def sort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Any:
    """A copy, sorted along an axis.

    As `numpy.sort`: a sorted copy. Derivatives follow the stable order whatever ``kind`` is.

    With ``descending`` the greatest comes first, after nan.

    Args: axis: The axis, counted from the end if negative. ``None`` flattens the array.
    Example: fg.numpy.sort(np.array([3.0, 1.0, 2.0])) -> array([1., 2., 3.])
    """
    _refuse_order(order, "sort")
    x, index = _lines(a, axis, "sort")
    ordered = Sort(index).bind(x)
    return Reverse((index,)).bind(ordered) if descending else ordered


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: Any = None,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """Indices that sort an array along an axis.

    As `numpy.argsort`; with ``descending`` in the order that `sort` then has, equals in theirs.

    ``dtype`` is that of the places, int64 by default.

    Args: axis: The axis, counted from the end if negative. ``None`` flattens the array.
    Example: fg.numpy.argsort(np.array([3.0, 1.0, 2.0])) -> array([1, 2, 0])
    """
    _refuse_order(order, "argsort")
    x, index = _lines(a, axis, "argsort")
    if descending:
        order_of_reversed = ArgSort(index, True).bind(Reverse((index,)).bind(x))
        last = np.int64(shape_of(x)[index] - 1)
        places = p.sub.bind(last, Reverse((index,)).bind(order_of_reversed))
    else:
        places = ArgSort(index, bool(stable) or kind in ("stable", "mergesort")).bind(x)
    return places if dtype is None else to_dtype(places, checked_dtype(dtype, "argsort"))


def _check_kth(kth: Any, n: int) -> None:
    for k in np.atleast_1d(kth).tolist():
        if n and not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")


def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """A copy whose k-th element is where sorting would put it.

    As `numpy.partition`, with everything in sorted order.

    Example: fg.numpy.partition(np.array([3.0, 1.0, 2.0]), 1) -> array([1., 2., 3.])
    """
    _refuse_order(order, "partition")
    x, index = _lines(a, axis, "partition")
    _check_kth(kth, shape_of(x)[index])
    return Sort(index).bind(x)


def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """Indices that partition an array.

    As `numpy.argpartition`, with everything in sorted order.

    Example: fg.numpy.argpartition(np.array([3.0, 1.0, 2.0]), 1) -> array([1, 2, 0])
    """
    _refuse_order(order, "argpartition")
    x, index = _lines(a, axis, "argpartition")
    _check_kth(kth, shape_of(x)[index])
    return ArgSort(index, False).bind(x)


def lexsort(keys: Any, axis: int = -1) -> Any:
    """Indices that sort by several keys, the last one first.

    As `numpy.lexsort`: the order by several keys, of which the last decides first.

    Args: keys: Arrays to sort by, the most important one last.
    Example: fg.numpy.lexsort((np.array([3.0, 1.0, 2.0]), np.array([0, 1, 0]))) -> array([2, 0, 1])
    """
    if isinstance(keys, Tracer | np.ndarray):
        keys = [getitem(keys, i) for i in range(shape_of(keys)[0])]
    values = [strong(as_value(k, "lexsort")) for k in keys]
    if not values:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    index = normalize_axis(axis, len(shape_of(values[0])), "lexsort")
    return ArgSort(index).bind(*reversed(values))


def sort_complex(a: Any) -> Any:
    """A complex copy, sorted by real and then by imaginary part, as `numpy.sort_complex`.

    Example: fg.numpy.sort_complex(np.array([2.0, 1.0 + 1.0j, 1.0]))
        -> array([1.+0.j, 1.+1.j, 2.+0.j])
    """
    x = strong(as_value(a, "sort_complex"))
    dtype = aval_of(x).dtype
    if not is_complex(dtype):
        is_small = dtype.kind in "iu" and dtype.itemsize <= 2
        x = p.convert(x, np.dtype(np.complex64) if is_small else COMPLEX128)
    return sort(x)


def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """Indices at which values keep a sorted vector sorted.

    As `numpy.searchsorted`; ``method`` is of no effect here, as results do not depend on it.

    Args:
        side: ``"left"`` or ``"right"``: on which side of equal elements.
        sorter: Indices that sort ``a``.
        method: Accepted; one way is used, which gives the same.
    Example: fg.numpy.searchsorted(np.array([1.0, 2.0, 3.0]), 2.5) -> np.int64(2)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}.")
    ordered = as_value(a, "searchsorted")
    if sorter is not None:
        ordered = getitem(ordered, _checked_sorter(sorter, shape_of(ordered)))
    ordered, values = promote_to_compare(ordered, as_value(v, "searchsorted"))
    if len(shape_of(ordered)) != 1:
        raise ShapeError(
            f"searchsorted: the sorted array must have one axis, got {aval_of(ordered)}."
        )
    found = SearchSorted(side).bind(ordered, values)
    places = dialect().places
    return found if places is None else p.convert(found, places)


def _checked_sorter(sorter: Any, shape: tuple[int, ...]) -> Any:
    """The indices that sort an array of a shape: as many as it has elements, from 0."""
    order = as_value(sorter, "searchsorted")
    if aval_of(order).dtype.kind not in "iu":
        raise TypeError(f"searchsorted: sorter must be of integers, got {aval_of(order)}.")
    if shape_of(order) != shape:
        raise ValueError(
            f"searchsorted: sorter must have an index for each of {shape} elements, got "
            f"{aval_of(order)}."
        )
    last = shape[0] - 1
    known = value_if_known(order)
    if known is None:
        message = f"searchsorted: indices of sorter are from 0 to {last}, got {{}}."
        return demanded_places(order, 0, last, message)
    if np.any((known < 0) | (known > last)):
        raise ValueError(f"searchsorted: indices of sorter are from 0 to {last}.")
    return order


# Places and values whose number depends on values.


def value_if_known(x: Any) -> Any:
    """The value of ``x``, or None where it is not known while it is traced.

    That of an array without elements always is.
    """
    if isinstance(x, Tracer) and not x.size:
        return np.zeros(x.shape, x.dtype)
    value = x.concrete() if isinstance(x, Tracer) else x
    return None if isinstance(value, Tracer) else value


def known_values(x: Any, function: str) -> Any:
    """The values of ``x``, or an error that says how to do without."""
    value = value_if_known(x)
    if value is not None:
        return np.asarray(value)
    raise ConcretizationTypeError(
        message(
            x,
            f"the shape of the result of {function} depends on values, but its argument is",
            f"Fix the shape: funcgrad.numpy.{function}(x, size=n, fill_value=...) returns n "
            "entries. To select elements, np.where(condition, x, other) keeps the shape.",
        )
    )


def compressed(mask: Any, x: Any, size: int | None, fill_value: Any, function: str) -> Any:
    """Elements of a line where a mask holds; ``size`` of them, then ``fill_value``, if it is given.

    Without ``fill_value`` the first element that is chosen is repeated.
    """
    if size is None:
        return getitem(x, np.flatnonzero(known_values(mask, function)))
    dtype = aval_of(x).dtype
    if not shape_of(x)[0]:
        return np.full(size, 0 if fill_value is None else fill_value, dtype)
    chosen = Gather((0,)).bind(x, _flat_places(mask, size, 0))
    first = getitem(chosen, 0) if size else dtype.type(0)
    fill = first if fill_value is None else to_dtype(as_value(fill_value, function), dtype)
    missing = p.greater_equal.bind(np.arange(size), total(mask))
    return p.select.bind(missing, fill, chosen)


def _flat_places(mask: Any, size: int, fill_value: Any) -> Any:
    """The first ``size`` places of a one-dimensional mask, then ``fill_value``."""
    n = shape_of(mask)[0]
    numbers = np.arange(size)
    if not n:
        return np.full(size, fill_value, np.int64)
    counted = Cumsum(0).bind(p.convert(mask, INT64))
    places = SearchSorted("left").bind(counted, numbers + 1)
    found = p.less.bind(numbers, getitem(counted, n - 1))
    return p.select.bind(found, places, to_dtype(fill_value, INT64))


def _unravelled(flat: Any, shape: tuple[int, ...]) -> list[Any]:
    """Flat places as one index array per axis."""
    out = []
    for n in reversed(shape):
        length = np.int64(max(n, 1))
        out.append(p.remainder.bind(flat, length))
        flat = p.floor_divide.bind(flat, length)
    return out[::-1]


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """Indices of the elements that are not zero, an array for each axis.

    As `numpy.nonzero`; traced arrays need ``size``.

    Args:
        size: Number of places to return; those that are missing become ``fill_value``.
        fill_value: A number, or one per axis. Default 0. Floats, such as nan, make the places such.
    Returns: One array of indices per axis.
    Raises: ConcretizationTypeError: If the values are not known and no ``size`` is given.
    Example: print(*fg.numpy.nonzero(np.array([0, 3, 4]), size=3, fill_value=-1)) -> [ 1  2 -1]
    """
    x = as_value(a, "nonzero")
    if size is None:
        return np.nonzero(known_values(x, "nonzero"))
    shape = shape_of(x)
    if not shape:
        raise ShapeError("nonzero: a scalar has no axes; use funcgrad.numpy.atleast_1d.")
    mask = ravel(truth(x))
    flat = _flat_places(mask, size, 0)
    given = as_value(0 if fill_value is None else fill_value, "nonzero")
    fill = strong(given) if is_inexact(aval_of(given).dtype) else p.convert(strong(given), INT64)
    fills = broadcast_to(fill, (len(shape),))
    missing = p.greater_equal.bind(np.arange(size), total(mask))
    return tuple(
        p.select.bind(missing, *promote(getitem(fills, i), index))
        for i, index in enumerate(_unravelled(flat, shape))
    )


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Indices of the elements of a flattened array that are not zero.

    As `numpy.flatnonzero`; traced arrays need ``size``, see `nonzero`.

    Example: fg.numpy.flatnonzero(np.array([0.0, 2.0, 0.0, 3.0])) -> array([1, 3])
    """
    return nonzero(ravel(as_value(a, "flatnonzero")), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Indices of the elements that are not zero, a row for each.

    As `numpy.argwhere`; traced arrays need ``size``, see `nonzero`.

    Example: fg.numpy.argwhere(np.array([0.0, 2.0, 0.0, 3.0]))
        -> array([[1],
                  [3]])
    """
    x = as_value(a, "argwhere")
    if not shape_of(x):
        return np.argwhere(known_values(x, "argwhere"))
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Sorted values of an array, each once.

    As `numpy.unique`; arrays whose values are not known need ``size``.

    Args:
        ar: Array, taken as one line if there is no ``axis``.
        return_index: Whether to return the first place of each value.
        return_inverse: Whether to return, for each element, the place of its value in the result.
        return_counts: Whether to return how often each value occurs.
        axis: The axis whose slices are the values, in lexicographic order.
        equal_nan: Whether all nan are one value.
        sorted: Accepted; the result is always sorted.
        fill_value: What follows if there are fewer; by default the least value.

    Example:
        >>> rows = np.array([[1, 2], [0, 3], [1, 2]])
        >>> fg.jit(lambda x: fg.numpy.unique(x, axis=0, size=3, fill_value=-1))(rows).tolist()
        [[0, 3], [1, 2], [-1, -1]]
    Returns: The sorted distinct values, and what else was asked for, as a tuple.
    Raises: ConcretizationTypeError: If the values are not known and no ``size`` is given.
    """
    x = strong(as_value(ar, "unique"))
    wanted = (return_index, return_inverse, return_counts)
    if size is None and not aval_of(x).size:
        x = value_if_known(x)
    if not isinstance(x, Tracer) and size is None:
        distinct: Any = np.unique
        return distinct(x, *wanted, axis, equal_nan=equal_nan)
    if axis is None:
        rows, shape, place = ravel(x), shape_of(x), 0
    else:
        place = normalize_axis(axis, len(shape_of(x)), "unique")
        rows = moveaxis(x, place, 0)
        shape = shape_of(rows)[:1]
    if size is None:
        known = np.unique(known_values(x, "unique"), axis=axis, equal_nan=equal_nan)
        size = known.shape[place]
    # As in NumPy, slices that hold nan are never equal.
    values, *others = _distinct(rows, size, fill_value, equal_nan and axis is None)
    values, others[1] = moveaxis(values, 0, place), reshape(others[1], shape)
    chosen = [r for r, is_wanted in zip(others, wanted, strict=True) if is_wanted]
    return (values, *chosen) if chosen else values


def _distinct(rows: Any, size: int, fill_value: Any, equal_nan: bool) -> Sequence[Any]:
    """Distinct rows, their first places, the inverse and counts, padded to ``size``."""
    shape, dtype = shape_of(rows), aval_of(rows).dtype
    n = shape[0]
    if not aval_of(rows).size:
        raise ShapeError("unique: an array without elements has no values to fill size= with.")
    keys = reshape(rows, (n, aval_of(rows).size // n))
    order = ArgSort(0).bind(*[getitem(keys, (slice(None), i)) for i in range(shape_of(keys)[1])])
    ordered = Gather((0,)).bind(rows, order)
    group = Cumsum(0).bind(p.convert(starts(ordered, equal_nan), INT64))
    numbers = np.arange(1, size + 1)
    first = SearchSorted("left").bind(group, numbers)
    after = SearchSorted("right").bind(group, numbers)
    place = p.minimum.bind(first, np.int64(n - 1))
    missing = p.greater_equal.bind(first, np.int64(n))
    values, places = Gather((0,)).bind(ordered, place), Gather((0,)).bind(order, place)
    fill = getitem(ordered, 0)
    if fill_value is not None:
        fill = to_dtype(as_value(fill_value), dtype)
    inverse = ScatterSet((0,), unique_indices=True).bind(
        np.zeros(n, np.int64), p.sub.bind(group, np.int64(1)), order
    )
    return (
        p.select.bind(
            broadcast_to(reshape(missing, (size, *(1,) * (len(shape) - 1))), shape_of(values)),
            broadcast_to(fill, shape_of(values)),
            values,
        ),
        p.select.bind(missing, getitem(order, 0), places),
        inverse,
        p.sub.bind(after, first),
    )


def starts(ordered: Any, equal_nan: bool) -> Any:
    """Mask of the rows of a sorted array that differ from the one before."""
    before, here = getitem(ordered, slice(None, -1)), getitem(ordered, slice(1, None))
    differs = p.not_equal.bind(before, here)
    if equal_nan and is_inexact(aval_of(ordered).dtype):
        both = p.bitwise_and.bind(p.isnan.bind(before), p.isnan.bind(here))
        differs = p.bitwise_and.bind(differs, p.bitwise_not.bind(both))
    if len(shape_of(differs)) > 1:
        differs = ReduceAny(tuple(range(1, len(shape_of(differs))))).bind(differs)
    return concatenate([np.ones(1, bool), differs])
