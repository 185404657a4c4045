"""Softmax and its relatives with masks, standardisation, one-hot rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import funcgrad as fg
from funcgrad import nn
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.testing import check_grads

X = np.random.default_rng(0).normal(size=(4, 5))
WHERE = np.random.default_rng(1).random((4, 5)) < 0.6
WHERE[0], WHERE[1:, 0] = False, True
MASKED = np.where(WHERE, X, -np.inf)


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
def test_without_mask(axis):
    np.testing.assert_allclose(nn.softmax(X, axis), scipy.special.softmax(X, axis), 1e-14)
    np.testing.assert_allclose(nn.log_softmax(X, axis), scipy.special.log_softmax(X, axis), 1e-14)
    np.testing.assert_allclose(nn.logsumexp(X, axis), scipy.special.logsumexp(X, axis), 1e-14)
    mean = np.log(np.mean(np.exp(X), axis))
    np.testing.assert_allclose(nn.logmeanexp(X, axis), mean, 1e-13)


def test_masked_softmax():
    expected = np.zeros_like(X)
    expected[1:] = scipy.special.softmax(MASKED[1:], 1)
    np.testing.assert_allclose(nn.softmax(X, where=WHERE), expected, 1e-14)
    logarithms = np.full_like(X, -np.inf)
    logarithms[1:] = scipy.special.log_softmax(MASKED[1:], 1)
    np.testing.assert_allclose(nn.log_softmax(X, where=WHERE), logarithms, 1e-14)
    check_grads(lambda x: nn.softmax(x, where=WHERE), (X,), order=2)
    single = nn.softmax(X.astype(np.float32), where=WHERE)
    assert single.dtype == np.float32


def test_masked_sums():
    expected = np.r_[-np.inf, scipy.special.logsumexp(MASKED[1:], 1)]
    np.testing.assert_allclose(nn.logsumexp(X, 1, where=WHERE), expected, 1e-14)
    rows, where = X[1:], WHERE[1:]
    counts = np.log(np.sum(where, 1, keepdims=True))
    means = expected[1:, None] - counts
    np.testing.assert_allclose(nn.logmeanexp(rows, 1, where, keepdims=True), means, 1e-13)
    np.testing.assert_allclose(nn.logmeanexp(rows, 1, where), means[:, 0], 1e-13)
    check_grads(lambda x: nn.logmeanexp(x, 1, where), (rows,), order=2)


def test_masks_broadcast_in_both_directions():
    row = WHERE[1]
    np.testing.assert_allclose(nn.softmax(X, where=row)[:, ~row], 0)
    wide = nn.logsumexp(X[1], 1, where=WHERE[1:])
    expected = scipy.special.logsumexp(np.where(WHERE[1:], X[1], -np.inf), 1)
    np.testing.assert_allclose(wide, expected, 1e-14)


def test_standardize():
    expected = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.standardize(X), expected, 1e-13)
    far = nn.standardize(X + 1e6)
    np.testing.assert_allclose(far, expected, 1e-8)
    np.testing.assert_allclose(
        nn.standardize(X, 0, mean=1.0, variance=4.0, epsilon=0.0), (X - 1) / 2, 1e-14
    )
    check_grads(nn.standardize, (X,), order=2)
    assert nn.standardize(X.astype(np.float32)).dtype == np.float32


def test_masked_standardize():
    rows, where = X[1:], WHERE[1:]
    mean = np.mean(rows, 1, keepdims=True, where=where)
    variance = np.var(rows, 1, keepdims=True, where=where)
    expected = (rows - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(nn.standardize(rows, where=where), expected, 1e-13)


@pytest.mark.parametrize("dtype", [None, np.float32, np.int8, bool])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis, dtype):
    labels = np.array([[0, 2, 7], [-1, 1, 2]], np.int8)
    expected = np.stack([labels == i for i in range(3)], axis).astype(dtype or np.float64)
    actual = nn.one_hot(labels, 3, dtype=dtype, axis=axis)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    by_row = fg.vmap(lambda i: nn.one_hot(i, 3, dtype=dtype))(labels[0])
    np.testing.assert_array_equal(by_row, nn.one_hot(labels[0], 3, dtype=dtype))


def test_one_hot_of_narrow_and_python_integers():
    assert np.argmax(nn.one_hot(np.uint8(200), 300)) == 200
    np.testing.assert_array_equal(nn.one_hot(1, 2), [0, 1])
    with pytest.raises(ArgumentError, match="negative"):
        nn.one_hot(1, -1)
    with pytest.raises(DtypeError, match="integers"):
        nn.one_hot(1j, 2)
