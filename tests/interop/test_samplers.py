"""Log densities on vectors: constraints, their Jacobians, and the callback of samplers."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.interop.samplers import LogDensity, interval, ordered, positive, real, simplex

R = np.random.default_rng(12)
Y = np.array([1.0, 2.5, 0.3, 1.7])
CONSTRAINTS = [real, positive, interval(-2.0, 3.0), ordered, simplex]


def log_density(p):
    z = (Y - p["mu"]) / p["sigma"]
    return -0.5 * np.sum(z**2) - len(Y) * np.log(p["sigma"]) - p["sigma"] - 0.5 * p["mu"] ** 2


def reference(x):
    mu, sigma = x[0], np.exp(x[1])
    total = stats.norm.logpdf(Y, mu, sigma).sum() + 0.5 * len(Y) * np.log(2 * np.pi)
    return total - sigma - 0.5 * mu**2 + x[1]


def slopes(f, x, h=1e-5):
    steps = h * np.eye(x.size)
    return np.stack([(f(x + s) - f(x - s)) / (2 * h) for s in steps], -1)


def density():
    return LogDensity(log_density, {"mu": 0.0, "sigma": 1.0}, {"sigma": positive})


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_constraints_and_their_jacobians(constraint):
    x = R.standard_normal(4)
    y = constraint.forward(x)
    assert y.shape == (4 + constraint.n_fewer,)
    np.testing.assert_allclose(constraint.inverse(y), x, rtol=1e-9, atol=1e-9)
    jacobian = slopes(constraint.forward, x)[: x.size]  # the last part of a simplex depends on all
    expected = np.linalg.slogdet(jacobian)[1]
    assert abs(constraint.log_jacobian(x) - expected) < 1e-6


def test_values_of_constraints():
    x = R.standard_normal((3, 4))
    assert (positive.forward(x) > 0).all()
    assert (np.abs(interval(-1.0, 1.0).forward(x)) < 1).all()
    assert (np.diff(ordered.forward(x)) > 0).all()
    parts = simplex.forward(x)
    np.testing.assert_allclose(parts.sum(-1), 1.0, rtol=1e-12)
    assert (parts > 0).all()
    np.testing.assert_allclose(simplex.forward(np.zeros(3)), np.full(4, 0.25), rtol=1e-12)
    for far in (interval(0.0, 1.0), simplex):  # digits of small numbers are not lost
        x = np.array([-40.0])
        np.testing.assert_allclose(far.forward(x)[0], np.exp(-40.0), rtol=1e-12)
        np.testing.assert_allclose(far.inverse(far.forward(x)), x, rtol=1e-12)
        np.testing.assert_allclose(far.log_jacobian(x), -40.0, rtol=1e-12)


def test_density_of_a_vector_and_its_gradient():
    made, x = density(), np.array([0.4, -0.3])
    assert made.n == 2
    assert made.names == ["mu", "sigma"]
    value, gradient = made.value_and_grad(x)
    assert abs(value - reference(x)) < 1e-12
    np.testing.assert_allclose(gradient, slopes(reference, x), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(made.flatten(made.unflatten(x)), x, rtol=1e-12)
    rows = R.standard_normal((5, 2))
    np.testing.assert_allclose(made.batch(rows), [reference(row) for row in rows], rtol=1e-12)
    with pytest.raises(ArgumentError, match=r"takes a matrix with 2 columns, got"):
        made.batch(rows[0])


def test_callback_of_samplers_from_several_threads():
    made = density()
    pointer = ctypes.POINTER(ctypes.c_double)
    kinds = [ctypes.c_size_t, pointer, pointer, pointer, ctypes.c_void_p]
    call = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(made.address)

    def run(x):
        gradient, value = np.zeros(2), np.zeros(1)
        arrays = (a.ctypes.data_as(pointer) for a in (x, gradient, value))
        assert call(2, *arrays, None) == 0
        return value[0], gradient

    rows = R.standard_normal((40, 2))
    with ThreadPoolExecutor(4) as pool:
        for row, (value, gradient) in zip(rows, pool.map(run, rows), strict=True):
            assert abs(value - reference(row)) < 1e-10
            np.testing.assert_allclose(gradient, slopes(reference, row), rtol=1e-6, atol=1e-6)
    x = rows[0].ctypes.data_as(pointer)
    assert call(3, x, x, x, None) != 0


def test_trees_of_parameters_and_draws():
    made = LogDensity(
        lambda p: np.sum(p["w"] ** 2) + np.sum(np.log(p["parts"])),
        {"w": np.zeros((2, 2)), "parts": np.ones((3, 3))},
        {"parts": simplex},
    )
    assert made.n == 3 * 2 + 4
    assert made.names[:2] == ["parts[0, 0]", "parts[0, 1]"]
    draws = made.parameters(R.standard_normal((2, 5, made.n)))
    assert draws["parts"].shape == (2, 5, 3, 3)
    np.testing.assert_allclose(draws["parts"].sum(-1), 1.0, rtol=1e-12)
    assert repr(made).endswith("parts simplex, w real)")


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (lambda: density()(np.zeros(3)), "takes a vector of 2 numbers"),
        (lambda: density().flatten({"mu": 1.0}), "the parameters are"),
        (lambda: LogDensity(np.sum, {"a": 1.0}, {"b": real}), r"constraints of \['b'\]"),
        (lambda: LogDensity(np.sum, {"a": 1.0}, {"a": "positive"}), "such as positive"),
        (lambda: LogDensity(np.sum, {"a": 1.0}, {"a": simplex}), "its last axis is too short"),
    ],
)
def test_errors_say_what_to_do(run, text):
    with pytest.raises(ArgumentError, match=text):
        run()


@pytest.mark.nightly
def test_random_walks_agree_with_the_posterior():
    """A compiled Metropolis chain has the moments that quadrature gives."""
    made = density()

    def step(state, key):
        x, old = state
        to, accept = fg.random.split(key)
        new = x + 0.9 * fg.random.normal(to, (2,))
        value = made(new)
        is_taken = np.log(fg.random.uniform(accept)) < value - old
        state = np.where(is_taken, new, x), np.where(is_taken, value, old)
        return state, state[0]

    @fg.jit
    @fg.vmap
    def chains(key):
        start = np.zeros(2)
        return fg.lax.scan(step, (start, made(start)), fg.random.split(key, 4000))[1]

    draws = chains(fg.random.split(fg.random.key(3), 8))[:, 500:]
    grid = np.stack(np.meshgrid(np.linspace(-3, 5, 201), np.linspace(-4, 3, 201)), -1).reshape(
        -1, 2
    )
    weights = np.exp([reference(x) for x in grid])
    expected = weights @ grid / weights.sum()
    np.testing.assert_allclose(draws.mean((0, 1)), expected, atol=0.06)
