"""Linear algebra by hand: iterations, rotations, reflections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


def symmetric(n: int) -> np.ndarray:
    """A random symmetric matrix with eigenvalues of about one."""
    a = np.random.default_rng(0).normal(size=(n, n))
    return (a + a.T) / np.sqrt(8.0 * n)


@workload(small=(4, 6), normal=(24, 6), large=(100, 8), rows=FORWARD)
def jacobi_eigenvalues(n: int, sweeps: int) -> Problem:
    """Eigenvalues of a symmetric matrix {n} x {n}: {sweeps} sweeps of Jacobi's rotations."""
    pairs = np.array([(p, q) for p in range(n) for q in range(p + 1, n)], np.int32)

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(a: Any, pairs: Any) -> Any:
            def rotate(k: Any, a: Any) -> Any:
                p, q = pairs[k % len(pairs), 0], pairs[k % len(pairs), 1]
                apq = a[p, q]
                is_small = xnp.abs(apq) < 1e-30
                ratio = (a[q, q] - a[p, p]) / (2.0 * xnp.where(is_small, 1.0, apq))
                sign = xnp.where(ratio < 0.0, -1.0, 1.0)
                t = sign / (xnp.abs(ratio) + xnp.sqrt(ratio * ratio + 1.0))
                t = xnp.where(is_small, 0.0, t)
                c = 1.0 / xnp.sqrt(t * t + 1.0)
                s = t * c
                rows = c * a[p] - s * a[q], s * a[p] + c * a[q]
                a = a.at[p].set(rows[0]).at[q].set(rows[1])
                columns = c * a[:, p] - s * a[:, q], s * a[:, p] + c * a[:, q]
                return a.at[:, p].set(columns[0]).at[:, q].set(columns[1])

            return xnp.sort(xnp.diagonal(xp.lax.fori_loop(0, sweeps * len(pairs), rotate, a)))

        return run

    def loops(a, pairs):
        a = a.copy()
        for _ in range(sweeps):
            for k in range(len(pairs)):
                p, q = pairs[k]
                if abs(a[p, q]) < 1e-30:
                    continue
                ratio = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                sign = -1.0 if ratio < 0.0 else 1.0
                t = sign / (abs(ratio) + np.sqrt(ratio * ratio + 1.0))
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                for j in range(n):
                    x, y = a[p, j], a[q, j]
                    a[p, j], a[q, j] = c * x - s * y, s * x + c * y
                for i in range(n):
                    x, y = a[i, p], a[i, q]
                    a[i, p], a[i, q] = c * x - s * y, s * x + c * y
        return np.sort(np.diag(a))

    return Problem((symmetric(n), pairs), program, loops, loops=True, tolerance=10.0)


@workload(small=(6, 5), normal=(300, 50), large=(2000, 100), rows=BOTH)
def power_iteration(n: int, steps: int) -> Problem:
    """Largest eigenvalue of a positive matrix {n} x {n}, {steps} products and norms."""

    def step(xnp: Any, a: Any, v: Any) -> Any:
        v = a @ v
        return v / xnp.sqrt(v @ v)

    def program(xp: Any) -> Callable[..., Any]:
        def run(a: Any, v: Any) -> Any:
            v = xp.lax.fori_loop(0, steps, lambda _, v: step(xp.numpy, a, v), v)
            return v @ (a @ v)

        return run

    def loops(a, v):
        v, w = v.copy(), np.empty_like(v)
        found = 0.0
        for step in range(steps + 1):
            square = found = 0.0
            for i in range(n):
                s = 0.0
                for j in range(n):
                    s += a[i, j] * v[j]
                w[i] = s
                square += s * s
                found += v[i] * s
            if step < steps:
                for i in range(n):
                    v[i] = w[i] / np.sqrt(square)
        return np.array(found)

    a = np.random.default_rng(0).uniform(size=(n, n)) / n
    arguments = a + a.T, np.ones(n)
    return Problem(arguments, program, loops, as_written=("torch",), loops=True, tolerance=30.0)


