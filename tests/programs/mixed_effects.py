"""A random-intercept model by its marginal likelihood; balanced data have a closed solution."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp

GROUPS, SIZE = 12, 5
RNG = np.random.default_rng(5)
Y = 1.0 + 1.5 * RNG.normal(size=(GROUPS, 1)) + 0.7 * RNG.normal(size=(GROUPS, SIZE))


def negative_log_likelihood(params):
    mean, log_within, log_between = params
    covariance = jnp.exp(log_within) * jnp.eye(SIZE) + jnp.exp(log_between)
    factor = jnp.linalg.cholesky(covariance)
    z = jax.scipy.linalg.solve_triangular(factor, (Y - mean).T, lower=True)
    return 0.5 * jnp.sum(z**2) + GROUPS * jnp.sum(jnp.log(jnp.diag(factor)))


def main():
    @jax.jit
    def step(p):
        hessian = jax.hessian(negative_log_likelihood)(p)
        return p - jnp.linalg.solve(hessian, jax.grad(negative_log_likelihood)(p))

    p = jnp.array([Y.mean(), np.log(0.5), np.log(1.5)])
    for _ in range(30):
        p = step(p)
    within = Y.var(axis=1).sum() / GROUPS * SIZE / (SIZE - 1)
    between = Y.mean(axis=1).var() - within / SIZE
    assert np.allclose([p[0], np.exp(p[1]), np.exp(p[2])], [Y.mean(), within, between], rtol=1e-6)
    return {"within": float(np.exp(p[1])), "between": float(np.exp(p[2]))}
