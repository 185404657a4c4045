"""Statistics of what is left of samples between limits, or without their ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import funcgrad.numpy.values as fnp
from funcgrad.base.signatures import docstring
from funcgrad.errors import ArgumentError
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import both, quiet
from funcgrad.scipy.stats.samples import Axis, Sample, extreme, sorted_sample

__all__ = ["tmax", "tmean", "tmin", "trim1", "trim_mean", "trimboth", "tsem", "tstd", "tvar"]

Limits = tuple[float | None, float | None] | None


def _trimmed(
    name: str, a: Any, limits: Limits, inclusive: tuple[bool, bool], axis: Axis, nan_policy: str
) -> Sample:
    """A sample of which only the numbers between the limits count."""
    sample = Sample(name, a, axis, nan_policy)
    for limit, is_in, is_low in zip(limits or (None, None), inclusive, (True, False), strict=True):
        if limit is None:
            continue
        if is_low:
            inside = sample.x >= limit if is_in else sample.x > limit
        else:
            inside = sample.x <= limit if is_in else sample.x < limit
        sample.mask = both(sample.mask, inside)
    if sample.mask is not None:
        sample.x = f.select(sample.mask, sample.x, 0.0)
    return sample


@quiet
def tmean(
    a: Any,
    limits: Limits = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Axis = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Mean of the numbers between limits.

    Returns: Means; nan of nothing.
    Example: fg.scipy.stats.tmean(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(3.5)
    """
    sample = _trimmed("tmean", a, limits, inclusive, axis, nan_policy)
    return sample.finished(sample.mean(sample.x), keepdims)


def _spread(
    name: str, summary: str, returns: str, shown: str, measure: Callable[[Sample, int], Any]
) -> Callable[..., Any]:
    @quiet
    def function(
        a: Any,
        limits: Limits = None,
        inclusive: tuple[bool, bool] = (True, True),
        axis: Axis = 0,
        ddof: int = 1,
        *,
        nan_policy: str = "propagate",
        keepdims: bool = False,
    ) -> Any:
        sample = _trimmed(name, a, limits, inclusive, axis, nan_policy)
        return sample.finished(measure(sample, ddof), keepdims)

    function.__name__ = function.__qualname__ = name
    call = f"fg.scipy.stats.{name}(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64({shown})"
    function.__doc__ = docstring(f"{summary} of the numbers between limits.", {}, call, "", returns)
    return function


tvar = _spread("tvar", "Variance", "Variances.", "7.0", Sample.variance)
tstd = _spread(
    "tstd",
    "Standard deviation",
    "Standard deviations.",
    "2.6457513110645907",
    lambda sample, ddof: f.sqrt(sample.variance(ddof)),
)
tsem = _spread(
    "tsem",
    "Standard error of the mean",
    "Standard errors.",
    "1.3228756555322954",
    lambda sample, ddof: f.sqrt(sample.variance(ddof) / sample.n),
)


def tmin(
    a: Any,
    lowerlimit: float | None = None,
    axis: Axis = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The least number from a limit on.

    Args: lowerlimit: Least number that counts.
    Returns: Minima; nan of nothing.
    Example: fg.scipy.stats.tmin(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(1.0)
    """
    return _least(True, a, (lowerlimit, None), axis, inclusive, nan_policy, keepdims)


def tmax(
    a: Any,
    upperlimit: float | None = None,
    axis: Axis = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The greatest number up to a limit.

    Args: upperlimit: Greatest number that counts.
    Returns: Maxima; nan of nothing.
    Example: fg.scipy.stats.tmax(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(7.0)
    """
    return _least(False, a, (None, upperlimit), axis, inclusive, nan_policy, keepdims)


def _least(
    is_min: bool,
    a: Any,
    limits: Limits,
    axis: Axis,
    inclusive: bool,
    nan_policy: str,
    keepdims: bool,
) -> Any:
    name = "tmin" if is_min else "tmax"
    sample = _trimmed(name, a, limits, (inclusive, inclusive), axis, nan_policy)
    out = extreme(sample, is_min)
    if sample.mask is not None:
        out = f.select(sample.n == 0, math.nan, out)
    return sample.finished(out, keepdims)


def trim_mean(
    a: Any,
    proportiontocut: float,
    axis: Axis = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Mean without the least and the greatest numbers.

    Args:
        proportiontocut: Which share of a sample is left out at either end, below one half.
        nan_policy: ``"propagate"`` or ``"raise"``.
    Returns: Means.
    Raises: ArgumentError: If nothing is left, or nan are to be left out.
    Example: fg.scipy.stats.trim_mean(np.array([1.0, 2.0, 4.0, 7.0]), 0.25) -> np.float64(3.0)
    """
    sample = sorted_sample("trim_mean", a, axis, nan_policy)
    size = shape_of(sample.x)[sample.axis]
    count = int(proportiontocut * size)
    if 2 * count >= size:
        raise ArgumentError(f"trim_mean: the proportion {proportiontocut} leaves nothing.")
    kept = _between(sample, count, size - count)
    return sample.finished(fnp.mean(kept, axis=sample.axis, keepdims=True), keepdims)


def _between(sample: Sample, start: int, stop: int) -> Any:
    places = [slice(None)] * len(shape_of(sample.x))
    places[sample.axis] = slice(start, stop)
    return sample.x[tuple(places)]


def trimboth(a: Any, proportiontocut: float, axis: Axis = 0) -> Any:
    """Samples in ascending order without the least and the greatest numbers.

    Args: proportiontocut: Which share of a sample is left out at either end.
    Returns: What is left.
    Raises: ArgumentError: If nothing is left.
    Example: fg.scipy.stats.trimboth(np.array([1.0, 2.0, 4.0, 7.0]), 0.25) -> array([2., 4.])
    """
    sample = sorted_sample("trimboth", a, axis, "propagate")
    size = shape_of(sample.x)[sample.axis]
    count = int(proportiontocut * size)
    if 2 * count >= size:
        raise ArgumentError(f"trimboth: the proportion {proportiontocut} leaves nothing.")
    return _between(sample, count, size - count)


def trim1(a: Any, proportiontocut: float, tail: str = "right", axis: Axis = 0) -> Any:
    """Samples in ascending order without the numbers at one end.

    Args: tail: ``"right"`` leaves out the greatest numbers, ``"left"`` the least ones.
    Returns: What is left.
    Raises: ArgumentError: If there is no such tail.
    Example: fg.scipy.stats.trim1(np.array([1.0, 2.0, 4.0, 7.0]), 0.25) -> array([1., 2., 4.])
    """
    if tail.lower() not in ("left", "right"):
        raise ArgumentError(f"trim1: tail must be 'left' or 'right', got {tail!r}.")
    sample = sorted_sample("trim1", a, axis, "propagate")
    size = shape_of(sample.x)[sample.axis]
    count = int(proportiontocut * size)
    ends = (0, size - count) if tail.lower() == "right" else (count, size)
    return _between(sample, *ends)
