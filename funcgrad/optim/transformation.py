"""Gradient transformations: pairs ``(init, update)``, and how they chain.

``init : params -> state`` and ``update : (updates, state, params) -> (updates, state)``, where
``updates`` starts as the gradient and ends as what is added to the parameters. A state is a pytree
of arrays, so that a step is a pure function which compiles, differentiates and maps.
Hyperparameters may be numbers or traced scalars of any dtype: they are brought to the dtype of each
leaf, which therefore stays what it is. What pairs compute is in the neighbouring files.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import FLOAT64, PYTHON_SCALARS, real_dtype
from funcgrad.errors import ArgumentError
from funcgrad.numpy.promotion import to_dtype

__all__ = [
    "EmptyState", "GradientTransformation", "GradientTransformationExtraArgs", "apply_updates",
    "chain", "identity", "incremental_update", "set_to_zero", "stateless",
    "with_extra_args_support",
]  # fmt: skip

Array = Any
Scalar = Any
"""A number, or an array without axes, possibly traced."""

Params = Any
Updates = Any
State = Any
"""Pytrees: of parameters, of as many updates of the same shapes, of what is remembered."""

Step = tuple[Updates, State]
"""Updates that a transformation returns, and what it remembers from now on."""

Schedule = Callable[[Any], Any]
ScalarOrSchedule = Any
"""A scalar, or a function from the number of steps done so far to one."""


class Init(Protocol):
    def __call__(self, params: Params) -> State: ...


class Update(Protocol):
    def __call__(
        self, updates: Updates, state: State, params: Params | None = None, **extra_args: Any
    ) -> Step: ...


class GradientTransformation(NamedTuple):
    """A pair of pure functions.

    Attributes:
        init: ``init(params)`` gives the state before the first step.
        update: ``update(updates, state, params=None)`` gives new updates and the next state.

    Example:
        >>> opt = fg.optim.sgd(0.1)
        >>> params = {"w": np.array([1.0, 2.0])}
        >>> state = opt.init(params)
        >>> updates, state = opt.update({"w": np.array([10.0, 0.0])}, state, params)
        >>> print(fg.optim.apply_updates(params, updates)["w"])
        [0. 2.]
    """

    init: Callable[[Params], State]
    update: Callable[..., Step]


class GradientTransformationExtraArgs(GradientTransformation):
    """A transformation whose ``update`` takes further keywords, and ignores those of others.

    Line searches need the loss: ``update(updates, state, params, value=, grad=, value_fn=)``.

    Example:
        >>> isinstance(
        ...     fg.optim.scale_by_zoom_linesearch(10), fg.optim.GradientTransformationExtraArgs
        ... )
        True
    """

    __slots__ = ()


class EmptyState(NamedTuple):
    """The state of a transformation that remembers nothing."""


def with_extra_args_support(tx: GradientTransformation) -> GradientTransformationExtraArgs:
    """A transformation that ignores the keywords which it does not know.

    Args: tx: Any transformation; one that takes keywords is returned as it is.

    Example:
        >>> (lambda o, p: o.update(p, o.init(p), p, value=3.0)[0])(
        ...     fg.optim.with_extra_args_support(fg.optim.scale(2.0)), np.array([1.0, -2.0])
        ... )
        array([ 2., -4.])
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra_args: Any
    ) -> Step:
        return tx.update(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


def stateless(f: Callable[[Updates, Params | None], Updates]) -> GradientTransformation:
    """The transformation that replaces updates by ``f(updates, params)``.

    Args: f: A pure function of pytrees.

    Example:
        >>> ascend = fg.optim.stateless(lambda updates, params: -updates)
        >>> ascend.update(3.0, ascend.init(1.0))
        (-3.0, EmptyState())
    """

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        return f(updates, params), state

    return GradientTransformation(lambda params: EmptyState(), update)


def identity() -> GradientTransformation:
    """The transformation that changes nothing.

    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.identity(), np.array([1.0, -2.0]))
        -> array([ 1., -2.])
    """
    return stateless(lambda updates, params: updates)


def set_to_zero() -> GradientTransformation:
    """The transformation that makes all updates zero: parameters stay as they are.

    Example:
        >>> o, p = fg.optim.set_to_zero(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([0., 0.])
    """
    return stateless(lambda updates, params: tree_map(fnp.zeros_like, updates))


def chain(*args: GradientTransformation) -> GradientTransformationExtraArgs:
    """Transformations one after the other.

    Args: *args: The first one gets the gradients, each next one what the one before it gives.
    Returns: A transformation whose state is a tuple of theirs. Keywords of ``update`` reach all.
    Raises: ArgumentError: If an argument is no transformation, or ``update`` gets the state of
            another chain.

    Example:
        >>> opt = fg.optim.chain(fg.optim.clip_by_global_norm(1.0), fg.optim.sgd(0.5))
        >>> params = np.zeros(2)
        >>> updates, state = opt.update(np.array([3.0, 4.0]), opt.init(params), params)
        >>> print(updates)
        [-0.3 -0.4]
    """
    for i, tx in enumerate(args):
        if not isinstance(tx, GradientTransformation):
            raise ArgumentError(
                f"optim.chain: argument {i} is a {_named(tx)}, no gradient transformation. Pass "
                "what functions like optim.sgd(learning_rate) and optim.clip(max_delta) return."
            )
    links = [with_extra_args_support(tx) for tx in args]

    def init(params: Params) -> State:
        return tuple(link.init(params) for link in links)

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra_args: Any
    ) -> Step:
        if not isinstance(state, tuple) or len(state) != len(links):
            raise ArgumentError(
                f"update of a chain of {len(links)} transformations needs the tuple of as many "
                f"states that its init returned, got a {type(state).__name__}"
                f"{f' of {len(state)}' if isinstance(state, tuple) else ''}."
            )
        states = []
        for link, before in zip(links, state, strict=True):
            updates, after = link.update(updates, before, params, **extra_args)
            states.append(after)
        return updates, tuple(states)

    return GradientTransformationExtraArgs(init, update)


