"""Principal components as maxima on the Stiefel manifold, by retracted gradients."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

RNG = np.random.default_rng(9)
DATA = RNG.normal(size=(200, 6)) * np.array([5.0, 3.0, 1, 0.7, 0.5, 0.3])
COVARIANCE = np.cov(DATA.T)


def captured(v):
    return jnp.trace(v.T @ COVARIANCE @ v)


@jax.jit
def maximise(v):
    def step(_, v):
        slope = jax.grad(captured)(v)
        slope = slope - v @ (v.T @ slope)
        return jnp.linalg.qr(v + 0.03 * slope)[0]

    return lax.fori_loop(0, 300, step, v)


def main():
    v = maximise(jnp.linalg.qr(jnp.asarray(RNG.normal(size=(6, 2))))[0])
    values, vectors = np.linalg.eigh(COVARIANCE)
    assert abs(float(captured(v)) - values[-2:].sum()) < 1e-8
    assert np.allclose(v @ v.T, vectors[:, -2:] @ vectors[:, -2:].T, atol=1e-6)
    spread = jax.grad(lambda c: jnp.sum(jnp.linalg.eigvalsh(c)[-2:]))(COVARIANCE)
    assert np.allclose(spread + spread.T, 2 * v @ v.T, atol=1e-6)
    return {"captured": float(captured(v))}
