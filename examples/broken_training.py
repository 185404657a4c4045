"""A training loop with five bugs, and the diagnostic that finds each.

A network 64-32-32-10 should learn to read scanned digits, but fails without raising an error.
`diagnose` does not know the bugs: it gets the loss, the parameters, a batch and the optimiser,
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
from collections.abc import Callable
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
from funcgrad import diagnostics, optim

CLASSES, PIXELS, HIDDEN, BRIGHTEST = 10, 64, 32, 16.0
RATE = 0.2
BUGS = ("log of zero", "rounded weights", "low biases", "large weights", "learning rate")

Params = dict[str, Any]


# The network, with its bugs.


@dataclass(frozen=True)
class Training:
    """Everything that a training loop consists of.

    Attributes:
        loss: Function of parameters, images and labels.
        predict: Function of parameters and images.
        params: Initial parameters.
        optimizer: A gradient transformation.
    """

    loss: Callable[..., Any]
    predict: Callable[..., Any]
    params: Params
    optimizer: optim.GradientTransformation


def make_training(bugs: frozenset[str], seed: int) -> Training:
    """A training loop with some of the bugs."""

    def predict(params: Params, x: Any) -> Any:
        x = fnp.tanh(x @ params["w1"] + params["b1"])
        x = fg.nn.relu(x @ params["w2"] + params["b2"])
        last = np.round(params["w3"], 1) if "rounded weights" in bugs else params["w3"]
        return x @ last + params["b3"]

    def loss(params: Params, x: Any, labels: Any) -> Any:
        chances = fg.nn.log_softmax(predict(params, x))
        targets = fg.nn.one_hot(labels, CLASSES, dtype=chances.dtype)
        if "log of zero" in bugs:
            return fnp.mean(fnp.sum(targets * (np.log(targets) - chances), axis=-1))
        return -fnp.mean(fnp.sum(targets * chances, axis=-1))

    rate = 1000 * RATE if "learning rate" in bugs else RATE
    return Training(loss, predict, init_params(bugs, seed), optim.sgd(rate, momentum=0.5))


def init_params(bugs: frozenset[str], seed: int) -> Params:
    """Weights of variance 1 / fan-in, unless there is a bug; biases are 0."""
    rng = np.random.default_rng(seed)
    sizes = {"1": (PIXELS, HIDDEN), "2": (HIDDEN, HIDDEN), "3": (HIDDEN, CLASSES)}
    params = {f"w{i}": rng.standard_normal((m, n)) / np.sqrt(m) for i, (m, n) in sizes.items()}
    params |= {f"b{i}": np.zeros(n) for i, (_, n) in sizes.items()}
    if "low biases" in bugs:
        params["b2"] = np.full(HIDDEN, -30.0)
    if "large weights" in bugs:
        params["w1"] = 50 * params["w1"]
    return params


# The search.


@dataclass(frozen=True)
class Finding:
    """What is worst.

    Attributes:
        verdict: In one or two words.
        text: What there is to know, with the place in the code.
    """

    verdict: str
    text: str


def diagnose(training: Training, x: Any, labels: Any) -> Finding | None:
    """Look for the worst problem of a training loop at one batch; ``None`` if it is healthy."""
    nan = diagnostics.find_nan(training.loss, training.params, x, labels)
    if nan is not None:
        return Finding(nan.kind, str(nan))
    gradient = fg.grad(training.loss)(training.params, x, labels)
    state = training.optimizer.init(training.params)
    updates, _ = training.optimizer.update(gradient, state, training.params)
    report = diagnostics.gradient_report(training.loss, training.params, x, labels, updates=updates)
    if report:
        return None
    worst = [leaf for leaf in report.leaves if leaf.verdict == report.verdict]
    text = "\n".join(f"{leaf.path}: {leaf.reason}" for leaf in worst)
    return Finding(report.verdict, text)


# What a person does who reads a verdict.
REPAIRS = {
    "nan": "log of zero",
    "disconnected": "rounded weights",
    "dead units": "low biases",
    "saturated": "large weights",
    "step too large": "learning rate",
}


# Training.


@dataclass
class Stage:
    """The training loop after some repairs."""

    bugs: frozenset[str]
    finding: Finding | None
    losses: list[float] = field(default_factory=list)
    accuracy: float = 0.0


def train(training: Training, stage: Stage, data: dict[str, np.ndarray], steps: int) -> None:
    """Train, and note losses and the final accuracy on the held-out images."""

    @fg.jit
    def step(params: Params, state: Any, x: Any, labels: Any) -> tuple[Params, Any, Any]:
        value, gradient = fg.value_and_grad(training.loss)(params, x, labels)
        updates, state = training.optimizer.update(gradient, state, params)
        return optim.apply_updates(params, updates), state, value

    rng = np.random.default_rng(0)
    params, state = training.params, training.optimizer.init(training.params)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            rows = rng.choice(len(data["train_x"]), 64, replace=False)
            params, state, value = step(params, state, data["train_x"][rows], data["train_y"][rows])
            stage.losses.append(float(value))
        predicted = np.argmax(training.predict(params, data["test_x"]), axis=-1)
    stage.accuracy = float(np.mean(predicted == data["test_y"]))


def load_data() -> dict[str, np.ndarray]:
    """The digits, with grey values between 0 and 1, split always in the same way."""
    images, labels = load_digits(return_X_y=True)
    names = ("train_x", "test_x", "train_y", "test_y")
    split = train_test_split(images / BRIGHTEST, labels, random_state=0, stratify=labels)
    return dict(zip(names, split, strict=True))


def repairs(count: int) -> str:
    """``1 repair``, ``2 repairs``."""
    return f"{count} repair{'s' * (count != 1)}"


def plot(stages: list[Stage], path: Path) -> None:
    """Draw the losses of all stages."""
    figure, ((axes,),) = program.panels(1, 1, 8.5, 4.2)
    for i, stage in enumerate(stages):
        found = "healthy" if stage.finding is None else stage.finding.verdict
        label = f"{repairs(i)}: {found}, {stage.accuracy:.0%} right"
        axes.semilogy(stage.losses, color=f"C{i}", linewidth=1.2, label=label)
    axes.set(title="training after each repair", xlabel="step", ylabel="loss")
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
    data = load_data()
    bugs, stages = frozenset(BUGS), []
    with tqdm(total=len(BUGS) + 1, desc="stages", leave=False) as bar:
        while True:
            training = make_training(bugs, args.seed)
            finding = diagnose(training, data["train_x"][:256], data["train_y"][:256])
            stage = Stage(bugs, finding)
            with fg.disable_jit(args.no_jit):
                train(training, stage, data, args.steps)
            stages.append(stage)
            bar.update()
            if finding is None or REPAIRS[finding.verdict] not in bugs:
                break
            bugs = bugs - {REPAIRS[finding.verdict]}
    for i, stage in enumerate(stages):
        print(f"after {repairs(i)}: {stage.accuracy:.1%} of the held-out digits are read correctly")
        if stage.finding is not None:
            lines = stage.finding.text.replace("\n", "\n    ")
            print(f"  found: {stage.finding.verdict}\n    {lines}")
    plot(stages, args.output)
    return stages


def main(arguments: list[str] | None = None) -> None:
    """Entry point."""
    run(parse_arguments(arguments))


if __name__ == "__main__":
    main()
