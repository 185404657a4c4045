"""The logarithm of the gamma function and its derivatives, DLMF 5.

They are polynomials, recurrences and asymptotic series for positive numbers. Where a number is
negative, a reflection follows, which others do not wait for. Relative errors are a few units in the
last place, except near zeros of the digamma function on the negative axis, where their absolute
errors are. The polynomials interpolate 40-digit values at Chebyshev's nodes, to 1e-16; those for
32-bit results are the same, economised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.compiler.native.slow_paths import choose_where
from funcgrad.compiler.native.vecmath.arithmetic import INF, NAN, by_double, polynomial
from funcgrad.compiler.native.vecmath.logarithms import log, short_log
from funcgrad.compiler.native.vecmath.trigonometric import sin, tan

# The digamma function, divided by the distance from its zero, by powers of ``2 x - 3`` on
# ``1 <= x <= 2``.
_ZERO, _REST_OF_ZERO = 1.4616321449683622, 9.549995429965697e-17
_NEAR_ZERO = {
    32: (
        -3.761455020610743e-06, 1.0969604773048053e-05, -2.1663388936033024e-05,
        6.60514347549437e-05, -0.0002117419910525336, 0.0006389825080534077,
        -0.0019347702134239469, 0.0059362937684056755, -0.018550653007758756, 0.0601356646688285,
        -0.2118137092821222, 0.9510558754198686,
    ),
    64: (
        -8.25512972008104e-11, 2.4765474440031764e-10, -2.889363639216111e-10,
        8.668257373761658e-10, -3.6788868183645545e-09, 1.10370884388543e-08,
        -3.166618072027162e-08, 9.500926192924096e-08, -2.8628755280038686e-07,
        8.591324222417666e-07, -2.578107848270217e-06, 7.741156881253708e-06,
        -2.325823828431376e-05, 6.995020484160625e-05, -0.00021074841215733007,
        0.000636888028319074, -0.0019350666647832667, 0.005936795278433826, -0.018550615381738605,
        0.06013562106019355, -0.21181371064073026, 0.951055876031833,
    ),
}  # fmt: skip
# ``log(gamma(x)) / ((x - 1) (x - 2))`` by powers of ``2 x - 3`` on ``1 <= x <= 2``.
_LGAMMA = {
    32: (
        9.366530238047579e-07, -2.9794039552436527e-06, 7.221871851576954e-06,
        -2.4347176378397296e-05, 8.525577522215421e-05, -0.0002948871806554151,
        0.0010497816773023124, -0.003913499792807261, 0.015727853479238753, -0.07297995105045461,
        0.483128950495983,
    ),
    64: (
        -3.44138388395326e-11, 1.0811060848639768e-10, -1.6832632347974095e-10,
        5.338892309612246e-10, -2.0645205106753336e-09, 6.5744295616983814e-09,
        -2.0587178010528767e-08, 6.613648184278213e-08, -2.138781508158277e-07,
        6.948877197562772e-07, -2.274243403133106e-06, 7.511379855481206e-06,
        -2.5094329288815257e-05, 8.510090557578434e-05, -0.00029455070147065866,
        0.0010498186643114226, -0.003913560937627712, 0.01572785026864542, -0.07297994795715304,
        0.4831289505409809,
    ),
}  # fmt: skip
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_SHIFT = {32: 5, 64: 8}
"""From here on the asymptotic series of derivatives are used, DLMF 5.11.2 and 5.15.8."""
_PSI = tuple(b / (2 * k) for k, b in enumerate(_BERNOULLI, 1))[::-1]
_SLOPE = _BERNOULLI[::-1]
_FAR = {32: 4, 64: 13}
"""From here on the asymptotic series of the logarithm is used, which rounds less than the
recurrence."""
_TERMS = {32: 6, 64: 9}
"""How many terms of the asymptotic series count."""
_LGAMMA_FAR = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1))[::-1]
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_LOG = {32: short_log, 64: log}
_LARGE = 1e17
"""From here on only the leading term counts, which overflows later than its parts."""


def _reflected(x: Any) -> tuple[Any, Any]:
    """Whether ``x`` is negative, and ``1 - x`` if it is."""
    is_left = x < 0
    return is_left, is_left.select(1.0 - x, x)


def _unless_left(
    x: Any, is_left: Any, value: Any, at_pole: float, reflect: Callable[[Any], Any]
) -> Any:
    """A value, which for negative ``x`` is reflected by its distance from a whole number."""

    def reflected() -> Any:
        part = x - x.rint()
        return (part.absolute() > 0).select(reflect(part), at_pole)

    return choose_where(is_left, value, reflected)


def _series(digits: int, coefficients: Sequence[float], square: Any) -> Any:
    return polynomial(square, coefficients[-_TERMS[digits] :])


def _shifted(digits: int, x: Any, power: int) -> tuple[Any, Any]:
    """Large ``z`` with ``z - x`` whole, and the sum of ``(x + k)**-power`` for what is between."""
    shift = _SHIFT[digits]
    is_low = x < shift
    low = is_low.select(x, 1.0)
    above, below = low.constant(1.0), low if power == 1 else low * low
    for k in range(1, shift):
        factor = low + float(k)
        factor = factor if power == 1 else factor * factor
        above, below = above * factor + below, below * factor
    return is_low.select(x + float(shift), x), is_low.select(above / below, 0.0)


@by_double
def digamma(digits: int, x: Any) -> Any:
    """The derivative of the logarithm of the gamma function."""
    is_left, right = _reflected(x)
    z, taken = _shifted(digits, right, 1)
    inverse = 1.0 / z
    square = inverse * inverse
    value = _LOG[digits](z) - inverse * 0.5 - square * _series(digits, _PSI, square) - taken
    is_near = (right > 1) & (right < 2)
    near = is_near.select(right, 1.5)
    distance = (near - _ZERO) - _REST_OF_ZERO
    by_zero = distance * polynomial(near * 2.0 - 3.0, _NEAR_ZERO[digits])
    value = is_near.select(by_zero, value)
    value = (right < INF).select(value, right)
    # DLMF 5.5.4: there are poles at 0, where the sign of 0 tells the side, and left of it.
    value = _unless_left(x, is_left, value, NAN, lambda part: value - math.pi / tan(part * math.pi))
    return (x == 0).select(-x.constant(INF).copysign(x), value)


@by_double
def trigamma(digits: int, x: Any) -> Any:
    """The derivative of `digamma`."""
    is_left, right = _reflected(x)
    z, added = _shifted(digits, right, 2)
    inverse = 1.0 / z
    square = inverse * inverse
    value = inverse + square * (inverse * _series(digits, _SLOPE, square) + 0.5) + added

    def reflect(part: Any) -> Any:
        height = sin(part * math.pi) * (1 / math.pi)
        return 1.0 / (height * height) - value

    return _unless_left(x, is_left, value, INF, reflect)


@by_double
def lgamma(digits: int, x: Any) -> Any:
    """The logarithm of the size of the gamma function."""
    log, last = _LOG[digits], _FAR[digits]
    is_left, right = _reflected(x)
    # By recurrence from 1 <= y <= 2; far from there by the asymptotic series (DLMF 5.11.1).
    is_low, is_far = right < 1, right > last
    inner = is_far.select(1.0, right)
    y, product = inner, is_low.select(inner, 1.0)
    for k in range(1, last - 1):
        is_above, rest = inner > k + 1, inner - float(k)
        y, product = is_above.select(rest, y), is_above.select(product * rest, product)
    zeros = is_low.select(inner, y - 1.0) * is_low.select(inner - 1.0, y - 2.0)
    t = is_low.select(inner * 2.0 - 1.0, y * 2.0 - 3.0)
    logarithm = log(is_far.select(right, product))
    near = zeros * polynomial(t, _LGAMMA[digits]) + is_low.select(-logarithm, logarithm)
    z = is_far.select(right, float(last))
    inverse = 1.0 / z
    far = (z - 0.5) * logarithm - z + _HALF_LOG_2PI
    far = far + inverse * _series(digits, _LGAMMA_FAR, inverse * inverse)
    far = (z < _LARGE).select(far, z * (logarithm - 1.0))
    value = is_far.select(far, near)

    def reflect(part: Any) -> Any:  # DLMF 5.5.3
        return log(math.pi / sin(part * math.pi).absolute()) - value

    value = _unless_left(x, is_left, value, INF, reflect)
    return (x.absolute() < INF).select(value, x)
