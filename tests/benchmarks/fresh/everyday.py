"""What programs do every day: many classes, few columns, copies, choices, integers, functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


@workload(small=(3, 7), normal=(256, 10_000), large=(1024, 50_000), rows=BOTH)
def cross_entropy(rows: int, classes: int) -> Problem:
    """Cross-entropy of {rows} examples with {classes} classes."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(logits: Any, labels: Any) -> Any:
            shifted = logits - xnp.max(logits, 1)[:, None]
            sums = xnp.log(xnp.sum(xnp.exp(shifted), 1))
            return xnp.mean(sums - xnp.take_along_axis(shifted, labels[:, None], 1)[:, 0])

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(logits: Any, labels: Any) -> Any:
            return torch.nn.functional.cross_entropy(logits, labels.long())

        return run

    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(rows, classes)), rng.integers(0, classes, rows)
    return Problem(
        (logits, labels.astype(np.int32)),
        lambda xp: formula(xp.numpy),
        formula(np),
        torch=torch_program,
    )


@workload(small=(7, 3), normal=(500_000, 3), large=(10_000_000, 3), rows=BOTH)
def distances(count: int, columns: int) -> Problem:
    """Distances of {count} points with {columns} coordinates from one of them."""

    def formula(xnp: Any) -> Callable[..., Any]:
        return lambda points, centre: xnp.sqrt(xnp.sum((points - centre) ** 2, -1) + 1.0)

    rng = np.random.default_rng(0)
    return Problem(
        (rng.normal(size=(count, columns)), rng.normal(size=columns)),
        lambda xp: formula(xp.numpy),
        formula(np),
        as_written=("torch", "autograd"),
    )


@workload(small=(7, 4), normal=(500_000, 4), large=(10_000_000, 4), rows=FORWARD)
def shares(count: int, columns: int) -> Problem:
    """Shares in the sums of {count} rows of {columns} numbers."""

    def program(xp: Any) -> Callable[..., Any]:
        return lambda x: x / xp.numpy.sum(x, -1)[:, None]

    def loops(x):
        found = np.empty_like(x)
        for i in range(count):
            total = 0.0
            for j in range(columns):
                total += x[i, j]
            for j in range(columns):
                found[i, j] = x[i, j] / total
        return found

    x = np.random.default_rng(0).uniform(0.5, 1.5, (count, columns))
    return Problem((x,), program, loops, as_written=("torch",), loops=True)


