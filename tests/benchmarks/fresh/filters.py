"""Filters of signals and of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


@workload(small=(20, 2), normal=(20_000, 4), large=(500_000, 6), rows=BOTH)
def biquads(count: int, sections: int) -> Problem:
    """{count} samples through {sections} recursive sections of second order, by one `scan`."""

    def program(xp: Any) -> Callable[..., Any]:
        def run(x: Any, coefficients: Any) -> Any:
            def step(state: Any, sample: Any) -> Any:
                following = []
                for section, (s1, s2) in enumerate(state):
                    b0, b1, b2, a1, a2 = (coefficients[section, i] for i in range(5))
                    y = b0 * sample + s1
                    following.append((b1 * sample - a1 * y + s2, b2 * sample - a2 * y))
                    sample = y
                return tuple(following), sample

            zero = xp.numpy.zeros_like(x[0])
            return xp.lax.scan(step, ((zero, zero),) * sections, x)[1]

        return run

    def loops(x, coefficients):
        y, state = np.empty_like(x), np.zeros((sections, 2))
        for i in range(count):
            sample = x[i]
            for k in range(sections):
                value = coefficients[k, 0] * sample + state[k, 0]
                feedback = coefficients[k, 3] * value
                state[k, 0] = coefficients[k, 1] * sample - feedback + state[k, 1]
                state[k, 1] = coefficients[k, 2] * sample - coefficients[k, 4] * value
                sample = value
            y[i] = sample
        return y

    rng = np.random.default_rng(0)
    coefficients = np.array([0.3, 0.4, 0.3, -0.6, 0.3]) + 0.05 * rng.normal(size=(sections, 5))
    arguments = rng.normal(size=count), coefficients
    return Problem(arguments, program, loops, argnums=(0, 1), loops=True, tolerance=30.0)


@workload(small=(6, 3, 2), normal=(500, 4, 2), large=(20_000, 8, 4), rows=BOTH)
def kalman(steps: int, states: int, sensors: int) -> Problem:
    """Log-likelihood by Kalman's filter: {steps} steps, {states} states, {sensors} sensors."""

    def step(xnp: Any, solve: Any, a: Any, c: Any, carry: Any, y: Any) -> tuple[Any, Any]:
        mean, p, total = carry
        mean, p = a @ mean, a @ p @ a.T + 0.1 * xnp.eye(states, dtype=a.dtype)
        s = c @ p @ c.T + 0.2 * xnp.eye(sensors, dtype=a.dtype)
        residual, gain = y - c @ mean, solve(s, c @ p).T
        total = total - 0.5 * (residual @ solve(s, residual[:, None])[:, 0])
        total = total - 0.5 * xnp.log(xnp.linalg.det(s))
        return mean + gain @ residual, p - gain @ c @ p, total

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(a: Any, c: Any, y: Any) -> Any:
            def body(carry: Any, y: Any) -> Any:
                return step(xnp, xnp.linalg.solve, a, c, carry, y), None

            start = xnp.zeros_like(a[0]), xnp.eye(states, dtype=a.dtype), xnp.zeros_like(a[0, 0])
            return xp.lax.scan(body, start, y)[0][2]

        return run

    def loop(xnp: Any) -> Callable[..., Any]:
        def run(a: Any, c: Any, y: Any) -> Any:
            start = xnp.zeros_like(a[0]), xnp.eye(states, dtype=a.dtype), xnp.zeros_like(a[0, 0])
            for row in y:
                start = step(xnp, xnp.linalg.solve, a, c, start, row)
            return start[2]

        return run

    rng = np.random.default_rng(0)
    a = 0.9 * np.linalg.qr(rng.normal(size=(states, states)))[0]
    arguments = a, rng.normal(size=(sensors, states)), rng.normal(size=(steps, sensors))
    return Problem(arguments, program, loop(np), argnums=(0, 1, 2), torch=loop, tolerance=100.0)


@workload(small=(40, 3), normal=(4096, 50), large=(65_536, 100), rows=FORWARD)
def particle_filter(count: int, steps: int) -> Problem:
    """Particle filter: {count} particles, {steps} steps, systematic resampling by search."""

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(x: Any, noise: Any, shifts: Any, seen: Any) -> Any:
            def step(x: Any, given: Any) -> Any:
                noise, shift, y = given
                x = 0.8 * x + 0.2 * xnp.sin(x) + noise
                weights = xnp.exp(-0.5 * (y - 0.5 * x) ** 2)
                sums = xnp.cumsum(weights, 0)
                places = (xnp.arange(count, dtype=x.dtype) + shift) / count * sums[-1]
                chosen = xnp.clip(xnp.searchsorted(sums, places), 0, count - 1)
                return x[chosen], xnp.sum(weights * x) / sums[-1]

            return xp.lax.scan(step, x, (noise, shifts, seen))[1]

        return run

    def loops(x, noise, shifts, seen):
        means = np.empty_like(seen)
        x, moved, sums = x.copy(), np.empty_like(x), np.empty_like(x)
        for t in range(steps):
            total, weighted = 0.0, 0.0
            for i in range(count):
                value = 0.8 * x[i] + 0.2 * np.sin(x[i]) + noise[t, i]
                weight = np.exp(-0.5 * (seen[t] - 0.5 * value) ** 2)
                total += weight
                weighted += weight * value
                moved[i], sums[i] = value, total
            means[t] = weighted / total
            at = 0
            for i in range(count):
                place = (i + shifts[t]) / count * total
                while at < count - 1 and sums[at] < place:
                    at += 1
                x[i] = moved[at]
        return means

    rng = np.random.default_rng(0)
    arguments = (
        rng.normal(size=count),
        rng.normal(size=(steps, count)),
        rng.uniform(size=steps),
        rng.normal(size=steps),
    )
    # Rounding decides which particle is chosen where two of them meet.
    return Problem(
        arguments, program, loops, as_written=("torch",), loops=True, tolerance=3000.0, agreeing=0.8
    )


