"""Transformations that scale updates: by numbers and schedules, by moments, by what adds up.

The names, arguments, states and formulas are optax's. In the formulas ``g`` stands for the update,
``p`` for the parameter, ``m`` and ``v`` for the running means ``m <- b1 m + (1 - b1) g`` and
``v <- b2 v + (1 - b2) |g|**2``, which start at zero, and a hat for the correction of that start:
division by ``1 - b**t``, with ``t`` for the number of the step, from 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import tree_map
from funcgrad.dtypes import PYTHON_SCALARS
from funcgrad.errors import ArgumentError
from funcgrad.lax import rsqrt
from funcgrad.numpy.promotion import to_dtype
from funcgrad.optim.clipping import global_norm
from funcgrad.optim.masking import masked
from funcgrad.optim.transformation import (
    Array,
    GradientTransformation,
    Params,
    Scalar,
    ScalarOrSchedule,
    Schedule,
    State,
    Step,
    Updates,
    as_float,
    dtype_of,
    first_count,
    like,
    needed,
    next_count,
    square,
    stateless,
    zeros_like,
)

__all__ = [
    "add_decayed_weights", "ema", "scale", "scale_by_adadelta", "scale_by_adam", "scale_by_adamax",
    "scale_by_learning_rate", "scale_by_lion", "scale_by_radam", "scale_by_rms", "scale_by_rss",
    "scale_by_schedule", "scale_by_sign", "scale_by_stddev", "scale_by_trust_ratio",
    "scale_by_yogi", "trace",
]  # fmt: skip

# By numbers.


def scale(step_size: Scalar) -> GradientTransformation:
    """Every update multiplied by a number.

    Args: step_size: The number.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.scale(2.0), np.array([1.0, -2.0]))
        -> array([ 2., -4.])
    """
    return stateless(lambda updates, params: tree_map(lambda g: like(step_size, g) * g, updates))


class ScaleByScheduleState(NamedTuple):
    count: Array


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Every update multiplied by a function of the number of steps done so far.

    Args: step_size_fn: From an int32 scalar, 0 in the first step, to a number.

    Example:
        >>> o, p = fg.optim.scale_by_schedule(lambda count: 0.5), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.5, -1. ])
    """

    def init(params: Params) -> State:
        return ScaleByScheduleState(first_count())

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        step_size = step_size_fn(state.count)
        scaled = tree_map(lambda g: like(step_size, g) * g, updates)
        return scaled, ScaleByScheduleState(next_count(state.count))

    return GradientTransformation(init, update)


def check_rate(learning_rate: ScalarOrSchedule) -> None:
    """Refuse learning rates that are known and cannot be meant.

    An array may be 0: so are the values of schedules that `inject_hyperparams` keeps in its state.

    Raises: ArgumentError: As `scale_by_learning_rate` says.
    """
    is_array = type(learning_rate) is np.ndarray and learning_rate.shape == ()
    is_number = type(learning_rate) in PYTHON_SCALARS or isinstance(learning_rate, np.generic)
    if not is_array and not is_number:
        return
    if 0 < learning_rate < np.inf or (is_array and learning_rate == 0):
        return
    if learning_rate == 0:
        advice = "optim.set_to_zero() keeps parameters as they are; a schedule may return 0."
    elif learning_rate < 0:
        advice = "Steps go against the gradient already; to maximise, change the sign of the loss."
    else:
        advice = "Look at where it was computed."
    raise ArgumentError(
        f"the learning rate is {learning_rate}, but has to be greater than 0 and finite. {advice}"
    )


def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule, *, flip_sign: bool = True
) -> GradientTransformation:
    """Every update multiplied by minus the learning rate.

    Args: flip_sign: Whether it is minus the learning rate: for a loss that shall become smaller.
    Raises: ArgumentError: If the learning rate is known, and negative, infinite or NaN, or a 0 that
            is no array.

    Example:
        >>> tx = fg.optim.scale_by_learning_rate(0.5)
        >>> print(tx.update(3.0, tx.init(1.0))[0])
        -1.5
    """
    check_rate(learning_rate)
    if callable(learning_rate):
        schedule = learning_rate
        return scale_by_schedule(lambda count: -schedule(count) if flip_sign else schedule(count))
    return scale(-learning_rate if flip_sign else learning_rate)


