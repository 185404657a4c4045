"""The command that runs everything slow."""

from __future__ import annotations

import importlib.util

import pytest

from tests import nightly
from tests.nightly import Step


def test_every_step_is_there() -> None:
    names = [step.name for step in nightly.STEPS]
    assert len(set(names)) == len(names)
    for step in nightly.STEPS:
        flag, module = step.command[:2]
        assert flag == "-m"
        assert importlib.util.find_spec(module) is not None


def test_steps_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert nightly.main(["--list", "--only", "soak", "programs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == ["programs", "soak"]
    assert "python -m tests.soak --minutes 30" in lines[3]


def test_brief_steps_are_the_same_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for step in nightly.STEPS:
        assert step.brief
        assert step.briefly().command[:2] == step.command[:2]
    assert nightly.main(["--brief", "--list", "--only", "soak"]) == 0
    assert "python -m tests.soak --minutes 0.2 --threads 4" in capsys.readouterr().out


def test_a_step_that_fails_does_not_keep_others_from_running(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = [
        Step("first", ("-c", "print('done | 3'); raise SystemExit(3)"), ""),
        Step("second", ("-c", "print('== fine =='); print()"), ""),
    ]
    assert nightly.run_all(steps) == 1
    out = capsys.readouterr().out
    assert "| first | **failed (3)** | 0:00:00 | done / 3 |" in out
    assert "| second | passed | 0:00:00 | fine |" in out
    assert nightly.run_all(steps[1:]) == 0
