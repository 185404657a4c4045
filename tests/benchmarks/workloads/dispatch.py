"""Calls whose work is nothing beside the call itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, Problem, workload


@workload(small=(10,), normal=(10,), large=(10,))
def small_call(count: int) -> Problem:
    """`jit(x + 1)` of {count} numbers."""

    def program(xp: Any) -> Any:
        return lambda x: x + 1

    return Problem((np.zeros(count),), program, lambda x: x + 1, mode="call", as_written=("torch",))


@workload(small=(50,), normal=(50,), large=(50,))
def tree_call(count: int) -> Problem:
    """`jit(x + 1)` of a dict of {count} arrays of 4 numbers."""
    leaves = {f"leaf{i}": np.full(4, float(i)) for i in range(count)}

    def program(xp: Any) -> Any:
        return lambda tree: xp.tree.map(lambda x: x + 1, tree)

    def reference(tree: Any) -> Any:
        return {name: leaf + 1 for name, leaf in tree.items()}

    return Problem((leaves,), program, reference, mode="call")


@workload(small=(), normal=(), large=())
def eager_grad() -> Problem:
    """Eager gradient of tanh(x) * sin(x) + x**2, nothing compiled."""

    def program(xp: Any) -> Any:
        xnp = xp.numpy
        return xp.grad(lambda x: xnp.tanh(x) * xnp.sin(x) + x**2)

    def reference(x: Any) -> Any:
        return (1 - np.tanh(x) ** 2) * np.sin(x) + np.tanh(x) * np.cos(x) + 2 * x

    return Problem(
        (1.0,), program, reference, mode="eager", as_written=("autograd",), torch=torch_eager_grad
    )


def torch_eager_grad(torch: Any) -> Any:
    def run(x: Any) -> Any:
        x = torch.tensor(x, dtype=torch.float64).requires_grad_()
        y = torch.tanh(x) * torch.sin(x) + x**2
        return torch.autograd.grad(y, x)[0]

    return run


@workload(small=(8,), normal=(8,), large=(8,), rows=BOTH)
def polynomial(degree: int) -> Problem:
    """Polynomial of degree {degree} of one number, by Horner's rule."""
    coefficients = np.linspace(-1.0, 1.0, degree + 1)

    def program(xp: Any) -> Any:
        def run(x: Any, c: Any) -> Any:
            y = c[0]
            for i in range(1, degree + 1):
                y = y * x + c[i]
            return y

        return run

    return Problem(
        (np.array(0.7), coefficients),
        program,
        np_polynomial,
        argnums=(0, 1),
        as_written=("torch", "autograd"),
    )


def np_polynomial(x: Any, c: Any) -> Any:
    return np.polyval(c, x)
