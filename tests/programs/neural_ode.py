"""The matrix of a linear differential equation, learned through a Runge-Kutta solver."""

import numpy as np
from scipy.linalg import expm

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

TRUE = np.array([[-0.1, 2.0], [-2.0, -0.1]])
TIMES = np.linspace(0, 1, 11)
START = np.array([[1.0, 0.0], [0.0, 1.5]])
OBSERVED = np.stack([START @ expm(TRUE * t).T for t in TIMES])


def flow(field, params, x, dt):
    a = field(params, x)
    b = field(params, x + 0.5 * dt * a)
    c = field(params, x + 0.5 * dt * b)
    d = field(params, x + dt * c)
    return x + dt * (a + 2 * b + 2 * c + d) / 6


def solve(params):
    def step(x, dt):
        def inner(_, x):
            return flow(lambda p, x: x @ p.T, params, x, dt / 4)

        x = lax.fori_loop(0, 4, inner, x)
        return x, x

    _, xs = lax.scan(step, jnp.asarray(START), jnp.diff(TIMES))
    return jnp.concatenate([jnp.asarray(START)[None], xs])


def loss(params):
    return jnp.mean((solve(params) - OBSERVED) ** 2)


def main():
    assert np.allclose(solve(TRUE), OBSERVED, atol=1e-6)
    step = jax.jit(jax.value_and_grad(loss))
    params = np.array([[0.0, 1.0], [-1.0, 0.0]])
    for _ in range(300):
        _, slope = step(params)
        params = params - 0.5 * np.asarray(slope)
    assert np.allclose(params, TRUE, atol=1e-3)
    return {"matrix": params.tolist()}
