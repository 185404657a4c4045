"""Kernels of linear algebra and physics, from PolyBench and the Livermore loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload

ALPHA, BETA = 1.5, 1.2


def normal(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Normal numbers, divided by the root of the last axis, so that products keep magnitudes."""
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape) / np.sqrt(shape[-1]) for shape in shapes)


@workload(small=(5,), normal=(600,), large=(3000,), rows=BOTH)
def gemver(n: int) -> Problem:
    """Two updates of rank one and two products with vectors, a matrix {n} x {n} (PolyBench)."""

    def formula(a: Any, u1: Any, v1: Any, u2: Any, v2: Any, y: Any, z: Any) -> Any:
        updated = a + u1[:, None] * v1[None, :] + u2[:, None] * v2[None, :]
        return ALPHA * (updated @ (BETA * (updated.T @ y) + z))

    def loops(a, u1, v1, u2, v2, y, z):
        updated, x, w = np.empty_like(a), np.empty_like(y), np.zeros_like(y)
        for i in range(n):
            for j in range(n):
                updated[i, j] = a[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
        for i in range(n):
            x[i] = z[i]
        for j in range(n):
            for i in range(n):
                x[i] += BETA * updated[j, i] * y[j]
        for i in range(n):
            for j in range(n):
                w[i] += ALPHA * updated[i, j] * x[j]
        return w

    arguments = normal((n, n), *[(n,)] * 6)
    numbers = tuple(range(7))
    return Problem(
        arguments, lambda xp: formula, loops, argnums=numbers, as_written=("torch",), loops=True
    )


@workload(small=(6, 4), normal=(1000, 900), large=(4000, 3900), rows=FORWARD)
def bicg(n: int, m: int) -> Problem:
    """A matrix {n} x {m} and its transpose times a vector each (PolyBench)."""

    def loops(a, p, r):
        s, q = np.zeros_like(p), np.zeros_like(r)
        for i in range(n):
            for j in range(m):
                s[j] += r[i] * a[i, j]
                q[i] += a[i, j] * p[j]
        return s, q

    return Problem(
        normal((n, m), (m,), (n,)),
        lambda xp: lambda a, p, r: (a.T @ r, a @ p),
        loops,
        as_written=("torch",),
        loops=True,
    )


@workload(small=(6, 4), normal=(300, 200), large=(1200, 1000), rows=BOTH)
def syrk(n: int, m: int) -> Problem:
    """Lower triangle of an update of rank {m} of a matrix {n} x {n} (PolyBench)."""

    def formula(xnp: Any) -> Callable[..., Any]:
        return lambda a, c: xnp.tril(ALPHA * (a @ a.T) + BETA * c)

    def loops(a, c):
        found = np.zeros_like(c)
        for i in range(n):
            for j in range(i + 1):
                s = 0.0
                for k in range(m):
                    s += a[i, k] * a[j, k]
                found[i, j] = ALPHA * s + BETA * c[i, j]
        return found

    return Problem(
        normal((n, m), (n, n)),
        lambda xp: formula(xp.numpy),
        loops,
        argnums=(0, 1),
        as_written=("torch",),
        loops=True,
    )


@workload(small=(6, 4), normal=(240, 200), large=(1200, 1000), rows=BOTH)
def trmm(n: int, m: int) -> Problem:
    """A unit triangular matrix {n} x {n}, transposed, times a matrix {n} x {m} (PolyBench)."""

    def formula(xnp: Any) -> Callable[..., Any]:
        return lambda a, b: ALPHA * (b + xnp.tril(a, -1).T @ b)

    def loops(a, b):
        found = np.empty_like(b)
        for i in range(n):
            for j in range(m):
                s = b[i, j]
                for k in range(i + 1, n):
                    s += a[k, i] * b[k, j]
                found[i, j] = ALPHA * s
        return found

    return Problem(
        normal((n, n), (n, m)),
        lambda xp: formula(xp.numpy),
        loops,
        argnums=(0, 1),
        as_written=("torch",),
        loops=True,
    )


@workload(small=(3, 4, 5), normal=(40, 50, 60), large=(140, 150, 160), rows=BOTH)
def doitgen(r: int, q: int, p: int) -> Problem:
    """{r} x {q} vectors of {p} numbers times a matrix (multi-resolution kernel of PolyBench)."""

    def formula(xnp: Any) -> Callable[..., Any]:
        return lambda a, c: xnp.einsum("rqp,ps->rqs", a, c)

    def loops(a, c):
        found = np.zeros_like(a)
        for i in range(r):
            for j in range(q):
                for k in range(p):
                    for s in range(p):
                        found[i, j, s] += a[i, j, k] * c[k, s]
        return found

    return Problem(
        normal((r, q, p), (p, p)),
        lambda xp: formula(xp.numpy),
        loops,
        argnums=(0, 1),
        as_written=("torch",),
        loops=True,
    )


@workload(small=(6, 4), normal=(400, 160), large=(1400, 1200), rows=BOTH)
def covariance(n: int, m: int) -> Problem:
    """Covariances between {m} columns of {n} numbers (PolyBench)."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            centred = x - xnp.mean(x, axis=0)
            return centred.T @ centred / (n - 1.0)

        return run

    def loops(x):
        centred, found = np.empty_like(x), np.empty((m, m), x.dtype)
        for j in range(m):
            s = 0.0
            for i in range(n):
                s += x[i, j]
            for i in range(n):
                centred[i, j] = x[i, j] - s / n
        for j in range(m):
            for k in range(j, m):
                s = 0.0
                for i in range(n):
                    s += centred[i, j] * centred[i, k]
                found[j, k] = found[k, j] = s / (n - 1)
        return found

    arguments = normal((n, m))
    return Problem(
        arguments, lambda xp: formula(xp.numpy), loops, as_written=("torch",), loops=True
    )


@workload(small=(20,), normal=(200_000,), large=(5_000_000,), rows=BOTH)
def equation_of_state(n: int) -> Problem:
    """Fragment of an equation of state at {n} points, neighbours up to 6 away (Livermore 7)."""
    q, r, t = 0.5, 0.2, 0.1

    def formula(u: Any, y: Any, z: Any) -> Any:
        far = u[6 : n + 6] + q * (u[5 : n + 5] + q * u[4 : n + 4])
        near = u[3 : n + 3] + r * (u[2 : n + 2] + r * u[1 : n + 1])
        return u[:n] + r * (z + r * y) + t * (near + t * far)

    def loops(u, y, z):
        x = np.empty_like(y)
        for k in range(n):
            near = u[k + 3] + r * (u[k + 2] + r * u[k + 1])
            far = u[k + 6] + q * (u[k + 5] + q * u[k + 4])
            x[k] = u[k] + r * (z[k] + r * y[k]) + t * (near + t * far)
        return x

    rng = np.random.default_rng(0)
    arguments = tuple(rng.normal(size=size) for size in (n + 6, n, n))
    return Problem(
        arguments,
        lambda xp: formula,
        loops,
        argnums=(0, 1, 2),
        as_written=("torch",),
        loops=True,
    )


@workload(small=(5,), normal=(60_000,), large=(2_000_000,), rows=BOTH)
def predictors(n: int) -> Problem:
    """Predictor of an integration: {n} rows of 13 numbers, columns weighted (Livermore 9)."""
    weights = 0.1 * np.random.default_rng(1).normal(size=8)

    def formula(p: Any, w: Any) -> Any:
        found = p[:, 2] + 5.0 * (p[:, 4] + p[:, 5])
        for k in range(7, -1, -1):
            found = found + w[k] * p[:, 5 + k]
        return found

    def loops(p, w):
        found = np.empty_like(p[:, 0])
        for i in range(n):
            s = p[i, 2] + 5.0 * (p[i, 4] + p[i, 5])
            for k in range(7, -1, -1):
                s += w[k] * p[i, 5 + k]
            found[i] = s
        return found

    table = np.random.default_rng(0).normal(size=(n, 13))
    return Problem(
        (table, weights),
        lambda xp: formula,
        loops,
        argnums=(0, 1),
        as_written=("torch",),
        loops=True,
    )
