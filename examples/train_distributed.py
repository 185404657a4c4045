"""Train the network of `mnist_mlp.py` on many processes, each with its share of every batch.

A global batch is split into a fixed number of equal parts, and every process takes some
neighbouring parts. It computes the gradients of its parts one after the other and adds them
pairwise (gradient accumulation). One `psum` adds the gradients of all processes. With
`--deterministic`, this happens in the same order for 1, 2 and 4 processes, so the losses agree to
the last bit. The state is saved after every epoch, and any number of processes can resume from it.
Run it with

    mpiexec -n 2 python examples/train_distributed.py

or without mpiexec, as one process. It prints the losses and the accuracy and writes
`train_distributed.png`. With `--save FILE`, it saves the state; `--resume FILE` continues from it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import funcgrad as fg
import funcgrad.numpy as fnp
import program
from funcgrad import data, distributed, lax, nn, optim, random

AXIS = "data"
SIDE = 28
Params = list[dict[str, Any]]


class Images(NamedTuple):
    """Grey values between 0 and 1 in float32, `(n, 784)`, and labels 0-9."""

    x: np.ndarray
    y: np.ndarray


def load_images() -> Images:
    """scikit-learn's 1,797 digits, brought from 8x8 to 28x28 pixels."""
    small, labels = load_digits(return_X_y=True)
    places = (np.arange(SIDE) + 0.5) * 8 / SIDE - 0.5
    weights = np.array([np.interp(places, np.arange(8), row) for row in np.eye(8)])
    images = np.einsum("nij,ia,jb->nab", small.reshape(-1, 8, 8) / 16, weights, weights)
    return Images(images.reshape(-1, SIDE**2).astype(np.float32), labels.astype(np.int32))


def init_params(key: np.ndarray, sizes: tuple[int, ...]) -> Params:
    """Weights with variance 2 / fan-in (He et al., 2015) and zero biases, one dict per layer."""
    init = nn.initializers.he_normal()
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": init(k, (m, n), np.float32), "b": np.zeros(n, np.float32)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params: Params, x: Any) -> Any:
    """Logits `(n, 10)`."""
    *hidden, last = params
    for layer in hidden:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss_fn(params: Params, batch: Images) -> Any:
    """Mean cross-entropy between the softmax of the logits and the labels."""
    log_probabilities = nn.log_softmax(predict(params, batch.x))
    return -fnp.mean(fnp.take_along_axis(log_probabilities, batch.y[:, None], axis=1))


def pairwise_sum(trees: list[Any]) -> Any:
    """The sum of pytrees: neighbours, then neighbouring sums, and so on."""
    while len(trees) > 1:
        pairs = zip(trees[::2], trees[1::2], strict=False)
        rest = trees[len(trees) // 2 * 2 :]
        trees = [fg.tree.map(lambda a, b: a + b, left, right) for left, right in pairs] + rest
    return trees[0]


def make_step(
    optimizer: optim.GradientTransformation, parts: int
) -> Callable[[Params, Any, Images], tuple[Params, Any, Any]]:
    """A compiled step: parameters, state, and the share of this process of a global batch.

    Args:
        optimizer: The same in all processes, which therefore keep the same parameters.
        parts: Into how many parts the global batch is cut.
    """

    def step(params: Params, state: Any, share: Images) -> tuple[Params, Any, Any]:
        own = parts // lax.axis_size(AXIS)
        size = len(share.x) // own
        rows = [
            fg.value_and_grad(loss_fn)(
                params, Images(*(x[i * size : (i + 1) * size] for x in share))
            )
            for i in range(own)
        ]
        loss, grads = lax.psum(pairwise_sum(rows), AXIS)
        grads = fg.tree.map(lambda g: g / np.float32(parts), grads)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, loss / np.float32(parts)

    return fg.jit(step, donate_argnums=(0, 1))


def run(args: argparse.Namespace) -> list[float]:
    """The losses of the steps that were made."""
    images = load_images()
    key, params_key = random.split(random.key(args.seed))
    optimizer = optim.adam(args.lr)
    with distributed.spmd(axis_name=AXIS, deterministic=args.deterministic):
        if args.parts % distributed.size():
            raise SystemExit(f"--parts {args.parts} cannot be shared by {distributed.size()}")
        params = init_params(params_key, (SIDE**2, *args.hidden, 10))
        state, start = optimizer.init(params), 0
        if args.resume is not None:
            saved = distributed.load(args.resume, {"params": params, "state": state, "epoch": 0})
            params, state, start = saved["params"], saved["state"], saved["epoch"]
        step = make_step(optimizer, args.parts)
        losses: list[float] = []
        for epoch in range(start, args.epochs):
            order = random.fold_in(key, epoch)  # the same in all processes
            for batch in data.batches(images, args.batch_size, seed=order, drop_last=True):
                params, state, loss = step(params, state, distributed.shard(batch))
                losses.append(float(loss))
            distributed.echo(f"epoch {epoch + 1:3d}   loss {losses[-1]:.6f}")
            if args.save is not None:
                saved = {"params": params, "state": state, "epoch": epoch + 1}
                distributed.save(args.save, saved)
        share = distributed.shard(images)
        right = np.sum(np.argmax(predict(params, share.x), axis=1) == share.y)
        accuracy = int(lax.psum(right, AXIS)) / len(images.x)
        distributed.echo(f"accuracy {accuracy:.2%} on {distributed.size()} processes")
    return losses


def plot(losses: list[float], path: Path) -> None:
    """The losses of all steps."""
    figure, ((axes,),) = program.panels(1, 1, 6, 3)
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set(title="loss of every step", xlabel="step", ylabel="cross-entropy")
    program.save(figure, path)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = program.parser("Train an MLP on digits on many processes.", "train_distributed.png")
    parser.add_argument("--epochs", type=program.whole(1), default=5)
    parser.add_argument(
        "--batch-size", type=program.whole(1), default=512, help="of all processes together"
    )
    parser.add_argument(
        "--parts", type=program.whole(1), default=4, help="of a batch, a multiple of processes"
    )
    parser.add_argument("--hidden", type=program.whole(1), nargs="+", default=[1024] * 3)
    parser.add_argument("--lr", type=program.positive, default=5e-4)
    parser.add_argument("--seed", type=program.whole(0), default=0)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--resume", type=Path)
    return program.parse(parser, arguments)


def main(arguments: list[str] | None = None) -> list[float]:
    """Entry point."""
    args = parse_arguments(arguments)
    losses = run(args)
    if distributed.is_main():
        plot(losses, args.output)
    return losses


if __name__ == "__main__":
    main()
