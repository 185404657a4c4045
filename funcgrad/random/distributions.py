"""Continuous distributions, each a function of uniform numbers.

Samples have the dtype that is asked for, float64 by default. They are differentiable in the
parameters that are arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import lax
from funcgrad.dtypes import INT64
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.primitives import elementwise as primitive
from funcgrad.primitives.bits import nextafter
from funcgrad.primitives.random import UINT32, erfinv_giles
from funcgrad.primitives.shape import broadcast_to
from funcgrad.random.generators import joined
from funcgrad.random.keys import canonical_shape, parts_of, random_bits, refuse_sharding
from funcgrad.random.parameters import (
    array_of,
    floating_dtype,
    parameter,
    parameter_shape,
    sample_dtype,
)
from funcgrad.random.uniform import uniform, units

__all__ = [
    "bernoulli", "cauchy", "exponential", "geometric", "gumbel", "laplace", "logistic", "maxwell",
    "normal", "pareto", "rademacher", "rayleigh", "truncated_normal", "weibull_min",
]  # fmt: skip


def normal(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Normal numbers of mean 0 and variance 1.

    Args: dtype: float64 by default, float32, or a complex dtype (whose parts have variance 1/2).
    Returns: ``sqrt(2) * erf_inv(u)`` of uniform ``u`` in (-1, 1). With ``dtype=np.float32`` they
        are the numbers that JAX draws by default, to a few units of the last place.

    Example:
        >>> x = fg.random.normal(fg.random.key(0), (10_000,))
        >>> print(x.dtype, bool(abs(np.mean(x)) < 0.03), bool(abs(np.std(x) - 1) < 0.03))
        float64 True True
    """
    refuse_sharding("normal", out_sharding)
    wanted = floating_dtype("normal", dtype, "fc")
    lengths = canonical_shape("normal", shape)
    if wanted.kind == "f":
        return _real_normal(key, lengths, wanted)
    part = np.empty(0, wanted).real.dtype
    re, im = (_real_normal(each, lengths, part) for each in parts_of(key))
    return primitive.div.bind(lax.complex(re, im), wanted.type(math.sqrt(2)))


