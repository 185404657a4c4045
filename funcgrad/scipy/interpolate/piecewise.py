"""Piecewise polynomials, and the splines that are given by values and slopes.

All are pytrees of coefficients and breakpoints, so that they may be traced, mapped and
differentiated: in the place where they are evaluated, in values and in breakpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.base.pytree import register_pytree_node
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced

__all__ = [
    "Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator",
    "pchip_interpolate",
]  # fmt: skip


class PPoly:
    """Piecewise polynomial ``sum(c[m] (x - x[i])**(k - m))`` between breakpoints.

    As `scipy.interpolate.PPoly`.

    Args:
        c: Coefficients, of shape ``(k + 1, n, ...)``, the highest power first.
        x: Breakpoints, ``n + 1`` in ascending order.
        axis: Axis of the values that the places of evaluation take.

    Example:
        >>> from funcgrad.scipy.interpolate import PPoly
        >>> line = PPoly(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([0.0, 1.0, 2.0]))
        >>> print(line(np.array([0.5, 1.5])), line.derivative()(0.5), line.integrate(0.0, 2.0))
        [1. 2.] 2.0 3.0
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self.c = _floating(c)
        self.x = _floating(x)
        self.extrapolate = True if extrapolate is None else extrapolate
        self.axis = axis
        if self.c.ndim < 2 or self.x.ndim != 1 or self.c.shape[1] != self.x.shape[0] - 1:
            raise ShapeError(
                f"PPoly: breakpoints {aval_of(self.x)} do not fit coefficients {aval_of(self.c)}: "
                "there is one polynomial between each two of them."
            )

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The value, or derivative of order ``nu``, at places of any shape."""
        if nu:
            return self.derivative(nu)(x, extrapolate=extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x = _floating(x)
        flat = fnp.reshape(x, (-1,))
        if extrapolate == "periodic":
            first, last = self.x[0], self.x[-1]
            flat = first + (flat - first) % (last - first)
        index = interval_of(self.x, flat)
        shift = flat - fnp.take(self.x, index)
        shift = fnp.reshape(shift, (*shift.shape, *(1,) * (self.c.ndim - 2)))
        total: Any = 0.0
        for row in range(self.c.shape[0]):
            total = total * shift + fnp.take(self.c[row], index, axis=0)
        if extrapolate is False:
            total = _known_inside(total, flat, self.x[0], self.x[-1])
        return placed(total, x.shape, self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative of order ``nu``."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            k = c.shape[0] - 1
            if not k:
                c = fnp.zeros_like(c)
                break
            powers = np.arange(k, 0, -1).reshape((k, *(1,) * (c.ndim - 1)))
            c = c[:-1] * powers.astype(c.real.dtype)
        return PPoly(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The integral from the first breakpoint, ``nu`` times."""
        if nu <= 0:
            return self.derivative(-nu)
        c = self.c
        for _ in range(nu):
            k = c.shape[0]
            powers = np.arange(k, 0, -1).reshape((k, *(1,) * (c.ndim - 1)))
            c = c / powers.astype(c.real.dtype)
            steps = fnp.reshape(fnp.diff(self.x), (-1, *(1,) * (c.ndim - 2)))
            whole: Any = 0.0
            for row in range(k):
                whole = (whole + c[row]) * steps
            start = fnp.concatenate([fnp.zeros_like(whole[:1]), fnp.cumsum(whole[:-1], axis=0)])
            c = fnp.concatenate([c, start[None]])
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return PPoly(c, self.x, extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from ``a`` to ``b``."""
        whole = self.antiderivative()
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate != "periodic":
            return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)
        first, period = self.x[0], self.x[-1] - self.x[0]

        def up_to(t: Any) -> Any:
            count = fnp.floor((t - first) / period)
            return whole(t - count * period) + count * whole(self.x[-1])

        return up_to(b) - up_to(a)


def _flatten(p: PPoly) -> tuple[list[Any], tuple[Any, int]]:
    return [p.c, p.x], (p.extrapolate, p.axis)


def register_piecewise(kind: type[PPoly]) -> type[PPoly]:
    """Make a kind of piecewise polynomials a pytree."""

    def unflatten(meta: tuple[Any, int], children: Sequence[Any]) -> PPoly:
        p = object.__new__(kind)
        (p.c, p.x), (p.extrapolate, p.axis) = children, meta
        return p

    register_pytree_node(kind, _flatten, unflatten)
    return kind


register_piecewise(PPoly)


def interval_of(breaks: Any, x: Any) -> Any:
    """The number of the interval between breakpoints, the nearest one beyond the ends."""
    breaks, x = stop_gradient.bind(breaks), stop_gradient.bind(x)
    place = fnp.searchsorted(breaks, x, side="right") - 1
    return fnp.clip(place, 0, breaks.shape[0] - 2)


def placed(values: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Values at flat places, with the axes of these where the interpolated one was."""
    rest = values.shape[1:]
    full = fnp.reshape(values, (*shape, *rest))
    if not axis:
        return full
    axis = axis % (len(rest) + 1)
    n = len(shape)
    order = (*range(n, n + axis), *range(n), *range(n + axis, n + len(rest)))
    return fnp.transpose(full, order)


def _known_inside(values: Any, x: Any, first: Any, last: Any) -> Any:
    inside = (x >= first) & (x <= last)
    return fnp.where(fnp.reshape(inside, (-1, *(1,) * (values.ndim - 1))), values, np.nan)


def _floating(x: Any) -> Any:
    x = fnp.asarray(as_value(x, "interpolate"))
    return x if x.dtype.kind in "fc" else fnp.astype(x, np.float64)


def prepared(name: str, x: Any, y: Any, axis: int, least: int = 2) -> tuple[Any, Any, int]:
    """Places, values with their axis first, and that axis."""
    x, y = _floating(x), _floating(y)
    if x.ndim != 1 or not y.ndim or not -y.ndim <= axis < y.ndim:
        raise ShapeError(f"{name}: x must be a vector and y have axis {axis}, got {aval_of(y)}.")
    axis = axis % y.ndim
    if y.shape[axis] != x.shape[0] or x.shape[0] < least:
        raise ShapeError(
            f"{name}: y has {y.shape[axis]} values along axis {axis} and x has {x.shape[0]}; both "
            f"must be the same and at least {least}."
        )
    if not is_traced(x) and np.any(np.diff(x) <= 0):
        raise ArgumentError(f"{name}: x must be strictly increasing.")
    return x, fnp.moveaxis(y, axis, 0), axis


def _steps(x: Any, y: Any) -> tuple[Any, Any]:
    """Distances of places, and slopes of the lines between values."""
    h = fnp.reshape(fnp.diff(x), (-1, *(1,) * (y.ndim - 1)))
    return h, fnp.diff(y, axis=0) / h


def _hermite(x: Any, y: Any, slopes: Any) -> Any:
    """Coefficients of cubic polynomials from values and slopes."""
    h, secants = _steps(x, y)
    bend = (slopes[:-1] + slopes[1:] - 2 * secants) / h
    return fnp.stack([bend / h, (secants - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]])


class CubicHermiteSpline(PPoly):
    """Cubic pieces with given values and slopes, as `scipy.interpolate.CubicHermiteSpline`.

    Args: dydx: Slopes there.
    Example: print(fg.scipy.interpolate.CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], [0.0, 0.0])(0.5))
        -> 0.5
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, y, axis = prepared("CubicHermiteSpline", x, y, axis)
        slopes = fnp.moveaxis(_floating(dydx), axis, 0)
        super().__init__(_hermite(x, y, slopes), x, extrapolate, axis)


class PchipInterpolator(PPoly):
    """Cubic pieces that are monotone where values are, as `scipy.interpolate.PchipInterpolator`.

    Example: print(fg.scipy.interpolate.PchipInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 1.0])(1.5))
        -> 1.0
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, y, axis = prepared("PchipInterpolator", x, y, axis)
        super().__init__(_hermite(x, y, _monotone_slopes(x, y)), x, extrapolate, axis)


