"""Polynomials of known coefficients, what special functions are approximated by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.primitives.families import Elementwise


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """Horner's scheme, the highest power first, in one buffer."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        np.multiply(total, x, out=total)
        np.add(total, x.dtype.type(coefficient), out=total)
    return total


def horner(coefficients: Sequence[float]) -> Elementwise:
    """A polynomial as one operation, for parts of others: it has no derivative."""
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"({text} * {{0}} + {coefficient!r})"
    return Elementwise("horner", lambda x: polynomial(coefficients, x), text)


def fused_horner(coefficients: Sequence[float]) -> Elementwise:
    """The same with fewer roundings, where compiled programs need not round as NumPy does."""
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"fma({text}, {{0}}, {coefficient!r})"
    return Elementwise("horner", lambda x: polynomial(coefficients, x), text)
