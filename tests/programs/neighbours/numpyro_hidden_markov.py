"""NumPyro: NUTS, a hidden Markov model of three states, 100 draws after 100."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions
from numpyro.infer import MCMC, NUTS, init_to_value

from tests.programs.neighbours.blackjax_hidden_markov import STATES, log_likelihood, observations

IS_RANDOM = True


def make() -> Callable[[], Any]:
    ys = observations()

    def model() -> None:
        with numpyro.plate("states", STATES):
            levels = numpyro.sample("levels", distributions.Normal(0.0, 3.0))
        stays = numpyro.sample("stays", distributions.Normal(0.0, 3.0))
        numpyro.factor("ys", log_likelihood(ys, levels, stays))

    start = {"levels": jnp.array([-1.0, 0.0, 1.0]), "stays": jnp.array(1.0)}
    kernel = NUTS(model, init_strategy=init_to_value(values=start))
    chain = MCMC(kernel, num_warmup=100, num_samples=100, progress_bar=False)

    def call() -> Any:
        chain.run(jax.random.PRNGKey(0))
        return chain.get_samples()["levels"]

    return call
