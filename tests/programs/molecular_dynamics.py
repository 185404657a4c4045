"""Lennard-Jones clusters: minima of known energy, and vibrations by the Hessian."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp


def energy(x):
    i, j = jnp.triu_indices(x.shape[0], 1)
    r6 = jnp.sum((x[i] - x[j]) ** 2, axis=-1) ** 3
    return jnp.sum(4 * (1 / r6**2 - 1 / r6))


@jax.jit
def relax(x, v, dt=0.02):
    """Damped dynamics that stops when it runs uphill."""

    def step(_, state):
        x, v = state
        force = -jax.grad(energy)(x)
        v = jnp.where(jnp.sum(force * v) < 0, 0.0, v)
        v = v + dt * force
        return x + dt * v, v

    return jax.lax.fori_loop(0, 600, step, (x, v))


def main():
    start = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.5
    start = start + 0.05 * np.sin(np.arange(12.0)).reshape(4, 3)
    x, _ = relax(start, np.zeros_like(start))
    assert abs(float(energy(x)) + 6.0) < 1e-6  # each of six bonds has the energy -1
    hessian = np.asarray(jax.hessian(lambda flat: energy(flat.reshape(4, 3)))(jnp.ravel(x)))
    stiffness = np.linalg.eigvalsh(hessian)
    assert np.sum(np.abs(stiffness) < 1e-3) == 6  # translations and rotations
    second = 57.14643787  # of the pair potential at its minimum, 72 / 2**(1/3)
    assert np.allclose(stiffness[-1], 4 * second, rtol=1e-3)
    return {"energy": float(energy(x)), "largest": float(stiffness[-1])}
