"""One block of attention learns the next letter of a line that repeats."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import nn, random

text = "to be or not to be that is the question " * 3
letters = sorted(set(text))
tokens = jnp.array([letters.index(c) for c in text])
length, width, vocabulary = 16, 24, len(letters)
starts = np.arange(0, len(text) - length - 1, 3)
batch = jnp.stack([tokens[i : i + length + 1] for i in starts])


def init(key):
    shapes = {
        "embedding": (vocabulary, width),
        "places": (length, width),
        "query": (width, width),
        "key": (width, width),
        "value": (width, width),
        "up": (width, 2 * width),
        "down": (2 * width, width),
        "out": (width, vocabulary),
    }
    keys = random.split(key, len(shapes))
    return {n: 0.2 * random.normal(k, s) for (n, s), k in zip(shapes.items(), keys, strict=True)}


def norm(x):
    return nn.standardize(x, axis=-1)


@jax.checkpoint
def block(params, x):
    q, k, v = (norm(x) @ params[n] for n in ("query", "key", "value"))
    scores = q @ k.T / jnp.sqrt(width)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    x = x + nn.softmax(scores, axis=-1) @ v
    return x + nn.gelu(norm(x) @ params["up"]) @ params["down"]


def loss(params, rows):
    def one(row):
        x = params["embedding"][row[:-1]] + params["places"]
        logits = nn.log_softmax(block(params, x) @ params["out"])
        return -jnp.take_along_axis(logits, row[1:, None], axis=1).mean()

    return jax.vmap(one)(rows).mean()


@jax.jit
def step(state, i):
    params, m, v = state
    value, g = jax.value_and_grad(loss)(params, batch)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, v, g)
    rate = 0.01 * jnp.sqrt(1 - 0.99 ** (i + 1)) / (1 - 0.9 ** (i + 1))
    new = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return (new, m, v), value


params = init(random.key(0))
zeros = jax.tree.map(jnp.zeros_like, params)
state, values = (params, zeros, zeros), []
for i in range(60):
    state, value = step(state, i)
    values.append(value.item())
assert values[0] > 2.0
assert values[-1] < 0.4, values[-1]
