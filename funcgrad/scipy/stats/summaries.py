"""Numbers that describe samples: moments, means, spreads, standardised scores.

The arguments are SciPy's. All are differentiable in the samples; with ``nan_policy="omit"`` the
results are arrays (of the same values as SciPy's masked ones).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from funcgrad import numpy as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import special as s
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import both, quiet
from funcgrad.scipy.stats.samples import Axis, Sample


class DescribeResult(NamedTuple):
    """What `describe` returns."""

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
        a: Samples.
        order: The power, an int, or several of them, which become a first axis.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        center: What is subtracted instead of the mean.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Central moments.
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
    """Where a sample does not vary beyond rounding errors."""
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

    Args:
        a: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        bias: Whether it is that of the sample; else an estimate of that of the distribution.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Skewnesses; nan where a sample does not vary.
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

    Args:
        a: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        fisher: Whether 3 is subtracted, so that it is 0 for normal numbers.
        bias: Whether it is that of the sample; else an estimate of that of the distribution.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Kurtoses; nan where a sample does not vary.
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
    a: Any,
    axis: Axis = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """Standard error of the mean.

    Args:
        a: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements in the variance.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Standard deviations over roots of the numbers of elements.
    """
    sample = Sample("sem", a, axis, nan_policy)
    return sample.finished(f.sqrt(sample.variance(ddof) / sample.n), keepdims)


@quiet
def variation(
    a: Any,
    axis: Axis = 0,
    nan_policy: str = "propagate",
    ddof: int = 0,
    *,
    keepdims: bool = False,
) -> Any:
    """Standard deviation over the mean.

    Args:
        a: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        ddof: What is subtracted from the number of elements in the variance.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Coefficients of variation.
    """
    sample = Sample("variation", a, axis, nan_policy)
    out = f.sqrt(sample.variance(ddof)) / sample.mean(sample.x)
    return sample.finished(out, keepdims)


@quiet
def describe(
    a: Any, axis: Axis = 0, ddof: int = 1, bias: bool = True, nan_policy: str = "propagate"
) -> DescribeResult:
    """Size, extremes, mean, variance, skewness and kurtosis of samples.

    Args:
        a: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements in the variance.
        bias: As in `skew` and `kurtosis`.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.

    Returns:
        A tuple with names.
    """
    sample = Sample("describe", a, axis, nan_policy)
    low, high = (_extreme(sample, is_min) for is_min in (True, False))
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


def _extreme(sample: Sample, is_min: bool) -> Any:
    """The least or greatest number that counts, with the axis kept."""
    x = sample.x
    if sample.mask is not None:
        x = f.select(sample.mask, x, math.inf if is_min else -math.inf)
    return (fnp.min if is_min else fnp.max)(x, axis=sample.axis, keepdims=True)


# ------------------------------------------------------------------------------------------- means


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

    Args:
        a: Samples of positive numbers.
        axis: The axis of a sample; ``None`` for all axes together.
        dtype: To which they are converted before.
        weights: Weights of the elements.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        ``exp`` of the mean of the logarithms.
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

    Args:
        a: Samples of positive numbers.
        axis: The axis of a sample; ``None`` for all axes together.
        dtype: To which they are converted before.
        weights: Weights of the elements.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        The reciprocal of the mean of the reciprocals.
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
        axis: The axis of a sample; ``None`` for all axes together.
        dtype: To which they are converted before.
        weights: Weights of the elements.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        The means.
    """
    sample = Sample("pmean", _of_dtype(a, dtype), axis, nan_policy)
    exponent = p if isinstance(p, int | float) else floating("pmean", p)[0]
    if isinstance(exponent, int | float):
        if exponent == 0:
            return sample.finished(f.exp(_weighted(sample, f.log(sample.x), weights)), keepdims)
        exponent = aval_of(sample.x).dtype.type(exponent)
    mean = _weighted(sample, f.power(sample.x, exponent), weights)
    return sample.finished(f.power(mean, 1 / exponent), keepdims)


# ------------------------------------------------------------------------------------------ scores


