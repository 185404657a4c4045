"""Filters of spectra: what an array is convolved with, or moved by, when it is transformed back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ShapeError
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import along, floating, line_axis
from funcgrad.scipy.ndimage.filters import cast, output_dtype

__all__ = ["fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform"]


def _frequencies(length: int, n: int, is_half: bool) -> np.ndarray:
    """Periods per element."""
    return np.arange(length) / n if is_half else np.fft.fftfreq(length)


def _multiplied(
    name: str,
    input: Any,
    parameter: Any,
    n: int,
    axis: int,
    output: Any,
    factor: Callable[[Any, np.ndarray], Any],
) -> Any:
    x, p = floating(name, input, parameter)
    p = fnp.broadcast_to(p, (len(shape_of(x)),))
    half = line_axis(x, axis, name)
    for i, length in enumerate(shape_of(x)):
        is_half = n >= 0 and i == half
        f = along(_frequencies(length, n, is_half), i, len(shape_of(x)))
        x = x * factor(p[i], f.astype(np.empty(0, aval_of(p).dtype).real.dtype))
    return x if output is None else cast(x, output_dtype(name, x, output))


def fourier_gaussian(
    input: Any, sigma: Any, n: int = -1, axis: int = -1, output: Any = None
) -> Any:
    """Spectrum times that of a Gaussian, as `scipy.ndimage.fourier_gaussian`.

    Args:
        input: Spectrum.
        sigma: Standard deviations, one or one for each axis; they may be traced.
        n: Negative for a whole spectrum; otherwise the length, along ``axis``, of the real array
            that `rfftn` transformed.
        axis: The axis of that transform.
    Returns: An array like ``input``.
    Example: fg.scipy.ndimage.fourier_gaussian(np.ones(4), 1.0)
        -> array([1.        , 0.29121293, 0.00719188, 0.29121293])
    """
    return _multiplied(
        "fourier_gaussian", input, sigma, n, axis, output,
        lambda s, f: fnp.exp(-2 * np.pi**2 * fnp.square(s * f)),
    )  # fmt: skip


def fourier_uniform(input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """Spectrum times that of a box, as `scipy.ndimage.fourier_uniform`.

    The other arguments are those of `fourier_gaussian`.

    Example: fg.scipy.ndimage.fourier_uniform(np.ones(4), 2.0).round(6)
        -> array([1.     , 0.63662, 0.     , 0.63662])
    """
    return _multiplied(
        "fourier_uniform", input, size, n, axis, output, lambda s, f: fnp.sinc(s * f)
    )


def fourier_shift(input: Any, shift: Any, n: int = -1, axis: int = -1, output: Any = None) -> Any:
    """Spectrum of an array that is moved, as `scipy.ndimage.fourier_shift`.

    The other arguments are those of `fourier_gaussian`. The result is complex.

    Args: shift: By how many elements.
    Example: fg.scipy.ndimage.fourier_shift(np.ones(4), 1.0).round(6)
        -> array([ 1.+0.j,  0.-1.j, -1.+0.j,  0.+1.j])
    """
    (x,) = floating("fourier_shift", input)
    x = fnp.astype(x, complex_dtype(aval_of(x).dtype))
    (steps,) = floating("fourier_shift", shift)
    steps = fnp.broadcast_to(steps, (len(shape_of(x)),))
    half = line_axis(x, axis, "fourier_shift")
    for i, length in enumerate(shape_of(x)):
        f = along(_frequencies(length, n, n >= 0 and i == half), i, len(shape_of(x)))
        x = x * fnp.astype(fnp.exp(-2j * np.pi * steps[i] * f), aval_of(x).dtype)
    return x if output is None else cast(x, output_dtype("fourier_shift", x, output))


def fourier_ellipsoid(
    input: Any, size: Any, n: int = -1, axis: int = -1, output: Any = None
) -> Any:
    """Spectrum times that of an ellipsoid of known size, as `scipy.ndimage.fourier_ellipsoid`.

    The other arguments are those of `fourier_gaussian`.

    Example: fg.scipy.ndimage.fourier_ellipsoid(np.ones((2, 2)), 1.0)
        -> array([[1.        , 0.72170284],
                  [0.72170284, 0.49771703]])
    """
    (x,) = floating("fourier_ellipsoid", input)
    if len(shape_of(x)) > 3:
        raise ShapeError(f"fourier_ellipsoid takes at most three axes, got {aval_of(x)}.")
    ones = np.ones(shape_of(x))
    factor = scipy.ndimage.fourier_ellipsoid(ones, size, n, axis)
    x = x * factor.astype(np.empty(0, aval_of(x).dtype).real.dtype)
    return x if output is None else cast(x, output_dtype("fourier_ellipsoid", x, output))
