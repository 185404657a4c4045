"""Contrastive learning of crops of signals, with a queue of negatives and a momentum encoder."""

import jax
import jax.numpy as jnp
from jax import lax, nn, random


def crop(key, x, n=24):
    k1, k2, k3 = random.split(key, 3)
    start = random.randint(k1, (), 0, x.shape[0] - n + 1)
    y = lax.dynamic_slice_in_dim(x, start, n)
    y = y * random.uniform(k2, (), x.dtype, 0.8, 1.2) + 0.05 * random.normal(k3, (n,), x.dtype)
    return lax.cond(random.bernoulli(k2), lambda y: jnp.flip(y), lambda y: y, y)


def encode(p, x):
    h = nn.gelu(x @ p["a"] + p["b"], approximate=False)
    h = nn.standardize(h) @ p["c"]
    return h / jnp.maximum(jnp.linalg.norm(h, axis=-1, keepdims=True), 1e-6)


def info_nce(p, m, queue, a, b, tau=0.2):
    q, k = encode(p, a), lax.stop_gradient(encode(m, b))
    logits = jnp.concatenate([jnp.einsum("nd,nd->n", q, k)[:, None], q @ queue.T], axis=1) / tau
    labels = jnp.zeros(len(q), int)
    loss = -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1).mean()
    return loss, (k, jnp.mean(jnp.argmax(logits, -1) == 0))


def main():
    key = random.key(0)
    kinds = jnp.stack([jnp.sin(f * jnp.linspace(0, 6, 40)) for f in (1.0, 2.0, 4.0, 7.0)])
    data = jnp.repeat(kinds, 8, axis=0)
    init = nn.initializers.glorot_normal(dtype=jnp.float64)
    p = {
        "a": init(random.fold_in(key, 1), (24, 32)),
        "b": jnp.zeros(32),
        "c": init(random.fold_in(key, 2), (32, 8)),
    }
    queue = random.normal(random.fold_in(key, 3), (16, 8), jnp.float64)
    queue /= jnp.linalg.norm(queue, axis=1, keepdims=True)

    @jax.jit
    def step(state, key):
        p, m, queue = state
        ks = random.split(key, 3)
        rows = random.choice(ks[2], data, (16,), replace=False)
        a, b = (jax.vmap(crop)(random.split(k, 16), rows) for k in ks[:2])
        (loss, (k, acc)), g = jax.value_and_grad(info_nce, has_aux=True)(p, m, queue, a, b)
        p = jax.tree.map(lambda p, g: p - 0.3 * g, p, g)
        m = jax.tree.map(lambda m, p: 0.95 * m + 0.05 * p, m, p)
        queue = jnp.roll(queue, 8, axis=0).at[:8].set(k[:8])
        return (p, m, queue), {"loss": loss, "acc": acc}

    (p, _m, _), log = lax.scan(step, (p, p, queue), random.split(random.fold_in(key, 4), 150))
    views = jax.vmap(crop)(random.split(random.fold_in(key, 9), 32), data)
    z = encode(p, views)
    sim = z @ z.T - 2 * jnp.eye(32)
    same = (jnp.argmax(sim, 1) // 8 == jnp.arange(32) // 8).mean()
    assert same > 0.8
    assert log["loss"][-20:].mean() < log["loss"][:20].mean()
    return {"first": log["loss"][0]}


main()
