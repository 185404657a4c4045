"""The examples on several processes, against one process; and that of independent work."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import data
from tests.distributed.launching import needs_mpi
from tests.distributed.launching import run as launch
from tests.distributed.run_examples import results
from tests.examples.program import FOLDER, check_picture, check_refusal, load, run

PROGRAM = Path(__file__).with_name("run_examples.py")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process gives, without MPI."""
    return results(tmp_path_factory.mktemp("alone") / "state.npz", "both")


def test_one_process_needs_no_mpi(alone):
    assert alone["first"][-1] < alone["first"][0]
    assert alone["second"][-1] < alone["first"][-1]
    assert alone["tensor"][-1] < alone["tensor"][0]
    assert alone["heat"]["losses"][-1] < alone["heat"]["losses"][0]


def test_the_gradient_of_heat_is_that_of_differences(alone):
    example = load("heat_distributed")
    n = 12
    u = np.sin(np.arange(n * n).reshape(n, n))
    v = np.cos(np.arange(n * n).reshape(n, n))

    def loss(u):
        with fg.distributed.spmd(axis_name=example.AXIS):
            return example.local_loss(np.sin(u), example.picture(n), 6, 0.2)

    h = 1e-5
    gradient, forward, reverse = alone["heat"]["rows"]
    slope = (loss(u + h * v) - loss(u - h * v)) / (2 * h)
    np.testing.assert_allclose((gradient * v).sum(), slope, rtol=1e-8)
    bend = (loss(u + h * v) - 2 * loss(u) + loss(u - h * v)) / h**2
    np.testing.assert_allclose((forward * v).sum(), bend, rtol=1e-3)
    np.testing.assert_allclose(forward, reverse, rtol=1e-12, atol=1e-13)


@needs_mpi
@pytest.mark.nightly
@pytest.mark.parametrize(("n", "m"), [(2, 2), (4, 2), (2, 4)])  # stopped on n, resumed on m
def test_many_processes_give_what_one_gives(alone, tmp_path, n, m):
    state = tmp_path / "state.npz"
    parts = [(n, "both")] if n == m else [(n, "first"), (m, "second")]
    found = {}
    for count, part in parts:
        launch(count, PROGRAM, tmp_path / f"{part}.npz", state, part)
        found |= data.load(tmp_path / f"{part}.npz")
    # Training is deterministic: the same to the last bit.
    assert found["first"] == alone["first"]
    assert found["second"] == alone["second"]
    np.testing.assert_allclose(found["tensor"], alone["tensor"], rtol=1e-12)
    np.testing.assert_allclose(found["heat"]["losses"], alone["heat"]["losses"], rtol=1e-12)
    for rows, expected in zip(found["heat"]["rows"], alone["heat"]["rows"], strict=True):
        np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("hidden", [64, 1024, 4096])
def test_the_divided_layer_learns_at_every_width(hidden):
    losses = run(load("tensor_parallel"), "--steps", 20, "--hidden", hidden)
    assert np.all(np.diff(losses) < 0)
    assert losses[-1] < 0.4 * losses[0]


def test_the_ensemble_finds_the_curve():
    example = load("ensemble_dask")
    fits = run(example, "--members", 8, "--workers", 0)
    assert np.all(np.abs(fits.mean(0) - example.TRUTH) < 0.2)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("heat_distributed", ("--size", "12", "--steps", "6", "--descents", "4")),
        ("tensor_parallel", ("--hidden", "64", "--steps", "4", "--examples", "32")),
        ("train_distributed", ("--hidden", "32", "--epochs", "1")),
        ("train_sharded", ("--hidden", "32", "--steps", "4")),
        ("ensemble_dask", ("--members", "8", "--workers", "0")),
    ],
)
def test_pictures_are_drawn(tmp_path, capsys, name, arguments):
    path = tmp_path / "picture.png"
    load(name).main([*arguments, "--output", str(path)])
    check_picture(path)
    assert capsys.readouterr().out.endswith(f"wrote {path}\n")


@pytest.mark.parametrize(
    "name",
    ["heat_distributed", "tensor_parallel", "train_distributed", "train_sharded", "ensemble_dask"],
)
def test_a_folder_that_is_not_there_is_refused_at_once(name, capsys):
    message = "argument --output: there is no folder /nowhere"
    check_refusal(load(name), capsys, ["--output", "/nowhere/x.png"], message)


@pytest.mark.nightly
@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="there is no dask.distributed"
)
def test_workers_of_dask_find_what_one_process_finds(tmp_path):
    # Started as users start it: workers import the function from the program.
    program = FOLDER / "ensemble_dask.py"
    printed = [
        subprocess.run(
            [sys.executable, program, "--members", "8", "--workers", str(workers)],
            cwd=tmp_path,  # the picture is drawn there
            env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
            capture_output=True,
            check=True,
            text=True,
            timeout=300,
        ).stdout
        for workers in (0, 2)
    ]
    assert printed[0] == printed[1]
    assert printed[0].startswith("a = ")
