"""Nine classical bugs of training loops, each found by a check that does not know it.

`broken_training.py` hides five bugs in one loop. Here every loop has one bug, of those that
everybody makes once. `diagnose` gets a training loop and makes the same checks, in the same order,
with every one of them:

1. are two starts the same? (data that is not seeded)
2. do neighbouring examples have different labels? (data that is not shuffled)
3. is there a NaN? (logarithm of a negative output)
4. is the first loss about -log(1 / classes)? (last weights that are too large)
5. is every gradient healthy? (deep sigmoids; a loss that is clipped instead of its gradient; a
   learning rate a hundred times too high)
6. does the optimiser forget? (gradients that are never reset)
7. can one batch be learned by heart? (softmax applied twice)

Run it with

    python examples/classical_bugs.py

It prints what each check says, and writes `classical_bugs.png`.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import funcgrad as fg
import funcgrad.numpy as fnp
import program
from funcgrad import diagnostics, nn, optim

CLASSES, BATCH, RATE = 10, 64, 0.2
BUGS = {
    "data not seeded": "not reproducible",
    "data not shuffled": "not shuffled",
    "log of negative output": "nan",
    "large last weights": "first loss",
    "deep sigmoid": "vanishing",
    "clipped loss": "zero gradient",
    "rate x 100": "step too large",
    "gradients never reset": "does not forget",
    "softmax twice": "cannot overfit",
}
"""Each with the verdict that finds it."""

Params = list[dict[str, Any]]


@dataclass(frozen=True)
class Training:
    """A loss of parameters and a batch, parameters, an optimiser, and what makes batches."""

    loss: Callable[..., Any]
    params: Params
    optimizer: optim.GradientTransformation
    batches: Callable[[], Iterator[tuple[Any, Any]]]


# Loops with one bug.


def adding_up(rate: float) -> optim.GradientTransformation:
    """Gradient descent with gradients that are added to those of all steps before: the bug."""

    def update(slopes: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        state = fg.tree.map(np.add, state, slopes)
        return fg.tree.map(lambda s: -rate * s, state), state

    return optim.GradientTransformation(lambda params: fg.tree.map(np.zeros_like, params), update)


def make_training(bug: str | None, seed: int) -> Training:
    """A training loop for 8 x 8 digits, with a bug or without."""
    is_deep, rng = bug == "deep sigmoid", np.random.default_rng(seed)
    sizes = (64, *[32] * (8 if is_deep else 1), CLASSES)
    params = [
        {"w": rng.standard_normal((m, n)) * np.sqrt(2 / m), "b": np.zeros(n)}
        for m, n in itertools.pairwise(sizes)
    ]
    params[-1]["w"] *= 8 if bug == "large last weights" else 0.3

    def loss(params: Params, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            sums = x @ layer["w"] + layer["b"]
            x = nn.sigmoid(sums) if is_deep else nn.relu(sums)
        logits = x @ params[-1]["w"] + params[-1]["b"]
        if bug == "softmax twice":
            logits = nn.softmax(logits)  # the loss applies it, too
        chances = fnp.log(logits) if bug == "log of negative output" else nn.log_softmax(logits)
        value = -fnp.mean(fnp.take_along_axis(chances, y[:, None], axis=1))
        return fnp.minimum(value, 1.0) if bug == "clipped loss" else value

    def batches() -> Iterator[tuple[Any, Any]]:
        images, labels = load_digits(return_X_y=True)
        orders = np.random.default_rng(None if bug == "data not seeded" else seed)
        while True:
            order = orders.permutation(len(labels))
            if bug == "data not shuffled":
                order = np.argsort(labels, kind="stable")
            for start in range(0, len(labels) - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                yield images[rows] / 16, labels[rows]

    rate = 100 * RATE if bug == "rate x 100" else RATE
    optimizer = adding_up(rate) if bug == "gradients never reset" else optim.sgd(rate, 0.5)
    return Training(loss, params, optimizer, batches)


# The checks.


def diagnose(training: Training) -> tuple[str, str] | None:
    """The first verdict that is not good, with a reason; ``None`` if all is well."""
    (x, y), (again, _) = next(training.batches()), next(training.batches())
    if not np.array_equal(x, again):
        return "not reproducible", "two starts give different batches: seed what makes them"
    same = np.mean(y[1:] == y[:-1])
    if same > 3 / CLASSES:
        return (
            "not shuffled",
            f"{same:.0%} of neighbours have the same label, not {1 / CLASSES:.0%}",
        )
    nan = diagnostics.find_nan(training.loss, training.params, x, y)
    if nan is not None:
        return nan.kind, f"{nan.operation} at {nan.line}"
    value, slopes = fg.value_and_grad(training.loss)(training.params, x, y)
    if value > 1.5 * np.log(CLASSES):
        return "first loss", f"{value:.2f}, but -log(1 / {CLASSES}) is {np.log(CLASSES):.2f}"
    updates, state = training.optimizer.update(slopes, training.optimizer.init(training.params))
    report = diagnostics.gradient_report(training.loss, training.params, x, y, updates=updates)
    if not report:
        worst = next(leaf for leaf in report.leaves if leaf.verdict == report.verdict)
        return report.verdict, f"{worst.path}: {worst.reason}"
    first, nothing = optim.global_norm(updates), fg.tree.map(np.zeros_like, slopes)
    for _ in range(50):
        updates, state = training.optimizer.update(nothing, state)
    if optim.global_norm(updates) > 0.5 * first:
        return "does not forget", "50 steps with gradient 0 still change the parameters"
    best = min(train(training, itertools.repeat((x, y)), 300))
    if best > 0.1:
        return "cannot overfit", f"the loss of one batch of {BATCH} stays at {best:.2f}"
    return None


def train(training: Training, batches: Iterator[tuple[Any, Any]], steps: int) -> list[float]:
    """The losses of so many steps."""

    @fg.jit
    def step(params: Params, state: Any, x: Any, y: Any) -> tuple[Params, Any, Any]:
        value, slopes = fg.value_and_grad(training.loss)(params, x, y)
        updates, state = training.optimizer.update(slopes, state, params)
        return optim.apply_updates(params, updates), state, value

    params, state = training.params, training.optimizer.init(training.params)
    losses = []
    for x, y in itertools.islice(batches, steps):
        params, state, value = step(params, state, x, y)
        losses.append(float(value))
    return losses


# The picture.


def plot(losses: dict[str | None, list[float]], path: Path) -> None:
    """Draw the loss of every loop beside that of the loop without a bug."""
    figure, axes = program.panels(3, 3, 12, 8, sharex=True)
    for one, (bug, verdict) in zip(axes.flat, BUGS.items(), strict=True):
        one.semilogy(losses[None], color="tab:green", label="no bug")
        one.semilogy(losses[bug], color="tab:red", label=bug)
        one.set(title=f"{bug}: {verdict}", ylim=(1e-3, 30))
        if not np.isfinite(losses[bug]).any():
            one.text(0.5, 0.9, "every loss is NaN", ha="center", transform=one.transAxes)
    for one in axes[:, 0]:
        one.set_ylabel("loss")
    for one in axes[-1]:
        one.set_xlabel("step")
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Find classical bugs.", "classical_bugs.png")
    parser.add_argument("--steps", type=program.whole(1), default=300, metavar="N")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    return program.parse(parser, arguments)


def run(args: argparse.Namespace) -> dict[str | None, tuple[str, str] | None]:
    """Diagnose and train every loop; returns the findings."""
    found, losses = {}, {}
    for bug in (None, *BUGS):
        training = make_training(bug, args.seed)
        found[bug] = diagnose(training)
        with np.errstate(all="ignore"):
            losses[bug] = train(training, training.batches(), args.steps)
        verdict, reason = found[bug] or ("healthy", f"the last loss is {losses[bug][-1]:.3f}")
        print(f"{bug or 'no bug':23} {verdict:16} {reason}")
    plot(losses, args.output)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    run(parse_arguments(arguments))


if __name__ == "__main__":
    main()
