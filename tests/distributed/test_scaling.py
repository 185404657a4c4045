"""The model of docs/scale.md."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.benchmarks import cluster
from tests.benchmarks.scaling import (
    LAYERS,
    Machine,
    data_parallel,
    layers_of,
    stacked_memory,
    table,
    tensor_parallel,
    training_memory,
)

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


def test_the_page_shows_the_table_of_clusters():
    assert "\n".join(cluster.table()) in PAGE.read_text()


@pytest.mark.parametrize("divided", ["nothing", "state", "parameters"])
def test_sharded_steps(divided):
    alone = cluster.training(MACHINE, 1, 1024, divided, False)
    apart, beside = (cluster.training(MACHINE, 8, 1024, divided, on) for on in (False, True))
    assert beside < apart
    free = Machine(0.0, 0.0, 1e11, 1e10)
    assert cluster.training(free, 8, 1024, divided, False) <= alone
    # Without time for computation, messages are those of the page.
    network = Machine(0.0, 1e-9, math.inf)
    total, p = sum(layer.parameters for layer in LAYERS), 1 << 20
    times = {"nothing": 1, "state": 2, "parameters": 3}[divided]
    found = cluster.training(network, p, 1024, divided, False)
    wanted = total * 1e-9 * (2 if divided == "nothing" else times)
    assert math.isclose(found, wanted, rel_tol=1e-3)


def test_bubbles_of_pipelines():
    free = Machine(0.0, 0.0, 1e11)
    assert cluster.pipeline(free, 1, 8, 64) == 1
    assert math.isclose(cluster.pipeline(free, 4, 8, 64), 8 / 11)
    assert cluster.pipeline(MACHINE, 4, 8, 64) < 8 / 11


def test_storage():
    storage = cluster.Storage(own=1.0, together=10.0, years=1.0)
    assert storage.seconds(5, 7) == 7
    assert math.isclose(storage.seconds(20, 7), 14)
    assert cluster.with_data(3.0, 5, 7, storage) == 7
    assert cluster.with_data(9.0, 5, 7, storage) == 9
    usual = cluster.Storage()
    assert usual.lost(10, 1e10) < usual.lost(1000, 1e10) < usual.lost(10**9, 1e10) == 1


def test_memory_of_training():
    total = sum(layer.parameters for layer in LAYERS)
    for divided, of in (("nothing", 1), ("state", 3), ("parameters", 3)):
        assert training_memory(1, 0, divided) >= 4 * total
        many = training_memory(1 << 20, 0, divided)
        if of == 3:
            assert many < training_memory(2, 0, divided)
        assert training_memory(4, 512, divided) > training_memory(4, 256, divided)
    (layer,) = layers_of((64, 64))
    stacks = [
        stacked_memory(2, 32, divided, layer, 8) for divided in ("nothing", "state", "parameters")
    ]
    assert stacks == sorted(stacks, reverse=True)
    assert stacked_memory(4, 32, "parameters", layer, 8) < stacks[-1]
