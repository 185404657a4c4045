"""What loops keep for the way back: little, where the rest follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax
from funcgrad.compiler.nest import rematerialize
from funcgrad.compiler.nest.arrange import SKIP_VARIABLE, VERIFY_VARIABLE

RNG = np.random.default_rng(0)
STATE = RNG.normal(size=(6, 4))
RATES = RNG.uniform(0.5, 1.5, size=(6, 4))
STEPS = 9


@pytest.fixture(autouse=True)
def _small_stacks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_VARIABLE, "1")
    monkeypatch.setattr(rematerialize, "MIN_BYTES", 0)


def slope(y: Any, p: Any) -> Any:
    return p * y * (1.0 - y * y) / (2.0 + y * y)


def midpoint(y: Any, p: Any) -> Any:
    return y + 0.1 * slope(y + 0.05 * slope(y, p), p)


def closed(y: Any, p: Any) -> Any:
    """A constant of every step is read beside the carry."""
    return lax.scan(lambda c, _: (midpoint(c, p), None), y, length=STEPS)[0]


def walked(y: Any, p: Any) -> Any:
    rows = np.stack([p + 0.1 * i for i in range(STEPS)])
    return lax.scan(lambda c, row: (midpoint(c, row), c * row), y, rows)[1]


def backwards(y: Any, p: Any) -> Any:
    rows = np.stack([p + 0.1 * i for i in range(STEPS)])
    return lax.scan(lambda c, row: (midpoint(c, row), c), y, rows, reverse=True)[0]


def transcendental(y: Any, p: Any) -> Any:
    """Sine and exponential are kept, what is cheap around them is not."""

    def step(c: Any, _: Any) -> Any:
        s = np.sin(c * p) * c
        return c + 0.1 * s * s * np.exp(-s * s), None

    return lax.scan(step, y, length=STEPS)[0]


def two_states(y: Any, p: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        q, v, n = carry
        v = v - 0.1 * p * q * q * q
        return (q + 0.1 * v, v, n + 1), None

    q, v, n = lax.scan(step, (y, y[::-1], 0), length=STEPS)[0]
    return q * v * n


def assembled(y: Any, p: Any) -> Any:
    """Parts of the carry change places in every step."""

    def step(c: Any, _: Any) -> Any:
        d = c * c * p
        return np.concatenate([d[1:] - c[:-1] * d[:-1], c[:1] * d[:1]]) * 0.5, None

    return lax.scan(step, y, length=STEPS)[0]


def trajectory(y: Any, p: Any) -> Any:
    """The carry itself is a result."""
    return lax.scan(lambda c, _: (midpoint(c, p),) * 2, y, length=STEPS)[1]


def in_turn(y: Any, p: Any) -> Any:
    """Each loop scans over the results of the one before it."""
    rows = lax.scan(lambda c, _: (midpoint(c, p), c * p), y, length=STEPS)[1]
    again = lax.scan(lambda c, row: (midpoint(c, row), c * row * row), y, rows)[1]
    return lax.scan(lambda c, row: (midpoint(c * row, p), c), y, again)[0]


def written(y: Any, p: Any) -> Any:
    """Columns are replaced at places that are computed, and a corner; the rest stays."""

    def step(c: Any, i: Any) -> Any:
        c = c.at[:, i].set(np.sin(c[:, i - 1]) * p[:, i] + np.sum(c * p))
        c = lax.dynamic_update_slice(c, c[:1, 1:3] * c[:1, 2:], (0, 1))
        return c.at[0, 0].add(c[-1, 1] * p[0, 0]), i * 2

    places = np.array([3, 1, 2, 1, 3, 0, 2])
    return lax.scan(step, fnp.asarray(y), places)[0]


def written_backwards(y: Any, p: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        return c.at[:, (5 * c[0, 0]).astype(int) % 4].multiply(x[1]), np.prod(c[:, 1:])

    c, products = lax.scan(step, fnp.asarray(y), p, reverse=True)
    return np.sum(c) * products


def nested(y: Any, p: Any) -> Any:
    def outer(c: Any, _: Any) -> Any:
        return closed(c * 1.5, p), c

    return lax.scan(outer, y, length=3)[1]


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    f.__name__: f
    for f in (
        closed, walked, backwards, transcendental, two_states, assembled, trajectory,
        in_turn, written, written_backwards, nested,
    )
}  # fmt: skip


def loss(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda y, p: fnp.sum(fnp.sin(function(y, p)))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", ["f4", pytest.param("f8", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_bitwise_those_without_the_pass(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, p = STATE.astype(dtype), RATES.astype(dtype)

    def gradient(y: Any, p: Any) -> Any:
        return fg.grad(loss(FUNCTIONS[name]), (0, 1))(y, p)

    found = fg.jit(lambda y, p: gradient(y, p))(y, p)
    by_lanes = fg.jit(lambda y, p: fg.vmap(gradient)(y, p))(y[:, None], p[:, None])
    monkeypatch.setenv(SKIP_VARIABLE, "rematerialize")
    expected = fg.jit(lambda y, p: gradient(y, p))(y, p)
    expected_by_lanes = fg.jit(lambda y, p: fg.vmap(gradient)(y, p))(y[:, None], p[:, None])
    for a, b in zip((*found, *by_lanes), (*expected, *expected_by_lanes), strict=True):
        np.testing.assert_array_equal(a, b)
    if dtype == "f8":
        np.testing.assert_allclose(found[0], gradient(y, p)[0], 1e-11, 1e-12)


def test_second_derivatives() -> None:
    def product(y: Any) -> Any:
        gradient = fg.grad(lambda y: loss(closed)(y, RATES))
        return fg.jvp(gradient, (y,), (np.cos(y),))[1]

    np.testing.assert_allclose(fg.jit(lambda y: product(y))(STATE), product(STATE), 1e-10, 1e-12)


def peak(function: Callable[[Any, Any], Any], steps: int) -> int:
    y = np.ones((4096, 2))

    def final(y: Any, p: Any) -> Any:
        return fnp.sum(lax.scan(lambda c, _: (function(c, p), None), y, length=steps)[0])

    compiled = fg.jit(fg.grad(final)).lower(y, y).compile()
    return int(compiled.memory_analysis().peak_memory_in_bytes)


def test_only_the_carry_is_kept() -> None:
    """Of a step's ten operations one array remains in memory."""
    each = (peak(midpoint, 60) - peak(midpoint, 10)) / 50
    assert each <= 1.05 * 4096 * 2 * 8


