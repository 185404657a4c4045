"""Discrete Fourier transforms with SciPy's signatures; the work is in `funcgrad.numpy.fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.special

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy import elementwise
from funcgrad.numpy import fft as transforms
from funcgrad.numpy.host_functions import host_functions
from funcgrad.numpy.meanings import MEANINGS
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.shape import shape_of
from funcgrad.scipy.lines import floating

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "fht", "fhtoffset", "get_workers", "hfft",
    "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ifht", "ihfft", "ihfft2", "ihfftn",
    "irfft", "irfft2", "irfftn", "next_fast_len", "prev_fast_len", "rfft", "rfft2", "rfftfreq",
    "rfftn", "set_workers",
]  # fmt: skip

Function = Callable[..., Any]

fftshift, ifftshift = transforms.fftshift, transforms.ifftshift
next_fast_len, prev_fast_len, fhtoffset, get_workers, set_workers = host_functions(
    "scipy.fft", "next_fast_len prev_fast_len fhtoffset get_workers set_workers"
).values()


def fftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> np.ndarray:
    """Frequencies of the elements of a transform.

    As `scipy.fft.fftfreq`; ``xp`` is accepted for its signature.

    Args: n: Length of the transformed axis: zeros are added, or elements left out. Of frequencies,
            their number.
    Example: fg.scipy.fft.fftfreq(4) -> array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    check_placement("fftfreq", device=device)
    return np.fft.fftfreq(n, d)


def rfftfreq(n: int, d: float = 1.0, *, xp: Any = None, device: Any = None) -> np.ndarray:
    """Frequencies of the elements of a transform of real numbers.

    As `scipy.fft.rfftfreq`; ``xp`` is accepted for its signature.

    Args: n: Length of the transformed axis: zeros are added, or elements left out. Of frequencies,
            their number.
    Example: fg.scipy.fft.rfftfreq(4) -> array([0.  , 0.25, 0.5 ])
    """
    check_placement("rfftfreq", device=device)
    return np.fft.rfftfreq(n, d)


