"""Entries of sparse derivatives from coefficients on diagonals, beside dense derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.api.staging import StagedFunction
from funcgrad.patterns.linear_programs import Derivative


def smooth(x):
    return np.sin(x) * x


def shifted(x):
    p = np.pad(x, 1)
    return p[2:] * x - 3.0 * p[:-2] + x


def bordered(x):
    first, last = 2.0 * x[:1] - x[1:2], x[-1:] ** 2 - x[-2:-1]
    return np.concatenate([first, x[:-2] * x[2:] - x[1:-1], last])


def strided(x):
    return np.concatenate([x[::2] ** 2, x[1::2] * 3.0])


def reversed_product(x):
    return x * x[::-1]


def in_planes(x):
    y = x.reshape(4, 3)
    p = np.pad(y, ((1, 1), (0, 0)))
    return (p[2:] + p[:-2] - 2.0 * y * y).ravel()


def turned(x):
    return np.exp(x.reshape(3, 4).T).ravel()


def chosen(x):
    return np.where(np.arange(12) < 5, x**2, 0.5 * x)


def nested(x):
    return fg.jit(lambda y: np.cos(y) - 2.0 * y)(x)


STEPS = [
    smooth, shifted, bordered, strided, reversed_product, in_planes, chosen, nested,
]  # fmt: skip


def diagonals_of(f, x):
    """What the derivative finds by diagonals."""
    staged = StagedFunction(lambda y: [f(y)], (x,), {}, "test")
    derivative = Derivative(staged.program, [True])
    return derivative.diagonals(derivative.results([x])[1], False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", STEPS)
def test_jacobians_are_the_dense_ones(f, dtype):
    x = np.linspace(0.3, 1.7, 12).astype(dtype)
    assert diagonals_of(f, x) is not None
    found = fg.jacfwd(f, sparse=True)(x)
    assert found.dtype == dtype
    dense = np.stack([fg.jvp(f, (x,), (e,))[1] for e in np.eye(12, dtype=dtype)], 1)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-5 if dtype == np.float32 else 1e-12)
    pattern = fg.sparsity.jacobian_sparsity(f)(x)
    assert (found.astype(bool).toarray() <= pattern.toarray()).all()
    assert found.nnz == pattern.nnz


@settings(max_examples=12)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=2))
def test_compositions(steps):
    def f(x):
        for step in steps:
            x = step(x)
        return x

    def total(x):
        return np.sum(np.tanh(f(0.3 * x)) ** 2)

    x = np.linspace(-0.8, 1.1, 12)
    dense = np.stack([fg.jvp(f, (x,), (e,))[1] for e in np.eye(12)], 1)
    np.testing.assert_allclose(
        fg.jacfwd(f, sparse=True)(x).toarray(), dense, rtol=1e-10, atol=1e-12
    )
    curved = np.stack([fg.jvp(fg.grad(total), (x,), (e,))[1] for e in np.eye(12)], 1)
    found = fg.hessian(total, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), curved, rtol=1e-9, atol=1e-12)


def test_coefficients_of_infinite_slope_pass_no_zero():
    """As in the dense derivative, the arm that is not taken is zero, whatever its slope is."""

    def f(x):
        return np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0) + 0 * np.roll(x, 1)

    x = np.array([0.0, 1.0, 4.0, 0.0])
    assert np.isfinite(fg.jacfwd(f, sparse=True)(x).toarray()).all()


@pytest.mark.parametrize(
    "f",
    [turned, np.cumsum, lambda x: x[np.array([0, 5, 1, 1])], lambda x: np.sum(x) * x],
    ids=["turned", "fold", "lookup", "total"],
)
def test_others_have_none(f):
    x = np.linspace(0.3, 1.7, 12)
    assert diagonals_of(f, x) is None
    dense = np.stack([fg.jvp(f, (x,), (e,))[1] for e in np.eye(12)], 1)
    np.testing.assert_allclose(fg.jacfwd(f, sparse=True)(x).toarray(), dense, rtol=1e-12)
