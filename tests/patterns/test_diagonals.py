"""Entries of sparse derivatives from coefficients on diagonals, beside dense derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.api.staging import StagedFunction
from funcgrad.patterns import compression
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


def by_groups(x):
    y = x.reshape(4, 3)
    return (y * np.sum(y**2, axis=1, keepdims=True) + np.prod(y[:, ::-1], axis=1)[:, None]).ravel()


def small_products(x):
    y = x.reshape(6, 2) @ np.array([[1.0, -2.0], [0.5, 3.0]])
    return (y + np.einsum("ti,ti->t", y, y[:, ::-1])[:, None]).ravel()


def with_columns(x):
    return x * x[0] + np.sin(x) * x[7:8] - x[-1]


def interleaved(x):
    y = fg.numpy.zeros(12, x.dtype).at[::2].set(np.sin(x[:6]))
    return y.at[1::2].set(x[6:] * x[0])


def replaced(x):
    planes = fg.numpy.asarray(x.reshape(4, 3) ** 2).at[:, 1].set(x[:4] * 3.0)
    return planes.at[2].set(x[-3:]).ravel()


STEPS = [
    smooth, shifted, bordered, strided, reversed_product, in_planes, turned, chosen, nested,
    by_groups, small_products, with_columns, interleaved, replaced,
]  # fmt: skip


def columns_of(f, x):
    """The dense Jacobian: a tangent for each element, all at once."""
    return fg.vmap(lambda e: fg.jvp(f, (x,), (e,))[1])(np.eye(x.size, dtype=x.dtype)).T


def diagonals_of(f, x):
    """What the derivative finds by diagonals."""
    staged = StagedFunction(lambda y: [f(y)], (x,), {}, "test")
    derivative = Derivative(staged.program, [True])
    return derivative.diagonals(derivative.results([x])[1], False)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", STEPS)
def test_jacobians_are_the_dense_ones(f, dtype):
    x = np.linspace(0.3, 1.7, 12).astype(dtype)
    assert diagonals_of(f, x) is not None
    found = fg.jacfwd(f, sparse=True)(x)
    assert found.dtype == dtype
    dense = columns_of(f, x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-5 if dtype == np.float32 else 1e-12)
    pattern = fg.sparsity.jacobian_sparsity(f)(x)
    assert (found.astype(bool).toarray() <= pattern.toarray()).all()
    assert found.nnz == pattern.nnz


@settings(max_examples=3)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=2))
def test_compositions(steps):
    def f(x):
        for step in steps:
            x = step(x)
        return x

    def total(x):
        return np.sum(np.tanh(f(0.3 * x)) ** 2)

    x = np.linspace(-0.8, 1.1, 12)
    dense = columns_of(f, x)
    np.testing.assert_allclose(
        fg.jacfwd(f, sparse=True)(x).toarray(), dense, rtol=1e-10, atol=1e-12
    )
    curved = columns_of(fg.grad(total), x)
    found = fg.hessian(total, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), curved, rtol=1e-9, atol=1e-12)


def test_parts_of_planes():
    """Of an array of rows as a vector, whose parts have gaps."""

    def f(x):
        y = x.reshape(12, 13)
        return np.pad((y[1:, 1:] - y[:-1, 1:]) ** 3, ((1, 0), (1, 0))).ravel() + x

    x = np.linspace(-1.0, 1.0, 156)
    assert diagonals_of(f, x) is not None
    dense = columns_of(f, x)
    np.testing.assert_allclose(fg.jacfwd(f, sparse=True)(x).toarray(), dense, rtol=1e-12)


def test_coefficients_of_infinite_slope_pass_no_zero():
    """As in the dense derivative, the arm that is not taken is zero, whatever its slope is."""

    def f(x):
        return np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0) + 0 * np.roll(x, 1)

    x = np.array([0.0, 1.0, 4.0, 0.0])
    assert np.isfinite(fg.jacfwd(f, sparse=True)(x).toarray()).all()


@pytest.mark.parametrize(
    "f",
    [np.cumsum, lambda x: x[np.array([0, 5, 1, 1])], lambda x: np.sum(x) * x],
    ids=["fold", "lookup", "total"],
)
def test_others_have_none(f):
    x = np.linspace(0.3, 1.7, 12)
    assert diagonals_of(f, x) is None
    dense = columns_of(f, x)
    np.testing.assert_allclose(fg.jacfwd(f, sparse=True)(x).toarray(), dense, rtol=1e-12)


def wood(x):
    a, b, c, d = x[:-3:2], x[1:-2:2], x[2:-1:2], x[3::2]
    return np.sum((a**2 - b) ** 2 + (c**2 - d) ** 2 + 10 * (b + d - 2.0) ** 2 + 0.1 * (b - d) ** 2)


def staggered(x):
    y = x.reshape(6, -1)
    return np.sum(y[::2, 1:] ** 2 * y[1::2, :-1]) + np.sum((y[1:, ::2] - y[:-1, ::2]) ** 3)


def in_groups(x):
    y = x.reshape(-1, 4)
    groups = np.exp(0.1 * np.prod(y, axis=1)) + np.sum(y**2, axis=1) ** 2
    return np.sum(groups) + np.sum(x[:-1] ** 3)


def coupled(x):
    y = x.reshape(-1, 3)
    b = np.array([[1.0, -2.0, 0.0], [0.5, 3.0, 1.0]])
    products = np.einsum("ij,tj,ti->t", b, y, y[:, :2])
    return np.sum((y[1:, 1:] + y[:-1] @ b.T + products[1:, None]) ** 2)


def sparse_parts(x):
    return np.sum(x[::11] ** 3) + np.sum(x**2 * 0.5) + np.sum(np.sin(x[3::2]))


def arrow(x):
    return np.sum((x[:-1] ** 2 + x[-1] ** 2) ** 2) - np.sum(x[:-1])


def around_the_first(x):
    return np.sum(np.exp(x - x[0]) * x) + x[1] * x[-1]


def with_a_hub(x):
    return np.sum((x[:-4] ** 2 + 2 * x[1:-3] ** 2 + 3 * x[2:-2] ** 2 + 5 * x[-1] ** 2) ** 2)


def with_two_hubs(x):
    return np.sum(np.cos(x[2:] * x[1:-1] + x[0])) + np.sum(x[:5] ** 2 * x[7])


def with_hubs_that_meet(x):
    others = np.sum((x + x[0]) ** 3) + np.sum((x[:-1] * x[5]) ** 2 + x[-1] * x[1:])
    return others + np.sum(np.exp(x - x[-1]) * x[3])


HUBS = [arrow, around_the_first, with_a_hub, with_two_hubs, with_hubs_that_meet]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", HUBS)
def test_dense_rows_of_hessians_are_those_of_columns(f, monkeypatch):
    monkeypatch.delattr("funcgrad.api.sparse_derivatives.coloring")
    assert fg.hessian(f, sparse=True)(np.linspace(0.1, 1.0, 24)).shape == (24, 24)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("f", [wood, staggered, sparse_parts, in_groups, coupled, *HUBS])
@pytest.mark.parametrize("n", [12, 24, 96])
def test_strided_parts_of_hessians(f, n):
    x = np.random.default_rng(n).uniform(-1.0, 1.0, n)
    dense = columns_of(fg.grad(f), x)
    found = fg.hessian(f, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12, atol=1e-12)
    pattern = fg.sparsity.hessian_sparsity(f)(x)
    assert found.nnz == pattern.nnz


@st.composite
def slices_of(draw, n=60):
    """Slices of as many elements each, with steps of both signs."""
    count = draw(st.integers(1, 12))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        step = draw(st.sampled_from([1, 1, 2, 3, 4, -1, -2]))
        first = draw(st.integers(0, n - 1 - (count - 1) * abs(step)))
        last = first + (count - 1) * abs(step)
        ascending = slice(first, last + 1, step)
        found.append(ascending if step > 0 else slice(last, first - 1 if first else None, step))
    return found


@settings(max_examples=3)
@given(slices_of(), slices_of(), st.booleans())
def test_random_slices(some, others, is_padded):
    """Products and sums of slices at any starts and steps, put back at other places."""

    def f(x):
        total = x[some[0]] * 1.0
        for part in some[1:]:
            total = total * 0.5 + np.sin(x[part])
        if is_padded:
            total = np.concatenate([total, x[others[0]] ** 2, np.tanh(x[::2])])
        wide = np.zeros(60)
        wide = fg.numpy.asarray(wide).at[: len(total)].add(total[:60]) + 0.3 * x
        return sum(((k + 2) * wide[part] ** 2 for k, part in enumerate(others)), start=0.0)

    x = np.linspace(-0.8, 1.1, 60)
    dense = columns_of(f, x)
    found = fg.jacfwd(f, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-11, atol=1e-12)
    curved = columns_of(fg.grad(lambda y: np.sum(f(y) ** 2)), x)
    hessian = fg.hessian(lambda y: np.sum(f(y) ** 2), sparse=True)(x)
    np.testing.assert_allclose(hessian.toarray(), curved, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("jacobian", [fg.jacfwd, fg.jacrev])
def test_parts_that_eager_derivatives_read_at_once(jacobian, monkeypatch):
    """Large Jacobians look for their pattern in what a tape has of slices and diagonals."""
    monkeypatch.setattr(compression, "LEAST_EAGER", 1)
    x = np.linspace(1.0, 2.0, 324)
    functions = (
        lambda x: x[1:] * x[:-1] + x[3],
        lambda x: fnp.diagonal(fnp.reshape(x, (18, 18)), 1) * x[5:22],
        lambda x: x[::-2] ** 2,
    )
    for f in functions:
        np.testing.assert_array_equal(jacobian(f)(x), fg.jit(jacobian(f))(x))
