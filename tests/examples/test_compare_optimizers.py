"""Optimisers side by side: all learn, and momentum is faster than none along a valley."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("compare_optimizers")


@pytest.mark.nightly
def test_all_learn_and_momentum_helps_in_the_valley(tmp_path):
    arguments = ("--steps", 150, "--valley-steps", 1000, "--output", tmp_path / "all.png")
    found = run(example, *arguments)
    assert list(found) == ["SGD", "momentum", "Nesterov", "RMSprop", "Adam", "AdamW"]
    for name, (loss, accuracy, _) in found.items():
        assert loss < 0.3, name
        assert accuracy > 0.85, name
    values = {name: value for name, (_, _, value) in found.items()}
    assert values["SGD"] > 0.1
    assert max(values[name] for name in ("momentum", "Nesterov", "RMSprop")) < 1e-3
    check_picture(tmp_path / "all.png")


@pytest.mark.nightly
def test_the_full_run(tmp_path):
    found = run(example, "--output", tmp_path / "all.png")
    assert min(accuracy for _, accuracy, _ in found.values()) > 0.95
    assert found["SGD"][0] == max(loss for loss, _, _ in found.values())


@pytest.mark.parametrize("name", example.SCHEDULES)
def test_schedules_stay_between_zero_and_the_largest_rate(name):
    schedule = example.SCHEDULES[name](100)
    rates = np.array([float(schedule(i)) for i in range(101)])
    assert rates.min() >= 0
    assert rates.max() == pytest.approx(0.1)
