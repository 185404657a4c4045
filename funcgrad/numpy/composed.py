"""Rounding, elementary functions and ranges that NumPy composes of others."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import BOOL, FLOAT64, INT64, is_complex, is_inexact
from funcgrad.errors import DtypeError
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import promotion
from funcgrad.numpy.creating import linspace, zeros
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.reducing import refuse_out
from funcgrad.numpy.selecting import where
from funcgrad.numpy.shaping import broadcast_arrays, expand_dims, moveaxis, reshape
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.bits import Bitcast
from funcgrad.primitives.cumulative import Cumprod
from funcgrad.primitives.quotients import quotient
from funcgrad.primitives.shape import Reverse, broadcast_to, shape_of
from funcgrad.primitives.special import i0 as bessel_i0

__all__ = [
    "around", "bartlett", "blackman", "fix", "geomspace", "hamming", "hanning", "i0", "kaiser",
    "ldexp", "logspace", "polyval", "round", "sinc", "vander",
]  # fmt: skip


bartlett, blackman, hamming, hanning, kaiser = (
    np.bartlett, np.blackman, np.hamming, np.hanning, np.kaiser,
)  # fmt: skip


def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """Elements rounded to a number of decimals.

    As `numpy.round`: halves go to the even neighbour; the derivative is 0.

    Where there are more ``decimals`` than the dtype has digits, ``x`` is its own rounding (NumPy's
    intermediate product overflows to nan).

    Args: decimals: Number of decimals to round to; negative ones count before the point.
    Example: fg.numpy.round(np.array([-1.5, 0.5, 2.5])) -> array([-2.,  0.,  2.])
    """
    refuse_out(out, "round")
    x = promotion.strong(promotion.as_value(a, "round"))
    dtype = aval_of(x).dtype
    if dtype == BOOL:
        if decimals:
            raise TypeError("round: bools have no decimals. Convert them with .astype(float).")
        return p.convert(x, FLOAT64)  # where NumPy has float16
    if not is_inexact(dtype):
        return x if decimals >= 0 else p.convert(round(p.convert(x, FLOAT64), decimals), dtype)
    if decimals == 0:
        return p.rint.bind(x)
    places = decimals.__index__()
    if builtins.abs(places) > np.finfo(dtype).maxexp * np.log10(2):
        # The factor overflows: there are no such digits, or no number is that large.
        return x if places > 0 else e.multiply(x, 0)
    factor = dtype.type(10.0 ** builtins.abs(places))
    forth, back = (p.mul, p.div) if decimals > 0 else (p.div, p.mul)
    return back.bind(p.rint.bind(forth.bind(x, factor)), factor)


around = round


def fix(x: Any, out: None = None) -> Any:
    """Nearest integer towards zero.

    As `numpy.fix`.

    Example: fg.numpy.fix(np.array([-1.5, 0.5, 2.5])) -> array([-1.,  0.,  2.])
    """
    refuse_out(out, "fix")
    return e.trunc(x)


def ldexp(x1: Any, x2: Any) -> Any:
    """x1 times 2 to the power x2.

    As `numpy.ldexp`: ``x1 * 2**x2``, rounded once.

    The power may lie outside of the numbers of the dtype, so it is multiplied in three steps. All
    of them but one are by 1 where it does not, and a step that may leave the normal numbers is
    followed by none that rounds again.

    Example: fg.numpy.ldexp(0.75, 3) -> np.float64(6.0)
    """
    (x,) = promotion.promote_inexact(promotion.as_value(x1, "ldexp"))
    dtype = aval_of(x).dtype
    n = promotion.as_value(x2, "ldexp")
    if is_complex(dtype) or not np.can_cast(aval_of(n).dtype, INT64):
        raise DtypeError(
            f"ldexp multiplies a real number by a power of 2 whose exponent is an integer that "
            f"int64 can hold, got {aval_of(x)} and {aval_of(n)}."
        )
    n, info = promotion.to_dtype(n, INT64), np.finfo(dtype)
    highest, lowest = np.int64(info.maxexp - 1), np.int64(info.minexp)
    for _ in range(2):
        down = p.select.bind(p.less.bind(n, lowest), lowest + np.int64(info.nmant + 1), n)
        step = p.select.bind(p.greater.bind(n, highest), highest, down)
        x = p.mul.bind(x, _power_of_two(step, dtype))
        n = p.sub.bind(n, step)
    rest = p.maximum.bind(p.minimum.bind(n, highest), lowest)
    return p.mul.bind(x, _power_of_two(rest, dtype))


def _power_of_two(n: Any, dtype: np.dtype[Any]) -> Any:
    """``2**n`` as a normal number, from its bits: `exp2` is not exact."""
    info = np.finfo(dtype)
    word = np.dtype(f"i{dtype.itemsize}")
    field = p.convert(p.add.bind(n, np.int64(info.maxexp - 1)), word)
    return Bitcast(dtype).bind(p.left_shift.bind(field, word.type(info.nmant)))


def _widened(x: Any, name: str) -> Any:
    """A floating value, of integers float64: these functions are no ufuncs in NumPy."""
    value = promotion.as_value(x, name)
    return promotion.strong(promotion.promote_quotient(value, 1)[0])


def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), 1 at 0.

    As `numpy.sinc`: ``sin(pi x) / (pi x)``, with derivatives of every order at 0.

    Example: fg.numpy.sinc(np.array([0.0, 0.5])) -> array([1.        , 0.63661977])
    """
    x = _widened(x, "sinc")
    return quotient("sin").bind(p.mul.bind(x, aval_of(x).dtype.type(np.pi)))


