"""Factorizations and dynamic programs whose steps need the ones before, by `fori_loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


def dominant(n: int) -> np.ndarray:
    """A matrix whose diagonal is larger than the rest of each row."""
    return np.random.default_rng(0).normal(size=(n, n)) / n + 2.0 * np.eye(n)


@workload(small=(6,), normal=(300,), large=(2000,), rows=BOTH)
def durbin(n: int) -> Problem:
    """Durbin's recursion for a Toeplitz system of {n} equations (PolyBench)."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(r: Any) -> Any:
            places = xnp.arange(n)

            def body(k: Any, carry: Any) -> Any:
                y, alpha, beta = carry
                beta = (1.0 - alpha * alpha) * beta
                backwards = xnp.where(places < k, y[(k - 1 - places) % n], 0.0)
                along = xnp.where(places < k, r[(k - 1 - places) % n], 0.0)
                alpha = -(r[k] + xnp.sum(along * y)) / beta
                return (y + alpha * backwards).at[k].set(alpha), alpha, beta

            first = xnp.zeros_like(r).at[0].set(-r[0])
            return xp.lax.fori_loop(1, n, body, (first, -r[0], xnp.ones_like(r[0])))[0]

        return run

    def loops(r):
        y, z = np.zeros_like(r), np.zeros_like(r)
        y[0] = alpha = -r[0]
        beta = 1.0
        for k in range(1, n):
            beta = (1 - alpha * alpha) * beta
            s = 0.0
            for i in range(k):
                s += r[k - i - 1] * y[i]
            alpha = -(r[k] + s) / beta
            for i in range(k):
                z[i] = y[i] + alpha * y[k - i - 1]
            for i in range(k):
                y[i] = z[i]
            y[k] = alpha
        return y

    r = 0.6 ** np.arange(1, n + 1) * np.cos(np.arange(n))
    return Problem((r,), program, loops, loops=True, tolerance=30.0)


@workload(small=(6, 4), normal=(120, 80), large=(800, 600), rows=BOTH)
def gram_schmidt(n: int, m: int) -> Problem:
    """Gram and Schmidt's factorization of a matrix {n} x {m}, column by column (PolyBench)."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(a: Any) -> Any:
            columns = xnp.arange(m)

            def body(k: Any, carry: Any) -> Any:
                a, q = carry
                column = a[:, k] / xnp.sqrt(xnp.sum(a[:, k] * a[:, k]))
                row = xnp.where(columns > k, column @ a, 0.0)
                return a - column[:, None] * row[None, :], q.at[:, k].set(column)

            # The columns have norm one whatever the matrix: a gradient of their squares is zero.
            return xp.lax.fori_loop(0, m, body, (a, xnp.zeros_like(a)))[1] ** 3

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(a: Any) -> Any:
            places, found = torch.arange(m), []
            for k in range(m):
                found.append(a[:, k] / torch.sqrt(torch.sum(a[:, k] * a[:, k])))
                row = torch.where(places > k, found[-1] @ a, 0.0)
                a = a - found[-1][:, None] * row[None, :]
            return torch.stack(found, 1) ** 3

        return run

    def loops(a):
        a, q = a.copy(), np.empty_like(a)
        for k in range(m):
            s = 0.0
            for i in range(n):
                s += a[i, k] * a[i, k]
            for i in range(n):
                q[i, k] = a[i, k] / np.sqrt(s)
            for j in range(k + 1, m):
                s = 0.0
                for i in range(n):
                    s += q[i, k] * a[i, j]
                for i in range(n):
                    a[i, j] -= q[i, k] * s
        return q**3

    a = np.random.default_rng(0).normal(size=(n, m)) + np.eye(n, m)
    return Problem((a,), program, loops, torch=torch_program, loops=True, tolerance=100.0)


@workload(small=(6,), normal=(120,), large=(800,), rows=BOTH)
def lu(n: int) -> Problem:
    """LU factorization without pivots of a matrix {n} x {n} in place (PolyBench)."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(a: Any) -> Any:
            places = xnp.arange(n)

            def body(k: Any, a: Any) -> Any:
                factors = xnp.where(places > k, a[:, k] / a[k, k], 0.0)
                row = xnp.where(places > k, a[k], 0.0)
                a = a - factors[:, None] * row[None, :]
                return a.at[:, k].set(xnp.where(places > k, factors, a[:, k]))

            return xp.lax.fori_loop(0, n, body, a)

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(a: Any) -> Any:
            places = torch.arange(n)
            for k in range(n):
                is_below = places > k
                factors = torch.where(is_below, a[:, k] / a[k, k], 0.0)
                a = a - factors[:, None] * torch.where(is_below, a[k], 0.0)[None, :]
                is_new = is_below[:, None] & (places == k)[None, :]
                a = torch.where(is_new, factors[:, None], a)
            return a

        return run

    def loops(a):
        a = a.copy()
        for k in range(n):
            for i in range(k + 1, n):
                a[i, k] /= a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= a[i, k] * a[k, j]
        return a

    return Problem((dominant(n),), program, loops, torch=torch_program, loops=True, tolerance=10.0)


