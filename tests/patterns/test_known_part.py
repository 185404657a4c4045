"""Derivatives that are constants in part: the constants are computed when they are traced."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg

X = np.linspace(0.3, 1.7, 24)
PLACES = np.random.default_rng(0).permutation(24)


def hubs(x):
    return sum(np.sum((x + x[i]) ** 2) for i in (0, 11, -1)) - np.sum(x) + np.sum(x**4)


def known_on_one_side(x):
    return x[3] * x[5] + np.exp(np.log(x[7])) * x[2] + np.sum(x[PLACES] * x) + np.sin(x[0])


def called(x):
    inner = fg.jit(lambda a, b: (a[PLACES] - 2.0 * b, a * b))
    a, b = inner(x, x[0])
    return np.sum(a**2) + np.sum(b) + x[1] ** 3


def in_a_loop(x):
    total = fg.lax.fori_loop(0, 24, lambda i, s: s + x[PLACES[0]] * x[i], 0.0)
    return total + x[1] * x[4] ** 2


@pytest.mark.parametrize("f", [hubs, known_on_one_side, called, in_a_loop])
def test_hessians(f):
    hessian, wanted = fg.hessian(f, sparse=True), fg.hessian(f)(X)
    for found in (hessian(X).toarray(), fg.jit(lambda x: hessian(x).toarray())(X)):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    entries, data = hessian(X).tocoo(), fg.vmap(lambda x: hessian(x).data)(X[None])
    np.testing.assert_allclose(data[0], wanted[entries.coords], atol=1e-12)


def residuals(x):
    return np.concatenate([3.0 * x[PLACES] - x, x[:4] ** 2, np.mean(x)[None], np.exp(x[5:6])])


def test_jacobians():
    jacobian = fg.jacfwd(residuals, sparse=True)
    np.testing.assert_allclose(jacobian(X).toarray(), fg.jacfwd(residuals)(X), atol=1e-12)
    slope = fg.grad(lambda x: np.sum(jacobian(x).data ** 2))
    np.testing.assert_allclose(slope(X)[:4], 8.0 * X[:4], atol=1e-12)


def test_only_what_depends_on_arguments_is_computed():
    text = fg.jit(lambda x: fg.hessian(hubs, sparse=True)(x).data).lower(X).as_text()
    assert "reduce_sum" not in text
    assert "gather" not in text
    assert "scatter_add" in text


def test_numbers_that_are_no_numbers_stay_in_their_entries():
    found = fg.hessian(hubs, sparse=True)(np.where(np.arange(24) == 4, np.nan, X)).toarray()
    assert np.argwhere(np.isnan(found)).tolist() == [[4, 4]]
