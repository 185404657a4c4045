"""A layer that is too wide for one machine: processes share its units.

A block ``relu(x @ up) @ down`` with very many hidden units is split along the units. Every process
holds some columns of `up` and the corresponding rows of `down`, and sees the whole input. One
`psum` adds the partial results of all processes. `shard_map` knows what is equal in all of them, so
that derivatives need no rules by hand: the cotangent of the input is summed, that of the sum is
not. The parameters are made and trained inside, and no process ever has them all. Run it with

    mpiexec -n 2 python examples/tensor_parallel.py

or without mpiexec, as one process; the losses are the same. It prints them and writes
`tensor_parallel.png`.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program
from funcgrad import P, distributed, lax, nn, random

AXIS = "model"
Params = dict[str, Any]


def init_params(key: np.ndarray, features: int, hidden: int) -> Params:
    """The hidden units of this lane. Each has a key of its own, whoever holds it."""
    own = hidden // lax.axis_size(AXIS)
    numbers = lax.axis_index(AXIS) * own + np.arange(own)

    def unit(number: Any) -> tuple[Any, Any]:
        first, second = random.split(random.fold_in(key, number))
        up = random.normal(first, (features,)) * np.sqrt(2 / features)
        return up, random.normal(second, (features,)) / np.sqrt(hidden)

    up, down = fg.vmap(unit)(numbers)
    return {"up": up.T, "down": down, "bias": np.zeros(features)}


def predict(params: Params, x: Any) -> Any:
    """The block with a connection around it; whole in all processes."""
    part = nn.relu(x @ params["up"]) @ params["down"]
    return x + lax.psum(part, AXIS) + params["bias"]


def loss_fn(params: Params, x: Any, y: Any) -> Any:
    """The mean squared error, the same in all processes."""
    return np.mean((predict(params, x) - y) ** 2)


def train(args: argparse.Namespace, key: np.ndarray, x: Any, y: Any) -> Any:
    """The losses of all steps of gradient descent, of the units of this lane.

    The rate is that of one hidden unit: a step moves the output by what all units add up to, so
    that the layer is given the rate divided by their number, and learns alike at every width.
    """
    rate = args.rate / args.hidden

    def step(params: Params, _: None) -> tuple[Params, Any]:
        loss, grads = fg.value_and_grad(loss_fn)(params, x, y)
        return fg.tree.map(lambda p, g: p - rate * g, params, grads), loss

    params = init_params(key, args.features, args.hidden)
    return lax.scan(step, params, None, length=args.steps)[1]


def run(args: argparse.Namespace) -> list[float]:
    """The losses of all steps."""
    n = distributed.size()
    if args.hidden % n:
        raise SystemExit(f"{args.hidden} hidden units cannot be shared out to {n} processes")
    keys = random.split(random.key(args.seed), 2)
    x = random.normal(keys[1], (args.examples, args.features))
    y = np.sin(3 * x[:, ::-1])
    mesh = fg.make_mesh((n,), (AXIS,))
    sharded = fg.shard_map(partial(train, args), mesh=mesh, in_specs=P(), out_specs=P())
    losses: list[float] = fg.jit(sharded)(keys[0], x, y).tolist()
    for i in sorted({*range(0, args.steps, 10), args.steps - 1}):
        distributed.echo(f"step {i:3d}   loss {losses[i]:.6f}")
    distributed.echo(f"hidden units of each process: {args.hidden // n}")
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
