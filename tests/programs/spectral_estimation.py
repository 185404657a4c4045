"""The frequency of a noisy tone by maximum likelihood, started at the peak of the spectrum."""

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp

N, FREQUENCY = 256, 0.1234
T = np.arange(N)
SIGNAL = np.cos(2 * np.pi * FREQUENCY * T + 0.5) + 0.3 * np.random.default_rng(1).normal(size=N)


def power(f):
    """Of the tone that fits best, with the amplitudes solved for."""
    basis = jnp.stack([jnp.cos(2 * jnp.pi * f * T), jnp.sin(2 * jnp.pi * f * T)])
    projection = basis @ SIGNAL
    return projection @ jnp.linalg.solve(basis @ basis.T, projection)


def main():
    spectrum = jnp.abs(jnp.fft.rfft(jnp.asarray(SIGNAL))) ** 2
    f = jnp.argmax(jnp.abs(jnp.fft.rfft(jnp.asarray(SIGNAL), 4 * N))) / (4 * N)
    coarse = abs(float(f) - FREQUENCY)
    newton = jax.jit(lambda f: f - jax.grad(power)(f) / jax.grad(jax.grad(power))(f))
    for _ in range(8):
        f = newton(f)
    bound = np.sqrt(6 * 0.09 / (np.pi**2 * N**3))  # Cramer-Rao, in cycles per sample
    assert abs(float(f) - FREQUENCY) < min(4 * bound, coarse)
    energy = float(jnp.sum(spectrum) * 2 - spectrum[0] - spectrum[-1]) / N
    assert abs(energy - np.sum(SIGNAL**2)) < 1e-9
    return {"frequency": float(f)}
