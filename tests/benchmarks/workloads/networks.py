"""Neural networks: inference, training steps, recurrent networks, transformers.

The references of training steps are the derivatives of the multi-layer perceptron by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, Problem, workload

SMALL_SIZES, DIGITS_SIZES = (2, 16, 16, 1), (64, 256, 128, 10)
WIDE_SIZES, WIDER_SIZES = (784, 1024, 1024, 1024, 10), (784, 2048, 2048, 2048, 10)
TINY_SIZES = (32, 16, 10)

RATE = 1e-3


# Multi-layer perceptrons.


def initial_layers(sizes: Sequence[int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """He-initialised weights and small biases."""
    return [
        {"w": rng.normal(size=(m, n)) * np.sqrt(2.0 / m), "b": 0.1 * rng.normal(size=n)}
        for m, n in itertools.pairwise(sizes)
    ]


def random_batch(
    sizes: Sequence[int], count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (count, sizes[0]) and int32 labels (count,)."""
    x = rng.uniform(size=(count, sizes[0]))
    return x, rng.integers(0, sizes[-1], size=count).astype(np.int32)


def zeros_like(layers: Any) -> list[dict[str, np.ndarray]]:
    """Zeros of the shapes of all parameters."""
    return [{name: np.zeros_like(leaf) for name, leaf in layer.items()} for layer in layers]


def np_forward(layers: Any, x: Any) -> list[np.ndarray]:
    """The inputs of every layer, and the logits."""
    found = [x]
    for layer in layers[:-1]:
        found.append(np.maximum(found[-1] @ layer["w"] + layer["b"], 0.0))
    found.append(found[-1] @ layers[-1]["w"] + layers[-1]["b"])
    return found


def np_gradients(layers: Any, x: Any, labels: Any) -> tuple[Any, list[dict[str, np.ndarray]]]:
    """Cross-entropy and its gradient in all parameters, derived by hand."""
    *inputs, logits = np_forward(layers, x)
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    rows = np.arange(len(x))
    loss = -np.mean(logs[rows, labels])
    cotangent = np.exp(logs)
    cotangent[rows, labels] -= 1.0
    cotangent /= len(x)
    gradients: list[dict[str, np.ndarray]] = []
    for layer, given in zip(reversed(layers), reversed(inputs), strict=True):
        gradients.insert(0, {"w": given.T @ cotangent, "b": cotangent.sum(axis=0)})
        cotangent = (cotangent @ layer["w"].T) * (given > 0)
    return loss, gradients


def cross_entropy(xp: Any) -> Callable[..., Any]:
    """The mean softmax cross-entropy of a ReLU network."""
    nn, xnp = xp.nn, xp.numpy

    def loss(layers: Any, x: Any, labels: Any) -> Any:
        for layer in layers[:-1]:
            x = nn.relu(x @ layer["w"] + layer["b"])
        logits = x @ layers[-1]["w"] + layers[-1]["b"]
        targets = nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
        return -xnp.mean(xnp.sum(targets * nn.log_softmax(logits), axis=-1))

    return loss


@workload(
    small=(3, TINY_SIZES), normal=(1, WIDE_SIZES), large=(1, WIDER_SIZES), name="mlp-inference-1"
)
@workload(
    small=(3, TINY_SIZES), normal=(32, WIDE_SIZES), large=(32, WIDER_SIZES), name="mlp-inference-32"
)
@workload(
    small=(3, TINY_SIZES),
    normal=(512, WIDE_SIZES),
    large=(2048, WIDER_SIZES),
    name="mlp-inference-512",
)
def mlp_inference(count: int, sizes: Sequence[int]) -> Problem:
    """Inference of a network of {sizes} units, batch {count}."""
    rng = np.random.default_rng(0)
    layers, (x, _) = initial_layers(sizes, rng), random_batch(sizes, count, rng)

    def formula(relu: Callable[[Any], Any]) -> Callable[..., Any]:
        def run(layers: Any, x: Any) -> Any:
            for layer in layers[:-1]:
                x = relu(x @ layer["w"] + layer["b"])
            return x @ layers[-1]["w"] + layers[-1]["b"]

        return run

    def torch_formula(torch: Any) -> Callable[..., Any]:
        def run(layers: Any, x: Any) -> Any:
            for layer in layers[:-1]:
                x = torch.addmm(layer["b"], x, layer["w"]).relu_()
            return torch.addmm(layers[-1]["b"], x, layers[-1]["w"])

        return run

    return Problem(
        (layers, x),
        lambda xp: formula(xp.nn.relu),
        lambda layers, x: np_forward(layers, x)[-1],
        torch=torch_formula,
    )


