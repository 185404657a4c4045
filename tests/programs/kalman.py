"""A Kalman filter's likelihood against the dense Gaussian, and its fit by gradient."""

import numpy as np
from scipy.stats import multivariate_normal

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

RNG = np.random.default_rng(11)
N = 60


def simulate():
    x, ys = 0.0, []
    for _ in range(N):
        x = 0.9 * x + 0.5 * RNG.normal()
        ys.append(x + 0.3 * RNG.normal())
    return np.array(ys)


Y = simulate()


def log_likelihood(params):
    a, q, r = jnp.tanh(params[0]), jnp.exp(params[1]), jnp.exp(params[2])

    def step(state, y):
        mean, var = state
        s = var + r
        gain = var / s
        ll = -0.5 * (jnp.log(2 * jnp.pi * s) + (y - mean) ** 2 / s)
        mean, var = mean + gain * (y - mean), (1 - gain) * var
        return (a * mean, a**2 * var + q), ll

    return jnp.sum(lax.scan(step, (0.0, q / (1 - a**2)), Y)[1])


def dense(params):
    a, q, r = np.tanh(params[0]), np.exp(params[1]), np.exp(params[2])
    lag = np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    covariance = q / (1 - a**2) * a**lag + r * np.eye(N)
    return multivariate_normal(np.zeros(N), covariance).logpdf(Y)


def main():
    p = np.array([1.2, -1.0, -2.0])
    assert abs(float(log_likelihood(p)) - dense(p)) < 1e-9
    both = jax.jit(jax.value_and_grad(log_likelihood))
    for i, slope in enumerate(np.asarray(both(p)[1])):
        shift = 1e-5 * np.eye(3)[i]
        assert abs(slope - (dense(p + shift) - dense(p - shift)) / 2e-5) < 1e-5
    for _ in range(200):
        value, slope = both(p)
        p = p + 0.02 * np.asarray(slope)
    assert value > dense(np.array([np.arctanh(0.9), np.log(0.25), np.log(0.09)]))
    return {"log_likelihood": float(value), "a": float(np.tanh(p[0]))}
