"""Time on two ranks: collectives beside mpi4py's own, and a data-parallel step beside one process.

Run it on an idle machine, one thread a rank:

    FUNCGRAD_NUM_THREADS=1 mpiexec -n 2 python tests/benchmarks/ranks.py

Both sides alternate in one run; it prints medians and ratios. While one process computes alone, the
other sleeps.
"""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import distributed, lax, nn

MPI = importlib.import_module("mpi4py.MPI")
WORLD = MPI.COMM_WORLD
SIZES = (784, 1024, 1024, 1024, 10)
BATCH = 1024


def seconds(f: Callable[[], Any], count: int = 1) -> float:
    WORLD.Barrier()
    start = time.perf_counter()
    for _ in range(count):
        f()
    return (time.perf_counter() - start) / count


def report(what: str, ours: list[float], theirs: list[float]) -> None:
    a, b = float(np.median(ours)), float(np.median(theirs))
    best = min(ours) / min(theirs)
    distributed.echo(
        f"{what:<40} {a * 1e6:10.2f} us {b * 1e6:10.2f} us   "
        f"ratio {a / b:.2f}, of minima {best:.2f}"
    )


def sums(n: int, steps: int, count: int) -> None:
    """Sums of ``n`` numbers: ``steps`` of them in a compiled loop, and one a call."""
    x, out = np.ones(n, np.float32), np.empty(n, np.float32)
    zero = np.zeros_like(x)
    loop = fg.jit(lambda x: lax.fori_loop(0, steps, lambda _, x: lax.psum(x, "data"), x))
    once = fg.jit(lambda x: lax.psum(x, "data"))

    def compare(f: Callable[[Any], Any], each: int, what: str) -> None:
        f(zero)
        ours, theirs = [], []
        for _ in range(60):
            theirs.append(seconds(lambda: WORLD.Allreduce(x, out), count))
            ours.append(seconds(lambda: f(zero), max(1, count // each)) / each)
        report(f"psum of {4 * n} bytes, {what}", ours, theirs)

    compare(loop, steps, "in a compiled loop")
    compare(once, 1, "a call")


def loss(params: Any, x: Any, y: Any) -> Any:
    for w, b in params[:-1]:
        x = nn.relu(x @ w + b)
    w, b = params[-1]
    return -fnp.mean(fnp.take_along_axis(nn.log_softmax(x @ w + b), y[:, None], axis=1))


def step(params: Any, x: Any, y: Any, axis: str | None) -> Any:
    grads = fg.grad(loss)(params, x, y)
    if axis is not None:
        grads = lax.pmean(grads, axis)
    return fg.tree.map(lambda p, g: p - np.float32(0.01) * g, params, grads)


def training() -> None:
    rng = np.random.default_rng(0)
    params = [
        (rng.normal(0, 0.03, (m, n)).astype(np.float32), np.zeros(n, np.float32))
        for m, n in itertools.pairwise(SIZES)
    ]
    x = rng.normal(size=(BATCH, 784)).astype(np.float32)
    y = rng.integers(0, 10, BATCH)
    share = distributed.shard((x, y))
    alone = fg.jit(lambda p, x, y: step(p, x, y, None), donate_argnums=0)
    together = fg.jit(lambda p, x, y: step(p, x, y, "data"), donate_argnums=0)
    of_share = fg.jit(lambda p, x, y: step(p, x, y, None), donate_argnums=0)
    copies = [fg.tree.map(np.copy, params) for _ in range(3)]
    one, two, half = [], [], []
    for i in range(14):
        if distributed.is_main():
            start = time.perf_counter()
            copies[0] = alone(copies[0], x, y)
            one.append(time.perf_counter() - start)
        waiting = WORLD.Ibarrier()
        while not waiting.Test():
            time.sleep(0.001)
        WORLD.Barrier()
        start = time.perf_counter()
        copies[1] = together(copies[1], *share)
        WORLD.Barrier()
        two.append(time.perf_counter() - start)
        start = time.perf_counter()
        copies[2] = of_share(copies[2], *share)
        half.append(time.perf_counter() - start)
        if i == 1:
            one.clear(), two.clear(), half.clear()
    if distributed.is_main():
        report("step, one process / all ranks", one, two)
        report("step, all ranks / without messages", two, half)


with distributed.spmd():
    sums(1, 100, 1000)
    sums(1 << 20, 4, 2)
    training()
