"""Six optimisers side by side: on one network, in Rosenbrock's valley, and with schedules.

SGD, momentum, Nesterov's momentum, RMSprop with momentum, Adam and AdamW start from the same
parameters and see the same batches of handwritten digits (64-32-10). Then they walk from the same
point through Rosenbrock's valley, f(a, b) = (1 - a)^2 + 100 (b - a^2)^2, whose minimum is at (1,
1): the gradient points across the valley, hardly along it. Each run is one compiled loop. A
schedule, a function of the number of the step, may replace any learning rate. Run it with

    python examples/compare_optimizers.py

It prints the results, and writes `compare_optimizers.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import digits
import program
import training
from funcgrad import nn, optim

SIZES = (64, 32, 10)
BATCH = 64
START = np.array([-1.2, 1.0])

# How each is made, its learning rate for the network, and its learning rate for the valley.
OPTIMIZERS: dict[str, tuple[Callable[[Any], optim.GradientTransformation], float, float]] = {
    "SGD": (optim.sgd, 0.3, 0.001),
    "momentum": (lambda rate: optim.sgd(rate, momentum=0.9), 0.1, 0.001),
    "Nesterov": (lambda rate: optim.sgd(rate, momentum=0.9, nesterov=True), 0.1, 0.001),
    "RMSprop": (lambda rate: optim.rmsprop(rate, momentum=0.9), 0.001, 0.001),
    "Adam": (optim.adam, 0.01, 0.02),
    "AdamW": (lambda rate: optim.adamw(rate, weight_decay=0.01), 0.01, 0.02),
}

SCHEDULES: dict[str, Callable[[int], Callable[[Any], Any]]] = {
    "constant": lambda n: optim.constant_schedule(0.1),
    "steps": lambda n: optim.piecewise_constant_schedule(0.1, {n // 2: 0.3, 3 * n // 4: 0.3}),
    "exponential": lambda n: optim.exponential_decay(0.1, n // 4, 0.5),
    "cosine": lambda n: optim.cosine_decay_schedule(0.1, n),
    "warm-up, cosine": lambda n: optim.warmup_cosine_decay_schedule(0.0, 0.1, n // 10, n),
    "one cycle": lambda n: optim.cosine_onecycle_schedule(n, 0.1),
}


def predict(params: training.Layers, x: Any) -> Any:
    """Logits (n, 10)."""
    first, second = params
    return nn.relu(x @ first["w"] + first["b"]) @ second["w"] + second["b"]


def network_loss(params: training.Layers, batch: tuple[Any, Any]) -> Any:
    """Mean cross-entropy."""
    x, labels = batch
    logits = predict(params, x)
    return nn.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def valley(point: Any, _: Any = None) -> Any:
    """Rosenbrock's function (1960)."""
    a, b = point
    return (1 - a) ** 2 + 100 * (b - a**2) ** 2


# The picture.


def plot(losses: dict[str, np.ndarray], paths: dict[str, np.ndarray], path: Path) -> None:
    """Draw the losses of the network, the ways through the valley, and schedules."""
    figure, ((network, schedules), (ways, values)) = program.panels(2, 2, 12, 8.4)
    for name, found in losses.items():
        network.semilogy(training.smooth(found, 15), label=name)
    network.set(title="network 64-32-10", xlabel="step", ylabel="cross-entropy, smoothed")
    network.legend(fontsize=8)
    steps = 200
    for name, make in SCHEDULES.items():
        schedule = make(steps)
        schedules.plot([float(schedule(i)) for i in range(steps + 1)], label=name)
    schedules.set(title="schedules", xlabel="step", ylabel="learning rate")
    schedules.legend(fontsize=8)
    a, b = np.meshgrid(np.linspace(-1.5, 1.5, 200), np.linspace(-0.3, 1.5, 200))
    ways.contourf(a, b, np.log10(valley((a, b)) + 1e-3), levels=20, cmap="Greys", alpha=0.7)
    for i, (name, points) in enumerate(paths.items()):
        ways.plot(*points.T, color=f"C{i}", linewidth=1.2, label=name)
        ways.plot(*points[-1], "o", color=f"C{i}", markersize=9 - i, zorder=4)
        values.loglog(range(1, len(points) + 1), valley(points.T), color=f"C{i}", label=name)
    ways.plot(1, 1, "*", color="gold", markeredgecolor="black", markersize=15, zorder=3)
    ways.set(title="Rosenbrock's valley, with the last points", xlim=(-1.5, 1.5), ylim=(-0.3, 1.5))
    ways.set(xlabel="a", ylabel="b")
    ways.grid(False)
    ways.legend(fontsize=8, loc="upper center")
    values.set(title="Rosenbrock's valley", xlabel="step", ylabel="value")
    values.legend(fontsize=8)
    program.save(figure, path)


# The command line.


parse_arguments = program.command_line(
    "Compare optimisers.",
    "compare_optimizers.png",
    steps=(20, 400),
    valley_steps=(1, 1000),
    seed=(0, 0),
)


def run(args: argparse.Namespace) -> dict[str, tuple[float, float, float]]:
    """Run all; the last loss and the accuracy of the network, and the last value in the valley."""
    data, params = digits.load(), training.dense(SIZES, args.seed)
    batches = training.batches((data.x, data.y), BATCH, args.steps, args.seed)
    losses, paths, found = {}, {}, {}
    for name, (make, rate, valley_rate) in OPTIMIZERS.items():
        last, losses[name], _ = training.minimize(network_loss, params, make(rate), batches)
        right = float(np.mean(np.argmax(predict(last, data.test_x), axis=-1) == data.test_y))
        point, _, paths[name] = training.minimize(
            valley, START, make(valley_rate), steps=args.valley_steps,
            watch=lambda point, _: point,
        )  # fmt: skip
        found[name] = (float(np.mean(losses[name][-20:])), right, float(valley(point)))
        print(
            f"{name:9} network: rate {rate:<6g} loss {found[name][0]:.4f}, {right:.1%} of unseen "
            f"digits   valley: rate {valley_rate:<6g} value {found[name][2]:.1e}"
        )
    plot(losses, paths, args.output)
    return found


if __name__ == "__main__":
    run(parse_arguments())
