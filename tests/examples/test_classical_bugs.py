"""Classical bugs: each is found without a hint, and nothing is found where there is none."""

from __future__ import annotations

import itertools

import pytest

from tests.examples.program import check_picture, load, run

example = load("classical_bugs")

EXPECTED = {
    "data not seeded": ("not reproducible", "two starts give different batches"),
    "data not shuffled": ("not shuffled", "100% of neighbours have the same label"),
    "large last weights": ("first loss", "but -log(1 / 10) is 2.30"),
    "log of negative output": ("nan", "chances = fnp.log(logits)"),
    "deep sigmoid": ("vanishing", "times that of the last layer"),
    "clipped loss": ("zero gradient", "all entries are 0"),
    "rate x 100": ("step too large", "times the parameter"),
    "gradients never reset": ("does not forget", "50 steps with gradient 0 later, steps are 100%"),
    "softmax twice": ("cannot overfit", "the loss of one batch of 64 stays at 1."),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bug", example.BUGS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_each_bug_is_found_without_hints(bug, seed):
    verdict, reasons = example.diagnose(bug, seed)
    assert verdict == EXPECTED[bug][0]
    assert EXPECTED[bug][1] in " ".join(reasons)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_nothing_is_found_where_there_is_no_bug(seed):
    assert example.diagnose(None, seed) == ("healthy", ())
    steps = itertools.islice(example.batches(None, seed), 100)
    _, losses = example.training.train(*example.make_training(None, seed), steps)
    assert losses[0] == pytest.approx(2.3, abs=0.3)
    assert losses[-1] < 0.5


@pytest.mark.nightly
def test_the_full_run(tmp_path):
    found = run(example, "--output", tmp_path / "bugs.png")
    assert found.pop(None).verdict == "healthy"
    assert {bug: seen.verdict for bug, seen in found.items()} == {
        bug: verdict for bug, (verdict, _) in EXPECTED.items()
    }
    check_picture(tmp_path / "bugs.png")
