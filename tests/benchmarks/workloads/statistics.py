"""Models of statistics and finance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, GRADIENT, Problem, workload

EVERYWHERE = ("torch", "autograd")

np_erf = np.vectorize(math.erf, otypes=[np.float64])


@workload(small=(20, 4), normal=(50_000, 100), large=(500_000, 200), rows=GRADIENT)
def logistic_regression(rows: int, features: int) -> Problem:
    """Logistic regression: {rows} observations of {features} features."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(rows, features)), 0.1 * rng.normal(size=features)
    labels = np.sign(rng.normal(size=rows))

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(w: Any, x: Any, labels: Any) -> Any:
            return xnp.mean(xnp.log1p(xnp.exp(-labels * (x @ w)))) + 0.01 * xnp.sum(w * w)

        return run

    return Problem((w, x, labels), lambda xp: formula(xp.numpy), formula(np), as_written=EVERYWHERE)


@workload(small=(20, 4), normal=(1400, 1200), large=(2800, 2400), rows=BOTH)
def correlation(rows: int, columns: int) -> Problem:
    """Correlations between {columns} columns of {rows} numbers."""
    x = np.random.default_rng(0).normal(size=(rows, columns))

    def formula(xnp: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            x = x - xnp.mean(x, axis=0)
            x = x / xnp.sqrt(xnp.sum(x * x, axis=0))
            return x.T @ x

        return run

    return Problem(
        (x,),
        lambda xp: formula(xp.numpy),
        formula(np),
        as_written=EVERYWHERE,
        tolerance=10.0,
    )


@workload(small=(12, 3, 2), normal=(5000, 25, 8), large=(50_000, 25, 16), rows=GRADIENT)
def gaussian_mixture(rows: int, parts: int, d: int) -> Problem:
    """Likelihood of a mixture of {parts} normal distributions: {rows} points of {d} numbers."""
    rng = np.random.default_rng(0)
    x, means = rng.normal(size=(rows, d)), rng.normal(size=(parts, d))
    weights, logs = rng.normal(size=parts), 0.2 * rng.normal(size=(parts, d))
    lower = 0.3 * rng.normal(size=(parts, d, d))

    def formula(xnp: Any, log_sum_exp: Any) -> Callable[..., Any]:
        def run(weights: Any, means: Any, logs: Any, lower: Any, x: Any) -> Any:
            mask = xnp.tril(xnp.ones_like(lower[0]), -1)
            diagonal = xnp.exp(logs)
            centred = x[:, None, :] - means[None, :, :]
            scaled = diagonal * centred + xnp.einsum("kij,nkj->nki", lower * mask, centred)
            inside = weights + xnp.sum(logs, axis=1) - 0.5 * xnp.sum(scaled * scaled, axis=2)
            return xnp.mean(log_sum_exp(inside)) - log_sum_exp(weights[None, :])[0]

        return run

    return Problem(
        (weights, means, logs, lower, x),
        lambda xp: formula(xp.numpy, lambda y: xp.nn.logsumexp(y, axis=1)),
        formula(np, lambda y: np.log(np.sum(np.exp(y - y.max(1)[:, None]), 1)) + y.max(1)),
        argnums=(0, 1, 2, 3),
        torch=lambda torch: formula(torch, lambda y: torch.logsumexp(y, 1)),
        tolerance=10.0,
    )


def options(count: int) -> tuple[np.ndarray, ...]:
    """Spots, strikes, times, rates, volatilities."""
    rng = np.random.default_rng(0)
    bounds = ((80.0, 120.0), (80.0, 120.0), (0.2, 2.0), (0.0, 0.1), (0.1, 0.5))
    return tuple(rng.uniform(low, high, count) for low, high in bounds)


def call_price(xnp: Any, erf: Any) -> Callable[..., Any]:
    """Black and Scholes' price of a European call."""

    def normal(x: Any) -> Any:
        return 0.5 * (1.0 + erf(x / math.sqrt(2.0)))

    def price(s: Any, k: Any, t: Any, r: Any, sigma: Any) -> Any:
        spread = sigma * xnp.sqrt(t)
        d1 = (xnp.log(s / k) + (r + 0.5 * sigma * sigma) * t) / spread
        return s * normal(d1) - k * xnp.exp(-r * t) * normal(d1 - spread)

    return price


@workload(small=(20,), normal=(500_000,), large=(5_000_000,))
def black_scholes(count: int) -> Problem:
    """Prices of {count} European calls."""
    return Problem(
        options(count),
        lambda xp: call_price(xp.numpy, xp.lax.erf),
        call_price(np, np_erf),
        torch=lambda torch: call_price(torch, torch.erf),
        tolerance=10.0,
    )


@workload(small=(20,), normal=(200_000,), large=(5_000_000,))
def greeks(count: int) -> Problem:
    """First derivatives of the prices of {count} European calls in all five arguments."""

    def program(xp: Any) -> Callable[..., Any]:
        return xp.vmap(xp.grad(call_price(xp.numpy, xp.lax.erf), (0, 1, 2, 3, 4)))

    def torch_program(torch: Any) -> Callable[..., Any]:
        price = call_price(torch, torch.erf)

        def run(*arguments: Any) -> Any:
            given = [argument.detach().requires_grad_() for argument in arguments]
            with torch.enable_grad():
                return torch.autograd.grad(price(*given).sum(), given)

        return run

    return Problem(
        options(count),
        program,
        call_price(np, np_erf),
        argnums=(0, 1, 2, 3, 4),
        is_gradient=True,
        torch=torch_program,
    )


@workload(small=(20,), normal=(200_000,), large=(5_000_000,))
def gammas(count: int) -> Problem:
    """Second derivatives of the prices of {count} European calls in the spot."""

    def program(xp: Any) -> Callable[..., Any]:
        return xp.vmap(xp.grad(xp.grad(call_price(xp.numpy, xp.lax.erf))))

    def reference(s: Any, k: Any, t: Any, r: Any, sigma: Any) -> Any:
        spread = sigma * np.sqrt(t)
        d1 = (np.log(s / k) + (r + 0.5 * sigma * sigma) * t) / spread
        return np.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi) / (s * spread)

    return Problem(options(count), program, reference, tolerance=100.0)


