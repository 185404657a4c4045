"""Arrays put together from single elements: derivatives, and what is left of the program."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.api.staging import StagedFunction
from funcgrad.patterns.elements import with_stacks


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


def on_a_grid(x):
    y = x.reshape(10, -1)
    return np.stack([y[i, j] * y[j, i] for i in range(10) for j in range(10)])


def jacobian(f, x):
    """By complex steps: the real part of h f'(x) i does not cancel."""
    return np.stack([f(x + 1e-30j * e).imag / 1e-30 for e in np.eye(len(x))], 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [one_by_one, in_turn, with_ends, on_a_grid])
def test_derivatives(f):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, 100)
    found = fg.jacfwd(f, sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), jacobian(f, x), rtol=1e-12, atol=1e-13)
    curved = fg.hessian(lambda y: np.sum(f(y) ** 2), sparse=True)(x)
    for k in (0, 50, 99):
        steps = (x + sign * 1e-5 * np.eye(100)[k] for sign in (1, -1))
        up, down = (2 * jacobian(f, y).T @ f(y) for y in steps)
        np.testing.assert_allclose(curved.toarray()[k], (up - down) / 2e-5, rtol=1e-7, atol=1e-8)


def test_few_equations_are_left():
    x = np.linspace(0.1, 1.0, 300)
    program = StagedFunction(lambda y: [with_ends(y)], (x,), {}, "test").program
    assert len(program.equations) > 300 > 100 > len(with_stacks(program).equations)


def test_other_programs_stay_as_they_are():
    x = np.linspace(0.1, 1.0, 80)
    order = np.random.default_rng(0).permutation(80)
    staged = StagedFunction(lambda y: [np.stack([y[k] ** 2 for k in order])], (x,), {}, "test")
    assert len(with_stacks(staged.program).equations) == len(staged.program.equations)


def test_colours_of_strided_rows():
    """Diagonals with rows left out need no more colours than the longest row has entries."""
    pattern = fg.sparsity.jacobian_sparsity(in_turn)(np.ones(301))
    assert fg.sparsity.coloring(pattern).n_colors == 3
