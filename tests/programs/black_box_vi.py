"""Black-box variational inference of a skewed posterior, by autograd's Adam."""

from scipy import integrate

import funcgrad.interop.autograd.numpy as np
import funcgrad.interop.autograd.numpy.random as npr
from funcgrad.interop.autograd import grad
from funcgrad.interop.autograd.misc.optimizers import adam

COUNTS = np.array([3.0, 5.0, 2.0])


def log_density(z):
    """Of the logarithm of a Poisson rate under a normal prior."""
    return np.sum(COUNTS) * z - len(COUNTS) * np.exp(z) - 0.5 * z**2


def objective(params, i):
    mean, log_std = params[0], params[1]
    noise = npr.RandomState(i).randn(200)
    samples = noise * np.exp(log_std) + mean
    return -np.mean(log_density(samples)) - log_std


def main():
    params = adam(grad(objective), np.array([0.0, -1.0]), num_iters=400, step_size=0.05)

    def moment(k):
        return integrate.quad(lambda z: z**k * np.exp(log_density(z)), -3, 4)[0]

    mean = moment(1) / moment(0)
    std = np.sqrt(moment(2) / moment(0) - mean**2)
    assert abs(params[0] - mean) < 0.05
    assert abs(np.exp(params[1]) - std) < 0.05
    return {"mean": float(params[0]), "std": float(np.exp(params[1]))}
