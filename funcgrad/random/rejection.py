"""Gamma-distributed numbers by rejection, each from a key of its own.

The method is that of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
variables" (2000); keys are split as in JAX, so that the numbers are JAX's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.dialect import dialect
from funcgrad.core.avals import aval_of
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.gamma_samples import gamma_sample, log_gamma_sample
from funcgrad.primitives.random import threefry2x32
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.random.distributions import normal_of
from funcgrad.random.generators import folded, halves
from funcgrad.random.keys import lanes_of
from funcgrad.random.uniform import unit_of

Lanes = tuple[Array, Array]
"""The two words of a key for each number."""


def _words(blocks: Array) -> Lanes:
    high, low = halves(blocks)
    return high, low


def _child(keys: Lanes, place: int, count: int = 2) -> Lanes:
    """One of the keys into which each is split."""
    if dialect().is_partitionable:
        return _words(threefry2x32.bind(*keys, np.uint32(0), np.uint32(place)))

    def word(i: int) -> Array:  # the first words of all hashes come first
        hashed = threefry2x32.bind(*keys, np.uint32(i % count), np.uint32(i % count + count))
        return halves(hashed)[i // count]

    return word(2 * place), word(2 * place + 1)


def _unit(keys: Lanes, dtype: np.dtype[Any]) -> Array:
    """A uniform number from each key."""
    is_wide = dtype.itemsize == 8
    if not dialect().is_partitionable:
        block = threefry2x32.bind(*keys, np.uint32(0), np.uint32(is_wide))
        return unit_of(block if is_wide else halves(block)[0], dtype)
    block = threefry2x32.bind(*keys, np.uint32(0), np.uint32(0))
    return unit_of(folded(block, np.dtype(f"u{dtype.itemsize}")), dtype)


def _chosen(condition: Array, x: Lanes, y: Lanes) -> Lanes:
    first, second = (p.select.bind(condition, u, v) for u, v in zip(x, y, strict=True))
    return first, second


def _some(condition: Array) -> Array:
    return ReduceAny(tuple(range(len(shape_of(condition))))).bind(condition)


def gamma_numbers(name: str, key: ArrayLike, alpha: Array, is_log: bool) -> Array:
    """A gamma-distributed number for each parameter, or its logarithm.

    Args:
        name: The function that draws, for messages.
        key: A key.
        alpha: Parameters, of the shape and dtype of the result.
        is_log: Whether logarithms are wanted.
    Returns: The samples, once differentiable in the parameters.
    """
    fixed = p.stop_gradient.bind(alpha)
    keys = _words(lanes_of(name, key, shape_of(alpha)))
    drawn = _draw(keys, fixed, aval_of(alpha).dtype, is_log)
    return (log_gamma_sample if is_log else gamma_sample).bind(alpha, drawn)


def _draw(keys: Lanes, alpha: Array, dtype: np.dtype[Any], is_log: bool) -> Array:
    one = dtype.type(1)
    # No number has a negative parameter; between -2/3 and 0 the method would find one.
    alpha = p.select.bind(p.less.bind(alpha, dtype.type(0)), dtype.type(np.nan), alpha)
    is_large = p.greater_equal.bind(alpha, one)
    # Of a parameter below 1: a number of alpha + 1, times a power of a uniform one.
    d = p.select.bind(is_large, alpha, alpha + one) - dtype.type(1 / 3)
    c = dtype.type(1 / 3) / p.sqrt.bind(d)
    boosting = _child(keys, 1)
    v = _accepted(_child(keys, 0), c, d, dtype)
    unit = _unit(boosting, dtype)
    with np.errstate(divide="ignore"):
        inverse = one / alpha
    if is_log:
        logs = p.log1p.bind(-unit)
        is_one = p.bitwise_or.bind(is_large, p.equal.bind(logs, dtype.type(0)))
        boost = p.select.bind(is_one, dtype.type(0), logs * inverse)
        return p.log.bind(d) + p.log.bind(v) + boost
    boost = p.select.bind(is_large, one, p.power.bind(one - unit, inverse))
    return d * v * boost


def _accepted(keys: Lanes, c: Array, d: Array, dtype: np.dtype[Any]) -> Array:
    """Cubes ``v`` of ``1 + c x`` for normal ``x``, until all are accepted."""
    one = dtype.type(1)

    def is_open(square: Array, v: Array, u: Array) -> Array:
        wide = p.greater_equal.bind(u, one - dtype.type(0.0331) * (square * square))
        # A number that is accepted is not asked again: what the logarithm of 0 is does not matter.
        bound = square * dtype.type(0.5) + d * (one - v + p.log.bind(v))
        return p.bitwise_and.bind(wide, p.greater_equal.bind(p.log.bind(u), bound))

    def is_left(state: Any) -> Array:
        return _some(state[1])

    def step(state: Any) -> Any:
        keys, left, v = state
        following = _child(keys, 0, 3)
        cube, square = _positive(_child(keys, 1, 3), c, left, dtype)
        u = _unit(_child(keys, 2, 3), dtype)
        v = p.select.bind(left, cube, v)
        again = p.bitwise_and.bind(left, is_open(square, cube, u))
        return _chosen(left, following, keys), again, v

    with np.errstate(divide="ignore", invalid="ignore"):
        everywhere = p.equal.bind(c, c)  # nothing is sought where the parameter is nan
        start = (keys, everywhere, 0 * d + one)
        return lax.while_loop(is_left, step, start)[2]


def _positive(keys: Lanes, c: Array, left: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """``(1 + c x)**3`` and ``x**2`` of the first normal number that makes the first positive."""
    zero, one = dtype.type(0), dtype.type(1)

    def is_left(state: Any) -> Array:
        return _some(state[1])

    def step(state: Any) -> Any:
        keys, open_, x, v = state
        drawn = normal_of(_unit(_child(keys, 1), dtype), dtype)
        x = p.select.bind(open_, drawn, x)
        v = p.select.bind(open_, one + drawn * c, v)
        still = p.bitwise_and.bind(open_, p.less_equal.bind(v, zero))
        return _chosen(open_, _child(keys, 0), keys), still, x, v

    _, _, x, v = lax.while_loop(is_left, step, (keys, left, 0 * c, 0 * c - one))
    return v * v * v, x * x
