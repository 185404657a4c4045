"""Two moons: unseen points are told apart."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, check_refusal, load, run

example = load("moons")


def test_98_percent_of_unseen_points_are_on_the_right_side(tmp_path):
    found, losses = run(example, "--output", tmp_path / "moons.png")
    assert found >= 0.98
    assert losses[-1] < 0.05 < losses[0]
    check_picture(tmp_path / "moons.png")


def test_the_loss_is_the_cross_entropy():
    params = example.init_params(example.fg.random.key(0))
    x = np.random.default_rng(0).normal(size=(5, 2))
    labels = np.array([0, 1, 1, 0, 1])
    probability = 1 / (1 + np.exp(-example.predict(params, x)))
    right = np.where(labels == 1, probability, 1 - probability)
    loss = example.loss_fn(params, x, labels)
    np.testing.assert_allclose(loss, -np.mean(np.log(right)), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "none"], "argument --steps: 'none' is not a whole number of at least 1"),
        (["--points", "9"], "argument --points: 9 is not a whole number of at least 10"),
        (["--noise", "-0.1"], "argument --noise: -0.1 is not a number of at least 0"),
        (["--lr", "nan"], "argument --lr: nan is not a positive number"),
        (["--output", "/nowhere/x.png"], "argument --output: there is no folder /nowhere"),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(capsys, arguments, message):
    check_refusal(example, capsys, arguments, message)
