"""Recurrent networks: cells, and the loop that carries them along a sequence.

A cell is a layer of the inputs ``(carry, x)`` whose outputs are ``(carry, y)``. Where the carry is
``None`` it is the one with which a sequence starts, of zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import lax, random
from funcgrad.api.staging import ShapeDtypeStruct, eval_shape
from funcgrad.base.pytree import tree_map
from funcgrad.core.avals import aval_of
from funcgrad.errors import ShapeError
from funcgrad.higher_order.staging import located
from funcgrad.nn import initializers
from funcgrad.nn.initializers import Initializer
from funcgrad.nn.layers.base import Array, Layer, Tree, entries, typed, types_of
from funcgrad.nn.linear import check_features
from funcgrad.numpy.contracting import matmul
from funcgrad.numpy.creating import full, zeros
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.promotion import as_value, normalize_axis
from funcgrad.numpy.shaping import moveaxis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.exponentials import floating

_LECUN = initializers.lecun_normal()
_ORTHOGONAL = initializers.orthogonal()


def rnn_cell(
    features: int,
    *,
    activation: Callable[[Any], Any] = p.tanh.bind,
    kernel_init: Initializer = _LECUN,
    recurrent_init: Initializer = _ORTHOGONAL,
    dtype: Any = np.float32,
) -> Layer:
    """The simple recurrent unit: ``h = tanh(x @ kernel + h @ recurrent_kernel + bias)``.

    Args:
        features: Length of the carry ``h``, which is the output too.
        activation: Instead of ``tanh``.
    Returns: A cell with parameters ``kernel`` (inputs, features), ``recurrent_kernel`` (features,
        features) and ``bias`` (features,), for `recurrent`. The bias is the sum of both biases
        of PyTorch's ``RNNCell``.

    Example:
        >>> cell, x = fg.nn.layers.rnn_cell(3), np.ones((5, 2), np.float32)
        >>> params, state = cell.init(fg.random.key(0), None, x)
        >>> (carry, y), state = cell.apply(params, state, None, x)
        >>> print(y.shape, y.dtype)
        (5, 3) float32
    """
    name = f"layers.rnn_cell({features})"

    def step(params: Tree, h: Array, x: Array) -> tuple[Array, Array]:
        h = activation(_sums(params, h, x))
        return h, h

    def biases() -> dict[str, Array]:
        return {"bias": zeros(features, dtype)}

    init = _initial(name, features, 1, kernel_init, recurrent_init, biases, dtype)
    return Layer(init, _applied(name, features, 1, step))


def lstm_cell(
    features: int,
    *,
    forget_bias: float = 1.0,
    kernel_init: Initializer = _LECUN,
    recurrent_init: Initializer = _ORTHOGONAL,
    dtype: Any = np.float32,
) -> Layer:
    """Long short-term memory.

    Four gates ``i, f, g, o`` are the parts, in this order, of
    ``x @ kernel + h @ recurrent_kernel + bias``; then ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)``
    and ``h = sigmoid(o) * tanh(c)``.

    Args:
        features: Length of ``h``, the output, and of ``c``; the carry is the pair ``(h, c)``.
        forget_bias: Initial bias of the gate ``f``: with 1 a new cell remembers.
    Returns: A cell with parameters ``kernel`` (inputs, 4 features), ``recurrent_kernel`` (features,
        4 features) and ``bias`` (4 features,), for `recurrent`. Order of gates and formulas are
        those of PyTorch's ``LSTMCell``: ``kernel`` is ``weight_ih.T``, ``recurrent_kernel`` is
        ``weight_hh.T``, and ``bias`` is ``bias_ih + bias_hh``.

    Source:
        Hochreiter and Schmidhuber, Neural Computation 9 (1997); the bias: Jozefowicz and others,
        ICML 2015.

    Example:
        >>> cell, x = fg.nn.layers.lstm_cell(3), np.ones((5, 2), np.float32)
        >>> params, state = cell.init(fg.random.key(0), None, x)
        >>> print(params["kernel"].shape, params["bias"][:6])
        (2, 12) [0. 0. 0. 1. 1. 1.]
    """
    name = f"layers.lstm_cell({features})"

    def step(params: Tree, carry: tuple[Array, Array], x: Array) -> Any:
        h, c = carry
        i, f, g, o = _parts(_sums(params, h, x), 4)
        c = p.logistic.bind(f) * c + p.logistic.bind(i) * p.tanh.bind(g)
        h = p.logistic.bind(o) * p.tanh.bind(c)
        return (h, c), h

    def biases() -> dict[str, Array]:
        level = np.repeat([0.0, forget_bias, 0.0, 0.0], features)
        return {"bias": full(4 * features, level, dtype)}

    init = _initial(name, features, 4, kernel_init, recurrent_init, biases, dtype)
    return Layer(init, _applied(name, features, 2, step))


def gru_cell(
    features: int,
    *,
    kernel_init: Initializer = _LECUN,
    recurrent_init: Initializer = _ORTHOGONAL,
    dtype: Any = np.float32,
) -> Layer:
    """Gated recurrent unit.

    With ``a = x @ kernel + bias`` and ``b = h @ recurrent_kernel``, each of parts ``r, z, n`` in
    this order: ``r = sigmoid(a_r + b_r)``, ``z = sigmoid(a_z + b_z)``,
    ``n = tanh(a_n + r * (b_n + recurrent_bias))`` and ``h = (1 - z) * n + z * h``.

    Args: features: Length of the carry ``h``, which is the output too.
    Returns: A cell with parameters ``kernel`` (inputs, 3 features), ``recurrent_kernel`` (features,
        3 features), ``bias`` (3 features,) and ``recurrent_bias`` (features,), for `recurrent`.
        Order of gates and formulas are those of PyTorch's ``GRUCell``, whose ``bias_hh`` is the sum
        of ``bias`` for ``r`` and ``z``, and ``recurrent_bias`` for ``n``.

    Source:
        Cho and others, arXiv:1406.1078, with the reset after the product.

    Example:
        >>> cell, x = fg.nn.layers.gru_cell(3), np.ones((5, 2), np.float32)
        >>> params, state = cell.init(fg.random.key(0), None, x)
        >>> sorted(params)
        ['bias', 'kernel', 'recurrent_bias', 'recurrent_kernel']
    """
    name = f"layers.gru_cell({features})"

    def step(params: Tree, h: Array, x: Array) -> tuple[Array, Array]:
        given = matmul(x, params["kernel"]) + params["bias"]
        known = matmul(h, params["recurrent_kernel"])
        (a_r, a_z, a_n), (b_r, b_z, b_n) = _parts(given, 3), _parts(known, 3)
        r, z = p.logistic.bind(a_r + b_r), p.logistic.bind(a_z + b_z)
        n = p.tanh.bind(a_n + r * (b_n + params["recurrent_bias"]))
        h = (1.0 - z) * n + z * h
        return h, h

    def biases() -> dict[str, Array]:
        return {"bias": zeros(3 * features, dtype), "recurrent_bias": zeros(features, dtype)}

    init = _initial(name, features, 3, kernel_init, recurrent_init, biases, dtype)
    return Layer(init, _applied(name, features, 1, step, "recurrent_bias"))


def _sums(params: Tree, h: Array, x: Array) -> Array:
    return matmul(x, params["kernel"]) + matmul(h, params["recurrent_kernel"]) + params["bias"]


def _parts(x: Array, count: int) -> list[Array]:
    """Equal parts of the last axis."""
    n = shape_of(x)[-1] // count
    return [x[..., i * n : (i + 1) * n] for i in range(count)]


def _initial(
    name: str,
    features: int,
    gates: int,
    kernel_init: Initializer,
    recurrent_init: Initializer,
    biases: Callable[[], dict[str, Array]],
    dtype: Any,
) -> Callable[..., tuple[Tree, Tree]]:
    def init(key: Array, carry: Any, x: Any) -> tuple[Tree, Tree]:
        struct = typed(name, x)
        if not struct.ndim:
            raise located(ShapeError, f"{name} needs an input with an axis of features.")
        keys = random.split(key, 1 + gates)
        squares = [recurrent_init(k, (features, features), dtype) for k in keys[1:]]
        params = {
            "kernel": kernel_init(keys[0], (struct.shape[-1], gates * features), dtype),
            "recurrent_kernel": concatenate(squares, axis=1),
            **biases(),
        }
        return params, ()

    return init


def _applied(
    name: str,
    features: int,
    parts: int,
    step: Callable[[Tree, Any, Array], tuple[Any, Array]],
    *more: str,
) -> Callable[..., tuple[Any, Tree]]:
    """The ``apply`` of a cell whose carry is one array, or so many of the same type."""
    names = ("kernel", "recurrent_kernel", "bias", *more)

    def apply(
        params: Tree, state: Tree, carry: Any, x: Array, *, key: Array = None, train: bool = False
    ) -> tuple[Any, Tree]:
        given = entries(name, "params", params, *names)
        check_features(name, as_value(x, name), given[0], 2)
        x, *given = floating(name, x, *given)
        if carry is None:
            zero = zeros((*shape_of(x)[:-1], features), aval_of(x).dtype)
            carry = zero if parts == 1 else (zero,) * parts
        return step(dict(zip(names, given, strict=True)), carry, x), state

    return apply


def recurrent(
    cell: Layer, *, reverse: bool = False, time_axis: int = -2, return_carry: bool = False
) -> Layer:
    """A cell carried along a sequence, by `lax.scan`.

    Inputs are the sequence, and optionally the carry with which to start.

    Args:
        cell: `rnn_cell`, `lstm_cell`, `gru_cell`, or a layer of yours with inputs ``(carry, x)``
            and outputs ``(carry, y)`` for which a carry of ``None`` is one of zeros.
        reverse: Whether to start with the last element; outputs stay in the place of their input.
        time_axis: Which axis of the inputs, and of the outputs, is the sequence.
        return_carry: Whether outputs are the pair of sequence and final carry.

    Returns:
        A layer from (batch, length, inputs) to (batch, length, features), with the parameters of
        the cell.
    Raises: ShapeError: If the input has no such axis and one of features.

    Example:
        >>> from funcgrad.nn import layers
        >>> layer, x = layers.recurrent(layers.gru_cell(3)), np.ones((5, 7, 2), np.float32)
        >>> params, state = layer.init(fg.random.key(0), x)
        >>> layer.apply(params, state, x)[0].shape
        (5, 7, 3)
    """
    name = "layers.recurrent"

    def init(key: Array, xs: Any, carry: Any = None) -> tuple[Tree, Tree]:
        return cell.init(key, types_of(name, carry), _element(name, xs, time_axis))

    def apply(
        params: Tree,
        state: Tree,
        xs: Array,
        carry: Any = None,
        *,
        key: Array = None,
        train: bool = False,
    ) -> tuple[Any, Tree]:
        xs = as_value(xs, name)
        x = _element(name, xs, time_axis)
        place = normalize_axis(time_axis, len(shape_of(xs)), name)

        def step(before: tuple[Any, Tree], each: tuple[Array, Array]) -> Any:
            (carry, state), (x, key) = before, each
            (carry, y), state = cell.apply(params, state, carry, x, key=key, train=train)
            return (carry, state), y

        if carry is None:
            carry = _start(cell, params, state, x)
        length = shape_of(xs)[place]
        keys = None if key is None else random.split(key, length)
        sequence = moveaxis(xs, place, 0)
        (carry, state), ys = lax.scan(step, (carry, state), (sequence, keys), length, reverse)
        ys = moveaxis(ys, 0, place)
        return ((ys, carry) if return_carry else ys), state

    return Layer(init, apply)


def _element(name: str, xs: Any, time_axis: int) -> ShapeDtypeStruct:
    """Type of one element of a sequence."""
    struct = typed(name, xs)
    if struct.ndim < 2:
        raise located(
            ShapeError, f"{name} needs sequences (batch, length, features), got {struct}."
        )
    place = normalize_axis(time_axis, struct.ndim, name)
    return ShapeDtypeStruct(struct.shape[:place] + struct.shape[place + 1 :], struct.dtype)


def _start(cell: Layer, params: Tree, state: Tree, x: ShapeDtypeStruct) -> Any:
    """A carry of zeros, of the types that the cell returns."""

    def carry_after(params: Tree, state: Tree, x: Array) -> Any:
        return cell.apply(params, state, None, x)[0][0]

    return tree_map(lambda c: zeros(c.shape, c.dtype), eval_shape(carry_after, params, state, x))
