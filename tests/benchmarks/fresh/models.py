"""Networks: small batches, gates, masks, graphs, variational codes, convolutions, ensembles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, GRADIENT, Problem, workload


def weights(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Normal numbers that keep the magnitude of what they multiply."""
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes)


def sigmoid(xnp: Any, x: Any) -> Any:
    return 1.0 / (1.0 + xnp.exp(-x))


def normalized(xnp: Any, x: Any, gain: Any) -> Any:
    """Layer normalization without a bias."""
    centred = x - xnp.mean(x, -1)[..., None]
    return gain * centred / xnp.sqrt(xnp.mean(centred * centred, -1)[..., None] + 1e-5)


@workload(
    small=(2, (4, 5, 6, 3)),
    normal=(16, (64, 128, 128, 10)),
    large=(16, (512, 1024, 1024, 10)),
    rows=FORWARD,
)
def small_batch_inference(count: int, sizes: Sequence[int]) -> Problem:
    """Inference of three layers {sizes}, SiLU, batch {count}."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
            x = x @ w1 + b1
            x = x * sigmoid(xnp, x) @ w2 + b2
            return x * sigmoid(xnp, x) @ w3 + b3

        return run

    shapes = [shape for i in range(3) for shape in ((sizes[i], sizes[i + 1]), (sizes[i + 1],))]
    arguments = weights((count, sizes[0]), *shapes)
    return Problem(
        arguments, lambda xp: formula(xp.numpy), formula(np), as_written=("torch",), tolerance=10.0
    )


@workload(small=(3, 2, 4), normal=(40, 8, 32), large=(100, 64, 256), rows=BOTH)
def gru(steps: int, count: int, units: int) -> Problem:
    """Gated recurrent units: {steps} steps, batch {count}, {units} units, by `scan`."""

    def step(xnp: Any, u: Any, w: Any, h: Any, x: Any) -> Any:
        xs, hs = x @ u, h @ w
        reset = sigmoid(xnp, xs[:, :units] + hs[:, :units])
        update = sigmoid(xnp, xs[:, units : 2 * units] + hs[:, units : 2 * units])
        new = xnp.tanh(xs[:, 2 * units :] + reset * hs[:, 2 * units :])
        return (1.0 - update) * new + update * h

    def program(xp: Any) -> Callable[..., Any]:
        def run(u: Any, w: Any, x: Any) -> Any:
            def body(h: Any, x: Any) -> Any:
                return step(xp.numpy, u, w, h, x), None

            return xp.lax.scan(body, xp.numpy.zeros_like(x[0]), x)[0]

        return run

    def loop(xnp: Any) -> Callable[..., Any]:
        def run(u: Any, w: Any, x: Any) -> Any:
            h = xnp.zeros_like(x[0])
            for row in x:
                h = step(xnp, u, w, h, row)
            return h

        return run

    u, w = weights((units, 3 * units), (units, 3 * units))
    x = np.random.default_rng(1).normal(size=(steps, count, units))
    return Problem((u, w, x), program, loop(np), argnums=(0, 1, 2), torch=loop, tolerance=30.0)


@workload(small=(2, 2, 5, 3), normal=(8, 4, 64, 16), large=(32, 8, 512, 64), rows=BOTH)
def masked_attention(count: int, heads: int, length: int, width: int) -> Problem:
    """Attention over sequences of several lengths: {count} x {heads} heads, {length} x {width}."""

    def formula(xnp: Any, softmax: Any) -> Callable[..., Any]:
        def run(q: Any, k: Any, v: Any, lengths: Any, places: Any) -> Any:
            scores = xnp.einsum("bhqd,bhkd->bhqk", q, k) / width**0.5
            seen = places[None, None, None, :] < lengths[:, None, None, None]
            chances = softmax(xnp.where(seen, scores, -1e9))
            return xnp.einsum("bhqk,bhkd->bhqd", chances, v)

        return run

    def np_softmax(x: Any) -> Any:
        x = np.exp(x - np.max(x, -1)[..., None])
        return x / np.sum(x, -1)[..., None]

    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(count, heads, length, width)) for _ in range(3))
    lengths = rng.integers(1, length + 1, count).astype(np.int32)
    return Problem(
        (q, k, v, lengths, np.arange(length, dtype=np.int32)),
        lambda xp: formula(xp.numpy, xp.nn.softmax),
        formula(np, np_softmax),
        argnums=(0, 1, 2),
        torch=lambda torch: formula(torch, lambda x: torch.softmax(x, -1)),
        tolerance=10.0,
    )


@workload(small=(6, 14, 3), normal=(1000, 6000, 16), large=(20_000, 200_000, 64), rows=GRADIENT)
def graph_network(nodes: int, edges: int, width: int) -> Problem:
    """Two rounds of messages between {nodes} nodes by {edges} edges, width {width}."""

    def formula(xnp: Any, segment_sum: Any) -> Callable[..., Any]:
        def run(w1: Any, w2: Any, w3: Any, x: Any, senders: Any, receivers: Any) -> Any:
            for _ in range(2):
                pair = x[senders] @ w1 + x[receivers] @ w2
                messages = xnp.where(pair > 0.0, pair, 0.1 * pair)
                x = xnp.tanh(x + segment_sum(messages, receivers) @ w3)
            return x

        return run

    def np_sum(messages: Any, receivers: Any) -> Any:
        sums = np.zeros((nodes, width))
        np.add.at(sums, receivers, messages)
        return sums

    def program(xp: Any) -> Callable[..., Any]:
        def sums(messages: Any, receivers: Any) -> Any:
            return xp.ops.segment_sum(messages, receivers, num_segments=nodes)

        return formula(xp.numpy, sums)

    def torch_program(torch: Any) -> Callable[..., Any]:
        def sums(messages: Any, receivers: Any) -> Any:
            zeros = torch.zeros(nodes, width, dtype=messages.dtype)
            return zeros.index_add(0, receivers, messages)

        return formula(torch, sums)

    rng = np.random.default_rng(1)
    ends = [rng.integers(0, nodes, edges).astype(np.int32) for _ in range(2)]
    matrices = weights((width, width), (width, width), (width, width))
    return Problem(
        (*matrices, rng.normal(size=(nodes, width)), *ends),
        program,
        formula(np, np_sum),
        argnums=(0, 1, 2),
        torch=torch_program,
        tolerance=30.0,
    )


@workload(small=(3, 4, 2), normal=(64, 96, 4), large=(256, 512, 8), rows=BOTH)
def residual_layers(count: int, width: int, layers: int) -> Problem:
    """{layers} residual layers of width {width} with layer normalization, batch {count}."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(gains: Any, w1: Any, w2: Any, x: Any) -> Any:
            for i in range(layers):
                hidden = normalized(xnp, x, gains[i]) @ w1[i]
                x = x + hidden * sigmoid(xnp, 1.702 * hidden) @ w2[i]
            return xnp.mean(x * x)

        return run

    rng = np.random.default_rng(0)
    shape = (layers, width, width)
    return Problem(
        (
            1.0 + 0.1 * rng.normal(size=(layers, width)),
            rng.normal(size=shape) / width**0.5,
            rng.normal(size=shape) / width**0.5,
            rng.normal(size=(count, width)),
        ),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1, 2, 3),
        as_written=("torch",),
        tolerance=10.0,
    )


