"""Spreads by ranks, and estimates of cumulants."""

from __future__ import annotations

from typing import Any

import funcgrad.numpy.values as fnp
from funcgrad.errors import ArgumentError
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.samples import Axis, Sample, sorted_sample


def median_abs_deviation(
    x: Any,
    axis: Axis = 0,
    center: Any = None,
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Median of the distances from the median.

    Args:
        center: ``center(x, axis=axis)`` instead of the median.
        nan_policy: ``"propagate"`` or ``"raise"``.
    Returns: The medians.
    Raises: ArgumentError: If nan are to be left out, or the scale is another word.
    Example: fg.scipy.stats.median_abs_deviation(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(1.5)
    """
    sample = sorted_sample("median_abs_deviation", x, axis, nan_policy)
    if center is None:
        middle = fnp.median(sample.x, axis=sample.axis, keepdims=True)
    else:
        middle = fnp.expand_dims(center(sample.x, axis=sample.axis), sample.axis)
    out = fnp.median(fnp.abs(sample.x - middle), axis=sample.axis, keepdims=True)
    return sample.finished(
        out / _scale_of("median_abs_deviation", scale, 0.6744897501960817), keepdims
    )


def _scale_of(name: str, scale: Any, of_normal: float) -> Any:
    if not isinstance(scale, str):
        return scale
    if scale.lower() != "normal":
        raise ArgumentError(f"{name}: scale must be a number or 'normal', got {scale!r}.")
    return of_normal


def iqr(
    x: Any,
    axis: Any = None,
    rng: tuple[float, float] = (25, 75),
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """The distance between two percentiles.

    Args:
        rng: The percentiles.
        interpolation: As ``method`` in `numpy.percentile`.
    Returns: The distances.
    Example: fg.scipy.stats.iqr(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(3.0)
    """
    (values,) = floating("iqr", x)
    sample_policy = Sample("iqr", values, None, nan_policy)
    percentile = fnp.percentile if sample_policy.mask is None else fnp.nanpercentile
    low, high = sorted(rng)
    ends = [
        percentile(values, end, axis=axis, method=interpolation, keepdims=keepdims)
        for end in (low, high)
    ]
    return (ends[1] - ends[0]) / _scale_of("iqr", scale, 1.3489795003921634)


@quiet
def kstat(
    data: Any,
    n: int = 2,
    *,
    axis: Axis = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Unbiased estimates of cumulants.

    Args: n: Which cumulant, 1 to 4.
    Returns: Estimates.
    Raises: ArgumentError: If ``n`` is not 1 to 4.
    Example: fg.scipy.stats.kstat(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(7.0)
    """
    if n not in (1, 2, 3, 4):
        raise ArgumentError(f"kstat: n must be 1, 2, 3 or 4, got {n!r}.")
    sample = Sample("kstat", data, axis, nan_policy)
    size = sample.n
    if n == 1:
        return sample.finished(sample.mean(sample.x), keepdims)
    second = sample.moment(2)
    if n == 2:
        out = second * size / (size - 1)
    elif n == 3:
        out = sample.moment(3) * size * size / ((size - 1) * (size - 2))
    else:
        bracket = (size + 1) * sample.moment(4) - 3 * (size - 1) * second * second
        out = bracket * size * size / ((size - 1) * (size - 2) * (size - 3))
    return sample.finished(out, keepdims)


@quiet
def kstatvar(
    data: Any,
    n: int = 2,
    *,
    axis: Axis = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Unbiased estimates of the variance of `kstat`.

    Args: n: Which cumulant, 1 or 2.
    Returns: Estimates.
    Raises: ArgumentError: If ``n`` is not 1 or 2.
    Example: float(fg.scipy.stats.kstatvar(np.array([1.0, 2.0, 4.0, 7.0]))) -> 17.5
    """
    if n not in (1, 2):
        raise ArgumentError(f"kstatvar: n must be 1 or 2, got {n!r}.")
    size = Sample("kstatvar", data, axis, nan_policy).n
    size = fnp.reshape(size, ()) if axis is None else size
    second = kstat(data, 2, axis=axis, nan_policy=nan_policy, keepdims=True)
    if n == 1:
        out = second / size
    else:
        fourth = kstat(data, 4, axis=axis, nan_policy=nan_policy, keepdims=True)
        out = (2 * size * second * second + (size - 1) * fourth) / (size * (size + 1))
    if keepdims:
        return out
    return fnp.reshape(out, ()) if axis is None else fnp.squeeze(out, axis)
