"""Backpropagation by hand: every gradient is the automatic one, and that of differences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("backprop_by_hand")
model = example.model

LEAVES = ("embedding", "w1", "b1", "gain", "shift", "w2", "b2")
VALUES = (
    *("embedded", "joined", "linear", "mean", "centred", "squared", "variance", "inverse"),
    *("normal", "scaled", "hidden", "logits"),
)


def batch(rows=32):
    names = model.library_names()
    text = model.encode(names, model.alphabet(names))
    chosen = np.random.default_rng(1).integers(0, len(text.blocks), rows)
    params = model.init_params(1, len(text.letters))
    return params, text.blocks[chosen], text.following[chosen]


def test_every_gradient_by_hand_is_the_automatic_one(tmp_path):
    found = run(example, "--output", tmp_path / "hand.png")
    assert list(found) == ["variance over n", "variance over n - 1"]
    for differences in found.values():
        assert set(differences) == {*LEAVES, *VALUES}
        assert max(differences.values()) < 1e-12
    check_picture(tmp_path / "hand.png")


@pytest.mark.parametrize("bessel", [False, True])
def test_the_gradient_by_hand_is_that_of_finite_differences(bessel):
    params, blocks, following = batch()
    steps = example.Steps()
    example.forward(params, blocks, following, bessel, steps)
    found = example.backward(params, blocks, following, bessel, steps.values)
    rng = np.random.default_rng(2)
    for leaf in LEAVES:
        direction = rng.normal(size=params[leaf].shape)

        def at(h, leaf=leaf, direction=direction):
            moved = {**params, leaf: params[leaf] + h * direction}
            return example.forward(moved, blocks, following, bessel, example.Steps())

        slope = (at(1e-5) - at(-1e-5)) / 2e-5
        assert np.sum(found[leaf] * direction) == pytest.approx(slope, rel=1e-6, abs=1e-9)


def differences(backward):
    return example.by_hand.differences(example.forward, backward, *batch(), True)


def test_a_wrong_gradient_is_found():
    found = differences(lambda *given: {**example.backward(*given), "mean": 0.0})
    assert found["mean"] > 1e-6


def test_a_missing_gradient_is_found():
    def without_mean(*given):
        found = example.backward(*given)
        del found["mean"]
        return found

    with pytest.raises(ValueError, match=r"different gradients: \['mean'\]"):
        differences(without_mean)


def test_blocks_hold_the_letters_before():
    text = model.encode(["ab", "b"], model.alphabet(["ab", "b"]))
    assert text.letters == ".ab"
    assert text.blocks.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 0], [0, 0, 2]]
    assert text.following.tolist() == [1, 2, 0, 2, 0]


def test_a_text_of_ones_own(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("anna\n\n  bert \nélodie.\n" + 7 * "x\n", encoding="utf-8")
    args = example.parse_arguments(["--text", str(names)])
    assert args.text == ["anna", "bert", "élodie."] + 7 * ["x"]
    assert "é" in model.alphabet(args.text)
