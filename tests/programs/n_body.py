"""Gravity by the gradient of a potential: a circular orbit closes, and energy is kept."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

MASSES = np.array([1.0, 1.0, 1e-3])


def potential(x):
    i, j = jnp.triu_indices(len(MASSES), 1)
    distance = jnp.sqrt(jnp.sum((x[i] - x[j]) ** 2, axis=-1))
    return -jnp.sum(jnp.asarray(MASSES)[i] * jnp.asarray(MASSES)[j] / distance)


def energy(x, v):
    return potential(x) + 0.5 * jnp.sum(MASSES[:, None] * v**2)


def main():
    period = 2 * np.pi  # of two unit masses, at distance 2**(1/3)
    r = 2 ** (1 / 3) / 2
    x = np.array([[r, 0.0], [-r, 0.0], [12.0, 0.0]])
    v = np.array([[0.0, r], [0.0, -r], [0.0, np.sqrt(2 / 12)]])
    dt = period / 2000

    def step(state, _):
        x, v = state
        v = v - 0.5 * dt * jax.grad(potential)(x) / MASSES[:, None]
        x = x + dt * v
        v = v - 0.5 * dt * jax.grad(potential)(x) / MASSES[:, None]
        return (x, v), jnp.sum(MASSES[:, None] * v, axis=0)

    (x1, v1), momentum = jax.jit(lambda s: lax.scan(step, s, None, length=2000))((x, v))
    drift = float(energy(x1, v1) - energy(x, v))
    assert np.allclose(x1[:2], x[:2], atol=2e-2)
    assert abs(drift) < 1e-6
    assert np.allclose(momentum, np.asarray(momentum)[0], atol=1e-12)
    return {"drift": drift, "x": np.asarray(x1).tolist()}
