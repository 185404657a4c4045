"""Equations of motion from a Lagrangian: a double pendulum keeps its energy.

Euler-Lagrange: q'' = H^-1 (dL/dq - d2L/(dq' dq) q'), with the Hessian H of L in the velocities.
"""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax


def energies(q, v):
    x = jnp.cumsum(jnp.stack([jnp.sin(q), -jnp.cos(q)]), axis=1)
    speed = jnp.cumsum(jnp.stack([jnp.cos(q) * v, jnp.sin(q) * v]), axis=1)
    return 0.5 * jnp.sum(speed**2), 9.81 * jnp.sum(x[1])


def lagrangian(q, v):
    kinetic, potential = energies(q, v)
    return kinetic - potential


def field(state):
    q, v = state
    mass = jax.hessian(lagrangian, 1)(q, v)
    mixed = jax.jacfwd(jax.grad(lagrangian, 1), 0)(q, v)
    return v, jnp.linalg.solve(mass, jax.grad(lagrangian)(q, v) - mixed @ v)


def rk4(state, dt):
    def shift(k, factor):
        return jax.tree_util.tree_map(lambda s, d: s + factor * dt * d, state, k)

    a = field(state)
    b = field(shift(a, 0.5))
    c = field(shift(b, 0.5))
    d = field(shift(c, 1.0))
    mean = jax.tree_util.tree_map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, a, b, c, d)
    return shift(mean, 1.0)


def main():
    def step(state, _):
        state = rk4(state, 0.005)
        return state, sum(energies(*state))

    start = (jnp.array([2.0, 1.0]), jnp.zeros(2))
    _, energy = jax.jit(lambda s: lax.scan(step, s, None, length=400))(start)
    before = float(sum(energies(*start)))
    drift = float(np.max(np.abs(np.asarray(energy) - before)))
    assert drift < 1e-4
    small = field((jnp.array([1e-4, 1e-4]), jnp.zeros(2)))[1]
    linear = np.linalg.solve([[2.0, 1.0], [1.0, 1.0]], [-9.81 * 2e-4, -9.81 * 1e-4])
    assert np.allclose(small, linear, rtol=1e-6)
    return {"drift": drift}
