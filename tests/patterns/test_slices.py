"""Lookups and sums at known places as slices and pads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.avals import aval_of
from funcgrad.core.program import Program, evaluate
from funcgrad.patterns.known import known_places
from funcgrad.patterns.slices import with_slices
from funcgrad.primitives.indexing import Gather, ScatterAdd
from funcgrad.transforms.programs import stage_closed

X = np.random.default_rng(0).uniform(0.5, 1.5, (6, 7, 3))
COUNTED = np.arange(3)


def sums(x: Any, index: Any, axis: int, start: float = 0.0) -> Any:
    """Gradient of a weighted sum of a lookup: it adds to places."""
    shape = np.take(X, index, axis).shape
    weights = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    total = lambda v: np.sum(np.take(v, index, axis) * weights) + start * np.sum(v)  # noqa: E731
    return fg.grad(total)(x)


SLICED: dict[str, Callable[[Any], Any]] = {
    "first axis": lambda x: x[COUNTED + 1],
    "distant": lambda x: x[2 * COUNTED],
    "other axis": lambda x: np.take(x, COUNTED + 2, 1),
    "from the end": lambda x: x[COUNTED - 4],
    "a number": lambda x: Gather((1,)).bind(x, np.array(-2)),
    "one": lambda x: x[np.array([3])],
    "clipped inside": lambda x: x.at[COUNTED + 3].get(mode="clip"),
    "sum": lambda x: sums(x, COUNTED + 1, 0),
    "sum, distant": lambda x: sums(x, 3 * COUNTED, 1),
    "sum, last axis": lambda x: sums(x, np.arange(1, 3), 2),
    "sum, a number": lambda x: ScatterAdd((1,)).bind(x, x[:, 2], np.array(-1)),
    "sum with others": lambda x: sums(x, COUNTED, 0, 2.0),
    "added": lambda x: x.at[COUNTED + 2].add(x[:3]),
}
LEFT: dict[str, Callable[[Any], Any]] = {
    "backwards": lambda x: x[COUNTED[::-1]],
    "again": lambda x: x[np.array([2, 2])],
    "at other distances": lambda x: x[np.array([0, 1, 3])],
    "clipped": lambda x: x.at[COUNTED + 5].get(mode="clip"),
    "filled": lambda x: x.at[COUNTED + 5].get(mode="fill", fill_value=0.0),
    "nothing": lambda x: x[COUNTED[:0]],
    "of two axes": lambda x: x[COUNTED, COUNTED],
    "unknown": lambda x: x[(x[:3, 0, 0] > 1.0).astype(int)],
    "sum, again": lambda x: sums(x, np.array([1, 1]), 0),
}


def program_of(function: Callable[[Any], Any]) -> Program:
    return stage_closed(lambda x: [function(x)], [aval_of(X)], "case")


def lookups(program: Program) -> list[str]:
    names = [equation.primitive.name for equation in program.equations]
    return [name for name in names if name.startswith(("gather", "scatter"))]


@pytest.mark.parametrize("name", [*SLICED, *LEFT])
def test_values_are_the_same(name: str) -> None:
    program = program_of((SLICED | LEFT)[name])
    found = with_slices(program)
    np.testing.assert_allclose(evaluate(found, [X])[0], evaluate(program, [X])[0], rtol=1e-15)
    assert lookups(program)
    assert bool(lookups(found)) == (name in LEFT)


def test_indices_may_be_computed() -> None:
    """As of functions that are mapped over indices."""
    neighbours = fg.vmap(lambda i, x: x[i + 1] - x[i], in_axes=(0, None))
    program = program_of(lambda x: neighbours(fg.numpy.arange(5), x))
    assert not lookups(with_slices(program))
    jacobian = fg.jacfwd(lambda x: neighbours(np.arange(11), x), sparse=True)(np.ones(12))
    np.testing.assert_allclose(jacobian.toarray(), np.diff(np.eye(12), axis=0))


@pytest.mark.parametrize("dtype", [*np.typecodes["AllInteger"]])
@pytest.mark.parametrize("mode", ["clip", "wrap", "fill", "drop"])
def test_places_of_indices_of_every_dtype(mode, dtype):
    """Numbers of Python are the reference: they have all digits."""
    info, n = np.iinfo(dtype), 1000
    index = np.array([0, 1, 3, info.max, info.min, info.max - 1, info.min + 1], dtype)

    def place(i):
        if mode in ("clip", "wrap"):
            return min(max(i, 0), n - 1) if mode == "clip" else i % n
        i += n * (i < 0)
        return i if 0 <= i < n else -1

    found = known_places(index, mode, n)
    assert found.dtype == np.int64
    assert found.tolist() == [place(i) for i in index.tolist()]


def test_lookups_of_unsigned_indices_that_wrap():
    def f(x):
        return x.at[np.array([1, 3], np.uint64)].add(x[:1] * 2, mode="wrap")

    dense = fg.jacobian(f)(np.ones(3))
    np.testing.assert_array_equal(fg.jacobian(f, sparse=True)(np.ones(3)).toarray(), dense)
