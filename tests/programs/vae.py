"""A linear variational autoencoder: its best bound is the likelihood of probabilistic PCA.

Source: Lucas et al., Don't blame the ELBO, NeurIPS 2019; Tipping and Bishop (1999).
"""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

RNG = np.random.default_rng(2)
DATA = RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 6)) + 0.5 * RNG.normal(size=(300, 6))
DATA = DATA - DATA.mean(0)


def negative_elbo(p):
    mean = DATA @ p["encode"]
    var = jnp.exp(p["log_var"])
    noise = jnp.exp(p["log_noise"])
    residual = jnp.sum((DATA - mean @ p["decode"]) ** 2, 1) + jnp.sum(var @ p["decode"] ** 2)
    fit = 0.5 * residual / noise + 3 * (p["log_noise"] + jnp.log(2 * jnp.pi))
    divergence = 0.5 * jnp.sum(var + mean**2 - 1 - p["log_var"], axis=1)
    return jnp.mean(fit + divergence)


def main():
    p = {
        "encode": jnp.asarray(0.1 * RNG.normal(size=(6, 2))),
        "decode": jnp.asarray(0.1 * RNG.normal(size=(2, 6))),
        "log_var": jnp.zeros(2),
        "log_noise": jnp.zeros(()),
    }

    @jax.jit
    def train(p):
        def step(state, _):
            p, m, v = state
            g = jax.grad(negative_elbo)(p)
            m = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            v = jax.tree_util.tree_map(lambda v, g: 0.99 * v + 0.01 * g**2, v, g)
            p = jax.tree_util.tree_map(lambda p, m, v: p - 0.01 * m / jnp.sqrt(v + 1e-8), p, m, v)
            return (p, m, v), None

        zeros = jax.tree_util.tree_map(jnp.zeros_like, p)
        return lax.scan(step, (p, zeros, zeros), None, length=4000)[0][0]

    bound = float(negative_elbo(train(p)))
    values = np.linalg.eigvalsh(DATA.T @ DATA / len(DATA))
    noise = values[:4].mean()
    best = 0.5 * (np.log(values[4:]).sum() + 4 * np.log(noise) + 6 * np.log(2 * np.pi) + 6)
    assert best - 1e-9 < bound < best + 0.01
    return {"bound": bound, "likelihood": float(best)}
