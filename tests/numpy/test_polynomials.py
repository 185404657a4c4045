"""Polynomials by their coefficients, against NumPy and by differences."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.testing import check_grads

P = np.array([1.5, -2.0, 0.5, 3.0])
Q = np.array([2.0, 1.0])
X = np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 4.0])
CASES = [
    ("polyadd", (P, Q)),
    ("polysub", (Q, P)),
    ("polymul", (P, Q)),
    ("polyadd", (2.0, P)),
    ("polyder", (P,)),
    ("polyder", (P, 2)),
    ("polyder", (P, 5)),
    ("polyder", (np.array([1, 2, 3]),)),
    ("polyint", (P,)),
    ("polyint", (P, 2)),
    ("polyint", (P, 0)),
    ("polyint", (P, 2, [1.0, 2.0])),
    ("polyint", (P, 2, 3.0)),
    ("polyint", (np.array([1, 2, 3]),)),
    ("polyfit", (X, np.sin(X), 2)),
    ("polyfit", (X, np.stack([X**2, np.sin(X)], 1), 3)),
    ("polyfit", (np.arange(4), np.array([1, 3, 2, 5]), 1)),
    ("poly", (P,)),
    ("poly", (np.array([[2.0, 1.0], [1.0, 3.0]]),)),
    ("poly", (np.array([1, 2]),)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "args"), CASES)
def test_agrees_with_numpy(name, args):
    expected = getattr(np, name)(*args)
    found = getattr(fnp, name)(*args)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-10, 1e-10)
    traced = fg.jit(lambda first: getattr(np, name)(first, *args[1:]))(args[0])
    traced = traced.real if name == "poly" else traced
    np.testing.assert_allclose(traced, expected, 1e-10, 1e-10)


def test_weighted_and_full_fit():
    w = np.linspace(0.5, 2.0, 6)
    np.testing.assert_allclose(
        fnp.polyfit(X, np.sin(X), 2, w=w), np.polyfit(X, np.sin(X), 2, w=w), 1e-10
    )
    for ours, theirs in zip(
        fnp.polyfit(X, np.sin(X), 2, full=True), np.polyfit(X, np.sin(X), 2, full=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, 1e-10)


DIVISIONS = [
    (P, Q),
    (Q, P),
    (P, P[:1]),
    (np.array([1, -3, 2]), np.array([2, 1])),
    (np.array([1.0, 0, -1]), np.array([1.0, 1.0])),
    (P + 1j, Q * 1j),
]


@pytest.mark.parametrize(("u", "v"), DIVISIONS)
def test_division(u, v):
    quotient, rest = np.polydiv(u, v)
    ours = fnp.polydiv(u, v, trim_leading_zeros=True)
    np.testing.assert_allclose(ours[0], quotient, 1e-12, 1e-14)
    np.testing.assert_allclose(ours[1], rest, 1e-12, 1e-14)
    mapped = fg.vmap(np.polydiv)(np.stack([u, u]), np.stack([v, v]))
    np.testing.assert_allclose(mapped[0][1], quotient, 1e-12, 1e-14)
    np.testing.assert_allclose(mapped[1][1][len(u) - len(rest) :], rest, 1e-12, 1e-14)
    assert mapped[1].shape == (2, len(u))


@pytest.mark.parametrize(
    "p", [P, np.array([1, -3, 2]), np.array([0.0, 0, 2, 1, 0, 0]), P + 1j, P[:1], np.zeros(3)]
)
def test_roots(p):
    expected = np.sort_complex(np.roots(p))
    np.testing.assert_allclose(np.sort_complex(fnp.roots(p)), expected, 1e-10, 1e-12)
    if p[0] and p[-1] and len(p) > 1:
        found = fg.jit(lambda p: fnp.roots(p, strip_zeros=False))(p)
        np.testing.assert_allclose(np.sort_complex(found), expected, 1e-10, 1e-12)


def test_roots_have_slopes():
    check_grads(lambda p: np.abs(fnp.roots(p)), (P,), order=2, rtol=1e-3)
    check_grads(lambda u, v: fnp.polydiv(u, v), (P, Q), order=2)
    check_grads(lambda r: np.poly(r), (P,), order=2)


def test_covariance_of_a_fit():
    y = np.sin(X)
    for kind in (True, "unscaled"):
        found = fnp.polyfit(X, y, 2, w=X + 2, cov=kind)
        for ours, theirs in zip(found, np.polyfit(X, y, 2, w=X + 2, cov=kind), strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-9)
    both = np.stack([y, X], 1)
    found = fnp.polyfit(X, both, 1, cov=True)[1]
    np.testing.assert_allclose(found, np.polyfit(X, both, 1, cov=True)[1], 1e-8, 1e-15)
    with pytest.raises(ValueError, match="number of data points"):
        fnp.polyfit(X[:3], y[:3], 2, cov=True)
    np.testing.assert_array_equal(
        fnp.polymul([0.0, 1, 2], [0.0, 0], trim_leading_zeros=True), [0.0, 0.0]
    )


def test_derivatives():
    check_grads(lambda x, y: np.polyfit(x, y, 2), (X, np.sin(X)), order=2, rtol=1e-3)
    check_grads(lambda p: fnp.polyint(np.polyder(p) ** 2, 2), (P,), order=2)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: fnp.polyder(P, -1), ArgumentError, "negative"),
        (lambda: fnp.polyint(P, -1), ArgumentError, "negative"),
        (lambda: fnp.polyint(P, 3, [1.0, 2.0]), ShapeError, "3 elements"),
        (lambda: fnp.polyadd(np.eye(2), P), ShapeError, "one axis"),
        (lambda: fnp.polyfit(X, P, 1), ShapeError, "equal number"),
    ],
)
def test_messages(function, error, words):
    with pytest.raises(error, match=words):
        function()
