"""Layers: what init makes, state, keys, combinations, transformations, messages."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import nn
from funcgrad.errors import (
    ArgumentError,
    AxisNameError,
    DtypeError,
    FuncgradError,
    ShapeError,
    TreeError,
)
from funcgrad.nn import layers

KEY = fg.random.key(0)
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(4, 6))
SEQUENCES = RNG.normal(size=(2, 5, 6))
IMAGES = RNG.normal(size=(2, 6, 5, 4))
WORDS = np.array([[3, 1, 2], [0, 0, 4]])


def shapes(tree):
    return fg.tree.map(np.shape, tree)


# layer, input, shapes of the parameters, shape of the output
TABLE = {
    "dense": (layers.dense(3), ROWS, {"kernel": (6, 3), "bias": (3,)}, (4, 3)),
    "dense without bias": (layers.dense(3, bias=False), ROWS, {"kernel": (6, 3)}, (4, 3)),
    "embedding": (layers.embedding(5, 7), WORDS, {"embedding": (5, 7)}, (2, 3, 7)),
    "conv": (
        layers.conv(8, (3, 2), strides=2, groups=2),
        IMAGES,
        {"kernel": (3, 2, 2, 8), "bias": (8,)},
        (2, 3, 3, 8),
    ),
    "circular conv": (
        layers.conv(8, (3, 2), strides=(1, 2), padding="CIRCULAR"),
        IMAGES,
        {"kernel": (3, 2, 4, 8), "bias": (8,)},
        (2, 6, 3, 8),
    ),
    "causal conv": (
        layers.conv(8, 3, dilation=2, padding="CAUSAL", bias=False),
        SEQUENCES,
        {"kernel": (3, 6, 8)},
        (2, 5, 8),
    ),
    "conv_transpose": (
        layers.conv_transpose(3, (4, 4), strides=2),
        IMAGES,
        {"kernel": (4, 4, 4, 3), "bias": (3,)},
        (2, 12, 10, 3),
    ),
    "max_pool": (layers.max_pool((2, 2), 2), IMAGES, (), (2, 3, 2, 4)),
    "min_pool": (layers.min_pool((2, 2)), IMAGES, (), (2, 5, 4, 4)),
    "avg_pool": (layers.avg_pool(3, padding="SAME"), SEQUENCES, (), (2, 5, 6)),
    "flatten": (layers.flatten(), IMAGES, (), (2, 120)),
    "activation": (layers.activation(nn.relu), ROWS, (), (4, 6)),
    "dropout": (layers.dropout(0.5), ROWS, (), (4, 6)),
    "layer_norm": (layers.layer_norm(), ROWS, {"scale": (6,), "bias": (6,)}, (4, 6)),
    "rms_norm": (layers.rms_norm(), ROWS, {"scale": (6,)}, (4, 6)),
    "group_norm": (layers.group_norm(2), IMAGES, {"scale": (4,), "bias": (4,)}, IMAGES.shape),
    "batch_norm": (layers.batch_norm(), IMAGES, {"scale": (4,), "bias": (4,)}, IMAGES.shape),
    "attention": (
        layers.attention(2, kv_heads=1, bias=False, out_features=3),
        SEQUENCES,
        {
            "query": {"kernel": (6, 6)},
            "key": {"kernel": (6, 3)},
            "value": {"kernel": (6, 3)},
            "out": {"kernel": (6, 3)},
        },
        (2, 5, 3),
    ),
    "rnn": (
        layers.recurrent(layers.rnn_cell(3)),
        SEQUENCES,
        {"kernel": (6, 3), "recurrent_kernel": (3, 3), "bias": (3,)},
        (2, 5, 3),
    ),
    "residual": (
        layers.residual(layers.dense(3), layers.dense(3, bias=False)),
        ROWS,
        ({"kernel": (6, 3)}, {"kernel": (6, 3), "bias": (3,)}),
        (4, 3),
    ),
    "repeat": (
        layers.repeat(layers.residual(layers.dense(6)), 3),
        ROWS,
        {"kernel": (3, 6, 6), "bias": (3, 6)},
        (4, 6),
    ),
    "checkpoint": (
        layers.checkpoint(layers.sequential(layers.dense(3), np.tanh)),
        ROWS,
        ({"kernel": (6, 3), "bias": (3,)}, ()),
        (4, 3),
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TABLE)
def test_parameters_and_outputs(name):
    layer, x, expected, shape = TABLE[name]
    # Only types of inputs count for parameters, and these follow the dtype that was asked for.
    params, state = layer.init(KEY, fg.ShapeDtypeStruct(x.shape, x.dtype))
    again, _ = layer.init(KEY, x)
    assert shapes(params) == expected
    fg.tree.map(np.testing.assert_array_equal, params, again)
    assert {leaf.dtype for leaf in fg.tree.leaves((params, state))} <= {np.dtype(np.float32)}
    single = x.astype(np.float32) if x.dtype.kind == "f" else x
    y, after = layer.apply(params, state, single)
    assert y.shape == shape
    assert y.dtype == np.float32
    fg.tree.map(np.testing.assert_array_equal, state, after)
    types = fg.eval_shape(layer.apply, params, state, single)[0]
    assert (types.shape, types.dtype) == (y.shape, y.dtype)


def test_parameters_of_the_asked_dtype():
    network = layers.sequential(
        layers.dense(3, dtype=np.float64), layers.rms_norm(dtype=np.float64)
    )
    params, _ = network.init(KEY, ROWS)
    assert {leaf.dtype for leaf in fg.tree.leaves(params)} == {np.dtype(np.float64)}


# Sequences of layers.


def test_sequential_is_the_composition():
    network = layers.sequential(layers.dense(5), nn.relu, layers.dense(3))
    params, state = network.init(KEY, ROWS)
    assert state == ()
    hidden = np.maximum(ROWS @ params[0]["kernel"] + params[0]["bias"], 0)
    expected = hidden @ params[2]["kernel"] + params[2]["bias"]
    np.testing.assert_allclose(network.apply(params, (), ROWS)[0], expected, 1e-13)
    assert not np.array_equal(params[0]["kernel"][:5, :3], params[2]["kernel"])
    nested = layers.sequential(layers.sequential(layers.dense(5), nn.relu), layers.dense(3))
    assert shapes(nested.init(KEY, ROWS)[0]) == (shapes(params[:2]), shapes(params[2]))


def test_tuples_are_several_inputs():
    network = layers.sequential(
        layers.parallel(layers.dense(3), layers.dense(3)), np.hypot, lambda x: (x, x), np.subtract
    )
    params, state = network.init(KEY, ROWS)
    np.testing.assert_array_equal(network.apply(params, state, ROWS)[0], np.zeros((4, 3)))


def test_state_passes_through_all_combinations():
    norm = layers.batch_norm(momentum=0.5, dtype=np.float64)
    network = layers.sequential(
        layers.residual(norm), layers.checkpoint(norm), nn.relu, layers.repeat(norm, 2)
    )
    params, state = network.init(KEY, ROWS)
    assert shapes(state[3]) == {"mean": (2, 6), "variance": (2, 6)}
    y, after = network.apply(params, state, ROWS, train=True)
    assert shapes(after) == shapes(state)
    np.testing.assert_allclose(after[0]["mean"], ROWS.mean(0) / 2, 1e-13)
    np.testing.assert_allclose(after[0]["variance"], 0.5 + ROWS.var(0, ddof=1) / 2, 1e-13)
    frozen, same = network.apply(params, after, ROWS)
    fg.tree.map(np.testing.assert_array_equal, after, same)
    assert not np.allclose(y, frozen)


@pytest.mark.parametrize(
    ("bessel", "own", "running"), [("never", 0, 0), ("running", 0, 1), ("always", 1, 1)]
)
def test_variances_of_batches(bessel, own, running):
    layer = layers.batch_norm(momentum=0.8, epsilon=0.1, bessel=bessel, dtype=np.float64)
    params, state = layer.init(KEY, ROWS)
    y, after = layer.apply(params, state, ROWS, train=True)
    expected = (ROWS - ROWS.mean(0)) / np.sqrt(ROWS.var(0, ddof=own) + 0.1)
    np.testing.assert_allclose(y, expected, 1e-12)
    expected = 0.8 + 0.2 * ROWS.var(0, ddof=running)
    np.testing.assert_allclose(after["variance"], expected, 1e-13)
    wide = layer.apply(params, fg.tree.map(np.float32, state), ROWS, train=True)[1]
    assert wide["mean"].dtype == np.float32


# Random keys.


def test_dropout():
    x = np.ones((100, 100), np.float32)
    y = nn.dropout(KEY, x, 0.2)
    assert y.dtype == np.float32
    assert set(np.unique(y)) == {np.float32(0), np.float32(1) / (1 - np.float32(0.2))}
    np.testing.assert_allclose(np.mean(y == 0), 0.2, atol=0.02)
    np.testing.assert_array_equal(nn.dropout(KEY, x, 0.0), x)
    np.testing.assert_array_equal(nn.dropout(KEY, x, 1.0), 0 * x)
    slope = fg.grad(lambda x, rate: nn.dropout(KEY, x, rate).sum())
    np.testing.assert_array_equal(slope(x, 0.2), y)
    np.testing.assert_array_equal(slope(x, 1.0), 0 * x)
    traced = fg.vmap(lambda rate: nn.dropout(KEY, x, rate))(np.array([0.2, 1.0]))
    np.testing.assert_array_equal(traced, [y, 0 * x])


def test_every_layer_has_a_key_of_its_own():
    drop = layers.dropout(0.5)
    for both in (
        layers.parallel(drop, drop, combine=np.subtract),
        layers.sequential(lambda x: x, layers.parallel(drop, drop, combine=np.subtract)),
    ):
        assert np.any(both.apply(*both.init(KEY, ROWS), ROWS, key=KEY, train=True)[0])
    chain = layers.repeat(drop, 4)
    kept = chain.apply((), (), np.ones(1000), key=KEY, train=True)[0]
    np.testing.assert_allclose(np.mean(kept > 0), 1 / 16, atol=0.03)
    same = chain.apply((), (), np.ones(1000), key=KEY, train=True)[0]
    np.testing.assert_array_equal(same, kept)


# Transformations.


def network_with_everything():
    block = layers.sequential(
        layers.residual(layers.sequential(layers.layer_norm(), layers.attention(2, causal=True))),
        layers.dropout(0.1),
    )
    return layers.sequential(
        layers.embedding(5, 6), block, layers.recurrent(layers.gru_cell(4)), layers.batch_norm()
    )


def test_transformations_agree():
    network = network_with_everything()
    params, state = network.init(KEY, WORDS)

    def loss(params, key):
        y, after = network.apply(params, state, WORDS, key=key, train=True)
        return (y**2 * np.arange(4, dtype=np.float32)).sum(), after

    step = fg.value_and_grad(loss, has_aux=True)
    expected = step(params, KEY)
    for other in (
        fg.jit(step)(params, KEY),
        fg.value_and_grad(fg.checkpoint(loss), has_aux=True)(params, KEY),
    ):
        fg.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-3, 1e-5), other, expected)
    keys = fg.random.split(KEY, 2)
    many = fg.vmap(loss, (None, 0))(params, keys)[0]
    each = [loss(params, key)[0] for key in keys]
    np.testing.assert_allclose(many, each, 1e-4)


def test_parameters_are_made_in_a_compiled_program():
    network = layers.sequential(layers.dense(3), layers.batch_norm())
    expected = network.init(KEY, ROWS)
    compiled = fg.jit(network.init)(KEY, ROWS)
    fg.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5), compiled, expected)


def test_networks_are_made_by_vmap():
    network = layers.sequential(layers.dense(3), layers.batch_norm(), nn.relu, layers.dense(1))
    keys = fg.random.split(KEY, 5)
    params, state = fg.vmap(network.init, (0, None))(keys, ROWS)
    assert params[0]["kernel"].shape == (5, 6, 3)
    assert state[1]["mean"].shape == (5, 3)
    first = network.init(keys[0], ROWS)
    many = fg.vmap(lambda p, s: network.apply(p, s, ROWS)[0])(params, state)
    np.testing.assert_allclose(many[0], network.apply(*first, ROWS)[0], 1e-5)


# Recurrence.


def test_carries_and_directions():
    cell = layers.lstm_cell(3, dtype=np.float64)
    forward = layers.recurrent(cell, return_carry=True)
    params, _ = forward.init(KEY, SEQUENCES)
    np.testing.assert_array_equal(params["bias"], np.repeat([0, 1, 0, 0], 3))
    ys, carry = forward.apply(params, (), SEQUENCES)[0]
    first, middle = forward.apply(params, (), SEQUENCES[:, :2])[0]
    second, last = forward.apply(params, (), SEQUENCES[:, 2:], middle)[0]
    np.testing.assert_allclose(np.concatenate([first, second], 1), ys, 1e-13)
    fg.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-13), last, carry)
    backward = layers.recurrent(cell, reverse=True, time_axis=0)
    reversed_ys = backward.apply(params, (), np.swapaxes(SEQUENCES[:, ::-1], 0, 1))[0]
    np.testing.assert_allclose(np.swapaxes(reversed_ys, 0, 1)[:, ::-1], ys, 1e-13)
    single = layers.recurrent(cell).apply(params, (), SEQUENCES[1])[0]
    np.testing.assert_allclose(single, ys[1], 1e-13)


def test_cells_of_ones_own_have_state_and_keys():
    def init(key, carry, x):
        return (), np.zeros((), int)

    def apply(params, state, carry, x, *, key=None, train=False):
        total = (np.zeros_like(x) if carry is None else carry) + x
        return (total, total if key is None else nn.dropout(key, total, 0.5)), state + 1

    layer = layers.recurrent(layers.Layer(init, apply))
    params, state = layer.init(KEY, SEQUENCES)
    ys, state = layer.apply(params, state, SEQUENCES)
    np.testing.assert_allclose(ys, np.cumsum(SEQUENCES, 1), 1e-13)
    assert state == 5
    dropped, _ = layer.apply(params, state, SEQUENCES, key=KEY, train=True)
    assert 0 < np.mean(dropped == 0) < 1


# Attention and pooling.


def test_what_attention_sees():
    q, k, v = (RNG.normal(size=(2, 4, 2, 3)) for _ in range(3))
    lengths = np.array([3, 1])
    window = nn.dot_product_attention(q, k, v, local_window_size=(1, 0), query_seq_lengths=lengths)
    causal = nn.dot_product_attention(q, k, v, is_causal=True, key_value_seq_lengths=lengths)
    for b in range(2):
        for t in range(4):
            for actual, seen in ((window, [t - 1, t]), (causal, range(min(t + 1, lengths[b])))):
                places = [s for s in seen if s >= 0]
                scores = np.einsum("nh,snh->ns", q[b, t], k[b, places]) / np.sqrt(3)
                weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
                expected = np.einsum("ns,snh->nh", weights, v[b, places])
                if actual is window and t >= lengths[b]:
                    expected = 0
                np.testing.assert_allclose(actual[b, t], expected, 1e-12)
    y, total = nn.dot_product_attention(q[0], k[0], v[0], return_residual=True)
    scores = np.einsum("tnh,snh->tns", q[0], k[0]) / np.sqrt(3)
    np.testing.assert_allclose(total, np.log(np.exp(scores).sum(-1)), 1e-12)
    np.testing.assert_allclose(y, nn.dot_product_attention(q, k, v)[0], 1e-13)


def test_a_query_that_sees_nothing():
    q = RNG.normal(size=(1, 2, 1, 3))
    mask = np.array([[True, True], [False, False]])
    f = lambda q: nn.dot_product_attention(q, q, q, mask=mask)  # noqa: E731
    np.testing.assert_array_equal(f(q)[0, 1], 0)
    assert np.all(np.isfinite(fg.grad(lambda q: (f(q) ** 2).sum())(q)))


def test_dropped_weights_of_attention():
    # Values that are rows of the identity show the weights.
    q, k = RNG.normal(size=(3, 40, 2, 4)), RNG.normal(size=(3, 40, 2, 4))
    rows = np.broadcast_to(np.eye(40)[:, None], (3, 40, 2, 40))
    spread = np.sqrt(40 / 4)  # values are longer than queries
    q, k = (np.concatenate([x, np.zeros((3, 40, 2, 36))], -1) for x in (spread * q, k))
    whole = nn.dot_product_attention(q, k, rows)
    drop = {"dropout_rate": 0.25, "dropout_key": KEY}
    some = nn.dot_product_attention(q, k, rows, **drop)
    kept = some != 0
    np.testing.assert_allclose(np.mean(kept), 0.75, atol=0.02)
    np.testing.assert_allclose(some, np.where(kept, whole / 0.75, 0), 1e-12)
    assert np.unique(kept, axis=0).shape[0] == 3  # every example and every head has a mask
    assert np.any(kept[:, :, 0] != kept[:, :, 1])
    # The same key drops the same weights, and gradients see no others.
    v = RNG.normal(size=(3, 40, 2, 40))
    y = nn.dot_product_attention(q, k, v, **drop)
    np.testing.assert_allclose(y, np.einsum("btns,bsnh->btnh", some, v), 1e-11)
    slopes = fg.grad(lambda v: (nn.dot_product_attention(q, k, v, **drop) * y).sum())(v)
    np.testing.assert_allclose(slopes, np.einsum("btns,btnh->bsnh", some, y), 1e-11)
    np.testing.assert_array_equal(
        nn.dot_product_attention(q, k, v, dropout_key=KEY)[0].shape, y[0].shape
    )


def test_attention_drops_weights_in_training_only():
    layer, plain = layers.attention(2, dropout=0.5), layers.attention(2)
    params, state = layer.init(KEY, SEQUENCES)
    expected = plain.apply(params, state, SEQUENCES)[0]
    np.testing.assert_array_equal(layer.apply(params, state, SEQUENCES, key=KEY)[0], expected)
    first, again = (layer.apply(params, (), SEQUENCES, key=KEY, train=True)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, expected)
    everything = layers.attention(2, dropout=1.0).apply(params, (), SEQUENCES, key=KEY, train=True)
    np.testing.assert_allclose(everything[0], np.zeros_like(expected), atol=0)  # biases are 0
    # A rate of 0 needs no key.
    np.testing.assert_array_equal(plain.apply(params, (), SEQUENCES, train=True)[0], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, bool, np.float32])
def test_extremes_of_all_kinds_of_numbers(dtype):
    x = np.array([[1], [0], [1], [1]], dtype)
    np.testing.assert_array_equal(nn.max_pool(x, 2, 2, padding=1)[:, 0], [1, 1, 1])
    np.testing.assert_array_equal(nn.min_pool(x, 2, 2, padding=1)[:, 0], [1, 0, 1])
    assert nn.max_pool(x, 2).dtype == dtype
    assert nn.avg_pool(x, 2).dtype.kind == "f"
    np.testing.assert_array_equal(nn.avg_pool(x, 2)[:, 0], [0.5, 0.5, 1])


# Messages.

MESSAGES = {
    "features": (
        lambda: layers.dense(3, bias=False).apply({"kernel": np.float32(ROWS[:3].T[:5])}, (), ROWS),
        ShapeError,
        r"layers.dense\(3\): the kernel f32\[5,3\] takes 5 features in the last axis of its input, "
        r"got f64\[4,6\].\n  at            test_layers.py",
    ),
    "rank": (
        lambda: layers.conv(3, (2, 2)).init(KEY, ROWS),
        ShapeError,
        r"layers.conv\(3, \(2, 2\)\) needs an input with 2 axes along which windows slide",
    ),
    "groups of inputs": (
        lambda: layers.conv(4, 3, groups=4).init(KEY, SEQUENCES),
        ShapeError,
        "4 groups do not divide the 6 features of its input",
    ),
    "groups of outputs": (
        lambda: layers.conv(3, 3, groups=2),
        ArgumentError,
        "2 groups do not divide 3 features",
    ),
    "strides": (
        lambda: nn.conv(IMAGES, np.ones((2, 2, 4, 1)), strides=(1, 2, 3)),
        ArgumentError,
        r"nn.conv: strides must be one integer of at least 1, or 2 of them",
    ),
    "padding": (
        lambda: nn.max_pool(IMAGES, (2, 2), padding=[(1, 1)]),
        ArgumentError,
        "nn.max_pool: padding must be 'SAME', 'VALID', 'SAME_LOWER', an integer, or 2 integers",
    ),
    "window": (
        lambda: nn.avg_pool(ROWS, (2, 2)),
        ShapeError,
        r"a window \(2, 2\) slides along 2 axes before the last one",
    ),
    "key": (
        lambda: layers.dropout(0.5).apply((), (), ROWS, train=True),
        ArgumentError,
        r"layers.dropout\(0.5\) needs a random key in training: apply\(..., key=key, train=True\)",
    ),
    "key of attention": (
        lambda: layers.attention(2, dropout=0.5).apply(
            layers.attention(2).init(KEY, SEQUENCES)[0], (), SEQUENCES, train=True
        ),
        ArgumentError,
        r"layers.attention\(2\) needs a random key in training: apply\(..., key=key, train=True\)",
    ),
    "key of weights": (
        lambda: nn.dot_product_attention(*[IMAGES] * 3, dropout_rate=0.5),
        ArgumentError,
        "nn.dot_product_attention needs a random key in training: dropout_key=key",
    ),
    "rate of attention": (
        lambda: layers.attention(2, dropout=-0.1),
        ArgumentError,
        r"layers.attention\(2\): rate must be a probability, 0 to 1, got -0.1",
    ),
    "mode of padding": (
        lambda: layers.conv(3, 3, padding_mode="wrap"),
        ArgumentError,
        r"padding_mode must be one of 'zeros', 'circular', 'reflect', 'replicate', got 'wrap'",
    ),
    "two modes of padding": (
        lambda: nn.conv(
            SEQUENCES, np.ones((3, 6, 1)), padding="CIRCULAR", padding_mode="reflect"
        ),
        ArgumentError,
        "padding 'CIRCULAR' is a mode itself, got also padding_mode='reflect'",
    ),
    "axis of parts": (
        lambda: nn.batch_norm(ROWS, np.zeros(6), np.ones(6), train=True, axis_name="parts"),
        AxisNameError,
        "parts",
    ),
    "rate": (lambda: layers.dropout(1.5), ArgumentError, "a probability, 0 to 1, got 1.5"),
    "words": (
        lambda: layers.embedding(5, 2).apply({"embedding": np.ones((5, 2))}, (), ROWS),
        DtypeError,
        r"layers.embedding\(5, 2\): indices must be integers",
    ),
    "bessel": (
        lambda: layers.batch_norm(bessel=True),
        ArgumentError,
        "bessel must be 'never', 'running' or 'always', got True",
    ),
    "one number": (
        lambda: nn.batch_norm(ROWS[:1], np.zeros(6), np.ones(6), train=True),
        ShapeError,
        r"has 1 number\(s\) for every feature",
    ),
    "scale": (
        lambda: nn.layer_norm(ROWS, np.ones(4)),
        ShapeError,
        r"the scale must have the shape \(6,\) of the features of f64\[4,6\], got f64\[4\]",
    ),
    "group_norm": (lambda: nn.group_norm(ROWS, 4), ShapeError, "must divide into 4 groups"),
    "heads": (
        lambda: layers.attention(4).init(KEY, SEQUENCES),
        ShapeError,
        "4 heads do not divide 6 features: give features=",
    ),
    "heads of keys": (lambda: layers.attention(4, kv_heads=3), ArgumentError, "not divide 4 heads"),
    "mask": (
        lambda: nn.dot_product_attention(*[IMAGES] * 3, mask=np.ones((6, 6))),
        DtypeError,
        "mask must be bools",
    ),
    "queries": (
        lambda: nn.dot_product_attention(IMAGES, IMAGES[:, :, :2], IMAGES),
        ShapeError,
        "key and value one shape",
    ),
    "sequence": (
        lambda: layers.recurrent(layers.rnn_cell(2)).init(KEY, ROWS[0]),
        ShapeError,
        r"layers.recurrent needs sequences \(batch, length, features\)",
    ),
    "residual": (
        lambda: layers.residual(lambda x: x[:, :3]).apply((), (), ROWS),
        ShapeError,
        "Give a layer shortcut= that maps the one to the other",
    ),
    "no layer": (
        lambda: layers.sequential(layers.dense(3), "relu"),
        ArgumentError,
        "layers.sequential is made of layers and functions of arrays, got a str",
    ),
    "parameters": (
        lambda: layers.sequential(nn.relu, nn.relu).apply({}, (), ROWS),
        TreeError,
        "params must be a tuple with one entry for each of the 2 layers",
    ),
    "a parameter that is missing": (
        lambda: layers.dense(3).apply({"kernel": np.ones((6, 3))}, (), ROWS),
        TreeError,
        "params must be a dict with 'kernel', 'bias', as init returns it, got one with 'kernel'",
    ),
    "a parameter that is not used": (
        lambda: layers.rms_norm(scale=False).apply({"scale": np.ones(6)}, (), ROWS),
        TreeError,
        "must be a dict with nothing, as init returns it, got one with 'scale'",
    ),
    "no state": (
        lambda: layers.batch_norm(scale=False, bias=False).apply({}, (), ROWS),
        TreeError,
        "state must be a dict with 'mean', 'variance', as init returns it, got a tuple of 0",
    ),
    "no cell": (
        lambda: layers.gru_cell(3).apply((), (), None, ROWS),
        TreeError,
        "with 'kernel', 'recurrent_kernel', 'bias', 'recurrent_bias', as init",
    ),
    "count": (lambda: layers.repeat(nn.relu, 0), ArgumentError, "count must be positive"),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name):
    call, kind, text = MESSAGES[name]
    with pytest.raises(kind, match=text):
        call()


def test_errors_say_in_which_layer_they_arose():
    inner = layers.sequential(nn.relu, layers.dense(3))
    network = layers.sequential(np.tanh, layers.parallel(nn.relu, inner))
    params, state = network.init(KEY, ROWS)
    for call in (
        lambda: network.apply(params, state, ROWS[:, :2]),
        lambda: layers.sequential(layers.flatten(), layers.conv(3, (2, 2))).init(KEY, IMAGES),
    ):
        with pytest.raises(FuncgradError) as caught:
            call()
        notes = caught.value.__notes__
        assert notes[-1] == "in layer 1 of layers.sequential"
    assert len(notes) == 1
