"""Daubechies wavelets by strided convolutions; denoising whose thresholds are learned."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

D4 = jnp.array([1 + np.sqrt(3), 3 + np.sqrt(3), 3 - np.sqrt(3), 1 - np.sqrt(3)]) / (4 * np.sqrt(2))
BANK = jnp.stack([D4, D4[::-1] * jnp.array([1.0, -1.0, 1.0, -1.0])])[:, None]


def analyse(x):
    x = jnp.pad(x, (0, 2), mode="wrap")[None, None]
    y = lax.conv_general_dilated(x, BANK, (2,), "VALID", dimension_numbers=("NCH", "OIH", "NCH"))[0]
    return y[0], y[1]


def synthesise(a, d):
    y = jnp.stack([a, d])[None]
    x = lax.conv_transpose(
        y, BANK, (2,), "VALID", dimension_numbers=("NCH", "OIH", "NCH"), transpose_kernel=True
    )[0, 0]
    return x[: 2 * a.shape[0]].at[:2].add(x[2 * a.shape[0] :])


def decompose(x, levels):
    out = []
    for _ in range(levels):
        x, d = analyse(x)
        out.append(d)
    return x, out


def rebuild(x, details):
    for d in reversed(details):
        x = synthesise(x, d)
    return x


def soft(x, t):
    return jnp.sign(x) * jax.nn.relu(jnp.abs(x) - t)


def main():
    n = 256
    t = jnp.linspace(0, 1, n, endpoint=False)
    clean = jnp.sin(4 * jnp.pi * t) + jnp.where((t > 0.3) & (t < 0.6), 1.0, 0.0)
    noisy = clean + 0.3 * random.normal(random.PRNGKey(0), (n,), jnp.float64)
    a, ds = decompose(noisy, 4)
    np.testing.assert_allclose(rebuild(a, ds), noisy, atol=1e-12)
    np.testing.assert_allclose(
        jnp.sum(a**2) + sum(jnp.sum(d**2) for d in ds), jnp.sum(noisy**2), rtol=1e-12
    )

    def denoise(log_t):
        return rebuild(a, [soft(d, jnp.exp(lt)) for d, lt in zip(ds, log_t, strict=False)])

    def loss(lt):
        return jnp.mean(jnp.square(denoise(lt) - clean))

    lt = jnp.full(4, -2.0)
    step = jax.jit(lambda lt: lt - 8.0 * jax.grad(loss)(lt))
    before = loss(lt)
    for _ in range(150):
        lt = step(lt)
    sigma = jnp.median(jnp.abs(ds[0])) / 0.6745
    assert abs(sigma - 0.3) < 0.08
    assert loss(lt) < 0.5 * before
    return {"sigma": sigma, "error": loss(lt)}


main()
