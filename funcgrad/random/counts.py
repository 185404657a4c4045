"""Random counts: Poisson's, binomial, multinomial. They have no derivatives.

Small means are drawn by adding waiting times, large ones by transformed rejection (W. Hörmann,
"The transformed rejection method for generating Poisson random variables", 1993, and "The
generation of binomial random variates", 1993). Keys are split as in JAX, so that the numbers are
JAX's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.base.annotations import ShapeLike
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import INT64
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.deviance import binet, deviance
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.reductions import ReduceAny
from funcgrad.primitives.shape import broadcast_to
from funcgrad.random.keys import canonical_shape, parts_of, refuse_sharding, split
from funcgrad.random.parameters import (
    array_of,
    floating_dtype,
    parameter,
    parameter_shape,
    sample_dtype,
)
from funcgrad.random.uniform import uniform

_FLOAT32 = np.dtype(np.float32)
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _some(condition: Array) -> Array:
    return ReduceAny(tuple(range(len(shape_of(condition))))).bind(condition)


def _counted(key: ArrayLike, limit: Array, dtype: np.dtype[Any], draw: Callable[..., Array]) -> Any:
    """How often waiting times can be added before their sum exceeds a limit.

    ``draw(key)`` gives the key for the next time and the times.
    """
    zero, one = dtype.type(0), dtype.type(1)

    def is_left(state: Any) -> Array:
        return _some(p.less_equal.bind(state[1], limit))

    def step(state: Any) -> Any:
        count, total, key = state
        key, times = draw(key)
        is_open = p.less_equal.bind(total, limit)
        return p.select.bind(is_open, count + one, count), total + times, key

    start = zero * limit
    return lax.while_loop(is_left, step, (start, start, key))[0] - one


def _accepted(
    key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], propose: Callable[..., Any]
) -> Array:
    """Proposals of two uniform numbers, until all are accepted."""

    def is_left(state: Any) -> Array:
        return _some(p.bitwise_not.bind(state[1]))

    def step(state: Any) -> Any:
        out, done, key = state
        key, first, second = parts_of(key, 3)
        u, v = uniform(first, shape, dtype), uniform(second, shape, dtype)
        proposed, is_good = propose(u - dtype.type(0.5), v)
        # Accepted draws may be replaced until all are: they are as good, and JAX draws them.
        return p.select.bind(is_good, proposed, out), p.bitwise_or.bind(done, is_good), key

    start = (np.full(shape, -1, dtype), np.zeros(shape, bool), key)
    return lax.while_loop(is_left, step, start)[0]


def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Numbers of independent events, of which there are ``lam`` on average.

    Args:
        lam: Mean, not negative, a scalar or an array that broadcasts to ``shape``.
        shape: Shape of the result, by default that of ``lam``.
        dtype: Integer dtype, by default int64.

    Returns:
        Integers, without derivatives. They are drawn in single precision and are those of JAX, but
        where its rounding errors decide what is accepted: for means from some hundreds on, and
        now and then where means below and above 10 are drawn together.
    Raises: DtypeError: If the dtype is not one of integers.
    Example: print(fg.random.poisson(fg.random.key(0), 3.0, (5,))) -> [0 0 4 4 1]
    """
    refuse_sharding("poisson", out_sharding)
    wanted = sample_dtype(dtype, INT64)
    if wanted.kind not in "iu":
        raise DtypeError(f"random.poisson needs an integer dtype, got {wanted}.")
    lengths = parameter_shape("poisson", shape, lam)
    rate = p.stop_gradient.bind(broadcast_to(parameter("poisson", lam, _FLOAT32), lengths))
    f32 = np.float32
    is_small = p.bitwise_or.bind(p.isnan.bind(rate), p.less.bind(rate, f32(10)))
    with np.errstate(all="ignore"):
        small = _poisson_by_times(key, p.select.bind(is_small, rate, f32(0)), wanted)
        large = _poisson_by_rejection(key, p.select.bind(is_small, f32(1e5), rate), lengths)
        drawn = p.select.bind(is_small, small, p.convert(large, wanted))
    return p.select.bind(p.equal.bind(rate, f32(0)), wanted.type(0), drawn)


def _poisson_by_times(key: ArrayLike, rate: Array, dtype: np.dtype[Any]) -> Array:
    """Knuth's algorithm: how many uniform numbers multiply to ``exp(-rate)``."""
    shape = shape_of(rate)
    one = dtype.type(1)

    def is_open(logs: Array) -> Array:
        return p.greater.bind(logs, -rate)

    def step(state: Any) -> Any:
        count, logs, key = state
        key, subkey = parts_of(key, 2)
        count = p.select.bind(is_open(logs), count + one, count)
        return count, logs + p.log.bind(uniform(subkey, shape, _FLOAT32)), key

    # At the start even a rate of 0 is open for nobody: its count is set in the end.
    start = (np.zeros(shape, dtype), np.zeros(shape, _FLOAT32), key)
    return lax.while_loop(lambda state: _some(is_open(state[1])), step, start)[0] - one


