"""Windows that programs copy side by side: read where they are, by products too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg

RNG = np.random.default_rng(0)


def squares(x: Any, k: int, axis: int) -> Any:
    """Windows of k x k along the last two axes, stacked along an axis."""
    n, m = x.shape[-2] - k + 1, x.shape[-1] - k + 1
    parts = [x[..., i : i + n, j : j + m] for i in range(k) for j in range(k)]
    return np.stack(parts, axis=axis)


def lines(x: Any, k: int, step: int) -> Any:
    """Windows of a signal: those that start every ``step`` elements, as columns."""
    n = (x.shape[-1] - k) // step + 1
    return np.stack([x[..., i : i + step * (n - 1) + 1 : step] for i in range(k)], axis=-1)


def channels_first(x: Any, w: Any) -> Any:
    columns = squares(x, 3, 2).reshape(x.shape[0], -1, 10 * 9)
    return (w.reshape(8, -1) @ columns).reshape(-1, 8, 10, 9)


def taps_in_front(x: Any, w: Any) -> Any:
    columns = squares(x, 3, 0).reshape(9, x.shape[0], x.shape[1], -1)
    return np.einsum("tbcp,oct->pbo", columns, w.reshape(*w.shape[:2], 9))


def flat_signal(x: Any, w: Any) -> Any:
    return lines(x, 6, 2).reshape(-1, 6) @ w.reshape(-1, 6).T


PRODUCTS: list[tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = [
    (channels_first, (3, 4, 12, 11), (8, 4, 3, 3)),
    (taps_in_front, (3, 4, 12, 11), (8, 4, 3, 3)),
    (flat_signal, (3, 5, 60), (8, 6)),
]


@pytest.mark.parametrize(("product", "of_x", "of_w"), PRODUCTS)
def test_products_of_windows(
    product: Callable[..., Any], of_x: tuple[int, ...], of_w: tuple[int, ...]
) -> None:
    x, w = RNG.normal(size=of_x), RNG.normal(size=of_w)
    np.testing.assert_allclose(fg.jit(product)(x, w), product(x, w), rtol=1e-12, atol=1e-12)
    ct = RNG.normal(size=product(x, w).shape)

    def along(t: float) -> float:
        return float((product(x + t * x**2, w + t * w**2) * ct).sum())

    loss = fg.jit(fg.grad(lambda x, w: (product(x, w) * ct).sum(), argnums=(0, 1)))
    found = sum((g * v**2).sum() for g, v in zip(loss(x, w), (x, w), strict=True))
    # Of second degree in t: differences are exact but for rounding.
    np.testing.assert_allclose(found, (along(0.5) - along(-0.5)), rtol=1e-9)


def test_columns_are_not_copied() -> None:
    x, w = np.ones((3, 4, 12, 11)), np.ones((8, 4, 3, 3))
    plan = fg.jit(channels_first).lower(x, w).as_text().partition("\nplan\n")[2]
    assert "strided product" in plan
    assert "concatenate" not in plan.partition("\n# kernel")[0]


VIEWS: list[tuple[Callable[[Any], Any], bool]] = [
    (lambda x: np.stack([x[0], x[1], x[2], x[3]], axis=1), True),
    (lambda x: np.stack([x[:, 3], x[:, 2], x[:, 1]], axis=0), True),
    (lambda x: np.stack([x[1], x[1]]), True),
    (lambda x: np.concatenate([x[0:2], x[2:4]]), True),
    (lambda x: np.stack([x[:, 0:3], x[:, 1:4]], axis=1), True),
    (lambda x: np.stack([x[0], x[1], x[3]]), False),
    (lambda x: np.stack([x[0], x[2], x[1], x[3]]), False),
    (lambda x: np.concatenate([x[0:2], x[2:3]]), False),
    (lambda x: np.stack([x[0], x[1].copy() * 2]), False),
]


@pytest.mark.parametrize(("assemble", "is_view"), VIEWS)
def test_what_is_assembled_of_one_array(assemble: Callable[[Any], Any], is_view: bool) -> None:
    x = RNG.normal(size=(4, 6))
    np.testing.assert_array_equal(fg.jit(assemble)(x), assemble(x))
    lowered = fg.jit(lambda x: np.exp(assemble(x))).lower(x)
    np.testing.assert_allclose(lowered.compile()(x), np.exp(assemble(x)), rtol=1e-14)
    if is_view:
        plan = lowered.as_text().partition("\nplan\n")[2].partition("\n# kernel")[0]
        assert plan.count("kernel") == 1


def test_an_array_that_is_updated_afterwards() -> None:
    def run(x):
        y = x * 2
        pairs = np.stack([y[0], y[1], y[2]], axis=-1)
        y = fg.lax.fori_loop(0, 3, lambda i, y: y.at[i].add(pairs[i % 2, 0]), y)
        return y, pairs

    x = RNG.normal(size=(3, 4))
    pairs = (2 * x).T
    expected = 2 * x + np.array([pairs[i % 2, 0] for i in range(3)])[:, None]
    y, found = fg.jit(run)(x)
    np.testing.assert_array_equal(found, pairs)
    np.testing.assert_allclose(y, expected, rtol=1e-14)
