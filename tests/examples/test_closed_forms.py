"""Closed forms of gradients: equal to the automatic ones, and so is the training by them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("closed_forms")


@pytest.mark.nightly
def test_training_by_closed_forms_and_automatic_have_the_same_loss_curve(tmp_path):
    found = run(example, "--steps", 500, "--output", tmp_path / "closed.png")
    assert set(found["differences"]) == {"embedding", "w1", "b1", "gain", "shift", "w2", "b2"}
    assert max(found["differences"].values()) < 1e-12
    by_hand, automatic = found["losses"]["by hand"], found["losses"]["automatic"]
    assert by_hand.shape == automatic.shape == (500,)
    np.testing.assert_allclose(by_hand, automatic, rtol=1e-9)
    model = example.model
    knowing_nothing = np.log(len(model.alphabet(model.library_names())))
    assert by_hand[-50:].mean() < by_hand[:50].mean() < 1.5 * knowing_nothing
    assert list(found["held out"]) == ["training", "validation", "test"]
    assert all(1.5 < loss < knowing_nothing for loss in found["held out"].values())
    assert list(found["time ratios"]) == ["compiled", "eager"]
    assert len(found["names"]) == 20
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz_") for name in found["names"])
    check_picture(tmp_path / "closed.png")


@pytest.mark.nightly
def test_the_full_training_learns_the_names(tmp_path):
    found = run(example, "--output", tmp_path / "closed.png")
    np.testing.assert_allclose(found["losses"]["by hand"], found["losses"]["automatic"], rtol=1e-6)
    assert found["losses"]["by hand"][-1000:].mean() < 2.05
    assert found["held out"]["training"] < 2.0
    assert found["held out"]["training"] < found["held out"]["test"] < 2.1


def test_the_parts_of_the_names_are_apart_and_all():
    names = example.model.library_names()
    parts = example.model.divided(names, 0)
    sizes = [len(part.blocks) for part in parts.values()]
    assert sum(sizes) == sum(len(name) + 1 for name in names)
    assert 0.75 < sizes[0] / sum(sizes) < 0.85
    assert {part.letters for part in parts.values()} == {example.model.alphabet(names)}