@workload(small=(3, 4, 2), normal=(1000, 100, 20), large=(10_000, 100, 50), rows=BOTH)
def all_pairs(rows: int, columns: int, others: int) -> Problem:
    """{rows} rows of {columns} numbers with each of {others}, by `tile` and `repeat`."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(x: Any, y: Any) -> Any:
            return xnp.tile(x, (others, 1)) * xnp.repeat(y, rows, axis=0)

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        return lambda x, y: torch.tile(x, (others, 1)) * torch.repeat_interleave(y, rows, dim=0)

    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(rows, columns)), rng.normal(size=(others, columns))
    return Problem(
        arguments, lambda xp: formula(xp.numpy), formula(np), argnums=(0, 1), torch=torch_program
    )


@workload(small=(3, 20, 4), normal=(256, 4096, 8), large=(1024, 65_536, 8), rows=BOTH)
def largest(rows: int, columns: int, count: int) -> Problem:
    """The largest {count} of {columns} numbers in {rows} rows: `top_k`."""

    def program(xp: Any) -> Callable[..., Any]:
        return lambda x: xp.lax.top_k(x, count)[0]

    def torch_program(torch: Any) -> Callable[..., Any]:
        return lambda x: torch.topk(x, count)[0]

    def reference(x: Any) -> Any:
        return np.sort(x, -1)[:, : -count - 1 : -1]

    x = np.random.default_rng(0).normal(size=(rows, columns))
    return Problem((x,), program, reference, torch=torch_program)


@workload(
    name="argmax-of-long-rows",
    small=(3, 50, 1),
    normal=(16, 250_000, 1),
    large=(16, 4_000_000, 1),
)
@workload(
    name="argmax-of-long-columns",
    small=(3, 50, 0),
    normal=(16, 250_000, 0),
    large=(16, 4_000_000, 0),
)
def places_of_maxima(count: int, length: int, axis: int) -> Problem:
    """Places of the largest of {length} numbers, {count} times, along axis {axis}."""

    def program(xp: Any) -> Callable[..., Any]:
        return lambda x: xp.numpy.argmax(x, axis)

    def loops(x):
        places = np.zeros(count, np.int64)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if axis == 0:
                    if x[i, j] > x[places[j], j]:
                        places[j] = i
                elif x[i, j] > x[i, places[i]]:
                    places[i] = j
        return places

    shape = (count, length) if axis else (length, count)
    x = np.random.default_rng(0).normal(size=shape)
    return Problem((x,), program, loops, as_written=("torch",), loops=True)


@workload(small=(4, 5, 3), normal=(256, 256, 256), large=(1024, 1024, 1024))
def product_of_integers(n: int, k: int, m: int) -> Problem:
    """The product of matrices of integers of 32 bits, {n} by {k} and {k} by {m}."""

    def program(xp: Any) -> Callable[..., Any]:
        return lambda a, b: xp.numpy.matmul(a, b)

    def loops(a, b):
        found = np.zeros((n, m), np.int32)
        for i in range(n):
            for p in range(k):
                for j in range(m):
                    found[i, j] += a[i, p] * b[p, j]
        return found

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-100, 100, shape).astype(np.int32) for shape in ((n, k), (k, m)))
    return Problem((a, b), program, loops, as_written=("torch",), loops=True)


@workload(small=(3, 2, 4), normal=(50, 16, 64), large=(200, 64, 256), rows=BOTH)
def dropped_outputs(steps: int, count: int, units: int) -> Problem:
    """The last state of {steps} steps, batch {count}, {units} units, whose outputs are dropped."""

    def step(xnp: Any, h: Any, w: Any, v: Any) -> Any:
        h = xnp.tanh(h @ w)
        return h, xnp.exp(h @ v)

    def program(xp: Any) -> Callable[..., Any]:
        def model(h: Any, w: Any, v: Any) -> Any:
            return xp.lax.scan(lambda h, _: step(xp.numpy, h, w, v), h, None, length=steps)

        return lambda h, w, v: model(h, w, v)[0]

    def reference(h: Any, w: Any, v: Any) -> Any:
        for _ in range(steps):
            h, _ = step(np, h, w, v)
        return h

    rng = np.random.default_rng(0)
    h, w, v = (rng.normal(size=(rows, units)) for rows in (count, units, units))
    scale = 1.0 / np.sqrt(units)
    return Problem((h, scale * w, scale * v), program, reference, argnums=(1,))


RANGES = {
    "erfc": (-4.0, 4.0),
    "gammaln": (0.1, 20.0),
    "i0": (0.0, 15.0),
    "log_ndtr": (-6.0, 6.0),
    "ndtri": (0.01, 0.99),
    "spence": (1.1, 5.0),  # JAX has no slope at 1
}


def special_function(function: str, count: int) -> Problem:
    """The function {function} of {count} numbers."""

    def program(xp: Any) -> Callable[..., Any]:
        return lambda x: getattr(xp.scipy.special, function)(x)

    def torch_program(torch: Any) -> Callable[..., Any]:
        return lambda x: getattr(torch.special, function)(x)

    x = np.random.default_rng(0).uniform(*RANGES[function], count)
    has_torch = function != "spence"
    return Problem((x,), program, _scipys(function), torch=torch_program if has_torch else None)


for _function in RANGES:
    workload(
        name=_function.replace("_", "-"),
        small=(_function, 20),
        normal=(_function, 200_000),
        large=(_function, 4_000_000),
        rows=BOTH,
    )(special_function)


@workload(small=(20,), normal=(50_000,), large=(1_000_000,), rows=BOTH)
def incomplete_gamma(count: int) -> Problem:
    """The incomplete gamma function of {count} parameters and numbers."""

    def program(xp: Any) -> Callable[..., Any]:
        return lambda a, x: xp.scipy.special.gammainc(a, x)

    rng = np.random.default_rng(0)
    a, x = rng.uniform(0.5, 20.0, (2, count))
    return Problem((a, x), program, _scipys("gammainc"), argnums=(0, 1))


def _scipys(function: str) -> Callable[..., Any]:
    """A function of SciPy, which is loaded when it is called."""
    return lambda *x: getattr(importlib.import_module("scipy.special"), function)(*x)
