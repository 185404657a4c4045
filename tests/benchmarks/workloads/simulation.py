"""Simulations: ordinary differential equations alone and in ensembles, particles, fractals."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, Problem, workload

STEP = 0.01
ORBIT = (np.array([1.0, 1.0]), np.array([1.5, 1.0, 3.0, 1.0]))
"""Initial populations, and rates."""


def runge_kutta(slope: Callable[[Any, Any], Any], y: Any, p: Any) -> Any:
    """One step of the classical method of fourth order."""
    k1 = slope(y, p)
    k2 = slope(y + STEP / 2 * k1, p)
    k3 = slope(y + STEP / 2 * k2, p)
    k4 = slope(y + STEP * k3, p)
    return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lotka_volterra(stack: Callable[[list[Any]], Any]) -> Callable[[Any, Any], Any]:
    """The slopes of prey and predators, their axis first."""

    def slope(y: Any, p: Any) -> Any:
        return stack([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])

    return slope


def orbit_program(steps: int) -> Callable[[Any], Callable[..., Any]]:
    """Sum of both populations after so many steps."""

    def program(xp: Any) -> Callable[..., Any]:
        slope = lotka_volterra(xp.numpy.stack)

        def run(y: Any, p: Any) -> Any:
            def step(y: Any, _: Any) -> Any:
                return runge_kutta(slope, y, p), None

            return xp.lax.scan(step, y, None, length=steps)[0].sum()

        return run

    return program


def orbit_loop(steps: int, stack: Any) -> Callable[..., Any]:
    slope = lotka_volterra(stack)

    def run(y: Any, p: Any) -> Any:
        for _ in range(steps):
            y = runge_kutta(slope, y, p)
        return y.sum(0)

    return run


@workload(small=(10,), normal=(1000,), large=(10_000,), rows=BOTH)
def orbit(steps: int) -> Problem:
    """Lotka and Volterra's equations by Runge and Kutta, {steps} steps, by `scan`."""
    return Problem(
        ORBIT,
        orbit_program(steps),
        orbit_loop(steps, np.stack),
        argnums=(0, 1),
        torch=lambda torch: orbit_loop(steps, torch.stack),
        tolerance=30.0,
    )


