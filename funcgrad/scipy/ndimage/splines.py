"""B-splines through arrays: their coefficients, weights of neighbours, and places beyond the ends.

Coefficients solve a banded system by a recursion forwards and one backwards for each of its poles,
which is exact; they are linear in the array. Orders 0 and 1 need none.

Reference:
    M. Unser, A. Aldroubi and M. Eden, B-spline signal processing, 1993.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.lax.loops import scan
from funcgrad.numpy.rearranging import flip
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import along, line_axis
from funcgrad.scipy.ndimage.filters import cast, summand

__all__ = ["spline_filter", "spline_filter1d"]

_POLES: dict[int, tuple[float, ...]] = {
    0: (),
    1: (),
    2: (sqrt(8.0) - 3.0,),
    3: (sqrt(3.0) - 2.0,),
    4: (
        sqrt(664.0 - sqrt(438976.0)) + sqrt(304.0) - 19.0,
        sqrt(664.0 + sqrt(438976.0)) - sqrt(304.0) - 19.0,
    ),
    5: (
        sqrt(67.5 - sqrt(4436.25)) + sqrt(26.25) - 6.5,
        sqrt(67.5 + sqrt(4436.25)) - sqrt(26.25) - 6.5,
    ),
}

EXTENSIONS = {
    "mirror": "mirror",
    "constant": "mirror",
    "wrap": "mirror",
    "grid-constant": "mirror",
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "nearest": "reflect",
    "grid-wrap": "grid-wrap",
}
"""How coefficients go on beyond the ends, for the modes of the functions."""


def check_order(function: str, order: Any) -> int:
    """A known order of splines.

    Raises: ArgumentError: If it is not from 0 to 5.
    """
    if not isinstance(order, int | np.integer) or not 0 <= order <= 5:
        raise ArgumentError(f"{function}: order must be an integer from 0 to 5, got {order!r}.")
    return int(order)


def extension_of(function: str, mode: str) -> str:
    """How coefficients go on in a mode.

    Raises: ArgumentError: If there is no such mode.
    """
    if mode not in EXTENSIONS:
        known = ", ".join(map(repr, EXTENSIONS))
        raise ArgumentError(f"{function}: mode must be one of {known}, got {mode!r}.")
    return EXTENSIONS[mode]


def period_of(extension: str, n: int) -> int:
    """After how many elements an extended line repeats."""
    return {"mirror": max(2 * n - 2, 1), "reflect": 2 * n, "grid-wrap": n}[extension]


def within(index: Any, n: int, extension: str) -> Any:
    """The elements of a line that stand at places of its extension."""
    period = period_of(extension, n)
    place = index % period
    if extension == "grid-wrap":
        return place
    last = period if extension == "mirror" else period - 1
    # In operators only, which stay known for known places while something else is traced.
    return place + (place >= n) * (last - 2 * place)


def coefficients(x: Any, axis: int, order: int, extension: str) -> Any:
    """Coefficients of the spline through lines along an axis; it goes on as ``extension`` says."""
    n = shape_of(x)[axis]
    if n < 2 or order < 2:
        return x
    lines = fnp.moveaxis(x, axis, 0)
    real = np.empty(0, aval_of(x).dtype).real.dtype
    ndim = len(shape_of(x))
    gain = prod((1 - z) * (1 - 1 / z) for z in _POLES[order])
    lines = lines * real.type(gain)
    for pole in _POLES[order]:
        z = real.type(pole)
        first = along(_start(n, pole, extension).astype(real), 0, ndim)
        last = along(_end(n, pole, extension).astype(real), 0, ndim)
        forward = _running(_forward, z, fnp.sum(first * lines, 0), lines[1:])
        end = fnp.sum(last * forward, 0)
        backward = _running(_backward, z, end, flip(forward[:-1], 0))
        lines = flip(backward, 0)
    return fnp.moveaxis(lines, 0, axis)


def _forward(z: Any, before: Any, x: Any) -> Any:
    return x + z * before


def _backward(z: Any, behind: Any, x: Any) -> Any:
    return z * (behind - x)


def _running(recursion: Callable[[Any, Any, Any], Any], z: Any, start: Any, rows: Any) -> Any:
    """``start`` and all values that follow from it and the rows, one after the other."""

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        value = recursion(z, carry, row)
        return value, value

    _, rest = scan(step, start, rows)
    return fnp.concatenate([start[None], rest], 0)


def _start(n: int, z: float, extension: str) -> np.ndarray:
    """Weights of the sum over all elements before, which the forward recursion starts with."""
    period = period_of(extension, n)
    steps = np.arange(period)
    weights = np.zeros(n)
    np.add.at(weights, within(-steps, n, extension), z**steps)
    return weights / (1 - z**period)


def _end(n: int, z: float, extension: str) -> np.ndarray:
    """Weights of the elements that the backward recursion starts with."""
    weights = np.zeros(n)
    if extension == "mirror":
        weights[-2:] = z / (z * z - 1) * np.array([z, 1.0])
    elif extension == "reflect":
        weights[-1] = z / (z - 1)
    else:
        weights[-1], weights[:-1] = 1.0, z ** np.arange(1, n)
        weights *= z / (z**n - 1)
    return weights


def weights_at(u: Any, order: int) -> list[Any]:
    """Weights of ``order + 1`` neighbouring coefficients, for ``u`` from 0 to 1 between them."""
    weights: list[Any] = [fnp.ones_like(u)]
    for n in range(1, order + 1):
        left = [0.0, *weights]
        right = [*weights, 0.0]
        weights = [
            ((n - k + u) * a + (k + 1 - u) * b) / n
            for k, (a, b) in enumerate(zip(left, right, strict=True))
        ]
    return weights


def spline_filter1d(
    input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Any:
    """Coefficients of the spline through lines, as `scipy.ndimage.spline_filter1d`.

    Args:
        order: Order of the spline, 0 to 5.
        output: The dtype of the result; complex where ``input`` is.
        mode: How lines go on beyond their ends, as in `map_coordinates`.
    Returns: An array like ``input``.
    Raises: ArgumentError: If the order or the mode is another one.
    Example: fg.scipy.ndimage.spline_filter1d(np.array([1.0, 2.0, 9.0, 4.0]))
        -> array([ 2., -1., 14., -1.])
    """
    x, dtype = summand("spline_filter1d", input, output)
    place = line_axis(x, axis, "spline_filter1d")
    extension = extension_of("spline_filter1d", mode)
    found = coefficients(x, place, check_order("spline_filter1d", order), extension)
    return cast(found, dtype)


def spline_filter(
    input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror"
) -> Any:
    """`spline_filter1d` along all axes, as `scipy.ndimage.spline_filter`.

    Args: order: Order of the spline.
    Example: fg.scipy.ndimage.spline_filter(np.array([1.0, 2.0, 9.0, 4.0]))
        -> array([ 2., -1., 14., -1.])
    """
    x, dtype = summand("spline_filter", input, output)
    order, extension = check_order("spline_filter", order), extension_of("spline_filter", mode)
    for axis in range(len(shape_of(x))):
        x = coefficients(x, axis, order, extension)
    return cast(x, dtype)
