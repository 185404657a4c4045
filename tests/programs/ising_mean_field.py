"""Mean-field Ising model: the free energy by gradient descent, against m = tanh(4 m / T)."""

import numpy as np
from scipy.optimize import brentq

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

T, SIDE = 3.0, 8


def neighbours(m):
    return sum(jnp.roll(m, s, axis) for s in (-1, 1) for axis in (0, 1))


def free_energy(h):
    m = jnp.tanh(h)
    up, down = (1 + m) / 2, (1 - m) / 2
    entropy = -jnp.sum(up * jnp.log(up) + down * jnp.log(down))
    return -0.5 * jnp.sum(m * neighbours(m)) - T * entropy


def main():
    @jax.jit
    def relax(h):
        def step(_, h):
            return h - 0.2 * jax.grad(free_energy)(h)

        return lax.fori_loop(0, 400, step, h)

    start = 0.5 + 0.1 * np.cos(np.arange(SIDE * SIDE)).reshape(SIDE, SIDE)
    m = np.tanh(np.asarray(relax(start)))
    expected = brentq(lambda m: m - np.tanh(4 * m / T), 0.1, 1.0)
    assert np.allclose(m, expected, atol=1e-6)
    return {"magnetisation": float(m.mean())}
