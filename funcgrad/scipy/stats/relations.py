"""Statistics of pairs of samples, of ranks, and transformations towards normal numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from funcgrad import lax
from funcgrad import numpy as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import broadcast_to, shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats.bounded import beta
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.positive import chi2, f_distribution
from funcgrad.scipy.stats.samples import Axis, Sample, check_policy
from funcgrad.scipy.stats.symmetric import t as student


class PearsonRResult(NamedTuple):
    """A correlation and its significance."""

    statistic: Any
    pvalue: Any

    @property
    def correlation(self) -> Any:
        """The correlation."""
        return self.statistic


class SignificanceResult(NamedTuple):
    """A statistic and its significance."""

    statistic: Any
    pvalue: Any


class LinregressResult(NamedTuple):
    """What `linregress` returns."""

    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any
    intercept_stderr: Any


class TtestResult(NamedTuple):
    """A t statistic and its significance."""

    statistic: Any
    pvalue: Any
    df: Any


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Any
    count: Any


_ALTERNATIVES = ("two-sided", "less", "greater")


def _check_alternative(name: str, alternative: str) -> None:
    if alternative not in _ALTERNATIVES:
        raise ArgumentError(
            f"{name}: alternative must be 'two-sided', 'less' or 'greater', got {alternative!r}."
        )


def _of_t(statistic: Any, df: Any, alternative: str) -> Any:
    """The probability of a t statistic that is at least as far out."""
    if alternative == "less":
        return student.cdf(statistic, df)
    if alternative == "greater":
        return student.sf(statistic, df)
    return 2 * student.sf(p.absolute.bind(statistic), df)


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

    Args:
        x: Samples.
        y: Others, of the same size.
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``: which correlations count as
            large.
        method: Must be None: the probability is that for normal numbers.
        axis: The axis of a sample; ``None`` for all axes together.

    Returns:
        Correlation and probability, differentiable in both samples.

    Raises:
        ArgumentError: If another method is asked for.
        ShapeError: If the sizes differ.

    Example:
        >>> from funcgrad.scipy import stats
        >>> print(stats.pearsonr([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0]).statistic.round(6))
        0.8
    """
    _check_alternative("pearsonr", alternative)
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
) -> SignificanceResult:
    """Pearson's correlation of bools and numbers.

    Args:
        x: Bools.
        y: Numbers, as many.
        axis: The axis of a sample.
        nan_policy: ``"propagate"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Correlation and probability.
    """
    _no_omission("pointbiserialr", nan_policy, x, y)
    found = pearsonr(x, y, axis=axis)
    return SignificanceResult(*(_kept(v, axis, keepdims, y) for v in found))


def _kept(v: Any, axis: Axis, keepdims: bool, like: Any) -> Any:
    if not keepdims:
        return v
    return fnp.reshape(v, (1,) * np.ndim(like)) if axis is None else fnp.expand_dims(v, axis)


