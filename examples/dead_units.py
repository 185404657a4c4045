"""Dead units, found and cured.

A unit of a rectifier whose sum is negative for every example has output 0 and slope 0: its weights
never change again. Biases that start far below zero do this, and so does a learning rate that is
too large, which throws units there in a few steps. The program trains a network 64-128-10 on
scanned digits in seven ways, counts after every step the units that are off for all examples, and
asks `gradient_report` about the last state. Cures for low biases: leaky ReLU, PReLU (whose slope
below zero is learned) and ELU, which let a gradient pass below zero; biases at 0. The cure for a
large rate: a smaller one. Run it with

    python examples/dead_units.py

It prints what became of every network, and writes `dead_units.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import funcgrad as fg
import program
from funcgrad import diagnostics, nn, optim

HIDDEN, CLASSES, BATCH, LOOK = 128, 10, 64, 256

Params = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """An activation of sums and parameters, a learning rate, and the initial biases."""

    activation: Callable[[Any, Params], Any]
    rate: float
    bias: float = 0.0


def relu(sums: Any, params: Params) -> Any:
    """max(x, 0)."""
    return nn.relu(sums)


def prelu(sums: Any, params: Params) -> Any:
    """X above 0, slope * x below; the slope of each unit is a parameter (He et al., 2015)."""
    return np.where(sums > 0, sums, params["slope"] * sums)


RECIPES = {
    "low biases": Recipe(relu, 0.2, bias=-4.0),
    "leaky ReLU": Recipe(lambda sums, params: nn.leaky_relu(sums, 0.1), 0.2, bias=-4.0),
    "PReLU": Recipe(prelu, 0.2, bias=-4.0),
    "ELU": Recipe(lambda sums, params: nn.elu(sums), 0.2, bias=-4.0),
    "biases at 0": Recipe(relu, 0.2),
    "large rate": Recipe(relu, 2.0),
    "smaller rate": Recipe(relu, 0.5),
}


# The network.


def init_params(recipe: Recipe, seed: int) -> Params:
    """Weights with variance 2 / fan-in."""
    rng = np.random.default_rng(seed)
    return {
        "w1": rng.standard_normal((64, HIDDEN)) * np.sqrt(2 / 64),
        "b1": np.full(HIDDEN, recipe.bias),
        "slope": np.full(HIDDEN, 0.25),
        "w2": rng.standard_normal((HIDDEN, CLASSES)) * np.sqrt(2 / HIDDEN),
        "b2": np.zeros(CLASSES),
    }


def predict(params: Params, x: Any, recipe: Recipe) -> Any:
    """Logits (rows, 10)."""
    sums = x @ params["w1"] + params["b1"]
    return recipe.activation(sums, params) @ params["w2"] + params["b2"]


def loss(params: Params, x: Any, labels: Any, recipe: Recipe) -> Any:
    """Mean cross-entropy."""
    losses = nn.losses.softmax_cross_entropy_with_integer_labels
    return losses(predict(params, x, recipe), labels).mean()


def dead_share(params: Params, x: Any, recipe: Recipe) -> Any:
    """Share of the hidden units through which no gradient passes, for any of the images x."""
    sums = x @ params["w1"] + params["b1"]
    slopes = fg.grad(lambda s: recipe.activation(s, params).sum())(sums)
    return np.mean(np.all(slopes == 0, axis=0))


# Training.


class Trained(NamedTuple):
    """Losses and shares of dead units after every step, the end, and what the diagnostic says."""

    losses: np.ndarray
    dead: np.ndarray
    accuracy: float
    verdict: str


def train(name: str, data: list[np.ndarray], steps: int, seed: int) -> Trained:
    """Gradient descent as one compiled loop."""
    recipe, (train_x, test_x, train_y, test_y) = RECIPES[name], data
    optimizer, look = optim.sgd(recipe.rate), train_x[:LOOK]
    rows = np.random.default_rng(seed).integers(0, len(train_x), (steps, BATCH))

    def step(params: Params, batch: Any) -> tuple[Params, Any]:
        value, slopes = fg.value_and_grad(loss)(params, *batch, recipe)
        updates = optimizer.update(slopes, optimizer.init(params))[0]
        params = optim.apply_updates(params, updates)
        return params, (value, dead_share(params, look, recipe))

    run = fg.jit(lambda params: fg.lax.scan(step, params, (train_x[rows], train_y[rows])))
    params, (losses, dead) = run(init_params(recipe, seed))
    right = np.argmax(predict(params, test_x, recipe), axis=-1) == test_y
    given = (lambda p, x, y: loss(p, x, y, recipe)), params, look, train_y[:LOOK]
    report = diagnostics.gradient_report(*given)
    verdicts = {leaf.path.split("'")[1]: leaf.verdict for leaf in report.leaves}
    return Trained(losses, dead, float(np.mean(right)), verdicts["b1"])


# The picture.


def plot(found: dict[str, Trained], path: Path) -> None:
    """Draw the dead units and the losses over time."""
    figure, ((left, right),) = program.panels(1, 2, 12, 4.4)
    for name, trained in found.items():
        left.plot(100 * trained.dead, label=f"{name}: {trained.verdict}")
        window = max(1, len(trained.losses) // 20)
        smooth = np.convolve(trained.losses, np.ones(window) / window, mode="valid")
        right.semilogy(smooth, label=f"{name}: {trained.accuracy:.0%} right")
    left.set(title="dead units", xlabel="step", ylabel="per cent")
    right.set(title="loss, smoothed", xlabel="step", ylabel="cross-entropy")
    for axes in (left, right):
        axes.legend(fontsize=8)
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Dead units and their cures.", "dead_units.png")
    parser.add_argument("--steps", type=program.whole(1), default=300, metavar="N")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    return program.parse(parser, arguments)


def run(args: argparse.Namespace) -> dict[str, Trained]:
    """Train with every recipe, print, and draw."""
    images, labels = load_digits(return_X_y=True)
    data = train_test_split(images / 16, labels, random_state=0, stratify=labels)
    found = {name: train(name, data, args.steps, args.seed) for name in RECIPES}
    for name, trained in found.items():
        print(
            f"{name:15} dead units {trained.dead[-1]:4.0%}   {trained.accuracy:.1%} of unseen "
            f"digits   hidden layer: {trained.verdict}"
        )
    plot(found, args.output)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    run(parse_arguments(arguments))


if __name__ == "__main__":
    main()
