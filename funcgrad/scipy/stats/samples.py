"""Samples along an axis, and what is to be done with nan in them."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy.promotion import normalize_axis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import reshape, shape_of
from funcgrad.scipy.exponentials import floating

Axis = int | None


class Sample:
    """Numbers along one axis, of which those that are nan may not count.

    Args:
        name: The function that asks, for messages.
        a: The numbers.
        axis: Their axis; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"``, or ``"raise"``.

    Attributes:
        x: The numbers, with 0 for those that do not count.
        mask: Where they count, ``None`` if all do.
        axis: A non-negative axis.
    """

    def __init__(self, name: str, a: Any, axis: Axis = 0, nan_policy: str = "propagate") -> None:
        (x,) = floating(name, a)
        self.name = name
        self.shape = shape_of(x)
        self.is_flat = axis is None
        if axis is None or not self.shape:
            x = fnp.reshape(x, (-1,))
        self.axis = normalize_axis(0 if axis is None else axis, len(shape_of(x)), name)
        check_policy(name, nan_policy, x)
        self.mask = None
        if nan_policy == "omit":
            self.mask = p.bitwise_not.bind(p.isnan.bind(x))
            x = p.select.bind(self.mask, x, p.zero_of(x))
        self.x = x

    @property
    def n(self) -> Any:
        """How many count, with the axis kept."""
        if self.mask is None:
            return aval_of(self.x).dtype.type(shape_of(self.x)[self.axis])
        counted = p.convert(self.mask, aval_of(self.x).dtype)
        return fnp.sum(counted, axis=self.axis, keepdims=True)

    def total(self, values: Any) -> Any:
        """The sum of values of the numbers that count, with the axis kept."""
        if self.mask is not None:
            values = p.select.bind(self.mask, values, p.zero_of(values))
        return fnp.sum(values, axis=self.axis, keepdims=True)

    def mean(self, values: Any) -> Any:
        """The mean of values of the numbers that count, with the axis kept."""
        return self.total(values) / self.n

    def centred(self) -> Any:
        """Differences from the mean."""
        return self.x - self.mean(self.x)

    def moment(self, order: int) -> Any:
        """A central moment, with the axis kept."""
        return self.mean(p.integer_power(self.centred(), order))

    def variance(self, ddof: int) -> Any:
        """Sum of squares over ``n - ddof``, with the axis kept."""
        centred = self.centred()
        return self.total(centred * centred) / (self.n - ddof)

    def finished(self, out: Any, keepdims: bool = False) -> Any:
        """A result, of which the axis was kept, in its final shape."""
        full = shape_of(out)
        kept = (*full[: self.axis], 1, *full[self.axis + 1 :])
        assert full == kept
        if keepdims:
            return reshape(out, (1,) * len(self.shape)) if self.is_flat else out
        out = reshape(out, (*full[: self.axis], *full[self.axis + 1 :]))
        return out[()] if isinstance(out, np.ndarray) and not out.ndim else out


def check_policy(name: str, nan_policy: str, x: Any) -> None:
    """Check the policy for nan.

    Raises: ArgumentError: If there is no such policy, or there is nan and it must not be.
    """
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ArgumentError(
            f"{name}: nan_policy must be 'propagate', 'omit' or 'raise', got {nan_policy!r}."
        )
    if nan_policy != "raise":
        return
    if is_traced(x):
        raise ArgumentError(
            f"{name}: nan_policy='raise' needs known values, got a traced {aval_of(x)}. Check for "
            "nan outside, or look with funcgrad.debug_nans."
        )
    if np.isnan(x).any():
        raise ArgumentError(f"{name}: the sample contains nan.")


def extreme(sample: Sample, is_min: bool) -> Any:
    """The least or greatest number that counts, with the axis kept."""
    x = sample.x
    if sample.mask is not None:
        x = p.select.bind(sample.mask, x, aval_of(x).dtype.type(np.inf if is_min else -np.inf))
    return (fnp.min if is_min else fnp.max)(x, axis=sample.axis, keepdims=True)


def sorted_sample(name: str, a: Any, axis: Axis, nan_policy: str) -> Sample:
    """A sample in ascending order."""
    if nan_policy == "omit":
        raise ArgumentError(
            f"{name}: nan_policy='omit' would leave samples of different sizes. Leave nan out "
            "before."
        )
    sample = Sample(name, a, axis, nan_policy)
    sample.x = fnp.sort(sample.x, axis=sample.axis)
    return sample
