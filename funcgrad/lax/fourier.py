"""Discrete Fourier transforms of the last axes, under XLA's name."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.lax.operands import Array, ArrayLike, array_operand, check_kinds, checked
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.fft import Fft, Irfft, Rfft


class FftType(enum.IntEnum):
    """Kind of transform: of complex numbers, or of real ones, forwards or backwards."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _kind(fft_type: FftType | str) -> FftType:
    try:
        return FftType[fft_type.upper()] if isinstance(fft_type, str) else FftType(fft_type)
    except (KeyError, ValueError):
        names = ", ".join(kind.name for kind in FftType)
        raise ArgumentError(f"lax.fft: fft_type is one of {names}, got {fft_type!r}.") from None


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform of the last axes; the inverse divides by their lengths.

    Args:
        x: Complex array, or a real one for ``RFFT``.
        fft_type: `FftType`, or a name of it.
        fft_lengths: Lengths of the transformed axes, which are the last ones: those of ``x``, or
            for ``IRFFT`` those of the result.
    Returns: A complex array, or a real one of ``IRFFT``. ``RFFT`` gives the first ``n // 2 + 1``
        numbers along the last axis, from which ``IRFFT`` makes all ``n``.

    Raises:
        ArgumentError: If there is no such transform.
        ShapeError: If lengths do not fit.
    Example: print(fg.lax.fft(np.ones(4), fg.lax.FftType.RFFT, (4,)).real) -> [4. 0. 0.]
    """
    kind = _kind(fft_type)
    x = array_operand("fft", x)
    lengths = tuple(int(n) for n in fft_lengths)
    ndim = len(shape_of(x))
    if not lengths:
        return x
    expected = list(lengths)
    if kind is FftType.IRFFT:
        expected[-1] = lengths[-1] // 2 + 1
    if ndim < len(lengths) or list(shape_of(x)[-len(lengths) :]) != expected:
        raise ShapeError(
            f"lax.fft: the last axes of {aval_of(x)} must have lengths {tuple(expected)} for "
            f"{kind.name} with fft_lengths={lengths}. Pad or cut it, or use funcgrad.numpy.fft."
        )
    axes = tuple(range(ndim - len(lengths), ndim))
    if kind is FftType.RFFT:
        check_kinds("fft", aval_of(x).dtype, "f")
        out = checked(Rfft(axes[-1]), x)
        return Fft(axes[:-1]).bind(out) if axes[1:] else out
    check_kinds("fft", aval_of(x).dtype, "fc")
    x = convert(x, complex_dtype(aval_of(x).dtype))
    if kind is FftType.IRFFT:
        x = Fft(axes[:-1], True).bind(x) if axes[1:] else x
        return checked(Irfft(axes[-1], lengths[-1]), x)
    return checked(Fft(axes, kind is FftType.IFFT), x)
