"""The optimizers of ``jax.example_libraries.optimizers``: triples of functions.

``init(params) -> state``, ``update(step number, gradient, state) -> state``, ``params_of(state)``.
New programs rather use `funcgrad.optim`. A state is a list with one entry per leaf of the
parameters; here it is a pytree, which can be carried, mapped and saved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import PyTreeDef, tree_flatten, tree_leaves
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.tree_util import register_pytree_node_class

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum",
    "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay",
    "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """The three functions of an optimizer."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


@register_pytree_node_class
class OptimizerState:
    """The state of an optimizer: for every leaf of the parameters a tuple of arrays."""

    def __init__(self, rows: Sequence[Any], treedef: PyTreeDef) -> None:
        self.rows = tuple(rows)
        self.treedef = treedef

    def tree_flatten(self) -> tuple[tuple[Any, ...], PyTreeDef]:
        """The tuples, and the structure of the parameters."""
        return self.rows, self.treedef

    @classmethod
    def tree_unflatten(cls, treedef: PyTreeDef, rows: Sequence[Any]) -> OptimizerState:
        """A state of these tuples."""
        return cls(rows, treedef)


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorator: an optimizer of pytrees, from a opt_maker of one of arrays."""

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, params_of = opt_maker(*args, **kwargs)

        def init_all(params: Any) -> OptimizerState:
            leaves, treedef = tree_flatten(params)
            return OptimizerState([init(x) for x in leaves], treedef)

        def update_all(i: Any, gradient: Any, state: OptimizerState) -> OptimizerState:
            leaves, treedef = tree_flatten(gradient)
            if treedef != state.treedef:
                raise TreeError(
                    "an optimizer's gradient must have the structure of the parameters.\n"
                    f"  expected      {state.treedef}\n  got           {treedef}"
                )
            rows = zip(leaves, state.rows, strict=True)
            return OptimizerState([update(i, g, row) for g, row in rows], treedef)

        def params_of_all(state: OptimizerState) -> Any:
            return state.treedef.unflatten([params_of(row) for row in state.rows])

        return Optimizer(init_all, update_all, params_of_all)

    return make


# Optimizers.


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent."""
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


def _with_velocity(step_size: Any, mass: Any, is_ahead: bool) -> Any:
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        direction = mass * velocity + g if is_ahead else velocity
        return x - rate(i) * direction, velocity

    return (lambda x: (x, fnp.zeros_like(x))), update, _first


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Gradient descent with momentum."""
    return _with_velocity(step_size, mass, False)


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Gradient descent with Nesterov's momentum."""
    return _with_velocity(step_size, mass, True)


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """Adagrad: steps shrink with the sum of squares of gradients. Duchi et al., 2011."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, total, m = state
        total = total + g * g
        scaled = g * _inverse_root(total)
        m = (1.0 - momentum) * scaled + momentum * m
        return x - rate(i) * m, total, m

    return _with_zeros(2), update, _first


def _with_zeros(count: int) -> Callable[[Any], Any]:
    return lambda x: (x, *(fnp.zeros_like(x) for _ in range(count)))


def _inverse_root(total: Any) -> Any:
    """``1 / sqrt(total)``, and 0 where it is 0."""
    return fnp.where(total > 0, 1.0 / fnp.sqrt(fnp.where(total > 0, total, 1.0)), 0.0)


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> Any:
    """RMSProp: steps are divided by the root of the mean square of gradients."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = gamma * mean + (1.0 - gamma) * g**2
        return x - rate(i) * g / fnp.sqrt(mean + eps), mean

    return (lambda x: (x, fnp.ones_like(x))), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """RMSProp with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, last = state
        mean = gamma * mean + (1.0 - gamma) * g**2
        last = momentum * last + rate(i) * g / fnp.sqrt(mean + eps)
        return x - last, mean, last

    return (lambda x: (x, fnp.ones_like(x), fnp.zeros_like(x))), update, _first


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adam. Kingma and Ba, 2014."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * g**2 + b2 * v
        m_hat, v_hat = m / (1 - b1 ** (i + 1)), v / (1 - b2 ** (i + 1))
        return x - rate(i) * m_hat / (fnp.sqrt(v_hat) + eps), m, v

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adamax: Adam with the largest gradient for the root. Kingma and Ba, 2014."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = fnp.maximum(b2 * largest, fnp.abs(g))
        return x - rate(i) / (1 - b1 ** (i + 1)) * m / (largest + eps), m, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """SM3: Adagrad with sums for rows and columns only. Anil et al., 2019."""
    rate = make_schedule(step_size)

    def init(x: Any) -> Any:
        shape = np.shape(x)
        lines = [fnp.zeros_like(x, shape=_line(shape, axis)) for axis in range(len(shape))]
        return x, fnp.zeros_like(x), lines

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, lines = state
        shape = np.shape(x)
        total: Any = 0.0
        if lines:
            total = functools.reduce(fnp.minimum, lines)
        total = total + g * g
        m = (1.0 - momentum) * g * _inverse_root(total) + momentum * m
        lines = [
            fnp.max(total, axis=_others(shape, axis), keepdims=True) for axis in range(len(shape))
        ]
        return x - rate(i) * m, m, lines

    return init, update, _first


def _line(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(n if i == axis else 1 for i, n in enumerate(shape))


def _others(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(len(shape)) if i != axis)


# Schedules.


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule, from one or from a number."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError(
        f"a step size is a number or a function of the number of the step, got an array of shape "
        f"{np.shape(scalar_or_schedule)}."
    )


def constant(step_size: Any) -> Schedule:
    """Constant schedule."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """``step_size * decay_rate ** (i / decay_steps)``."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """``step_size / (1 + decay_rate * i / decay_steps)``, in steps if ``staircase``."""

    def schedule(i: Any) -> Any:
        time = fnp.floor(i / decay_steps) if staircase else i / decay_steps
        return step_size / (1 + decay_rate * time)

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0
) -> Schedule:
    """From one step size to another along ``(1 - i / decay_steps) ** power``."""

    def schedule(i: Any) -> Any:
        rest = 1 - fnp.minimum(i, decay_steps) / decay_steps
        return rest**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The first value up to the first boundary, the second up to the second, and so on."""
    limits, found = fnp.asarray(boundaries), fnp.asarray(values)
    if found.ndim != 1 or limits.shape != (found.shape[0] - 1,):
        raise ArgumentError(
            f"piecewise_constant: values of shape {found.shape} need one boundary fewer, got shape "
            f"{limits.shape}."
        )
    return lambda i: fnp.take(found, fnp.sum(i > limits))


# Gradients.


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all leaves."""
    return fnp.sqrt(sum(fnp.sum(fnp.abs(x) ** 2) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """A gradient, ``grad_tree``, scaled so that `l2_norm` is at most ``max_norm``."""
    norm = l2_norm(grad_tree)
    leaves, treedef = tree_flatten(grad_tree)
    is_short = norm < max_norm
    return treedef.unflatten([fnp.where(is_short, g, g * (max_norm / norm)) for g in leaves])


# States to be saved.


@dataclass(frozen=True)
class JoinPoint:
    """Mark of the place where the state of one leaf begins."""

    subtree: Any


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a pytree like the parameters, with a `JoinPoint` for every leaf."""
    return opt_state.treedef.unflatten([JoinPoint(row) for row in opt_state.rows])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`."""
    leaves, treedef = tree_flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in leaves):
        raise TreeError("pack_optimizer_state needs a tree whose leaves are JoinPoints.")
    return OptimizerState([x.subtree for x in leaves], treedef)
