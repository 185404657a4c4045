"""Two sources unmixed by maximum likelihood with the natural gradient, in autograd's style."""

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import grad

RNG = np.random.RandomState(4)
SOURCES = np.sign(RNG.randn(2, 3000)) * RNG.exponential(size=(2, 3000))
MIXING = np.array([[1.0, 0.6], [0.4, 1.0]])
OBSERVED = MIXING @ SOURCES


def log_likelihood(w):
    y = np.dot(w, OBSERVED)
    return np.linalg.slogdet(w)[1] - np.sum(np.mean(np.log(np.cosh(y)), axis=1))


def main():
    w = np.eye(2)
    for _ in range(150):
        w = w + 0.2 * grad(log_likelihood)(w) @ w.T @ w
    y = w @ OBSERVED
    expected = np.linalg.inv(w).T - np.tanh(y) @ OBSERVED.T / OBSERVED.shape[1]
    assert np.allclose(grad(log_likelihood)(w), expected, atol=1e-10)
    product = np.abs(w @ MIXING)
    cross = product.min(axis=1) / product.max(axis=1)
    assert np.all(cross < 0.08)
    return {"cross": cross.tolist()}
