"""What examples share: both training loops take the same steps, and diagnoses name the worst."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad import optim
from tests.examples.program import load

training, diagnosis = load("training"), load("diagnosis")


def squared_error(params, x, y):
    return np.mean((x @ params[0]["w"] + params[0]["b"] - y) ** 2)


@pytest.fixture
def problem():
    """Batches (12, 8, 3) of rows and of targets (12, 8, 1), and parameters."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3))
    arrays = (x, x @ np.array([[1.0], [2.0], [3.0]]))
    return training.batches(arrays, 8, 12, seed=1), training.dense((3, 1), seed=2)


def by_hand(batches, params, rate):
    """Gradient descent with the gradient written out."""
    w, b, losses = params[0]["w"], params[0]["b"], []
    for x, y in zip(*batches, strict=True):
        error = x @ w + b - y
        losses.append(np.mean(error**2))
        w = w - rate * 2 * x.T @ error / len(x)
        b = b - rate * 2 * error.mean(axis=0)
    return w, losses


def test_both_loops_are_gradient_descent_by_hand(problem):
    batches, params = problem
    w, losses = by_hand(batches, params, 0.1)
    last, in_one, watched = training.minimize(
        lambda params, batch: squared_error(params, *batch), params, optim.sgd(0.1), batches,
        watch=lambda params, slopes: params[0]["w"].sum() + 0 * slopes[0]["b"].sum(),
    )  # fmt: skip
    np.testing.assert_allclose(last[0]["w"], w, rtol=1e-12)
    np.testing.assert_allclose(in_one, losses, rtol=1e-12)
    assert watched.shape == (12,)
    assert watched[0] == pytest.approx(params[0]["w"].sum())
    pairs = zip(*batches, strict=True)
    last, step_by_step = training.train(squared_error, params, optim.sgd(0.1), pairs)
    np.testing.assert_allclose(last[0]["w"], w, rtol=1e-12)
    np.testing.assert_allclose(step_by_step, losses, rtol=1e-12)


def test_layers_have_the_variance_that_is_asked_for():
    first, second = training.dense((400, 300, 5), seed=0, variance=2.0)
    assert first["w"].shape == (400, 300)
    assert first["w"].var() == pytest.approx(2 / 400, rel=0.02)
    assert not second["b"].any()


def test_means_over_a_window():
    np.testing.assert_allclose(training.smooth([1.0, 2.0, 6.0, 4.0], 2), [1.5, 4.0, 5.0])


def test_a_diagnosis_names_the_worst(problem):
    (x, y), params = problem
    batch = x[0], y[0]
    healthy = diagnosis.Training(squared_error, params, optim.sgd(0.01))
    assert diagnosis.worst(healthy, *batch) == ("healthy", ())
    fast = diagnosis.worst(healthy._replace(optimizer=optim.sgd(50.0)), *batch)
    assert fast.verdict == "step too large"
    assert "times the parameter" in fast.reasons[0]
    broken = healthy._replace(loss=lambda params, x, y: np.log(-squared_error(params, x, y)))
    nan = diagnosis.worst(broken, *batch)
    assert nan.verdict == "nan"
    assert "test_training.py" in nan.reasons[0]
