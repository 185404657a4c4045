"""Statistics: resampling, chains, mixtures, densities, ranks, kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import FORWARD, GRADIENT, Problem, workload


@workload(small=(50, 40), normal=(500, 400), large=(5000, 2000), rows=FORWARD)
def bootstrap(count: int, samples: int) -> Problem:
    """Standard error of the mean of {count} numbers from {samples} resamples, randomly drawn."""
    key = np.array([0, 7], np.uint32)

    def program(xp: Any) -> Callable[..., Any]:
        def run(x: Any, key: Any) -> Any:
            places = xp.random.randint(key, (samples, count), 0, count)
            return xp.numpy.std(xp.numpy.mean(x[places], axis=1))

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(x: Any, key: Any) -> Any:
            places = torch.randint(0, count, (samples, count))
            return torch.std(torch.mean(x[places], dim=1))

        return run

    x = np.random.default_rng(0).normal(size=count)
    return Problem(
        (x, key),
        program,
        lambda x, key: np.std(x) / math.sqrt(count),
        torch=torch_program,
        sampling_error=5.0 / math.sqrt(2.0 * samples),
    )


@workload(small=(30, 20), normal=(2000, 100), large=(20_000, 500), rows=FORWARD)
def gibbs(chains: int, steps: int) -> Problem:
    """Gibbs' sampler of two correlated normals: {chains} chains of {steps} steps, own noise."""
    rho = 0.8
    spread = math.sqrt(1.0 - rho * rho)

    def program(xp: Any) -> Callable[..., Any]:
        def run(x: Any, key: Any) -> Any:
            def step(state: Any, key: Any) -> Any:
                noise = xp.random.normal(key, (2, chains), x.dtype)
                a = rho * state[1] + spread * noise[0]
                b = rho * a + spread * noise[1]
                return (a, b), xp.numpy.mean(a * b)

            keys = xp.random.split(key, steps)
            return xp.numpy.mean(xp.lax.scan(step, (x, x), keys)[1][steps // 4 :])

        return run

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(x: Any, key: Any) -> Any:
            b, found = x, []
            for _ in range(steps):
                noise = torch.randn(2, chains, dtype=x.dtype)
                a = rho * b + spread * noise[0]
                b = rho * a + spread * noise[1]
                found.append(torch.mean(a * b))
            return torch.mean(torch.stack(found[steps // 4 :]))

        return run

    # Draws of a chain are correlated: nine times the variance of independent ones is enough.
    error = 5.0 * 3.0 * 1.3 / math.sqrt(chains * steps * 0.75) + 2.0 * 0.4 ** (steps / 4)
    return Problem(
        (np.zeros(chains), np.array([0, 7], np.uint32)),
        program,
        lambda x, key: np.array(rho),
        torch=torch_program,
        sampling_error=error,
    )


@workload(small=(30, 2, 3), normal=(5000, 5, 10), large=(200_000, 10, 20), rows=FORWARD)
def expectation_maximization(count: int, parts: int, steps: int) -> Problem:
    """{steps} steps of expectation and maximization: {count} numbers, {parts} normal parts."""

    def step(xnp: Any, x: Any, means: Any, variances: Any, shares: Any) -> Any:
        apart = x[:, None] - means[None, :]
        logs = xnp.log(shares) - 0.5 * (xnp.log(variances) + apart * apart / variances)
        chances = xnp.exp(logs)
        chances = chances / xnp.sum(chances, 1)[:, None]
        weights = xnp.sum(chances, 0)
        means = x @ chances / weights
        apart = x[:, None] - means[None, :]
        return means, xnp.sum(chances * apart * apart, 0) / weights, weights / count

    def program(xp: Any) -> Callable[..., Any]:
        def run(x: Any, means: Any, variances: Any, shares: Any) -> Any:
            def body(_: Any, state: Any) -> Any:
                return step(xp.numpy, x, *state)

            return xp.lax.fori_loop(0, steps, body, (means, variances, shares))

        return run

    def loop(xnp: Any) -> Callable[..., Any]:
        def run(x: Any, *state: Any) -> Any:
            for _ in range(steps):
                state = step(xnp, x, *state)
            return state

        return run

    rng = np.random.default_rng(0)
    centres = np.linspace(-3.0, 3.0, parts)
    x = rng.choice(centres, count) + 0.5 * rng.normal(size=count)
    arguments = x, centres + 0.3, np.ones(parts), np.full(parts, 1.0 / parts)
    return Problem(arguments, program, loop(np), torch=loop, tolerance=30.0)


@workload(small=(12, 15), normal=(5000, 6000), large=(100_000, 120_000), rows=FORWARD)
def rank_test(n: int, m: int) -> Problem:
    """Mann and Whitney's statistic of {n} and {m} numbers by one sort, ties share their ranks."""

    def formula(xnp: Any, sums: Any) -> Callable[..., Any]:
        def run(x: Any, y: Any) -> Any:
            both = xnp.concatenate([x, y])
            ordered = xnp.sort(both)
            low = xnp.searchsorted(ordered, x, side="left")
            high = xnp.searchsorted(ordered, x, side="right")
            return sums(0.5 * (low + high + 1), x) - n * (n + 1) / 2.0

        return run

    def loops(x, y):
        both = np.sort(np.concatenate((x, y)))
        total = 0.0
        for i in range(n):
            low, high = 0, n + m
            while low < high:
                middle = (low + high) // 2
                if both[middle] < x[i]:
                    low = middle + 1
                else:
                    high = middle
            equal = low
            while equal < n + m and both[equal] == x[i]:
                equal += 1
            total += 0.5 * (low + equal + 1)
        return np.array(total - n * (n + 1) / 2.0)

    rng = np.random.default_rng(0)
    x, y = np.round(rng.normal(size=n), 3), np.round(0.1 + rng.normal(size=m), 3)
    return Problem(
        (x, y),
        lambda xp: formula(xp.numpy, lambda r, x: xp.numpy.sum(r.astype(x.dtype))),
        loops,
        torch=lambda torch: formula(
            _with_concatenate(torch), lambda r, x: torch.sum(r.to(torch.float64)).to(x.dtype)
        ),
        loops=True,
        tolerance=10.0,
    )


def _with_concatenate(torch: Any) -> Any:
    class Names:
        """PyTorch's functions where sorting gives values and searching takes them first."""

        concatenate = staticmethod(torch.cat)

        @staticmethod
        def sort(x: Any) -> Any:
            return torch.sort(x).values

        searchsorted = staticmethod(torch.searchsorted)

    return Names


@workload(small=(8, 3), normal=(200, 8), large=(1500, 16), rows=GRADIENT)
def kernel_ridge(count: int, d: int) -> Problem:
    """Leave-one-out error of kernel ridge regression, {count} points of {d} numbers, by inverse."""

    def formula(xnp: Any, inverse: Any, diagonal: Any) -> Callable[..., Any]:
        def run(x: Any, y: Any, logs: Any) -> Any:
            scaled = x * xnp.exp(logs[:d])
            squares = xnp.sum(scaled * scaled, 1)
            apart = squares[:, None] + squares[None, :] - 2.0 * (scaled @ scaled.T)
            gram = xnp.exp(-0.5 * apart)
            inverted = inverse(gram + xnp.exp(logs[d]) * xnp.eye(count, dtype=x.dtype))
            errors = (inverted @ y) / diagonal(inverted)
            return xnp.mean(errors * errors)

        return run

    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, d))
    arguments = x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=count), -0.5 + np.zeros(d + 1)
    return Problem(
        arguments,
        lambda xp: formula(xp.numpy, xp.numpy.linalg.inv, xp.numpy.diagonal),
        formula(np, np.linalg.inv, np.diagonal),
        argnums=(0, 1, 2),
        torch=lambda torch: formula(torch, torch.linalg.inv, torch.diagonal),
        tolerance=30.0,
    )


@workload(small=(3, 10), normal=(100, 500), large=(1000, 2000), rows=FORWARD)
def metropolis(chains: int, steps: int) -> Problem:
    """Metropolis' chains by `vmap` of `scan` with `cond`: {chains} chains of {steps} steps."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def energy(x: Any) -> Any:
            return (x * x - 1.0) ** 2 + 0.3 * x

        def one(start: Any, moves: Any, draws: Any) -> Any:
            def step(x: Any, given: Any) -> Any:
                move, draw = given
                other = x + move
                accepted = draw < xnp.exp(energy(x) - energy(other))
                x = xp.lax.cond(accepted, lambda: other, lambda: x)
                return x, x

            return xp.lax.scan(step, start, (moves, draws))[1]

        return lambda start, moves, draws: xnp.mean(xp.vmap(one)(start, moves, draws), axis=1)

    def loops(start, moves, draws):
        means = np.empty_like(start)
        for c in range(chains):
            x, s = start[c], 0.0
            for t in range(steps):
                other = x + moves[c, t]
                before = (x * x - 1.0) ** 2 + 0.3 * x
                after = (other * other - 1.0) ** 2 + 0.3 * other
                if draws[c, t] < np.exp(before - after):
                    x = other
                s += x
            means[c] = s / steps
        return means

    rng = np.random.default_rng(0)
    arguments = (
        rng.normal(size=chains),
        rng.normal(size=(chains, steps)),
        rng.uniform(size=(chains, steps)),
    )
    return Problem(arguments, program, loops, loops=True, tolerance=30.0, agreeing=0.9)
