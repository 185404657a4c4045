"""A gated recurrent unit learns to remember the first sign of a sequence."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, nn, random

WIDTH = 8
X = np.random.default_rng(4).normal(size=(64, 12, 1))
Y = (X[:, 0, 0] > 0).astype(float)


def init(key):
    shapes = {"z": (WIDTH + 1, WIDTH), "r": (WIDTH + 1, WIDTH), "h": (WIDTH + 1, WIDTH)}
    keys = random.split(key, len(shapes))
    params = {n: 0.5 * random.normal(k, s) for k, (n, s) in zip(keys, shapes.items(), strict=True)}
    return params | {"out": jnp.zeros(WIDTH), "bias": jnp.zeros(WIDTH)}


def cell(params, h, x):
    both = jnp.concatenate([h, x])
    z = nn.sigmoid(both @ params["z"] + params["bias"])
    r = nn.sigmoid(both @ params["r"])
    return (1 - z) * h + z * jnp.tanh(jnp.concatenate([r * h, x]) @ params["h"])


def predict(params, xs):
    h, _ = lax.scan(lambda h, x: (cell(params, h, x), None), jnp.zeros(WIDTH), xs)
    return h @ params["out"]


def loss(params):
    logits = jax.vmap(predict, (None, 0))(params, X)
    return jnp.mean(nn.softplus(logits) - Y * logits)


def main():
    params = init(random.key(0))
    step = jax.jit(jax.value_and_grad(loss))
    start, slopes = step(params)
    shift = 1e-5
    unit = np.eye(WIDTH)[0]
    moved = [params | {"out": params["out"] + s * unit} for s in (shift, -shift)]
    difference = (float(loss(moved[0])) - float(loss(moved[1]))) / (2 * shift)
    assert abs(difference - float(slopes["out"][0])) < 1e-7
    velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
    for _ in range(500):
        _, slopes = step(params)
        velocity = jax.tree_util.tree_map(lambda v, s: 0.9 * v + s, velocity, slopes)
        params = jax.tree_util.tree_map(lambda p, v: p - 0.1 * v, params, velocity)
    accuracy = np.mean((np.asarray(jax.vmap(predict, (None, 0))(params, X)) > 0) == Y)
    assert accuracy > 0.95
    return {"start": float(start), "accuracy": float(accuracy)}