def add_decayed_weights(
    weight_decay: Scalar = 0.0, mask: Any | Callable[[Params], Any] | None = None
) -> GradientTransformation:
    """``g + weight_decay * p``, with ``p`` for the parameter.

    Args:
        weight_decay: The factor.
        mask: Which parameters decay: a tree of bools that the parameters' tree may extend, or a
            function from the parameters to one; by default all.

    Example:
        >>> o, p = fg.optim.add_decayed_weights(0.1), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 1.1, -2.2])
    """

    def update(updates: Updates, params: Params | None) -> Updates:
        return tree_map(
            lambda g, p: g + like(weight_decay, g) * p,
            updates,
            needed(params, "add_decayed_weights"),
        )

    return stateless(update) if mask is None else masked(stateless(update), mask)


# By moments.


def moment(decay: Scalar, means: Any, values: Any, order: int = 1) -> Any:
    """``decay * mean + (1 - decay) * value`` for every leaf, of squares if ``order`` is 2."""

    def step(mean: Array, value: Array) -> Array:
        x = to_dtype(square(value) if order == 2 else value, dtype_of(mean))
        return like(decay, mean) * mean + like(1 - decay, mean) * x

    return tree_map(step, means, values)


def squares_like(params: Params, value: Scalar = 0.0) -> Any:
    """For the mean of the squares: real numbers of the shapes of the parameters."""
    return tree_map(lambda p: fnp.full_like(square(fnp.zeros_like(p)), like(value, p)), params)


def correction(decay: Scalar, count: Array) -> Scalar:
    """``1 / (1 - decay**count)``, in float64."""
    return 1.0 / (1.0 - as_float(decay) ** as_float(count))


def scaled_by(factor: Scalar, tree: Any) -> Any:
    """Every leaf multiplied by a scalar."""
    return tree_map(lambda x: like(factor, x) * x, tree)


def corrected_mean(b1: Scalar, mu: Any, updates: Updates, count: Array, nesterov: bool) -> Any:
    """The first moment without the bias of its start.

    With ``nesterov`` it is mixed once more with the gradient (Dozat, 2016), which is the mean as it
    will be after another step with the same gradient.
    """
    if not nesterov:
        return scaled_by(correction(b1, count), mu)
    ahead = scaled_by(correction(b1, next_count(count)), mu)
    return moment(b1, ahead, scaled_by(correction(b1, count), updates))


class ScaleByAdamState(NamedTuple):
    count: Array
    mu: Updates
    nu: Updates


