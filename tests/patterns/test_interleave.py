"""Elements of vectors in an order: beside NumPy's lookup, and when it is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.patterns.interleave import in_order


def expected_of(parts, sizes, source):
    filled = [np.full(n, x) if np.ndim(x) == 0 else x for x, n in zip(parts, sizes, strict=True)]
    return np.concatenate(filled)[source]


@st.composite
def orders(draw):
    """Vectors, and turns of them of different lengths with other elements between."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = [draw(st.integers(1, 200)) for _ in range(draw(st.integers(1, 5)))]
    parts = [rng.normal() if rng.random() < 0.3 else rng.normal(size=n) for n in sizes]
    starts = np.cumsum([0, *sizes])
    source = [rng.integers(0, starts[-1], draw(st.integers(0, 4)))]
    for _ in range(draw(st.integers(0, 3))):
        columns, turns = [], draw(st.integers(1, 40))
        for _ in range(draw(st.integers(1, 5))):
            k = int(rng.integers(len(sizes)))
            most = (sizes[k] - 1) // max(turns - 1, 1)
            step = int(rng.integers(-min(most, 3), min(most, 3) + 1))
            first = int(rng.integers(0, sizes[k] - abs(step) * (turns - 1)))
            first += abs(step) * (turns - 1) if step < 0 else 0
            columns.append(starts[k] + first + step * np.arange(turns))
        source += [np.stack(columns, -1).ravel(), rng.integers(0, starts[-1], 2)]
    return parts, sizes, np.concatenate(source).astype(np.int64)


@given(orders())
def test_orders(case):
    parts, sizes, source = case
    found = in_order([np.float64(x) if np.ndim(x) == 0 else x for x in parts], sizes, source, float)
    np.testing.assert_array_equal(found, expected_of(parts, sizes, source))


@pytest.mark.parametrize("n", [8, 1000])
def test_large_orders_of_turns_are_no_lookup(n):
    source = np.stack([np.arange(n), n + np.arange(n), np.arange(n)], -1).ravel()

    def run(x):
        return in_order([x, x * 2.0], [n, n], source, float)

    assert "gather" not in str(fg.make_jaxpr(run)(np.ones(n)))
    x = np.random.default_rng(0).normal(size=n)
    np.testing.assert_array_equal(fg.jit(run)(x), np.append(x, x * 2.0)[source])
    np.testing.assert_array_equal(
        fg.grad(lambda y: run(y) @ np.arange(3.0 * n))(x),
        np.arange(3.0 * n)[::3] + 2 * np.arange(3.0 * n)[1::3] + np.arange(3.0 * n)[2::3],
    )


def test_an_order_without_turns_is_a_lookup():
    rng = np.random.default_rng(0)
    source = rng.integers(0, 100, 300)
    x = rng.normal(size=100)

    def run(x):
        return in_order([x], [100], source, float)

    assert "gather" in str(fg.make_jaxpr(run)(x))
    np.testing.assert_array_equal(fg.jit(run)(x), x[source])
