"""Gradient flow: the verdicts that theory predicts."""

from __future__ import annotations

import itertools

import pytest

from tests.examples.program import check_picture, check_refusal, load, run

example = load("vanishing")


def expected(activation, normalization, depth):
    """Slopes of at most 1/4 let a gradient vanish from six layers on; nothing else does here."""
    is_shrinking = activation == "sigmoid" and normalization == "plain"
    return "vanishing" if is_shrinking and depth >= 10 else "healthy"


def check(cells, depths):
    assert [(c.activation, c.normalization, c.depth) for c in cells] == list(
        itertools.product(example.ACTIVATIONS, example.NORMALIZATIONS, depths)
    )
    for cell in cells:
        place = (cell.activation, cell.normalization, cell.depth)
        assert cell.verdict == expected(*place), place
        assert len(cell.flow) == cell.depth
        if expected(*place) == "vanishing":
            assert cell.flow[0] < 0.25 ** (cell.depth - 1) * 10 * cell.flow[-1]
        else:
            assert 1e-2 < cell.flow[0] / cell.flow[-1] < 1e2


def test_the_verdicts_are_those_of_theory(tmp_path):
    arguments = ["--depths", 3, 12, "--width", 32, "--batch-size", 64]
    cells = run(example, *arguments, "--output", tmp_path / "flow.png")
    check(cells, [3, 12])
    check_picture(tmp_path / "flow.png")


@pytest.mark.nightly
def test_the_full_grid(tmp_path):
    check(run(example, "--output", tmp_path / "flow.png"), [3, 10, 20])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--depths", "1"], "argument --depths: 1 is not a whole number of at least 2"),
        (["--width", "x"], "argument --width: 'x' is not a whole number of at least 2"),
        (["--output", "/nowhere/x.png"], "argument --output: there is no folder /nowhere"),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(capsys, arguments, message):
    check_refusal(example, capsys, arguments, message)
