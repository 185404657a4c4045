"""A convolutional network learns a filter; its forward pass is SciPy's correlation."""

import numpy as np
from scipy.signal import correlate2d

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, random

IMAGES = np.random.default_rng(3).normal(size=(16, 1, 10, 10))
SOBEL = np.array([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
TARGET = np.array([correlate2d(image[0], SOBEL, "valid") for image in IMAGES])


def network(params, images):
    hidden = lax.conv_general_dilated(images, params["first"], (1, 1), "VALID")
    return jnp.einsum("nchw,c->nhw", hidden, params["mix"])


def loss(params):
    return jnp.mean((network(params, IMAGES) - TARGET) ** 2)


def main():
    params = {"first": 0.3 * random.normal(random.key(0), (2, 1, 3, 3)), "mix": jnp.ones(2)}
    step = jax.jit(jax.value_and_grad(loss))
    for _ in range(200):
        value, slopes = step(params)
        params = jax.tree_util.tree_map(lambda p, s: p - 0.02 * s, params, slopes)
    kernel = np.einsum("cihw,c->hw", np.asarray(params["first"]), np.asarray(params["mix"]))
    assert np.allclose(kernel, SOBEL, atol=1e-3)
    pooled = lax.reduce_window(IMAGES[:1], -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    expected = IMAGES[0, 0].reshape(5, 2, 5, 2).max((1, 3))
    assert np.allclose(pooled[0, 0], expected)
    return {"loss": float(value), "kernel": kernel.tolist()}
