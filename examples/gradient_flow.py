"""Gradient flow through 784-256-128-10, and distributions over the time of training.

The input are scikit-learn's scanned digits, enlarged from 8 x 8 to 28 x 28 pixels. Before training,
`gradient_report` gives the mean, standard deviation, largest entry and share of zeros of the
gradient of each layer. During training, monitors keep histograms of gradients, updates, parameters
and activations, compiled with the step, and the ratio of each update to its parameters: about
1/1000 is usual, 1/10 is too much. Run it with

    python examples/gradient_flow.py

It prints the table and the ratios, and writes `gradient_flow.png` and, for the histograms,
`gradient_flow_gradients.png`, `..._updates.png`, `..._weights.png` and `..._activations.png`.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np

import digits
import funcgrad as fg
import program
from funcgrad import data, diagnostics, nn, optim

SIZES = (784, 256, 128, 10)
BINS = 40

Params = dict[str, Any]


# The network.


def init_params(seed: int) -> Params:
    """Weights with variance 2 / fan-in."""
    rng, params = np.random.default_rng(seed), {}
    for i, (m, n) in enumerate(itertools.pairwise(SIZES), start=1):
        params[f"w{i}"] = rng.standard_normal((m, n)) * np.sqrt(2 / m)
        params[f"b{i}"] = np.zeros(n)
    return params


def forward(params: Params, x: Any) -> tuple[Any, Params]:
    """Logits (rows, 10) of images (rows, 784), and the activations of the hidden layers."""
    first = nn.relu(x @ params["w1"] + params["b1"])
    second = nn.relu(first @ params["w2"] + params["b2"])
    return second @ params["w3"] + params["b3"], {"layer 1": first, "layer 2": second}


def loss(params: Params, x: Any, labels: Any) -> tuple[Any, Params]:
    """Mean cross-entropy, and the activations."""
    logits, activations = forward(params, x)
    losses = nn.losses.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean(), activations


# Training.


def train(
    params: Params, images: np.ndarray, labels: np.ndarray, args: argparse.Namespace
) -> diagnostics.History:
    """Adam with monitors of everything."""
    optimizer = optim.chain(
        diagnostics.monitor("gradients", bins=BINS),
        optim.adam(args.lr),
        diagnostics.monitor("updates", bins=BINS),
    )
    watch = diagnostics.monitor("activations", bins=BINS)

    @fg.jit
    def step(params: Params, state: Any, seen: Any, x: Any, labels: Any) -> Any:
        (value, activations), slopes = fg.value_and_grad(loss, has_aux=True)(params, x, labels)
        updates, state = optimizer.update(slopes, state, params)
        return (
            optim.apply_updates(params, updates),
            state,
            watch.update(activations, seen)[1],
            value,
        )

    history, state = diagnostics.History(), optimizer.init(params)
    seen = watch.init(forward(params, images[: args.batch_size])[1])
    batches = data.batches((images, labels), args.batch_size, seed=args.seed, drop_last=True)
    while len(history.values.get("loss", [])) < args.steps:
        for batch in batches:
            params, state, seen, value = step(params, state, seen, *batch)
            history.record((state, seen), loss=value)
            if len(history.values["loss"]) == args.steps:
                break
    return history


def enlarged(images: np.ndarray) -> np.ndarray:
    """Images (n, 64) as (n, 784), every pixel repeated, with a frame of two pixels."""
    large = np.kron(images.reshape(-1, 8, 8), np.ones((1, 3, 3)))
    return np.pad(large, ((0, 0), (2, 2), (2, 2))).reshape(len(images), -1)


# The pictures.


def plot(report: Any, history: diagnostics.History, args: argparse.Namespace) -> None:
    """Draw the gradient of each layer, the ratios and the loss; and histograms over time."""
    figure, ((left, middle, right),) = program.panels(1, 3, 14, 4.2)
    places = np.arange(len(report.leaves))
    sizes = {"mean |g|": "mean_abs", "standard deviation": "std", "largest": "max"}
    for (label, what), marker in zip(sizes.items(), "ox^", strict=True):
        left.semilogy(places, [getattr(leaf, what) for leaf in report.leaves], marker, label=label)
    left.set_xticks(places, [leaf.path.split("'")[1] for leaf in report.leaves])
    left.set(title="gradient before training", ylabel="size")
    left.legend()
    for path, ratios in history.ratios["updates"].items():
        middle.semilogy(ratios, label=path.split("'")[1])
    middle.axhline(1e-3, color="black", linestyle=":", label="1/1000")
    middle.set(title="norm of update / norm of parameters", xlabel="step")
    middle.legend(fontsize=8)
    right.semilogy(history.values["loss"], color="tab:red")
    right.set(title="loss", xlabel="step", ylabel="cross-entropy")
    program.save(figure, args.output)
    for name, monitor, is_data in (
        ("gradients", "gradients", False),
        ("updates", "updates", False),
        ("weights", "updates", True),
        ("activations", "activations", False),
    ):
        path = args.output.with_stem(f"{args.output.stem}_{name}")
        program.save(diagnostics.plot_distributions(history, monitor, is_data, name), path)


# The command line.


parse_arguments = program.command_line(
    "Gradient flow and distributions over time.",
    "gradient_flow.png",
    steps=(1, 60),
    batch_size=(1, 128),
    lr=1e-3,
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> tuple[Any, diagnostics.History]:
    """Examine, train, print and draw."""
    scans, params = digits.load(), init_params(args.seed)
    images, labels = enlarged(scans.x), scans.y
    first = images[: args.batch_size], labels[: args.batch_size]
    report = diagnostics.gradient_report(loss, params, *first, has_aux=True)
    print("gradient before training: mean, standard deviation, largest entry, share of zeros")
    for leaf in report.leaves:
        path, largest = leaf.path.split("'")[1], max(abs(leaf.min), abs(leaf.max))
        print(f"  {path}  {leaf.mean:+.1e}  {leaf.std:.1e}  {largest:.1e}  {leaf.zeros:6.1%}")
    history = train(params, images, labels, args)
    print("update / parameters in the last step:")
    for path, ratios in history.ratios["updates"].items():
        print(f"  {path.split(chr(39))[1]}  {ratios[-1]:.1e}")
    losses = history.values["loss"]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    plot(report, history, args)
    return report, history


if __name__ == "__main__":
    run(parse_arguments())
