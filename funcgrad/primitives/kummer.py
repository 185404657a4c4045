"""Derivatives of Kummer's function ``M(a, b, x)`` in its parameters (DLMF 13).

They are sums as the function is one: with each term of DLMF 13.2.2 goes its derivative, which the
same recurrence gives. Left of 0 Kummer's transformation (13.2.39) makes the terms of one sign; far
left, where nothing is left of ``exp(x)``, it is the expansion at infinity (13.7.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import is_complex
from funcgrad.primitives.elementwise import Derivative, Smooth
from funcgrad.primitives.families import undefined

_MOST = 4000
"""Terms of a sum, at most: of ``x = 700`` there are 1,000."""
_FAR = 700.0
_TINY = 1e-17

Slopes = tuple[Any, Any]
"""Derivatives in the two parameters."""


def _sums(a: Any, b: Any, x: Any) -> Slopes:
    """The derivatives for ``x`` of at least 0."""
    term, in_a, in_b = np.ones_like(x), np.zeros_like(x), np.zeros_like(x)
    sum_a, sum_b = in_a, in_b
    for n in range(_MOST):
        factor = x / ((b + n) * (n + 1.0))
        in_a = (in_a * (a + n) + term) * factor
        in_b = (in_b - term / (b + n)) * ((a + n) * factor)
        term = term * ((a + n) * factor)
        sum_a, sum_b = sum_a + in_a, sum_b + in_b
        small = (abs(in_a) <= _TINY * abs(sum_a)) & (abs(in_b) <= _TINY * abs(sum_b))
        if np.all(small & (n > x) | ~np.isfinite(sum_a + sum_b)):
            break
    return sum_a, sum_b


def _at_infinity(a: Any, b: Any, y: Any) -> Slopes:
    """The derivatives for ``x = -y`` far left of 0."""
    special = load("scipy.special")
    d = a - b + 1.0
    term, in_a, in_b = np.ones_like(y), np.zeros_like(y), np.zeros_like(y)
    whole, sum_a, sum_b = term, in_a, in_b
    for n in range(20):
        factor = 1.0 / ((n + 1.0) * y)
        in_a = (in_a * (a + n) * (d + n) + term * (a + d + 2.0 * n)) * factor
        in_b = (in_b * (a + n) * (d + n) - term * (a + n)) * factor
        term = term * (a + n) * (d + n) * factor
        whole, sum_a, sum_b = whole + term, sum_a + in_a, sum_b + in_b
    c = b - a
    reciprocal = special.rgamma(c)
    # At a pole of the gamma function the derivative of its reciprocal is (-1)**m m!.
    is_pole = (c <= 0.0) & (c == np.rint(c))
    at_pole = np.cos(np.pi * c) * special.gamma(1.0 - np.minimum(c, 0.0))
    slope = np.where(is_pole, at_pole, -special.psi(np.where(is_pole, 1.0, c)) * reciprocal)
    scale = special.gamma(b) * y**-a
    in_a = scale * (reciprocal * (sum_a - np.log(y) * whole) - slope * whole)
    in_b = scale * (reciprocal * (sum_b + special.psi(b) * whole) + slope * whole)
    return in_a, in_b


def _slopes(a: Any, b: Any, x: Any) -> Slopes:
    dtype = np.result_type(x)
    a, b, x = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, x)))
    is_left, y = x < 0.0, abs(x)
    c = b - a
    with np.errstate(all="ignore"):
        is_far = is_left & (y > _FAR)
        near = np.where(is_far, 0.0, y)
        in_a, in_b = _sums(np.where(is_left, c, a), b, near)
        damping = np.exp(-near)
        own = np.where(is_left, -damping * in_a, in_a)
        other = np.where(is_left, damping * (in_a + in_b), in_b)
        if np.any(is_far):
            far_a, far_b = _at_infinity(a, b, np.where(is_far, y, _FAR))
            own, other = np.where(is_far, far_a, own), np.where(is_far, far_b, other)
    return own.astype(dtype), other.astype(dtype)


def _in_a(a: Any, b: Any, x: Any) -> Any:
    return _slopes(a, b, x)[0]


def _in_b(a: Any, b: Any, x: Any) -> Any:
    return _slopes(a, b, x)[1]


Row = Callable[[], Smooth]


def _slope(place: int, rows: list[Smooth], kummer: Row) -> Smooth:
    name, function = (("hyp1f1_da", _in_a), ("hyp1f1_db", _in_b))[place]
    what = f"the derivative of hyp1f1 in {'ab'[place]}"

    def in_x(a: Value, b: Value, x: Value, y: Value) -> Value:
        """Derivative of ``a / b M(a + 1, b + 1, x)``."""
        above = kummer().bind(a + 1, b + 1, x) / b
        return a / b * rows[place].bind(a + 1, b + 1, x) + (-a / b * above if place else above)

    text = f"{name}({{0}}, {{1}}, {{2}})"
    partials = [undefined(what, "a"), undefined(what, "b"), in_x]
    return Smooth(name, function, partials, text, kinds="f", code_kinds="")


def slopes_in_parameters(kummer: Row) -> list[Derivative]:
    """Partial derivatives of ``M(a, b, x)`` in ``a`` and ``b``, for real numbers.

    Args: kummer: Gives the row of the function.
    """
    rows: list[Smooth] = []
    rows += [_slope(place, rows, kummer) for place in (0, 1)]

    def partial(place: int) -> Derivative:
        def slope(a: Value, b: Value, x: Value, y: Value) -> Value:
            _check_real(x, "ab"[place])
            return rows[place].bind(a, b, x)

        return slope

    return [partial(0), partial(1)]


def _check_real(x: Value, argument: str) -> None:
    if is_complex(aval_of(x).dtype):
        undefined("hyp1f1 of complex numbers", argument)()
