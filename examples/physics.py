"""Derivatives of simulations: fitting an equation to data, and an orbit computed from its energy.

*Predators and prey.* Lotka and Volterra's equations

    da/dt = p0 a - p1 a b,      db/dt = p2 a b - p3 b

are integrated by a Runge-Kutta method in a compiled loop, `scan`. From noisy observations of both
populations, the Levenberg-Marquardt method finds the four rates and the two initial populations.
The Jacobian of the whole simulation is `jacfwd` through the loop.

*Two bodies.* The equations of motion are the derivatives of the energy H(q, p), by `grad`: dq/dt =
dH/dp, dp/dt = -dH/dq. The leapfrog method keeps the energy within a narrow band for all time. After
the period given by Kepler's third law, the bodies return to their starting points. Run it with

    python examples/physics.py

It prints the rates and errors and writes `physics.png`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import funcgrad as fg
import program

# Predators and prey.

RATES = np.array([1.1, 0.4, 0.1, 0.4])
BEGINNING = np.array([10.0, 5.0])
GUESS = np.array([0.8, 0.3, 0.15, 0.5, 8.0, 6.0])
TIME_STEP = 0.05
TOLERANCE = 1e-8


def slope(state: Any, rates: Any) -> Any:
    """The change of prey and predators per unit of time."""
    prey, hunters = state
    met = prey * hunters
    return np.stack([rates[0] * prey - rates[1] * met, rates[2] * met - rates[3] * hunters])


def simulate(params: Any, steps: int) -> Any:
    """The populations (steps, 2) for the parameters (6,): rates and beginning."""
    rates, start, h = params[:4], params[4:], TIME_STEP

    def runge_kutta(state: Any, _: None) -> tuple[Any, Any]:
        k1 = slope(state, rates)
        k2 = slope(state + h / 2 * k1, rates)
        k3 = slope(state + h / 2 * k2, rates)
        k4 = slope(state + h * k3, rates)
        after = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return after, after

    return fg.lax.scan(runge_kutta, start, None, length=steps)[1]


def observe(steps: int, noise: float, seed: int) -> np.ndarray:
    """What a biologist counts: the true populations (steps, 2), each with an error."""
    truth = np.asarray(simulate(np.concatenate([RATES, BEGINNING]), steps))
    return truth + noise * np.random.default_rng(seed).normal(size=truth.shape)


def levenberg_marquardt(
    residuals: Callable[[Any], Any], params: np.ndarray, iterations: int
) -> tuple[np.ndarray, list[float]]:
    """Least squares: Newton's method with J'J for the Hessian, held back while it is not good.

    Args:
        residuals: Of the parameters; the sum of its squares becomes small.
        params: Where to begin.
        iterations: How often a step is tried at most.

    Returns:
        The parameters, and the sum of squares after every iteration.
    """

    @fg.jit
    def linearised(params: Any) -> tuple[Any, Any]:
        return residuals(params).ravel(), fg.jacfwd(lambda p: residuals(p).ravel())(params)

    damping, history = 1e-2, []
    errors, jacobian = linearised(params)
    for _ in range(iterations):
        normal = jacobian.T @ jacobian
        matrix = normal + damping * np.diag(np.diag(normal))
        change = np.linalg.solve(matrix, jacobian.T @ errors)
        tried = params - change
        tried_errors, tried_jacobian = linearised(tried)
        is_better = np.sum(tried_errors**2) < np.sum(errors**2)
        if is_better:
            params, errors, jacobian = tried, tried_errors, tried_jacobian
        damping *= 0.2 if is_better else 5.0
        history.append(float(np.sum(errors**2)))
        if np.linalg.norm(change) < TOLERANCE * np.linalg.norm(params):
            break
    return params, history


# Two bodies.

MASSES = np.array([1.0, 0.3])
SEMI_MAJOR_AXIS, ECCENTRICITY = 1.0, 0.5
STEPS_PER_ORBIT = 2000


def energy(q: Any, p: Any) -> Any:
    """Kinetic and potential energy of two bodies at q (2, 2) with momenta p (2, 2); G = 1."""
    kinetic = np.sum(p**2 / (2 * MASSES[:, None]))
    distance = np.sqrt(np.sum((q[0] - q[1]) ** 2))
    return kinetic - MASSES[0] * MASSES[1] / distance


def at_perihelion() -> tuple[np.ndarray, np.ndarray]:
    """Places and momenta where the bodies are nearest, in the frame of their centre of mass."""
    total = MASSES.sum()
    distance = SEMI_MAJOR_AXIS * (1 - ECCENTRICITY)
    speed = np.sqrt(total * (1 + ECCENTRICITY) / distance)
    shares = np.array([MASSES[1], -MASSES[0]])[:, None] / total
    momenta = MASSES[:, None] * shares * np.array([[0.0, speed]])
    return shares * np.array([[distance, 0.0]]), momenta


def period() -> float:
    """Kepler's third law."""
    return float(2 * np.pi * np.sqrt(SEMI_MAJOR_AXIS**3 / MASSES.sum()))


