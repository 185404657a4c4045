"""The wave equation on a ring, against d'Alembert's solution, and its time reversal by grad."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

N = 128
GRID = np.arange(N) * 2 * np.pi / N
DT = 0.5 * GRID[1]


def laplacian(u):
    return (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)) / GRID[1] ** 2


def evolve(u, steps):
    def step(state, _):
        before, now = state
        return (now, 2 * now - before + DT**2 * laplacian(now)), None

    first = u + 0.5 * DT**2 * laplacian(u)
    return lax.scan(step, (u, first), None, length=steps - 1)[0][1]


def main():
    u = np.exp(np.sin(GRID))
    steps = 100
    got = jax.jit(evolve, static_argnums=1)(u, steps)
    t = steps * DT
    exact = 0.5 * (np.exp(np.sin(GRID + t)) + np.exp(np.sin(GRID - t)))
    error = float(np.max(np.abs(got - exact)))
    assert error < 3e-3

    def misfit(u):
        return 0.5 * jnp.sum((evolve(u, steps) - got) ** 2)

    assert np.allclose(jax.grad(misfit)(u), 0.0, atol=1e-9)
    # The operator is symmetric: its adjoint is itself.
    w = np.cos(3 * GRID)
    pulled = jax.vjp(lambda u: evolve(u, steps), u)[1](jnp.asarray(w))[0]
    assert np.allclose(pulled, evolve(w, steps), atol=1e-10)
    return {"error": error}
