"""Hopfield networks, classic and modern: retrieval until nothing changes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def store(P):
    W = P.T @ P / P.shape[1]
    return jnp.fill_diagonal(W, 0.0, inplace=False)


def recall(W, s):
    def energy(s):
        return -0.5 * s @ W @ s

    def sweep(s):
        def flip(i, s):
            return s.at[i].set(jnp.where(W[i] @ s >= 0, 1.0, -1.0))

        return lax.fori_loop(0, s.shape[0], flip, s)

    def cond(c):
        old, new, n = c
        return jnp.logical_and(jnp.any(old != new), n < 20)

    def body(c):
        _, s, n = c
        return s, sweep(s), n + 1

    _, out, n = lax.while_loop(cond, body, (s * 0, s, 0))
    return out, n, energy(s) - energy(out)


def modern(X, q, beta):
    def step(c):
        _old, q, n = c
        return q, jax.nn.softmax(beta * X @ q) @ X, n + 1

    return lax.while_loop(
        lambda c: (jnp.linalg.norm(c[0] - c[1]) > 1e-10) & (c[2] < 100), step, (q + 1, q, 0)
    )[1]


def main():
    key = random.PRNGKey(5)
    P = random.rademacher(key, (5, 100), jnp.float64)
    noise = random.bernoulli(random.fold_in(key, 1), 0.15, P.shape)
    S = jnp.where(noise, -P, P)
    W = store(P)
    out, n, drop = jax.jit(jax.vmap(recall, in_axes=(None, 0)))(W, S)
    assert (out == P).mean() > 0.98, (out == P).mean()
    assert (drop >= 0).all()
    X = random.normal(key, (8, 20), jnp.float64)
    X /= jnp.linalg.norm(X, axis=1, keepdims=True)
    Q = X + 0.1 * random.normal(random.fold_in(key, 2), X.shape, jnp.float64)
    R = jax.vmap(modern, (None, 0, None))(X, Q, 20.0)
    assert jnp.all(jnp.argmax(R @ X.T, 1) == jnp.arange(8))
    J = jax.jacfwd(lambda b: modern(X, Q[0], b))(2.0)
    d = (modern(X, Q[0], 2.0 + 1e-5) - modern(X, Q[0], 2.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(J, d, atol=1e-5)
    return {"right": (out == P).mean(), "slope": jnp.linalg.norm(J), "n": n.sum()}


main()
