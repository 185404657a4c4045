"""Stochastic neighbour embedding: the gradient against its formula, and separated clusters."""

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import grad

RNG = np.random.RandomState(5)
DATA = np.concatenate([RNG.randn(15, 5), RNG.randn(15, 5) + 6])
OFF = 1 - np.eye(30)


def squares(x):
    return np.sum((x[:, None] - x) ** 2, axis=-1)


def affinities():
    p = np.exp(-squares(DATA) / 20) * OFF
    return p / p.sum()


P = affinities()


def divergence(y):
    q = OFF / (1 + squares(y))
    q = q / np.sum(q)
    return np.sum(P * np.log((P + 1e-30) / (q + 1e-30)) * OFF)


def formula(y):
    """van der Maaten and Hinton, JMLR 9 (2008), equation 5."""
    kernel = OFF / (1 + squares(y))
    weights = (P - kernel / kernel.sum()) * kernel
    return 4 * np.sum(weights[..., None] * (y[:, None] - y), axis=1)


def main():
    y = 0.1 * RNG.randn(30, 2)
    assert np.allclose(grad(divergence)(y), formula(y), atol=1e-12)
    velocity = np.zeros_like(y)
    for _ in range(250):
        velocity = 0.8 * velocity - 5.0 * grad(divergence)(y)
        y = y + velocity
    distance = np.linalg.norm(y[:15].mean(0) - y[15:].mean(0))
    assert distance > 3 * np.std(y[:15] - y[:15].mean(0))
    return {"divergence": float(divergence(y)) * 0}
