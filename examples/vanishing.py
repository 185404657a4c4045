"""Does the gradient reach the first layer? Depth, activation and normalisation.

Networks with layers of equal width are initialised as theory recommends (variance 1 / fan-in, for
rectifiers 2 / fan-in). The program examines the gradient of a cross-entropy before any training.
The theory predicts the following. The slope of a sigmoid is at most 1/4, so every layer shrinks the
gradient by a factor of 4 or more, and ten layers shrink it by a million. At 0, the slope of tanh is
1. A rectifier passes half of the values, and its larger weights compensate for this. Batch
normalisation removes the changes of scale of the layer before it. Run it with

    python examples/vanishing.py

It prints a verdict for every network and writes `vanishing.png`.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import funcgrad as fg
import funcgrad.numpy as fnp

CLASSES = 10
ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "sigmoid": (fg.nn.sigmoid, 1.0),
    "tanh": (fnp.tanh, 1.0),
    "relu": (fg.nn.relu, 2.0),
}
"""Each with the variance of its weights, times the fan-in."""
NORMALIZATIONS = {"plain": False, "batch norm": True}

Params = list[dict[str, Any]]


# The network.


def init_params(
    rng: np.random.Generator, depth: int, width: int, variance: float, is_normalized: bool
) -> Params:
    """One dict per layer; scale and shift behind the normalisation."""
    sizes = [width] * depth + [CLASSES]
    params = []
    for m, n in itertools.pairwise(sizes):
        layer = {"w": rng.standard_normal((m, n)) * np.sqrt(variance / m), "b": np.zeros(n)}
        if is_normalized:
            layer |= {"scale": np.ones(n), "shift": np.zeros(n)}
        params.append(layer)
    return params


def normalized(x: Any) -> Any:
    """Every column with mean 0 and variance 1 over the batch."""
    return (x - fnp.mean(x, axis=0)) / fnp.sqrt(fnp.var(x, axis=0) + 1e-5)


def predict(params: Params, x: Any, activation: Callable[[Any], Any]) -> Any:
    """Logits (rows, 10) of inputs (rows, width)."""
    *hidden, last = params
    for i, layer in enumerate(hidden):
        with fg.named_scope(f"layer {i}"):
            x = x @ layer["w"] + layer["b"]
            if "scale" in layer:
                x = normalized(x) * layer["scale"] + layer["shift"]
            x = activation(x)
    return x @ last["w"] + last["b"]


def loss(params: Params, x: Any, labels: Any, activation: Callable[[Any], Any]) -> Any:
    """Mean cross-entropy."""
    chances = fg.nn.log_softmax(predict(params, x, activation))
    return -fnp.mean(fnp.sum(fg.nn.one_hot(labels, CLASSES, dtype=chances.dtype) * chances, axis=1))


# The grid.


@dataclass(frozen=True)
class Cell:
    """One network: what is said of it, and the mean absolute gradient of each layer's weights."""

    activation: str
    normalization: str
    depth: int
    verdict: str
    flow: tuple[float, ...]


def examine(activation: str, normalization: str, depth: int, args: argparse.Namespace) -> Cell:
    """Initialise a network and look at its gradient at one batch of random inputs."""
    rng = np.random.default_rng(args.seed)
    function, variance = ACTIVATIONS[activation]
    params = init_params(rng, depth, args.width, variance, NORMALIZATIONS[normalization])
    # The last layer is followed by no normalisation.
    params[-1] = {name: params[-1][name] for name in ("w", "b")}
    x = rng.standard_normal((args.batch_size, args.width))
    labels = rng.integers(0, CLASSES, args.batch_size)
    report = fg.diagnostics.gradient_report(
        lambda p, x, labels: loss(p, x, labels, function), params, x, labels
    )
    flow = tuple(leaf.mean_abs for leaf in report.leaves if leaf.path.endswith("['w']"))
    return Cell(activation, normalization, depth, report.verdict, flow)


def plot(cells: list[Cell], path: Path) -> None:
    """Draw the mean absolute gradient of the weights over the layers, a panel per kind."""
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    panels = figure.subplots(len(NORMALIZATIONS), len(ACTIVATIONS), sharex=True, sharey=True)
    for row, normalization in enumerate(NORMALIZATIONS):
        for column, activation in enumerate(ACTIVATIONS):
            axes = panels[row][column]
            for cell in cells:
                if (cell.activation, cell.normalization) == (activation, normalization):
                    layers = range(1, len(cell.flow) + 1)
                    label = f"{cell.depth} layers: {cell.verdict}"
                    axes.semilogy(layers, cell.flow, marker=".", label=label)
            axes.set_title(f"{activation}, {normalization}")
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8, loc="lower right")
    for axes in panels[-1]:
        axes.set_xlabel("layer")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean |gradient| of weights")
    figure.suptitle("gradient flow before training")
    figure.savefig(path, dpi=120)


# The command line.


def number(low: int, what: str) -> Callable[[str], int]:
    """A parser for whole numbers that are greater than `low`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
        if value <= low:
            raise argparse.ArgumentTypeError(f"{text} is not {what}")
        return value

    return parse


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = argparse.ArgumentParser(description="Gradient flow through deep networks.")
    several = number(1, "a whole number of at least 2")
    parser.add_argument("--depths", type=several, nargs="+", default=[3, 10, 20], metavar="N")
    parser.add_argument("--width", type=several, default=64, metavar="N")
    parser.add_argument("--batch-size", type=several, default=128, metavar="N")
    natural = number(-1, "a whole number of at least 0")
    parser.add_argument("--seed", type=natural, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("vanishing.png"), metavar="FILE")
    args = parser.parse_args(arguments)
    if not args.output.parent.is_dir():
        parser.error(f"argument --output: there is no folder {args.output.parent}")
    return args


def run(args: argparse.Namespace) -> list[Cell]:
    """Examine every network of the grid, print the verdicts, and draw."""
    grid = list(itertools.product(ACTIVATIONS, NORMALIZATIONS, args.depths))
    cells = [
        examine(activation, normalization, depth, args)
        for activation, normalization, depth in tqdm(grid, desc="networks", leave=False)
    ]
    for cell in cells:
        ratio = cell.flow[0] / cell.flow[-1] if cell.flow[-1] else float("nan")
        print(
            f"{cell.activation:8} {cell.normalization:11} {cell.depth:3d} layers: "
            f"first / last gradient {ratio:8.1e}   {cell.verdict}"
        )
    plot(cells, args.output)
    print(f"wrote {args.output}")
    return cells


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    run(parse_arguments(arguments))


if __name__ == "__main__":
    main()