def lanes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Initial populations and rates around those of `ORBIT`."""
    rng = np.random.default_rng(0)
    found = [base * rng.uniform(0.8, 1.2, (count, len(base))) for base in ORBIT]
    return found[0], found[1]


def ensemble_reference(steps: int) -> Callable[..., Any]:
    run = orbit_loop(steps, np.stack)
    return lambda y, p: run(y.T, p.T)


def torch_ensemble(steps: int) -> Callable[[Any], Callable[..., Any]]:
    def program(torch: Any) -> Callable[..., Any]:
        run = orbit_loop(steps, torch.stack)
        return lambda y, p: run(y.T, p.T)

    return program


@workload(small=(5, 10), normal=(1000, 500), large=(20_000, 500))
def ode_ensemble(count: int, steps: int) -> Problem:
    """{count} orbits of Lotka and Volterra at once, {steps} steps: `vmap` of `scan`."""
    return Problem(
        lanes(count),
        lambda xp: xp.vmap(orbit_program(steps)(xp)),
        ensemble_reference(steps),
        torch=torch_ensemble(steps),
        tolerance=30.0,
    )


@workload(small=(5, 10), normal=(1000, 500), large=(20_000, 500))
def ode_ensemble_gradients(count: int, steps: int) -> Problem:
    """Gradients of the ends of {count} orbits, {steps} steps: `vmap` of `grad` of `scan`."""

    def torch_program(torch: Any) -> Callable[..., Any]:
        run = torch_ensemble(steps)(torch)

        def gradients(y: Any, p: Any) -> Any:
            given = [y.detach().requires_grad_(), p.detach().requires_grad_()]
            with torch.enable_grad():
                return torch.autograd.grad(run(*given).sum(), given)

        return gradients

    return Problem(
        lanes(count),
        lambda xp: xp.vmap(xp.grad(orbit_program(steps)(xp), (0, 1))),
        ensemble_reference(steps),
        argnums=(0, 1),
        is_gradient=True,
        torch=torch_program,
        tolerance=30.0,
    )


@workload(small=(6, 5), normal=(2000, 300), large=(50_000, 300))
def adaptive_ensemble(count: int, most: int) -> Problem:
    """{count} square roots by Newton's method until each has converged: `vmap` of `while_loop`."""
    x = np.random.default_rng(0).uniform(0.5, 1000.0, count)

    def program(xp: Any) -> Callable[[Any], Any]:
        def one(x: Any) -> Any:
            def is_open(carry: Any) -> Any:
                y, n = carry
                return (xp.numpy.abs(y * y - x) > 1e-4 * x) & (n < most)

            def step(carry: Any) -> Any:
                y, n = carry
                return 0.5 * (y + x / y), n + 1

            return xp.lax.while_loop(is_open, step, (x, 0))[0]

        return xp.vmap(one)

    def loop(abs_: Any, where: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            y = x
            for _ in range(most):
                is_open = abs_(y * y - x) > 1e-4 * x
                if not is_open.any():
                    break
                y = where(is_open, 0.5 * (y + x / y), y)
            return y

        return run

    return Problem(
        (x,),
        program,
        loop(np.abs, np.where),
        torch=lambda torch: loop(torch.abs, torch.where),
        tolerance=30.0,  # a lane may stop a step earlier or later in float32
    )


@workload(small=(3,), normal=(20,), large=(200,), rows=BOTH, needs=("experimental.ode.odeint",))
def van_der_pol(count: int) -> Problem:
    """Van der Pol's oscillator at {count} times, by steps that adapt themselves: `odeint`."""
    times = np.linspace(0.0, 10.0, count)
    steps = 4000

    def slope(stack: Any) -> Callable[..., Any]:
        return lambda y, t, mu: stack([y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0]])

    def program(xp: Any) -> Callable[..., Any]:
        field = slope(xp.numpy.stack)
        return lambda y, mu, times: xp.experimental.ode.odeint(
            field, y, times, mu, rtol=1e-6, atol=1e-6
        )

    def reference(y: Any, mu: Any, times: Any) -> Any:
        field, h = slope(np.stack), 10.0 / steps
        path = [y]
        for _ in range(steps):
            k1 = field(y, 0, mu)
            k2 = field(y + h / 2 * k1, 0, mu)
            k3 = field(y + h / 2 * k2, 0, mu)
            k4 = field(y + h * k3, 0, mu)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            path.append(y)
        places = times / h
        index = np.minimum(places.astype(int), steps - 1)
        # Cubic polynomials between the steps.
        values = np.stack(path)
        slopes = np.stack([field(v, 0, mu) for v in path]) * h
        x = (places - index)[:, None]
        a, b, m, n = values[index], values[index + 1], slopes[index], slopes[index + 1]
        bend = m + n - 2 * (b - a)
        return a + x * (m + x * ((b - a) - m - bend + x * bend))

    return Problem(
        (np.array([2.0, 0.0]), np.array(1.0), times),
        program,
        reference,
        argnums=(0, 1),
        sampling_error=2e-4,  # the tolerance of the steps, summed over them
    )


def separations(x: Any) -> Any:
    return x[None, :, :] - x[:, None, :]


def gravity(xnp: Any) -> Callable[[Any, Any], Any]:
    """Softened accelerations of all bodies by all others."""

    def run(x: Any, mass: Any) -> Any:
        away = separations(x)
        squares = xnp.sum(away * away, axis=-1) + 0.01
        return xnp.sum(away * (mass[None, :] / (squares * xnp.sqrt(squares)))[:, :, None], axis=1)

    return run


