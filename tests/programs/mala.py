"""The Metropolis-adjusted Langevin algorithm, many chains at once, on a gamma density."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax, random

SHAPE = 3.0


def log_density(z):
    """Of log x, for x with a gamma distribution."""
    return SHAPE * z - jnp.exp(z)


def proposal(z, step):
    return z + 0.5 * step * jax.grad(log_density)(z)


def transition(z, key, step=0.8):
    noise, choice = random.split(key)
    new = proposal(z, step) + jnp.sqrt(step) * random.normal(noise)
    there = -((new - proposal(z, step)) ** 2) / (2 * step)
    back = -((z - proposal(new, step)) ** 2) / (2 * step)
    ratio = log_density(new) - log_density(z) + back - there
    z = jnp.where(jnp.log(random.uniform(choice)) < ratio, new, z)
    return z, z


@jax.jit
@jax.vmap
def chains(key):
    return lax.scan(transition, 0.0, random.split(key, 400))[1]


def main():
    x = np.exp(np.asarray(chains(random.split(random.key(2), 32)))[:, 50:])
    assert abs(x.mean() - SHAPE) < 0.1
    assert abs(x.var() - SHAPE) < 0.3
    return {"mean": float(x.mean()), "variance": float(x.var())}
