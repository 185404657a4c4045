"""Integrals of functions of which samples are given, by SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.objects import is_traced

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "romb", "simpson", "trapezoid"]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral of samples by the trapezoidal rule, as `scipy.integrate.trapezoid`.

    Returns: The integrals, without that axis.
    Example: print(fg.scipy.integrate.trapezoid(np.array([1.0, 2.0, 3.0]))) -> 4.0
    """
    y, steps = _samples("trapezoid", y, x, dx, axis)
    return fnp.sum(_trapezoids(y, steps), axis=-1)


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Running integrals by the trapezoidal rule.

    As `scipy.integrate.cumulative_trapezoid`.

    Args: initial: ``None``, or 0, which is put in front.
    Returns: The integrals up to each sample after the first, and to the first with ``initial=0``.
    Raises: ArgumentError: If ``initial`` is another number.
    Example: print(fg.scipy.integrate.cumulative_trapezoid(np.array([1.0, 2.0, 3.0]), initial=0))
        -> [0.  1.5 4. ]
    """
    if initial is not None and initial != 0:
        raise ArgumentError(f"cumulative_trapezoid: initial must be None or 0, got {initial!r}.")
    y, steps = _samples("cumulative_trapezoid", y, x, dx, axis)
    running = fnp.cumsum(_trapezoids(y, steps), axis=-1)
    return fnp.moveaxis(_with_initial(running, initial), -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral of samples by Simpson's rule, as `scipy.integrate.simpson`.

    Args: y: Samples. If their number is even, the last interval has the parabola of the last three.
    Returns: The integrals, without that axis.
    Example: print(fg.scipy.integrate.simpson(np.array([0.0, 1.0, 4.0])))  # of x**2
        -> 2.6666666666666665
    """
    y, steps = _samples("simpson", y, x, dx, axis)
    n = y.shape[-1]
    if n < 3:
        return fnp.sum(_trapezoids(y, steps), axis=-1)
    odd = n - 1 + n % 2
    h0, h1 = steps[..., : odd - 1 : 2], steps[..., 1 : odd - 1 : 2]
    total = fnp.sum(
        _parabola_over_both(
            y[..., : odd - 2 : 2], y[..., 1 : odd - 1 : 2], y[..., 2:odd:2], h0, h1
        ),
        axis=-1,
    )
    if odd < n:
        last = _parabola_over_first(
            y[..., -1], y[..., -2], y[..., -3], steps[..., -1], steps[..., -2]
        )
        total = total + last
    return total


def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Running integrals by Simpson's rule, as `scipy.integrate.cumulative_simpson`.

    Args:
        x: As in `trapezoid`, strictly increasing.
        initial: What is put in front and added; by default nothing.
    Returns: The integrals up to each sample after the first, and the first with ``initial``.
    Example: print(fg.scipy.integrate.cumulative_simpson(np.array([0.0, 1.0, 4.0])).round(6))
        -> [0.333333 2.666667]
    """
    y, steps = _samples("cumulative_simpson", y, x, dx, axis)
    if x is not None and not is_traced(steps) and np.any(np.asarray(steps) <= 0):
        raise ArgumentError("cumulative_simpson: x must be strictly increasing.")
    n = y.shape[-1]
    if n < 3:
        parts = _trapezoids(y, steps)
    else:
        steps = fnp.broadcast_to(steps, (*y.shape[:-1], n - 1))
        a, b, c = y[..., :-2], y[..., 1:-1], y[..., 2:]
        first = _parabola_over_first(a, b, c, steps[..., :-1], steps[..., 1:])
        second = _parabola_over_first(c, b, a, steps[..., 1:], steps[..., :-1])
        # Intervals 0, 2, ... have the parabola that begins there, the others the one before.
        first = fnp.concatenate([first, second[..., -1:]], axis=-1)
        second = fnp.concatenate([first[..., :1], second], axis=-1)
        is_even = (np.arange(n - 1) % 2 == 0) & (np.arange(n - 1) < n - 2)
        parts = fnp.where(is_even, first, second)
    running = fnp.cumsum(parts, axis=-1)
    if initial is not None:
        running = running + initial
    return fnp.moveaxis(_with_initial(running, initial), -1, axis)


def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Integral of ``2**k + 1`` samples by Romberg's method, as `scipy.integrate.romb`.

    Args:
        y: Samples at equal distances.
        show: Accepted for SciPy's signature.
    Returns: The integrals, without that axis.
    Raises: ArgumentError: If the number of samples is another one.
    Example: print(fg.scipy.integrate.romb(np.array([0.0, 1.0, 4.0]))) -> 2.6666666666666665
    """
    y, _ = _samples("romb", y, None, dx, axis)
    n = y.shape[-1] - 1
    if n < 1 or n & (n - 1):
        raise ArgumentError(f"romb: the number of samples must be 2**k + 1, got {n + 1}.")
    row: list[Any] = []
    stride = n
    while stride:
        some = y[..., ::stride]
        value = (fnp.sum(some, axis=-1) - (some[..., 0] + some[..., -1]) / 2) * (stride * dx)
        new = [value]
        for k, old in enumerate(row):
            new.append(new[-1] + (new[-1] - old) / (4 ** (k + 1) - 1))
        row = new
        stride //= 2
    return row[-1]


def _samples(name: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Any, Any]:
    """Floating samples with the axis last, and the distances of neighbours."""
    y = fnp.asarray(as_value(y, name))
    if not y.ndim:
        raise ShapeError(f"{name} needs samples along an axis, got {aval_of(y)}.")
    y = fnp.moveaxis(y, axis, -1)
    if y.dtype.kind not in "fc":
        y = y.astype(np.float64)
    if x is None:
        step = fnp.asarray(as_value(dx, name))
        shape = (*step.shape, 1) if step.ndim else (1,)
        count = max(y.shape[-1] - 1, 0)
        if not is_traced(dx) and not np.ndim(dx):
            step = fnp.asarray(y.real.dtype.type(dx))
        return y, fnp.broadcast_to(fnp.reshape(step, shape), (*step.shape, count))
    x = fnp.asarray(as_value(x, name))
    if x.ndim > 1:
        x = fnp.moveaxis(x, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"{name}: x has {x.shape[-1]} samples along the axis, but y has {y.shape[-1]}."
        )
    return y, fnp.diff(x, axis=-1)


def _with_initial(running: Any, initial: Any) -> Any:
    if initial is None:
        return running
    first = fnp.broadcast_to(fnp.asarray(initial, running.dtype), (*running.shape[:-1], 1))
    return fnp.concatenate([first, running], axis=-1)


def _trapezoids(y: Any, steps: Any) -> Any:
    return steps * (y[..., 1:] + y[..., :-1]) / 2


def _parabola_over_both(a: Any, b: Any, c: Any, h0: Any, h1: Any) -> Any:
    """The integral of the parabola through three samples, from the first to the last."""
    both = h0 + h1
    weights = (2 - h1 / h0, both * both / (h0 * h1), 2 - h0 / h1)
    return both / 6 * (a * weights[0] + b * weights[1] + c * weights[2])


def _parabola_over_first(a: Any, b: Any, c: Any, h0: Any, h1: Any) -> Any:
    """The integral of the parabola through three samples, from the first to the second."""
    r, q = h0 / (h0 + h1), h0 / h1
    return h0 / 6 * ((3 - r) * a + (3 + r * q + r) * b - r * q * c)
