"""Layers that mix features: dense, embedding, convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import random
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.nn import initializers, linear
from funcgrad.nn.initializers import Initializer
from funcgrad.nn.layers.base import Array, Layer, Tree, entries, typed
from funcgrad.nn.linear import PaddingMode
from funcgrad.nn.pooling import Padding

_LECUN = initializers.lecun_normal()


def dense(
    features: int,
    *,
    bias: bool = True,
    kernel_init: Initializer = _LECUN,
    bias_init: Initializer = initializers.zeros,
    dtype: Any = np.float32,
) -> Layer:
    """Every output a weighted sum of all inputs: ``x @ kernel + bias``.

    Returns: A layer from (..., inputs) to (..., features), with parameters ``kernel`` (inputs,
        features) and ``bias`` (features,).

    Example:
        >>> layer = fg.nn.layers.dense(3)
        >>> params, state = layer.init(fg.random.key(0), np.ones((5, 2), np.float32))
        >>> y, state = layer.apply(params, state, np.ones((5, 2), np.float32))
        >>> print(params["kernel"].shape, y.shape, y.dtype)
        (2, 3) (5, 3) float32
    """
    name = f"layers.dense({features})"

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        inputs = _last_axis(name, x)
        return _kernel_and_bias(key, (inputs, features), bias, kernel_init, bias_init, dtype), ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        kernel, offset = _given(name, params, bias)
        return linear.dense_of(name, x, kernel, offset), state

    return Layer(init, apply)


def embedding(
    n: int, features: int, *, embedding_init: Initializer | None = None, dtype: Any = np.float32
) -> Layer:
    """A vector for every integer, a row of a table.

    Args:
        n: Number of rows: the integers are 0 to n - 1.
        features: Length of the vectors.
        embedding_init: Initial table, by default normal with variance ``1 / features``.
    Returns: A layer from integers (...) to (..., features), with the parameter ``embedding``
        (n, features). An integer without a row raises
        `OutOfBoundsError`, or gives nan if it is traced.

    Example:
        >>> layer, words = fg.nn.layers.embedding(100, 8), np.array([[3, 1, 4]])
        >>> params, state = layer.init(fg.random.key(0), words)
        >>> layer.apply(params, state, words)[0].shape
        (1, 3, 8)
    """
    name = f"layers.embedding({n}, {features})"
    table_init = embedding_init or initializers.normal(1 / math.sqrt(features))

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        return {"embedding": table_init(key, (n, features), dtype)}, ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        (table,) = entries(name, "params", params, "embedding")
        return linear.embed_of(name, table, x), state

    return Layer(init, apply)


def conv(
    features: int,
    kernel_shape: int | Sequence[int],
    *,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    padding_mode: PaddingMode = "zeros",
    bias: bool = True,
    kernel_init: Initializer = _LECUN,
    bias_init: Initializer = initializers.zeros,
    dtype: Any = np.float32,
) -> Layer:
    """Convolution: the same weighted sum at every place, as `nn.conv`.

    Args:
        kernel_shape: Lengths of the kernel along all axes along which it slides; an integer for
            one axis.
        padding: ``"SAME"``, ``"VALID"``, ``"SAME_LOWER"``, ``"CAUSAL"``, an integer, or one integer
            or pair (low, high) for every axis; flax's ``"CIRCULAR"`` and ``"REFLECT"``.
        groups: Into how many groups features are divided; as many as inputs for a depthwise one.
        padding_mode: What is beyond the ends: ``"zeros"``, ``"circular"``, ``"reflect"`` or
            ``"replicate"``.
        kernel_init: Initial kernel, `initializers`; an output's number of inputs includes the
            taps of the kernel.
    Returns: A layer from (batch, ..., inputs) to (batch, ..., features), with parameters ``kernel``
        ``(*kernel_shape, inputs / groups, features)`` and ``bias`` (features,).

    Example:
        >>> from funcgrad.nn import layers
        >>> layer, images = layers.conv(6, (5, 5), strides=2), np.ones((4, 28, 28, 1), np.float32)
        >>> params, state = layer.init(fg.random.key(0), images)
        >>> layer.apply(params, state, images)[0].shape
        (4, 14, 14, 6)
    """
    window = _window(kernel_shape)
    name = f"layers.conv({features}, {window})"
    linear.checked_mode(name, padding_mode)
    if groups < 1 or features % groups:
        raise located(ArgumentError, f"{name}: {groups} groups do not divide {features} features.")

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        inputs = _last_axis(name, x, len(window))
        if inputs % groups:
            raise located(
                ShapeError,
                f"{name}: {groups} groups do not divide the {inputs} features of its input.",
            )
        shape = (*window, inputs // groups, features)
        return _kernel_and_bias(key, shape, bias, kernel_init, bias_init, dtype), ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        kernel, offset = _given(name, params, bias)
        y = linear.conv_of(
            name, x, kernel, offset, strides, padding, dilation, groups, padding_mode
        )
        return y, state

    return Layer(init, apply)


def conv_transpose(
    features: int,
    kernel_shape: int | Sequence[int],
    *,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    dilation: int | Sequence[int] = 1,
    bias: bool = True,
    kernel_init: Initializer = _LECUN,
    bias_init: Initializer = initializers.zeros,
    dtype: Any = np.float32,
) -> Layer:
    """Convolution that spreads its input, as `nn.conv_transpose`: images become larger.

    Args:
        kernel_shape: Lengths of the kernel along all axes; an integer for one axis.
        strides: Distance to which neighbouring elements are spread.
        padding: ``"SAME"`` for a result ``strides`` times as long, ``"VALID"``, or what is around
            the spread elements.
    Returns: A layer from (batch, ..., inputs) to (batch, ..., features), with parameters ``kernel``
        ``(*kernel_shape, inputs, features)`` and ``bias`` (features,).

    Example:
        >>> layer, images = fg.nn.layers.conv_transpose(3, (4, 4), strides=2), np.ones((1, 7, 7, 8))
        >>> params, state = layer.init(fg.random.key(0), images)
        >>> layer.apply(params, state, images)[0].shape
        (1, 14, 14, 3)
    """
    window = _window(kernel_shape)
    name = f"layers.conv_transpose({features}, {window})"

    def init(key: Array, x: Any) -> tuple[Tree, Tree]:
        shape = (*window, _last_axis(name, x, len(window)), features)
        return _kernel_and_bias(key, shape, bias, kernel_init, bias_init, dtype), ()

    def apply(
        params: Tree, state: Tree, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Array, Tree]:
        kernel, offset = _given(name, params, bias)
        y = linear.conv_transpose_of(name, x, kernel, offset, strides, padding, dilation)
        return y, state

    return Layer(init, apply)


def _given(name: str, params: Tree, has_bias: bool) -> tuple[Array, Array | None]:
    """Kernel and bias."""
    if has_bias:
        kernel, offset = entries(name, "params", params, "kernel", "bias")
        return kernel, offset
    return entries(name, "params", params, "kernel")[0], None


def _window(kernel_shape: int | Sequence[int]) -> tuple[int, ...]:
    is_one = isinstance(kernel_shape, int | np.integer)
    return (int(kernel_shape),) if is_one else tuple(kernel_shape)  # type: ignore[arg-type]


def _last_axis(name: str, x: Any, places: int = 0) -> int:
    """Number of features of an input with at least so many axes before them."""
    struct = typed(name, x)
    if struct.ndim < places + 1:
        raise located(
            ShapeError,
            f"{name} needs an input with {places} axes along which windows slide, and one of "
            f"features, got {struct}."
            if places
            else f"{name} needs an input with an axis of features, got {struct}.",
        )
    return struct.shape[-1]


def _kernel_and_bias(
    key: Array,
    shape: tuple[int, ...],
    has_bias: bool,
    kernel_init: Initializer,
    bias_init: Initializer,
    dtype: Any,
) -> dict[str, Array]:
    if not has_bias:
        return {"kernel": kernel_init(key, shape, dtype)}
    kernel_key, bias_key = random.split(key)
    return {
        "kernel": kernel_init(kernel_key, shape, dtype),
        "bias": bias_init(bias_key, shape[-1:], dtype),
    }