def _line(name: str, transform: Function) -> Function:
    def along_a_line(
        x: Any,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Any:
        return transform(_checked(name, x, plan), n, axis, norm)

    return _named(name, along_a_line)


def _space(name: str, transform: Function, default: tuple[int, ...] | None = None) -> Function:
    def along_axes(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: Any = None,
    ) -> Any:
        return transform(_checked(name, x, plan), s, axes, norm)

    return _named(name, along_axes)


def _checked(name: str, x: Any, plan: Any) -> Any:
    if plan is not None:
        raise ArgumentError(f"{name}: there are no plans to pass in; plan must be None.")
    return as_value(x, name)


_TEXTS = {
    **transforms.TEXTS,
    "hfft2": (
        "Real transform of the half of a Hermitian array, along two axes.",
        "array([[10., -2.],\n       [-4.,  0.]])",
    ),
    "ihfft2": (
        "Inverse of `hfft2`.",
        "array([[ 2.5-0.j, -0.5-0.j],\n       [-1. -0.j,  0. -0.j]])",
    ),
    "hfftn": (
        "Real transform of the half of a Hermitian array, along several axes.",
        "array([[10., -2.],\n       [-4.,  0.]])",
    ),
    "ihfftn": (
        "Inverse of `hfftn`.",
        "array([[ 2.5-0.j, -0.5-0.j],\n       [-1. -0.j,  0. -0.j]])",
    ),
}
_MEANINGS = {
    **MEANINGS,
    "x": "Array.",
    "axis": "The transformed axis.",
    "overwrite_x": "Without effect: arguments are never written into.",
    "workers": "Without effect.",
    "plan": "``None``.",
}


def _named(name: str, function: Function) -> Function:
    function.__name__ = function.__qualname__ = name
    notes = f"As `scipy.fft.{name}`, and `funcgrad.numpy.fft` where that has it."
    transforms.describe(function, f"scipy.fft.{name}", _TEXTS[name], _MEANINGS, notes)
    return function


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _hermitian(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return transforms.irfftn(elementwise.conj(x), s, axes, _swapped(norm))


def _inverse_hermitian(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return elementwise.conj(transforms.rfftn(x, s, axes, _swapped(norm)))


def _swapped(norm: Any) -> str:
    if norm not in _SWAPPED:
        raise ArgumentError(f"norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")
    return _SWAPPED[norm]


fft = _line("fft", transforms.fft)
ifft = _line("ifft", transforms.ifft)
rfft = _line("rfft", transforms.rfft)
irfft = _line("irfft", transforms.irfft)
hfft = _line("hfft", transforms.hfft)
ihfft = _line("ihfft", transforms.ihfft)
fft2 = _space("fft2", transforms.fft2, (-2, -1))
ifft2 = _space("ifft2", transforms.ifft2, (-2, -1))
rfft2 = _space("rfft2", transforms.rfft2, (-2, -1))
irfft2 = _space("irfft2", transforms.irfft2, (-2, -1))
hfft2 = _space("hfft2", _hermitian, (-2, -1))
ihfft2 = _space("ihfft2", _inverse_hermitian, (-2, -1))
fftn = _space("fftn", transforms.fftn)
ifftn = _space("ifftn", transforms.ifftn)
rfftn = _space("rfftn", transforms.rfftn)
irfftn = _space("irfftn", transforms.irfftn)
hfftn = _space("hfftn", _hermitian)
ihfftn = _space("ihfftn", _inverse_hermitian)


# Hankel transforms of what is sampled at logarithmic distances.


def fht(a: Any, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Any:
    """Fast Hankel transform of samples at equal ratios.

    As `scipy.fft.fht`: the fast Hankel transform of samples at logarithmic distances.

    Args: a: Real samples, along the last axis.
    Returns: The transform, an array like ``a``; it is linear in it.

    Reference:
        A. J. S. Hamilton, Uncorrelated modes of the non-linear power spectrum, 2000.

    Example: fg.scipy.fft.fht(np.array([1.0, 2.0, 3.0, 4.0]), 0.1, 0.0)
        -> array([1.12936004, 2.3530172 , 3.94960368, 2.56801908])
    """
    (x,) = floating("fht", a)
    n = shape_of(x)[-1]
    if bias:
        x = x * _power_law(n, dln, -bias, 0.0).astype(aval_of(x).dtype)
    y = _hankel(x, _kernel(n, dln, mu, offset, bias))
    if bias:
        y = y * _power_law(n, dln, -bias, offset).astype(aval_of(y).dtype)
    return y


def ifht(A: Any, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Any:
    """Inverse of `fht`.

    As `scipy.fft.ifht`: the inverse of `fht`.

    Args: A: Real samples, along the last axis.
    Returns: What `fht` was taken of.
    Example: fg.scipy.fft.ifht(np.array([1.0, 2.0, 3.0, 4.0]), 0.1, 0.0)
        -> array([ 7.42190037, -3.93952313, 10.24214401, -3.72452125])
    """
    (x,) = floating("ifht", A)
    n = shape_of(x)[-1]
    if bias:
        x = x * _power_law(n, dln, bias, offset).astype(aval_of(x).dtype)
    y = _hankel(x, 1 / np.conj(_kernel(n, dln, mu, offset, bias)))
    if bias:
        y = y * _power_law(n, dln, bias, 0.0).astype(aval_of(y).dtype)
    return y


def _power_law(n: int, dln: float, bias: float, offset: float) -> np.ndarray:
    return np.exp(bias * ((np.arange(n) - (n - 1) / 2) * dln + offset))


def _kernel(n: int, dln: float, mu: float, offset: float, bias: float) -> np.ndarray:
    """Factors of the frequencies of the logarithm."""
    upper, lower = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    y = np.linspace(0, np.pi * (n // 2) / (n * dln), n // 2 + 1)
    above, below = (scipy.special.loggamma(v + 1j * y) for v in (upper, lower))
    exponent = above - np.conj(below) + np.log(2.0) * bias + 2j * (np.log(2.0) - offset) * y
    kernel = np.exp(exponent)
    if n % 2 == 0:
        kernel[-1] = kernel[-1].real
    if not np.isfinite(kernel[0]):
        kernel[0] = 2.0**bias * scipy.special.poch(lower, upper - lower)
    return kernel


def _hankel(x: Any, kernel: np.ndarray) -> Any:
    spectrum = transforms.rfft(x)
    product = spectrum * kernel.astype(aval_of(spectrum).dtype)
    return transforms.irfft(product, shape_of(x)[-1])[..., ::-1]
