"""The benchmark program runs; how fast anything is, is not tested."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "run.py"
BUSY = Path(__file__).parent / "busy.py"


def run(*arguments: str | Path, program: Path = PROGRAM) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        "eager-grad",
        "small-call",
        "tree-call",
        "digits-step",
        "wide-step",
        "orbit",
        "orbit-gradient",
        "recurrence",
        "recurrence-gradient",
        "cold-compile",
        "import",
    ],
)
def test_every_row_shows_funcgrad(row):
    done = run("--tiny", "--rounds", "1", "--rows", row)
    assert done.returncode == 0, done.stderr
    assert "| funcgrad" in done.stdout


@pytest.mark.slow
def test_a_second_process_and_a_new_batch_size_compile_nothing():
    done = run("--rows", "kernel-reuse")
    assert done.returncode == 0, done.stderr
    first, second = (line for line in done.stdout.splitlines() if "process |" in line)
    assert "| 0 compiled" in second
    assert "Numba not imported" in second
    assert "| 0 compiled" not in first
    for line in (first, second):
        assert "new batch size: 0 compiled" in line


@pytest.mark.slow
@pytest.mark.parametrize("row", ["digits-step", "recurrence-gradient", "wide-step", "example"])
def test_every_row_of_the_busy_machine(row):
    done = run("--calls", "1", "--rows", row, program=BUSY)
    assert done.returncode == 0, done.stderr
    assert "| funcgrad" in done.stdout


@pytest.mark.nightly
def test_a_busy_machine_costs_its_share():
    # Other programs than the one that the benchmark starts may run here.
    attempts = []
    while len(attempts) < 3:
        attempts.append(run("--check", program=BUSY))
        if attempts[-1].returncode == 0:
            return
    pytest.fail("\n".join(done.stdout + done.stderr for done in attempts))


def test_calls_beside_a_process_that_spins():
    done = run("--calls", "3", "--rows", "small-network", program=BUSY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("| funcgrad") == 1


def test_the_result_replaces_what_is_below_the_marker(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Kept\n")
    for _ in range(2):
        done = run("--tiny", "--rounds", "1", "--rows", "small-call", "--output", page)
        assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("# Kept\n<!-- measured")
    assert text.count("jit(x + 1)") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([PROGRAM, "--rounds", "0"], "argument --rounds"),
        ([PROGRAM, "--rows", "speed"], "invalid choice: 'speed'"),
        ([BUSY, "--calls", "0"], "argument --calls"),
        ([BUSY, "--rows", "speed"], "invalid choice: 'speed'"),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(arguments, message):
    program, *rest = arguments
    done = run(*rest, program=program)
    assert done.returncode == 2
    assert message in done.stderr
