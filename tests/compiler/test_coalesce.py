"""Short rows as parts of long ones: the numbers stay, and the kernels have rows of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.compiler.nest.arrange import SKIP_VARIABLE, VERIFY_VARIABLE
from tests.compiler.plans import plan

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_VARIABLE, "1")


def results(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


ELEMENTS = [
    lambda x, b: x + b,
    lambda x, b: np.tanh(x * b + 1),
    lambda x, b: (x - b, np.exp(x) * b),
    lambda x, b: np.where(x > b, x, b),
]
FOLDS = [
    lambda x, b: x.sum(0),
    lambda x, b: ((x - b) ** 2).mean(0),
    lambda x, b: x.max(0),
    lambda x, b: (x.min(0), np.exp(x - b), (x * b).sum(0)),
    lambda x, b: (x - x.mean(0)) / x.std(0),
    lambda x, b: x.reshape(4, -1, x.shape[1]).sum(1) + b,
]
SHAPES = [(4096, 5), (6000, 3), (2000, 12), (997 * 4, 7), (1500, 31), (500, 2)]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", ELEMENTS + FOLDS)
def test_results_are_those_of_numpy(
    function: Callable[..., Any], shape: tuple[int, int], dtype: str
) -> None:
    x, b = RNG.normal(size=shape).astype(dtype), RNG.normal(size=shape[1]).astype(dtype)
    expected = function(x.astype(np.float64), b.astype(np.float64))
    for one, other in zip(results(fg.jit(function)(x, b)), results(expected), strict=True):
        assert one.dtype == dtype
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one / scale, other / scale, atol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("function", ELEMENTS)
def test_elements_have_the_bits_of_the_kernel_without_the_pass(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, b = RNG.normal(size=(3000, 6)), RNG.normal(size=6)
    x[5], x[6, 2] = np.nan, -np.inf
    found = fg.jit(function)(x, b)
    monkeypatch.setenv(SKIP_VARIABLE, "coalesce")
    np.testing.assert_array_equal(found, fg.jit(lambda x, b: function(x, b))(x, b))


@given(st.integers(2, 70), st.integers(16, 600), st.integers(1, 3), st.booleans())
def test_any_shape(width: int, rows: int, stack: int, is_single: bool) -> None:
    dtype = np.dtype("f" if is_single else "d")
    x = np.random.default_rng(rows).normal(size=(stack, rows, width)).astype(dtype)
    b = np.linspace(-1, 1, width, dtype=dtype)
    elements, sums = fg.jit(lambda x, b: (x * b, (x - b).sum(1)))(x, b)
    np.testing.assert_array_equal(elements, x * b)
    exact = (x.astype(np.float64) - b).sum(1)
    np.testing.assert_allclose(sums, exact, rtol=0, atol=4 * rows * np.finfo(dtype).eps)


@pytest.mark.parametrize("function", [lambda x, b: np.tanh(x + b), lambda x, b: x.sum(0)])
def test_a_kernel_walks_long_rows(function: Callable[..., Any]) -> None:
    x, b = np.ones((6400, 5)), np.ones(5)
    assert "6400 iterations" not in plan(function, x, b)
    assert "6400 iterations" in plan(lambda x, b: x * b[:1] + x.mean(1, keepdims=True), x, b)


def test_gradients_of_a_narrow_layer() -> None:
    x, w, b = RNG.normal(size=(3200, 4)), RNG.normal(size=(4, 5)), RNG.normal(size=5)

    def loss(w: Any, b: Any) -> Any:
        return (np.tanh(x @ w + b) ** 2).sum()

    along_w, along_b = fg.jit(fg.grad(loss, (0, 1)))(w, b)
    y = np.tanh(x @ w + b)
    back = 2 * y * (1 - y**2)
    np.testing.assert_allclose(along_b, back.sum(0), rtol=1e-12)
    np.testing.assert_allclose(along_w, x.T @ back, rtol=1e-12)
