"""Running folds: conventions at zeros, ties and infinities; the recurrence against a loop."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad.core.avals import aval_of
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.primitives.cumulative import (
    Cumlogsumexp,
    Cummax,
    Cummin,
    Cumprod,
    Cumsum,
    LinearRecurrence,
)


def jacobian(primitive, x):
    """Column by column."""
    return np.stack([primitive.jvp([x], [t])[1] for t in np.eye(len(x))], -1)


def test_products_are_differentiated_through_zeros():
    x = np.array([2.0, 0.0, 3.0, 0.0])
    expected = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 6, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(jacobian(Cumprod(0), x), expected)


@pytest.mark.parametrize(("kind", "sign"), [(Cummax, 1.0), (Cummin, -1.0)])
def test_ties_share_the_tangent_equally(kind, sign):
    x = sign * np.array([1.0, 2.0, 0.0, 2.0, 3.0])
    half = 0.5
    expected = [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, half, 0, half, 0],
        [0, 0, 0, 0, 1],
    ]
    np.testing.assert_array_equal(jacobian(kind(0), x), expected)


def test_from_a_nan_on_nothing_attains_the_maximum():
    _, found = Cummax(0).jvp([np.array([1.0, np.nan, 2.0])], [np.ones(3)])
    np.testing.assert_array_equal(found, [1.0, 0.0, 0.0])


def test_log_sum_exp_of_minus_infinity_has_finite_weights():
    x = np.array([-np.inf, -np.inf, 1.0, 1.0])
    expected = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0.5, 0.5]]
    np.testing.assert_allclose(jacobian(Cumlogsumexp(0), x), expected, 1e-15)


def test_log_sum_exp_does_not_overflow():
    x = np.array([1000.0, 1000.0, 999.0])
    out, found = Cumlogsumexp(0).jvp([x], [np.ones(3)])
    np.testing.assert_allclose(out, 1000 + np.log([1, 2, 2 + np.exp(-1)]), 1e-15)
    np.testing.assert_allclose(found, np.ones(3), 1e-12)


@pytest.mark.parametrize("shape", [(1,), (64,), (65,), (1000,), (300, 2), (7, 400)])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence_agrees_with_a_loop(shape, reverse):
    rng = np.random.default_rng(len(shape))
    a, b = rng.uniform(-1.05, 1.05, shape), rng.normal(size=shape)
    expected, h = np.empty(shape), np.zeros(shape[1:])
    for i in range(shape[0])[:: -1 if reverse else 1]:
        h = a[i] * h + b[i]
        expected[i] = h
    found = LinearRecurrence(0, reverse).bind(a, b)
    np.testing.assert_allclose(found, expected, 1e-10, 1e-10)


def test_integers_keep_their_dtype():
    x = np.array([100, 100, 100], np.uint8)
    assert Cumsum(0).bind(x).dtype == np.uint8
    np.testing.assert_array_equal(Cumsum(0).bind(x), [100, 200, 44])


def test_messages():
    with pytest.raises(ShapeError, match=r"cumsum: f64\[3\] has no axis 1"):
        Cumsum(1).abstract_eval(aval_of(np.ones(3)))
    with pytest.raises(DtypeError, match=r"cumlogsumexp is not defined for c128\[3\]"):
        Cumlogsumexp(0).abstract_eval(aval_of(np.ones(3, complex)))
