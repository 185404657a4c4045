"""k-means by Lloyd's iteration: its step is Newton's on the distortion."""

import numpy as np
from scipy.cluster.vq import kmeans2

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

RNG = np.random.default_rng(8)
DATA = np.concatenate([RNG.normal(c, 0.4, (60, 2)) for c in ([0, 0], [3, 1], [1, 4])])


def distortion(centres):
    squares = jnp.sum((DATA[:, None] - centres) ** 2, axis=-1)
    return 0.5 * jnp.sum(jnp.min(squares, axis=1))


def lloyd(centres):
    nearest = jnp.argmin(jnp.sum((DATA[:, None] - centres) ** 2, axis=-1), axis=1)
    counts = jax.ops.segment_sum(jnp.ones(len(DATA)), nearest, 3)
    return jax.ops.segment_sum(jnp.asarray(DATA), nearest, 3) / counts[:, None]


def main():
    start = DATA[[0, 70, 130]]
    slope = jax.grad(distortion)(start)
    curvature = jnp.diagonal(jax.hessian(lambda c: distortion(c.reshape(3, 2)))(start.ravel()))
    assert np.allclose(lloyd(start), start - slope / curvature.reshape(3, 2))
    centres = jax.jit(lambda c: lax.fori_loop(0, 20, lambda _, c: lloyd(c), c))(start)
    assert np.allclose(centres, kmeans2(DATA, start, iter=20, minit="matrix")[0])
    return {"centres": np.asarray(centres).tolist()}