def _no_omission(name: str, nan_policy: str, *samples: Any) -> None:
    for values in samples:
        check_policy(name, nan_policy, *floating(name, values))
    if nan_policy == "omit":
        raise ArgumentError(f"{name}: nan_policy='omit' is not there; leave nan out before.")


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
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``: which slopes count as large.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Slope, intercept, correlation, probability of such a slope by chance, and the standard
        errors of slope and intercept; differentiable in the points.

    Raises:
        ShapeError: If the sizes differ.
    """
    _check_alternative("linregress", alternative)
    _no_omission("linregress", nan_policy, x, y)
    first, second = _pair("linregress", x, y, axis)
    u, v = first.centred(), second.centred()
    mean_x, mean_y = first.mean(first.x), second.mean(second.x)
    uu, uv, vv = first.mean(u * u), first.mean(u * v), first.mean(v * v)
    slope = uv / uu
    r = _correlation(first, second)
    df = shape_of(first.x)[first.axis] - 2
    if df > 0:
        statistic = r * f.sqrt(df / ((1 - r) * (1 + r)))
        chance = _of_t(statistic, df, alternative)
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


# ------------------------------------------------------------------------------------------- ranks

_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(
    a: Any, method: str = "average", *, axis: Axis = None, nan_policy: str = "propagate"
) -> Any:
    """Ranks of numbers: 1 is the least.

    Args:
        a: Samples.
        method: What equal numbers get: the ``"average"`` of their places, the ``"min"`` or the
            ``"max"`` of them, ``"dense"`` places (without gaps), or ``"ordinal"`` ones in order.
        axis: The axis of a sample; by default all axes together, as one.
        nan_policy: ``"propagate"`` (a sample with nan has nan for ranks) or ``"raise"``.

    Returns:
        Ranks, like ``a`` (without an axis as a vector): float64 for ``"average"``, else int64.
        They have no derivatives.

    Raises:
        ArgumentError: If there is no such method, or nan are to be left out.

    Example:
        >>> from funcgrad.scipy import stats
        >>> print(stats.rankdata([0, 2, 3, 2]))
        [1.  2.5 4.  2.5]
    """
    if method not in _METHODS:
        raise ArgumentError(f"rankdata: method must be one of {_METHODS}, got {method!r}.")
    x = as_value(a, "rankdata")
    if nan_policy != "propagate":
        _no_omission("rankdata", nan_policy, x)
    if axis is None:
        return _ranks(fnp.reshape(x, (-1,)), method)
    rows = fnp.moveaxis(x, axis, -1)
    return fnp.moveaxis(_ranks(rows, method), -1, axis)


def _ranks(x: Any, method: str) -> Any:
    """Ranks along the last axis."""
    x = f.stop_gradient(x)
    n = shape_of(x)[-1]
    order = fnp.argsort(x, axis=-1, stable=True)
    places = fnp.argsort(order, axis=-1, stable=True)
    if not n or method == "ordinal":
        ranks = places + 1
    else:
        ordered = fnp.take_along_axis(x, order, axis=-1)
        differs = ordered[..., 1:] != ordered[..., :-1]
        edge = fnp.ones((*shape_of(x)[:-1], 1), bool)
        begins = fnp.concatenate([edge, differs], axis=-1)
        ends = fnp.concatenate([differs, edge], axis=-1)
        counted = fnp.arange(1, n + 1)
        if method == "dense":
            ranks = fnp.cumsum(p.convert(begins, np.dtype(np.int64)), axis=-1)
        else:
            low = lax.cummax(fnp.where(begins, counted, 0), len(shape_of(begins)) - 1)
            last = len(shape_of(ends)) - 1
            high = lax.cummin(fnp.where(ends, counted, n), last, reverse=True)
            ranks = {"min": low, "max": high}.get(method)
            ranks = 0.5 * (low + high) if ranks is None else ranks
        ranks = fnp.take_along_axis(ranks, places, axis=-1)
    if method == "average":
        ranks = fnp.asarray(ranks, dtype=np.float64)
    if aval_of(x).dtype.kind == "f":
        spoilt = fnp.any(fnp.isnan(x), axis=-1, keepdims=True)
        if method == "average":
            return fnp.where(spoilt, np.nan, ranks)
    return ranks


def mode(
    a: Any, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent values, the least of those that are equally frequent.

    Args:
        a: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, for which nan is a value like others, or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Values and how often they occur; they have no derivatives.

    Raises:
        ArgumentError: If nan are to be left out.
    """
    x = as_value(a, "mode")
    if nan_policy != "propagate":
        _no_omission("mode", nan_policy, x)
    ndim = len(shape_of(x))
    if axis is None or not ndim:
        x, axis, flat = fnp.reshape(x, (-1,)), 0, True
    else:
        flat = False
    rows = fnp.sort(fnp.moveaxis(f.stop_gradient(x), axis, -1), axis=-1)
    n = shape_of(rows)[-1]
    if not n:
        lead = shape_of(rows)[:-1]
        value, count = fnp.full(lead, np.nan), fnp.zeros(lead)
    else:
        differs = rows[..., 1:] != rows[..., :-1]
        if aval_of(rows).dtype.kind == "f":  # nan are one value
            differs = differs & ~fnp.isnan(rows[..., :-1])
        edge = fnp.ones((*shape_of(rows)[:-1], 1), bool)
        begins = fnp.concatenate([edge, differs], axis=-1)
        counted = fnp.arange(n)
        since = lax.cummax(fnp.where(begins, counted, 0), len(shape_of(begins)) - 1)
        length = counted - since + 1
        best = fnp.argmax(length, axis=-1)[..., None]
        value = fnp.take_along_axis(rows, best, axis=-1)[..., 0]
        count = fnp.max(length, axis=-1)
    if keepdims:
        if flat:
            shape = (1,) * ndim
            return ModeResult(fnp.reshape(value, shape), fnp.reshape(count, shape))
        return ModeResult(fnp.expand_dims(value, axis), fnp.expand_dims(count, axis))
    return ModeResult(value, count)


