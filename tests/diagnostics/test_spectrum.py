"""The spectrum by Lanczos' method against dense eigenvalues and moments."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.diagnostics import hessian_spectrum
from funcgrad.errors import ArgumentError

RNG = np.random.default_rng(0)
SIZE = 24
ROTATION = np.linalg.qr(RNG.standard_normal((SIZE, SIZE)))[0]


def quadratic(eigenvalues):
    """A loss of a pytree whose Hessian has the eigenvalues."""
    matrix = ROTATION @ np.diag(eigenvalues) @ ROTATION.T

    def loss(params, scale):
        x = np.concatenate([params["a"].reshape(-1), params["b"]])
        return scale * x @ (matrix @ x) / 2

    return loss, {"a": np.ones((4, 5)), "b": np.zeros(4)}, matrix


SPREAD = np.concatenate([np.linspace(-1, 1, SIZE - 2), [20.0, 50.0]])


def test_as_many_steps_as_parameters_give_all_eigenvalues():
    loss, params, _ = quadratic(SPREAD)
    found = hessian_spectrum(loss, params, 2.0, steps=SIZE, starts=2)
    for nodes in found.nodes:
        np.testing.assert_allclose(nodes, 2 * SPREAD, atol=1e-10)
    assert all(errors.max() < 1e-8 for errors in found.errors)


def test_few_steps_give_the_ends_and_bounds_hold():
    loss, params, _ = quadratic(SPREAD)
    found = hessian_spectrum(loss, params, 1.0, steps=8, starts=3)
    assert found.largest == pytest.approx(50.0, abs=1e-8)
    for nodes, errors in zip(found.nodes, found.errors, strict=True):
        distance = np.abs(nodes[:, None] - SPREAD).min(axis=1)
        assert (distance <= errors + 1e-10).all()


def test_quadrature_is_exact_for_moments_of_the_start_vector():
    loss, params, matrix = quadratic(SPREAD)
    found = hessian_spectrum(loss, params, 1.0, steps=4, starts=1, seed=5)
    start = np.random.default_rng(5).standard_normal(SIZE)
    start /= np.linalg.norm(start)
    for degree in range(8):
        expected = start @ np.linalg.matrix_power(matrix, degree) @ start
        assert np.sum(found.weights[0] * found.nodes[0] ** degree) == pytest.approx(expected)


def test_density_integrates_to_one_and_trace_is_near():
    loss, params, _ = quadratic(np.linspace(1, 3, SIZE))
    found = hessian_spectrum(loss, params, 1.0, steps=10, starts=20)
    points = np.linspace(-5, 10, 2001)
    assert np.trapezoid(found.density(points, 0.1), points) == pytest.approx(1.0)
    assert found.trace == pytest.approx(2 * SIZE, rel=0.05)
    assert found.mean(np.square) == pytest.approx(np.mean(np.linspace(1, 3, SIZE) ** 2), rel=0.1)
    assert "24 eigenvalues from 1" in str(found)


def test_repeated_eigenvalues_end_early():
    found = hessian_spectrum(lambda x: np.sum(x**2), np.ones(50), steps=30)
    for nodes, weights in zip(found.nodes, found.weights, strict=True):
        np.testing.assert_allclose(nodes, [2.0])
        np.testing.assert_allclose(weights, [1.0])


def test_a_network_against_its_dense_hessian():
    x, y = RNG.standard_normal((9, 2)), RNG.standard_normal(9)

    def loss(params, x, y):
        w, v = params
        return np.mean((np.tanh(x @ w) @ v - y) ** 2)

    params = (RNG.standard_normal((2, 3)), RNG.standard_normal(3))
    blocks = fg.hessian(loss)(params, x, y)
    rows = [np.hstack([np.asarray(b).reshape(p.size, -1) for b in row]) for p, row in
            zip(params, blocks, strict=True)]  # fmt: skip
    found = hessian_spectrum(loss, params, x, y, steps=9, starts=1)
    np.testing.assert_allclose(found.nodes[0], np.linalg.eigvalsh(np.vstack(rows)), atol=1e-9)


def test_single_precision():
    scales = np.array([1, 2, 9], np.float32)
    found = hessian_spectrum(lambda x: np.sum(scales * x**2) / 2, np.ones(3, np.float32))
    assert found.largest == pytest.approx(9, rel=1e-5)
    assert found.smallest == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize(("params", "steps"), [(np.ones(0), 3), (np.arange(3), 3), (np.ones(3), 0)])
def test_what_has_no_spectrum_is_refused(params, steps):
    with pytest.raises(ArgumentError, match="hessian_spectrum needs parameters"):
        hessian_spectrum(lambda x: np.sum(x * 1.0), params, steps=steps)
