"""Stencils and sweeps of weather codes and of fields in boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, Problem, workload


def fields(count: int, *shape: int) -> tuple[np.ndarray, ...]:
    """Uniform numbers in [0, 1)."""
    rng = np.random.default_rng(0)
    return tuple(rng.uniform(size=shape) for _ in range(count))


@workload(small=(5, 3, 4), normal=(60, 64, 64), large=(80, 256, 256), rows=BOTH)
def vertical_advection(levels: int, rows: int, columns: int) -> Problem:
    """Implicit vertical advection, {levels} levels of {rows} x {columns}: sweeps down and up."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(u: Any, w: Any) -> Any:
            def down(carry: Any, level: Any) -> Any:
                c, d = carry
                velocity, value = level
                a = -0.25 * velocity
                scale = 1.0 / (1.0 + a * (1.0 - c))
                carry = -a * scale, (value - a * (d + 0.1)) * scale
                return carry, carry

            zeros = xnp.zeros_like(u[0])
            _, (c, d) = xp.lax.scan(down, (zeros, zeros), (w, u))

            def up(x: Any, level: Any) -> Any:
                x = level[1] - level[0] * x
                return x, x

            return xp.lax.scan(up, zeros, (c, d), reverse=True)[1]

        return run

    def loops(u, w):
        c, d, x = np.empty_like(u), np.empty_like(u), np.empty_like(u)
        for k in range(levels):
            for i in range(rows):
                for j in range(columns):
                    a = -0.25 * w[k, i, j]
                    c0 = c[k - 1, i, j] if k > 0 else 0.0
                    d0 = d[k - 1, i, j] if k > 0 else 0.0
                    scale = 1.0 / (1.0 + a * (1.0 - c0))
                    c[k, i, j] = -a * scale
                    d[k, i, j] = (u[k, i, j] - a * (d0 + 0.1)) * scale
        for k in range(levels - 1, -1, -1):
            for i in range(rows):
                for j in range(columns):
                    above = x[k + 1, i, j] if k < levels - 1 else 0.0
                    x[k, i, j] = d[k, i, j] - c[k, i, j] * above
        return x

    arguments = fields(2, levels, rows, columns)
    return Problem(
        arguments, program, loops, argnums=(0, 1), as_written=("torch",), loops=True, tolerance=10.0
    )


@workload(small=(6, 7, 2), normal=(256, 256, 10), large=(1500, 1500, 10), rows=BOTH)
def limited_advection(rows: int, columns: int, steps: int) -> Problem:
    """Advection with van Leer's limiter, {rows} x {columns} on a torus, {steps} steps."""
    cx, cy = 0.3, 0.2

    def flux(xnp: Any, q: Any, c: float, axis: int) -> Any:
        behind, ahead = q - xnp.roll(q, 1, axis), xnp.roll(q, -1, axis) - q
        both = behind * ahead
        slope = xnp.where(both > 0.0, 2.0 * both / xnp.where(both > 0.0, behind + ahead, 1.0), 0.0)
        return c * (q + 0.5 * (1.0 - c) * slope)

    def step(xnp: Any, q: Any) -> Any:
        for axis, c in ((0, cx), (1, cy)):
            f = flux(xnp, q, c, axis)
            q = q - f + xnp.roll(f, 1, axis)
        return q

    def program(xp: Any) -> Callable[..., Any]:
        return lambda q: xp.lax.fori_loop(0, steps, lambda _, q: step(xp.numpy, q), q)

    def loops(q):
        q, f = q.copy(), np.empty_like(q)
        for _ in range(steps):
            for i in range(rows):
                for j in range(columns):
                    behind, ahead = q[i, j] - q[i - 1, j], q[(i + 1) % rows, j] - q[i, j]
                    both = behind * ahead
                    slope = 2.0 * both / (behind + ahead) if both > 0.0 else 0.0
                    f[i, j] = cx * (q[i, j] + 0.5 * (1.0 - cx) * slope)
            for i in range(rows):
                for j in range(columns):
                    q[i, j] += f[i - 1, j] - f[i, j]
            for i in range(rows):
                for j in range(columns):
                    behind, ahead = q[i, j] - q[i, j - 1], q[i, (j + 1) % columns] - q[i, j]
                    both = behind * ahead
                    slope = 2.0 * both / (behind + ahead) if both > 0.0 else 0.0
                    f[i, j] = cy * (q[i, j] + 0.5 * (1.0 - cy) * slope)
            for i in range(rows):
                for j in range(columns):
                    q[i, j] += f[i, j - 1] - f[i, j]
        return q

    x, y = np.meshgrid(np.arange(columns) / columns, np.arange(rows) / rows)
    q = 1.0 + 0.5 * np.sin(6.28 * x) * np.cos(12.6 * y) + 0.1 * fields(1, rows, columns)[0]
    return Problem((q,), program, loops, as_written=("torch",), loops=True, tolerance=30.0)