@workload(small=(6,), normal=(100,), large=(800,), rows=BOTH)
def ludcmp(n: int) -> Problem:
    """A system of {n} equations by elimination and two substitutions (PolyBench)."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(a: Any, b: Any) -> Any:
            places = xnp.arange(n)

            def eliminate(k: Any, system: Any) -> Any:
                a, b = system
                factors = xnp.where(places > k, a[:, k] / a[k, k], 0.0)
                return a - factors[:, None] * a[k][None, :], b - factors * b[k]

            a, b = xp.lax.fori_loop(0, n, eliminate, (a, b))

            def substitute(step: Any, x: Any) -> Any:
                i = n - 1 - step
                return x.at[i].set((b[i] - a[i] @ x) / a[i, i])

            return xp.lax.fori_loop(0, n, substitute, xnp.zeros_like(b))

        return run

    def loops(a, b):
        a, b, x = a.copy(), b.copy(), np.zeros_like(b)
        for k in range(n):
            for i in range(k + 1, n):
                factor = a[i, k] / a[k, k]
                for j in range(k, n):
                    a[i, j] -= factor * a[k, j]
                b[i] -= factor * b[k]
        for i in range(n - 1, -1, -1):
            s = b[i]
            for j in range(i + 1, n):
                s -= a[i, j] * x[j]
            x[i] = s / a[i, i]
        return x

    b = np.random.default_rng(1).normal(size=n)
    arguments = dominant(n), b
    return Problem(arguments, program, loops, argnums=(0, 1), loops=True, tolerance=10.0)


@workload(small=(5,), normal=(120,), large=(600,), rows=FORWARD)
def floyd_warshall(n: int) -> Problem:
    """Shortest paths between all of {n} places of a graph, int32 (PolyBench)."""
    rng = np.random.default_rng(0)
    roads = np.where(rng.uniform(size=(n, n)) < 0.1, rng.integers(1, 100, (n, n)), 9999)

    def program(xp: Any) -> Callable[..., Any]:
        def run(paths: Any) -> Any:
            def body(k: Any, paths: Any) -> Any:
                return xp.numpy.minimum(paths, paths[:, k][:, None] + paths[k][None, :])

            return xp.lax.fori_loop(0, n, body, paths)

        return run

    def loops(paths):
        paths = paths.copy()
        for k in range(n):
            for i in range(n):
                for j in range(n):
                    paths[i, j] = min(paths[i, j], paths[i, k] + paths[k, j])
        return paths

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(paths: Any) -> Any:
            for k in range(n):
                paths = torch.minimum(paths, paths[:, k][:, None] + paths[k][None, :])
            return paths

        return run

    arguments = (roads.astype(np.int32),)
    return Problem(arguments, program, loops, torch=torch_program, loops=True)


@workload(small=(8,), normal=(60,), large=(400,), rows=FORWARD)
def nussinov(n: int) -> Problem:
    """Nussinov's folding of a sequence of {n} bases, a table cell by cell, int32 (PolyBench)."""
    sequence = np.random.default_rng(0).integers(0, 4, n).astype(np.int32)

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(sequence: Any) -> Any:
            places = xnp.arange(n)

            def row(step: Any, table: Any) -> Any:
                i = n - 1 - step

                def cell(j: Any, table: Any) -> Any:
                    pairs = (sequence[i] + sequence[j] == 3) & (j > i + 1)
                    inner = xnp.where(j > i + 1, table[i + 1, j - 1], 0)
                    best = xnp.maximum(table[i, j - 1], table[i + 1, j])
                    best = xnp.maximum(best, inner + pairs)
                    below = xnp.concatenate([table[1:n, j], table[:1, j]])
                    splits = xnp.where((places > i) & (places < j), table[i, :n] + below, 0)
                    return table.at[i, j].set(xnp.maximum(best, xnp.max(splits)))

                return xp.lax.fori_loop(i + 1, n, cell, table)

            table = xnp.zeros((n + 1, n), dtype=sequence.dtype)
            return xp.lax.fori_loop(1, n, row, table)[0, n - 1]

        return run

    def loops(sequence):
        table = np.zeros((n + 1, n), sequence.dtype)
        for i in range(n - 2, -1, -1):
            for j in range(i + 1, n):
                best = max(table[i, j - 1], table[i + 1, j])
                if j > i + 1:
                    pairs = 1 if sequence[i] + sequence[j] == 3 else 0
                    best = max(best, table[i + 1, j - 1] + pairs)
                for k in range(i + 1, j):
                    best = max(best, table[i, k] + table[k + 1, j])
                table[i, j] = best
        return table[0, n - 1]

    return Problem((sequence,), program, loops, loops=True)


