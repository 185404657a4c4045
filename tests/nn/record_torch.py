"""Write `recorded_torch.npz`: values and gradients of PyTorch's layers and losses, in float64.

Run by hand with PyTorch installed, from the root of the repository:

    python -m tests.nn.record_torch

Every case has named inputs, outputs, and the gradients of ``sum(weights * outputs)`` in all inputs
of real numbers, with the weights of `weights`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tests.nn.torch_cases import FILE, weights

RNG = np.random.default_rng(0)
CASES: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {}


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def case(name: str, theirs: Callable[..., Any], **inputs: np.ndarray) -> None:
    CASES[name] = (inputs, theirs)


# Losses.

X, Y = normal(4, 3), normal(4, 3)
LABELS = np.array([2, 0, 1, 1])
SOFT = torch.softmax(torch.tensor(normal(4, 3)), -1).numpy()
EXTREME = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [3e4, 1.0, 2.0], [1e4, 1e4 - 1, 1e4 + 1]])
NONE = {"reduction": "none"}

case("squared_error", lambda x, y: functional.mse_loss(x, y, **NONE), x=X, y=Y)
case("absolute_error", lambda x, y: functional.l1_loss(x, y, **NONE), x=X, y=Y)
case("huber", lambda x, y: functional.huber_loss(x, y, delta=0.7, **NONE), x=X, y=Y)
case("cosine_similarity", lambda x, y: functional.cosine_similarity(x, y), x=X, y=Y)
for name, logits in (("", X), ("_extreme", EXTREME)):
    case(
        f"integer_labels{name}",
        lambda x, labels: functional.cross_entropy(x, labels, **NONE),
        x=logits,
        labels=LABELS,
    )
    case(
        f"soft_labels{name}",
        lambda x, y: functional.cross_entropy(x, y, **NONE),
        x=logits,
        y=SOFT,
    )
    case(
        f"binary{name}",
        lambda x, y: functional.binary_cross_entropy_with_logits(x, y, **NONE),
        x=logits,
        y=SOFT,
    )
case(
    "smoothed",
    lambda x, labels: functional.cross_entropy(x, labels, label_smoothing=0.1, **NONE),
    x=X,
    labels=LABELS,
)
case("kl", lambda x, y: functional.kl_div(torch.log_softmax(x, -1), y, **NONE).sum(-1), x=X, y=SOFT)
case(
    "kl_log",
    lambda x, y: functional.kl_div(x, y, log_target=True, **NONE).sum(-1),
    x=np.log(SOFT),
    y=torch.log_softmax(torch.tensor(X), -1).numpy(),
)


# Convolutions and pooling, with channels first.

IMAGES = normal(2, 4, 5, 4)
CONVOLUTIONS = {
    "plain": ((3, 4, 3, 2), {}),
    "strided": ((3, 4, 3, 3), {"stride": (2, 1), "padding": (1, 2)}),
    "dilated": ((3, 4, 2, 3), {"dilation": (3, 1), "padding": (2, 0)}),
    "same": ((3, 4, 3, 4), {"padding": "same"}),
    "grouped": ((6, 2, 3, 3), {"groups": 2, "stride": 2, "padding": 1}),
    "depthwise": ((8, 1, 3, 3), {"groups": 4, "padding": 1}),
}
for name, (shape, options) in CONVOLUTIONS.items():
    case(
        f"conv_{name}",
        lambda x, kernel, bias, options=options: functional.conv2d(x, kernel, bias, **options),
        x=IMAGES,
        kernel=normal(*shape),
        bias=normal(shape[0]),
    )
case(
    "conv_1d",
    lambda x, kernel, bias: functional.conv1d(x, kernel, bias, stride=2, padding=3, dilation=2),
    x=normal(2, 3, 9),
    kernel=normal(4, 3, 4),
    bias=normal(4),
)
TRANSPOSED = {
    "plain": {},
    "strided": {"stride": (2, 3), "padding": (1, 0)},
    "dilated": {"dilation": 2},
}
for name, options in TRANSPOSED.items():
    case(
        f"conv_transpose_{name}",
        lambda x, kernel, bias, options=options: functional.conv_transpose2d(
            x, kernel, bias, **options
        ),
        x=IMAGES,
        kernel=normal(4, 3, 3, 2),
        bias=normal(3),
    )
case("max_pool", lambda x: functional.max_pool2d(x, 2), x=IMAGES)
case("max_pool_padded", lambda x: functional.max_pool2d(x, 3, 2, padding=1), x=IMAGES)
case("avg_pool", lambda x: functional.avg_pool2d(x, (2, 3), (1, 2), padding=1), x=IMAGES)
case(
    "avg_pool_counted",
    lambda x: functional.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False),
    x=IMAGES,
)


# Norms.

ROWS = 3 * normal(2, 3, 4) + 1
case(
    "layer_norm",
    lambda x, scale, bias: functional.layer_norm(x, (4,), scale, bias),
    x=ROWS,
    scale=normal(4),
    bias=normal(4),
)
case(
    "layer_norm_2",
    lambda x, scale, bias: functional.layer_norm(x, (3, 4), scale, bias, 0.1),
    x=ROWS,
    scale=normal(3, 4),
    bias=normal(3, 4),
)
case(
    "rms_norm",
    lambda x, scale: functional.rms_norm(x, (4,), scale, 1e-5),
    x=ROWS,
    scale=normal(4),
)
case(
    "group_norm",
    lambda x, scale, bias: functional.group_norm(x, 2, scale, bias),
    x=IMAGES,
    scale=normal(4),
    bias=normal(4),
)


def batch_norm(is_training: bool) -> Callable[..., Any]:
    def run(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
        running = mean.detach().clone(), variance.detach().clone()
        y = functional.batch_norm(x, *running, scale, bias, is_training, 0.2)
        return y, *running

    return run


STATISTICS = {"mean": normal(4), "variance": np.exp(normal(4))}
for is_training in (True, False):
    case(
        f"batch_norm_{'train' if is_training else 'eval'}",
        batch_norm(is_training),
        x=IMAGES,
        **STATISTICS,
        scale=normal(4),
        bias=normal(4),
    )


# Attention, with heads before places.

Q, K, V = normal(2, 4, 3, 2), normal(2, 4, 5, 2), normal(2, 4, 5, 2)
MASK = RNG.random((2, 1, 3, 5)) < 0.6
MASK[..., 0] = True
attend = functional.scaled_dot_product_attention
case("attention", lambda q, k, v: attend(q, k, v), q=Q, k=K, v=V)
case(
    "attention_causal", lambda q, k, v: attend(q, k, v, is_causal=True), q=Q, k=Q + 1, v=V[:, :, :3]
)
case("attention_masked", lambda q, k, v, mask: attend(q, k, v, mask), q=Q, k=K, v=V, mask=MASK)
case(
    "attention_biased",
    lambda q, k, v, bias: attend(q, k, v, bias, scale=0.3),
    q=Q,
    k=K,
    v=V,
    bias=normal(2, 4, 3, 5),
)
case(
    "attention_grouped",
    lambda q, k, v: attend(q, k, v, enable_gqa=True, is_causal=True),
    q=Q,
    k=K[:, :2, :3],
    v=V[:, :2, :3],
)


def module_case(name: str, build: Any, run: Any, **inputs: np.ndarray) -> None:
    """A function of the inputs and of all parameters of a module, by name."""
    made = build().double()
    own = {f"p.{k}": 0.5 * normal(*p.shape) for k, p in made.named_parameters()}

    def theirs(**given: Any) -> Any:
        parameters = {k[2:]: v for k, v in given.items() if k in own}

        def call(*args: Any, **kwargs: Any) -> Any:
            return torch.func.functional_call(made, parameters, args, kwargs)

        return run(call, **{k: v for k, v in given.items() if k not in own})

    case(name, theirs, **inputs, **own)


def heads() -> torch.nn.Module:
    return torch.nn.MultiheadAttention(6, 2, batch_first=True)


def causal_attention(call: Any, x: Any) -> Any:
    mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=torch.float64)
    return call(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]


SEQUENCE = normal(2, 4, 6)
module_case("multi_head", heads, lambda call, x: call(x, x, x, need_weights=False)[0], x=SEQUENCE)
module_case("multi_head_causal", heads, causal_attention, x=SEQUENCE)
module_case(
    "multi_head_cross",
    heads,
    lambda call, x, memory: call(x, memory, memory, need_weights=False)[0],
    x=SEQUENCE,
    memory=normal(2, 3, 6),
)
module_case(
    "transformer_block",
    lambda: torch.nn.TransformerEncoderLayer(
        6, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True
    ),
    lambda call, x: call(x),
    x=SEQUENCE,
)


# Recurrent networks.

STEPS = normal(2, 5, 3)
START = {"h": normal(2, 4)}


def with_carry(call: Any, x: Any, h: Any) -> Any:
    ys, h = call(x, h[None])
    return ys, h[0]


module_case(
    "rnn",
    lambda: torch.nn.RNN(3, 4, batch_first=True),
    with_carry,
    x=STEPS,
    **START,
)
module_case(
    "gru",
    lambda: torch.nn.GRU(3, 4, batch_first=True),
    with_carry,
    x=STEPS,
    **START,
)


def lstm(call: Any, x: Any, h: Any, c: Any) -> Any:
    ys, (h, c) = call(x, (h[None], c[None]))
    return ys, h[0], c[0]


module_case(
    "lstm", lambda: torch.nn.LSTM(3, 4, batch_first=True), lstm, x=STEPS, **START, c=normal(2, 4)
)
module_case(
    "lstm_both_ways",
    lambda: torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True),
    lambda call, x: call(x)[0],
    x=STEPS,
)


# Others.

case(
    "embedding",
    lambda x, table: functional.embedding(x, table),
    x=np.array([[2, 0], [2, 1]]),
    table=normal(3, 4),
)
case(
    "dense",
    lambda x, kernel, bias: functional.linear(x, kernel, bias),
    x=ROWS,
    kernel=normal(5, 4),
    bias=normal(5),
)
CONVOLUTIONS_WITH_BORDERS = {
    "circular": {"stride": 2, "padding": (2, 1)},
    "reflect": {"padding": "same", "dilation": (1, 2)},
    "replicate": {"padding": (3, 3)},
}
for mode, options in CONVOLUTIONS_WITH_BORDERS.items():
    module_case(
        f"conv_{mode}",
        lambda mode=mode, options=options: torch.nn.Conv2d(
            4, 3, (3, 2), padding_mode=mode, **options
        ),
        lambda call, x: call(x),
        x=IMAGES,
    )


def main() -> None:
    arrays: dict[str, np.ndarray] = {}
    for name, (inputs, theirs) in CASES.items():
        given = {
            key: torch.tensor(x).requires_grad_(np.issubdtype(x.dtype, np.floating))
            for key, x in inputs.items()
        }
        found = theirs(**given)
        outputs = found if isinstance(found, tuple | list) else [found]
        total = sum((torch.tensor(weights(tuple(y.shape))) * y).sum() for y in outputs)
        asked = {key: x for key, x in given.items() if x.requires_grad}
        gradients = torch.autograd.grad(total, list(asked.values()), allow_unused=True)
        for key, x in inputs.items():
            arrays[f"{name}/in/{key}"] = x
        for i, y in enumerate(outputs):
            arrays[f"{name}/out/{i}"] = y.detach().numpy()
        for key, g in zip(asked, gradients, strict=True):
            if g is not None:
                arrays[f"{name}/grad/{key}"] = g.numpy()
    # One array, and text that divides it: a file of many small arrays is mostly headers.
    index = {path: [array.shape, array.dtype.str] for path, array in arrays.items()}
    values = np.concatenate([np.ravel(array).astype(float) for array in arrays.values()])
    np.savez_compressed(FILE, index=json.dumps(index), values=values)


if __name__ == "__main__":
    main()
