"""Derivatives of gamma distributions in their parameter, by JAX's names."""

from __future__ import annotations

from funcgrad.core.avals import aval_of
from funcgrad.lax.operands import Array, ArrayLike, check_kinds, check_shapes, same_dtype
from funcgrad.primitives.families import Elementwise
from funcgrad.primitives.gamma_samples import gamma_slope
from funcgrad.primitives.special import derivatives_of_incomplete


def _of_pair(name: str, operation: Elementwise, *args: ArrayLike) -> Array:
    operands = same_dtype(name, *args)
    check_shapes(name, *operands)
    check_kinds(name, aval_of(operands[0]).dtype, "f")
    return operation.bind(*operands)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Derivative of `igamma` in ``a``.

    Args: x: Where it is evaluated, of the same dtype.
    Returns: Derivatives; they have none in ``a`` themselves.
    Example: print(fg.lax.igamma_grad_a(2.0, 1.0).round(6)) -> -0.276196
    """
    return _of_pair("igamma_grad_a", derivatives_of_incomplete().gammainc_da, a, x)


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Derivative of a gamma-distributed number in the parameter of its distribution.

    Args: x: The number, of the same dtype.
    Returns: ``dx/da`` at a fixed probability ``igamma(a, x)``.
    Example: print(fg.lax.random_gamma_grad(2.0, 1.0).round(6)) -> 0.750779
    """
    return _of_pair("random_gamma_grad", gamma_slope, a, x)