@workload(small=(6, 3), normal=(200, 20), large=(1000, 20), rows=BOTH)
def shallow_water(n: int, steps: int) -> Problem:
    """Shallow water on a staggered torus, {n}^2 cells, {steps} steps: `scan` of three fields."""
    h, g = 0.1, 1.0

    def step(xnp: Any, u: Any, v: Any, e: Any) -> tuple[Any, Any, Any]:
        u = u - h * g * (xnp.roll(e, -1, 0) - e)
        v = v - h * g * (xnp.roll(e, -1, 1) - e)
        x = 0.5 * (e + xnp.roll(e, -1, 0)) * u
        y = 0.5 * (e + xnp.roll(e, -1, 1)) * v
        e = e - h * (x - xnp.roll(x, 1, 0) + y - xnp.roll(y, 1, 1))
        return u, v, e

    def program(xp: Any) -> Callable[..., Any]:
        def run(u: Any, v: Any, e: Any) -> Any:
            def body(state: Any, _: Any) -> Any:
                return step(xp.numpy, *state), None

            return xp.lax.scan(body, (u, v, e), None, length=steps)[0][2]

        return run

    def loops(u, v, e):
        u, v, e, x, y = u.copy(), v.copy(), e.copy(), np.empty_like(u), np.empty_like(v)
        for _ in range(steps):
            for i in range(n):
                for j in range(n):
                    below, right = e[(i + 1) % n, j], e[i, (j + 1) % n]
                    u[i, j] -= h * g * (below - e[i, j])
                    v[i, j] -= h * g * (right - e[i, j])
                    x[i, j] = 0.5 * (e[i, j] + below) * u[i, j]
                    y[i, j] = 0.5 * (e[i, j] + right) * v[i, j]
            for i in range(n):
                for j in range(n):
                    e[i, j] -= h * (x[i, j] - x[i - 1, j] + y[i, j] - y[i, j - 1])
        return e

    u, v, e = (0.1 * field for field in fields(3, n, n))
    return Problem(
        (u, v, 1.0 + e),
        program,
        loops,
        argnums=(0, 1, 2),
        as_written=("torch",),
        loops=True,
        tolerance=10.0,
    )


@workload(small=(5, 6, 3), normal=(200, 240, 20), large=(1000, 1200, 20), rows=BOTH)
def fdtd_2d(rows: int, columns: int, steps: int) -> Problem:
    """Maxwell's equations in two dimensions, {rows} x {columns}, {steps} steps (PolyBench)."""

    def program(xp: Any) -> Callable[..., Any]:
        def run(ex: Any, ey: Any, hz: Any, source: Any) -> Any:
            def step(t: Any, state: Any) -> Any:
                ex, ey, hz = state
                ey = ey.at[0].set(source[t])
                ey = ey.at[1:].add(-0.5 * (hz[1:] - hz[:-1]))
                ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
                curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
                return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

            return xp.lax.fori_loop(0, steps, step, (ex, ey, hz))[2]

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(ex: Any, ey: Any, hz: Any, source: Any) -> Any:
            ex, ey, hz = ex.clone(), ey.clone(), hz.clone()
            for t in range(steps):
                ey[0] = source[t]
                ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
                ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
                hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
            return hz

        return run

    def loops(ex, ey, hz, source):
        ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
        for t in range(steps):
            for j in range(columns):
                ey[0, j] = source[t]
            for i in range(1, rows):
                for j in range(columns):
                    ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
            for i in range(rows):
                for j in range(1, columns):
                    ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
            for i in range(rows - 1):
                for j in range(columns - 1):
                    curl = ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j]
                    hz[i, j] -= 0.7 * curl
        return hz

    source = np.sin(0.3 * np.arange(steps))
    return Problem(
        (*fields(3, rows, columns), source),
        program,
        loops,
        argnums=(0, 1, 2, 3),
        torch=torch_program,
        loops=True,
        tolerance=10.0,
    )


