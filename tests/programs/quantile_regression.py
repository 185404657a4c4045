"""Quantiles as minima of the pinball loss, against order statistics."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

DATA = np.random.default_rng(19).gamma(2.0, size=501)
LEVELS = np.array([0.1, 0.5, 0.9])


def pinball(q, level):
    residual = DATA - q
    return jnp.mean(jnp.maximum(level * residual, (level - 1) * residual))


@jax.jit
@jax.vmap
def descend(level):
    def step(i, q):
        return q - 3.0 / (1 + 0.05 * i) * jax.grad(pinball)(q, level)

    return lax.fori_loop(0, 3000, step, jnp.mean(DATA))


def main():
    found = np.asarray(descend(jnp.asarray(LEVELS)))
    expected = np.quantile(DATA, LEVELS)
    assert np.allclose(found, expected, atol=0.05)
    slope = jax.vmap(jax.grad(pinball), (0, 0))(jnp.asarray(expected) + 1e-9, jnp.asarray(LEVELS))
    assert np.all(np.abs(np.asarray(slope)) <= 1.5 / len(DATA) + 1e-12)
    return {"quantiles": found.tolist()}
