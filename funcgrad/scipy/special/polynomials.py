"""Orthogonal polynomials and associated Legendre functions of `scipy.special`.

There are derivatives in the argument, of every order; none in degrees and parameters. A degree
that is an integer is evaluated by recurrence, another one by hypergeometric functions.
"""

from __future__ import annotations

from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.numpy.elementwise import cos
from funcgrad.numpy.promotion import as_value
from funcgrad.scipy.special.rows import ufunc

__all__ = [
    "assoc_laguerre", "diric", "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu",
    "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_jacobi",
    "eval_laguerre", "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi",
    "eval_sh_legendre", "lpmv",
]  # fmt: skip

eval_jacobi = ufunc(
    "eval_jacobi", "Jacobi polynomial of degree ``n``.", "2, 1.0, 1.5, 0.5 -> -0.007812500000000056"
)
eval_sh_jacobi = ufunc(
    "eval_sh_jacobi", "Shifted Jacobi polynomial of degree ``n``.", "2, 2.0, 1.5, 0.5 -> -0.0625"
)
eval_gegenbauer = ufunc(
    "eval_gegenbauer", "Gegenbauer polynomial of degree ``n``.", "2, 1.5, 0.5 -> 0.375"
)
eval_genlaguerre = ufunc(
    "eval_genlaguerre", "Generalised Laguerre polynomial of degree ``n``.", "2, 1.5, 0.5 -> 2.75"
)
eval_laguerre = ufunc("eval_laguerre", "Laguerre polynomial of degree ``n``.", "2, 0.5 -> 0.125")
eval_legendre = ufunc("eval_legendre", "Legendre polynomial of degree ``n``.", "2, 0.5 -> -0.125")
eval_sh_legendre = ufunc(
    "eval_sh_legendre",
    "Shifted Legendre polynomial of degree ``n``.",
    "2, 0.5 -> -0.5000000000000001",
)
eval_chebyt = ufunc("eval_chebyt", "Chebyshev polynomial of degree ``n``.", "2, 0.5 -> -0.5")
eval_chebyu = ufunc("eval_chebyu", "Second Chebyshev polynomial of degree ``n``.", "2, 0.5 -> 0.0")
eval_chebyc = ufunc("eval_chebyc", "Chebyshev C polynomial of degree ``n``.", "2, 0.5 -> -1.75")
eval_chebys = ufunc("eval_chebys", "Chebyshev S polynomial of degree ``n``.", "2, 0.5 -> -0.75")
eval_sh_chebyt = ufunc(
    "eval_sh_chebyt", "Shifted Chebyshev polynomial of degree ``n``.", "2, 0.5 -> -1.0"
)
eval_sh_chebyu = ufunc(
    "eval_sh_chebyu", "Shifted second Chebyshev polynomial of degree ``n``.", "2, 0.5 -> -1.0"
)
eval_hermite = ufunc(
    "eval_hermite", "Hermite polynomial of degree ``n``.", "2, 0.5 -> -0.9999999999999998"
)
eval_hermitenorm = ufunc(
    "eval_hermitenorm", "Normalised Hermite polynomial of degree ``n``.", "2, 0.5 -> -0.75"
)
lpmv = ufunc(
    "lpmv",
    "Associated Legendre function of integer order, real degree.",
    "1, 2, 0.5 -> -1.299038105676658",
)


def assoc_laguerre(x: Any, n: Any, k: Any = 0.0) -> Any:
    """`eval_genlaguerre` with its arguments in another order.

    Args:
        x: Real or complex numbers.
        n: Degrees.
        k: Parameters.
    Returns: The values; all arguments broadcast.
    Example: print(fg.scipy.special.assoc_laguerre(1.0, 1, 2.0)) -> 2.0
    """
    return eval_genlaguerre(n, k, x)


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
    return eval_chebyu(int(n) - 1, cos(as_value(x, "diric") / 2)) / int(n)
