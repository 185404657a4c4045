"""``sin(x) / x``, ``(exp(x) - 1) / x``, ``log(1 + x) / x``, and all of their derivatives.

With ``q(x) = g(x) / x`` for ``g(0) = 0``, the product rule gives

    x q^(n)(x) + n q^(n-1)(x) = g^(n)(x),

by which each derivative follows from the one before, except near 0, where that cancels. There it is
the power series of this very derivative: one that is cut off for the function itself would say
that derivatives of high order are 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.program import Var
from funcgrad.dtypes import is_complex
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.elementwise import Convert, Unary
from funcgrad.primitives.expressions import Expression, absolute, evaluated, function, where
from funcgrad.primitives.families import Recipe

_ROUNDED = 1e-18
"""Terms below this are left out."""

_WIDE = 3
"""From this order on, single precision is not enough on the way."""

_NEAR_LOG = 0.5
"""Up to this size of ``x / (1 + x)`` its powers are added up."""

_sin, _cos, _exp, _expm1, _log1p, _equal = map(
    function, (p.sin, p.cos, p.exp, p.expm1, p.log1p, p.equal)
)


def _near(n: int) -> float:
    """Up to where the series of sines and exponentials cancels less than the recurrence does."""
    return 0.6 + 0.35 * n


def _safe(x: Expression, is_near: Expression) -> tuple[Expression, Expression]:
    """The argument for each side of the switch; on the other side it is harmless."""
    return where(is_near, x, 0.0), where(is_near, 1.0, x)


def _horner(coefficients: Sequence[float], x: Expression) -> Expression:
    """The polynomial with these coefficients, the lowest first."""
    total = x * 0.0 + coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def _recurrence(x: Expression, derivatives: Sequence[Any]) -> Expression:
    """The last derivative of a quotient, away from 0, of all those of the numerator."""
    total = derivatives[0] / x
    for n, derivative in enumerate(derivatives[1:], 1):
        total = (derivative - n * total) / x
    return total


def _terms(n: int, signs: Sequence[int]) -> list[float]:
    """Coefficients ``g^(n+k+1)(0) / (k! (n+k+1))`` of ``x**k``; derivatives at 0 repeat."""
    found: list[float] = []
    for k in range(200):
        size = 1 / (math.factorial(k) * (n + k + 1))
        if size * _near(n) ** k < _ROUNDED:
            break
        found.append(signs[(n + k + 1) % len(signs)] * size)
    return found


def _sine(n: int, x: Expression) -> Expression:
    if n == 0:
        is_zero = _equal(x, 0.0)
        safe = where(is_zero, 1.0, x)
        return where(is_zero, 1.0, _sin(safe) / safe)
    is_near = absolute(x) < _near(n)
    near, far = _safe(x, is_near)
    coefficients = _terms(n, (0, 1, 0, -1))
    series = _horner(coefficients[n % 2 :: 2], near * near)
    s, c = _sin(far), _cos(far)
    cycle = s, c, -s, -c
    closed = _recurrence(far, [cycle[k % 4] for k in range(n + 1)])
    return where(is_near, series * near if n % 2 else series, closed)


def _exponential(n: int, x: Expression) -> Expression:
    if n == 0:
        is_zero = _equal(x, 0.0)
        safe = where(is_zero, 1.0, x)
        return where(is_zero, 1.0, _expm1(safe) / safe)
    is_near = absolute(x) < _near(n)
    near, far = _safe(x, is_near)
    e = _exp(far)
    closed = _recurrence(far, [_expm1(far), *([e] * n)])
    return where(is_near, _horner(_terms(n, (1,)), near), closed)


def _logarithm(n: int, x: Expression) -> Expression:
    if n == 0:
        is_zero = _equal(x, 0.0)
        safe = where(is_zero, 1.0, x)
        return where(is_zero, 1.0, _log1p(safe) / safe)
    # The integral of t**n / (1 + x t)**(n + 1), with t / (1 + x t) = r / (1 + x), is a sum of
    # powers of x / (1 + x).
    beyond = 1.0 + x
    part = x / beyond
    is_near = absolute(part) < _NEAR_LOG
    part = where(is_near, part, 0.0)
    far = where(is_near, 1.0, x)
    inverse = 1.0 / where(is_near, 1.0, beyond)
    n_terms = math.ceil(math.log(_ROUNDED) / math.log(_NEAR_LOG))
    series = _horner([1 / (n + k + 1) for k in range(n_terms)], part)
    scale = (-1.0) ** n * math.factorial(n)
    power = inverse_near = 1.0 / beyond
    for _ in range(n):
        power = power * inverse_near
    derivatives: list[Any] = [_log1p(far)]
    for k in range(1, n + 1):
        derivatives.append(inverse if k == 1 else derivatives[-1] * (inverse * -(k - 1.0)))
    return where(is_near, scale * power * series, _recurrence(far, derivatives))


_FORMULAS = {"sin": _sine, "expm1": _exponential, "log1p": _logarithm}


@functools.lru_cache(1024)
def quotient(name: str, n: int = 0) -> Unary:
    """The ``n``-th derivative of a function divided by its argument.

    Args:
        name: ``"sin"``, ``"expm1"`` or ``"log1p"``.
        n: The order.
    """
    formula = functools.partial(_FORMULAS[name], n)

    def evaluate(x: Any) -> Any:
        x = np.asarray(x)
        with np.errstate(all="ignore"):
            wide = x.astype(_on_the_way(n, x.dtype), copy=False)
            return formula(Expression(evaluated, wide)).value.astype(x.dtype, copy=False)[()]

    def parts(recipe: Recipe, x: Var) -> Any:
        dtype = x.aval.dtype
        wide = _on_the_way(n, dtype)
        given = x if wide == dtype else recipe(Convert(wide), x)
        value = formula(Expression(recipe, given)).value
        return value if wide == dtype else recipe(Convert(dtype), value)

    return Unary(
        f"{name}_quotient" + (f"_{n}" if n else ""),
        evaluate,
        lambda x, y: quotient(name, n + 1).bind(x),
        f"{name}_quotient({{0}})",
        code_kinds="",
        parts=parts,
    )


def _on_the_way(n: int, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a derivative is computed in."""
    if n < _WIDE:
        return dtype
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)
