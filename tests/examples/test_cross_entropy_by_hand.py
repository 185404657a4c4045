"""The cross-entropy by hand: steps, closed form, and two sums that must be zero."""

from __future__ import annotations

import numpy as np

from tests.examples.program import check_picture, load, run

example = load("cross_entropy_by_hand")

VALUES = ("chosen", "logs", "probabilities", "inverse", "total", "powers", "lowered", "largest")


def test_every_gradient_by_hand_is_the_automatic_one(tmp_path, capsys):
    found, others = run(example, "--output", tmp_path / "loss.png")
    assert list(found) == [*VALUES, "logits"]
    assert max(found.values()) < 1e-12
    assert list(others) == [
        "gradient through the maximum",
        "sum of a row of the logits' gradient",
        "closed form less steps",
        "compiled",
        "eager",
    ]
    assert max(list(others.values())[:3]) < 1e-15
    assert "time, closed / composed: compiled " in capsys.readouterr().out
    check_picture(tmp_path / "loss.png")


def test_nothing_overflows_and_ties_share_the_gradient_of_the_maximum():
    logits = np.array([[1000.0, 1000.0, -1000.0], [0.0, -5.0, 2.0]])
    labels = np.array([0, 2])
    found = example.by_hand.differences(
        example.forward, example.backward, {"logits": logits[:1] * 1e-2}, labels[:1]
    )
    assert max(found.values()) < 1e-15
    np.testing.assert_allclose(example.closed_form(logits, labels)[0], [-0.25, 0.25, 0])
    assert max(example.check(logits[1:], labels[1:]).values()) < 1e-15
