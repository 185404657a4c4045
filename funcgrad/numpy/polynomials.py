"""Polynomials as arrays of coefficients, the highest power first, as in `numpy.poly1d`.

Leading zeros are kept where NumPy would look for them, as they depend on values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import linalg
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.numpy.selecting import convolve, vander
from funcgrad.numpy.shaping import atleast_1d, concatenate, constant_pad
from funcgrad.primitives.shape import shape_of

__all__ = ["polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub"]


def _coefficients(a: Any, function: str) -> Any:
    x = atleast_1d(strong(as_value(a, function)))
    if len(shape_of(x)) != 1:
        raise ShapeError(f"{function}: coefficients have one axis, got {aval_of(x)}.")
    return x


def _termwise(combine: Callable[[Any, Any], Any], a1: Any, a2: Any, function: str) -> Any:
    both = [_coefficients(a, function) for a in (a1, a2)]
    n = max(shape_of(x)[0] for x in both)
    return combine(*[constant_pad(x, [(n - shape_of(x)[0], 0)]) for x in both])


def polyadd(a1: Any, a2: Any) -> Any:
    """As `numpy.polyadd`, of arrays."""
    return _termwise(e.add, a1, a2, "polyadd")


def polysub(a1: Any, a2: Any) -> Any:
    """As `numpy.polysub`, of arrays."""
    return _termwise(e.subtract, a1, a2, "polysub")


def polymul(a1: Any, a2: Any) -> Any:
    """As `numpy.polymul`, of arrays."""
    return convolve(_coefficients(a1, "polymul"), _coefficients(a2, "polymul"))


def polyder(p: Any, m: int = 1) -> Any:
    """As `numpy.polyder`, of an array."""
    x = _coefficients(p, "polyder")
    if m < 0:
        raise ArgumentError(f"polyder: the order of the derivative must not be negative, got {m}.")
    for _ in range(m):
        n = max(shape_of(x)[0] - 1, 0)
        x = e.multiply(x[:n], np.arange(n, 0, -1))
    return x


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """As `numpy.polyint`, of an array.

    Args:
        p: Coefficients, ``(n,)``.
        m: How often to integrate.
        k: The constants, ``(m,)`` or one for all; 0 by default.

    Returns:
        Coefficients, ``(n + m,)``.
    """
    x = _coefficients(p, "polyint")
    if m < 0:
        raise ArgumentError(f"polyint: the order of the integral must not be negative, got {m}.")
    constants = _coefficients(0.0 if k is None else k, "polyint")
    if shape_of(constants)[0] not in (1, m) and m:
        raise ShapeError(f"polyint: k must be a scalar or have {m} elements.")
    for i in range(m):
        n = shape_of(x)[0]
        last = min(i, shape_of(constants)[0] - 1)
        x = concatenate([e.true_divide(x, np.arange(n, 0, -1)), constants[last : last + 1]])
    return x


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None) -> Any:
    """As `numpy.polyfit`: the polynomial that fits points best, in the sense of least squares.

    Args:
        x: Where, ``(m,)``.
        y: Values, ``(m,)`` or one set per column, ``(m, k)``.
        deg: Degree.
        rcond: Singular values below this part of the greatest count as zero.
        full: Whether to return residuals, rank, singular values and ``rcond`` too.
        w: Weights of the residuals (not of their squares), ``(m,)``.

    Returns:
        Coefficients, ``(deg + 1,)`` or ``(deg + 1, k)``.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> x = np.arange(4.0)
        >>> print(np.round(fg.numpy.polyfit(x, 3 * x**2 - 1, 2), 6) + 0.0)
        [ 3.  0. -1.]
    """
    x, y = linalg.floating(x, y, function="polyfit")
    if len(shape_of(x)) != 1 or len(shape_of(y)) not in (1, 2) or shape_of(x)[0] != shape_of(y)[0]:
        raise ShapeError(f"polyfit needs points of equal number, got {aval_of(x)}, {aval_of(y)}.")
    if rcond is None:
        rcond = shape_of(x)[0] * float(np.finfo(aval_of(x).dtype).eps)
    rows = vander(x, deg + 1)
    if w is not None:
        weights = as_value(w, "polyfit")
        rows = e.multiply(rows, weights[:, None])
        y = e.multiply(y, weights if len(shape_of(y)) == 1 else weights[:, None])
    # Columns of unit length, as their powers differ by orders of magnitude.
    sizes = linalg.norm(rows, axis=0)
    solution, residuals, rank, values = linalg.lstsq(e.true_divide(rows, sizes), y, rcond)
    sizes = sizes if len(shape_of(y)) == 1 else sizes[:, None]
    fitted = e.true_divide(solution, sizes)
    return (fitted, residuals, rank, values, rcond) if full else fitted
