"""Chains of elementwise operations: bound by memory, or by elementary functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload

EVERYWHERE = ("torch", "autograd")


def vectors(count: int, *n: str) -> tuple[np.ndarray, ...]:
    """Random arguments, a name for each."""
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=count) for _ in n)


@workload(small=(1000,), normal=(4_000_000,), large=(20_000_000,), rows=FORWARD)
def scale(count: int) -> Problem:
    """2 x + 1 of {count} numbers."""

    def program(xp: Any) -> Any:
        return lambda x: 2.0 * x + 1.0

    return Problem(vectors(count, "x"), program, lambda x: 2 * x + 1, as_written=EVERYWHERE)


@workload(small=(1000,), normal=(2_000_000,), large=(20_000_000,), rows=BOTH)
def axpy_chain(count: int) -> Problem:
    """Eight additions and products of four arrays of {count} numbers."""

    def formula(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (a * b + c) * d - (a - b) * (c + 0.5 * d)

    return Problem(
        vectors(count, "a", "b", "c", "d"),
        lambda xp: formula,
        formula,
        argnums=(0, 1, 2, 3),
        as_written=EVERYWHERE,
    )


@workload(small=(1000,), normal=(1_000_000,), large=(20_000_000,), rows=BOTH)
def transcendental_chain(count: int) -> Problem:
    """exp, sin, tanh, log and sqrt of {count} numbers."""

    def formula(xnp: Any) -> Any:
        def run(x: Any) -> Any:
            y = xnp.exp(-0.5 * x * x) * xnp.sin(3.0 * x) + xnp.tanh(x)
            return xnp.log(1.0 + y * y) / xnp.sqrt(1.0 + x * x)

        return run

    return Problem(
        vectors(count, "x"), lambda xp: formula(xp.numpy), formula(np), as_written=EVERYWHERE
    )


@workload(small=(1000,), normal=(1_000_000,), large=(20_000_000,), rows=BOTH)
def trigonometry(count: int) -> Problem:
    """Great-circle distances of {count} pairs of points: sin, cos, arcsin."""
    rng = np.random.default_rng(0)
    latitudes = [rng.uniform(-1.2, 1.2, count) for _ in range(2)]
    longitudes = [rng.uniform(-3.0, 3.0, count) for _ in range(2)]

    def formula(xnp: Any) -> Any:
        def run(lat1: Any, lat2: Any, lon1: Any, lon2: Any) -> Any:
            across = xnp.sin((lat2 - lat1) / 2) ** 2
            along = xnp.cos(lat1) * xnp.cos(lat2) * xnp.sin((lon2 - lon1) / 2) ** 2
            return 2.0 * xnp.arcsin(xnp.sqrt(across + along))

        return run

    return Problem(
        (*latitudes, *longitudes),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1, 2, 3),
        as_written=EVERYWHERE,
        tolerance=30.0,  # antipodes: the derivative of arcsin at 1
    )


@workload(small=(1000,), normal=(2_000_000,), large=(20_000_000,), rows=BOTH)
def huber(count: int) -> Problem:
    """Huber losses of {count} residuals, by `where`."""

    def formula(xnp: Any) -> Any:
        def run(x: Any, y: Any) -> Any:
            r = xnp.abs(x - y)
            return xnp.where(r < 1.0, 0.5 * r * r, r - 0.5)

        return run

    return Problem(
        vectors(count, "x", "y"),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1),
        as_written=EVERYWHERE,
    )


@workload(small=(10, 10), normal=(2000, 2000), large=(6000, 6000), rows=BOTH)
def broadcast_sum(rows: int, columns: int) -> Problem:
    """tanh of a matrix {rows} x {columns}, a row and a column added."""
    rng = np.random.default_rng(0)
    arguments = (rng.normal(size=(rows, columns)), rng.normal(size=columns))
    column = rng.normal(size=(rows, 1))

    def formula(xnp: Any) -> Any:
        return lambda x, row, column: xnp.tanh(x + row + column)

    return Problem(
        (*arguments, column),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1, 2),
        as_written=EVERYWHERE,
    )


@workload(small=(10, 12), normal=(2000, 2000), large=(6000, 6000), rows=BOTH)
def transposed_sum(rows: int, columns: int) -> Problem:
    """A matrix {rows} x {columns} times the transpose of another, element by element."""
    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(rows, columns)), rng.normal(size=(columns, rows))

    def formula(x: Any, y: Any) -> Any:
        return x * y.T + x

    return Problem(arguments, lambda xp: formula, formula, argnums=(0, 1), as_written=EVERYWHERE)
