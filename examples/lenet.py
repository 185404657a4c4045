"""A small convolutional network reads handwritten digits.

The network has two convolutions with pooling and two dense layers, after LeCun's LeNet of 1998. It
learns the 1,797 scanned digits (8x8 grey values) that come with scikit-learn. The layers come from
`funcgrad.nn`, Adam from `funcgrad.optim`, and the batches from `funcgrad.data`. Run it with

    python examples/lenet.py

It prints the loss and accuracy, and writes `lenet.png`, which shows the first convolution kernels
and their outputs for one image, the confusion matrix, and the misclassified images.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure, SubFigure
from sklearn.datasets import load_digits
from tqdm import tqdm

import funcgrad as fg
import program
from funcgrad import data, nn, optim
from funcgrad.nn import layers

CLASSES = 10
BRIGHTEST = 16.0
TEST_FRACTION = 0.2
SPLIT_SEED = 0
KERNELS = 12

Arrays = tuple[np.ndarray, np.ndarray]


# The data.


def load_data() -> tuple[Arrays, Arrays]:
    """Images (n, 8, 8, 1) between 0 and 1 with labels, for training and for testing."""
    images, labels = load_digits(return_X_y=True)
    x = (images / BRIGHTEST).astype(np.float32).reshape(-1, 8, 8, 1)
    both = (x, labels.astype(np.int32))
    return data.train_test_split(both, TEST_FRACTION, seed=SPLIT_SEED, stratify=labels)


# The model.


def make_network(dropout: float) -> layers.Layer:
    """From images (n, 8, 8, 1) to logits (n, 10)."""
    return layers.sequential(
        layers.conv(KERNELS, (3, 3)),
        nn.relu,
        layers.max_pool((2, 2), strides=2),
        layers.conv(64, (3, 3)),
        nn.relu,
        layers.max_pool((2, 2), strides=2),
        layers.flatten(),
        layers.dropout(dropout),
        layers.dense(128),
        nn.relu,
        layers.dropout(dropout),
        layers.dense(CLASSES),
    )


Step = Callable[..., tuple[Any, Any, Any]]


def make_step(network: layers.Layer, optimizer: optim.GradientTransformation) -> Step:
    """The step `(params, memory, key, x, labels) -> (params, memory, loss)`."""

    def loss_fn(params: Any, key: Any, x: Any, labels: Any) -> Any:
        logits, _ = network.apply(params, (), x, key=key, train=True)
        return nn.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(params: Any, memory: Any, key: Any, x: Any, labels: Any) -> tuple[Any, Any, Any]:
        loss, slopes = fg.value_and_grad(loss_fn)(params, key, x, labels)
        updates, memory = optimizer.update(slopes, memory, params)
        return optim.apply_updates(params, updates), memory, loss

    return fg.jit(step, donate_argnums=(0, 1))


# Training.


@dataclass
class Result:
    """What training ended with, and what each epoch ended with."""

    params: Any
    predicted: np.ndarray
    labels: np.ndarray
    losses: list[float] = field(default_factory=list)

    @property
    def accuracy(self) -> float:
        """Fraction of the unseen images that are read rightly."""
        return float(np.mean(self.predicted == self.labels))


def train(args: argparse.Namespace, training: Arrays, testing: Arrays) -> Result:
    """Train for `args.epochs`, with a rate that falls to 0 like a cosine."""
    network = make_network(args.dropout)
    init_key, drop_key = fg.random.split(fg.random.key(args.seed))
    params, _ = network.init(init_key, training[0])
    steps = args.epochs * -(-len(training[0]) // args.batch_size)
    optimizer = optim.adam(optim.cosine_decay_schedule(args.lr, steps))
    step, memory = make_step(network, optimizer), optimizer.init(params)
    classify = fg.jit(lambda params, x: network.apply(params, (), x)[0].argmax(-1))
    result = Result(params, np.zeros(0), testing[1])
    count = 0
    with tqdm(range(1, args.epochs + 1), desc="training", unit="epoch") as bar:
        for epoch in bar:
            total = 0.0
            for x, labels in data.batches(training, args.batch_size, seed=args.seed + epoch):
                key = fg.random.fold_in(drop_key, count)
                params, memory, loss = step(params, memory, key, x, labels)
                total += float(loss) * len(x)
                count += 1
            result.losses.append(total / len(training[0]))
            result.params, result.predicted = params, classify(params, testing[0])
            bar.write(
                f"epoch {epoch:3d}   loss {result.losses[-1]:.4f}   test {result.accuracy:7.2%}",
                file=sys.stdout,
            )
    return result


# The picture.


def plot(result: Result, images: np.ndarray, path: Path) -> None:
    """Draw kernels and their answers, the table of confusions, and the mistakes."""
    figure = Figure(figsize=(13, 7), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(5, 4))[0]
    draw_kernels(left, result.params[0], images[:1])
    upper, lower = right.subfigures(2, 1, squeeze=False, height_ratios=(5, 2))[:, 0]
    draw_confusions(upper, result)
    draw_mistakes(lower, result, images)
    program.save(figure, path)


def draw_kernels(figure: SubFigure, params: Any, image: np.ndarray) -> None:
    """Each first kernel beside what it makes of one image."""
    answers = nn.relu(nn.conv(image, params["kernel"], params["bias"]))[0]
    kernels = params["kernel"][:, :, 0]
    figure.suptitle("kernels of the first layer, and their answers to an image")
    bound = np.abs(kernels).max()
    grid = figure.subplots(4, KERNELS // 2)
    for i in range(KERNELS):
        row, column = divmod(i, KERNELS // 2)
        grid[2 * row, column].imshow(kernels[..., i], cmap="RdBu_r", vmin=-bound, vmax=bound)
        grid[2 * row + 1, column].imshow(answers[..., i], cmap="gray_r")
    for axes in grid.flat:
        axes.axis("off")


def draw_confusions(figure: SubFigure, result: Result) -> None:
    """How often each digit was taken for which."""
    table = np.zeros((CLASSES, CLASSES), int)
    np.add.at(table, (result.labels, result.predicted), 1)
    axes = figure.subplots()
    axes.imshow(np.sqrt(table), cmap="Blues")
    for (row, column), count in np.ndenumerate(table):
        if count:
            color = "white" if row == column else "tab:red"
            axes.text(column, row, str(count), ha="center", va="center", color=color, fontsize=8)
    axes.set(
        title=f"{result.accuracy:.1%} of {len(result.labels)} unseen images",
        xlabel="read as",
        ylabel="is",
        xticks=range(CLASSES),
        yticks=range(CLASSES),
    )


def draw_mistakes(figure: SubFigure, result: Result, images: np.ndarray) -> None:
    """The images that were read wrongly, as many as fit."""
    columns = 8
    wrong = np.flatnonzero(result.predicted != result.labels)[:columns]
    for axes, index in zip(figure.subplots(1, columns), [*wrong, *[None] * columns], strict=False):
        axes.axis("off")
        if index is not None:
            axes.imshow(images[index, ..., 0], cmap="gray_r", vmin=0, vmax=1)
            axes.set_title(f"{result.predicted[index]}, is {result.labels[index]}", fontsize=8)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Train a convolutional network on digits.", "lenet.png")
    parser.add_argument("--epochs", type=program.whole(1), default=30, metavar="N")
    parser.add_argument("--batch-size", type=program.whole(1), default=32, metavar="N")
    parser.add_argument("--lr", type=program.positive, default=3e-3, metavar="RATE")
    parser.add_argument("--dropout", type=program.not_negative, default=0.5, metavar="SHARE")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    args = program.parse(parser, arguments)
    if args.dropout >= 1:
        parser.error(f"argument --dropout: {args.dropout} is not less than 1")
    return args


def run(args: argparse.Namespace) -> Result:
    """Train, test and draw."""
    training, testing = load_data()
    print(f"{len(training[0])} training and {len(testing[0])} test images")
    start = time.perf_counter()
    result = train(args, training, testing)
    print(f"trained {args.epochs} epochs in {time.perf_counter() - start:.1f} s")
    print(f"{result.accuracy:.2%} of the test images are read rightly")
    plot(result, testing[0], args.output)
    return result


if __name__ == "__main__":
    run(parse_arguments())
