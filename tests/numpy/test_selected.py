"""Elements that a traced mask selects: functions that need not know how many they are.

Every program runs with values that are known, where NumPy selects, and compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import NonConcreteBooleanIndexError

X = np.array([0.0, 1.0, -2.0, 3.0, 0.5, 0.0])
A = np.array([[1.5, -0.5], [0.0, 2.0], [-3.0, 4.0]])


def powers(x: Any) -> Any:
    """Equal masks that are computed twice, and elements whose derivative is infinite."""
    x = x.copy()
    x[x > 0] = x[x > 0] ** -1.5
    x[x < 0] = np.log(-x[x < 0]) + fnp.sqrt(-x[x < 0])
    return x


def updates(x: Any) -> Any:
    y = 2 * x.copy()
    mask = np.logical_and(y > 0.5, x < 3)
    y[mask] += x[mask]
    y[mask] *= 2.0
    y[1:][y[1:] == 0] = -1.0
    y[~mask] = -y[~mask].copy() / (1 + abs(x[~mask]))
    return y, 1 - np.maximum(y[mask], 3.0).sum()


def reductions(x: Any) -> Any:
    chosen = x[x >= 0]
    return (
        chosen.sum(),
        np.mean(chosen),
        fnp.prod(chosen + 2),
        chosen.std(),
        fnp.var(chosen**2),
        (chosen > 2).any(),
        np.all(chosen < 2),
        chosen.size,
        np.sum(x[x > 100]),
    )


def of_rows(x: Any) -> Any:
    """A mask of the leading axis only."""
    matrix = fnp.outer(x, np.array([1.0, 2.0]))
    rows = matrix[x > 0] * np.array([0.5, 1.0])
    matrix[x > 0] = rows
    return matrix, rows.sum(), rows.sum(axis=0), fnp.mean(rows, 0)


def of_matrices(x: Any) -> Any:
    matrix = x.reshape(2, 3).copy()
    matrix[matrix > 0] = np.exp(matrix[matrix > 0])
    numbers = (x.copy() * 2).astype(np.int64)
    numbers[numbers > 1] -= numbers[numbers > 1].astype(np.int8) - 2
    return matrix, numbers, matrix[numbers.reshape(2, 3) > 0].mean()


PROGRAMS = [powers, updates, reductions, of_rows, of_matrices]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_results_are_numpys(program: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        expected = fg.tree.leaves(program(X.copy()))
        mapped = fg.tree.leaves(fg.vmap(program)(np.stack([X, X])))
    compiled = fg.tree.leaves(fg.jit(program)(X))
    for want, got, lanes in zip(expected, compiled, mapped, strict=True):
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-14)
        np.testing.assert_allclose(lanes, np.stack([want, want]), rtol=1e-14)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_derivatives_know_nothing_of_other_elements(program: Callable[..., Any]) -> None:
    def total(x: Any) -> Any:
        leaves = fg.tree.leaves(program(x))
        return sum(fnp.sum(leaf) for leaf in leaves if np.result_type(leaf).kind == "f")

    eager, staged = fg.grad(total)(X), fg.jit(fg.grad(total))(X)
    assert np.isfinite(staged).all()
    np.testing.assert_allclose(staged, eager, rtol=1e-12)
    tangent = np.linspace(1.0, 2.0, len(X))
    forward = fg.jit(lambda x: fg.jvp(total, (x,), (tangent,))[1])(X)
    np.testing.assert_allclose(forward, eager @ tangent, rtol=1e-12)


REFUSED = {
    "result": lambda x: x[x > 0],
    "product": lambda x: x[x > 0] @ x[x > 0],
    "as many": lambda x: x[x > 0] + x,
    "other mask": lambda x: x[x > 0] + x[x > 1],
    "sort": lambda x: fnp.sort(x[x > 0]),
    "len": lambda x: len(x[x > 0]),
    "shape": lambda x: x[x > 0].shape,
    "item": lambda x: x[x > 0][0],
    "loop": lambda x: list(x[x > 0]),
    "axis": lambda x: np.sum(x[x > 0], axis=1),
    "stack": lambda x: np.stack([x[x > 0], x]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_their_number_is_refused(name: str) -> None:
    with pytest.raises(NonConcreteBooleanIndexError, match=r"bool\[6\].*\n  at  .*x\[x > 0\]"):
        fg.jit(REFUSED[name])(X)


def test_values_of_another_mask_are_refused() -> None:
    def shifted(x: Any) -> Any:
        y = x.copy()
        y[x > 0] = x[x > 1]
        return y

    with pytest.raises(NonConcreteBooleanIndexError, match=r"x\[x > 1\]"):
        fg.jit(shifted)(X)
