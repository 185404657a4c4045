"""NumPyro: NUTS, logistic regression with 8 coefficients, 200 draws after 200."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions
from numpyro.infer import MCMC, NUTS

IS_RANDOM = True


def make() -> Callable[[], Any]:
    x = jax.random.normal(jax.random.key(0), (200, 8))
    chance = jax.nn.sigmoid(x @ jnp.linspace(-1.0, 1.0, 8))
    y = (jax.random.uniform(jax.random.key(1), (200,)) < chance).astype(jnp.int32)

    def model() -> None:
        with numpyro.plate("coefficients", 8):
            w = numpyro.sample("w", distributions.Normal(0.0, 1.0))
        with numpyro.plate("rows", 200):
            numpyro.sample("y", distributions.Bernoulli(logits=x @ w), obs=y)

    chain = MCMC(NUTS(model), num_warmup=200, num_samples=200, progress_bar=False)

    def call() -> Any:
        chain.run(jax.random.PRNGKey(0))
        return chain.get_samples()["w"]

    return call
