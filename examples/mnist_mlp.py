"""Train the network 784-1024-1024-1024-10 on images of digits, and watch its gradients.

With `--data FOLDER` it reads the four files of MNIST, or of Fashion-MNIST, in the IDX format. Those
of `draw_digits.py` have the same shape and are about as hard, but are drawn by a program; they are
in use here. Without `--data`, it uses the 1,797 digits that come with scikit-learn, enlarged from
8x8 to 28x28 pixels, which are not MNIST either. A thread shifts the images at random while the
compiled step runs. The optimiser is RMSprop with momentum, whose rate rises and then falls along a
cosine. The gradient is clipped by its norm, which is recorded before and after. The running mean of
the parameters is tested and saved. Run it with

    python examples/draw_digits.py
    python examples/mnist_mlp.py --data . --epochs 5 --batch-size 128 --lr 5e-4

It says which data it uses, and prints for every epoch the mean loss, the accuracies, the loss on
the test images and the time of a batch. It writes `mnist_training.png`; with `--save FILE`, it also
saves the parameters.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import funcgrad as fg
import funcgrad.numpy as fnp
import program
from funcgrad import data, diagnostics, nn, optim

SIDE = 28
CLASSES = 10
TEST_FRACTION = 0.2
LARGEST_SHIFT = 2

Params = list[dict[str, Any]]


# The data.


class Images(NamedTuple):
    """Grey values between 0 and 1 in float32, `(n, 28, 28)`, and labels 0-9."""

    x: np.ndarray
    y: np.ndarray


def load_images(folder: Path | None) -> tuple[Images, Images]:
    """Images for training and for testing: of the files in a folder, or scikit-learn's."""
    if folder is not None:
        files = data.mnist(folder)
        return (
            Images(scaled(files.train_images, 255), files.train_labels.astype(np.int32)),
            Images(scaled(files.test_images, 255), files.test_labels.astype(np.int32)),
        )
    small, labels = load_digits(return_X_y=True)
    images = Images(upsampled(scaled(small.reshape(-1, 8, 8), 16)), labels.astype(np.int32))
    return data.train_test_split(images, TEST_FRACTION, seed=0, stratify=images.y)


def source_of(folder: Path | None) -> str:
    """Which images they are; `draw_digits.py` says it in a file beside its own."""
    if folder is None:
        return "scikit-learn's digits, enlarged, not MNIST"
    note = folder / "README"
    return note.read_text(encoding="utf-8").strip() if note.exists() else f"the files in {folder}"


def scaled(images: np.ndarray, brightest: int) -> np.ndarray:
    """Grey values as float32 between 0 and 1."""
    return images.astype(np.float32) / np.float32(brightest)


def upsampled(images: np.ndarray) -> np.ndarray:
    """Images brought to 28x28 pixels by linear interpolation along both axes."""
    count = images.shape[1]
    places = (np.arange(SIDE) + 0.5) * count / SIDE - 0.5
    weights = np.array([np.interp(places, np.arange(count), row) for row in np.eye(count)])
    return np.einsum("nij,ia,jb->nab", images, weights, weights).astype(np.float32)


