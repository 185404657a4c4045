"""Schedules: functions from the number of steps done so far to a learning rate.

They compute in float64 from an integer scalar, traced or not; whoever uses the number brings it to
the dtype that it needs. Numbers may be traced, counts of steps are Python integers. The names,
arguments and formulas are optax's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.errors import ArgumentError
from funcgrad.optim.transformation import Scalar, Schedule, as_float

__all__ = [
    "constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule", "exponential_decay",
    "join_schedules", "linear_onecycle_schedule", "linear_schedule", "piecewise_constant_schedule",
    "piecewise_interpolate_schedule", "polynomial_schedule", "sgdr_schedule",
    "warmup_cosine_decay_schedule", "warmup_exponential_decay_schedule",
]  # fmt: skip


def constant_schedule(value: Scalar) -> Schedule:
    """Always the same number.

    Args: value: The number.
    Example: fg.optim.constant_schedule(0.1)(2) -> 0.1
    """
    return lambda count: value


def linear_schedule(
    init_value: Scalar, end_value: Scalar, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """From one number to another at constant speed.

    Example:
        >>> rate = fg.optim.linear_schedule(1.0, 0.0, transition_steps=4)
        >>> print(rate(0), rate(1), rate(100))
        1.0 0.75 0.0
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def polynomial_schedule(
    init_value: Scalar,
    end_value: Scalar,
    power: Scalar,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    """``end + (init - end) * (1 - t)**power``, where ``t`` goes from 0 to 1.

    Args: power: The exponent.
    Example: fg.optim.polynomial_schedule(1.0, 0.0, 2, 4)(2) -> np.float64(0.25)
    """
    _check_steps("polynomial_schedule", "transition_steps", transition_steps)

    def schedule(count: Any) -> Scalar:
        left = 1.0 - fnp.clip((as_float(count) - transition_begin) / transition_steps, 0.0, 1.0)
        return (init_value - end_value) * left**power + end_value

    return schedule


def exponential_decay(
    init_value: Scalar,
    transition_steps: int,
    decay_rate: Scalar,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Scalar | None = None,
) -> Schedule:
    """``init * decay_rate**(count / transition_steps)``.

    Args:
        transition_steps: After how many steps it is multiplied by the decay rate once.
        end_value: A bound: the least value if the factor is below 1, else the largest.

    Example:
        >>> rate = fg.optim.exponential_decay(1.0, transition_steps=10, decay_rate=0.5)
        >>> print(rate(0), rate(10), rate(20))
        1.0 0.5 0.25
    """
    _check_steps("exponential_decay", "transition_steps", transition_steps)

    def schedule(count: Any) -> Scalar:
        passed = fnp.maximum(as_float(count) - transition_begin, 0.0) / transition_steps
        value = init_value * as_float(decay_rate) ** (fnp.floor(passed) if staircase else passed)
        if end_value is None:
            return value
        bounded = fnp.maximum(value, end_value), fnp.minimum(value, end_value)
        return fnp.where(as_float(decay_rate) < 1.0, *bounded)

    return schedule


def cosine_decay_schedule(
    init_value: Scalar, decay_steps: int, alpha: Scalar = 0.0, exponent: Scalar = 1.0
) -> Schedule:
    """Half a wave of the cosine, from ``init_value`` down (Loshchilov and Hutter, 2017).

    Args:
        decay_steps: How many steps it takes.
        alpha: What is left at the end, as a share of ``init_value``.
        exponent: Of the wave, which goes from 1 to 0.

    Example:
        >>> rate = fg.optim.cosine_decay_schedule(1.0, decay_steps=10)
        >>> print(rate(0), round(float(rate(5)), 6), rate(10))
        1.0 0.5 0.0
    """
    _check_steps("cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(count: Any) -> Scalar:
        wave = 0.5 * (1.0 + _cosine(fnp.minimum(as_float(count), decay_steps) / decay_steps))
        return init_value * ((1.0 - alpha) * wave**exponent + alpha)

    return schedule


def _cosine(share: Scalar) -> Scalar:
    return fnp.cos(math.pi * share)


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Schedules one after the other, each counting from its own begin.

    Args:
        schedules: Functions of the number of steps.
        boundaries: Where the second and each later one begins.
    Raises: ArgumentError: If there is not one boundary less than schedules.
    Example: fg.optim.join_schedules([lambda n: 1.0, lambda n: 0.1], [3])(5) -> np.float64(0.1)
    """
    if len(boundaries) != len(schedules) - 1:
        raise ArgumentError(
            f"optim.join_schedules: {len(schedules)} schedules have {len(schedules) - 1} "
            f"boundaries between them, got {len(boundaries)}."
        )

    def schedule(count: Any) -> Scalar:
        value = schedules[0](count)
        for boundary, later in zip(boundaries, schedules[1:], strict=True):
            # A schedule may not be defined before its begin.
            reached = later(fnp.maximum(count - boundary, 0))
            value = fnp.where(count < boundary, value, reached)
        return value

    return schedule


def warmup_cosine_decay_schedule(
    init_value: Scalar,
    peak_value: Scalar,
    warmup_steps: int,
    decay_steps: int,
    end_value: Scalar = 0.0,
    exponent: Scalar = 1.0,
) -> Schedule:
    """A linear ascent, then half a wave of the cosine down.

    Args:
        decay_steps: How many steps both take.
        exponent: Of the wave.
    Example: fg.optim.warmup_cosine_decay_schedule(0.0, 1.0, 4, 10)(2) -> np.float64(0.5)
    """
    _check_steps(
        "warmup_cosine_decay_schedule", "decay_steps - warmup_steps", decay_steps - warmup_steps
    )

    def descent(count: Any) -> Scalar:
        wave = cosine_decay_schedule(1.0, decay_steps - warmup_steps, 0.0, exponent)(count)
        return (peak_value - end_value) * wave + end_value

    if not warmup_steps:
        return descent
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps), descent], [warmup_steps]
    )


def warmup_exponential_decay_schedule(
    init_value: Scalar,
    peak_value: Scalar,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Scalar,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Scalar | None = None,
) -> Schedule:
    """A linear ascent, then `exponential_decay`.

    Args:
        transition_steps: After how many steps it is multiplied by the decay rate once.
        transition_begin: How many steps after the ascent the decay begins.
        end_value: A bound of the decay.
    Example: fg.optim.warmup_exponential_decay_schedule(0.0, 1.0, 4, 10, 0.5)(2) -> np.float64(0.5)
    """
    descent = exponential_decay(
        peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value
    )
    if not warmup_steps:
        return descent
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps), descent], [warmup_steps]
    )


def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Any]]) -> Schedule:
    """Several `warmup_cosine_decay_schedule`, one after the other: warm restarts.

    Args: cosine_kwargs: The arguments of each.

    Example:
        >>> fg.optim.sgdr_schedule(
        ...     [{"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 1, "decay_steps": 4}]
        ... )(2)
        np.float64(0.75)
    """
    cycles = [dict(kwargs) for kwargs in cosine_kwargs]
    ends = np.cumsum([kwargs["decay_steps"] for kwargs in cycles]).tolist()
    return join_schedules([warmup_cosine_decay_schedule(**kwargs) for kwargs in cycles], ends[:-1])


def piecewise_constant_schedule(
    init_value: Scalar, boundaries_and_scales: Mapping[int, Scalar] | None = None
) -> Schedule:
    """A number that is multiplied by a factor at each of several steps.

    Args: boundaries_and_scales: Factors, by the step from which on they hold.

    Example:
        >>> rate = fg.optim.piecewise_constant_schedule(1.0, {100: 0.5, 200: 0.5})
        >>> print(rate(99), rate(100), rate(200))
        1.0 0.5 0.25
    """
    factors = sorted((boundaries_and_scales or {}).items())

    def schedule(count: Any) -> Scalar:
        value = as_float(init_value)
        for boundary, factor in factors:
            value = value * fnp.where(count < boundary, 1.0, as_float(factor))
        return value

    return schedule


def piecewise_interpolate_schedule(
    interpolate_type: str,
    init_value: Scalar,
    boundaries_and_scales: Mapping[int, Scalar] | None = None,
) -> Schedule:
    """A number that reaches the values of `piecewise_constant_schedule` smoothly.

    Args:
        interpolate_type: ``"linear"`` or ``"cosine"``: how it goes from one value to the next.
        boundaries_and_scales: Factors, by the step at which the product is reached.
    Raises: ArgumentError: If the type is another one.
    Example: fg.optim.piecewise_interpolate_schedule("linear", 1.0, {4: 0.5})(2) -> np.float64(0.75)
    """
    if interpolate_type not in _PROGRESS:
        raise ArgumentError(
            "optim.piecewise_interpolate_schedule: interpolate_type must be 'linear' or 'cosine', "
            f"got {interpolate_type!r}."
        )
    progress = _PROGRESS[interpolate_type]
    factors = sorted((boundaries_and_scales or {}).items())

    def schedule(count: Any) -> Scalar:
        value = target = as_float(init_value)
        begin, step = 0, as_float(count)
        for end, factor in factors:
            start, target = target, target * as_float(factor)
            share = fnp.clip((step - begin) / max(end - begin, 1), 0.0, 1.0)
            there = start + (target - start) * progress(share)
            value = fnp.where(step < begin, value, fnp.where(step < end, there, target))
            begin = end
        return value

    return schedule


_PROGRESS: dict[str, Schedule] = {
    "linear": lambda share: share,
    "cosine": lambda share: 0.5 - 0.5 * _cosine(share),
}


def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: Scalar = 25.0,
    final_div_factor: Scalar = 1e4,
) -> Schedule:
    """Up, down, and further down, along straight lines (Smith and Topin, 2019).

    Args: pct_final: The share after which the first value is reached again.
    Example: fg.optim.linear_onecycle_schedule(10, 1.0)(2) -> np.float64(0.6799999999999999)
    """
    _check_steps("linear_onecycle_schedule", "transition_steps", transition_steps)
    return piecewise_interpolate_schedule(
        "linear",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            int(pct_final * transition_steps): 1.0 / div_factor,
            transition_steps: 1.0 / final_div_factor,
        },
    )


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Scalar,
    pct_start: float = 0.3,
    div_factor: Scalar = 25.0,
    final_div_factor: Scalar = 1e4,
) -> Schedule:
    """Up and down along two waves of the cosine (Smith and Topin, 2019).

    Example:
        >>> rate = fg.optim.cosine_onecycle_schedule(100, peak_value=1.0)
        >>> print(rate(0), rate(30), float(rate(100)))
        0.04 1.0 4e-06
    """
    _check_steps("cosine_onecycle_schedule", "transition_steps", transition_steps)
    return piecewise_interpolate_schedule(
        "cosine",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            transition_steps: 1.0 / (div_factor * final_div_factor),
        },
    )


def _check_steps(function: str, name: str, steps: int) -> None:
    if not steps > 0:
        raise ArgumentError(f"optim.{function}: {name} must be positive, got {steps}.")