@workload(small=(400, 4), normal=(20_000, 50), large=(500_000, 50), rows=BOTH)
def monte_carlo(paths: int, steps: int) -> Problem:
    """Price of an Asian option: {paths} random paths of {steps} steps."""
    key = np.array([0, 42], np.uint32)
    market = np.array([100.0, 0.05, 0.2])

    def payoff(xnp: Any, market: Any, noise: Any) -> Any:
        spot, rate, sigma = market[0], market[1], market[2]
        drift = (rate - 0.5 * sigma * sigma) / steps
        logs = xnp.cumsum(drift + sigma * noise / math.sqrt(steps), axis=1)
        mean = spot * xnp.exp(xnp.mean(logs, axis=1))  # the geometric mean has a known price
        return xnp.exp(-rate) * xnp.mean(xnp.where(mean > 100.0, mean - 100.0, 0.0))

    def program(xp: Any) -> Callable[..., Any]:
        def run(market: Any, key: Any) -> Any:
            noise = xp.random.normal(key, (paths, steps), market.dtype)
            return payoff(xp.numpy, market, noise)

        return run

    def reference(market: Any, key: Any) -> Any:
        spot, rate, sigma = market
        mean = (rate - 0.5 * sigma**2) * (steps + 1) / (2 * steps)
        variance = sigma**2 * (steps + 1) * (2 * steps + 1) / (6 * steps**2)
        d1 = (np.log(spot / 100.0) + mean + variance) / np.sqrt(variance)
        normal = [0.5 * (1 + math.erf(d / math.sqrt(2))) for d in (d1, d1 - np.sqrt(variance))]
        forward = spot * np.exp(mean + variance / 2)
        return np.exp(-rate) * (forward * normal[0] - 100.0 * normal[1])

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(market: Any, key: Any) -> Any:
            return payoff(torch, market, torch.randn(paths, steps, dtype=market.dtype))

        return run

    return Problem(
        (market, key),
        program,
        reference,
        torch=torch_program,
        sampling_error=5.0 / math.sqrt(paths),
    )


