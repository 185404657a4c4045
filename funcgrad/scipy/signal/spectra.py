"""Spectra of segments of a line: short-time transforms, and densities averaged over segments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.signal

import funcgrad.numpy.values as fnp
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import (
    cut,
    floating,
    is_complex_value,
    line_axis,
    odd_extended,
    repeated_ends,
    zeros_added,
)
from funcgrad.scipy.signal.smoothing import detrend as _detrend

__all__ = ["coherence", "csd", "istft", "periodogram", "spectrogram", "stft", "welch"]


def _window_of(function: str, window: Any, nperseg: int | None, length: int) -> tuple[Any, int]:
    """The window as a vector, and its length."""
    if isinstance(window, str | tuple):
        count = 256 if nperseg is None else int(nperseg)
        if count < 1:
            raise ArgumentError(f"{function}: nperseg must be positive, got {nperseg}.")
        if count > length:
            warnings.warn(
                f"{function}: nperseg = {count} is greater than the length of the line, {length}, "
                f"which is used instead.",
                stacklevel=4,
            )
            count = length
        return scipy.signal.get_window(window, count), count
    values = as_value(window, function)
    if len(shape_of(values)) != 1:
        raise ShapeError(f"{function}: window must be a vector, got {aval_of(values)}.")
    count = shape_of(values)[0]
    if nperseg is not None and int(nperseg) != count:
        raise ShapeError(f"{function}: window has {count} elements, but nperseg is {int(nperseg)}.")
    if count > length:
        raise ShapeError(f"{function}: window has {count} elements, the line only {length}.")
    return values, count


def _counts(function: str, nperseg: int, noverlap: Any, nfft: Any) -> tuple[int, int]:
    """Overlap and length of transforms."""
    n = nperseg if nfft is None else int(nfft)
    overlap = nperseg // 2 if noverlap is None else int(noverlap)
    if n < nperseg:
        raise ArgumentError(f"{function}: nfft must be at least nperseg = {nperseg}, got {n}.")
    if not 0 <= overlap < nperseg:
        raise ArgumentError(
            f"{function}: noverlap must be less than nperseg = {nperseg}, got {overlap}."
        )
    return overlap, n


def _factor(function: str, scaling: str, known: dict[str, str], win: Any, fs: Any) -> Any:
    if scaling not in known:
        raise ArgumentError(
            f"{function}: scaling must be one of {', '.join(map(repr, known))}, got {scaling!r}."
        )
    if known[scaling] == "density":
        return 1.0 / (fs * fnp.sum(win * win))
    return 1.0 / fnp.square(fnp.sum(win))


def _detrended(segments: Any, detrend: Any, axis: int) -> Any:
    if not detrend:
        return segments
    if not callable(detrend):
        return _detrend(segments, -1, detrend)
    if axis == -1:
        return detrend(segments)
    return fnp.moveaxis(detrend(fnp.moveaxis(segments, -1, axis)), axis, -1)


def _transforms(
    lines: Any, win: Any, detrend: Any, noverlap: int, nfft: int, onesided: bool, axis: int
) -> Any:
    """Transforms of the segments of lines along the last axis: ``(..., segments, nfft)``."""
    nperseg = shape_of(win)[0]
    starts = np.arange(0, shape_of(lines)[-1] - nperseg + 1, nperseg - noverlap)
    segments = lines[..., starts[:, None] + np.arange(nperseg)]
    weighted = win * _detrended(segments, detrend, axis)
    return fnp.fft.rfft(weighted, nfft) if onesided else fnp.fft.fft(weighted, nfft)


def _doubled(power: Any, nfft: int) -> Any:
    """Power of the frequencies whose negative ones were left out, twice."""
    weights = np.full(shape_of(power)[-1], 2.0, np.empty(0, aval_of(power).dtype).real.dtype)
    weights[0] = 1.0
    if nfft % 2 == 0:
        weights[-1] = 1.0
    return power * weights


def _frequencies(nfft: int, onesided: bool, fs: Any) -> Any:
    return (np.fft.rfftfreq if onesided else np.fft.fftfreq)(nfft) * fs


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Any, Any, Any]:
    """Fourier transforms of overlapping segments, as `scipy.signal.stft`.

    Args:
        window: A name, a tuple of a name and parameters, or a vector (which may be traced).
        detrend: "linear" or "constant" as in `detrend`, a function of segments along the last
            axis, or False.
        boundary: How ends are extended by half a segment: "even", "odd", "constant", "zeros" or
            None.
        padded: Whether zeros are added at the end, so that segments cover everything.

    Returns:
        Frequencies, times, and the transforms: frequencies along ``axis``, times along the last.
    Raises: ArgumentError: If lengths or options are impossible.

    Example:
        >>> f, t, z = fg.scipy.signal.stft(np.ones(16), nperseg=8)
        >>> print(f, t, z.shape)
        [0.    0.125 0.25  0.375 0.5  ] [ 0.  4.  8. 12. 16.] (5, 5)
    """
    known = {"spectrum": "spectrum", "psd": "density"}
    return _short_time(
        "stft", x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, boundary, padded,
        axis, scaling, known,
    )  # fmt: skip


def _short_time(
    function: str,
    x: Any,
    fs: Any,
    window: Any,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: Any,
    return_onesided: bool,
    boundary: str | None,
    padded: bool,
    axis: int,
    scaling: str,
    known: dict[str, str],
    is_power: bool = False,
) -> tuple[Any, Any, Any]:
    (x,) = floating(function, x)
    place = line_axis(x, axis, function)
    if 0 in shape_of(x):
        nothing = np.zeros(shape_of(x), np.empty(0, aval_of(x).dtype).real.dtype)
        return nothing, nothing, nothing
    lines = fnp.moveaxis(x, place, -1)
    last = len(shape_of(x)) - 1
    win, count = _window_of(function, window, nperseg, shape_of(lines)[-1])
    overlap, n = _counts(function, count, noverlap, nfft)
    half, hop = count // 2, count - overlap
    if boundary in ("even", "odd"):
        lines = odd_extended(lines, half, last, boundary == "odd")
    elif boundary == "constant":
        lines = repeated_ends(lines, half, last)
    elif boundary == "zeros":
        lines = zeros_added(lines, half, half, last)
    elif boundary is not None:
        raise ArgumentError(
            f"{function}: boundary must be 'even', 'odd', 'constant', 'zeros' or None, got "
            f"{boundary!r}."
        )
    if padded:
        lines = zeros_added(lines, 0, (-(shape_of(lines)[-1] - count) % hop) % count, last)
    win = _as_real_of(lines, win)
    onesided = return_onesided and not is_complex_value(x)
    transforms = _transforms(lines, win, detrend, overlap, n, onesided, axis)
    factor = _factor(function, scaling, known, win, fs)
    if is_power:
        power = fnp.square(transforms.real) + fnp.square(transforms.imag)
        transforms = power * factor
        transforms = _doubled(transforms, n) if onesided else transforms
    else:
        transforms = transforms * fnp.sqrt(factor)
    length = shape_of(lines)[-1]
    times = np.arange(count / 2, length - count / 2 + 1, hop) / fs
    if boundary is not None:
        times = times - (count / 2) / fs
    # Segments, then frequencies, at the end: frequencies go where the samples were.
    out = fnp.moveaxis(fnp.swapaxes(transforms, -1, -2), -2, place)
    return _frequencies(n, onesided, fs), times, out


def _as_real_of(x: Any, win: Any) -> Any:
    """A window in the precision of ``x``."""
    if is_complex_value(as_value(win, "window")):
        return fnp.astype(win, complex_dtype(aval_of(x).dtype))
    return fnp.astype(win, np.empty(0, aval_of(x).dtype).real.dtype)


def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Any, Any]:
    """Signal from its short-time Fourier transform, as `scipy.signal.istft`.

    Args:
        Zxx: Transforms of segments.
        nperseg: Length of segments; by default, that of the transforms.
        input_onesided: Whether negative frequencies were left out.
        boundary: Whether ends were extended.
        time_axis: Which axis counts segments.
        freq_axis: Which axis counts frequencies.
    Returns: Times and samples.
    Raises: ArgumentError: If lengths or options are impossible.

    Example:
        >>> x = np.arange(16.0)
        >>> t, y = fg.scipy.signal.istft(fg.scipy.signal.stft(x, nperseg=8)[2])
        >>> print(np.allclose(x, y))
        True
    """
    name = "istft"
    (z,) = floating(name, Zxx)
    z = fnp.astype(z, complex_dtype(aval_of(z).dtype))
    if len(shape_of(z)) < 2:
        raise ShapeError(f"{name} needs at least two axes, got {aval_of(z)}.")
    segments, frequencies = line_axis(z, time_axis, name), line_axis(z, freq_axis, name)
    if segments == frequencies:
        raise ArgumentError(f"{name}: time_axis and freq_axis must differ.")
    z = fnp.moveaxis(z, (segments, frequencies), (-2, -1))
    count, bins = shape_of(z)[-2:]
    default = 2 * (bins - 1) if input_onesided else bins
    length = default if nperseg is None else int(nperseg)
    if nfft is None:
        n = length if input_onesided and length == default + 1 else default
    else:
        n = int(nfft)
    overlap, _ = _counts(name, length, noverlap, n)
    hop = length - overlap
    if isinstance(window, str | tuple):
        win: Any = scipy.signal.get_window(window, length)
    else:
        win = as_value(window, name)
        if shape_of(win) != (length,):
            raise ShapeError(f"{name}: window must have {length} elements, got {aval_of(win)}.")
    parts = (fnp.fft.irfft if input_onesided else fnp.fft.ifft)(z, n)[..., :length]
    win = _as_real_of(parts, win)
    factor = _factor(name, scaling, {"spectrum": "spectrum", "psd": "density"}, win, fs)
    parts = parts * (win / fnp.sqrt(factor))
    places = (hop * np.arange(count))[:, None] + np.arange(length)
    total = length + (count - 1) * hop
    sums = np.zeros((*shape_of(parts)[:-2], total), aval_of(parts).dtype)
    x = fnp.at(sums)[..., places].add(parts)
    squares = fnp.broadcast_to(fnp.square(win), places.shape)
    norm = fnp.at(np.zeros(total, aval_of(win).dtype))[places].add(squares)
    if boundary:
        x, norm = x[..., length // 2 : total - length // 2], norm[length // 2 : total - length // 2]
    if not is_traced(norm) and np.any(norm <= 1e-10):
        warnings.warn(
            "istft: windows do not cover all samples, which are not those that stft was taken of.",
            stacklevel=2,
        )
    x = x / fnp.where(norm > 1e-10, norm, 1.0)
    times = np.arange(shape_of(x)[-1]) / fs
    return times, fnp.moveaxis(x, -1, segments - (frequencies < segments))


def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Any, Any, Any]:
    """Spectra of overlapping segments, as `scipy.signal.spectrogram`.

    Args:
        noverlap: How many samples neighbours share, an eighth by default.
        mode: "psd", "complex", "magnitude", "angle" or "phase".
    Returns: Frequencies, times, and spectra: frequencies along ``axis``, times along the last axis.
    Example: fg.scipy.signal.spectrogram(np.sin(np.arange(32.0)), nperseg=8)[2].shape -> (5, 4)
    """
    if mode not in ("psd", "complex", "magnitude", "angle", "phase"):
        raise ArgumentError(
            "spectrogram: mode must be 'psd', 'complex', 'magnitude', 'angle' or 'phase', got "
            f"{mode!r}."
        )
    (x,) = floating("spectrogram", x)
    place = line_axis(x, axis, "spectrogram")
    win, count, overlap = window, nperseg, noverlap
    if shape_of(x)[place]:
        win, count = _window_of("spectrogram", window, nperseg, shape_of(x)[place])
        overlap = count // 8 if noverlap is None else noverlap
    frequencies, times, z = _short_time(
        "spectrogram", x, fs, win, count, overlap, nfft, detrend, return_onesided, None, False,
        axis, scaling, {"density": "density", "spectrum": "spectrum"}, mode == "psd",
    )  # fmt: skip
    if mode == "magnitude":
        z = fnp.abs(z)
    elif mode in ("angle", "phase"):
        z = fnp.angle(z)
        z = fnp.unwrap(z, axis=place) if mode == "phase" else z
    return frequencies, times, z


def _cross(
    function: str,
    x: Any,
    y: Any,
    fs: Any,
    window: Any,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Any, Any]:
    """Cross spectral density; the power of ``x`` where ``y`` is None."""
    values = floating(function, x) if y is None else floating(function, x, y)
    shapes = [shape_of(v) for v in values]
    lines = [fnp.moveaxis(v, line_axis(v, axis, function), -1) for v in values]
    if any(0 in shape for shape in shapes):
        nothing = np.zeros(shapes[0], np.empty(0, aval_of(values[0]).dtype).real.dtype)
        return nothing, nothing
    length = max(shape_of(v)[-1] for v in lines)
    lines = [zeros_added(v, 0, length - shape_of(v)[-1], len(shape_of(v)) - 1) for v in lines]
    win, count = _window_of(function, window, nperseg, length)
    win = _as_real_of(lines[0], win)
    overlap, n = _counts(function, count, noverlap, nfft)
    onesided = return_onesided and not any(map(is_complex_value, values))
    spectra = [_transforms(v, win, detrend, overlap, n, onesided, axis) for v in lines]
    if y is None:
        power = fnp.square(spectra[0].real) + fnp.square(spectra[0].imag)
    else:
        power = fnp.conj(spectra[0]) * spectra[1]
    known = {"density": "density", "spectrum": "spectrum"}
    power = power * _factor(function, scaling, known, win, fs)
    power = _doubled(power, n) if onesided else power
    mean = _average(function, power, average)
    place = axis if axis < 0 else axis - len(shapes[0])
    return _frequencies(n, onesided, fs), fnp.moveaxis(mean, -1, place)


def _average(function: str, power: Any, average: str) -> Any:
    """The mean, or the median over its bias, of the segments along the last axis but one."""
    if average == "mean":
        return fnp.mean(power, axis=-2)
    if average != "median":
        raise ArgumentError(f"{function}: average must be 'mean' or 'median', got {average!r}.")
    even = 2.0 * np.arange(1, (shape_of(power)[-2] - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))
    if is_complex_value(power):
        middle = fnp.median(power.real, axis=-2) + 1j * fnp.median(power.imag, axis=-2)
    else:
        middle = fnp.median(power, axis=-2)
    return middle / bias


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Cross power spectral density by Welch's method, as `scipy.signal.csd`.

    Args: y: Samples; zeros are added to the shorter ones.
    Returns: Frequencies and the density, complex.
    Raises: ArgumentError: If lengths or options are impossible.
    Example: fg.scipy.signal.csd(np.sin(np.arange(16.0)), np.cos(np.arange(16.0)), nperseg=8)[1]
        -> array([ 1.47954398e-02+0.j        ,  4.02091033e-02+2.87090833j,
                  -1.33892886e-03+1.31715603j, -4.47641264e-05+0.01291292j,
                  -2.67173059e-05+0.j        ])
    """
    return _cross(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        average,
    )  # fmt: skip


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """Power spectral density by Welch's method, as `scipy.signal.welch`.

    Returns: Frequencies and the density.

    Example:
        >>> f, power = fg.scipy.signal.welch(np.cos(np.pi * np.arange(64) / 4), nperseg=16)
        >>> print(f[np.argmax(power)])
        0.125
    """
    return _cross(
        "welch", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
        axis, average,
    )  # fmt: skip


