"""Hypergeometric functions, DLMF 13 and 15, and orthogonal polynomials, DLMF 18.

A derivative raises parameters and lowers degrees by 1, so that they close under differentiation.
"""

from __future__ import annotations

from collections.abc import Callable

from funcgrad.core.avals import aval_of
from funcgrad.core.primitive import Value
from funcgrad.primitives import expressions as e
from funcgrad.primitives.elementwise import convert, equal, select, zero_of
from funcgrad.primitives.kummer import slopes_in_parameters
from funcgrad.primitives.special_rows import Improved, Special, table
from funcgrad.primitives.tricomi import tricomi

hyp0f1: Special = Special(
    "hyp0f1", "v z", None, lambda v, z, y: hyp0f1.bind(v + 1, z) / v, orders=1, kinds="fc"
)
hyp1f1: Special = Special(
    "hyp1f1",
    "a b x",
    *slopes_in_parameters(lambda: hyp1f1),
    lambda a, b, z, y: a / b * hyp1f1.bind(a + 1, b + 1, z),
    orders=2,
    kinds="fc",
)


def _gauss(
    scipys: e.Formula, a: e.Expression, b: e.Expression, c: e.Expression, x: e.Expression
) -> e.Expression:
    """Left of 0 by Pfaff's transformation (DLMF 15.8.1), which makes the terms positive.

    Far left SciPy's own connection to ``1 / x`` is as good, but for ``a - b`` near an integer.
    """
    is_first = e.minimum(a, c - b) > e.minimum(b, c - a)
    exponent = e.where(is_first, a, b)
    difference = b - a
    off = e.absolute(difference - e.rint(difference))
    is_near = (x > -9.0) | ((off > 0.0) & (off * x > -1.0))
    is_moved = (x < 0.0) & is_near & (e.maximum(a, b) > 0.0)
    value = scipys(
        e.where(is_moved, e.where(is_first, a, c - a), a),
        e.where(is_moved, e.where(is_first, c - b, b), b),
        c,
        e.where(is_moved, x / (x - 1.0), x),
    )
    return e.where(is_moved, e.power(1.0 - x, -exponent) * value, value)


hyp2f1: Special = Improved(
    "hyp2f1",
    "a b c x",
    _gauss,
    None,
    None,
    None,
    lambda a, b, c, z, y: a * b / c * hyp2f1.bind(a + 1, b + 1, c + 1, z),
    orders=3,
    kinds="fc",
)
hyperu: Special = Improved(
    "hyperu", "a b x", tricomi, None, None, lambda a, b, x, y: -a * hyperu.bind(a + 1, b + 1, x)
)


# Orthogonal polynomials. Degrees may be integers, for which recurrences are evaluated.
Lowered = Callable[..., Value]


def _polynomial(name: str, parameters: str, slope: Lowered, kinds: str = "fc") -> Special:
    """A polynomial of degree ``n``.

    Args:
        name: Its name.
        parameters: Names of the parameters.
        slope: Called with the degree below, the degree as a number, the parameters and the
            argument; gives the derivative, which is 0 for degree 0.
        kinds: Those of the argument.
    """
    names = parameters.split()

    def partial(n: Value, *args: Value) -> Value:
        *between, x, _ = args
        is_zero = equal.bind(n, zero_of(n))
        lower = select.bind(is_zero, n, n - aval_of(n).dtype.type(1))
        number = convert(n, aval_of(x).dtype)
        value = slope(lower, number, *between, x)
        return select.bind(is_zero, zero_of(value), value)

    orders = 1 + len(names)
    arguments = f"n {parameters} x"
    whole = int(kinds == "f")
    return Special(
        name, arguments, *[None] * orders, partial,
        orders=orders, integers=1, whole=whole, kinds=kinds,
    )  # fmt: skip


def _one(x: Value) -> Value:
    """The parameter 1, in the dtype of real ``x``."""
    return _parameter(1, x)


def _parameter(value: float, x: Value) -> Value:
    dtype = aval_of(x).dtype
    return dtype.type(value).real


eval_jacobi: Special = _polynomial(
    "eval_jacobi",
    "alpha beta",
    lambda low, n, a, b, x: (n + a + b + 1) / 2 * eval_jacobi.bind(low, a + 1, b + 1, x),
)
eval_sh_jacobi: Special = _polynomial(
    "eval_sh_jacobi", "p q", lambda low, n, p, q, x: n * eval_sh_jacobi.bind(low, p + 2, q + 1, x)
)
eval_gegenbauer: Special = _polynomial(
    "eval_gegenbauer", "alpha", lambda low, n, a, x: 2 * a * eval_gegenbauer.bind(low, a + 1, x)
)
eval_genlaguerre: Special = _polynomial(
    "eval_genlaguerre", "alpha", lambda low, n, a, x: -eval_genlaguerre.bind(low, a + 1, x)
)
eval_laguerre = _polynomial(
    "eval_laguerre", "", lambda low, n, x: -eval_genlaguerre.bind(low, _one(x), x)
)
eval_legendre = _polynomial(
    "eval_legendre", "", lambda low, n, x: (n + 1) / 2 * eval_jacobi.bind(low, _one(x), _one(x), x)
)
eval_sh_legendre = _polynomial(
    "eval_sh_legendre",
    "",
    lambda low, n, x: (n + 1) * eval_jacobi.bind(low, _one(x), _one(x), 2 * x - 1),
)
eval_chebyt = _polynomial("eval_chebyt", "", lambda low, n, x: n * eval_chebyu.bind(low, x))
eval_chebyu: Special = _polynomial(
    "eval_chebyu", "", lambda low, n, x: 2 * eval_gegenbauer.bind(low, _parameter(2, x), x)
)
eval_chebyc = _polynomial("eval_chebyc", "", lambda low, n, x: n * eval_chebys.bind(low, x))
eval_chebys: Special = _polynomial(
    "eval_chebys", "", lambda low, n, x: eval_gegenbauer.bind(low, _parameter(2, x), x / 2)
)
eval_sh_chebyt = _polynomial(
    "eval_sh_chebyt", "", lambda low, n, x: 2 * n * eval_chebyu.bind(low, 2 * x - 1)
)
eval_sh_chebyu = _polynomial(
    "eval_sh_chebyu",
    "",
    lambda low, n, x: 4 * eval_gegenbauer.bind(low, _parameter(2, x), 2 * x - 1),
)
eval_hermite: Special = _polynomial(
    "eval_hermite", "", lambda low, n, x: 2 * n * eval_hermite.bind(low, x), "f"
)
eval_hermitenorm: Special = _polynomial(
    "eval_hermitenorm", "", lambda low, n, x: n * eval_hermitenorm.bind(low, x), "f"
)
lpmv: Special = Special(
    "lpmv",
    "m v x",
    None,
    None,
    lambda m, v, x, y: (v * x * y - (v + m) * lpmv.bind(m, v - 1, x)) / (x * x - 1),
)

TABLE = table(
    hyp0f1, hyp1f1, hyp2f1, hyperu, eval_jacobi, eval_sh_jacobi, eval_gegenbauer, eval_genlaguerre,
    eval_laguerre, eval_legendre, eval_sh_legendre, eval_chebyt, eval_chebyu, eval_chebyc,
    eval_chebys, eval_sh_chebyt, eval_sh_chebyu, eval_hermite, eval_hermitenorm, lpmv,
)  # fmt: skip
"""Primitives by the names of SciPy's ufuncs."""
