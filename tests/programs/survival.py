"""A Weibull survival model with censoring by Newton's method; its exponential case is closed."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp

RNG = np.random.default_rng(13)
TIMES = 2.0 * RNG.weibull(1.5, 80)
EVENT = TIMES < 2.5
OBSERVED = np.minimum(TIMES, 2.5)


def log_likelihood(params):
    log_shape, log_scale = params
    shape = jnp.exp(log_shape)
    z = jnp.log(OBSERVED) - log_scale
    log_hazard = log_shape - log_scale + (shape - 1) * z
    return jnp.sum(EVENT * log_hazard - jnp.exp(shape * z))


def main():
    @jax.jit
    def newton(p):
        return p - jnp.linalg.solve(jax.hessian(log_likelihood)(p), jax.grad(log_likelihood)(p))

    p = jnp.zeros(2) + 0.3
    for _ in range(15):
        p = newton(p)
    shape = float(jnp.exp(p[0]))
    # The scale that is best for a shape is closed, and so is the equation for the shape.
    scale = (np.sum(OBSERVED**shape) / EVENT.sum()) ** (1 / shape)
    weights = OBSERVED**shape / np.sum(OBSERVED**shape)
    score = 1 / shape + np.log(OBSERVED[EVENT]).mean() - np.sum(weights * np.log(OBSERVED))
    assert abs(float(jnp.exp(p[1])) - scale) < 1e-9
    assert abs(score) < 1e-9
    exponential = jax.grad(lambda s: log_likelihood(jnp.stack([0.0 * s, s])))
    assert abs(float(exponential(np.log(OBSERVED.sum() / EVENT.sum())))) < 1e-9
    return {"shape": shape, "scale": scale}
