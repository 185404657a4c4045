"""Train a small network on real handwritten digits, plot its training, and serve predictions.

A multi-layer perceptron 64-256-128-10 learns the 1,797 scanned digits (8x8 grey values) that come
with scikit-learn. The model, the loss and the optimiser (Adam) are plain functions of nested dicts
and lists of arrays. One compiled function does a whole training step. Run it with

    python examples/train_digits.py

It prints the loss and accuracy of every epoch, writes `training.png` and `predictions.png`, and
then measures how many images per second the compiled model classifies.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import funcgrad as fg
import funcgrad.numpy as fnp
import program

CLASSES = 10
PIXELS = 64
BRIGHTEST = 16.0
TEST_FRACTION = 0.2
SPLIT_SEED = 0

Params = list[dict[str, Any]]
State = dict[str, Any]


# The data.


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 grey values between 0 and 1, and their labels 0-9."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load_data(dtype: np.dtype[Any]) -> Digits:
    """Split the digits once, always in the same way, with equal shares of every class."""
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        (images / BRIGHTEST).astype(dtype),
        labels.astype(np.int32),
        test_size=TEST_FRACTION,
        random_state=SPLIT_SEED,
        stratify=labels,
    )
    return Digits(train_x, train_y, test_x, test_y)


def batches(count: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Index arrays that visit `count` rows once, in random order, `size` at a time."""
    order = rng.permutation(count)
    for start in range(0, count, size):
        yield order[start : start + size]


# The model.


def init_params(key: Any, sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Params:
    """Weights with variance 2 / fan-in (He et al., 2015) and zero biases, one dict per layer."""
    keys = fg.random.split(key, len(sizes) - 1)
    return [
        {
            "w": fg.random.normal(layer_key, (m, n), dtype=dtype) * (2.0 / m) ** 0.5,
            "b": fnp.zeros(n, dtype=dtype),
        }
        for layer_key, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params: Params, x: Any) -> Any:
    """Logits (images, 10) for images (images, 64)."""
    *hidden, last = params
    for layer in hidden:
        x = fg.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss_fn(params: Params, x: Any, labels: Any) -> Any:
    """Mean cross-entropy between the softmax of the logits and the labels."""
    log_probabilities = fg.nn.log_softmax(predict(params, x))
    targets = fg.nn.one_hot(labels, CLASSES, dtype=log_probabilities.dtype)
    return -fnp.mean(fnp.sum(targets * log_probabilities, axis=-1))


# The optimiser.


def init_adam(params: Params, dtype: np.dtype[Any]) -> State:
    """The parameters, running means of the gradient and of its square, and the step count."""
    return {
        "params": params,
        "mean": fg.tree.map(fnp.zeros_like, params),
        "square": fg.tree.map(fnp.zeros_like, params),
        "count": fnp.zeros((), dtype=dtype),
    }


def adam(state: State, grads: Params, lr: float) -> State:
    """One update of Adam (Kingma and Ba, 2015), as a function of state and gradient."""
    decay, square_decay, epsilon = 0.9, 0.999, 1e-8
    count = state["count"] + 1
    mean = fg.tree.map(lambda m, g: decay * m + (1 - decay) * g, state["mean"], grads)
    square = fg.tree.map(
        lambda s, g: square_decay * s + (1 - square_decay) * g * g, state["square"], grads
    )
    rate = lr * fnp.sqrt(1 - square_decay**count) / (1 - decay**count)
    params = fg.tree.map(
        lambda p, m, s: p - rate * m / (fnp.sqrt(s) + epsilon), state["params"], mean, square
    )
    return {"params": params, "mean": mean, "square": square, "count": count}


def make_train_step(lr: float) -> Callable[[State, Any, Any], tuple[State, Any]]:
    """A step `(state, x, labels) -> (state, loss)` whose old state may be overwritten."""

    def train_step(state: State, x: Any, labels: Any) -> tuple[State, Any]:
        loss, grads = fg.value_and_grad(loss_fn)(state["params"], x, labels)
        return adam(state, grads, lr), loss

    return fg.jit(train_step, donate_argnums=0)


# Training.


@dataclass
class History:
    """What each epoch ended with."""

    loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)


def train(args: argparse.Namespace, digits: Digits) -> tuple[Params, Callable[..., Any], History]:
    """Train for `args.epochs`; returns the parameters, jitted `predict` and the history."""
    sizes = (PIXELS, *args.hidden, CLASSES)
    params = init_params(fg.random.key(args.seed), sizes, args.dtype)
    state = init_adam(params, args.dtype)
    train_step, classify = make_train_step(args.lr), fg.jit(predict)
    rng = np.random.default_rng(args.seed)
    history = History()
    with tqdm(range(1, args.epochs + 1), desc="training", unit="epoch") as bar:
        for epoch in bar:
            state, loss = run_epoch(train_step, state, digits, args.batch_size, rng)
            record(history, loss, classify, state["params"], digits)
            bar.write(summary(epoch, history), file=sys.stdout)
    return state["params"], classify, history


