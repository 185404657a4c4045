"""Two functions that densities are made of, so that they lose no digits where parameters are large.

The logarithm of a gamma density is a difference of numbers of the size of its parameter, although
it is of the size of 1 near the mode. Written by these two, nothing cancels (C. Loader, "Fast and
accurate computation of binomial probabilities", 2000):

    deviance(x, m) = x log(x / m) + m - x,  which is small near x = m
    binet(x) = log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2,  which is about 1 / (12 x)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.program import Var
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.families import Recipe
from funcgrad.primitives.gamma_functions import digamma, lgamma, log_ratio, polygamma
from funcgrad.primitives.polynomials import horner, polynomial

# With v = (x - m) / (x + m): log(x / m) = 2 artanh(v), and x - m = v (x + m), of which what
# remains is (x - m) v + 2 x v (v^2 / 3 + v^4 / 5 + ...).
_NEAR = 0.1
_ARTANH = tuple(2.0 / (2 * k + 1) for k in range(8, 0, -1))


def _deviance(x: Any, m: Any) -> Any:
    x, m = np.asarray(x), np.asarray(m)
    with np.errstate(invalid="ignore"):
        v = (x - m) / (x + m)
    near = (x - m) * v + x * v * (v * v) * polynomial(_ARTANH, v * v)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(x == 0, m, x * np.log(x / m) + m - x)
    return np.where(np.abs(v) < _NEAR, near, far)[()]


def _deviance_parts(recipe: Recipe, x: Var, m: Var) -> Any:
    dtype = x.aval.dtype
    difference = recipe(p.sub, x, m)
    v = recipe(p.div, difference, recipe(p.add, x, m))
    square = recipe(p.mul, v, v)
    tail = recipe(
        p.mul, recipe(p.mul, recipe(p.mul, x, v), square), recipe(_SERIES[_ARTANH], square)
    )
    near = recipe(p.add, recipe(p.mul, difference, v), tail)
    is_zero = recipe(p.equal, x, dtype.type(0))
    whole = recipe(p.sub, recipe(p.add, recipe(p.mul, x, recipe(p.log, recipe(p.div, x, m))), m), x)
    far = recipe(p.select, is_zero, m, whole)
    return recipe(p.select, recipe(p.less, recipe(p.absolute, v), dtype.type(_NEAR)), near, far)


deviance = p.Smooth(
    "deviance",
    _deviance,
    [lambda x, m, y: log_ratio.bind(x, m), lambda x, m, y: (m - x) / m],
    "deviance({0}, {1})",
    kinds="f",
    code_kinds="",
    parts=_deviance_parts,
)
"""``x log(x / m) + m - x`` for positive numbers; ``m`` where ``x`` is 0."""


# Stirling's series (DLMF 5.11.1), and the closed form below 10.
_FROM = 10.0
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_BINET = (
    -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12,
)  # fmt: skip
_BINET_SLOPE = tuple(
    -c * (2 * k - 1) for c, k in zip(_BINET, range(len(_BINET), 0, -1), strict=True)
)
_SERIES = {table: horner(table) for table in (_BINET, _BINET_SLOPE, _ARTANH)}


def _binet(x: Any) -> Any:
    x = np.asarray(x)
    inverse = 1 / x
    series = inverse * polynomial(_BINET, inverse * inverse)
    closed = lgamma.function(x) - (x - 0.5) * np.log(x) + x - x.dtype.type(_HALF_LOG_2PI)
    return np.where(x < _FROM, closed, series)[()]


def _binet_parts(recipe: Recipe, x: Var) -> Any:
    number = x.aval.dtype.type
    inverse = recipe(p.div, number(1), x)
    series = recipe(p.mul, inverse, recipe(_SERIES[_BINET], recipe(p.mul, inverse, inverse)))
    product = recipe(p.mul, recipe(p.sub, x, number(0.5)), recipe(p.log, x))
    closed = recipe(p.add, recipe(p.sub, recipe(lgamma, x), product), x)
    closed = recipe(p.sub, closed, number(_HALF_LOG_2PI))
    return recipe(p.select, recipe(p.less, x, number(_FROM)), closed, series)


def _binet_slope(x: Any) -> Any:
    x = np.asarray(x)
    inverse = 1 / x
    square = inverse * inverse
    closed = digamma.function(x) - np.log(x) + 0.5 * inverse
    return np.where(x < _FROM, closed, square * polynomial(_BINET_SLOPE, square))[()]


def _binet_slope_parts(recipe: Recipe, x: Var) -> Any:
    number = x.aval.dtype.type
    inverse = recipe(p.div, number(1), x)
    square = recipe(p.mul, inverse, inverse)
    series = recipe(p.mul, square, recipe(_SERIES[_BINET_SLOPE], square))
    half = recipe(p.mul, number(0.5), inverse)
    closed = recipe(p.add, recipe(p.sub, recipe(digamma, x), recipe(p.log, x)), half)
    return recipe(p.select, recipe(p.less, x, number(_FROM)), closed, series)


binet_slope = p.Smooth(
    "binet_slope",
    _binet_slope,
    [lambda x, y: polygamma.bind(p.ones_like(x), x) - (1 + 0.5 / x) / x],
    "binet_slope({0})",
    kinds="f",
    code_kinds="",
    parts=_binet_slope_parts,
)
"""``digamma(x) - log(x) + 1 / (2 x)``: the derivative of `binet`."""

binet = p.Smooth(
    "binet",
    _binet,
    [lambda x, y: binet_slope.bind(x)],
    "binet({0})",
    kinds="f",
    code_kinds="",
    parts=_binet_parts,
)
"""``log(gamma(x))`` without its leading terms by Stirling's formula, for positive numbers."""
