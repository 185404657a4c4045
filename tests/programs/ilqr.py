"""Iterative LQR swings a pendulum: the plan's gradient vanishes, as Pontryagin demands."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

DT, STEPS = 0.1, 30
GOAL = np.array([np.pi / 2, 0.0])


def dynamics(x, u):
    return x + DT * jnp.array([x[1], u[0] - jnp.sin(x[0])])


def stage(x, u):
    return 0.5 * jnp.sum((x - GOAL) ** 2) * DT + 0.05 * jnp.sum(u**2) * DT


def final(x):
    return 10.0 * jnp.sum((x - GOAL) ** 2)


def rollout(x, us):
    def step(x, u):
        return dynamics(x, u), x

    last, xs = lax.scan(step, x, us)
    return xs, last


def total(us, x):
    xs, last = rollout(x, us)
    return jnp.sum(jax.vmap(stage)(xs, us)) + final(last)


@jax.jit
def improve(x0, us):
    xs, last = rollout(x0, us)

    def backward(value, point):
        v, V = value
        x, u = point
        fx, fu = jax.jacfwd(dynamics, (0, 1))(x, u)
        lx, lu = jax.grad(stage, (0, 1))(x, u)
        (lxx, _), (lux, luu) = jax.hessian(stage, (0, 1))(x, u)
        qu, quu, qux = lu + fu.T @ v, luu + fu.T @ V @ fu, lux + fu.T @ V @ fx
        k, K = -jnp.linalg.solve(quu, qu), -jnp.linalg.solve(quu, qux)
        qx, qxx = lx + fx.T @ v, lxx + fx.T @ V @ fx
        return (qx + K.T @ qu, qxx + K.T @ qux), (k, K)

    start = (jax.grad(final)(last), jax.hessian(final)(last))
    _, (ks, Ks) = lax.scan(backward, start, (xs, us), reverse=True)

    def forward(x, row):
        old, u, k, K = row
        u = u + k + K @ (x - old)
        return dynamics(x, u), u

    return lax.scan(forward, x0, (xs, us, ks, Ks))[1]


def main():
    x0, us = jnp.zeros(2), jnp.zeros((STEPS, 1))
    costs = [float(total(us, x0))]
    for _ in range(12):
        us = improve(x0, us)
        costs.append(float(total(us, x0)))
    assert np.allclose(jax.grad(total)(us, x0), 0.0, atol=1e-6)
    assert costs[-1] < 0.2 * costs[0]
    return {"cost": costs[-1]}
