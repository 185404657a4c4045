"""Guards that choose operands, or the address of a row, instead of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp


def _flux(np: Any, u: Any, v: Any) -> Any:
    """Differences of products at periodic neighbours, which other terms read, too."""
    along = np.roll(u * v, -1, 0) - np.roll(u * v, 1, 0)
    across = np.roll(u * v, -1, 1) - np.roll(u, 1, 1)
    return u - along - across * np.roll(v, 1, 0)


def _numbers(shape: tuple[int, ...], dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(shape))
    return [rng.integers(-4, 5, shape).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("shape", [(40, 40), (2, 17), (33, 5), (1, 64)])
def test_periodic_neighbours_of_products(shape: tuple[int, ...], dtype: str) -> None:
    u, v = _numbers(shape, dtype)
    np.testing.assert_array_equal(fg.jit(lambda u, v: _flux(fnp, u, v))(u, v), _flux(np, u, v))


def test_a_row_is_chosen_once_and_a_product_is_computed_once() -> None:
    """Neither flags for rows of periodic neighbours nor a product for each side of a guard."""
    u, v = _numbers((40, 40), "float32")
    text = fg.jit(lambda u, v: fnp.roll(u * v, 1, 0) - u).lower(u, v).as_text()
    kernel = text[text.index("def kernel") :]
    assert "load_where" not in kernel
    assert "row0 = select(" in kernel
    assert kernel.count(" * v") == kernel.count("  # sub")


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap", "constant"])
def test_edges_of_all_modes(mode: str) -> None:
    def padded(np: Any, u: Any) -> Any:
        p = np.pad(u, ((1, 1), (1, 1), (0, 0)), mode=mode)
        return p[2:, 1:-1] * p[:-2, 1:-1] + p[1:-1, 2:] - p[1:-1, :-2] * u

    u = np.random.default_rng(0).integers(-4, 5, (6, 7, 40)).astype(float)
    np.testing.assert_array_equal(fg.jit(lambda u: padded(fnp, u))(u), padded(np, u))


def test_what_differs_by_the_sign_of_a_zero_stays_two() -> None:
    def ends(np: Any, u: Any) -> Any:
        rest = u[:-1] * 2
        first, second = (np.concatenate([rest, np.full((1, 24), z)]) for z in (0.0, -0.0))
        return np.copysign(1.0, first) + 2 * np.copysign(1.0, second)

    u = np.random.default_rng(0).normal(size=(8, 24))
    np.testing.assert_array_equal(fg.jit(lambda u: ends(fnp, u))(u), ends(np, u))


def test_a_loop_goes_on_where_it_replaces_what_it_chooses_from() -> None:
    """Rows of an array that its own results replace are never read after that."""

    def step(np: Any, u: Any, v: Any) -> tuple[Any, Any]:
        total = sum(np.roll(u, d, a) for a in range(2) for d in (1, -1))
        return (total - v) % 7, u

    def run(np: Any, loop: Any, u: Any, v: Any) -> Any:
        return loop(0, 5, lambda _, c: step(np, *c), (u, v))

    def plain(first: int, last: int, body: Any, state: Any) -> Any:
        for i in range(first, last):
            state = body(i, state)
        return state

    u, v = _numbers((24, 40), "float64")
    found = fg.jit(lambda u, v: run(fnp, fg.lax.fori_loop, u, v))(u, v)
    for a, b in zip(found, run(np, plain, u, v), strict=True):
        np.testing.assert_array_equal(a, b)
