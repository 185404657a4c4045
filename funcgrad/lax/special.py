"""Special functions, elementwise: error functions, gamma functions, Bessel functions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature

from funcgrad.base.signatures import call_of, docstring, with_dtype
from funcgrad.core.avals import aval_of
from funcgrad.lax.operands import Array, ArrayLike, check_kinds, check_shapes, same_dtype
from funcgrad.primitives import gamma_functions
from funcgrad.primitives import special as primitive
from funcgrad.primitives.families import Elementwise

__all__ = [
    "bessel_i0e", "bessel_i1e", "betainc", "digamma", "erf", "erf_inv", "erfc", "igamma", "igammac",
    "lgamma", "polygamma", "zeta",
]  # fmt: skip


def _special(
    name: str, operation: Elementwise, summary: str, shows: str, names: str = "x"
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
    one = "Floating array or number." if len(names) == 1 else "Floating array or number; one dtype."
    call = call_of(f"fg.lax.{name}", with_dtype(shows))
    returns = "An array like the operands, or a scalar."
    raises = {"DtypeError": "If an operand is not floating, or the dtypes differ."}
    meanings = dict.fromkeys(names, one)
    function.__doc__ = docstring(summary, meanings, call, returns=returns, raises=raises)
    return function


erf = _special("erf", primitive.erf, "Error function of ``x``.", "0.5 -> 0.5204998778130465")
erfc = _special(
    "erfc", primitive.erfc, "``1 - erf(x)``, accurate for large ``x``.", "0.5 -> 0.4795001221869535"
)
erf_inv = _special(
    "erf_inv", primitive.erfinv, "The inverse of `erf` at ``x``.", "0.5 -> 0.4769362762044699"
)
lgamma = _special(
    "lgamma",
    primitive.lgamma,
    "Logarithm of the absolute value of the gamma function of ``x``.",
    "5.0 -> 3.1780538303479458",
)
digamma = _special(
    "digamma", primitive.digamma, "Derivative of `lgamma` at ``x``.", "2.0 -> 0.42278433509846713"
)
polygamma = _special(
    "polygamma",
    gamma_functions.polygamma,
    "``m``-th derivative of `digamma` at ``x``.",
    "1.0, 2.0 -> 0.6449340668482266",
    "mx",
)
zeta = _special(
    "zeta",
    primitive.zeta,
    "Hurwitz zeta function: sum of ``(k + q) ** -x``.",
    "2.0, 1.0 -> 1.6449340668482266",
    "xq",
)
igamma = _special(
    "igamma",
    primitive.gammainc,
    "Regularised lower incomplete gamma function of ``(a, x)``.",
    "2.0, 1.0 -> 0.2642411176571153",
    "ax",
)
igammac = _special(
    "igammac", primitive.gammaincc, "``1 - igamma(a, x)``.", "2.0, 1.0 -> 0.7357588823428847", "ax"
)
betainc = _special(
    "betainc",
    primitive.betainc,
    "Regularised incomplete beta function of ``(a, b, x)``.",
    "2.0, 3.0, 0.5 -> 0.6875",
    "abx",
)
bessel_i0e = _special(
    "bessel_i0e",
    primitive.i0e,
    "``exp(-|x|) I0(x)``, modified Bessel function.",
    "1.0 -> 0.46575960759364043",
)
bessel_i1e = _special(
    "bessel_i1e",
    primitive.i1e,
    "``exp(-|x|) I1(x)``, modified Bessel function.",
    "1.0 -> 0.2079104153497085",
)
