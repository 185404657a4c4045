"""Legendre functions and spherical harmonics, with their derivatives up to a given order.

Functions of `scipy.special` (and `jax.scipy.special`) that are composed of primitives. Degrees and
orders are integers and have no derivative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.api.differentiation import jvp
from funcgrad.core.avals import aval_of
from funcgrad.dtypes import complex_dtype
from funcgrad.errors import ArgumentError
from funcgrad.numpy.elementwise import require_real
from funcgrad.numpy.joining import stack
from funcgrad.numpy.promotion import as_value, to_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import broadcast_to, shape_of
from funcgrad.primitives.special_harmonics import AssociatedLegendre
from funcgrad.primitives.special_harmonics import sph_legendre_p as on_sphere
from funcgrad.scipy.exponentials import floating
from funcgrad.scipy.special import ufuncs

__all__ = [
    "assoc_legendre_p", "assoc_legendre_p_all", "legendre_p", "legendre_p_all", "sph_harm_y",
    "sph_harm_y_all", "sph_legendre_p", "sph_legendre_p_all",
]  # fmt: skip

_INT64 = np.dtype(np.int64)


def _count(name: str, argument: str, x: Any) -> Any:
    """An argument that counts, as int64."""
    x = as_value(x, name)
    if aval_of(x).dtype.kind not in "biu":
        raise ArgumentError(f"{name}: the argument {argument} counts, got {aval_of(x)}.")
    return to_dtype(x, _INT64)


def _last(name: str, argument: str, n: Any) -> int:
    """A highest degree, order or derivative."""
    last = operator.index(n)
    if last < 0:
        raise ArgumentError(f"{name}: the argument {argument} is negative: {last}.")
    return last


def _derivatives(function: Callable[[Any], Any], x: Any, count: int) -> Any:
    """A function and its derivatives, stacked on a new first axis."""
    rows = []
    for _ in range(count + 1):
        rows.append(function(x))
        function = _slope(function)
    return stack([broadcast_to(row, shape_of(rows[0])) for row in rows])


def _slope(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def slope(x: Any) -> Any:
        return jvp(function, (x,), (np.ones(shape_of(x), aval_of(x).dtype),))[1]

    return slope


def _column(values: Any, x: Any, axes: int) -> Any:
    """Integers along one axis, before the axes of ``x`` and ``axes`` others."""
    return np.reshape(values, (len(values), *(1,) * (axes + len(shape_of(x)))))


def _signed(last: int) -> Any:
    """Orders as SciPy counts them: ``0 .. last``, then ``-last .. -1``."""
    return np.r_[0 : last + 1, -last:0]


def legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Any:
    """Legendre polynomials.

    Args:
        n: Degrees, integers from 0 on.
        z: Real numbers.
    Returns: An array of shape ``(diff_n + 1, ...)``: the values, and the derivatives in ``z``.
    Raises: ArgumentError: If ``n`` or ``diff_n`` is no count.
    Example: print(fg.scipy.special.legendre_p(2, 1.0, diff_n=1)) -> [1. 3.]
    """
    n, count = _count("legendre_p", "n", n), _last("legendre_p", "diff_n", diff_n)
    (z,) = floating("legendre_p", z)
    return _derivatives(lambda v: ufuncs.eval_legendre(n, v), z, count)


def legendre_p_all(n: int, z: Any, *, diff_n: int = 0) -> Any:
    """Legendre polynomials of all degrees up to ``n``.

    Args:
        n: The highest degree, an int.
        z: Real numbers.
    Returns: An array of shape ``(diff_n + 1, n + 1, *z.shape)``.
    Raises: ArgumentError: If ``n`` or ``diff_n`` is negative.
    Example: print(fg.scipy.special.legendre_p_all(2, 1.0)) -> [[1. 1. 1.]]
    """
    last = _last("legendre_p_all", "n", n)
    (z,) = floating("legendre_p_all", z)
    return legendre_p(_column(np.arange(last + 1), z, 0), z, diff_n=diff_n)


def assoc_legendre_p(
    n: Any, m: Any, z: Any, *, branch_cut: int = 2, norm: bool = False, diff_n: int = 0
) -> Any:
    """Associated Legendre functions of integer degree and order.

    Args:
        n: Degrees, integers.
        m: Orders, integers.
        z: Real or complex numbers. At -1 and 1 the derivative is not computed (nan).
    Returns: An array of shape ``(diff_n + 1, ...)``: the values, and the derivatives in ``z``.
    Raises: ArgumentError: If an argument that counts does not, or ``branch_cut`` is neither.
    Example: print(fg.scipy.special.assoc_legendre_p(1, 0, 0.5)) -> [0.5]
    """
    name = "assoc_legendre_p"
    n, m = _count(name, "n", n), _count(name, "m", m)
    count = _last(name, "diff_n", diff_n)
    if branch_cut not in (2, 3):
        raise ArgumentError(f"{name}: branch_cut must be 2 or 3, got {branch_cut!r}.")
    (z,) = floating(name, z)
    function = AssociatedLegendre(int(branch_cut), bool(norm))
    return _derivatives(lambda v: function.bind(n, m, v), z, count)


def assoc_legendre_p_all(
    n: int, m: int, z: Any, *, branch_cut: int = 2, norm: bool = False, diff_n: int = 0
) -> Any:
    """Associated Legendre functions of all degrees up to ``n`` and orders up to ``m``.

    Args:
        n: The highest degree, an int.
        m: The highest order, an int.
        z: Real or complex numbers.

    Returns:
        An array of shape ``(diff_n + 1, n + 1, 2 m + 1, *z.shape)``; negative orders come last.
    Raises: ArgumentError: If an argument that counts is negative.
    Example: print(fg.scipy.special.assoc_legendre_p_all(1, 0, 0.5)[0, 1]) -> [0.5]
    """
    name = "assoc_legendre_p_all"
    degrees, orders = np.arange(_last(name, "n", n) + 1), _signed(_last(name, "m", m))
    (z,) = floating(name, z)
    return assoc_legendre_p(
        _column(degrees, z, 1), _column(orders, z, 0), z,
        branch_cut=branch_cut, norm=norm, diff_n=diff_n,
    )  # fmt: skip


def sph_legendre_p(n: Any, m: Any, theta: Any, *, diff_n: int = 0) -> Any:
    """Legendre functions as they stand in spherical harmonics.

    Args:
        n: Degrees, integers from 0 on.
        m: Orders, integers.
    Returns: An array of shape ``(diff_n + 1, ...)``: the values, and the derivatives in ``theta``.
    Raises: ArgumentError: If an argument that counts does not.
    Example: print(fg.scipy.special.sph_legendre_p(1, 1, 0.0)) -> [-0.]
    """
    name = "sph_legendre_p"
    n, m = _count(name, "n", n), _count(name, "m", m)
    count = _last(name, "diff_n", diff_n)
    (theta,) = floating(name, theta)
    require_real(theta, name)
    return _derivatives(lambda v: on_sphere.bind(n, m, v), theta, count)


def sph_legendre_p_all(n: int, m: int, theta: Any, *, diff_n: int = 0) -> Any:
    """`sph_legendre_p` of all degrees up to ``n`` and orders up to ``m``.

    Args:
        n: The highest degree, an int.
        m: The highest order, an int.

    Returns:
        An array of shape ``(diff_n + 1, n + 1, 2 m + 1, *theta.shape)``; negative orders come last.
    Raises: ArgumentError: If an argument is negative.
    Example: print(fg.scipy.special.sph_legendre_p_all(1, 1, 0.0).shape) -> (1, 2, 3)
    """
    name = "sph_legendre_p_all"
    degrees, orders = np.arange(_last(name, "n", n) + 1), _signed(_last(name, "m", m))
    (theta,) = floating(name, theta)
    return sph_legendre_p(
        _column(degrees, theta, 1), _column(orders, theta, 0), theta, diff_n=diff_n
    )


def sph_harm_y(
    n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None
) -> Any:
    """Spherical harmonics, with the phase of Condon and Shortley.

    Args:
        n: Degrees, integers from 0 on.
        m: Orders, integers.
        n_max: Taken for JAX's sake: nothing is limited.

    Returns:
        Complex numbers. With ``diff_n`` a tuple: values, gradients of shape ``(..., 2)``, Hessians
        of shape ``(..., 2, 2)``, in ``(theta, phi)``.
    Raises: ArgumentError: If an argument that counts does not, or ``diff_n`` is beyond 2.
    Example: print(abs(fg.scipy.special.sph_harm_y(1, 0, 0.0, 0.0)).round(4)) -> 0.4886
    """
    name = "sph_harm_y"
    n, m = _count(name, "n", n), _count(name, "m", m)
    count = _last(name, "diff_n", diff_n or 0)
    if count > 2:
        raise ArgumentError(f"{name}: there are derivatives up to diff_n=2, got {count}.")
    theta, phi = floating(name, theta, phi)
    require_real(theta, name)
    legendre = sph_legendre_p(n, m, theta, diff_n=count)
    dtype = complex_dtype(aval_of(theta).dtype)
    turn = p.mul.bind(p.convert(m, dtype), dtype.type(1j))
    phase = p.exp.bind(p.mul.bind(turn, p.convert(phi, dtype)))
    rows = [p.mul.bind(p.convert(legendre[i], dtype), phase) for i in range(count + 1)]
    if not count:
        return rows[0]
    y, slope = rows[:2]
    parts: list[Any] = [y, _stacked([slope, p.mul.bind(turn, y)])]
    if count == 2:
        mixed = p.mul.bind(turn, slope)
        last = p.mul.bind(turn, p.mul.bind(turn, y))
        parts.append(stack([_stacked([rows[2], mixed]), _stacked([mixed, last])], axis=-2))
    return tuple(parts)


def _stacked(values: Sequence[Any]) -> Any:
    shape = np.broadcast_shapes(*map(shape_of, values))
    return stack([broadcast_to(v, shape) for v in values], axis=-1)


def sph_harm_y_all(n: int, m: int, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """`sph_harm_y` of all degrees up to ``n`` and orders up to ``m``.

    Args:
        n: The highest degree, an int.
        m: The highest order, an int.

    Returns:
        As `sph_harm_y`, with two more axes in front, of ``n + 1`` degrees and ``2 m + 1`` orders;
        negative ones come last.
    Raises: ArgumentError: If an argument is negative.
    Example: print(fg.scipy.special.sph_harm_y_all(1, 1, 0.0, 0.0).shape) -> (2, 3)
    """
    name = "sph_harm_y_all"
    degrees, orders = np.arange(_last(name, "n", n) + 1), _signed(_last(name, "m", m))
    theta, phi = floating(name, theta, phi)
    of_shape = np.empty(np.broadcast_shapes(shape_of(theta), shape_of(phi)))
    return sph_harm_y(
        _column(degrees, of_shape, 1), _column(orders, of_shape, 0), theta, phi, diff_n=diff_n
    )