@workload(small=(6, 2), normal=(64, 2), large=(400, 5), rows=FORWARD)
def seidel(n: int, sweeps: int) -> Problem:
    """Gauss and Seidel's mean of nine neighbours, {sweeps} sweeps of {n}^2 (PolyBench)."""

    def program(xp: Any) -> Callable[..., Any]:
        def run(a: Any) -> Any:
            def cell(place: Any, a: Any) -> Any:
                i, j = 1 + place // (n - 2), 1 + place % (n - 2)
                window = xp.lax.dynamic_slice(a, (i - 1, j - 1), (3, 3))
                return a.at[i, j].set(xp.numpy.sum(window) / 9.0)

            def sweep(_: Any, a: Any) -> Any:
                return xp.lax.fori_loop(0, (n - 2) * (n - 2), cell, a)

            return xp.lax.fori_loop(0, sweeps, sweep, a)

        return run

    def loops(a):
        a = a.copy()
        for _ in range(sweeps):
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    s = 0.0
                    for k in range(-1, 2):
                        for m in range(-1, 2):
                            s += a[i + k, j + m]
                    a[i, j] = s / 9.0
        return a

    return Problem((np.random.default_rng(0).normal(size=(n, n)),), program, loops, loops=True)


@workload(small=(6, 2), normal=(100, 10), large=(500, 20), rows=BOTH)
def adi(n: int, steps: int) -> Problem:
    """Alternating directions, {steps} steps of {n}^2: sweeps along rows and columns (PolyBench)."""
    c = 0.3

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def half(u: Any) -> Any:
            """Implicit along the first axis, explicit along the second."""
            right = (1.0 - 2.0 * c) * u[1:-1, 1:-1] + c * (u[1:-1, :-2] + u[1:-1, 2:])

            def forward(carry: Any, d: Any) -> Any:
                p, q = carry
                scale = 1.0 / (1.0 + 2.0 * c - c * p)
                carry = c * scale + 0.0 * d, (d + c * q) * scale
                return carry, carry

            zeros = xnp.zeros_like(right[0])
            _, (p, q) = xp.lax.scan(forward, (zeros, zeros), right)

            def backward(x: Any, pair: Any) -> Any:
                x = pair[0] * x + pair[1]
                return x, x

            _, inner = xp.lax.scan(backward, zeros, (p, q), reverse=True)
            return xnp.zeros_like(u).at[1:-1, 1:-1].set(inner)

        def run(u: Any) -> Any:
            return xp.lax.fori_loop(0, steps, lambda _, u: half(half(u.T).T), u)

        return run

    def loops(u):
        u, v = u.copy(), np.zeros_like(u)
        p, q = np.zeros_like(u), np.zeros_like(u)
        for _ in range(steps):
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    d = (1 - 2 * c) * u[i, j] + c * (u[i - 1, j] + u[i + 1, j])
                    scale = 1.0 / (1 + 2 * c - c * p[i, j - 1])
                    p[i, j] = c * scale
                    q[i, j] = (d + c * q[i, j - 1]) * scale
                for j in range(n - 2, 0, -1):
                    v[i, j] = p[i, j] * v[i, j + 1] + q[i, j]
                v[i, 0] = v[i, n - 1] = 0.0
            p[:] = 0.0
            q[:] = 0.0
            u[:] = 0.0
            for j in range(1, n - 1):
                for i in range(1, n - 1):
                    d = (1 - 2 * c) * v[i, j] + c * (v[i, j - 1] + v[i, j + 1])
                    scale = 1.0 / (1 + 2 * c - c * p[i - 1, j])
                    p[i, j] = c * scale
                    q[i, j] = (d + c * q[i - 1, j]) * scale
                for i in range(n - 2, 0, -1):
                    u[i, j] = p[i, j] * u[i + 1, j] + q[i, j]
            p[:] = 0.0
            q[:] = 0.0
        return u

    u = np.random.default_rng(0).normal(size=(n, n))
    u[0] = u[-1] = u[:, 0] = u[:, -1] = 0.0
    return Problem((u,), program, loops, loops=True, tolerance=10.0)