# Optimisers: each is one update of a parameter, its gradient and its moments.


def momentum(sqrt: Any, p: Any, g: Any, v: Any, count: Any) -> tuple[Any, ...]:
    v = 0.9 * v + g
    return p - 0.01 * v, v


def rmsprop(sqrt: Any, p: Any, g: Any, s: Any, count: Any) -> tuple[Any, ...]:
    s = 0.9 * s + 0.1 * g * g
    return p - RATE * g / (sqrt(s) + 1e-3), s


def rmsprop_momentum(sqrt: Any, p: Any, g: Any, s: Any, v: Any, count: Any) -> tuple[Any, ...]:
    s = 0.9 * s + 0.1 * g * g
    v = 0.9 * v + RATE * g / (sqrt(s) + 1e-3)
    return p - v, s, v


def adam(sqrt: Any, p: Any, g: Any, m: Any, s: Any, count: Any) -> tuple[Any, ...]:
    """Kingma and Ba (2015)."""
    m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
    scale = RATE * sqrt(1 - 0.999**count) / (1 - 0.9**count)
    return p - scale * m / (sqrt(s) + 1e-3), m, s


MOMENTS = {momentum: 1, rmsprop: 1, rmsprop_momentum: 2, adam: 2}
Optimiser = Callable[..., tuple[Any, ...]]


def updated(optimiser: Optimiser, sqrt: Any, state: Any, gradients: Any) -> dict[str, Any]:
    """The state after one step: parameters, moments, and the number of steps."""
    count = state["count"] + 1
    trees = [state["params"], gradients, *state["moments"]]
    found: list[list[dict[str, Any]]] = [[] for _ in range(1 + len(state["moments"]))]
    for layers in zip(*trees, strict=True):
        for tree in found:
            tree.append({})
        for name in layers[0]:
            values = optimiser(sqrt, *(layer[name] for layer in layers), count)
            for tree, value in zip(found, values, strict=True):
                tree[-1][name] = value
    return {"params": found[0], "moments": found[1:], "count": count}


def clipped(sqrt: Any, gradients: Any, largest: float) -> list[dict[str, Any]]:
    """Gradients whose norm, that of all of them together, is at most ``largest``."""
    norm = sqrt(sum((leaf * leaf).sum() for layer in gradients for leaf in layer.values()))
    scale = largest / (0.5 * (norm + largest + abs(norm - largest)))  # every library has abs
    return [{name: scale * leaf for name, leaf in layer.items()} for layer in gradients]


# The same for PyTorch, in place, as `torch.optim` computes them.


def torch_momentum(p: Any, g: Any, v: Any, count: float) -> None:
    p.sub_(v.mul_(0.9).add_(g), alpha=0.01)


def torch_rmsprop(p: Any, g: Any, s: Any, count: float) -> None:
    s.mul_(0.9).addcmul_(g, g, value=0.1)
    p.addcdiv_(g, s.sqrt().add_(1e-3), value=-RATE)


def torch_rmsprop_momentum(p: Any, g: Any, s: Any, v: Any, count: float) -> None:
    s.mul_(0.9).addcmul_(g, g, value=0.1)
    p.sub_(v.mul_(0.9).addcdiv_(g, s.sqrt().add_(1e-3), value=RATE))


def torch_adam(p: Any, g: Any, m: Any, s: Any, count: float) -> None:
    m.mul_(0.9).add_(g, alpha=0.1)
    s.mul_(0.999).addcmul_(g, g, value=0.001)
    scale = RATE * (1 - 0.999**count) ** 0.5 / (1 - 0.9**count)
    p.addcdiv_(m, s.sqrt().add_(1e-3), value=-scale)


IN_PLACE: dict[Optimiser, Callable[..., None]] = {
    momentum: torch_momentum,
    rmsprop: torch_rmsprop,
    rmsprop_momentum: torch_rmsprop_momentum,
    adam: torch_adam,
}


