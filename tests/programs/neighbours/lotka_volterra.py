"""Diffrax: Lotka-Volterra by Tsit5, 50 points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp

PARAMETERS = (0.1, 0.02, 0.4, 0.02)


def field(t: Any, y: Any, args: Any) -> Any:
    a, b, c, d = args
    return jnp.stack([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])


def solve(y0: Any, args: Any, saveat: Any) -> Any:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=0.0,
        t1=20.0,
        dt0=0.1,
        y0=y0,
        args=args,
        saveat=saveat,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
        max_steps=512,
    ).ys


def make() -> Callable[[], Any]:
    run = jax.jit(lambda y0, args: solve(y0, args, diffrax.SaveAt(ts=jnp.linspace(0.0, 20.0, 50))))
    y0, args = jnp.array([10.0, 10.0]), jnp.array(PARAMETERS)
    return lambda: run(y0, args)
