"""The penalty of ridge regression by the gradient of the validation loss through the solution."""

import numpy as np
from scipy.optimize import minimize_scalar

import funcgrad as jax
import funcgrad.numpy as jnp

RNG = np.random.default_rng(14)
W = RNG.normal(size=10)
X, X_NEW = RNG.normal(size=(20, 10)), RNG.normal(size=(100, 10))
Y, Y_NEW = X @ W + 2 * RNG.normal(size=20), X_NEW @ W + 2 * RNG.normal(size=100)


def validation(log_penalty):
    gram = X.T @ X + jnp.exp(log_penalty) * jnp.eye(10)
    w = jax.scipy.linalg.solve(gram, X.T @ Y, assume_a="pos")
    return jnp.mean((X_NEW @ w - Y_NEW) ** 2)


def plain(log_penalty):
    w = np.linalg.solve(X.T @ X + np.exp(log_penalty) * np.eye(10), X.T @ Y)
    return np.mean((X_NEW @ w - Y_NEW) ** 2)


def main():
    both = jax.jit(jax.value_and_grad(validation))
    p = 0.0
    slope = float(both(p)[1])
    assert abs(slope - (plain(1e-5) - plain(-1e-5)) / 2e-5) < 1e-7
    for _ in range(400):
        value, slope = both(p)
        p = p - 2.0 * float(slope)
    best = minimize_scalar(plain, bounds=(-5, 5), method="bounded", options={"xatol": 1e-8})
    assert float(value) <= best.fun + 1e-6
    return {"penalty": p, "loss": float(value)}
