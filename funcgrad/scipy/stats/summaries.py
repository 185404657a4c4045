"""Numbers that describe samples: moments, cumulants, spreads, standardised scores, entropies.

The arguments are SciPy's. All are differentiable in the samples; with ``nan_policy="omit"`` the
results are arrays (of the same values as SciPy's masked ones).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import special as s
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.samples import Axis, Sample, extreme

__all__ = [
    "describe", "entropy", "gstd", "gzscore", "kurtosis", "moment", "sem", "skew", "variation",
    "zmap", "zscore",
]  # fmt: skip


class DescribeResult(NamedTuple):
    """The result of `describe`."""

    nobs: Any
    minmax: tuple[Any, Any]
    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any


@quiet
def moment(
    a: Any,
    order: Any = 1,
    axis: Axis = 0,
    nan_policy: str = "propagate",
    *,
    center: Any = None,
    keepdims: bool = False,
) -> Any:
    """The mean of a power of the differences from the mean.

    Args:
        order: The power, an int, or several of them, which become a first axis.
        center: What is subtracted instead of the mean.
    Returns: Central moments.
    Example: fg.scipy.stats.moment(np.array([1.0, 2.0, 4.0, 7.0]), 2) -> np.float64(5.25)
    """
    if np.ndim(order):
        rows = [moment(a, n, axis, nan_policy, center=center, keepdims=keepdims) for n in order]
        return fnp.stack(rows)
    if order != int(order) or order < 0:
        raise ArgumentError(f"moment: the order must be a non-negative integer, got {order!r}.")
    sample = Sample("moment", a, axis, nan_policy)
    apart = sample.centred() if center is None else sample.x - center
    return sample.finished(sample.mean(p.integer_power(apart, int(order))), keepdims)


def _is_level(sample: Sample, var: Any) -> Any:
    """Mask of the samples that do not vary beyond rounding errors."""
    eps = float(np.finfo(aval_of(var).dtype).eps)
    size = eps * sample.mean(sample.x)
    return var <= size * size


@quiet
def skew(
    a: Any,
    axis: Axis = 0,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Skewness: the third central moment over the cube of the standard deviation.

    Returns: Skewnesses; nan where a sample does not vary.
    Example: fg.scipy.stats.skew(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(0.4987837491108397)
    """
    sample = Sample("skew", a, axis, nan_policy)
    var = sample.moment(2)
    out = sample.moment(3) / (var * f.sqrt(var))
    if not bias:
        n = sample.n
        out = f.select(n > 2, out * f.sqrt((n - 1) * n) / (n - 2), out)
    return sample.finished(f.select(_is_level(sample, var), math.nan, out), keepdims)


