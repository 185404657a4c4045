"""At singular points, forwards and backwards agree: in what is infinite or NaN, and in what is 0.

A derivative of 0 passes on nothing, not even to an infinite slope: along a direction in which an
argument does not move its singularity does not count, and a result that nobody asks for has no part
in a gradient. So columns and rows of a Jacobian are the same numbers both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.extend.laws import is_inexact
from tests.cases import CASES, Case

NUMBERS = (0.0, 1.0, -1.0, 0.5, -3.0, np.inf, -np.inf, np.nan)
"""Points at which some function or other has a singularity."""

ELEMENTWISE = {
    case.name: case
    for case in CASES
    if getattr(case.primitive, "is_elementwise", False) and case.order and case.dtypes[0] == "d"
}


def at(case: Case, number: float) -> tuple[Callable[..., Any], list[Any]]:
    """A primitive as a function of its floating arguments, and these at a number."""
    args = case.draw("d")
    active = [
        i
        for i, x in enumerate(args)
        if is_inexact(x) and (case.differentiable is None or i in case.differentiable)
    ]

    def function(*given: Any) -> Any:
        rest = dict(zip(active, given, strict=True))
        return case.primitive.bind(*(rest.get(i, x) for i, x in enumerate(args)))

    return function, [np.full(np.shape(args[i]), number, np.result_type(args[i])) for i in active]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ways_agree_at_singular_points(name: str) -> None:
    for number in NUMBERS:
        function, args = at(ELEMENTWISE[name], number)
        ones, zeros = [*map(np.ones_like, args)], [*map(np.zeros_like, args)]
        out, pull = fg.vjp(function, *args)
        for i in range(len(args)):
            along = tuple(ones[j] if j == i else x for j, x in enumerate(zeros))
            _, dot = fg.jvp(function, tuple(args), along)
            found, expected = np.sum(pull(np.ones_like(out))[i]), np.real(np.sum(dot))
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"at {number}")
        _, dot = fg.jvp(function, tuple(args), tuple(zeros))
        for x in (dot, *pull(np.zeros_like(out))):
            np.testing.assert_array_equal(x, np.zeros_like(x), err_msg=f"at {number}")
