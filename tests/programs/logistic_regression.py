"""Logistic regression by SciPy's minimiser with gradients, in autograd's style."""

import scipy.optimize

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import elementwise_grad, grad, hessian, value_and_grad

RNG = np.random.RandomState(0)
X = np.hstack([np.ones((80, 1)), RNG.randn(80, 2)])
Y = np.where(X @ np.array([0.3, 1.5, -1.0]) + 0.8 * RNG.randn(80) > 0, 1.0, 0.0)


def sigmoid(x):
    return 0.5 * (np.tanh(x / 2) + 1)


def loss(w):
    p = sigmoid(np.dot(X, w))
    return -np.mean(np.log(p * Y + (1 - p) * (1 - Y))) + 0.01 * np.dot(w, w)


def main():
    found = scipy.optimize.minimize(value_and_grad(loss), np.zeros(3), jac=True, tol=1e-10)
    w, p = found.x, sigmoid(X @ found.x)
    assert np.allclose(grad(loss)(w), 0.0, atol=1e-6)
    exact = X.T @ ((p * (1 - p))[:, None] * X) / len(X) + 0.02 * np.eye(3)
    assert np.allclose(hessian(loss)(w), exact, atol=1e-10)
    x = np.linspace(-3, 3, 7)
    assert np.allclose(elementwise_grad(sigmoid)(x), sigmoid(x) * (1 - sigmoid(x)))
    return {"w": w.tolist()}
