"""A curve fit by Gauss-Newton, against SciPy."""

import numpy as np
from scipy.optimize import curve_fit

import funcgrad as jax
import funcgrad.numpy as jnp

T = np.linspace(0, 4, 40)
Y = 2.5 * np.exp(-1.3 * T) + 0.5 + 0.01 * np.cos(9 * T)


def model(t, a, b, c):
    return a * jnp.exp(-b * t) + c


def residuals(p):
    return model(T, *p) - Y


@jax.jit
def step(p):
    r, push = jax.linearize(residuals, p)
    jacobian = jax.vmap(push, out_axes=1)(jnp.eye(3))
    return p - jnp.linalg.lstsq(jacobian, r)[0]


def main():
    p = jnp.array([2.0, 1.0, 0.3])
    for _ in range(12):
        p = step(p)
    expected, _ = curve_fit(lambda t, a, b, c: a * np.exp(-b * t) + c, T, Y, p0=[2.0, 1.0, 0.3])
    assert np.allclose(p, expected, atol=1e-6)
    return {"p": np.asarray(p).tolist()}
