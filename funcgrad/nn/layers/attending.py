"""Multi-head attention as a layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import random
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.nn import initializers
from funcgrad.nn.attention import dot_product_attention
from funcgrad.nn.initializers import Initializer
from funcgrad.nn.layers.base import IN_TRAINING, Array, Layer, Tree, entries, typed
from funcgrad.nn.linear import dense_of
from funcgrad.nn.regularization import checked_rate, drops
from funcgrad.primitives.shape import reshape, shape_of

_GLOROT = initializers.glorot_uniform()


def attention(
    heads: int,
    *,
    causal: bool = False,
    features: int | None = None,
    out_features: int | None = None,
    kv_heads: int | None = None,
    bias: bool = True,
    dropout: float = 0.0,
    kernel_init: Initializer = _GLOROT,
    bias_init: Initializer = initializers.zeros,
    dtype: Any = np.float32,
) -> Layer:
    """Multi-head attention, of a sequence to itself or to another one.

    Inputs are ``x`` for attention of a sequence to itself, ``x, memory`` for that to another one,
    and ``x, memory, mask`` with bools that broadcast to (batch, heads, queries, keys), True where
    a key is seen; ``memory`` may be ``None``.

    Args:
        heads: Number of heads.
        causal: Whether a place sees none that come later.
        features: Length of all heads together, by default that of ``x``.
        out_features: Length of the outputs, by default that of ``x``.
        kv_heads: Number of heads of keys and values, a divisor of ``heads``, by default equal.
        bias: Whether the four products have a bias.
        dropout: Probability with which a weight is dropped in training, for which ``apply`` then
            needs a random key.
    Returns: A layer from (batch, length, inputs) to (batch, length, out_features). Its parameters
        ``query``, ``key``, ``value`` and ``out`` are those of `dense` layers: head ``i`` has the
        ``i``-th part of the outputs of the first three. They are the transposed parts of the
        ``in_proj_weight`` of PyTorch's ``MultiheadAttention``.

    Raises:
        ArgumentError: If numbers of heads do not divide each other, or ``dropout`` is no
            probability; on ``apply`` in training, if it needs a key.
        ShapeError: On ``init``, if the heads do not divide the features.

    Source:
        Vaswani and others, arXiv:1706.03762.

    Example:
        >>> layer, x = fg.nn.layers.attention(4, causal=True), np.ones((2, 10, 32), np.float32)
        >>> params, state = layer.init(fg.random.key(0), x)
        >>> layer.apply(params, state, x)[0].shape
        (2, 10, 32)
    """
    name = f"layers.attention({heads})"
    shared = heads if kv_heads is None else kv_heads
    checked_rate(name, dropout)
    if heads < 1 or shared < 1 or heads % shared:
        raise located(
            ArgumentError, f"{name}: {shared} heads of keys and values do not divide {heads} heads."
        )

    def init(key: Array, x: Any, memory: Any = None, mask: Any = None) -> tuple[Tree, Tree]:
        inputs = _sequence(name, x)
        others = inputs if memory is None else _sequence(name, memory)
        width = inputs if features is None else features
        if width % heads:
            raise located(
                ShapeError, f"{name}: {heads} heads do not divide {width} features: give features=."
            )
        narrow = width // heads * shared
        outputs = inputs if out_features is None else out_features
        shapes = {
            "query": (inputs, width),
            "key": (others, narrow),
            "value": (others, narrow),
            "out": (width, outputs),
        }
        keys = random.split(key, (len(shapes), 2))
        params = {
            part: {
                "kernel": kernel_init(keys[i, 0], shape, dtype),
                **({"bias": bias_init(keys[i, 1], shape[1:], dtype)} if bias else {}),
            }
            for i, (part, shape) in enumerate(shapes.items())
        }
        return params, ()

    def apply(
        params: Tree,
        state: Tree,
        x: Array,
        memory: Array = None,
        mask: Array = None,
        *,
        key: Array = None,
        train: bool = False,
    ) -> tuple[Array, Tree]:
        parts = ("query", "key", "value", "out")
        given = dict(zip(parts, entries(name, "params", params, *parts), strict=True))

        def product(part: str, y: Array) -> Array:
            names = ("kernel", "bias") if bias else ("kernel",)
            kernel, *offset = entries(name, f"params[{part!r}]", given[part], *names)
            return dense_of(name, y, kernel, offset[0] if bias else None)

        def split(y: Array, count: int) -> Array:
            shape = shape_of(y)
            return reshape(y, (*shape[:-1], count, shape[-1] // count))

        source = x if memory is None else memory
        _sequence(name, x), _sequence(name, source)
        rate = dropout if train and drops(name, dropout, key, IN_TRAINING) else 0.0
        y = dot_product_attention(
            split(product("query", x), heads),
            split(product("key", source), shared),
            split(product("value", source), shared),
            mask=mask,
            is_causal=causal,
            dropout_rate=rate,
            dropout_key=key,
        )
        merged = reshape(y, (*shape_of(y)[:-2], shape_of(y)[-2] * shape_of(y)[-1]))
        return product("out", merged), state

    return Layer(init, apply)


def _sequence(name: str, x: Any) -> int:
    """Number of features of a sequence, or of a batch of them."""
    struct = typed(name, x)
    if struct.ndim not in (2, 3):
        raise located(
            ShapeError, f"{name} needs sequences (batch, length, features), got {struct}."
        )
    return struct.shape[-1]
