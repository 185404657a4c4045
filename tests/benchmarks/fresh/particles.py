"""Particles: neighbours in cells, smoothed hydrodynamics, charges on a grid, molecules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


@workload(small=(20, 4), normal=(5000, 32), large=(100_000, 128), rows=FORWARD)
def cell_list(count: int, side: int) -> Problem:
    """Near pairs of {count} points in a square: sorted by {side}^2 cells, neighbours by search."""
    reach = 1.0 / side

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(x: Any, y: Any) -> Any:
            rows, columns = (xnp.minimum(xnp.floor(z * side), side - 1) for z in (x, y))
            cells = (rows * side + columns).astype(np.int32)
            order = xnp.argsort(cells)
            x, y, cells = x[order], y[order], cells[order]
            rows, columns = cells // side, cells % side
            found = xnp.zeros(count, dtype=np.int32)
            most = 24
            for down in (-1, 0, 1):
                row = rows + down
                left = row * side + xnp.maximum(columns - 1, 0)
                right = row * side + xnp.minimum(columns + 1, side - 1)
                first = xnp.searchsorted(cells, left, side="left")
                last = xnp.searchsorted(cells, right, side="right")
                last = xnp.where((row >= 0) & (row < side), last, first)

                def check(k: Any, found: Any, first: Any = first, last: Any = last) -> Any:
                    other = xnp.minimum(first + k, count - 1)
                    near = (x[other] - x) ** 2 + (y[other] - y) ** 2 < reach * reach
                    return found + (near & (first + k < last)).astype(np.int32)

                found = xp.lax.fori_loop(0, 3 * most, check, found)
            return xnp.sum(found - 1)

        return run

    def loops(x, y):
        starts = np.zeros(side * side + 1, np.int64)
        cells, order = np.empty(count, np.int64), np.empty(count, np.int64)
        for i in range(count):
            row, column = min(int(x[i] * side), side - 1), min(int(y[i] * side), side - 1)
            cells[i] = row * side + column
            starts[cells[i] + 1] += 1
        for cell in range(side * side):
            starts[cell + 1] += starts[cell]
        filled = starts.copy()
        for i in range(count):
            order[filled[cells[i]]] = i
            filled[cells[i]] += 1
        pairs = 0
        for i in range(count):
            row, column = cells[i] // side, cells[i] % side
            for r in range(max(row - 1, 0), min(row + 2, side)):
                for c in range(max(column - 1, 0), min(column + 2, side)):
                    for k in range(starts[r * side + c], starts[r * side + c + 1]):
                        j = order[k]
                        if j != i and (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 < reach * reach:
                            pairs += 1
        return np.array(pairs)

    rng = np.random.default_rng(0)
    arguments = rng.uniform(size=count), rng.uniform(size=count)
    return Problem(arguments, program, loops, loops=True, tolerance=10.0)


@workload(small=(12,), normal=(700,), large=(5000,), rows=BOTH)
def smoothed_particles(count: int) -> Problem:
    """Densities and pressure forces of {count} smoothed particles, all pairs, cubic spline."""
    reach = 2.5 / count**0.5

    def kernel(xnp: Any, q: Any) -> Any:
        far, near = xnp.where(q < 2.0, 2.0 - q, 0.0), xnp.where(q < 1.0, 1.0 - q, 0.0)
        return 0.25 * far**3 - near**3

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(x: Any, mass: Any) -> Any:
            apart = x[:, None, :] - x[None, :, :]
            distances = xnp.sqrt(xnp.sum(apart * apart, -1) + 1e-4 * reach * reach)
            q = 2.0 * distances / reach
            density = kernel(xnp, q) @ mass
            pressure = density**2 / 7.0
            far, near = xnp.where(q < 2.0, 2.0 - q, 0.0), xnp.where(q < 1.0, 1.0 - q, 0.0)
            slope = (3.0 * near**2 - 0.75 * far**2) / distances
            terms = pressure / density**2
            pull = mass[None, :] * (terms[:, None] + terms[None, :]) * slope
            return -xnp.sum(pull[:, :, None] * apart, 1)

        return run

    def loops(x, mass):
        density, force = np.zeros_like(mass), np.zeros_like(x)
        for i in range(count):
            for j in range(count):
                dx, dy = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
                q = 2.0 * np.sqrt(dx * dx + dy * dy + 1e-4 * reach * reach) / reach
                if q < 2.0:
                    w = 0.25 * (2.0 - q) ** 3
                    if q < 1.0:
                        w -= (1.0 - q) ** 3
                    density[i] += mass[j] * w
        for i in range(count):
            for j in range(count):
                dx, dy = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
                distance = np.sqrt(dx * dx + dy * dy + 1e-4 * reach * reach)
                q = 2.0 * distance / reach
                if q < 2.0:
                    slope = -0.75 * (2.0 - q) ** 2
                    if q < 1.0:
                        slope += 3.0 * (1.0 - q) ** 2
                    pull = mass[j] * 2.0 / 7.0 * slope / distance
                    force[i, 0] -= pull * dx
                    force[i, 1] -= pull * dy
        return force

    rng = np.random.default_rng(0)
    arguments = rng.uniform(size=(count, 2)), rng.uniform(0.5, 1.5, count)
    return Problem(
        arguments,
        lambda xp: formula(xp.numpy),
        loops,
        argnums=(0, 1),
        as_written=("torch",),
        loops=True,
        tolerance=100.0,
    )


@workload(small=(20, 8, 2), normal=(20_000, 128, 5), large=(500_000, 1024, 5), rows=FORWARD)
def particle_in_cell(count: int, cells: int, steps: int) -> Problem:
    """{count} charges and {cells} cells of a ring, {steps} steps: deposit, field, gather, push."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(x: Any, v: Any) -> Any:
            def step(_: Any, state: Any) -> Any:
                x, v = state
                left = xnp.floor(x)
                part, i = x - left, left.astype(np.int32)
                j = (i + 1) % cells
                charge = xnp.zeros(cells, dtype=x.dtype).at[i].add(1.0 - part).at[j].add(part)
                field = -xnp.cumsum(charge * (cells / count) - 1.0)
                field = field - xnp.mean(field)
                v = v + 0.01 * ((1.0 - part) * field[i] + part * field[j])
                return (x + 0.1 * v) % cells, v

            x, v = xp.lax.fori_loop(0, steps, step, (x, v))
            return v

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(x: Any, v: Any) -> Any:
            for _ in range(steps):
                left = torch.floor(x)
                part, i = x - left, left.long()
                j = (i + 1) % cells
                charge = torch.zeros(cells, dtype=x.dtype)
                charge.index_add_(0, i, 1.0 - part).index_add_(0, j, part)
                field = -torch.cumsum(charge * (cells / count) - 1.0, 0)
                field = field - torch.mean(field)
                v = v + 0.01 * ((1.0 - part) * field[i] + part * field[j])
                x = (x + 0.1 * v) % cells
            return v

        return run

    def loops(x, v):
        x, v = x.copy(), v.copy()
        for _ in range(steps):
            charge = np.zeros_like(x[:cells])
            for k in range(count):
                i = int(x[k])
                part = x[k] - i
                charge[i] += 1.0 - part
                charge[(i + 1) % cells] += part
            field, s, mean = np.empty_like(charge), 0.0, 0.0
            for i in range(cells):
                s -= charge[i] * (cells / count) - 1.0
                field[i] = s
                mean += s / cells
            for k in range(count):
                i = int(x[k])
                part = x[k] - i
                pull = (1.0 - part) * field[i] + part * field[(i + 1) % cells] - mean
                v[k] += 0.01 * pull
                x[k] = (x[k] + 0.1 * v[k]) % cells
        return v

    rng = np.random.default_rng(0)
    arguments = rng.uniform(0.0, cells, count), rng.normal(size=count)
    return Problem(arguments, program, loops, torch=torch_program, loops=True, tolerance=100.0)