def _monotone_slopes(x: Any, y: Any) -> Any:
    """Fritsch and Butland 1984: weighted harmonic means, 0 where the direction changes."""
    h, m = _steps(x, y)
    if x.shape[0] == 2:
        return fnp.concatenate([m, m])
    w0, w1 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    same = m[:-1] * m[1:] > 0
    safe0, safe1 = fnp.where(same, m[:-1], 1.0), fnp.where(same, m[1:], 1.0)
    inner = fnp.where(same, (w0 + w1) / (w0 / safe0 + w1 / safe1), 0.0)

    def at_end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
        slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
        slope = fnp.where(slope * m0 <= 0, 0.0, slope)
        is_wild = (m0 * m1 <= 0) & (abs(slope) > 3 * abs(m0))
        return fnp.where(is_wild, 3 * m0, slope)

    first = at_end(h[:1], h[1:2], m[:1], m[1:2])
    last = at_end(h[-1:], h[-2:-1], m[-1:], m[-2:-1])
    return fnp.concatenate([first, inner, last])


class Akima1DInterpolator(PPoly):
    """Cubic pieces with slopes of near values, as `scipy.interpolate.Akima1DInterpolator`.

    Args:
        method: ``"akima"`` or ``"makima"``.
        extrapolate: As of `PPoly`; by default nan beyond the ends.

    Example:
        >>> from funcgrad.scipy.interpolate import Akima1DInterpolator
        >>> print(Akima1DInterpolator(np.arange(5.0), np.arange(5.0) ** 2)(2.5))
        6.25
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
    ) -> None:
        if method not in ("akima", "makima"):
            raise ArgumentError(
                f"Akima1DInterpolator: method must be 'akima' or 'makima', got {method!r}."
            )
        x, y, axis = prepared("Akima1DInterpolator", x, y, axis)
        extrapolate = False if extrapolate is None else extrapolate
        slopes = _near_slopes(x, y, method) if x.shape[0] > 2 else _monotone_slopes(x, y)
        super().__init__(_hermite(x, y, slopes), x, extrapolate, axis)


def _near_slopes(x: Any, y: Any, method: str) -> Any:
    """Akima 1970: means of slopes to both sides, weighted by the change of slopes beyond them."""
    _, m = _steps(x, y)
    before = [3 * m[:1] - 2 * m[1:2], 2 * m[:1] - m[1:2]]
    after = [2 * m[-1:] - m[-2:-1], 3 * m[-1:] - 2 * m[-2:-1]]
    m = fnp.concatenate([*before, m, *after])
    change = abs(fnp.diff(m, axis=0))
    if method == "makima":
        change = change + abs(m[1:] + m[:-1]) / 2
    left, right = change[2:], change[:-2]
    total = left + right
    is_even = total <= 1e-9 * fnp.max(stop_gradient.bind(total), initial=-np.inf)
    mean = (left * m[1:-2] + right * m[2:-1]) / fnp.where(is_even, 1.0, total)
    return fnp.where(is_even, (m[1:-2] + m[2:-1]) / 2 if method == "akima" else 0.0, mean)


class CubicSpline(PPoly):
    """Cubic pieces with two continuous derivatives, as `scipy.interpolate.CubicSpline`.

    Args:
        bc_type: ``"not-a-knot"``, ``"periodic"``, ``"clamped"``, ``"natural"``, or a pair with one
            of these but the second, or ``(order, value)`` of a derivative, for each end.
        extrapolate: As of `PPoly`; ``"periodic"`` for periodic ones.

    Example:
        >>> x = np.arange(5.0)
        >>> spline = fg.scipy.interpolate.CubicSpline(x, x**3)
        >>> print(f"{spline(2.5):.6f} {fg.grad(spline)(2.0):.6f}")
        15.625000 12.000000
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        x, y, axis = prepared("CubicSpline", x, y, axis)
        if extrapolate is None:
            extrapolate = "periodic" if isinstance(bc_type, str) and bc_type == "periodic" else True
        super().__init__(_hermite(x, y, _spline_slopes(x, y, bc_type)), x, extrapolate, axis)


