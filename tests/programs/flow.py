"""A normalising flow of coupling layers: its log determinant, its inverse, and a fit."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import random

DATA = np.random.default_rng(17).normal(size=(400, 2))
DATA = np.column_stack([DATA[:, 0], 0.5 * DATA[:, 1] + 0.4 * DATA[:, 0] ** 2])


def init(key):
    return [
        {"w": 0.3 * random.normal(k, (16,)), "b": jnp.linspace(-2, 2, 16),
         "shift": jnp.zeros(16), "scale": jnp.zeros(16)}
        for k in random.split(key, 2)
    ]  # fmt: skip


def conditioner(layer, x):
    hidden = jnp.tanh(layer["w"] * x + layer["b"])
    return hidden @ layer["shift"], jnp.tanh(hidden @ layer["scale"])


def forward(params, x):
    log_det = 0.0
    for layer in params:
        shift, scale = conditioner(layer, x[0])
        x = jnp.stack([x[1] * jnp.exp(scale) + shift, x[0]])
        log_det = log_det + scale
    return x, log_det


def inverse(params, z):
    for layer in reversed(params):
        shift, scale = conditioner(layer, z[1])
        z = jnp.stack([z[1], (z[0] - shift) * jnp.exp(-scale)])
    return z


def loss(params):
    z, log_det = jax.vmap(lambda x: forward(params, x))(jnp.asarray(DATA))
    return jnp.mean(0.5 * jnp.sum(z**2, axis=1) - log_det) + jnp.log(2 * jnp.pi)


def main():
    params = init(random.key(0))
    step = jax.jit(jax.value_and_grad(loss))
    for _ in range(400):
        value, slopes = step(params)
        params = jax.tree_util.tree_map(lambda p, s: p - 0.05 * s, params, slopes)
    x = DATA[0]
    z, log_det = forward(params, x)
    jacobian = jax.jacfwd(lambda x: forward(params, x)[0])(x)
    assert abs(float(log_det) - np.linalg.slogdet(jacobian)[1]) < 1e-10
    assert np.allclose(inverse(params, z), x)
    entropy = np.log(2 * np.pi * np.e) + np.log(0.5)  # of the distribution of the data
    gaussian = 0.5 * np.linalg.slogdet(np.cov(DATA.T))[1] + np.log(2 * np.pi * np.e)
    assert entropy - 0.1 < float(value) < gaussian - 0.05
    return {"loss": float(value)}
