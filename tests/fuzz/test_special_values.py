"""Chains at special values: a few in every run, 100,000 in a night; and the tool itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.fuzz import special_values
from tests.fuzz.properties import quiet
from tests.fuzz.special_values import (
    OPERATIONS,
    Arguments,
    Chain,
    Operation,
    Step,
    drawn_arguments,
    drawn_chain,
    failures,
    run_program,
    ways,
    wrong,
)


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 40))]
)
def test_chains_at_special_values(number: int) -> None:
    found = run_program(number)
    assert not found, "\n".join(map(str, found))


# The tool itself.


def arguments(dtype: str = "f8") -> Arguments:
    return drawn_arguments(np.random.default_rng(0), dtype, (48, 8))


def chain(*steps: tuple[str, int, tuple[str, ...]]) -> Chain:
    return Chain(tuple(Step(Operation(text, ulps), "", reads) for text, ulps, reads in steps))


def test_chains_are_the_same_for_the_same_number() -> None:
    one, other = (str([drawn_chain(random.Random(3)) for _ in range(20)]) for _ in range(2))
    assert one == other


def test_all_operations_are_defined_for_some_arguments() -> None:
    args = drawn_arguments(np.random.default_rng(0), "f8", (2, 3))
    for operation in (x for kind in OPERATIONS for x in kind):
        constant = operation.constants[-1] if operation.constants else ""
        step = Step(operation, constant, ("x", "y")[: operation.arity])
        with quiet():
            assert next(ways(Chain((step,)), args)).ndim == 2, operation.text


def test_a_wrong_result_is_found_and_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(special_values.OURS, "select", lambda x, y: np.where(y > 0, y, x))
    long = chain(("-{0}", 0, ("x",)), ("m.select({0}, {1})", 0, ("v0", "y")), ("+{0}", 0, ("v1",)))
    with quiet():
        (failure,) = failures([long], arguments())
        short = special_values.reduced(failure, arguments())
    assert len(short.chain.steps) < 3
    assert "instead of one of" in short.message


@pytest.mark.parametrize(
    ("found", "expected", "is_wrong"),
    [
        (1.0, [1.0], False),
        (1.0 + 1e-15, [1.0], False),
        (1.0 + 1e-13, [1.0], True),
        (-0.0, [0.0], True),
        (-0.0, [0.0, -0.0], False),
        (np.inf, [1e308], True),
        (np.inf, [1e308, np.inf], False),
        (np.nan, [1.0], True),
        (1.0, [np.nan], True),
        (np.nan, [1.0, np.nan], False),
        (-np.inf, [np.inf], True),
        (0.0, [5e-324], False),
        (0.3, [0.1, 0.9], False),
        (np.nan, [0.1, 0.9], True),
    ],
)
def test_what_counts_as_wrong(found: float, expected: list[float], is_wrong: bool) -> None:
    every: list[Any] = [np.array([x]) for x in expected]
    with quiet():
        assert wrong(np.array([found]), every, 8)[0] == is_wrong


def test_subnormal_numbers_may_be_zeros_in_single_precision() -> None:
    small = np.full((2, 3), 1e-39, np.float32)
    args = Arguments(small, small, np.zeros(3, int), np.zeros(3, int))
    with quiet():
        found = list(ways(chain(("1.0 / {0}", 0, ("x",))), args))
        expected = {np.inf, float(np.float32(1) / small[0, 0])}
    assert {float(v[0, 0]) for v in found} == expected
