"""Interpolation between values on a line, and on grids of any number of axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.vectorization import vmap
from funcgrad.base.pytree import register_pytree_node
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced
from funcgrad.scipy.interpolate.piecewise import (
    CubicSpline,
    PchipInterpolator,
    interval_of,
    placed,
    prepared,
)
from funcgrad.scipy.interpolate.splines import make_interp_spline

__all__ = ["RegularGridInterpolator", "interp1d", "interpn"]

_STEPS = ("nearest", "nearest-up", "previous", "next", "zero")
_DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}


class interp1d:
    """Interpolation on a line, as `scipy.interpolate.interp1d`.

    A pytree of places and values, differentiable in both and where it is evaluated.

    Args:
        x: Places.
        kind: ``"linear"``, ``"nearest"``, ``"nearest-up"``, ``"previous"``, ``"next"``,
            ``"zero"``, ``"slinear"``, ``"quadratic"``, ``"cubic"``, or the degree of a spline.
        copy: Accepted for SciPy's signature.
        bounds_error: Whether places beyond the ends are an error, where they are known. By default
            they are, unless there is a ``fill_value``.
        fill_value: What stands beyond the ends, a value or a pair of them, or ``"extrapolate"``.
        assume_sorted: Whether ``x`` is known to be ascending; else it is sorted.

    Example:
        >>> f = fg.scipy.interpolate.interp1d(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 0.0]))
        >>> print(f(2.0), fg.grad(f)(2.0))
        1.0 -1.0
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        x, y = fnp.asarray(as_value(x, "interp1d")), fnp.asarray(as_value(y, "interp1d"))
        if not assume_sorted and x.ndim == 1 and y.ndim and y.shape[axis] == x.shape[0]:
            order = fnp.argsort(stop_gradient.bind(x), stable=True)
            x, y = fnp.take(x, order), fnp.take(y, order, axis=axis)
        x, y, axis = prepared("interp1d", x, y, axis, 1)
        known = ("linear", *_STEPS, *_DEGREES)
        if kind not in known and not isinstance(kind, int):
            raise ArgumentError(
                f"interp1d: kind must be one of {', '.join(map(repr, known))} or a degree, got "
                f"{kind!r}."
            )
        self.x, self.y, self.axis = x, y, axis
        degree = kind if isinstance(kind, int) else _DEGREES.get(kind, 1)
        self.kind = {0: "zero", 1: "linear"}.get(degree, kind) if kind not in _STEPS else kind
        self.spline: Any = None
        if degree > 1:
            self.spline = make_interp_spline(x, y, degree)
        self.extrapolates = isinstance(fill_value, str) and fill_value == "extrapolate"
        is_nan = isinstance(fill_value, float) and np.isnan(fill_value)
        self.fill = (np.nan, np.nan) if self.extrapolates else _both(fill_value)
        self.bounds_error = is_nan if bounds_error is None else bounds_error
        if bounds_error is None and self.extrapolates:
            self.bounds_error = False

    def __call__(self, x: Any) -> Any:
        """Values at places of any shape."""
        x = fnp.asarray(as_value(x, "interp1d"))
        x = x if x.dtype.kind == "f" else fnp.astype(x, np.float64)
        flat = fnp.reshape(x, (-1,))
        below, above = flat < self.x[0], flat > self.x[-1]
        is_known = not is_traced(below) and not is_traced(above)
        if self.bounds_error and is_known and np.any(below | above):
            raise ValueError(
                "interp1d: a value in x_new is outside of the interpolation range. Pass "
                "bounds_error=False or fill_value='extrapolate'."
            )
        values = self._inside(flat)
        shape = (-1, *(1,) * (values.ndim - 1))
        if self.extrapolates and self.kind in ("previous", "next"):
            beyond = below if self.kind == "previous" else above
            values = fnp.where(fnp.reshape(beyond, shape), np.nan, values)
        if not self.extrapolates:
            low, high = (fnp.asarray(f) for f in self.fill)
            values = fnp.where(fnp.reshape(below, shape), low, values)
            values = fnp.where(fnp.reshape(above, shape), high, values)
        return placed(values, x.shape, self.axis)

    def _inside(self, x: Any) -> Any:
        if self.spline is not None:
            return self.spline(x)
        n = self.x.shape[0]
        if self.kind == "linear" and n > 1:
            index = interval_of(self.x, x)
            x0, x1 = fnp.take(self.x, index), fnp.take(self.x, index + 1)
            part = fnp.reshape((x - x0) / (x1 - x0), (-1, *(1,) * (self.y.ndim - 1)))
            y0, y1 = fnp.take(self.y, index, axis=0), fnp.take(self.y, index + 1, axis=0)
            return y0 + part * (y1 - y0)
        return fnp.take(self.y, self._step(stop_gradient.bind(x), n), axis=0)

    def _step(self, x: Any, n: int) -> Any:
        """The number of the value that holds at each place."""
        places = stop_gradient.bind(self.x)
        if self.kind in ("previous", "zero"):
            return fnp.clip(fnp.searchsorted(places, x, side="right") - 1, 0, n - 1)
        if self.kind == "next":
            return fnp.clip(fnp.searchsorted(places, x, side="left"), 0, n - 1)
        middles = (places[1:] + places[:-1]) / 2
        side = "left" if self.kind == "nearest" else "right"
        return fnp.searchsorted(middles, x, side=side)