def shifted(images: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Every image moved by up to two pixels along both axes."""
    r = LARGEST_SHIFT
    moves = fg.random.randint(key, (2, len(images)), 0, 2 * r + 1)
    padded = np.pad(images, ((0, 0), (r, r), (r, r)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (SIDE, SIDE), axis=(1, 2))
    return windows[np.arange(len(images)), moves[0], moves[1]]


def shifted_batches(images: Images, size: int, key: np.ndarray) -> Iterator[Images]:
    """Every image once, in random order, moved at random."""
    order, moves = fg.random.split(key)
    for i, batch in enumerate(data.batches(images, size, seed=order)):
        yield Images(shifted(batch.x, fg.random.fold_in(moves, i)), batch.y)


# The model.


def init_params(key: np.ndarray, sizes: tuple[int, ...]) -> Params:
    """Weights with variance 2 / fan-in (He et al., 2015) and zero biases, one dict per layer."""
    init = nn.initializers.he_normal()
    keys = fg.random.split(key, len(sizes) - 1)
    return [
        {"w": init(k, (m, n), np.float32), "b": np.zeros(n, np.float32)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params: Params, x: Any) -> Any:
    """Logits `(n, 10)` for images `(n, 28, 28)`."""
    *hidden, last = params
    x = x.reshape(len(x), -1)
    for layer in hidden:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss_fn(params: Params, batch: Images) -> Any:
    """Mean cross-entropy between the softmax of the logits and the labels."""
    log_probabilities = nn.log_softmax(predict(params, batch.x))
    return -fnp.mean(fnp.take_along_axis(log_probabilities, batch.y[:, None], axis=1))


# Training.


BEFORE, AFTER = "before clipping", "after clipping"


@dataclass
class Progress:
    """The losses and norms of each step, and the accuracies after each epoch."""

    steps: diagnostics.History = field(default_factory=diagnostics.History)
    train_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)
    mean_loss: list[float] = field(default_factory=list)
    test_loss: list[float] = field(default_factory=list)
    seconds_per_batch: list[float] = field(default_factory=list)


def make_optimizer(args: argparse.Namespace, steps: int) -> optim.GradientTransformation:
    """RMSprop behind a bound that is watched from both sides; the mean of the parameters last."""
    rate = optim.warmup_cosine_decay_schedule(0.0, args.lr, max(steps // 20, 1), steps + 1)
    return optim.chain(
        diagnostics.monitor(BEFORE),
        optim.clip_by_global_norm(args.max_norm),
        diagnostics.monitor(AFTER),
        optim.rmsprop(rate, momentum=0.9),
        optim.params_ema(0.95),
    )


def make_step(
    optimizer: optim.GradientTransformation,
) -> Callable[[Params, Any, Images], tuple[Params, Any, Any]]:
    """A compiled step, whose old parameters and state are overwritten."""

    def step(params: Params, state: Any, batch: Images) -> tuple[Params, Any, Any]:
        loss, grads = fg.value_and_grad(loss_fn)(params, batch)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, loss

    return fg.jit(step, donate_argnums=(0, 1))


def train(args: argparse.Namespace, train_set: Images, test_set: Images) -> tuple[Params, Progress]:
    """Train for `args.epochs`; returns the mean of the parameters, and what happened."""
    key, params_key = fg.random.split(fg.random.key(args.seed))
    params = init_params(params_key, (SIDE * SIDE, *args.hidden, CLASSES))
    steps = args.epochs * -(-len(train_set.x) // args.batch_size)
    optimizer = make_optimizer(args, steps)
    state = optimizer.init(params)
    step, classify = make_step(optimizer), fg.jit(predict)
    progress = Progress()
    with tqdm(total=steps, desc="training", unit="step") as bar:
        for epoch in range(args.epochs):
            epoch_batches = shifted_batches(
                train_set, args.batch_size, fg.random.fold_in(key, epoch)
            )
            start = time.perf_counter()
            with data.prefetch(epoch_batches) as ready:
                for batch in ready:
                    params, state, loss = step(params, state, batch)
                    progress.steps.record(state, loss=loss)
                    bar.update()
            count = steps // args.epochs
            progress.seconds_per_batch.append((time.perf_counter() - start) / count)
            progress.mean_loss.append(float(np.mean(progress.steps.values["loss"][-count:])))
            mean = state[-1].ema
            progress.train_accuracy.append(accuracy(classify, mean, train_set))
            progress.test_accuracy.append(accuracy(classify, mean, test_set))
            progress.test_loss.append(mean_loss(classify, mean, test_set))
            bar.write(summary(epoch + 1, progress), file=sys.stdout)
    return mean, progress


def accuracy(classify: Callable[..., Any], params: Params, images: Images) -> float:
    """Fraction of the images whose largest logit is at the label."""
    right = sum(
        int(np.sum(np.argmax(classify(params, batch.x), axis=-1) == batch.y))
        for batch in data.batches(images, 1024)
    )
    return right / len(images.x)


def mean_loss(classify: Callable[..., Any], params: Params, images: Images) -> float:
    """Mean cross-entropy of the images."""
    total = 0.0
    for batch in data.batches(images, 1024):
        logits = classify(params, batch.x)
        losses = nn.losses.softmax_cross_entropy_with_integer_labels(logits, batch.y)
        total += float(np.sum(losses))
    return total / len(images.x)


def summary(epoch: int, progress: Progress) -> str:
    """One line about the latest epoch."""
    return (
        f"epoch {epoch:3d}   loss {progress.mean_loss[-1]:.3f}   "
        f"gradient {progress.steps.norms[BEFORE][-1]:.3f}   "
        f"train {progress.train_accuracy[-1]:7.2%}   test {progress.test_accuracy[-1]:7.2%}, "
        f"cross-entropy {progress.test_loss[-1]:.4f}   "
        f"{1e3 * progress.seconds_per_batch[-1]:.1f} ms a batch"
    )


# The picture.


def plot_progress(progress: Progress, max_norm: float, path: Path) -> None:
    """Draw loss, norms of the gradient before and after clipping, and accuracies."""
    figure, ((left, middle, right),) = program.panels(1, 3, 12, 3.6)
    left.semilogy(progress.steps.values["loss"], color="tab:red")
    left.set(title="loss of the batches", xlabel="step", ylabel="cross-entropy")
    middle.semilogy(progress.steps.norms[BEFORE], color="tab:gray", label=BEFORE)
    middle.semilogy(progress.steps.norms[AFTER], color="tab:blue", label=AFTER)
    middle.axhline(max_norm, color="black", linewidth=0.8, linestyle=":")
    middle.set(title="norm of the gradient", xlabel="step")
    middle.legend()
    epochs = range(1, len(progress.test_accuracy) + 1)
    right.plot(epochs, progress.train_accuracy, marker=".", label="train")
    right.plot(epochs, progress.test_accuracy, marker=".", label="test")
    right.set(title="accuracy", xlabel="epoch", ylabel="fraction correct")
    right.legend(loc="lower right")
    for axes in (left, middle, right):
        axes.locator_params(axis="x", integer=True)
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Train an MLP on images of digits.")
    whole, positive = program.whole(1), program.positive
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="with the files of MNIST")
    parser.add_argument("--epochs", type=whole, default=60, metavar="N")
    parser.add_argument("--batch-size", type=whole, default=512, metavar="N")
    parser.add_argument("--hidden", type=whole, nargs="+", default=[1024] * 3, metavar="WIDTH")
    parser.add_argument("--lr", type=positive, default=2e-4, metavar="RATE")
    parser.add_argument("--max-norm", type=positive, default=1.0, metavar="NORM")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    parser.add_argument("--save", type=Path, metavar="FILE", help="where the parameters go")
    return program.parse(parser, arguments)


def main(arguments: list[str] | None = None) -> Progress:
    """Entry point."""
    args = parse_arguments(arguments)
    try:
        train_set, test_set = load_images(args.data)
    except (OSError, fg.errors.FileFormatError) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")
    print(f"{len(train_set.x)} training and {len(test_set.x)} test images: {source_of(args.data)}")
    start = time.perf_counter()
    params, progress = train(args, train_set, test_set)
    print(f"trained {args.epochs} epochs in {time.perf_counter() - start:.1f} s")
    plot_progress(progress, args.max_norm, args.out_dir / "mnist_training.png")
    if args.save is not None:
        data.save(args.save, params)
        print(f"wrote {args.save}")
    return progress


if __name__ == "__main__":
    main()
