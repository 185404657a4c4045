"""Rauch-Tung-Striebel smoothing, sequential and by associative scans, and EM for the noises."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve

F = jnp.array([[1.0, 0.1], [0.0, 1.0]])
H = jnp.array([[1.0, 0.0]])


def filt(q, r, ys, mask):
    Q, R = q * jnp.eye(2), r * jnp.eye(1)

    def step(c, ym):
        m, P = c
        y, ok = ym
        mp, Pp = F @ m, F @ P @ F.T + Q
        S = H @ Pp @ H.T + R
        Kg = cho_solve(cho_factor(S, lower=True), H @ Pp).T
        v = y - H @ mp
        m1, P1 = mp + Kg @ v, Pp - Kg @ S @ Kg.T
        ll = jax.scipy.stats.multivariate_normal.logpdf(y, H @ mp, S)
        m1, P1 = jax.tree.map(lambda a, b: jnp.where(ok, a, b), (m1, P1), (mp, Pp))
        return (m1, P1), (m1, P1, mp, Pp, jnp.where(ok, ll, 0.0))

    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), (ys, mask))[1]


def smooth(ms, Ps, mps, Pps):
    def back(c, x):
        ms_, Ps_ = c
        m, P, mp, Pp = x
        G = jnp.linalg.solve(Pp, F @ P).T
        m1, P1 = m + G @ (ms_ - mp), P + G @ (Ps_ - Pp) @ G.T
        return (m1, P1), (m1, P1)

    xs = (ms[:-1], Ps[:-1], mps[1:], Pps[1:])
    _, (m, P) = lax.scan(back, (ms[-1], Ps[-1]), xs, reverse=True)
    return jnp.concatenate([m, ms[-1:]]), jnp.concatenate([P, Ps[-1:]])


def smooth_parallel(ms, Ps, q):
    def element(m, P):
        Pp = F @ P @ F.T + q * jnp.eye(2)
        E = jnp.linalg.solve(Pp, F @ P).T
        return E, m - E @ F @ m, P - E @ Pp @ E.T

    E, g, L = jax.vmap(element)(ms[:-1], Ps[:-1])
    E = jnp.concatenate([E, jnp.zeros((1, 2, 2))])
    g, L = jnp.concatenate([g, ms[-1:]]), jnp.concatenate([L, Ps[-1:]])

    def op(b, a):
        Ea, ga, La = a
        Eb, gb, Lb = b
        return (
            Ea @ Eb,
            jnp.einsum("...ij,...j->...i", Ea, gb) + ga,
            Ea @ Lb @ jnp.swapaxes(Ea, -1, -2) + La,
        )

    _, m, P = lax.associative_scan(op, (E, g, L), reverse=True)
    return m, P


def main():
    rng = np.random.RandomState(0)
    x, xs = np.zeros(2), []
    for _ in range(120):
        x = np.asarray(F) @ x + 0.1 * rng.randn(2)
        xs.append(x)
    xs = np.stack(xs)
    ys = jnp.asarray(xs[:, :1] + 0.5 * rng.randn(120, 1))
    mask = jnp.arange(120) % 7 != 3
    run = jax.jit(filt)
    *dist, _ll = run(0.01, 0.25, ys, mask)
    m, P = jax.jit(smooth)(*dist)
    m2, P2 = jax.jit(smooth_parallel)(dist[0], dist[1], 0.01)
    np.testing.assert_allclose(m, m2, atol=1e-8)
    np.testing.assert_allclose(P, P2, atol=1e-8)
    assert jnp.mean((m - xs) ** 2) < jnp.mean((dist[0] - xs) ** 2)

    def f(th):
        return -run(*jnp.exp(th), ys, mask)[-1].sum()

    th = jnp.log(jnp.array([0.1, 1.0]))
    for _ in range(10):
        Hs = jax.hessian(f)(th)
        w, V = jnp.linalg.eigh(Hs)
        th = th - jnp.clip(V @ ((V.T @ jax.grad(f)(th)) / jnp.maximum(jnp.abs(w), 1e-3)), -1.0, 1.0)
    assert jnp.linalg.norm(jax.grad(f)(th)) < 1e-3
    return {"q": jnp.exp(th[0]), "r": jnp.exp(th[1]), "ll": -f(th)}


main()
