"""A layer that is too wide for one machine: processes share its units.

A block ``relu(x @ up) @ down`` with very many hidden units is split along the units. Every process
holds some columns of `up` and the corresponding rows of `down`, and sees the whole input. One
`psum` adds the partial results of all processes. In the backward pass, every process gets the
cotangent of its part, and another sum adds the cotangents of the input. Run it with

    mpiexec -n 2 python examples/tensor_parallel.py

or without mpiexec, as one process; the losses are the same. It prints them and writes
`tensor_parallel.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program
from funcgrad import distributed, lax, nn, random

AXIS = "model"
Params = dict[str, Any]


@fg.custom_vjp
def enter(x: Any) -> Any:
    """The same input for the parts of all processes; their cotangents add up."""
    return x


enter.defvjp(lambda x: (x, None), lambda _, ct: (lax.psum(ct, AXIS),))


@fg.custom_vjp
def leave(x: Any) -> Any:
    """The sum of parts, of which all processes go on with the same copy, and count it once."""
    return lax.psum(x, AXIS)


leave.defvjp(lambda x: (lax.psum(x, AXIS), None), lambda _, ct: (ct,))


def init_params(key: np.ndarray, features: int, hidden: int) -> Params:
    """The hidden units of this process. Each has a key of its own, whoever holds it."""
    keys = distributed.local_keys(key, hidden)

    def unit(key: Any) -> tuple[Any, Any]:
        first, second = random.split(key)
        up = random.normal(first, (features,)) * np.sqrt(2 / features)
        return up, random.normal(second, (features,)) / np.sqrt(hidden)

    up, down = fg.vmap(unit)(keys)
    return {"up": np.asarray(up).T.copy(), "down": np.asarray(down), "bias": np.zeros(features)}


def predict(params: Params, x: Any) -> Any:
    """The block with a connection around it; whole in all processes."""
    part = nn.relu(enter(x) @ params["up"]) @ params["down"]
    return x + leave(part) + params["bias"]


def loss_fn(params: Params, x: Any, y: Any) -> Any:
    """The mean squared error, the same in all processes."""
    return np.mean((predict(params, x) - y) ** 2)


def make_step(rate: float) -> Callable[[Params, Any, Any], tuple[Params, Any]]:
    """A compiled step of gradient descent, of the parameters of this process.

    Args:
        rate: Of one hidden unit: a step moves the output by what all units add up to, so that a
            layer is given the rate divided by their number, and learns alike at every width.
    """

    @fg.jit
    def step(params: Params, x: Any, y: Any) -> tuple[Params, Any]:
        loss, grads = fg.value_and_grad(loss_fn)(params, x, y)
        return fg.tree.map(lambda p, g: p - rate * g, params, grads), loss

    return step


def run(args: argparse.Namespace) -> list[float]:
    """The losses of all steps."""
    with distributed.spmd(axis_name=AXIS):
        keys = random.split(random.key(args.seed), 3)
        params = init_params(keys[0], args.features, args.hidden)
        x = random.normal(keys[1], (args.examples, args.features))
        y = np.sin(3 * x[:, ::-1])
        step = make_step(args.rate / args.hidden)
        losses = []
        for i in range(args.steps):
            params, loss = step(params, x, y)
            losses.append(float(loss))
            if i % 10 == 0 or i == args.steps - 1:
                distributed.echo(f"step {i:3d}   loss {losses[-1]:.6f}")
        widths = distributed.gather(np.array([params["up"].shape[1]]))
        distributed.echo(f"hidden units of the processes: {widths.tolist()}")
    return losses


def plot(losses: list[float], path: Path) -> None:
    """The losses of all steps."""
    figure, ((axes,),) = program.panels(1, 1, 6, 3)
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set(title="loss of the divided layer", xlabel="step", ylabel="mean squared error")
    program.save(figure, path)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = program.parser("Train a wide layer, divided among processes.", "tensor_parallel.png")
    parser.add_argument("--features", type=program.whole(1), default=16)
    parser.add_argument("--hidden", type=program.whole(1), default=4096)
    parser.add_argument("--examples", type=program.whole(1), default=256)
    parser.add_argument("--steps", type=program.whole(1), default=50)
    parser.add_argument("--rate", type=program.positive, default=16.0, help="divided by the units")
    parser.add_argument("--seed", type=program.whole(0), default=0)
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
