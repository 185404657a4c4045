"""Whether samples differ: statistics whose probabilities have closed forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy.ordering import value_if_known
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import broadcast_to, shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.positive import chi2, f_distribution
from funcgrad.scipy.stats.results import Extended
from funcgrad.scipy.stats.samples import Axis, Sample, check_policy
from funcgrad.scipy.stats.symmetric import t as student

__all__ = ["chisquare", "f_oneway", "power_divergence", "ttest_1samp", "ttest_ind", "ttest_rel"]


class SignificanceResult(NamedTuple):
    """A statistic and its significance."""

    statistic: Any
    pvalue: Any


class TtestResult(Extended, fields=("statistic", "pvalue", "df"), n_unpacked=2):
    """The result of a t test: it unpacks to the statistic and its significance.

    Args:
        statistic: The t statistic.
        pvalue: Its significance.
        df: Degrees of freedom.
    """


_ALTERNATIVES = ("two-sided", "less", "greater")


def check_alternative(name: str, alternative: str) -> None:
    if alternative not in _ALTERNATIVES:
        raise ArgumentError(
            f"{name}: alternative must be 'two-sided', 'less' or 'greater', got {alternative!r}."
        )


def chance_of_t(statistic: Any, df: Any, alternative: str) -> Any:
    """The probability of a t statistic that is at least as far out."""
    if alternative == "less":
        return student.cdf(statistic, df)
    if alternative == "greater":
        return student.sf(statistic, df)
    return 2 * student.sf(p.absolute.bind(statistic), df)


def no_omission(name: str, nan_policy: str, *samples: Any) -> None:
    for values in samples:
        check_policy(name, nan_policy, *floating(name, values))
    if nan_policy == "omit":
        raise ArgumentError(f"{name}: nan_policy='omit' is not there; leave nan out before.")


def _t_result(
    sample: Sample, statistic: Any, df: Any, alternative: str, keepdims: bool
) -> TtestResult:
    chance = chance_of_t(statistic, df, alternative)
    counts = broadcast_to(df + 0 * statistic, shape_of(statistic))
    return TtestResult(*(sample.finished(v, keepdims) for v in (statistic, chance, counts)))


@quiet
def ttest_1samp(
    a: Any,
    popmean: Any,
    axis: Axis = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> TtestResult:
    """Whether the mean of samples differs from a number.

    Args: popmean: The number.
    Returns: Student's t, the probability of one as far out by chance, and the degrees of freedom.
    Example: fg.scipy.stats.ttest_1samp(np.array([1.0, 2.0, 4.0, 7.0]), 2.0).pvalue
        -> np.float64(0.3392540508564548)
    """
    check_alternative("ttest_1samp", alternative)
    sample = Sample("ttest_1samp", a, axis, nan_policy)
    statistic = (sample.mean(sample.x) - popmean) / f.sqrt(sample.variance(1) / sample.n)
    return _t_result(sample, statistic, sample.n - 1, alternative, keepdims)


def ttest_rel(
    a: Any,
    b: Any,
    axis: Axis = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> TtestResult:
    """Whether the means of paired samples differ.

    Args: b: Others, as many.
    Returns: As of `ttest_1samp`, for the differences.

    Example:
        >>> fg.scipy.stats.ttest_rel(
        ...     np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0])
        ... ).pvalue
        np.float64(1.0)
    """
    first, second = floating("ttest_rel", a, b)
    return ttest_1samp(first - second, 0.0, axis, nan_policy, alternative, keepdims=keepdims)


@quiet
def ttest_ind(
    a: Any,
    b: Any,
    *,
    axis: Axis = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    trim: float = 0,
    method: Any = None,
    keepdims: bool = False,
) -> TtestResult:
    """Whether the means of independent samples differ.

    Args:
        b: Others.
        equal_var: Whether the variances are supposed to be equal; else it is Welch's test.
        trim: Must be 0.
        method: Must be None.
    Returns: Student's t, the probability of one as far out by chance, and the degrees of freedom.
    Raises: ArgumentError: If trimming or resampling is asked for.

    Example:
        >>> fg.scipy.stats.ttest_ind(
        ...     np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0])
        ... ).pvalue
        np.float64(1.0)
    """
    check_alternative("ttest_ind", alternative)
    if trim or method is not None:
        raise ArgumentError(
            "ttest_ind: trim= and method= are SciPy's own, scipy.stats.ttest_ind, for known values."
        )
    first, second = (Sample("ttest_ind", v, axis, nan_policy) for v in floating("ttest_ind", a, b))
    n, m = first.n, second.n
    u, v = first.variance(1), second.variance(1)
    if equal_var:
        df = n + m - 2
        spread = ((n - 1) * u + (m - 1) * v) / df * (1 / n + 1 / m)
    else:
        spread = u / n + v / m
        df = spread * spread / ((u / n) * (u / n) / (n - 1) + (v / m) * (v / m) / (m - 1))
    statistic = (first.mean(first.x) - second.mean(second.x)) / f.sqrt(spread)
    return _t_result(first, statistic, df, alternative, keepdims)


@quiet
def f_oneway(
    *samples: Any,
    axis: Axis = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Whether the means of several samples differ: analysis of variance.

    Args:
        *samples: Two samples at least.
        equal_var: Must be True.
    Returns: The ratio of variances, and the probability of one as large by chance.
    Raises: ArgumentError: If there are less than two samples, or variances may differ.
    Example: fg.scipy.stats.f_oneway(np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0]))
        -> SignificanceResult(statistic=np.float64(0.0), pvalue=np.float64(1.0))
    """
    if len(samples) < 2 or not equal_var:
        raise ArgumentError(
            "f_oneway needs two samples at least, of equal variances; equal_var=False is SciPy's "
            "own, for known values."
        )
    groups = [Sample("f_oneway", v, axis, nan_policy) for v in floating("f_oneway", *samples)]
    sizes = [g.n for g in groups]
    means = [g.mean(g.x) for g in groups]
    n = sum(sizes[1:], sizes[0])
    grand = sum((s * m for s, m in zip(sizes[1:], means[1:], strict=True)), sizes[0] * means[0]) / n
    between = sum((s * (m - grand) * (m - grand) for s, m in zip(sizes, means, strict=True)), 0.0)
    within = sum((g.total(g.centred() * g.centred()) for g in groups), 0.0)
    above, below = len(groups) - 1, n - len(groups)
    ratio = (between / above) / (within / below)
    chance = f_distribution.sf(ratio, above, below)
    return SignificanceResult(*(groups[0].finished(v, keepdims) for v in (ratio, chance)))


