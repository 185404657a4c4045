"""A small network trained by autograd's Adam on nested lists of weights."""

from itertools import pairwise

import funcgrad.interop.autograd.numpy as np
import funcgrad.interop.autograd.numpy.random as npr
from funcgrad.interop.autograd import grad
from funcgrad.interop.autograd.misc.flatten import flatten
from funcgrad.interop.autograd.misc.optimizers import adam
from funcgrad.interop.autograd.scipy.special import logsumexp

RNG = npr.RandomState(1)
X = RNG.uniform(-1, 1, (120, 2))
LABELS = np.eye(2)[(X[:, 0] * X[:, 1] > 0).astype(int)]


def init(sizes, scale=0.5):
    return [(scale * RNG.randn(m, n), np.zeros(n)) for m, n in pairwise(sizes)]


def predict(params, inputs):
    for w, b in params:
        outputs = np.dot(inputs, w) + b
        inputs = np.tanh(outputs)
    return outputs - logsumexp(outputs, axis=1, keepdims=True)


def objective(params, i):
    rows = slice(30 * (i % 4), 30 * (i % 4) + 30)
    weights, _ = flatten(params)
    fit = np.mean(np.sum(predict(params, X[rows]) * LABELS[rows], axis=1))
    return 1e-4 * np.dot(weights, weights) - fit


def main():
    start = init([2, 12, 2])
    history = []

    def callback(params, i, gradient):
        history.append(float(objective(params, 0)))

    trained = adam(grad(objective), start, callback, num_iters=500, step_size=0.03)
    accuracy = np.mean(np.argmax(predict(trained, X), 1) == np.argmax(LABELS, 1))
    vector, unflatten = flatten(start)
    direction = RNG.randn(*vector.shape)
    up, down = (objective(unflatten(vector + s * direction), 0) for s in (1e-5, -1e-5))
    slope = np.dot(flatten(grad(objective)(start, 0))[0], direction)
    assert abs(slope - (up - down) / 2e-5) < 1e-6
    assert accuracy > 0.95
    return {"accuracy": float(accuracy), "first": history[0]}