def _flatten(f: interp1d) -> tuple[list[Any], Any]:
    return [f.x, f.y, f.spline, f.fill], (f.axis, f.kind, f.extrapolates, f.bounds_error)


def _unflatten(meta: Any, children: Any) -> interp1d:
    f = object.__new__(interp1d)
    f.x, f.y, f.spline, f.fill = children
    f.axis, f.kind, f.extrapolates, f.bounds_error = meta
    return f


register_pytree_node(interp1d, _flatten, _unflatten)


def _both(fill: Any) -> tuple[Any, Any]:
    if isinstance(fill, tuple):
        if len(fill) != 2:
            raise ArgumentError("interp1d: fill_value is a value or a pair (below, above).")
        return fill
    return fill, fill


_SPLINES: dict[str, Callable[[Any, Any], Any]] = {
    "slinear": lambda x, y: make_interp_spline(x, y, 1),
    "cubic": lambda x, y: CubicSpline(x, y) if x.shape[0] > 3 else make_interp_spline(x, y, 3),
    "quintic": lambda x, y: make_interp_spline(x, y, 5),
    "pchip": PchipInterpolator,
}


class RegularGridInterpolator:
    """Interpolation on a grid, as `scipy.interpolate.RegularGridInterpolator`.

    A pytree of places and values, differentiable in both and where it is evaluated.

    Args:
        points: For each axis its places, ascending or descending.
        values: Values on the grid; further axes are values at one place.
        method: ``"linear"``, ``"nearest"``, ``"slinear"``, ``"cubic"``, ``"quintic"`` or
            ``"pchip"``.
        bounds_error: Whether places beyond the grid are an error, where they are known.
        fill_value: What stands beyond the grid; ``None`` extrapolates.
        solver: Accepted for SciPy's signature.
        solver_args: Accepted for SciPy's signature.

    Example:
        >>> x, y = np.arange(3.0), np.arange(4.0)
        >>> f = fg.scipy.interpolate.RegularGridInterpolator((x, y), x[:, None] * y)
        >>> print(f(np.array([[1.5, 2.0]])), fg.grad(lambda p: f(p)[0])(np.array([1.5, 2.5])))
        [3.] [2.5 1.5]
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        self.values = _inexact(values)
        self.grid = [_inexact(p) for p in points]
        self.method = _checked_method(method)
        self.bounds_error = bounds_error
        self.fill_value = fill_value
        if len(self.grid) > self.values.ndim:
            raise ShapeError(
                f"RegularGridInterpolator: there are {len(self.grid)} lists of points, but values "
                f"are {aval_of(self.values)}."
            )
        for i, p in enumerate(self.grid):
            if p.ndim != 1 or p.shape[0] != self.values.shape[i]:
                raise ShapeError(
                    f"RegularGridInterpolator: points of axis {i} are {aval_of(p)}, but values "
                    f"have {self.values.shape[i]} along it."
                )
            if is_traced(p):
                continue
            if p.shape[0] > 1 and np.all(np.diff(p) < 0):
                self.grid[i] = p[::-1]
                self.values = fnp.flip(self.values, axis=i)
            elif np.any(np.diff(p) <= 0):
                raise ValueError(
                    f"RegularGridInterpolator: the points in dimension {i} must be strictly "
                    "ascending or descending"
                )

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """Values at points, whose coordinates are the last axis."""
        method = self.method if method is None else _checked_method(method)
        n = len(self.grid)
        if isinstance(xi, tuple | list) and len(xi) == n:
            xi = fnp.stack(fnp.broadcast_arrays(*(_inexact(x) for x in xi)), axis=-1)
        xi = _inexact(xi)
        if xi.ndim == 1 and xi.shape[0] % n == 0:  # points in a row, as of one axis
            xi = fnp.reshape(xi, (-1, n))
        if not xi.ndim or xi.shape[-1] != n:
            raise ShapeError(
                f"RegularGridInterpolator: points need {n} coordinates along their last axis, got "
                f"{aval_of(xi)}."
            )
        flat = fnp.reshape(xi, (-1, n))
        inside = self._are_inside(flat)
        if nu is not None:
            raise ArgumentError(
                "RegularGridInterpolator: write derivatives by funcgrad.grad, and leave out nu=."
            )
        find = {"linear": self._linear, "nearest": self._nearest}.get(method)
        values = find(flat) if find is not None else self._by_splines(flat, _SPLINES[method])
        if self.fill_value is not None:
            mask = fnp.reshape(inside, (-1, *(1,) * (values.ndim - 1)))
            values = fnp.where(mask, values, self.fill_value)
        return fnp.reshape(values, (*xi.shape[:-1], *values.shape[1:]))

    def _are_inside(self, points: Any) -> Any:
        inside: Any = True
        for i, p in enumerate(self.grid):
            own = (points[:, i] >= p[0]) & (points[:, i] <= p[-1])
            if self.bounds_error and not is_traced(own) and not np.all(own):
                raise ValueError(
                    f"One of the requested xi is out of bounds in dimension {i}. Pass "
                    "bounds_error=False."
                )
            inside = inside & own
        return inside

    def _parts(self, points: Any) -> list[tuple[Any, Any]]:
        """For every axis the number of the interval, and where in it points are."""
        found = []
        for i, p in enumerate(self.grid):
            x = points[:, i]
            if p.shape[0] == 1:
                found.append((fnp.zeros(x.shape, np.int64), 0.0 * x))
                continue
            index = interval_of(p, x)
            low, high = fnp.take(p, index), fnp.take(p, index + 1)
            found.append((index, (x - low) / (high - low)))
        return found

    def _linear(self, points: Any) -> Any:
        n, parts = len(self.grid), self._parts(points)
        rest = (1,) * (self.values.ndim - n)
        total: Any = 0.0
        for corner in product((0, 1), repeat=n):
            weight: Any = 1.0
            index = []
            for upper, (i, part), p in zip(corner, parts, self.grid, strict=True):
                weight = weight * (part if upper else 1 - part)
                index.append(fnp.minimum(i + upper, p.shape[0] - 1))
            values = fnp.at(self.values)[tuple(index)].get()
            total = total + fnp.reshape(weight, (-1, *rest)) * values
        return total

    def _nearest(self, points: Any) -> Any:
        parts = self._parts(points)
        index = [i + fnp.astype(stop_gradient.bind(part) > 0.5, np.int64) for i, part in parts]
        return fnp.at(self.values)[tuple(index)].get()

    def _by_splines(self, points: Any, spline: Callable[[Any, Any], Any]) -> Any:
        # One axis after the other, as SciPy the last one first: not all splines are linear.
        n = len(self.grid)
        found = spline(self.grid[-1], fnp.moveaxis(self.values, n - 1, 0))(points[:, n - 1])
        for i in range(n - 2, -1, -1):
            places = self.grid[i]

            def along(values: Any, x: Any, places: Any = places, i: int = i) -> Any:
                return spline(places, fnp.moveaxis(values, i, 0))(x)

            found = vmap(along)(found, points[:, i])
        return found


def _inexact(x: Any) -> Any:
    x = fnp.asarray(as_value(x, "RegularGridInterpolator"))
    return x if x.dtype.kind in "fc" else fnp.astype(x, np.float64)


def _checked_method(method: str) -> str:
    known = ("linear", "nearest", *_SPLINES)
    if method not in known:
        raise ArgumentError(
            f"RegularGridInterpolator: method must be one of {', '.join(map(repr, known))}, got "
            f"{method!r}."
        )
    return method


def _flatten_grid(f: RegularGridInterpolator) -> tuple[list[Any], Any]:
    return [f.grid, f.values, f.fill_value], (f.method, f.bounds_error)


def _unflatten_grid(meta: Any, children: Any) -> RegularGridInterpolator:
    f = object.__new__(RegularGridInterpolator)
    f.grid, f.values, f.fill_value = children
    f.method, f.bounds_error = meta
    return f


register_pytree_node(RegularGridInterpolator, _flatten_grid, _unflatten_grid)


def interpn(
    points: Sequence[Any],
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """`RegularGridInterpolator` at points, as `scipy.interpolate.interpn`.

    Args:
        points: For each axis its places.
        values: Values on the grid.
        xi: Where it is evaluated.
        method: As of `RegularGridInterpolator`.
        bounds_error: As of `RegularGridInterpolator`.
        fill_value: As of `RegularGridInterpolator`.
    Returns: The values.

    Example:
        >>> fg.scipy.interpolate.interpn(
        ...     (np.arange(3.0),), np.array([0.0, 1.0, 4.0]), np.array([[1.5]])
        ... )
        array([2.5])
    """
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
