"""Fourier transforms of the package ``jax``, which take fewer arguments than NumPy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.dtypes import complex_dtype, real_dtype
from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.arrays import Adopted
from funcgrad.numpy import asarray, fft, zeros

_Function = Callable[..., Any]


def _along_one(function: _Function) -> _Function:
    """A transform along one axis; nothing is transformed to nothing."""
    name = function.__name__
    transform = Adopted(function)

    @functools.wraps(function)
    def compute(a: Any, n: int | None = None, axis: Any = -1, norm: Any = None) -> Any:
        if isinstance(axis, list | tuple):
            raise ArgumentError(f"fft.{name} takes one axis, got {axis}. Use fft.{name}n.")
        if n is None and name in ("fft", "ifft") and np.size(a) == 0:
            return Adopted(zeros)(np.shape(a), complex_dtype(real_dtype(asarray(a).dtype)))
        return transform(a, n, axis, norm)

    return compute


def _along_several(function: _Function, count: int | None) -> _Function:
    """A transform along different axes, as many as ``count``."""
    name = function.__name__
    transform = Adopted(function)

    @functools.wraps(function)
    def compute(
        a: Any, s: Any = None, axes: Any = None if count is None else (-2, -1), norm: Any = None
    ) -> Any:
        if axes is not None and len(axes) != (count or len(axes)):
            raise ArgumentError(f"fft.{name} takes {count} axes, got {axes}. Use fft.{name[:-1]}n.")
        if axes is not None and len(set(axes)) != len(axes):
            raise ArgumentError(f"fft.{name} takes each axis once, got {axes}.")
        return transform(a, s, axes, norm)

    return compute


def _of_numbers(function: _Function) -> _Function:
    """Frequencies of one length and spacing."""
    name = function.__name__
    frequencies = Adopted(function)

    @functools.wraps(function)
    def compute(n: Any, d: Any = 1.0, **options: Any) -> Any:
        if np.ndim(n) or np.ndim(d):
            raise ArgumentError(f"fft.{name} takes one length and one spacing, got {n} and {d}.")
        return frequencies(n, d, **options)

    return compute


FUNCTIONS: dict[str, _Function] = {
    **{
        name: _along_one(getattr(fft, name))
        for name in ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")
    },
    **{
        f"{name}{end}": _along_several(getattr(fft, f"{name}{end}"), count)
        for name in ("fft", "ifft", "irfft", "rfft")
        for end, count in (("2", 2), ("n", None))
    },
    **{name: _of_numbers(getattr(fft, name)) for name in ("fftfreq", "rfftfreq")},
}
"""Functions of ``jax.numpy.fft`` by name."""
