"""The error function and its complement."""

from __future__ import annotations

from typing import Any

from funcgrad.compiler.native.vecmath.arithmetic import by_double, clamped, polynomial
from funcgrad.compiler.native.vecmath.exponentials import exp_in_range, exp_of_sum

# erf(x) / x - 1 by powers of x**2 on |x| <= 1.
_ERF = {
    32: (
        7.875875062685488e-05, -0.000801686428716587, 0.005189087423433974, -0.026854212010626412,
        0.11283594715160218, -0.37612626666720334, 0.12837916584835093,
    ),
    64: (
        -7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07,
        1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
        -0.0008548325975389692, 0.0052239776071164225, -0.02686617064323777, 0.11283791670945006,
        -0.37612638903183543, 0.12837916709551256,
    ),
}  # fmt: skip
# (1 + 2 x) exp(x**2) erfc(x) by powers of (x - 3) / (x + 3) for x >= 0.8 (Shepherd and Laframboise
# 1981), as far as erfc is not 0.
_CENTER = 3.0
_ERFC = {
    32: (
        -0.0006700838035461641, 0.0018061280380155832, 0.002492974953280869, -0.023747381429817815,
        0.06831325588305015, -0.1192763288034538, 0.1296448611629643, -0.047562186325574234,
        -0.1356211016348442, 1.2530080575661042,
    ),
    64: (
        8.693110238002656e-08, -7.467639758696657e-08, -6.146236166613699e-07, 3.03306933533767e-07,
        3.4775746400626977e-06, -7.064086318325641e-07, -2.0104240242069672e-05,
        4.942115599298743e-06, 0.0001251005062348702, -0.00010515842040689594,
        -0.0007798324693717934, 0.0018886901974044304, 0.0025293918346528097, -0.023770514907430536,
        0.0683080273430845, -0.11927366341571395, 0.12964515870277868, -0.04756229435344496,
        -0.13562110612458125, 1.2530080582697296,
    ),
}  # fmt: skip
_LAST = {32: 10.1, 64: 27.3}


def _small(digits: int, x: Any) -> Any:
    """``erf(x) - x`` for ``|x| <= 1``."""
    return x * polynomial(x * x, _ERF[digits])


def _complement(digits: int, a: Any) -> Any:
    """``erfc(a)`` for ``a >= 0.8``."""
    a = clamped(a, 0.8, _LAST[digits])
    t = (a - _CENTER) / (a + _CENTER)
    square = a * a
    rest = -a.fma(a, -square)
    *outer, first = _ERFC[digits]
    slope = polynomial(t, outer)
    p = slope.fma(t, first)
    denominator = a * 2 + 1
    quotient = p / denominator
    if digits == 64:
        # Relative rounding errors of p and of the quotient; p is near 1.2.
        lost = quotient.fma(-denominator, p) - quotient * ((a * 2 - denominator) + 1)
        rest = rest + (lost + slope.fma(t, first - p)) * 0.83
    return quotient * exp_of_sum(digits, -square, rest)


# log(erfc(x)) by powers of x on 1 <= x <= 3.95, where erf(x) is nearly 1: a least-squares fit,
# weighted by erfc(x), whose largest error is 0.02 units in the last place of erf(x).
_LOG_ERFC = (
    0.00018557430303189903, -0.002939610043540597, 0.021805329248309135, -0.10303739458322525,
    -0.6382256746292114, -1.1270400285720825, -0.00035371596459299326,
)  # fmt: skip
_LAST_BEFORE_ONE = 3.95


def erf(x: Any) -> Any:
    a = x.absolute()
    small = a < 1
    inside = small.select(a, 0.0)
    if x.width == 32:
        rest = exp_in_range(polynomial(clamped(a, 1.0, _LAST_BEFORE_ONE), _LOG_ERFC))
    else:
        rest = _complement(64, a)
    return small.select(inside + _small(x.width, inside), 1 - rest).copysign(x)


@by_double
def erfc(digits: int, x: Any) -> Any:
    a = x.absolute()
    small = a < 0.8
    inside = small.select(x, 0.0)
    tail = _complement(digits, a)
    tail = (x < 0).select(2 - tail, tail)
    return small.select((1 - inside) - _small(digits, inside), tail)