_POWERS = {
    "pearson": 1.0,
    "log-likelihood": 0.0,
    "freeman-tukey": -0.5,
    "mod-log-likelihood": -1.0,
    "neyman": -2.0,
    "cressie-read": 2 / 3,
}


@quiet
def power_divergence(
    f_obs: Any,
    f_exp: Any = None,
    ddof: int = 0,
    axis: Axis = 0,
    lambda_: float | str | None = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Whether frequencies differ from expected ones: Cressie's and Read's family of statistics.

    Args: lambda_: Power, or its name; 1 is Pearson's chi-square.
    Returns: The statistic, and the probability of one as large by chance.
    Raises: ArgumentError: If there is no such power.
    Example: fg.scipy.stats.power_divergence(np.array([16.0, 18.0, 14.0]))
        -> SignificanceResult(statistic=np.float64(0.5), pvalue=np.float64(0.7788007830714049))
    """
    if isinstance(lambda_, str) and lambda_ not in _POWERS:
        raise ArgumentError(
            f"power_divergence: lambda_ must be a number or one of {tuple(_POWERS)}, got "
            f"{lambda_!r}."
        )
    power = _POWERS[lambda_] if isinstance(lambda_, str) else 1.0 if lambda_ is None else lambda_
    sample = Sample("power_divergence", f_obs, axis, nan_policy)
    seen = sample.x
    if f_exp is None:
        expected = sample.mean(seen) + 0 * seen
    else:
        (expected,) = floating("power_divergence", f_exp)
        expected = fnp.reshape(expected, (-1,)) if axis is None else expected
    if power == 1:
        terms = (seen - expected) * (seen - expected) / expected
    elif power == 0:
        terms = 2 * f.xlogy(seen, seen / expected)
    elif power == -1:
        terms = 2 * f.xlogy(expected, expected / seen)
    else:
        exponent = aval_of(seen).dtype.type(power)
        terms = seen * (f.power(seen / expected, exponent) - 1) * (2 / (power * (power + 1)))
    statistic = sample.total(terms)
    chance = chi2.sf(statistic, sample.n - 1 - ddof)
    return SignificanceResult(*(sample.finished(v, keepdims) for v in (statistic, chance)))


def chisquare(
    f_obs: Any,
    f_exp: Any = None,
    ddof: int = 0,
    axis: Axis = 0,
    *,
    sum_check: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Whether frequencies differ from expected ones: Pearson's chi-square test.

    Args: sum_check: Whether sums that differ are an error, where they are known.
    Returns: The statistic, and the probability of one as large by chance.
    Example: fg.scipy.stats.chisquare(np.array([16.0, 18.0, 14.0]))
        -> SignificanceResult(statistic=np.float64(0.5), pvalue=np.float64(0.7788007830714049))
    """
    if sum_check and f_exp is not None:
        _check_sums(f_obs, f_exp, axis)
    return power_divergence(
        f_obs, f_exp, ddof, axis, "pearson", nan_policy=nan_policy, keepdims=keepdims
    )


def _check_sums(f_obs: Any, f_exp: Any, axis: Axis) -> None:
    """Raise if frequencies are known not to have the sum of the expected ones."""
    known = [value_if_known(as_value(x, "chisquare")) for x in (f_obs, f_exp)]
    if any(x is None for x in known):
        return
    seen, expected = (np.sum(x, axis) for x in np.broadcast_arrays(*known))
    bound = np.sqrt(np.finfo(np.float64).eps)
    if np.any(np.abs(seen - expected) > bound * np.minimum(np.abs(seen), np.abs(expected))):
        raise ValueError(
            f"chisquare: the frequencies must have the sum of the expected ones, got {seen} and "
            f"{expected}; sum_check=False does without."
        )