def _named(x: Any) -> str:
    return f"function {x.__name__!r}" if callable(x) and hasattr(x, "__name__") else str(type(x))


def apply_updates(params: Params, updates: Updates) -> Params:
    """The parameters with the updates added.

    Args:
        params: A pytree.
        updates: A pytree of the same structure and shapes.
    Returns: A pytree of the same structure; each leaf has the dtype that it had before.
    Raises: TreeError: If the structures differ.
    Example: fg.optim.apply_updates({"w": np.float32(1.0)}, {"w": 0.25}) -> {'w': np.float32(1.25)}
    """
    return tree_map(lambda p, u: p + to_dtype(u, dtype_of(p)), params, updates)


def incremental_update(new_tensors: Any, old_tensors: Any, step_size: Scalar) -> Any:
    """``step_size * new + (1 - step_size) * old`` for every leaf: a step towards the new tree.

    Args:
        new_tensors: A pytree.
        old_tensors: A pytree of the same structure and shapes.
        step_size: Between 0 and 1.
    Example: fg.optim.incremental_update(np.ones(2), np.zeros(2), 0.1) -> array([0.1, 0.1])
    """
    return tree_map(
        lambda new, old: like(step_size, old) * new + like(1 - step_size, old) * old,
        new_tensors,
        old_tensors,
    )


# Functions of leaves that the neighbouring files share.


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of an array, a number or a traced value."""
    return aval_of(x).dtype


def like(value: Scalar, leaf: Array) -> Scalar:
    """A hyperparameter in the precision of a leaf, so that their product has the leaf's dtype.

    Python's numbers take the precision of what they meet already.
    """
    if type(value) in PYTHON_SCALARS:
        return value
    return to_dtype(value, real_dtype(dtype_of(leaf)))


def as_float(value: Scalar) -> Scalar:
    """A scalar in float64, in which what depends on the number of steps is computed.

    In float32, 0.999**n is off by 1e-4 when n is a thousand; it costs nothing for one number.
    """
    return to_dtype(value, FLOAT64)


def first_count() -> Array:
    """The number of steps before the first one."""
    return np.zeros((), np.int32)


_LAST_COUNT = np.iinfo(np.int32).max


def next_count(count: Array) -> Array:
    """One more, up to the largest number that there is."""
    return fnp.minimum(count, np.int32(_LAST_COUNT - 1)) + np.int32(1)


def copies(tree: Any) -> Any:
    """Copies of all leaves: a state must not share memory with parameters that are donated."""
    return tree_map(fnp.array, tree)


def zeros_like(tree: Any, dtype: Any = None) -> Any:
    """Zeros of the shapes of a tree, and of its dtypes unless one is given."""
    return tree_map(lambda x: fnp.zeros_like(x, dtype=dtype), tree)


def inner(a: Any, b: Any) -> Scalar:
    """The real inner product of two trees: what a change along ``a`` and a gradient ``b`` give."""
    return total(tree_leaves(tree_map(_inner, a, b)))


def _inner(a: Array, b: Array) -> Array:
    if dtype_of(a).kind == "c":
        return fnp.sum(fnp.real(a) * fnp.real(b) + fnp.imag(a) * fnp.imag(b))
    return fnp.sum(a * b)


def total(parts: Sequence[Scalar]) -> Scalar:
    """The sum of scalars, in the widest of their dtypes."""
    dtype = np.result_type(*map(dtype_of, parts)) if parts else FLOAT64
    return functools.reduce(operator.add, [to_dtype(x, dtype) for x in parts], 0.0)


def square(x: Array) -> Array:
    """``|x|**2``, which is real."""
    return fnp.real(x) ** 2 + fnp.imag(x) ** 2 if dtype_of(x).kind == "c" else x * x


def needed(params: Params | None, name: str) -> Params:
    """The parameters, for those that need them.

    Raises: ArgumentError: If they were not given.
    """
    if params is None:
        raise ArgumentError(
            f"optim.{name} needs the parameters: call update(updates, state, params)."
        )
    return params
