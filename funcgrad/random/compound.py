"""Distributions that stem from gamma-distributed numbers, and other composed ones.

Gamma-distributed numbers are drawn by rejection; their derivative in the shape parameter is the
implicit one, that of the quantile of a fixed probability.
"""

from __future__ import annotations

from typing import Any

from funcgrad import lax
from funcgrad.base.annotations import ShapeLike
from funcgrad.errors import ShapeError
from funcgrad.lax.operands import Array, ArrayLike
from funcgrad.primitives import elementwise as primitive
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.shape import broadcast_to
from funcgrad.random.distributions import exponential, maxwell, normal, rademacher
from funcgrad.random.keys import canonical_shape, parts_of, refuse_sharding
from funcgrad.random.parameters import floating_dtype, parameter, parameter_shape
from funcgrad.random.rejection import gamma_numbers
from funcgrad.random.uniform import uniform


def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Logarithms of gamma-distributed numbers, which do not vanish however small ``a`` is.

    Args: shape: Shape of the result, by default that of ``a``.
    Returns: The samples, once differentiable in ``a``.

    Example:
        >>> x = fg.random.loggamma(fg.random.key(0), 1e-3, (1000,))
        >>> print(bool((x > -1e5).all()), bool(x.min() < -1e3))
        True True
    """
    refuse_sharding("loggamma", out_sharding)
    wanted = floating_dtype("loggamma", dtype)
    lengths = parameter_shape("loggamma", shape, a)
    alpha = broadcast_to(parameter("loggamma", a, wanted), lengths)
    return gamma_numbers("loggamma", key, alpha, is_log=True)


def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Positive numbers with a density proportional to ``x**(a - 1) exp(-x)``.

    Args: shape: Shape of the result, by default that of ``a``.
    Returns: The samples, once differentiable in ``a``.

    Example:
        >>> x = fg.random.gamma(fg.random.key(0), 3.0, (10_000,))
        >>> print(bool(abs(x.mean() - 3) < 0.05), bool(abs(x.var() - 3) < 0.2))
        True True
    """
    refuse_sharding("gamma", out_sharding)
    wanted = floating_dtype("gamma", dtype)
    lengths = parameter_shape("gamma", shape, a)
    alpha = broadcast_to(parameter("gamma", a, wanted), lengths)
    return gamma_numbers("gamma", key, alpha, is_log=False)


def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Numbers in (0, 1) with a density proportional to ``x**(a - 1) (1 - x)**(b - 1)``.

    Args:
        b: Positive, likewise.
        shape: Shape of the result, by default that of the parameters.
    Returns: The samples, once differentiable in ``a`` and ``b``.
    Example: fg.random.beta(fg.random.key(0), 2.0, 3.0) -> np.float64(0.3279560651142136)
    """
    refuse_sharding("beta", out_sharding)
    wanted = floating_dtype("beta", dtype)
    lengths = parameter_shape("beta", shape, a, b)
    first, second = parts_of(key)
    return lax.logistic(
        lax.sub(loggamma(first, a, lengths, wanted), loggamma(second, b, lengths, wanted))
    )


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Vectors of positive numbers whose sum is 1: gamma-distributed ones, divided by their sum.

    Args:
        alpha: Shape parameters, positive, ``(..., n)``.
        shape: Shape of the result without its last axis, by default that of ``alpha``.
    Returns: The samples, ``(*shape, n)``, differentiable in ``alpha``.
    Raises: ShapeError: If ``alpha`` has no axes.
    Example: fg.random.dirichlet(fg.random.key(0), np.ones(3))
        -> array([0.15755158, 0.11547349, 0.72697493])
    """
    refuse_sharding("dirichlet", out_sharding)
    wanted = floating_dtype("dirichlet", dtype)
    own = shape_of(alpha)
    if not own:
        raise ShapeError("random.dirichlet: alpha needs at least one axis, that of the numbers.")
    lead = own[:-1] if shape is None else canonical_shape("dirichlet", shape)
    logs = loggamma(key, alpha, (*lead, own[-1]), wanted)
    axis = len(lead)
    largest = primitive.stop_gradient.bind(lax.expand_dims(lax.reduce_max(logs, (axis,)), (axis,)))
    parts = lax.exp(lax.sub(logs, largest))
    return lax.div(parts, lax.expand_dims(lax.reduce_sum(parts, (axis,)), (axis,)))


