"""Layers without parameters: pooling, flattening, activations, dropout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcgrad import lax
from funcgrad.base.annotations import ShapeLike
from funcgrad.errors import ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.nn import pooling, regularization
from funcgrad.nn.layers.base import IN_TRAINING, Array, Layer, Tree, as_layer, function_layer
from funcgrad.nn.pooling import Padding
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.shape import reshape, shape_of


def activation(f: Callable[..., Any]) -> Layer:
    """A function of arrays as a layer, which `sequential` makes of functions by itself.

    Args: f: A function, such as `nn.relu`.
    Returns: A layer without parameters.
    Example: print(fg.nn.layers.activation(np.tanh).apply((), (), 0.0)[0]) -> 0.0
    """
    return as_layer("layers.activation", f)


def flatten() -> Layer:
    """All axes after the first, the batch, as one.

    Returns: A layer from (batch, ...) to (batch, features).
    Example: fg.nn.layers.flatten().apply((), (), np.ones((4, 5, 5, 2)))[0].shape -> (4, 50)
    """

    def flat(x: Array) -> Array:
        x = as_value(x, "layers.flatten()")
        shape = shape_of(x)
        if not shape:
            raise located(ShapeError, "layers.flatten() needs an input with a batch axis.")
        return reshape(x, (shape[0], math.prod(shape[1:])))

    return function_layer(flat)


def max_pool(
    window_shape: ShapeLike, strides: ShapeLike | None = None, padding: Padding = "VALID"
) -> Layer:
    """The largest element of every window, `nn.max_pool`.

    Args: padding: ``"VALID"``, ``"SAME"``, an integer, or one integer or pair for every axis.
    Returns: A layer from (batch, ..., features) to (batch, ..., features).
    Example: fg.nn.layers.max_pool((2, 2), strides=2).apply((), (), np.ones((4, 8, 8, 3)))[0].shape
        -> (4, 4, 4, 3)
    """
    name = f"layers.max_pool({window_shape})"
    return function_layer(
        lambda x: pooling.pooled_extreme(name, lax.max, x, window_shape, strides, padding)
    )


def min_pool(
    window_shape: ShapeLike, strides: ShapeLike | None = None, padding: Padding = "VALID"
) -> Layer:
    """The smallest element of every window, `nn.min_pool`; otherwise as `max_pool`.

    Args: padding: ``"SAME"`` or ``"VALID"``.

    Example:
        >>> (lambda layer, x: layer.apply(*layer.init(fg.random.key(0), x), x)[0])(
        ...     fg.nn.layers.min_pool((2,), (2,)), np.arange(4.0).reshape(1, 4, 1)
        ... )
        array([[[0.],
                [2.]]])
    """
    name = f"layers.min_pool({window_shape})"
    return function_layer(
        lambda x: pooling.pooled_extreme(name, lax.min, x, window_shape, strides, padding)
    )


def avg_pool(
    window_shape: ShapeLike,
    strides: ShapeLike | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Layer:
    """The mean element of every window, `nn.avg_pool`.

    Args:
        padding: As in `max_pool`.
        count_include_pad: Whether zeros beyond the ends are counted.
    Returns: A layer from (batch, ..., features) to (batch, ..., features).

    Example:
        >>> (lambda layer, x: layer.apply(*layer.init(fg.random.key(0), x), x)[0])(
        ...     fg.nn.layers.avg_pool((2,), (2,)), np.arange(4.0).reshape(1, 4, 1)
        ... )
        array([[[0.5],
                [2.5]]])
    """
    name = f"layers.avg_pool({window_shape})"
    return function_layer(
        lambda x: pooling.pooled_mean(name, x, window_shape, strides, padding, count_include_pad)
    )


def dropout(rate: float) -> Layer:
    """In training `nn.dropout`; otherwise nothing.

    Args: rate: Probability with which an element is dropped.
    Returns: A layer that needs a random key in training: ``apply(..., key=key, train=True)``.
    Raises: ArgumentError: If the rate is no probability; on ``apply`` in training, without a key.

    Example:
        >>> layer, x = fg.nn.layers.dropout(0.5), np.ones(4)
        >>> print(layer.apply((), (), x)[0])
        [1. 1. 1. 1.]
        >>> print(layer.apply((), (), x, key=fg.random.key(1), train=True)[0])
        [2. 2. 0. 0.]
    """
    name = f"layers.dropout({rate})"
    regularization.checked_rate(name, rate)

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        return (), ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        if not train or not regularization.drops(name, rate, key, IN_TRAINING):
            return x, state
        return regularization.dropout(key, x, rate), state

    return Layer(init, apply)