def test_of_arrays_that_loops_write_into_what_was_overwritten_is_kept() -> None:
    """The gradient of forward substitution has the array of each step, but no copies of it."""

    def solve(a: Any, b: Any) -> Any:
        x = np.zeros_like(b)
        for i in range(len(b)):
            x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
        return x

    n = 600
    a, b = np.tri(n) / n + np.eye(n), np.ones(n)
    gradient = fg.grad(lambda a, b: fnp.sum(fnp.sin(solve(a, b))), (0, 1))
    compiled = fg.jit(gradient).lower(a, b).compile()
    assert compiled.memory_analysis().peak_memory_in_bytes < 2.2 * a.nbytes  # arguments, result
    pulled = np.linalg.solve(a.T, np.cos(np.linalg.solve(a, b)))
    of_a, of_b = compiled(a, b)
    np.testing.assert_allclose(of_b, pulled, 1e-9)
    np.testing.assert_allclose(of_a, np.tril(-np.outer(pulled, np.linalg.solve(a, b))), 1e-9)


def test_what_costs_more_than_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def transcendental_step(c: Any, p: Any) -> Any:
        return c + 0.1 * np.sin(c * p)

    peaks = [peak(transcendental_step, 60)]
    monkeypatch.setenv(SKIP_VARIABLE, "rematerialize")
    peaks.append(peak(transcendental_step, 60))
    assert peaks[0] == peaks[1]


def test_short_stacks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.ones((8, 2))

    def text() -> str:
        function = fg.grad(lambda y, p: fnp.sum(closed(y, p)))
        return str(fg.jit(function).lower(y, y).compile().as_text())

    monkeypatch.setattr(rematerialize, "MIN_BYTES", 1 << 20)
    with_small_stacks = text()
    monkeypatch.setenv(SKIP_VARIABLE, "rematerialize")
    assert text() == with_small_stacks


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("maps", [1, 2])
def test_nothing_may_be_left_of_a_loop_that_only_maps(maps: int, reverse: bool) -> None:
    rows = RNG.normal(size=(STEPS, 6, 4))

    def function(y: Any, rows: Any) -> Any:
        for k in range(maps):
            rows = lax.map(lambda row, k=k: row * (2.0 + k), rows)
        return lax.scan(lambda c, row: (c * 0.5 + row, None), y, rows, reverse=reverse)[0]

    compiled = fg.jit(function)
    np.testing.assert_array_equal(compiled(STATE, rows), function(STATE, rows))
    gradient = fg.grad(lambda *args: np.sum(function(*args) ** 2), argnums=(0, 1))
    for found, expected in zip(fg.jit(gradient)(STATE, rows), gradient(STATE, rows), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
