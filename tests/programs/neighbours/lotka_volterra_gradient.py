"""Diffrax: gradient of a loss of Lotka-Volterra in its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp

from tests.programs.neighbours.lotka_volterra import PARAMETERS, solve


def loss(args: Any, y0: Any) -> Any:
    ys = solve(y0, args, diffrax.SaveAt(ts=jnp.linspace(0.0, 20.0, 50)))
    return jnp.mean(ys**2)


def make() -> Callable[[], Any]:
    run = jax.jit(jax.grad(loss))
    y0, args = jnp.array([10.0, 10.0]), jnp.array(PARAMETERS)
    return lambda: run(args, y0)
