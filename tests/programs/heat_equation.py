"""A diffusivity recovered by the gradient through an implicit solver of the heat equation."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

N, DT, STEPS = 40, 2e-3, 50
X = np.linspace(0, 1, N + 2)[1:-1]
SECOND = (np.eye(N, k=1) - 2 * np.eye(N) + np.eye(N, k=-1)) * (N + 1) ** 2


def solve(diffusivity, u):
    matrix = jnp.eye(N) - 0.5 * DT * diffusivity * SECOND
    explicit = jnp.eye(N) + 0.5 * DT * diffusivity * SECOND
    step = jnp.linalg.solve(matrix, explicit)
    return lax.fori_loop(0, STEPS, lambda _, u: step @ u, u)


def main():
    u0 = np.sin(np.pi * X) + 0.5 * np.sin(2 * np.pi * X)
    decay = [np.exp(-0.7 * (k * np.pi) ** 2 * DT * STEPS) for k in (1, 2)]
    observed = decay[0] * np.sin(np.pi * X) + 0.5 * decay[1] * np.sin(2 * np.pi * X)

    @jax.jit
    def newton(d):
        slope, curvature = jax.value_and_grad(jax.grad(misfit))(d)
        return d - slope / curvature

    def misfit(d):
        return jnp.sum((solve(d, u0) - observed) ** 2)

    d = 0.6
    for _ in range(8):
        d = newton(d)
    assert abs(float(d) - 0.7) < 2e-3
    return {"diffusivity": float(d)}
