"""Ordinary differential equations of pytrees, with JAX's signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.vectorization import vmap
from funcgrad.base.namespaces import present
from funcgrad.flatten_util import ravel_pytree
from funcgrad.scipy.integrate import solve_ivp

__all__ = ["odeint"]


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: Any = 1.4e-8,
    atol: Any = 1.4e-8,
    mxstep: Any = np.inf,
    hmax: Any = np.inf,
) -> Any:
    """Solution of ``dy/dt = func(y, t, *args)``, as `jax.experimental.ode.odeint`.

    Its steps are those of `funcgrad.scipy.integrate.solve_ivp` with the method "RK45", and so are
    its derivatives, in both modes.

    Args:
        func: ``func(y, t, *args)``, the slope, a pytree like ``y``.
        y0: Value at the first time, a pytree.
        t: Times, ascending or descending.
        *args: Further arguments, pytrees.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        mxstep: Under `jit`, the most steps that derivatives have room for; if it is infinite, as
            many as `solve_ivp` chooses.
        hmax: The longest step.
    Returns: The pytree of values, with an axis for the times in front.

    Example:
        >>> from funcgrad.experimental.ode import odeint
        >>> found = odeint(lambda y, t: {"x": -y["x"]}, {"x": 1.0}, np.array([0.0, 1.0]))
        >>> print(found["x"].round(6))
        [1.       0.367879]
    """
    flat, unravel = ravel_pytree(y0)

    def slope(time: Any, y: Any, *args: Any) -> Any:
        return ravel_pytree(func(unravel(y), time, *args))[0]

    times = fnp.asarray(t)
    found = solve_ivp(
        slope,
        (times[0], times[-1]),
        flat,
        t_eval=times,
        args=args,
        rtol=rtol,
        atol=atol,
        max_step=hmax,
        max_steps=None if np.isinf(mxstep) else int(mxstep),
    )
    return vmap(unravel)(found.y.T)


present(__name__)
