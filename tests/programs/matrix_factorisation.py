"""A matrix of rank two completed from some of its entries, by alternating least squares."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

RNG = np.random.default_rng(12)
FULL = RNG.normal(size=(15, 2)) @ RNG.normal(size=(2, 12))
MASK = RNG.uniform(size=FULL.shape) < 0.8


def loss(u, v):
    return 0.5 * jnp.sum(jnp.where(MASK, u @ v.T - FULL, 0.0) ** 2) + 1e-9 * jnp.sum(u**2)


def best_rows(u, v):
    """Newton's step in each row, in which the loss is quadratic."""
    slope = jax.grad(loss)(u, v)
    gram = jnp.einsum("ij,jk,jl->ikl", MASK.astype(float), v, v) + 2e-9 * jnp.eye(2)
    return u - jnp.linalg.solve(gram, slope[..., None])[..., 0]


def main():
    def sweep(_, pair):
        u, v = pair
        u = best_rows(u, v)
        gram = jnp.einsum("ij,ik,il->jkl", MASK.astype(float), u, u) + 2e-9 * jnp.eye(2)
        v = v - jnp.linalg.solve(gram, jax.grad(loss, 1)(u, v)[..., None])[..., 0]
        return u, v

    start = (jnp.asarray(RNG.normal(size=(15, 2))), jnp.asarray(RNG.normal(size=(12, 2))))
    u, v = jax.jit(lambda pair: lax.fori_loop(0, 200, sweep, pair))(start)
    error = float(np.abs(np.asarray(u @ v.T) - FULL).max())
    assert error < 1e-3
    return {"error": error}
