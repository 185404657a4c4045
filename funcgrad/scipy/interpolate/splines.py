"""Splines as sums of B-splines."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.base.pytree import register_pytree_node
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced
from funcgrad.scipy.interpolate.piecewise import placed, prepared

__all__ = ["BSpline", "make_interp_spline", "splev"]


class BSpline:
    """Spline ``sum(c[i] B_i(x))`` of degree ``k`` over knots ``t``, as `scipy.interpolate.BSpline`.

    A pytree of knots and coefficients, differentiable in both and in ``x``.

    Args:
        t: Knots, ascending; at least ``n + k + 1`` for ``n`` coefficients.
        c: Coefficients along an axis.

    Example:
        >>> from funcgrad.scipy.interpolate import BSpline
        >>> print(BSpline(np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.0, 4.0]), 1)(1.5))
        3.0
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t = fnp.asarray(as_value(t, "BSpline"))
        c = fnp.asarray(as_value(c, "BSpline"))
        self.c = fnp.moveaxis(c, axis, 0)
        self.k = int(k)
        self.extrapolate = extrapolate
        self.axis = axis % c.ndim
        needed = self.t.shape[0] - self.k - 1 if self.t.ndim == 1 else 0
        if needed < 1 or self.c.shape[0] < needed:
            raise ShapeError(
                f"BSpline: knots {aval_of(self.t)} of degree {k} need {max(needed, 1)} "
                f"coefficients, got {self.c.shape[0]}."
            )

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The value, or derivative of order ``nu``, at places of any shape."""
        if nu:
            return self.derivative(nu)(x, extrapolate=extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x = fnp.asarray(as_value(x, "BSpline"))
        flat = fnp.reshape(x, (-1,))
        t, k, n = self.t, self.k, self.t.shape[0] - self.k - 1
        if extrapolate == "periodic":
            flat = t[k] + (flat - t[k]) % (t[n] - t[k])
        index = span_of(t, flat, k)
        # De Boor's recursion: k + 1 coefficients become one.
        rest = self.c.ndim - 1
        rows = [fnp.take(self.c, index - k + j, axis=0) for j in range(k + 1)]
        for level in range(1, k + 1):
            for j in range(k, level - 1, -1):
                low = fnp.take(t, index - k + j)
                high = fnp.take(t, index + 1 + j - level)
                width = high - low
                part = (flat - low) / fnp.where(width == 0, 1.0, width)
                part = fnp.reshape(part, (-1, *(1,) * rest))
                rows[j] = (1 - part) * rows[j - 1] + part * rows[j]
        values = rows[k]
        if extrapolate is False:
            inside = (flat >= t[k]) & (flat <= t[n])
            values = fnp.where(fnp.reshape(inside, (-1, *(1,) * rest)), values, np.nan)
        return placed(values, x.shape, self.axis)

    def derivative(self, nu: int = 1) -> BSpline:
        """The derivative of order ``nu``."""
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            n = t.shape[0] - k - 1
            if not k:
                c = fnp.zeros_like(c)
                break
            width = t[k + 1 : k + n] - t[1:n]
            width = fnp.reshape(fnp.where(width == 0, 1.0, width), (-1, *(1,) * (c.ndim - 1)))
            c = k * fnp.diff(c[:n], axis=0) / width
            t, k = t[1:-1], k - 1
        return self._of(t, c, k)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """The integral from the first knot, ``nu`` times."""
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            n = t.shape[0] - k - 1
            width = fnp.reshape(t[k + 1 : k + 1 + n] - t[:n], (-1, *(1,) * (c.ndim - 1)))
            sums = fnp.cumsum(c[:n] * width / (k + 1), axis=0)
            c = fnp.concatenate([fnp.zeros_like(sums[:1]), sums])
            t = fnp.concatenate([t[:1], t, t[-1:]])
            k = k + 1
        return self._of(t, c, k)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from ``a`` to ``b``."""
        whole = self.antiderivative()
        return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)

    def _of(self, t: Any, c: Any, k: int) -> BSpline:
        return _unflatten((k, self.extrapolate, self.axis), [t, c])


def _unflatten(meta: tuple[int, Any, int], children: Any) -> BSpline:
    spline = object.__new__(BSpline)
    (spline.t, spline.c), (spline.k, spline.extrapolate, spline.axis) = children, meta
    return spline


