"""Exclusive or: both models learn it, alike."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, check_refusal, load, run

example = load("xor")


def test_the_four_outputs_of_both_models_are_within_a_tenth(tmp_path):
    outputs = run(example, "--output", tmp_path / "xor.png")
    for found in outputs.values():
        np.testing.assert_allclose(found, example.TARGETS, atol=0.1)
    np.testing.assert_allclose(outputs["numbers"], outputs["arrays"], rtol=1e-9)
    check_picture(tmp_path / "xor.png")


def test_numbers_and_arrays_have_the_same_gradient():
    units = example.initial_units(3)
    by_numbers = example.as_arrays(example.fg.grad(example.loss_of_numbers)(units))
    by_arrays = example.fg.grad(example.loss_of_arrays)(example.as_arrays(units))
    for name, expected in by_arrays.items():
        np.testing.assert_allclose(by_numbers[name], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "argument --steps: 0 is not a whole number of at least 1"),
        (["--lr", "inf"], "argument --lr: inf is not a positive number"),
        (["--seed", "x"], "argument --seed: 'x' is not a whole number of at least 0"),
        (["--output", "/nowhere/xor.png"], "argument --output: there is no folder /nowhere"),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(capsys, arguments, message):
    check_refusal(example, capsys, arguments, message)
