"""What the examples give on some processes: ``run_examples.py RESULT STATE FIRST|SECOND``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import data, distributed
from tests.examples.program import load, run

HEAT = ("--size", 12, "--steps", 6, "--descents", 4)
TENSOR = ("--hidden", 64, "--steps", 4, "--examples", 32)
TRAIN = ("--hidden", 32, "--deterministic", "--batch-size", 512)


def heat() -> dict[str, Any]:
    """The losses of the descent; gradient, and its derivative along a direction, both ways."""
    example = load("heat_distributed")
    losses = run(example, *HEAT)
    n = 12
    u = np.sin(np.arange(n * n).reshape(n, n))
    v = np.cos(np.arange(n * n).reshape(n, n))
    with distributed.spmd(axis_name=example.AXIS):
        target, u, v = distributed.shard((example.picture(n), u, v))
        loss = partial(example.local_loss, target=target, steps=6, rate=0.2)
        cubed = lambda u: loss(np.sin(u))  # noqa: E731 - of which second derivatives matter
        gradient = fg.jit(fg.grad(cubed))(u)
        forward = fg.jit(lambda u: fg.jvp(fg.grad(cubed), (u,), (v,))[1])(u)
        reverse = fg.grad(lambda u: np.sum(fg.grad(cubed)(u) * v))(u)
        rows = distributed.gather((gradient, forward, reverse))
    return {"losses": losses, "rows": list(rows)}


def results(state: Path, part: str) -> dict[str, Any]:
    """All of them; training saves after the first epoch, and the second part resumes there."""
    found: dict[str, Any] = {}
    train = load("train_distributed")
    if part in ("first", "both"):
        found["first"] = run(train, *TRAIN, "--epochs", 1, "--save", state)
        found["heat"] = heat()
        found["tensor"] = run(load("tensor_parallel"), *TENSOR)
    if part in ("second", "both"):
        found["second"] = run(train, *TRAIN, "--epochs", 2, "--resume", state)
    return found


def main() -> None:
    path, state, part = sys.argv[1:]
    found = results(Path(state), part)
    if distributed.is_main():
        data.save(path, found)


if __name__ == "__main__":
    main()
