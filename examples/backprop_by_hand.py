"""Backpropagation by hand through a character model with batch normalisation, checked with `grad`.

The model predicts the next letter of a name from the three before it:

    embedding -> linear -> batch normalisation -> tanh -> linear -> cross-entropy

The forward pass is written in elementary steps, and the gradient of each step is derived by hand:
of sums that broadcast, the mean and variance of the batch, and the lookup of embeddings, whose
transpose is a scatter-add; `cross_entropy_by_hand.py` has those of the loss. The program compares
all of them with the results of `grad`, for a variance that divides by the number of rows n, and by
n - 1. `closed_forms.py` combines the steps and trains the model. Run it with

    python examples/backprop_by_hand.py

The text consists of the names in Python's standard library; `--text FILE` reads another one, with
one name per line. The program prints every difference and writes `backprop_by_hand.png`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import by_hand
import character_model as model
import cross_entropy_by_hand as cross_entropy
import funcgrad as fg
import funcgrad.numpy as fnp
import program
from by_hand import Steps, Values


def forward(p: Values, blocks: Any, following: Any, bessel: bool, steps: Steps) -> Any:
    """The loss, step by step.

    Args:
        p: The parameters.
        blocks: Letters (rows, 3).
        following: The letters to be predicted, (rows,).
        bessel: Divide the variance by rows - 1 instead of rows.
        steps: Where every value is kept.
    """
    rows, keep = len(blocks), steps.keep
    embedded = keep("embedded", fnp.take(p["embedding"], blocks, axis=0))
    joined = keep("joined", embedded.reshape(rows, -1))
    linear = keep("linear", joined @ p["w1"] + p["b1"])
    # Batch normalisation: less the mean of the rows, over their standard deviation.
    mean = keep("mean", linear.sum(axis=0, keepdims=True) / rows)
    centred = keep("centred", linear - mean)
    squared = keep("squared", centred**2)
    variance = keep("variance", squared.sum(axis=0, keepdims=True) / (rows - bessel))
    inverse = keep("inverse", (variance + model.EPSILON) ** -0.5)
    normal = keep("normal", centred * inverse)
    scaled = keep("scaled", p["gain"] * normal + p["shift"])
    # The second layer.
    hidden = keep("hidden", np.tanh(scaled))
    logits = keep("logits", hidden @ p["w2"] + p["b2"])
    return cross_entropy.forward({"logits": logits}, following, Steps())


def backward(p: Values, blocks: Any, following: Any, bessel: bool, v: Values) -> Values:
    """The gradient in every value and in every parameter, from the logits to the embeddings.

    A sum along an axis is transposed by broadcasting, a broadcast by a sum, a lookup by a
    scatter-add. What is used twice has the sum of two gradients.
    """
    rows, g = len(blocks), Values()
    g["logits"] = cross_entropy.closed_form(v["logits"], following)
    # y = x w + b:  g_x = g_y w^T,  g_w = x^T g_y,  g_b = sum of the rows of g_y
    g["w2"] = v["hidden"].T @ g["logits"]
    g["b2"] = g["logits"].sum(axis=0)
    g["hidden"] = g["logits"] @ p["w2"].T
    # d tanh(x) = (1 - tanh(x)^2) dx
    g["scaled"] = g["hidden"] * (1.0 - v["hidden"] ** 2)
    g["shift"] = g["scaled"].sum(axis=0)
    g["gain"] = (g["scaled"] * v["normal"]).sum(axis=0)
    g["normal"] = g["scaled"] * p["gain"]
    g["inverse"] = (g["normal"] * v["centred"]).sum(axis=0, keepdims=True)
    # d x^(-1/2) = -x^(-3/2) dx / 2
    g["variance"] = -0.5 * g["inverse"] * (v["variance"] + model.EPSILON) ** -1.5
    g["squared"] = np.broadcast_to(g["variance"] / (rows - bessel), v["squared"].shape)
    # Used twice, in the product and in the square:  d x^2 = 2 x dx
    g["centred"] = g["normal"] * v["inverse"] + 2.0 * v["centred"] * g["squared"]
    g["mean"] = -g["centred"].sum(axis=0, keepdims=True)
    # Used twice, in the difference and in the mean.
    g["linear"] = g["centred"] + g["mean"] / rows
    g["b1"] = g["linear"].sum(axis=0)
    g["w1"] = v["joined"].T @ g["linear"]
    g["joined"] = g["linear"] @ p["w1"].T
    g["embedded"] = g["joined"].reshape(v["embedded"].shape)
    # The embedding of a letter gets the sum of the gradients at all places where it was looked up.
    by_place = g["embedded"].reshape(-1, model.WIDTH)
    g["embedding"] = fg.ops.segment_sum(by_place, blocks.ravel(), len(p["embedding"]))
    return g


# The picture.


def plot(differences: dict[str, dict[str, float]], path: Path) -> None:
    """Draw the largest difference of every gradient."""
    rows = len(next(iter(differences.values())))
    figure, ((axes,),) = program.panels(1, 1, 7, 1.6 + 0.19 * rows)
    floor = 1e-19
    for (convention, found), marker in zip(differences.items(), "ox", strict=True):
        errors = np.maximum(list(found.values()), floor)
        axes.semilogx(errors, list(found), marker, label=convention)
    axes.axvline(1e-12, color="tab:red", label="allowed")
    axes.set(title="gradients by hand less automatic ones, from the loss backwards")
    axes.set(xlim=(floor / 2, 1e-11), xlabel="largest difference (leftmost: none)")
    axes.tick_params(axis="y", labelsize=8)
    axes.invert_yaxis()
    axes.legend(loc=(0.5, 0.4))
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser(
        "Compare gradients by hand with automatic ones.",
        "backprop_by_hand.png",
        batch_size=(program.whole(2), 32),
        seed=(0, 0),
    )
    model.add_text(parser)
    return program.parse(parser, arguments)


def run(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Compare, print and draw; the differences by convention of the variance."""
    names = args.text or model.library_names()
    text = model.encode(names, model.alphabet(names))
    print(f"{len(names)} names, {len(text.blocks)} letters of an alphabet of {len(text.letters)}")
    rows = np.random.default_rng(args.seed).integers(0, len(text.blocks), args.batch_size)
    batch = text.blocks[rows], text.following[rows]
    params = model.init_params(args.seed, len(text.letters))
    found = {
        convention: by_hand.differences(forward, backward, params, *batch, bessel)
        for convention, bessel in {"variance over n": False, "variance over n - 1": True}.items()
    }
    by_hand.report(found)
    plot(found, args.output)
    return found


if __name__ == "__main__":
    run(parse_arguments())
