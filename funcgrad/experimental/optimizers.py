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
from funcgrad.base.namespaces import present
from funcgrad.base.pytree import PyTreeDef, tree_flatten, tree_leaves
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.tree_util import register_pytree_node_class

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """What an optimizer is made of.

    Args:
        init_fn: From parameters to a state.
        update_fn: From the number of the step, a gradient and a state to the next state.
        params_fn: From a state to parameters.
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


@register_pytree_node_class
class OptimizerState:
    """The state of an optimizer: for every leaf of the parameters a tuple of arrays.

    Args:
        rows: The tuples.
        treedef: Structure of the parameters.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> isinstance(
        ...     fg.experimental.optimizers.sgd(0.1)[0](np.ones(2)),
        ...     fg.experimental.optimizers.OptimizerState,
        ... )
        True
    """

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
    """Decorator: an optimizer of pytrees, from a opt_maker of one of arrays.

    Args:
        opt_maker: Returns ``(init, update, params_of)`` for parameters that are one array.

    Returns:
        A function of the same arguments that makes an `Optimizer`.

    Example:
        >>> from funcgrad.experimental import optimizers
        >>> @optimizers.optimizer
        ... def descent(rate):
        ...     return (lambda x: x), (lambda i, g, x: x - rate * g), (lambda x: x)
        >>> init, update, params_of = descent(0.1)
        >>> print(round(params_of(update(0, {"a": 1.0}, init({"a": 2.0})))["a"], 3))
        1.9
    """

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
    """Gradient descent.

    Args:
        step_size: A number, or a schedule: a function of the number of the step.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.sgd(0.1)
        ... )
        array([0.9, 0.9])
    """
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
    """Gradient descent with momentum.

    Args:
        step_size: A number or a schedule.
        mass: How much of the velocity stays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.momentum(0.1, 0.9)
        ... )
        array([0.9, 0.9])
    """
    return _with_velocity(step_size, mass, False)


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Gradient descent with Nesterov's momentum.

    Args:
        step_size: A number or a schedule.
        mass: How much of the velocity stays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.nesterov(0.1, 0.9)
        ... )
        array([0.81, 0.81])
    """
    return _with_velocity(step_size, mass, True)


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """Adagrad: steps shrink with the sum of squares of gradients. Duchi et al., 2011.

    Args:
        step_size: A number or a schedule.
        momentum: How much of the last step stays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.adagrad(0.1)
        ... )
        array([0.99, 0.99])
    """
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
    """RMSProp: steps are divided by the root of the mean square of gradients.

    Args:
        step_size: A number or a schedule.
        gamma: How much of the mean stays.
        eps: Added to the mean square.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.rmsprop(0.1)
        ... )
        array([0.9, 0.9])
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = gamma * mean + (1.0 - gamma) * g**2
        return x - rate(i) * g / fnp.sqrt(mean + eps), mean

    return (lambda x: (x, fnp.ones_like(x))), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """RMSProp with momentum.

    Args:
        step_size: A number or a schedule.
        gamma: How much of the mean stays.
        eps: Added to the mean square.
        momentum: How much of the last step stays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.rmsprop_momentum(0.1)
        ... )
        array([0.9, 0.9])
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, last = state
        mean = gamma * mean + (1.0 - gamma) * g**2
        last = momentum * last + rate(i) * g / fnp.sqrt(mean + eps)
        return x - last, mean, last

    return (lambda x: (x, fnp.ones_like(x), fnp.zeros_like(x))), update, _first


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adam. Kingma and Ba, 2014.

    Args:
        step_size: A number or a schedule.
        b1: How much of the mean of gradients stays.
        b2: How much of the mean of their squares stays.
        eps: Added to the root.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.adam(0.1)
        ... )
        array([0.9, 0.9])
    """
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
    """Adamax: Adam with the largest gradient for the root. Kingma and Ba, 2014.

    Args:
        step_size: A number or a schedule.
        b1: How much of the mean of gradients stays.
        b2: How much of the largest one stays.
        eps: Added to the largest one.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.adamax(0.1)
        ... )
        array([0.9, 0.9])
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = fnp.maximum(b2 * largest, fnp.abs(g))
        return x - rate(i) / (1 - b1 ** (i + 1)) * m / (largest + eps), m, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """SM3: Adagrad with sums for rows and columns only. Anil et al., 2019.

    Args:
        step_size: A number or a schedule.
        momentum: How much of the last step stays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> (lambda o: o.params_fn(o.update_fn(0, np.ones(2), o.init_fn(np.ones(2)))))(
        ...     fg.experimental.optimizers.sm3(0.1)
        ... )
        array([0.99, 0.99])
    """
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
    """A schedule, from one or from a number.

    Raises:
        ArgumentError: If it is neither.

    Args:
        scalar_or_schedule: A number, or a function of the step.

    Example:
        >>> import funcgrad as fg
        >>> float(fg.experimental.optimizers.make_schedule(0.1)(7))
        0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError(
        f"a step size is a number or a function of the number of the step, got an array of shape "
        f"{np.shape(scalar_or_schedule)}."
    )


def constant(step_size: Any) -> Schedule:
    """Always the same.

    Args:
        step_size: The step size, or the first one.

    Example:
        >>> import funcgrad as fg
        >>> float(fg.experimental.optimizers.constant(0.1)(7))
        0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """``step_size * decay_rate ** (i / decay_steps)``.

    Args:
        step_size: The first step size.
        decay_steps: Number of steps after which the decay has its full effect.
        decay_rate: The decay over that many steps.

    Example:
        >>> import funcgrad as fg
        >>> float(fg.experimental.optimizers.exponential_decay(1.0, 10, 0.5)(7))
        0.6155722066724582
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """``step_size / (1 + decay_rate * i / decay_steps)``, in steps if ``staircase``.

    Args:
        step_size: The first step size.
        decay_steps: Number of steps after which the decay has its full effect.
        decay_rate: The decay over that many steps.
        staircase: Whether the step size is the same between multiples of ``decay_steps``.

    Example:
        >>> import funcgrad as fg
        >>> float(fg.experimental.optimizers.inverse_time_decay(1.0, 10, 0.5)(7))
        0.7407407407407407
    """

    def schedule(i: Any) -> Any:
        time = fnp.floor(i / decay_steps) if staircase else i / decay_steps
        return step_size / (1 + decay_rate * time)

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0
) -> Schedule:
    """From one step size to another along ``(1 - i / decay_steps) ** power``.

    Args:
        step_size: The step size, or the first one.
        decay_steps: How many steps the decay takes.
        final_step_size: The step size at the end.
        power: The exponent.

    Example:
        >>> import funcgrad as fg
        >>> float(fg.experimental.optimizers.polynomial_decay(1.0, 10, 0.1)(7))
        0.3700000000000001
    """

    def schedule(i: Any) -> Any:
        rest = 1 - fnp.minimum(i, decay_steps) / decay_steps
        return rest**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The first value up to the first boundary, the second up to the second, and so on.

    Raises:
        ArgumentError: If there is not one value more than boundaries.

    Args:
        boundaries: Steps at which the next value begins.
        values: One value more than there are boundaries.

    Example:
        >>> import funcgrad as fg
        >>> float(fg.experimental.optimizers.piecewise_constant([5], [1.0, 0.1])(7))
        0.1
    """
    limits, found = fnp.asarray(boundaries), fnp.asarray(values)
    if found.ndim != 1 or limits.shape != (found.shape[0] - 1,):
        raise ArgumentError(
            f"piecewise_constant: values of shape {found.shape} need one boundary fewer, got shape "
            f"{limits.shape}."
        )
    return lambda i: fnp.take(found, fnp.sum(i > limits))


