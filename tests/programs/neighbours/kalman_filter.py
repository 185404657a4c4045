"""JAX alone: a Kalman filter of two states, 1,000 observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def make() -> Callable[[], Any]:
    move, look = jnp.array([[1.0, 0.1], [0.0, 1.0]]), jnp.array([[1.0, 0.0]])
    noise, error = 0.01 * jnp.eye(2), 0.1 * jnp.eye(1)
    ys = jnp.sin(0.05 * jnp.arange(1000.0))[:, None]

    def step(state: Any, y: Any) -> Any:
        mean, cov = state
        mean, cov = move @ mean, move @ cov @ move.T + noise
        innovation = look @ cov @ look.T + error
        gain = jnp.linalg.solve(innovation, look @ cov).T
        mean = mean + gain @ (y - look @ mean)
        return (mean, cov - gain @ innovation @ gain.T), mean

    run = jax.jit(lambda ys: jax.lax.scan(step, (jnp.zeros(2), jnp.eye(2)), ys)[1])
    return lambda: run(ys)
