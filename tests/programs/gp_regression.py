"""Gaussian process regression: the gradient of the evidence against its formula, and a fit."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp

X = np.linspace(0, 5, 20)
Y = np.sin(X) + 0.1 * np.cos(17 * X)


def kernel(a, b, scale):
    return jnp.exp(-0.5 * ((a[:, None] - b[None, :]) / scale) ** 2)


def negative_log_evidence(log_params):
    scale, noise = jnp.exp(log_params)
    k = kernel(X, X, scale) + noise**2 * jnp.eye(len(X))
    factor = jnp.linalg.cholesky(k)
    alpha = jax.scipy.linalg.cho_solve((factor, True), jnp.asarray(Y))
    return 0.5 * Y @ alpha + jnp.sum(jnp.log(jnp.diag(factor)))


def formula(log_params):
    scale, noise = np.exp(log_params)
    k = np.asarray(kernel(X, X, scale))
    square = (X[:, None] - X[None, :]) ** 2
    inverse = np.linalg.inv(k + noise**2 * np.eye(len(X)))
    inner = inverse - np.outer(inverse @ Y, inverse @ Y)
    parts = (k * square / scale**2, 2 * noise**2 * np.eye(len(X)))
    return [0.5 * np.sum(inner * part) for part in parts]


def main():
    p = np.log([1.0, 0.3])
    step = jax.jit(jax.value_and_grad(negative_log_evidence))
    value, gradient = step(p)
    assert np.allclose(gradient, formula(p), rtol=1e-8)
    best = p
    for _ in range(150):
        value, gradient = step(best)
        best = best - 0.01 * np.clip(gradient, -10, 10)
    scale, noise = np.exp(best)
    k = kernel(X, X, scale) + noise**2 * np.eye(len(X))
    mean = kernel(np.array([2.5]), X, scale) @ np.linalg.solve(k, Y)
    assert abs(float(mean[0]) - np.sin(2.5)) < 0.1
    return {"evidence": float(value), "scale": float(scale)}
