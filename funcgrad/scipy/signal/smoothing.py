"""Trends removed from lines, polynomials fitted to windows, ranks and means of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.signal

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.linalg.solving import solveh_banded
from funcgrad.scipy.lines import cut, floating, line_axis
from funcgrad.scipy.neighbourhoods import ranked, weighted
from funcgrad.scipy.results import Result

__all__ = [
    "detrend", "medfilt", "medfilt2d", "order_filter", "savgol_filter", "whittaker_henderson",
    "wiener",
]  # fmt: skip


def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Any:
    """Lines without their mean, or without the straight line in them, as `scipy.signal.detrend`.

    Args:
        data: Samples.
        type: "linear" or "constant" (also "l", "c").
        bp: Where pieces begin, each of which has a line of its own; known integers.
        overwrite_data: Accepted for SciPy's signature.
    Returns: An array like ``data``.
    Raises: ArgumentError: If ``type`` is another one, or pieces begin beyond the end.
    Example: print(np.round(fg.scipy.signal.detrend(np.array([1.0, 3.0, 5.0, 8.0])), 2))
        -> [ 0.2 -0.1 -0.4  0.3]
    """
    if type not in ("linear", "l", "constant", "c"):
        raise ArgumentError(f"detrend: type must be 'linear' or 'constant', got {type!r}.")
    (x,) = floating("detrend", data)
    place = line_axis(x, axis, "detrend")
    if type in ("constant", "c"):
        return x - fnp.mean(x, axis=place, keepdims=True)
    n = shape_of(x)[place]
    bounds = np.unique(np.r_[0, np.atleast_1d(bp), n])
    if bounds[-1] > n or bounds[0] < 0:
        raise ArgumentError(f"detrend: bp must be between 0 and {n}, got {bp!r}.")
    lines = fnp.moveaxis(x, place, -1)
    real = np.empty(0, aval_of(x).dtype).real.dtype
    pieces = []
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        piece = lines[..., start:stop]
        count = stop - start
        basis = np.stack([np.ones(count), np.arange(1, count + 1) / count], 1)
        directions = np.linalg.qr(basis)[0].astype(real)
        pieces.append(piece - (piece @ directions) @ directions.T)
    return fnp.moveaxis(fnp.concatenate(pieces, -1), -1, place)


def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
    """Savitzky-Golay filter: the middle of polynomials fitted to windows.

    As `scipy.signal.savgol_filter`.

    Args:
        window_length: Length of windows.
        polyorder: Degree of the polynomials, less than the length.
        deriv: Which of their derivatives.
        delta: Distance of the samples.
        mode: "interp" for polynomials of the first and last window at both ends; otherwise what
            stands beyond the ends, as in `scipy.ndimage`.
    Returns: An array like ``x``.
    Raises: ArgumentError: If in mode "interp" windows are longer than the line.
    Example: print(np.round(fg.scipy.signal.savgol_filter(np.arange(6.0) ** 2, 5, 2), 9) + 0.0)
        -> [ 0.  1.  4.  9. 16. 25.]
    """
    name = "savgol_filter"
    (x,) = floating(name, x)
    place = line_axis(x, axis, name)
    dtype = aval_of(x).dtype
    coefficients = scipy.signal.savgol_coeffs(window_length, polyorder, deriv, delta)[::-1]
    origin = -1 if window_length % 2 == 0 else 0
    n = shape_of(x)[place]
    if mode == "interp" and window_length > n:
        raise ArgumentError(
            f"{name}: in mode 'interp' window_length = {window_length} must not exceed the {n} "
            "samples."
        )
    inner = "constant" if mode == "interp" else mode
    taps = coefficients.astype(dtype)
    smooth = weighted(name, x, taps, [place], [origin], [inner], cval)
    if mode != "interp":
        return smooth
    half = window_length // 2
    ends = []
    for start, first in ((0, 0), (n - window_length, window_length - half)):
        places = np.arange(first, first + half)
        matrix = _fitted_values(window_length, polyorder, deriv, delta, places)
        window = fnp.moveaxis(cut(x, place, start, start + window_length), place, -1)
        ends.append(fnp.moveaxis(window @ matrix.T.astype(dtype), -1, place))
    return fnp.concatenate([ends[0], cut(smooth, place, half, n - half), ends[1]], place)


def _fitted_values(
    length: int, degree: int, deriv: int, delta: float, places: np.ndarray
) -> np.ndarray:
    """The matrix from a window to a derivative of its polynomial at some places."""
    centre = (length - 1) / 2
    powers = np.arange(degree + 1)
    fit = np.linalg.pinv((np.arange(length) - centre)[:, None] ** powers)
    factors = np.array([np.prod(np.arange(k - deriv + 1, k + 1)) for k in powers], float)
    factors[powers < deriv] = 0
    moved = (places - centre)[:, None] ** np.maximum(powers - deriv, 0)
    return (moved * factors) @ fit / delta**deriv


def _odd_sizes(function: str, sizes: Any, ndim: int) -> tuple[int, ...]:
    found = tuple(int(n) for n in np.broadcast_to(3 if sizes is None else sizes, (ndim,)))
    if any(n % 2 == 0 for n in found):
        raise ArgumentError(f"{function}: lengths of windows must be odd, got {found}.")
    return found


def order_filter(a: Any, domain: Any, rank: int) -> Any:
    """Neighbour of a rank, with zeros beyond the ends, as `scipy.signal.order_filter`.

    Args:
        a: Array.
        domain: Known array of as many axes, of odd lengths; elements that are not 0 choose.
        rank: 0 for the least.
    Returns: An array like ``a``. Its derivative is that of the neighbour it took.
    Raises: ArgumentError: If lengths of the domain are even.
    Example: fg.scipy.signal.order_filter(np.array([1.0, 5.0, 2.0, 4.0]), np.ones(3), 1)
        -> array([1., 2., 4., 2.])
    """
    x = strong(as_value(a, "order_filter"))
    footprint = np.asarray(domain) != 0
    if footprint.ndim != len(shape_of(x)):
        raise ShapeError(
            f"order_filter: domain must have as many axes as {aval_of(x)}, got {footprint.ndim}."
        )
    _odd_sizes("order_filter", footprint.shape, footprint.ndim)
    n = footprint.ndim
    return ranked("order_filter", x, rank, footprint, (0,) * n, ("constant",) * n, 0)


def medfilt(volume: Any, kernel_size: int | Sequence[int] | None = None) -> Any:
    """Medians of neighbours, with zeros beyond the ends, as `scipy.signal.medfilt`.

    Args:
        volume: Array.
        kernel_size: Odd lengths of windows, 3 by default.
    Returns: An array like ``volume``. Its derivative is that of the neighbour it took.
    Raises: ArgumentError: If lengths are even.
    Example: print(fg.scipy.signal.medfilt(np.array([1.0, 9.0, 2.0, 3.0]))) -> [1. 2. 3. 2.]
    """
    x = fnp.atleast_1d(strong(as_value(volume, "medfilt")))
    sizes = _odd_sizes("medfilt", kernel_size, len(shape_of(x)))
    return order_filter(x, np.ones(sizes), int(np.prod(sizes)) // 2)


def medfilt2d(input: Any, kernel_size: int | Sequence[int] = 3) -> Any:
    """`medfilt` of a matrix, as `scipy.signal.medfilt2d`.

    Args:
        input: Array of two axes.
        kernel_size: Length of the window, odd, for both axes or for each.

    Example:
        >>> fg.scipy.signal.medfilt2d(np.array([[1.0, 2.0, 3.0], [4.0, 9.0, 6.0], [7.0, 8.0, 5.0]]))
        array([[0., 2., 0.],
               [2., 5., 3.],
               [0., 5., 0.]])
    """
    x = strong(as_value(input, "medfilt2d"))
    if len(shape_of(x)) != 2:
        raise ShapeError(f"medfilt2d needs a matrix, got {aval_of(x)}.")
    return medfilt(x, kernel_size)


def wiener(im: Any, mysize: int | Sequence[int] | None = None, noise: Any = None) -> Any:
    """Array without noise, where neighbours vary no more than noise does, as `scipy.signal.wiener`.

    Args:
        im: Array.
        mysize: Lengths of windows, 3 by default.
        noise: Power of the noise; by default the mean of the variances of all windows.
    Returns: An array like ``im``, floating.
    Example: print(np.round(fg.scipy.signal.wiener(np.array([1.0, 1.0, 4.0, 1.0, 1.0]), 3), 3))
        -> [0.667 1.644 2.711 1.644 0.667]
    """
    (x,) = floating("wiener", im)
    n = len(shape_of(x))
    sizes = tuple(int(k) for k in np.broadcast_to(3 if mysize is None else mysize, (n,)))
    taps = np.ones(sizes, aval_of(x).dtype)

    def local_mean(v: Any) -> Any:
        sums = weighted("wiener", v, taps, range(n), [0] * n, ["constant"] * n, 0)
        return sums / taps.size

    mean = local_mean(x)
    variance = local_mean(fnp.square(x)) - fnp.square(mean)
    noise = fnp.mean(variance) if noise is None else as_value(noise, "wiener")
    is_quiet = variance < noise
    share = 1 - noise / fnp.where(is_quiet, 1.0, variance)
    return fnp.where(is_quiet, mean, mean + (x - mean) * share)


def whittaker_henderson(
    signal: Any, *, lamb: Any = "reml", order: int = 2, weights: Any = None
) -> Result:
    """Samples, smoothed by a penalty on their differences, as `scipy.signal.whittaker_henderson`.

    What is found has the least ``sum(weights * (signal - x)**2) + lamb * sum(diff(x, order)**2)``.
    It is differentiable in the signal, the penalty and the weights.

    Args:
        signal: Samples at equal distances, ``(n,)`` with ``n > order``.
        lamb: The strength of the penalty, a number of at least 0. At ``1e15`` and above it leaves
            nothing of the signal in the equations.
        order: The order of the differences, at least 1.
        weights: How much each sample counts, ``(n,)``; those of weight 0 may be nan.
    Returns: A result with ``x``, the smoothed samples, and ``lamb``.

    Raises:
        ArgumentError: If ``lamb`` is no number or negative, or ``order`` is less than 1. SciPy
            searches for a penalty unless it is given one; no derivative passes through that.
        ShapeError: If the signal is no vector or too short, or the weights have another shape.

    Example:
        >>> from funcgrad.scipy import signal
        >>> print(np.round(signal.whittaker_henderson(np.r_[0.0, 3.0, 0.0, 3.0], lamb=1.0).x, 2))
        [0.55 1.36 1.64 2.45]
    """
    name = "whittaker_henderson"
    if isinstance(lamb, str):
        raise ArgumentError(
            f"{name}: give lamb. To have one found, call scipy.signal.{name} on known values and "
            "pass the lamb of its result."
        )
    if order < 1:
        raise ArgumentError(f"{name}: order must be at least 1, got {order}.")
    (y, strength) = floating(name, signal, lamb)
    shape = shape_of(y)
    if len(shape) != 1 or shape[0] <= order:
        raise ShapeError(f"{name} needs a vector of more than {order} samples, got {aval_of(y)}.")
    if not is_traced(lamb) and not lamb >= 0:
        raise ArgumentError(f"{name}: lamb must not be negative, got {lamb!r}.")
    count = fnp.ones(shape, aval_of(y).dtype)
    if weights is not None:
        (count,) = floating(name, weights)
        if shape_of(count) != shape:
            raise ShapeError(f"{name}: {aval_of(count)} are no weights of {aval_of(y)}.")
        y = fnp.where(count == 0, 0, y)
    bands = strength * _squared_differences(shape[0], order).astype(aval_of(y).dtype)
    system = fnp.concatenate([bands[:1] + count, bands[1:]])
    return Result(x=solveh_banded(system, count * y, lower=True), lamb=lamb)


def _squared_differences(n: int, order: int) -> np.ndarray:
    """``D.T @ D`` of the differences of ``n`` numbers: its diagonals from the main one down."""
    factors = np.diff(np.eye(1, 2 * order + 1, order)[0], order)
    rows = np.zeros((order + 1, n))
    for below in range(order + 1):
        for i in range(order + 1 - below):
            rows[below, i : i + n - order] += factors[i] * factors[i + below]
    return rows
