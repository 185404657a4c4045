"""Runs of the tests do not depend on chance, or on the order of tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest

from tests.conftest import is_in_every_run

R = np.random.default_rng(0)
OLD = np.random.RandomState(0)


@pytest.mark.parametrize("time", ["first", "second"])
def test_generators_of_a_module_start_anew(time: str) -> None:
    assert R.random() == np.random.default_rng(0).random()
    assert OLD.normal() == np.random.RandomState(0).normal()


def test_examples_are_the_same_in_every_run(request: pytest.FixtureRequest) -> None:
    is_chosen = request.config.getoption("--hypothesis-profile") is not None
    assert is_chosen or hypothesis.settings.default.derandomize


def test_samples_take_rows_in_turn() -> None:
    """Every value of one parameter is tried, with half of those of the other."""
    first, second = [np.zeros(2), np.zeros(2), pytest.param("c", marks=[])], "uvw"
    marks = [pytest.mark.parametrize("x", first), pytest.mark.parametrize("y", second)]

    def is_tried(x: Any, y: str, share: pytest.MarkDecorator) -> bool:
        item: Any = SimpleNamespace(
            callspec=SimpleNamespace(params={"x": x, "y": y}),
            get_closest_marker=lambda name: share.mark,
            iter_markers=lambda name: [each.mark for each in marks],
        )
        return is_in_every_run(item)

    values = [first[0], first[1], "c"]
    half, with_v = pytest.mark.sampled(2), pytest.mark.sampled(3, y="v")
    assert [[is_tried(x, y, half) for y in second] for x in values] == [
        [True, False, True],
        [False, True, False],
        [True, False, True],
    ]
    assert [[is_tried(x, y, with_v) for y in second] for x in values] == [
        [True, True, False],
        [False, True, True],
        [False, True, False],
    ]
