"""Optimistix: Rosenbrock's function of 10 numbers by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optimistix

from tests.programs.neighbours.rosenbrock_bfgs import rosenbrock


def make() -> Callable[[], Any]:
    solver = optimistix.LBFGS(rtol=1e-4, atol=1e-4)
    run = jax.jit(
        lambda y: optimistix.minimise(rosenbrock, solver, y, max_steps=500, throw=False).value
    )
    y = jnp.zeros(10)
    return lambda: run(y)
