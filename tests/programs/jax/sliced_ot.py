"""Sliced Wasserstein flows and an entropic barycentre, with an implicit derivative."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def sliced(key, x, y, n=32):
    d = random.normal(key, (n, x.shape[1]), jnp.float64)
    d /= jnp.linalg.norm(d, axis=1, keepdims=True)
    a, b = jnp.sort(x @ d.T, axis=0), jnp.sort(y @ d.T, axis=0)
    return jnp.mean((a - b) ** 2)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def potentials(a, C, eps):
    return _solve(a, C, eps)


def _solve(a, C, eps):
    n = C.shape[1]
    b = jnp.full(n, -jnp.log(n))

    def body(c):
        f, _g, _, i = c
        g1 = eps * (b - jax.nn.logsumexp((f[:, None] - C) / eps, axis=0))
        f1 = eps * (jnp.log(a) - jax.nn.logsumexp((g1[None] - C) / eps, axis=1))
        return f1, g1, jnp.max(jnp.abs(f1 - f)), i + 1

    f, g, _, _ = lax.while_loop(
        lambda c: (c[2] > 1e-10) & (c[3] < 2000),
        body,
        (jnp.zeros_like(a), jnp.zeros(n), jnp.inf, 0),
    )
    return f, g


def _fwd(a, C, eps):
    f, g = _solve(a, C, eps)
    return (f, g), (a, C, f, g)


def _bwd(eps, res, ct):
    _a, C, f, g = res
    P = jnp.exp((f[:, None] + g[None] - C) / eps)
    fd, gd = ct
    n, _m = P.shape
    M = jnp.block([[jnp.diag(P.sum(1)), P], [P.T, jnp.diag(P.sum(0))]])
    u = jnp.linalg.lstsq(M, jnp.concatenate([fd, gd]))[0]
    u, v = jnp.split(u, [n])
    return eps * u, P * (u[:, None] + v[None])


potentials.defvjp(_fwd, _bwd)


def cost(a, C, eps):
    f, g = potentials(a, C, eps)
    return f @ a + g.mean()


def main():
    key = random.PRNGKey(0)
    x = random.normal(key, (40, 2), jnp.float64)
    y = random.normal(random.fold_in(key, 1), (40, 2), jnp.float64) * 0.5 + jnp.array([2.0, -1.0])
    step = jax.jit(
        lambda i, x: x - 4.0 * jax.grad(lambda x: sliced(random.fold_in(key, i), x, y))(x) * 10
    )
    z = lax.fori_loop(0, 60, step, x)
    assert jnp.allclose(z.mean(0), y.mean(0), atol=0.1)
    assert jnp.allclose(z.std(0), y.std(0), atol=0.1)
    C = jnp.sum((x[:6, None] - y[None, :8]) ** 2, -1)
    a = jax.nn.softmax(random.normal(key, (6,), jnp.float64))
    g = jax.grad(cost, argnums=(0, 1))(a, C, 0.5)
    f, h = potentials(a, C, 0.5)
    P = jnp.exp((f[:, None] + h[None] - C) / 0.5)
    np.testing.assert_allclose(P.sum(0), 1 / 8, rtol=1e-8)
    e = 1e-5
    d = (cost(a, C.at[2, 3].add(e), 0.5) - cost(a, C.at[2, 3].add(-e), 0.5)) / (2 * e)
    np.testing.assert_allclose(g[1][2, 3], d, rtol=1e-5)
    return {"cost": cost(a, C, 0.5), "g": g[1].sum(), "mean": z.mean()}


main()
