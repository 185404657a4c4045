"""Eager gradients: plain products first, and parts of arrays in one entry of a tape."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.numpy.boxes import Part
from funcgrad.primitives import elementwise as p
from funcgrad.transforms.linearize import linearize_flat


def untaken(x):
    """The arm that is not taken has an infinite derivative at 0."""
    return np.sum(np.where(x > 0, np.sqrt(np.abs(x)), x) * x)


@pytest.fixture
def products(monkeypatch):
    """Whether each product of an array of cotangents was a plain one."""
    taken = []
    function = p.scale.function

    def note(*args):
        taken.append(p.takes_plain_products.get())
        return function(*args)

    monkeypatch.setattr(p.scale, "function", note)
    return taken


def test_products_are_plain_where_these_are_right(products):
    found = fg.grad(lambda x: np.sum(np.sin(x) * x))(np.array([0.5, 2.0]))
    np.testing.assert_allclose(found, np.sin([0.5, 2.0]) + [0.5, 2.0] * np.cos([0.5, 2.0]))
    assert products
    assert all(products)


@pytest.mark.parametrize("pull", [fg.grad, lambda f: lambda x: fg.vjp(f, x)[1](1.0)[0]])
def test_what_is_not_finite_is_computed_once_more(products, pull):
    x = np.array([0.0, 4.0, -1.0])
    np.testing.assert_array_equal(pull(untaken)(x), [0.0, 3.0, -2.0])
    assert products[0]
    assert not products[-1]
    assert not p.takes_plain_products.get()


def test_rules_of_users_see_no_nan_that_is_not_there():
    seen = []

    @fg.custom_vjp
    def same(x):
        return x

    same.defvjp(lambda x: (x, None), lambda _, ct: (seen.append(ct), (ct,))[1])

    def loss(x):
        y = same(x)
        return np.sum(np.where(x > 0, np.sqrt(y), y) * 2)

    fg.grad(loss)(np.array([0.0, 4.0]))
    assert np.isfinite(seen).all()


X = np.arange(24.0).reshape(2, 3, 4)
PARTS = {
    "a number": lambda x: x[1, 2, 0],
    "a row": lambda x: x[0, 1],
    "a stride": lambda x: x[:, ::2, 1:],
    "backwards": lambda x: x[::-1, 2:0:-1],
    "a new axis": lambda x: x[1, None, :, 3],
    "nothing": lambda x: x[2:, 1],
    "a diagonal": lambda x: np.diagonal(x, 1, 1, 2),
    "diagonals of others": lambda x: np.diagonal(x, -1, 0, 1),
    "no diagonal": lambda x: np.diagonal(x, 7, 1, 2),
    "a trace": lambda x: np.trace(x, 1),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_parts_are_one_entry(part):
    weights = np.cos(np.arange(np.size(part(X)))).reshape(np.shape(part(X)))

    def loss(x):
        return fnp.sum(part(x) * weights)

    found = fg.grad(loss)(X)
    np.testing.assert_array_equal(found, fg.jit(fg.grad(loss))(X))
    np.testing.assert_array_equal(fg.jacrev(part)(X), fg.jacfwd(part)(X))
    _, linear = linearize_flat(lambda x: [part(x)], [X], [True], "part")
    assert sum(isinstance(e.primitive, Part) for e in linear.entries) == 1
