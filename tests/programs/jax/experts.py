"""A mixture of experts: routing to the best two with a capacity, balance loss, z-loss."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def route(logits, capacity, k=2):
    gates = jax.nn.softmax(logits)
    vals, idx = lax.top_k(gates, k)
    vals /= vals.sum(-1, keepdims=True)
    one = jax.nn.one_hot(idx, logits.shape[-1], dtype=gates.dtype)
    order = one.transpose(1, 0, 2).reshape(-1, one.shape[-1])
    pos = (jnp.cumsum(order, axis=0) - order).reshape(k, -1, one.shape[-1]).transpose(1, 0, 2)
    pos = jnp.sum(pos * one, -1).astype(jnp.int32)
    keep = pos < capacity
    slot = jax.nn.one_hot(jnp.where(keep, pos, capacity), capacity, dtype=gates.dtype)
    dispatch = jnp.einsum("tke,tkc->tec", one, slot)
    combine = jnp.einsum("tk,tke,tkc->tec", vals, one, slot)
    balance = jnp.sum(one[:, 0].mean(0) * gates.mean(0)) * logits.shape[-1]
    z = jnp.mean(jax.nn.logsumexp(logits, -1) ** 2)
    return dispatch, combine, balance + 1e-3 * z, 1 - keep.mean()


def moe(p, x, capacity):
    d, c, aux, lost = route(x @ p["router"], capacity)
    h = jnp.einsum("td,tec->ecd", x, d)
    h = jax.nn.silu(jnp.einsum("ecd,edf->ecf", h, p["up"]))
    y = jnp.einsum("ecf,efd->ecd", h, p["down"])
    return jnp.einsum("ecd,tec->td", y, c), aux, lost


def main():
    key = random.key(7)
    ks = random.split(key, 5)
    E, D, Fh, T = 4, 6, 12, 64
    p = {
        "router": 0.1 * random.normal(ks[0], (D, E), jnp.float64),
        "up": random.normal(ks[1], (E, D, Fh), jnp.float64) / 3,
        "down": random.normal(ks[2], (E, Fh, D), jnp.float64) / 4,
    }
    x = random.normal(ks[3], (T, D), jnp.float64)
    y = jnp.where(x[:, :1] > 0, jnp.sin(2 * x), x[:, ::-1] ** 2)

    def loss(p):
        out, aux, lost = jax.checkpoint(moe, static_argnums=(2,))(p, x, 40)
        return jnp.mean((out - y) ** 2) + 0.01 * aux, lost

    step = jax.jit(
        lambda p: (
            jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss, has_aux=True)(p)[0]),
            loss(p),
        )
    )
    _, (l0, lost0) = step(p)
    p, (ls, _) = lax.scan(lambda p, _: step(p), p, length=200)
    assert ls[-1] < 0.5 * l0
    v = jax.tree.map(jnp.ones_like, p)

    def f(p):
        return loss(p)[0]

    hv = jax.jvp(jax.grad(f), (p,), (v,))[1]
    e = 1e-5
    num = jax.tree.map(
        lambda a, b: (a - b) / (2 * e),
        jax.grad(f)(jax.tree.map(lambda q: q + e, p)),
        jax.grad(f)(jax.tree.map(lambda q: q - e, p)),
    )
    np.testing.assert_allclose(hv["down"], num["down"], atol=1e-4)
    return {"l0": l0, "l": ls[-1], "lost": lost0}


main()
