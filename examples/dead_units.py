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

import digits
import funcgrad as fg
import program
import training
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


def train(name: str, data: digits.Digits, steps: int, seed: int) -> Trained:
    """Gradient descent, and what became of the units."""
    recipe, look = RECIPES[name], data.x[:LOOK]
    params, losses, dead = training.minimize(
        lambda params, batch: loss(params, batch[0], batch[1], recipe), init_params(recipe, seed),
        optim.sgd(recipe.rate), training.batches((data.x, data.y), BATCH, steps, seed),
        watch=lambda params, _: dead_share(params, look, recipe),
    )  # fmt: skip
    right = np.argmax(predict(params, data.test_x, recipe), axis=-1) == data.test_y
    given = (lambda p, x, y: loss(p, x, y, recipe)), params, look, data.y[:LOOK]
    report = diagnostics.gradient_report(*given)
    verdicts = {leaf.path.split("'")[1]: leaf.verdict for leaf in report.leaves}
    return Trained(losses, dead, float(np.mean(right)), verdicts["b1"])


# The picture.


def plot(found: dict[str, Trained], path: Path) -> None:
    """Draw the dead units and the losses over time."""
    figure, ((left, right),) = program.panels(1, 2, 12, 4.4)
    for i, (name, trained) in enumerate(found.items()):
        style = {"label": f"{name}: {trained.verdict}", "linewidth": 5 - 0.6 * i}  # all are seen
        left.plot(100 * trained.dead, **style)
        window = max(1, len(trained.losses) // 20)
        smoothed = training.smooth(trained.losses, window)
        right.semilogy(smoothed, label=f"{name}: {trained.accuracy:.0%} right")
    left.set(title="dead units", xlabel="step", ylabel="per cent")
    right.set(title="loss, smoothed", xlabel="step", ylabel="cross-entropy")
    right.set_ylim(bottom=0.01)  # room for the legend
    left.legend(fontsize=8, loc="center right")
    right.legend(fontsize=8, loc="lower left")
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Dead units and their cures.", "dead_units.png", steps=(1, 300), seed=(0, 0)
)


def run(args: argparse.Namespace) -> dict[str, Trained]:
    """Train with every recipe, print, and draw."""
    data = digits.load()
    found = {name: train(name, data, args.steps, args.seed) for name in RECIPES}
    for name, trained in found.items():
        print(
            f"{name:15} dead units {trained.dead[-1]:4.0%}   {trained.accuracy:.1%} of unseen "
            f"digits   hidden layer: {trained.verdict}"
        )
    plot(found, args.output)
    return found


if __name__ == "__main__":
    run(parse_arguments())
