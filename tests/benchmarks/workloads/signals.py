"""Signals: transforms, filters, interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, Problem, workload


@workload(small=(16, 5), normal=(200_000, 1000), large=(4_000_000, 10_000), rows=BOTH)
def fft_convolution(count: int, taps: int) -> Problem:
    """{count} samples convolved with {taps} by FFT."""
    rng = np.random.default_rng(0)
    n = 1 << (count + taps - 1).bit_length()

    def formula(fft: Any) -> Callable[..., Any]:
        def run(x: Any, w: Any) -> Any:
            return fft.irfft(fft.rfft(x, n) * fft.rfft(w, n), n)[: count + taps - 1]

        return run

    return Problem(
        (rng.normal(size=count), rng.normal(size=taps)),
        lambda xp: formula(xp.numpy.fft),
        formula(np.fft),
        argnums=(0, 1),
        torch=lambda torch: formula(torch.fft),
        tolerance=30.0,
    )


@workload(small=(8, 8), normal=(512, 512), large=(2048, 2048), rows=BOTH)
def fft_filter(rows: int, columns: int) -> Problem:
    """Low-pass filter of an image {rows} x {columns} by two-dimensional FFT."""
    image = np.random.default_rng(0).normal(size=(rows, columns))
    frequencies = np.fft.fftfreq(rows)[:, None] ** 2 + np.fft.fftfreq(columns)[None, :] ** 2
    mask = np.exp(-50.0 * frequencies)

    def formula(xnp: Any, fft: Any) -> Callable[..., Any]:
        return lambda x, mask: xnp.real(fft.ifft2(fft.fft2(x) * mask))

    return Problem(
        (image, mask),
        lambda xp: formula(xp.numpy, xp.numpy.fft),
        formula(np, np.fft),
        torch=lambda torch: formula(torch, torch.fft),
        tolerance=30.0,
    )


@workload(small=(30, 5), normal=(500_000, 32), large=(10_000_000, 32), rows=BOTH)
def moving_average(count: int, taps: int) -> Problem:
    """{count} samples, a weighted average of {taps} neighbours: slices added."""
    rng = np.random.default_rng(0)

    def formula(x: Any, w: Any) -> Any:
        n = count - taps + 1
        found = x[:n] * w[0]
        for i in range(1, taps):
            found = found + x[i : i + n] * w[i]
        return found

    return Problem(
        (rng.normal(size=count), rng.normal(size=taps) / taps),
        lambda xp: formula,
        formula,
        argnums=(0, 1),
        as_written=("torch", "autograd"),
        tolerance=10.0,
    )


@workload(small=(10, 30), normal=(1000, 500_000), large=(100_000, 5_000_000), rows=BOTH)
def interpolation(knots: int, count: int) -> Problem:
    """{count} values of a linear interpolation between {knots} knots."""
    rng = np.random.default_rng(0)
    at, x = np.linspace(0.0, 1.0, knots), rng.uniform(0.01, 0.99, count)

    def program(xp: Any) -> Callable[..., Any]:
        return lambda values, x, at: xp.numpy.interp(x, at, values)

    return Problem(
        (rng.normal(size=knots), x, at),
        program,
        lambda values, x, at: np.interp(x, at, values),
        tolerance=100.0,  # a slope of the knots' distance multiplies the rounding of x
    )


@workload(small=(8, 3), normal=(20_000, 8), large=(1_000_000, 8), rows=BOTH)
def recursive_filter(count: int, channels: int) -> Problem:
    """Recursive filter of second order: {count} samples of {channels} channels, by `scan`."""
    rng = np.random.default_rng(0)
    b, a = np.array([0.2, 0.3, 0.2]), np.array([-0.5, 0.2])

    def step(b: Any, a: Any, carry: Any, x: Any) -> tuple[Any, Any]:
        s1, s2 = carry
        y = b[0] * x + s1
        return (b[1] * x - a[0] * y + s2, b[2] * x - a[1] * y), y

    def program(xp: Any) -> Callable[..., Any]:
        def run(b: Any, a: Any, x: Any) -> Any:
            zeros = xp.numpy.zeros_like(x[0])
            return xp.lax.scan(lambda c, x: step(b, a, c, x), (zeros, zeros), x)[1]

        return run

    def reference(b: Any, a: Any, x: Any) -> Any:
        carry, found = (np.zeros(channels), np.zeros(channels)), np.empty_like(x)
        for number, row in enumerate(x):
            carry, found[number] = step(b, a, carry, row)
        return found

    return Problem(
        (b, a, rng.normal(size=(count, channels))),
        program,
        reference,
        argnums=(0, 1, 2),
        tolerance=10.0,
    )
