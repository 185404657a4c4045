"""Losses: shapes, dtypes, extremes, masks, what they refuse. Values: `test_torch`."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import funcgrad as fg
from funcgrad import nn
from funcgrad.errors import DtypeError, OutOfBoundsError, ShapeError
from funcgrad.nn import losses
from funcgrad.testing import check_grads

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
SIGNS = np.sign(Y)
ROWS = scipy.special.softmax(Y, -1)
LABELS = np.array([2, 0, 1, 1])
INTEGER = losses.softmax_cross_entropy_with_integer_labels
ELEMENTWISE = {
    "squared_error": Y,
    "l2_loss": Y,
    "absolute_error": Y,
    "huber_loss": Y,
    "log_cosh": Y,
    "hinge_loss": SIGNS,
    "sigmoid_binary_cross_entropy": ROWS,
}
BY_ROWS = {
    "cosine_similarity": Y,
    "cosine_distance": Y,
    "softmax_cross_entropy": ROWS,
    "kl_divergence": ROWS,
    "kl_divergence_with_log_targets": np.log(ROWS),
}
ALL = {**ELEMENTWISE, **BY_ROWS}


@pytest.mark.parametrize("name", ALL)
def test_one_number_for_every_example_in_the_dtype_of_the_predictions(name):
    loss, targets = getattr(losses, name), ALL[name]
    shape = X.shape if name in ELEMENTWISE else X.shape[:1]
    assert loss(X, targets).shape == shape
    single = loss(X.astype(np.float32), targets.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, loss(X, targets), 1e-4, 1e-6)
    by_row = fg.vmap(loss)(X, targets)
    np.testing.assert_allclose(by_row, loss(X, targets), 1e-14)


@pytest.mark.parametrize("name", ALL)
def test_derivatives(name):
    check_grads(getattr(losses, name), (X, ALL[name]), order=2)
    check_grads(lambda x: INTEGER(x, LABELS), (X,), order=2)


@pytest.mark.parametrize("name", BY_ROWS)
def test_axis(name):
    loss, targets = getattr(losses, name), BY_ROWS[name]
    np.testing.assert_allclose(loss(X.T, targets.T, axis=0), loss(X, targets), 1e-14)


def test_several_axes_of_classes():
    actual = losses.softmax_cross_entropy(X, ROWS / 4, axis=(0, 1))
    expected = losses.softmax_cross_entropy(X.ravel(), ROWS.ravel() / 4)
    np.testing.assert_allclose(actual, expected, 1e-14)
    np.testing.assert_allclose(INTEGER(X.T, LABELS, axis=0), INTEGER(X, LABELS), 1e-14)


def test_errors_default_to_the_predictions_themselves():
    np.testing.assert_allclose(losses.squared_error(X), X**2, 1e-14)
    np.testing.assert_allclose(losses.l2_loss(X), X**2 / 2, 1e-14)
    np.testing.assert_allclose(losses.absolute_error(X), np.abs(X), 1e-14)
    np.testing.assert_allclose(losses.log_cosh(X), np.log(np.cosh(X)), 1e-13, 1e-15)
    assert losses.log_cosh(np.array([1e4, -1e4])).tolist() == [1e4 - np.log(2)] * 2


def test_targets_broadcast_to_predictions_only():
    np.testing.assert_allclose(losses.squared_error(X, Y[0]), (X - Y[0]) ** 2, 1e-14)
    np.testing.assert_allclose(losses.squared_error(X, 1), (X - 1) ** 2, 1e-14)
    with pytest.raises(ShapeError) as caught:
        losses.squared_error(np.ones((4, 1)), np.ones(4))
    text = str(caught.value)
    assert text.startswith(
        "losses.squared_error: targets f64[4] do not broadcast to the shape of the predictions "
        "f64[4,1]. Reshape one to the shape of the other.\n  at            test_losses.py:"
    )
    with pytest.raises(ShapeError, match="targets"):
        losses.huber_loss(np.ones(4), np.ones((4, 1)))
    with pytest.raises(ShapeError, match="labels"):
        losses.softmax_cross_entropy(X[0], ROWS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_logits_lose_no_digits(dtype):
    x = np.array([[1e4, 1e4 + 1, -1e4], [1e4, 1e4, 1e4], [-1e4, 0, 1e4]], dtype)
    labels = np.array([0, 1, 2])
    expected = [np.log1p(np.e), np.log(3), 0]
    rtol = 1e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(INTEGER(x, labels), expected, rtol)
    rows = np.eye(3, dtype=dtype)[labels]
    np.testing.assert_allclose(losses.softmax_cross_entropy(x, rows), expected, rtol)
    gradient = fg.grad(lambda x: INTEGER(x, labels).sum())(x)
    expected = scipy.special.softmax(x.astype(float), -1) - np.eye(3)[labels]
    np.testing.assert_allclose(gradient, expected, rtol, rtol)
    binary = losses.sigmoid_binary_cross_entropy(x[0], np.array([1, 0, 1], dtype))
    np.testing.assert_allclose(binary, [0, 1e4 + 1, 1e4], rtol)


def test_what_cannot_happen_costs_nothing_where_it_did_not():
    x = np.array([0.0, -np.inf, 0.0])
    half = np.array([0.5, 0.0, 0.5])
    for loss, gradient in (
        (lambda x: losses.softmax_cross_entropy(x, half), [0, 0, 0]),
        (lambda x: INTEGER(x, 0), [-0.5, 0, 0.5]),
    ):
        np.testing.assert_allclose(loss(x), np.log(2), 1e-14)
        np.testing.assert_allclose(fg.grad(loss)(x), gradient, atol=1e-15)
    assert INTEGER(x, 1) == np.inf
    assert losses.softmax_cross_entropy(x, half[[1, 0, 2]]) == np.inf
    logits, labels = np.array([np.inf, -np.inf, np.inf, -np.inf]), np.array([1.0, 0, 0, 1])
    events = losses.sigmoid_binary_cross_entropy
    assert events(logits, labels).tolist() == [0, 0, np.inf, np.inf]
    gradient = fg.grad(lambda x: events(x, labels[:2]).sum())(logits[:2])
    np.testing.assert_array_equal(gradient, 0)
    divergence = losses.kl_divergence(np.log([0.5, 0.5]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(divergence, np.log(2), 1e-14)
    with np.errstate(divide="ignore"):
        logs = np.log([1.0, 0.0])
    both = losses.kl_divergence_with_log_targets(logs, logs)
    assert both == 0
    assert losses.kl_divergence(logs, np.array([0.5, 0.5])) == np.inf


def test_labels_are_learned_from_too():
    """The derivative in a label is minus its logarithm, also where the label is 0."""
    logits, labels = X[0], np.array([0.0, 1.0, 0.0])
    gradient = fg.grad(losses.softmax_cross_entropy, 1)(logits, labels)
    np.testing.assert_allclose(gradient, -scipy.special.log_softmax(logits), 1e-14)


def test_masked_classes_do_not_take_part():
    where = np.array([True, False, True])
    kept = X[:, where]
    rows = ROWS * where
    expected = losses.softmax_cross_entropy(kept, rows[:, where])
    np.testing.assert_allclose(losses.softmax_cross_entropy(X, rows, where=where), expected, 1e-14)
    labels = np.array([0, 2, 2, 0])
    expected = INTEGER(kept, labels // 2)
    np.testing.assert_allclose(INTEGER(X, labels, where=where), expected, 1e-14)
    expected = losses.kl_divergence(kept, rows[:, where])
    np.testing.assert_allclose(losses.kl_divergence(X, rows, where=where), expected, 1e-14)


def test_labels_without_a_class():
    cases = {3: "got 3 in i64", -1: "got -1 in i64"}
    for wrong, text in cases.items():
        labels = np.array([0, wrong])
        with pytest.raises(OutOfBoundsError, match=f"there are 3 classes, 0 to 2, {text}"):
            INTEGER(X[:2], labels)
        traced = fg.vmap(INTEGER)(X[:2], labels)
        np.testing.assert_array_equal(np.isnan(traced), [False, True])
    small = fg.vmap(lambda x, i: INTEGER(x, i))(np.zeros((1, 300)), np.array([200], np.uint8))
    np.testing.assert_allclose(small, np.log(300), 1e-14)


def test_labels_of_the_wrong_kind():
    with pytest.raises(DtypeError, match=r"labels must be integers, got f64\[4\]. Probabilities"):
        INTEGER(X, LABELS.astype(float))
    with pytest.raises(ShapeError, match=r"labels must have the shape \(4,\) of the logits"):
        INTEGER(X, LABELS[:, None])
    with pytest.raises(ShapeError, match="has no classes"):
        INTEGER(np.ones((4, 0)), LABELS)


def test_smoothing_and_lengths():
    rows = nn.one_hot(LABELS, 3)
    np.testing.assert_allclose(losses.smooth_labels(rows, 0.3), 0.7 * rows + 0.1, 1e-14)
    with pytest.raises(ShapeError, match="axis of classes"):
        losses.smooth_labels(1.0, 0.3)
    zero = np.zeros(3)
    assert losses.cosine_similarity(zero, X[0]) == 0
    assert np.all(np.isfinite(fg.grad(losses.cosine_similarity)(zero, X[0])))
    assert INTEGER(np.ones((0, 3)), np.ones(0, int)).shape == (0,)
