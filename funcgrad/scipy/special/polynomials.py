"""Orthogonal polynomials in other forms than those of ufuncs."""

from __future__ import annotations

from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.numpy.elementwise import cos
from funcgrad.numpy.promotion import as_value
from funcgrad.scipy.special import ufuncs

__all__ = ["assoc_laguerre", "diric"]


def assoc_laguerre(x: Any, n: Any, k: Any = 0.0) -> Any:
    """`eval_genlaguerre` with its arguments in another order.

    Args:
        x: Real or complex numbers.
        n: Degrees.
        k: Parameters.
    Returns: The values; all arguments broadcast.
    Example: print(fg.scipy.special.assoc_laguerre(1.0, 1, 2.0)) -> 2.0
    """
    return ufuncs.eval_genlaguerre(n, k, x)


def diric(x: Any, n: int) -> Any:
    """Dirichlet's function ``sin(n x / 2) / (n sin(x / 2))``, the sinc of a period.

    Args:
        x: Angles.
        n: A positive int.
    Returns: The values; 1 or -1 at multiples of 2 pi.
    Raises: ArgumentError: If ``n`` is no positive integer.
    Example: print(fg.scipy.special.diric(0.0, 3)) -> 1.0
    """
    if n != int(n) or n < 1:
        raise ArgumentError(f"diric: n must be a positive integer, got {n}.")
    return ufuncs.eval_chebyu(int(n) - 1, cos(as_value(x, "diric") / 2)) / int(n)
