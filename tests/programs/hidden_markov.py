"""A hidden Markov model: likelihood against enumeration, posteriors as derivatives."""

from itertools import pairwise, product

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax
from funcgrad.scipy.special import logsumexp

START = np.array([0.6, 0.3, 0.1])
MOVE = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
EMIT = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6], [0.3, 0.3, 0.4]])
SEEN = np.array([0, 1, 2, 2, 0, 1])


def log_likelihood(log_emissions):
    def step(alpha, emission):
        alpha = logsumexp(alpha[:, None] + jnp.log(MOVE), axis=0) + emission
        return alpha, None

    first = jnp.log(START) + log_emissions[0]
    return logsumexp(lax.scan(step, first, log_emissions[1:])[0])


def enumerate_paths():
    total, posterior = 0.0, np.zeros((len(SEEN), 3))
    for path in product(range(3), repeat=len(SEEN)):
        p = START[path[0]] * np.prod([MOVE[a, b] for a, b in pairwise(path)])
        p *= np.prod([EMIT[s, o] for s, o in zip(path, SEEN, strict=True)])
        total += p
        posterior[range(len(SEEN)), path] += p
    return np.log(total), posterior / total


def main():
    emissions = np.log(EMIT[:, SEEN].T)
    value, posterior = jax.jit(jax.value_and_grad(log_likelihood))(emissions)
    expected, exact = enumerate_paths()
    assert abs(float(value) - expected) < 1e-12
    assert np.allclose(posterior, exact, atol=1e-12)
    return {"log_likelihood": float(value)}
