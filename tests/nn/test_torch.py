"""Layers and losses beside PyTorch's: values and gradients that `record_torch` has written.

Arrays are as PyTorch has them, channels or heads first; the functions here bring them into the
order of `funcgrad.nn`, in the way that its documentation says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import nn
from funcgrad.nn import layers, losses
from tests.nn.torch_cases import recorded, weights

TOLERANCE = 1e-10


RECORDED = recorded()


# Channels, or heads, last.


def last(x: Any) -> Any:
    return np.moveaxis(x, 1, -1)


def first(x: Any) -> Any:
    return np.moveaxis(x, -1, 1)


def conv(**options: Any) -> Any:
    def run(x: Any, kernel: Any, bias: Any) -> Any:
        taps = np.transpose(kernel, (*range(2, kernel.ndim), 1, 0))
        return first(nn.conv(last(x), taps, bias, **options))

    return run


def conv_module(**options: Any) -> Any:
    def run(x: Any, **p: Any) -> Any:
        return conv(**options)(x, p["p.weight"], p["p.bias"])

    return run


def conv_transpose(padding: Any, **options: Any) -> Any:
    def run(x: Any, kernel: Any, bias: Any) -> Any:
        taps = np.flip(np.transpose(kernel, (2, 3, 0, 1)), (0, 1))
        return first(nn.conv_transpose(last(x), taps, bias, padding=padding, **options))

    return run


def pool(f: Any, *arguments: Any, **options: Any) -> Any:
    return lambda x: first(f(last(x), *arguments, **options))


def batch_norm(is_training: bool) -> Any:
    def run(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
        y, running = nn.batch_norm(
            x, mean, variance, scale, bias, train=is_training, momentum=0.8, axis=1
        )
        return y, *map(fg.stop_gradient, running)

    return run


def batch_norm_of_parts(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
    """Every example in a lane of its own."""

    def part(x: Any) -> Any:
        y, running = nn.batch_norm(
            x, mean, variance, scale, bias, train=True, momentum=0.8, axis=1, axis_name="parts"
        )
        return y, *map(fg.stop_gradient, running)

    y, *running = fg.vmap(part, axis_name="parts", out_axes=(0, None, None))(x[:, None])
    return y[:, 0], *running


def attention(**options: Any) -> Any:
    def run(q: Any, k: Any, v: Any, **more: Any) -> Any:
        q, k, v = (np.swapaxes(x, 1, 2) for x in (q, k, v))
        return np.swapaxes(nn.dot_product_attention(q, k, v, **more, **options), 1, 2)

    return run


# Layers, with the parameters of PyTorch's modules.


def attention_params(p: dict[str, Any], prefix: str = "p.") -> Any:
    kernels = np.split(p[f"{prefix}in_proj_weight"], 3)
    biases = np.split(p[f"{prefix}in_proj_bias"], 3)
    names = ("query", "key", "value")
    parts = {n: {"kernel": k.T, "bias": b} for n, k, b in zip(names, kernels, biases, strict=True)}
    return parts | {"out": linear_params(p, f"{prefix}out_proj.")}


def linear_params(p: dict[str, Any], prefix: str) -> Any:
    return {"kernel": p[f"{prefix}weight"].T, "bias": p[f"{prefix}bias"]}


def norm_params(p: dict[str, Any], prefix: str) -> Any:
    return {"scale": p[f"{prefix}weight"], "bias": p[f"{prefix}bias"]}


def multi_head(causal: bool = False) -> Any:
    layer = layers.attention(2, causal=causal)

    def run(x: Any, memory: Any = None, **p: Any) -> Any:
        return layer.apply(attention_params(p), (), x, memory)[0]

    return run


def transformer_block(x: Any, **p: Any) -> Any:
    attend = layers.sequential(layers.layer_norm(), layers.attention(2))
    mix = layers.sequential(
        layers.layer_norm(),
        layers.dense(8),
        lambda x: nn.gelu(x, approximate=False),
        layers.dense(6),
    )
    block = layers.sequential(layers.residual(attend), layers.residual(mix))
    params = (
        (norm_params(p, "p.norm1."), attention_params(p, "p.self_attn.")),
        (
            norm_params(p, "p.norm2."),
            linear_params(p, "p.linear1."),
            (),
            linear_params(p, "p.linear2."),
        ),
    )
    return block.apply(params, (), x)[0]


def rnn_params(p: dict[str, Any], end: str = "") -> Any:
    parts = {n: p[f"p.{n}_l0{end}"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    return {
        "kernel": parts["weight_ih"].T,
        "recurrent_kernel": parts["weight_hh"].T,
        "bias": parts["bias_ih"] + parts["bias_hh"],
    }


def gru_params(p: dict[str, Any]) -> Any:
    inputs, hidden = p["p.bias_ih_l0"], p["p.bias_hh_l0"]
    both = fnp.concatenate([hidden[:8], np.zeros(4)])
    return rnn_params(p) | {"bias": inputs + both, "recurrent_bias": hidden[8:]}


def rnn(x: Any, h: Any, **p: Any) -> Any:
    layer = layers.recurrent(layers.rnn_cell(4), return_carry=True)
    return layer.apply(rnn_params(p), (), x, h)[0]


def gru(x: Any, h: Any, **p: Any) -> Any:
    layer = layers.recurrent(layers.gru_cell(4), return_carry=True)
    return layer.apply(gru_params(p), (), x, h)[0]


def lstm(x: Any, h: Any, c: Any, **p: Any) -> Any:
    layer = layers.recurrent(layers.lstm_cell(4), return_carry=True)
    ys, (h, c) = layer.apply(rnn_params(p), (), x, (h, c))[0]
    return ys, h, c


def lstm_both_ways(x: Any, **p: Any) -> Any:
    cell = layers.lstm_cell(4)
    both = layers.parallel(
        layers.recurrent(cell),
        layers.recurrent(cell, reverse=True),
        combine=lambda a, b: fnp.concatenate([a, b], -1),
    )
    return both.apply((rnn_params(p), rnn_params(p, "_reverse")), (), x)[0]


def smoothed(x: Any, labels: Any) -> Any:
    rows = losses.smooth_labels(nn.one_hot(labels, 3), 0.1)
    return losses.softmax_cross_entropy(x, rows)


def loss(f: Any, *more: Any) -> Any:
    return lambda x, **targets: f(x, *targets.values(), *more)


OURS = {
    "squared_error": loss(losses.squared_error),
    "absolute_error": loss(losses.absolute_error),
    "huber": loss(losses.huber_loss, 0.7),
    "cosine_similarity": loss(losses.cosine_similarity),
    **{
        f"{name}{end}": loss(f)
        for end in ("", "_extreme")
        for name, f in (
            ("integer_labels", losses.softmax_cross_entropy_with_integer_labels),
            ("soft_labels", losses.softmax_cross_entropy),
            ("binary", losses.sigmoid_binary_cross_entropy),
        )
    },
    "smoothed": smoothed,
    "kl": lambda x, y: losses.kl_divergence(nn.log_softmax(x), y),
    "kl_log": loss(losses.kl_divergence_with_log_targets),
    "conv_plain": conv(padding="VALID"),
    "conv_strided": conv(strides=(2, 1), padding=(1, 2)),
    "conv_dilated": conv(dilation=(3, 1), padding=(2, 0)),
    "conv_same": conv(padding="SAME"),
    "conv_grouped": conv(groups=2, strides=2, padding=1),
    "conv_depthwise": conv(groups=4, padding=1),
    "conv_circular": conv_module(strides=2, padding=(2, 1), padding_mode="circular"),
    "conv_reflect": conv_module(padding="SAME", dilation=(1, 2), padding_mode="reflect"),
    "conv_replicate": conv_module(padding=3, padding_mode="replicate"),
    "conv_1d": conv(strides=2, padding=3, dilation=2),
    "conv_transpose_plain": conv_transpose("VALID"),
    "conv_transpose_strided": conv_transpose((1, 1), strides=(2, 3)),
    "conv_transpose_dilated": conv_transpose((4, 2), dilation=2),
    "max_pool": pool(nn.max_pool, (2, 2), (2, 2)),
    "max_pool_padded": pool(nn.max_pool, (3, 3), 2, 1),
    "avg_pool": pool(nn.avg_pool, (2, 3), (1, 2), 1),
    "avg_pool_counted": pool(nn.avg_pool, (3, 3), 2, 1, count_include_pad=False),
    "layer_norm": nn.layer_norm,
    "layer_norm_2": lambda *args, **kw: nn.layer_norm(*args, **kw, axis=(-2, -1), epsilon=0.1),
    "rms_norm": nn.rms_norm,
    "group_norm": lambda x, scale, bias: first(nn.group_norm(last(x), 2, scale, bias)),
    "batch_norm_train": batch_norm(True),
    "batch_norm_eval": batch_norm(False),
    "attention": attention(),
    "attention_causal": attention(is_causal=True),
    "attention_masked": attention(),
    "attention_biased": attention(scale=0.3),
    "attention_grouped": attention(is_causal=True),
    "multi_head": multi_head(),
    "multi_head_causal": multi_head(causal=True),
    "multi_head_cross": multi_head(),
    "transformer_block": transformer_block,
    "rnn": rnn,
    "gru": gru,
    "lstm": lstm,
    "lstm_both_ways": lstm_both_ways,
    "embedding": lambda x, table: nn.embed(table, x),
    "dense": lambda x, kernel, bias: nn.dense(x, kernel.T, bias),
}
COMPILED = [
    "integer_labels", "soft_labels_extreme", "conv_grouped", "conv_circular", "max_pool_padded",
    "batch_norm_train", "attention_grouped", "lstm", "gru",
]  # fmt: skip


def outputs_and_gradients(function: Any) -> Any:
    """A function of the inputs with gradients and of the others."""

    def total(given: dict[str, Any], others: dict[str, Any]) -> Any:
        found = function(**given, **others)
        outputs = found if isinstance(found, tuple) else (found,)
        return sum((weights(np.shape(y)) * y).sum() for y in outputs), outputs

    return fg.value_and_grad(total, has_aux=True)


def check(name: str, function: Any) -> None:
    case = RECORDED[name]
    given = {key: x for key, x in case["in"].items() if key in case["grad"]}
    others = {key: x for key, x in case["in"].items() if key not in case["grad"]}
    (_, outputs), gradients = function(given, others)
    assert len(outputs) == len(case["out"])
    for i, y in enumerate(outputs):
        np.testing.assert_allclose(y, case["out"][str(i)], TOLERANCE, TOLERANCE)
    for key, gradient in gradients.items():
        np.testing.assert_allclose(gradient, case["grad"][key], TOLERANCE, TOLERANCE, err_msg=key)


def test_all_that_was_recorded_is_compared():
    assert set(OURS) == set(RECORDED)


@pytest.mark.parametrize("name", OURS)
def test_values_and_gradients(name):
    check(name, outputs_and_gradients(OURS[name]))


def test_batch_norm_of_parts_of_a_batch():
    check("batch_norm_train", outputs_and_gradients(batch_norm_of_parts))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_values_and_gradients(name):
    check(name, fg.jit(outputs_and_gradients(OURS[name])))


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in OURS if name not in COMPILED])
def test_all_other_compiled_values_and_gradients(name):
    check(name, fg.jit(outputs_and_gradients(OURS[name])))