def run_epoch(
    train_step: Callable[[State, Any, Any], tuple[State, Any]],
    state: State,
    digits: Digits,
    batch_size: int,
    rng: np.random.Generator,
) -> tuple[State, float]:
    """Visit every training image once; returns the new state and the mean loss per image."""
    total = 0.0
    for rows in batches(len(digits.train_x), batch_size, rng):
        state, loss = train_step(state, digits.train_x[rows], digits.train_y[rows])
        total += float(loss) * len(rows)
    return state, total / len(digits.train_x)


def record(
    history: History,
    loss: float,
    classify: Callable[..., Any],
    params: Params,
    digits: Digits,
) -> None:
    """Append one epoch to the history."""
    history.loss.append(loss)
    history.train_accuracy.append(accuracy(classify(params, digits.train_x), digits.train_y))
    history.test_accuracy.append(accuracy(classify(params, digits.test_x), digits.test_y))


def accuracy(logits: Any, labels: np.ndarray) -> float:
    """Fraction of rows whose largest logit is at the label."""
    return float(np.mean(np.argmax(logits, axis=-1) == labels))


def summary(epoch: int, history: History) -> str:
    """One line about the latest epoch."""
    return (
        f"epoch {epoch:3d}   loss {history.loss[-1]:.4f}   "
        f"train {history.train_accuracy[-1]:7.2%}   test {history.test_accuracy[-1]:7.2%}"
    )


# The pictures.


def plot_history(history: History, path: Path) -> None:
    """Draw loss and accuracies over the epochs."""
    epochs = range(1, len(history.loss) + 1)
    figure, ((left, right),) = program.panels(1, 2, 9, 3.6)
    left.semilogy(epochs, history.loss, marker=".", color="tab:red")
    left.set(title="training loss", xlabel="epoch", ylabel="cross-entropy")
    right.plot(epochs, history.train_accuracy, marker=".", label="train")
    right.plot(epochs, history.test_accuracy, marker=".", label="test")
    right.set(title="accuracy", xlabel="epoch", ylabel="fraction correct")
    right.legend(loc="lower right")
    for axes in (left, right):
        axes.locator_params(axis="x", integer=True)
    program.save(figure, path)


def plot_predictions(
    images: np.ndarray, predicted: np.ndarray, labels: np.ndarray, path: Path
) -> None:
    """Draw a grid of digits under their predicted labels, mistakes first and in red."""
    rows, columns = 4, 10
    chosen = np.argsort(predicted == labels, kind="stable")[: rows * columns]
    figure, grid = program.panels(rows, columns, columns * 0.9, rows * 1.15)
    for axes in grid.flat:
        axes.axis("off")
    for axes, index in zip(figure.axes, chosen, strict=False):
        axes.imshow(images[index].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        right = predicted[index] == labels[index]
        title = f"{predicted[index]}" if right else f"{predicted[index]} (is {labels[index]})"
        axes.set_title(title, fontsize=9, color="black" if right else "red")
    program.save(figure, path)


# Serving.


def images_per_second(
    classify: Callable[..., Any], params: Params, images: np.ndarray, seconds: float = 0.5
) -> float:
    """Throughput of `classify` on one batch, called again and again for about `seconds`."""
    classify(params, images)
    calls = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        classify(params, images)
        calls += 1
    return calls * len(images) / elapsed


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Train an MLP on scanned handwritten digits.")
    parser.add_argument("--epochs", type=program.whole(1), default=25, metavar="N")
    parser.add_argument(
        "--hidden",
        type=program.whole(1),
        nargs="+",
        default=[256, 128],
        metavar="WIDTH",
        help="widths of the hidden layers",
    )
    parser.add_argument("--batch-size", type=program.whole(1), default=128, metavar="N")
    parser.add_argument("--lr", type=program.positive, default=2e-3, metavar="RATE")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--no-jit", action="store_true", help="run eagerly, without the compiler")
    args = program.parse(parser, arguments)
    args.dtype = np.dtype(args.dtype)
    return args


def run(args: argparse.Namespace) -> History:
    """Train, draw, serve."""
    digits = load_data(args.dtype)
    print(f"{len(digits.train_x)} training and {len(digits.test_x)} test images, {args.dtype}")
    start = time.perf_counter()
    params, classify, history = train(args, digits)
    print(f"trained {args.epochs} epochs in {time.perf_counter() - start:.1f} s")
    predicted = np.argmax(classify(params, digits.test_x), axis=-1)
    plot_history(history, args.out_dir / "training.png")
    plot_predictions(digits.test_x, predicted, digits.test_y, args.out_dir / "predictions.png")
    for size in (1, 256):
        rate = images_per_second(classify, params, digits.test_x[:size])
        print(f"inference, batch {size:3d}: {rate:10,.0f} images/s")
    return history


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    args = parse_arguments(arguments)
    if args.no_jit:
        with fg.disable_jit():
            run(args)
    else:
        run(args)


if __name__ == "__main__":
    main()
