"""REINFORCE on a bandit: the estimate of the gradient against the exact one, and the best arm."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, nn, random

REWARDS = np.array([0.1, 0.5, 0.9])


def expected_reward(logits):
    return nn.softmax(logits) @ REWARDS


def estimate(logits, key, n=64):
    arms = random.categorical(key, logits, shape=(n,))
    rewards = jnp.take(jnp.asarray(REWARDS), arms)
    advantage = rewards - jnp.mean(rewards)

    def surrogate(logits):
        return jnp.mean(jnp.take(nn.log_softmax(logits), arms) * advantage) * n / (n - 1)

    return jax.grad(surrogate)(logits)


def main():
    logits = jnp.array([0.3, 0.0, -0.2])
    exact = np.asarray(jax.grad(expected_reward)(logits))
    keys = random.split(random.key(0), 2000)
    estimates = np.asarray(jax.jit(jax.vmap(estimate, (None, 0)))(logits, keys))
    noise = estimates.std(0) / np.sqrt(len(keys))
    assert np.all(np.abs(estimates.mean(0) - exact) < 4 * noise)

    def learn(logits, key):
        return logits + 1.0 * estimate(logits, key), None

    logits, _ = jax.jit(lambda x, k: lax.scan(learn, x, k))(logits, keys[:400])
    assert float(expected_reward(logits)) > 0.85
    return {"reward": float(expected_reward(logits)), "gradient": exact.tolist()}