# Gradients.


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all leaves.

    Args:
        tree: A pytree.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.experimental.optimizers.l2_norm(np.array([3.0, 4.0]))
        np.float64(5.0)
    """
    return fnp.sqrt(sum(fnp.sum(fnp.abs(x) ** 2) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """A gradient, ``grad_tree``, scaled so that `l2_norm` is at most ``max_norm``.

    Args:
        grad_tree: The gradient, a pytree of arrays.
        max_norm: Bound of the norm of all entries together.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.experimental.optimizers.clip_grads(np.array([3.0, 4.0]), 1.0)
        array([0.6, 0.8])
    """
    norm = l2_norm(grad_tree)
    leaves, treedef = tree_flatten(grad_tree)
    is_short = norm < max_norm
    return treedef.unflatten([fnp.where(is_short, g, g * (max_norm / norm)) for g in leaves])


# States to be saved.


@dataclass(frozen=True)
class JoinPoint:
    """Marks where the state of one leaf begins.

    Args:
        subtree: The state.
    """

    subtree: Any


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a pytree like the parameters, with a `JoinPoint` for every leaf.

    Args:
        opt_state: The state of an optimizer.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.experimental.optimizers.unpack_optimizer_state(
        ...     fg.experimental.optimizers.sgd(0.1)[0](np.ones(2))
        ... ).subtree
        array([1., 1.])
    """
    return opt_state.treedef.unflatten([JoinPoint(row) for row in opt_state.rows])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`.

    Raises:
        TreeError: If a leaf is no `JoinPoint`.

    Args:
        marked_pytree: What `unpack_optimizer_state` made.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.experimental.optimizers.pack_optimizer_state(
        ...     fg.experimental.optimizers.unpack_optimizer_state(
        ...         fg.experimental.optimizers.sgd(0.1)[0](np.ones(2))
        ...     )
        ... ).rows
        (array([1., 1.]),)
    """
    leaves, treedef = tree_flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in leaves):
        raise TreeError("pack_optimizer_state needs a tree whose leaves are JoinPoints.")
    return OptimizerState([x.subtree for x in leaves], treedef)


present(__name__)
