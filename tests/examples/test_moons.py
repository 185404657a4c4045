"""Two moons: unseen points are told apart."""

from __future__ import annotations

import numpy as np

from tests.examples.program import check_picture, load, run

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
