"""Long programs and many small ones: what tracing, compiling and dispatching cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


def unrolled(count: int, n: int, xnp: Any) -> Callable[..., Any]:
    """So many operations on n numbers, one after the other, in an unrolled Python loop."""

    def run(x: Any, c: Any) -> Any:
        for i in range(count // 4):
            x = xnp.tanh(x * c[i % 7] + (0.1 + i / count))
        return x

    return run


def long_program(count: int, n: int) -> Problem:
    rng = np.random.default_rng(0)
    arguments = rng.normal(size=n), rng.uniform(0.5, 1.5, (7, 1))
    return Problem(
        arguments,
        lambda xp: unrolled(count, n, xp.numpy),
        unrolled(count, n, np),
        as_written=("torch", "autograd"),
        tolerance=10.0,
    )


@workload(small=(40, 5), normal=(1000, 100), large=(1000, 100_000), rows=BOTH)
def program_1000(count: int, n: int) -> Problem:
    """{count} operations on {n} numbers, unrolled."""
    return long_program(count, n)


@workload(small=(40, 6), normal=(20_000, 100), large=(20_000, 100_000), rows=FORWARD)
def program_20000(count: int, n: int) -> Problem:
    """{count} operations on {n} numbers, unrolled."""
    return long_program(count, n)


@workload(small=(3, 4), normal=(100, 8), large=(400, 8), rows=BOTH)
def distinct_operations(count: int, n: int) -> Problem:
    """{count} different small steps on matrices {n} x {n}, unrolled."""
    rng = np.random.default_rng(0)

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(x: Any, w: Any) -> Any:
            steps = (
                lambda y: xnp.tanh(y @ w),
                lambda y: y - xnp.mean(y, axis=0),
                lambda y: xnp.exp(-y * y) + y,
                lambda y: y.T * 0.5 + y,
                lambda y: xnp.where(y > 0, y, 0.1 * y),
            )
            for i in range(count):
                x = steps[(i * i + i // 5) % len(steps)](x)
            return x

        return run

    arguments = rng.normal(size=(n, n)), rng.normal(size=(n, n)) / np.sqrt(n)
    return Problem(
        arguments,
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1),
        as_written=("torch", "autograd"),
        tolerance=300.0,
    )


@workload(small=(20,), normal=(2000,), large=(20_000,))
def small_steps(count: int) -> Problem:
    """A step of gradient descent with momentum on {count} numbers, fed back in."""
    rng = np.random.default_rng(0)
    target = rng.normal(size=count)

    def program(xp: Any) -> Callable[..., Any]:
        def loss(x: Any, target: Any) -> Any:
            return xp.numpy.sum(xp.numpy.log(xp.numpy.cosh(x - target)))

        gradient = xp.grad(loss)

        def step(state: Any, target: Any) -> Any:
            x, v = state["x"], state["v"]
            v = 0.9 * v - 0.1 * gradient(x, target)
            return {"x": x + v, "v": v}

        return step

    def by_hand(tanh: Any) -> Callable[..., Any]:
        def step(state: Any, target: Any) -> Any:
            v = 0.9 * state["v"] - 0.1 * tanh(state["x"] - target)
            return {"x": state["x"] + v, "v": v}

        return step

    def torch_program(torch: Any) -> Callable[..., Any]:
        def step(state: Any, target: Any) -> Any:
            x = state["x"].detach().requires_grad_()
            with torch.enable_grad():
                loss = torch.sum(torch.log(torch.cosh(x - target)))
                (gradient,) = torch.autograd.grad(loss, x)
            v = 0.9 * state["v"] - 0.1 * gradient
            return {"x": state["x"] + v, "v": v}

        return step

    state = {"x": rng.normal(size=count), "v": np.zeros(count)}
    return Problem((state, target), program, by_hand(np.tanh), torch=torch_program, feedback=True)