def torch_training(torch: Any, optimiser: Optimiser, largest: float | None) -> Callable[..., Any]:
    """A step that overwrites the state."""
    value_and_grad = torch_gradients(torch)

    def run(state: Any, x: Any, labels: Any) -> Any:
        loss, gradients = value_and_grad(state["params"], x, labels)
        trees = [state["params"], gradients, *state["moments"]]
        each = [
            tuple(layer[k] for layer in row) for row in zip(*trees, strict=True) for k in row[0]
        ]
        if largest is not None:
            norms = [torch.linalg.vector_norm(g) for _, g, *_ in each]
            scale = (largest / torch.linalg.vector_norm(torch.stack(norms))).clamp(max=1.0)
            for _, g, *_ in each:
                g.mul_(scale)
        count = state["count"].add_(1).item()
        for p, g, *moments in each:
            IN_PLACE[optimiser](p, g, *moments, count)
        return state, loss

    return run


def torch_gradients(torch: Any) -> Callable[..., Any]:
    def run(layers: Any, x: Any, labels: Any) -> Any:
        given = [{name: leaf.detach().requires_grad_() for name, leaf in e.items()} for e in layers]
        flat = [leaf for layer in given for leaf in layer.values()]
        with torch.enable_grad():
            for layer in given[:-1]:
                x = torch.relu(torch.addmm(layer["b"], x, layer["w"]))
            logits = torch.addmm(given[-1]["b"], x, given[-1]["w"])
            loss = torch.nn.functional.cross_entropy(logits, labels)
            found = iter(torch.autograd.grad(loss, flat))
        return loss.detach(), [{name: next(found) for name in layer} for layer in given]

    return run


def training(
    sizes: Sequence[int], count: int, optimiser: Optimiser, largest: float | None = None
) -> Problem:
    """A step: state, x, labels -> state, loss. The state is fed back in.

    Args:
        sizes: Units of the layers.
        count: Rows of a batch.
        optimiser: The update of one parameter.
        largest: The norm to which gradients are clipped.
    """
    rng = np.random.default_rng(0)
    layers, data = initial_layers(sizes, rng), random_batch(sizes, count, rng)
    moments = [zeros_like(layers) for _ in range(MOMENTS[optimiser])]
    state = {"params": layers, "moments": moments, "count": np.zeros(())}

    def step(value_and_grad: Any, sqrt: Any) -> Callable[..., Any]:
        def run(state: Any, x: Any, labels: Any) -> Any:
            loss, gradients = value_and_grad(state["params"], x, labels)
            if largest is not None:
                gradients = clipped(sqrt, gradients, largest)
            return updated(optimiser, sqrt, state, gradients), loss

        return run

    return Problem(
        (state, *data),
        lambda xp: step(xp.value_and_grad(cross_entropy(xp)), xp.numpy.sqrt),
        step(np_gradients, np.sqrt),
        torch=lambda torch: torch_training(torch, optimiser, largest),
        feedback=True,
        tolerance=100.0,
        agreeing=0.99,  # rounding decides on which side of its kink an activation is
    )


@workload(small=(32, (2, 8, 3)), normal=(32, (2, 16, 16, 2)), large=(32, (2, 16, 16, 2)))
def small_network(count: int, sizes: Sequence[int]) -> Problem:
    """Training step of a tiny network of {sizes} units, momentum, batch {count}."""
    return training(sizes, count, momentum)


@workload(small=(57, DIGITS_SIZES), normal=(128, DIGITS_SIZES), large=(1024, DIGITS_SIZES))
def digits_step(count: int, sizes: Sequence[int]) -> Problem:
    """Training step of a network of {sizes} units, Adam, batch {count}."""
    return training(sizes, count, adam)


@workload(small=(8, TINY_SIZES), normal=(512, WIDE_SIZES), large=(2048, WIDER_SIZES))
def wide_step(count: int, sizes: Sequence[int]) -> Problem:
    """Training step of a network of {sizes} units, momentum, batch {count}."""
    return training(sizes, count, momentum)


@workload(small=(8, TINY_SIZES), normal=(512, WIDE_SIZES), large=(2048, WIDER_SIZES))
def mlp_adam(count: int, sizes: Sequence[int]) -> Problem:
    """Training step of a network of {sizes} units, Adam, batch {count}."""
    return training(sizes, count, adam)


@workload(small=(8, TINY_SIZES), normal=(128, WIDE_SIZES), large=(2048, WIDER_SIZES))
def mlp_rmsprop(count: int, sizes: Sequence[int]) -> Problem:
    """Training step of a network of {sizes} units, RMSprop, batch {count}."""
    return training(sizes, count, rmsprop)


@workload(small=(8, TINY_SIZES), normal=(512, WIDE_SIZES), large=(2048, WIDER_SIZES))
def mnist_step(count: int, sizes: Sequence[int]) -> Problem:
    """Training step of {sizes} units, clipped, RMSprop with momentum, batch {count}."""
    return training(sizes, count, rmsprop_momentum, largest=1.0)


