"""Four points: 41 parameters fit them, eagerly, step by step and in one loop."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("four_points")
STEPS = 60


@pytest.mark.nightly
def test_the_loss_falls_in_every_way_to_train_alike(tmp_path, capsys):
    losses = run(example, "--steps", STEPS, "--output", tmp_path / "points.png")
    assert list(losses) == ["eager", "jitted step", "jitted loop"]
    for found in losses.values():
        np.testing.assert_allclose(found, losses["eager"], rtol=1e-9)
        assert found.shape == (STEPS,)
        assert found[-1] < 0.01
    assert "41 parameters" in capsys.readouterr().out
    check_picture(tmp_path / "points.png")


def test_the_gradient_is_that_of_finite_differences():
    tree = example.fg.tree
    params = example.init_params(1)
    slopes = tree.leaves(example.fg.grad(example.loss_fn)(params))
    numbers, structure = tree.flatten(params)
    assert len(numbers) == len(slopes) == 41
    for i, slope in enumerate(slopes):
        ends = []
        for h in (1e-6, -1e-6):
            moved = [x + h if i == k else x for k, x in enumerate(numbers)]
            ends.append(example.loss_fn(tree.unflatten(structure, moved)))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)
