"""Sums, means and extremes of labelled regions, and centres of mass."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import ops
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import floating

__all__ = [
    "center_of_mass", "maximum", "mean", "minimum", "standard_deviation", "sum", "sum_labels",
    "variance",
]  # fmt: skip


class _Regions:
    """Region of every element, and the number of regions."""

    def __init__(self, x: Any, labels: Any, index: Any) -> None:
        self.shape: tuple[int, ...] = ()
        if labels is None:
            self.ids = np.zeros(int(np.prod(shape_of(x))), np.int64)
            known = np.zeros(1, np.int64)
            self.places = np.zeros((), np.int64)
        else:
            flat = fnp.ravel(fnp.broadcast_to(as_value(labels, "labels"), shape_of(x)))
            if index is None:
                self.ids = fnp.where(flat > 0, 0, 1)
                known, self.places = np.zeros(1, np.int64), np.zeros((), np.int64)
            else:
                known, self.places = np.unique(np.asarray(index), return_inverse=True)
                self.shape = np.shape(index)
                self.places = self.places.reshape(self.shape)
                nearest = fnp.clip(fnp.searchsorted(known, flat), 0, len(known) - 1)
                is_known = fnp.take(known, nearest) == flat
                self.ids = fnp.where(is_known, nearest, len(known))
        self.count = len(known)

    def chosen(self, per_region: Any) -> Any:
        """A value for every region, in the shape in which they were asked for."""
        return per_region[self.places] if self.shape else per_region[int(self.places)]

    def sums(self, x: Any) -> Any:
        """Sums over regions."""
        return ops.segment_sum(fnp.ravel(x), self.ids, self.count)

    def sizes(self, x: Any) -> Any:
        """How many elements regions have."""
        return self.sums(fnp.ones_like(x))


def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Sums over regions, as `scipy.ndimage.sum_labels`.

    Args:
        labels: Integers that broadcast to it, which may be traced: regions have one number each.
        index: Known numbers of regions; by default all with positive numbers together.
    Returns: A value for each of ``index``, floating.

    Example:
        >>> from funcgrad.scipy import ndimage
        >>> print(ndimage.sum_labels(np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1]), [1, 2]))
        [5. 2.]
    """
    (x,) = floating("sum_labels", input)
    regions = _Regions(x, labels, index)
    return regions.chosen(regions.sums(x))


def sum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Sums over regions.

    As `scipy.ndimage.sum`, an older name of `sum_labels`.

    Example: fg.scipy.ndimage.sum(np.array([1.0, 2.0, 9.0, 4.0])) -> np.float64(16.0)
    """
    return sum_labels(input, labels, index)


def mean(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Means of regions, as `scipy.ndimage.mean`.

    Example: fg.scipy.ndimage.mean(np.array([1.0, 2.0, 9.0, 4.0])) -> np.float64(4.0)
    """
    (x,) = floating("mean", input)
    regions = _Regions(x, labels, index)
    return regions.chosen(regions.sums(x) / regions.sizes(x))


def variance(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Variances of regions, as `scipy.ndimage.variance`.

    Example: fg.scipy.ndimage.variance(np.array([1.0, 2.0, 9.0, 4.0])) -> np.float64(9.5)
    """
    (x,) = floating("variance", input)
    regions = _Regions(x, labels, index)
    sizes = regions.sizes(x)
    means = regions.sums(x) / fnp.maximum(sizes, 1)
    own = fnp.take(means, fnp.minimum(regions.ids, regions.count - 1))
    return regions.chosen(regions.sums(fnp.square(fnp.ravel(x) - own)) / sizes)


def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Standard deviations of regions.

    As `scipy.ndimage.standard_deviation`; arguments as of `sum_labels`.

    Example: fg.scipy.ndimage.standard_deviation(np.array([1.0, 2.0, 9.0, 4.0]))
        -> np.float64(3.082207001484488)
    """
    return fnp.sqrt(variance(input, labels, index))


def _extreme(function: Any, name: str, input: Any, labels: Any, index: Any) -> Any:
    x = strong(as_value(input, name))
    regions = _Regions(x, labels, index)
    found = function(fnp.ravel(x), regions.ids, regions.count)
    is_empty = regions.sizes(fnp.ones(shape_of(x))) == 0
    return regions.chosen(fnp.where(is_empty, 0, found))


def maximum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Greatest elements of regions, 0 of empty ones, as `scipy.ndimage.maximum`.

    Example: fg.scipy.ndimage.maximum(np.array([1.0, 2.0, 9.0, 4.0])) -> np.float64(9.0)
    """
    return _extreme(ops.segment_max, "maximum", input, labels, index)


def minimum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Least elements of regions, 0 of empty ones, as `scipy.ndimage.minimum`.

    Example: fg.scipy.ndimage.minimum(np.array([1.0, 2.0, 9.0, 4.0])) -> np.float64(1.0)
    """
    return _extreme(ops.segment_min, "minimum", input, labels, index)


def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """Mean place of elements, weighted by them, as `scipy.ndimage.center_of_mass`.

    Args:
        labels: As in `sum_labels`.
        index: As in `sum_labels`.
    Returns: A tuple of coordinates; a list of tuples where ``index`` is a sequence.
    Example: print(fg.scipy.ndimage.center_of_mass(np.array([0.0, 1.0, 1.0]))) -> (np.float64(1.5),)
    """
    (x,) = floating("center_of_mass", input)
    regions = _Regions(x, labels, index)
    total = regions.sums(x)
    centres = []
    for axis, n in enumerate(shape_of(x)):
        places = np.arange(n).reshape([-1 if i == axis else 1 for i in range(len(shape_of(x)))])
        centres.append(regions.chosen(regions.sums(x * places) / total))
    if not regions.shape:
        return tuple(centres)
    return [tuple(c[i] for c in centres) for i in range(regions.shape[0])]
