"""Diffrax: 1,000 trajectories of Lotka-Volterra by vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp

from tests.programs.neighbours.lotka_volterra import PARAMETERS, solve


def make() -> Callable[[], Any]:
    args = jnp.array(PARAMETERS)
    run = jax.jit(jax.vmap(lambda y0: solve(y0, args, diffrax.SaveAt(t1=True))))
    y0 = 10 + 5 * jax.random.uniform(jax.random.key(0), (1000, 2))
    return lambda: run(y0)