def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Sums of squares of ``df`` normal numbers.

    Args: shape: Shape of the result, by default that of ``df``.
    Returns: The samples, differentiable in ``df``.
    Example: fg.random.chisquare(fg.random.key(0), 3.0) -> np.float64(1.813893477449012)
    """
    refuse_sharding("chisquare", out_sharding)
    wanted = floating_dtype("chisquare", dtype)
    half = primitive.div.bind(parameter("chisquare", df, wanted), wanted.type(2))
    logs = loggamma(key, half, parameter_shape("chisquare", shape, df), wanted)
    return lax.mul(lax.exp(logs), 2.0)


def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike = (),
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Student's t: normal numbers over the root of the mean of ``df`` squares of others.

    Returns: The samples, differentiable in ``df``.
    Example: fg.random.t(fg.random.key(0), 3.0) -> np.float64(1.4011588834378865)
    """
    refuse_sharding("t", out_sharding)
    wanted = floating_dtype("t", dtype)
    lengths = parameter_shape("t", shape or None, df)
    first, second = parts_of(key)
    half = primitive.div.bind(parameter("t", df, wanted), wanted.type(2))
    ratio = primitive.div.bind(half, gamma(second, half, lengths, wanted))
    return primitive.mul.bind(normal(first, lengths, wanted), lax.sqrt(ratio))


def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Ratios of the means of ``dfnum`` and of ``dfden`` squares of normal numbers.

    Args:
        dfnum: Degrees of freedom above, positive, broadcasting to ``shape``.
        dfden: Degrees of freedom below, likewise.
        shape: Shape of the result, by default that of the parameters.
    Returns: The samples, differentiable in the parameters.
    Example: fg.random.f(fg.random.key(0), 2.0, 3.0) -> np.float64(1.6796610712622282)
    """
    refuse_sharding("f", out_sharding)
    wanted = floating_dtype("f", dtype)
    lengths = parameter_shape("f", shape, dfnum, dfden)
    below, above = (
        primitive.div.bind(chisquare(k, df, lengths, wanted), parameter("f", df, wanted))
        for k, df in zip(parts_of(key), (dfden, dfnum), strict=True)
    )
    return lax.div(above, below)


def generalized_normal(
    key: ArrayLike, p: float, shape: ShapeLike = (), dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Numbers with a density proportional to ``exp(-|x|**p)``.

    Args: p: Exponent, positive.
    Returns: The samples.
    Example: fg.random.generalized_normal(fg.random.key(0), 2.0) -> np.float64(0.8527956619024)
    """
    refuse_sharding("generalized_normal", out_sharding)
    wanted = floating_dtype("generalized_normal", dtype)
    lengths = canonical_shape("generalized_normal", shape)
    first, second = parts_of(key)
    root = primitive.div.bind(wanted.type(1), parameter("generalized_normal", p, wanted))
    size = primitive.power.bind(gamma(first, root, lengths, wanted), root)
    return lax.mul(rademacher(second, lengths, wanted), size)


def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Points of the ball of radius 1, uniformly distributed.

    Args:
        d: Dimension.
        p: The norm that is at most 1.
        shape: Shape of the result without its last axis.
    Returns: The points, ``(*shape, d)``.
    Example: fg.random.ball(fg.random.key(0), 2) -> array([-0.87015073, -0.45473046])
    """
    refuse_sharding("ball", out_sharding)
    wanted = floating_dtype("ball", dtype)
    lengths = canonical_shape("ball", shape)
    first, second = parts_of(key)
    point = generalized_normal(first, p, (*lengths, d), wanted)
    exponent, axis = parameter("ball", p, wanted), len(lengths)
    total = lax.reduce_sum(primitive.power.bind(lax.abs(point), exponent), (axis,))
    total = lax.add(total, exponential(second, lengths, wanted))
    size = primitive.power.bind(total, primitive.div.bind(wanted.type(1), exponent))
    return lax.div(point, lax.expand_dims(size, (axis,)))


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Numbers whose logarithms are normal, of mean 0 and standard deviation ``sigma``.

    Args:
        sigma: A scalar or an array that broadcasts to ``shape``.
        shape: Shape of the result, by default that of ``sigma``.
    Returns: The samples, differentiable in ``sigma``.
    Example: fg.random.lognormal(fg.random.key(0)) -> np.float64(0.813961558536697)
    """
    refuse_sharding("lognormal", out_sharding)
    wanted = floating_dtype("lognormal", dtype)
    lengths = parameter_shape("lognormal", shape, sigma)
    scaled = primitive.mul.bind(normal(key, lengths, wanted), parameter("lognormal", sigma, wanted))
    return lax.exp(scaled)


