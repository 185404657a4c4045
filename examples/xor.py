"""Exclusive or, learned twice: with Python numbers in lists, and with arrays.

A 2-4-1 network of tanh units learns the truth table

    false xor false = false,  false xor true = true,  true xor false = true,  true xor true = false

with true = 1 and false = -1. The first model is written without any library: numbers, lists and
`sum`. The second computes the same with matrices. Both start from the same parameters, and both are
differentiated and compiled without changes. Run it with

    python examples/xor.py

It prints the four outputs of both models and writes `xor.png`.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

INPUTS = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
TARGETS = [-1.0, 1.0, 1.0, -1.0]
HIDDEN = 4


# The model in numbers: a unit is a list of weights, of which the last one is its bias.


def initial_units(seed: int) -> dict[str, list[Any]]:
    """Four hidden units of three weights, and an output unit of five."""
    rng = random.Random(seed)
    return {
        "hidden": [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(HIDDEN)],
        "output": [rng.uniform(-1, 1) for _ in range(HIDDEN + 1)],
    }


def unit(weights: list[Any], inputs: list[Any]) -> Any:
    """The output of one unit."""
    *slopes, bias = weights
    return np.tanh(sum((w * x for w, x in zip(slopes, inputs, strict=True)), bias))


def predict_numbers(params: Any, inputs: list[Any]) -> Any:
    """The network's output for one pair of inputs."""
    hidden = [unit(weights, inputs) for weights in params["hidden"]]
    return unit(params["output"], hidden)


def loss_of_numbers(params: Any) -> Any:
    """The sum of the squared errors."""
    pairs = zip(INPUTS, TARGETS, strict=True)
    return sum((predict_numbers(params, inputs) - target) ** 2 for inputs, target in pairs)


# The model in arrays.


def as_arrays(units: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    """The same parameters as matrices."""
    hidden, output = np.array(units["hidden"]), np.array(units["output"])
    return {"w1": hidden[:, :-1].T, "b1": hidden[:, -1], "w2": output[:-1], "b2": output[-1:]}


def predict_arrays(params: Any, inputs: Any) -> Any:
    """The network's outputs (rows,) for inputs (rows, 2)."""
    hidden = np.tanh(inputs @ params["w1"] + params["b1"])
    return np.tanh(hidden @ params["w2"] + params["b2"])


def loss_of_arrays(params: Any) -> Any:
    """The sum of the squared errors."""
    return np.sum((predict_arrays(params, np.array(INPUTS)) - np.array(TARGETS)) ** 2)


# Training.


def train(
    loss: Callable[[Any], Any], params: Any, steps: int, rate: float
) -> tuple[Any, list[float]]:
    """Gradient descent; returns the parameters and the loss before every step."""

    @fg.jit
    def step(params: Any) -> tuple[Any, Any]:
        value, slopes = fg.value_and_grad(loss)(params)
        return fg.tree.map(lambda p, slope: p - rate * slope, params, slopes), value

    losses = []
    for _ in range(steps):
        params, value = step(params)
        losses.append(float(value))
    return params, losses


# The picture.


def plot(params: Any, losses: dict[str, list[float]], path: Path) -> None:
    """Draw the losses, and the output of the network over the plane of its inputs."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, values), style in zip(losses.items(), ("-", "--"), strict=True):
        left.semilogy(values, style, label=name)
    left.set(title="loss", xlabel="step", ylabel="sum of squared errors")
    left.legend()
    left.grid(alpha=0.3)
    line = np.linspace(-1.5, 1.5, 121)
    x, y = np.meshgrid(line, line)
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    surface = predict_arrays(params, points).reshape(x.shape)
    mesh = right.pcolormesh(x, y, surface, cmap="coolwarm", vmin=-1, vmax=1)
    right.contour(x, y, surface, levels=[0.0], colors="black")
    for (a, b), target in zip(INPUTS, TARGETS, strict=True):
        color = "tab:red" if target > 0 else "tab:blue"
        right.plot(a, b, "o", color=color, markeredgecolor="white", markersize=11)
    right.set(title="output", xlabel="first input", ylabel="second input", aspect="equal")
    figure.colorbar(mesh, ax=right)
    figure.savefig(path, dpi=120)


# The command line.


def number(kind: Callable[[str], Any], low: float, what: str) -> Callable[[str], Any]:
    """A parser for arguments of type `kind` that are finite and greater than `low`."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
        if not low < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not {what}")
        return value

    return parse


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = argparse.ArgumentParser(description="Learn exclusive or with 17 parameters.")
    count = number(int, 0, "a whole number of at least 1")
    parser.add_argument("--steps", type=count, default=500, metavar="N")
    rate = number(float, 0, "a positive number")
    parser.add_argument("--lr", type=rate, default=0.1, metavar="RATE")
    seed = number(int, -1, "a whole number of at least 0")
    parser.add_argument("--seed", type=seed, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("xor.png"), metavar="PICTURE")
    args = parser.parse_args(arguments)
    if not args.output.parent.is_dir():
        parser.error(f"argument --output: there is no folder {args.output.parent}")
    return args


def run(args: argparse.Namespace) -> dict[str, list[float]]:
    """Train both models; the outputs of each."""
    units = initial_units(args.seed)
    models = {
        "numbers": (loss_of_numbers, units),
        "arrays": (loss_of_arrays, as_arrays(units)),
    }
    trained, losses = {}, {}
    for name, (loss, params) in models.items():
        start = time.perf_counter()
        trained[name], losses[name] = train(loss, params, args.steps, args.lr)
        print(f"{name:8} {args.steps} steps in {time.perf_counter() - start:.2f} s")
    outputs = {
        "numbers": [float(predict_numbers(trained["numbers"], inputs)) for inputs in INPUTS],
        "arrays": predict_arrays(trained["arrays"], np.array(INPUTS)).tolist(),
    }
    for (a, b), target, *found in zip(INPUTS, TARGETS, *outputs.values(), strict=True):
        shown = "  ".join(f"{name} {y:+.4f}" for name, y in zip(outputs, found, strict=True))
        print(f"{a:+.0f} xor {b:+.0f}  is {target:+.0f}:  {shown}")
    plot(trained["arrays"], losses, args.output)
    print(f"wrote {args.output}")
    return outputs


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    run(parse_arguments(arguments))


if __name__ == "__main__":
    main()
