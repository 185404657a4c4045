"""Verdicts of gradient_report on networks whose illness is known, and its numbers against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.diagnostics import activation_report, gradient_report
from funcgrad.errors import ArgumentError, TreeError
from tests.diagnostics.networks import perceptron


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_twenty_sigmoid_layers_vanish_without_normalisation_and_not_with_it(dtype):
    plain = gradient_report(*perceptron(20, fg.nn.sigmoid, dtype=dtype))
    assert plain.verdict == "vanishing"
    assert not plain
    assert plain.leaves[1].verdict == "vanishing"
    assert plain.leaves[-1].verdict == "healthy"
    normal = gradient_report(*perceptron(20, fg.nn.sigmoid, is_normalized=True, dtype=dtype))
    assert normal.verdict == "healthy"
    assert normal
    # A bias in front of the normalisation does nothing, and that is said of it alone.
    found = {leaf.path for leaf in normal.leaves if leaf.verdict == "cancelled"}
    assert found == {f"params[{i}]['b']" for i in range(19)}


@pytest.mark.parametrize(
    ("depth", "activation", "gain", "verdict"),
    [
        (3, fg.nn.sigmoid, 1.0, "healthy"),
        (3, np.tanh, 1.0, "healthy"),
        (3, fg.nn.relu, 2**0.5, "healthy"),
        (3, fg.nn.gelu, 1.0, "healthy"),
        (3, np.tanh, 30.0, "saturated"),
        (3, fg.nn.sigmoid, 60.0, "saturated"),
        (12, lambda x: x, 8.0, "exploding"),
        (12, lambda x: x, 0.1, "vanishing"),
        (15, np.tanh, 0.3, "vanishing"),
    ],
)
def test_verdicts_follow_depth_activation_and_gain(depth, activation, gain, verdict):
    assert gradient_report(*perceptron(depth, activation, gain=gain)).verdict == verdict


def largest_of_zero_and(x):
    return np.maximum(0.0, x)  # activation


@pytest.mark.parametrize("rectify", [fg.nn.relu, largest_of_zero_and])
def test_dead_units_are_counted_and_located(rectify):
    loss, params, x, labels = perceptron(3, rectify)
    params[0]["b"] = params[0]["b"] - np.where(np.arange(16) < 14, 100, 0)
    report = gradient_report(loss, params, x, labels)
    assert report.problems == {"params[0]['b']": "dead units", "params[0]['w']": "dead units"}
    assert "14 of 16 units" in report.leaves[0].reason
    assert "activation" in report.leaves[0].reason
    assert report.activations[0].dead == tuple(range(14))
    assert report.activations[1].dead_share < 0.5


def test_columns_without_gradient_are_dead_units_and_rows_are_not():
    x = np.ones((4, 3)) * np.array([1.0, 0.0, 0.0])
    mask = np.array([1.0, 0, 0, 0, 0])

    def loss(params):
        return np.sum((x @ params["w"] * mask) ** 2)

    assert gradient_report(loss, {"w": np.ones((3, 5))}).verdict == "dead units"
    mask = np.ones(5)
    report = gradient_report(loss, {"w": np.ones((3, 5))})
    assert report.verdict == "healthy"
    assert report.leaves[0].zeros == pytest.approx(2 / 3)


def stop(x):
    return fg.lax.stop_gradient(x)


def by_index(x):
    return fg.nn.one_hot(np.argmax(x), 3)


@pytest.mark.parametrize("compile_it", [lambda f: f, fg.jit, fg.checkpoint])
@pytest.mark.parametrize(
    ("through", "operation"),
    [(stop, "stop_gradient"), (np.round, "rint"), (np.sign, "sign"), (by_index, "arg_max")],
)
def test_disconnected_parameters_name_the_operation_without_derivative(
    through, operation, compile_it
):
    @compile_it
    def loss(params):
        return np.sum(params["kept"]) ** 2 + np.sum(through(params["cut"]) * 2.0)

    report = gradient_report(loss, {"kept": np.ones(2), "cut": np.ones(3)})
    assert report.problems == {"params['cut']": "disconnected"}
    assert report.leaves[0].reason.startswith(f"{operation} has no derivative, at test_health.py:")


def test_loops_rules_of_ones_own_and_empty_leaves():
    @fg.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))

    def loss(params):
        last, _ = fg.lax.scan(
            lambda h, _: (np.tanh(h @ params["w"]), None), np.ones(2), None, length=3
        )
        return np.sum(square(last)) + np.sum(params["empty"])

    report = gradient_report(loss, {"w": np.eye(2), "empty": np.ones((0, 2))})
    assert report.verdict == "healthy"

    def value(w):
        h = np.ones(2)
        for _ in range(3):
            h = np.tanh(h @ w)
        return np.sum(h**2)

    step = 1e-6 * np.array([[1.0, 0.0], [0.0, 0.0]])
    slope = (value(np.eye(2) + step) - value(np.eye(2) - step)) / 2e-6
    assert report.gradients[1][0, 0] == pytest.approx(slope)


def test_unused_parameters_are_disconnected_and_zeros_by_value_are_not():
    def loss(params):
        unused = params["unused"] * 2
        return np.sum(params["x"] * params["off"]) + 0 * unused.shape[0]

    report = gradient_report(loss, {"x": np.ones(2), "off": np.zeros(2), "unused": np.ones(2)})
    assert report.problems == {"params['unused']": "disconnected", "params['x']": "zero gradient"}
    assert report.leaves[1].reason == "the loss does not depend on it"


def test_numbers_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4))
    w = rng.standard_normal((4, 3))
    report = gradient_report(lambda p, x: np.sum((x @ p["w"]) ** 2) / 2, {"w": w}, x)
    expected = x.T @ x @ w
    (leaf,) = report.leaves
    assert report.loss == pytest.approx(np.sum((x @ w) ** 2) / 2)
    np.testing.assert_allclose(report.gradients[0], expected, rtol=1e-12)
    for name in ("mean", "std", "min", "max"):
        assert getattr(leaf, name) == pytest.approx(getattr(expected, name)())
    assert leaf.norm == pytest.approx(np.linalg.norm(expected))
    assert leaf.mean_abs == pytest.approx(np.abs(expected).mean())
    assert leaf.ratio == pytest.approx(np.linalg.norm(expected) / np.linalg.norm(w))


def test_steps_are_compared_with_the_data():
    def loss(params):
        return np.sum(params["w"] ** 2) / 2

    params = {"w": np.ones(4), "n": 3}
    assert gradient_report(loss, params).verdict == "healthy"
    for step, verdict in ((0.01, "healthy"), (0.5, "step too large")):
        assert gradient_report(loss, params, learning_rate=step).verdict == verdict
        updates = {"w": np.full(4, step), "n": 0}
        report = gradient_report(loss, params, updates=updates)
        assert report.verdict == verdict
        assert report.leaves[0].ratio == pytest.approx(step)
        assert "update/data" in str(report)
    with pytest.raises(ArgumentError, match=r"the learning rate is -0\.1, but has to be greater"):
        gradient_report(loss, params, learning_rate=-0.1)
    with pytest.raises(TreeError, match="updates must have the structure of params"):
        gradient_report(loss, params, updates=[1.0])


def test_nans_are_counted():
    report = gradient_report(lambda p: np.sum(np.sqrt(p)), np.array([0.0, 1.0]))
    assert report.leaves[0].verdict == "not finite"
    assert report.leaves[0].non_finite == 1


def test_losses_may_return_more_and_branch_on_values():
    def loss(w, x):
        value = np.sum((x @ w) ** 2)
        return (value, x) if value > 0 else (-value, x)

    assert gradient_report(loss, np.ones(2), np.ones((3, 2)), has_aux=True)
    with pytest.raises(ArgumentError, match=r"one real number, but it is \(f64\[\], f64\[3,2\]\)"):
        gradient_report(loss, np.ones(2), np.ones((3, 2)))
    with pytest.raises(ArgumentError, match="no parameter is an array of real floating"):
        gradient_report(lambda n: 1.0 * n, 3)


def test_rows_of_words_that_do_not_occur_are_no_sign_of_vanishing():
    words = np.array([3, 5])

    def loss(params):
        return np.sum((params["embedding"][words] @ params["w"]) ** 2)

    params = {"embedding": np.ones((100_000, 4)) / 2, "w": np.ones((4, 2))}
    assert gradient_report(loss, params).verdict == "healthy"


def test_the_text_has_a_row_for_every_parameter_and_few_reasons():
    text = str(gradient_report(*perceptron(20, fg.nn.sigmoid)))
    assert text.startswith("loss ")
    assert len([line for line in text.splitlines() if line.startswith("params[")]) == 40
    reasons = [line for line in text.splitlines() if line.startswith("vanishing: ")]
    assert len(reasons) == 5
    assert reasons[-1].endswith(" more")


@pytest.mark.parametrize("axis", [1, 3])
def test_units_of_images_are_channels(axis):
    x = np.random.default_rng(0).standard_normal((4, 5, 5, 5))
    np.moveaxis(x, axis, 0)[2] = -1
    (row,) = activation_report(fg.nn.relu, x).rows
    assert (row.dead, row.units) == ((2,), 5)


def test_activations_are_measured_as_numpy_does():
    x = np.array([[0.0, 5.0], [0.5, -4.0], [3.0, 0.1]])
    (row,) = activation_report(fg.jit(np.tanh), x).rows
    y = np.tanh(x)
    assert (row.name, row.shape) == ("tanh", (3, 2))
    assert row.mean == pytest.approx(y.mean())
    assert row.std == pytest.approx(y.std())
    assert row.saturated == pytest.approx(np.mean(1 - y**2 < 0.05))
    assert row.counts.sum() == 6
    (row,) = activation_report(fg.nn.relu, x - 4).rows
    assert (row.dead, row.units, row.saturated) == ((0,), 2, 0.0)
    (row,) = activation_report(fg.nn.sigmoid, 10 * x).rows
    s = 1 / (1 + np.exp(-10 * x))
    assert row.saturated == pytest.approx(np.mean(s * (1 - s) < 0.25 * 0.05))
    assert "saturated" in str(activation_report(np.tanh, x))
