"""Bessel functions made of others: spherical ones, derivatives of given order, and families.

Functions of `scipy.special` and `jax.scipy.special` that are composed of primitives.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ArgumentError
from funcgrad.numpy.elementwise import of_scipy
from funcgrad.numpy.promotion import as_value, to_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import reshape, shape_of
from funcgrad.primitives.special_tables import primitive_of
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.special import ufuncs
from funcgrad.scipy.special.rows import Function

__all__ = [
    "bessel_jn", "h1vp", "h2vp", "ivp", "jvp", "kelvin", "kvp", "modfresnelm", "modfresnelp",
    "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "yvp",
]  # fmt: skip


def _spherical(kind: str, title: str, shown: str) -> Function:
    """A spherical Bessel function of integer order, or its derivative."""
    name = f"spherical_{kind}n"
    compute, compute_slope = (of_scipy(primitive_of(f"_{name}{end}")) for end in ("", "_d"))

    def function(n: Any, z: Any, derivative: bool = False) -> Any:
        n = as_value(n, name)
        if aval_of(n).dtype.kind == "f":
            n = to_dtype(n, np.dtype(np.int64))
        return (compute_slope if derivative else compute)(n, z)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__
    function.__doc__ = f"""{title}

    Args:
        n: Orders, integers from 0 on; they have no derivative.
        z: Real or complex numbers.
        derivative: Whether the derivative in ``z`` is computed instead.

    Returns:
        The values; ``n`` and ``z`` broadcast.

    Example:
        >>> import funcgrad as fg
        >>> fg.scipy.special.{name}(2, 0.5)
        {shown}
    """
    return function


spherical_jn = _spherical(
    "j", "Spherical Bessel function of the first kind.", "np.float64(0.016371106607993423)"
)
spherical_yn = _spherical(
    "y", "Spherical Bessel function of the second kind.", "np.float64(-25.059922824838637)"
)
spherical_in = _spherical(
    "i", "Modified spherical Bessel function of the first kind.", "np.float64(0.016966360360861982)"
)
spherical_kn = _spherical(
    "k", "Modified spherical Bessel function of the second kind.", "np.float64(36.20397302987342)"
)


def _derivative(
    name: str, family: Function, sign: int, is_turning: bool, title: str, shown: str
) -> Function:
    """The ``n``-th derivative in ``z``, of the orders ``v - n .. v + n`` (DLMF 10.6.7, 10.29.5)."""

    def function(v: Any, z: Any, n: int = 1) -> Any:
        count = operator.index(n)
        if count < 0:
            raise ArgumentError(f"{name}: the number n of derivatives is negative: {count}.")
        v = as_value(v, name)
        if aval_of(v).dtype.kind != "f":
            v = to_dtype(v, np.dtype(np.float64)) if shape_of(v) else float(v)
        total, factor = family(v - count, z), 1
        for i in range(1, count + 1):
            factor = sign * factor * (count - i + 1) // i
            total = total + factor * family(v - count + 2 * i, z)
        scale = (-0.5 if is_turning else 0.5) ** count
        return scale * total

    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__
    function.__doc__ = f"""Derivative of `{family.__name__}` in its argument.

    Args:
        v: Orders; they have no derivative.
        z: {title}
        n: Which derivative, an int; 0 is the function itself.

    Returns:
        The values; ``v`` and ``z`` broadcast.

    Raises:
        ArgumentError: If ``n`` is negative.

    Example:
        >>> import funcgrad as fg
        >>> fg.scipy.special.{name}(1.5, 0.5)
        {shown}
    """
    return function


jvp = _derivative(
    "jvp", ufuncs.jv, -1, False, "Real or complex numbers.", "np.float64(0.26586869105757444)"
)
yvp = _derivative(
    "yvp", ufuncs.yv, -1, False, "Real or complex numbers.", "np.float64(6.5741507710206095)"
)
ivp = _derivative(
    "ivp", ufuncs.iv, 1, False, "Real or complex numbers.", "np.float64(0.29878266528836617)"
)
kvp = _derivative(
    "kvp", ufuncs.kv, 1, True, "Real or complex numbers.", "np.float64(-10.750476034999204)"
)
h1vp = _derivative(
    "h1vp",
    ufuncs.hankel1,
    -1,
    False,
    "Complex numbers.",
    "np.complex128(0.26586869105757294+6.5741507710206095j)",
)
h2vp = _derivative(
    "h2vp",
    ufuncs.hankel2,
    -1,
    False,
    "Complex numbers.",
    "np.complex128(0.26586869105757294-6.5741507710206095j)",
)


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Any:
    """Bessel functions of the first kind of all integer orders up to ``v``.

    Args:
        z: Real numbers.
        v: The highest order, an int from 0 on.
        n_iter: Taken for JAX's sake: the result is accurate at every ``z``.
    Returns: An array of shape ``(v + 1, *z.shape)``.
    Raises: ArgumentError: If ``v`` is negative.
    Example: print(fg.scipy.special.bessel_jn(0.0, v=2)) -> [1. 0. 0.]
    """
    last = operator.index(v)
    if last < 0:
        raise ArgumentError(f"bessel_jn: the order v is negative: {last}.")
    (z,) = floating("bessel_jn", z)
    orders = np.arange(last + 1, dtype=aval_of(z).dtype)
    return ufuncs.jv(reshape(orders, (last + 1, *(1 for _ in shape_of(z)))), z)


def kelvin(x: Any) -> tuple[Any, Any, Any, Any]:
    """Kelvin functions as complex numbers.

    Args: x: Real numbers.
    Returns: ``(Be, Ke, Bep, Kep)``: ``ber + 1j bei``, ``ker + 1j kei``, and their derivatives.
    Example: print(fg.scipy.special.kelvin(0.0)[0]) -> (1+0j)
    """
    pairs = (
        (ufuncs.ber, ufuncs.bei),
        (ufuncs.ker, ufuncs.kei),
        (ufuncs.berp, ufuncs.beip),
        (ufuncs.kerp, ufuncs.keip),
    )
    return tuple(p.from_parts.bind(low(x), high(x)) for low, high in pairs)


def _modified_fresnel(x: Any, turn: int) -> tuple[Any, Any]:
    """Fresnel's integrals by Faddeeva's function, which has no cancellation (DLMF 7.5.10)."""
    (x,) = floating("modfresnel", x)
    dtype = complex_dtype(aval_of(x).dtype)
    z = p.convert(x, dtype)
    diagonal = dtype.type(np.exp(1j * np.pi / 4))
    k = 0.5 * ufuncs.wofz(p.mul.bind(z, diagonal))
    f = np.sqrt(np.pi) * p.exp.bind((z * z + np.pi / 4) * dtype.type(1j)) * k
    f = p.convert(f, dtype)
    return (f, k) if turn > 0 else (p.conj.bind(f), p.conj.bind(k))


def modfresnelp(x: Any) -> tuple[Any, Any]:
    """Modified Fresnel integrals: of ``exp(1j t**2)`` from ``x`` on, and what it is scaled by.

    Args: x: Real numbers.
    Returns: ``(fp, kp)`` with ``kp = fp exp(-1j (x**2 + pi / 4)) / sqrt(pi)``.
    Example: print(fg.scipy.special.modfresnelp(0.0)[1]) -> (0.5+0j)
    """
    return _modified_fresnel(x, 1)


def modfresnelm(x: Any) -> tuple[Any, Any]:
    """Modified Fresnel integrals: of ``exp(-1j t**2)`` from ``x`` on, and what it is scaled by.

    Args: x: Real numbers.
    Returns: ``(fm, km)`` with ``km = fm exp(1j (x**2 + pi / 4)) / sqrt(pi)``.
    Example: print(fg.scipy.special.modfresnelm(0.0)[1].real) -> 0.5
    """
    return _modified_fresnel(x, -1)
