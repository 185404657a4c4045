"""Classical bugs: each is found without a hint, and nothing is found where there is none."""

from __future__ import annotations

import pytest

from tests.examples.program import check_picture, check_refusal, load, run

example = load("classical_bugs")

REASONS = {
    "data not seeded": "two starts give different batches",
    "data not shuffled": "100% of neighbours have the same label, not 10%",
    "log of negative output": "chances = fnp.log(logits)",
    "large last weights": "but -log(1 / 10) is 2.30",
    "deep sigmoid": "times that of the last layer",
    "clipped loss": "all entries are 0",
    "rate x 100": "times the parameter",
    "gradients never reset": "50 steps with gradient 0 still change the parameters",
    "softmax twice": "the loss of one batch of 64 stays at 1.",
}


@pytest.mark.parametrize("bug", example.BUGS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_each_bug_is_found_without_hints(bug, seed):
    verdict, reason = example.diagnose(example.make_training(bug, seed))
    assert verdict == example.BUGS[bug]
    assert REASONS[bug] in reason


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_nothing_is_found_where_there_is_no_bug(seed):
    training = example.make_training(None, seed)
    assert example.diagnose(training) is None
    losses = example.train(training, training.batches(), 100)
    assert losses[0] == pytest.approx(2.3, abs=0.3)
    assert losses[-1] < 0.5


@pytest.mark.nightly
def test_the_full_run(tmp_path):
    found = run(example, "--output", tmp_path / "bugs.png")
    assert {bug: seen and seen[0] for bug, seen in found.items()} == {None: None, **example.BUGS}
    check_picture(tmp_path / "bugs.png")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--seed", "x"], "argument --seed: 'x' is not a whole number of at least 0")],
)
def test_bad_values_end_with_a_message_and_code_2(capsys, arguments, message):
    check_refusal(example, capsys, arguments, message)