def bodies(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities, masses."""
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(count, 3)), 0.1 * rng.normal(size=(count, 3))
    return x, v, rng.uniform(0.5, 1.5, count) / count


@workload(small=(6,), normal=(512,), large=(2048,), rows=BOTH)
def n_body_force(count: int) -> Problem:
    """Gravity between {count} bodies."""
    x, _, mass = bodies(count)
    return Problem(
        (x, mass),
        lambda xp: gravity(xp.numpy),
        gravity(np),
        argnums=(0, 1),
        as_written=("torch", "autograd"),
        tolerance=10.0,
    )


@workload(small=(5, 3), normal=(128, 100), large=(512, 100), rows=BOTH)
def n_body(count: int, steps: int) -> Problem:
    """Orbits of {count} bodies, {steps} leapfrog steps, by `scan`."""
    h = 0.01

    def leapfrog(force: Any, x: Any, v: Any, mass: Any) -> tuple[Any, Any]:
        v = v + h / 2 * force(x, mass)
        x = x + h * v
        return x, v + h / 2 * force(x, mass)

    def program(xp: Any) -> Callable[..., Any]:
        force = gravity(xp.numpy)

        def run(x: Any, v: Any, mass: Any) -> Any:
            def step(carry: Any, _: Any) -> Any:
                x, v = carry
                return leapfrog(force, x, v, mass), None

            return xp.lax.scan(step, (x, v), None, length=steps)[0][0]

        return run

    def loop(force: Any) -> Callable[..., Any]:
        def run(x: Any, v: Any, mass: Any) -> Any:
            for _ in range(steps):
                x, v = leapfrog(force, x, v, mass)
            return x

        return run

    return Problem(
        bodies(count),
        program,
        loop(gravity(np)),
        argnums=(0, 1, 2),
        torch=lambda torch: loop(gravity(torch)),
        tolerance=30.0,
    )


@workload(small=(6, 5), normal=(300, 100), large=(1000, 100))
def mandelbrot(n: int, most: int) -> Problem:
    """Mandelbrot's set: {n}^2 points, at most {most} steps each: `vmap` of `while_loop`."""
    x, y = np.meshgrid(np.linspace(-2.03, 0.51, n), np.linspace(-1.22, 1.23, n))

    def advanced(cx: Any, cy: Any, zx: Any, zy: Any) -> tuple[Any, Any]:
        return zx * zx - zy * zy + cx, 2.0 * zx * zy + cy

    def program(xp: Any) -> Callable[..., Any]:
        def one(cx: Any, cy: Any) -> Any:
            def is_open(carry: Any) -> Any:
                zx, zy, steps = carry
                return (zx * zx + zy * zy < 4.0) & (steps < most)

            def step(carry: Any) -> Any:
                zx, zy, steps = carry
                return *advanced(cx, cy, zx, zy), steps + 1

            return xp.lax.while_loop(is_open, step, (0.0 * cx, 0.0 * cy, 0))[2]

        return xp.vmap(xp.vmap(one))

    def loop(zeros: Any, where: Any) -> Callable[..., Any]:
        def run(cx: Any, cy: Any) -> Any:
            zx, zy, steps = 0.0 * cx, 0.0 * cy, zeros(cx.shape)
            for _ in range(most):
                is_open = zx * zx + zy * zy < 4.0
                nx, ny = advanced(cx, cy, zx, zy)
                zx, zy = where(is_open, nx, zx), where(is_open, ny, zy)
                steps = steps + is_open
            return steps

        return run

    return Problem(
        (x, y),
        program,
        loop(np.zeros, np.where),
        torch=lambda torch: loop(torch.zeros, torch.where),
        agreeing=0.99,
    )


@workload(small=(4, 5), normal=(1000, 200), large=(50_000, 200), rows=BOTH)
def pendulums(count: int, steps: int) -> Problem:
    """A chain of {count} coupled pendulums, {steps} steps: `fori_loop`."""
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=count), np.zeros(count)
    h = 0.02

    def step(xnp: Any, x: Any, v: Any) -> tuple[Any, Any]:
        pull = xnp.concatenate([x[1:], x[-1:]]) + xnp.concatenate([x[:1], x[:-1]]) - 2.0 * x
        v = v + h * (pull - xnp.sin(x))
        return x + h * v, v

    def program(xp: Any) -> Callable[..., Any]:
        def run(x: Any, v: Any) -> Any:
            body = lambda _, pair: step(xp.numpy, *pair)  # noqa: E731
            return xp.lax.fori_loop(0, steps, body, (x, v))[0]

        return run

    def loop(xnp: Any) -> Callable[..., Any]:
        def run(x: Any, v: Any) -> Any:
            for _ in range(steps):
                x, v = step(xnp, x, v)
            return x

        return run

    return Problem(
        (x, v), program, loop(np), argnums=(0, 1), torch=lambda torch: loop(torch), tolerance=30.0
    )


