"""Axes of MPI's processes: laws, tools, refusals, and how programs end."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.distributed.launching import failed, needs_mpi, run

PROGRAMS = Path(__file__).with_name("programs.py")
PATIENCE = 20.0
"""Seconds within which a program ends when one of its processes fails, on a busy machine."""

pytestmark = needs_mpi


@pytest.mark.parametrize(
    ("n", "which"),
    [
        (2, "values"),
        pytest.param(2, "all", marks=pytest.mark.nightly),
        pytest.param(3, "all", marks=pytest.mark.nightly),
        pytest.param(4, "all", marks=pytest.mark.nightly),
    ],
)
def test_axes_of_ranks_give_what_axes_of_lanes_give(n, which):
    assert "laws hold" in run(n, PROGRAMS, "laws", which, timeout=600)


@pytest.mark.parametrize("n", [2, *(pytest.param(n, marks=pytest.mark.nightly) for n in (3, 4))])
def test_tools_grids_and_refusals(n, tmp_path):
    said = run(n, PROGRAMS, "others", tmp_path / "state.npz")
    assert "others hold" in said
    assert said.count("said once") == 1


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_sums_in_the_background(n):
    assert "background hold" in run(n, PROGRAMS, "background")


# The others are in a loop of small sums, or of large ones in the background of products.
BESIDE = pytest.mark.parametrize(
    "beside", [" beside products", pytest.param("", marks=pytest.mark.nightly)]
)


@BESIDE
def test_an_exception_on_one_rank_ends_all_and_is_shown_once(beside):
    code, err, seconds = failed(2, PROGRAMS, "raise" + beside)
    assert code == 1
    assert err.count("ValueError: this rank is ill") == 1
    assert "rank 1 of 2 failed, which ends all:" in err
    assert 'programs.py", line' in err
    assert seconds < PATIENCE


@pytest.mark.nightly
def test_an_exception_on_all_ranks_is_shown_once():
    code, err, seconds = failed(4, PROGRAMS, "raise everywhere")
    assert code == 1
    assert err.count("ValueError: this rank is ill") == 1
    assert "rank 0 of 4 failed" in err
    assert seconds < PATIENCE


@pytest.mark.nightly
def test_an_exit_with_a_code_ends_all():
    code, _, seconds = failed(2, PROGRAMS, "exit")
    assert code == 3
    assert seconds < PATIENCE


@BESIDE
def test_a_killed_rank_ends_all(beside):
    code, err, seconds = failed(2, PROGRAMS, "kill" + beside)
    assert code != 0
    assert "rank 1" in err
    assert "signal 9" in err
    assert seconds < PATIENCE


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("wait", marks=pytest.mark.nightly),
        "wait beside products",
        pytest.param("sleep", marks=pytest.mark.nightly),
    ],
)
def test_ctrl_c_ends_all(how):
    def interrupt(process):
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)

    code, err, seconds = failed(2, PROGRAMS, how, disturb=interrupt)
    assert code != 0
    assert err.count("KeyboardInterrupt") <= 1
    assert seconds < PATIENCE
