"""Model predictive control with bounded inputs, by projected gradients; its optimality holds."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

A = np.array([[1.0, 0.1], [0.0, 1.0]])
B = np.array([0.005, 0.1])


def cost(u, x):
    def step(x, force):
        x = A @ x + B * force
        return x, x @ x + 0.01 * force**2

    return jnp.sum(lax.scan(step, x, u)[1])


@jax.jit
def plan(u, x):
    def body(_, u):
        return jnp.clip(u - 0.08 * jax.grad(cost)(u, x), -1.0, 1.0)

    return lax.fori_loop(0, 1500, body, u)


def main():
    x, u, path = np.array([1.0, 0.0]), jnp.zeros(20), []
    first = plan(u, x)
    slope = np.asarray(jax.grad(cost)(first, x))
    free = np.abs(np.asarray(first)) < 1 - 1e-9
    assert np.allclose(slope[free], 0.0, atol=1e-3)
    assert np.all(slope[~free] * np.asarray(first)[~free] <= 1e-6)
    for _ in range(60):
        u = plan(u, x)
        x = A @ x + B * np.asarray(u)[0]
        path.append(x)
        u = jnp.roll(u, -1)
    assert np.linalg.norm(x) < 0.02
    assert not free.all()
    return {"end": x.tolist(), "first": float(first[0])}
