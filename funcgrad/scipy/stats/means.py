"""Means of powers, and means of angles."""

from __future__ import annotations

import math
from typing import Any

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.samples import Axis, Sample


def _weighted(sample: Sample, values: Any, weights: Any) -> Any:
    """A mean with weights, with the axis kept."""
    if weights is None:
        return sample.mean(values)
    (weights,) = floating(sample.name, weights)
    if sample.is_flat:
        weights = fnp.reshape(weights, (-1,))
    elif len(shape_of(weights)) == 1:
        shape = [1] * len(shape_of(sample.x))
        shape[sample.axis] = -1
        weights = fnp.reshape(weights, tuple(shape))
    return sample.total(values * weights) / sample.total(weights + 0 * sample.x)


def _of_dtype(a: Any, dtype: Any) -> Any:
    return a if dtype is None else fnp.asarray(a, dtype=dtype)


@quiet
def gmean(
    a: Any,
    axis: Axis = 0,
    dtype: Any = None,
    weights: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Geometric mean.

    Args: a: Samples of positive numbers.
    Returns: ``exp`` of the mean of the logarithms.
    Example: fg.scipy.stats.gmean(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(2.7355647997347607)
    """
    sample = Sample("gmean", _of_dtype(a, dtype), axis, nan_policy)
    return sample.finished(f.exp(_weighted(sample, f.log(sample.x), weights)), keepdims)


@quiet
def hmean(
    a: Any,
    axis: Axis = 0,
    dtype: Any = None,
    *,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Harmonic mean.

    Args: a: Samples of positive numbers.
    Returns: The reciprocal of the mean of the reciprocals.
    Example: fg.scipy.stats.hmean(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(2.1132075471698113)
    """
    sample = Sample("hmean", _of_dtype(a, dtype), axis, nan_policy)
    return sample.finished(1 / _weighted(sample, 1 / sample.x, weights), keepdims)


@quiet
def pmean(
    a: Any,
    p: Any,
    *,
    axis: Axis = 0,
    dtype: Any = None,
    weights: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Mean of powers, to the reciprocal power.

    Args:
        a: Samples of positive numbers.
        p: Exponent; 0 is the geometric mean.
    Returns: The means.
    Example: fg.scipy.stats.pmean(np.array([1.0, 2.0, 4.0, 7.0]), 2)
        -> np.float64(4.183300132670378)
    """
    sample = Sample("pmean", _of_dtype(a, dtype), axis, nan_policy)
    exponent = p if isinstance(p, int | float) else floating("pmean", p)[0]
    if isinstance(exponent, int | float):
        if exponent == 0:
            return sample.finished(f.exp(_weighted(sample, f.log(sample.x), weights)), keepdims)
        exponent = aval_of(sample.x).dtype.type(exponent)
    mean = _weighted(sample, f.power(sample.x, exponent), weights)
    return sample.finished(f.power(mean, 1 / exponent), keepdims)


def _resultant(
    name: str, samples: Any, high: float, low: float, axis: Axis, nan_policy: str
) -> tuple[Sample, Any, Any]:
    sample = Sample(name, samples, axis, nan_policy)
    angle = (sample.x - low) * (2 * math.pi / (high - low))
    return sample, sample.mean(f.sin(angle)), sample.mean(f.cos(angle))


@quiet
def circmean(
    samples: Any,
    high: float = 2 * math.pi,
    low: float = 0,
    axis: Axis = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Mean of angles: the direction of the mean of their vectors.

    Returns: Angles from ``low`` to ``high``.
    Example: fg.scipy.stats.circmean(np.array([1.0, 2.0, 4.0, 7.0]))
        -> np.float64(1.4356942817945848)
    """
    sample, height, width = _resultant("circmean", samples, high, low, axis, nan_policy)
    angle = f.arctan2(height, width)
    angle = f.select(angle < 0, angle + 2 * math.pi, angle)
    return sample.finished(angle * ((high - low) / (2 * math.pi)) + low, keepdims)


@quiet
def circvar(
    samples: Any,
    high: float = 2 * math.pi,
    low: float = 0,
    axis: Axis = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Variance of angles: 1 less the length of the mean of their vectors.

    Returns: Numbers from 0 to 1.
    Example: fg.scipy.stats.circvar(np.array([1.0, 2.0, 4.0, 7.0]))
        -> np.float64(0.5834662456304263)
    """
    sample, height, width = _resultant("circvar", samples, high, low, axis, nan_policy)
    return sample.finished(1 - p.hypot.bind(height, width), keepdims)


@quiet
def circstd(
    samples: Any,
    high: float = 2 * math.pi,
    low: float = 0,
    axis: Axis = None,
    nan_policy: str = "propagate",
    *,
    normalize: bool = False,
    keepdims: bool = False,
) -> Any:
    """Standard deviation of angles: ``sqrt(-2 log(r))`` of the length ``r`` of their mean vector.

    Args: normalize: Whether it is that of a circle of ``2 pi``.
    Returns: Standard deviations.
    Example: fg.scipy.stats.circstd(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(1.323471025564897)
    """
    sample, height, width = _resultant("circstd", samples, high, low, axis, nan_policy)
    length = f.minimum(p.hypot.bind(height, width), aval_of(height).dtype.type(1))
    out = f.sqrt(-2 * f.log(length))
    if not normalize:
        out = out * ((high - low) / (2 * math.pi))
    return sample.finished(out, keepdims)
