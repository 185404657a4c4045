"""The model of docs/scale.md."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.benchmarks.scaling import Machine, data_parallel, table, tensor_parallel

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
MACHINE = Machine(1e-6, 1e-9, 1e11, 1e10)


def test_the_page_shows_the_table_of_the_model():
    assert "\n".join(table()) in PAGE.read_text()


def test_sums_between_two_ranks_take_latency_and_bytes():
    assert MACHINE.psum(1, 1e6) == 0.0
    assert math.isclose(MACHINE.psum(2, 8), 1e-6 + 8e-9)
    assert Machine(1e-6, 1e-9, 1e11).psum(64, 8) < 7e-6
    # Large ones: twice all bytes, however many ranks there are.
    assert math.isclose(MACHINE.psum(64, 1e9), 12e-6 + 2 * 63 / 64, rel_tol=1e-3)


@pytest.mark.parametrize("p", [2, 4, 64])
def test_messages_beside_the_computation_take_no_longer(p):
    apart, beside = (data_parallel(MACHINE, p, 1024, on) for on in (False, True))
    assert data_parallel(MACHINE, 1, 1024, False) < beside < apart


def test_what_passes_through_memory_takes_time():
    free = Machine(0.0, 0.0, math.inf, 1e10)
    outputs, parameters = 1024 * 3 + 10, 785 * 1024 + 2 * 1025 * 1024 + 1025 * 10
    nbytes = 4 * (3 * parameters + 5 * 100 * outputs)
    assert math.isclose(data_parallel(free, 1, 100, False), nbytes / 1e10)


def test_blocks_are_divided():
    free = Machine(0.0, 0.0, 1e11)
    one, eight = (tensor_parallel(free, p, 512, 4096, 2) for p in (1, 8))
    assert math.isclose(one, 8 * eight)