@quiet
def spearmanr(
    a: Any,
    b: Any = None,
    axis: Axis = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> SignificanceResult:
    """Spearman's correlation: Pearson's of the ranks.

    Args:
        a: Samples, variables along the other axis if there are several.
        b: More of them.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"`` or ``"raise"``.
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``.

    Returns:
        Correlation and probability: of two variables numbers, of several ones matrices. They have
        no derivatives, since ranks have none.

    Raises:
        ArgumentError: If nan are to be left out.
        ShapeError: If there is a single variable.
    """
    _check_alternative("spearmanr", alternative)
    _no_omission("spearmanr", nan_policy, *(v for v in (a, b) if v is not None))
    parts = []
    for values in (v for v in (a, b) if v is not None):
        (x,) = floating("spearmanr", values)
        x = fnp.reshape(x, (-1,)) if axis is None else x
        x = fnp.reshape(x, (-1, 1)) if len(shape_of(x)) < 2 else x
        parts.append(x if axis in (0, None) or shape_of(x)[1] == 1 else fnp.swapaxes(x, 0, 1))
    columns = parts[0] if len(parts) == 1 else fnp.concatenate(parts, axis=1)
    n, count = shape_of(columns)
    if count < 2:
        raise ShapeError("spearmanr needs two variables at least: columns of a, or b.")
    ranks = rankdata(columns, axis=0)
    r = fnp.corrcoef(ranks, rowvar=False)
    df = n - 2
    ratio = f.maximum(np.float64(0), (r + 1.0) * (1.0 - r))
    chance = _of_t(r * f.sqrt(df / ratio), df, alternative)
    if count == 2:
        return SignificanceResult(r[1, 0], chance[1, 0])
    return SignificanceResult(r, chance)


# -------------------------------------------------------------------------------------- distances


@quiet
def wasserstein_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """The work of moving one distribution of numbers into another.

    Args:
        u_values: Numbers.
        v_values: Others.
        u_weights: Weights of the first, by default equal ones.
        v_weights: Weights of the second.

    Returns:
        The integral of the distance of the distribution functions.
    """
    return _distance("wasserstein_distance", 1, u_values, v_values, u_weights, v_weights)


@quiet
def energy_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """The energy distance of two distributions of numbers.

    Args:
        u_values: Numbers.
        v_values: Others.
        u_weights: Weights of the first, by default equal ones.
        v_weights: Weights of the second.

    Returns:
        ``sqrt(2)`` times the root of the integral of the squared distance of the distribution
        functions.
    """
    square = _distance("energy_distance", 2, u_values, v_values, u_weights, v_weights)
    return math.sqrt(2) * f.sqrt(square)


def _distance(name: str, power: int, u: Any, v: Any, u_weights: Any, v_weights: Any) -> Any:
    """The integral of a power of the distance of two distribution functions."""
    u, v = (fnp.reshape(x, (-1,)) for x in floating(name, u, v))
    shares = []
    for x, weights in ((u, u_weights), (v, v_weights)):
        if weights is None:
            share = np.full(shape_of(x), 1 / shape_of(x)[0], aval_of(x).dtype)
        else:
            (share,) = floating(name, weights)
            if shape_of(share) != shape_of(x):
                raise ShapeError(
                    f"{name}: there must be a weight for each of {shape_of(x)[0]} values, got "
                    f"{aval_of(share)}."
                )
            share = share / fnp.sum(share)
        shares.append(share)
    joint = fnp.concatenate([u, v])
    signed = fnp.concatenate([shares[0], -shares[1]])
    order = fnp.argsort(joint)
    steps = fnp.diff(fnp.take(joint, order))
    apart = fnp.cumsum(fnp.take(signed, order))[:-1]
    heights = p.absolute.bind(apart) if power == 1 else apart * apart
    return fnp.sum(heights * steps)


# ---------------------------------------------------------------------------------- transformations


@quiet
def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    """The power transformation of Box and Cox.

    Args:
        x: Positive numbers.
        lmbda: The exponent.
        alpha: Must be None.
        optimizer: Must be None.

    Returns:
        ``(x**lmbda - 1) / lmbda``, and ``log(x)`` where that is 0.

    Raises:
        ArgumentError: If there is no exponent: to find it, maximise `boxcox_llf`.
    """
    if lmbda is None or alpha is not None or optimizer is not None:
        raise ArgumentError(
            "boxcox: give lmbda. To find it, minimise -boxcox_llf with funcgrad.optim.minimize, or "
            "call scipy.stats.boxcox on known values."
        )
    x, exponent = floating("boxcox", x, lmbda)
    return _boxcox(f.log(x), exponent)


def _boxcox(logarithm: Any, exponent: Any) -> Any:
    is_zero = exponent == 0
    safe = f.select(is_zero, 1.0, exponent)
    # At 0 by its series, which has the derivative in the exponent too.
    series = logarithm * (1 + 0.5 * exponent * logarithm)
    return f.select(is_zero, series, p.expm1.bind(safe * logarithm) / safe)


@quiet
def boxcox_llf(
    lmb: Any,
    data: Any,
    *,
    axis: Axis = 0,
    keepdims: bool = False,
    nan_policy: str = "propagate",
) -> Any:
    """Logarithm of the likelihood of an exponent in `boxcox`.

    Args:
        lmb: The exponent.
        data: Samples of positive numbers.
        axis: The axis of a sample; ``None`` for all axes together.
        keepdims: Whether the axis stays, with length 1.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.

    Returns:
        Logarithms of likelihoods.
    """
    sample = Sample("boxcox_llf", data, axis, nan_policy)
    logs = f.log(sample.x)
    exponent = floating("boxcox_llf", lmb, sample.x)[0]
    is_zero = exponent == 0
    safe = f.select(is_zero, 1.0, exponent)
    # The variance of x**lmb / lmb, by logarithms that neither overflow nor cancel.
    scaled = safe * logs
    shift = f.stop_gradient(sample.mean(scaled))
    powers = p.expm1.bind(scaled - shift)
    apart = powers - sample.mean(powers)
    log_var = f.log(sample.mean(apart * apart)) + 2 * shift - 2 * f.log(p.absolute.bind(safe))
    flat = logs - sample.mean(logs)
    log_var = f.select(is_zero, f.log(sample.mean(flat * flat)), log_var)
    out = (exponent - 1) * sample.total(logs) - 0.5 * sample.n * log_var
    return sample.finished(out, keepdims)


def _yeojohnson(x: Any, exponent: Any) -> Any:
    above = _boxcox(f.log1p(f.maximum(x, 0 * x)), exponent)
    below = -_boxcox(f.log1p(f.maximum(-x, 0 * x)), 2 - exponent)
    return f.select(x >= 0, above, below)


@quiet
def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """The power transformation of Yeo and Johnson, for numbers of both signs.

    Args:
        x: Numbers.
        lmbda: The exponent.

    Returns:
        `boxcox` of ``x + 1`` for positive numbers, and of ``1 - x`` with the exponent
        ``2 - lmbda`` and a minus sign for negative ones.

    Raises:
        ArgumentError: If there is no exponent: to find it, maximise `yeojohnson_llf`.
    """
    if lmbda is None:
        raise ArgumentError(
            "yeojohnson: give lmbda. To find it, minimise -yeojohnson_llf with "
            "funcgrad.optim.minimize, or call scipy.stats.yeojohnson on known values."
        )
    return _yeojohnson(*floating("yeojohnson", x, lmbda))


@quiet
def yeojohnson_llf(
    lmb: Any,
    data: Any,
    *,
    axis: Axis = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Logarithm of the likelihood of an exponent in `yeojohnson`.

    Args:
        lmb: The exponent.
        data: Samples.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Logarithms of likelihoods.
    """
    sample = Sample("yeojohnson_llf", data, axis, nan_policy)
    exponent = floating("yeojohnson_llf", lmb, sample.x)[0]
    moved = _yeojohnson(sample.x, exponent)
    apart = moved - sample.mean(moved)
    x = sample.x
    logs = p.sign.bind(x) * f.log1p(p.absolute.bind(x))
    log_var = f.log(sample.mean(apart * apart))
    return sample.finished((exponent - 1) * sample.total(logs) - 0.5 * sample.n * log_var, keepdims)


# ------------------------------------------------------------------------------------------- tests


def _t_result(
    sample: Sample, statistic: Any, df: Any, alternative: str, keepdims: bool
) -> TtestResult:
    chance = _of_t(statistic, df, alternative)
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

    Args:
        a: Samples.
        popmean: The number.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Student's t, the probability of one as far out by chance, and the degrees of freedom.
    """
    _check_alternative("ttest_1samp", alternative)
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

    Args:
        a: Samples.
        b: Others, as many.
        axis: The axis of a sample; ``None`` for all axes together.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        As of `ttest_1samp`, for the differences.
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
        a: Samples.
        b: Others.
        axis: The axis of a sample; ``None`` for all axes together.
        equal_var: Whether the variances are supposed to be equal; else it is Welch's test.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        alternative: ``"two-sided"``, ``"less"`` or ``"greater"``.
        trim: Must be 0.
        method: Must be None.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        Student's t, the probability of one as far out by chance, and the degrees of freedom.

    Raises:
        ArgumentError: If trimming or resampling is asked for.
    """
    _check_alternative("ttest_ind", alternative)
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
        axis: The axis of a sample; ``None`` for all axes together.
        equal_var: Must be True.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        The ratio of variances, and the probability of one as large by chance.

    Raises:
        ArgumentError: If there are less than two samples, or variances may differ.
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

    Args:
        f_obs: Frequencies.
        f_exp: Expected ones, by default equal ones.
        ddof: What is subtracted from the degrees of freedom.
        axis: The axis of a table; ``None`` for all axes together.
        lambda_: Power, or its name; 1 is Pearson's chi-square.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        The statistic, and the probability of one as large by chance.

    Raises:
        ArgumentError: If there is no such power.
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

    Args:
        f_obs: Frequencies.
        f_exp: Expected ones, by default equal ones.
        ddof: What is subtracted from the degrees of freedom.
        axis: The axis of a table; ``None`` for all axes together.
        sum_check: Accepted; sums are not compared.
        nan_policy: ``"propagate"``, ``"omit"`` or ``"raise"``.
        keepdims: Whether the axis stays, with length 1.

    Returns:
        The statistic, and the probability of one as large by chance.
    """
    return power_divergence(
        f_obs, f_exp, ddof, axis, "pearson", nan_policy=nan_policy, keepdims=keepdims
    )
