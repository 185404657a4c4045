"""Loops whose numbers of steps are values: what they compute, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.avals import shaped
from funcgrad.higher_order.counted import CountedScan, with_count
from funcgrad.higher_order.scan import Scan
from funcgrad.transforms.programs import stage_closed

LENGTH = 7
FLOAT = np.dtype(float)
RNG = np.random.default_rng(3)
FACTOR, STATE, ARRAY = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=LENGTH)
WEIGHTS = RNG.normal(size=(LENGTH, 3))

both = pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])
counts = pytest.mark.parametrize("count", [0, 1, 4, LENGTH])


def loop(reverse: bool) -> CountedScan:
    def step(factor: Any, state: Any, x: Any) -> list[Any]:
        state = np.sin(state * factor + x)
        return [state, state * state + x]

    body = stage_closed(step, [shaped((3,), FLOAT), shaped((3,), FLOAT), shaped((), FLOAT)], "step")
    return with_count(Scan(body, 1, 1, LENGTH, reverse), LENGTH)


def written_out(reverse: bool) -> Callable[..., list[Any]]:
    def run(count: int, factor: Any, state: Any, xs: Any) -> list[Any]:
        rows = [np.zeros(3)] * LENGTH
        order = range(count)
        for i in reversed(order) if reverse else order:
            state = np.sin(state * factor + xs[i])
            rows[i] = state * state + xs[i]
        return [state, np.stack(rows)]

    return run


def loss(run: Callable[..., list[Any]]) -> Callable[..., Any]:
    def total(*args: Any) -> Any:
        state, rows = run(*args)
        return np.sum(state**2) + np.sum(WEIGHTS * rows)

    return total


@pytest.mark.sampled(2)
@both
@counts
def test_values_and_derivatives(reverse: bool, count: int) -> None:
    bind, plain = loop(reverse).bind, written_out(reverse)
    args = count, FACTOR, STATE, ARRAY
    with fg.disable_jit():
        for got, wanted in zip(bind(*args), plain(*args), strict=True):
            np.testing.assert_array_equal(got, wanted)
        slopes = fg.grad(loss(bind), (1, 2, 3))(*args)
        wanted_slopes = fg.grad(loss(plain), (1, 2, 3))(*args)
    for got, wanted in zip(fg.jit(bind)(*args), plain(*args), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)
    compiled = fg.jit(fg.grad(loss(bind), (1, 2, 3)))(*args)
    for found in (slopes, compiled):
        for got, wanted in zip(found, wanted_slopes, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.sampled(2)
@both
def test_second_derivatives(reverse: bool) -> None:
    args = 4, FACTOR, STATE, ARRAY
    wanted = fg.hessian(loss(written_out(reverse)), 1)(*args)
    for derive in (fg.hessian, lambda f, i: fg.jacrev(fg.grad(f, i), i)):
        got = fg.jit(derive(loss(loop(reverse).bind), 1))(*args)
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.sampled(4)
@both
@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["eager", "compiled"])
def test_lanes_with_counts_of_their_own(reverse: bool, wrap: Any) -> None:
    numbers, states = np.array([0, 3, LENGTH, 2]), RNG.normal(size=(4, 3))
    axes = (0, None, 0, None)
    bind, plain = loop(reverse).bind, written_out(reverse)
    got = wrap(fg.vmap(bind, axes))(numbers, FACTOR, states, ARRAY)
    slopes = wrap(fg.vmap(fg.grad(loss(bind), (1, 2, 3)), axes))(numbers, FACTOR, states, ARRAY)
    for i, (count, state) in enumerate(zip(numbers.tolist(), states, strict=True)):
        args = count, FACTOR, state, ARRAY
        for lane, wanted in zip(got, plain(*args), strict=True):
            np.testing.assert_allclose(lane[i], wanted, rtol=1e-12, atol=1e-14)
        for lane, wanted in zip(slopes, fg.grad(loss(plain), (1, 2, 3))(*args), strict=True):
            np.testing.assert_allclose(lane[i], wanted, rtol=1e-12, atol=1e-14)
