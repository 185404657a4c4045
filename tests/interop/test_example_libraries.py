"""The optimizers and layers of JAX's examples, which programs for JAX may import."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.errors import ArgumentError, TreeError
from funcgrad.interop.jax.example_libraries import optimizers, stax

OPTIMIZERS = {
    "sgd": (0.1,),
    "momentum": (0.02, 0.9),
    "nesterov": (0.02, 0.9),
    "adagrad": (0.5,),
    "rmsprop": (0.05,),
    "rmsprop_momentum": (0.01,),
    "adam": (0.1,),
    "adamax": (0.1,),
    "sm3": (0.5,),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_descend(name):
    target = {"w": np.array([[1.0, -2.0], [0.5, 3.0]]), "b": 0.25}

    def loss(p):
        return fnp.sum((p["w"] - target["w"]) ** 2) + (p["b"] - target["b"]) ** 2

    init, update, params_of = getattr(optimizers, name)(*OPTIMIZERS[name])
    state = init({"w": np.zeros((2, 2)), "b": 0.0})

    def step(state, i):
        return update(i, fg.grad(loss)(params_of(state)), state), None

    state, _ = fg.lax.scan(step, state, np.arange(200.0))
    assert loss(params_of(state)) < 0.02


def test_first_steps():
    """By hand, from 1.0 with gradients 2.0 and then 1.0."""
    expected = {
        "sgd": [0.8, 0.7],
        "momentum": [0.96, 0.904],
        "nesterov": [0.924, 0.8536],
        "adam": [0.9, 0.9 - 0.1 * (0.28 / 0.19) / np.sqrt(0.004996 / 0.001999)],
        "adamax": [0.9, 0.9 - 0.1 / 0.19 * 0.28 / (2 * 0.999)],
    }
    for name, values in expected.items():
        init, update, params_of = getattr(optimizers, name)(*OPTIMIZERS[name])
        state = init(1.0)
        for i, (g, value) in enumerate(zip((2.0, 1.0), values, strict=True)):
            state = update(i, g, state)
            np.testing.assert_allclose(params_of(state), value, 1e-6, err_msg=name)


def test_schedules_and_clipping():
    assert optimizers.exponential_decay(1.0, 10, 0.5)(20) == 0.25
    assert optimizers.inverse_time_decay(1.0, 10, 1.0)(5) == pytest.approx(1 / 1.5)
    assert optimizers.inverse_time_decay(1.0, 10, 1.0, staircase=True)(5) == 1.0
    assert optimizers.polynomial_decay(1.0, 10, 0.2)(5) == pytest.approx(0.6)
    assert optimizers.polynomial_decay(1.0, 10, 0.2)(50) == pytest.approx(0.2)
    steps = optimizers.piecewise_constant([10, 20], [1.0, 0.5, 0.1])
    assert [float(steps(i)) for i in (0, 10, 11, 25)] == [1.0, 1.0, 0.5, 0.1]
    assert fg.jit(steps)(15) == 0.5
    clipped = optimizers.clip_grads({"a": np.array([3.0]), "b": 4.0}, 1.0)
    assert optimizers.l2_norm(clipped) == pytest.approx(1.0)
    with pytest.raises(ArgumentError, match="one boundary fewer"):
        optimizers.piecewise_constant([1], [1.0])
    with pytest.raises(ArgumentError, match="got an array of shape"):
        optimizers.sgd(np.ones(2))


def test_states_are_saved():
    init, update, params_of = optimizers.adam(0.1)
    state = init({"a": np.ones(2)})
    marked = optimizers.unpack_optimizer_state(state)
    again = optimizers.pack_optimizer_state(marked)
    after = params_of(update(0, {"a": np.ones(2)}, again))
    np.testing.assert_allclose(after["a"], 0.9, 1e-7)
    with pytest.raises(TreeError, match="must have the structure of the parameters"):
        update(0, [np.ones(2)], state)
    with pytest.raises(TreeError, match="leaves are JoinPoints"):
        optimizers.pack_optimizer_state({"a": 1.0})


KEY = fg.random.key(0)
NETWORKS = {
    "dense": (stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2), stax.LogSoftmax), (3, 5)),
    "images": (
        stax.serial(
            stax.Conv(4, (3, 3), padding="SAME"),
            stax.BatchNorm(),
            stax.Gelu,
            stax.MaxPool((2, 2), strides=(2, 2)),
            stax.AvgPool((2, 2), padding="SAME"),
            stax.SumPool((2, 2)),
            stax.Flatten,
            stax.Dense(2),
        ),
        (2, 8, 8, 3),
    ),
    "transposed": (stax.ConvTranspose(4, (3, 3), (2, 2), "SAME"), (2, 4, 4, 3)),
    "lines": (stax.Conv1DTranspose(4, (3,), (2,), "SAME"), (2, 4, 3)),
    "branches": (
        stax.serial(
            stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Identity), stax.FanInConcat()
        ),
        (3, 5),
    ),
    "sum": (stax.serial(stax.FanOut(2), stax.parallel(stax.Tanh, stax.Exp), stax.FanInSum), (3, 5)),
    "by shape": (stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1])), (3, 5)),
    "dropout": (stax.serial(stax.Dropout(0.5), stax.Dense(2)), (3, 5)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_layers(name):
    (init, apply), shape = NETWORKS[name]
    expected, params = init(KEY, shape)
    x = np.random.default_rng(1).normal(size=shape)
    out = apply(params, x, rng=KEY)
    assert out.shape == tuple(expected)
    slopes = fg.grad(lambda p: fnp.sum(apply(p, x, rng=KEY) ** 2))(params)
    assert fg.tree.structure(slopes) == fg.tree.structure(params)


def test_values_of_layers():
    (init, apply), x = NETWORKS["dense"][0], np.random.default_rng(2).normal(size=(3, 5))
    params = init(KEY, x.shape)[1]
    (w, b), _, (v, c), _ = params
    z = np.maximum(x @ w + b, 0) @ v + c
    np.testing.assert_allclose(apply(params, x), z - np.log(np.exp(z).sum(-1, keepdims=True)))
    _, drop = stax.Dropout(0.25)
    kept = drop((), np.ones(4000), rng=KEY)
    assert set(np.unique(kept)) == {0.0, 4.0}
    assert abs(kept.mean() - 1) < 0.1
    np.testing.assert_array_equal(stax.Dropout(0.25, mode="test")[1]((), x), x)
    with pytest.raises(ArgumentError, match="needs a key"):
        drop((), x)
