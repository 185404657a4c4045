"""A network of 41 numbers learns four points, as in the first lesson about backpropagation.

The network has three inputs, two hidden layers of four tanh units and one output. It is trained
with a squared loss and gradient descent. The model is plain Python: numbers in lists, without
arrays. The program runs the same function in three ways: eagerly, with one compiled step, and with
a compiled loop over all steps. Run it with

    python examples/four_points.py

It prints the time of a step for each of the three ways and writes `four_points.png`.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program

POINTS = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
TARGETS = [1.0, -1.0, -1.0, 1.0]
SIZES = (3, 4, 4, 1)

Unit = dict[str, Any]
Params = list[list[Unit]]
Step = Callable[[Params], tuple[Params, Any]]


# The model.


def init_params(seed: int) -> Params:
    """Weights and biases between -1 and 1: a list of layers, each a list of units."""
    rng = random.Random(seed)

    def draw() -> float:
        return rng.uniform(-1, 1)

    return [
        [{"w": [draw() for _ in range(m)], "b": draw()} for _ in range(n)]
        for m, n in itertools.pairwise(SIZES)
    ]


def predict(params: Params, x: list[Any]) -> Any:
    """The output for one point."""
    for layer in params:
        x = [
            np.tanh(sum((w * v for w, v in zip(unit["w"], x, strict=True)), unit["b"]))
            for unit in layer
        ]
    return x[0]


def loss_fn(params: Params) -> Any:
    """The sum of the squared errors."""
    return sum((predict(params, x) - y) ** 2 for x, y in zip(POINTS, TARGETS, strict=True))


# Training.


def make_step(rate: float) -> Step:
    """A step of gradient descent: the new parameters, and the loss of the old ones."""

    def step(params: Params) -> tuple[Params, Any]:
        loss, slopes = fg.value_and_grad(loss_fn)(params)
        return fg.tree.map(lambda p, slope: p - rate * slope, params, slopes), loss

    return step


def train(step: Step, params: Params, steps: int) -> tuple[Params, list[float]]:
    """The parameters after so many steps, and the loss before each."""
    losses = []
    for _ in range(steps):
        params, loss = step(params)
        losses.append(float(loss))
    return params, losses


def train_in_one_call(step: Step, steps: int) -> Callable[[Params], tuple[Params, np.ndarray]]:
    """All steps as one compiled loop."""

    def loop(params: Params) -> tuple[Params, np.ndarray]:
        return fg.lax.scan(lambda params, _: step(params), params, None, length=steps)

    return fg.jit(loop)


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """How long a call takes, and its result."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


# The picture.


def plot(losses: np.ndarray, outputs: list[float], path: Path) -> None:
    """Draw the loss, and the four outputs beside what they should be."""
    figure, ((left, right),) = program.panels(1, 2, 9, 3.6)
    left.semilogy(losses, color="tab:red")
    left.set(title="loss", xlabel="step", ylabel="sum of squared errors")
    places = np.arange(len(TARGETS))
    right.bar(places - 0.2, TARGETS, 0.4, label="target", color="lightgrey")
    right.bar(places + 0.2, outputs, 0.4, label="output", color="tab:blue")
    right.axhline(0, color="black", linewidth=0.8)
    right.set(title="after training", xlabel="point", xticks=places)
    right.legend()
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Fit four points with a network of 41 numbers.",
    "four_points.png",
    steps=(1, 200),
    lr=0.1,
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> dict[str, np.ndarray]:
    """Train in three ways; the losses of each."""
    step, start = make_step(args.lr), init_params(args.seed)
    compiled, loop = fg.jit(step), train_in_one_call(step, args.steps)
    print(f"{len(fg.tree.leaves(start))} parameters")
    # Twice: a step takes Python's numbers first, and then NumPy's.
    first, _ = seconds(lambda: (compiled(compiled(start)[0]), loop(start)))
    ways = {
        "eager": lambda: train(step, start, args.steps),
        "jitted step": lambda: train(compiled, start, args.steps),
        "jitted loop": lambda: loop(start),
    }
    losses = {}
    for name, way in ways.items():
        elapsed, (params, values) = seconds(way)
        losses[name] = np.asarray(values)
        print(f"{name:12} {1e6 * elapsed / args.steps:8.1f} us a step")
    print(f"{'compilation':12} {first:8.2f} s")
    outputs = [float(predict(params, x)) for x in POINTS]
    print("outputs", "  ".join(f"{y:+.3f}" for y in outputs), f"  loss {loss_fn(params):.5f}")
    plot(losses["jitted loop"], outputs, args.output)
    return losses


if __name__ == "__main__":
    run(parse_arguments())
