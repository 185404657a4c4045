"""Layers as pairs of functions.

    init  : (key, *inputs) -> (params, state)
    apply : (params, state, *inputs, key, train) -> (outputs, state)

Of the inputs of ``init`` only shapes and dtypes count. Parameters are what is learned, and the
state is what changes otherwise, such as running means: both are pytrees that the caller keeps.
Nothing is stored in a layer, so ``init`` and ``apply`` can be transformed like any other function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from funcgrad.api.staging import ShapeDtypeStruct, eval_shape
from funcgrad.base.pytree import tree_map
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, FuncgradError, TreeError
from funcgrad.higher_order.staging import described, located
from funcgrad.numpy.promotion import as_value

Array: TypeAlias = Any
Tree: TypeAlias = Any

IN_TRAINING = "apply(..., key=key, train=True)"
"""How layers that drop something are called in training."""


class Layer(NamedTuple):
    """A part of a network, as two functions.

    Attributes:
        init: ``init(key, *inputs) -> (params, state)``: initial parameters for inputs of these
            types, which may be arrays or `ShapeDtypeStruct`. A layer without parameters, or
            without state, has an empty tuple.
        apply: ``apply(params, state, *inputs, key=None, train=False) -> (outputs, state)``. In
            training dropout needs a random key, and batch normalisation returns a new state.

    Example:
        >>> from funcgrad.nn import layers
        >>> def init(key, x):
        ...     return {"scale": np.ones(x.shape[-1])}, ()
        >>> def apply(params, state, x, *, key=None, train=False):
        ...     return params["scale"] * x, state
        >>> network = layers.sequential(layers.dense(3), layers.Layer(init, apply), np.tanh)
        >>> params, state = network.init(fg.random.key(0), np.ones((4, 2)))
        >>> network.apply(params, state, np.ones((4, 2)))[0].shape
        (4, 3)
    """

    init: Callable[..., tuple[Tree, Tree]]
    apply: Callable[..., tuple[Any, Tree]]


def function_layer(f: Callable[..., Any]) -> Layer:
    """A layer without parameters."""

    def init(key: Array, *inputs: Any) -> tuple[Tree, Tree]:
        return (), ()

    def apply(
        params: Tree, state: Tree, *inputs: Any, key: Array = None, train: bool = False
    ) -> tuple[Any, Tree]:
        return f(*inputs), state

    return Layer(init, apply)


def as_layer(name: str, part: Layer | Callable[..., Any]) -> Layer:
    """A layer, or a plain function as one."""
    if isinstance(part, Layer):
        return part
    if not callable(part):
        raise located(
            ArgumentError,
            f"{name} is made of layers and functions of arrays, got {described(part)}.",
        )
    return function_layer(part)


def typed(name: str, x: Any) -> ShapeDtypeStruct:
    """Shape and dtype of an input."""
    if isinstance(x, ShapeDtypeStruct):
        return x
    aval = aval_of(as_value(x, name))
    return ShapeDtypeStruct(aval.shape, aval.dtype)


def types_of(name: str, tree: Tree) -> Tree:
    """The types of all arrays of a pytree."""
    return tree_map(lambda x: typed(name, x), tree)


def entries(name: str, what: str, tree: Tree, *names: str) -> list[Array]:
    """The entries of a dict that has these and no others.

    Raises: TreeError: If it is no such dict.
    """
    if not isinstance(tree, dict) or set(tree) != set(names):
        given = f"one with {_listed(tree)}" if isinstance(tree, dict) else described(tree)
        raise located(
            TreeError,
            f"{name}: {what} must be a dict with {_listed(names)}, as init returns it, got "
            f"{given}.",
        )
    return [tree[key] for key in names]


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, names)) or "nothing"


def output_types(layer: Layer, params: Tree, state: Tree, *inputs: Any) -> Any:
    """Types of the results of a layer, without computing them."""

    def outputs(params: Tree, state: Tree, *inputs: Any) -> Any:
        return layer.apply(params, state, *inputs)[0]

    return eval_shape(outputs, params, state, *inputs)


def as_inputs(outputs: Any) -> tuple[Any, ...]:
    """Inputs of the next layer: a tuple is several inputs."""
    return outputs if type(outputs) is tuple else (outputs,)


def at_part(error: FuncgradError, name: str, index: int) -> FuncgradError:
    """An error that says in which part of a network it arose."""
    error.add_note(f"in layer {index} of {name}")
    return error