def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: ShapeLike = (), dtype: Any = None
) -> Array:
    """Maxwell-distributed numbers with a random sign, scaled and shifted.

    Args:
        loc: Centre, a scalar or an array that broadcasts to ``shape``.
        scale: Factor, likewise.
    Returns: The samples, differentiable in ``loc`` and ``scale``.
    Example: fg.random.double_sided_maxwell(fg.random.key(0), 0.0, 1.0)
        -> np.float64(1.984612042376157)
    """
    wanted = floating_dtype("double_sided_maxwell", dtype)
    lengths = parameter_shape("double_sided_maxwell", shape or None, loc, scale)
    first, second = parts_of(key)
    signed = lax.mul(maxwell(first, lengths, wanted), rademacher(second, lengths, wanted))
    factor = parameter("double_sided_maxwell", scale, wanted)
    centre = parameter("double_sided_maxwell", loc, wanted)
    return primitive.add.bind(primitive.mul.bind(signed, factor), centre)


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Numbers whose density rises linearly from ``left`` to ``mode`` and falls to ``right``.

    Args:
        left: Least number, a scalar or an array that broadcasts to ``shape``.
        mode: Most likely number, likewise.
        right: Greatest number, likewise.
        shape: Shape of the result, by default that of the parameters.
    Returns: The samples, differentiable in the parameters.
    Example: fg.random.triangular(fg.random.key(0), 0.0, 0.5, 1.0)
        -> np.float64(0.45741508048838225)
    """
    refuse_sharding("triangular", out_sharding)
    wanted = floating_dtype("triangular", dtype)
    lengths = parameter_shape("triangular", shape, left, mode, right)
    low, peak, high = (
        broadcast_to(parameter("triangular", x, wanted), lengths) for x in (left, mode, right)
    )
    u = uniform(key, lengths, wanted)
    span, rising, falling = lax.sub(high, low), lax.sub(peak, low), lax.sub(high, peak)
    up = lax.add(low, lax.sqrt(lax.mul(lax.mul(u, span), rising)))
    down = lax.sub(high, lax.sqrt(lax.mul(lax.mul(lax.sub(1.0, u), span), falling)))
    return lax.select(lax.lt(u, lax.div(rising, span)), up, down)


def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Inverse Gaussian numbers: when a motion with drift first covers a distance of 1.

    Args:
        mean: Mean, positive, a scalar or an array that broadcasts to ``shape``.
        shape: Shape of the result, by default that of ``mean``.

    Returns:
        The samples, of scale 1. Which of the two roots is taken is a choice, whose derivative is
        not counted.
    Example: fg.random.wald(fg.random.key(0), 1.0) -> np.float64(0.18700294186884833)
    """
    refuse_sharding("wald", out_sharding)
    wanted = floating_dtype("wald", dtype)
    lengths = parameter_shape("wald", shape, mean)
    mu = broadcast_to(parameter("wald", mean, wanted), lengths)
    first, second = parts_of(key)
    v, z = normal(first, lengths, wanted), uniform(second, lengths, wanted)
    y = lax.mul(lax.mul(v, v), mu)
    # The smaller root of a quadratic equation, without cancellation; both multiply to mean**2.
    root = lax.sqrt(lax.add(lax.mul(y, y), lax.mul(y, 4.0)))
    smaller = lax.div(lax.mul(mu, 2.0), lax.add(lax.add(y, 2.0), root))
    larger = lax.div(lax.mul(mu, mu), smaller)
    return lax.select(lax.le(z, lax.div(mu, lax.add(mu, smaller))), smaller, larger)


__all__ = [
    "ball", "beta", "chisquare", "dirichlet", "double_sided_maxwell", "f", "gamma",
    "generalized_normal", "loggamma", "lognormal", "t", "triangular", "wald",
]  # fmt: skip
