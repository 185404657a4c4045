"""`scipy.special` on arrays, numbers and traced values: SciPy's names, arguments and promotion.

The elementwise functions are rows, one per primitive; what is composed of them follows. The
primitives, with the derivatives, are in `funcgrad.primitives.special`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.namespaces import present
from funcgrad.numpy.elementwise import of_scipy
from funcgrad.numpy.promotion import as_value, to_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import special as primitive
from funcgrad.primitives.shape import ReduceSum, reshape, shape_of
from funcgrad.primitives.special import SCIPY_UFUNCS
from funcgrad.scipy.exponentials import floating, log_softmax, logsumexp, softmax

Function = Callable[..., Any]


def _ufunc(name: str, summary: str, *arguments: str) -> Function:
    """The public function of a ufunc of `scipy.special`."""
    names = arguments or ("x",)
    compute = of_scipy(SCIPY_UFUNCS[name])

    def function(*args: Any) -> Any:
        if len(args) != len(names):
            raise TypeError(f"{name}({', '.join(names)}) got {len(args)} arguments.")
        return compute(*args)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"{summary}\n\nElementwise, as `scipy.special.{name}`; arguments broadcast."
    return function


# Error functions and the normal distribution.
erf = _ufunc("erf", "Error function.")
erfc = _ufunc("erfc", "``1 - erf(x)``, accurate for large ``x``.")
erfcx = _ufunc("erfcx", "``exp(x**2) erfc(x)``.")
erfinv = _ufunc("erfinv", "Inverse of `erf`.")
erfcinv = _ufunc("erfcinv", "Inverse of `erfc`.")
dawsn = _ufunc("dawsn", "Dawson's integral.")
ndtr = _ufunc("ndtr", "Cumulative distribution function of the standard normal distribution.")
ndtri = _ufunc("ndtri", "Inverse of `ndtr`.", "p")
log_ndtr = _ufunc("log_ndtr", "Logarithm of `ndtr`, accurate for very negative ``x``.")

# Gamma and beta functions.
gamma = _ufunc("gamma", "Gamma function.")
gammaln = _ufunc("gammaln", "Logarithm of the absolute value of the gamma function.")
rgamma = _ufunc("rgamma", "``1 / gamma(x)``, which has no poles.")
digamma = psi = _ufunc("psi", "Derivative of `gammaln`.")
beta = _ufunc("beta", "Beta function.", "a", "b")
betaln = _ufunc("betaln", "Logarithm of the absolute value of the beta function.", "a", "b")
binom = _ufunc("binom", "Binomial coefficient of real arguments.", "n", "k")
gammainc = _ufunc("gammainc", "Regularised lower incomplete gamma function.", "a", "x")
gammaincc = _ufunc("gammaincc", "Regularised upper incomplete gamma function.", "a", "x")
gammaincinv = _ufunc("gammaincinv", "Inverse of `gammainc` in ``x``.", "a", "y")
gammainccinv = _ufunc("gammainccinv", "Inverse of `gammaincc` in ``x``.", "a", "y")
betainc = _ufunc("betainc", "Regularised incomplete beta function.", "a", "b", "x")

# Logarithms, entropies, the logistic function.
xlogy = _ufunc("xlogy", "``x log(y)``, 0 where ``x`` is 0.", "x", "y")
xlog1py = _ufunc("xlog1py", "``x log(1 + y)``, 0 where ``x`` is 0.", "x", "y")
entr = _ufunc("entr", "``-x log(x)``: the terms of an entropy.")
rel_entr = _ufunc("rel_entr", "``x log(x / y)``: the terms of a relative entropy.", "x", "y")
kl_div = _ufunc("kl_div", "``x log(x / y) - x + y``, which is never negative.", "x", "y")
expit = _ufunc("expit", "Logistic function ``1 / (1 + exp(-x))``.")
logit = _ufunc("logit", "Inverse of `expit`: ``log(x / (1 - x))``.")
log_expit = _ufunc("log_expit", "Logarithm of `expit`, accurate for very negative ``x``.")
exprel = _ufunc("exprel", "``(exp(x) - 1) / x``, 1 at 0.")
expm1 = _ufunc("expm1", "``exp(x) - 1``, accurate near 0.")
log1p = _ufunc("log1p", "``log(1 + x)``, accurate near 0.")
exp2 = _ufunc("exp2", "``2 ** x``.")
exp10 = _ufunc("exp10", "``10 ** x``.")
cbrt = _ufunc("cbrt", "Real cube root.")
cosm1 = _ufunc("cosm1", "``cos(x) - 1``, accurate near 0.")

# Bessel functions of order 0 and 1.
j0 = _ufunc("j0", "Bessel function of the first kind of order 0.")
j1 = _ufunc("j1", "Bessel function of the first kind of order 1.")
y0 = _ufunc("y0", "Bessel function of the second kind of order 0.")
y1 = _ufunc("y1", "Bessel function of the second kind of order 1.")
i0 = _ufunc("i0", "Modified Bessel function of the first kind of order 0.")
i1 = _ufunc("i1", "Modified Bessel function of the first kind of order 1.")
i0e = _ufunc("i0e", "``exp(-|x|) i0(x)``.")
i1e = _ufunc("i1e", "``exp(-|x|) i1(x)``.")
k0 = _ufunc("k0", "Modified Bessel function of the second kind of order 0.")
k1 = _ufunc("k1", "Modified Bessel function of the second kind of order 1.")
k0e = _ufunc("k0e", "``exp(x) k0(x)``.")
k1e = _ufunc("k1e", "``exp(x) k1(x)``.")

# Integrals.
expi = _ufunc("expi", "Exponential integral Ei.")
exp1 = _ufunc("exp1", "Exponential integral E1.")
spence = _ufunc("spence", "Spence's function, the dilogarithm of ``1 - x``.", "z")


def zeta(x: Any, q: Any = 1.0) -> Any:
    """Hurwitz's zeta function: the sum of ``(k + q) ** -x`` over ``k = 0, 1, ...``.

    Args:
        x: Exponent; it has no derivative.
        q: Offset. The default 1 gives Riemann's zeta function.

    Returns:
        The sums.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(bool(np.isclose(fg.scipy.special.zeta(2.0), np.pi**2 / 6)))
        True
    """
    return primitive.zeta.bind(*floating("zeta", x, 1.0 if q is None else q))


def polygamma(n: Any, x: Any) -> Any:
    """Derivatives of `digamma` (DLMF 5.15).

    Args:
        n: Order, a non-negative integer or an array of them; it has no derivative.
        x: Argument.

    Returns:
        The ``n``-th derivative of `digamma` at ``x``, in the dtype of ``x``.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(bool(np.isclose(fg.scipy.special.polygamma(1, 1.0), np.pi**2 / 6)))
        True
    """
    (x,) = floating("polygamma", x)
    n = to_dtype(as_value(n, "polygamma"), aval_of(x).dtype)
    return primitive.polygamma.bind(p.stop_gradient.bind(n), x)


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function (DLMF 35.3).

    Args:
        a: Argument, above ``(d - 1) / 2``.
        d: Dimension, a positive int.

    Returns:
        ``d (d - 1) / 4 log(pi) + sum(gammaln(a - i / 2) for i in range(d))``.

    Raises:
        ArgumentError: If ``d`` is not a positive integer.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.scipy.special.multigammaln(1.0, 1))
        0.0
    """
    if d != int(d) or d < 1:
        raise ArgumentError(f"multigammaln: the dimension d must be a positive integer, got {d}.")
    (a,) = floating("multigammaln", a)
    dtype, ndim = aval_of(a).dtype, len(shape_of(a))
    halves = (np.arange(int(d)) / 2).astype(dtype)
    terms = primitive.lgamma.bind(p.sub.bind(reshape(a, (*shape_of(a), 1)), halves))
    constant = dtype.type(d * (d - 1) / 4 * math.log(math.pi))
    return p.add.bind(ReduceSum((ndim,)).bind(terms), constant)


