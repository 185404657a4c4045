"""Transformations of transformations: every few steps, only if finite, with changing numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import tree_leaves, tree_map
from funcgrad.base.signatures import signature_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import FLOAT64, PYTHON_SCALARS
from funcgrad.errors import ArgumentError
from funcgrad.lax import cond
from funcgrad.numpy.promotion import to_dtype
from funcgrad.optim.transformation import (
    Array,
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    State,
    Step,
    Updates,
    as_float,
    copies,
    dtype_of,
    first_count,
    incremental_update,
    like,
    needed,
    next_count,
    with_extra_args_support,
    zeros_like,
)
from funcgrad.primitives.objects import StandsForArray

__all__ = ["MultiSteps", "apply_if_finite", "inject_hyperparams", "params_ema"]

# Several steps as one.


class MultiStepsState(NamedTuple):
    mini_step: Array
    gradient_step: Array
    inner_opt_state: Any
    acc_grads: Updates


class MultiSteps:
    """An optimiser that takes a step for every ``k`` gradients, with their mean or sum.

    In between the updates are zero. It has ``init`` and ``update`` as transformations have, and
    `gradient_transformation` makes it one.

    Args:
        opt: The optimiser.
        every_k_schedule: ``k``, or a function from the number of steps taken to it.
        use_grad_mean: Whether the step is taken with the mean of the gradients, or their sum.

    Example:
        >>> opt = fg.optim.MultiSteps(fg.optim.sgd(1.0), every_k_schedule=2)
        >>> state = opt.init(0.0)
        >>> for gradient in (1.0, 3.0):
        ...     updates, state = opt.update(gradient, state, 0.0)
        ...     print(float(updates), opt.has_updated(state))
        0.0 False
        -2.0 True
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: int | Callable[[Any], Any],
        use_grad_mean: bool = True,
        accumulator_dtype: Any = None,
    ) -> None:
        if not callable(every_k_schedule) and every_k_schedule < 1:
            raise ArgumentError(
                f"optim.MultiSteps: every_k_schedule must be at least 1, got {every_k_schedule}."
            )
        self._opt = with_extra_args_support(opt)
        self._every = every_k_schedule
        self._use_grad_mean = use_grad_mean
        self._accumulator_dtype = accumulator_dtype

    def init(self, params: Params) -> MultiStepsState:
        """The state before the first gradient."""
        gathered = zeros_like(params, self._accumulator_dtype)
        return MultiStepsState(first_count(), first_count(), self._opt.init(params), gathered)

    def update(
        self,
        updates: Updates,
        state: MultiStepsState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, MultiStepsState]:
        """Zero updates, or those of a step with the gradients since the last one."""
        share = 1.0 / (as_float(state.mini_step) + 1.0)

        def added(total: Array, g: Array) -> Array:
            g = to_dtype(g, dtype_of(total))
            return total + (like(share, g) * (g - total) if self._use_grad_mean else g)

        gathered = tree_map(added, state.acc_grads, updates)
        count = next_count(state.mini_step)
        every = self._every(state.gradient_step) if callable(self._every) else self._every

        def step(gathered: Updates, inner_state: Any) -> tuple[Updates, MultiStepsState]:
            gathered = _in_dtypes(gathered, updates)
            new, inner_state = self._opt.update(gathered, inner_state, params, **extra_args)
            steps = next_count(state.gradient_step)
            zero = zeros_like(state.acc_grads)
            return _in_dtypes(new, updates), MultiStepsState(
                fnp.zeros_like(count), steps, inner_state, zero
            )

        def wait(gathered: Updates, inner_state: Any) -> tuple[Updates, MultiStepsState]:
            kept = MultiStepsState(count, fnp.asarray(state.gradient_step), inner_state, gathered)
            return zeros_like(updates), kept

        return cond(count >= every, step, wait, gathered, state.inner_opt_state)

    def has_updated(self, state: MultiStepsState) -> Any:
        """Whether the update that returned this state took a step."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """The same as a pair."""
        return GradientTransformationExtraArgs(self.init, self.update)


def _in_dtypes(tree: Any, other: Any) -> Any:
    return tree_map(lambda x, y: to_dtype(x, dtype_of(y)), tree, other)


# Steps that are left out.


class ApplyIfFiniteState(NamedTuple):
    notfinite_count: Array
    last_finite: Array
    total_notfinite: Array
    inner_state: Any


def apply_if_finite(
    inner: GradientTransformation, max_consecutive_errors: int
) -> GradientTransformationExtraArgs:
    """Steps whose updates have a NaN or an infinity are left out: the updates are zero.

    Args:
        inner: The transformation; its state stays as it is in such a step.
        max_consecutive_errors: After so many such steps in a row the next one is taken
            nonetheless, so that an error does not stay hidden.

    Example:
        >>> tx = fg.optim.apply_if_finite(fg.optim.sgd(1.0), max_consecutive_errors=5)
        >>> updates, state = tx.update(float("nan"), tx.init(0.0), 0.0)
        >>> print(float(updates), int(state.notfinite_count))
        0.0 1
    """
    inner = with_extra_args_support(inner)

    def init(params: Params) -> State:
        return ApplyIfFiniteState(first_count(), np.array(True), first_count(), inner.init(params))

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra_args: Any
    ) -> Step:
        finite = fnp.array(True)
        for leaf in tree_leaves(updates):
            finite = finite & fnp.all(fnp.isfinite(leaf))
        in_a_row = fnp.where(finite, np.int32(0), next_count(state.notfinite_count))
        total = fnp.where(finite, state.total_notfinite, next_count(state.total_notfinite))

        def step(updates: Updates, inner_state: Any) -> tuple[Updates, Any]:
            new, after = inner.update(updates, inner_state, params, **extra_args)
            return _in_dtypes(new, updates), after

        def skip(updates: Updates, inner_state: Any) -> tuple[Updates, Any]:
            return zeros_like(updates), inner_state

        is_taken = finite | (in_a_row > max_consecutive_errors)
        new, after = cond(is_taken, step, skip, updates, state.inner_state)
        return new, ApplyIfFiniteState(in_a_row, finite, total, after)

    return GradientTransformationExtraArgs(init, update)


# Parts of a state that belong to the parameters.


class ParamsEmaState(NamedTuple):
    ema: Params


def params_ema(decay: Scalar) -> GradientTransformation:
    """Keeps the running mean of the parameters in its state; the updates pass unchanged.

    Args: decay: Share of the mean that is left after a step. The mean starts at the initial
            parameters.

    It belongs at the end of a chain, where updates are what is added to the parameters.

    Example:
        >>> opt = fg.optim.chain(fg.optim.sgd(1.0), fg.optim.params_ema(0.75))
        >>> updates, (_, average) = opt.update(4.0, opt.init(8.0), 8.0)
        >>> print(average.ema)
        7.0
    """

    def init(params: Params) -> State:
        return ParamsEmaState(copies(params))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        new = tree_map(
            lambda p, u, mean: to_dtype(p + to_dtype(u, dtype_of(p)), dtype_of(mean)),
            needed(params, "params_ema"),
            updates,
            state.ema,
        )
        return updates, ParamsEmaState(incremental_update(new, state.ema, 1 - decay))

    return GradientTransformation(init, update)


# Hyperparameters as state.


class InjectHyperparamsState(NamedTuple):
    count: Array
    hyperparams: dict[str, Any]
    inner_state: Any


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: Any = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """A maker of optimisers whose hyperparameters are part of the state.

    They can be looked at, changed between the steps of a compiled loop without tracing it anew,
    differentiated with respect to, and mapped over.

    Args:
        inner_factory: Such as `adam`.
        static_args: Names of numbers that must be known when the optimiser is made, and of
            functions that are no schedules.
        hyperparam_dtype: Dtype of the numbers, by default float64.
    Returns: A function with the arguments of ``inner_factory``. Numbers other than bools become
        entries of ``state.hyperparams``; functions are taken as schedules, and their latest values
        become entries; the rest is passed on.

    Example:
        >>> opt = fg.optim.inject_hyperparams(fg.optim.sgd)(learning_rate=0.1)
        >>> state = opt.init(1.0)
        >>> state.hyperparams["learning_rate"] = 0.5
        >>> print(opt.update(1.0, state, 1.0)[0])
        -0.5
    """
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = signature_of(inner_factory)
    unknown = static - set(signature.parameters)
    if unknown:
        raise ArgumentError(
            f"optim.inject_hyperparams: static_args names {sorted(unknown)}, but the arguments are "
            f"{list(signature.parameters)}."
        )
    dtype = FLOAT64 if hyperparam_dtype is None else np.dtype(hyperparam_dtype)

    def make(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: x for name, x in bound.arguments.items() if name not in static}
        schedules = {name: x for name, x in given.items() if callable(x)}
        numbers = {name: x for name, x in given.items() if _is_number(x)}

        def built(hyperparams: Mapping[str, Any]) -> GradientTransformationExtraArgs:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            # Arrays, since they are values of a state: they may be 0, as numbers may not.
            bound.arguments.update({name: fnp.asarray(x) for name, x in hyperparams.items()})
            return with_extra_args_support(inner_factory(*bound.args, **bound.kwargs))

        def scheduled(count: Array) -> dict[str, Any]:
            return {name: to_dtype(f(count), dtype) for name, f in schedules.items()}

        def init(params: Params) -> State:
            count = first_count()
            hyperparams = {name: fnp.array(x, dtype=dtype) for name, x in numbers.items()}
            hyperparams |= scheduled(count)
            return InjectHyperparamsState(count, hyperparams, built(hyperparams).init(params))

        def update(
            updates: Updates, state: State, params: Params | None = None, **extra_args: Any
        ) -> Step:
            hyperparams = {**state.hyperparams, **scheduled(state.count)}
            tx = built(hyperparams)
            updates, after = tx.update(updates, state.inner_state, params, **extra_args)
            return updates, InjectHyperparamsState(next_count(state.count), hyperparams, after)

        return GradientTransformationExtraArgs(init, update)

    return make


def _is_number(x: Any) -> bool:
    if isinstance(x, bool):
        return False
    return type(x) in PYTHON_SCALARS or isinstance(
        x, np.ndarray | np.generic | Tracer | StandsForArray
    )
