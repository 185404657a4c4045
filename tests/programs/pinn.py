"""A physics-informed network solves u'' = -u with u(0) = 0, u'(0) = 1: the sine."""

import numpy as np

import funcgrad as jax
import funcgrad.flatten_util
import funcgrad.numpy as jnp
from funcgrad import lax, random

POINTS = np.linspace(0, 3, 31)


def network(params, x):
    hidden = jnp.tanh(params["w"] * x + params["b"])
    return x + x**2 * (hidden @ params["v"])  # which meets the conditions at 0


def residual(params, x):
    second = jax.grad(jax.grad(network, 1), 1)(params, x)
    return second + network(params, x)


def loss(params):
    return jnp.mean(jax.vmap(residual, (None, 0))(params, POINTS) ** 2)


def main():
    params = {"w": random.normal(random.key(0), (12,)), "b": jnp.linspace(-2, 2, 12)}
    params["v"] = jnp.zeros(12)

    @jax.jit
    def train(params):
        flat, unravel = jax.flatten_util.ravel_pytree(params)

        def step(state, _):
            flat, damping = state

            def residuals(f):
                return jax.vmap(residual, (None, 0))(unravel(f), POINTS)

            r, j = residuals(flat), jax.jacfwd(residuals)(flat)
            move = jnp.linalg.solve(j.T @ j + damping * jnp.eye(len(flat)), j.T @ r)
            better = jnp.sum(residuals(flat - move) ** 2) < jnp.sum(r**2)
            flat = jnp.where(better, flat - move, flat)
            return (flat, jnp.where(better, damping / 3, damping * 2)), None

        return unravel(lax.scan(step, (flat, 1e-2), None, length=60)[0][0])

    fitted = train(params)
    error = np.abs(np.asarray(jax.vmap(network, (None, 0))(fitted, POINTS)) - np.sin(POINTS)).max()
    assert error < 1e-3
    return {"error": float(error)}
