"""Train the network of `mnist_mlp.py` with its state divided among processes, and survive a crash.

With `--divide state`, every process has all parameters, and a part of the optimiser's state and of
the sums of gradients. With `--divide parameters`, it has a part of the parameters, too: each layer
is gathered when the forward pass reaches it, forgotten, and gathered again for the backward pass.
The losses are those of training in which nothing is divided. Run it with

    mpiexec -n 2 python examples/train_sharded.py --divide parameters

or without mpiexec, as one process. It prints the losses, and how many bytes each process keeps, and
writes `train_sharded.png`. With `--save FOLDER`, the state is saved every few steps, by all
processes at once. If a process is killed, the others end as well; the same command with `--resume`
goes on from the last checkpoint, on any number of processes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
import program
from funcgrad import distributed, lax, nn, optim, random
from train_distributed import AXIS, SIDE, Images, Params, init_params, load_images, plot


def hidden(params: dict[str, Any], x: Any) -> Any:
    """A hidden layer."""
    return nn.relu(x @ params["w"] + params["b"])


def output(params: dict[str, Any], x: Any) -> Any:
    """The last layer."""
    return x @ params["w"] + params["b"]


def loss_fn(params: Any, batch: Images) -> Any:
    """Mean cross-entropy, where layers put their parameters together if these are divided."""
    x = batch.x
    for own in params[:-1]:
        x = distributed.fully_sharded(hidden)(own, x)
    x = distributed.fully_sharded(output)(params[-1], x)
    return -fnp.mean(fnp.take_along_axis(nn.log_softmax(x), batch.y[:, None], axis=1))


def make_step(
    optimizer: optim.GradientTransformation, is_divided: bool
) -> Callable[..., tuple[Any, Any, Any]]:
    """A compiled step: parameters, state, and the examples of this process.

    Args:
        optimizer: It takes the gradients of this process if it is divided, else their means.
        is_divided: Whether it is.
    """

    def step(params: Any, state: Any, share: Images) -> tuple[Any, Any, Any]:
        loss, grads = fg.value_and_grad(loss_fn)(params, share)
        grads = grads if is_divided else lax.pmean(grads, AXIS)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, lax.pmean(loss, AXIS)

    return fg.jit(step, donate_argnums=(0, 1))


def batch_of(images: Images, key: np.ndarray, step: int, size: int) -> Images:
    """The examples of this process of the batch of a step, which follows from its number alone."""
    chosen = random.choice(random.fold_in(key, step), len(images.x), (size,), replace=False)
    own = distributed.shard(np.asarray(chosen))
    return Images(*(x[own] for x in images))


def nbytes(tree: Any) -> int:
    """Bytes of the arrays that this process has of a pytree."""
    return sum(np.asarray(x).nbytes for x in fg.tree.leaves(tree))


def run(args: argparse.Namespace) -> list[float]:
    """The losses of all steps, those before a crash included."""
    images = load_images()
    key, params_key = random.split(random.key(args.seed))
    with distributed.spmd(axis_name=AXIS):
        if args.batch_size % distributed.size():
            raise SystemExit(f"--batch-size {args.batch_size} is not for {distributed.size()}")
        params: Params | Any = init_params(params_key, (SIDE**2, *args.hidden, 10))
        optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(args.lr))
        is_divided = args.divide != "nothing"
        if is_divided:
            optimizer = distributed.sharded(optimizer)
        if args.divide == "parameters":
            params = distributed.flat_shard(params)
        state, losses, start = optimizer.init(params), np.full(args.steps, np.nan), 0
        if args.resume and (args.save.is_file() or (args.save / "manifest.npz").exists()):
            like = {"params": params, "state": state, "losses": losses, "step": start}
            saved = distributed.load(args.save, like)
            params, state = saved["params"], saved["state"]
            losses, start = saved["losses"], saved["step"]
        distributed.echo(
            f"{nbytes((params, state)) / 1e6:.1f} MB of parameters and state a process"
        )
        step = make_step(optimizer, is_divided)
        for i in range(start, args.steps):
            batch = batch_of(images, key, i, args.batch_size)
            params, state, loss = step(params, state, batch)
            losses[i] = loss
            if (i + 1) % args.every == 0 or i + 1 == args.steps:
                distributed.echo(f"step {i + 1:4d}   loss {losses[i]:.6f}")
                if args.save is not None:
                    saved = {"params": params, "state": state, "losses": losses, "step": i + 1}
                    distributed.save(args.save, saved)
    return losses.tolist()


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = program.parser("Train an MLP whose state is divided.", "train_sharded.png")
    parser.add_argument(
        "--divide", choices=["nothing", "state", "parameters"], default="parameters"
    )
    parser.add_argument("--steps", type=program.whole(1), default=40)
    parser.add_argument(
        "--batch-size", type=program.whole(1), default=512, help="of all processes together"
    )
    parser.add_argument("--hidden", type=program.whole(1), nargs="+", default=[1024] * 3)
    parser.add_argument("--lr", type=program.positive, default=5e-4)
    parser.add_argument("--seed", type=program.whole(0), default=0)
    parser.add_argument("--every", type=program.whole(1), default=10, help="steps to a checkpoint")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--resume", action="store_true", help="from --save, if it is there")
    args = program.parse(parser, arguments)
    if args.resume and args.save is None:
        parser.error("--resume needs --save")
    return args


def main(arguments: list[str] | None = None) -> list[float]:
    """Entry point."""
    args = parse_arguments(arguments)
    losses = run(args)
    if distributed.is_main():
        plot(losses, args.output)
    return losses


if __name__ == "__main__":
    main()