RATES = np.array([1.0, 3.0, 1.0])
"""Feed and conversion of a Brusselator, and its diffusion in fiftieths: differences step alike."""


def brusselator_slope(cells: int, concatenate: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Two species that react in cells on a line and diffuse between them."""

    def slope(t: Any, y: Any, rates: Any) -> Any:
        u, v = y[:cells], y[cells:]
        one = 0 * y[:1] + 1

        def spread(w: Any, edge: Any) -> Any:
            wide = concatenate([edge, w, edge])
            return 0.02 * rates[2] * (cells + 1) ** 2 * (wide[2:] - 2 * w + wide[:-2])

        reaction = u * u * v
        du = rates[0] + reaction - (rates[1] + 1) * u + spread(u, one)
        return concatenate([du, rates[1] * u - reaction + spread(v, 3 * one)])

    return slope


def brusselator_start(cells: int) -> np.ndarray:
    x = np.arange(1, cells + 1) / (cells + 1)
    return np.concatenate([1 + np.sin(2 * np.pi * x), np.full(cells, 3.0)])


def brusselator_end(xp: Any, cells: int, tolerance: float) -> Callable[[Any, Any], Any]:
    """The values at the end, by BDF."""
    slope = brusselator_slope(cells, xp.numpy.concatenate)

    def end(y: Any, rates: Any) -> Any:
        found = xp.scipy.integrate.solve_ivp(
            slope, (0.0, 1.0), y, "BDF", [1.0], args=(rates,), rtol=tolerance, atol=tolerance / 100
        )
        return found.y[:, 0]

    return end


def scipy_brusselator(cells: int, tolerance: float) -> Callable[[Any, Any], Any]:
    """The same by SciPy, with the pattern of the Jacobian."""
    slope = brusselator_slope(cells, np.concatenate)

    def end(y: Any, rates: Any) -> Any:
        sparse = importlib.import_module("scipy.sparse")
        integrate = importlib.import_module("scipy.integrate")
        line = sparse.diags_array([1.0] * 3, offsets=[-1, 0, 1], shape=(cells, cells))
        pattern = sparse.kron(np.eye(2), line) + sparse.kron(np.ones((2, 2)), np.eye(cells))
        found = integrate.solve_ivp(
            slope, (0.0, 1.0), y, "BDF", [1.0], args=(rates,), rtol=tolerance,
            atol=tolerance / 100, jac_sparsity=pattern,
        )  # fmt: skip
        return found.y[:, 0]

    return end


@workload(small=(40,), normal=(1024,), large=(8192,), needs=("scipy.integrate.solve_ivp",))
def brusselator(cells: int) -> Problem:
    """Brusselator of two species in {cells} cells, by BDF, with sparse Jacobians."""
    return Problem(
        (brusselator_start(cells), RATES),
        lambda xp: brusselator_end(xp, cells, 1e-3),
        scipy_brusselator(cells, 1e-3),
        sampling_error=1e-2,  # a few times the tolerance of the steps
    )


@workload(small=(40,), normal=(1024,), large=(8192,), needs=("scipy.integrate.solve_ivp",))
def brusselator_rates(cells: int) -> Problem:
    """Gradient of the mean at the end of a Brusselator of {cells} cells, by BDF, in its rates."""
    exact = scipy_brusselator(cells, 1e-9)

    def program(xp: Any) -> Callable[..., Any]:
        end = brusselator_end(xp, cells, 1e-3)
        return xp.grad(lambda y, rates: end(y, rates).mean(), 1)

    return Problem(
        (brusselator_start(cells), RATES),
        program,
        lambda y, rates: exact(y, rates).mean(),
        argnums=(1,),
        is_gradient=True,
        sampling_error=2e-2,
    )


def brusselator_plane(cells: int, xnp: Any) -> Callable[..., Any]:
    """Two species that react in the cells of a square and diffuse between them."""

    def slope(t: Any, y: Any, rates: Any) -> Any:
        u, v = y.reshape(2, cells, cells)

        def spread(w: Any, edge: float) -> Any:
            wide = xnp.pad(w, 1, constant_values=edge)
            around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
            return 0.002 * rates[2] * (cells + 1) ** 2 * (around - 4 * w)

        reaction = u * u * v
        du = rates[0] + reaction - (rates[1] + 1) * u + spread(u, 1.0)
        return xnp.stack([du, rates[1] * u - reaction + spread(v, 3.0)]).ravel()

    return slope


def plane_end(xp: Any, cells: int, tolerance: float) -> Callable[[Any, Any], Any]:
    """The values at the end, by BDF."""
    slope = brusselator_plane(cells, xp.numpy)

    def end(y: Any, rates: Any) -> Any:
        found = xp.scipy.integrate.solve_ivp(
            slope, (0.0, 1.0), y, "BDF", [1.0], args=(rates,), rtol=tolerance, atol=tolerance / 100
        )
        return found.y[:, 0]

    return end


def scipy_plane(cells: int, tolerance: float) -> Callable[[Any, Any], Any]:
    """The same by SciPy, with the pattern of the Jacobian."""

    def end(y: Any, rates: Any) -> Any:
        sparse = importlib.import_module("scipy.sparse")
        integrate = importlib.import_module("scipy.integrate")
        line = sparse.diags_array([1.0] * 3, offsets=[-1, 0, 1], shape=(cells, cells))
        plane = sparse.kron(np.eye(cells), line) + sparse.kron(line, np.eye(cells))
        pattern = sparse.kron(np.eye(2), plane) + sparse.kron(np.ones((2, 2)), np.eye(cells**2))
        found = integrate.solve_ivp(
            brusselator_plane(cells, np), (0.0, 1.0), y, "BDF", [1.0], args=(rates,),
            rtol=tolerance, atol=tolerance / 100, jac_sparsity=pattern,
        )  # fmt: skip
        return found.y[:, 0]

    return end


def plane_start(cells: int) -> np.ndarray:
    x = np.arange(1, cells + 1) / (cells + 1)
    start = 1 + np.sin(2 * np.pi * x)[:, None] * np.cos(np.pi * x)
    return np.concatenate([start.ravel(), np.full(cells**2, 3.0)])


@workload(small=(6,), normal=(32,), large=(64,), needs=("scipy.integrate.solve_ivp",))
def brusselator_in_two_dimensions(cells: int) -> Problem:
    """Brusselator of two species on {cells} times {cells} cells, by BDF, with sparse Jacobians."""
    return Problem(
        (plane_start(cells), RATES),
        lambda xp: plane_end(xp, cells, 1e-3),
        scipy_plane(cells, 1e-3),
        sampling_error=1e-2,  # a few times the tolerance of the steps
    )


@workload(small=(6,), normal=(32,), large=(64,), needs=("scipy.integrate.solve_ivp",))
def brusselator_in_two_dimensions_rates(cells: int) -> Problem:
    """Gradient in its rates of the mean at the end of a Brusselator on {cells}x{cells} cells."""
    exact = scipy_plane(cells, 1e-9)

    def program(xp: Any) -> Callable[..., Any]:
        end = plane_end(xp, cells, 1e-3)
        return xp.grad(lambda y, rates: end(y, rates).mean(), 1)

    return Problem(
        (plane_start(cells), RATES),
        program,
        lambda y, rates: exact(y, rates).mean(),
        argnums=(1,),
        is_gradient=True,
        sampling_error=2e-2,
    )


@workload(small=(6,), normal=(32,), large=(64,), needs=("scipy.integrate.solve_ivp",))
def brusselator_rates_in_two_dimensions(cells: int) -> Problem:
    """Gradient of the mean at the end of a Brusselator on {cells} times {cells} cells, by BDF."""
    exact = scipy_plane(cells, 1e-9)

    def program(xp: Any) -> Callable[..., Any]:
        end = plane_end(xp, cells, 1e-3)
        return xp.grad(lambda y, rates: end(y, rates).mean(), 1)

    return Problem(
        (plane_start(cells), RATES),
        program,
        lambda y, rates: exact(y, rates).mean(),
        argnums=(1,),
        is_gradient=True,
        sampling_error=2e-2,
    )
