"""The table of formulas, which takes longer to import than kernels without any to translate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.compiler.native.vecmath.division import fmod
from funcgrad.compiler.native.vecmath.exponentials import (
    cosh,
    exp,
    exp2,
    expit,
    expm1,
    short_exp,
    short_expm1,
    sinh,
    tanh,
)
from funcgrad.compiler.native.vecmath.gamma import digamma, lgamma, trigamma
from funcgrad.compiler.native.vecmath.gaussian import erf, erfc
from funcgrad.compiler.native.vecmath.logarithms import (
    acosh,
    asinh,
    atanh,
    log,
    log1p,
    log2,
    log10,
    short_log,
    short_log1p,
)
from funcgrad.compiler.native.vecmath.powers import cbrt, hypot, log_of_base, pow, power_by_log
from funcgrad.compiler.native.vecmath.trigonometric import acos, asin, atan, atan2, cos, sin, tan

_FORMULAS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (
        exp, exp2, expm1, log, log2, log10, log1p, sinh, cosh, tanh, expit, asinh, acosh, atanh,
        cbrt, hypot, pow, erf, erfc, lgamma, digamma, trigamma, asin, acos, atan, atan2, fmod,
        short_exp, short_expm1, short_log, short_log1p,
    )},
    "sin": sin,
    "cos": cos,
    "tan": tan,
}  # fmt: skip

FORMULAS = {(name, width): formula for name, formula in _FORMULAS.items() for width in (32, 64)}
"""Formulas by function and width."""

SHARED = {"pow": (log_of_base, power_by_log)}
"""Formulas in two parts: the numbers that all calls with one first operand share, and the function
of the operands and these."""
