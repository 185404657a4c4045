"""The gamma function, its relatives, and products with logarithms: what others are made of.

Rows as in `special`, below the files that need them: the incomplete functions are differentiated
by these, and `special` by the incomplete ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.imports import load
from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.core.program import Var
from funcgrad.dtypes import is_complex, real_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import Elementwise, Recipe, UfuncFunction, undefined


def of_scipy(ufunc: str, *leading: int, casts: bool = False) -> UfuncFunction:
    """A ufunc of `scipy.special`, imported when it is first called."""
    return UfuncFunction("scipy.special._ufuncs", ufunc, leading, casts)


def scipy_row(name: str, *partials: p.Derivative, code: str = "", **options: Any) -> p.Smooth:
    """A row: a function of SciPy of the same name."""
    kinds = {"kinds": "f", "code_kinds": "f" if code else "", "parts_kinds": "f", **options}
    return p.Smooth(name, of_scipy(name), partials, code or f"{name}({{0}})", **kinds)


def formula(name: str, *leading: Any) -> Callable[..., Any]:
    """The parts of a function that compiled programs have a formula for, which is then loaded."""

    def parts(recipe: Recipe, *args: Var) -> Any:
        formulas = load("funcgrad.primitives.formulas")
        expressions = load("funcgrad.primitives.expressions")
        function = functools.partial(getattr(formulas, name), *leading)
        return expressions.recorded(recipe, function, *args)

    return parts


# The gamma function and its relatives, DLMF 5 and 25.11.
lgamma = p.Smooth(
    "lgamma", of_scipy("gammaln"), [lambda x, y: digamma.bind(x)], "lgamma({0})", kinds="f"
)
gamma = scipy_row("gamma", lambda x, y: y * digamma.bind(x), kinds="fc", parts=formula("gamma"))
rgamma = scipy_row("rgamma", lambda x, y: -y * digamma.bind(x), kinds="fc")


def trigamma(x: Value) -> Value:
    """The derivative of digamma."""
    if not is_complex(aval_of(x).dtype):
        return real_trigamma.bind(x)
    # Reflection (DLMF 5.15.6) to the right half-plane, recurrence (5.15.5), asymptotics (5.15.8).
    is_left = p.less.bind(p.real.bind(x), real_dtype(aval_of(x).dtype).type(0.5))
    z = p.select.bind(is_left, 1 - x, x)
    total: Value = 0.0
    for _ in range(15):
        total = total + 1 / (z * z)
        z = z + 1
    w = 1 / (z * z)
    series = p.ones_like(z) * 0
    for bernoulli in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = w * (series + bernoulli)
    total = total + 1 / z + w / 2 + series / z
    height = p.sin.bind(math.pi * x)
    return p.select.bind(is_left, (math.pi * math.pi) / (height * height) - total, total)


digamma: p.Smooth = p.Smooth(
    "digamma",
    of_scipy("psi"),
    [lambda x, y: trigamma(x)],
    "digamma({0})",
    kinds="fc",
    code_kinds="f",
)
_zeta_of_scipy = of_scipy("_zeta")


def _zeta_parts(recipe: Recipe, x: Var, q: Var) -> Any:
    expressions = load("funcgrad.primitives.expressions")
    scipys = Elementwise("zeta_of_scipy", _zeta_of_scipy, "", code_kinds="")
    return formula("zeta", expressions.function(scipys))(recipe, x, q)


def _zeta_slope(s: Value, q: Value, y: Value) -> Value:
    """The derivative of `zeta` in the exponent: of the terms of Euler and Maclaurin's formula."""
    n, total = 12, p.zero_of(q)
    for k in range(n):
        total = total - p.log.bind(q + k) * _power(q + k, s)
    z = q + n
    inverse, logarithm, last = 1 / z, p.log.bind(z), _power(q + n, s)
    first = 1 / (s - 1)
    total = total - z * last * first * (logarithm + first) - logarithm * last / 2
    rising, shares = s * inverse, 1 / s
    for j, number in enumerate(_BERNOULLI, 1):
        total = total + number / math.factorial(2 * j) * last * rising * (shares - logarithm)
        for i in (2 * j - 1, 2 * j):
            rising, shares = rising * (s + i) * inverse, shares + 1 / (s + i)
    return total


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _power(x: Value, s: Value) -> Value:
    """``x**-s``."""
    return p.exp.bind(-s * p.log.bind(x))