register_pytree_node(BSpline, lambda s: ([s.t, s.c], (s.k, s.extrapolate, s.axis)), _unflatten)


def span_of(t: Any, x: Any, k: int) -> Any:
    """The number of the knot before each place, so that ``k`` knots are on both sides."""
    t, x = stop_gradient.bind(t), stop_gradient.bind(x)
    n = t.shape[0] - k - 1
    return fnp.clip(fnp.searchsorted(t, x, side="right") - 1, k, n - 1)


def make_interp_spline(
    x: Any,
    y: Any,
    k: int = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """Spline of degree ``k`` through values, as `scipy.interpolate.make_interp_spline`.

    Args:
        t: Knots; by default those of "not-a-knot".
        bc_type: ``None`` or ``"not-a-knot"``. For other conditions there is `CubicSpline`.
    Returns: The `BSpline`, differentiable in ``x`` and ``y``.
    Raises: ArgumentError: If another condition is wanted.

    Example:
        >>> x = np.arange(6.0)
        >>> print(fg.scipy.interpolate.make_interp_spline(x, x**2, k=2)(2.5).round(12))
        6.25
    """
    if bc_type not in (None, "not-a-knot", (None, None)):
        raise ArgumentError(
            f"make_interp_spline: bc_type {bc_type!r} is not here; CubicSpline takes conditions."
        )
    x, y, axis = prepared("make_interp_spline", x, y, axis, k + 1 if t is None else 1)
    knots = _not_a_knot(x, k) if t is None else fnp.asarray(as_value(t, "make_interp_spline"))
    n = x.shape[0]
    if knots.shape[0] != n + k + 1:
        raise ShapeError(
            f"make_interp_spline: {n} values and degree {k} need {n + k + 1} knots, got "
            f"{knots.shape[0]}."
        )
    matrix = BSpline(knots, np.eye(n, dtype=np.dtype(x.dtype)), k)(x)
    flat = fnp.reshape(y, (n, -1))
    coefficients = fnp.reshape(fnp.linalg.solve(matrix, flat), y.shape)
    return _unflatten((k, True, axis), [knots, coefficients])


def _not_a_knot(x: Any, k: int) -> Any:
    if k == 0:
        return fnp.concatenate([x, x[-1:]])
    if k % 2:
        half = (k + 1) // 2
        inner = x[half : x.shape[0] - half]
    else:
        middles = (x[1:] + x[:-1]) / 2
        inner = middles[k // 2 : middles.shape[0] - k // 2]
    first = fnp.broadcast_to(x[:1], (k + 1,))
    last = fnp.broadcast_to(x[-1:], (k + 1,))
    return fnp.concatenate([first, inner, last])


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Spline of knots, coefficients and degree at places, as `scipy.interpolate.splev`.

    Args:
        x: Places.
        tck: ``(t, c, k)`` as of SciPy's `splrep`, or a `BSpline`.
        der: Order of the derivative.
        ext: Beyond the ends: 0 extrapolates, 1 gives zeros, 2 raises where places are known, 3
            takes the value at the end (of the spline, not of its derivatives).
    Returns: The values.
    Raises: ValueError: With ``ext=2``.

    Example:
        >>> from funcgrad.scipy.interpolate import splev
        >>> print(splev(1.5, (np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.0, 4.0]), 1)))
        3.0
    """
    if isinstance(tck, BSpline):
        spline = tck
    else:
        t, c, k = tck
        t = fnp.asarray(as_value(t, "splev"))
        if isinstance(c, list):
            return [splev(x, (t, part, k), der, ext) for part in c]
        spline = BSpline(t, fnp.asarray(as_value(c, "splev"))[: t.shape[0] - k - 1], k)
    x = fnp.asarray(as_value(x, "splev"))
    n = spline.t.shape[0] - spline.k - 1
    first, last = spline.t[spline.k], spline.t[n]
    outside = (x < first) | (x > last)
    if ext == 2 and not is_traced(outside) and np.any(outside):
        raise ValueError("splev: there are places outside of the interval.")
    if ext == 3 and not der:
        x = fnp.clip(x, first, last)
    values = spline(x, der)
    return fnp.where(outside, 0.0, values) if ext == 1 else values
