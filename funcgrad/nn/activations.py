"""Activation functions: elementwise, in the dtype of their argument, safe far from 0.

Integers become floating as in NumPy's ufuncs. Where a formula holds only on one side, the argument
on the other side is replaced before it is evaluated, so that derivatives of every order are finite.
"""

from __future__ import annotations

import math
from typing import Any

from funcgrad.base.signatures import share
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import is_complex
from funcgrad.errors import ShapeError
from funcgrad.numpy.elementwise import logaddexp
from funcgrad.numpy.promotion import as_value, normalize_axis, strong
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import special
from funcgrad.primitives.shape import Slice, shape_of
from funcgrad.scipy.exponentials import floating

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid",
    "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh",
]  # fmt: skip

Array = Any
ArrayLike = Any

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def identity(x: ArrayLike) -> Array:
    """``x`` itself, as an array.

    Example: fg.nn.identity(np.array([-2.0, 0.5])) -> array([-2. ,  0.5])
    """
    return strong(as_value(x, "identity"))


def relu(x: ArrayLike) -> Array:
    """Rectified linear unit, ``max(x, 0)``; its derivative at 0 is 0.

    Args: x: Array of real numbers; integers stay integers.
    Returns: An array of the type of ``x``.
    Example: print(fg.nn.relu(np.array([-1.0, 2.0])), fg.grad(fg.nn.relu)(0.0)) -> [0. 2.] 0.0
    """
    return p.relu.bind(strong(as_value(x, "relu")))


def relu6(x: ArrayLike) -> Array:
    """``min(max(x, 0), 6)``; its derivative at the two kinks is 0.

    Example: fg.nn.relu6(np.array([-2.0, 0.5])) -> array([0. , 0.5])
    """
    (x,) = floating("relu6", x)
    zero, six = p.zero_of(x), aval_of(x).dtype.type(6)
    low = p.select.bind(p.less_equal.bind(x, zero), zero, x)
    return p.select.bind(p.greater_equal.bind(x, six), six, low)


def _clipped(x: Array, low: float, high: float) -> Array:
    scalar = aval_of(x).dtype.type
    return p.minimum.bind(p.maximum.bind(x, scalar(low)), scalar(high))


def sigmoid(x: ArrayLike) -> Array:
    """Logistic function, ``1 / (1 + exp(-x))``.

    Example: fg.nn.sigmoid(np.array([-2.0, 0.5])) -> array([0.11920292, 0.62245933])
    """
    (x,) = floating("sigmoid", x)
    return p.logistic.bind(x)


def log_sigmoid(x: ArrayLike) -> Array:
    """Logarithm of `sigmoid`, accurate for very negative ``x``.

    Example: fg.nn.log_sigmoid(np.array([-2.0, 0.5])) -> array([-2.12692801, -0.47407698])
    """
    (x,) = floating("log_sigmoid", x)
    return _log_logistic(x)


def _log_logistic(x: Array) -> Array:
    """The logarithm of the logistic function, of complex numbers the principal branch of it."""
    if is_complex(aval_of(x).dtype):
        return -logaddexp(p.zero_of(x), -x)
    return special.log_expit.bind(x)


def softplus(x: ArrayLike) -> Array:
    """``log(1 + exp(x))``, the smooth form of `relu`.

    Returns: Positive numbers for real ones, relatively accurate everywhere.
    Example: print(fg.nn.softplus(1e4), fg.grad(fg.nn.softplus)(1e4)) -> 10000.0 1.0
    """
    (x,) = floating("softplus", x)
    return -_log_logistic(-x)


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2``: like `softplus`, without exponentials.

    Args:
        x: Array of real numbers.
        b: Positive smoothness.
    Returns: Positive numbers.
    Example: fg.nn.squareplus(np.array([-2.0, 0.5])) -> array([0.41421356, 1.28077641])
    """
    x, b = floating("squareplus", x, b)
    return 0.5 * (x + p.sqrt.bind(x * x + b))


def soft_sign(x: ArrayLike) -> Array:
    """``x / (1 + |x|)``.

    Example: fg.nn.soft_sign(np.array([-2.0, 0.5])) -> array([-0.66666667,  0.33333333])
    """
    (x,) = floating("soft_sign", x)
    return x / (1 + p.absolute.bind(x))


def silu(x: ArrayLike) -> Array:
    """``x sigmoid(x)``, also called swish.

    Example: fg.nn.silu(np.array([-2.0, 0.5])) -> array([-0.23840584,  0.31122967])
    """
    (x,) = floating("silu", x)
    return x * p.logistic.bind(x)


swish = silu


def mish(x: ArrayLike) -> Array:
    """``x tanh(softplus(x))``.

    Example: fg.nn.mish(np.array([-2.0, 0.5])) -> array([-0.25250148,  0.37524521])
    """
    (x,) = floating("mish", x)
    return x * p.tanh.bind(softplus(x))


def tanh(x: ArrayLike) -> Array:
    """Hyperbolic tangent.

    Args: x: An array or a number.
    Example: fg.nn.tanh(np.array([-2.0, 0.5])) -> array([-0.96402758,  0.46211716])
    """
    (x,) = floating("tanh", x)
    return p.tanh.bind(x)


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """``x`` where positive, else ``alpha (exp(x) - 1)``.

    Args: x: Array of real numbers.
    Returns: An array of the shape of ``x``.
    Example: fg.nn.elu(np.array([-2.0, 0.5])) -> array([-0.86466472,  0.5       ])
    """
    x, alpha = floating("elu", x, alpha)
    is_positive, low = _split(x)
    return p.select.bind(is_positive, x, alpha * p.expm1.bind(low))


def _split(x: Array) -> tuple[Array, Array]:
    """Mask of positive entries of ``x``, and ``x`` with 0 elsewhere."""
    zero = p.zero_of(x)
    is_positive = p.greater.bind(x, zero)
    return is_positive, p.select.bind(is_positive, zero, x)


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """``x`` where positive, else ``alpha (exp(x / alpha) - 1)``: smooth for every ``alpha``.

    Args: x: Array of real numbers.
    Returns: An array of the shape of ``x``.
    Example: fg.nn.celu(np.array([-2.0, 0.5])) -> array([-0.86466472,  0.5       ])
    """
    x, alpha = floating("celu", x, alpha)
    is_positive, low = _split(x)
    return p.select.bind(is_positive, x, alpha * p.expm1.bind(low / alpha))


def selu(x: ArrayLike) -> Array:
    """Scaled `elu` whose constants keep mean 0 and variance 1 (arXiv:1706.02515).

    Args: x: An array or a number.
    Example: fg.nn.selu(np.array([-2.0, 0.5])) -> array([-1.52016647,  0.52535049])
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """``x`` times the probability that a standard normal number is below it (arXiv:1606.08415).

    Args:
        x: Array of real numbers.
        approximate: Whether the probability is that of the usual formula with ``tanh``.
    Returns: An array of the shape of ``x``.
    Example: print(round(float(fg.nn.gelu(1.0, approximate=False)), 6)) -> 0.841345
    """
    (x,) = floating("gelu", x)
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return x * (0.5 * (1 + p.tanh.bind(inner)))
    return x * (0.5 * special.erfc.bind(-math.sqrt(0.5) * x))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """``x`` where it is not negative, else ``negative_slope * x``.

    Args:
        x: Array of real numbers.
        negative_slope: Slope on the negative side.
    Returns: An array of the shape of ``x``; its derivative at 0 is 1.
    Example: fg.nn.leaky_relu(np.array([-2.0, 0.5])) -> array([-0.02,  0.5 ])
    """
    x, slope = floating("leaky_relu", x, negative_slope)
    return p.select.bind(p.greater_equal.bind(x, p.zero_of(x)), x, slope * x)


