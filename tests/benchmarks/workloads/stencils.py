"""Stencils: loops over steps whose bodies read neighbours, and their gradients.

`heat_3d` and `jacobi_2d` are those of the polybench programs, `horizontal_diffusion` that of
weather models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


def field(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(size=shape)


def repeated(xp: Any, step: Callable[[Any], Any], steps: int) -> Callable[[Any], Any]:
    """So many steps by `scan`."""

    def run(x: Any) -> Any:
        return xp.lax.scan(lambda x, _: (step(x), None), x, None, length=steps)[0]

    return run


def loop(step: Callable[[Any], Any], steps: int) -> Callable[[Any], Any]:
    """So many steps by Python."""

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = step(x)
        return x

    return run


def heat_interior(x: Any) -> Any:
    c = x[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (x[2:, 1:-1, 1:-1] - 2.0 * c + x[:-2, 1:-1, 1:-1])
        + 0.125 * (x[1:-1, 2:, 1:-1] - 2.0 * c + x[1:-1, :-2, 1:-1])
        + 0.125 * (x[1:-1, 1:-1, 2:] - 2.0 * c + x[1:-1, 1:-1, :-2])
        + c
    )


def jacobi_interior(x: Any) -> Any:
    return 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])


def interior_problem(interior: Callable[[Any], Any], x: np.ndarray, steps: int) -> Problem:
    """Steps that give all but the border new values."""
    inner = (slice(1, -1),) * x.ndim

    def np_step(x: Any) -> Any:
        x = x.copy()
        x[inner] = interior(x)
        return x

    def torch_step(x: Any) -> Any:
        y = x.clone()
        y[inner] = interior(x)
        return y

    return Problem(
        (x,),
        lambda xp: repeated(xp, lambda x: x.at[inner].set(interior(x)), steps),
        loop(np_step, steps),
        torch=lambda torch: loop(torch_step, steps),
    )


@workload(small=(3, 6), normal=(20, 80), large=(20, 200), rows=BOTH)
def heat_3d(steps: int, n: int) -> Problem:
    """Heat equation, {steps} steps on a cube of {n}^3."""
    return interior_problem(heat_interior, field(n, n, n), steps)


@workload(small=(3, 8), normal=(50, 512), large=(50, 2000), rows=BOTH)
def jacobi_2d(steps: int, n: int) -> Problem:
    """Jacobi's method, {steps} steps on a square of {n}^2."""
    return interior_problem(jacobi_interior, field(n, n), steps)


@workload(small=(8, 8, 2), normal=(256, 256, 32), large=(512, 512, 64), rows=BOTH)
def horizontal_diffusion(rows: int, columns: int, levels: int) -> Problem:
    """Limited diffusion in the plane, {rows} x {columns} x {levels}."""
    x, coefficient = field(rows + 4, columns + 4, levels), 0.1 + field(rows, columns, levels)

    def formula(where: Any) -> Callable[..., Any]:
        def run(x: Any, coefficient: Any) -> Any:
            around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
            laplace = 4.0 * x[1:-1, 1:-1] - around
            flux_x = laplace[1:, 1:-1] - laplace[:-1, 1:-1]
            slope_x = x[2:-1, 2:-2] - x[1:-2, 2:-2]
            flux_x = where(flux_x * slope_x > 0, 0.0, flux_x)
            flux_y = laplace[1:-1, 1:] - laplace[1:-1, :-1]
            slope_y = x[2:-2, 2:-1] - x[2:-2, 1:-2]
            flux_y = where(flux_y * slope_y > 0, 0.0, flux_y)
            out = flux_x[1:] - flux_x[:-1] + flux_y[:, 1:] - flux_y[:, :-1]
            return x[2:-2, 2:-2] - coefficient * out

        return run

    return Problem(
        (x, coefficient),
        lambda xp: formula(xp.numpy.where),
        formula(np.where),
        argnums=(0, 1),
        torch=lambda torch: formula(torch.where),
        as_written=("autograd",),
        complex_step=True,
    )


def rolled(steps: int, x: np.ndarray, step: Callable[[Any], Callable[[Any], Any]]) -> Problem:
    """Steps on a torus; `step` makes one of a namespace with `roll`."""
    return Problem(
        (x,),
        lambda xp: repeated(xp, step(xp.numpy.roll), steps),
        loop(step(np.roll), steps),
        torch=lambda torch: loop(step(torch.roll), steps),
    )


@workload(small=(3, 8), normal=(100, 100_000), large=(100, 2_000_000), rows=BOTH)
def advection(steps: int, n: int) -> Problem:
    """Upwind advection on a ring, {steps} steps of {n} points."""

    def step(roll: Any) -> Callable[[Any], Any]:
        return lambda x: x - 0.4 * (x - roll(x, 1))

    return rolled(steps, field(n), step)


@workload(small=(3, 8), normal=(50, 512), large=(50, 2000), rows=BOTH)
def diffusion(steps: int, n: int) -> Problem:
    """Reaction and diffusion on a torus, {steps} steps of {n}^2 points."""

    def step(roll: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            around = roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1)
            return x + 0.2 * (around - 4.0 * x) + 0.01 * x * (1.0 - x)

        return run

    return rolled(steps, field(n, n), step)


@workload(small=(3, 8), normal=(50, 512), large=(50, 2000), rows=FORWARD)
def game_of_life(steps: int, n: int) -> Problem:
    """Conway's game of life on a torus, {steps} steps of {n}^2 cells, int32."""
    cells = (field(n, n) < 0.3).astype(np.int32)

    def step(where: Any, roll: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            rows = roll(x, 1, 0) + x + roll(x, -1, 0)
            count = roll(rows, 1, 1) + rows + roll(rows, -1, 1) - x
            return where((count == 3) | ((count == 2) & (x == 1)), 1, 0).astype(np.int32)

        return run

    def torch_step(torch: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            rows = torch.roll(x, 1, 0) + x + torch.roll(x, -1, 0)
            count = torch.roll(rows, 1, 1) + rows + torch.roll(rows, -1, 1) - x
            return ((count == 3) | ((count == 2) & (x == 1))).long()

        return run

    return Problem(
        (cells,),
        lambda xp: repeated(xp, step(xp.numpy.where, xp.numpy.roll), steps),
        loop(step(np.where, np.roll), steps),
        torch=lambda torch: loop(torch_step(torch), steps),
    )


@workload(small=(3, 8), normal=(100, 400), large=(100, 1500), rows=BOTH)
def waves(steps: int, n: int) -> Problem:
    """Wave equation by a padded Laplacian, {steps} steps of {n}^2 points."""
    x = field(n, n)

    def step(laplacian: Any) -> Callable[[Any], Any]:
        def run(pair: Any) -> Any:
            before, now = pair
            return now, 2.0 * now - before + 0.2 * laplacian(now)

        return run

    def laplacian(pad: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            y = pad(x)
            return y[2:, 1:-1] + y[:-2, 1:-1] + y[1:-1, 2:] + y[1:-1, :-2] - 4.0 * x

        return run

    def started(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: run((x, x))[1]

    def torch_pad(torch: Any) -> Callable[[Any], Any]:
        return lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1))

    return Problem(
        (x,),
        lambda xp: started(repeated(xp, step(laplacian(lambda x: xp.numpy.pad(x, 1))), steps)),
        started(loop(step(laplacian(lambda x: np.pad(x, 1))), steps)),
        torch=lambda torch: started(loop(step(laplacian(torch_pad(torch))), steps)),
        tolerance=10.0,
    )