@workload(small=(4, (5, 6, 3)), normal=(128, (64, 128, 10)), large=(1024, (64, 256, 10)))
def per_example_gradients(count: int, sizes: Sequence[int]) -> Problem:
    """Gradients of a network of {sizes} units for each of {count} examples, by `vmap`."""
    rng = np.random.default_rng(0)
    layers, data = initial_layers(sizes, rng), random_batch(sizes, count, rng)

    def program(xp: Any) -> Callable[..., Any]:
        one = xp.grad(lambda layers, x, label: cross_entropy(xp)(layers, x[None], label[None]))
        return xp.vmap(one, in_axes=(None, 0, 0))

    def reference(layers: Any, x: Any, labels: Any) -> Any:
        found = [np_gradients(layers, x[i : i + 1], labels[i : i + 1])[1] for i in range(count)]
        return [
            {name: np.stack([each[number][name] for each in found]) for name in layer}
            for number, layer in enumerate(layers)
        ]

    def torch_program(torch: Any) -> Callable[..., Any]:
        def loss(layers: Any, x: Any, label: Any) -> Any:
            for layer in layers[:-1]:
                x = torch.relu(x @ layer["w"] + layer["b"])
            logits = x @ layers[-1]["w"] + layers[-1]["b"]
            return torch.nn.functional.cross_entropy(logits, label)

        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    return Problem((layers, *data), program, reference, torch=torch_program, tolerance=10.0)


# A character model: embedding, linear, batch normalisation, tanh, linear, cross-entropy.