def _real_normal(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return normal_of(units("normal", key, shape, dtype), dtype)


def normal_of(unit: Array, dtype: np.dtype[Any]) -> Array:
    """Normal numbers of uniform ones in [0, 1)."""
    lowest, one = np.nextafter(dtype.type(-1), dtype.type(0)), dtype.type(1)
    u = primitive.add.bind(primitive.mul.bind(unit, one - lowest), lowest)
    u = primitive.maximum.bind(lowest, u)
    return primitive.mul.bind(erfinv_giles.bind(u), dtype.type(math.sqrt(2)))


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Normal numbers under the condition that they lie in ``[lower, upper]``.

    Args:
        lower: Lower bound, a scalar or an array that broadcasts to ``shape``.
        upper: Upper bound, likewise.
        shape: Shape of the result, by default that of the bounds.
    Returns: Samples inside the bounds.
    Example: fg.random.truncated_normal(fg.random.key(0), -1.0, 1.0)
        -> np.float64(-0.13999612249333174)
    """
    refuse_sharding("truncated_normal", out_sharding)
    wanted = floating_dtype("truncated_normal", dtype)
    lengths = parameter_shape("truncated_normal", shape, lower, upper)
    low = parameter("truncated_normal", lower, wanted)
    high = parameter("truncated_normal", upper, wanted)
    root = wanted.type(math.sqrt(2))
    u = uniform(key, lengths, wanted, *(lax.erf(primitive.div.bind(x, root)) for x in (low, high)))
    out = primitive.mul.bind(erfinv_giles.bind(u), root)
    above = nextafter.bind(primitive.stop_gradient.bind(low), wanted.type(np.inf))
    below = nextafter.bind(primitive.stop_gradient.bind(high), wanted.type(-np.inf))
    return primitive.minimum.bind(primitive.maximum.bind(out, above), below)


def exponential(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Exponentially distributed numbers of mean 1.

    Returns: ``-log(1 - u)`` of uniform ``u``.
    Example: fg.random.exponential(fg.random.key(0)) -> np.float64(0.5420705551711603)
    """
    refuse_sharding("exponential", out_sharding)
    u = uniform(key, shape, floating_dtype("exponential", dtype))
    return lax.neg(lax.log1p(lax.neg(u)))


def gumbel(
    key: ArrayLike,
    shape: int | Sequence[int] = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Gumbel-distributed numbers: the maximum of many of exponential tails, shifted.

    Args:
        mode: ``"low"`` (the default) draws from one uniform number, ``"high"`` from two, so that
            the upper tail reaches further; ``"highest"`` from all bits of two, which makes both
            tails of float32 as long.
    Returns: ``-log(-log(u))`` of uniform ``u``.
    Example: fg.random.gumbel(fg.random.key(0)) -> np.float64(0.13790565977540292)
    """
    refuse_sharding("gumbel", out_sharding)
    wanted = floating_dtype("gumbel", dtype)
    lengths = canonical_shape("gumbel", shape)
    tiny = np.finfo(wanted).tiny
    if mode in (None, "low"):
        return lax.neg(lax.log(lax.neg(lax.log(uniform(key, lengths, wanted, tiny, 1.0)))))
    if mode not in ("high", "highest"):
        raise ArgumentError(
            f"random.gumbel: mode must be 'low', 'high' or 'highest', got {mode!r}."
        )
    if mode == "highest" and wanted == np.float32:
        return _gumbel_of_all_bits(key, lengths)
    pair = uniform(key, (2, *lengths), wanted)
    high, low = (lax.index_in_dim(pair, i, keepdims=False) for i in (0, 1))
    fine = lax.add(lax.mul(low, wanted.type(float(np.finfo(wanted).eps))), tiny)
    u = lax.select(lax.ge(high, 0.5), high, lax.add(high, fine))
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(u)))))


def _gumbel_of_all_bits(key: ArrayLike, lengths: tuple[int, ...]) -> Array:
    """Gumbel-distributed float32 of a uniform number of 64 bits, or of what it lacks from 1."""
    words = random_bits("gumbel", key, (2, *lengths), UINT32)
    high, low = (lax.index_in_dim(words, i, keepdims=False) for i in (0, 1))
    block = joined(high, low)
    is_low = lax.lt(high, np.uint32(1 << 31))
    rest = lax.add(lax.bitwise_not(block), np.uint64(1))
    whole = lax.convert_element_type(lax.select(is_low, block, rest), np.float32)
    x = lax.mul(whole, np.float32(2.0**-64))
    u = lax.select(is_low, lax.log1p(lax.neg(x)), lax.log(x))
    return lax.neg(lax.log(lax.neg(u)))


def laplace(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Numbers with the density ``exp(-|x|) / 2``.

    Returns: The samples.
    Example: fg.random.laplace(fg.random.key(0)) -> np.float64(0.17803369470862349)
    """
    refuse_sharding("laplace", out_sharding)
    wanted = floating_dtype("laplace", dtype)
    lowest = wanted.type(-1) + np.finfo(wanted).epsneg
    u = uniform(key, shape, wanted, lowest, 1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


def logistic(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Numbers with the cumulative distribution ``1 / (1 + exp(-x))``.

    Returns: ``log(u / (1 - u))`` of uniform ``u``.
    Example: fg.random.logistic(fg.random.key(0)) -> np.float64(-0.3291103200974086)
    """
    refuse_sharding("logistic", out_sharding)
    wanted = floating_dtype("logistic", dtype)
    u = uniform(key, shape, wanted, np.finfo(wanted).tiny, 1.0)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


def cauchy(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Numbers with the density ``1 / (pi (1 + x**2))``, which have no mean.

    Returns: ``tan(pi (u - 1/2))`` of uniform ``u``.
    Example: fg.random.cauchy(fg.random.key(0)) -> np.float64(-0.2619295066536063)
    """
    refuse_sharding("cauchy", out_sharding)
    wanted = floating_dtype("cauchy", dtype)
    u = uniform(key, shape, wanted, np.finfo(wanted).eps, 1.0)
    return lax.tan(lax.mul(wanted.type(np.pi), lax.sub(u, 0.5)))


def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Numbers with the density ``b / x**(b + 1)`` on ``x >= 1``.

    Args:
        b: Exponent of the tail, a scalar or an array that broadcasts to ``shape``.
        shape: Shape of the result, by default that of ``b``.
    Returns: The samples.
    Example: fg.random.pareto(fg.random.key(0), 2.0) -> np.float64(1.3113213298190585)
    """
    refuse_sharding("pareto", out_sharding)
    wanted = floating_dtype("pareto", dtype)
    lengths = parameter_shape("pareto", shape, b)
    exponent = parameter("pareto", b, wanted)
    return lax.exp(primitive.div.bind(exponential(key, lengths, wanted), exponent))


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Lengths of vectors of two normal numbers of standard deviation ``scale``.

    Args: shape: Shape of the result, by default that of ``scale``.
    Returns: The samples.
    Example: fg.random.rayleigh(fg.random.key(0), 1.0) -> np.float64(1.3199855114875836)
    """
    refuse_sharding("rayleigh", out_sharding)
    wanted = floating_dtype("rayleigh", dtype)
    lengths = parameter_shape("rayleigh", shape, scale)
    length = lax.sqrt(lax.mul(lax.log(uniform(key, lengths, wanted)), -2.0))
    return primitive.mul.bind(parameter("rayleigh", scale, wanted), length)


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: int | Sequence[int] = (),
    dtype: Any = None,
) -> Array:
    """``scale`` times exponentially distributed numbers to the power ``1 / concentration``.

    Args: concentration: A scalar or an array that broadcasts to ``shape``.
    Returns: The samples.
    Example: fg.random.weibull_min(fg.random.key(0), 1.0, 2.0) -> np.float64(0.7362544092711162)
    """
    wanted = floating_dtype("weibull_min", dtype)
    lengths = parameter_shape("weibull_min", shape, scale, concentration)
    exponent = primitive.div.bind(wanted.type(1), parameter("weibull_min", concentration, wanted))
    powered = primitive.power.bind(exponential(key, lengths, wanted), exponent)
    return primitive.mul.bind(powered, parameter("weibull_min", scale, wanted))


def maxwell(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Lengths of vectors of three normal numbers.

    Returns: The samples.
    Example: fg.random.maxwell(fg.random.key(0)) -> np.float64(1.9890699115189192)
    """
    refuse_sharding("maxwell", out_sharding)
    wanted = floating_dtype("maxwell", dtype)
    lengths = canonical_shape("maxwell", shape)
    vectors = normal(key, (*lengths, 3), wanted)
    return lax.sqrt(lax.reduce_sum(lax.square(vectors), (len(lengths),)))


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: int | Sequence[int] | None = None,
    mode: str = "low",
    *,
    out_sharding: None = None,
) -> Array:
    """True with probability ``p``.

    Args:
        p: Probability, a floating scalar or an array that broadcasts to ``shape``. Its dtype
            decides which bits are drawn: a NumPy float32 gives JAX's default draws.
        shape: Shape of the result, by default that of ``p``.
        mode: ``"low"`` compares one uniform number, ``"high"`` two, which is exact for very
            small ``p``.
    Returns: Bools.
    Example: print(fg.random.bernoulli(fg.random.key(1), 0.25, (6,)).dtype) -> bool
    """
    refuse_sharding("bernoulli", out_sharding)
    if mode not in ("low", "high"):
        raise ArgumentError(f"random.bernoulli: mode must be 'low' or 'high', got {mode!r}.")
    probability = array_of("bernoulli", p)
    dtype = lax.dtype(probability)
    if dtype.kind != "f":
        raise DtypeError(f"random.bernoulli: p must be a floating probability, got {dtype}.")
    lengths = parameter_shape("bernoulli", shape, probability)
    probability = primitive.convert(probability, dtype)
    if mode == "low":
        return primitive.less.bind(uniform(key, lengths, dtype), probability)
    pair = uniform(key, (2, *lengths), dtype)
    coarse, fine = (lax.index_in_dim(pair, i, keepdims=False) for i in (0, 1))
    fine = lax.mul(fine, dtype.type(float(np.finfo(dtype).eps)))
    return primitive.less.bind(fine, primitive.sub.bind(probability, coarse))


def rademacher(
    key: ArrayLike, shape: int | Sequence[int] = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """1 or -1 with probability one half each.

    Args: dtype: int64 by default; any signed or floating dtype.
    Returns: The signs, by the same bits for every dtype: those of JAX in its 64-bit mode.
    Example: fg.random.rademacher(fg.random.key(0), (3,)) -> array([ 1,  1, -1])
    """
    refuse_sharding("rademacher", out_sharding)
    wanted = sample_dtype(dtype, INT64)
    is_plus = bernoulli(key, 0.5, canonical_shape("rademacher", shape))
    ones = np.ones((), wanted)[()]
    return primitive.select.bind(is_plus, ones, wanted.type(-1))


def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Number of trials up to the first success of probability ``p``.

    Args:
        shape: Shape of the result, by default that of ``p``.
        dtype: Integer dtype, by default int64.
    Returns: Integers, at least 1.
    Example: fg.random.geometric(fg.random.key(0), 0.5) -> np.int64(2)
    """
    refuse_sharding("geometric", out_sharding)
    wanted = sample_dtype(dtype, INT64)
    probability = array_of("geometric", p)
    lengths = parameter_shape("geometric", shape, probability)
    u = uniform(key, lengths, floating_dtype("geometric", lax.dtype(probability)))
    # log(0) is avoided: 0 stands for 1, which the interval lacks.
    u = primitive.select.bind(lax.eq(u, 0.0), primitive.ones_like(u), u)
    failures = broadcast_to(lax.log1p(lax.neg(probability)), lengths)
    trials = lax.add(lax.floor(lax.div(lax.log(u), failures)), 1.0)
    return primitive.convert(trials, wanted)
