"""Exclusive or: a perceptron is wrong about one input, networks learn all four."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("xor")


@pytest.fixture(scope="module")
def small():
    return example.initial_units((2, 4, 1), 3)


def test_networks_learn_it_from_one_example_at_a_time(tmp_path, capsys):
    outputs = run(example, "--output", tmp_path / "xor.png")
    assert np.sum(outputs.pop("perceptron") == example.TARGETS) == 3
    assert list(outputs) == ["2-4-1 numbers", "2-4-1 arrays", "2-4-4-1 arrays"]
    for found in outputs.values():
        np.testing.assert_allclose(found, example.TARGETS, atol=0.05)
    np.testing.assert_allclose(outputs["2-4-1 numbers"], outputs["2-4-1 arrays"], rtol=1e-9)
    check_picture(tmp_path / "xor.png")
    printed = capsys.readouterr().out
    assert "2-4-1 arrays: 17 parameters" in printed
    assert "2-4-4-1 arrays: 37 parameters" in printed
    assert all(f"{a} xor {b} is {a ^ b}:" in printed for a in (0, 1) for b in (0, 1))


@pytest.mark.parametrize("seed", range(4))
def test_no_line_does_it(seed):
    weights, right = example.train_perceptron(200, 0.5, seed)
    assert right == np.sum(example.fires(weights, example.INPUTS) == example.TARGETS) == 3
    angles = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    for bias in np.linspace(-2, 2, 21):
        for line in np.stack([np.cos(angles), np.sin(angles), np.full(64, bias)], axis=1):
            assert np.sum(example.fires(line, example.INPUTS) == example.TARGETS) <= 3


def test_numbers_and_arrays_have_the_same_gradient(small):
    x = example.INPUTS[1]
    by_numbers = example.fg.grad(example.predict_numbers)(small, x)
    by_arrays = example.fg.grad(example.predict_arrays)(example.as_arrays(small), x)
    for expected, found in zip(by_arrays, example.as_arrays(by_numbers), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sizes", [(2, 4, 1), (2, 4, 4, 1)])
def test_networks_learn_it_from_other_starts(sizes, seed):
    params = example.as_arrays(example.initial_units(sizes, seed))
    params, losses = example.train(example.predict_arrays, params, 1000, 0.5)
    assert losses[-1] < 2e-3
    np.testing.assert_allclose(
        example.predict_arrays(params, example.INPUTS), example.TARGETS, atol=0.1
    )
