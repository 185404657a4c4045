"""Kernels that walk arrays across: tiles of them are turned in registers, edges are not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import funcgrad as fg

SHAPES = ((5, 7), (16, 16), (33, 48), (64, 100), (1, 20), (40, 17), (0, 3))


def values(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    return (np.random.default_rng(0).normal(size=shape) * 9).astype(dtype)


RARE = [pytest.param(dtype, marks=pytest.mark.nightly) for dtype in ("i4", "i2", "?", "c8")]


@pytest.mark.parametrize("dtype", ["f4", "f8", *RARE])
def test_matrices(dtype: str) -> None:
    compiled = fg.jit(lambda x: np.where(x.T == x.T, x.T, x.T))
    for shape in SHAPES:
        x = values(shape, dtype)
        np.testing.assert_array_equal(compiled(x), x.T, strict=True)


@pytest.mark.nightly
@pytest.mark.parametrize("order", [p for p in itertools.permutations(range(3)) if p != (0, 1, 2)])
def test_orders_of_three_axes(order: tuple[int, ...]) -> None:
    x = values((20, 33, 18), "f4")
    compiled = fg.jit(lambda x: np.transpose(x, order) + np.float32(1))
    np.testing.assert_array_equal(compiled(x), np.transpose(x, order) + np.float32(1))


def test_orders_of_four_axes() -> None:
    x = values((3, 18, 20, 17), "f4")
    for order in ((3, 2, 1, 0), (0, 3, 2, 1), (2, 3, 0, 1)):
        compiled = fg.jit(lambda x, order=order: -np.transpose(x, order))
        np.testing.assert_array_equal(compiled(x), -np.transpose(x, order))


X, Y, ROW, COLUMN = values((50, 37)), values((37, 50)), values((37,)), values((50,))
SQUARE = values((70, 70))

FUNCTIONS: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "with others": (
        lambda x, y, r, c: (x + y.T) * r + c[:, None] + (x > 0),
        (X, Y, ROW, COLUMN),
    ),
    "two": (lambda x, y: x.T * np.exp(y.T), (SQUARE, SQUARE[::-1].copy())),
    "three": (lambda x, y: x.T + y.T * (2 * x.T - x), (SQUARE, 2 * SQUARE)),
    "two widths": (lambda x, y: x.T + y.T, (SQUARE, SQUARE.astype(np.float32))),
    "and itself": (lambda x: np.tanh(x.T) + x, (SQUARE,)),
    "two results": (lambda x: np.stack([x.T, x + x.T]), (SQUARE,)),
    "every other": (lambda x: x[::2].T * 2, (SQUARE,)),
    "backwards": (lambda x: x[::-1].T * 2, (SQUARE,)),
    "pairs": (lambda x, y: x.T + y[:, :2].T, (SQUARE[:20, :2].copy(), X[:20])),
    "padded": (lambda x: np.pad(x.T, 2) * 2, (SQUARE,)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, args = FUNCTIONS[name]
    np.testing.assert_allclose(fg.jit(function)(*args), function(*args), rtol=1e-14, atol=1e-13)


def test_changed_arguments_are_not_turned() -> None:
    compiled = fg.jit(lambda x: x + x.T, donate_argnums=0)
    np.testing.assert_array_equal(compiled(SQUARE.copy()), SQUARE + SQUARE.T)


def test_threads_share_them() -> None:
    x = values((1500, 700), "f4")
    np.testing.assert_array_equal(fg.jit(lambda x: x.T * 2)(x), x.T * 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_what_is_walked_backwards_is_turned_in_registers(dtype: str) -> None:
    def several(x: Any) -> Any:
        turned = np.swapaxes(x, -1, -2)
        return np.rot90(x), np.rot90(x, 3), turned[..., ::-1], turned + turned[::-1, ::-1]

    compiled = fg.jit(several)
    for shape in ((5, 7), (16, 16), (40, 37), (64, 100)):
        x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        for found, expected in zip(compiled(x), several(x), strict=True):
            np.testing.assert_array_equal(found, expected)
    for turns in (1, 3):
        text = fg.jit(lambda x, turns=turns: np.rot90(x, turns)).lower(x).as_text()
        assert text.count("turn(") == 1
