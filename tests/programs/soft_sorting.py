"""Differentiable ranks: soft permutations that become the sort, and learning by ranks."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import nn


def soft_permutation(x, temperature):
    """Rows sum to one; row i weights the i-th largest element (Grover et al., 2019)."""
    n = len(x)
    distance = jnp.sum(jnp.abs(x[:, None] - x[None, :]), axis=1)
    scale = n + 1 - 2 * jnp.arange(1, n + 1)
    return nn.softmax((scale[:, None] * x - distance) / temperature, axis=1)


def main():
    x = np.array([0.3, -1.2, 2.5, 0.9])
    sharp = soft_permutation(x, 1e-3) @ x
    assert np.allclose(sharp, np.sort(x)[::-1])
    assert np.allclose(jnp.sum(soft_permutation(x, 1.0), axis=1), 1.0)

    @jax.jit
    def step(w):
        def loss(w):
            scores = soft_permutation(w, 0.5)
            return jnp.mean((scores - np.eye(4)[[2, 0, 3, 1]]) ** 2)

        return w - 2.0 * jax.grad(loss)(w)

    w = jnp.array(x)
    for _ in range(500):
        w = step(w)
    assert np.argsort(-np.asarray(w)).tolist() == [2, 0, 3, 1]
    pairs = jax.jacfwd(jnp.sort)(jnp.array(x))
    assert np.allclose(pairs, np.eye(4)[np.argsort(x)])
    return {"sharp": np.asarray(sharp).tolist()}
