"""A bootstrap particle filter: keys as data in loops, `switch`, gradients by common numbers."""

from functools import partial

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, random
from funcgrad.scipy.special import logsumexp


def systematic(key, weights):
    n = weights.shape[0]
    places = (random.uniform(key, (), jnp.float64) + jnp.arange(n)) / n
    return jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), places), n - 1)


def multinomial(key, weights):
    return random.categorical(key, jnp.log(weights), shape=weights.shape)


def nothing(key, weights):
    return jnp.arange(weights.shape[0])


SCHEMES = {"none": nothing, "systematic": systematic, "multinomial": multinomial}


def ancestors(scheme, key, weights):
    return scheme(key, weights).astype(jnp.int32)


def transition(key, x, *, rho):
    return rho * x + random.normal(key, x.shape, jnp.float64)


@partial(jax.jit, static_argnames=("count", "schemes"))
def filtered(key, observations, rho, *, count=200, schemes=("none", "systematic")):
    key, start = random.split(key)
    particles = random.normal(start, (count,), jnp.float64)
    weights = jnp.full(count, 1.0 / count)

    def step(carry, inputs):
        key, particles, weights = carry
        index, y = inputs
        for_move, for_choice = random.split(random.fold_in(key, index))
        effective = 1 / jnp.sum(weights**2)
        which = jnp.where(effective < 0.5 * count, 1, 0)
        branches = [partial(ancestors, SCHEMES[name]) for name in schemes]
        chosen = lax.switch(which, branches, for_choice, weights)
        weights = jnp.where(which == 1, 1.0 / count, weights)
        particles = transition(for_move, particles[chosen], rho=rho)
        logs = jnp.log(weights) - 0.5 * (y - particles) ** 2 - 0.5 * jnp.log(2 * jnp.pi)
        total = logsumexp(logs)
        weights = jnp.exp(logs - total)
        return (key, particles, weights), (total, jnp.sum(weights * particles))

    inputs = (jnp.arange(len(observations)), observations)
    _, (totals, means) = lax.scan(step, (key, particles, weights), inputs)
    return jnp.sum(totals), means


def kalman(observations, rho):
    mean, variance, total, means = 0.0, 1.0, 0.0, []
    for y in observations:
        mean, variance = rho * mean, rho**2 * variance + 1
        s = variance + 1
        total += -0.5 * np.log(2 * np.pi * s) - 0.5 * (y - mean) ** 2 / s
        mean, variance = mean + variance / s * (y - mean), variance / s
        means.append(mean)
    return total, np.array(means)


def main():
    rng = np.random.default_rng(0)
    x, observations = 0.0, []
    for _ in range(30):
        x = 0.8 * x + rng.normal()
        observations.append(x + rng.normal())
    observations = np.array(observations)
    exact, exact_means = kalman(observations, 0.8)

    total, means = filtered(random.key(1), observations, 0.8, count=4000)
    assert abs(total - exact) < 0.3
    assert np.abs(means - exact_means).max() < 0.15

    # Many filters at once: keys along two axes, as values.
    keys = random.split(random.key(2), (2, 16))
    runs = jax.vmap(jax.vmap(lambda k: filtered(k, observations, 0.8)[0]))(keys)
    assert runs.shape == (2, 16)
    assert abs(logsumexp(runs) - np.log(32) - exact) < 0.5
    one = filtered(keys[1, 3], observations, 0.8)[0]
    assert abs(one - runs[1, 3]) < 1e-9
    assert len({tuple(np.ravel(random.key_data(k))) for row in keys for k in row}) == 32
    again = random.wrap_key_data(random.key_data(keys[1, 3]))
    assert float(filtered(again, observations, 0.8)[0]) == float(one)

    other, _ = filtered(
        random.key(1), observations, 0.8, count=1000, schemes=("none", "multinomial")
    )
    assert abs(other - exact) < 0.6

    # Without resampling, the estimate is a smooth function of rho.
    def smooth(rho):
        return filtered(random.key(3), observations[:5], rho, count=50, schemes=("none", "none"))[0]

    slope = jax.grad(smooth)(0.8)
    assert abs(slope - (smooth(0.8 + 1e-6) - smooth(0.8 - 1e-6)) / 2e-6) < 1e-6
    return {"total": float(total), "one": float(one), "slope": float(slope)}
