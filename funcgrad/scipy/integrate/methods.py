"""One step of a method for ordinary differential equations, and the values between its ends.

A method knows how to make one step of a given length, what its error is, and how to interpolate;
how long steps are is not decided here. Coefficients are those that SciPy publishes on its classes
(Bogacki and Shampine 1989; Dormand and Prince 1980; Hairer, Norsett and Wanner, Solving Ordinary
Differential Equations I, sections II.5 and II.6, and II, section IV.8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.integrate import DOP853, RK23, RK45

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.differentiation import jacfwd
from funcgrad.api.vectorization import vmap
from funcgrad.scipy import linalg

Slope = Callable[[Any, Any], Any]
"""``(t, y) -> dy/dt``."""


class Method:
    """What the control of steps asks of a method.

    Attributes:
        exponent: The new length is the old one times a power of the error.
        evaluations: How often one attempt evaluates the slope.
    """

    exponent: float
    evaluations: int

    def attempt(self, f: Slope, t: Any, h: Any, y: Any, k: Any, scale: Any) -> Any:
        """The value at the end, its slope, and the norm of the error.

        Args:
            f: The slope.
            t: Begin.
            h: Length.
            y: Value at the begin.
            k: Slope at the begin.
            scale: From the value at the end to the error that is allowed.
        """
        raise NotImplementedError

    def advance(self, f: Slope, t: Any, h: Any, y: Any) -> Any:
        """The value at the end of a step that is known to be good."""
        raise NotImplementedError

    def between(self, f: Slope, t: Any, h: Any, y: Any, x: Any) -> Any:
        """The value at ``t + x h``."""
        raise NotImplementedError


class Explicit(Method):
    """A Runge-Kutta method whose last stage is the slope at the end.

    Args:
        solver: SciPy's class, for its coefficients.
    """

    def __init__(self, solver: Any) -> None:
        n = solver.n_stages
        self.nodes = [float(c) for c in solver.C[:n]]
        self.rows = [_row(row) for row in solver.A[:n]]
        self.weights = _row(solver.B)
        self.exponent = -1 / (solver.error_estimator_order + 1)
        self.evaluations = n

    def stages(self, f: Slope, t: Any, h: Any, y: Any, k: Any) -> list[Any]:
        """The slopes at all nodes."""
        slopes = [k]
        for c, row in zip(self.nodes[1:], self.rows[1:], strict=True):
            slopes.append(f(t + c * h, y + h * _combined(row, slopes)))
        return slopes

    def attempt(self, f: Slope, t: Any, h: Any, y: Any, k: Any, scale: Any) -> Any:
        slopes = self.stages(f, t, h, y, k)
        end = y + h * _combined(self.weights, slopes)
        slopes.append(f(t + h, end))
        return end, slopes[-1], self.error([k * h for k in slopes], scale(end))

    def error(self, increments: Sequence[Any], scale: Any) -> Any:
        raise NotImplementedError

    def advance(self, f: Slope, t: Any, h: Any, y: Any) -> Any:
        return y + h * _combined(self.weights, self.stages(f, t, h, y, f(t, y)))


class Embedded(Explicit):
    """A pair of methods, whose difference is the error, with a polynomial between the ends."""

    def __init__(self, solver: Any) -> None:
        super().__init__(solver)
        self.difference = _row(solver.E)
        self.polynomial = [_row(column) for column in np.transpose(solver.P)]

    def error(self, increments: Sequence[Any], scale: Any) -> Any:
        return rms(_combined(self.difference, increments) / scale)

    def between(self, f: Slope, t: Any, h: Any, y: Any, x: Any) -> Any:
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
        fifth = rms(_combined(self.fifth, increments) / scale) ** 2
        third = rms(_combined(self.third, increments) / scale) ** 2
        both = fifth + 0.01 * third
        is_zero = both == 0
        return fnp.where(is_zero, 0.0 * both, fifth / fnp.sqrt(fnp.where(is_zero, 1.0, both)))

    def between(self, f: Slope, t: Any, h: Any, y: Any, x: Any) -> Any:
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


_S6 = 6**0.5
_NEWTON = 12
_TOLERANCE = 1e-3


class Implicit(Method):
    """Radau's method IIA of order 5, for stiff equations.

    The stages solve a system of ``3 n`` equations by Newton's iteration with the Jacobian at the
    begin of the step; derivatives are those of the solution, by the implicit function theorem.
    """

    nodes = np.array([(4 - _S6) / 10, (4 + _S6) / 10, 1.0])
    matrix = np.array(
        [
            [(88 - 7 * _S6) / 360, (296 - 169 * _S6) / 1800, (-2 + 3 * _S6) / 225],
            [(296 + 169 * _S6) / 1800, (88 + 7 * _S6) / 360, (-2 - 3 * _S6) / 225],
            [(16 - _S6) / 36, (16 + _S6) / 36, 1 / 9],
        ]
    )
    difference = np.array([-13 - 7 * _S6, -13 + 7 * _S6, -1]) / 3
    polynomial = np.array(
        [
            [13 / 3 + 7 * _S6 / 3, -23 / 3 - 22 * _S6 / 3, 10 / 3 + 5 * _S6],
            [13 / 3 - 7 * _S6 / 3, -23 / 3 + 22 * _S6 / 3, 10 / 3 - 5 * _S6],
            [1 / 3, -8 / 3, 10 / 3],
        ]
    )
    real = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
    exponent = -0.25
    evaluations = 3 * _NEWTON

    def residual(self, f: Slope, t: Any, h: Any, y: Any, z: Any) -> Any:
        """What vanishes at the stages, whose differences to the begin are ``z``."""
        slopes = fnp.stack([f(t + float(c) * h, y + z[i]) for i, c in enumerate(self.nodes)])
        return z - h * (self.matrix.astype(np.dtype(y.dtype)) @ slopes)

    def solve(self, f: Slope, t: Any, h: Any, y: Any, tolerance: Any) -> Any:
        """The stages, and whether the iteration converged."""
        n = y.shape[0]
        slopes = jacfwd(lambda v: f(t, v))(y)
        system = fnp.eye(3 * n, dtype=y.dtype) - h * fnp.kron(
            self.matrix.astype(np.dtype(y.dtype)), slopes
        )
        factors = linalg.lu_factor(system)

        def improve(state: Any) -> Any:
            i, z, _ = state
            wrong = fnp.reshape(self.residual(f, t, h, y, z), (3 * n,))
            step = fnp.reshape(linalg.lu_solve(factors, wrong), (3, n))
            return i + 1, z - step, rms(step / tolerance)

        def goes_on(state: Any) -> Any:
            return (state[0] < _NEWTON) & (state[2] > _TOLERANCE) & (state[2] < 1e12)

        start = (0, fnp.zeros((3, n), y.dtype), fnp.asarray(1.0, tolerance.dtype))
        _, z, size = lax.while_loop(goes_on, improve, start)
        return z, size <= _TOLERANCE, slopes

    def attempt(self, f: Slope, t: Any, h: Any, y: Any, k: Any, scale: Any) -> Any:
        n = y.shape[0]
        z, has_converged, slopes = self.solve(f, t, h, y, scale(y))
        end = y + z[2]
        system = (self.real / h) * fnp.eye(n, dtype=y.dtype) - slopes
        change = self.difference.astype(np.dtype(y.dtype)) @ z / h
        allowed = scale(end)
        factors = linalg.lu_factor(system)
        first = linalg.lu_solve(factors, k + change)
        # Damped once more where it is too large, as for equations that are very stiff.
        second = linalg.lu_solve(factors, f(t, y + first) + change)
        error = rms(first / allowed)
        error = fnp.where(error > 1, fnp.minimum(error, rms(second / allowed)), error)
        return end, f(t + h, end), fnp.where(has_converged, error, 16.0 + error)

    def stages(self, f: Slope, t: Any, h: Any, y: Any) -> Any:
        """The stages of a step that is known to be good, with their derivatives."""
        n = y.shape[0]

        def newton(_: Any, z: Any) -> Any:
            eps = float(np.finfo(y.dtype).eps)
            size = 1e4 * eps * (1e-3 + fnp.max(abs(y))) * np.ones(n, np.finfo(y.dtype).dtype)
            return self.solve(f, t, h, y, size)[0]

        def divide(g: Any, right: Any) -> Any:
            flat = vmap(lambda e: fnp.reshape(g(fnp.reshape(e, (3, n))), (3 * n,)))
            matrix = flat(np.eye(3 * n, dtype=np.dtype(y.dtype)))
            return fnp.reshape(fnp.linalg.solve(matrix.T, fnp.reshape(right, (3 * n,))), (3, n))

        start = fnp.zeros((3, n), y.dtype)
        return lax.custom_root(lambda z: self.residual(f, t, h, y, z), start, newton, divide)

    def advance(self, f: Slope, t: Any, h: Any, y: Any) -> Any:
        return y + self.stages(f, t, h, y)[2]

    def between(self, f: Slope, t: Any, h: Any, y: Any, x: Any) -> Any:
        powers = fnp.stack([x, x * x, x * x * x])
        weights = self.polynomial.astype(np.dtype(y.dtype)) @ powers
        return y + weights @ self.stages(f, t, h, y)


def rms(x: Any) -> Any:
    """The root of the mean of the squares."""
    return fnp.sqrt(fnp.mean(fnp.square(abs(x))))


def _row(numbers: Any) -> list[float]:
    return [float(x) for x in numbers]


def _combined(row: Sequence[float], slopes: Sequence[Any]) -> Any:
    """Sum of products, without those of zeros."""
    total: Any = None
    for c, k in zip(row, slopes, strict=False):
        if c:
            total = c * k if total is None else total + c * k
    return 0.0 * slopes[0] if total is None else total


METHODS: dict[str, Method] = {
    "RK23": Embedded(RK23),
    "RK45": Embedded(RK45),
    "DOP853": HighOrder(DOP853),
    "Radau": Implicit(),
}