def leapfrog(q: Any, p: Any, orbits: int) -> tuple[Any, Any]:
    """Places and momenta, (steps, 2, 2) each, at the end of every step."""
    h = period() / STEPS_PER_ORBIT
    force, velocity = fg.grad(lambda q, p: -energy(q, p)), fg.grad(energy, argnums=1)

    def step(state: Any, _: None) -> tuple[Any, Any]:
        q, p = state
        p = p + h / 2 * force(q, p)
        q = q + h * velocity(q, p)
        p = p + h / 2 * force(q, p)
        return (q, p), (q, p)

    return fg.lax.scan(step, (q, p), None, length=orbits * STEPS_PER_ORBIT)[1]


def angular_momentum(q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """About the centre, for every time (steps,)."""
    return np.sum(q[..., 0] * p[..., 1] - q[..., 1] * p[..., 0], axis=-1)


# The pictures.


@dataclass(frozen=True)
class Result:
    """What was found.

    Args:
        params: Rates and beginning, fitted.
        history: The sum of squares after every iteration.
        energy_error: The largest relative error of the energy.
        momentum_error: The largest relative error of the angular momentum.
        gap: The distance between the bodies' places after the last period and at the start.
    """

    params: np.ndarray
    history: list[float]
    energy_error: float
    momentum_error: float
    gap: float


def plot(
    observed: np.ndarray, params: np.ndarray, q: np.ndarray, drift: np.ndarray, path: Path
) -> None:
    """Draw the fit, the orbits and the error of the energy."""
    figure, ((left, middle, right),) = program.panels(1, 3, 12, 3.8, width_ratios=(3, 2, 2))
    times = TIME_STEP * np.arange(1, len(observed) + 1)
    fitted = simulate(params, len(observed))
    for column, (name, color) in enumerate((("prey", "tab:green"), ("predators", "tab:red"))):
        left.plot(times[::10], observed[::10, column], "o", color=color, alpha=0.4, markersize=4)
        left.plot(times, fitted[:, column], color=color, label=name)
    left.set(title="observed and fitted", xlabel="time", ylabel="population")
    left.legend()
    for body, color in enumerate(("tab:orange", "tab:blue")):
        middle.plot(*q[:, body].T, color=color, linewidth=0.8, label=f"mass {MASSES[body]}")
    middle.plot(0, 0, "k+")
    middle.set(title="orbits", aspect="equal")
    middle.legend(loc="upper right", fontsize=8)
    right.plot(np.arange(1, len(drift) + 1) / STEPS_PER_ORBIT, drift, linewidth=0.8)
    right.set(title="energy", xlabel="orbits", ylabel="relative error")
    program.save(figure, path)


# The command line.


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a bad value ends the program with a message and exit code 2."""
    parser = program.parser("Fit an equation to data; follow two bodies.", "physics.png")
    parser.add_argument(
        "--steps", type=program.whole(20), default=1000, metavar="N", help="observations"
    )
    parser.add_argument("--noise", type=program.not_negative, default=0.01, metavar="SIGMA")
    parser.add_argument("--iterations", type=program.whole(1), default=50, metavar="N")
    parser.add_argument("--orbits", type=program.whole(1), default=20, metavar="N")
    parser.add_argument("--seed", type=program.whole(0), default=0, metavar="N")
    return program.parse(parser, arguments)


def run(args: argparse.Namespace) -> Result:
    """Fit, follow, draw."""
    observed = observe(args.steps, args.noise, args.seed)
    start = time.perf_counter()
    params, history = levenberg_marquardt(
        lambda params: simulate(params, args.steps) - observed, GUESS, args.iterations
    )
    print(f"fitted in {time.perf_counter() - start:.2f} s, {len(history)} iterations")
    names = ("p0", "p1", "p2", "p3", "prey", "predators")
    for name, found, true in zip(names, params, (*RATES, *BEGINNING), strict=True):
        print(f"  {name:9} {found:9.5f}   true {true:7.3f}   error {abs(found - true):.1e}")

    q0, p0 = at_perihelion()
    start = time.perf_counter()
    q, p = fg.jit(leapfrog, static_argnums=2)(q0, p0, args.orbits)
    print(f"{args.orbits} orbits, {len(q)} steps in {time.perf_counter() - start:.2f} s")
    before = float(energy(q0, p0))
    drift = np.asarray(fg.vmap(energy)(q, p)) / before - 1
    turning = angular_momentum(q, p) / angular_momentum(q0, p0) - 1
    result = Result(
        params,
        history,
        energy_error=float(np.max(np.abs(drift))),
        momentum_error=float(np.max(np.abs(turning))),
        gap=float(np.linalg.norm(q[-1] - q0)),
    )
    print(
        f"  energy within {result.energy_error:.1e}, angular momentum {result.momentum_error:.1e}"
    )
    print(f"  after {args.orbits} periods {result.gap:.1e} from where they began")
    plot(observed, params, q, drift, args.output)
    return result


if __name__ == "__main__":
    run(parse_arguments())