def _spline_slopes(x: Any, y: Any, bc_type: Any) -> Any:
    n = x.shape[0]
    h, m = _steps(x, y)
    if isinstance(bc_type, str):
        if bc_type == "periodic":
            return _periodic_slopes(h, m, y)
        bc_type = (bc_type, bc_type)
    if len(bc_type) != 2:
        raise ArgumentError("CubicSpline: bc_type is a name or a pair of conditions.")
    if n == 2:
        bc_type = [(1, m[0]) if b == "not-a-knot" else b for b in bc_type]
    elif n == 3 and all(isinstance(b, str) and b == "not-a-knot" for b in bc_type):
        return _parabola_slopes(h, m)
    first = _end_row(bc_type[0], h, m, y)
    last = _end_row(bc_type[1], h[::-1], m[::-1], y, is_last=True)
    one = (1, *h.shape[1:])
    diagonal = fnp.concatenate([fnp.reshape(first[0], one), 2 * (h[:-1] + h[1:]),
                                fnp.reshape(last[0], one)])  # fmt: skip
    upper = fnp.concatenate([fnp.reshape(first[1], one), h[:-1]])
    lower = fnp.concatenate([h[1:], fnp.reshape(last[1], one)])
    inner = 3 * (h[1:] * m[:-1] + h[:-1] * m[1:])
    shape = (1, *y.shape[1:])
    right = fnp.concatenate([fnp.broadcast_to(first[2], shape), inner,
                             fnp.broadcast_to(last[2], shape)])  # fmt: skip
    return solve_tridiagonal(lower, diagonal, upper, right)