@workload(small=(50,), normal=(2_000_000,), large=(20_000_000,), rows=FORWARD)
def random_normal(count: int) -> Problem:
    """Mean square of {count} normal random numbers."""
    key = np.array([0, 42], np.uint32)

    def program(xp: Any) -> Callable[[Any], Any]:
        return lambda key: xp.numpy.mean(xp.random.normal(key, (count,)) ** 2)

    def torch_program(torch: Any) -> Callable[[Any], Any]:
        return lambda key: torch.mean(torch.randn(count) ** 2)

    return Problem(
        (key,),
        program,
        lambda key: np.ones(()),
        torch=torch_program,
        sampling_error=8.0 / math.sqrt(count),
    )


@workload(small=(20, 4), normal=(2000, 16), large=(10_000, 64), rows=BOTH)
def kernel_density(count: int, d: int) -> Problem:
    """Sums of Gaussian kernels between {count} points of {d} numbers."""
    x = np.random.default_rng(0).normal(size=(count, d))

    def formula(xnp: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            squares = xnp.sum(x * x, axis=1)
            distances = squares[:, None] + squares[None, :] - 2.0 * (x @ x.T)
            return xnp.log(xnp.sum(xnp.exp(-0.5 * distances / d), axis=1))

        return run

    return Problem(
        (x,), lambda xp: formula(xp.numpy), formula(np), as_written=EVERYWHERE, tolerance=10.0
    )


@workload(small=(30, 4), normal=(919, 85), large=(100_000, 2000), rows=GRADIENT)
def hierarchical(rows: int, groups: int) -> Problem:
    """Log density of intercepts and slopes of {groups} groups: {rows} observations."""
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(0, groups, size=rows)).astype(np.int32)
    floor = (rng.uniform(size=rows) < 0.2).astype(np.float64)
    level = rng.normal(size=groups)
    y = 1.4 + 0.5 * level[group] - 0.7 * floor + 0.7 * rng.normal(size=rows)
    params = {
        **{name: 0.1 * rng.normal(size=()) for name in ("mu_a", "mu_b", "gamma")},
        **{name: 0.1 * rng.normal(size=()) for name in ("log_a", "log_b", "log_y")},
        **{name: rng.normal(size=groups) for name in ("a", "b")},
    }

    def formula(xnp: Any) -> Callable[..., Any]:
        def run(p: Any, y: Any, floor: Any, level: Any, group: Any) -> Any:
            a = p["mu_a"] + p["gamma"] * level + xnp.exp(p["log_a"]) * p["a"]
            b = p["mu_b"] + xnp.exp(p["log_b"]) * p["b"]
            errors = (y - a[group] - b[group] * floor) * xnp.exp(-p["log_y"])
            density = -0.5 * xnp.sum(errors * errors) - rows * p["log_y"]
            density = density - 0.5 * (xnp.sum(p["a"] * p["a"]) + xnp.sum(p["b"] * p["b"]))
            for name in ("mu_a", "mu_b", "gamma"):
                density = density - 0.5 * p[name] * p[name] / 25.0
            for name in ("log_a", "log_b", "log_y"):  # half-normal scales
                density = density - 0.5 * xnp.exp(2.0 * p[name]) + p[name]
            return density

        return run

    return Problem(
        (params, y, floor, level, group),
        lambda xp: formula(xp.numpy),
        formula(np),
        as_written=EVERYWHERE,
        tolerance=10.0,
    )
