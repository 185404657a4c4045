"""Prices of options: trees, paths with regressions, random variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


@workload(small=(3, 8), normal=(64, 200), large=(1000, 1000), rows=BOTH)
def binomial_tree(count: int, steps: int) -> Problem:
    """{count} American puts by a tree of {steps} steps, backwards: `vmap` of `fori_loop`."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def one(spot: Any, sigma: Any, places: Any) -> Any:
            up = xnp.exp(sigma / math.sqrt(steps))
            discount = math.exp(-0.05 / steps)
            chance = (1.0 / discount - 1.0 / up) / (up - 1.0 / up)

            def value(level: Any) -> Any:
                moves = 2.0 * places - level
                return xnp.maximum(100.0 - spot * xnp.exp(moves * sigma / math.sqrt(steps)), 0.0)

            def back(k: Any, prices: Any) -> Any:
                level = steps - 1 - k
                above = xnp.concatenate([prices[1:], prices[-1:]])
                kept = discount * (chance * above + (1.0 - chance) * prices)
                return xnp.maximum(kept, value(xnp.asarray(level).astype(places.dtype)))

            return xp.lax.fori_loop(0, steps, back, value(float(steps)))[0]

        return xp.vmap(one, (0, 0, None))

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(spots: Any, sigmas: Any, places: Any) -> Any:
            move = sigmas[:, None] / math.sqrt(steps)
            up, discount = torch.exp(move), math.exp(-0.05 / steps)
            chance = (1.0 / discount - 1.0 / up) / (up - 1.0 / up)
            prices = 100.0 - spots[:, None] * torch.exp((2.0 * places - steps) * move)
            prices = torch.clamp(prices, min=0.0)
            for level in range(steps - 1, -1, -1):
                kept = discount * (chance * prices[:, 1:] + (1.0 - chance) * prices[:, :-1])
                moves = (2.0 * places[: level + 1] - level) * move
                prices = torch.maximum(kept, 100.0 - spots[:, None] * torch.exp(moves))
            return prices[:, 0]

        return run

    def loops(spots, sigmas, places):
        found, prices = np.empty_like(spots), np.empty(steps + 1)
        for option in range(count):
            spot, move = spots[option], sigmas[option] / math.sqrt(steps)
            up = math.exp(move)
            discount = math.exp(-0.05 / steps)
            chance = (1.0 / discount - 1.0 / up) / (up - 1.0 / up)
            for i in range(steps + 1):
                prices[i] = max(100.0 - spot * math.exp((2 * i - steps) * move), 0.0)
            for level in range(steps - 1, -1, -1):
                for i in range(level + 1):
                    kept = discount * (chance * prices[i + 1] + (1.0 - chance) * prices[i])
                    prices[i] = max(kept, 100.0 - spot * math.exp((2 * i - level) * move))
            found[option] = prices[0]
        return found

    rng = np.random.default_rng(0)
    arguments = rng.uniform(90.0, 110.0, count), rng.uniform(0.15, 0.4, count)
    return Problem(
        (*arguments, np.arange(steps + 1.0)),
        program,
        loops,
        argnums=(0, 1),
        torch=torch_program,
        loops=True,
        tolerance=100.0,
    )


