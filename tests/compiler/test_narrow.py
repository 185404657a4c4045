"""Outer products of masked vectors change what their masks select, whatever their factors are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad import numpy as fnp
from tests.compiler.test_unswitch import compiled, is_divided

COMPARISONS = (operator.gt, operator.ge, operator.lt, operator.le)


def elimination(
    n: int, compare: Callable[..., Any], word: Callable[..., Any], is_left: bool, masked: str
) -> Callable[..., Any]:
    """Loops that add an outer product to a matrix in each step, or subtract it."""
    places = np.arange(n)

    def step(k: Any, a: Any) -> Any:
        mask = compare(places, k) if is_left else compare(k, places)
        column, row = 0.5 * a[:, k], a[k]
        column = fnp.where(mask, column, 0.0) if "rows" in masked else column
        row = fnp.where(mask, row, 0.0) if "columns" in masked else row
        return word(a, row[None, :] * column[:, None])

    return lambda a: lax.fori_loop(0, n, step, a)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("wrong", [0.0, np.inf, np.nan])
@pytest.mark.parametrize("masked", ["rows", "columns", "rows and columns"])
@pytest.mark.parametrize("compare", COMPARISONS)
def test_results_are_those_of_whole_arrays(compare: Any, masked: str, wrong: float) -> None:
    for n, word, is_left in ((18, operator.sub, True), (35, operator.add, False)):
        a = np.random.default_rng(n).normal(size=(n, n)) / n
        a[n // 2, n // 3] += wrong
        program = elimination(n, compare, word, is_left, masked)
        with np.errstate(invalid="ignore"):
            found, expected = (compiled(program, (a,), skipped) for skipped in ("", "unswitch"))
        np.testing.assert_array_equal(found, expected)


def test_it_takes_the_time_of_the_masks() -> None:
    program = elimination(150, operator.gt, operator.sub, True, "rows and columns")
    assert is_divided(program, np.eye(150))
    plan = fg.jit(program).lower(np.eye(150)).as_text()
    assert plan.count("f64[150,150] -> f64[150,150]") == 2  # the start is copied, then changed
