"""Vanishing gradients over 10 to 50 layers, and five cures.

The slope of a sigmoid is at most 1/4. So every layer shrinks the gradient by a factor of 4 or more,
ten layers by a million (0.25^10 = 9.5e-7), and the first layers do not learn. Cures: larger initial
weights, which saturate some units instead; residual connections, x + f(x), whose derivative
contains the identity; batch normalisation, which undoes changes of scale; activations with slope 1
(ReLU, leaky ReLU, GELU). These remove about half of the values, so their weights need the variance
2 / fan-in: with 1 / fan-in, their gradients vanish, too. Run it with

    python examples/vanishing.py

It prints a verdict for every network before training, trains the shallowest ones for a while,
and writes `vanishing.png`: gradients over layers, and losses over time.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training
from funcgrad import nn, optim

CLASSES = 10


@dataclass(frozen=True)
class Recipe:
    """An activation, the variance of the weights times the fan-in, and what is put around it."""

    activation: Callable[[Any], Any]
    variance: float = 1.0
    is_residual: bool = False
    is_normalized: bool = False


RECIPES = {
    "sigmoid": Recipe(nn.sigmoid),
    "larger weights": Recipe(nn.sigmoid, variance=90.0),
    "residual": Recipe(lambda x: nn.sigmoid(x) - 0.5, is_residual=True),
    "batch norm": Recipe(nn.sigmoid, is_normalized=True),
    "small ReLU": Recipe(nn.relu, variance=1.0),
    "ReLU": Recipe(nn.relu, variance=2.0),
    "leaky ReLU": Recipe(nn.leaky_relu, variance=2.0),
    "GELU": Recipe(nn.gelu, variance=2.3),
}


# The network.


def predict(params: training.Layers, x: Any, recipe: Recipe) -> Any:
    """Logits (rows, 10) of inputs (rows, width)."""
    *hidden, last = params
    for i, layer in enumerate(hidden):
        with fg.named_scope(f"layer {i}"):
            sums = x @ layer["w"] + layer["b"]
            if recipe.is_normalized:
                sums = nn.standardize(sums, axis=0)
            y = recipe.activation(sums)
            x = x + y if recipe.is_residual else y
    return x @ last["w"] + last["b"]


def loss(params: training.Layers, x: Any, labels: Any, recipe: Recipe) -> Any:
    """Mean cross-entropy."""
    logits = predict(params, x, recipe)
    return fnp.mean(nn.losses.softmax_cross_entropy_with_integer_labels(logits, labels))


# What happens to it.


@dataclass(frozen=True)
class Cell:
    """One network: what is said of it, and the mean absolute gradient of each layer's weights."""

    name: str
    depth: int
    verdict: str
    flow: tuple[float, ...]


def problem(
    args: argparse.Namespace, depth: int, recipe: Recipe
) -> tuple[training.Layers, np.ndarray, np.ndarray]:
    """Initial parameters and one batch; the label says which of ten inputs is the largest."""
    params = training.dense([args.width] * depth + [CLASSES], args.seed, recipe.variance)
    params[-1]["w"] /= np.sqrt(recipe.variance)
    x = np.random.default_rng(args.seed + 1).standard_normal((args.batch_size, args.width))
    return params, x, np.argmax(x[:, :CLASSES], axis=1)


def examine(name: str, depth: int, args: argparse.Namespace) -> Cell:
    """Look at the gradient before any training."""
    recipe = RECIPES[name]
    params, x, y = problem(args, depth, recipe)
    report = fg.diagnostics.gradient_report(lambda p, x, y: loss(p, x, y, recipe), params, x, y)
    flow = tuple(leaf.mean_abs for leaf in report.leaves if leaf.path.endswith("['w']"))
    return Cell(name, depth, report.verdict, flow)


def train(name: str, depth: int, args: argparse.Namespace) -> np.ndarray:
    """The losses of Adam, always on the same batch: whether the network can learn at all."""
    recipe = RECIPES[name]
    start, x, y = problem(args, depth, recipe)
    return training.minimize(
        lambda params, _: loss(params, x, y, recipe), start, optim.adam(3e-3), steps=args.steps
    )[1]


# The picture.


def plot(cells: list[Cell], losses: dict[str, np.ndarray], path: Path) -> None:
    """Draw the mean absolute gradient over the layers, a panel for each recipe, and the losses."""
    figure, axes = program.panels(3, 3, 13, 9.5)
    for one, name in zip(axes.flat[:-1], RECIPES, strict=True):
        for cell in (cell for cell in cells if cell.name == name):
            layers = np.arange(1, len(cell.flow) + 1) / len(cell.flow)
            flow = np.maximum(cell.flow, 1e-40)
            one.semilogy(layers, flow, marker=".", label=f"{cell.depth} layers: {cell.verdict}")
        one.set(title=name, ylim=(1e-36, 1e3), yticks=np.logspace(-36, 0, 7))
        one.legend(fontsize=8, loc="lower right")
    for one in (*axes[-1, :2], axes[1, 2]):
        one.set_xlabel("depth of the layer, from the input (0) to the loss (1)")
    for one in axes.flat[:5]:
        one.tick_params(labelbottom=False)
    for one in axes[:, 0]:
        one.set_ylabel("mean |gradient| of weights")
    for one in axes[:, 1:].flat[:-1]:
        one.tick_params(labelleft=False)
    for name, values in losses.items():
        axes[-1, -1].semilogy(values, label=name, color="black" if name == "sigmoid" else None)
    depth = min(cell.depth for cell in cells)
    axes[-1, -1].set(title=f"training with {depth} layers", xlabel="step", ylabel="loss")
    axes[-1, -1].set_ylim(1e-7, 1e4)
    axes[-1, -1].legend(fontsize=8, loc="upper right", ncols=2)
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Gradient flow through deep networks.",
    "vanishing.png",
    depths=(2, [10, 30, 50]),
    width=(CLASSES, 64),
    batch_size=(2, 64),
    steps=(1, 150),
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> tuple[list[Cell], dict[str, np.ndarray]]:
    """Examine every network, train the shallowest ones, print, and draw."""
    grid = list(itertools.product(RECIPES, args.depths))
    cells = [examine(name, depth, args) for name, depth in tqdm(grid, desc="networks", leave=False)]
    for cell in cells:
        first, *_, last = cell.flow
        print(
            f"{cell.name:15} {cell.depth:3d} layers: gradient of the first {first:.1e}, "
            f"of the last {last:.1e}   {cell.verdict}"
        )
    losses = {name: train(name, min(args.depths), args) for name in RECIPES}
    for name, values in losses.items():
        print(f"{name:15} loss {values[0]:.3f} -> {values[-1]:.3f}")
    plot(cells, losses, args.output)
    return cells, losses


if __name__ == "__main__":
    run(parse_arguments())
