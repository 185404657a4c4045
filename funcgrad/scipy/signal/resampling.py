"""Lines with more or fewer samples: by polyphase filters and by Fourier transforms.

And the analytic signal, which is made of the same half of a spectrum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

import numpy as np
import scipy.signal

import funcgrad.numpy.values as fnp
from funcgrad import lax
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import cut, floating, is_complex_value, line_axis, zeros_added
from funcgrad.scipy.signal.recurrences import sosfilt, sosfiltfilt

__all__ = [
    "decimate", "envelope", "hilbert", "hilbert2", "resample", "resample_poly", "upfirdn",
]  # fmt: skip

_EXTENSIONS = {"symmetric": "symmetric", "reflect": "reflect", "wrap": "wrap", "edge": "edge"}

_LEVELS: dict[str, Callable[..., Any]] = {
    "mean": fnp.mean,
    "median": fnp.median,
    "minimum": fnp.min,
    "maximum": fnp.max,
}


def upfirdn(
    h: Any,
    x: Any,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Any:
    """Samples with zeros between them, filtered, of which every ``down``-th is kept.

    As `scipy.signal.upfirdn`.

    Args:
        h: Coefficients of the filter, a vector.
        up: Distance to which samples are spread.
        down: Which of the filtered ones are kept.
        mode: What stands beyond the ends: "constant", "symmetric", "reflect", "wrap" or "edge".
    Returns: An array like ``x``, of another length along ``axis``.

    Raises:
        ShapeError: If ``h`` is no vector.
        ArgumentError: If rates or the mode are others.
    Example: print(fg.scipy.signal.upfirdn([1.0, 1.0], np.array([1.0, 2.0, 3.0]), up=2))
        -> [1. 1. 2. 2. 3. 3.]
    """
    h, x = floating("upfirdn", h, x)
    up, down = int(up), int(down)
    if len(shape_of(h)) != 1 or not shape_of(h)[0]:
        raise ShapeError(f"upfirdn: h must be a vector, got {aval_of(h)}.")
    if up < 1 or down < 1:
        raise ArgumentError(f"upfirdn: up and down must be at least 1, got {up} and {down}.")
    place = line_axis(x, axis, "upfirdn")
    n, taps = shape_of(x)[place], shape_of(h)[0]
    length = ((n - 1) * up + taps - 1) // down + 1
    is_zero = mode == "constant" and isinstance(cval, int | float) and cval == 0
    if is_zero:
        return _upfirdn(h, x, up, down, place, 0, length)
    if mode != "constant" and mode not in _EXTENSIONS:
        known = ", ".join(map(repr, ("constant", *_EXTENSIONS)))
        raise ArgumentError(f"upfirdn: mode must be one of {known}, got {mode!r}.")
    # Whole periods of both rates in front, so that what is kept begins at a sample of the result.
    border = -(-taps // up)
    border = -(-border // down) * down
    widths = [(border, border) if i == place else (0, 0) for i in range(len(shape_of(x)))]
    options = {"constant_values": cval} if mode == "constant" else {}
    whole = fnp.pad(x, widths, _EXTENSIONS.get(mode, mode), **options)
    return _upfirdn(h, whole, up, down, place, border * up // down, length)


def _upfirdn(h: Any, x: Any, up: int, down: int, axis: int, start: int, length: int) -> Any:
    """Results ``start`` to ``start + length`` of a line with zeros beyond its ends."""
    lines = fnp.moveaxis(x, axis, -1)
    stack, n = shape_of(lines)[:-1], shape_of(lines)[-1]
    taps = shape_of(h)[0]
    if not length or not n or 0 in stack:
        return fnp.moveaxis(fnp.zeros((*stack, length), aval_of(x).dtype), -1, axis)
    reach = (start + length - 1) * down + 1  # of the filtered line, from its first element
    pads = [(taps - 1 - start * down, reach - ((n - 1) * up + 1))]
    rows = fnp.reshape(lines, (-1, 1, n))
    out = lax.conv_general_dilated(
        rows, fnp.reshape(fnp.flip(h), (1, 1, taps)), (down,), pads, lhs_dilation=(up,)
    )
    return fnp.moveaxis(fnp.reshape(out, (*stack, length)), -1, axis)


def resample_poly(
    x: Any,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: Any = None,
) -> Any:
    """``up / down`` times as many samples, by a polyphase filter, as `scipy.signal.resample_poly`.

    Args:
        up: Factor by which they become more.
        down: Divisor by which they become fewer.
        window: Name (and parameters) of a window for the filter, or its coefficients.
        padtype: What stands beyond the ends, as in `upfirdn`; or "mean", "median", "minimum" or
            "maximum" of the line.
    Returns: An array like ``x``, of ``ceil(n * up / down)`` elements along ``axis``.

    Raises:
        ArgumentError: If rates or ``padtype`` are others.
        ShapeError: If coefficients are no vector.
    Example: print(np.round(fg.scipy.signal.resample_poly(np.ones(4), 2, 1, padtype="edge"), 2))
        -> [1. 1. 1. 1. 1. 1. 1. 1.]
    """
    name = "resample_poly"
    (x,) = floating(name, x)
    if int(up) != up or int(down) != down or up < 1 or down < 1:
        raise ArgumentError(f"{name}: up and down must be positive integers, got {up}, {down}.")
    if cval is not None and padtype != "constant":
        raise ArgumentError(f"{name}: cval has no effect where padtype is {padtype!r}.")
    common = gcd(int(up), int(down))
    up, down = int(up) // common, int(down) // common
    if up == down == 1:
        return x
    place = line_axis(x, axis, name)
    length = -(-shape_of(x)[place] * up // down)
    if isinstance(window, str | tuple):
        half = 10 * max(up, down)
        h: Any = scipy.signal.firwin(2 * half + 1, 1.0 / max(up, down), window=window)
        h = h.astype(np.empty(0, aval_of(x).dtype).real.dtype)
    else:
        h = as_value(window, name)
        if len(shape_of(h)) != 1:
            raise ShapeError(f"{name}: window must be a vector of coefficients, got {aval_of(h)}.")
        half = (shape_of(h)[0] - 1) // 2
    before = down - half % down
    skipped = (half + before) // down
    # The filter reaches behind the line as far as the last result.
    missing = (length + skipped - 1) * down - (shape_of(x)[place] - 1) * up
    after = max(missing + 1 - shape_of(h)[0] - before, 0)
    h = zeros_added(h * up, before, after, 0)
    level: Any = 0
    mode = padtype
    if padtype in _LEVELS:
        level, mode = _LEVELS[padtype](x, axis=place, keepdims=True), "constant"
        x = x - level
    y = upfirdn(h, x, up, down, place, mode, 0 if cval is None else cval)
    y = cut(y, place, skipped, skipped + length)
    return y + level if padtype in _LEVELS else y


def decimate(
    x: Any,
    q: int,
    n: int | None = None,
    ftype: Any = "iir",
    axis: int = -1,
    zero_phase: bool = True,
) -> Any:
    """Every ``q``-th sample, of lines without what it cannot follow, as `scipy.signal.decimate`.

    Args:
        q: Which are kept.
        n: Order of the filter: 8 for "iir", ``20 q`` for "fir" by default.
        ftype: "iir" for Chebyshev's filter, "fir" for a Hamming window, or a `dlti`.
        zero_phase: Whether the filter shifts no phase.
    Returns: An array like ``x``, of ``ceil(n / q)`` elements along ``axis``.
    Raises: ArgumentError: If ``ftype`` is another one.
    Example: fg.scipy.signal.decimate(np.sin(np.arange(30.0) / 5), 5, ftype="fir")
        -> array([ 0.10350463,  0.82667626,  0.91935755,  0.13327594, -0.74826162,
                  -0.97329041])
    """
    (x,) = floating("decimate", x)
    place = line_axis(x, axis, "decimate")
    q = int(q)
    if ftype == "fir":
        h: Any = scipy.signal.firwin((20 * q if n is None else n) + 1, 1.0 / q, window="hamming")
        return _kept_of_fir(h, x, q, place, zero_phase)
    if ftype == "iir":
        sos = scipy.signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
    elif isinstance(ftype, scipy.signal.dlti):
        system = ftype.to_zpk()
        if not len(system.poles):
            tf = ftype.to_tf()
            return _kept_of_fir(tf.num / tf.den[0], x, q, place, zero_phase)
        sos = scipy.signal.zpk2sos(system.zeros, system.poles, system.gain)
    else:
        raise ArgumentError(f"decimate: ftype must be 'iir', 'fir' or a dlti, got {ftype!r}.")
    y = (sosfiltfilt if zero_phase else sosfilt)(sos.astype(_real(x)), x, place)
    return cut(y, place, None, None, q)


def _real(x: Any) -> np.dtype[Any]:
    return np.empty(0, aval_of(x).dtype).real.dtype


def _kept_of_fir(h: np.ndarray, x: Any, q: int, axis: int, zero_phase: bool) -> Any:
    h = h.astype(_real(x))
    if zero_phase:
        return resample_poly(x, 1, q, axis, h)
    return cut(upfirdn(h, x, 1, q, axis), axis, 0, -(-shape_of(x)[axis] // q))


# By Fourier transforms.


def resample(
    x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time"
) -> Any:
    """Another number of samples of a period, from its spectrum, as `scipy.signal.resample`.

    Args:
        num: How many there will be.
        t: Times of the samples: times of the new ones are returned as well.
        window: Weights of frequencies: name (and parameters) of a window, a vector of weights of
            the frequencies in the order of `fftfreq`, or a function of them.
        domain: "time", or "freq" where ``x`` is a spectrum already.
    Returns: An array like ``x``, of ``num`` elements along ``axis``; with ``t`` a pair, of it and
        times.

    Raises:
        ArgumentError: If ``domain`` is another one.
        ShapeError: If weights do not fit.
    Example: print(np.round(fg.scipy.signal.resample(np.array([1.0, 0.0, -1.0, 0.0]), 8), 3) + 0.0)
        -> [ 1.     0.707  0.    -0.707 -1.    -0.707  0.     0.707]
    """
    if domain not in ("time", "freq"):
        raise ArgumentError(f"resample: domain must be 'time' or 'freq', got {domain!r}.")
    (x,) = floating("resample", x)
    place = line_axis(x, axis, "resample")
    lines = fnp.moveaxis(x, place, -1)
    n, num = shape_of(lines)[-1], int(num)
    weights = _weights_of_frequencies(window, n)
    if domain == "time" and not is_complex_value(x):
        y = _resampled_real(lines, n, num, weights)
    else:
        y = _resampled_complex(lines, n, num, weights, domain)
    y = fnp.moveaxis(y, -1, place)
    return y if t is None else (y, np.arange(num) * (t[1] - t[0]) * n / num + t[0])


def _weights_of_frequencies(window: Any, n: int) -> Any:
    if window is None:
        return None
    if callable(window):
        return window(np.fft.fftfreq(n))
    if isinstance(window, str | tuple | float):
        return np.fft.fftshift(scipy.signal.get_window(window, n))
    weights = as_value(window, "resample")
    if shape_of(weights) != (n,):
        raise ShapeError(f"resample: window must have {n} elements, got {aval_of(weights)}.")
    return weights


def _resampled_real(lines: Any, n: int, num: int, weights: Any) -> Any:
    spectrum = fnp.fft.rfft(lines)
    bins, count = n // 2 + 1, min(num, n)
    if weights is not None:
        # A real line has frequencies of both signs, so that what weighs them is even.
        mirrored = np.r_[0, np.arange(n - 1, 0, -1)]
        even = (weights + weights[mirrored]) / 2
        spectrum = spectrum * fnp.astype(even[:bins], _real(lines))
    spectrum = spectrum[..., : count // 2 + 1]
    if count % 2 == 0 and num != n:
        # The frequency in the middle stands for two that are one only in the shorter line.
        factors = np.ones(count // 2 + 1, _real(lines))
        factors[-1] = 2 if num < n else 0.5
        spectrum = spectrum * factors
    return fnp.fft.irfft(spectrum, num) * _real(lines).type(num / n)


def _resampled_complex(lines: Any, n: int, num: int, weights: Any, domain: str) -> Any:
    spectrum = fnp.fft.fft(lines) if domain == "time" else lines
    spectrum = fnp.astype(spectrum, complex_dtype(aval_of(spectrum).dtype))
    if weights is not None:
        spectrum = spectrum * fnp.astype(weights, _real(lines))
    count = min(num, n)
    low, high = count // 2 + 1, (count - 1) // 2
    front, back = spectrum[..., :low], spectrum[..., n - high :]
    if count % 2 == 0 and num != n:
        middle = front[..., -1:]
        if num < n:
            middle = middle + spectrum[..., n - count // 2 : n - count // 2 + 1]
            front = fnp.concatenate([front[..., :-1], middle], -1)
        else:
            front = fnp.concatenate([front[..., :-1], middle / 2], -1)
            back = fnp.concatenate([middle / 2, back], -1)
    missing = num - shape_of(front)[-1] - shape_of(back)[-1]
    zeros = fnp.zeros((*shape_of(lines)[:-1], missing), aval_of(spectrum).dtype)
    whole = fnp.concatenate([front, zeros, back], -1)
    return fnp.fft.ifft(whole) * _real(lines).type(num / n)


# The analytic signal.


def _one_sided(n: int) -> np.ndarray:
    """1 for frequency 0 and the middle one, 2 for positive ones, 0 for negative ones."""
    weights = np.zeros(n)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    return weights


def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Any:
    """Analytic signal, whose real part is ``x``, as `scipy.signal.hilbert`.

    Args:
        x: Real samples.
        N: Length of the transform; that of ``x`` by default.
    Returns: A complex array, of ``N`` elements along ``axis``.
    Raises: ArgumentError: If ``x`` is complex or there are no samples.
    Example: print(np.round(fg.scipy.signal.hilbert(np.array([1.0, 0.0, -1.0, 0.0])).imag, 3) + 0.0)
        -> [ 0.  1.  0. -1.]
    """
    x = _real_values("hilbert", x)
    place = line_axis(x, axis, "hilbert")
    n = shape_of(x)[place] if N is None else int(N)
    if n < 1:
        raise ArgumentError(f"hilbert: N must be positive, got {n}.")
    shape = [-1 if i == place else 1 for i in range(len(shape_of(x)))]
    weights = _one_sided(n).astype(aval_of(x).dtype).reshape(shape)
    return fnp.fft.ifft(fnp.fft.fft(x, n, place) * weights, axis=place)


def hilbert2(x: Any, N: Any = None, axes: Sequence[int] = (-2, -1)) -> Any:
    """Analytic signal along two axes, as `scipy.signal.hilbert2`.

    Args:
        x: Real array.
        N: Lengths of the transforms, one or two; those of ``x`` by default.
        axes: The two axes.
    Returns: A complex array.
    Raises: ArgumentError: If ``x`` is complex or lengths are not positive.
    Example: fg.scipy.signal.hilbert2(np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[2.5+0.j, 2.5+0.j],
                  [2.5+0.j, 2.5+0.j]])
    """
    x = _real_values("hilbert2", x)
    places = [line_axis(x, a, "hilbert2") for a in axes]
    if len(set(places)) != 2:
        raise ArgumentError(f"hilbert2: axes must be two different ones, got {tuple(axes)}.")
    lengths = [shape_of(x)[i] for i in places] if N is None else np.broadcast_to(N, (2,)).tolist()
    if min(lengths) < 1:
        raise ArgumentError(f"hilbert2: N must be positive, got {N!r}.")
    spectrum = fnp.fft.fftn(x, lengths, places)
    for place, n in zip(places, lengths, strict=True):
        weights = np.zeros(n)
        weights[0], weights[1 : (n + 1) // 2] = 1, 2
        shape = [-1 if i == place else 1 for i in range(len(shape_of(x)))]
        spectrum = spectrum * weights.astype(aval_of(x).dtype).reshape(shape)
    return fnp.fft.ifftn(spectrum, axes=places)


def _real_values(function: str, x: Any) -> Any:
    (x,) = floating(function, x)
    if is_complex_value(x):
        raise ArgumentError(f"{function} needs real samples, got {aval_of(x)}.")
    return x


def envelope(
    z: Any,
    bp_in: tuple[int | None, int | None] = (1, None),
    *,
    n_out: int | None = None,
    squared: bool = False,
    residual: str | None = "lowpass",
    axis: int = -1,
) -> Any:
    """Magnitude of a band of frequencies, and what is below it, as `scipy.signal.envelope`.

    Args:
        z: Samples, real or complex.
        bp_in: First frequency (in periods per line) of the band, and the one behind its last.
        n_out: How many samples the result has; as many as ``z`` by default.
        squared: Whether squared magnitudes are returned.
        residual: "lowpass" for what is below the band, "all" for everything outside, or None.

    Returns:
        The magnitudes; unless ``residual`` is None, they and the residual along a new first axis.
    Raises: ArgumentError: If the band or options are impossible.

    Example:
        >>> x = 3.0 + np.cos(2 * np.pi * np.arange(4) / 4)
        >>> print(np.round(fg.scipy.signal.envelope(x), 12))
        [[1. 1. 1. 1.]
         [3. 3. 3. 3.]]
    """
    name = "envelope"
    (z,) = floating(name, z)
    place = line_axis(z, axis, name)
    n = shape_of(z)[place]
    if residual not in ("lowpass", "all", None) or not n:
        raise ArgumentError(
            f"{name}: residual must be 'lowpass', 'all' or None and there must be samples, got "
            f"{residual!r} and {aval_of(z)}."
        )
    low = -(n // 2) if bp_in[0] is None else int(bp_in[0])
    high = (n + 1) // 2 if bp_in[1] is None else int(bp_in[1])
    if not -n // 2 <= low < high <= (n + 1) // 2:
        raise ArgumentError(f"{name}: there is no band {bp_in} in a line of {n} samples.")
    num = n if n_out is None else int(n_out)
    if num < 1:
        raise ArgumentError(f"{name}: n_out must be positive, got {n_out}.")
    lines = fnp.moveaxis(z, place, -1)
    is_real = not is_complex_value(z)
    spectrum = fnp.fft.fft(lines)
    frequencies = np.rint(np.fft.fftfreq(n) * n).astype(int)
    order = np.argsort(frequencies)
    inside = np.arange(low, high)
    weights = np.ones(len(inside))
    if is_real:
        # Negative frequencies are counted with positive ones; the middle one has no counterpart.
        weights = np.where(inside > 0, 2.0, np.where((inside == 0) | (2 * inside == -n), 1.0, 0.0))
    band = spectrum[..., order][..., low + n // 2 : high + n // 2]
    band = band * weights.astype(_real(z))
    scale = _real(z).type(num / n)
    wave = fnp.fft.ifft(band, num) * scale
    size = fnp.square(wave.real) + fnp.square(wave.imag) if squared else fnp.abs(wave)
    if residual is None:
        return fnp.moveaxis(size, -1, place)
    rest = _outside(spectrum, frequencies, low, high, residual)
    if is_real:
        half = fnp.astype(rest[..., : n // 2 + 1], aval_of(spectrum).dtype)
        count = min(n, num)
        if num != n and count % 2 == 0:
            factors = np.ones(n // 2 + 1, _real(z))
            factors[count // 2] = 2 if num < n else 0.5
            half = half * factors
        other = fnp.fft.irfft(half, num) * scale
    else:
        other = _resampled_complex(rest, n, num, None, "freq")
    return fnp.moveaxis(fnp.stack([size, other]), -1, place + 1)


def _outside(spectrum: Any, frequencies: np.ndarray, low: int, high: int, residual: str) -> Any:
    """A spectrum without the frequencies of a band, and without those above it if asked for."""
    kept = (frequencies < low) | (frequencies >= high)
    if residual == "lowpass":
        kept &= frequencies < low
    return spectrum * kept.astype(np.empty(0, aval_of(spectrum).dtype).real.dtype)