def _poisson_by_rejection(key: ArrayLike, rate: Array, shape: tuple[int, ...]) -> Array:
    f32 = np.float32
    b = f32(0.931) + f32(2.53) * p.sqrt.bind(rate)
    a = f32(-0.059) + f32(0.02483) * b
    inverse_alpha = f32(1.1239) + f32(1.1328) / (b - f32(3.4))
    v_r = f32(0.9277) - f32(3.6224) / (b - f32(2))

    def propose(u: Array, v: Array) -> tuple[Array, Array]:
        rest = f32(0.5) - p.absolute.bind(u)
        k = p.floor.bind((f32(2) * a / rest + b) * u + rate + f32(0.43))
        s = p.log.bind(v * inverse_alpha / (a / (rest * rest) + b))
        # The logarithm of the probability of k, without the cancellation of its usual form: in
        # single precision that would be noise for large rates.
        large = p.maximum.bind(k, f32(1))
        t = f32(-_HALF_LOG_2PI) - f32(0.5) * p.log.bind(large) - binet.bind(large)
        t = p.select.bind(p.equal.bind(k, f32(0)), -rate, t - deviance.bind(large, rate))
        at_once = _both(p.greater_equal.bind(rest, f32(0.07)), p.less_equal.bind(v, v_r))
        beyond = _both(p.less.bind(rest, f32(0.013)), p.greater.bind(v, rest))
        refused = p.bitwise_or.bind(p.less.bind(k, f32(0)), beyond)
        tested = _both(p.bitwise_not.bind(refused), p.less_equal.bind(s, t))
        return k, p.bitwise_or.bind(at_once, tested)

    return _accepted(key, shape, _FLOAT32, propose)


def _both(x: Array, y: Array) -> Array:
    return p.bitwise_and.bind(x, y)


def binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: ShapeLike | None = None, dtype: Any = None
) -> Array:
    """Numbers of successes of probability ``p`` in ``n`` trials.

    Args:
        n: Number of trials, a scalar or an array that broadcasts to ``shape``.
        p: Probability, likewise. Its dtype decides in which precision they are drawn.
        shape: Shape of the result, by default that of the parameters.

    Returns:
        Integers in a floating dtype, without derivatives; nan where ``n`` or ``p`` is negative or
        nan.
    Example: print(fg.random.binomial(fg.random.key(0), 10, 0.5, (5,))) -> [4. 7. 6. 6. 5.]
    """
    wanted = floating_dtype("binomial", dtype)
    lengths = parameter_shape("binomial", shape, n, p)
    chance = array_of("binomial", p)
    own = aval_of(chance).dtype
    own = own if own.kind == "f" else np.dtype(np.float64)
    with np.errstate(all="ignore"):
        return _binomial(
            key,
            broadcast_to(parameter("binomial", n, own), lengths),
            broadcast_to(parameter("binomial", chance, own), lengths),
            wanted,
        )


def _binomial(key: ArrayLike, count: Array, chance: Array, wanted: np.dtype[Any]) -> Array:
    count, chance = p.stop_gradient.bind(count), p.stop_gradient.bind(chance)
    number = aval_of(chance).dtype.type
    is_rare = p.less.bind(chance, number(0.5))
    q = p.select.bind(is_rare, chance, number(1) - chance)
    no_count = p.bitwise_or.bind(p.isnan.bind(count), p.less.bind(count, number(0)))
    no_chance = p.bitwise_or.bind(p.isnan.bind(q), p.less.bind(q, number(0)))
    endless = p.isinf.bind(count)
    q = p.select.bind(no_chance, number(0.01), q)
    by_times = p.bitwise_or.bind(no_count, p.less_equal.bind(count * q, number(10)))
    count = p.floor.bind(count)
    waiting = _binomial_by_times(key, p.select.bind(by_times, count, number(0)), q)
    rejecting = _binomial_by_rejection(
        key,
        p.select.bind(by_times, number(1e4), p.select.bind(endless, number(1e4), count)),
        p.select.bind(by_times, number(0.5), q),
    )
    drawn = p.select.bind(by_times, waiting, rejecting)
    invalid = p.bitwise_or.bind(no_chance, no_count)
    drawn = p.select.bind(invalid, number(np.nan), drawn)
    drawn = p.select.bind(_both(endless, p.bitwise_not.bind(invalid)), number(np.inf), drawn)
    as_drawn = p.bitwise_or.bind(p.bitwise_or.bind(is_rare, invalid), endless)
    return p.convert(p.select.bind(as_drawn, drawn, count - drawn), wanted)


def _binomial_by_times(key: ArrayLike, count: Array, q: Array) -> Array:
    """How many geometrically distributed waiting times fit into ``count`` trials."""
    shape, dtype = shape_of(q), aval_of(q).dtype
    scale = p.log1p.bind(-q)

    def draw(key: ArrayLike) -> tuple[Array, Array]:
        subkey, key = parts_of(key, 2)
        return key, p.ceil.bind(p.log.bind(uniform(subkey, shape, dtype)) / scale)

    return _counted(key, count, dtype, draw)


