"""Word vectors by weighted factorisation of logits: their products become the log odds."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, nn, random

COUNTS = np.random.default_rng(10).poisson(6.0, (8, 8)) + 1.0
NEGATIVE = np.outer(COUNTS.sum(1), COUNTS.sum(0)) / COUNTS.sum()


def loss(params):
    """The expectation of the loss of skip-grams with one negative sample each."""
    scores = params["word"] @ params["context"].T
    return -jnp.mean(COUNTS * nn.log_sigmoid(scores) + NEGATIVE * nn.log_sigmoid(-scores))


def main():
    of_word, of_context = random.split(random.key(0))
    params = {
        "word": random.normal(of_word, (8, 8)) / 3,
        "context": random.normal(of_context, (8, 8)) / 3,
    }

    @jax.jit
    def train(params):
        def step(params, _):
            value, slopes = jax.value_and_grad(loss)(params)
            return jax.tree_util.tree_map(lambda p, s: p - 2.0 * s, params, slopes), value

        return lax.scan(step, params, None, length=3000)

    params, values = train(params)
    scores = np.asarray(params["word"] @ params["context"].T)
    # Levy and Goldberg (2014): the optimum is the pointwise mutual information.
    assert np.allclose(scores, np.log(COUNTS / NEGATIVE), atol=0.05)
    return {"loss": float(values[-1])}
