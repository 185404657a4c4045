"""The network on images of digits: data, training, its picture, and what it refuses."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from types import ModuleType

import matplotlib.image
import numpy as np
import pytest

from docs.tools import gallery
from funcgrad import data
from tests.examples.program import load, run

PROGRAM = Path(__file__).parents[2] / "examples" / "mnist_mlp.py"
SMALL = ["--hidden", "64", "--epochs", "8", "--batch-size", "128", "--lr", "3e-3"]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load("mnist_mlp")


@pytest.mark.nightly
def test_the_default_run_reaches_98_percent(example, tmp_path):
    progress = example.main(["--out-dir", str(tmp_path)])
    assert progress.test_accuracy[-1] >= 0.98


@pytest.mark.nightly
def test_five_epochs_of_drawn_digits_reach_98_percent(example, tmp_path):
    run(load("draw_digits"), "--no-check", "--out-dir", tmp_path)
    options = ["--epochs", "5", "--batch-size", "128", "--lr", "5e-4", "--out-dir", str(tmp_path)]
    progress = example.main(["--data", str(tmp_path), *options])
    assert progress.test_accuracy[-1] >= 0.98


def test_the_recorded_run_reached_98_percent_and_says_of_what():
    recorded = gallery.recorded()["mnist_mlp"]
    assert "--epochs 5 " in recorded["command"]
    printed = recorded["printed"]
    assert "60000 training and 10000 test images: These digits are drawn by a program" in printed
    accuracies = re.findall(r"^epoch +\d .* test +([\d.]+)%", printed, re.MULTILINE)
    assert len(accuracies) == 5
    assert float(accuracies[-1]) >= 98
    text = " ".join(gallery.description("draw_digits")[1].split())
    linear, near = re.findall(r"^[a-z ]+ ([\d.]+)% of the test images$", printed, re.MULTILINE)
    assert f"a linear model reads {linear} % of the test images" in text
    assert f"the three nearest neighbours {near} %" in text


@pytest.mark.nightly
def test_a_small_network_learns_draws_and_saves(example, tmp_path, capsys):
    saved = tmp_path / "params.npz"
    progress = example.main([*SMALL, "--out-dir", str(tmp_path), "--save", str(saved)])
    assert progress.test_accuracy[-1] > 0.85
    norms = progress.steps.norms
    assert max(norms["after clipping"]) <= 1.0 + 1e-5
    assert max(norms["before clipping"]) > 1.0
    assert len(progress.steps.values["loss"]) == 8 * 12
    pixels = matplotlib.image.imread(tmp_path / "mnist_training.png")
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.05
    params = data.load(saved)
    assert [layer["w"].shape for layer in params] == [(784, 64), (64, 10)]
    assert {layer["w"].dtype for layer in params} == {np.dtype("float32")}
    _, test_set = example.load_images(None)
    assert example.accuracy(example.predict, params, test_set) == progress.test_accuracy[-1]
    printed = capsys.readouterr().out
    assert (
        "1437 training and 360 test images: scikit-learn's digits, enlarged, not MNIST" in printed
    )
    assert "epoch   8" in printed
    assert "ms a batch" in printed
    assert progress.mean_loss[0] == pytest.approx(np.mean(progress.steps.values["loss"][:12]))
    logits = example.predict(params, test_set.x)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), test_set.y]
    assert progress.test_loss[-1] == pytest.approx(losses.mean(), rel=1e-4)
    assert len(progress.seconds_per_batch) == 8


def test_images_are_brought_to_28_pixels_and_shifted(example):
    train_set, test_set = example.load_images(None)
    assert len(train_set.x) + len(test_set.x) == 1797
    assert train_set.x.shape[1:] == (28, 28)
    assert train_set.x.dtype == np.float32
    assert 0 <= train_set.x.min() < train_set.x.max() <= 1
    np.testing.assert_allclose(example.upsampled(np.ones((1, 8, 8))), 1.0, rtol=1e-6)
    moved = example.shifted(train_set.x[:50], example.fg.random.key(0))
    for image, original in zip(moved, train_set.x, strict=False):
        shifts = [
            np.roll(np.pad(original, 2), (i, j), axis=(0, 1))[2:-2, 2:-2]
            for i in range(-2, 3)
            for j in range(-2, 3)
        ]
        assert any((image == shift).all() for shift in shifts)


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.tobytes())


def test_files_of_mnist_are_read(example, tmp_path):
    rng = np.random.default_rng(0)
    for name, count in (("train", 40), ("t10k", 20)):
        images = rng.integers(0, 256, (count, 28, 28), np.uint8)
        write_idx(tmp_path / f"{name}-images-idx3-ubyte", images)
        write_idx(tmp_path / f"{name}-labels-idx1-ubyte", rng.integers(0, 10, count, np.uint8))
    train_set, test_set = example.load_images(tmp_path)
    assert (len(train_set.x), len(test_set.y)) == (40, 20)
    assert train_set.x.max() <= 1
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0")
    with pytest.raises(SystemExit, match="t10k-labels-idx1-ubyte is no sound IDX file: at byte 6"):
        example.main(["--data", str(tmp_path)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "argument --epochs: 0 is not a whole number of at least 1"),
        (["--hidden", "32", "x"], "argument --hidden: 'x' is not a whole number of at least 1"),
        (["--lr", "nan"], "argument --lr: nan is not a positive number"),
        (["--max-norm", "0"], "argument --max-norm: 0 is not a positive number"),
        (["--seed", "-1"], "argument --seed: -1 is not a whole number of at least 0"),
        (["--out-dir", str(PROGRAM)], "argument --out-dir: there is no folder "),
    ],
)
def test_bad_values_end_with_a_message_and_code_2(example, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        example.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
