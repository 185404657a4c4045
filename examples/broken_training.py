"""A training loop with five bugs, and the diagnostic that finds each.

A network 64-32-32-10 should learn to read scanned digits, but fails without raising an error.
`diagnosis.py` does not know the bugs: it gets the loss, the parameters, a batch and the optimiser,
and reports the worst problem. Each problem is repaired in turn, until the network learns:

1. the Kullback-Leibler divergence to one-hot targets takes the logarithm of 0;
2. the weights of the last layer are rounded, which has no derivative;
3. biases of the rectifiers are so low that no unit is ever on;
4. the first weights are so large that its tanh units are on their flat parts;
5. the learning rate is too large by a factor of 1,000.

Run it with

    python examples/broken_training.py

It prints every finding, and writes `broken_training.png` with the loss after each repair.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import diagnosis
import digits
import funcgrad as fg
import funcgrad.numpy as fnp
import program
import training
from funcgrad import optim

CLASSES, PIXELS, HIDDEN, BATCH, RATE = 10, 64, 32, 64, 0.2
# What a person repairs who reads a verdict.
REPAIRS = {
    "nan": "log of zero",
    "disconnected": "rounded weights",
    "dead units": "low biases",
    "saturated": "large weights",
    "step too large": "learning rate",
}

Params = dict[str, Any]


# The network, with its bugs.


def predict(params: Params, x: Any, bugs: frozenset[str]) -> Any:
    """Logits (rows, 10)."""
    x = fnp.tanh(x @ params["w1"] + params["b1"])
    x = fg.nn.relu(x @ params["w2"] + params["b2"])
    last = np.round(params["w3"], 1) if "rounded weights" in bugs else params["w3"]
    return x @ last + params["b3"]


def make_training(bugs: frozenset[str], seed: int) -> diagnosis.Training:
    """A training loop with some of the bugs."""

    def loss(params: Params, x: Any, labels: Any) -> Any:
        chances = fg.nn.log_softmax(predict(params, x, bugs))
        targets = fg.nn.one_hot(labels, CLASSES, dtype=chances.dtype)
        if "log of zero" in bugs:
            return fnp.mean(fnp.sum(targets * (np.log(targets) - chances), axis=-1))
        return -fnp.mean(fnp.sum(targets * chances, axis=-1))

    rate = 1000 * RATE if "learning rate" in bugs else RATE
    return diagnosis.Training(loss, init_params(bugs, seed), optim.sgd(rate, momentum=0.5))


def init_params(bugs: frozenset[str], seed: int) -> Params:
    """Weights of variance 1 / fan-in, unless there is a bug; biases are 0."""
    layers = training.dense((PIXELS, HIDDEN, HIDDEN, CLASSES), seed, variance=1.0)
    params = {f"{kind}{i}": layers[i - 1][kind] for kind in "wb" for i in (1, 2, 3)}
    if "low biases" in bugs:
        params["b2"] = np.full(HIDDEN, -30.0)
    if "large weights" in bugs:
        params["w1"] = 50 * params["w1"]
    return params


# Training.


class Stage(NamedTuple):
    """The training loop after some repairs: what is left, what was found, and how it learned."""

    bugs: frozenset[str]
    finding: diagnosis.Finding
    losses: list[float]
    accuracy: float


def examine(bugs: frozenset[str], data: digits.Digits, steps: int, seed: int) -> Stage:
    """Look for the worst problem at one batch, and train all the same."""
    broken = make_training(bugs, seed)
    finding = diagnosis.worst(broken, data.x[:256], data.y[:256])
    with np.errstate(all="ignore"):
        batches = zip(*training.batches((data.x, data.y), BATCH, steps, seed=0), strict=True)
        params, losses = training.train(*broken, batches)
        right = np.argmax(predict(params, data.test_x, bugs), axis=-1) == data.test_y
    return Stage(bugs, finding, losses, float(np.mean(right)))


def repaired(data: digits.Digits, steps: int, seed: int) -> Iterator[Stage]:
    """All stages: each verdict says which bug is repaired next."""
    bugs = frozenset(REPAIRS.values())
    while True:
        stage = examine(bugs, data, steps, seed)
        yield stage
        if REPAIRS.get(stage.finding.verdict) not in bugs:
            return
        bugs -= {REPAIRS[stage.finding.verdict]}


# The picture.


def repairs(count: int) -> str:
    """``1 repair``, ``2 repairs``."""
    return f"{count} repair{'s' * (count != 1)}"


def plot(stages: list[Stage], path: Path) -> None:
    """Draw the losses of all stages."""
    figure, ((axes,),) = program.panels(1, 1, 8.5, 4.2)
    for i, stage in enumerate(stages):
        label = f"{repairs(i)}: {stage.finding.verdict}, {stage.accuracy:.0%} right"
        smooth = training.smooth(stage.losses, max(1, len(stage.losses) // 40))
        axes.semilogy(smooth, color=f"C{i}", linewidth=1.2, label=label)
    axes.set(title="training after each repair", xlabel="step", ylabel="loss, smoothed")
    if np.isnan(stages[0].losses).all():
        axes.text(0.5, 0.94, "0 repairs: every loss is NaN", ha="center", transform=axes.transAxes)
    figure.legend(loc="outside right upper", fontsize=8)
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Find the bugs of a training loop.", "broken_training.png")
    parser.add_argument("--steps", type=program.whole(1), default=400, metavar="N")
    parser.add_argument("--no-jit", action="store_true", help="run eagerly, without the compiler")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    return program.parse(parser, arguments)


def run(args: argparse.Namespace) -> list[Stage]:
    """Find and repair one bug after the other, and train after each repair."""
    with fg.disable_jit(args.no_jit):
        found = repaired(digits.load(), args.steps, args.seed)
        stages = list(tqdm(found, total=len(REPAIRS) + 1, desc="stages", leave=False))
    for i, stage in enumerate(stages):
        print(f"after {repairs(i)}: {stage.accuracy:.1%} of the held-out digits are read correctly")
        print(f"  found: {stage.finding.verdict}")
        for line in stage.finding.reasons:
            print(f"    {line}")
    plot(stages, args.output)
    return stages


if __name__ == "__main__":
    run(parse_arguments())
