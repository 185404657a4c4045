"""Speculative sampling: a draft proposes, a target accepts; the law is that of the target."""

import jax
import jax.numpy as jnp
from jax import lax, random

V, K = 5, 3


def logits(table, prev):
    return table[prev]


def propose(key, draft, prev):
    def step(c, k):
        t = random.categorical(k, logits(draft, c))
        return t, (t, jax.nn.softmax(logits(draft, c)))

    return lax.scan(step, prev, random.split(key, K))[1]


def round_(key, draft, target, prev):
    k1, k2, k3 = random.split(key, 3)
    toks, q = propose(k1, draft, prev)
    ctx = jnp.concatenate([prev[None], toks])
    p = jax.nn.softmax(logits(target, ctx))
    u = random.uniform(k2, (K,), jnp.float64)
    ratio = jnp.minimum(1.0, p[jnp.arange(K), toks] / q[jnp.arange(K), toks])
    ok = u < ratio
    n = jnp.argmin(jnp.append(ok, False))
    rest = jnp.where(n < K, jnp.clip(p[n] - jnp.vstack([q, jnp.zeros(V)])[n], 0), p[n])
    extra = random.categorical(k3, jnp.log(rest / rest.sum()))
    out = jnp.where(jnp.arange(K + 1) < n, jnp.append(toks, 0), -1).at[n].set(extra)
    return out, n + 1


def generate(key, draft, target, length):
    def body(s):
        key, sub = random.split(s["key"])
        new, n = round_(sub, draft, target, s["prev"])
        buf = lax.dynamic_update_slice(s["buf"], new, (s["n"],))
        return {
            "key": key,
            "buf": buf,
            "n": s["n"] + n,
            "prev": new[n - 1],
            "rounds": s["rounds"] + 1,
        }

    start = {
        "key": key,
        "buf": jnp.full(length + K + 1, -1),
        "n": 0,
        "prev": jnp.array(0),
        "rounds": 0,
    }
    s = lax.while_loop(lambda s: s["n"] < length, body, start)
    return s["buf"][:length], s["rounds"]


def main():
    key = random.PRNGKey(1)
    target = random.normal(key, (V, V), jnp.float64)
    draft = target + 0.5 * random.normal(random.fold_in(key, 1), (V, V), jnp.float64)
    gen = jax.jit(jax.vmap(lambda k: generate(k, draft, target, 30)))
    toks, rounds = gen(random.split(random.fold_in(key, 2), 400))
    assert (toks >= 0).all()
    counts = jnp.zeros((V, V)).at[toks[:, :-1].ravel(), toks[:, 1:].ravel()].add(1.0)
    freq = counts / counts.sum(1, keepdims=True)
    assert jnp.abs(freq - jax.nn.softmax(target)).max() < 0.05
    assert rounds.mean() < 20
    return {"rounds": rounds.mean(), "first": toks[0].sum()}


main()