@workload(small=(5, 2), normal=(64, 10), large=(200, 10), rows=BOTH)
def heat_buffers(n: int, steps: int) -> Problem:
    """Heat equation in three dimensions, a cube of {n}^3, two buffers, {steps} pairs of steps."""

    def interior(x: Any) -> Any:
        middle = x[1:-1, 1:-1, 1:-1]
        rows = x[2:, 1:-1, 1:-1] - 2.0 * middle + x[:-2, 1:-1, 1:-1]
        columns = x[1:-1, 2:, 1:-1] - 2.0 * middle + x[1:-1, :-2, 1:-1]
        levels = x[1:-1, 1:-1, 2:] - 2.0 * middle + x[1:-1, 1:-1, :-2]
        return middle + 0.125 * (rows + columns + levels)

    def program(xp: Any) -> Callable[..., Any]:
        inside = (slice(1, -1),) * 3

        def run(a: Any, b: Any) -> Any:
            def pair(_: Any, buffers: Any) -> Any:
                a, b = buffers
                b = b.at[inside].set(interior(a))
                return a.at[inside].set(interior(b)), b

            return xp.lax.fori_loop(0, steps, pair, (a, b))[0]

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(a: Any, b: Any) -> Any:
            for _ in range(steps):
                b = b.clone()
                b[1:-1, 1:-1, 1:-1] = interior(a)
                a = a.clone()
                a[1:-1, 1:-1, 1:-1] = interior(b)
            return a

        return run

    def loops(a, b):
        a, b = a.copy(), b.copy()
        for step in range(2 * steps):
            x, y = (a, b) if step % 2 == 0 else (b, a)
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    for k in range(1, n - 1):
                        s = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k]
                        s += x[i, j, k - 1] + x[i, j, k + 1] - 6.0 * x[i, j, k]
                        y[i, j, k] = x[i, j, k] + 0.125 * s
        return a

    (a,) = fields(1, n, n, n)
    return Problem((a, a.copy()), program, loops, argnums=(0, 1), torch=torch_program, loops=True)


@workload(small=(20,), normal=(100_000,), large=(2_000_000,), rows=BOTH)
def saturation_adjustment(count: int) -> Problem:
    """Temperature and cloud water in balance at {count} points: six steps by Newton's method."""

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(t: Any, q: Any, p: Any) -> Any:
            found = t
            for _ in range(6):
                vapour = 610.78 * xnp.exp(17.27 * (found - 273.16) / (found - 35.86))
                saturated = 0.622 * vapour / (p - 0.378 * vapour)
                slope = saturated * 17.27 * 237.3 / (found - 35.86) ** 2
                excess = found - t - 2490.0 * (q - saturated)
                found = found - excess / (1.0 + 2490.0 * slope)
            return found

        return run

    def loops(t, q, p):
        result = np.empty_like(t)
        for i in range(count):
            found = t[i]
            for _ in range(6):
                vapour = 610.78 * np.exp(17.27 * (found - 273.16) / (found - 35.86))
                saturated = 0.622 * vapour / (p[i] - 0.378 * vapour)
                slope = saturated * 17.27 * 237.3 / (found - 35.86) ** 2
                excess = found - t[i] - 2490.0 * (q[i] - saturated)
                found -= excess / (1.0 + 2490.0 * slope)
            result[i] = found
        return result

    rng = np.random.default_rng(0)
    arguments = tuple(
        rng.uniform(*bounds, count) for bounds in ((280.0, 300.0), (0.005, 0.02), (9e4, 1e5))
    )
    return Problem(
        arguments,
        lambda xp: formula(xp.numpy),
        loops,
        argnums=(0, 1, 2),
        as_written=("torch",),
        loops=True,
        tolerance=30.0,
    )
