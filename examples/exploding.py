"""Exploding gradients in a recurrent network of 100 steps, and what cures them.

The network remembers: it sees a sequence of 100 numbers, h <- tanh(h w + x u + b), and has to say
at the end whether the sum of the last ten was positive. The gradient passes w^T once for each step.
If w stretches (its entries have variance 4 / width instead of 1 / width), the gradient grows
exponentially on its way back. Clipping the gradient by its norm helps, and so do orthogonal
weights, which stretch nothing. A warm-up of the learning rate helps with some initial weights and
not with others: try `--seed 1`. Run it with

    python examples/exploding.py

It prints gradients and losses, and writes `exploding.png`: gradients over the steps of the
sequence, and losses and norms of gradients over the time of training.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training
from funcgrad import diagnostics, nn, optim

LENGTH, LAST = 100, 10

Params = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """How large the recurrent weights are, and how training proceeds."""

    gain: float = 2.0
    is_orthogonal: bool = False
    max_norm: float | None = None
    warmup: int = 0


RECIPES = {
    "exploding": Recipe(),
    "clipping": Recipe(max_norm=1.0),
    "orthogonal": Recipe(gain=1.0, is_orthogonal=True),
    "warm-up": Recipe(warmup=200),
}


# The network.


def init_params(recipe: Recipe, width: int, seed: int) -> Params:
    """Recurrent weights with standard deviation gain / sqrt(width), or an orthogonal matrix."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((width, width)) / np.sqrt(width)
    if recipe.is_orthogonal:
        w = np.linalg.qr(w)[0]
    return {
        "w": recipe.gain * w,
        "u": 0.5 * rng.standard_normal(width),
        "b": np.zeros(width),
        "out": rng.standard_normal(width) / np.sqrt(width),
    }


def predict(params: Params, x: Any, taps: Any) -> Any:
    """Log odds (rows,) for sequences (LENGTH, rows); `taps` (LENGTH, rows, width) are added to h.

    The taps are zeros: their gradients are the gradients of all states h.
    """

    def step(h: Any, given: Any) -> tuple[Any, None]:
        now, tap = given
        return np.tanh(h @ params["w"] + now[:, None] * params["u"] + params["b"]) + tap, None

    h, _ = fg.lax.scan(step, np.zeros(taps.shape[1:]), (x, taps))
    return h @ params["out"]


def loss(params: Params, x: Any, taps: Any) -> Any:
    """Mean cross-entropy of the sign of the sum of the last numbers."""
    logits = predict(params, x, taps)
    labels = (fnp.sum(x[-LAST:], axis=0) > 0).astype(float)
    return fnp.mean(nn.losses.sigmoid_binary_cross_entropy(logits, labels))


def gradients_of_states(recipe: Recipe, args: argparse.Namespace) -> np.ndarray:
    """Norm of the gradient in h at each of the steps, before training."""
    x = np.random.default_rng(args.seed).standard_normal((LENGTH, args.batch_size))
    params, taps = init_params(recipe, args.width, args.seed), np.zeros((*x.shape, args.width))
    slopes = fg.jit(fg.grad(loss, argnums=2))(params, x, taps)
    return np.linalg.norm(slopes, axis=(1, 2))


# Training.


def make_optimizer(recipe: Recipe, rate: float) -> optim.GradientTransformation:
    """Gradient descent behind a monitor, with the cures of the recipe."""
    links = [diagnostics.monitor("gradient")]
    if recipe.max_norm is not None:
        links.append(optim.clip_by_global_norm(recipe.max_norm))
    schedule = optim.linear_schedule(0.0, rate, recipe.warmup) if recipe.warmup else rate
    return optim.chain(*links, optim.sgd(schedule))


def train(recipe: Recipe, args: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """The loss, and the norm of the gradient, of every step of one compiled loop."""
    optimizer, params = make_optimizer(recipe, args.lr), init_params(recipe, args.width, args.seed)
    rng = np.random.default_rng(args.seed + 1)
    data = rng.standard_normal((args.steps, LENGTH, args.batch_size))
    taps = np.zeros((LENGTH, args.batch_size, args.width))
    _, losses, norms = training.minimize(
        lambda params, x: loss(params, x, taps), params, optimizer, data,
        watch=lambda _, slopes: optim.global_norm(slopes),
    )  # fmt: skip
    return losses, norms


def last_loss(losses: np.ndarray) -> float:
    """The mean over the last tenth of the training."""
    return float(np.mean(losses[-max(1, len(losses) // 10) :]))


# The picture.


def plot(flows: dict[str, np.ndarray], runs: dict[str, Any], path: Path) -> None:
    """Draw the gradients of the states, the losses, and the norms of the gradients."""
    figure, ((left, middle, right),) = program.panels(1, 3, 15, 4.2)
    for name, flow in flows.items():
        left.semilogy(range(1, LENGTH + 1), np.maximum(flow, 1e-30), label=name)
    left.set(title="before training", xlabel="step of the sequence", ylabel="|gradient| of h")
    left.legend(fontsize=8)
    for name, (losses, norms) in runs.items():
        window = max(1, len(losses) // 25)
        middle.plot(training.smooth(losses, window), label=name)
        right.semilogy(norms, label=name, linewidth=0.8)
    middle.axhline(np.log(2), color="grey", linestyle=":", label="knowing nothing")
    middle.set(title="loss, smoothed", xlabel="step of training", ylabel="cross-entropy")
    middle.set_ylim(top=1.15)  # room for the legend
    middle.legend(fontsize=8, loc="upper right", ncols=2)
    right.set(title="norm of the gradient", xlabel="step of training")
    right.legend(fontsize=8)
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Exploding gradients of a recurrent network.",
    "exploding.png",
    steps=(1, 600),
    width=(2, 32),
    batch_size=(1, 32),
    lr=0.1,
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Look at the gradients, train with every recipe, and draw."""
    flows = {
        "weights 2 / sqrt(width)": gradients_of_states(RECIPES["exploding"], args),
        "weights 1 / sqrt(width)": gradients_of_states(Recipe(gain=1.0), args),
        "orthogonal": gradients_of_states(RECIPES["orthogonal"], args),
    }
    for name, flow in flows.items():
        print(f"{name:25} first / last gradient {flow[0] / flow[-1]:.1e}")
    runs = {name: train(recipe, args) for name, recipe in RECIPES.items()}
    for name, (losses, norms) in runs.items():
        print(f"{name:11} largest gradient {norms.max():8.1e}   loss {last_loss(losses):.3f}")
    plot(flows, runs, args.output)
    return flows, runs


if __name__ == "__main__":
    run(parse_arguments())
