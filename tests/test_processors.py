"""Compiled code on processors that this machine is not: a sample of `tests.processors`."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processors

ROOT = Path(__file__).parents[1]
SAMPLE = ("products", "subnormal", "branches")


@pytest.mark.skipif(bool(processors.missing()), reason=f"not installed: {processors.missing()}")
def test_programs_run_on_arm() -> None:
    assert processors.run_on_arm(SAMPLE) == dict.fromkeys(SAMPLE, "")


@pytest.mark.nightly
@pytest.mark.skipif(bool(processors.missing()), reason=f"not installed: {processors.missing()}")
def test_all_programs_run_on_arm() -> None:
    found = processors.run_on_arm(list(processors.PROGRAMS))
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="it is of another kind")
@pytest.mark.parametrize("level", processors.OLDER)
def test_programs_run_on_older_processors(level: str) -> None:
    program = (
        "from tests import older_processor, processors\n"
        f"found = processors.run_here({SAMPLE})\n"
        "assert not any(found.values()), found\n"
        "from funcgrad.compiler.runtime import kernel_store\n"
        "assert kernel_store.machine_facts()['cpu'] == older_processor.NAME\n"
    )
    environment = os.environ | {processors.VARIABLE: processors.OLDER[level]}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processors.shutil, "which", lambda name: None)
    monkeypatch.setattr(processors, "run_older", lambda level, tests: 0)
    assert processors.main([]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    tools = "aarch64-linux-gnu-gcc and qemu-aarch64"
    assert last.startswith(f"all as expected; ARM skipped ({tools} not installed)")


def test_differences_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(processors.EXPECTED, "while", lambda x: x + 1)
    assert " instead of " in processors.run_here(["while"])["while"]
    assert processors._difference("while", 2, 0, []) == "step 1 has failed"
    assert "mode" in processors._difference("while", 0, 2, [])
