"""Trials measure what they say, and are made where they make sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.profiling import Trial, WhatIf
from funcgrad.profiling.what_if import trial
from funcgrad.scipy import special

RNG = np.random.default_rng(0)
A, B, V = RNG.normal(size=(400, 400)), RNG.normal(size=(400, 400)), RNG.normal(size=(400, 1))


@pytest.fixture(autouse=True)
def _short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SECONDS", 0.05)


def trials(f, *args) -> dict[str, Trial]:
    found = fg.profile(f, seconds=0)(*args).what_if()
    assert not found.failed, found
    return {x.name: x for x in found.trials}


def test_products_in_a_better_order():
    def f(a, b, v):
        return a @ b @ v

    found = trials(fg.jit(f), A, B, V)["one einsum for two"]
    assert found.is_gain
    assert found.location.text() == "return a @ b @ v"
    assert "one einsum for two" not in trials(fg.jit(lambda a, b, v: a @ (b @ v)), A, B, V)


def test_products_of_a_product():
    def f(a, b, v, w):
        both = a @ b
        return both @ v, w @ both

    found = trials(fg.jit(f), A, B, V, V.T)["one einsum for two"]
    assert found.is_gain
    assert found.what.startswith("einsum of three for each product of one: ")
    assert found.location.text() == "return both @ v, w @ both"
    for g in (lambda a, b, v: (a @ b, a @ b @ v), lambda a, b, v: (a @ b) @ (a @ b) + np.sum(v)):
        assert "one einsum for two" not in trials(fg.jit(g), A, B, V)


def test_single_precision_tells_how_much_results_differ():
    found = trials(fg.jit(lambda x: np.sum(np.exp(np.sin(x)))), np.linspace(0, 1, 100_000))
    assert found["float32"].note.startswith("results differ by ")
    assert found["float32"].before > 0
    assert "float32" not in trials(fg.jit(np.sin), np.ones(5000, np.float32))


def test_axis_order_of_a_running_sum():
    found = trials(fg.jit(lambda x: np.cumsum(x, axis=0)[-1]), RNG.normal(size=(500, 500)))
    assert found["axis order"].what == "the last axis of args[0] first in memory"


def test_checkpoint_of_a_gradient():
    def loss(x):
        for _ in range(5):
            x = np.sin(np.tanh(x))
        return np.sum(x)

    found = trials(fg.jit(fg.value_and_grad(loss)), np.linspace(0, 1, 50_000))
    assert "memory" in found["checkpoint"].note
    assert "checkpoint" not in trials(fg.jit(loss), np.linspace(0, 1, 5000))


def test_loops_of_python():
    def f(x):
        for i in range(200):
            x = np.sin(x) * 0.9 + i
        return x

    assert trials(fg.jit(f), np.ones(5))["loops of Python"].what == "loops of Python unrolled"
    with fg.reroll_loops(False):
        found = trials(fg.jit(lambda x: f(x)), np.ones(5))["loops of Python"]
    assert found.what == "loops of Python one loop"


def test_donated_arguments():
    found = trials(fg.jit(lambda x, y: (x + y, np.sum(y))), np.ones(10_000), np.ones(10_000))
    assert found["donated arguments"].what == "donate_argnums=(0,)"
    assert "donated arguments" not in trials(fg.jit(np.sum), np.ones(10_000))


def test_what_does_not_run_is_said():
    def f(x):
        assert x.dtype == np.float64 or fg.lax.lgamma(np.ones(3, complex)) is None
        return np.sum(x)

    found = fg.profile(fg.jit(f), seconds=0)(np.ones(10)).what_if()
    assert isinstance(found, WhatIf)
    assert [name for name, _ in found.failed] == ["float32"]
    assert "not tried, float32: " in str(found)
    assert str(found).startswith("what if, for f:")


def momentum(w, v, x, y):
    v = 0.9 * v + fg.grad(lambda w: np.mean((np.tanh(x @ w) - y) ** 2))(w)
    return w - 0.1 * v, v


def low_rank(u, s, x):
    return np.tanh(u @ s @ x)


def low_rank_otherwise(u, s, x):
    return np.tanh(u @ (s @ x))


def prices(returns):
    return np.exp(np.cumsum(returns, axis=0)).mean(1)


def deep(w, x):
    for _ in range(6):
        x = np.tanh(x @ w)
    return np.sum(x**2)


def pendulum(state):
    angle, speed = state
    for _ in range(150):
        speed = speed - 0.01 * (np.sin(angle) + 0.1 * speed)
        angle = angle + 0.01 * speed
    return angle, speed


def pendulum_otherwise(state):
    def step(i, state):
        angle, speed = state
        speed = speed - 0.01 * (np.sin(angle) + 0.1 * speed)
        return angle + 0.01 * speed, speed

    return lax.fori_loop(0, 150, step, state)


def call_price(spot, strike, vol):
    d = (np.log(spot / strike) + 0.5 * vol**2) / vol
    return spot * special.ndtr(d) - strike * special.ndtr(d - vol)


W, PATHS = 0.3 * RNG.normal(size=(40, 40)), 0.01 * RNG.normal(size=(300, 300))
SPOT, STRIKE = np.linspace(80, 120, 20_000), np.full(20_000, 100.0)
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "donated arguments": (
        fg.jit(momentum),
        lambda w, *rest: fg.jit(momentum, donate_argnums=(0,))(w.copy(), *rest),
        (W, np.zeros_like(W), RNG.normal(size=(50, 40)), RNG.normal(size=(50, 40))),
    ),
    "one einsum for two": (fg.jit(low_rank), low_rank_otherwise, (A, B, V)),
    "axis order": (
        fg.jit(prices), lambda x: fg.jit(prices)(np.asfortranarray(x)), (PATHS,)
    ),
    "checkpoint": (
        fg.jit(fg.grad(deep)), fg.jit(fg.grad(fg.checkpoint(deep))), (W, RNG.normal(size=(50, 40)))
    ),
    "loops of Python": (
        fg.jit(pendulum), fg.jit(pendulum_otherwise), ((np.ones(30), np.zeros(30)),)
    ),
    "float32": (
        fg.jit(call_price),
        lambda *args: fg.jit(call_price)(*(x.astype(np.float32) for x in args)),
        (SPOT, STRIKE, np.full_like(SPOT, 0.2)),
    ),
}  # fmt: skip
"""A program for each trial, and the same with the change."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_trial_is_made_of_a_program_that_it_is_for(name: str) -> None:
    """And the change that it names can be made: results are the same."""
    program, changed, args = PROGRAMS[name]
    found = trials(program, *args)[name]
    assert found.before > 0
    assert found.after > 0
    pairs = zip(
        fg.tree_util.tree_leaves(program(*args)),
        fg.tree_util.tree_leaves(changed(*args)),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_every_trial_has_a_program() -> None:
    assert {*PROGRAMS} == {*trial.TRIALS}
