"""Elliptic integrals and functions, DLMF 19 and 22.

Derivatives in the parameter ``m`` are Carlson's integral ``R_D``, which loses no digits where the
textbook's differences of complete integrals do. The derivatives of Carlson's integrals follow from
the equations of Euler, Poisson and Darboux (DLMF 19.18) and from homogeneity; where these divide by
the difference of arguments that are near, derivatives are integrals, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.dtypes import is_complex, real_dtype
from funcgrad.primitives.elementwise import (
    absolute,
    add,
    cos,
    div,
    equal,
    less,
    less_equal,
    mul,
    neg,
    ones_like,
    rint,
    select,
    sin,
    sqrt,
    sub,
    zero_of,
)
from funcgrad.primitives.power_integrals import power_integral
from funcgrad.primitives.special_rows import Composed, Special, SpecialParts, table

_NEAR = 0.5
"""Arguments that differ by less, relative to their sum, count as near: their difference divides."""


def _slope(x: Value, y: Value, difference: Value, integral: Value) -> Value:
    """Half a difference over ``x - y``, or the same as an integral where these are near."""
    size = absolute.bind(x) + absolute.bind(y)
    limit = real_dtype(aval_of(x).dtype).type(_NEAR) * size
    is_near = less_equal.bind(absolute.bind(x - y), limit)
    apart = select.bind(is_near, ones_like(size + x), x - y)
    return select.bind(is_near, integral, difference / (2 * apart))


# Carlson's integrals. R_F has the derivative -R_D / 6 in the argument that R_D has last.
def _rd_first(x: Value, y: Value, z: Value, value: Value) -> Value:
    """The derivative of ``R_D(x, y, z)`` in ``x``."""
    integral = power_integral(3, 1, 3).bind(x, y, z) * -0.75
    return _slope(x, z, elliprd.bind(y, z, x) - value, integral)


def _rd_last(x: Value, y: Value, z: Value, value: Value) -> Value:
    """The derivative of ``R_D(x, y, z)`` in ``z``: the degree is -3/2."""
    others = _times(x, lambda: _rd_first(x, y, z, value)) + _times(
        y, lambda: _rd_first(y, x, z, value)
    )
    return (-1.5 * value - others) / z


def _times(x: Value, slope: Callable[[], Value]) -> Value:
    """``x`` times a derivative that may be infinite where it is 0, like a root."""
    return select.bind(equal.bind(x, zero_of(x)), zero_of(x), x * slope())


elliprd: Special = Special(
    "elliprd", "x y z", _rd_first, lambda x, y, z, v: _rd_first(y, x, z, v), _rd_last, kinds="fc"
)
elliprf = Special(
    "elliprf",
    "x y z",
    lambda x, y, z, v: elliprd.bind(y, z, x) * (-1 / 6),
    lambda x, y, z, v: elliprd.bind(z, x, y) * (-1 / 6),
    lambda x, y, z, v: elliprd.bind(x, y, z) * (-1 / 6),
    kinds="fc",
)


def _rg_first(x: Value, y: Value, z: Value, v: Value) -> Value:
    return (elliprf.bind(x, y, z) - _times(x, lambda: elliprd.bind(y, z, x)) / 3) / 4


elliprg = Special(
    "elliprg",
    "x y z",
    _rg_first,
    lambda x, y, z, v: _rg_first(y, z, x, v),
    lambda x, y, z, v: _rg_first(z, x, y, v),
    kinds="fc",
)


def _rc_first(x: Value, y: Value, v: Value) -> Value:
    return (v - 1 / sqrt.bind(x)) / (2 * (y - x))


def _is_branch(y: Value) -> Value:
    """Mask of arguments where R_C is a principal value."""
    return less.bind(y, zero_of(y))


def _rc_dx(x: Value, y: Value, v: Value) -> Value:
    if is_complex(aval_of(x).dtype):
        return elliprd.bind(y, y, x) * (-1 / 6)
    positive = absolute.bind(y)
    slope = elliprd.bind(positive, positive, x) * (-1 / 6)
    return select.bind(_is_branch(y), _rc_first(x, y, v), slope)


def _rc_dy(x: Value, y: Value, v: Value) -> Value:
    if is_complex(aval_of(x).dtype):
        return elliprd.bind(x, y, y) * (-1 / 3)
    positive = absolute.bind(y)
    slope = elliprd.bind(x, positive, positive) * (-1 / 3)
    of_branch = (-0.5 * v - _times(x, lambda: _rc_first(x, y, v))) / y
    return select.bind(_is_branch(y), of_branch, slope)


elliprc = Special("elliprc", "x y", _rc_dx, _rc_dy, kinds="fc")


def _rj_first(x: Value, y: Value, z: Value, p: Value, v: Value) -> Value:
    integral = power_integral(3, 1, 1, 2).bind(x, y, z, p) * -0.75
    return _slope(x, p, elliprd.bind(y, z, x) - v, integral)


def _rj_last(x: Value, y: Value, z: Value, p: Value, v: Value) -> Value:
    others = (
        _times(x, lambda: _rj_first(x, y, z, p, v))
        + _times(y, lambda: _rj_first(y, z, x, p, v))
        + _times(z, lambda: _rj_first(z, x, y, p, v))
    )
    return (-1.5 * v - others) / p


elliprj = Special(
    "elliprj",
    "x y z p",
    _rj_first,
    lambda x, y, z, p, v: _rj_first(y, z, x, p, v),
    lambda x, y, z, p, v: _rj_first(z, x, y, p, v),
    _rj_last,
    kinds="fc",
)


# Complete integrals.
def _zero(x: Value) -> Value:
    return zero_of(x) * ones_like(x)


ellipk = Special("ellipk", "m", lambda m, y: elliprd.bind(_zero(m), ones_like(m), 1 - m) / 6)
ellipkm1 = Special("ellipkm1", "p", lambda p, y: elliprd.bind(_zero(p), ones_like(p), p) * (-1 / 6))
ellipe = Special("ellipe", "m", lambda m, y: elliprd.bind(_zero(m), 1 - m, ones_like(m)) * (-1 / 6))


def _agm_slope(a: Value, b: Value, y: Value) -> Value:
    """The mean is ``pi / 2 / R_F(0, a**2, b**2)``, with the sign of its arguments."""
    size = absolute.bind(a)
    return y * y * (2 / (3 * math.pi)) * size * elliprd.bind(_zero(a), b * b, a * a)


agm = Special("agm", "a b", _agm_slope, lambda a, b, y: _agm_slope(b, a, y))


# Incomplete integrals: half periods, and what is left of the angle.
def _in_parameter(is_first: bool) -> Callable[..., Any]:
    """The derivative of an incomplete integral in ``m``."""

    def parts(do: Callable[..., Any], phi: Any, m: Any) -> Any:
        number = aval_of(phi).dtype.type
        turns = do(rint, do(div, phi, number(math.pi)))
        rest = do(sub, phi, do(mul, turns, number(math.pi)))
        s, c, one = do(sin, rest), do(cos, rest), number(1)
        lowered = do(sub, one, do(mul, m, do(mul, s, s)))
        square = do(mul, c, c)
        if is_first:
            near = do(elliprd, square, one, lowered)
            period = do(elliprd, number(0), one, do(sub, one, m))
        else:
            near = do(neg, do(elliprd, square, lowered, one))
            period = do(neg, do(elliprd, number(0), do(sub, one, m), one))
        cube = do(mul, s, do(mul, s, s))
        near = do(mul, number(1 / 6), do(mul, cube, near))
        far = do(mul, number(1 / 3), do(mul, turns, period))
        return do(add, near, do(select, do(equal, turns, number(0)), number(0), far))

    return parts


def _root(phi: Value, m: Value) -> Value:
    s = sin.bind(phi)
    return sqrt.bind(1 - m * s * s)


def _twice(is_first: bool) -> Callable[..., Value]:
    """The second derivative of an incomplete integral in ``m``: the slope's own `_in_parameter`."""

    def slope(x: Value, m: Value) -> Value:
        one = ones_like(m)
        if is_first:
            return -_rd_last(x, one, m, elliprd.bind(x, one, m))
        return _rd_first(m, x, one, elliprd.bind(x, m, one))

    def derivative(phi: Value, m: Value, y: Value) -> Value:
        turns = rint.bind(phi / math.pi)
        rest = phi - turns * math.pi
        sine, cosine = sin.bind(rest), cos.bind(rest)
        square = sine * sine
        near = square * square * sine / 6 * slope(cosine * cosine, 1 - m * square)
        is_none = equal.bind(turns, zero_of(turns))
        far = select.bind(is_none, zero_of(phi), turns / 3 * slope(_zero(m), 1 - m))
        return near + far

    return derivative


