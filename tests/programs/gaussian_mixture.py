"""A mixture of Gaussians by gradients of dictionaries of parameters, in autograd's style."""

import scipy.optimize

import funcgrad.interop.autograd.numpy as np
from funcgrad.interop.autograd import grad, value_and_grad
from funcgrad.interop.autograd.misc.flatten import flatten_func
from funcgrad.interop.autograd.scipy.special import logsumexp

RNG = np.random.RandomState(2)
DATA = np.concatenate([RNG.randn(80, 2) * 0.5 + [2, 0], RNG.randn(120, 2) * [0.4, 1.0] - [1, 1]])


def log_gaussian(x, mean, lower):
    z = np.linalg.solve(lower, (x - mean).T)
    log_det = np.sum(np.log(np.abs(np.diag(lower))))
    return -0.5 * np.sum(z**2, axis=0) - log_det - np.log(2 * np.pi)


def negative_log_likelihood(params):
    weights = params["logits"] - logsumexp(params["logits"])
    rows = zip(params["means"], params["lowers"], strict=True)
    parts = [w + log_gaussian(DATA, m, np.tril(s)) for w, (m, s) in zip(weights, rows, strict=True)]
    return -np.sum(logsumexp(np.vstack(parts), axis=0))


def main():
    start = {
        "logits": np.zeros(2),
        "means": [np.array([1.0, 1.0]), np.array([-1.0, 0.0])],
        "lowers": [np.eye(2), np.eye(2)],
    }
    flat, unflatten, x0 = flatten_func(negative_log_likelihood, start)
    objective = value_and_grad(lambda x: flat(x)[0])
    found = scipy.optimize.minimize(objective, x0, jac=True, method="BFGS")
    params = unflatten(found.x)
    # At the optimum each mean is that of the data, weighted by responsibilities.
    parts = [
        np.exp(w + log_gaussian(DATA, m, np.tril(s)))
        for w, m, s in zip(params["logits"], params["means"], params["lowers"], strict=True)
    ]
    share = parts[0] / (parts[0] + parts[1])
    assert np.allclose(share @ DATA / share.sum(), params["means"][0], atol=1e-3)
    slopes = grad(negative_log_likelihood)(params)
    assert np.allclose(slopes["means"][1], 0.0, atol=1e-2)
    return {"value": float(found.fun)}
