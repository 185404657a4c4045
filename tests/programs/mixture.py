"""A Gaussian mixture by EM: its step is the gradient of the likelihood (Fisher's identity)."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad.scipy.special import logsumexp

RNG = np.random.default_rng(7)
DATA = np.concatenate([RNG.normal(-2, 0.6, 150), RNG.normal(1.5, 1.0, 250)])


def joint(means, log_scales, logits):
    z = (DATA[:, None] - means) / jnp.exp(log_scales)
    density = -0.5 * z**2 - log_scales - 0.5 * jnp.log(2 * jnp.pi)
    return density + logits - logsumexp(logits)


def log_likelihood(means, log_scales, logits):
    return jnp.sum(logsumexp(joint(means, log_scales, logits), axis=1))


def em(means, log_scales, logits):
    r = jax.nn.softmax(joint(means, log_scales, logits), axis=1)
    n = jnp.sum(r, axis=0)
    means = jnp.sum(r * DATA[:, None], axis=0) / n
    variance = jnp.sum(r * (DATA[:, None] - means) ** 2, axis=0) / n
    return means, 0.5 * jnp.log(variance), jnp.log(n / len(DATA))


def main():
    params = (jnp.array([-1.0, 1.0]), jnp.zeros(2), jnp.zeros(2))
    step, value = jax.jit(em), jax.jit(log_likelihood)
    history = []
    for _ in range(120):
        history.append(float(value(*params)))
        params = step(*params)
    assert np.all(np.diff(history) > -1e-9)
    for slope in jax.grad(log_likelihood, (0, 1, 2))(*params):
        assert np.allclose(slope, 0.0, atol=1e-3)
    assert np.allclose(params[0], [-2, 1.5], atol=0.3)
    return {"log_likelihood": history[-1], "means": np.asarray(params[0]).tolist()}
