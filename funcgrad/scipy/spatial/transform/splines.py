"""Splines of rotations: rotation vectors that are cubic in time, with smooth angular rates.

Between two rotations the rotation is ``R[i] exp(phi(t))``; its angular rate ``w(phi, phi')`` in the
turning frame is linear in ``phi'``, and the accelerations at both sides of a rotation agree where
the rates there solve a block tridiagonal system with a small nonlinear term. They are found by
Newton's iteration and differentiated by the implicit function theorem. Rates and accelerations are
derivatives of the quaternion, so that no formula of them is needed, at the identity either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.api.differentiation import jvp
from funcgrad.api.vectorization import vmap
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.interpolate.piecewise import PPoly
from funcgrad.scipy.linalg.solving import solve_banded
from funcgrad.scipy.lines import floating
from funcgrad.scipy.spatial.transform import quaternions as formulas
from funcgrad.scipy.spatial.transform.rotations import Rotation, times_of

__all__ = ["RotationSpline"]

_WIDTH = 5
"""Diagonals below and above the main one: two blocks of three, but for one corner."""

_ITERATIONS = 20


class RotationSpline:
    """Rotations between rotations, with continuous angular rates and accelerations.

    As `scipy.spatial.transform.RotationSpline`. Derivatives exist with respect to the times and the
    rotations, and to the times at which it is evaluated.

    Args:
        times: Increasing, a vector of at least two; they may be traced.
        rotations: As many rotations.

    Raises:
        ShapeError: If there are not as many rotations as times, or less than two.
        ArgumentError: If the times do not increase.

    Example:
        >>> from funcgrad.scipy.spatial.transform import Rotation, RotationSpline
        >>> known = Rotation.from_euler("z", np.array([0.0, 10.0, 40.0]), degrees=True)
        >>> spline = RotationSpline([0.0, 1.0, 2.0], known)
        >>> print(np.round(spline(0.5).as_euler("xyz", degrees=True), 6) + 0.0)
        [0.   0.   3.75]
        >>> print(np.round(np.rad2deg(spline(1.0, 1)), 6) + 0.0)
        [ 0.  0. 20.]
    """

    def __init__(self, times: Any, rotations: Rotation) -> None:
        self.times = times_of("RotationSpline", times, rotations)
        self.rotations = rotations
        vectors = (rotations[:-1].inv() * rotations[1:]).as_rotvec()
        lengths = fnp.diff(self.times)[:, None]
        begins, ends = _slopes(vectors, lengths)
        cubic = (lengths * (begins + ends) - 2 * vectors) / lengths**3
        square = (3 * vectors - lengths * (2 * begins + ends)) / lengths**2
        coefficients = fnp.stack([cubic, square, begins, fnp.zeros_like(begins)])
        self.interpolator = PPoly(coefficients, self.times)

    def __call__(self, times: Any, order: int = 0) -> Any:
        """The rotations at times, or their angular rates (1) or accelerations (2).

        Args:
            times: A number or a vector; beyond the ends the outermost polynomials hold.
            order: Rates are radians per unit of time, in the turning frame.

        Raises:
            ArgumentError: If the order is not 0, 1 or 2.
            ShapeError: If the times have more than one axis.
        """
        if order not in (0, 1, 2):
            raise ArgumentError(f"RotationSpline: order must be 0, 1 or 2, got {order!r}.")
        (t,) = floating("RotationSpline", times)
        if fnp.ndim(t) > 1:
            raise ShapeError(f"RotationSpline: times must be at most a vector, got {aval_of(t)}.")
        vectors = [self.interpolator(t, nu) for nu in range(order + 1)]
        if order == 1:
            return _rate(*vectors)
        if order == 2:
            return jvp(_rate, tuple(vectors[:2]), tuple(vectors[1:]))[1]
        last = shape_of(self.times)[0] - 2
        place = fnp.clip(fnp.searchsorted(self.times, t, side="right") - 1, 0, last)
        base = Rotation(fnp.take(self.rotations.quat, place, axis=0), normalize=False)
        return base * Rotation.from_rotvec(vectors[0])


def _rate(vector: Any, slope: Any) -> Any:
    """The angular rate of a rotation vector that changes."""
    q, change = jvp(formulas.from_rotvec, (vector,), (slope,))
    return 2 * formulas.product(formulas.conjugate(q), change)[..., :3]


def _slopes(vectors: Any, lengths: Any) -> tuple[Any, Any]:
    """Derivatives of the rotation vectors, at the begin and at the end of each interval.

    At the begin, where the vector is 0, they are angular rates.
    """
    means = vectors / lengths
    n = shape_of(vectors)[0] - 1
    if n == 0:
        return means, means
    basis = np.eye(3, dtype=np.dtype(vectors.dtype))
    to_rates = fnp.stack([_rate(vectors, fnp.broadcast_to(e, vectors.shape)) for e in basis], -1)
    to_slopes = fnp.linalg.inv(to_rates)

    def bent(vector: Any, slope: Any) -> Any:
        """The angular acceleration of a vector that changes with a constant slope."""
        return jvp(lambda v: _rate(v, slope), (vector,), (slope,))[1]

    def residual(rates: Any) -> Any:
        """How far the accelerations at both sides differ, by the rates there, but for a factor."""
        rest = fnp.concatenate([means[:1], rates, means[-1:]])
        before = _applied(to_rates[:-1], rest[:-2]) / lengths[:-1]
        after = _applied(to_slopes[1:], rest[2:]) / lengths[1:]
        here = 2 * (1 / lengths[:-1] + 1 / lengths[1:]) * rates
        known = 3 * (vectors[:-1] / lengths[:-1] ** 2 + vectors[1:] / lengths[1:] ** 2)
        nonlinear = bent(vectors[:-1], _applied(to_slopes[:-1], rates)) / 2
        return before + here + after + nonlinear - known

    def newton(residual: Callable[[Any], Any], start: Any) -> Any:
        eps = 8 * float(np.finfo(start.dtype).eps)

        def improve(state: Any) -> Any:
            i, rates, _ = state
            step = _divided(lambda v: jvp(residual, (rates,), (v,))[1], residual(rates))
            size = fnp.max(abs(step) / (1 + abs(rates)))
            return i + 1, rates - step, size

        begin = (np.int64(0), start, fnp.ones((), start.dtype))
        state = lax.while_loop(lambda s: (s[0] < _ITERATIONS) & (s[2] > eps), improve, begin)
        return state[1]

    rates = lax.custom_root(residual, means[:-1], newton, _divided)
    begins = fnp.concatenate([means[:1], rates])
    ends = _applied(to_slopes, fnp.concatenate([rates, means[-1:]]))
    return begins, ends


def _applied(matrices: Any, vectors: Any) -> Any:
    return (matrices @ vectors[..., None])[..., 0]


def _divided(linear: Callable[[Any], Any], right: Any) -> Any:
    """Solve a block tridiagonal system that is known as a function.

    Vectors of ones and zeros with two blocks of zeros between ones show all blocks at once.
    """
    n = shape_of(right)[0]
    shown = np.arange(n) % 3 == np.arange(3)[:, None]
    probes = shown[:, None, :, None] * np.eye(3)[None, :, None, :]
    probes = np.reshape(probes, (9, n, 3)).astype(np.dtype(right.dtype))
    columns = fnp.reshape(vmap(linear)(probes), (3, 3, n, 3))
    column = np.arange(3 * n)
    row = column + np.arange(-_WIDTH, _WIDTH + 1)[:, None]
    is_there = (row >= 0) & (row < 3 * n) & (abs(row // 3 - column // 3) <= 1)
    row = np.where(is_there, row, 0)
    found = columns[column // 3 % 3, column % 3, row // 3, row % 3]
    bands = fnp.where(is_there, found, fnp.zeros_like(found))
    flat = solve_banded((_WIDTH, _WIDTH), bands, fnp.reshape(right, (3 * n,)))
    return fnp.reshape(flat, (n, 3))