@workload(small=(5, 4), normal=(128, 60), large=(1000, 200), rows=BOTH)
def conjugate_gradients(n: int, steps: int) -> Problem:
    """Poisson's equation on {n}^2 points by {steps} steps of conjugate gradients, no matrix."""

    def formula(xnp: Any, pad: Any, loop: Any) -> Callable[..., Any]:
        def laplacian(x: Any, weight: Any) -> Any:
            padded = pad(x)
            rows = padded[2:, 1:-1] + padded[:-2, 1:-1]
            return weight * x - rows - padded[1:-1, 2:] - padded[1:-1, :-2]

        def run(b: Any, weight: Any) -> Any:
            def step(state: Any) -> Any:
                x, r, p, square = state
                ap = laplacian(p, weight)
                alpha = square / xnp.sum(p * ap)
                x, r = x + alpha * p, r - alpha * ap
                following = xnp.sum(r * r)
                return x, r, r + following / square * p, following

            state = xnp.zeros_like(b), b, b, xnp.sum(b * b)
            return loop(step, state)[0]

        return run

    def program(xp: Any) -> Callable[..., Any]:
        def loop(step: Any, state: Any) -> Any:
            return xp.lax.fori_loop(0, steps, lambda _, state: step(state), state)

        return formula(xp.numpy, lambda x: xp.numpy.pad(x, 1), loop)

    def torch_program(torch: Any) -> Callable[..., Any]:
        def loop(step: Any, state: Any) -> Any:
            for _ in range(steps):
                state = step(state)
            return state

        return formula(torch, lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)), loop)

    def loops(b, weight):
        x, r, p, ap = np.zeros_like(b), b.copy(), b.copy(), np.empty_like(b)
        square = 0.0
        for i in range(n):
            for j in range(n):
                square += b[i, j] * b[i, j]
        for _ in range(steps):
            product = 0.0
            for i in range(n):
                for j in range(n):
                    s = weight[i, j] * p[i, j]
                    if i > 0:
                        s -= p[i - 1, j]
                    if i < n - 1:
                        s -= p[i + 1, j]
                    if j > 0:
                        s -= p[i, j - 1]
                    if j < n - 1:
                        s -= p[i, j + 1]
                    ap[i, j] = s
                    product += s * p[i, j]
            alpha, following = square / product, 0.0
            for i in range(n):
                for j in range(n):
                    x[i, j] += alpha * p[i, j]
                    r[i, j] -= alpha * ap[i, j]
                    following += r[i, j] * r[i, j]
            for i in range(n):
                for j in range(n):
                    p[i, j] = r[i, j] + following / square * p[i, j]
            square = following
        return x

    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(n, n)), 4.2 + 0.2 * rng.uniform(size=(n, n))
    return Problem(
        arguments, program, loops, argnums=(0, 1), torch=torch_program, loops=True, tolerance=100.0
    )


