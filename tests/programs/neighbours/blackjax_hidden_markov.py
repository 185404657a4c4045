"""BlackJAX: NUTS, a hidden Markov model of three states, 1,000 draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp

from tests.programs.neighbours.blackjax_regression import draws

IS_RANDOM = True
STATES = 3


def observations() -> Any:
    """Numbers that stay near one of three levels for some time."""
    levels = jnp.array([-2.0, 0.0, 2.0])[(jnp.arange(200) // 17) % STATES]
    return levels + 0.5 * jax.random.normal(jax.random.key(0), (200,))


def log_likelihood(ys: Any, levels: Any, stays: Any) -> Any:
    """Of the observations, the states summed out: the forward algorithm.

    Args:
        ys: Observations.
        levels: Mean of the observations in each state; their deviation is 0.5.
        stays: Logit of the chance that a state stays.
    """
    stay, leave = jax.nn.log_sigmoid(stays), jax.nn.log_sigmoid(-stays) - jnp.log(STATES - 1.0)
    moves = jnp.where(jnp.eye(STATES) > 0, stay, leave)

    def step(weights: Any, y: Any) -> Any:
        arrived = jax.scipy.special.logsumexp(weights[:, None] + moves, axis=0)
        return arrived - 2 * (y - levels) ** 2, None

    weights, _ = jax.lax.scan(step, jnp.zeros(STATES), ys)
    return jax.scipy.special.logsumexp(weights)


def make() -> Callable[[], Any]:
    ys = observations()

    def log_density(p: Any) -> Any:
        prior = -0.5 * jnp.sum((p["levels"] / 3) ** 2) - 0.5 * (p["stays"] / 3) ** 2
        return prior + log_likelihood(ys, p["levels"], p["stays"])

    nuts = blackjax.nuts(log_density, step_size=0.05, inverse_mass_matrix=jnp.ones(4))
    return draws(nuts, {"levels": jnp.array([-1.0, 0.0, 1.0]), "stays": jnp.array(1.0)})
