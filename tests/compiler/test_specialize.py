"""Axes of up to eight elements are written out; what reads a part of them reads it in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.scipy.signal
from tests.compiler.plans import steps_of

RNG = np.random.default_rng(0)


def kernels(x: Any, y: Any) -> Any:
    return np.sum(np.exp(-0.5 * np.sum((x[:, None] - y[None]) ** 2, -1)))


@pytest.mark.parametrize(
    "d", [5, *(pytest.param(d, marks=pytest.mark.nightly) for d in (2, 3, 8, 9))]
)
def test_pairs_of_points(d: int) -> None:
    """No array with the coordinates of all pairs is stored, for sums over either point."""
    x, y = RNG.normal(size=(30, d)), RNG.normal(size=(40, d))
    gradient = fg.jit(fg.grad(kernels, argnums=(0, 1)))
    if d <= 5:  # beyond, one kernel would be too large
        assert f"[30,40,{d}]" not in steps_of(gradient.lower(x, y).as_text())
    apart = x[:, None] - y[None]
    slopes = -apart * np.exp(-0.5 * np.sum(apart**2, -1))[..., None]
    found = gradient(x, y)
    np.testing.assert_allclose(found[0], slopes.sum(1), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found[1], -slopes.sum(0), rtol=1e-12, atol=1e-13)


def test_parts_that_are_results_too() -> None:
    x = RNG.normal(size=(20, 6))
    compiled = fg.jit(lambda x: (np.sin(x), np.sin(x).sum(0), np.sin(x)[:, 2] * 2, np.sin(x)[::2]))
    for found, expected in zip(
        compiled(x), (np.sin(x), np.sin(x).sum(0), np.sin(x)[:, 2] * 2, np.sin(x)[::2]), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


def test_sums_over_windows_copy_none() -> None:
    """The gradient of a convolution kernel of one channel is a sum for every element of it."""
    x, w, k = RNG.normal(size=(70, 90)), RNG.normal(size=(66, 86)), RNG.normal(size=(5, 5))

    def loss(k: Any) -> Any:
        return np.sum(w * fg.scipy.signal.convolve(x, k, mode="valid"))

    gradient = fg.jit(fg.grad(loss))
    assert "[5,5,66,86]" not in steps_of(gradient.lower(k).as_text())
    expected = [[np.sum(w * x[4 - a : 70 - a, 4 - b : 90 - b]) for b in range(5)] for a in range(5)]
    np.testing.assert_allclose(gradient(k), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [lambda x: x.sum(0), lambda x: np.exp(x).sum(0)])
def test_sums_of_few_columns_are_one_pass(function: Any) -> None:
    """One kernel adds up all columns, as for every member of a batch: in the same order."""
    x = RNG.normal(size=(300, 3))
    one = fg.jit(function)
    assert steps_of(one.lower(x).as_text()).count("[300,3] ->") == 1
    np.testing.assert_array_equal(one(x), fg.jit(fg.vmap(function))(x[None])[0])
    np.testing.assert_array_equal(one(x), fg.jit(fg.vmap(function))(np.stack([x, x]))[1])