def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Any, Any]:
    """Power spectral density from one transform, as `scipy.signal.periodogram`.

    Args: nfft: Length of the transform; that of ``x`` by default.
    Returns: Frequencies and the density.
    Example: fg.scipy.signal.periodogram(np.sin(np.arange(8.0)))[1]
        -> array([0.        , 2.53294819, 0.6902859 , 0.21371674, 0.08152195])
    """
    (x,) = floating("periodogram", x)
    place = line_axis(x, axis, "periodogram")
    n = shape_of(x)[place]
    if n and nfft is not None and nfft < n:
        x, n = cut(x, place, 0, nfft), int(nfft)
    win = scipy.signal.get_window(window, n) if isinstance(window, str | tuple) and n else window
    return _cross(
        "periodogram", x, None, fs, win, n, 0, nfft, detrend, return_onesided, scaling, axis,
        "mean",
    )  # fmt: skip


def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    axis: int = -1,
) -> tuple[Any, Any]:
    """Coherence ``|csd(x, y)|**2 / (welch(x) welch(y))``, as `scipy.signal.coherence`.

    Returns: Frequencies and the coherence, from 0 to 1.

    Example:
        >>> fg.scipy.signal.coherence(np.sin(np.arange(16.0)), np.cos(np.arange(16.0)), nperseg=8)[
        ...     1
        ... ]
        array([5.81637605e-04, 9.78864446e-01, 9.99789310e-01, 9.97555223e-01,
               4.87954636e-03])
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    frequencies, x_power = welch(x, *options, axis=axis)
    _, y_power = welch(y, *options, axis=axis)
    _, both = csd(x, y, *options, axis=axis)
    return frequencies, (fnp.square(both.real) + fnp.square(both.imag)) / x_power / y_power
