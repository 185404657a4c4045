"""Diffrax: Robertson's stiff reactions by Kvaerno5, float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def field(t: Any, y: Any, args: Any) -> Any:
    k1, k2, k3 = args
    first = k3 * y[1] * y[2] - k1 * y[0]
    third = k2 * y[1] ** 2
    return jnp.stack([first, -first - third, third])


def make() -> Callable[[], Any]:
    times = jnp.array([0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0])

    @jax.jit
    def run(args: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Kvaerno5(),
            t0=0.0,
            t1=100.0,
            dt0=2e-4,
            y0=jnp.array([1.0, 0.0, 0.0]),
            args=args,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-8),
        ).ys

    args = jnp.array([0.04, 3e7, 1e4])
    return lambda: run(args)