@workload(small=(8, 3), normal=(400, 20), large=(3000, 50), rows=FORWARD)
def gmres(n: int, m: int) -> Problem:
    """{m} steps of GMRES for {n} equations: Arnoldi's basis, Givens' rotations, substitution."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(a: Any, b: Any) -> Any:
            norm = xnp.sqrt(b @ b)
            places = xnp.arange(m + 1)

            def step(k: Any, state: Any) -> Any:
                basis, h, turns, g = state
                w = a @ basis[k]
                column = xnp.zeros_like(g)

                def orthogonalize(i: Any, pair: Any) -> Any:
                    w, column = pair
                    along = basis[i] @ w
                    return w - along * basis[i], column.at[i].set(along)

                w, column = xp.lax.fori_loop(0, k + 1, orthogonalize, (w, column))
                length = xnp.sqrt(w @ w)
                column = column.at[k + 1].set(length)

                def turn(i: Any, column: Any) -> Any:
                    x, y = column[i], column[i + 1]
                    c, s = turns[i, 0], turns[i, 1]
                    return column.at[i].set(c * x + s * y).at[i + 1].set(c * y - s * x)

                column = xp.lax.fori_loop(0, k, turn, column)
                size = xnp.sqrt(column[k] ** 2 + column[k + 1] ** 2)
                c, s = column[k] / size, column[k + 1] / size
                column = column.at[k].set(size).at[k + 1].set(0.0)
                g = g.at[k + 1].set(-s * g[k]).at[k].set(c * g[k])
                turns = turns.at[k].set(xnp.stack([c, s]))
                return basis.at[k + 1].set(w / length), h.at[:, k].set(column), turns, g

            basis = xnp.zeros((m + 1, n), dtype=b.dtype).at[0].set(b / norm)
            h = xnp.zeros((m + 1, m), dtype=b.dtype)
            turns, g = xnp.zeros((m, 2), dtype=b.dtype), xnp.where(places == 0, norm, 0.0)
            basis, h, turns, g = xp.lax.fori_loop(0, m, step, (basis, h, turns, g))

            def substitute(k: Any, y: Any) -> Any:
                i = m - 1 - k
                return y.at[i].set((g[i] - h[i] @ y) / h[i, i])

            return xp.lax.fori_loop(0, m, substitute, xnp.zeros_like(g[:m])) @ basis[:m]

        return run

    def loops(a, b):
        basis, h, w = np.zeros((m + 1, n)), np.zeros((m + 1, m)), np.empty(n)
        turns, g, y = np.zeros((m, 2)), np.zeros(m + 1), np.zeros(m)
        for i in range(n):
            g[0] += b[i] * b[i]
        g[0] = np.sqrt(g[0])
        for i in range(n):
            basis[0, i] = b[i] / g[0]
        for k in range(m):
            for i in range(n):
                s = 0.0
                for j in range(n):
                    s += a[i, j] * basis[k, j]
                w[i] = s
            for i in range(k + 1):
                s = 0.0
                for j in range(n):
                    s += basis[i, j] * w[j]
                h[i, k] = s
                for j in range(n):
                    w[j] -= s * basis[i, j]
            s = 0.0
            for j in range(n):
                s += w[j] * w[j]
            h[k + 1, k] = np.sqrt(s)
            for j in range(n):
                basis[k + 1, j] = w[j] / h[k + 1, k]
            for i in range(k):
                x, z = h[i, k], h[i + 1, k]
                h[i, k] = turns[i, 0] * x + turns[i, 1] * z
                h[i + 1, k] = turns[i, 0] * z - turns[i, 1] * x
            size = np.sqrt(h[k, k] ** 2 + h[k + 1, k] ** 2)
            turns[k, 0], turns[k, 1] = h[k, k] / size, h[k + 1, k] / size
            h[k, k], h[k + 1, k] = size, 0.0
            g[k + 1], g[k] = -turns[k, 1] * g[k], turns[k, 0] * g[k]
        for i in range(m - 1, -1, -1):
            s = g[i]
            for j in range(i + 1, m):
                s -= h[i, j] * y[j]
            y[i] = s / h[i, i]
        x = np.zeros_like(b)
        for i in range(m):
            for j in range(n):
                x[j] += y[i] * basis[i, j]
        return x

    rng = np.random.default_rng(0)
    a = 2.0 * np.eye(n) + 0.5 * rng.normal(size=(n, n)) / np.sqrt(n)
    return Problem((a, rng.normal(size=n)), program, loops, loops=True, tolerance=30.0)


@workload(small=(6, 4), normal=(120, 80), large=(800, 600), rows=FORWARD)
def householder(n: int, m: int) -> Problem:
    """Triangular factor of a matrix {n} x {m} by Householder's reflections."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(a: Any) -> Any:
            places = xnp.arange(n)

            def reflect(k: Any, a: Any) -> Any:
                x = xnp.where(places >= k, a[:, k], 0.0)
                length = xnp.sqrt(x @ x)
                v = x.at[k].add(xnp.where(x[k] < 0.0, -length, length))
                return a - v[:, None] * (2.0 / (v @ v) * (v @ a))[None, :]

            return xnp.triu(xp.lax.fori_loop(0, m, reflect, a)[:m])

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(a: Any) -> Any:
            a = a.clone()
            for k in range(m):
                v, rest = a[k:, k].clone(), a[k:, k:]
                v[0] += torch.copysign(torch.linalg.vector_norm(v), v[0])
                rest -= v[:, None] * (2.0 / (v @ v) * (v @ rest))[None, :]
            return torch.triu(a[:m])

        return run

    def loops(a):
        a, v = a.copy(), np.empty_like(a[:, 0])
        for k in range(m):
            square = 0.0
            for i in range(k, n):
                v[i] = a[i, k]
                square += v[i] * v[i]
            length = np.sqrt(square)
            v[k] += -length if v[k] < 0.0 else length
            square = 0.0
            for i in range(k, n):
                square += v[i] * v[i]
            for j in range(k, m):
                s = 0.0
                for i in range(k, n):
                    s += v[i] * a[i, j]
                for i in range(k, n):
                    a[i, j] -= 2.0 / square * s * v[i]
        for i in range(m):
            for j in range(i):
                a[i, j] = 0.0
        return a[:m]

    a = np.random.default_rng(0).normal(size=(n, m))
    return Problem((a,), program, loops, torch=torch_program, loops=True, tolerance=30.0)
