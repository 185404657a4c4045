"""Products, decompositions and solutions, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, GRADIENT, Problem, workload

EVERYWHERE = ("torch", "autograd")


def normal(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape) / np.sqrt(shape[-1]) for shape in shapes)


def multiply(a: Any, b: Any) -> Any:
    return a @ b


def product(a: tuple[int, ...], b: tuple[int, ...]) -> Problem:
    return Problem(
        normal(a, b), lambda xp: multiply, multiply, argnums=(0, 1), as_written=EVERYWHERE
    )


@workload(small=(8,), normal=(1000,), large=(3000,), rows=BOTH)
def matmul(n: int) -> Problem:
    """Product of two matrices {n} x {n}."""
    return product((n, n), (n, n))


@workload(small=(8, 6), normal=(2000, 2000), large=(8000, 8000), rows=BOTH)
def matvec(rows: int, columns: int) -> Problem:
    """A matrix {rows} x {columns} times a vector."""
    return product((rows, columns), (columns,))


@workload(small=(5, 3), normal=(20_000, 4), large=(500_000, 4), rows=BOTH)
def small_products(count: int, n: int) -> Problem:
    """{count} products of matrices {n} x {n}."""
    return product((count, n, n), (count, n, n))


@workload(small=(3, 8), normal=(64, 64), large=(256, 128), rows=BOTH)
def batched_products(count: int, n: int) -> Problem:
    """{count} products of matrices {n} x {n}."""
    return product((count, n, n), (count, n, n))


@workload(small=(20, 3), normal=(100_000, 32), large=(1_000_000, 32), rows=BOTH)
def skinny_products(rows: int, columns: int) -> Problem:
    """A matrix {rows} x {columns} times a square one."""
    return product((rows, columns), (columns, columns))


@workload(small=(20, 4), normal=(20_000, 128), large=(200_000, 256), rows=BOTH)
def gram(rows: int, columns: int) -> Problem:
    """x^T x of a matrix {rows} x {columns}."""

    def formula(x: Any) -> Any:
        return x.T @ x

    return Problem(normal((rows, columns)), lambda xp: formula, formula, as_written=EVERYWHERE)


@workload(small=(5, 3), normal=(200, 50), large=(600, 100), rows=BOTH)
def bilinear(n: int, m: int) -> Problem:
    """`einsum` of x ({n} x {m}), a tensor {m} x {m} x {m} and y ({n} x {m})."""
    x, y, w = normal((n, m), (n, m), (m, m, m))

    def formula(xnp: Any) -> Any:
        return lambda x, w, y: xnp.einsum("bi,ijk,bj->bk", x, w, y, **PATHS.get(xnp.__name__, {}))

    return Problem(
        (x, w, y),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1, 2),
        as_written=("torch",),
    )


PATHS = {"numpy": {"optimize": True}}


def positive_definite(n: int) -> np.ndarray:
    (a,) = normal((n, 2 * n))
    return a @ a.T + np.eye(n)


@workload(small=(6,), normal=(400,), large=(1500,), rows=BOTH)
def cholesky(n: int) -> Problem:
    """Log-determinant of a positive definite matrix {n} x {n} by Cholesky."""

    def formula(xnp: Any) -> Any:
        return lambda a: 2.0 * xnp.sum(xnp.log(xnp.diag(xnp.linalg.cholesky(a))))

    return Problem(
        (positive_definite(n),),
        lambda xp: symmetric(xp.numpy, formula(xp.numpy)),
        symmetric(np, formula(np)),
        torch=lambda torch: symmetric(torch, formula(torch)),
        as_written=("autograd",),
        tolerance=10.0,
    )


def symmetric(xnp: Any, function: Any) -> Any:
    """A function of the symmetric part of its argument: what LAPACK reads is half of it."""
    return lambda a: function((a + a.T) / 2)


@workload(small=(6, 2), normal=(400, 8), large=(1500, 16), rows=BOTH)
def solve(n: int, columns: int) -> Problem:
    """Solution of a linear system {n} x {n} with {columns} right-hand sides."""
    (b,) = normal((n, columns))

    def formula(xnp: Any) -> Any:
        return lambda a, b: xnp.linalg.solve(a, b)

    return Problem(
        (positive_definite(n), b),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1),
        as_written=EVERYWHERE,
        tolerance=100.0,
    )


@workload(small=(6, 2), normal=(300, 4), large=(1000, 8), rows=GRADIENT)
def gaussian_process(n: int, features: int) -> Problem:
    """Log-likelihood of a Gaussian process: {n} points of {features} features."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, features)), rng.normal(size=n)
    logs = np.array([0.1, 0.2, -1.0])

    def formula(xnp: Any) -> Any:
        def run(logs: Any, x: Any, y: Any) -> Any:
            length, scale, noise = xnp.exp(logs[0]), xnp.exp(logs[1]), xnp.exp(logs[2])
            squares = xnp.sum(x * x, axis=1)
            distances = squares[:, None] + squares[None, :] - 2.0 * (x @ x.T)
            eye = xnp.eye(n, dtype=x.dtype)
            kernel = scale * xnp.exp(-0.5 * distances / length**2) + (noise + 1e-2) * eye
            factor = xnp.linalg.cholesky(kernel)
            white = xnp.linalg.solve(kernel, y)
            return 0.5 * y @ white + xnp.sum(xnp.log(xnp.diag(factor)))

        return run

    return Problem(
        (logs, x, y), lambda xp: formula(xp.numpy), formula(np), torch=formula, tolerance=100.0
    )


@workload(small=(4, 3), normal=(2000, 6), large=(50_000, 6), rows=BOTH)
def small_solves(count: int, n: int) -> Problem:
    """{count} linear systems {n} x {n}."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(count, n, n)) + 4 * np.eye(n)
    b = rng.normal(size=(count, n, 1))

    def formula(xnp: Any) -> Any:
        return lambda a, b: xnp.linalg.solve(a, b)

    return Problem(
        (a, b),
        lambda xp: formula(xp.numpy),
        formula(np),
        argnums=(0, 1),
        as_written=EVERYWHERE,
        tolerance=100.0,
    )
