"""Special functions, elementwise: error functions, gamma functions, Bessel functions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature

from funcgrad.core.avals import aval_of
from funcgrad.lax.operands import Array, ArrayLike, check_kinds, check_shapes, same_dtype
from funcgrad.primitives import gamma_functions
from funcgrad.primitives import special as primitive
from funcgrad.primitives.families import Elementwise


def _special(
    name: str, operation: Elementwise, summary: str, names: str = "x"
) -> Callable[..., Array]:
    """A public function of arguments of one floating dtype, each named by a letter."""
    kind = Parameter.POSITIONAL_OR_KEYWORD
    signature = Signature([Parameter(n, kind, annotation=ArrayLike) for n in names])

    def function(*args: ArrayLike, **named: ArrayLike) -> Array:
        operands = same_dtype(name, *(signature.bind(*args, **named).args if named else args))
        check_shapes(name, *operands)
        check_kinds(name, aval_of(operands[0]).dtype, "f")
        return operation.bind(*operands)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    vars(function)["__signature__"] = signature
    function.__doc__ = f"{summary}\n\nFor floating arguments of one dtype."
    return function


erf = _special("erf", primitive.erf, "Error function of ``x``.")
erfc = _special("erfc", primitive.erfc, "``1 - erf(x)``, accurate for large ``x``.")
erf_inv = _special("erf_inv", primitive.erfinv, "The inverse of `erf` at ``x``.")
lgamma = _special(
    "lgamma", primitive.lgamma, "Logarithm of the absolute value of the gamma function of ``x``."
)
digamma = _special("digamma", primitive.digamma, "Derivative of `lgamma` at ``x``.")
polygamma = _special(
    "polygamma", gamma_functions.polygamma, "``m``-th derivative of `digamma` at ``x``.", "mx"
)
zeta = _special("zeta", primitive.zeta, "Hurwitz zeta function: sum of ``(k + q) ** -x``.", "xq")
igamma = _special(
    "igamma", primitive.gammainc, "Regularised lower incomplete gamma function of ``(a, x)``.", "ax"
)
igammac = _special("igammac", primitive.gammaincc, "``1 - igamma(a, x)``.", "ax")
betainc = _special(
    "betainc", primitive.betainc, "Regularised incomplete beta function of ``(a, b, x)``.", "abx"
)
bessel_i0e = _special("bessel_i0e", primitive.i0e, "``exp(-|x|) I0(x)``, modified Bessel function.")
bessel_i1e = _special("bessel_i1e", primitive.i1e, "``exp(-|x|) I1(x)``, modified Bessel function.")
