"""Parts that lie in turn in an array, and products of tiny matrices, have one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.compiler.nest.arrange import VERIFY_VARIABLE
from funcgrad.compiler.nest.contractions import Contractor


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_VARIABLE, "1")


def values(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    drawn = np.random.default_rng(0).normal(size=shape) * 5
    return drawn.astype(dtype)


def steps_of(compiled: Any, *args: Any) -> list[str]:
    """The lines of the plan that are steps."""
    plan = compiled.lower(*args).as_text().partition("\nplan\n")[2].partition("\n\n")[0]
    return [line for line in plan.splitlines() if not line.lstrip().startswith("#")]


X = values(6, 7)

ASSEMBLIES: dict[str, tuple[Any, int]] = {
    "stack": (lambda x: np.stack([x, x * 2], -1), 1),
    "stack of inputs": (lambda x: np.stack([x, x[::-1]], -1), 1),
    "stack of five": (lambda x: np.stack([x * k for k in range(5)], -1), 1),
    "stack of rows": (lambda x: np.stack([x[:, 0], x[:, 1], x[:, 2]], 1), 1),
    "concatenation": (lambda x: np.concatenate([x[..., None], (-x)[..., None]], 2), 1),
    "repetition": (lambda x: np.repeat(x, 3, axis=1), 1),
    "a number": (lambda x: np.stack([x, np.ones_like(x)], -1), 1),
    "seventeen": (lambda x: np.stack([x + k for k in range(17)], -1), 17),
    "of sums": (lambda x: np.stack([np.sum(x, 1), np.max(x, 1)], -1), 3),
    "another result": (lambda x: (lambda y: (np.stack([y, x], -1), y))(np.exp(x)), 1),
}


@pytest.mark.parametrize("name", ASSEMBLIES)
def test_parts_in_turn(name: str) -> None:
    function, n_steps = ASSEMBLIES[name]
    compiled = fg.jit(function)
    for actual, expected in zip(listed(compiled(X)), listed(function(X)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-14)
    assert len(steps_of(compiled, X)) <= n_steps


def overwritten(x: Any) -> Any:
    y = x.copy()
    y[1:3] = 7.0
    return y


NESTED: dict[str, tuple[Any, int]] = {
    "rows between ends": (
        lambda x: np.concatenate([x[0], np.stack([x, x * 2], -1).ravel(), x[1]]), 3
    ),
    "columns": (lambda x: np.concatenate([x, np.stack([x[0], 2 * x[1]])], 0), 3),
    "in a slice": (
        lambda x: np.concatenate([np.concatenate([x, 2 * x], 1), np.zeros((6, 2))], 1), 3
    ),
    "read twice": (lambda x: (lambda y: np.concatenate([y, y], 1))(np.stack([x, -x], 1)), 5),
    "overwritten": (lambda x: np.concatenate([overwritten(x).ravel(), x[0]]), 4),
    "of a result": (lambda x: (lambda y: (np.concatenate([y, x[0]]), y))(np.append(x, x + 1)), 4),
    "three deep": (
        lambda x: np.concatenate([np.concatenate([np.append(x, -x), x[0]]), x[1] ** 2]), 4
    ),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NESTED)
def test_parts_of_parts(name: str) -> None:
    function, n_steps = NESTED[name]
    compiled = fg.jit(function)
    for actual, expected in zip(listed(compiled(X)), listed(function(X)), strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert len(steps_of(compiled, X)) <= n_steps
    for n in (0, 1, 100_000):
        x = values(6, n) if n else np.zeros((6, 0))
        for actual, expected in zip(listed(compiled(x)), listed(function(x)), strict=True):
            np.testing.assert_array_equal(actual, expected)


def listed(x: Any) -> Any:
    return x if isinstance(x, tuple) else [x]


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["f4", "i2", "?", "c8"])
def test_dtypes(dtype: str) -> None:
    x = values(5, 9).astype(dtype)
    actual = fg.jit(lambda x: np.stack([x, x[:, ::-1]], -1))(x)
    np.testing.assert_array_equal(actual, np.stack([x, x[:, ::-1]], -1), strict=True)


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (1, 1)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    x = values(*shape)
    actual = fg.jit(lambda x: np.stack([x, x + 1], -1))(x)
    np.testing.assert_array_equal(actual, np.stack([x, x + 1], -1), strict=True)


PRODUCTS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "square": (np.matmul, ((20, 3, 3), (20, 3, 3))),
    "oblong": (np.matmul, ((20, 2, 4), (20, 4, 3))),
    "vectors": (lambda a, b: (a @ b[..., None])[..., 0], ((20, 4, 3), (20, 3))),
    "transposed": (lambda a, b: np.einsum("bji,bkj->bik", a, b), ((20, 2, 3), (20, 4, 2))),
    "stacks": (np.matmul, ((4, 5, 2, 2), (4, 5, 2, 2))),
    "one for all": (np.matmul, ((20, 3, 2), (2, 4))),
    "of other axes": (lambda a, b: np.einsum("ijb,jkb->ikb", a, b), ((3, 3, 20), (3, 3, 20))),
    "both at once": (lambda a, b: np.exp(a @ b) + 1, ((20, 2, 2), (20, 2, 2))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_tiny_products(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They round as products of tiles do."""
    function, shapes = PRODUCTS[name]
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=shape) for shape in shapes)
    actual = fg.jit(lambda a, b: function(a, b))(a, b)
    np.testing.assert_allclose(actual, function(a, b), rtol=1e-13, atol=1e-13)
    monkeypatch.setattr(Contractor, "_is_tiny", False)
    fg.clear_caches()
    np.testing.assert_array_equal(actual, fg.jit(lambda a, b: function(a, b))(a, b))
