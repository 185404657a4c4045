"""BlackJAX: NUTS, eight schools, 1,000 draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import jax.numpy as jnp

from tests.programs.neighbours.blackjax_regression import draws

IS_RANDOM = True
EFFECTS = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
ERRORS = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)


def make() -> Callable[[], Any]:
    effects, errors = jnp.array(EFFECTS), jnp.array(ERRORS)

    def log_density(p: Any) -> Any:
        tau = jnp.exp(p["log_tau"])
        residuals = (effects - p["mu"] - tau * p["theta"]) / errors
        prior = -0.5 * (p["mu"] / 5) ** 2 - jnp.log1p((tau / 5) ** 2) + p["log_tau"]
        return prior - 0.5 * jnp.sum(p["theta"] ** 2) - 0.5 * jnp.sum(residuals**2)

    nuts = blackjax.nuts(log_density, step_size=0.3, inverse_mass_matrix=jnp.ones(10))
    return draws(nuts, {"log_tau": jnp.zeros(()), "mu": jnp.zeros(()), "theta": jnp.zeros(8)})