def hard_tanh(x: ArrayLike) -> Array:
    """``x`` limited to -1 .. 1; its derivative at the two kinks is 1.

    Example: fg.nn.hard_tanh(np.array([-2.0, 0.5])) -> array([-1. ,  0.5])
    """
    (x,) = floating("hard_tanh", x)
    one = p.ones_like(x)
    return p.select.bind(p.greater.bind(x, one), one, p.select.bind(p.less.bind(x, -one), -one, x))


def hard_sigmoid(x: ArrayLike) -> Array:
    """``relu6(x + 3) / 6``, a piecewise linear `sigmoid`.

    Example: fg.nn.hard_sigmoid(np.array([-2.0, 0.5])) -> array([0.16666667, 0.58333333])
    """
    (x,) = floating("hard_sigmoid", x)
    return relu6(x + 3) / 6


def hard_silu(x: ArrayLike) -> Array:
    """``x hard_sigmoid(x)``, also called hard swish.

    Example: fg.nn.hard_silu(np.array([-2.0, 0.5])) -> array([-0.33333333,  0.29166667])
    """
    (x,) = floating("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, ``x`` from 1 on, and the parabola ``(x + 1)**2 / 4`` in between.

    Example: fg.nn.sparse_plus(np.array([-2.0, 0.5])) -> array([0.    , 0.5625])
    """
    (x,) = floating("sparse_plus", x)
    one = p.ones_like(x)
    inner = _clipped(x, -1.0, 1.0) + 1
    return p.select.bind(p.greater_equal.bind(x, one), x, 0.25 * (inner * inner))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """``(x + 1) / 2`` limited to 0 .. 1: the derivative of `sparse_plus`.

    Example: fg.nn.sparse_sigmoid(np.array([-2.0, 0.5])) -> array([0.  , 0.75])
    """
    (x,) = floating("sparse_sigmoid", x)
    return 0.5 * _clipped(x + 1, 0.0, 2.0)


def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))`` for positive ``x``, accurate for small and for large ones.

    Example: fg.nn.log1mexp(np.array([0.5, 2.0])) -> array([-0.93275213, -0.14541346])
    """
    (x,) = floating("log1mexp", x)
    is_small = p.less.bind(x, aval_of(x).dtype.type(math.log(2)))
    one = p.ones_like(x)
    small, large = p.select.bind(is_small, x, one), p.select.bind(is_small, one, x)
    return p.select.bind(
        is_small, p.log.bind(-p.expm1.bind(-small)), p.log1p.bind(-p.exp.bind(-large))
    )


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated linear unit: the first half along ``axis`` times the `sigmoid` of the second half.

    Args:
        x: Array whose axis has an even length.
        axis: The axis, which is halved.
    Returns: An array of half the size.
    Raises: ShapeError: If the length of the axis is odd.
    Example: fg.nn.glu(np.array([1.0, 2.0, 0.0, 0.0])) -> array([0.5, 1. ])
    """
    (x,) = floating("glu", x)
    shape = shape_of(x)
    place = normalize_axis(axis, len(shape), "glu")
    half, is_odd = divmod(shape[place], 2)
    if is_odd:
        raise ShapeError(f"glu: axis {place} of {aval_of(x)} has an odd length and no halves.")
    value, gate = (_part(x, place, start, start + half) for start in (0, half))
    return value * p.logistic.bind(gate)


def _part(x: Array, axis: int, start: int, limit: int) -> Array:
    shape = shape_of(x)
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(limit if i == axis else n for i, n in enumerate(shape))
    return Slice(starts, limits, (1,) * len(shape)).bind(x)


share(__name__, {"x": "An array or a number, floating. The function is taken of each element."})