@workload(
    small=(3, 6, 5, 2),
    normal=(64, 200, 100, 8),
    large=(256, 784, 400, 20),
    rows=GRADIENT,
)
def variational_autoencoder(count: int, inputs: int, units: int, codes: int) -> Problem:
    """Evidence bound of a variational autoencoder {inputs}-{units}-{codes}, batch {count}."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(w1: Any, w2: Any, w3: Any, w4: Any, x: Any, noise: Any) -> Any:
            both = xnp.tanh(x @ w1) @ w2
            mean, logs = both[:, :codes], both[:, codes:]
            code = mean + xnp.exp(0.5 * logs) * noise
            logits = xnp.tanh(code @ w3) @ w4
            positive = xnp.where(logits > 0.0, logits, 0.0)
            entropy = positive - x * logits + xnp.log1p(xnp.exp(-xnp.abs(logits)))
            divergence = 0.5 * (xnp.exp(logs) + mean * mean - 1.0 - logs)
            return (xnp.sum(entropy) + xnp.sum(divergence)) / count

        return run

    rng = np.random.default_rng(1)
    return Problem(
        (
            *weights((inputs, units), (units, 2 * codes), (codes, units), (units, inputs)),
            rng.uniform(size=(count, inputs)),
            rng.normal(size=(count, codes)),
        ),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1, 2, 3),
        as_written=("torch",),
        tolerance=10.0,
    )


@workload(
    small=(2, 6, (1, 2, 3)),
    normal=(8, 16, (3, 8, 16)),
    large=(64, 64, (3, 32, 64)),
    rows=GRADIENT,
)
def convolution_stack(count: int, pixels: int, channels: Sequence[int]) -> Problem:
    """Convolutions 3 x 3 with stride two, channels {channels}: {count} images of {pixels}^2."""

    def formula(xnp: Any, convolve: Any) -> Callable[..., Any]:
        def run(kernels: Any, x: Any) -> Any:
            for kernel in kernels:
                x = xnp.tanh(convolve(x, kernel))  # each halves the image
            return xnp.mean(x, (2, 3))

        return run

    def np_convolve(x: Any, kernel: Any) -> Any:
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
        return np.einsum("nihwkl,oikl->nohw", windows, kernel, optimize=True)

    def program(xp: Any) -> Callable[..., Any]:
        def convolve(x: Any, kernel: Any) -> Any:
            return xp.lax.conv_general_dilated(x, kernel, (2, 2), ((1, 1), (1, 1)))

        return formula(xp.numpy, convolve)

    def torch_program(torch: Any) -> Callable[..., Any]:
        return formula(torch, lambda x, k: torch.conv2d(x, k, stride=2, padding=1))

    rng = np.random.default_rng(0)
    kernels = [
        rng.normal(size=(after, before, 3, 3)) / (9.0 * before) ** 0.5
        for before, after in pairwise(channels)
    ]
    x = rng.normal(size=(count, channels[0], pixels, pixels))
    return Problem(
        (kernels, x), program, formula(np, np_convolve), torch=torch_program, tolerance=10
    )


@workload(small=(3, 4, 3, 5), normal=(50, 32, 4, 16), large=(500, 128, 16, 64), rows=FORWARD)
def ensemble_gradients(members: int, count: int, inputs: int, units: int) -> Problem:
    """Gradients of {members} networks {inputs}-{units}-1, batch {count}: `vmap` of `grad`."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(w1: Any, w2: Any, x: Any, y: Any) -> Any:
            errors = xnp.tanh(x @ w1) @ w2 - y
            return xnp.mean(errors * errors, -1)

        return run

    def program(xp: Any) -> Callable[..., Any]:
        return xp.vmap(xp.grad(formula(xp.numpy), (0, 1)), (0, 0, None, None))

    def reference(w1: Any, w2: Any, x: Any, y: Any) -> Any:
        errors = (np.tanh(x @ w1) @ w2[:, :, None])[:, :, 0] - y
        return np.mean(errors * errors, -1)

    rng = np.random.default_rng(0)
    return Problem(
        (
            rng.normal(size=(members, inputs, units)) / inputs**0.5,
            rng.normal(size=(members, units)) / units**0.5,
            rng.normal(size=(count, inputs)),
            rng.normal(size=count),
        ),
        program,
        reference,
        argnums=(0, 1),
        is_gradient=True,
        torch=lambda torch: torch.func.vmap(
            torch.func.grad(formula(torch), (0, 1)), (0, 0, None, None)
        ),
        tolerance=10.0,
    )