def zscore(a: Any, axis: Axis = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Differences from the mean in standard deviations.

    Args:
        a: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements in the variance.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.

    Returns:
        An array like ``a``; nan where a sample does not vary.

    Example:
        >>> import numpy as np
        >>> from funcgrad.scipy import stats
        >>> print(stats.zscore(np.array([1.0, 2.0, 3.0])).round(3))
        [-1.225  0.     1.225]
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
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements in the variance.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.

    Returns:
        An array like ``scores``; nan where a sample does not vary.
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

    Args:
        a: Samples of positive numbers.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements in the variance.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.

    Returns:
        An array like ``a``.
    """
    (x,) = floating("gzscore", a)
    return zscore(f.log(x), axis, ddof, nan_policy)


@quiet
def gstd(
    a: Any,
    axis: Axis = 0,
    ddof: int = 1,
    *,
    keepdims: bool = False,
    nan_policy: str = "propagate",
) -> Any:
    """Geometric standard deviation: ``exp`` of that of the logarithms.

    Args:
        a: Samples of positive numbers.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements in the variance.
        keepdims: Whether the axis stays, with length 1.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.

    Returns:
        Factors.
    """
    (x,) = floating("gstd", a)
    sample = Sample("gstd", f.log(x), axis, nan_policy)
    return sample.finished(f.exp(f.sqrt(sample.variance(ddof))), keepdims)


# ----------------------------------------------------------------------------------------- entropy


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
        axis: The axis of a distribution; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        ``-sum(pk log(pk))``, or ``sum(pk log(pk / qk))``.

    Raises:
        ArgumentError: If the base is not positive.

    Example:
        >>> from funcgrad.scipy import stats
        >>> print(stats.entropy([0.5, 0.5], base=2))
        1.0
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


# --------------------------------------------------------------------------------- trimmed samples

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

    Args:
        a: Samples.
        limits: Least and greatest number that counts; ``None`` for no limit.
        inclusive: Whether the limits themselves count.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Means; nan of nothing.
    """
    sample = _trimmed("tmean", a, limits, inclusive, axis, nan_policy)
    return sample.finished(sample.mean(sample.x), keepdims)


@quiet
def tvar(
    a: Any,
    limits: Limits = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Axis = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Variance of the numbers between limits.

    Args:
        a: Samples.
        limits: Least and greatest number that counts; ``None`` for no limit.
        inclusive: Whether the limits themselves count.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Variances.
    """
    sample = _trimmed("tvar", a, limits, inclusive, axis, nan_policy)
    return sample.finished(sample.variance(ddof), keepdims)


def tstd(
    a: Any,
    limits: Limits = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Axis = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Standard deviation of the numbers between limits.

    Args:
        a: Samples.
        limits: Least and greatest number that counts; ``None`` for no limit.
        inclusive: Whether the limits themselves count.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Standard deviations.
    """
    return f.sqrt(tvar(a, limits, inclusive, axis, ddof, nan_policy=nan_policy, keepdims=keepdims))


@quiet
def tsem(
    a: Any,
    limits: Limits = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Axis = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Standard error of the mean of the numbers between limits.

    Args:
        a: Samples.
        limits: Least and greatest number that counts; ``None`` for no limit.
        inclusive: Whether the limits themselves count.
        axis: The axis of a sample; ``None`` for all axes together.
        ddof: What is subtracted from the number of elements.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Standard errors.
    """
    sample = _trimmed("tsem", a, limits, inclusive, axis, nan_policy)
    return sample.finished(f.sqrt(sample.variance(ddof) / sample.n), keepdims)


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

    Args:
        a: Samples.
        lowerlimit: Least number that counts.
        axis: The axis of a sample; ``None`` for all axes together.
        inclusive: Whether the limit itself counts.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Minima; nan of nothing.
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

    Args:
        a: Samples.
        upperlimit: Greatest number that counts.
        axis: The axis of a sample; ``None`` for all axes together.
        inclusive: Whether the limit itself counts.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Maxima; nan of nothing.
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
    out = _extreme(sample, is_min)
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
        a: Samples.
        proportiontocut: Which share of a sample is left out at either end, below one half.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Means.

    Raises:
        ArgumentError: If nothing is left, or nan are to be left out.
    """
    sample = _sorted("trim_mean", a, axis, nan_policy)
    size = shape_of(sample.x)[sample.axis]
    count = int(proportiontocut * size)
    if 2 * count >= size:
        raise ArgumentError(f"trim_mean: the proportion {proportiontocut} leaves nothing.")
    kept = _between(sample, count, size - count)
    return sample.finished(fnp.mean(kept, axis=sample.axis, keepdims=True), keepdims)


def _sorted(name: str, a: Any, axis: Axis, nan_policy: str) -> Sample:
    """A sample in ascending order."""
    if nan_policy == "omit":
        raise ArgumentError(
            f"{name}: nan_policy='omit' would leave samples of different sizes. Leave nan out "
            "before."
        )
    sample = Sample(name, a, axis, nan_policy)
    sample.x = fnp.sort(sample.x, axis=sample.axis)
    return sample


def _between(sample: Sample, start: int, stop: int) -> Any:
    places = [slice(None)] * len(shape_of(sample.x))
    places[sample.axis] = slice(start, stop)
    return sample.x[tuple(places)]


def trimboth(a: Any, proportiontocut: float, axis: Axis = 0) -> Any:
    """Samples in ascending order without the least and the greatest numbers.

    Args:
        a: Samples.
        proportiontocut: Which share of a sample is left out at either end.
        axis: The axis of a sample; ``None`` for all axes together.

    Returns:
        What is left.

    Raises:
        ArgumentError: If nothing is left.
    """
    sample = _sorted("trimboth", a, axis, "propagate")
    size = shape_of(sample.x)[sample.axis]
    count = int(proportiontocut * size)
    if 2 * count >= size:
        raise ArgumentError(f"trimboth: the proportion {proportiontocut} leaves nothing.")
    return _between(sample, count, size - count)


def trim1(a: Any, proportiontocut: float, tail: str = "right", axis: Axis = 0) -> Any:
    """Samples in ascending order without the numbers at one end.

    Args:
        a: Samples.
        proportiontocut: Which share of a sample is left out.
        tail: ``"right"`` leaves out the greatest numbers, ``"left"`` the least ones.
        axis: The axis of a sample; ``None`` for all axes together.

    Returns:
        What is left.

    Raises:
        ArgumentError: If there is no such tail.
    """
    if tail.lower() not in ("left", "right"):
        raise ArgumentError(f"trim1: tail must be 'left' or 'right', got {tail!r}.")
    sample = _sorted("trim1", a, axis, "propagate")
    size = shape_of(sample.x)[sample.axis]
    count = int(proportiontocut * size)
    ends = (0, size - count) if tail.lower() == "right" else (count, size)
    return _between(sample, *ends)


# ----------------------------------------------------------------------------------------- spreads


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
        x: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        center: ``center(x, axis=axis)`` instead of the median.
        scale: By which it is divided; ``"normal"`` makes it the standard deviation of normal
            numbers.
        nan_policy: ``"propagate"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        The medians.

    Raises:
        ArgumentError: If nan are to be left out, or the scale is another word.
    """
    sample = _sorted("median_abs_deviation", x, axis, nan_policy)
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
        x: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        rng: The percentiles.
        scale: By which it is divided; ``"normal"`` makes it the standard deviation of normal
            numbers.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        interpolation: As ``method`` in `numpy.percentile`.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        The distances.
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


# ---------------------------------------------------------------------------------------- cumulants


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

    Args:
        data: Samples.
        n: Which cumulant, 1 to 4.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Estimates.

    Raises:
        ArgumentError: If ``n`` is not 1 to 4.
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

    Args:
        data: Samples.
        n: Which cumulant, 1 or 2.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Estimates.

    Raises:
        ArgumentError: If ``n`` is not 1 or 2.
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


# ------------------------------------------------------------------------------------------ angles


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

    Args:
        samples: Angles.
        high: End of the circle.
        low: Its beginning.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Angles from ``low`` to ``high``.
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

    Args:
        samples: Angles.
        high: End of the circle.
        low: Its beginning.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Numbers from 0 to 1.
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

    Args:
        samples: Angles.
        high: End of the circle.
        low: Its beginning.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        normalize: Whether it is that of a circle of ``2 pi``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Standard deviations.
    """
    sample, height, width = _resultant("circstd", samples, high, low, axis, nan_policy)
    length = f.minimum(p.hypot.bind(height, width), aval_of(height).dtype.type(1))
    out = f.sqrt(-2 * f.log(length))
    if not normalize:
        out = out * ((high - low) / (2 * math.pi))
    return sample.finished(out, keepdims)
