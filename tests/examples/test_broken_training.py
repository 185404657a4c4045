"""The broken training loop: every bug is found, alone and among the others."""

from __future__ import annotations

import pytest

from tests.examples.program import check_picture, load, run

example = load("broken_training")
worst = example.diagnosis.worst

EXPECTED = {
    "log of zero": ("nan", "(np.log(targets) - chances)"),
    "rounded weights": ("disconnected", "params['w3']: rint has no derivative"),
    "low biases": ("dead units", "params['b2']: 32 of 32 units of relu are off"),
    "large weights": ("saturated", "params['w1']: "),
    "learning rate": ("step too large", "params['w1']: the update is "),
}


@pytest.fixture(scope="module")
def batch():
    data = example.digits.load()
    return data.x[:256], data.y[:256]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("bug", EXPECTED)
def test_each_bug_is_found_without_hints(bug, seed, batch):
    finding = worst(example.make_training(frozenset({bug}), seed), *batch)
    verdict, words = EXPECTED[bug]
    assert finding.verdict == verdict
    assert words in "\n".join(finding.reasons)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_is_found_where_there_is_no_bug(seed, batch):
    assert worst(example.make_training(frozenset(), seed), *batch) == ("healthy", ())


def check(stages):
    verdicts = [stage.finding.verdict for stage in stages[:-1]]
    assert verdicts == [verdict for verdict, _ in EXPECTED.values()]
    assert stages[-1].finding.verdict == "healthy"
    assert stages[-1].bugs == frozenset()


@pytest.mark.nightly
def test_all_bugs_are_found_one_after_the_other(tmp_path):
    output = tmp_path / "training.png"
    stages = run(example, "--steps", 40, "--no-jit", "--output", output)
    check(stages)
    assert stages[-1].accuracy > 0.6 > 0.3 > max(stage.accuracy for stage in stages[:-1])
    check_picture(output)


@pytest.mark.nightly
def test_the_full_run_learns(tmp_path):
    stages = run(example, "--output", tmp_path / "training.png")
    check(stages)
    assert stages[-1].accuracy >= 0.95
