"""Curvature: matrix-free products are those of matrices, and all three uses work."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("curvature")


def test_fisher_products_and_conjugate_gradients_are_those_of_the_matrix():
    x, y = example.regression(1)
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, x.shape[1])) * 0.1
    p = 1 / (1 + np.exp(-x @ w))
    fisher = x.T @ (x * (p * (1 - p))[:, None]) / len(x) + 1e-6 * np.eye(x.shape[1])
    np.testing.assert_allclose(example.fisher_product(w, v, x), fisher @ v, rtol=1e-9)
    found = example.natural_gradient(w, fisher @ v, x)
    np.testing.assert_allclose(found, v, rtol=1e-4)
    # Of the logistic loss, the Fisher matrix is the Hessian, but for the weight decay.
    hessian = example.fg.hessian(example.logistic_loss)(w, x, y)
    np.testing.assert_allclose(hessian, fisher + 1e-6 * np.eye(len(w)), rtol=1e-6, atol=1e-9)


def test_sharpness_is_the_largest_eigenvalue():
    params = example.training.dense((1, 4, 1), 0)
    x = np.linspace(-1, 1, 9)
    flat, unflatten = example.fg.flatten_util.ravel_pytree(params)
    hessian = example.fg.hessian(lambda f: example.fit_loss(unflatten(f), x, np.sin(x)))(flat)
    largest = np.abs(np.linalg.eigvalsh(hessian)).max()
    found = example.sharpness(params, x, np.sin(x), steps=200)
    assert abs(found) == pytest.approx(largest, rel=1e-6)


def test_the_gradient_of_meta_learning_goes_through_the_step():
    params = example.training.dense((1, 3, 1), 0)
    key = example.fg.random.key(1)
    slopes = example.fg.grad(example.meta_loss)(params, key, 0.05)
    direction = np.random.default_rng(0).normal(size=slopes[0]["w"].shape)

    def at(h):
        moved = [{**params[0], "w": params[0]["w"] + h * direction}, params[1]]
        return example.meta_loss(moved, key, 0.05)

    expected = (at(1e-5) - at(-1e-5)) / 2e-5
    assert np.sum(slopes[0]["w"] * direction) == pytest.approx(expected, rel=1e-5)


@pytest.mark.nightly
def test_the_full_run(tmp_path):
    losses, (_, sharp), meta = run(example, "--output", tmp_path / "curvature.png")
    assert losses["natural gradient"][-1] < 0.25 < 0.45 < losses["gradient"][-1]
    assert np.median(sharp[-100:]) == pytest.approx(2 / 0.2, rel=0.1)
    assert meta[-60:].mean() < 0.4 * meta[:60].mean()
    check_picture(tmp_path / "curvature.png")
