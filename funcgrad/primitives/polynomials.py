"""Polynomials of known coefficients, what special functions are approximated by."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.primitives.families import Elementwise


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """Horner's scheme, the highest power first, in one buffer."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        np.multiply(total, x, out=total)
        np.add(total, x.dtype.type(coefficient), out=total)
    return total


@functools.lru_cache(256)
def horner(coefficients: tuple[float, ...]) -> Elementwise:
    """A polynomial as one operation, for parts of others: it has no derivative.

    That of equal coefficients is the same, so that what two formulas have in common is computed
    once.
    """
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"({text} * {{0}} + {coefficient!r})"
    return Elementwise("horner", lambda x: polynomial(coefficients, x), text)


@functools.lru_cache(256)
def fused_horner(coefficients: tuple[float, ...]) -> Elementwise:
    """The same with fewer roundings, where compiled programs need not round as NumPy does."""
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"fma({text}, {{0}}, {coefficient!r})"
    return Elementwise("horner", lambda x: polynomial(coefficients, x), text)


@functools.lru_cache(maxsize=64)
def shortened(coefficients: tuple[float, ...], low: float, high: float) -> tuple[float, ...]:
    """The coefficients of a polynomial of lower degree that is as good for 32-bit numbers.

    Chebyshev's series of the polynomial on the interval is cut off where what follows is less than
    a sixteenth of a unit in the last place of a 32-bit number everywhere (economisation: Lanczos,
    Journal of Mathematics and Physics 17, 1938).

    Args:
        coefficients: The highest power first; the polynomial has no zero on the interval.
        low: Start of the interval.
        high: End of the interval.
    """
    library = load("numpy.polynomial")  # not loaded with NumPy
    exact = library.Polynomial(coefficients[::-1])
    series = exact.convert(domain=(low, high), kind=library.Chebyshev)
    _, values = exact.linspace(_SAMPLES, (low, high))
    rest = np.cumsum(np.abs(series.coef[::-1]))[::-1]
    n_kept = int(np.sum(rest > _NEGLIGIBLE * np.abs(values).min()))
    short = series.truncate(n_kept).convert(domain=(-1, 1), kind=library.Polynomial)
    return tuple(map(float, short.coef[::-1]))


_SAMPLES = 256
_NEGLIGIBLE = 2.0**-28
