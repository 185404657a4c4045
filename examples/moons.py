"""A small network tells two interleaved half moons apart, with its decision boundary.

A 2-16-16-1 network of tanh units learns scikit-learn's two moons. The whole training, one thousand
steps of gradient descent with momentum over all points, is one compiled loop. Run it with

    python examples/moons.py

It prints the accuracy on new points and writes `moons.png`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

import funcgrad as fg
import funcgrad.numpy as fnp
import program

SIZES = (2, 16, 16, 1)
MOMENTUM = 0.9
TEST_FRACTION = 0.3

Params = list[dict[str, Any]]


# The model.


def init_params(key: Any) -> Params:
    """Weights with variance 1 / fan-in and zero biases."""
    keys = fg.random.split(key, len(SIZES) - 1)
    return [
        {"w": fg.random.normal(layer_key, (m, n)) / m**0.5, "b": fnp.zeros(n)}
        for layer_key, m, n in zip(keys, SIZES[:-1], SIZES[1:], strict=True)
    ]


def predict(params: Params, x: Any) -> Any:
    """The log odds (points,) that points (points, 2) belong to the second moon."""
    *hidden, last = params
    for layer in hidden:
        x = np.tanh(x @ layer["w"] + layer["b"])
    return (x @ last["w"] + last["b"])[:, 0]


def loss_fn(params: Params, x: Any, labels: Any) -> Any:
    """Mean cross-entropy: log(1 + exp(-z)) where the label is 1, log(1 + exp(z)) where it is 0."""
    logits = predict(params, x)
    return np.mean(np.logaddexp(0.0, np.where(labels == 1, -logits, logits)))


def accuracy(params: Params, x: np.ndarray, labels: np.ndarray) -> float:
    """Fraction of points on the right side of the boundary."""
    return float(np.mean((predict(params, x) > 0) == (labels == 1)))


# Training.


def make_training(steps: int, rate: float) -> Callable[..., tuple[Params, np.ndarray]]:
    """The compiled loop `(params, x, labels) -> (params, loss of every step)`."""

    def train(params: Params, x: Any, labels: Any) -> tuple[Params, np.ndarray]:
        def step(state: tuple[Params, Params], _: None) -> tuple[tuple[Params, Params], Any]:
            params, velocity = state
            loss, slopes = fg.value_and_grad(loss_fn)(params, x, labels)
            velocity = fg.tree.map(lambda v, g: MOMENTUM * v - rate * g, velocity, slopes)
            return (fg.tree.map(np.add, params, velocity), velocity), loss

        start = (params, fg.tree.map(np.zeros_like, params))
        (params, _), losses = fg.lax.scan(step, start, None, length=steps)
        return params, losses

    return fg.jit(train)


# The picture.


def plot(
    params: Params, points: np.ndarray, labels: np.ndarray, losses: np.ndarray, path: Path
) -> None:
    """Draw the loss, and the boundary between the moons with the probability on either side."""
    figure, ((left, right),) = program.panels(1, 2, 10, 4, width_ratios=(2, 3))
    right.grid(False)
    left.semilogy(losses, color="tab:red")
    left.set(title="training loss", xlabel="step", ylabel="cross-entropy")
    low, high = points.min(axis=0) - 0.4, points.max(axis=0) + 0.4
    x, y = np.meshgrid(np.linspace(low[0], high[0], 241), np.linspace(low[1], high[1], 161))
    logits = predict(params, np.stack([x.ravel(), y.ravel()], axis=1)).reshape(x.shape)
    probability = 0.5 * (1 + np.tanh(logits / 2))
    mesh = right.pcolormesh(x, y, probability, cmap="coolwarm", vmin=0, vmax=1, alpha=0.8)
    right.contour(x, y, logits, levels=[0.0], colors="black")
    colors = np.where(labels == 1, "tab:red", "tab:blue")
    right.scatter(*points.T, c=colors, s=14, edgecolors="white", linewidths=0.4)
    right.set(title="unseen points and the boundary", aspect="equal")
    right.set(xlabel="first coordinate", ylabel="second coordinate")
    figure.colorbar(mesh, ax=right, label="probability of the second moon")
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Tell two moons apart.",
    "moons.png",
    steps=(1, 1000),
    points=(10, 1000),
    noise=(program.not_negative, 0.1),
    lr=0.1,
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> tuple[float, np.ndarray]:
    """Train and draw; the accuracy on unseen points, and the loss of every step."""
    points, labels = make_moons(args.points, noise=args.noise, random_state=args.seed)
    train_x, test_x, train_y, test_y = train_test_split(
        points, labels, test_size=TEST_FRACTION, random_state=args.seed
    )
    start = time.perf_counter()
    training = make_training(args.steps, args.lr)
    params, losses = training(init_params(fg.random.key(args.seed)), train_x, train_y)
    print(f"{args.steps} steps in {time.perf_counter() - start:.2f} s, compilation included")
    found = accuracy(params, test_x, test_y)
    print(f"loss {losses[-1]:.4f}, accuracy on {len(test_x)} unseen points {found:.2%}")
    plot(params, test_x, test_y, losses, args.output)
    return found, losses


if __name__ == "__main__":
    run(parse_arguments())
