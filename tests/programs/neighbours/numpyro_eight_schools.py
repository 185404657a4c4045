"""NumPyro: NUTS with 300 steps of warm-up, eight schools, 500 draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions
from numpyro.infer import MCMC, NUTS

from tests.programs.neighbours.blackjax_eight_schools import EFFECTS, ERRORS

IS_RANDOM = True


def make() -> Callable[[], Any]:
    effects, errors = jnp.array(EFFECTS), jnp.array(ERRORS)

    def model() -> None:
        mu = numpyro.sample("mu", distributions.Normal(0.0, 5.0))
        tau = numpyro.sample("tau", distributions.HalfCauchy(5.0))
        with numpyro.plate("schools", 8):
            theta = numpyro.sample("theta", distributions.Normal(0.0, 1.0))
            numpyro.sample("y", distributions.Normal(mu + tau * theta, errors), obs=effects)

    chain = MCMC(NUTS(model), num_warmup=300, num_samples=500, progress_bar=False)

    def call() -> Any:
        chain.run(jax.random.PRNGKey(0))
        return chain.get_samples()["theta"]

    return call
