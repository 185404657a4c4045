"""tinygp: marginal likelihood of 100 points and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels


def make() -> Callable[[], Any]:
    x = jnp.sort(10 * jax.random.uniform(jax.random.key(0), (100,)))
    y = jnp.sin(x) + 0.1 * jax.random.normal(jax.random.key(1), (100,))

    def loss(p: Any) -> Any:
        kernel = jnp.exp(p["amplitude"]) * kernels.Matern32(jnp.exp(p["scale"]))
        return -GaussianProcess(kernel, x, diag=jnp.exp(p["noise"])).log_probability(y)

    run = jax.jit(jax.value_and_grad(loss))
    p = {"amplitude": jnp.array(0.1), "noise": jnp.array(-3.0), "scale": jnp.array(0.2)}
    return lambda: run(p)
