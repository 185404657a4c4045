"""Entries of wide bands, by windows of arrays, beside dense derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.patterns import bands

N, BREADTH = 1700, 11
"""Longer than what `numpy.convolve` sums without a convolution."""
X = np.random.default_rng(0).normal(size=N)
SCALES = np.exp(np.linspace(0.0, 2.0, N))
TAPS = np.arange(1.0, BREADTH + 3)


def ahead(x):
    q = np.convolve(np.pad(x, (0, BREADTH - 1)), np.ones(BREADTH), mode="valid")[:N]
    return np.sum(q * (q * (q**2 - 20.0) - 0.1))


def scaled(x):
    return ahead(x * SCALES)


def of_slices(x):
    return np.sum(np.sin(sum(x[i : N - BREADTH + i] for i in range(BREADTH))) ** 2)


def of_neighbours(x):
    """Each of whose neighbours has a factor of its own."""
    y = [x[i : N - 6 + i] for i in range(7)]
    return np.sum((2 + 5 * y[5] ** 2 + sum(a * (1 + a) for a in y)) ** 2)


def of_two(x):
    return np.sum(np.exp(0.1 * np.convolve(np.tanh(x), TAPS, mode="same")) * x)


def same(x):
    return np.convolve(np.tanh(x), TAPS, mode="same") ** 2


def full(x):
    return np.convolve(x, TAPS, mode="full") ** 2


def cut(x):
    """Windows that read beyond the ends of a part."""
    y = np.convolve(x, TAPS, mode="same")[20:-20] ** 2
    return np.convolve(np.pad(y, 20), TAPS, mode="same")


def with_windows(x):
    """Windows of one array beside elements of another one."""
    y = np.convolve(np.convolve(x, TAPS[::-1], mode="same") ** 2, TAPS[::-1], mode="same")
    return y + np.sin(x) * x


@pytest.fixture
def breadths(monkeypatch):
    """Breadths of the bands whose entries were computed."""
    found = []
    table = bands.Band.table
    monkeypatch.setattr(
        bands.Band, "table", lambda band, *args: found.append(band.breadth) or table(band, *args)
    )
    return found


def products(matrix, derivative):
    """Products of a matrix and of a derivative with random vectors."""
    rng = np.random.default_rng(1)
    for v in rng.normal(size=(3, N)):
        expected = derivative(v)
        np.testing.assert_allclose(
            matrix @ v, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
        )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("f", [ahead, scaled, of_slices, of_neighbours, of_two])
def test_hessians(f, breadths, monkeypatch):
    monkeypatch.setattr("funcgrad.patterns.diagonals.MOST_DIAGONALS", 4)
    found = fg.hessian(f, sparse=True)(X)
    assert len(set(breadths)) == 1
    assert found.nnz == fg.sparsity.hessian_sparsity(f)(X).nnz
    products(found, lambda v: fg.jvp(fg.grad(f), (X,), (v,))[1])


def test_columns_of_their_own_are_no_windows():
    program = fg.make_jaxpr(fg.hessian(of_neighbours, sparse=True))(X)
    assert "convol" not in str(program)


@pytest.mark.parametrize("f", [same, full, cut, with_windows])
def test_jacobians(f, breadths):
    found = fg.jacfwd(f, sparse=True)(X)
    assert len(set(breadths)) == 1
    products(found, lambda v: fg.jvp(f, (X,), (v,))[1])


def test_bands_with_few_entries_have_colours(breadths, monkeypatch):
    monkeypatch.setattr("funcgrad.patterns.diagonals.MOST_DIAGONALS", 2)

    def f(x):
        return np.sum((x[60:] + x[30:-30] + x[:-60]) ** 4)

    found = fg.hessian(f, sparse=True)(X)
    assert not breadths
    products(found, lambda v: fg.jvp(fg.grad(f), (X,), (v,))[1])


def test_entries_are_differentiable():
    x = 0.1 * X

    def trace(x):
        return np.sum(np.sin(fg.hessian(ahead, sparse=True)(x).data))

    direction = np.cos(np.arange(N))
    slope = fg.jit(fg.grad(trace))(x) @ direction
    step = 1e-5
    ends = [trace(x + s * step * direction) for s in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-5)


def test_entries_stay_zero_beside_what_is_not_finite():
    """A column that does not depend on an element has no product with it."""
    factors = np.ones(N)

    def f(x, factors):
        q = np.convolve(np.pad(x, (0, BREADTH - 1)), np.ones(BREADTH), mode="valid")[:N]
        return np.sum(factors * q**3)

    hessian = fg.hessian(f, sparse=True)
    for place, bad in ((800, np.nan), (30, np.inf)):
        found = hessian(X, np.where(np.arange(N) == place, bad, factors))
        rows = found.tocoo().row[~np.isfinite(found.data)]
        assert rows.size == BREADTH**2
        assert set(rows.tolist()) == set(range(place, place + BREADTH))
