"""Hamiltonian Monte Carlo on a correlated Gaussian, whose moments are known."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, random

COVARIANCE = np.array([[2.0, 1.2], [1.2, 1.0]])
PRECISION = np.linalg.inv(COVARIANCE)


def potential(q):
    return 0.5 * q @ PRECISION @ q


def leapfrog(q, p, step, n):
    def body(_, state):
        q, p = state
        p = p - 0.5 * step * jax.grad(potential)(q)
        q = q + step * p
        return q, p - 0.5 * step * jax.grad(potential)(q)

    return lax.fori_loop(0, n, body, (q, p))


def transition(q, key):
    of_momentum, of_choice = random.split(key)
    p = random.normal(of_momentum, q.shape)
    q_new, p_new = leapfrog(q, p, 0.3, 8)
    change = potential(q) + 0.5 * p @ p - potential(q_new) - 0.5 * p_new @ p_new
    accepted = jnp.log(random.uniform(of_choice)) < change
    q = jnp.where(accepted, q_new, q)
    return q, (q, accepted)


@jax.jit
def chain(key, q):
    return lax.scan(transition, q, random.split(key, 6000))[1]


def main():
    samples, accepted = chain(random.key(0), jnp.zeros(2))
    covariance = np.cov(np.asarray(samples[500:]).T)
    assert np.mean(np.asarray(accepted)) > 0.8
    assert np.allclose(np.mean(np.asarray(samples), 0), 0.0, atol=0.15)
    assert np.allclose(covariance, COVARIANCE, atol=0.25)
    return {"acceptance": float(np.mean(np.asarray(accepted))), "covariance": covariance.tolist()}
