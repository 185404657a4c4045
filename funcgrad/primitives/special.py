"""Special functions: SciPy's values, closed-form derivatives.

One row per function: its name in `scipy.special`, its partial derivatives, and the scalar
expression of its kernel where there is one. Formulas are those of the Digital Library of
Mathematical Functions (dlmf.nist.gov), whose sections are named. SciPy is imported when the first
of them is evaluated, so that importing funcgrad does not pay for it.

`primitive_of` finds the primitive of a ufunc of `scipy.special` by its name, here and in the tables
of the files ``special_*.py``.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Primitive, Value
from funcgrad.core.program import Var
from funcgrad.dtypes import is_complex, real_dtype
from funcgrad.primitives.elementwise import (
    Convert,
    Derivative,
    Smooth,
    absolute,
    add,
    cbrt,
    div,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    is_origin,
    less,
    log,
    log1p,
    logistic,
    mul,
    ones_like,
    real,
    select,
    sign,
    sin,
    sub,
    unscale,
)
from funcgrad.primitives.families import Elementwise, Recipe, UfuncFunction, undefined

_SQRT_PI = math.sqrt(math.pi)
_SQRT_2PI = math.sqrt(2 * math.pi)
_LN10 = math.log(10.0)


def _of_scipy(ufunc: str, *leading: int, casts: bool = False) -> UfuncFunction:
    """A ufunc of `scipy.special`, imported when it is first called."""
    return UfuncFunction("scipy.special._ufuncs", ufunc, leading, casts)


def _special(name: str, *partials: Derivative, code: str = "", **options: Any) -> Smooth:
    """A row: a function of SciPy of the same name."""
    kinds = {"kinds": "f", "code_kinds": "f" if code else "", "parts_kinds": "f", **options}
    return Smooth(name, _of_scipy(name), partials, code or f"{name}({{0}})", **kinds)


def _formula(name: str, *leading: Any) -> Callable[..., Any]:
    """The parts of a function that compiled programs have a formula for, which is then loaded."""

    def parts(recipe: Recipe, *args: Var) -> Any:
        names = "formulas", "expressions"
        formulas, expressions = (importlib.import_module(f"{__package__}.{x}") for x in names)
        formula = functools.partial(getattr(formulas, name), *leading)
        return expressions.recorded(recipe, formula, *args)

    return parts


# Error functions, DLMF 7.
erf = _special("erf", lambda x, y: (2 / _SQRT_PI) * exp.bind(-(x * x)), code="erf({0})", kinds="fc")
erfc = _special(
    "erfc", lambda x, y: (-2 / _SQRT_PI) * exp.bind(-(x * x)), code="erfc({0})", kinds="fc"
)
erfcx = _special(
    "erfcx", lambda x, y: 2 * x * y - 2 / _SQRT_PI, kinds="fc", parts=_formula("erfcx")
)
dawsn = _special("dawsn", lambda x, y: 1 - 2 * x * y, kinds="fc")
erfinv = _special("erfinv", lambda x, y: (_SQRT_PI / 2) * exp.bind(y * y), parts=_formula("erfinv"))
erfcinv = _special(
    "erfcinv", lambda x, y: (-_SQRT_PI / 2) * exp.bind(y * y), parts=_formula("erfcinv")
)
ndtr = _special(
    "ndtr",
    lambda x, y: (1 / _SQRT_2PI) * exp.bind(-0.5 * x * x),
    code=f"0.5 * erfc(-{{0}} * {math.sqrt(0.5)!r})",
    kinds="fc",
)
ndtri = _special("ndtri", lambda x, y: _SQRT_2PI * exp.bind(0.5 * y * y), parts=_formula("ndtri"))
# The quotient of the density and the function, both of which vanish far on the left.
log_ndtr = _special(
    "log_ndtr",
    lambda x, y: (2 / _SQRT_2PI) / erfcx.bind(-math.sqrt(0.5) * x),
    kinds="fc",
    parts=_formula("log_ndtr"),
)

# The gamma function and its relatives, DLMF 5 and 25.11.
lgamma = Smooth(
    "lgamma",
    _of_scipy("gammaln"),
    [lambda x, y: digamma.bind(x)],
    "lgamma({0})",
    kinds="f",
    code_kinds="",
    parts=_formula("lgamma"),
)
gamma = _special(
    "gamma",
    lambda x, y: y * digamma.bind(x),
    kinds="fc",
    parts=_formula("gamma"),
)
rgamma = _special("rgamma", lambda x, y: -y * digamma.bind(x), kinds="fc")


def trigamma(x: Value) -> Value:
    """The derivative of digamma."""
    if not is_complex(aval_of(x).dtype):
        return real_trigamma.bind(x)
    # Reflection (DLMF 5.15.6) to the right half-plane, recurrence (5.15.5), asymptotics (5.15.8).
    is_left = less.bind(real.bind(x), real_dtype(aval_of(x).dtype).type(0.5))
    z = select.bind(is_left, 1 - x, x)
    total: Value = 0.0
    for _ in range(15):
        total = total + 1 / (z * z)
        z = z + 1
    w = 1 / (z * z)
    series = ones_like(z) * 0
    for bernoulli in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = w * (series + bernoulli)
    total = total + 1 / z + w / 2 + series / z
    height = sin.bind(math.pi * x)
    return select.bind(is_left, (math.pi * math.pi) / (height * height) - total, total)


digamma: Smooth = Smooth(
    "digamma",
    _of_scipy("psi"),
    [lambda x, y: trigamma(x)],
    "digamma({0})",
    kinds="fc",
    code_kinds="",
    parts=_formula("digamma"),
    parts_kinds="f",
)
_zeta_of_scipy = _of_scipy("_zeta")


def _zeta_parts(recipe: Recipe, x: Var, q: Var) -> Any:
    expressions = importlib.import_module(f"{__package__}.expressions")
    scipys = Elementwise("zeta_of_scipy", _zeta_of_scipy, "", code_kinds="")
    return _formula("zeta", expressions.function(scipys))(recipe, x, q)


zeta: Smooth = Smooth(
    "zeta",
    _of_scipy("_zeta", casts=True),
    [undefined("zeta", "x (the exponent)"), lambda x, q, y: -x * zeta.bind(x + 1, q)],
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
    double = Convert(np.dtype(np.float64))
    one, two, zero = np.float64(1), np.float64(2), n.aval.dtype.type(0)
    order = recipe(double, n)
    half = recipe(div, order, two)
    is_even = recipe(equal, half, recipe(floor, half))
    sign = recipe(select, is_even, np.float64(-1), one)
    next_order = recipe(add, order, one)
    factor = recipe(mul, sign, recipe(gamma, next_order))
    series = recipe(mul, factor, recipe(zeta, next_order, recipe(double, x)))
    value = recipe(select, recipe(equal, n, zero), recipe(double, recipe(digamma, x)), series)
    return recipe(Convert(x.aval.dtype), value)


_gamma_of_scipy = _of_scipy("gamma")
_psi_of_scipy = _of_scipy("psi")
polygamma: Smooth = Smooth(
    "polygamma",
    _polygamma,
    [undefined("polygamma", "n (the order)"), lambda n, x, y: polygamma.bind(n + 1, x)],
    "polygamma({0}, {1})",
    kinds="f",
    code_kinds="",
    parts=_polygamma_parts,
)
real_trigamma = Smooth(
    "trigamma",
    lambda x: _polygamma(1, x),
    [lambda x, y: polygamma.bind(2 * ones_like(x), x)],
    "trigamma({0})",
    kinds="f",
    code_kinds="",
    parts=_formula("trigamma"),
)
beta = _special(
    "beta",
    lambda a, b, y: y * (digamma.bind(a) - digamma.bind(a + b)),
    lambda a, b, y: y * (digamma.bind(b) - digamma.bind(a + b)),
)
betaln = _special(
    "betaln",
    lambda a, b, y: digamma.bind(a) - digamma.bind(a + b),
    lambda a, b, y: digamma.bind(b) - digamma.bind(a + b),
)
binom = _special(
    "binom",
    lambda n, k, y: y * (digamma.bind(n + 1) - digamma.bind(n - k + 1)),
    lambda n, k, y: y * (digamma.bind(n - k + 1) - digamma.bind(k + 1)),
)


# Incomplete gamma and beta functions, DLMF 8.
def derivatives_of_incomplete() -> Any:
    """The module `incomplete`, which is loaded when a derivative is first taken."""
    return importlib.import_module(f"{__package__}.incomplete")


def _incomplete(name: str, sign: int = 1) -> Derivative:
    """A function of `incomplete`, of the arguments without the value."""

    def slope(*args: Value) -> Value:
        value = getattr(derivatives_of_incomplete(), name)(*args[:-1])
        return value if sign > 0 else -value

    return slope


def _incomplete_inverse(shape: str, density: str, sign: int = 1) -> Derivative:
    """The same of the inverse, by the implicit function: ``p`` is the last argument but one."""

    def slope(*args: Value) -> Value:
        module = derivatives_of_incomplete()
        *shapes, _, x = args
        below = getattr(module, density)(*shapes, x)
        above = -getattr(module, shape)(*shapes, x) if shape else sign
        return above / below

    return slope


gammainc = _special("gammainc", _incomplete("gamma_slope_in_shape"), _incomplete("gamma_density"))
gammaincc = _special(
    "gammaincc", _incomplete("gamma_slope_in_shape", -1), _incomplete("gamma_density", -1)
)
gammaincinv = _special(
    "gammaincinv",
    _incomplete_inverse("gamma_slope_in_shape", "gamma_density"),
    _incomplete_inverse("", "gamma_density"),
)
gammainccinv = _special(
    "gammainccinv",
    _incomplete_inverse("gamma_slope_in_shape", "gamma_density"),
    _incomplete_inverse("", "gamma_density", -1),
)
betainc = _special(
    "betainc",
    _incomplete("beta_slope_in_a"),
    _incomplete("beta_slope_in_b"),
    _incomplete("beta_density"),
)

# Products with logarithms; 0 log 0 = 0.
xlogy = _special(
    "xlogy",
    lambda x, y, out: log.bind(y),
    lambda x, y, out: unscale.bind(x, y),
    code="select({0} == 0, {0}, {0} * log({1}))",
    kinds="fc",
)
xlog1py = _special(
    "xlog1py",
    lambda x, y, out: log1p.bind(y),
    lambda x, y, out: unscale.bind(x, 1 + y),
    code="select({0} == 0, {0}, {0} * log1p({1}))",
    kinds="fc",
)
log_ratio = Smooth(
    "log_ratio",
    lambda x, y: np.log(x / y),
    [lambda x, y, out: 1 / x, lambda x, y, out: -1 / y],
    "log({0} / {1})",
    kinds="f",
)
"""``log(x / y)``, whose derivatives do not meet the quotient."""
entr = _special(
    "entr",
    lambda x, y: -log.bind(x) - 1,
    code="select({0} < 0, {0} / 0.0, select({0} == 0, 0 * {0}, -{0} * log({0})))",
)


def _of_positive(code: str, at_zero: str) -> str:
    """The code of a function of positive numbers, infinite where one of them is negative.

    Args:
        code: Its code.
        at_zero: That for ``x = 0``.
    """
    is_zero = "bitwise_and({0} == 0, {1} >= 0)"
    is_nan = "bitwise_or(isnan({0}), isnan({1}))"
    edge = f"select({is_zero}, {at_zero}, select({is_nan}, {{0}} + {{1}}, 1 / 0.0))"
    return f"select(bitwise_and({{0}} > 0, {{1}} > 0), {code}, {edge})"


# The logarithm of a quotient, also where that is near 1, or too small or too large.
_QUOTIENT = "{0} / {1}"
_HAS_QUOTIENT = f"bitwise_and({_QUOTIENT} > 1e-30, {_QUOTIENT} < 1e30)"
_FAR_LOG = f"select({_HAS_QUOTIENT}, log({_QUOTIENT}), log({{0}}) - log({{1}}))"
_SHARE = "({0} - {1}) / {1}"
_LOG_RATIO = f"select(abs({_SHARE}) < 0.5, log1p({_SHARE}), {_FAR_LOG})"
# With v = (x - y) / (x + y), log(x / y) is 2 artanh(v): nothing cancels where v is small.
_V = "({0} - {1}) / ({0} + {1})"
_ARTANH = functools.reduce(
    lambda text, k: f"({text} * ({_V} * ({_V})) + {2 / (2 * k + 1)!r})", range(16, 0, -1), "0.0"
)
_NEAR_DIVERGENCE = f"({{0}} - {{1}}) * ({_V}) + {{0}} * ({_V}) * ({_V} * ({_V})) * {_ARTANH}"
_DIVERGENCE = f"select(abs({_V}) < 0.33, {_NEAR_DIVERGENCE}, {{0}} * {_FAR_LOG} - {{0}} + {{1}})"

# Where both arguments are 0 the event is excluded, and changes nothing.
rel_entr = _special(
    "rel_entr",
    lambda x, y, out: log_ratio.bind(x, y) + 1,
    lambda x, y, out: -unscale.bind(x, y),
    code=_of_positive(f"{{0}} * {_LOG_RATIO}", "abs({0})"),
    level_at=is_origin,
)
kl_div = _special(
    "kl_div",
    lambda x, y, out: log_ratio.bind(x, y),
    lambda x, y, out: 1 - unscale.bind(x, y),
    code=_of_positive(_DIVERGENCE, "{1}"),
    level_at=is_origin,
)
logit = _special(
    "logit",
    lambda x, y: 1 / (x * (1 - x)),
    # Near 1/2 the quotient is near 1.
    code=("select(abs({0} - 0.5) < 0.2, log1p((2 * {0} - 1) / (1 - {0})), log({0} / (1 - {0})))"),
)
log_expit = _special(
    "log_expit",
    lambda x, y: logistic.bind(-x),
    code="minimum({0}, 0) - log1p(exp(-abs({0})))",
)


# Bessel functions of integer order, DLMF 10. Derivatives of those that are finite at 0 are made of
# the neighbouring orders (DLMF 10.6.1, 10.29.1), which needs no quotient by x.
@functools.lru_cache(1024)
def bessel_j(order: int) -> Smooth:
    """The Bessel function of the first kind of an integer order from 2 on."""
    return _of_order("jv", order, f"j{order}", lambda x, y: _mean(sub, _J, bessel_j, order, x))


@functools.lru_cache(1024)
def bessel_i(order: int) -> Smooth:
    """The modified Bessel function of the first kind of an integer order from 2 on."""
    return _of_order("iv", order, f"i{order}", lambda x, y: _mean(add, _I, bessel_i, order, x))


@functools.lru_cache(1024)
def bessel_ie(order: int) -> Smooth:
    """``exp(-|x|)`` times `bessel_i`."""

    def slope(x: Value, y: Value) -> Value:
        return _mean(add, _IE, bessel_ie, order, x) - sign.bind(x) * y

    return _of_order("ive", order, f"i{order}e", slope)


def _of_order(function: str, order: int, name: str, slope: Derivative) -> Smooth:
    evaluate = _of_scipy(function, order, casts=True)
    formula = {"iv": "bessel_i", "ive": "bessel_ie"}.get(function)
    parts = _formula(formula, order) if formula and order == _LAST_ORDER else None
    return Smooth(name, evaluate, [slope], f"{name}({{0}})", kinds="f", code_kinds="", parts=parts)


_LAST_ORDER = 2
"""Of those that have formulas: what the derivatives of the others need."""


def _mean(
    operation: Primitive,
    low: tuple[Primitive, ...],
    family: Callable[[int], Primitive],
    order: int,
    x: Value,
) -> Value:
    """Half the sum, or difference, of the functions of the orders below and above."""
    below, above = (low[n] if n < len(low) else family(n) for n in (order - 1, order + 1))
    return 0.5 * operation.bind(below.bind(x), above.bind(x))


i0 = _special("i0", lambda x, y: i1.bind(x), parts=_formula("bessel_i", 0))
i1: Smooth = _special(
    "i1", lambda x, y: _mean(add, _I, bessel_i, 1, x), parts=_formula("bessel_i", 1)
)
i0e = _special("i0e", lambda x, y: i1e.bind(x) - sign.bind(x) * y, parts=_formula("bessel_ie", 0))
i1e: Smooth = _special(
    "i1e",
    lambda x, y: _mean(add, _IE, bessel_ie, 1, x) - sign.bind(x) * y,
    parts=_formula("bessel_ie", 1),
)
k0 = _special("k0", lambda x, y: -k1.bind(x))
k1: Smooth = _special("k1", lambda x, y: -k0.bind(x) - y / x)
k0e = _special("k0e", lambda x, y: y - k1e.bind(x))
k1e: Smooth = _special("k1e", lambda x, y: y - k0e.bind(x) - y / x)
j0 = _special("j0", lambda x, y: -j1.bind(x))
j1: Smooth = _special("j1", lambda x, y: _mean(sub, _J, bessel_j, 1, x))
y0 = _special("y0", lambda x, y: -y1.bind(x))
y1: Smooth = _special("y1", lambda x, y: y0.bind(x) - y / x)
_I: tuple[Smooth, ...] = (i0, i1)
_IE: tuple[Smooth, ...] = (i0e, i1e)
_J: tuple[Smooth, ...] = (j0, j1)

# Exponential integrals, DLMF 6, and the dilogarithm, DLMF 25.12.
expi = _special("expi", lambda x, y: exp.bind(x) / x, kinds="fc")
exp1 = _special("exp1", lambda x, y: -exp.bind(-x) / x, kinds="fc")


def _spence_slope(x: Value, y: Value) -> Value:
    """``log(x) / (1 - x)``, by its series where that is 0/0."""
    u = x - 1
    is_near = less.bind(absolute.bind(u), real_dtype(aval_of(x).dtype).type(1e-3))
    apart = select.bind(is_near, ones_like(x), u)
    series = -1 + u * (1 / 2 - u * (1 / 3 - u * (1 / 4 - u * (1 / 5 - u * (1 / 6)))))
    return select.bind(is_near, series, -log1p.bind(apart) / apart)


spence = _special("spence", _spence_slope, kinds="fc")
exp10 = _special("exp10", lambda x, y: _LN10 * y, code="pow(10.0, {0})")
cosm1 = _special("cosm1", lambda x, y: -sin.bind(x))


def exprel_slope(x: Value, y: Value) -> Value:
    """``(exp(x) - y) / x`` for ``y = (exp(x) - 1) / x``, by its series near 0."""
    is_near = less.bind(absolute.bind(x), aval_of(x).dtype.type(1e-2))
    apart = select.bind(is_near, ones_like(x), x)
    series = 1 / 2 + x * (1 / 3 + x * (1 / 8 + x * (1 / 30 + x * (1 / 144 + x * (1 / 840)))))
    return select.bind(is_near, series, (exp.bind(apart) * (apart - 1) + 1) / (apart * apart))


exprel = _special("exprel", exprel_slope)

SCIPY_UFUNCS: dict[str, Primitive] = {
    "expit": logistic,
    "gammaln": lgamma,
    "psi": digamma,
    "_zeta": zeta,
    "cbrt": cbrt,
    "exp2": exp2,
    "expm1": expm1,
    "log1p": log1p,
    **{
        p.name: p
        for p in (
            erf, erfc, erfcx, dawsn, erfinv, erfcinv, ndtr, ndtri, log_ndtr, gamma, rgamma, beta,
            betaln, binom, gammainc, gammaincc, gammaincinv, gammainccinv, betainc, xlogy, xlog1py,
            entr, rel_entr, kl_div, logit, log_expit, i0, i1, i0e, i1e, k0, k1, k0e, k1e, j0, j1,
            y0, y1, expi, exp1, spence, exp10, cosm1, exprel,
        )
    },
}  # fmt: skip
"""Primitives of this file by the names of the ufuncs of `scipy.special` that they evaluate."""

_TABLES = ("bessel", "distributions", "elementary", "elliptic", "hypergeometric")


def primitive_of(ufunc: str) -> Primitive | None:
    """The primitive of a ufunc of `scipy.special`, or ``None``.

    Args:
        ufunc: Its name. The tables that few programs need are loaded when it is not one of those
            above.
    """
    return SCIPY_UFUNCS.get(ufunc) or all_ufuncs().get(ufunc)


@functools.cache
def all_ufuncs() -> dict[str, Primitive]:
    """The primitives of all tables, by the names of the ufuncs of `scipy.special`."""
    found = dict(SCIPY_UFUNCS)
    for name in _TABLES:
        found |= importlib.import_module(f"{__package__}.special_{name}").TABLE
    return found