@workload(small=(50, 4), normal=(10_000, 25), large=(200_000, 50), rows=FORWARD)
def least_squares_monte_carlo(paths: int, steps: int) -> Problem:
    """An American put from {paths} paths of {steps} steps: regressions backwards (Longstaff)."""
    discount = math.exp(-0.06 / steps)

    def back(xnp: Any, cash: Any, spot: Any) -> Any:
        cash = cash * discount
        gain = xnp.where(spot < 1.0, 1.0 - spot, 0.0)
        inside = xnp.where(gain > 0.0, 1.0, 0.0 * spot)
        basis = xnp.stack([xnp.ones_like(spot), spot, spot * spot], 1) * inside[:, None]
        ridge = 1e-3 * xnp.eye(3, dtype=spot.dtype)
        weights = xnp.linalg.solve(basis.T @ basis + ridge, (basis.T @ cash)[:, None])[:, 0]
        return xnp.where((gain > 0.0) & (gain > basis @ weights), gain, cash)

    def walks(xnp: Any, noise: Any) -> Any:
        drift = (0.06 - 0.02) / steps
        return xnp.exp(xnp.cumsum(drift + 0.2 / math.sqrt(steps) * noise, 0))

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(noise: Any) -> Any:
            spots = walks(xnp, noise)
            cash = xnp.where(spots[-1] < 1.0, 1.0 - spots[-1], 0.0)
            step = lambda cash, spot: (back(xnp, cash, spot), None)  # noqa: E731
            cash = xp.lax.scan(step, cash, spots[:-1], reverse=True)[0]
            return discount * xnp.mean(cash)

        return run

    def loop(xnp: Any) -> Callable[..., Any]:
        def run(noise: Any) -> Any:
            spots = walks(xnp, noise)
            cash = xnp.where(spots[-1] < 1.0, 1.0 - spots[-1], 0.0)
            for k in range(steps - 2, -1, -1):
                cash = back(xnp, cash, spots[k])
            return discount * xnp.mean(cash)

        return run

    noise = np.random.default_rng(0).normal(size=(steps, paths))
    # Rounding decides about exercise where both values are nearly equal.
    return Problem((noise,), program, loop(np), torch=loop, tolerance=300.0)


@workload(small=(2000, 8), normal=(20_000, 50), large=(500_000, 100), rows=FORWARD)
def heston(paths: int, steps: int) -> Problem:
    """A call under Heston's random variance: {paths} random paths of {steps} steps, by `scan`."""
    kappa, theta, xi, rho = 2.0, 0.04, 0.3, -0.7
    h = 1.0 / steps

    def step(xnp: Any, log: Any, variance: Any, first: Any, second: Any) -> tuple[Any, Any]:
        positive = xnp.where(variance > 0.0, variance, 0.0)
        root = xnp.sqrt(positive * h)
        log = log - 0.5 * positive * h + root * first
        mixed = rho * first + math.sqrt(1.0 - rho * rho) * second
        return log, variance + kappa * (theta - positive) * h + xi * root * mixed

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(start: Any, key: Any) -> Any:
            def body(state: Any, key: Any) -> Any:
                noise = xp.random.normal(key, (2, paths), start.dtype)
                return step(xnp, *state, noise[0], noise[1]), None

            keys = xp.random.split(key, steps)
            zeros = xnp.zeros(paths, dtype=start.dtype)
            log, _ = xp.lax.scan(body, (zeros, zeros + start), keys)[0]
            return xnp.mean(xnp.maximum(xnp.exp(log) - 1.0, 0.0))

        return run

    def reference(start: Any, key: Any) -> Any:
        """The integral of the characteristic function, in Lewis' form."""
        u = np.linspace(0.0, 200.0, 20_001)
        z = u - 0.5j
        d = np.sqrt((rho * xi * 1j * z - kappa) ** 2 + xi * xi * (1j * z + z * z))
        g = (kappa - rho * xi * 1j * z - d) / (kappa - rho * xi * 1j * z + d)
        decay = np.exp(-d)
        a = kappa - rho * xi * 1j * z - d
        c = kappa * theta / xi**2 * (a - 2.0 * np.log((1.0 - g * decay) / (1.0 - g)))
        phi = np.exp(c + start * a / xi**2 * (1.0 - decay) / (1.0 - g * decay))
        integrand = np.real(phi) / (u * u + 0.25)
        return 1.0 - np.sum(0.5 * (integrand[1:] + integrand[:-1])) * (u[1] - u[0]) / np.pi

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(start: Any, key: Any) -> Any:
            log = torch.zeros(paths, dtype=start.dtype)
            variance = log + start
            for _ in range(steps):
                noise = torch.randn(2, paths, dtype=start.dtype)
                log, variance = step(torch, log, variance, noise[0], noise[1])
            return torch.mean(torch.clamp(torch.exp(log) - 1.0, min=0.0))

        return run

    return Problem(
        (np.array(0.04), np.array([0, 7], np.uint32)),
        program,
        reference,
        torch=torch_program,
        sampling_error=8.0 / math.sqrt(paths) + 0.5 / steps**2,
    )
