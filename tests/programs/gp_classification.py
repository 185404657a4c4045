"""Laplace's approximation for Gaussian process classification: Newton's method by vjp and jvp."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, nn

X = np.linspace(-3, 3, 15)
LABELS = np.where(X + 0.5 * np.sin(5 * X) > 0, 1.0, -1.0)
K = 4 * np.exp(-0.5 * (X[:, None] - X) ** 2) + 1e-6 * np.eye(len(X))


def log_likelihood(f):
    return jnp.sum(nn.log_sigmoid(LABELS * f))


def newton(f):
    slope = jax.grad(log_likelihood)(f)
    ones = jnp.ones_like(f)
    w = -jax.jvp(jax.grad(log_likelihood), (f,), (ones,))[1]  # the Hessian is diagonal
    root = jnp.sqrt(w)
    b = w * f + slope
    inner = jnp.eye(len(X)) + root[:, None] * K * root
    return K @ (b - root * jnp.linalg.solve(inner, root * (K @ b)))


def main():
    mode = jax.jit(lambda f: lax.fori_loop(0, 12, lambda _, f: newton(f), f))(jnp.zeros(len(X)))
    slope = np.asarray(jax.grad(log_likelihood)(mode))
    assert np.allclose(K @ slope, mode, atol=1e-8)
    assert np.all(np.sign(np.asarray(mode))[np.abs(X) > 1] == LABELS[np.abs(X) > 1])
    return {"mode": np.asarray(mode).tolist()}
