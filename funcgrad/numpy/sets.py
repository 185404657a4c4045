"""Arrays as sets of numbers.

The number of results depends on values. Where these are not known, ``size=`` fixes it: results
that are too many are dropped, places that stay free take ``fill_value``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad.core.trace import Tracer
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.ordering import argsort, compressed, searchsorted, sort, starts, unique
from funcgrad.numpy.promotion import as_value, promote, strong
from funcgrad.numpy.selecting import isin
from funcgrad.numpy.shaping import ravel
from funcgrad.primitives.shape import shape_of

__all__ = [
    "intersect1d", "setdiff1d", "setxor1d", "union1d", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def _lines(ar1: Any, ar2: Any, function: str) -> tuple[Any, Any]:
    """Both arrays as lines of one dtype."""
    x, y = promote(as_value(ar1, function), as_value(ar2, function))
    return ravel(strong(x)), ravel(strong(y))


def _known(*arrays: Any, size: int | None) -> bool:
    return size is None and not any(isinstance(x, Tracer) for x in arrays)


def _firsts(x: Any, assume_unique: bool) -> Any:
    """Mask of the elements of a sorted line that are the first of their value."""
    if assume_unique or not shape_of(x)[0]:
        return np.ones(shape_of(x), bool)
    return starts(x, True)


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Sorted values that are in one of two arrays, or in both.

    As `numpy.union1d`.

    Args: fill_value: What follows if there are fewer; by default the least value.
    Raises: ConcretizationTypeError: If the values are not known and no ``size`` is given.
    Example: print(fg.numpy.union1d([3, 1], [1, 2])) -> [1 2 3]
    """
    x, y = _lines(ar1, ar2, "union1d")
    if _known(x, y, size=size):
        return np.union1d(x, y)
    return unique(concatenate([x, y]), size=size, fill_value=fill_value)


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Sorted values that two arrays have in common.

    As `numpy.intersect1d`.

    Args:
        return_indices: Whether to return the first places in both arrays, too.
        fill_value: What follows if there are fewer; by default the least value of both. Places
            become the length of their array.
    Raises: ConcretizationTypeError: If the values are not known and no ``size`` is given.
    Example: print(fg.numpy.intersect1d([3, 1, 2], [2, 3, 5])) -> [2 3]
    """
    x, y = _lines(ar1, ar2, "intersect1d")
    if _known(x, y, size=size):
        found: Any = np.intersect1d
        return found(x, y, assume_unique, return_indices)
    order = argsort(x, stable=True)
    ordered = getitem(x, order)
    in_both = e.logical_and(_firsts(ordered, assume_unique), isin(ordered, y))
    values = compressed(in_both, ordered, size, fill_value, "intersect1d")
    if not return_indices:
        return values
    places = compressed(in_both, order, size, shape_of(x)[0], "intersect1d")
    other = argsort(y, stable=True)
    last = max(shape_of(y)[0] - 1, 0)
    found = e.minimum(searchsorted(getitem(y, other), ordered), last)
    others = compressed(in_both, getitem(other, found), size, shape_of(y)[0], "intersect1d")
    return values, places, others


def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Sorted values of one array that are not in the other.

    As `numpy.setdiff1d`.

    Args:
        assume_unique: The caller's promise that neither names a number twice; then the order of
            ``ar1`` is kept.
        fill_value: What follows if there are fewer, by default 0.
    Raises: ConcretizationTypeError: If the values are not known and no ``size`` is given.
    Example: print(fg.numpy.setdiff1d([3, 1, 2, 3], [2])) -> [1 3]
    """
    x, y = (ravel(strong(as_value(ar, "setdiff1d"))) for ar in (ar1, ar2))
    if _known(x, y, size=size):
        return np.setdiff1d(x, y, assume_unique)
    ordered = ravel(x) if assume_unique else sort(x, None)
    is_left = e.logical_and(_firsts(ordered, assume_unique), isin(ordered, y, invert=True))
    fill = 0 if fill_value is None else fill_value
    return compressed(is_left, ordered, size, fill, "setdiff1d")


def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Sorted values that are in one of two arrays only.

    As `numpy.setxor1d`.

    Args: fill_value: What follows if there are fewer; by default the least value of either.
    Raises: ConcretizationTypeError: If the values are not known and no ``size`` is given.
    Example: print(fg.numpy.setxor1d([3, 1], [1, 2])) -> [2 3]
    """
    x, y = _lines(ar1, ar2, "setxor1d")
    if _known(x, y, size=size):
        return np.setxor1d(x, y, assume_unique)
    if assume_unique and shape_of(x)[0] + shape_of(y)[0]:
        both = sort(concatenate([x, y]))
        edge = np.ones(1, np.bool_)
        differs = e.not_equal(getitem(both, slice(1, None)), getitem(both, slice(-1)))
        before, behind = concatenate([edge, differs]), concatenate([differs, edge])
        return compressed(e.logical_and(before, behind), both, size, fill_value, "setxor1d")
    x, y = sort(x), sort(y)
    alone = [
        e.logical_and(_firsts(own, assume_unique), isin(own, other, invert=True))
        for own, other in ((x, y), (y, x))
    ]
    both = concatenate([x, y])
    order = argsort(both, stable=True)
    is_alone = getitem(concatenate(alone), order)
    return compressed(is_alone, getitem(both, order), size, fill_value, "setxor1d")


def unique_values(x: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Sorted values of an array, each once.

    As `numpy.unique_values`, in ascending order: the distinct numbers; every nan is one.

    Example: print(fg.numpy.unique_values([3, 1, 3])) -> [1 3]
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(x: Any, *, size: int | None = None, fill_value: Any = None) -> UniqueCountsResult:
    """Sorted values of an array, with their counts.

    As `numpy.unique_counts`: the distinct numbers, and how often each occurs.

    Example: print(fg.numpy.unique_counts([3, 1, 3]).counts) -> [1 2]
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCountsResult(*found)


def unique_inverse(
    x: Any, *, size: int | None = None, fill_value: Any = None
) -> UniqueInverseResult:
    """Sorted values of an array, with the index of the value of each element.

    As `numpy.unique_inverse`: the distinct numbers, and where each element is among them.

    Example: print(fg.numpy.unique_inverse([3, 1, 3]).inverse_indices) -> [1 0 1]
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverseResult(*found)


def unique_all(x: Any, *, size: int | None = None, fill_value: Any = None) -> UniqueAllResult:
    """Sorted values of an array, with first indices, inverse and counts.

    As `numpy.unique_all`: distinct numbers, first places, inverse and counts.

    Example: print(fg.numpy.unique_all([3, 1, 3]).indices) -> [1 0]
    """
    found = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAllResult(*found)