def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """Values of a polynomial.

    As `numpy.polyval`, by Horner's rule; ``unroll`` is of no effect.

    Args: unroll: Accepted for JAX's signature; without effect.
    Example: fg.numpy.polyval([1.0, 0.0, -1.0], 3.0) -> np.float64(8.0)
    """
    coefficients, x = promotion.as_value(p, "polyval"), promotion.as_value(x, "polyval")
    n = shape_of(coefficients)[0]
    if not n:
        return np.zeros(shape_of(x), aval_of(x).dtype)
    coefficients, x = map(promotion.strong, promotion.promote(coefficients, x))
    zero = aval_of(x).dtype.type(0)
    out = e.multiply(x, zero)
    for i in range(n):
        out = e.add(e.multiply(out, x), getitem(coefficients, i))
    return out


def i0(x: Any) -> Any:
    """Modified Bessel function of the first kind, of order 0.

    As `numpy.i0`.

    Example: fg.numpy.i0(0.5) -> np.float64(1.0634833707413234)
    """
    x = _widened(x, "i0")
    return bessel_i0.bind(x)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Powers of a base, whose exponents are at equal distances.

    As `numpy.logspace`; bounds and bases may be traced.

    Args: base: Base of the powers.
    Example: fg.numpy.logspace(0.0, 2.0, 3) -> array([  1.,  10., 100.])
    """
    values = [promotion.as_value(v, "logspace") for v in (start, stop, base)]
    if shape_of(values[2]):
        rank = builtins.max(len(shape_of(v)) for v in values)
        values = [reshape(v, (*(1,) * (rank - len(shape_of(v))), *shape_of(v))) for v in values]
        values[2] = expand_dims(values[2], axis)
    start, stop, base = values
    out = e.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return out if dtype is None else p.convert(out, promotion.checked_dtype(dtype, "logspace"))


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers at equal ratios, with given ends.

    As `numpy.geomspace`: bounds of one sign, or complex ones; they may be traced.

    Example: fg.numpy.geomspace(1.0, 8.0, 4) -> array([1., 2., 4., 8.])
    """
    bounds = [promotion.as_value(v, "geomspace") for v in (start, stop)]
    if builtins.any(not isinstance(v, Tracer) and np.any(np.equal(v, 0)) for v in bounds):
        raise ValueError("Geometric sequence cannot include zero")
    start, stop = broadcast_arrays(*promotion.promote_to_double(*bounds))
    # The direction of `start`, of which the result does not depend if it is turned back.
    sign = p.stop_gradient.bind(e.sign(start))
    first, last = e.divide(start, sign), e.divide(stop, sign)
    line = e.exp(linspace(e.log(first), e.log(last), num, endpoint))
    places = np.arange(num).reshape((num, *(1,) * len(shape_of(start))))
    line = where(places == 0, first, line)
    if endpoint and num > 1:
        line = where(places == num - 1, last, line)
    out = moveaxis(e.multiply(sign, line), 0, axis)
    return out if dtype is None else p.convert(out, promotion.checked_dtype(dtype, "geomspace"))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Vandermonde matrix: powers of a vector as columns.

    As `numpy.vander`: powers of ``x`` as columns.

    Args: increasing: Whether powers grow from left to right.
    Example: fg.numpy.vander(np.array([1.0, 2.0, 3.0]))
        -> array([[1., 1., 1.],
                  [4., 2., 1.],
                  [9., 3., 1.]])
    """
    x = promotion.strong(promotion.as_value(x, "vander"))
    if len(shape_of(x)) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    dtype = np.promote_types(aval_of(x).dtype, np.int64)
    x = p.convert(x, dtype)
    count = shape_of(x)[0] if N is None else N
    if not count:
        return zeros((shape_of(x)[0], 0), dtype)
    n = shape_of(x)[0]
    factors = broadcast_to(expand_dims(x, 1), (n, count - 1))
    powers = Cumprod(1).bind(concatenate([np.ones((n, 1), dtype), factors], 1))
    return powers if increasing else Reverse((1,)).bind(powers)
