"""`jit(memory=...)`: values are computed again until a call keeps to its limit; bits are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax

KB = 1000


def deep(ws: Any, x: Any) -> Any:
    """A network of which every layer keeps its result for the way back."""
    for w in ws:
        x = np.tanh(x @ w)
    return (x * x).sum()


def wide(x: Any) -> Any:
    """Sums of cumulative sums that are all needed in the end."""
    parts = [np.cumsum(x * k, axis=0) for k in range(1, 12)]
    total = 0.0
    for part in reversed(parts):
        total = np.cumsum(total * 0.5 + part, axis=1)
    return total


def needed(f: Any, *args: Any) -> int:
    found = f.lower(*args).compile().memory_analysis()
    return int(found.temp_size_in_bytes + found.output_size_in_bytes)


WS = [np.eye(32) + 0.01 * k for k in range(24)]
X = np.random.default_rng(0).normal(size=(200, 32)) / 10


def test_a_deep_network_keeps_to_less_memory_with_the_same_gradient() -> None:
    plain = fg.jit(fg.grad(deep))
    whole = needed(plain, WS, X)
    results = sum(w.nbytes for w in WS)
    expected = plain(WS, X)
    for part in (0.7, 0.4):
        limit = int(results + (whole - results) * part)
        f = fg.jit(fg.grad(deep), memory=limit)
        assert needed(f, WS, X) <= limit + 20 * KB  # its own words are not counted
        for a, b in zip(f(WS, X), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_computed_again_needs_no_new_kernels() -> None:
    fg.jit(wide)(X)
    f = fg.jit(wide, memory=6 * X.nbytes)
    np.testing.assert_array_equal(f(X), fg.jit(wide)(X))
    assert needed(f, X) <= 6 * X.nbytes + 20 * KB < needed(fg.jit(wide), X)


def test_what_fits_is_planned_as_ever() -> None:
    plain, limited = fg.jit(fg.grad(deep)), fg.jit(fg.grad(deep), memory="1GB")
    assert plain.lower(WS, X).as_text() == limited.lower(WS, X).as_text()


def test_a_limit_that_is_too_small_says_what_is_needed() -> None:
    with pytest.raises(fg.errors.MemoryBudgetError, match=r"deep") as info:
        fg.jit(fg.grad(deep), memory="100 kB")(WS, X)
    text = str(info.value)
    assert "besides its arguments at least, more than memory=100.0 kB" in text
    assert "Its largest array is f64[" in text
    assert "test_fit.py" in text


@pytest.mark.parametrize("memory", [0, -1, "much", True, 1.5])
def test_limits_are_bytes(memory: Any) -> None:
    with pytest.raises(fg.errors.ArgumentError, match=r"jit\(deep\): memory"):
        fg.jit(deep, memory=memory)


def test_derivatives_of_a_limited_function_are_limited() -> None:
    whole = needed(fg.jit(fg.value_and_grad(deep)), WS, X)
    f = fg.jit(lambda ws, x: fg.grad(deep)(ws, x), memory=whole * 2 // 3)
    mapped = fg.vmap(f, in_axes=(None, 0))(WS, X[None])
    for a, b in zip(mapped, fg.grad(deep)(WS, X), strict=True):
        np.testing.assert_allclose(a[0], b, rtol=1e-9, atol=1e-12)
    with pytest.raises(fg.errors.MemoryBudgetError):
        fg.vmap(f, in_axes=(None, 0))(WS, np.stack([X] * 50))


def test_loops_keep_less_for_the_way_back() -> None:
    """Functions that cost more than their memory are computed again, too."""

    def loss(x: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            y = np.exp(-x) + 1
            return np.sin(x) * np.tanh(y) + np.log(y), None

        return lax.scan(step, x, None, length=60)[0].sum()

    x = np.linspace(0, 1, 5000)
    plain = fg.jit(fg.grad(loss))
    whole = needed(plain, x)
    f = fg.jit(fg.grad(loss), memory=int(0.6 * whole))
    assert needed(f, x) <= 0.6 * whole
    np.testing.assert_allclose(f(x), plain(x), rtol=1e-12)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_compute_the_same_under_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = [
        lambda x, y: np.cumsum(x, axis=0) * 0.25 + y,
        lambda x, y: x @ y * 0.01,
        lambda x, y: np.sin(x) - np.max(y, axis=1, keepdims=True),
        lambda x, y: x[::-1] * y.T,
        lambda x, y: fnp.where(x > y, np.exp(-x * x), y),
        lambda x, y: np.sort(x, axis=0) + y.sum(),
    ]
    plan = [(int(rng.integers(6)), *map(int, rng.integers(0, 1 << 30, 2))) for _ in range(30)]

    def program(x: Any) -> Any:
        values = [x, x * 0.5]
        for which, a, b in plan:
            values.append(steps[which](values[a % len(values)], values[b % len(values)]))
        return values[-1], sum(v[0] for v in values)

    x = rng.normal(size=(40, 40))
    plain = fg.jit(program)
    whole = needed(plain, x)
    expected = plain(x)
    for part in (0.8, 0.6, 0.4):
        f = fg.jit(program, memory=int(whole * part))
        try:
            found = f(x)
        except fg.errors.MemoryBudgetError:
            break
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
