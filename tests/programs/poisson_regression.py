"""A Poisson generalized linear model by Newton's method, against reweighted least squares."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp

RNG = np.random.default_rng(0)
X = np.column_stack([np.ones(100), RNG.normal(size=(100, 2))])
Y = RNG.poisson(np.exp(X @ np.array([0.5, 0.3, -0.4])))


def negative_log_likelihood(w):
    eta = X @ w
    return jnp.sum(jnp.exp(eta) - Y * eta)


def reweighted(n):
    w = np.zeros(3)
    for _ in range(n):
        mu = np.exp(X @ w)
        z = X @ w + (Y - mu) / mu
        w = np.linalg.solve(X.T @ (mu[:, None] * X), X.T @ (mu * z))
    return w


def main():
    @jax.jit
    def newton(w):
        step = jnp.linalg.solve(
            jax.hessian(negative_log_likelihood)(w), jax.grad(negative_log_likelihood)(w)
        )
        return w - step

    w = jnp.zeros(3)
    for _ in range(10):
        w = newton(w)
    errors = jnp.sqrt(jnp.diag(jnp.linalg.inv(jax.hessian(negative_log_likelihood)(w))))
    assert np.allclose(w, reweighted(10), atol=1e-10)
    return {"w": np.asarray(w).tolist(), "errors": np.asarray(errors).tolist()}