zeta: p.Smooth = p.Smooth(
    "zeta",
    of_scipy("_zeta", casts=True),
    [_zeta_slope, lambda x, q, y: -x * zeta.bind(x + 1, q)],
    "zeta({0}, {1})",
    kinds="f",
    code_kinds="",
    parts=_zeta_parts,
)
"""Hurwitz's zeta function, the sum of ``(k + q)**-x`` over ``k = 0, 1, ...`` (DLMF 25.11)."""


def _polygamma(n: Any, x: Any) -> Any:
    # DLMF 25.11.12, in double precision since n! is large.
    n, x = np.asarray(n), np.asarray(x)
    order = n.astype(np.float64)
    factor = np.where(n % 2 == 0, -1.0, 1.0) * _gamma_of_scipy(order + 1)
    values = np.where(n == 0, _psi_of_scipy(x), factor * _zeta_of_scipy(order + 1, x))
    return values.astype(x.dtype)[()]


def _polygamma_parts(recipe: Recipe, n: Var, x: Var) -> Any:
    double = p.Convert(np.dtype(np.float64))
    one, two, zero = np.float64(1), np.float64(2), n.aval.dtype.type(0)
    order = recipe(double, n)
    half = recipe(p.div, order, two)
    is_even = recipe(p.equal, half, recipe(p.floor, half))
    sign = recipe(p.select, is_even, np.float64(-1), one)
    next_order = recipe(p.add, order, one)
    factor = recipe(p.mul, sign, recipe(gamma, next_order))
    series = recipe(p.mul, factor, recipe(zeta, next_order, recipe(double, x)))
    value = recipe(p.select, recipe(p.equal, n, zero), recipe(double, recipe(digamma, x)), series)
    return recipe(p.Convert(x.aval.dtype), value)


_gamma_of_scipy = of_scipy("gamma")
_psi_of_scipy = of_scipy("psi")
polygamma: p.Smooth = p.Smooth(
    "polygamma",
    _polygamma,
    [undefined("polygamma", "n (the order)"), lambda n, x, y: polygamma.bind(n + 1, x)],
    "polygamma({0}, {1})",
    kinds="f",
    code_kinds="",
    parts=_polygamma_parts,
)
real_trigamma = p.Smooth(
    "trigamma",
    lambda x: _polygamma(1, x),
    [lambda x, y: polygamma.bind(2 * p.ones_like(x), x)],
    "trigamma({0})",
    kinds="f",
)
beta = scipy_row(
    "beta",
    lambda a, b, y: y * (digamma.bind(a) - digamma.bind(a + b)),
    lambda a, b, y: y * (digamma.bind(b) - digamma.bind(a + b)),
)


def _betaln_parts(recipe: Recipe, a: Var, b: Var) -> Any:
    expressions = load("funcgrad.primitives.expressions")
    return formula("betaln", expressions.function(lgamma))(recipe, a, b)


betaln = scipy_row(
    "betaln",
    lambda a, b, y: digamma.bind(a) - digamma.bind(a + b),
    lambda a, b, y: digamma.bind(b) - digamma.bind(a + b),
    parts=_betaln_parts,
)
binom = scipy_row(
    "binom",
    lambda n, k, y: y * (digamma.bind(n + 1) - digamma.bind(n - k + 1)),
    lambda n, k, y: y * (digamma.bind(n - k + 1) - digamma.bind(k + 1)),
)


# Products with logarithms; 0 log 0 = 0, but 0 times nan is nan.
xlogy = scipy_row(
    "xlogy",
    lambda x, y, out: p.log.bind(y),
    lambda x, y, out: p.unscale.bind(x, y),
    code="select({0} == 0, select(isnan({1}), {1}, 0.0), {0} * log({1}))",
    kinds="fc",
)
xlog1py = scipy_row(
    "xlog1py",
    lambda x, y, out: p.log1p.bind(y),
    lambda x, y, out: p.unscale.bind(x, 1 + y),
    code="select({0} == 0, select(isnan({1}), {1}, 0.0), {0} * log1p({1}))",
    kinds="fc",
)
log_ratio = p.Smooth(
    "log_ratio",
    lambda x, y: np.log(x / y),
    [lambda x, y, out: 1 / x, lambda x, y, out: -1 / y],
    "log({0} / {1})",
    kinds="f",
)
"""``log(x / y)``, whose derivatives do not meet the quotient."""
