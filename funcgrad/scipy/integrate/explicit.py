"""Explicit Runge-Kutta methods: pairs of formulas, and the values between the ends of a step.

Coefficients are those that SciPy publishes on its classes (Bogacki and Shampine 1989; Dormand and
Prince 1980; Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, sections II.5
and II.6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.scipy.integrate import stepping


class Explicit(stepping.Method):
    """A Runge-Kutta method whose last stage is the slope at the end.

    Args: solver: SciPy's class, for its coefficients.
    """

    def __init__(self, solver: Any) -> None:
        n = solver.n_stages
        self.nodes = [float(c) for c in solver.C[:n]]
        self.tableau = [_row(row) for row in solver.A[:n]]
        self.weights = _row(solver.B)
        self.exponent = -1 / (solver.error_estimator_order + 1)
        self.evaluations = n

    def stages(self, f: stepping.Slope, t: Any, h: Any, y: Any, k: Any) -> list[Any]:
        """The slopes at all nodes."""
        slopes = [k]
        for c, row in zip(self.nodes[1:], self.tableau[1:], strict=True):
            slopes.append(f(t + c * h, y + h * _combined(row, slopes)))
        return slopes

    def remember(self, system: stepping.System, t: Any, y: Any, k: Any, h: Any) -> Any:
        return k

    def attempt(
        self, system: stepping.System, begin: stepping.Begin, controls: stepping.Controls
    ) -> stepping.Attempt:
        t, h, state, memory, _, failed = begin
        slopes = self.stages(system.slope, t, h, state, memory)
        end = state + h * _combined(self.weights, slopes)
        slopes.append(system.slope(t + h, end))
        error = self.error([k * h for k in slopes], controls.scale(state, end))
        is_good = error < 1
        ratio = stepping.SAFETY * fnp.maximum(error, 1e-30) ** self.exponent
        ratio = fnp.where(
            fnp.isnan(ratio), stepping.LEAST, fnp.clip(ratio, stepping.LEAST, stepping.MOST)
        )
        ratio = fnp.where(failed | ~is_good, fnp.minimum(1.0, ratio), ratio)
        slope = fnp.where(is_good, slopes[-1], memory)
        counts = np.array([self.evaluations, 0, 0])
        return stepping.Attempt(is_good, end, fnp.astype(h * ratio, h.dtype), (), slope, counts)

    def error(self, increments: Sequence[Any], scale: Any) -> Any:
        raise NotImplementedError

    def following(self, system: stepping.System, piece: stepping.Piece) -> Callable[..., Any]:
        return self._advance

    def _advance(self, system: stepping.System, t: Any, h: Any, y: Any) -> Any:
        slopes = self.stages(system.slope, t, h, y, system.slope(t, y))
        return y + h * _combined(self.weights, slopes)


class Embedded(Explicit):
    """A pair of methods, whose difference is the error, with a polynomial between the ends."""

    def __init__(self, solver: Any) -> None:
        super().__init__(solver)
        self.difference = _row(solver.E)
        self.polynomial = [_row(column) for column in np.transpose(solver.P)]

    def error(self, increments: Sequence[Any], scale: Any) -> Any:
        return stepping.rms(_combined(self.difference, increments) / scale)

    def between(self, system: stepping.System, piece: stepping.Piece, x: Any) -> Any:
        f, t, h, y = system.slope, piece.t, piece.h, piece.state
        slopes = self.stages(f, t, h, y, f(t, y))
        slopes.append(f(t + h, y + h * _combined(self.weights, slopes)))
        total = 0.0
        for row in reversed(self.polynomial):
            total = (total + _combined(row, slopes)) * x
        return y + h * total


class HighOrder(Explicit):
    """Dormand and Prince's method of order 8, with two estimates of the error."""

    def __init__(self, solver: Any) -> None:
        super().__init__(solver)
        self.third, self.fifth = _row(solver.E3), _row(solver.E5)
        self.extra = [_row(row) for row in solver.A_EXTRA]
        self.extra_nodes = [float(c) for c in solver.C_EXTRA]
        self.polynomial = [_row(row) for row in solver.D]

    def error(self, increments: Sequence[Any], scale: Any) -> Any:
        fifth = stepping.rms(_combined(self.fifth, increments) / scale) ** 2
        third = stepping.rms(_combined(self.third, increments) / scale) ** 2
        both = fifth + 0.01 * third
        is_zero = both == 0
        return fnp.where(is_zero, 0.0 * both, fifth / fnp.sqrt(fnp.where(is_zero, 1.0, both)))

    def between(self, system: stepping.System, piece: stepping.Piece, x: Any) -> Any:
        f, t, h, y = system.slope, piece.t, piece.h, piece.state
        slopes = self.stages(f, t, h, y, f(t, y))
        change = h * _combined(self.weights, slopes)
        slopes.append(f(t + h, y + change))
        last = slopes[-1]
        for c, row in zip(self.extra_nodes, self.extra, strict=True):
            slopes.append(f(t + c * h, y + h * _combined(row, slopes)))
        parts = [change, h * slopes[0] - change, 2 * change - h * (last + slopes[0])]
        parts += [h * _combined(row, slopes) for row in self.polynomial]
        total: Any = 0.0
        for i, part in enumerate(reversed(parts)):
            total = (total + part) * (x if i % 2 == 0 else 1 - x)
        return y + total


def _row(numbers: Any) -> list[float]:
    return [float(x) for x in numbers]


def _combined(row: Sequence[float], slopes: Sequence[Any]) -> Any:
    """Sum of products, without those of zeros."""
    total: Any = None
    for c, k in zip(row, slopes, strict=False):
        if c:
            total = c * k if total is None else total + c * k
    return 0.0 * slopes[0] if total is None else total
