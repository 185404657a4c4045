"""LMS and recursive least squares identify a filter; the second equals the batch solution."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax

RNG = np.random.default_rng(0)
TAPS = np.array([0.8, -0.4, 0.2, 0.1])
SIGNAL = RNG.normal(size=800)
WINDOWS = np.lib.stride_tricks.sliding_window_view(SIGNAL, 4)[:, ::-1]
TARGET = WINDOWS @ TAPS + 0.01 * RNG.normal(size=len(WINDOWS))


def lms(w, pair):
    x, d = pair
    error, slope = jax.value_and_grad(lambda w: 0.5 * (d - x @ w) ** 2)(w)
    return w - 0.05 * slope, error


def rls(state, pair):
    w, p = state
    x, d = pair
    gain = p @ x / (1 + x @ p @ x)
    return (w + gain * (d - x @ w), p - jnp.outer(gain, x @ p)), None


def main():
    w, errors = jax.jit(lambda w: lax.scan(lms, w, (WINDOWS, TARGET)))(jnp.zeros(4))
    (exact, _), _ = lax.scan(rls, (jnp.zeros(4), 1e6 * jnp.eye(4)), (WINDOWS, TARGET))
    assert np.allclose(exact, np.linalg.lstsq(WINDOWS, TARGET, rcond=None)[0], atol=1e-6)
    assert np.allclose(w, TAPS, atol=0.01)
    assert float(jnp.mean(errors[-100:])) < 1e-3 * float(jnp.mean(errors[:20]))
    return {"lms": np.asarray(w).tolist(), "rls": np.asarray(exact).tolist()}
