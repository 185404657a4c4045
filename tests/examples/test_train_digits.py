"""The main example: what it learns, prints, draws and refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import matplotlib.image
import numpy as np
import pytest

from tests.examples.program import load

PROGRAM = Path(__file__).parents[2] / "examples" / "train_digits.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load("train_digits")


@pytest.mark.nightly
def test_the_default_run_reaches_97_percent_and_draws_both_pictures(tmp_path):
    done = subprocess.run(
        [sys.executable, PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    last_epoch = [line for line in done.stdout.splitlines() if line.startswith("epoch")][-1]
    assert float(last_epoch.split()[-1].rstrip("%")) >= 97
    assert "inference, batch   1:" in done.stdout
    assert "inference, batch 256:" in done.stdout
    for name in ("training.png", "predictions.png"):
        pixels = matplotlib.image.imread(tmp_path / name)
        assert min(pixels.shape[:2]) > 300
        assert pixels[..., :3].std() > 0.05


def run_small(example, tmp_path, *arguments):
    args = ["--epochs", "2", "--hidden", "16", "--lr", "0.01", "--out-dir", str(tmp_path)]
    return example.run(example.parse_arguments([*args, *arguments]))


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.nightly)])
def test_the_loss_falls_and_stays_of_the_asked_dtype(example, tmp_path, dtype):
    history = run_small(example, tmp_path, "--dtype", dtype)
    assert history.loss[1] < history.loss[0]
    digits = example.load_data(np.dtype(dtype))
    params = example.init_params(example.fg.random.key(0), (64, 8, 10), np.dtype(dtype))
    state, loss = example.make_train_step(0.1)(
        example.init_adam(params, np.dtype(dtype)), digits.train_x[:5], digits.train_y[:5]
    )
    dtypes = {np.asarray(leaf).dtype for leaf in example.fg.tree.leaves((state, loss))}
    assert dtypes == {np.dtype(dtype)}


@pytest.mark.nightly
def test_eager_and_jitted_training_agree(example, tmp_path):
    jitted = run_small(example, tmp_path, "--dtype", "float64")
    with example.fg.disable_jit():
        eager = run_small(example, tmp_path, "--dtype", "float64")
    np.testing.assert_allclose(eager.loss, jitted.loss, rtol=1e-9)


def test_a_last_small_batch_compiles_no_further_kernel(example):
    digits = example.load_data(np.dtype("float32"))
    params = example.init_params(example.fg.random.key(0), (64, 8, 10), np.dtype("float32"))
    state, step = example.init_adam(params, np.dtype("float32")), example.make_train_step(0.1)
    state, _ = step(state, digits.train_x[:8], digits.train_y[:8])
    before = step.cache_info()
    step(state, digits.train_x[:5], digits.train_y[:5])
    after = step.cache_info()
    assert after.kernels_compiled == before.kernels_compiled
    assert after.traces == before.traces + 1


def test_the_split_is_stratified_and_always_the_same(example):
    first, second = (example.load_data(np.dtype("float32")) for _ in range(2))
    np.testing.assert_array_equal(first.test_x, second.test_x)
    assert len(first.train_x) + len(first.test_x) == 1797
    assert np.ptp(np.bincount(first.test_y)) <= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "argument --epochs: 0 is not a whole number of at least 1"),
        (["--epochs", "many"], "argument --epochs: 'many' is not a whole number of at least 1"),
        (["--batch-size", "1.5"], "argument --batch-size: '1.5' is not a whole number"),
        (["--hidden", "32", "-4"], "argument --hidden: -4 is not a whole number of at least 1"),
        (["--lr", "nan"], "argument --lr: nan is not a positive number"),
        (["--lr", "0"], "argument --lr: 0 is not a positive number"),
        (["--seed", "-1"], "argument --seed: -1 is not a whole number of at least 0"),
        (["--dtype", "float16"], "argument --dtype: invalid choice: 'float16'"),
        (["--out-dir", str(PROGRAM)], "argument --out-dir: "),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(example, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        example.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