@workload(small=(7, 8), normal=(256, 256), large=(1024, 1024), rows=BOTH)
def median_filter(rows: int, columns: int) -> Problem:
    """Median of 3 x 3 neighbours in an image {rows} x {columns}: sorts of nine numbers."""

    def windows(x: Any) -> list[Any]:
        return [x[i : rows - 2 + i, j : columns - 2 + j] for i in range(3) for j in range(3)]

    def loops(x):
        found, nine = np.empty((rows - 2, columns - 2), x.dtype), np.empty(9, x.dtype)
        for i in range(rows - 2):
            for j in range(columns - 2):
                for k in range(9):
                    value, at = x[i + k // 3, j + k % 3], k
                    while at > 0 and nine[at - 1] > value:
                        nine[at] = nine[at - 1]
                        at -= 1
                    nine[at] = value
                found[i, j] = nine[4]
        return found

    image = np.random.default_rng(0).normal(size=(rows, columns))
    return Problem(
        (image,),
        lambda xp: lambda x: xp.numpy.median(xp.numpy.stack(windows(x)), axis=0),
        loops,
        torch=lambda torch: lambda x: torch.median(torch.stack(windows(x)), dim=0).values,
        loops=True,
    )


@workload(small=(20, 5, 2), normal=(100_000, 21, 3), large=(2_000_000, 41, 4), rows=BOTH)
def savitzky_golay(count: int, taps: int, degree: int) -> Problem:
    """Savitzky and Golay's smoothing of {count} samples: {taps} taps fitted, degree {degree}."""
    places = np.arange(taps) - taps // 2

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(x: Any, at: Any) -> Any:
            powers = xnp.stack([at**k for k in range(degree + 1)], axis=1)
            weights = xnp.linalg.solve(powers.T @ powers, powers.T)[0]
            return xnp.convolve(x, weights[::-1], mode="valid")

        return run

    def reference(x: Any, at: Any) -> Any:
        powers = np.stack([at**k for k in range(degree + 1)], axis=1)
        weights = np.linalg.solve(powers.T @ powers, powers.T)[0]
        return np.lib.stride_tricks.sliding_window_view(x, taps) @ weights

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(x: Any, at: Any) -> Any:
            powers = torch.stack([at**k for k in range(degree + 1)], dim=1)
            weights = torch.linalg.solve(powers.T @ powers, powers.T)[0]
            return torch.conv1d(x[None, None], weights[None, None])[0, 0]

        return run

    arguments = np.random.default_rng(0).normal(size=count), places / (taps / 2.0)
    return Problem(arguments, program, reference, torch=torch_program, tolerance=100.0)


@workload(small=(20, 3), normal=(20_000, 16), large=(200_000, 32), rows=FORWARD)
def adaptive_filter(count: int, taps: int) -> Problem:
    """Least mean squares: {taps} taps that adapt themselves at each of {count} samples."""

    def program(xp: Any) -> Callable[..., Any]:
        def run(x: Any, wanted: Any) -> Any:
            def step(w: Any, n: Any) -> Any:
                window = xp.lax.dynamic_slice(x, (n,), (taps,))
                error = wanted[n] - w @ window
                return w + 0.01 * error * window, error

            return xp.lax.scan(step, xp.numpy.zeros_like(x[:taps]), xp.numpy.arange(count))[1]

        return run

    def loops(x, wanted):
        w, errors = np.zeros_like(x[:taps]), np.empty_like(wanted)
        for n in range(count):
            s = 0.0
            for k in range(taps):
                s += w[k] * x[n + k]
            errors[n] = wanted[n] - s
            for k in range(taps):
                w[k] += 0.01 * errors[n] * x[n + k]
        return errors

    rng = np.random.default_rng(0)
    x = rng.normal(size=count + taps)
    wanted = np.convolve(x, rng.normal(size=taps), mode="valid")[:count] + 0.1
    return Problem((x, wanted), program, loops, loops=True, tolerance=30.0)
