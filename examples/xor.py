"""Exclusive or, as it is taught: one line cannot do it, a hidden layer can.

    0 xor 0 = 0,  0 xor 1 = 1,  1 xor 0 = 1,  1 xor 1 = 0

A perceptron divides the plane by one line, and no line has the two ones on one side and the two
zeros on the other: its best line is wrong about one input. Networks 2-4-1 (17 parameters) and
2-4-4-1 (37), with tanh units and a sigmoid at the end, learn it by gradient descent from one
example at a time. The first network is written twice: without any library, from numbers, lists and
`sum`, and with arrays. Both are differentiated and compiled without changes. Run it with

    python examples/xor.py

It prints the output of every model for each input, and writes `xor.png`.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program

INPUTS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TARGETS = np.array([0.0, 1.0, 1.0, 0.0])


# A perceptron.


def train_perceptron(epochs: int, rate: float, seed: int) -> tuple[np.ndarray, int]:
    """Rosenblatt's rule: add an example that is missed, subtract one that is wrongly found.

    Returns:
        The weights (two slopes and a bias) that were right most often, and how often.
    """
    rng = np.random.default_rng(seed)
    weights, best, most = rng.normal(size=3), np.zeros(3), 0
    for i in rng.integers(0, len(INPUTS), epochs * len(INPUTS)):
        right = int(np.sum(fires(weights, INPUTS) == TARGETS))
        if right > most:
            best, most = weights, right
        wrong_by = TARGETS[i] - fires(weights, INPUTS[i])
        weights = weights + rate * wrong_by * np.append(INPUTS[i], 1.0)
    return best, most


def fires(weights: np.ndarray, x: np.ndarray) -> Any:
    """1 on one side of the line, 0 on the other."""
    return 1.0 * (x @ weights[:2] + weights[2] > 0)


# A network of numbers: a unit is a list of weights, of which the last one is its bias.


def initial_units(sizes: tuple[int, ...], seed: int) -> list[Any]:
    """A list of layers, each a list of units, each a list of weights between -1 and 1."""
    rng = random.Random(seed)
    return [
        [[rng.uniform(-1, 1) for _ in range(m + 1)] for _ in range(n)]
        for m, n in itertools.pairwise(sizes)
    ]


def predict_numbers(layers: list[Any], x: list[Any]) -> Any:
    """The network's output for one pair of inputs."""
    for units in layers:
        sums = [sum((w * v for w, v in zip(unit, x, strict=False)), unit[-1]) for unit in units]
        x = [np.tanh(s) for s in sums]
    return 1 / (1 + np.exp(-sums[0]))


# The same in arrays.


def as_arrays(layers: list[Any]) -> list[Any]:
    """A matrix (units, inputs + 1) for each layer."""
    return [np.array(units) for units in layers]


def predict_arrays(layers: list[Any], x: Any) -> Any:
    """The network's outputs (...) for inputs (..., 2)."""
    for weights in layers:
        sums = x @ weights[:, :-1].T + weights[:, -1]
        x = np.tanh(sums)
    return 1 / (1 + np.exp(-sums[..., 0]))


# Training.


def train(
    predict: Callable[..., Any], params: Any, epochs: int, rate: float
) -> tuple[Any, np.ndarray]:
    """One example at a time, as one compiled loop; the parameters, and the mean loss of epochs."""

    def loss(params: Any, x: Any, target: Any) -> Any:
        return (predict(params, x) - target) ** 2

    def step(params: Any, example: Any) -> tuple[Any, Any]:
        value, slopes = fg.value_and_grad(loss)(params, *example)
        return fg.tree.map(lambda p, slope: p - rate * slope, params, slopes), value

    def epoch(params: Any, _: None) -> tuple[Any, Any]:
        params, values = fg.lax.scan(step, params, (INPUTS, TARGETS))
        return params, np.mean(values)

    return fg.jit(lambda params: fg.lax.scan(epoch, params, length=epochs))(params)


# The picture.


def plot(line: np.ndarray, trained: Any, losses: dict[str, np.ndarray], path: Path) -> None:
    """Draw the perceptron's line, the losses, and the output of the network over the plane."""
    figure, ((left, middle, right),) = program.panels(1, 3, 13, 3.9)
    ends = np.linspace(-0.5, 1.5, 201)
    x, y = np.meshgrid(ends, ends)
    points = np.stack([x, y], axis=-1)
    surfaces = {
        left: ("the perceptron's best line", fires(line, points)),
        right: ("output of 2-4-4-1", predict_arrays(trained, points)),
    }
    for axes, (title, surface) in surfaces.items():
        mesh = axes.pcolormesh(x, y, surface, cmap="coolwarm", vmin=0, vmax=1, alpha=0.8)
        axes.contour(x, y, surface, levels=[0.5], colors="black")
        colors = np.where(TARGETS == 1, "tab:red", "tab:blue")
        axes.scatter(*INPUTS.T, c=colors, s=130, edgecolors="white", zorder=3)
        axes.set(title=title, xlabel="first input", ylabel="second input", aspect="equal")
        axes.grid(False)
    figure.colorbar(mesh, ax=right, label="output")
    wrong = INPUTS[fires(line, INPUTS) != TARGETS]
    left.scatter(*wrong.T, s=420, facecolors="none", edgecolors="black", zorder=4, label="wrong")
    left.legend(loc="upper right")
    for (name, values), style in zip(losses.items(), ("-", "--", "-"), strict=True):
        middle.semilogy(values, style, label=name)
    middle.set(title="loss", xlabel="epoch", ylabel="mean squared error")
    middle.legend()
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Learn exclusive or.", "xor.png", epochs=(1, 1000), lr=0.5, seed=(0, 0)
)


def run(args: argparse.Namespace) -> dict[str, list[float]]:
    """Train all models; the outputs of each."""
    line, right = train_perceptron(args.epochs, args.lr, args.seed)
    outputs = {"perceptron": fires(line, INPUTS).tolist()}
    print(f"perceptron: {right} of 4 are right at best, in {args.epochs} epochs")
    small, large = initial_units((2, 4, 1), args.seed), initial_units((2, 4, 4, 1), args.seed)
    models: dict[str, tuple[Callable[..., Any], Any]] = {
        "2-4-1 numbers": (predict_numbers, small),
        "2-4-1 arrays": (predict_arrays, as_arrays(small)),
        "2-4-4-1 arrays": (predict_arrays, as_arrays(large)),
    }
    losses = {}
    for name, (predict, params) in models.items():
        count = sum(np.size(leaf) for leaf in fg.tree.leaves(params))
        params, losses[name] = train(predict, params, args.epochs, args.lr)
        outputs[name] = [float(predict(params, x)) for x in INPUTS]
        print(f"{name}: {count} parameters, loss {losses[name][-1]:.5f}")
    for i, ((a, b), target) in enumerate(zip(INPUTS, TARGETS, strict=True)):
        shown = "   ".join(f"{name} {found[i]:.3f}" for name, found in outputs.items())
        print(f"{a:.0f} xor {b:.0f} is {target:.0f}:   {shown}")
    plot(line, params, losses, args.output)
    return outputs


if __name__ == "__main__":
    run(parse_arguments())
