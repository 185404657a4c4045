"""Factorials, and numbers of choices, arrangements and partitions.

``exact=True`` asks for Python's integers of any size: SciPy's own functions give them, of numbers
that are not traced.
"""

from __future__ import annotations

from typing import Any

from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.numpy.elementwise import of_scipy
from funcgrad.numpy.host_functions import host_function
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import special as primitive
from funcgrad.primitives.special_tables import primitive_of
from funcgrad.scipy.exponentials import floating

__all__ = ["comb", "factorial", "factorial2", "factorialk", "perm", "stirling2"]


def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """``n! = gamma(n + 1)``, and 0 for negative ``n``.

    Args:
        n: Array of numbers.
        extend: ``"zero"``; or ``"complex"``, which is ``gamma(n + 1)`` everywhere.
    Returns: The factorials.
    Raises: ArgumentError: If ``exact`` is asked of traced values, or ``extend`` is another word.
    Example: print(fg.scipy.special.factorial(5)) -> 120.0
    """
    if exact:
        return _exact("factorial", n, exact=True, extend=extend)
    (n,) = floating("factorial", n)
    if _is_extended("factorial", extend):
        return primitive.gamma.bind(p.add.bind(n, p.ones_like(n)))
    is_negative = p.less.bind(n, p.zero_of(n))
    safe = p.select.bind(is_negative, p.zero_of(n), n)
    value = primitive.gamma.bind(p.add.bind(safe, p.ones_like(n)))
    return p.select.bind(is_negative, p.zero_of(n), value)


def factorialk(n: Any, k: int, exact: bool = False, extend: str = "zero") -> Any:
    """``n (n - k) (n - 2 k) ...``: the product of every ``k``-th number down to a positive one.

    Args:
        n: Array of integers, or, with ``extend="complex"``, of any numbers.
        k: The step, a positive integer.
        extend: ``"zero"``: 0 for negative ``n``, and ``n`` counts. ``"complex"``: the function
            ``k**((n - r) / k) gamma(n / k + 1) / gamma(r / k + 1) max(r, 1)`` of ``r = 1``.
    Returns: The products.
    Raises: ArgumentError: If ``exact`` is asked of traced values, or an argument is out of range.
    Example: print(fg.scipy.special.factorialk(5, 3).round(9)) -> 10.0
    """
    if exact:
        return _exact("factorialk", n, k, exact=True, extend=extend)
    if k != int(k) or k < 1:
        raise ArgumentError(f"factorialk: the step k must be a positive integer, got {k}.")
    (n,) = floating("factorialk", n)
    if _is_extended("factorialk", extend):
        return _every(n, p.ones_like(n), int(k))
    is_negative = p.less.bind(n, p.zero_of(n))
    safe = p.select.bind(is_negative, p.zero_of(n), n)
    step = aval_of(n).dtype.type(k)
    rest = p.stop_gradient.bind(safe - step * p.floor.bind(p.div.bind(safe, step)))
    value = _every(safe, rest, int(k))
    return p.select.bind(is_negative, p.zero_of(n), value)


def _every(n: Any, rest: Any, k: int) -> Any:
    """``rest (rest + k) ... n`` for ``rest`` in ``1 .. k``; where it is 0 the empty product."""
    count = (n - rest) / k
    power = p.power.bind(k * p.ones_like(count), count)
    ratio = primitive.gamma.bind(n / k + 1) / primitive.gamma.bind(rest / k + 1)
    return power * ratio * p.maximum.bind(rest, p.ones_like(rest))


def factorial2(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """The double factorial ``n!! = n (n - 2) (n - 4) ...``.

    Args:
        n: As in `factorialk`.
        extend: As in `factorialk`.
    Returns: The products.
    Raises: ArgumentError: If ``exact`` is asked of traced values, or ``extend`` is another word.
    Example: print(fg.scipy.special.factorial2(7).round(9)) -> 105.0
    """
    if exact:
        return _exact("factorial2", n, exact=True, extend=extend)
    return factorialk(n, 2, extend=extend)


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Number of ways to choose ``k`` out of ``N`` things.

    Args:
        k: Number of chosen ones.
        repetition: Whether a thing may be chosen more than once.
    Returns: Binomial coefficients, 0 unless ``0 <= k <= N``.
    Raises: ArgumentError: If ``exact`` is asked of traced values.
    Example: print(fg.scipy.special.comb(5, 2)) -> 10.0
    """
    if exact:
        return _exact("comb", N, k, exact=True, repetition=repetition)
    n, k = floating("comb", N, k)
    if repetition:
        # With nothing chosen there is one way, also out of nothing.
        n = p.select.bind(p.equal.bind(k, p.zero_of(k)), n, n + k - p.ones_like(n))
    is_inside, safe_n, safe_k = _inside(n, k)
    value = primitive.binom.bind(safe_n, safe_k)
    return p.select.bind(is_inside, value, p.zero_of(n))


def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """Number of ways to arrange ``k`` out of ``N`` things.

    Args: k: Number of arranged ones.
    Returns: ``N! / (N - k)!``, 0 unless ``0 <= k <= N``.
    Raises: ArgumentError: If ``exact`` is asked of traced values.
    Example: print(fg.scipy.special.perm(5, 2)) -> 20.0
    """
    if exact:
        return _exact("perm", N, k, exact=True)
    n, k = floating("perm", N, k)
    is_inside, safe_n, safe_k = _inside(n, k)
    value = of_scipy(primitive_of("poch"))(safe_n - safe_k + p.ones_like(n), safe_k)
    return p.select.bind(is_inside, value, p.zero_of(n))


def _inside(n: Any, k: Any) -> tuple[Any, Any, Any]:
    """Whether ``0 <= k <= n``, and both, 0 where that is not so."""
    zero = p.zero_of(n)
    is_inside = p.bitwise_and.bind(
        p.less_equal.bind(k, n),
        p.bitwise_and.bind(p.greater_equal.bind(n, zero), p.greater_equal.bind(k, zero)),
    )
    return is_inside, *(p.select.bind(is_inside, v, zero) for v in (n, k))


def stirling2(N: Any, K: Any, *, exact: bool = False) -> Any:
    """Number of ways to partition ``N`` things into ``K`` sets that are not empty.

    Args:
        N: Number of things; it has no derivative.
        K: Number of sets; it has no derivative.
    Returns: Stirling numbers of the second kind, approximate for ``N > 50``.
    Raises: ArgumentError: If ``exact`` is asked of traced values.
    Example: print(fg.scipy.special.stirling2(4, 2)) -> 7.0
    """
    if exact:
        return _exact("stirling2", N, K, exact=True)
    return of_scipy(primitive_of("_stirling2_inexact"))(N, K)


def _is_extended(name: str, extend: str) -> bool:
    if extend not in ("zero", "complex"):
        raise ArgumentError(f"{name}: extend must be 'zero' or 'complex', got {extend!r}.")
    return extend == "complex"


def _exact(name: str, *args: Any, **kwargs: Any) -> Any:
    return host_function("scipy.special", name)(*args, **kwargs)
