"""Arrays put together from single elements: derivatives, and what is left of the program."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.api.staging import StagedFunction
from funcgrad.core.program import evaluate


def one_by_one(x):
    return np.stack([x[k] ** 2 + 3.0 * x[k + 1] for k in range(len(x) - 1)])


def in_turn(x):
    found = []
    for k in range(0, len(x) - 4, 3):
        found.append(x[k] ** 2 + 3.0 * x[k + 1])
        found.append(x[k + 2] ** 2 + x[k + 3] - 2.0 * x[k + 4])
        found.append(x[k + 1] ** 2 - x[k + 4])
    return np.stack(found)


def with_ends(x):
    inside = [np.sin(x[k - 1] * x[k + 1]) for k in range(1, len(x) - 1)]
    return np.stack([x[0] - 1.0, *inside, x[-1] ** 2])


def two_loops(x):
    squares = [x[k] ** 2 for k in range(1, len(x))]
    products = [x[k] * x[k - 1] for k in range(1, len(x))]
    return np.stack([x[0], *squares, x[3] * 2.0, *products, *squares[:2]])


def two_lists(x):
    """Loops that one list is made of: two numbers in each turn, then three, then some others."""
    found = [g(x[k], x[k + 1]) for k in range(len(x) - 1) for g in (np.multiply, np.subtract)]
    for k in range(30):
        found += [x[k] ** 2, x[k] * x[k + 3], x[k + 2] - x[0]]
    return np.stack([*found, found[7], found[3], *found[40:50:2]])


def on_a_grid(x):
    y = x.reshape(10, -1)
    return np.stack([y[i, j] * y[j, i] for i in range(10) for j in range(10)])


def jacobian(f, x):
    """By complex steps: the real part of h f'(x) i does not cancel."""
    return np.stack([f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(len(x))], 1)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("f", [one_by_one, in_turn, with_ends, two_loops, two_lists, on_a_grid])
def test_derivatives(f):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, 100)
    found = fg.jacfwd(f, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), jacobian(f, x), rtol=1e-12, atol=1e-13)
    curved = fg.hessian(lambda y: np.sum(f(y) ** 2), sparse=True)(x)
    for k in (0, 50, 99):
        steps = (x + sign * 1e-5 * np.eye(100)[k] for sign in (1, -1))
        up, down = (2 * jacobian(f, y).T @ f(y) for y in steps)
        np.testing.assert_allclose(curved.toarray()[k], (up - down) / 2e-5, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("f", [with_ends, two_loops, two_lists])
def test_few_equations_are_left(f):
    x = np.linspace(0.1, 1.0, 300)
    program = StagedFunction(lambda y: [f(y)], (x,), {}, "test").program
    assert len(program.equations) < 50
    np.testing.assert_array_equal(evaluate(program, [x])[0], f(x))


def test_colours_of_strided_rows():
    """Diagonals with rows left out need no more colours than the longest row has entries."""
    pattern = fg.sparsity.jacobian_sparsity(in_turn)(np.ones(301))
    assert fg.sparsity.coloring(pattern).n_colors == 3
