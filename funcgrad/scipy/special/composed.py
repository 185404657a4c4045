"""Zeta and polygamma functions, factorials and numbers of choices, Lambert's function, and others.

Functions of `scipy.special` that are composed of primitives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype, is_complex
from funcgrad.errors import ArgumentError
from funcgrad.numpy.elementwise import logaddexp
from funcgrad.numpy.promotion import as_value, to_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import gamma_functions
from funcgrad.primitives import special as primitive
from funcgrad.primitives.shape import ReduceSum, reshape, shape_of
from funcgrad.primitives.special_elementary import LambertW, riemann_zeta
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.special.rows import ufunc

__all__ = ["lambertw", "log_ndtr", "multigammaln", "polygamma", "softplus", "zeta"]


def zeta(x: Any, q: Any = None) -> Any:
    """Hurwitz's zeta function: the sum of ``(k + q) ** -x`` over ``k = 0, 1, ...``.

    Args:
        x: Exponent; it has no derivative. It may be complex where ``q`` is left out.
        q: Offset. The default, 1, gives Riemann's zeta function.
    Returns: The sums.
    Example: print(bool(np.isclose(fg.scipy.special.zeta(2.0), np.pi**2 / 6))) -> True
    """
    if q is None and is_complex(aval_of(as_value(x, "zeta")).dtype):
        return riemann_zeta.bind(*floating("zeta", x))
    return primitive.zeta.bind(*floating("zeta", x, 1.0 if q is None else q))


def polygamma(n: Any, x: Any) -> Any:
    """Derivatives of `digamma` (DLMF 5.15).

    Args:
        n: Order, a non-negative integer or an array of them; it has no derivative.
        x: Argument.
    Returns: The ``n``-th derivative of `digamma` at ``x``, in the dtype of ``x``.
    Example: print(bool(np.isclose(fg.scipy.special.polygamma(1, 1.0), np.pi**2 / 6))) -> True
    """
    (x,) = floating("polygamma", x)
    if type(n) is int and n in (0, 1):
        return (gamma_functions.trigamma if n else primitive.digamma.bind)(x)
    n = to_dtype(as_value(n, "polygamma"), aval_of(x).dtype)
    return gamma_functions.polygamma.bind(p.stop_gradient.bind(n), x)


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function (DLMF 35.3).

    Args:
        a: Argument, above ``(d - 1) / 2``.
        d: Dimension, a positive int.
    Returns: ``d (d - 1) / 4 log(pi) + sum(gammaln(a - i / 2) for i in range(d))``.
    Raises: ArgumentError: If ``d`` is not a positive integer.
    Example: print(fg.scipy.special.multigammaln(1.0, 1)) -> 0.0
    """
    if d != int(d) or d < 1:
        raise ArgumentError(f"multigammaln: the dimension d must be a positive integer, got {d}.")
    (a,) = floating("multigammaln", a)
    dtype, ndim = aval_of(a).dtype, len(shape_of(a))
    halves = (np.arange(int(d)) / 2).astype(dtype)
    # Along the first axis, so that kernels process neighbouring elements of `a` at once.
    halves = halves.reshape(-1, *(1,) * ndim)
    terms = primitive.lgamma.bind(p.sub.bind(reshape(a, (1, *shape_of(a))), halves))
    constant = dtype.type(d * (d - 1) / 4 * math.log(math.pi))
    return p.add.bind(ReduceSum((0,)).bind(terms), constant)


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """Logarithm of `ndtr`, accurate for very negative ``x``.

    Args:
        x: Array of numbers.
        series_order: Taken for JAX's sake: the result is accurate at every ``x``.
    Returns: The logarithms.
    Example: print(fg.scipy.special.log_ndtr(40.0)) -> -0.0
    """
    return _log_ndtr(x)


_log_ndtr = ufunc("log_ndtr", "Logarithm of `ndtr`.", "0.0 -> -0.6931471805599453")


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``, without overflow.

    Args: x: Array of real numbers.
    Returns: An array of the shape of ``x``.
    Example: print(fg.scipy.special.softplus(1000.0)) -> 1000.0
    """
    (x,) = floating("softplus", x)
    return logaddexp(p.zero_of(x), x)


def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """Lambert's function: solutions ``w`` of ``w exp(w) = z`` (DLMF 4.13).

    Args:
        z: Real or complex numbers.
        k: Integers: the branch. 0 and, between ``-1/e`` and 0, also -1 are real ones.
        tol: Relative tolerance of the iteration.
    Returns: Complex numbers.
    Example: print(bool(np.isclose(fg.scipy.special.lambertw(np.e), 1))) -> True
    """
    (z,) = floating("lambertw", z)
    k = as_value(k, "lambertw")
    if aval_of(k).dtype.kind not in "biu":
        raise ArgumentError(f"lambertw: the branch k must be an integer, got {aval_of(k)}.")
    z = to_dtype(z, complex_dtype(aval_of(z).dtype))
    return LambertW(float(tol)).bind(to_dtype(k, np.dtype(np.int64)), z)
