"""A linear-chain CRF: forward algorithm, marginals by gradients, Viterbi, beam search, training."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def log_z(emit, trans, length):
    def step(a, xs):
        e, t = xs
        b = jax.nn.logsumexp(a[:, None] + trans, axis=0) + e
        return jnp.where(t < length, b, a), None

    a, _ = lax.scan(step, emit[0], (emit[1:], jnp.arange(1, emit.shape[0])))
    return jax.nn.logsumexp(a)


def score(emit, trans, tags, length):
    t = jnp.arange(emit.shape[0])
    e = jnp.take_along_axis(emit, tags[:, None], axis=1).squeeze(1)
    m = trans[tags[:-1], tags[1:]]
    return jnp.sum(e, where=t < length) + jnp.sum(m, where=t[1:] < length)


def viterbi(emit, trans):
    def step(a, e):
        s = a[:, None] + trans
        return s.max(0) + e, s.argmax(0)

    a, back = lax.scan(step, emit[0], emit[1:])
    last = jnp.argmax(a)
    _, path = lax.scan(lambda k, b: (b[k], b[k]), last, back, reverse=True)
    return jnp.append(path, last), a.max()


def beam(emit, trans, width):
    n, k = emit.shape

    def step(c, e):
        scores, paths, t = c
        cand = scores[:, None] + trans[paths[:, t - 1]] + e
        best, idx = lax.top_k(cand.ravel(), width)
        b, s = jnp.divmod(idx, k)
        paths = paths[b].at[:, t].set(s)
        return (best, paths, t + 1), None

    first, i = lax.top_k(emit[0], width)
    paths = jnp.zeros((width, n), i.dtype).at[:, 0].set(i)
    (scores, paths, _), _ = lax.scan(step, (first, paths, 1), emit[1:])
    return paths[0], scores[0]


def main():
    k, n = 4, 7
    key = random.PRNGKey(0)
    e = random.normal(key, (n, k), jnp.float64)
    tr = random.normal(random.fold_in(key, 1), (k, k), jnp.float64)

    all_tags = jnp.array(list(itertools.product(range(k), repeat=4)))
    brute = jax.nn.logsumexp(jax.vmap(lambda t: score(e[:4], tr, t, 4))(all_tags))
    np.testing.assert_allclose(log_z(e, tr, 4), brute, rtol=1e-10)
    marg = jax.jit(jax.grad(log_z), static_argnums=())(e, tr, n)
    np.testing.assert_allclose(marg.sum(1), 1.0, rtol=1e-10)
    path, best = jax.jit(viterbi)(e, tr)
    np.testing.assert_allclose(score(e, tr, path, n), best, rtol=1e-12)
    _bpath, bbest = jax.jit(beam, static_argnums=2)(e, tr, k)
    assert bbest <= best + 1e-12
    lengths = jnp.array([7, 5, 3])
    E = random.normal(key, (3, n, k), jnp.float64)
    T = random.randint(key, (3, n), 0, k)

    def nll(tr):
        return jnp.mean(
            jax.vmap(lambda e, t, n: log_z(e, tr, n) - score(e, tr, t, n))(E, T, lengths)
        )

    vg = jax.jit(jax.value_and_grad(nll))
    l0 = vg(tr)[0]
    for _ in range(40):
        now, g = vg(tr)
        tr -= 0.5 * g
    assert now < l0
    return {"before": l0, "after": now, "best": best}


main()
