"""Complex numbers: transforms, waves, circuits, spinors, oscillators, roots.

Arguments and results are real, so that the dtype of a run decides about all numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.workload import BOTH, FORWARD, Problem, workload


@workload(small=(8,), normal=(4096,), large=(262_144,), rows=BOTH)
def stockham(n: int) -> Problem:
    """Fourier transform of {n} numbers by Stockham's stages: `fori_loop` over arrays."""
    stages = n.bit_length() - 1
    order, turns = np.empty((stages, n), np.int32), np.empty((stages, n // 2))
    for stage in range(stages):
        m = 1 << stage
        j, k = np.divmod(np.arange(n // 2), m)
        places = np.concatenate([2 * j * m + k, (2 * j + 1) * m + k])
        order[stage] = np.argsort(places)
        turns[stage] = -2.0 * np.pi * j * m / n

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(re: Any, im: Any, order: Any, cosines: Any, sines: Any) -> Any:
            twiddles = cosines + 1j * sines

            def stage(s: Any, x: Any) -> Any:
                a, b = x[: n // 2], x[n // 2 :]
                return xnp.concatenate([a + b, (a - b) * twiddles[s]])[order[s]]

            x = xp.lax.fori_loop(0, stages, stage, re + 1j * im)
            return xnp.stack([xnp.real(x), xnp.imag(x)])

        return run

    def reference(re: Any, im: Any, order: Any, cosines: Any, sines: Any) -> Any:
        x = np.fft.fft(re + 1j * im)
        return np.stack([x.real, x.imag])

    def torch_program(torch: Any) -> Callable[..., Any]:
        def run(re: Any, im: Any, order: Any, cosines: Any, sines: Any) -> Any:
            x, twiddles = torch.complex(re, im), torch.complex(cosines, sines)
            for s in range(stages):
                a, b = x[: n // 2], x[n // 2 :]
                x = torch.cat([a + b, (a - b) * twiddles[s]])[order[s]]
            return torch.stack([x.real, x.imag])

        return run

    rng = np.random.default_rng(0)
    return Problem(
        (rng.normal(size=n), rng.normal(size=n), order, np.cos(turns), np.sin(turns)),
        program,
        reference,
        argnums=(0, 1),
        torch=torch_program,
        tolerance=10.0,
    )


@workload(small=(16, 2), normal=(1024, 20), large=(65_536, 100), rows=BOTH)
def split_step(n: int, steps: int) -> Problem:
    """Schroedinger's equation on {n} points, {steps} split steps: phases and Fourier transforms."""
    h = 0.01
    kinetic = -0.5j * h * (2.0 * np.pi * np.fft.fftfreq(n, 20.0 / n)) ** 2
    cosines, sines = np.real(np.exp(kinetic)), np.imag(np.exp(kinetic))

    def formula(xnp: Any, loop: Any) -> Callable[..., Any]:
        def run(potential: Any, re: Any, im: Any, cosines: Any, sines: Any) -> Any:
            phase, moved = xnp.exp(-1j * h * potential), cosines + 1j * sines

            def step(psi: Any) -> Any:
                return xnp.fft.ifft(moved * xnp.fft.fft(phase * psi))

            psi = loop(step, re + 1j * im)
            return xnp.real(psi) ** 2 + xnp.imag(psi) ** 2

        return run

    def program(xp: Any) -> Callable[..., Any]:
        def loop(step: Any, psi: Any) -> Any:
            return xp.lax.fori_loop(0, steps, lambda _, psi: step(psi), psi)

        return formula(xp.numpy, loop)

    def python_loop(step: Any, psi: Any) -> Any:
        for _ in range(steps):
            psi = step(psi)
        return psi

    x = np.linspace(-10.0, 10.0, n, endpoint=False)
    packet = np.exp(-0.5 * (x + 2.0) ** 2)
    arguments = 0.5 * x * x, packet * np.cos(3 * x), packet * np.sin(3 * x), cosines, sines
    return Problem(
        arguments,
        program,
        formula(np, python_loop),
        argnums=(0, 1, 2),
        torch=lambda torch: formula(torch, python_loop),
        tolerance=100.0,
    )


@workload(small=(2, 2), normal=(8, 4), large=(14, 6), rows=BOTH)
def quantum_circuit(qubits: int, layers: int) -> Problem:
    """Energy after {layers} layers of turns and controlled phases on {qubits} qubits: `scan`."""

    def formula(xnp: Any, begin: Any, loop: Any) -> Callable[..., Any]:
        def layer(state: Any, angles: Any, signs: Any) -> Any:
            for q in range(qubits):
                state = state.reshape(2**q, 2, -1)
                c, s = xnp.cos(0.5 * angles[q, 0]), xnp.sin(0.5 * angles[q, 0])
                turn = xnp.exp(0.5j * angles[q, 1])
                zero, one = state[:, 0], state[:, 1]
                both = (c * zero - s * one) / turn, (s * zero + c * one) * turn
                state = xnp.stack(both, 1)
            return state.reshape(-1) * signs

        def run(angles: Any, signs: Any, energies: Any) -> Any:
            state = loop(lambda s, a: layer(s, a, signs), begin(signs), angles)
            return xnp.sum((xnp.real(state) ** 2 + xnp.imag(state) ** 2) * energies)

        return run

    def program(xp: Any) -> Callable[..., Any]:
        def loop(step: Any, state: Any, angles: Any) -> Any:
            return xp.lax.scan(lambda s, a: (step(s, a), None), state, angles)[0]

        return formula(xp.numpy, lambda x: xp.numpy.zeros_like(x).at[0].set(1.0) + 0j, loop)

    def python_loop(step: Any, state: Any, angles: Any) -> Any:
        for row in angles:
            state = step(state, row)
        return state

    def unit(x: Any) -> Any:
        return 0.0 * x + 0j + (np.arange(2**qubits) == 0)

    def torch_program(torch: Any) -> Callable[..., Any]:
        def begin(x: Any) -> Any:
            state = torch.zeros_like(x)
            state[0] = 1.0
            return state + 0j

        return formula(torch, begin, python_loop)

    bits = np.arange(2**qubits)[:, None] >> np.arange(qubits) & 1
    signs = np.prod(1.0 - 2.0 * bits * np.roll(bits, 1, 1), 1)
    energies = np.sum((1.0 - 2.0 * bits) * (1.0 - 2.0 * np.roll(bits, 1, 1)), 1)
    angles = np.random.default_rng(0).normal(size=(layers, qubits, 2))
    return Problem(
        (angles, signs, energies),
        program,
        formula(np, unit, python_loop),
        torch=torch_program,
        tolerance=30.0,
    )


@workload(small=(8, 3), normal=(2000, 100), large=(100_000, 100), rows=BOTH)
def dirac(n: int, steps: int) -> Problem:
    """Dirac's equation in one dimension on a ring of {n} points, {steps} steps: complex `scan`."""
    h, mass = 0.4, 0.3

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def run(re: Any, im: Any, potential: Any) -> Any:
            phase = xnp.exp(-1j * h * potential)

            def step(state: Any, _: Any) -> Any:
                up, down = state
                up = phase * (up - h * (up - xnp.roll(up, 1)) - 1j * h * mass * down)
                down = phase * (down + h * (xnp.roll(down, -1) - down) - 1j * h * mass * up)
                return (up, down), None

            start = re + 1j * im, im - 1j * re
            up, down = xp.lax.scan(step, start, None, length=steps)[0]
            return xnp.real(up * xnp.conj(up)) + xnp.real(down * xnp.conj(down))

        return run

    def loops(re, im, potential):
        up, down, moved = re + 1j * im, im - 1j * re, re + 1j * im
        phase = np.exp(-1j * h * potential)
        for _ in range(steps):
            for i in range(n):
                value = up[i] - h * (up[i] - up[i - 1]) - 1j * h * mass * down[i]
                moved[i] = phase[i] * value
            for i in range(n):
                up[i] = moved[i]
            first = down[0]
            for i in range(n):
                following = down[i + 1] if i < n - 1 else first
                value = down[i] + h * (following - down[i]) - 1j * h * mass * up[i]
                down[i] = phase[i] * value
        found = np.empty_like(re)
        for i in range(n):
            found[i] = up[i].real ** 2 + up[i].imag ** 2 + down[i].real ** 2 + down[i].imag ** 2
        return found

    rng = np.random.default_rng(0)
    arguments = rng.normal(size=n), rng.normal(size=n), rng.uniform(size=n)
    return Problem(
        arguments,
        program,
        loops,
        argnums=(0, 1, 2),
        as_written=("torch",),
        loops=True,
        tolerance=30.0,
    )


@workload(small=(5, 3), normal=(2000, 50), large=(100_000, 100), rows=BOTH)
def oscillators(count: int, steps: int) -> Problem:
    """{count} complex oscillators drawn to their mean, {steps} steps of Runge and Kutta."""
    h, pull = 0.02, 0.5

    def formula(xnp: Any, loop: Any) -> Callable[..., Any]:
        def run(re: Any, im: Any, rates: Any) -> Any:
            def slope(z: Any) -> Any:
                square = xnp.real(z) ** 2 + xnp.imag(z) ** 2
                return (1.0 - square + 1j * rates) * z + pull * (xnp.mean(z) - z)

            def step(z: Any) -> Any:
                k1 = slope(z)
                k2 = slope(z + 0.5 * h * k1)
                k3 = slope(z + 0.5 * h * k2)
                k4 = slope(z + h * k3)
                return z + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

            z = loop(step, re + 1j * im)
            return xnp.stack([xnp.real(z), xnp.imag(z)])

        return run

    def program(xp: Any) -> Callable[..., Any]:
        def loop(step: Any, z: Any) -> Any:
            return xp.lax.fori_loop(0, steps, lambda _, z: step(z), z)

        return formula(xp.numpy, loop)

    def python_loop(step: Any, z: Any) -> Any:
        for _ in range(steps):
            z = step(z)
        return z

    rng = np.random.default_rng(0)
    return Problem(
        tuple(rng.normal(size=count) for _ in range(3)),
        program,
        formula(np, python_loop),
        argnums=(0, 1, 2),
        torch=lambda torch: formula(torch, python_loop),
        tolerance=30.0,
    )


@workload(small=(6, 8), normal=(200, 30), large=(1000, 50), rows=FORWARD)
def newton_fractal(n: int, most: int) -> Problem:
    """Roots of z^3 = 1 by Newton from {n}^2 points, at most {most} steps: `vmap`, `while_loop`."""
    x, y = np.meshgrid(np.linspace(-1.5, 1.4, n), np.linspace(-1.3, 1.6, n))

    def program(xp: Any) -> Callable[..., Any]:
        xnp = xp.numpy

        def one(x: Any, y: Any) -> Any:
            def is_far(state: Any) -> Any:
                z, count = state
                rest = z * z * z - 1.0
                return (xnp.real(rest) ** 2 + xnp.imag(rest) ** 2 > 1e-6) & (count < most)

            def step(state: Any) -> Any:
                z, count = state
                return z - (z * z * z - 1.0) / (3.0 * z * z), count + 1

            return xp.lax.while_loop(is_far, step, (x + 1j * y, 0))[1]

        return xp.vmap(xp.vmap(one))

    def loops(x, y):
        found = np.empty((n, n), np.int32)
        for i in range(n):
            for j in range(n):
                z, count = complex(x[i, j], y[i, j]), 0
                while count < most:
                    rest = z * z * z - 1.0
                    if rest.real**2 + rest.imag**2 <= 1e-6:
                        break
                    z = z - rest / (3.0 * z * z)
                    count += 1
                found[i, j] = count
        return found

    return Problem((x, y), program, loops, loops=True, agreeing=0.99)
