"""Newton's iteration with factors that may be out of date, as solvers of stiff equations use it.

It ends where the rate of convergence says that the rest is below the tolerance, and gives up where
it says that the iterations that are left will not do (Hairer and Wanner, Solving Ordinary
Differential Equations II, section IV.8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base.records import dataclass
from funcgrad.scipy.integrate.stepping import Controls

RUNNING, CONVERGED, GAVE_UP = 0, 1, -1


@dataclass(frozen=True)
class Iterated:
    """End of an iteration.

    Args:
        x: The last point.
        has_converged: Whether it is good.
        count: Number of iterations.
        rate: By how much the last correction was shorter than the one before it.
    """

    x: Any
    has_converged: Any
    count: Any
    rate: Any


def newton_tolerance(controls: Controls, eps: float) -> Any:
    """How much smaller than the error that is allowed the rest of an iteration must be."""
    rtol = fnp.min(controls.rtol)
    return fnp.maximum(10 * eps / rtol, fnp.minimum(0.03, fnp.sqrt(rtol)))


def iterate(
    correction: Callable[[Any], tuple[Any, Any, Any]], start: Any, limit: int, tolerance: Any
) -> Iterated:
    """Add corrections until they are small.

    Args:
        correction: From a point to its correction, the size of that, and whether the equations were
            finite there.
        start: The first point.
        limit: The most iterations.
        tolerance: How far the result may be from the solution.
    """

    def improve(state: Any) -> Any:
        i, x, old, rate, _ = state
        step, size, is_finite = correction(x)
        rate = fnp.where(i > 0, size / old, rate)
        falls = rate < 1
        low = fnp.where(falls, rate, 0.5)
        share = low / (1 - low)
        left = fnp.astype(limit - 1 - i, rate.dtype)
        is_bad = (i > 0) & ~(falls & (low**left * share * size <= tolerance))
        is_bad = is_bad | ~is_finite
        is_done = (size == 0) | ((i > 0) & (share * size < tolerance))
        status = fnp.where(is_bad, GAVE_UP, fnp.where(is_done, CONVERGED, RUNNING))
        return i + 1, fnp.where(is_bad, x, x + step), size, rate, status

    one = fnp.ones_like(tolerance)
    begin = (np.int64(0), start, one, 0 * one, np.int64(RUNNING))
    count, x, _, rate, status = lax.while_loop(
        lambda state: (state[4] == RUNNING) & (state[0] < limit), improve, begin
    )
    return Iterated(x, status == CONVERGED, count, rate)
