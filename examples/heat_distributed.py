"""Heat in a plate whose rows are divided among processes, and the initial state that caused it.

Every process holds some neighbouring rows. A time step needs the last row of the process above and
the first row of the process below: `distributed.halo` passes them, inside a compiled loop, without
Python. The loss is the mean squared difference between the final temperatures and a target picture.
Its gradient with respect to the initial temperatures sends cotangents back through the same
messages. A few steps of gradient descent then find an initial state that produces the picture. Run
it with

    mpiexec -n 4 python examples/heat_distributed.py

or without mpiexec, as one process; the numbers are the same. It prints the losses and writes
`heat.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg
import program
from funcgrad import distributed, lax

AXIS = "rows"


def flow(u: Any, steps: int, rate: float) -> Any:
    """The rows of this process after some steps; beyond the edges of the plate it is 0 degrees."""

    def step(u: Any, _: Any) -> tuple[Any, None]:
        rows = np.pad(distributed.halo(u, axis_name=AXIS), ((0, 0), (1, 1)))
        middle = rows[1:-1, 1:-1]
        neighbours = rows[:-2, 1:-1] + rows[2:, 1:-1] + rows[1:-1, :-2] + rows[1:-1, 2:]
        return middle + rate * (neighbours - 4.0 * middle), None

    return lax.scan(step, u, None, length=steps)[0]


def local_loss(u: Any, target: Any, steps: int, rate: float) -> Any:
    """The part of the loss of this process.

    Gradients are those of the sum over processes, and that is the loss: so what is differentiated
    is the part, and no `psum` of it.
    """
    return np.sum((flow(u, steps, rate) - target) ** 2)


def picture(size: int) -> np.ndarray:
    """A ring in the middle of the plate."""
    y, x = np.mgrid[:size, :size] / (size - 1) - 0.5
    return np.exp(-((np.hypot(x, y) - 0.25) ** 2) / 0.01)


def make_descent(
    target: Any, steps: int, rate: float, speed: float
) -> Callable[[Any], tuple[Any, Any]]:
    """A compiled step of gradient descent on the rows of this process."""
    loss = partial(local_loss, target=target, steps=steps, rate=rate)

    @fg.jit
    def descend(u: Any) -> tuple[Any, Any]:
        own, gradient = fg.value_and_grad(loss)(u)
        return u - speed * gradient, lax.psum(own, AXIS)

    return descend


def search(args: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """The whole plate at the beginning and at the end, and the losses of all steps."""
    with distributed.spmd(axis_name=AXIS, deterministic=True):
        target = distributed.shard(picture(args.size))
        descend = make_descent(target, args.steps, args.rate, args.speed)
        u, losses = np.zeros_like(target), []
        for i in range(args.descents):
            u, loss = descend(u)
            losses.append(float(loss))
            if i % 5 == 0:
                distributed.echo(f"descent {i:3d}   loss {losses[-1]:.6f}")
        distributed.echo(f"descent {i:3d}   loss {losses[-1]:.6f}")
        end = fg.jit(partial(flow, steps=args.steps, rate=args.rate))(u)
        return *distributed.gather((u, end)), losses


def run(args: argparse.Namespace) -> list[float]:
    """The losses of all steps of the descent."""
    return search(args)[-1]


def plot(start: np.ndarray, end: np.ndarray, path: Path) -> None:
    """The plate at both times, and what should appear."""
    figure = Figure(figsize=(9, 3), layout="constrained")
    titles = ("found: at the beginning", "and at the end", "what should appear")
    plates = zip(figure.subplots(1, 3), (start, end, picture(len(end))), titles, strict=True)
    for axes, temperatures, title in plates:
        axes.imshow(temperatures, cmap="inferno", vmin=0.0, vmax=start.max())
        axes.set_title(title)
        axes.set_axis_off()
    program.save(figure, path)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = program.parser("Find the initial state of heat in a plate.", "heat.png")
    parser.add_argument(
        "--size", type=program.whole(2), default=128, help="rows and columns of the plate"
    )
    parser.add_argument("--steps", type=program.whole(1), default=50, help="steps of time")
    parser.add_argument(
        "--rate", type=program.positive, default=0.2, help="of the flow, at most 0.25"
    )
    parser.add_argument(
        "--descents", type=program.whole(1), default=20, help="steps of gradient descent"
    )
    parser.add_argument("--speed", type=program.positive, default=0.5, help="of the descent")
    return program.parse(parser, arguments)


def main(arguments: list[str] | None = None) -> list[float]:
    """Entry point."""
    args = parse_arguments(arguments)
    start, end, losses = search(args)
    if distributed.is_main():
        plot(start, end, args.output)
    return losses


if __name__ == "__main__":
    main()
