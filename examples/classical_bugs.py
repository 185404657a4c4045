"""Nine classical bugs of training loops, each found by a check that does not know it.

`broken_training.py` hides five bugs in one loop. Here every loop has one bug, of those that
everybody makes once. `checks` gets a training loop and makes the same checks, in the same order,
with every one of them:

1. are two starts the same? (data that is not seeded)
2. do neighbouring examples have different labels? (data that is not shuffled)
3. is the first loss about -log(1 / classes)? (last weights that are too large)
4. is there a NaN? (logarithm of a negative output)
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import diagnosis
import digits
import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training
from funcgrad import nn, optim

CLASSES, BATCH, RATE = 10, 64, 0.2
BUGS = (
    "data not seeded", "data not shuffled", "large last weights",
    "log of negative output", "deep sigmoid", "clipped loss",
    "rate x 100", "gradients never reset", "softmax twice",
)  # fmt: skip


# Loops with one bug.


def make_training(bug: str | None, seed: int) -> diagnosis.Training:
    """A training loop for 8 x 8 digits, with a bug or without."""
    is_deep = bug == "deep sigmoid"
    params = training.dense((64, *[32] * (8 if is_deep else 1), CLASSES), seed)
    params[-1]["w"] *= 8 if bug == "large last weights" else 0.3

    def loss(params: training.Layers, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            sums = x @ layer["w"] + layer["b"]
            x = nn.sigmoid(sums) if is_deep else nn.relu(sums)
        logits = x @ params[-1]["w"] + params[-1]["b"]
        if bug == "softmax twice":
            logits = nn.softmax(logits)  # the loss applies it, too
        chances = fnp.log(logits) if bug == "log of negative output" else nn.log_softmax(logits)
        value = -fnp.mean(fnp.take_along_axis(chances, y[:, None], axis=1))
        return fnp.minimum(value, 1.0) if bug == "clipped loss" else value

    rate = 100 * RATE if bug == "rate x 100" else RATE
    # With momentum 1, each step is along the sum of all gradients, as where none is ever reset.
    momentum = 1.0 if bug == "gradients never reset" else 0.5
    return diagnosis.Training(loss, params, optim.sgd(rate, momentum))


def batches(bug: str | None, seed: int) -> Iterator[tuple[Any, Any]]:
    """Batches for ever, epoch after epoch."""
    images, labels, *_ = digits.load()
    orders = np.random.default_rng(None if bug == "data not seeded" else seed)
    while True:
        order = orders.permutation(len(labels))
        if bug == "data not shuffled":
            order = np.argsort(labels, kind="stable")
        for rows in order[: len(labels) // BATCH * BATCH].reshape(-1, BATCH):
            yield images[rows], labels[rows]


# The checks.


def checks(
    loop: diagnosis.Training, batch: tuple[Any, Any], again: tuple[Any, Any]
) -> Iterator[tuple[bool, str, str]]:
    """Yield, for each check, whether it fails, its verdict and the reason.

    `batch` and `again` are the first batches of two starts.
    """
    loss, params, optimizer = loop
    (x, y), chance = batch, np.log(CLASSES)
    yield not np.array_equal(x, again[0]), "not reproducible", "two starts give different batches"
    same = np.mean(y[1:] == y[:-1])
    yield same > 3 / CLASSES, "not shuffled", f"{same:.0%} of neighbours have the same label"
    with np.errstate(invalid="ignore"):
        first, slopes = fg.value_and_grad(loss)(params, x, y)
    yield first > 1.5 * chance, "first loss", f"{first:.2f}, but -log(1 / 10) is {chance:.2f}"
    found = diagnosis.worst(loop, x, y)
    yield found.verdict != diagnosis.HEALTHY, found.verdict, "".join(found.reasons[:1])
    updates, state = optimizer.update(slopes, optimizer.init(params))
    size, nothing = optim.global_norm(updates), fg.tree.map(np.zeros_like, params)
    for _ in range(50):
        updates, state = optimizer.update(nothing, state)
    kept = optim.global_norm(updates) / size
    yield kept > 0.5, "does not forget", f"50 steps with gradient 0 later, steps are {kept:.0%}"
    best = min(training.train(*loop, itertools.repeat(batch, 300))[1])
    yield best > 0.1, "cannot overfit", f"the loss of one batch of {BATCH} stays at {best:.2f}"


def diagnose(bug: str | None, seed: int) -> diagnosis.Finding:
    """The first check that fails; none of them knows the bug."""
    starts = [next(batches(bug, seed)) for _ in range(2)]
    for is_bad, verdict, reason in checks(make_training(bug, seed), *starts):
        if is_bad:
            return diagnosis.Finding(verdict, (reason,))
    return diagnosis.Finding(diagnosis.HEALTHY)


# The picture.


def plot(
    found: dict[str | None, diagnosis.Finding], losses: dict[str | None, list[float]], path: Path
) -> None:
    """Draw the loss of every loop beside that of the loop without a bug."""
    figure, axes = program.panels(3, 3, 12, 8, sharex=True, sharey=True)
    for one, bug in zip(axes.flat, BUGS, strict=True):
        one.semilogy(losses[None], color="tab:green", label="no bug")
        one.semilogy(losses[bug], color="tab:red", label="this bug")
        one.set(title=f"{bug}: {found[bug].verdict}", ylim=(1e-2, 30))
        if not np.isfinite(losses[bug]).any():
            one.text(0.5, 0.9, "every loss is NaN", ha="center", transform=one.transAxes)
    axes[0, 0].legend(loc="lower left")
    for one in axes[:, 0]:
        one.set_ylabel("loss")
    for one in axes[-1]:
        one.set_xlabel("step")
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Find classical bugs.", "classical_bugs.png", steps=(1, 300), seed=(0, 0)
)


def run(args: argparse.Namespace) -> dict[str | None, diagnosis.Finding]:
    """Diagnose and train every loop; returns the findings."""
    found, losses = {}, {}
    for bug in (None, *BUGS):
        found[bug] = diagnose(bug, args.seed)
        steps = itertools.islice(batches(bug, args.seed), args.steps)
        with np.errstate(all="ignore"):
            losses[bug] = training.train(*make_training(bug, args.seed), steps)[1]
        reason = " ".join(found[bug].reasons) or f"the last loss is {losses[bug][-1]:.3f}"
        print(f"{bug or 'no bug':23} {found[bug].verdict:16} {reason}")
    plot(found, losses, args.output)
    return found


if __name__ == "__main__":
    run(parse_arguments())
