"""Statistics of pairs of samples: correlations and lines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import broadcast_to, shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats import significance
from funcgrad.scipy.stats.bounded import beta
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.results import Extended
from funcgrad.scipy.stats.samples import Axis, Sample


class PearsonRResult(NamedTuple):
    """A correlation and its significance."""

    statistic: Any
    pvalue: Any

    @property
    def correlation(self) -> Any:
        """The correlation."""
        return self.statistic


class LinregressResult(
    Extended,
    fields=("slope", "intercept", "rvalue", "pvalue", "stderr", "intercept_stderr"),
    n_unpacked=5,
):
    """The result of `linregress`, which unpacks to all but the last value.

    Args:
        slope: Of the line.
        intercept: Of the line.
        rvalue: The correlation.
        pvalue: Its significance.
        stderr: Standard error of the slope.
        intercept_stderr: Standard error of the intercept.
    """


def _pair(name: str, x: Any, y: Any, axis: Axis) -> tuple[Sample, Sample]:
    x, y = floating(name, x, y)
    if axis is None:
        x, y = fnp.reshape(x, (-1,)), fnp.reshape(y, (-1,))
        axis = 0
    sizes = [shape_of(v)[axis] if shape_of(v) else None for v in (x, y)]
    if None in sizes or sizes[0] != sizes[1]:
        raise ShapeError(
            f"{name} needs samples of equal size along the axis {axis}, got {aval_of(x)} and "
            f"{aval_of(y)}."
        )
    shape = np.broadcast_shapes(shape_of(x), shape_of(y))
    return Sample(name, broadcast_to(x, shape), axis), Sample(name, broadcast_to(y, shape), axis)


def _correlation(first: Sample, second: Sample) -> Any:
    """Pearson's correlation, with the axis kept."""
    x, y = first.centred(), second.centred()
    # Divided by their sizes first, which neither overflow nor vanish.
    x, y = (v / _safe_size(v, first.axis) for v in (x, y))
    norms = [f.sqrt(fnp.sum(v * v, axis=first.axis, keepdims=True)) for v in (x, y)]
    r = fnp.sum(x * y, axis=first.axis, keepdims=True) / (norms[0] * norms[1])
    one = aval_of(r).dtype.type(1)
    return f.maximum(-one, f.minimum(one, r))


def _safe_size(v: Any, axis: int) -> Any:
    return f.stop_gradient(fnp.max(p.absolute.bind(v), axis=axis, keepdims=True))


@quiet
def pearsonr(
    x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Axis = 0
) -> PearsonRResult:
    """Pearson's correlation of two samples, and the probability of one as large by chance.

    Args: method: Must be None: the probability is that for normal numbers.
    Returns: Correlation and probability, differentiable in both samples.

    Raises:
        ArgumentError: If another method is asked for.
        ShapeError: If the sizes differ.

    Example:
        >>> from funcgrad.scipy import stats
        >>> print(stats.pearsonr([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0]).statistic.round(6))
        0.8
    """
    significance.check_alternative("pearsonr", alternative)
    if method is not None:
        raise ArgumentError("pearsonr: method= resamples; scipy.stats.pearsonr takes known values.")
    first, second = _pair("pearsonr", x, y, axis)
    r = first.finished(_correlation(first, second))
    half = 0.5 * (shape_of(first.x)[first.axis] - 2)
    if half == 0:
        return PearsonRResult(p.sign.bind(r), p.ones_like(r))
    places = {"loc": -1, "scale": 2}
    if alternative == "less":
        chance = beta.cdf(r, half, half, **places)
    elif alternative == "greater":
        chance = beta.sf(r, half, half, **places)
    else:
        chance = 2 * beta.sf(p.absolute.bind(r), half, half, **places)
    return PearsonRResult(r, chance)


def pointbiserialr(
    x: Any, y: Any, *, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> significance.SignificanceResult:
    """Pearson's correlation of bools and numbers.

    Args:
        x: Bools.
        y: Numbers, as many.
        nan_policy: ``"propagate"`` or ``"raise"``.
    Returns: Correlation and probability.

    Example:
        >>> fg.scipy.stats.pointbiserialr(
        ...     np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 2.0, 4.0, 7.0])
        ... )
        SignificanceResult(statistic=np.float64(0.8728715609439694),
        pvalue=np.float64(0.12712843905603055))
    """
    significance.no_omission("pointbiserialr", nan_policy, x, y)
    found = pearsonr(x, y, axis=axis)
    return significance.SignificanceResult(*(_kept(v, axis, keepdims, y) for v in found))


def _kept(v: Any, axis: Axis, keepdims: bool, like: Any) -> Any:
    if not keepdims:
        return v
    return fnp.reshape(v, (1,) * np.ndim(like)) if axis is None else fnp.expand_dims(v, axis)


@quiet
def linregress(
    x: Any,
    y: Any,
    alternative: str = "two-sided",
    *,
    axis: Axis = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> LinregressResult:
    """The line through points that minimises the sum of the squares of vertical distances.

    Args:
        x: Abscissas.
        y: Ordinates, as many.
        nan_policy: ``"propagate"`` or ``"raise"``.

    Returns:
        Slope, intercept, correlation, probability of such a slope by chance, and the standard
        errors of slope and intercept; differentiable in the points.
    Raises: ShapeError: If the sizes differ.

    Example:
        >>> fg.scipy.stats.linregress(
        ...     np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0])
        ... ).slope
        np.float64(0.8333333333333334)
    """
    significance.check_alternative("linregress", alternative)
    significance.no_omission("linregress", nan_policy, x, y)
    first, second = _pair("linregress", x, y, axis)
    u, v = first.centred(), second.centred()
    mean_x, mean_y = first.mean(first.x), second.mean(second.x)
    uu, uv, vv = first.mean(u * u), first.mean(u * v), first.mean(v * v)
    slope = uv / uu
    r = _correlation(first, second)
    df = shape_of(first.x)[first.axis] - 2
    if df > 0:
        statistic = r * f.sqrt(df / ((1 - r) * (1 + r)))
        chance = significance.chance_of_t(statistic, df, alternative)
        stderr = f.sqrt((1 - r) * (1 + r) * vv / uu / df)
    else:
        chance = p.convert(v[_first(v, first.axis)] == 0, aval_of(r).dtype)
        stderr = 0 * r
    values = (
        slope, mean_y - slope * mean_x, r, chance, stderr, stderr * f.sqrt(uu + mean_x * mean_x)
    )  # fmt: skip
    return LinregressResult(*(_kept(first.finished(q), axis, keepdims, y) for q in values))


def _first(v: Any, axis: int) -> tuple[slice, ...]:
    return tuple(slice(0, 1) if i == axis else slice(None) for i in range(len(shape_of(v))))
