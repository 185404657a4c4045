"""Initial weights: JAX's numbers for the same key, and the promised distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from funcgrad import random
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.nn import conv, initializers
from tests.nn.recorded import RECORDED

KEY = random.key(3)
FAMILIES = [
    f"{name}_{kind}" for name in ("glorot", "lecun", "he") for kind in ("uniform", "normal")
]
TOLERANCE = {"float32": 3e-6, "float64": 1e-12}


@pytest.mark.parametrize("name", RECORDED)
def test_numbers_are_those_of_jax(name):
    family, dtype, shape, values = RECORDED[name]
    actual = getattr(initializers, family)()(KEY, shape, np.dtype(dtype))
    expected = np.array(values, dtype).reshape(shape)
    assert actual.dtype == expected.dtype
    tolerance = TOLERANCE[dtype]
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(actual, expected, tolerance, tolerance * scale)


@pytest.mark.parametrize("family", FAMILIES)
def test_variances(family):
    shape = (300, 100)
    n = 200 if family.startswith("glorot") else 300
    weights = getattr(initializers, family)()(KEY, shape)
    assert weights.dtype == np.float64
    expected = (2 if family.startswith("he") else 1) / n
    np.testing.assert_allclose(np.var(weights), expected, 0.05)
    np.testing.assert_allclose(np.mean(weights), 0, atol=5 * math.sqrt(expected / weights.size))


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg"])
def test_modes_and_axes(mode):
    fan_in, fan_out = 5 * 6 * 9, 20 * 9  # two input axes, a window of 9, a batch axis
    n = {
        "fan_in": fan_in,
        "fan_out": fan_out,
        "fan_avg": (fan_in + fan_out) / 2,
        "fan_geo_avg": math.sqrt(fan_in * fan_out),
    }[mode]
    init = initializers.variance_scaling(2.0, mode, "normal", (0, 1), 2, 3)
    weights = init(KEY, (5, 6, 20, 4, 9), np.float32)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(np.var(weights), 2 / n, 0.05)


def test_aliases():
    assert initializers.xavier_uniform is initializers.glorot_uniform
    assert initializers.xavier_normal is initializers.glorot_normal
    assert initializers.kaiming_uniform is initializers.he_uniform
    assert initializers.kaiming_normal is initializers.he_normal


def test_constants():
    np.testing.assert_array_equal(initializers.zeros(KEY, (2, 3)), np.zeros((2, 3)))
    assert initializers.ones(KEY, (2,), np.float32).dtype == np.float32
    init = initializers.constant(np.arange(3), np.int32)
    np.testing.assert_array_equal(init(KEY, (2, 3)), [[0, 1, 2], [0, 1, 2]])
    assert init(KEY, (3,), np.float32).dtype == np.float32


def test_bounds():
    x = initializers.uniform(0.5)(KEY, (1000,))
    assert x.min() >= 0
    assert 0.45 < x.max() < 0.5
    y = initializers.truncated_normal(2.0, lower=-1, upper=0.5)(KEY, (1000,))
    assert y.min() > -2
    assert 0.9 < y.max() < 1
    np.testing.assert_allclose(np.std(initializers.normal(3.0)(KEY, (10_000,))), 3, 0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axis"), [((6, 4), -1), ((4, 6), -1), ((3, 5, 2), 1), ((2, 3, 4), 0)]
)
def test_orthogonal(shape, axis, dtype):
    weights = initializers.orthogonal(2.0, axis)(KEY, shape, dtype)
    assert weights.shape == shape
    assert weights.dtype == dtype
    columns = np.moveaxis(weights, axis, -1).reshape(-1, shape[axis]) / 2
    gram = columns @ columns.T if columns.shape[0] < columns.shape[1] else columns.T @ columns
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("window", [(3,), (4, 3), (1, 2, 3)])
def test_convolution_with_a_delta_orthogonal_kernel_keeps_lengths(window):
    kernel = initializers.delta_orthogonal()(KEY, (*window, 3, 5))
    x = np.random.default_rng(0).normal(size=(2, *(n + 2 for n in window), 3))
    y = conv(x, kernel)
    # Only the tap in the middle is not zero, which meets every place once.
    np.testing.assert_allclose(np.linalg.norm(y), np.linalg.norm(x), 1e-13)


def test_window_counts_for_inputs_and_outputs():
    kernel = initializers.lecun_normal()(KEY, (5, 5, 40, 30))
    np.testing.assert_allclose(np.var(kernel), 1 / (25 * 40), 0.05)
    kernel = initializers.glorot_uniform()(KEY, (5, 5, 40, 30))
    np.testing.assert_allclose(np.var(kernel), 2 / (25 * 70), 0.05)


def test_errors():
    for arguments, word in (
        ((1.0, "fan", "normal"), "mode"),
        ((1.0, "fan_in", "x"), "distribution"),
    ):
        with pytest.raises(ArgumentError, match=word):
            initializers.variance_scaling(*arguments)
    with pytest.raises(ShapeError, match="two axes"):
        initializers.he_normal()(KEY, (3,))
    with pytest.raises(ShapeError, match="two axes"):
        initializers.orthogonal()(KEY, (3,))
    for shape in ((3, 3), (3, 4, 2), (1, 1, 1, 1, 2, 2)):
        with pytest.raises(ShapeError, match=r"axes of a window, .* got shape \("):
            initializers.delta_orthogonal()(KEY, shape)
    with pytest.raises(DtypeError, match="floating"):
        initializers.he_normal()(KEY, (3, 3), np.int32)


def test_layers_without_inputs():
    assert initializers.he_normal()(KEY, (0, 3)).shape == (0, 3)


@pytest.mark.parametrize("distribution", ["normal", "uniform", "truncated_normal"])
def test_complex_weights(distribution: str) -> None:
    init = initializers.variance_scaling(2.0, "fan_in", distribution)
    weights = init(random.key(0), (200, 300), np.complex64)
    assert weights.dtype == np.complex64
    variance = 2 / 200 * (1.0187 if distribution == "truncated_normal" else 1)
    np.testing.assert_allclose(np.mean(abs(weights) ** 2), variance, rtol=0.02)
    assert abs(np.mean(weights)) < 1e-3
    radius = {"uniform": np.sqrt(2), "truncated_normal": 2 / np.sqrt(1 - 5 * np.exp(-4))}
    limit = radius.get(distribution, 6) * 0.1
    assert 0.9 * limit < abs(weights).max() < limit or distribution == "normal"


def test_weights_of_one_axis() -> None:
    init = initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=[0], out_axis=[])
    assert init(random.key(0), (5,)).shape == (5,)
    both = initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=(), out_axis=())
    assert both(random.key(0), ()).shape == ()
    with pytest.raises(ShapeError, match=r"in_axis=\(\), out_axis=0"):
        initializers.variance_scaling(1.0, "fan_in", "normal")(random.key(0), (5,))
