"""Hamiltonian Monte Carlo draws from a correlated normal distribution."""

import jax
import jax.numpy as jnp
from jax import lax, random

covariance = jnp.array([[1.0, 0.6], [0.6, 2.0]])
precision = jnp.linalg.inv(covariance)
mean = jnp.array([1.0, -1.0])


def log_density(x):
    return -0.5 * (x - mean) @ precision @ (x - mean)


def transition(x, key):
    k1, k2 = random.split(key)
    momentum = random.normal(k1, x.shape)

    def leapfrog(_, state):
        x, p = state
        p = p + 0.15 * jax.grad(log_density)(x)
        x = x + 0.3 * p
        return x, p + 0.15 * jax.grad(log_density)(x)

    proposal, last = lax.fori_loop(0, 8, leapfrog, (x, momentum))
    change = log_density(proposal) - log_density(x) - 0.5 * (last @ last - momentum @ momentum)
    accepted = jnp.log(random.uniform(k2)) < change
    return lax.cond(accepted, lambda: proposal, lambda: x), accepted


@jax.jit
def chain(key):
    def body(x, key):
        x, accepted = transition(x, key)
        return x, (x, accepted)

    return lax.scan(body, jnp.zeros(2), random.split(key, 1500))[1]


samples, accepted = jax.vmap(chain)(random.split(random.key(3), 4))
samples = samples[:, 100:].reshape(-1, 2)
assert accepted.mean() > 0.8
assert jnp.allclose(samples.mean(0), mean, atol=0.15), samples.mean(0)
assert jnp.allclose(jnp.cov(samples.T), covariance, atol=0.3), jnp.cov(samples.T)
