"""Sums of products of arrays that slide along each other: convolution and correlation.

Direct sums are exact to rounding of the sums, and integers stay exact; transforms are faster where
both arrays are long.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import numpy as np
import scipy.fft
import scipy.signal

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import is_inexact
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lowering import Slide
from funcgrad.numpy import elementwise, fft, padding
from funcgrad.numpy.creating import zeros
from funcgrad.numpy.promotion import as_value, normalize_axis, promote, strong
from funcgrad.numpy.rearranging import flip
from funcgrad.numpy.shaping import atleast_1d
from funcgrad.primitives.contraction import LETTERS
from funcgrad.primitives.convolution import Convolution
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import cut, floating, is_complex_value
from funcgrad.scipy.signal.recurrences import lfilter

__all__ = [
    "choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d", "deconvolve",
    "fftconvolve", "oaconvolve",
]  # fmt: skip

Mode = Literal["full", "valid", "same"]


def convolve(
    in1: Any, in2: Any, mode: Mode = "full", method: str = "auto", precision: Any = None
) -> Any:
    """Convolution of two arrays along all of their axes, as `scipy.signal.convolve`.

    Args:
        mode: ``"full"`` for all sums; ``"same"`` for those in the middle, as many as ``in1`` has
            elements; ``"valid"`` for those in which no element is missing.
        method: ``"direct"`` for sums, ``"fft"`` for `fftconvolve`, ``"auto"`` for what
            `choose_conv_method` thinks is faster.
    Returns: The sums, in the dtype that both promote to.
    Raises: ShapeError: If numbers of axes differ, or in mode "valid" neither array contains the
            other.
    Example: print(fg.scipy.signal.convolve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5])))
        -> [0.  1.  2.5 4.  1.5]
    """
    return _by("convolve", in1, in2, mode, method, is_flipped=True)


def correlate(
    in1: Any, in2: Any, mode: Mode = "full", method: str = "auto", precision: Any = None
) -> Any:
    """Correlation of two arrays along all of their axes, as `scipy.signal.correlate`.

    Args:
        in2: Array of as many axes, of which the conjugate is taken.
        method: As in `convolve`.
    Returns: The sums, in the dtype that both promote to.
    Example: print(fg.scipy.signal.correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5])))
        -> [0.5 2.  3.5 3.  0. ]
    """
    return _by("correlate", in1, in2, mode, method, is_flipped=False)


def choose_conv_method(in1: Any, in2: Any, mode: Mode = "full", measure: bool = False) -> str:
    """``"fft"`` or ``"direct"``: SciPy's estimate for arrays of these shapes and dtypes.

    Args: measure: Must be False: nothing is run to measure it.
    Returns: The method; ``"direct"`` for integers, which stay exact.
    Example: print(fg.scipy.signal.choose_conv_method(np.ones(9), np.ones(3))) -> direct
    """
    if measure:
        raise ArgumentError(
            "choose_conv_method: measure must be False; measure with scipy.signal's own."
        )
    avals = [aval_of(as_value(x, "choose_conv_method")) for x in (in1, in2)]
    sizes = [prod(aval.shape) for aval in avals]
    # A short one is always summed: no estimate is worth its time.
    if min(sizes) < 32 or not all(is_inexact(aval.dtype) for aval in avals):
        return "direct"
    stand_ins = [np.broadcast_to(aval.dtype.type(0), aval.shape) for aval in avals]
    return str(scipy.signal.choose_conv_method(*stand_ins, mode))


def _by(name: str, in1: Any, in2: Any, mode: Mode, method: str, is_flipped: bool) -> Any:
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(f"{name}: method must be 'auto', 'direct' or 'fft', got {method!r}.")
    if method == "auto" and mode in ("full", "same", "valid"):
        x, y = as_value(in1, name), as_value(in2, name)
        method = "direct"
        if len(shape_of(x)) == len(shape_of(y)) and not _is_mixed(shape_of(x), shape_of(y), mode):
            method = choose_conv_method(x, y, mode)
    if method == "direct":
        return _slid(name, in1, in2, mode, is_flipped)
    return _transformed(name, in1, in2, mode, is_flipped)


def _is_mixed(x: Sequence[int], y: Sequence[int], mode: str) -> bool:
    """Whether in mode "valid" neither contains the other."""
    pairs = list(zip(x, y, strict=True))
    return mode == "valid" and any(m > n for m, n in pairs) and any(m < n for m, n in pairs)


def _transformed(name: str, in1: Any, in2: Any, mode: Mode, is_flipped: bool) -> Any:
    x, y = map(strong, promote(as_value(in1, name), as_value(in2, name)))
    dtype = aval_of(x).dtype
    if not is_flipped:
        y = flip(elementwise.conj(y))
    out = fftconvolve(x, y, mode)
    return out if is_inexact(dtype) else convert(elementwise.rint(out), dtype)


def fftconvolve(in1: Any, in2: Any, mode: Mode = "full", axes: Any = None) -> Any:
    """Convolution by Fourier transforms, as `scipy.signal.fftconvolve`.

    Args: axes: Axes to convolve along, all by default; along others lengths are equal, or 1.
    Returns: The sums, floating or complex; without elements if one of both has none.
    Raises: ShapeError: If numbers of axes differ or lengths do not fit.

    Example:
        >>> from funcgrad.scipy import signal
        >>> print(np.round(signal.fftconvolve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0]))))
        [0. 1. 2. 3.]
    """
    name = "fftconvolve"
    x, y = floating(name, in1, in2)
    ndim = len(shape_of(x))
    if ndim != len(shape_of(y)):
        raise ShapeError(
            f"{name} needs arrays of equally many axes, got {aval_of(x)} and {aval_of(y)}."
        )
    if not prod(shape_of(x)) or not prod(shape_of(y)):
        return np.array([], aval_of(x).dtype)
    given = range(ndim) if axes is None else (axes if np.ndim(axes) else (axes,))
    indices = [normalize_axis(a, ndim, name) for a in given]
    if not ndim:
        return x * y
    for i in set(range(ndim)) - set(indices):
        if len({shape_of(x)[i], shape_of(y)[i]} - {1}) > 1:
            raise ShapeError(
                f"{name}: lengths along axis {i}, which is not convolved, must be equal or 1, got "
                f"{aval_of(x)} and {aval_of(y)}."
            )
    _check_contained(name, mode, x, y)
    pairs = {i: (shape_of(x)[i], shape_of(y)[i]) for i in indices}
    cuts = {i: _cut_of(name, mode, m, n, False) for i, (m, n) in pairs.items()}
    long = {i: pair for i, pair in pairs.items() if 1 not in pair}
    out = _product_of_spectra(x, y, long) if long else x * y
    for i, (start, length) in cuts.items():
        out = cut(out, i, start, start + length)
    return out


def _product_of_spectra(x: Any, y: Any, pairs: dict[int, tuple[int, int]]) -> Any:
    """The full convolution along some axes."""
    indices = list(pairs)
    is_real = not is_complex_value(x)
    lengths = [scipy.fft.next_fast_len(m + n - 1, is_real) for m, n in pairs.values()]
    if is_real:
        spectra = [fft.rfftn(v, lengths, indices) for v in (x, y)]
        return fft.irfftn(spectra[0] * spectra[1], lengths, indices)
    spectra = [fft.fftn(v, lengths, indices) for v in (x, y)]
    return fft.ifftn(spectra[0] * spectra[1], lengths, indices)


def oaconvolve(in1: Any, in2: Any, mode: Mode = "full", axes: Any = None) -> Any:
    """Convolution by a Fourier transform, as `scipy.signal.oaconvolve`.

    Args:
        mode: ``"full"``, ``"valid"`` or ``"same"``: which part is returned.
        axes: The axes along which to convolve; by default all.
    Example: fg.scipy.signal.oaconvolve(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        -> array([ 3., 10.,  8.])
    """
    return fftconvolve(in1, in2, mode, axes)


def deconvolve(signal: Any, divisor: Any) -> tuple[Any, Any]:
    """Quotient and remainder of a division of polynomials, as `scipy.signal.deconvolve`.

    Args:
        signal: Vector.
        divisor: Vector, whose first element is not 0.
    Returns: The quotient and the remainder, ``signal = convolve(divisor, quotient) + remainder``.
    Raises: ShapeError: If one is no vector.

    Example:
        >>> from funcgrad.scipy import signal
        >>> quotient, rest = signal.deconvolve(np.array([2.0, 7.0, 6.0]), np.array([1.0, 2.0]))
        >>> print(quotient, rest)
        [2. 3.] [0. 0. 0.]
    """
    x, y = floating("deconvolve", signal, divisor)
    x, y = (atleast_1d(v) for v in (x, y))
    if len(shape_of(x)) != 1 or len(shape_of(y)) != 1:
        raise ShapeError(f"deconvolve needs vectors, got {aval_of(x)} and {aval_of(y)}.")
    count = shape_of(x)[0] - shape_of(y)[0] + 1
    if count < 1:
        return zeros(0, aval_of(x).dtype), x
    impulse = np.zeros(count, aval_of(x).dtype)
    impulse[0] = 1
    quotient = lfilter(x, y, impulse)
    return quotient, x - convolve(y, quotient, "full", "direct")


def convolve2d(
    in1: Any,
    in2: Any,
    mode: Mode = "full",
    boundary: str = "fill",
    fillvalue: Any = 0,
    precision: Any = None,
) -> Any:
    """Convolution of two matrices, as `scipy.signal.convolve2d`.

    Args: boundary: What stands beyond the ends of ``in1``: ``"fill"``, ``"wrap"`` or ``"symm"``.
    Returns: The sums, in the dtype that both promote to.
    Raises: ShapeError: If one is no matrix, or in mode "valid" neither contains the other.

    Example:
        >>> from funcgrad.scipy import signal
        >>> print(signal.convolve2d(np.eye(2), np.ones((1, 2)), boundary="wrap", mode="same"))
        [[1. 1.]
         [1. 1.]]
    """
    return _of_matrices("convolve2d", in1, in2, mode, boundary, fillvalue, is_flipped=True)


def correlate2d(
    in1: Any,
    in2: Any,
    mode: Mode = "full",
    boundary: str = "fill",
    fillvalue: Any = 0,
    precision: Any = None,
) -> Any:
    """Correlation of two matrices, as `scipy.signal.correlate2d`.

    Args:
        in2: Matrix, of which the conjugate is taken; in mode "valid" that of the smaller one is.
        boundary: As in `convolve2d`.
    Returns: The sums, in the dtype that both promote to.
    Example: fg.scipy.signal.correlate2d(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> array([[4., 3., 0.],
                  [2., 5., 3.],
                  [0., 2., 1.]])
    """
    return _of_matrices("correlate2d", in1, in2, mode, boundary, fillvalue, is_flipped=False)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _of_matrices(
    name: str, in1: Any, in2: Any, mode: Mode, boundary: str, fillvalue: Any, is_flipped: bool
) -> Any:
    x, y = as_value(in1, name), as_value(in2, name)
    for value in (x, y):
        if len(shape_of(value)) != 2:
            raise ShapeError(f"{name} needs matrices, got {aval_of(value)}.")
    if boundary not in _BOUNDARIES:
        raise ArgumentError(f"{name}: boundary must be 'fill', 'wrap' or 'symm', got {boundary!r}.")
    x, y = map(strong, promote(x, y))
    if np.iscomplexobj(fillvalue) and not is_complex_value(x):
        raise ArgumentError(f"{name}: fillvalue must be real beside {aval_of(x)}, got {fillvalue}.")
    is_filled = boundary == "fill" and isinstance(fillvalue, int | float) and fillvalue == 0
    # Of an even number of sums around the middle, SciPy takes others here than in `correlate`.
    is_later = not is_flipped
    if mode == "valid" or is_filled:
        out = _slid(name, x, y, mode, is_flipped, is_later)
        pairs = zip(shape_of(x), shape_of(y), strict=True)
        is_swapped = mode == "valid" and any(m < n for m, n in pairs)
        # Unlike its `correlate`, SciPy's matrices are conjugated after they were swapped.
        return elementwise.conj(out) if is_swapped and not is_flipped else out
    widths = [(n - 1, n - 1) for n in shape_of(y)]
    keywords = {"constant_values": fillvalue} if boundary == "fill" else {}
    bordered = padding.pad(x, widths, _BOUNDARIES[boundary], **keywords)
    out = _slid(name, bordered, y, "valid", is_flipped, is_later)
    for axis, (m, n) in enumerate(zip(shape_of(x), shape_of(y), strict=True)):
        if mode == "same":
            start = (n - 1 + is_later) // 2
            out = cut(out, axis, start, start + m)
    return out


def _slid(
    name: str, in1: Any, in2: Any, mode: str, is_flipped: bool, is_later: bool = False
) -> Any:
    x, y = map(strong, promote(as_value(in1, name), as_value(in2, name)))
    if len(shape_of(x)) != len(shape_of(y)):
        raise ShapeError(
            f"{name} needs arrays of equally many axes, got {aval_of(x)} and {aval_of(y)}."
        )
    if not prod(shape_of(x)) or not prod(shape_of(y)):
        raise ShapeError(f"{name} of {aval_of(x)} and {aval_of(y)}: there are no elements.")
    if not is_flipped and is_complex_value(y):
        y = elementwise.conj(y)
    pairs = list(zip(shape_of(x), shape_of(y), strict=True))
    _check_contained(name, mode, x, y)
    cuts = [_cut_of(name, mode, m, n, is_later) for m, n in pairs]
    letters = LETTERS[: len(pairs)]
    slides = tuple(
        (c, Slide(length, n, 1, -1, -start))
        if is_flipped
        else (c, Slide(length, n, 1, 1, n - 1 - start))
        for c, (_, n), (start, length) in zip(letters, pairs, cuts, strict=True)
    )
    return Convolution(letters, letters, letters, slides).bind(x, y)


def _cut_of(name: str, mode: str, m: int, n: int, is_later: bool) -> tuple[int, int]:
    """Start and number of the sums that a mode keeps of all."""
    if mode == "full":
        return 0, m + n - 1
    if mode == "same":
        return (n - 1 + is_later) // 2, m
    if mode == "valid":
        return min(m, n) - 1, abs(m - n) + 1
    raise ArgumentError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}.")


def _check_contained(name: str, mode: str, x: Any, y: Any) -> None:
    if _is_mixed(shape_of(x), shape_of(y), mode):
        raise ShapeError(
            f"{name}: in mode 'valid' one array must be at least as long as the other along "
            f"every axis, got {aval_of(x)} and {aval_of(y)}."
        )