@quiet
def kurtosis(
    a: Any,
    axis: Axis = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Kurtosis: the fourth central moment over the square of the variance.

    Args: fisher: Whether 3 is subtracted, so that it is 0 for normal numbers.
    Returns: Kurtoses; nan where a sample does not vary.
    Example: fg.scipy.stats.kurtosis(np.array([1.0, 2.0, 4.0, 7.0]))
        -> np.float64(-1.2380952380952381)
    """
    sample = Sample("kurtosis", a, axis, nan_policy)
    var = sample.moment(2)
    out = sample.moment(4) / (var * var)
    if not bias:
        n = sample.n
        excess = ((n * n - 1) * out - 3 * (n - 1) * (n - 1)) / ((n - 2) * (n - 3))
        out = f.select(n > 3, excess + 3, out)
    out = f.select(_is_level(sample, var), math.nan, out)
    return sample.finished(out - 3 if fisher else out, keepdims)


@quiet
def sem(
    a: Any, axis: Axis = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Any:
    """Standard error of the mean.

    Returns: Standard deviations over roots of the numbers of elements.
    Example: fg.scipy.stats.sem(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(1.3228756555322954)
    """
    sample = Sample("sem", a, axis, nan_policy)
    return sample.finished(f.sqrt(sample.variance(ddof) / sample.n), keepdims)


@quiet
def variation(
    a: Any, axis: Axis = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False
) -> Any:
    """Standard deviation over the mean.

    Returns: Coefficients of variation.
    Example: fg.scipy.stats.variation(np.array([1.0, 2.0, 4.0, 7.0]))
        -> np.float64(0.6546536707079771)
    """
    sample = Sample("variation", a, axis, nan_policy)
    out = f.sqrt(sample.variance(ddof)) / sample.mean(sample.x)
    return sample.finished(out, keepdims)


@quiet
def describe(
    a: Any, axis: Axis = 0, ddof: int = 1, bias: bool = True, nan_policy: str = "propagate"
) -> DescribeResult:
    """Size, extremes, mean, variance, skewness and kurtosis of samples.

    Returns: A tuple with names.
    Example: fg.scipy.stats.describe(np.array([1.0, 2.0, 4.0, 7.0])).variance -> np.float64(7.0)
    """
    sample = Sample("describe", a, axis, nan_policy)
    low, high = (extreme(sample, is_min) for is_min in (True, False))
    count: Any = shape_of(sample.x)[sample.axis]
    if sample.mask is not None:
        count = fnp.sum(sample.mask, axis=sample.axis)
    return DescribeResult(
        count,
        (sample.finished(low), sample.finished(high)),
        sample.finished(sample.mean(sample.x)),
        sample.finished(sample.variance(ddof)),
        skew(a, axis, bias, nan_policy),
        kurtosis(a, axis, True, bias, nan_policy),
    )


def zscore(a: Any, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Differences from the mean in standard deviations.

    Returns: An array like ``a``; nan where a sample does not vary.
    Example: print(fg.scipy.stats.zscore(np.array([1.0, 2.0, 3.0])).round(3))
        -> [-1.225  0.     1.225]
    """
    return zmap(a, a, axis, ddof, nan_policy)


@quiet
def zmap(
    scores: Any, compare: Any, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Any:
    """Differences from the mean of other samples, in their standard deviations.

    Args:
        scores: Numbers.
        compare: Samples, whose mean and standard deviation count.
    Returns: An array like ``scores``; nan where a sample does not vary.
    Example: fg.scipy.stats.zmap(np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0]))
        -> array([-1.23091491, -0.73854895,  0.24618298,  1.72328087])
    """
    sample = Sample("zmap", compare, axis, nan_policy)
    (values,) = floating("zmap", scores)
    mean, var = sample.mean(sample.x), sample.variance(ddof)
    if axis is None:
        mean, var = fnp.reshape(mean, ()), fnp.reshape(var, ())
    eps = float(np.finfo(aval_of(var).dtype).eps)
    level = var <= (eps * mean) * (eps * mean)
    return f.select(level, math.nan, (values - mean) / f.sqrt(var))


@quiet
def gzscore(a: Any, *, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """`zscore` of the logarithms.

    Args: a: Samples of positive numbers.
    Returns: An array like ``a``.
    Example: fg.scipy.stats.gzscore(np.array([1.0, 2.0, 4.0, 7.0]))
        -> array([-1.37649077, -0.42838907,  0.51971263,  1.28516721])
    """
    (x,) = floating("gzscore", a)
    return zscore(f.log(x), axis, ddof, nan_policy)


@quiet
def gstd(
    a: Any, axis: Axis = 0, ddof: int = 1, *, keepdims: bool = False, nan_policy: str = "propagate"
) -> Any:
    """Geometric standard deviation: ``exp`` of that of the logarithms.

    Args: a: Samples of positive numbers.
    Returns: Factors.
    Example: fg.scipy.stats.gstd(np.array([1.0, 2.0, 4.0, 7.0])) -> np.float64(2.3260915617236346)
    """
    (x,) = floating("gstd", a)
    sample = Sample("gstd", f.log(x), axis, nan_policy)
    return sample.finished(f.exp(f.sqrt(sample.variance(ddof))), keepdims)


@quiet
def entropy(
    pk: Any,
    qk: Any = None,
    base: float | None = None,
    axis: Axis = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Entropy of probabilities, or relative entropy of two.

    Args:
        pk: Probabilities, which need not sum to 1.
        qk: Others, with which they are compared.
        base: Of the logarithm, by default e.
    Returns: ``-sum(pk log(pk))``, or ``sum(pk log(pk / qk))``.
    Raises: ArgumentError: If the base is not positive.
    Example: print(fg.scipy.stats.entropy([0.5, 0.5], base=2)) -> 1.0
    """
    if base is not None and base <= 0:
        raise ArgumentError(f"entropy: the base must be positive, got {base}.")
    sample = Sample("entropy", pk, axis, nan_policy)
    share = sample.x / sample.total(sample.x)
    if qk is None:
        terms = s.entr.bind(share)
    else:
        other = Sample("entropy", qk, axis, nan_policy)
        mine, theirs = floating("entropy", share, other.x / other.total(other.x))
        terms = s.rel_entr.bind(mine, theirs)
    out = sample.total(terms)
    return sample.finished(out if base is None else out / math.log(base), keepdims)
