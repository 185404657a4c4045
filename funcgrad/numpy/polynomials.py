"""Polynomials as arrays of coefficients, the highest power first, as in `numpy.poly1d`.

Leading zeros are kept where NumPy would look for them, as they depend on values; only `roots` looks
for them, unless it is told not to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import FLOAT64, is_complex, is_inexact
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import joining, linalg, shaping
from funcgrad.numpy.composed import vander
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.ordering import known_values
from funcgrad.numpy.promotion import as_value, strong, to_dtype
from funcgrad.numpy.reducing import sum
from funcgrad.numpy.sliding import convolve
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import shape_of

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "roots",
]  # fmt: skip


def _coefficients(a: Any, function: str) -> Any:
    x = shaping.atleast_1d(strong(as_value(a, function)))
    if len(shape_of(x)) != 1:
        raise ShapeError(f"{function}: coefficients have one axis, got {aval_of(x)}.")
    return x


def _termwise(combine: Callable[[Any, Any], Any], a1: Any, a2: Any, function: str) -> Any:
    both = [_coefficients(a, function) for a in (a1, a2)]
    n = max(shape_of(x)[0] for x in both)
    return combine(*[shaping.constant_pad(x, [(n - shape_of(x)[0], 0)]) for x in both])


def polyadd(a1: Any, a2: Any) -> Any:
    """Sum of two polynomials.

    As `numpy.polyadd`, of arrays.

    Example: fg.numpy.polyadd([1.0, 2.0], [3.0, 4.0]) -> array([4., 6.])
    """
    return _termwise(e.add, a1, a2, "polyadd")


def polysub(a1: Any, a2: Any) -> Any:
    """Difference of two polynomials.

    As `numpy.polysub`, of arrays.

    Example: fg.numpy.polysub([1.0, 2.0], [3.0, 4.0]) -> array([-2., -2.])
    """
    return _termwise(e.subtract, a1, a2, "polysub")


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """Product of two polynomials.

    As `numpy.polymul`, of arrays.

    Args: trim_leading_zeros: Whether to leave away zeros in front of both, whose values must be
            known.
    Returns: Coefficients, ``(m + n - 1,)``.
    Example: fg.numpy.polymul([1.0, 2.0], [3.0, 4.0]) -> array([ 3., 10.,  8.])
    """
    x, y = _coefficients(a1, "polymul"), _coefficients(a2, "polymul")
    if trim_leading_zeros:
        x, y = (_trimmed(q, "polymul") for q in (x, y))
    # None are those of zero.
    x, y = (q if shape_of(q)[0] else np.zeros(1, aval_of(q).dtype) for q in (x, y))
    return convolve(x, y)


def _trimmed(x: Any, function: str) -> Any:
    """Coefficients from the first one that is not 0; at least one."""
    places = np.flatnonzero(known_values(x, function))
    first = int(places[0]) if places.size else shape_of(x)[0] - 1
    return getitem(x, slice(max(first, 0), None))


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials.

    As `numpy.polydiv`, of arrays: quotient and remainder of the division of polynomials.

    Args:
        u: Coefficients of the dividend, ``(m,)``.
        v: Coefficients of the divisor, ``(n,)``, the first of them not 0.
        trim_leading_zeros: Whether to leave away zeros in front of the remainder, which NumPy
            does; its values must be known then.
    Returns: Coefficients of the quotient, ``(max(m - n + 1, 1),)``, and of the remainder, ``(m,)``.
    Example: print(*fg.numpy.polydiv([1.0, -3.0, 2.0], [1.0, -1.0], trim_leading_zeros=True))
        -> [ 1. -2.] [0.]
    """
    x, y = linalg.floating(
        _coefficients(u, "polydiv"), _coefficients(v, "polydiv"), function="polydiv"
    )
    m, n = shape_of(x)[0], shape_of(y)[0]
    rest, quotient = x, []
    for i in range(m - n + 1):
        factor = e.true_divide(getitem(rest, i), getitem(y, 0))
        quotient.append(factor)
        # The leading term of the difference is 0 exactly.
        lower = e.subtract(getitem(rest, slice(i + 1, i + n)), e.multiply(factor, y[1:]))
        zero = np.zeros(1, aval_of(x).dtype)
        rest = joining.concatenate([rest[:i], zero, lower, getitem(rest, slice(i + n, None))])
    out = joining.stack(quotient) if quotient else np.zeros(1, aval_of(x).dtype)
    return out, _trimmed(rest, "polydiv") if trim_leading_zeros else rest