@workload(small=(8, 2), normal=(108, 20), large=(500, 50), rows=BOTH)
def molecules(count: int, steps: int) -> Problem:
    """{count} molecules that attract and repel each other in a box, {steps} steps by Verlet."""
    side = (count / 0.8) ** (1.0 / 3.0)
    cutoff = min(2.5, side / 2.0)

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def forces(x: Any) -> Any:
            apart = x[:, None, :] - x[None, :, :]
            apart = apart - side * xnp.round(apart / side)
            squares = xnp.sum(apart * apart, axis=-1)
            near = (squares < cutoff * cutoff) & ~xnp.eye(count, dtype=bool)
            inverse = xnp.where(near, 1.0 / xnp.where(near, squares, 1.0), 0.0)
            sixth = inverse**3
            faded = 24.0 * (1.0 - squares / (cutoff * cutoff)) ** 2
            return xnp.sum((faded * inverse * sixth * (2.0 * sixth - 1.0))[:, :, None] * apart, 1)

        def run(x: Any, v: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                x, v, f = state
                v = v + 0.001 * f
                x = x + 0.002 * v
                f = forces(x)
                return (x, v + 0.001 * f, f), None

            return xp.lax.scan(step, (x, v, forces(x)), None, length=steps)[0][1]

        return run

    def loops(x, v):
        x, v, f = x.copy(), v.copy(), np.empty_like(x)
        for step in range(steps + 1):
            f[:] = 0.0
            for i in range(count):
                for j in range(i):
                    dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
                    dx -= side * np.round(dx / side)
                    dy -= side * np.round(dy / side)
                    dz -= side * np.round(dz / side)
                    square = dx * dx + dy * dy + dz * dz
                    if square < cutoff * cutoff:
                        sixth = 1.0 / (square * square * square)
                        faded = 24.0 * (1.0 - square / (cutoff * cutoff)) ** 2
                        pull = faded * sixth * (2.0 * sixth - 1.0) / square
                        for k, d in enumerate((dx, dy, dz)):
                            f[i, k] += pull * d
                            f[j, k] -= pull * d
            for i in range(count):
                for k in range(3):
                    if step > 0:
                        v[i, k] += 0.001 * f[i, k]
                    if step < steps:
                        v[i, k] += 0.001 * f[i, k]
                        x[i, k] += 0.002 * v[i, k]
        return v

    rng = np.random.default_rng(0)
    n = int(np.ceil(count ** (1.0 / 3.0)))
    lattice = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3)[:count]
    x = (lattice + 0.5 + 0.03 * rng.normal(size=(count, 3))) * side / n
    v = rng.normal(size=(count, 3))
    return Problem(
        (x, v), program, loops, argnums=(0, 1), as_written=("torch",), loops=True, tolerance=300.0
    )