def factorial(n: Any, exact: bool = False) -> Any:
    """``n! = gamma(n + 1)``, and 0 for negative ``n``.

    Args:
        n: Array of numbers.
        exact: Must be False: the result is floating.

    Returns:
        The factorials.

    Raises:
        ArgumentError: If ``exact``.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.scipy.special.factorial(5))
        120.0
    """
    _refuse_exact("factorial", exact)
    (n,) = floating("factorial", n)
    is_negative = p.less.bind(n, p.zero_of(n))
    safe = p.select.bind(is_negative, p.zero_of(n), n)
    value = primitive.gamma.bind(p.add.bind(safe, p.ones_like(n)))
    return p.select.bind(is_negative, p.zero_of(n), value)


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Number of ways to choose ``k`` out of ``N`` things.

    Args:
        N: Number of things.
        k: Number of chosen ones.
        exact: Must be False: the result is floating.
        repetition: Whether a thing may be chosen more than once.

    Returns:
        Binomial coefficients, 0 unless ``0 <= k <= N``.

    Raises:
        ArgumentError: If ``exact``.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.scipy.special.comb(5, 2))
        10.0
    """
    _refuse_exact("comb", exact)
    n, k = floating("comb", N, k)
    if repetition:
        # With nothing chosen there is one way, also out of nothing.
        n = p.select.bind(p.equal.bind(k, p.zero_of(k)), n, n + k - p.ones_like(n))
    zero = p.zero_of(n)
    is_inside = p.bitwise_and.bind(
        p.less_equal.bind(k, n),
        p.bitwise_and.bind(p.greater_equal.bind(n, zero), p.greater_equal.bind(k, zero)),
    )
    safe_n, safe_k = (p.select.bind(is_inside, v, zero) for v in (n, k))
    return p.select.bind(is_inside, primitive.binom.bind(safe_n, safe_k), zero)


def _refuse_exact(name: str, exact: bool) -> None:
    if exact:
        raise ArgumentError(
            f"{name}: exact=True needs Python integers of any size, which arrays do not hold. Use "
            f"scipy.special.{name} outside of traced functions."
        )


__all__ = [
    "beta",
    "betainc",
    "betaln",
    "binom",
    "cbrt",
    "comb",
    "cosm1",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "exp2",
    "exp10",
    "expi",
    "expit",
    "expm1",
    "exprel",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "j0",
    "j1",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "rgamma",
    "softmax",
    "spence",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "zeta",
]  # fmt: skip

present(__name__)
