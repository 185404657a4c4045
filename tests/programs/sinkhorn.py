"""Entropic optimal transport: marginals, the assignment as its limit, and its gradient."""

import numpy as np
from scipy.optimize import linear_sum_assignment

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax
from funcgrad.scipy.special import logsumexp

RNG = np.random.default_rng(15)
A, B = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2)) + 1
LOG_N = np.log(6)


def cost(a):
    return jnp.sum((a[:, None] - B) ** 2, axis=-1)


def potentials(c, epsilon, n):
    def step(_, fg):
        f, g = fg
        f = -epsilon * (logsumexp((g - c) / epsilon, axis=1) - LOG_N)
        g = -epsilon * (logsumexp((f[:, None] - c) / epsilon, axis=0) - LOG_N)
        return f, g

    return lax.fori_loop(0, n, step, (jnp.zeros(6), jnp.zeros(6)))


def transport(a, epsilon=2.0):
    f, g = potentials(cost(a), epsilon, 600)
    return jnp.mean(f) + jnp.mean(g)


def main():
    c = np.asarray(cost(A))
    f, g = potentials(c, 2.0, 600)
    plan = np.exp((f[:, None] + g - c) / 2.0) / 36
    assert np.allclose(plan.sum(0), 1 / 6)
    rows, columns = linear_sum_assignment(c)
    value, slope = jax.jit(jax.value_and_grad(transport))(A)
    assert abs(float(value) - c[rows, columns].mean()) < 2.0 * LOG_N
    # The envelope theorem: only the cost depends on the points.
    envelope = np.asarray(jax.vjp(cost, A)[1](jnp.asarray(plan))[0])
    assert np.allclose(slope, envelope, atol=1e-6)
    return {"value": float(value)}
