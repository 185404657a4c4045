"""Runs of the tests do not depend on chance, or on the order of tests."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest

R = np.random.default_rng(0)
OLD = np.random.RandomState(0)


@pytest.mark.parametrize("time", ["first", "second"])
def test_generators_of_a_module_start_anew(time: str) -> None:
    assert R.random() == np.random.default_rng(0).random()
    assert OLD.normal() == np.random.RandomState(0).normal()


def test_examples_are_the_same_in_every_run(request: pytest.FixtureRequest) -> None:
    is_chosen = request.config.getoption("--hypothesis-profile") is not None
    assert is_chosen or hypothesis.settings.default.derandomize
