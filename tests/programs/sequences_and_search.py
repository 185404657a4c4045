"""Dynamic programs and a beam search: arrays updated in loops, states as dictionaries, methods."""

from functools import partial

import numpy as np

import funcgrad as jax
import funcgrad.numpy as jnp
from funcgrad import lax


@partial(jax.jit, static_argnames="gamma")
def soft_dtw(x, y, *, gamma=0.1):
    """The smooth distance of two series by dynamic time warping (Cuturi and Blondel, 2017)."""
    cost = (x[:, None] - y[None, :]) ** 2
    m, n = cost.shape
    table = jnp.full((m + 1, n + 1), 1e10).at[0, 0].set(0.0)

    def cell(k, table):
        i, j = k // n, k % n
        near = jnp.stack([table[i, j], table[i, j + 1], table[i + 1, j]])
        best = -gamma * jax.nn.logsumexp(-near / gamma)
        return table.at[i + 1, j + 1].set(cost[i, j] + best)

    return lax.fori_loop(0, m * n, cell, table)[m, n]


def plain_dtw(x, y, gamma):
    m, n = len(x), len(y)
    table = np.full((m + 1, n + 1), 1e10)
    table[0, 0] = 0.0
    for i in range(m):
        for j in range(n):
            near = -np.array([table[i, j], table[i, j + 1], table[i + 1, j]]) / gamma
            top = near.max()
            best = -gamma * (top + np.log(np.exp(near - top).sum()))
            table[i + 1, j + 1] = (x[i] - y[j]) ** 2 + best
    return table[m, n]


class Chain:
    """A Markov chain whose methods are compiled; it is compared by its name."""

    def __init__(self, name, logits):
        self.name = name
        self.logits = logits

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return isinstance(other, Chain) and self.name == other.name

    @partial(jax.jit, static_argnums=0, static_argnames=("length", "width"))
    def beam(self, start, *, length, width=3):
        states = len(self.logits)
        logs = jax.nn.log_softmax(jnp.asarray(self.logits), axis=-1)
        paths = jnp.zeros((width, length), jnp.int32).at[:, 0].set(start)
        scores = jnp.where(jnp.arange(width) == 0, 0.0, -jnp.inf)

        def extend(carry):
            ends = lax.dynamic_slice_in_dim(carry["paths"], carry["t"] - 1, 1, axis=1)[:, 0]
            scores, flat = lax.top_k((carry["scores"][:, None] + logs[ends]).ravel(), width)
            parents, new = flat // states, flat % states
            paths = carry["paths"][parents].at[:, carry["t"]].set(new.astype(jnp.int32))
            return {"paths": paths, "scores": scores, "t": carry["t"] + 1}

        carry = {"paths": paths, "scores": scores, "t": 1}
        out = lax.while_loop(lambda c: c["t"] < length, extend, carry)
        return out["paths"], out["scores"]


def running(values, mask=None):
    """The running maximum of what the mask admits, and the running product of matrices."""
    admitted = values if mask is None else jnp.where(mask, values, -jnp.inf)
    peaks = lax.associative_scan(jnp.maximum, admitted)
    turns = jax.vmap(lambda a: jnp.array([[jnp.cos(a), -jnp.sin(a)], [jnp.sin(a), jnp.cos(a)]]))
    return peaks, lax.associative_scan(jnp.matmul, turns(values))


def main():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=6), rng.normal(size=5)
    value, slope = jax.value_and_grad(soft_dtw)(x, y)
    assert abs(value - plain_dtw(x, y, 0.1)) < 1e-10
    for i in range(6):
        e = np.eye(6)[i] * 1e-6
        change = plain_dtw(x + e, y, 0.1) - plain_dtw(x - e, y, 0.1)
        assert abs(slope[i] - change / 2e-6) < 1e-6
    several = jax.vmap(lambda a: soft_dtw(a, y, gamma=1.0))(jnp.stack([x, -x]))
    assert abs(several[1] - plain_dtw(-x, y, 1.0)) < 1e-10

    logits = rng.normal(size=(4, 4))
    paths, scores = Chain("first", logits).beam(2, length=4, width=64)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    every = {
        (2, a, b, c): logs[2, a] + logs[a, b] + logs[b, c]
        for a in range(4) for b in range(4) for c in range(4)
    }  # fmt: skip
    best = max(every, key=every.get)
    assert tuple(np.asarray(paths)[0].tolist()) == best
    np.testing.assert_allclose(np.sort(scores), np.sort(list(every.values())), 1e-12)

    peaks, turns = running(x)
    np.testing.assert_array_equal(peaks, np.maximum.accumulate(x))
    np.testing.assert_allclose(turns[-1][1, 0], np.sin(x.sum()), atol=1e-12)
    peaks, _ = running(x, mask=np.arange(6) % 2 == 0)
    assert float(peaks[-1]) == x[::2].max()

    # Segments of unequal lengths, filled up and counted.
    lengths = np.array([2, 0, 3])
    owner = jnp.repeat(jnp.arange(3), lengths, total_repeat_length=5)
    sums = jax.ops.segment_sum(jnp.asarray(y), owner, num_segments=3)
    np.testing.assert_allclose(sums, [y[:2].sum(), 0.0, y[2:].sum()], 1e-12)
    found = jnp.nonzero(y > 0, size=5, fill_value=-1)[0]
    assert int((found >= 0).sum()) == int((y > 0).sum())
    unique, counts = jnp.unique(jnp.array([3, 1, 3, 2]), return_counts=True, size=4, fill_value=0)
    assert counts.tolist()[:3] == [1, 1, 2]
    return {"value": float(value), "best": float(scores[0]), "unique": int(unique.sum())}
