"""Exploding gradients: they grow as predicted, and what bounds them helps."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("exploding")


@pytest.mark.nightly
def test_gradients_explode_where_weights_stretch(tmp_path):
    arguments = ("--steps", 30, "--output", tmp_path / "exploding.png")
    flows, runs = run(example, *arguments)
    stretched, same, orthogonal = flows.values()
    assert stretched[0] > 1e3 * stretched[-1]
    assert max(same[0] / same[-1], orthogonal[0] / orthogonal[-1]) < 10
    assert list(runs) == ["exploding", "clipping", "orthogonal", "warm-up"]
    assert all(len(losses) == len(norms) == 30 for losses, norms in runs.values())
    assert runs["orthogonal"][1].max() < 100 < runs["exploding"][1].max()
    check_picture(tmp_path / "exploding.png")


def test_the_taps_have_the_gradients_of_the_states():
    rng = np.random.default_rng(0)
    params = example.init_params(example.RECIPES["orthogonal"], 4, 0)
    x, taps = rng.standard_normal((example.LENGTH, 3)), np.zeros((example.LENGTH, 3, 4))
    slopes = example.fg.grad(example.loss, argnums=2)(params, x, taps)
    # The last state reaches the loss through the output weights alone.
    logits = example.predict(params, x, taps)
    labels = x[-example.LAST :].sum(axis=0) > 0
    expected = (1 / (1 + np.exp(-logits)) - labels)[:, None] / 3 * params["out"]
    np.testing.assert_allclose(slopes[-1], expected, rtol=1e-9)


@pytest.mark.nightly
def test_clipping_and_orthogonal_weights_learn(tmp_path):
    # Gradients of a million make a single run depend on how numbers are rounded.
    found = []
    for seed in range(5):
        _, runs = run(example, "--seed", seed, "--output", tmp_path / "exploding.png")
        found.append({name: example.last_loss(losses) for name, (losses, _) in runs.items()})
    last = {name: np.median([losses[name] for losses in found]) for name in found[0]}
    assert last["orthogonal"] < last["clipping"] < last["exploding"]
    assert last["orthogonal"] < 0.3
    assert last["exploding"] > 0.55
