"""Cells and spins on lattices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload

DIRECTIONS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = (4 / 9,) + (1 / 9,) * 4 + (1 / 36,) * 4


@workload(small=(6, 2), normal=(256, 10), large=(2048, 10), rows=FORWARD)
def ising(n: int, sweeps: int) -> Problem:
    """Ising's model on a torus of {n}^2 spins, {sweeps} sweeps in two colours, random flips."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(spins: Any, chances: Any, seed: Any) -> Any:
            i, j = xnp.arange(n, dtype=np.uint32)[:, None], xnp.arange(n, dtype=np.uint32)[None, :]
            colour = (i + j) % 2

            def drawn(step: Any) -> Any:
                """A hash of place and step: numbers in [0, 1)."""
                h = i * np.uint32(n) + j + seed * step.astype(np.uint32)
                h = (h ^ (h >> 16)) * np.uint32(73244475)
                h = (h ^ (h >> 16)) * np.uint32(73244475)
                return ((h ^ (h >> 16)) >> 8).astype(chances.dtype) / 16777216.0

            def half(step: Any, spins: Any) -> Any:
                rows = xnp.roll(spins, 1, 0) + xnp.roll(spins, -1, 0)
                around = rows + xnp.roll(spins, 1, 1) + xnp.roll(spins, -1, 1)
                flips = drawn(step) < chances[(spins * around + 4) // 2]
                here = colour == step.astype(np.uint32) % 2
                return xnp.where(flips & here, -spins, spins)

            return xp.lax.fori_loop(0, 2 * sweeps, half, spins)

        return run

    def loops(spins, chances, seed):
        spins = spins.copy()
        for step in range(2 * sweeps):
            for i in range(n):
                for j in range(n):
                    if (i + j) % 2 == step % 2:
                        h = (i * n + j + np.int64(seed[0]) * step) & 0xFFFFFFFF
                        h = ((h ^ (h >> 16)) * 73244475) & 0xFFFFFFFF
                        h = ((h ^ (h >> 16)) * 73244475) & 0xFFFFFFFF
                        drawn = ((h ^ (h >> 16)) >> 8) / 16777216.0
                        rows = spins[i - 1, j] + spins[(i + 1) % n, j]
                        around = rows + spins[i, j - 1] + spins[i, (j + 1) % n]
                        if drawn < chances[(spins[i, j] * around + 4) // 2]:
                            spins[i, j] = -spins[i, j]
        return spins

    spins = np.sign(np.random.default_rng(0).normal(size=(n, n))).astype(np.int32)
    chances = np.minimum(1.0, np.exp(-0.88 * np.arange(-4.0, 5.0, 2.0)))
    arguments = spins, chances, np.array([2654435769], np.uint32)
    return Problem(arguments, program, loops, loops=True, agreeing=0.99)


@workload(small=(5, 6, 2), normal=(100, 120, 10), large=(600, 800, 10), rows=BOTH)
def lattice_boltzmann(rows: int, columns: int, steps: int) -> Problem:
    """Lattice Boltzmann, nine directions, torus of {rows} x {columns}, {steps} steps: `scan`."""

    def step(xnp: Any, f: Any) -> Any:
        moved = [xnp.roll(f[k], move, (0, 1)) for k, move in enumerate(DIRECTIONS)]
        f = xnp.stack(moved)
        density = xnp.sum(f, 0)
        ux = sum(f[k] * float(move[0]) for k, move in enumerate(DIRECTIONS)) / density
        uy = sum(f[k] * float(move[1]) for k, move in enumerate(DIRECTIONS)) / density
        square = 1.0 - 1.5 * (ux * ux + uy * uy)
        balance = []
        for (cx, cy), weight in zip(DIRECTIONS, WEIGHTS, strict=True):
            along = float(cx) * ux + float(cy) * uy
            balance.append(weight * density * (square + 3.0 * along + 4.5 * along * along))
        return f - 0.6 * (f - xnp.stack(balance))

    def program(xp: Any) -> Callable[..., Any]:
        def run(f: Any) -> Any:
            def body(f: Any, _: Any) -> Any:
                return step(xp.numpy, f), None

            return xp.lax.scan(body, f, None, length=steps)[0]

        return run

    xs, ys = (np.array([move[axis] for move in DIRECTIONS]) for axis in (0, 1))
    weights = np.array(WEIGHTS)

    def loops(f):
        f, g = f.copy(), np.empty_like(f)
        for _ in range(steps):
            for i in range(rows):
                for j in range(columns):
                    density = ux = uy = 0.0
                    for k in range(9):
                        value = f[k, (i - xs[k]) % rows, (j - ys[k]) % columns]
                        g[k, i, j] = value
                        density += value
                        ux += value * xs[k]
                        uy += value * ys[k]
                    ux /= density
                    uy /= density
                    square = 1.0 - 1.5 * (ux * ux + uy * uy)
                    for k in range(9):
                        along = xs[k] * ux + ys[k] * uy
                        balance = square + 3.0 * along + 4.5 * along * along
                        g[k, i, j] -= 0.6 * (g[k, i, j] - weights[k] * density * balance)
            f, g = g, f
        return f

    noise = 0.1 * np.random.default_rng(0).uniform(size=(9, rows, columns))
    f = np.array(WEIGHTS)[:, None, None] * (1.0 + noise)
    return Problem((f,), program, loops, as_written=("torch",), loops=True, tolerance=10.0)


@workload(small=(20, 8), normal=(4096, 256), large=(65_536, 1024), rows=FORWARD)
def elementary_automaton(n: int, steps: int) -> Problem:
    """Rule 110 on a ring of {n} cells, {steps} generations kept, uint8: table look-up in `scan`."""
    rule = np.array([110 >> k & 1 for k in range(8)], np.uint8)

    def program(xp: Any) -> Callable[..., Any]:
        def run(cells: Any, rule: Any) -> Any:
            def step(cells: Any, _: Any) -> Any:
                roll = xp.numpy.roll
                cells = rule[4 * roll(cells, 1) + 2 * cells + roll(cells, -1)]
                return cells, cells

            return xp.lax.scan(step, cells, None, length=steps)[1]

        return run

    def loops(cells, rule):
        history = np.empty((steps, n), np.uint8)
        for t in range(steps):
            for i in range(n):
                left, right = cells[i - 1], cells[(i + 1) % n]
                history[t, i] = rule[4 * left + 2 * cells[i] + right]
            cells = history[t]
        return history

    cells = np.random.default_rng(0).integers(0, 2, n).astype(np.uint8)
    return Problem((cells, rule), program, loops, loops=True)