def np_character_gradients(p: Any, blocks: Any, following: Any) -> tuple[Any, dict[str, Any]]:
    """Cross-entropy and its gradient in all parameters, derived by hand."""
    rows = len(blocks)
    joined = p["embedding"][blocks].reshape(rows, -1)
    linear = joined @ p["w1"] + p["b1"]
    inverse = 1 / np.sqrt(linear.var(axis=0, ddof=1) + 1e-5)
    normal = (linear - linear.mean(axis=0)) * inverse
    hidden = np.tanh(p["gain"] * normal + p["shift"])
    logits = hidden @ p["w2"] + p["b2"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    g_logits = (np.exp(logs) - np.eye(logits.shape[1])[following]) / rows
    g_scaled = (g_logits @ p["w2"].T) * (1 - hidden**2)
    gain, shift = np.sum(g_scaled * normal, axis=0), np.sum(g_scaled, axis=0)
    g_linear = p["gain"] * inverse * (g_scaled - shift / rows - normal * gain / (rows - 1))
    embedding = np.zeros_like(p["embedding"])
    np.add.at(embedding, blocks, (g_linear @ p["w1"].T).reshape(*blocks.shape, -1))
    return -np.mean(logs[np.arange(rows), following]), {
        "embedding": embedding,
        "w1": joined.T @ g_linear,
        "b1": g_linear.sum(axis=0),
        "gain": gain,
        "shift": shift,
        "w2": hidden.T @ g_logits,
        "b2": g_logits.sum(axis=0),
    }


@workload(
    small=(6, 5, 3, 4, 7),
    normal=(32, 27, 3, 10, 200),
    large=(1024, 64, 8, 64, 1024),
    name="char-step",
)
def character_step(count: int, letters: int, block: int, width: int, units: int) -> Problem:
    """Step of a character model: batch {count}, block {block}, {width} to {units} units."""
    rng = np.random.default_rng(0)
    inputs = block * width
    params = {
        "embedding": rng.normal(size=(letters, width)),
        "w1": rng.normal(size=(inputs, units)) / np.sqrt(inputs),
        "b1": 0.1 * rng.normal(size=units),
        "gain": 1 + 0.1 * rng.normal(size=units),
        "shift": 0.1 * rng.normal(size=units),
        "w2": rng.normal(size=(units, letters)) / np.sqrt(units),
        "b2": 0.1 * rng.normal(size=letters),
    }
    blocks = rng.integers(0, letters, size=(count, block)).astype(np.int32)
    following = rng.integers(0, letters, size=count).astype(np.int32)

    def loss(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(p: Any, blocks: Any, following: Any) -> Any:
            linear = p["embedding"][blocks].reshape(count, inputs) @ p["w1"] + p["b1"]
            mean, variance = xnp.mean(linear, axis=0), xnp.var(linear, axis=0, ddof=1)
            normal = (linear - mean) / xnp.sqrt(variance + 1e-5)
            hidden = xnp.tanh(p["gain"] * normal + p["shift"])
            logs = xp.nn.log_softmax(hidden @ p["w2"] + p["b2"])
            return -xnp.mean(xnp.take_along_axis(logs, following[:, None], axis=1))

        return run

    def torch_gradients(torch: Any) -> Callable[..., Any]:
        def run(p: Any, blocks: Any, following: Any) -> Any:
            p = {name: leaf.detach().requires_grad_() for name, leaf in p.items()}
            with torch.enable_grad():
                joined = p["embedding"][blocks.long()].reshape(count, inputs)
                linear = torch.addmm(p["b1"], joined, p["w1"])
                mean, variance = linear.mean(0), linear.var(0, correction=1)
                normal = (linear - mean) / torch.sqrt(variance + 1e-5)
                hidden = torch.tanh(p["gain"] * normal + p["shift"])
                logits = torch.addmm(p["b2"], hidden, p["w2"])
                loss = torch.nn.functional.cross_entropy(logits, following)
                found = torch.autograd.grad(loss, list(p.values()))
            return loss.detach(), dict(zip(p, found, strict=True))

        return run

    def step(value_and_grad: Callable[..., Any]) -> Callable[..., Any]:
        def run(params: Any, blocks: Any, following: Any) -> Any:
            loss, gradients = value_and_grad(params, blocks, following)
            return {name: leaf - 0.1 * gradients[name] for name, leaf in params.items()}, loss

        return run

    def torch_step(torch: Any) -> Callable[..., Any]:
        value_and_grad = torch_gradients(torch)

        def run(params: Any, blocks: Any, following: Any) -> Any:
            loss, gradients = value_and_grad(params, blocks, following)
            for name, leaf in params.items():
                leaf.sub_(gradients[name], alpha=0.1)
            return params, loss

        return run

    return Problem(
        (params, blocks, following),
        lambda xp: step(xp.value_and_grad(loss(xp))),
        step(np_character_gradients),
        torch=torch_step,
        feedback=True,
        tolerance=100.0,
    )


# Recurrent networks.


def matrices(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Random matrices whose products keep the magnitude of what they multiply."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes]


@workload(small=(3, 2, 8), normal=(100, 32, 128), large=(300, 64, 256), rows=BOTH)
def recurrence(steps: int, count: int, units: int) -> Problem:
    """Recurrent network: {steps} steps, batch {count}, {units} units, tanh, by `scan`."""
    w, u = matrices((units, units), (units, units))
    parameters = {"w": w, "u": u, "b": np.zeros(units)}
    xs = np.random.default_rng(1).normal(size=(steps, count, units))

    def program(xp: Any) -> Callable[..., Any]:
        def run(parameters: Any, xs: Any, h: Any) -> Any:
            def step(h: Any, x: Any) -> Any:
                w, u, b = parameters["w"], parameters["u"], parameters["b"]
                h = xp.numpy.tanh(h @ w + x @ u + b)
                return h, h

            return xp.lax.scan(step, h, xs)[1]

        return run

    def loop(tanh: Any, stack: Any) -> Callable[..., Any]:
        def run(parameters: Any, xs: Any, h: Any) -> Any:
            found = []
            for x in xs:
                h = tanh(h @ parameters["w"] + x @ parameters["u"] + parameters["b"])
                found.append(h)
            return stack(found)

        return run

    return Problem(
        (parameters, xs, np.zeros((count, units))),
        program,
        loop(np.tanh, np.stack),
        torch=lambda torch: loop(torch.tanh, torch.stack),
        tolerance=10.0,
    )


@workload(small=(3, 2, 4), normal=(60, 32, 128), large=(200, 64, 256), rows=BOTH)
def lstm(steps: int, count: int, units: int) -> Problem:
    """LSTM: {steps} steps, batch {count}, {units} units, by `scan`."""
    w, u = matrices((units, 4 * units), (units, 4 * units))
    parameters = {"w": w, "u": u, "b": np.zeros(4 * units)}
    xs = np.random.default_rng(1).normal(size=(steps, count, units))

    def cell(tanh: Any, sigmoid: Any, parameters: Any, h: Any, c: Any, x: Any) -> tuple[Any, Any]:
        gates = h @ parameters["w"] + x @ parameters["u"] + parameters["b"]
        i, f, o, g = (gates[:, n * units : (n + 1) * units] for n in range(4))
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c

    def program(xp: Any) -> Callable[..., Any]:
        def run(parameters: Any, xs: Any, h: Any) -> Any:
            def step(carry: Any, x: Any) -> Any:
                h, c = carry
                return cell(xp.numpy.tanh, xp.nn.sigmoid, parameters, h, c, x), None

            return xp.lax.scan(step, (h, h), xs)[0][0]

        return run

    def loop(tanh: Any, sigmoid: Any) -> Callable[..., Any]:
        def run(parameters: Any, xs: Any, h: Any) -> Any:
            c = h
            for x in xs:
                h, c = cell(tanh, sigmoid, parameters, h, c, x)
            return h

        return run

    def np_sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    return Problem(
        (parameters, xs, np.zeros((count, units))),
        program,
        loop(np.tanh, np_sigmoid),
        torch=lambda torch: loop(torch.tanh, torch.sigmoid),
        tolerance=10.0,
    )


# Transformers.


@workload(small=(2, 4, 8, 2), normal=(8, 128, 256, 8), large=(16, 512, 512, 8), rows=BOTH)
def transformer_block(count: int, length: int, width: int, heads: int) -> Problem:
    """Transformer block: batch {count}, {length} tokens, width {width}, {heads} heads."""
    names = ("query", "key", "value", "out", "up", "down")
    shapes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]
    parameters = dict(zip(names, matrices(*shapes), strict=True))
    parameters["gain"] = np.ones((2, width))
    parameters["bias"] = np.zeros((2, width))
    x = np.random.default_rng(1).normal(size=(count, length, width))

    def block(softmax: Any, norm: Any, gelu: Any) -> Callable[..., Any]:
        def split(y: Any) -> Any:
            return y.reshape(count, length, heads, width // heads).swapaxes(1, 2)

        def run(p: Any, x: Any) -> Any:
            y = norm(x, p["gain"][0], p["bias"][0])
            q, k, v = (split(y @ p[name]) for name in ("query", "key", "value"))
            weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(width // heads).item())
            x = x + (weights @ v).swapaxes(1, 2).reshape(count, length, width) @ p["out"]
            y = norm(x, p["gain"][1], p["bias"][1])
            return x + gelu(y @ p["up"]) @ p["down"]

        return run

    def program(xp: Any) -> Callable[..., Any]:
        return block(xp.nn.softmax, layer_norm(xp.numpy), xp.nn.gelu)

    def torch_program(torch: Any) -> Callable[..., Any]:
        functional = torch.nn.functional
        return block(
            lambda x: torch.softmax(x, -1),
            lambda x, gain, bias: torch.layer_norm(x, (width,), gain, bias, 1e-5),
            lambda x: functional.gelu(x, approximate="tanh"),
        )

    return Problem(
        (parameters, x),
        program,
        block(np_softmax, layer_norm(np), np_gelu),
        torch=torch_program,
        tolerance=10.0,
    )


def layer_norm(xnp: Any) -> Callable[..., Any]:
    def norm(x: Any, gain: Any, bias: Any) -> Any:
        centred = x - xnp.mean(x, axis=-1, keepdims=True)
        variance = xnp.mean(centred * centred, axis=-1, keepdims=True)
        return gain * centred / xnp.sqrt(variance + 1e-5) + bias

    return norm


def np_softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def np_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@workload(small=(2, 5, 4), normal=(16, 256, 32), large=(32, 1024, 64), rows=BOTH)
def causal_attention(heads: int, length: int, width: int) -> Problem:
    """Causal attention: {heads} heads, {length} tokens, width {width}."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(heads, length, width)) for _ in range(3))

    def formula(xnp: Any, softmax: Any) -> Callable[..., Any]:
        def run(q: Any, k: Any, v: Any) -> Any:
            scores = q @ k.swapaxes(-1, -2) / np.sqrt(width).item()
            mask = xnp.tril(xnp.ones((length, length))) > 0
            return softmax(xnp.where(mask, scores, -1e9)) @ v

        return run

    def torch_formula(torch: Any) -> Callable[..., Any]:
        attention = torch.nn.functional.scaled_dot_product_attention
        return lambda q, k, v: attention(q, k, v, is_causal=True)

    return Problem(
        (q, k, v),
        lambda xp: formula(xp.numpy, xp.nn.softmax),
        formula(np, np_softmax),
        argnums=(0, 1, 2),
        torch=torch_formula,
        tolerance=10.0,
    )
