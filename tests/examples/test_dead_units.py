"""Dead units: low biases and large rates make them, cures do without."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("dead_units")

ILL = {"low biases", "large rate"}


@pytest.mark.nightly
def test_units_die_and_the_cures_help(tmp_path):
    found = run(example, "--output", tmp_path / "dead.png")
    assert set(found) == set(example.RECIPES) > ILL
    for name, trained in found.items():
        is_ill = name in ILL
        assert (trained.verdict == "dead units") == is_ill, name
        assert (trained.dead[-1] > 0.9) == is_ill, name
        assert trained.dead[-1] > 0.9 or trained.dead[-1] < 0.3
        assert (trained.accuracy < 0.3) == is_ill, name
        assert is_ill or trained.accuracy > 0.6, name
    assert found["biases at 0"].accuracy > 0.9
    assert found["smaller rate"].accuracy > 0.9
    check_picture(tmp_path / "dead.png")


def test_units_that_let_a_gradient_pass_are_not_dead():
    recipe = example.RECIPES["low biases"]
    params = example.init_params(recipe, 0)
    x = np.zeros((5, 64))
    assert example.dead_share(params, x, recipe) == 1.0
    params["b1"][:32] = 1.0
    assert example.dead_share(params, x, recipe) == 0.75
    assert example.dead_share(params, x, example.RECIPES["PReLU"]) == 0.0
