"""``python -m tests.soak --minutes 30``: does a process that runs for long keep its memory?

Sixteen threads train, call with new shapes, and make new functions, as a server would that never
ends. Resident memory after a sixth of the time, which begins when all caches are full, is compared
with that at the end: it may grow by 2 percent.

It begins without kernels on disk, so that the compiler is loaded at once, which takes 80 MB. A
process that finds its kernels on disk loads it when it meets the first one that is not there: an
array with axes of length 1 or 2, say, after thousands of others.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.compiler.runtime import kernel_store, warm_memory
from funcgrad.core import avals
from funcgrad.higher_order import remembered
from funcgrad.observers import source

N_THREADS = 16
MOST_GROWTH = 0.02
WARM_UP = 2000
"""Rounds after which caches are full; on a busy machine they take longer than five minutes."""
_number = itertools.count()


def resident() -> int:
    """Bytes of memory that this process has, once what can be given back is."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def loss(w: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ w["a"] + w["b"])
    return ((hidden @ w["c"] - y) ** 2).mean()


@fg.jit
def step(w: Any, x: Any, y: Any) -> Any:
    return fg.tree.map(lambda p, g: p - 0.01 * g, w, fg.grad(loss)(w, x, y))


def train(rng: np.random.Generator) -> None:
    """A few steps of a small network."""
    w = {"a": rng.normal(size=(8, 16)), "b": np.zeros(16), "c": rng.normal(size=16)}
    x, y = rng.normal(size=(32, 8)), rng.normal(size=32)
    for _ in range(20):
        w = step(w, x, y)


@fg.jit
def of_any_shape(x: Any) -> Any:
    return np.sin(x).sum() + np.max(x)


def call_with_new_shapes(rng: np.random.Generator) -> None:
    """Shapes that no call has had before, mostly."""
    n, m = rng.integers(1, 300, 2)
    fg.grad(of_any_shape)(np.ones((n, m)))


def make_functions(rng: np.random.Generator) -> None:
    """Functions that depend on numbers of their own."""
    k = float(next(_number))
    f = fg.jit(lambda x: np.cos(x * k) + k)
    f(np.ones(5))
    fg.vmap(fg.grad(lambda x: fg.lax.fori_loop(0, 3, lambda i, c: c * x + k, x)))(np.ones(3))


WORK: tuple[Callable[[np.random.Generator], None], ...] = (
    train,
    call_with_new_shapes,
    make_functions,
)


def sizes() -> dict[str, int]:
    """What is kept, mostly with a bound; so that it is seen what has grown."""
    return {
        "programs of a function": len(of_any_shape._cache),  # type: ignore[attr-defined]
        "remembered traces": len(remembered._remembered),
        "shapes": len(avals.INTERNED),
        "lines": len(source._locations),
        "kernels": len(kernel_store._ADDRESSES),
        "times that the compiler was loaded": kernel_store._frontend.cache_info().currsize,
        "MB for results": warm_memory.kept_bytes() >> 20,
    }


def soak(
    seconds: float, threads: int = N_THREADS, every: float = 10.0, warm_up: int = 0
) -> list[int]:
    """Work, and measure.

    Args:
        seconds: How long.
        threads: How many work at once.
        every: Seconds between two measurements.
        warm_up: Rounds of work before the time begins, however long they take.

    Returns:
        Resident bytes, from the start to the end.
    """
    is_over = threading.Event()
    errors: list[BaseException] = []
    counts = [0] * threads

    def work(i: int) -> None:
        rng = np.random.default_rng(i)
        try:
            while not is_over.is_set():
                WORK[counts[i] % len(WORK)](rng)
                counts[i] += 1
        except BaseException as error:
            errors.append(error)
            is_over.set()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    while sum(counts) < warm_up and not is_over.wait(min(every, 1.0)):
        pass
    end = time.monotonic() + seconds
    found = []
    while not is_over.wait(max(0.0, min(every, end - time.monotonic()))):
        found.append(resident())
        print(f"{sum(counts)} rounds, {found[-1] / 1e6:.1f} MB, {sizes()}", flush=True)
        if time.monotonic() >= end:
            is_over.set()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    found.append(resident())
    return found


def growth(measured: list[int]) -> float:
    """By how much the end is above the time when a sixth had passed, as a fraction."""
    return measured[-1] / measured[len(measured) // 6] - 1


def main() -> int:
    """Work, and print the verdict."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--threads", type=int, default=N_THREADS)
    parser.add_argument(
        "--warm-up", type=int, default=WARM_UP, help="rounds before the time begins"
    )
    parser.add_argument("--growth", type=float, default=MOST_GROWTH, help="what is accepted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kernel_store.set_cache_dir(folder)
        measured = soak(options.minutes * 60, options.threads, warm_up=options.warm_up)
    grown = growth(measured)
    print(
        f"{measured[len(measured) // 6] / 1e6:.1f} MB -> {measured[-1] / 1e6:.1f} MB: {grown:+.1%}"
    )
    return 1 if grown > options.growth else 0


if __name__ == "__main__":
    sys.exit(main())
