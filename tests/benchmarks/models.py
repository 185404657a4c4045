"""The programs of the benchmarks, written once for every library.

``digits_step``: the step of ``examples/train_digits.py``, MLP 64-256-128-10 with Adam.
``wide_step``: MLP 784-1024-1024-1024-10 with SGD and momentum, bound by matrix products.
``lotka_volterra``: many steps of very little arithmetic.
``recurrent_network``: steps that are matrix products.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from libraries import Library

Step = Callable[[Any, Any, Any], tuple[Any, Any]]

DIGITS_SIZES = (64, 256, 128, 10)
WIDE_SIZES = (784, 1024, 1024, 1024, 10)
RECURRENT_SIZES = (100, 32, 128)
"""Steps, batch, units."""
ORBIT = (np.array([1.0, 1.0]), np.array([1.5, 1.0, 3.0, 1.0]))
"""Initial populations, and rates."""


def initial_layers(sizes: Sequence[int], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """He-initialised float32 weights and zero biases, as NumPy arrays."""
    return [
        {
            "w": (rng.normal(size=(m, n)) * np.sqrt(2.0 / m)).astype(np.float32),
            "b": np.zeros(n, np.float32),
        }
        for m, n in itertools.pairwise(sizes)
    ]


def batch(sizes: Sequence[int], count: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Random float32 inputs (count, sizes[0]) and int32 labels (count,)."""
    x = rng.uniform(size=(count, sizes[0])).astype(np.float32)
    return x, rng.integers(0, sizes[-1], size=count).astype(np.int32)


def adam_state(sizes: Sequence[int], rng: np.random.Generator) -> dict[str, Any]:
    """Parameters, both moments and the step count of Adam."""
    params = initial_layers(sizes, rng)
    zeros = [{name: np.zeros_like(leaf) for name, leaf in layer.items()} for layer in params]
    again = [{name: np.zeros_like(leaf) for name, leaf in layer.items()} for layer in params]
    return {"params": params, "mean": zeros, "square": again, "count": np.zeros((), np.float32)}


def momentum_state(sizes: Sequence[int], rng: np.random.Generator) -> dict[str, Any]:
    """Parameters and their velocity."""
    params = initial_layers(sizes, rng)
    zeros = [{name: np.zeros_like(leaf) for name, leaf in layer.items()} for layer in params]
    return {"params": params, "velocity": zeros}


def cross_entropy(library: Library) -> Callable[[Any, Any, Any], Any]:
    """The mean softmax cross-entropy of a ReLU MLP, in the names of one library."""
    nn, xnp = library.root.nn, library.numpy

    def loss(params: Any, x: Any, labels: Any) -> Any:
        for layer in params[:-1]:
            x = nn.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        targets = nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
        return -xnp.mean(xnp.sum(targets * nn.log_softmax(logits), axis=-1))

    return loss


def digits_step(library: Library, rate: float = 1e-3) -> Step:
    """One un-jitted Adam step (Kingma and Ba, 2015): state, x, labels -> state, loss."""
    map_leaves, sqrt = library.root.tree.map, library.numpy.sqrt
    value_and_grad = library.root.value_and_grad(cross_entropy(library))

    def step(state: Any, x: Any, labels: Any) -> tuple[Any, Any]:
        loss, grads = value_and_grad(state["params"], x, labels)
        count = state["count"] + 1
        mean = map_leaves(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
        square = map_leaves(lambda s, g: 0.999 * s + 0.001 * g * g, state["square"], grads)
        scale = rate * sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = map_leaves(
            lambda p, m, s: p - scale * m / (sqrt(s) + 1e-8), state["params"], mean, square
        )
        return {"params": params, "mean": mean, "square": square, "count": count}, loss

    return step


def wide_step(library: Library, rate: float = 0.01) -> Step:
    """One un-jitted step of SGD with momentum 0.9: state, x, labels -> state, loss."""
    map_leaves = library.root.tree.map
    value_and_grad = library.root.value_and_grad(cross_entropy(library))

    def step(state: Any, x: Any, labels: Any) -> tuple[Any, Any]:
        loss, grads = value_and_grad(state["params"], x, labels)
        velocity = map_leaves(lambda v, g: 0.9 * v + g, state["velocity"], grads)
        params = map_leaves(lambda p, v: p - rate * v, state["params"], velocity)
        return {"params": params, "velocity": velocity}, loss

    return step


class Training:
    """A jitted step with its state fed back in: call it to take one step on a fixed batch."""

    def __init__(self, library: Library, step: Step, state: Any, data: tuple[Any, Any]) -> None:
        self.library = library
        self.step = library.root.jit(step, donate_argnums=(0,))
        self.state = library.own(state)
        self.x, self.labels = (library.to_own_array(array) for array in data)
        self.loss: Any = None

    def __call__(self) -> None:
        """Take one step; for JAX the work may still be in flight afterwards."""
        self.state, self.loss = self.step(self.state, self.x, self.labels)

    def wait(self) -> None:
        """Wait until the state is computed."""
        self.library.wait((self.state, self.loss))


def digits_training(library: Library, count: int = 128) -> Training:
    """The digits step on one random batch of ``count`` images, float32."""
    rng = np.random.default_rng(0)
    state, data = adam_state(DIGITS_SIZES, rng), batch(DIGITS_SIZES, count, rng)
    return Training(library, digits_step(library), state, data)


def wide_training(
    library: Library, count: int = 512, sizes: Sequence[int] = WIDE_SIZES
) -> Training:
    """The wide step on one random batch of ``count`` rows, float32."""
    rng = np.random.default_rng(0)
    state, data = momentum_state(sizes, rng), batch(sizes, count, rng)
    return Training(library, wide_step(library), state, data)


def lotka_volterra(library: Library, steps: int) -> Callable[[Any, Any], Any]:
    """Sum of both populations after so many steps of the classical Runge-Kutta method."""
    xnp, scan = library.numpy, library.root.lax.scan
    h = 0.01

    def slope(y: Any, p: Any) -> Any:
        return xnp.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])

    def step(y: Any, p: Any) -> Any:
        k1 = slope(y, p)
        k2 = slope(y + h / 2 * k1, p)
        k3 = slope(y + h / 2 * k2, p)
        k4 = slope(y + h * k3, p)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def run(y: Any, p: Any) -> Any:
        return scan(lambda y, _: (step(y, p), None), y, None, length=steps)[0].sum()

    return run


def recurrent_network(library: Library) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Hidden states of an Elman network, and their mean square."""
    xnp, scan = library.numpy, library.root.lax.scan

    def forward(params: Any, xs: Any, h: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = xnp.tanh(h @ params["w"] + x @ params["u"] + params["b"])
            return h, h

        return scan(step, h, xs)[1]

    def loss(params: Any, xs: Any, h: Any) -> Any:
        return xnp.mean(forward(params, xs, h) ** 2)

    return forward, loss


def recurrent_arguments(steps: int, count: int, units: int) -> tuple[Any, Any, Any]:
    """Parameters, a random sequence (steps, count, units), and a zero state, float32."""
    rng = np.random.default_rng(0)
    matrix = [rng.normal(size=(units, units)) / np.sqrt(units) for _ in range(2)]
    w, u = (m.astype(np.float32) for m in matrix)
    params = {"w": w, "u": u, "b": np.zeros(units, np.float32)}
    xs = rng.normal(size=(steps, count, units)).astype(np.float32)
    return params, xs, np.zeros((count, units), np.float32)
