"""Gradient flow: the verdicts that theory predicts, and the cures."""

from __future__ import annotations

import itertools

import pytest

from tests.examples.program import check_picture, load, run

example = load("vanishing")


def expected(name, depth):
    """Slopes of at most 1/4 let a gradient vanish from six layers on; small weights do later."""
    if name == "sigmoid":
        return "vanishing" if depth >= 10 else "healthy"
    if name == "small ReLU":
        return "vanishing" if depth >= 30 else "healthy"
    return "saturated" if name == "larger weights" else "healthy"


def check(cells, losses, depths):
    assert [(c.name, c.depth) for c in cells] == list(itertools.product(example.RECIPES, depths))
    for cell in cells:
        place = (cell.name, cell.depth)
        assert cell.verdict == expected(*place), place
        assert len(cell.flow) == cell.depth
        if cell.name == "sigmoid":
            assert cell.flow[0] < 0.25 ** (cell.depth - 1) * 10 * cell.flow[-1]
        else:
            assert 1e-3 < cell.flow[0] / cell.flow[-1] < 1e3, place
    assert list(losses) == list(example.RECIPES)


@pytest.mark.nightly
def test_the_verdicts_are_those_of_theory(tmp_path):
    arguments = ["--depths", 3, 12, "--width", 32, "--batch-size", 64, "--steps", 5]
    check(*run(example, *arguments, "--output", tmp_path / "flow.png"), [3, 12])
    check_picture(tmp_path / "flow.png")


@pytest.mark.nightly
def test_the_full_grid_and_that_cured_networks_learn(tmp_path):
    cells, losses = run(example, "--output", tmp_path / "flow.png")
    check(cells, losses, [10, 30, 50])
    assert losses["sigmoid"][-1] > 1.0
    assert all(values[-1] < 0.1 for name, values in losses.items() if name != "sigmoid")
