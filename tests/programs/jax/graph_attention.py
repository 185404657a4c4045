"""Graph attention with segment sums, pooling per graph, and edges of a size known in advance."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jax.ops import segment_max, segment_sum


def segment_softmax(x, ids, n):
    top = segment_max(x, ids, num_segments=n, indices_are_sorted=False)
    e = jnp.exp(x - jnp.where(jnp.isfinite(top), top, 0.0)[ids])
    return e / (segment_sum(e, ids, n)[ids] + 1e-9)


def layer(p, h, src, dst):
    z = jnp.einsum("nf,fhd->nhd", h, p["w"])
    s = jnp.einsum("nhd,hd->nh", z, p["l"])[src] + jnp.einsum("nhd,hd->nh", z, p["r"])[dst]
    a = jax.vmap(segment_softmax, (1, None, None), 1)(jax.nn.leaky_relu(s, 0.2), dst, len(h))
    out = segment_sum(a[..., None] * z[src], dst, num_segments=len(h))
    return jax.nn.elu(out.reshape(len(h), -1))


def model(params, h, src, dst, graph, n):
    for p in params["layers"]:
        h = layer(p, h, src, dst)
    pooled = jax.ops.segment_sum(h, graph, n) / jnp.bincount(graph, length=n)[:, None]
    return pooled @ params["out"]


def make(rng):
    src, dst, graph, label, _h, base = [], [], [], [], [], 0
    for g in range(24):
        n, ring = rng.randint(4, 8), g % 2
        for i in range(n):
            src += [base + i, base + (i + 1) % n if ring else base]
            dst += [base + (i + 1) % n if ring else base, base + i]
        graph += [g] * n
        label.append(ring)
        base += n
    src, dst = np.array(src), np.array(dst)
    deg = np.bincount(dst, minlength=base)
    return (
        jnp.array(src),
        jnp.array(dst),
        jnp.array(graph),
        jnp.array(label),
        jnp.stack([jnp.ones(base), jnp.asarray(deg / 5.0)], 1),
    )


def main():
    src, dst, graph, label, h = make(np.random.RandomState(0))
    pairs = jnp.stack([src, dst], 1)
    uniq, counts = jnp.unique(pairs, axis=0, return_counts=True, size=len(pairs), fill_value=-1)
    assert counts.sum() == len(pairs)
    assert (uniq[:, 0] >= -1).all()
    keys = random.split(random.PRNGKey(0), 7)

    def mk(k, f):
        return {
            "w": random.normal(k, (f, 2, 4), jnp.float64) * 0.5,
            "l": jnp.ones((2, 4)) * 0.1,
            "r": -jnp.ones((2, 4)) * 0.1,
        }

    params = {
        "layers": [mk(keys[0], 2), mk(keys[1], 8)],
        "out": random.normal(keys[2], (8, 2), jnp.float64) * 0.3,
    }
    n = int(graph.max()) + 1

    def loss(p):
        logits = model(p, h, src, dst, graph, n)
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(n), label])

    step = jax.jit(lambda p: jax.tree.map(lambda a, g: a - 0.5 * g, p, jax.grad(loss)(p)))
    l0 = loss(params)
    for _ in range(150):
        params = step(params)
    acc = (model(params, h, src, dst, graph, n).argmax(1) == label).mean()
    assert acc > 0.95, (l0, loss(params), acc)
    return {"l0": l0, "l": loss(params)}


main()
