"""Ranks, the most frequent values, correlations of ranks, distances of distributions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.stats import formulas as f
from funcgrad.scipy.stats import significance
from funcgrad.scipy.stats.families import quiet
from funcgrad.scipy.stats.samples import Axis

__all__ = ["energy_distance", "mode", "rankdata", "spearmanr", "wasserstein_distance"]


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Any
    count: Any


_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(
    a: Any, method: str = "average", *, axis: Axis = None, nan_policy: str = "propagate"
) -> Any:
    """Ranks of numbers: 1 is the least.

    Args:
        method: What equal numbers get: the ``"average"`` of their places, the ``"min"`` or the
            ``"max"`` of them, ``"dense"`` places (without gaps), or ``"ordinal"`` ones in order.
        axis: The axis of a sample; by default all axes together, as one.
        nan_policy: ``"propagate"`` (a sample with nan has nan for ranks) or ``"raise"``.

    Returns:
        Ranks, like ``a`` (without an axis as a vector): float64 for ``"average"``, else int64.
        They have no derivatives.
    Raises: ArgumentError: If there is no such method, or nan are to be left out.
    Example: print(fg.scipy.stats.rankdata([0, 2, 3, 2])) -> [1.  2.5 4.  2.5]
    """
    if method not in _METHODS:
        raise ArgumentError(f"rankdata: method must be one of {_METHODS}, got {method!r}.")
    x = as_value(a, "rankdata")
    if nan_policy != "propagate":
        significance.no_omission("rankdata", nan_policy, x)
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

    Args: nan_policy: ``"propagate"``, for which nan is a value like others, or ``"raise"``.
    Returns: Values and how often they occur; they have no derivatives.
    Raises: ArgumentError: If nan are to be left out.
    Example: fg.scipy.stats.mode(np.array([1.0, 2.0, 4.0, 7.0]))
        -> ModeResult(mode=array(1.), count=np.int64(1))
    """
    x = as_value(a, "mode")
    if nan_policy != "propagate":
        significance.no_omission("mode", nan_policy, x)
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
) -> significance.SignificanceResult:
    """Spearman's correlation: Pearson's of the ranks.

    Args:
        a: Samples, variables along the other axis if there are several.
        b: More of them.
        nan_policy: ``"propagate"`` or ``"raise"``.
    Returns: Correlation and probability: of two variables numbers, of several ones matrices. They
        have no derivatives, since ranks have none.

    Raises:
        ArgumentError: If nan are to be left out.
        ShapeError: If there is a single variable.

    Example:
        >>> fg.scipy.stats.spearmanr(np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0]))
        SignificanceResult(statistic=np.float64(0.9486832980505139),
        pvalue=np.float64(0.05131670194948613))
    """
    significance.check_alternative("spearmanr", alternative)
    significance.no_omission("spearmanr", nan_policy, *(v for v in (a, b) if v is not None))
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
    chance = significance.chance_of_t(r * f.sqrt(df / ratio), df, alternative)
    if count == 2:
        return significance.SignificanceResult(r[1, 0], chance[1, 0])
    return significance.SignificanceResult(r, chance)


@quiet
def wasserstein_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """The work of moving one distribution of numbers into another.

    Returns: The integral of the distance of the distribution functions.

    Example:
        >>> fg.scipy.stats.wasserstein_distance(
        ...     np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0])
        ... )
        np.float64(0.75)
    """
    return _distance("wasserstein_distance", 1, u_values, v_values, u_weights, v_weights)


@quiet
def energy_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """The energy distance of two distributions of numbers.

    Returns: ``sqrt(2)`` times the root of the integral of the squared distance of the distribution
        functions.

    Example:
        >>> fg.scipy.stats.energy_distance(
        ...     np.array([1.0, 2.0, 4.0, 7.0]), np.array([1.5, 1.5, 5.0, 6.0])
        ... )
        np.float64(0.6123724356957946)
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
