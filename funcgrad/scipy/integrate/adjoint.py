"""Derivatives of solutions by the adjoint equation, solved back in time.

With the cotangent ``a`` of ``y``, ``da/dt = -(df/dy)^T a``, and what ``f`` depends on gets the
integral of ``(df/dp)^T a``. The value is integrated back along with them, so that nothing is kept
but the values at the given times (Chen and others, Neural Ordinary Differential Equations, 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.higher_order.custom import bind_rules
from funcgrad.higher_order.rules import Rules
from funcgrad.scipy.integrate.matrices import Dense
from funcgrad.scipy.integrate.trajectory import Equation, Solution
from funcgrad.transforms.linearize import linearize_flat
from funcgrad.transforms.programs import stage_closed

Values = Sequence[Any]


class AdjointSolution:
    """A `Solution` with derivatives in reverse mode."""

    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        self.solution = Solution(equation)
        self.rules = Rules(
            "solve_ivp", fun=self.solution.primal, vjp=self._vjp, bwd_title="adjoint of solve_ivp"
        )

    def __call__(self, *inputs: Any) -> list[Any]:
        return bind_rules(self.rules, inputs)

    def _vjp(self, inputs: Values, is_active: Sequence[bool]) -> Any:
        outs = self.solution.primal(*inputs)
        residuals = [*inputs, outs[0]]
        return outs, residuals, self._pull

    def _pull(self, residuals: Values, cts: Values) -> list[Any]:
        times, t0, tf, *controls, y0 = residuals[:8]
        *consts, values = residuals[8:]
        if cts[0] is None:
            return [None] * (len(residuals) - 1)
        is_floating = [aval_of(x).dtype.kind in "fc" for x in consts]
        sizes = [aval_of(x).size if on else 0 for x, on in zip(consts, is_floating, strict=True)]
        n = values.shape[1]
        dtype = values.dtype
        f = self.equation.at(consts).slope

        def slope(*inputs: Any) -> list[Any]:
            """Slope of the value, its cotangent and the sums, with time running backwards."""
            *consts, s, z = inputs
            y, a = z[:n], z[n : 2 * n]

            def of_all(y: Any, *xs: Any) -> list[Any]:
                rest = iter(xs)
                full = [next(rest) if on else x for x, on in zip(consts, is_floating, strict=True)]
                return [self.equation.at(full).slope(-s, y)]

            active = [x for x, on in zip(consts, is_floating, strict=True) if on]
            (dy,), linear = linearize_flat(
                of_all, [y, *active], [True] * (1 + len(active)), "adjoint"
            )
            pulled = [
                fnp.zeros(aval_of(x).shape, dtype) if c is None else c
                for c, x in zip(linear.pull([a]), [y, *active], strict=True)
            ]
            flat = [fnp.reshape(fnp.astype(c, dtype), (-1,)) for c in pulled]
            return [fnp.concatenate([-dy, *flat])]

        first = fnp.concatenate([values[-1], fnp.zeros(n + sum(sizes), dtype)])
        program = stage_closed(
            slope, [aval_of(x).strong() for x in (*consts, t0, first)], "adjoint"
        )
        back = Solution(
            Equation(program, self.equation.method, self.equation.max_steps, Dense(first.size))
        )

        def wide(tolerance: Any) -> Any:
            """Tolerance of the augmented state."""
            if not aval_of(tolerance).shape:
                return tolerance
            rest = fnp.full(n + sum(sizes), fnp.min(tolerance))
            return fnp.concatenate([tolerance, rest])

        def interval(z: Any, row: Any) -> Any:
            late, early, value, ct = row
            a = z[n : 2 * n] + ct
            z = fnp.concatenate([value, a, z[2 * n :]])
            ends = fnp.stack([-early])
            tolerances = [wide(x) for x in controls[:2]]
            z = back.primal(ends, -late, -early, *tolerances, *controls[2:], z, *consts)[0][0]
            return z, fnp.sum(ct * f(late, value))

        early = fnp.concatenate([fnp.reshape(t0, (1,)), times[:-1]])
        z, ct_times = lax.scan(interval, first, (times, early, values, cts[0]), reverse=True)
        a, rest = z[n : 2 * n], z[2 * n :]
        found: list[Any] = []
        at = 0
        for x, size, on in zip(consts, sizes, is_floating, strict=True):
            aval = aval_of(x)
            part = fnp.reshape(rest[at : at + size], aval.shape) if on else None
            found.append(fnp.astype(part, aval.dtype) if on else None)
            at += size
        ct_begin = -fnp.sum(a * f(t0, y0))
        return [ct_times, ct_begin, fnp.zeros_like(tf), None, None, None, None, a, *found]
