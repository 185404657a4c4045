"""Frequency responses of filters, and transforms at points of the plane other than the circle's."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import floating, line_axis

__all__ = [
    "czt", "freqs", "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "group_delay", "lombscargle",
    "sosfreqz", "vectorstrength", "zoom_fft",
]  # fmt: skip

_TURN = 2 * np.pi


def _angles(function: str, worN: Any, whole: bool, fs: Any, include_nyquist: bool = False) -> Any:
    """Angles per sample at which a response is asked for."""
    worN = 512 if worN is None else worN
    if isinstance(worN, int | np.integer):
        count = operator.index(worN)
        if count < 0:
            raise ArgumentError(f"{function}: worN must not be negative, got {count}.")
        end = _TURN if whole else np.pi
        return np.linspace(0, end, count, endpoint=include_nyquist and not whole)
    (w,) = floating(function, worN)
    return _TURN * fnp.atleast_1d(w) / fs


def _polynomial(coefficients: Any, z: Any) -> Any:
    """Ascending coefficients along the first axis, at every ``z``."""
    powers = np.arange(shape_of(coefficients)[0])
    table = fnp.expand_dims(z, -1) ** powers
    if len(shape_of(coefficients)) == 1:
        return table @ fnp.astype(coefficients, aval_of(table).dtype)
    # Of many filters, which broadcast against the frequencies along the last axis.
    shifted = fnp.moveaxis(coefficients, 0, -1)
    return fnp.sum(table * shifted, axis=-1)


def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Callable[[Any, Any], Any] | None = None,
    fs: Any = _TURN,
    include_nyquist: bool = False,
) -> tuple[Any, Any]:
    """Response of a digital filter to waves, as `scipy.signal.freqz`.

    Args:
        b: Coefficients of the numerator, along the first axis.
        include_nyquist: Whether the last of the frequencies is half of that.
    Returns: Frequencies and the response there, complex.

    Example:
        >>> w, h = fg.scipy.signal.freqz([0.5, 0.5], worN=2)
        >>> print(np.round(abs(h), 4))
        [1.     0.7071]
    """
    b, a = floating("freqz", b, a)
    w = _angles("freqz", worN, whole, fs, include_nyquist)
    z = fnp.exp(-1j * w)
    h = _polynomial(fnp.atleast_1d(b), z) / _polynomial(fnp.atleast_1d(a), z)
    frequencies = w * (fs / _TURN)
    if plot is not None:
        plot(frequencies, h)
    return frequencies, h


def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = _TURN) -> tuple[Any, Any]:
    """Response of sections of second order, ``(sections, 6)``, as `scipy.signal.freqz_sos`.

    Returns: Frequencies and the response there, complex.
    Example: fg.scipy.signal.freqz_sos(np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]), worN=3)[1]
        -> array([2.        +0.j        , 1.        -0.57735027j,
                  0.71428571-0.24743583j])
    """
    (sos,) = floating("freqz_sos", sos)
    if len(shape_of(sos)) != 2 or shape_of(sos)[1] != 6 or not shape_of(sos)[0]:
        raise ShapeError(f"freqz_sos: sos must be (sections, 6), got {aval_of(sos)}.")
    w = _angles("freqz_sos", worN, whole, fs)
    z = fnp.exp(-1j * w)
    h: Any = 1.0
    for i in range(shape_of(sos)[0]):
        h = h * _polynomial(sos[i, :3], z) / _polynomial(sos[i, 3:], z)
    return w * (fs / _TURN), h


sosfreqz = freqz_sos


def freqz_zpk(
    z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: Any = _TURN
) -> tuple[Any, Any]:
    """Response of a filter given by zeros, poles and gain, as `scipy.signal.freqz_zpk`.

    Example: fg.scipy.signal.freqz_zpk([], [0.5], 1.0, worN=3)[1].round(6)
        -> array([ 2.      +0.j      ,  0.      -1.154701j, -0.571429-0.494872j])
    """
    w = _angles("freqz_zpk", worN, whole, fs)
    return w * (fs / _TURN), _of_roots(fnp.exp(1j * w), z, p, k)


def _of_roots(s: Any, z: Any, p: Any, k: Any) -> Any:
    points = fnp.expand_dims(s, -1)
    zeros, poles = (fnp.atleast_1d(as_value(v, "freqz_zpk")) for v in (z, p))
    return k * fnp.prod(points - zeros, axis=-1) / fnp.prod(points - poles, axis=-1)


def _frequencies_of(worN: Any, default: Callable[[int], Any]) -> Any:
    if worN is None or isinstance(worN, int | np.integer):
        return default(200 if worN is None else int(worN))
    return fnp.atleast_1d(as_value(worN, "freqs"))


def freqs(
    b: Any, a: Any, worN: Any = 200, plot: Callable[[Any, Any], Any] | None = None
) -> tuple[Any, Any]:
    """Response of an analogue filter, as `scipy.signal.freqs`.

    Args:
        b: Coefficients of the numerator, the highest power first.
        worN: Angular frequencies; or how many, which are found from known coefficients.
    Returns: Frequencies and the response there, complex.
    Example: fg.scipy.signal.freqs([1.0], [1.0, 1.0], worN=[0.0, 1.0])[1]
        -> array([1. +0.j , 0.5-0.5j])
    """
    w = _frequencies_of(worN, lambda n: scipy.signal.findfreqs(b, a, n))
    b, a = floating("freqs", b, a)
    h = fnp.polyval(b, 1j * w) / fnp.polyval(a, 1j * w)
    if plot is not None:
        plot(w, h)
    return w, h


def freqs_zpk(z: Any, p: Any, k: Any, worN: Any = 200) -> tuple[Any, Any]:
    """`freqs` of a filter given by zeros, poles and gain, as `scipy.signal.freqs_zpk`.

    Example: fg.scipy.signal.freqs_zpk([], [-1.0], 1.0, worN=[0.0, 1.0])[1]
        -> array([1. +0.j , 0.5-0.5j])
    """
    w = _frequencies_of(worN, lambda n: scipy.signal.findfreqs(z, p, n, kind="zp"))
    return w, _of_roots(1j * w, z, p, k)


def group_delay(system: Any, w: Any = 512, whole: bool = False, fs: Any = _TURN) -> tuple[Any, Any]:
    """Delay of waves by a filter, in samples, as `scipy.signal.group_delay`.

    Args:
        system: ``(b, a)``, two vectors of coefficients.
        w: How many frequencies, or which.
    Returns: Frequencies and delays; 0 where the delay is singular.
    Example: print(fg.scipy.signal.group_delay(([1.0, 2.0, 1.0], [1.0]), 3)[1]) -> [1. 1. 1.]
    """
    b, a = (fnp.atleast_1d(v) for v in floating("group_delay", *system))
    angles = _angles("group_delay", w, whole, fs)
    c = fnp.convolve(b, fnp.conj(fnp.flip(a)))
    z = fnp.exp(-1j * angles)
    top = _polynomial(c * np.arange(shape_of(c)[0]), z)
    bottom = _polynomial(c, z)
    is_singular = bottom == 0
    delay = (top / fnp.where(is_singular, 1.0, bottom)).real - (shape_of(a)[0] - 1)
    return angles * (fs / _TURN), fnp.where(is_singular, 0.0, delay)


# Transforms.


def czt(x: Any, m: int | None = None, w: Any = None, a: Any = 1 + 0j, *, axis: int = -1) -> Any:
    """Sums ``x[j] z**-j`` at the points ``z = a * w**-k`` of a spiral, as `scipy.signal.czt`.

    Args:
        m: Number of points, as many as samples by default.
        w: Ratio of neighbouring points; by default they go once around the circle.
        a: The first point.
    Returns: A complex array, of ``m`` elements along ``axis``.

    Reference:
        L. I. Bluestein, A linear filtering approach to the computation of the discrete Fourier
        transform, 1970.

    Example: print(np.round(fg.scipy.signal.czt(np.array([1.0, 0.0, 0.0])), 12) + 0.0)
        -> [1.+0.j 1.+0.j 1.+0.j]
    """
    (x,) = floating("czt", x)
    place = line_axis(x, axis, "czt")
    lines = fnp.moveaxis(x, place, -1)
    n = shape_of(lines)[-1]
    count = n if m is None else int(m)
    if count < 1 or n < 1:
        raise ArgumentError(f"czt: there must be samples and m must be positive, got {n}, {count}.")
    k = np.arange(max(count, n))
    if w is None:
        chirp: Any = np.exp(-1j * np.pi * (k**2 % (2 * count)) / count)
    else:
        chirp = fnp.power(fnp.astype(as_value(w, "czt"), complex), k**2 / 2.0)
    start = fnp.power(fnp.astype(as_value(a, "czt"), complex), -k[:n].astype(float))
    # j k = (j**2 + k**2 - (k - j)**2) / 2 makes a convolution with a chirp of the sum.
    length = scipy.fft.next_fast_len(n + count - 1)
    around = 1 / chirp[np.abs(np.arange(1 - n, count))]
    dtype = complex_dtype(aval_of(x).dtype)
    spectrum = fnp.fft.fft(lines * fnp.astype(start * chirp[:n], dtype), length)
    product = spectrum * fnp.astype(fnp.fft.fft(around, length), dtype)
    y = fnp.fft.ifft(product)[..., n - 1 : n + count - 1] * fnp.astype(chirp[:count], dtype)
    return fnp.moveaxis(y, -1, place)


def zoom_fft(
    x: Any, fn: Any, m: int | None = None, *, fs: Any = 2, endpoint: bool = False, axis: int = -1
) -> Any:
    """Fourier transform at ``m`` frequencies of a band, as `scipy.signal.zoom_fft`.

    Args:
        fn: The band: its two ends, or its upper one.
        m: Number of frequencies, as many as samples by default.
        endpoint: Whether the upper end is one of them.
    Returns: A complex array, of ``m`` elements along ``axis``.
    Example: fg.scipy.signal.zoom_fft(np.array([1.0, 2.0, 3.0, 4.0]), [0.0, 1.0], m=2).round(6)
        -> array([10.+0.j, -2.+2.j])
    """
    (x,) = floating("zoom_fft", x)
    n = shape_of(x)[line_axis(x, axis, "zoom_fft")]
    count = n if m is None else int(m)
    ends = as_value(fn, "zoom_fft")
    if shape_of(ends) not in ((), (2,)):
        raise ShapeError(f"zoom_fft: fn must be one or two numbers, got {aval_of(ends)}.")
    low, high = (0.0, ends) if not shape_of(ends) else (ends[0], ends[1])
    steps = count - 1 if endpoint else count
    w = fnp.exp(-2j * np.pi * (high - low) / (fs * steps))
    a = fnp.exp(2j * np.pi * fnp.asarray(low) / fs)
    return czt(x, count, w, a, axis=axis)


def lombscargle(
    x: Any,
    y: Any,
    freqs: Any,
    *,
    precenter: bool = False,
    normalize: bool | str = False,
    weights: Any = None,
    floating_mean: bool = False,
) -> Any:
    """Power of waves fitted to samples at any times, as `scipy.signal.lombscargle`.

    Args:
        x: Times, a vector.
        y: Samples, a vector.
        freqs: Angular frequencies, a vector.
        precenter: Whether the mean of the samples is taken off first.
        normalize: False or "power", True or "normalize" (from 0 to 1), or "amplitude" (complex).
        weights: Of the samples; equal by default.
        floating_mean: Whether a constant is fitted with each wave.
    Returns: A value for every frequency.

    Raises:
        ArgumentError: If ``normalize`` is another one.
        ShapeError: If values are no vectors, or have different lengths.

    Reference:
        M. Zechmeister and M. Kuerster, The generalised Lomb-Scargle periodogram, 2009.

    Example:
        >>> fg.scipy.signal.lombscargle(
        ...     np.array([0.0, 1.0, 2.5]), np.array([0.0, 1.0, -1.0]), np.array([1.0, 2.0])
        ... )
        array([0.49704119, 0.99930282])
    """
    kind = normalize if isinstance(normalize, str) else "normalize" if normalize else "power"
    if kind not in ("power", "normalize", "amplitude"):
        raise ArgumentError(
            "lombscargle: normalize must be a bool, 'power', 'normalize' or 'amplitude', got "
            f"{normalize!r}."
        )
    x, y, w, f = floating("lombscargle", x, y, 1.0 if weights is None else weights, freqs)
    w = fnp.broadcast_to(w, shape_of(x)) if weights is None else w
    if not (len(shape_of(x)) == 1 and shape_of(x) == shape_of(y) == shape_of(w) != (0,)):
        raise ShapeError(
            f"lombscargle: times, samples and weights must be vectors of one length, got "
            f"{aval_of(x)}, {aval_of(y)} and {aval_of(w)}."
        )
    if len(shape_of(f)) != 1:
        raise ShapeError(f"lombscargle: freqs must be a vector, got {aval_of(f)}.")
    w = w / fnp.sum(w)
    y = y - fnp.mean(y) if precenter else y
    angle = fnp.outer(f, x)
    cos, sin = fnp.cos(angle), fnp.sin(angle)
    squares, both = (cos * cos) @ w, (cos * sin) @ w
    other = 1.0 - squares
    if floating_mean:
        mean_cos, mean_sin = cos @ w, sin @ w
        squares, other = squares - mean_cos**2, other - mean_sin**2
        both = both - mean_cos * mean_sin
    # The phase in which cosine and sine are orthogonal on these times.
    tau = 0.5 * fnp.arctan2(2.0 * both, squares - other)
    shifted = angle - tau[:, None]
    cos, sin = fnp.cos(shifted), fnp.sin(shifted)
    y_cos, y_sin, squares = cos @ (w * y), sin @ (w * y), (cos * cos) @ w
    other = 1.0 - squares
    if floating_mean:
        mean_cos, mean_sin, mean = cos @ w, sin @ w, fnp.sum(w * y)
        y_cos, y_sin = y_cos - mean * mean_cos, y_sin - mean * mean_sin
        squares, other = squares - mean_cos**2, other - mean_sin**2
    least = np.finfo(aval_of(y).dtype).epsneg
    a, b = y_cos / fnp.maximum(squares, least), y_sin / fnp.maximum(other, least)
    if kind == "amplitude":
        return (a + 1j * b) * fnp.exp(1j * tau)
    power = 2.0 * (a * y_cos + b * y_sin)
    if kind == "power":
        return power * (shape_of(x)[0] / 4.0)
    total = fnp.sum(w * y * y)
    total = total - fnp.sum(w * y) ** 2 if floating_mean else total
    return power * 0.5 / total


def vectorstrength(events: Any, period: Any) -> tuple[Any, Any]:
    """Strength of the synchronisation of events with a period, as `scipy.signal.vectorstrength`.

    Args:
        events: Times, a vector.
        period: A period, or a vector of them.
    Returns: Strengths from 0 to 1 and phases, like ``period``.
    Example: print(fg.scipy.signal.vectorstrength(np.array([1.0, 2.0, 3.0]), 1.0)[0]) -> 1.0
    """
    events, period = floating("vectorstrength", events, period)
    if len(shape_of(events)) > 1 or len(shape_of(period)) > 1:
        raise ShapeError(
            "vectorstrength: events and period must be vectors or numbers, got "
            f"{aval_of(events)} and {aval_of(period)}."
        )
    phases = fnp.exp(2j * np.pi * fnp.atleast_1d(events) / fnp.expand_dims(period, -1))
    mean = fnp.mean(phases, axis=-1)
    return fnp.abs(mean), fnp.angle(mean)