def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """Roots of a polynomial.

    As `numpy.roots`.

    Args: strip_zeros: Whether to leave away zeros in front and at the end, whose values must be
            known then. Otherwise the first coefficient must not be 0.

    Returns:
        The roots, complex, ``(n,)`` without those zeros. They are differentiable where they are
        distinct.
    Raises: ConcretizationTypeError: If ``strip_zeros`` needs values that are not known.
    Example: print(np.sort(fg.numpy.roots([1.0, -3.0, 2.0]).real)) -> [1. 2.]
    """
    (x,) = linalg.floating(_coefficients(p, "roots"), function="roots")
    count = 0
    if strip_zeros:
        places = np.flatnonzero(known_values(x, "roots"))
        if not places.size:
            return np.zeros(0)
        count = shape_of(x)[0] - 1 - int(places[-1])
        x = getitem(x, slice(int(places[0]), int(places[-1]) + 1))
    n = shape_of(x)[0] - 1
    if n < 1:
        return np.zeros(count, aval_of(x).dtype)
    below = np.eye(n - 1, n, dtype=aval_of(x).dtype)
    first = e.true_divide(e.negative(x[1:]), getitem(x, 0))
    found = linalg.eigvals(joining.concatenate([shaping.reshape(first, (1, n)), below]))
    return joining.concatenate([found, np.zeros(count, aval_of(found).dtype)]) if count else found


def poly(seq_of_zeros: Any) -> Any:
    """Coefficients of the polynomial with given roots.

    As `numpy.poly`.

    Args: seq_of_zeros: Roots, ``(n,)``, or a square matrix.
    Returns: Coefficients, ``(n + 1,)``, the first of them 1. Of traced complex roots they are
        complex.
    Example: print(fg.numpy.poly([1.0, 2.0])) -> [ 1. -3.  2.]
    """
    x = shaping.atleast_1d(strong(as_value(seq_of_zeros, "poly")))
    if not isinstance(x, Tracer):
        return np.asarray(np.poly(x))
    is_real = not is_complex(aval_of(x).dtype)
    if len(shape_of(x)) == 2 and shape_of(x)[0] == shape_of(x)[1] and shape_of(x)[0]:
        x = linalg.eigvals(x)
    x = _coefficients(x, "poly")
    x = x if is_inexact(aval_of(x).dtype) else to_dtype(x, FLOAT64)
    out: Any = np.ones(1, aval_of(x).dtype)
    for i in range(shape_of(x)[0]):
        shifted = e.multiply(out, getitem(x, i))
        out = e.subtract(
            shaping.constant_pad(out, [(0, 1)]), shaping.constant_pad(shifted, [(1, 0)])
        )
    # Eigenvalues of a real matrix are pairs.
    return p.real.bind(out) if is_real and is_complex(aval_of(out).dtype) else out


def polyder(p: Any, m: int = 1) -> Any:
    """Derivative of a polynomial.

    As `numpy.polyder`, of an array.

    Args: m: How often to differentiate.
    Example: fg.numpy.polyder([1.0, -3.0, 2.0]) -> array([ 2., -3.])
    """
    x = _coefficients(p, "polyder")
    if m < 0:
        raise ArgumentError(f"polyder: the order of the derivative must not be negative, got {m}.")
    for _ in range(m):
        n = max(shape_of(x)[0] - 1, 0)
        x = e.multiply(x[:n], np.arange(n, 0, -1))
    return x


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Antiderivative of a polynomial.

    As `numpy.polyint`, of an array.

    Args:
        m: How often to integrate.
        k: The constants, ``(m,)`` or one for all; 0 by default.
    Returns: Coefficients, ``(n + m,)``.
    Example: fg.numpy.polyint([1.0, -3.0, 2.0])
        -> array([ 0.33333333, -1.5       ,  2.        ,  0.        ])
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
        x = joining.concatenate([e.true_divide(x, np.arange(n, 0, -1)), constants[last : last + 1]])
    return x


def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Any:
    """Polynomial that fits points in the sense of least squares.

    As `numpy.polyfit`: the polynomial that fits points best, in the sense of least squares.

    Args:
        x: Where, ``(m,)``.
        y: Values, ``(m,)`` or one set per column, ``(m, k)``.
        deg: Degree.
        full: Whether to return residuals, rank, singular values and ``rcond`` too.
        w: Weights of the residuals (not of their squares), ``(m,)``.
        cov: Whether to return the covariance of the coefficients too, ``(deg + 1, deg + 1)`` or
            ``(deg + 1, deg + 1, k)``: scaled by the residuals, or with ``"unscaled"`` as it is if
            weights are inverse standard deviations.
    Returns: Coefficients, ``(deg + 1,)`` or ``(deg + 1, k)``.
    Raises: ValueError: If there are too few points for a covariance that is scaled.

    Example:
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
    if full:
        return fitted, residuals, rank, values, rcond
    return (fitted, _covariance(rows, y, fitted, cov)) if cov else fitted


def _covariance(rows: Any, y: Any, fitted: Any, kind: bool | str) -> Any:
    """The covariance of fitted coefficients of weighted rows."""
    m, n = shape_of(rows)
    sizes = linalg.norm(rows, axis=0)
    scaled = e.true_divide(rows, sizes)
    inverse = linalg.inv(linalg.matmul(linalg.matrix_transpose(scaled), scaled))
    base = e.true_divide(inverse, linalg.outer(sizes, sizes))
    is_line = len(shape_of(y)) == 1
    if kind == "unscaled":
        return base if is_line else shaping.expand_dims(base, 2)
    if m <= n:
        raise ValueError("the number of data points must exceed order to scale the covariance")
    rest = e.subtract(y, linalg.matmul(rows, fitted))
    factor = e.true_divide(sum(e.square(rest), 0), m - n)
    return e.multiply(base if is_line else shaping.expand_dims(base, 2), factor)
