"""HMC whose step size is adapted by dual averaging and whose masses by Welford's sums."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random


class Da(NamedTuple):
    log_eps: jax.Array
    log_bar: jax.Array
    h: jax.Array
    t: jax.Array


class Welford(NamedTuple):
    n: jax.Array
    mean: jax.Array
    m2: jax.Array


def logp(q):
    x, y = q["x"], q["y"]
    return -0.5 * jnp.sum(x**2 / jnp.array([1.0, 25.0, 0.04])) - 0.5 * (y - 3.0) ** 2 / 4.0


def update_da(s, accept, target=0.8, gamma=0.05, t0=10.0, kappa=0.75, mu=0.0):
    t = s.t + 1
    eta = 1 / (t + t0)
    h = (1 - eta) * s.h + eta * (target - accept)
    le = mu - jnp.sqrt(t) / gamma * h
    w = t ** (-kappa)
    return Da(le, w * le + (1 - w) * s.log_bar, h, t)


def update_w(s, x):
    n = s.n + 1
    d = jax.tree.map(jnp.subtract, x, s.mean)
    mean = jax.tree.map(lambda m, d: m + d / n, s.mean, d)
    m2 = jax.tree.map(lambda a, d, x, m: a + d * (x - m), s.m2, d, x, mean)
    return Welford(n, mean, m2)


def leapfrog(q, p, eps, inv, steps):
    grad = jax.grad(logp)

    def half(q, p):
        return jax.tree.map(lambda p, g: p + 0.5 * eps * g, p, grad(q))

    def body(_, qp):
        q, p = qp
        p = half(q, p)
        q = jax.tree.map(lambda q, p, i: q + eps * i * p, q, p, inv)
        return q, half(q, p)

    return lax.fori_loop(0, steps, body, (q, p))


def energy(q, p, inv):
    return -logp(q) + 0.5 * sum(
        jax.tree.leaves(jax.tree.map(lambda p, i: jnp.sum(p * p * i), p, inv))
    )


def transition(key, q, eps, inv):
    kp, ku, kl = random.split(key, 3)
    leaves, tree = jax.tree.flatten(q)
    ks = random.split(kp, len(leaves))
    p = jax.tree.unflatten(
        tree, [random.normal(k, v.shape, v.dtype) for k, v in zip(ks, leaves, strict=False)]
    )
    p = jax.tree.map(lambda p, i: p / jnp.sqrt(i), p, inv)
    steps = random.randint(kl, (), 5, 20)
    q1, p1 = leapfrog(q, p, eps, inv, steps)
    delta = energy(q, p, inv) - energy(q1, p1, inv)
    delta = jnp.where(jnp.isnan(delta), -jnp.inf, delta)
    acc = jnp.minimum(1.0, jnp.exp(delta))
    take = random.uniform(ku, (), jnp.float64) < acc
    return jax.tree.map(lambda a, b: lax.select(take, a, b), q1, q), acc


@jax.jit
def run(key):
    q = {"x": jnp.zeros(3), "y": jnp.array(0.0)}
    ones, zeros = jax.tree.map(jnp.ones_like, q), jax.tree.map(jnp.zeros_like, q)

    def warm(carry, key):
        q, da, w, inv = carry
        q, acc = transition(key, q, jnp.exp(da.log_eps), inv)
        da, w = update_da(da, acc), update_w(w, q)
        inv = lax.cond(w.n == 150, lambda: jax.tree.map(lambda m: m / (w.n - 1), w.m2), lambda: inv)
        return (q, da, w, inv), acc

    carry = (
        q,
        Da(jnp.log(0.1), jnp.array(0.0), jnp.array(0.0), jnp.array(0.0)),
        Welford(jnp.array(0.0), zeros, zeros),
        ones,
    )
    k1, k2 = random.split(key)
    (q, da, _w, inv), _ = lax.scan(warm, carry, random.split(k1, 400))
    eps = jnp.exp(da.log_bar)

    def sample(q, key):
        q, acc = transition(key, q, eps, inv)
        return q, (q, acc)

    _, (qs, acc) = lax.scan(sample, q, random.split(k2, 1500))
    return qs, acc, eps


def main():
    qs, acc, _eps = run(random.PRNGKey(3))
    sd = qs["x"].std(axis=0)
    assert jnp.all(jnp.abs(sd / jnp.array([1.0, 5.0, 0.2]) - 1) < 0.25), sd
    assert 0.6 < acc.mean() < 0.98
    assert abs(qs["y"].mean() - 3) < 0.4
    return {"accept": float(acc.mean() > 0.6)}


main()
