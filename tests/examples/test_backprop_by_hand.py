"""Backpropagation by hand: every gradient is the automatic one, and so is the training."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, check_refusal, load, run

example = load("backprop_by_hand")

LEAVES = ("embedding", "w1", "b1", "gain", "shift", "w2", "b2")
VALUES = (
    *("embedded", "joined", "linear", "mean", "centred", "squared", "variance", "inverse"),
    *("normal", "scaled", "hidden", "logits", "largest", "lowered", "counts", "total"),
    *("total_inverse", "probabilities", "logs", "chosen"),
)


def batch(rows=32):
    names = example.library_names()
    text = example.encode(names, example.alphabet(names))
    chosen = np.random.default_rng(1).integers(0, len(text.blocks), rows)
    params = example.init_params(1, len(text.letters))
    return params, text.blocks[chosen], text.following[chosen]


@pytest.mark.parametrize("bessel", [False, True])
def test_every_gradient_by_hand_is_the_automatic_one(bessel):
    found = example.compare(*batch(), bessel)
    assert set(found) == {*LEAVES, *VALUES, *(f"{leaf}, closed form" for leaf in LEAVES)}
    assert max(found.values()) < 1e-12


@pytest.mark.parametrize("bessel", [False, True])
def test_the_gradient_by_hand_is_that_of_finite_differences(bessel):
    params, blocks, following = batch()
    values = example.forward(params, blocks, following, bessel, {})
    found = example.backward_contracted(params, blocks, following, bessel, values)
    rng = np.random.default_rng(2)
    for leaf in LEAVES:
        direction = rng.normal(size=params[leaf].shape)

        def at(h, leaf=leaf, direction=direction):
            moved = {**params, leaf: params[leaf] + h * direction}
            return example.forward(moved, blocks, following, bessel, {})["loss"]

        slope = (at(1e-5) - at(-1e-5)) / 2e-5
        assert np.sum(found[leaf] * direction) == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_a_wrong_gradient_is_found(monkeypatch):
    right = example.backward

    def wrong(*arguments):
        return {**right(*arguments), "mean": 0.0}

    monkeypatch.setattr(example, "backward", wrong)
    assert example.compare(*batch(), bessel=True)["mean"] > 1e-6


def test_training_by_hand_and_automatic_have_the_same_loss_curve(tmp_path):
    options = ("--steps", 500, "--output", tmp_path / "hand.png")
    result = run(example, *options)
    by_hand, automatic = result.losses["by hand"], result.losses["automatic"]
    assert by_hand.shape == automatic.shape == (500,)
    np.testing.assert_allclose(by_hand, automatic, rtol=1e-9)
    letters = len(example.alphabet(example.library_names()))
    assert by_hand[-50:].mean() < by_hand[:50].mean() < 1.5 * np.log(letters)
    assert list(result.held_out) == ["training", "validation", "test"]
    assert all(1.5 < found < np.log(letters) for found in result.held_out.values())
    assert list(result.time_ratios) == ["compiled", "eager"]
    assert len(result.names) == 20
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz_") for name in result.names)
    check_picture(tmp_path / "hand.png")


def test_nothing_flows_through_the_maximum_and_rows_of_the_gradient_add_up_to_0():
    found = example.zeros(*batch())
    assert list(found) == ["gradient through the maximum", "sum of a row of the logits' gradient"]
    assert max(found.values()) < 1e-15


@pytest.mark.nightly
def test_the_full_training_learns_the_names(tmp_path):
    result = run(example, "--output", tmp_path / "hand.png")
    np.testing.assert_allclose(result.losses["by hand"], result.losses["automatic"], rtol=1e-6)
    assert result.losses["by hand"][-1000:].mean() < 2.0
    assert result.held_out["training"] < 1.8 < result.held_out["test"] < 2.4


def test_blocks_hold_the_letters_before():
    text = example.encode(["ab", "b"], example.alphabet(["ab", "b"]))
    assert text.letters == ".ab"
    assert text.blocks.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 0], [0, 0, 2]]
    assert text.following.tolist() == [1, 2, 0, 2, 0]


def test_a_text_of_ones_own(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("anna\n\n  bert \nélodie.\n" + 7 * "x\n", encoding="utf-8")
    args = example.parse_arguments(["--text", str(names)])
    assert args.text == ["anna", "bert", "élodie."] + 7 * ["x"]
    assert "é" in example.alphabet(args.text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "/nowhere.txt"], "argument --text: cannot read /nowhere.txt: "),
        (["--text", "/dev/null"], "argument --text: there are fewer than 10 names in /dev/null"),
        (["--steps", "0"], "argument --steps: 0 is not a whole number of at least 1"),
        (["--batch-size", "1"], "argument --batch-size: 1 is not a whole number of at least 2"),
        (["--lr", "-1"], "argument --lr: -1 is not a positive number"),
        (["--output", "/nowhere/x.png"], "argument --output: there is no folder /nowhere"),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(capsys, arguments, message):
    check_refusal(example, capsys, arguments, message)
