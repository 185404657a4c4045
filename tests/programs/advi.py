"""Variational inference with reparametrised samples; the posterior is Gaussian and known."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, random

PRECISION = np.array([[3.0, 1.0], [1.0, 2.0]])
MEAN = np.array([1.0, -1.0])


def log_density(z):
    return -0.5 * (z - MEAN) @ PRECISION @ (z - MEAN)


def elbo(params, key):
    mean, log_scale = params
    noise = random.normal(key, (64, 2))
    z = mean + jnp.exp(log_scale) * noise
    return jnp.mean(jax.vmap(log_density)(z)) + jnp.sum(log_scale)


def main():
    def step(params, key_and_size):
        key, size = key_and_size
        slopes = jax.grad(elbo)(params, key)
        return jax.tree_util.tree_map(lambda p, s: p + size * s, params, slopes), None

    @jax.jit
    def fit(key):
        sizes = 0.1 / (1 + jnp.arange(600) / 50)
        return lax.scan(step, (jnp.zeros(2), jnp.zeros(2)), (random.split(key, 600), sizes))[0]

    mean, log_scale = fit(random.key(4))
    assert np.allclose(mean, MEAN, atol=0.05)
    assert np.allclose(jnp.exp(log_scale), 1 / np.sqrt(np.diag(PRECISION)), rtol=0.05)
    return {"mean": np.asarray(mean).tolist()}