def scale_by_adam(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """``m^ / (sqrt(v^ + eps_root) + eps)`` (Kingma and Ba, 2015).

    Example:
        >>> o, p = fg.optim.scale_by_adam(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.99999999, -1.        ])
    """

    def init(params: Params) -> State:
        return ScaleByAdamState(first_count(), zeros_like(params, mu_dtype), squares_like(params))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        count = next_count(state.count)
        mu = moment(b1, tree_map(_in_dtype_of, state.mu, updates), updates)
        nu = moment(b2, state.nu, updates, 2)
        mean = corrected_mean(b1, mu, updates, count, nesterov)
        unbiased = scaled_by(correction(b2, count), nu)
        scaled = tree_map(lambda m, v: m / _root(v, eps_root, eps), mean, unbiased)
        kept = tree_map(lambda m, before: to_dtype(m, dtype_of(before)), mu, state.mu)
        return scaled, ScaleByAdamState(count, kept, nu)

    return GradientTransformation(init, update)


def _in_dtype_of(x: Array, other: Array) -> Array:
    return to_dtype(x, dtype_of(other))


def _root(v: Array, eps_root: Scalar, eps: Scalar) -> Array:
    return fnp.sqrt(v + like(eps_root, v)) + like(eps, v)


class ScaleByAdamaxState(NamedTuple):
    count: Array
    mu: Updates
    nu: Updates


def scale_by_adamax(
    b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-8
) -> GradientTransformation:
    """``m^ / u`` with ``u <- max(b2 u, |g| + eps)`` (Kingma and Ba, 2015).

    Args:
        b2: Decay of the largest magnitude.
        eps: Added to the magnitude.

    Example:
        >>> o, p = fg.optim.scale_by_adamax(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.99999999, -1.        ])
    """

    def init(params: Params) -> State:
        return ScaleByAdamaxState(first_count(), zeros_like(params), squares_like(params))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        count = next_count(state.count)
        mu = moment(b1, state.mu, updates)
        nu = tree_map(
            lambda v, g: fnp.maximum(like(b2, v) * v, fnp.abs(g) + like(eps, v)), state.nu, updates
        )
        scaled = tree_map(lambda m, v: m / v, scaled_by(correction(b1, count), mu), nu)
        return scaled, ScaleByAdamaxState(count, mu, nu)

    return GradientTransformation(init, update)


class ScaleByYogiState(NamedTuple):
    count: Array
    mu: Updates
    nu: Updates


def scale_by_yogi(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-3,
    eps_root: Scalar = 0.0,
    initial_accumulator_value: Scalar = 1e-6,
) -> GradientTransformation:
    """Scale by Yogi: Adam with ``v <- v - (1 - b2) sign(v - g**2) g**2`` (Zaheer et al., 2018).

    Args:
        b2: How slowly the second moment moves.
        initial_accumulator_value: Where both moments start.

    Example:
        >>> o, p = fg.optim.scale_by_yogi(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.99851136, -0.9993709 ])
    """

    def init(params: Params) -> State:
        def filled(p: Array) -> Array:
            return fnp.full_like(p, like(initial_accumulator_value, p))

        return ScaleByYogiState(
            first_count(), tree_map(filled, params), squares_like(params, initial_accumulator_value)
        )

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        count = next_count(state.count)
        mu = moment(b1, state.mu, updates)

        def second(v: Array, g: Array) -> Array:
            return v - like(1 - b2, v) * fnp.sign(v - square(g)) * square(g)

        nu = tree_map(second, state.nu, updates)
        scaled = tree_map(
            lambda m, v: m / _root(v, eps_root, eps),
            scaled_by(correction(b1, count), mu),
            scaled_by(correction(b2, count), nu),
        )
        return scaled, ScaleByYogiState(count, mu, nu)

    return GradientTransformation(init, update)


def scale_by_radam(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    threshold: Scalar = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Scale by RAdam: Adam times a factor, small while few gradients were seen (Liu et al., 2020).

    Args: threshold: The least number of gradients, as the mean of squares counts them, from which
            on there is a division by the root.

    Example:
        >>> o, p = fg.optim.scale_by_radam(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 1., -2.])
    """

    def init(params: Params) -> State:
        return ScaleByAdamState(first_count(), zeros_like(params), squares_like(params))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        count = next_count(state.count)
        mu, nu = moment(b1, state.mu, updates), moment(b2, state.nu, updates, 2)
        mean = corrected_mean(b1, mu, updates, count, nesterov)
        unbiased = scaled_by(correction(b2, count), nu)
        trusted, factor = _rectification(as_float(b2), as_float(count), threshold)

        def rectified(m: Array, v: Array) -> Array:
            return fnp.where(trusted, like(factor, v) * m / _root(v, eps_root, eps), m)

        return tree_map(rectified, mean, unbiased), ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


def _rectification(b2: Scalar, count: Scalar, threshold: Scalar) -> tuple[Scalar, Scalar]:
    """Whether the second moment can be trusted, and the factor if so, else 1."""
    limit = 2.0 / (1.0 - b2) - 1.0
    power = b2**count
    seen = limit - 2.0 * count * power / (1.0 - power)
    trusted = seen >= as_float(threshold)
    safe = fnp.where(trusted, seen, limit)
    ratio = (safe - 4.0) * (safe - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * safe)
    return trusted, fnp.sqrt(ratio)


class ScaleByRmsState(NamedTuple):
    nu: Updates


class ScaleByRmsWithCountState(NamedTuple):
    count: Array
    nu: Updates


def scale_by_rms(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """``g / sqrt(v + eps)``, or ``g / (sqrt(v) + eps)`` (Tieleman and Hinton, 2012).

    Args: eps: Added under the root, or to it.

    Example:
        >>> o, p = fg.optim.scale_by_rms(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 3.1622775 , -3.16227762])
    """

    def init(params: Params) -> State:
        nu = squares_like(params, initial_scale)
        return (
            ScaleByRmsWithCountState(first_count(), nu) if bias_correction else ScaleByRmsState(nu)
        )

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        nu = moment(decay, state.nu, updates, 2)
        if not bias_correction:
            return _over_roots(updates, nu, eps, eps_in_sqrt), ScaleByRmsState(nu)
        count = next_count(state.count)
        unbiased = scaled_by(correction(decay, count), nu)
        return (
            _over_roots(updates, unbiased, eps, eps_in_sqrt),
            ScaleByRmsWithCountState(count, nu),
        )

    return GradientTransformation(init, update)


def _over_roots(updates: Updates, squares: Any, eps: Scalar, eps_in_sqrt: bool) -> Updates:
    if eps_in_sqrt:
        return tree_map(lambda g, v: g * rsqrt(v + like(eps, v)), updates, squares)
    return tree_map(lambda g, v: g / (fnp.sqrt(v) + like(eps, v)), updates, squares)


class ScaleByRStdDevState(NamedTuple):
    mu: Updates
    nu: Updates


class ScaleByRStdDevWithCountState(NamedTuple):
    count: Array
    mu: Updates
    nu: Updates


def scale_by_stddev(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Divide by a running standard deviation of gradients (Graves, 2013).

    As `scale_by_rms`, with the variance ``v - |m|**2`` in place of ``v``.

    Args: eps: Added under the root, or to it.

    Example:
        >>> o, p = fg.optim.scale_by_stddev(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 3.33333315, -3.33333329])
    """

    def init(params: Params) -> State:
        mu, nu = zeros_like(params), squares_like(params, initial_scale)
        if bias_correction:
            return ScaleByRStdDevWithCountState(first_count(), mu, nu)
        return ScaleByRStdDevState(mu, nu)

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        mu, nu = moment(decay, state.mu, updates), moment(decay, state.nu, updates, 2)
        if not bias_correction:
            variance = tree_map(lambda m, v: v - square(m), mu, nu)
            return _over_roots(updates, variance, eps, eps_in_sqrt), ScaleByRStdDevState(mu, nu)
        count = next_count(state.count)
        factor = correction(decay, count)
        variance = tree_map(
            lambda m, v: v - square(m), scaled_by(factor, mu), scaled_by(factor, nu)
        )
        return (
            _over_roots(updates, variance, eps, eps_in_sqrt),
            ScaleByRStdDevWithCountState(count, mu, nu),
        )

    return GradientTransformation(init, update)


