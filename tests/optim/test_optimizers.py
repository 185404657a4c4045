"""Optimisers and schedules against recorded trajectories of optax and PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import optim
from tests.optim.problem import (
    CHAINS,
    COUNTS,
    OPTIMIZERS,
    SCHEDULES,
    STEPS,
    Tree,
    gradient,
    start,
    value,
)
from tests.optim.torch_optimizers import TORCH

RECORDED = Path(__file__).with_name("recorded")
KEPT = (0, *range(9, STEPS, 10))


def recorded(file: str, name: str) -> np.ndarray:
    with np.load(RECORDED / f"{file}.npz") as arrays:
        return arrays[name]


def flat(params: Tree) -> np.ndarray:
    return np.concatenate([np.ravel(params[name]) for name in ("w", "b")])


def made(name: str) -> optim.GradientTransformation:
    if name in CHAINS:
        return CHAINS[name](optim)
    function, arguments = OPTIMIZERS[name]
    return getattr(optim, function)(**arguments)


def trajectory(tx: optim.GradientTransformation, is_jitted: bool) -> np.ndarray:
    """The parameters after the steps that are recorded."""
    update = optim.with_extra_args_support(tx).update

    def step(params: Any, state: Any) -> tuple[Any, Any]:
        g = gradient(params)
        extra = {"value": value(params), "grad": g, "value_fn": value}
        updates, state = update(g, state, params, **extra)
        return optim.apply_updates(params, updates), state

    def record(carry: Any, _: Any) -> tuple[Any, Any]:
        carry = step(*carry)
        return carry, fg.numpy.concatenate([carry[0]["w"].ravel(), carry[0]["b"]])

    params = start()
    state = tx.init(params)
    if is_jitted:
        _, rows = fg.jit(lambda c: fg.lax.scan(record, c, length=STEPS))((params, state))
        return rows[list(KEPT)]
    rows = []
    for _ in range(STEPS):
        params, state = step(params, state)
        rows.append(flat(params))
    return np.array(rows)[list(KEPT)]


# All run compiled by night; these, of every kind one, always.
COMPILED = (
    *("sgd nesterov", "adamw masked", "rmsprop centered", "lamb", "lbfgs", "MultiSteps sum"),
    *("schedule", "apply_if_finite", "lbfgs zoom", "lbfgs backtracking", "sgd backtracking"),
    "lbfgs unscaled",
)
LONG = ("lbfgs", "lbfgs zoom", "lbfgs backtracking", "lbfgs unscaled")
"""Searches along lines that take seconds unless they are compiled, as every run does."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in LONG else ())
        for name in [*OPTIMIZERS, *CHAINS]
    ],
)
def test_fifty_steps_are_those_of_optax(name):
    actual = trajectory(made(name), is_jitted=False)
    np.testing.assert_allclose(actual, recorded("optax", name), rtol=0, atol=1e-10)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in COMPILED else pytest.mark.nightly)
        for name in [*OPTIMIZERS, *CHAINS]
    ],
)
def test_fifty_compiled_steps_are_those_of_optax(name):
    actual = trajectory(made(name), is_jitted=True)
    np.testing.assert_allclose(actual, recorded("optax", name), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", TORCH)
def test_fifty_steps_are_those_of_torch(name):
    actual = trajectory(TORCH[name].ours(optim), is_jitted=False)
    np.testing.assert_allclose(actual, recorded("torch", name), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_optax(name):
    function, arguments = SCHEDULES[name]
    schedule, expected = getattr(optim, function)(*arguments), recorded("schedules", name)
    of_ints = [float(schedule(n)) for n in COUNTS]
    np.testing.assert_allclose(of_ints, expected, rtol=1e-12, atol=1e-15)
    counts = np.array(COUNTS, np.int32)
    np.testing.assert_allclose([float(schedule(n)) for n in counts], expected, 1e-12, 1e-15)
