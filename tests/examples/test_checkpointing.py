"""Checkpoints: the same gradient, and memory that falls as the strategies promise."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("checkpointing")


def check(rows, most):
    """Names and bounds of memory: shares of what the eager gradient takes without checkpoints.

    Compiled code keeps less by itself: it computes again what takes less than to store it.
    """
    plain = {row.mode: row for row in rows if row.name == "plain"}
    assert {(row.name, row.mode) for row in rows} == {
        (name, mode) for name in ("plain", *most) for mode in ("eager", "jit")
    }
    expected = plain["eager"].slope
    # What is added up rounds in proportion to its large terms: small elements are differences.
    rounding = 1e-6 * float(np.max(np.abs(expected)))
    for row in rows:
        np.testing.assert_allclose(row.slope, expected, rtol=0, atol=rounding)
        assert row.seconds > 0
        if row.name != "plain":
            assert row.peak <= most[row.name] * plain["eager"].peak, (row.name, row.mode)
            assert row.peak <= plain[row.mode].peak, (row.name, row.mode)


@pytest.mark.nightly
def test_memory_falls_as_promised_and_the_gradient_is_the_same(tmp_path):
    # Products that are too small for OpenBLAS's threads, which wait by spinning on busy machines.
    sizes = ["--layers", 25, "--width", 8, "--batch-size", 4096, "--rounds", 1]
    rows = run(example, *sizes, "--output", tmp_path / "memory.png")
    # Little more than 11 arrays of the 50 that are kept without checkpoints.
    most = {"every layer": 0.6, "sqrt(n) segments": 0.35, "budget 60%": 0.62, "budget 30%": 0.32}
    check(rows, most)
    check_picture(tmp_path / "memory.png")


@pytest.mark.nightly
def test_the_full_run(tmp_path):
    rows = run(example, "--output", tmp_path / "memory.png")
    most = {"every layer": 0.55, "sqrt(n) segments": 0.2, "budget 60%": 0.61, "budget 30%": 0.31}
    check(rows, most)