class ScaleByRssState(NamedTuple):
    sum_of_squares: Updates


def scale_by_rss(
    initial_accumulator_value: Scalar = 0.1, eps: Scalar = 1e-7
) -> GradientTransformation:
    """``g / sqrt(s + eps)`` with ``s <- s + |g|**2`` (Duchi et al., 2011); 0 where ``s`` is.

    Args: eps: Added under the root.

    Example:
        >>> o, p = fg.optim.scale_by_rss(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.95346255, -0.98772958])
    """

    def init(params: Params) -> State:
        return ScaleByRssState(squares_like(params, initial_accumulator_value))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        sums = tree_map(
            lambda s, g: s + to_dtype(square(g), dtype_of(s)), state.sum_of_squares, updates
        )

        def scaled(g: Array, s: Array) -> Array:
            return fnp.where(s > 0, g * rsqrt(s + like(eps, s)), fnp.zeros_like(g))

        return tree_map(scaled, updates, sums), ScaleByRssState(sums)

    return GradientTransformation(init, update)


class ScaleByAdaDeltaState(NamedTuple):
    e_g: Updates
    e_x: Updates


def scale_by_adadelta(rho: Scalar = 0.9, eps: Scalar = 1e-6) -> GradientTransformation:
    """``d = g sqrt(x + eps) / sqrt(v + eps)``, ``x`` the running mean of ``d**2`` (Zeiler, 2012).

    Args:
        rho: Decay of both means.
        eps: Added under the roots.

    Example:
        >>> o, p = fg.optim.scale_by_adadelta(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 0.00316226, -0.00316227])
    """

    def init(params: Params) -> State:
        return ScaleByAdaDeltaState(squares_like(params), squares_like(params))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        e_g = moment(rho, state.e_g, updates, 2)

        def scaled(g: Array, of_g: Array, of_x: Array) -> Array:
            return fnp.sqrt(of_x + like(eps, of_x)) / fnp.sqrt(of_g + like(eps, of_g)) * g

        deltas = tree_map(scaled, updates, e_g, state.e_x)
        return deltas, ScaleByAdaDeltaState(e_g, moment(rho, state.e_x, deltas, 2))

    return GradientTransformation(init, update)


class ScaleByLionState(NamedTuple):
    count: Array
    mu: Updates


