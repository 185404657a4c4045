"""Functions of windows of one array, computed once for each of its elements."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.avals import aval_of
from funcgrad.core.program import evaluate
from funcgrad.patterns.shared_windows import with_shared_windows
from funcgrad.transforms.programs import stage_closed

X = np.linspace(0.1, 1.0, 12)


def rows(x):
    return np.cos(x[1:]) + np.cos(x[:2])


SHARED = {
    "neighbours": (lambda x: np.sin(x[1:]) - np.sin(x[:-1]), {"sin": 1}),
    "the array itself": (lambda x: np.exp(x[2:]) * np.exp(x)[1:-1], {"exp": 1}),
    "of functions": (lambda x: np.log(np.exp(x[:8])) + np.log(np.exp(x[4:])), {"exp": 1, "log": 1}),
    "every other one": (lambda x: np.tanh(x[::2]) * np.tanh(x[1::2]), {"tanh": 1}),
    "rows": (lambda x: rows(x.reshape(3, 4)), {"cos": 1}),
    "not all elements": (lambda x: np.sin(x[2:]) + np.sin(x[1:-1]), {"sin": 2}),
    "arithmetic": (lambda x: -x[1:] + -x[:-1], {"neg": 2}),
}


@pytest.mark.parametrize("name", SHARED)
def test_functions_are_computed_once(name: str) -> None:
    f, expected = SHARED[name]
    program = stage_closed(lambda x: [f(x)], [aval_of(X)], name)
    shared = with_shared_windows(program)
    counts = Counter(e.primitive.name for e in shared.equations)
    assert {key: counts[key] for key in expected} == expected
    np.testing.assert_array_equal(evaluate(shared, [X])[0], f(X))


def test_hessians_have_one_sine() -> None:
    f = lambda x: np.sum(np.sin(x[1:]) - np.sin(x[:-1]) + np.cos(x[1:]) ** 2)  # noqa: E731
    found = fg.jit(fg.hessian(f, sparse=True))(X).toarray()
    np.testing.assert_allclose(found, fg.hessian(f)(X), atol=1e-14)