# log(k!) without the leading terms of Stirling's series, up to 9.
_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Array) -> Array:
    number = aval_of(k).dtype.type
    is_small = p.less_equal.bind(k, number(9))
    cut = p.minimum.bind(p.maximum.bind(k, number(0)), number(9))
    following = cut + number(1)
    square = following * following
    # Cut off here too, the series is that of 9 for all larger numbers, as in JAX: the four terms
    # then cancel, which changes probabilities by some parts in 10,000.
    series = number(1 / 12) - (number(1 / 360) - number(1 / 1260) / square) / square
    series = series / following
    table = np.array(_STIRLING, number)
    place = p.convert(p.floor.bind(cut), np.dtype(np.int64))
    place = p.select.bind(p.isnan.bind(cut), np.int64(0), place)
    return p.select.bind(is_small, Gather((0,)).bind(table, place), series)


def _binomial_by_rejection(key: ArrayLike, count: Array, q: Array) -> Array:
    shape, dtype = shape_of(q), aval_of(q).dtype
    number = dtype.type
    one = number(1)
    deviation = p.sqrt.bind(count * q * (one - q))
    b = number(1.15) + number(2.53) * deviation
    a = number(-0.0873) + number(0.0248) * b + number(0.01) * q
    c = count * q + number(0.5)
    v_r = number(0.92) - number(4.2) / b
    odds = q / (one - q)
    alpha = (number(2.83) + number(5.1) / b) * deviation
    m = p.floor.bind((count + one) * q)

    def propose(u: Array, v: Array) -> tuple[Array, Array]:
        rest = number(0.5) - p.absolute.bind(u)
        at_once = _both(p.greater_equal.bind(rest, number(0.07)), p.less_equal.bind(v, v_r))
        k = p.floor.bind((number(2) * a / rest + b) * u + c)
        refused = p.bitwise_or.bind(p.less.bind(k, number(0)), p.greater.bind(k, count))
        v = p.log.bind(v * alpha / (a / (rest * rest) + b))
        half = number(0.5)
        bound = (
            (m + half) * p.log.bind((m + one) / (odds * (count - m + one)))
            + (count + one) * p.log.bind((count - m + one) / (count - k + one))
            + (k + half) * p.log.bind(odds * (count - k + one) / (k + one))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        tested = _both(p.bitwise_not.bind(refused), p.less_equal.bind(v, bound))
        return k, p.bitwise_or.bind(at_once, tested)

    return _accepted(key, shape, dtype, propose)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    unroll: int | bool = 1,
) -> Array:
    """How often each of several outcomes occurs in ``n`` trials.

    Args:
        n: Number of trials, a scalar or an array that broadcasts to the leading axes.
        p: Probabilities of the outcomes, along the last axis.
        shape: Shape of the result, by default that of ``p``; its last axis is that of ``p``.
        unroll: Accepted; how loops are compiled is not for the caller to say.

    Returns:
        Integers in a floating dtype, without derivatives, whose sum over the last axis is ``n``.
    Raises: ShapeError: If the probabilities have no axes, or do not broadcast to the shape.

    Example:
        >>> drawn = fg.random.multinomial(fg.random.key(0), 10, np.array([0.2, 0.3, 0.5]))
        >>> print(drawn.sum())
        10.0
    """
    chances = array_of("multinomial", p)
    own = aval_of(chances).dtype
    own = own if own.kind == "f" else np.dtype(np.float64)
    wanted = own if dtype is None else floating_dtype("multinomial", dtype)
    lengths = shape_of(chances) if shape is None else canonical_shape("multinomial", shape)
    if not shape_of(chances) or lengths[-1:] != shape_of(chances)[-1:]:
        raise ShapeError(
            "random.multinomial: the last axis is that of the probabilities, which are "
            f"{aval_of(chances)}; the shape is {lengths}."
        )
    trials = broadcast_to(parameter("multinomial", n, own), lengths[:-1])
    chances = broadcast_to(parameter("multinomial", chances, own), lengths)
    rows = _moved(chances, -1, 0)
    return _multinomial(key, trials, rows, own, wanted)


def _moved(x: Array, source: int, place: int) -> Array:
    order = list(range(len(shape_of(x))))
    order.insert(place % len(order), order.pop(source))
    return lax.transpose(x, order)


def _multinomial(
    key: ArrayLike, trials: Array, rows: Array, own: np.dtype[Any], wanted: np.dtype[Any]
) -> Array:
    """The outcomes one after the other: binomial numbers of what is left."""
    left = lax.cumsum(rows, 0, reverse=True)
    ratios = rows / p.select.bind(p.equal.bind(left, own.type(0)), own.type(1), left)
    ratios = p.minimum.bind(p.maximum.bind(ratios, own.type(0)), own.type(1))

    def step(rest: Array, pair: Any) -> Any:
        ratio, subkey = pair
        count = binomial(subkey, rest, ratio, dtype=own)
        return rest - count, count

    keys = split(key, shape_of(rows)[0])
    _, counts = lax.scan(step, p.stop_gradient.bind(trials), (ratios, keys))
    return p.convert(_moved(counts, 0, -1), wanted)
