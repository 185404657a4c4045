"""The bootstrap by vmap: the standard error of a regression slope."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import random

RNG = np.random.default_rng(23)
X = RNG.normal(size=120)
Y = 2 * X + RNG.normal(size=120)


def slope(x, y):
    x, y = x - jnp.mean(x), y - jnp.mean(y)
    return jnp.sum(x * y) / jnp.sum(x * x)


@jax.jit
def resampled(keys):
    def one(key):
        rows = random.choice(key, len(X), (len(X),))
        return slope(jnp.asarray(X)[rows], jnp.asarray(Y)[rows])

    return jax.vmap(one)(keys)


def main():
    slopes = np.asarray(resampled(random.split(random.key(0), 2000)))
    x, y = X - X.mean(), Y - Y.mean()
    residual = y - x * (x @ y) / (x @ x)
    expected = np.sqrt(np.sum((x * residual) ** 2)) / (x @ x)  # White's standard error
    assert abs(slopes.std() / expected - 1) < 0.1

    # The infinitesimal jackknife: the same from derivatives in the weights of the data.
    def weighted(w):
        mx, my = jnp.sum(w * X) / jnp.sum(w), jnp.sum(w * Y) / jnp.sum(w)
        return jnp.sum(w * (X - mx) * (Y - my)) / jnp.sum(w * (X - mx) ** 2)

    influence = np.asarray(jax.grad(weighted)(jnp.ones(len(X))))
    assert np.allclose(np.sqrt(np.sum(influence**2)), expected)
    return {"error": float(slopes.std())}
