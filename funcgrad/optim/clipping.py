"""Transformations that bound updates, one element, one array or the whole tree at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.optim.transformation import (
    GradientTransformation,
    Params,
    Scalar,
    State,
    Step,
    Updates,
    like,
    square,
    stateless,
    total,
)

__all__ = ["clip", "clip_by_block_rms", "clip_by_global_norm", "global_norm", "zero_nans"]


def global_norm(updates: Updates) -> Scalar:
    """The square root of the sum of the squares of all elements of all leaves.

    Args: updates: A pytree of arrays.
    Returns: A real scalar; its derivative is zero where it is zero.
    Example: print(fg.optim.global_norm({"w": np.array([3.0, 0.0]), "b": 4.0})) -> 5.0
    """
    squares = total([fnp.sum(square(x)) for x in tree_leaves(updates)])
    return fnp.where(squares > 0, fnp.sqrt(squares), squares)


def clip(max_delta: Scalar) -> GradientTransformation:
    """Every element brought between ``-max_delta`` and ``max_delta``.

    Args: max_delta: The largest magnitude of an element.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.clip(1.5), np.array([1.0, -2.0]))
        -> array([ 1. , -1.5])
    """

    def clipped(x: Any) -> Any:
        bound = like(max_delta, x)
        return fnp.clip(x, -bound, bound)

    return stateless(lambda updates, params: tree_map(clipped, updates))


def clip_by_global_norm(max_norm: Scalar) -> GradientTransformation:
    """All updates scaled down together, if their `global_norm` is above a bound.

    Args: max_norm: The largest norm (Pascanu et al., 2012). What is below it stays as it is.

    Example:
        >>> tx = fg.optim.clip_by_global_norm(1.0)
        >>> updates, _ = tx.update([np.array([3.0, 4.0])], tx.init(None))
        >>> print(updates)
        [array([0.6, 0.8])]
    """

    def clipped(updates: Updates, params: Params | None) -> Updates:
        norm = global_norm(updates)
        bound = like(max_norm, norm)
        factor = bound / fnp.maximum(norm, bound)
        return tree_map(lambda x: like(factor, x) * x, updates)

    return stateless(clipped)


def clip_by_block_rms(threshold: Scalar) -> GradientTransformation:
    """Every array scaled down, if the root of the mean of its squares is above a bound.

    Args: threshold: The largest root mean square (Shazeer and Stern, 2018).

    Example:
        >>> o, p = fg.optim.clip_by_block_rms(1.0), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.63245553, -1.26491106])
    """

    def clipped(x: Any) -> Any:
        mean = fnp.sum(square(x)) / max(np.size(x), 1)
        rms = fnp.where(mean > 0, fnp.sqrt(mean), mean)
        bound = like(threshold, x)
        return bound / fnp.maximum(rms, bound) * x

    return stateless(lambda updates, params: tree_map(clipped, updates))


class ZeroNansState(NamedTuple):
    """For every leaf, whether the latest updates had a NaN there."""

    found_nan: Any


def zero_nans() -> GradientTransformation:
    """NaNs replaced by zeros; the state tells which leaves had some.

    Example:
        >>> (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.zero_nans(), np.array([1.0, -2.0]))
        array([ 1., -2.])
    """

    def init(params: Params) -> State:
        return ZeroNansState(tree_map(lambda x: fnp.array(False), params))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        found = tree_map(lambda x: fnp.any(fnp.isnan(x)), updates)
        zeroed = tree_map(lambda x: fnp.where(fnp.isnan(x), fnp.zeros_like(x), x), updates)
        return zeroed, ZeroNansState(found)

    return GradientTransformation(init, update)
