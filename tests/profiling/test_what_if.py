"""Trials measure what they say, and are made where they make sense."""

from __future__ import annotations

import numpy as np

import funcgrad as fg
from funcgrad.profiling import Trial, WhatIf

RNG = np.random.default_rng(0)
A, B, V = RNG.normal(size=(400, 400)), RNG.normal(size=(400, 400)), RNG.normal(size=(400, 1))


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