def _end_row(condition: Any, h: Any, m: Any, y: Any, is_last: bool = False) -> tuple[Any, Any, Any]:
    """Equation at an end: the factors of its slope and the next one, and the right-hand side."""
    if isinstance(condition, str):
        if condition == "not-a-knot":
            both = h[0] + h[1]
            right = ((h[0] + 2 * both) * h[1] * m[0] + h[0] * h[0] * m[1]) / both
            return h[1], both, right
        named = {"clamped": (1, 0.0), "natural": (2, 0.0)}
        if condition not in named:
            raise ArgumentError(
                "CubicSpline: bc_type must be 'not-a-knot', 'periodic', 'clamped' or 'natural', or "
                f"(order, value), got {condition!r}."
            )
        condition = named[condition]
    order, value = condition
    value = _floating(value)
    if order == 1:
        return fnp.ones_like(h[0]), fnp.zeros_like(h[0]), value
    if order == 2:
        sign = -1 if is_last else 1
        return 2 * h[0], h[0], 3 * h[0] * m[0] - sign * h[0] * h[0] * value / 2
    raise ArgumentError(f"CubicSpline: the order of a condition is 1 or 2, got {order!r}.")


def _parabola_slopes(h: Any, m: Any) -> Any:
    middle = (h[1] * m[0] + h[0] * m[1]) / (h[0] + h[1])
    return fnp.stack([2 * m[0] - middle, middle, 2 * m[1] - middle])


def _periodic_slopes(h: Any, m: Any, y: Any) -> Any:
    """Slopes of periodic values: two systems without the closing (Sherman and Morrison)."""
    if not is_traced(y) and not np.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15):
        raise ArgumentError("CubicSpline: the first and last values of periodic ones are equal.")
    n = h.shape[0]
    if n == 1:
        return fnp.zeros((2, *m.shape[1:]), m.dtype)
    if n == 2:
        slope = (m[0] / h[0] + m[1] / h[1]) / (1 / h[0] + 1 / h[1])
        return fnp.stack([slope, slope, slope])
    before = fnp.concatenate([h[-1:], h[:-1]])
    slopes_before = fnp.concatenate([m[-1:], m[:-1]])
    diagonal = 2 * (before + h)
    right = 3 * (h * slopes_before + before * m)
    # Row i: h[i] s[i-1] + 2 (h[i-1] + h[i]) s[i] + h[i-1] s[i+1]; the corners close the ring.
    corner_top, corner_end = h[:1], before[-1:]
    gamma = -diagonal[:1]
    ring = fnp.concatenate(
        [diagonal[:1] - gamma, diagonal[1:-1], diagonal[-1:] - corner_top * corner_end / gamma]
    )
    ends = fnp.concatenate([gamma, fnp.zeros_like(h[1:-1]), corner_end])
    plain = solve_tridiagonal(h[1:], ring, before[:-1], right)
    moved = solve_tridiagonal(h[1:], ring, before[:-1], ends)
    ratio = corner_top / gamma
    factor = (plain[:1] + ratio * plain[-1:]) / (1 + moved[:1] + ratio * moved[-1:])
    slopes = plain - factor * moved
    return fnp.concatenate([slopes, slopes[:1]])


def solve_tridiagonal(lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
    """The solution of a tridiagonal system, by elimination along the first axis."""
    zero = fnp.zeros_like(diagonal[:1])
    rows = (fnp.concatenate([zero, lower]), diagonal, fnp.concatenate([upper, zero]), right)

    def eliminate(state: Any, row: Any) -> Any:
        ratio, value = state
        below, own, above, wanted = row
        pivot = own - below * ratio
        new = (above / pivot, (wanted - below * value) / pivot)
        return new, new

    def substitute(later: Any, row: Any) -> Any:
        ratio, value = row
        found = value - ratio * later
        return found, found

    start = (fnp.zeros(diagonal.shape[1:], diagonal.dtype), fnp.zeros(right.shape[1:], right.dtype))
    _, (ratios, values) = lax.scan(eliminate, start, rows)
    return lax.scan(substitute, start[1], (ratios, values), reverse=True)[1]


for _kind in (CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator, CubicSpline):
    register_piecewise(_kind)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """`PchipInterpolator` at places, as `scipy.interpolate.pchip_interpolate`.

    Args: x: Where it is evaluated.
    Returns: Values, or a list of them.

    Example:
        >>> fg.scipy.interpolate.pchip_interpolate(
        ...     np.arange(3.0), np.array([0.0, 1.0, 4.0]), np.array([0.5, 1.5])
        ... )
        array([0.3125, 2.1875])
    """
    found = PchipInterpolator(xi, yi, axis)
    return [found(x, nu) for nu in der] if isinstance(der, list | tuple) else found(x, der)
