"""Stochastic gradient Langevin dynamics for Bayesian linear regression: the posterior is known."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, random

RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 2))
Y = X @ np.array([1.0, -2.0]) + RNG.normal(size=200)


def log_posterior(w, x, y):
    return -0.5 * len(X) * jnp.mean((y - x @ w) ** 2) - 0.5 * jnp.sum(w**2)


def step(w, key, size=4e-4):
    of_batch, of_noise = random.split(key)
    rows = random.randint(of_batch, (50,), 0, len(X))
    gradient = jax.grad(log_posterior)(w, jnp.asarray(X)[rows], jnp.asarray(Y)[rows])
    w = w + 0.5 * size * gradient + jnp.sqrt(size) * random.normal(of_noise, w.shape)
    return w, w


def main():
    run = jax.jit(lambda key: lax.scan(step, jnp.zeros(2), random.split(key, 8000))[1])
    samples = np.asarray(run(random.key(0)))[1000:]
    covariance = np.linalg.inv(X.T @ X + np.eye(2))
    mean = covariance @ X.T @ Y
    assert np.allclose(samples.mean(0), mean, atol=0.05)
    assert np.allclose(samples.std(0), np.sqrt(np.diag(covariance)), rtol=0.4)
    return {"mean": samples.mean(0).tolist()}