def _square_of_sine(phi: Value) -> Value:
    s = sin.bind(phi)
    return s * s


ellipkinc_slope: Composed = Composed(
    "ellipkinc_slope",
    "phi m",
    _in_parameter(True),
    lambda phi, m, y: _square_of_sine(phi) / (2 * _root(phi, m) * (1 - m * _square_of_sine(phi))),
    _twice(True),
)
ellipeinc_slope = Composed(
    "ellipeinc_slope",
    "phi m",
    _in_parameter(False),
    lambda phi, m, y: -_square_of_sine(phi) / (2 * _root(phi, m)),
    _twice(False),
)
ellipkinc = Special(
    "ellipkinc",
    "phi m",
    lambda phi, m, y: 1 / _root(phi, m),
    lambda phi, m, y: ellipkinc_slope.bind(phi, m),
)
ellipeinc = Special(
    "ellipeinc",
    "phi m",
    lambda phi, m, y: _root(phi, m),
    lambda phi, m, y: ellipeinc_slope.bind(phi, m),
)


# Jacobi's functions: ``ph`` is the angle whose integral is ``u``.
def _jacobi_slopes(u: Value, m: Value, y: Sequence[Value]) -> Sequence[Callable[[], Any]]:
    sn, cn, dn, ph = y

    def in_parameter() -> Sequence[Value]:
        turn = -dn * ellipkinc_slope.bind(ph, m)
        return cn * turn, -sn * turn, -sn * (sn + 2 * m * cn * turn) / (2 * dn), turn

    return [lambda: (cn * dn, -sn * dn, -m * sn * cn, dn), in_parameter]


ellipj = SpecialParts("ellipj", "u m", "sn cn dn ph", _jacobi_slopes)

TABLE = table(
    elliprd, elliprf, elliprg, elliprc, elliprj, ellipk, ellipkm1, ellipe, agm, ellipkinc,
    ellipeinc, ellipj,
)  # fmt: skip
"""Primitives by the names of SciPy's ufuncs."""
