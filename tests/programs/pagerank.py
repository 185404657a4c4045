"""PageRank by a while loop, and its derivative in the damping, against the linear system."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

LINKS = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0, 0, 1, 0]], dtype=float)
MOVE = (LINKS / LINKS.sum(1, keepdims=True)).T
N = len(LINKS)


def power_step(damping, rank):
    return damping * MOVE @ rank + (1 - damping) / N


def ranks(damping):
    def going(state):
        before, now = state
        return jnp.sum(jnp.abs(now - before)) > 1e-12

    def step(state):
        return state[1], power_step(damping, state[1])

    start = jnp.full(N, 1 / N)
    return lax.while_loop(going, step, (start, power_step(damping, start)))[1]


def implicit(damping):
    def solve(f, guess):
        return lax.fori_loop(0, 300, lambda _, x: x - f(x), guess)

    def tangent(g, y):
        return jnp.linalg.solve(jax.jacobian(g)(y), y)

    f = lambda rank: rank - power_step(damping, rank)  # noqa: E731
    return lax.custom_root(f, jnp.full(N, 1 / N), solve, tangent)


def main():
    rank, slope = jax.jvp(ranks, (0.85,), (1.0,))
    exact = np.linalg.solve(np.eye(N) - 0.85 * MOVE, np.full(N, 0.15 / N))
    derivative = np.linalg.solve(np.eye(N) - 0.85 * MOVE, MOVE @ exact - 1 / N)
    assert np.allclose(rank, exact, atol=1e-10)
    assert np.allclose(slope, derivative, atol=1e-9)
    assert np.allclose(jax.jacrev(implicit)(0.85), derivative, atol=1e-9)
    return {"rank": np.asarray(rank).tolist()}
