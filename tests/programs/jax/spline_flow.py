"""A coupling flow of monotone rational-quadratic splines, fitted to two moons."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

K, B = 6, 3.0


def spline(x, w, h, d):
    w = 1e-3 + (1 - 1e-3 * K) * jax.nn.softmax(w)
    h = 1e-3 + (1 - 1e-3 * K) * jax.nn.softmax(h)
    xk = jnp.concatenate([jnp.array([-B]), -B + 2 * B * jnp.cumsum(w)])
    yk = jnp.concatenate([jnp.array([-B]), -B + 2 * B * jnp.cumsum(h)])
    dk = jnp.pad(1e-3 + jax.nn.softplus(d), (1, 1), constant_values=1.0)
    i = jnp.clip(jnp.searchsorted(xk, x, side="right") - 1, 0, K - 1)
    wi, hi = xk[i + 1] - xk[i], yk[i + 1] - yk[i]
    s, t = hi / wi, jnp.clip((x - xk[i]) / wi, 0.0, 1.0)
    den = s + (dk[i + 1] + dk[i] - 2 * s) * t * (1 - t)
    y = yk[i] + hi * (s * t**2 + dk[i] * t * (1 - t)) / den
    ld = (
        2 * jnp.log(s)
        + jnp.log(dk[i + 1] * t**2 + 2 * s * t * (1 - t) + dk[i] * (1 - t) ** 2)
        - 2 * jnp.log(den)
    )
    inside = jnp.abs(x) < B
    return jnp.where(inside, y, x), jnp.where(inside, ld, 0.0)


def net(p, x):
    return jnp.tanh(x[..., None] * p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def logpdf(params, x):
    total = 0.0
    z = x
    for n, p in enumerate(params):
        a, b = z[n % 2], z[1 - n % 2]
        q = net(p, a)
        b, ld = spline(b, *jnp.split(q, [K, 2 * K]))
        z = jnp.stack([a, b]) if n % 2 == 0 else jnp.stack([b, a])
        total += ld
    return total + jax.scipy.stats.norm.logpdf(z).sum()


def init(key):
    out = []
    for k in random.split(key, 4):
        k1, k2 = random.split(k)
        out.append(
            {
                "w1": random.normal(k1, (16,), jnp.float64),
                "b1": jnp.zeros(16),
                "w2": 0.1 * random.normal(k2, (16, 3 * K - 1), jnp.float64),
                "b2": jnp.zeros(3 * K - 1),
            }
        )
    return out


def moons(key, n):
    k1, k2, k3 = random.split(key, 3)
    t = jnp.pi * random.uniform(k1, (n,), jnp.float64)
    c = random.bernoulli(k2, 0.5, (n,))
    x = jnp.where(c, jnp.cos(t), 1 - jnp.cos(t)) - 0.5
    y = jnp.where(c, jnp.sin(t), 0.5 - jnp.sin(t)) - 0.25
    return jnp.stack([x, y], -1) + 0.1 * random.normal(k3, (n, 2), jnp.float64)


def main():
    data = moons(random.PRNGKey(0), 200)
    params = init(random.PRNGKey(1))

    def loss(p):
        return -jnp.mean(jax.vmap(functools.partial(logpdf, p))(data))

    @jax.jit
    def step(carry, t):
        p, m, v = carry
        now, g = jax.value_and_grad(loss)(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        p = jax.tree.map(
            lambda p, m, v: (
                p - 0.02 * (m / (1 - 0.9 ** (t + 1))) / (jnp.sqrt(v / (1 - 0.99 ** (t + 1))) + 1e-8)
            ),
            p,
            m,
            v,
        )
        return (p, m, v), now

    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
    (params, _, _), losses = lax.scan(step, (params, zeros, zeros), jnp.arange(60.0))

    def f(x):
        return spline(x, *jnp.split(params[0]["b2"], [K, 2 * K]))

    slope = jax.vmap(jax.grad(lambda x: f(x)[0]))(jnp.linspace(-2, 2, 9))
    np.testing.assert_allclose(jnp.log(slope), jax.vmap(f)(jnp.linspace(-2, 2, 9))[1], rtol=1e-6)
    assert losses[-1] < losses[0] - 0.3
    return {"first": losses[0], "last": losses[-1]}


main()