def scale_by_lion(
    b1: Scalar = 0.9, b2: Scalar = 0.99, mu_dtype: Any = None
) -> GradientTransformation:
    """``sign(b1 m + (1 - b1) g)``, then ``m <- b2 m + (1 - b2) g`` (Chen et al., 2023).

    Args:
        b1: Share of the mean in the direction.
        b2: Decay of the mean.

    Example:
        >>> o, p = fg.optim.scale_by_lion(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 1., -1.])
    """

    def init(params: Params) -> State:
        return ScaleByLionState(first_count(), zeros_like(params, mu_dtype))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        means = tree_map(_in_dtype_of, state.mu, updates)
        signs = tree_map(fnp.sign, moment(b1, means, updates))
        kept = tree_map(_in_dtype_of, moment(b2, means, updates), state.mu)
        return signs, ScaleByLionState(next_count(state.count), kept)

    return GradientTransformation(init, update)


def scale_by_sign() -> GradientTransformation:
    """The sign of every element.

    Example:
        >>> o, p = fg.optim.scale_by_sign(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 1., -1.])
    """
    return stateless(lambda updates, params: tree_map(fnp.sign, updates))


class TraceState(NamedTuple):
    trace: Updates


def trace(
    decay: Scalar, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformation:
    """``t <- g + decay * t``, the sum of what came so far: momentum.

    Args:
        decay: Share of the sum that is left after a step.
        nesterov: Whether the update is ``g + decay * t`` with the new ``t`` (Sutskever et al.,
            2013), and not ``t``.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.trace(0.9), np.array([1.0, -2.0]))
        -> array([ 1., -2.])
    """

    def init(params: Params) -> State:
        return TraceState(zeros_like(params, accumulator_dtype))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        def step(g: Array, t: Array) -> Array:
            return g + like(decay, g) * to_dtype(t, dtype_of(g))

        traces = tree_map(step, updates, state.trace)
        out = tree_map(step, updates, traces) if nesterov else traces
        return out, TraceState(tree_map(_in_dtype_of, traces, state.trace))

    return GradientTransformation(init, update)


class EmaState(NamedTuple):
    count: Array
    ema: Updates


def ema(
    decay: Scalar, debias: bool = True, accumulator_dtype: Any = None
) -> GradientTransformation:
    """The running mean of the updates, ``m``.

    Args:
        decay: Share of the mean that is left after a step.
        debias: Whether the mean is corrected for its start at zero.
    Example: (lambda o, p: o.update(p, o.init(p), p)[0])(fg.optim.ema(0.9), np.array([1.0, -2.0]))
        -> array([ 1., -2.])
    """

    def init(params: Params) -> State:
        return EmaState(first_count(), zeros_like(params, accumulator_dtype))

    def update(updates: Updates, state: State, params: Params | None = None) -> Step:
        count = next_count(state.count)
        mean = moment(decay, tree_map(_in_dtype_of, state.ema, updates), updates)
        out = scaled_by(correction(decay, count), mean) if debias else mean
        return out, EmaState(count, tree_map(_in_dtype_of, mean, state.ema))

    return GradientTransformation(init, update)


# By the parameters.


def scale_by_trust_ratio(
    min_norm: Scalar = 0.0, trust_coefficient: Scalar = 1.0, eps: Scalar = 0.0
) -> GradientTransformation:
    """``g * trust_coefficient * |p| / (|g| + eps)`` for every array (You et al., 2020).

    Args:
        min_norm: The least value of both norms.
        trust_coefficient: A factor.
        eps: Added to the norm of the update.

    Where one of the norms is zero the update stays as it is.

    Example:
        >>> o, p = fg.optim.scale_by_trust_ratio(), np.array([1.0, -2.0])
        >>> o.update(p, o.init(p), p)[0]
        array([ 1., -2.])
    """

    def scaled(g: Array, p: Array) -> Array:
        size = fnp.maximum(like(min_norm, g), global_norm(g))
        weight = to_dtype(fnp.maximum(like(min_norm, p), global_norm(p)), dtype_of(size))
        is_zero = (size == 0) | (weight == 0)
        divisor = fnp.where(is_zero, fnp.ones_like(size), size + like(eps, size))
        ratio = like(trust_coefficient, g) * weight / divisor
        return fnp.where(is_zero, fnp.ones_like(ratio), ratio) * g

    return stateless(
        lambda updates, params: tree_map(scaled, updates, needed(params, "scale_by_trust_ratio"))
    )
