"""Hyperparameters of a Gaussian process by SciPy and autograd; the evidence by its density."""

import scipy.optimize
import scipy.stats

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import value_and_grad
from funcgrad.interop.autograd.numpy.linalg import solve

RNG = np.random.RandomState(7)
X = np.sort(RNG.uniform(-4, 4, 25))
Y = np.sin(X) + 0.1 * RNG.randn(25)


def covariance(params, a, b):
    return np.exp(params[0]) * np.exp(-0.5 * np.exp(-params[1]) * (a[:, None] - b) ** 2)


def negative_log_evidence(params):
    k = covariance(params, X, X) + (np.exp(params[2]) + 1e-8) * np.eye(len(X))
    log_det = np.linalg.slogdet(k)[1]
    return 0.5 * (np.dot(Y, solve(k, Y)) + log_det + len(X) * np.log(2 * np.pi))


def main():
    start = np.array([0.0, 0.0, -1.0])
    k = covariance(start, X, X) + (np.exp(-1.0) + 1e-8) * np.eye(len(X))
    density = scipy.stats.multivariate_normal(np.zeros(len(X)), k).logpdf(Y)
    assert abs(negative_log_evidence(start) + density) < 1e-9
    found = scipy.optimize.minimize(value_and_grad(negative_log_evidence), start, jac=True)
    assert np.linalg.norm(found.jac) < 1e-3
    k = covariance(found.x, X, X) + np.exp(found.x[2]) * np.eye(len(X))
    new = np.linspace(-3, 3, 13)
    mean = covariance(found.x, new, X) @ solve(k, Y)
    assert np.max(np.abs(mean - np.sin(new))) < 0.25
    return {"evidence": float(found.fun)}