@workload(small=(6, 5), normal=(300, 200), large=(2000, 1000), rows=BOTH)
def deriche(rows: int, columns: int) -> Problem:
    """Deriche's recursive smoothing of an image {rows} x {columns}, both ways (PolyBench)."""
    alpha = 0.25
    decay = float(np.exp(-alpha))
    k = (1.0 - decay) ** 2 / (1.0 + 2.0 * alpha * decay - decay * decay)
    a1, a2, a3, a4 = k, k * decay * (alpha - 1.0), k * decay * (alpha + 1.0), -k * decay * decay
    b1, b2 = 2.0 * decay, -decay * decay

    def program(xp: Any) -> Callable[..., Any]:
        def smooth(x: Any) -> Any:
            zeros = xp.numpy.zeros_like(x[0])

            def down(carry: Any, x: Any) -> Any:
                before, y1, y2 = carry
                y = a1 * x + a2 * before + b1 * y1 + b2 * y2
                return (x, y, y1), y

            def up(carry: Any, x: Any) -> Any:
                x1, x2, y1, y2 = carry
                y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
                return (x, x1, y, y1), y

            first = xp.lax.scan(down, (zeros,) * 3, x)[1]
            return first + xp.lax.scan(up, (zeros,) * 4, x, reverse=True)[1]

        return lambda image: smooth(smooth(image).T).T

    def loops(image):
        first, last, found = np.empty_like(image), np.empty_like(image), np.empty_like(image)
        for j in range(columns):
            before = y1 = y2 = 0.0
            for i in range(rows):
                y = a1 * image[i, j] + a2 * before + b1 * y1 + b2 * y2
                before, y2, y1 = image[i, j], y1, y
                first[i, j] = y
            x1 = x2 = y1 = y2 = 0.0
            for i in range(rows - 1, -1, -1):
                y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
                x2, x1, y2, y1 = x1, image[i, j], y1, y
                first[i, j] += y
        for i in range(rows):
            before = y1 = y2 = 0.0
            for j in range(columns):
                y = a1 * first[i, j] + a2 * before + b1 * y1 + b2 * y2
                before, y2, y1 = first[i, j], y1, y
                found[i, j] = y
            x1 = x2 = y1 = y2 = 0.0
            for j in range(columns - 1, -1, -1):
                y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
                x2, x1, y2, y1 = x1, first[i, j], y1, y
                last[i, j] = y
                found[i, j] += y
        return found

    image = np.random.default_rng(0).uniform(size=(rows, columns))
    return Problem((image,), program, loops, as_written=("torch",), loops=True, tolerance=10.0)
