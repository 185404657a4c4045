"""Layers by hand: the gradients are the automatic ones, and those of finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.program import check_picture, load, run

example = load("layers_by_hand")


def test_all_gradients_by_hand_are_right(tmp_path):
    errors, of_network = run(example, "--output", tmp_path / "layers.png")
    assert list(errors) == ["linear", "relu", "sigmoid", "tanh", "softmax"]
    for automatic, differences in errors.values():
        assert automatic < 1e-12
        assert differences < 1e-5
    assert of_network < 1e-12
    check_picture(tmp_path / "layers.png")


def test_the_jacobian_of_a_softmax_is_its_gradient_in_every_direction():
    x = np.array([1000.0, 999.0, -5.0])
    matrix = example.softmax_jacobian(x)
    rows = [example.softmax_backward(g, x)[0] for g in np.eye(3)]
    np.testing.assert_allclose(matrix, rows, atol=1e-16)
    np.testing.assert_allclose(matrix.sum(axis=0), 0, atol=1e-16)
    row = np.linspace(-3, 3, 10)
    automatic = example.fg.jacrev(example.softmax)(row)
    assert example.relative_error(example.softmax_jacobian(row), automatic) < 1e-12


@pytest.mark.parametrize("name", ["sigmoid", "softmax", "linear"])
def test_a_wrong_gradient_is_found(name, monkeypatch):
    forward, backward, inputs = example.LAYERS[name]
    wrong = example.Layer(forward, lambda *given: tuple(1.01 * g for g in backward(*given)), inputs)
    monkeypatch.setitem(example.LAYERS, name, wrong)
    assert min(example.check(name, np.random.default_rng(1))) > 1e-3
