"""BlackJAX: NUTS, logistic regression with 8 coefficients, 1,000 draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp

IS_RANDOM = True


def draws(nuts: Any, start: Any) -> Callable[[], Any]:
    """1,000 draws of a sampler, and their mean."""

    @jax.jit
    def run(key: Any, start: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            state, _ = nuts.step(key, state)
            return state, state.position

        return jax.lax.scan(step, nuts.init(start), jax.random.split(key, 1000))[1]

    key = jax.random.key(2)
    return lambda: run(key, start)


def make() -> Callable[[], Any]:
    x = jax.random.normal(jax.random.key(0), (200, 8))
    chance = jax.nn.sigmoid(x @ jnp.linspace(-1.0, 1.0, 8))
    y = (jax.random.uniform(jax.random.key(1), (200,)) < chance).astype(jnp.float32)

    def log_density(w: Any) -> Any:
        z = x @ w
        return jnp.sum(y * z - jnp.logaddexp(0.0, z)) - 0.5 * jnp.sum(w * w)

    nuts = blackjax.nuts(log_density, step_size=0.15, inverse_mass_matrix=jnp.ones(8))
    return draws(nuts, jnp.zeros(8))
