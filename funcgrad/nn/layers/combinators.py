"""Layers made of layers: in sequence, side by side, around, and repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad import lax, random
from funcgrad.ad_checkpoint import checkpoint as checkpoint_function
from funcgrad.errors import ArgumentError, FuncgradError, ShapeError, TreeError
from funcgrad.higher_order.staging import described, located
from funcgrad.nn.layers.base import (
    Array,
    Layer,
    Tree,
    as_inputs,
    as_layer,
    at_part,
    output_types,
    types_of,
)

Part = Layer | Callable[..., Any]
"""A layer, or a function of arrays."""


def sequential(*layers: Part) -> Layer:
    """Layers one after the other.

    Args: layers: Layers, and functions such as `nn.relu`. Where one returns a tuple, the next one
            is given its elements as inputs.

    Returns:
        A layer whose parameters are the tuple of those of the layers, in their order, and whose
        state likewise, or ``()`` if none has one. Every layer is given a random key of its own.
    Raises: ArgumentError: If something is neither a layer nor a function.

    Example:
        >>> from funcgrad import nn
        >>> from funcgrad.nn import layers
        >>> network = layers.sequential(layers.dense(16), nn.relu, layers.dense(3))
        >>> params, state = network.init(fg.random.key(0), np.ones((5, 4), np.float32))
        >>> y, state = network.apply(params, state, np.ones((5, 4), np.float32))
        >>> print(y.shape, params[2]["kernel"].shape)
        (5, 3) (16, 3)
    """
    name = "layers.sequential"
    parts = [as_layer(name, layer) for layer in layers]

    def init(key: Array, *inputs: Any) -> tuple[Tree, Tree]:
        inputs = types_of(name, inputs)
        found = []
        for i, (part, own) in enumerate(zip(parts, random.split(key, len(parts)), strict=True)):
            try:
                params, state = part.init(own, *inputs)
                if i < len(parts) - 1:
                    inputs = as_inputs(output_types(part, params, state, *inputs))
            except FuncgradError as error:
                raise at_part(error, name, i) from None
            found.append((params, state))
        return _joined(found)

    def apply(
        params: Tree, state: Tree, *inputs: Any, key: Array = None, train: bool = False
    ) -> tuple[Any, Tree]:
        states = _states(name, parts, params, state)
        outputs: Any = inputs if len(inputs) > 1 else inputs[0]
        for i, part in enumerate(parts):
            try:
                outputs, states[i] = part.apply(
                    params[i], states[i], *as_inputs(outputs), key=_own(key, i), train=train
                )
            except FuncgradError as error:
                raise at_part(error, name, i) from None
        return outputs, tuple(states) if len(state) else state

    return Layer(init, apply)


def parallel(*layers: Part, combine: Callable[..., Any] | None = None) -> Layer:
    """Layers side by side, all given the same inputs.

    Args:
        layers: Layers and functions.
        combine: A function of their outputs; by default these are returned as a tuple, which
            `sequential` gives to the next layer as several inputs.
    Returns: A layer whose parameters are the tuple of those of the layers, in their order.
    Raises: ArgumentError: If something is neither a layer nor a function.

    Example:
        >>> layer = fg.nn.layers.parallel(np.sin, np.cos, combine=np.hypot)
        >>> print(layer.apply(*layer.init(fg.random.key(0), 2.0), 2.0)[0])
        1.0
    """
    name = "layers.parallel"
    parts = [as_layer(name, layer) for layer in layers]

    def init(key: Array, *inputs: Any) -> tuple[Tree, Tree]:
        types = types_of(name, inputs)
        found = []
        for i, (part, own) in enumerate(zip(parts, random.split(key, len(parts)), strict=True)):
            try:
                found.append(part.init(own, *types))
            except FuncgradError as error:
                raise at_part(error, name, i) from None
        return _joined(found)

    def apply(
        params: Tree, state: Tree, *inputs: Any, key: Array = None, train: bool = False
    ) -> tuple[Any, Tree]:
        states = _states(name, parts, params, state)
        outputs = []
        for i, part in enumerate(parts):
            try:
                output, states[i] = part.apply(
                    params[i], states[i], *inputs, key=_own(key, i), train=train
                )
            except FuncgradError as error:
                raise at_part(error, name, i) from None
            outputs.append(output)
        joined = tuple(outputs) if combine is None else combine(*outputs)
        return joined, tuple(states) if len(state) else state

    return Layer(init, apply)


def _joined(found: list[tuple[Tree, Tree]]) -> tuple[Tree, Tree]:
    states = tuple(state for _, state in found)
    has_state = any(not (isinstance(s, tuple) and not s) for s in states)
    return tuple(params for params, _ in found), states if has_state else ()


def _states(name: str, parts: list[Layer], params: Tree, state: Tree) -> list[Tree]:
    """One state for every layer, as many as there are."""
    for what, given in (("params", params), ("state", state)):
        fits = isinstance(given, tuple | list) and (
            len(given) == len(parts) or (what == "state" and not given)
        )
        if not fits:
            raise located(
                TreeError,
                f"{name}: {what} must be a tuple with one entry for each of the {len(parts)} "
                f"layers, as init returns it, got {described(given)}.",
            )
    return list(state) or [()] * len(parts)


def _own(key: Array, index: int) -> Array:
    return None if key is None else random.fold_in(key, index)


def residual(layer: Part, shortcut: Part | None = None) -> Layer:
    """Residual connection: the output of a layer plus its first input.

    Args:
        layer: A layer or a function.
        shortcut: What is added instead, a layer of the same inputs, such as a `dense` one without
            bias where the numbers of features differ. Parameters are then a pair: those of the
            shortcut, and those of the layer.
    Returns: A layer with the parameters and the state of ``layer``.
    Raises: ShapeError: If shapes differ.

    Source:
        He and others, arXiv:1512.03385.

    Example:
        >>> layer = fg.nn.layers.residual(np.sin)
        >>> print(layer.apply((), (), 0.0)[0])
        0.0
    """
    name = "layers.residual"
    if shortcut is not None:
        return parallel(shortcut, layer, combine=_added)
    part = as_layer(name, layer)

    def apply(
        params: Tree, state: Tree, *inputs: Any, key: Array = None, train: bool = False
    ) -> tuple[Any, Tree]:
        y, state = part.apply(params, state, *inputs, key=key, train=train)
        return _added(inputs[0], y), state

    return Layer(part.init, apply)


def _added(x: Array, y: Array) -> Array:
    before, after = types_of("layers.residual", (x, y))
    if before.shape != after.shape:
        raise located(
            ShapeError,
            f"layers.residual: what is added must have one shape, got {before} and {after}. "
            "Give a layer shortcut= that maps the one to the other.",
        )
    return x + y


def checkpoint(layer: Part, *, policy: Callable[..., Any] | None = None) -> Layer:
    """A layer whose intermediate results are computed again for the gradient, not kept.

    Args:
        layer: A layer or a function.
        policy: Which results are kept, one of `checkpoint_policies`; by default only inputs.
    Returns: A layer with the parameters and the state of ``layer``.

    Example:
        >>> from funcgrad import nn
        >>> from funcgrad.nn import layers
        >>> block = layers.checkpoint(layers.sequential(layers.dense(64), nn.gelu, layers.dense(4)))
        >>> params, state = block.init(fg.random.key(0), np.ones((2, 4)))
        >>> block.apply(params, state, np.ones((2, 4)))[0].shape
        (2, 4)
    """
    part = as_layer("layers.checkpoint", layer)

    def apply(
        params: Tree, state: Tree, *inputs: Any, key: Array = None, train: bool = False
    ) -> tuple[Any, Tree]:
        def run(params: Tree, state: Tree, inputs: tuple[Any, ...], key: Array) -> Any:
            return part.apply(params, state, *inputs, key=key, train=train)

        return checkpoint_function(run, policy=policy)(params, state, inputs, key)

    return Layer(part.init, apply)


def repeat(layer: Part, count: int) -> Layer:
    """So many layers of one kind in sequence, with parameters of their own, as one loop.

    A program of the loop has the size of one layer, whatever the count.

    Args:
        layer: A layer whose outputs have the types of its inputs.
        count: How many.
    Returns: A layer whose parameters and state are those of ``layer``, every array with a new first
        axis of length ``count``.

    Raises:
        ArgumentError: If the count is not positive.
        ShapeError: If outputs have not the types of inputs.

    Example:
        >>> deep = fg.nn.layers.repeat(fg.nn.layers.residual(fg.nn.layers.dense(4)), 12)
        >>> params, state = deep.init(fg.random.key(0), np.ones((2, 4), np.float32))
        >>> print(params["kernel"].shape)
        (12, 4, 4)
    """
    name = f"layers.repeat(..., {count})"
    part = as_layer(name, layer)
    if count < 1:
        raise located(ArgumentError, f"{name}: the count must be positive.")

    def init(key: Array, *inputs: Any) -> tuple[Tree, Tree]:
        types = types_of(name, inputs)
        return lax.map(lambda own: part.init(own, *types), random.split(key, count))

    def apply(
        params: Tree, state: Tree, *inputs: Any, key: Array = None, train: bool = False
    ) -> tuple[Any, Tree]:
        def step(values: tuple[Any, ...], each: tuple[Tree, Tree, Array]) -> Any:
            params, state, key = each
            outputs, state = part.apply(params, state, *values, key=key, train=train)
            return as_inputs(outputs), state

        keys = None if key is None else random.split(key, count)
        outputs, state = lax.scan(step, inputs, (params, state, keys), count)
        return (outputs if len(outputs) > 1 else outputs[0]), state

    return Layer(init, apply)
