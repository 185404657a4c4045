"""Activation functions against closed forms, with derivatives far from 0 and at kinks."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import funcgrad as fg
from funcgrad import nn
from funcgrad.errors import ShapeError
from funcgrad.testing import check_grads

mp = mpmath
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805


def mp_sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def mp_softplus(x):
    return mp.log1p(mp.exp(x))


def mp_elu(x, alpha=1):
    return x if x > 0 else alpha * mp.expm1(x)


def limited(x, low, high):
    return min(max(x, low), high)


FORMULAS = {
    "identity": lambda x: x,
    "relu": lambda x: max(x, 0),
    "relu6": lambda x: limited(x, 0, 6),
    "sigmoid": mp_sigmoid,
    "log_sigmoid": lambda x: -mp_softplus(-x),
    "softplus": mp_softplus,
    "squareplus": lambda x: (x + mp.sqrt(x * x + 4)) / 2,
    "soft_sign": lambda x: x / (1 + abs(x)),
    "silu": lambda x: x * mp_sigmoid(x),
    "swish": lambda x: x * mp_sigmoid(x),
    "mish": lambda x: x * mp.tanh(mp_softplus(x)),
    "tanh": mp.tanh,
    "elu": mp_elu,
    "celu": mp_elu,
    "selu": lambda x: SCALE * mp_elu(x, ALPHA),
    "gelu": lambda x: x * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + 0.044715 * x**3))) / 2,
    "leaky_relu": lambda x: x if x >= 0 else x / 100,
    "hard_tanh": lambda x: limited(x, -1, 1),
    "hard_sigmoid": lambda x: limited(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * limited(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * limited(x + 3, 0, 6) / 6,
    "sparse_plus": lambda x: x if x >= 1 else (x + 1) ** 2 / 4 if x > -1 else 0,
    "sparse_sigmoid": lambda x: limited(x + 1, 0, 2) / 2,
}
POINTS = [-1e4, -700.0, -20.0, -2.7, -1.3, -0.4, -1e-3, 1e-3, 0.6, 1.7, 2.9, 5.5, 8.0, 20.0, 1e4]


def derivative(name, order, x):
    with mp.workdps(60):
        return float(mp.diff(FORMULAS[name], mp.mpf(x), order, h=mp.mpf(10) ** -15))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_derivatives(name, order):
    f = getattr(nn, name)
    for _ in range(order):
        f = fg.grad(f)
    actual = [float(f(x)) for x in POINTS]
    expected = [derivative(name, order, x) for x in POINTS]
    # 1e4 - sqrt(1e8 + 4) loses half of the digits.
    atol = 1e-11 if name == "squareplus" else 2e-13
    np.testing.assert_allclose(actual, expected, 1e-12, atol)


@pytest.mark.parametrize("name", FORMULAS)
def test_dtypes_and_transformations(name):
    f = getattr(nn, name)
    x = np.array(POINTS)
    single = f(x.astype(np.float32))
    assert single.dtype == np.float32
    assert np.all(np.isfinite(single))
    slopes = fg.vmap(fg.grad(f))(x.astype(np.float32))
    assert slopes.dtype == np.float32
    assert np.all(np.isfinite(slopes))
    np.testing.assert_array_equal(fg.vmap(f)(x), f(x))
    assert fg.eval_shape(f, x).dtype == np.float64
    assert float(f(2.0)) == float(f(np.float64(2)))
    assert float(f(2)) == float(f(2.0))


KINKS = [
    ("relu", 0.0, 0.0), ("relu6", 0.0, 0.0), ("relu6", 6.0, 0.0), ("leaky_relu", 0.0, 1.0),
    ("hard_tanh", 1.0, 1.0), ("hard_tanh", -1.0, 1.0), ("hard_sigmoid", 3.0, 0.0),
    ("elu", 0.0, 1.0), ("celu", 0.0, 1.0), ("soft_sign", 0.0, 1.0), ("softplus", 0.0, 0.5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "slope"), KINKS)
def test_slopes_at_kinks(name, x, slope):
    assert fg.grad(getattr(nn, name))(x) == slope
    assert fg.jvp(getattr(nn, name), (x,), (1.0,))[1] == slope


def test_parameters():
    x = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(nn.elu(x, 0.5), np.where(x > 0, x, 0.5 * np.expm1(x)))
    low = np.minimum(x, 0)
    np.testing.assert_allclose(nn.celu(x, 2.0), np.where(x > 0, x, 2 * np.expm1(low / 2)))
    np.testing.assert_allclose(nn.leaky_relu(x, 0.3), np.where(x >= 0, x, 0.3 * x))
    np.testing.assert_allclose(nn.squareplus(x, 1), (x + np.hypot(x, 1)) / 2)
    check_grads(nn.elu, (x + 0.1, 0.5), order=2)
    check_grads(nn.celu, (x + 0.1, 2.0), order=2)
    assert nn.elu(x.astype(np.float32), 0.5).dtype == np.float32


def test_exact_gelu():
    x = np.array([-30.0, -5.0, -0.3, 0.0, 2.0])
    expected = [float(v * mp.ncdf(v)) for v in x]
    np.testing.assert_allclose(nn.gelu(x, approximate=False), expected, 1e-12, 1e-300)
    check_grads(lambda v: nn.gelu(v, approximate=False), (x[1:],), order=2)


def test_log1mexp():
    x = np.array([1e-12, 0.1, 0.6931, 0.6932, 5.0, 40.0])
    with mp.workdps(40):
        expected = [float(mp.log(-mp.expm1(-mp.mpf(v)))) for v in x]
    np.testing.assert_allclose(nn.log1mexp(x), expected, 1e-14)
    assert np.all(np.isfinite(fg.vmap(fg.grad(fg.grad(nn.log1mexp)))(x)))


def test_relu_keeps_integers():
    assert nn.relu(np.array([-1, 2])).dtype == np.int64


def test_glu():
    x = np.random.default_rng(0).normal(size=(4, 6))
    for axis in (0, 1, -1):
        a, b = np.split(x, 2, axis)
        np.testing.assert_allclose(nn.glu(x, axis), a / (1 + np.exp(-b)), 1e-14)
    check_grads(nn.glu, (x,), order=2)
    with pytest.raises(ShapeError, match="odd"):
        nn.glu(x[:, :5])


@pytest.mark.parametrize("name", ["sigmoid", "log_sigmoid", "softplus", "mish", "silu", "tanh"])
def test_complex_numbers(name):
    z = np.array([0.5 + 0.3j, -0.2 - 0.4j, 5 + 2j, -4 - 1j, 1 - 2.5j])
    with mp.workdps(40):
        wanted = np.array([complex(FORMULAS[name](mp.mpc(v))) for v in z])
    np.testing.assert_allclose(getattr(nn, name)(z), wanted, rtol=1e-13)
    np.testing.assert_allclose(fg.jit(getattr(nn, name))(z), wanted, rtol=1e-13)
    check_grads(getattr(nn, name), (z[:2],), order=2)


def test_the_logistic_function_of_complex_numbers_far_from_0():
    z = np.array([-40 - 1j, -300 + 2j, 40 + 1j, 800 + 1j, -800 + 1j])
    wanted = np.array([np.exp(-40 - 1j), np.exp(-300 + 2j), 1.0, 1.0, 0.0])
    for sigmoid in (nn.sigmoid, fg.jit(nn.sigmoid)):
        np.testing.assert_allclose(sigmoid(z), wanted, rtol=1e-14)
