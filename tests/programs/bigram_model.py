"""A small language model: logits of the next character, whose best loss is the entropy."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import nn, random, tree_util

TEXT = "the cat sat on the mat and the dog sat on the log "
LETTERS = sorted(set(TEXT))
CODES = np.array([LETTERS.index(c) for c in TEXT])


def init(key, n, width):
    embed, out = random.split(key)
    return {"embed": random.normal(embed, (n, width)), "out": random.normal(out, (width, n))}


def loss(params, context, target):
    logits = jnp.tanh(params["embed"][context]) @ params["out"]
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), target[:, None], axis=1))


@jax.jit
def update(params, moments, context, target):
    value, gradients = jax.value_and_grad(loss)(params, context, target)
    moments = tree_util.tree_map(lambda m, g: 0.9 * m + g, moments, gradients)
    params = tree_util.tree_map(lambda p, m: p - 0.5 * m, params, moments)
    return params, moments, value


def main():
    context, target = CODES[:-1], CODES[1:]
    counts = np.zeros((len(LETTERS),) * 2)
    np.add.at(counts, (context, target), 1.0)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    entropy = -np.sum(counts * np.log(np.where(share > 0, share, 1.0))) / len(target)
    params = init(random.key(0), len(LETTERS), 24)
    moments = tree_util.tree_map(jnp.zeros_like, params)
    for _ in range(600):
        params, moments, value = update(params, moments, context, target)
    assert entropy - 1e-9 < value < entropy + 0.02
    return {"loss": float(value), "entropy": float(entropy)}
