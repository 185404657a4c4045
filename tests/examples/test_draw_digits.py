"""Digits drawn by a program: always the same, in MNIST's format, about as hard."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad import data
from tests.examples.program import check_picture, load, run

example = load("draw_digits")


def test_the_files_are_those_of_mnist_and_say_that_they_are_not(tmp_path, capsys):
    arguments = ("--train", 300, "--test", 120, "--out-dir", tmp_path)
    found = run(example, *arguments)
    files = data.mnist(tmp_path)
    assert files.train_images.shape == (300, 28, 28)
    assert files.test_labels.shape == (120,)
    assert files.train_images.dtype == np.uint8
    assert set(files.test_labels.tolist()) == set(range(10))
    assert min(found.values()) > 0.4
    assert "300 training and 120 test images, drawn by a program, not MNIST" in (
        capsys.readouterr().out
    )
    assert "not MNIST" in (tmp_path / "README").read_text()
    assert load("mnist_mlp").source_of(tmp_path) == (tmp_path / "README").read_text().strip()
    check_picture(tmp_path / "draw_digits.png")


def test_a_seed_gives_the_same_images_and_parts_differ():
    first, again, other = example.make(150, 4), example.make(150, 4), example.make(150, 5)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert np.any(first[0] != other[0])
    ink = first[0].reshape(150, -1).mean(axis=1)
    assert 5 < ink.min() < ink.max() < 120


def test_strokes_become_pieces_from_end_to_end():
    pieces = example.strokes.segments([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 4.0]]])
    assert pieces.shape == (example.strokes.PIECES, 2, 2)
    np.testing.assert_allclose(pieces[0, 0], [0, 0])
    np.testing.assert_allclose(pieces[-1, 1], [0, 4])
    lengths = np.linalg.norm(pieces[:, 1] - pieces[:, 0], axis=1)
    np.testing.assert_allclose(lengths, 4 / example.strokes.PIECES)


@pytest.mark.nightly
def test_the_difficulty_is_that_of_mnist_for_simple_classifiers():
    found = example.difficulty(example.make(60_000, 0), example.make(2_000, 1))
    assert found["linear model"] == pytest.approx(0.92, abs=0.02)
    assert found["nearest neighbours"] == pytest.approx(0.97, abs=0.015)
