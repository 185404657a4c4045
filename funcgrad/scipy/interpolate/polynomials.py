"""One polynomial through all values, and radial functions through scattered ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

import funcgrad.numpy.values as fnp
from funcgrad.api.differentiation import jvp
from funcgrad.base.pytree import register_pytree_node
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.numpy import elementwise
from funcgrad.numpy.promotion import as_value
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.objects import is_traced
from funcgrad.scipy.interpolate.piecewise import placed

__all__ = [
    "BarycentricInterpolator", "KroghInterpolator", "RBFInterpolator", "barycentric_interpolate",
    "krogh_interpolate",
]  # fmt: skip


def _given(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any, int]:
    x, y = (fnp.asarray(as_value(v, name)) for v in (x, y))
    x, y = (v if v.dtype.kind in "fc" else fnp.astype(v, np.float64) for v in (x, y))
    if x.ndim != 1 or not y.ndim or y.shape[axis] != x.shape[0]:
        raise ShapeError(f"{name}: values {aval_of(y)} do not fit places {aval_of(x)}.")
    return x, fnp.moveaxis(y, axis, 0), axis % y.ndim


class _Polynomial:
    """Base of both forms: evaluation at places of any shape, and derivatives."""

    axis: int

    def _at(self, x: Any) -> Any:
        raise NotImplementedError

    def __call__(self, x: Any) -> Any:
        """Values at places of any shape."""
        x = fnp.asarray(as_value(x, type(self).__name__))
        x = x if x.dtype.kind in "fc" else fnp.astype(x, np.float64)
        return placed(self._at(fnp.reshape(x, (-1,))), x.shape, self.axis)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """The derivative of order ``der`` at places of any shape."""
        x = fnp.asarray(as_value(x, type(self).__name__))
        x = x if x.dtype.kind in "fc" else fnp.astype(x, np.float64)
        find: Callable[[Any], Any] = self._at
        for _ in range(der):
            find = _derived(find)
        return placed(find(fnp.reshape(x, (-1,))), x.shape, self.axis)

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """All derivatives of orders below ``der``, stacked."""
        return fnp.stack([self.derivative(x, k) for k in range(1 if der is None else der)])


def _derived(find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jvp(find, (x,), (fnp.ones_like(x),))[1]


class BarycentricInterpolator(_Polynomial):
    """Polynomial through values, as `scipy.interpolate.BarycentricInterpolator`.

    Args:
        wi: Weights of the places, if they are known.
        random_state: Without effect.

    Example:
        >>> x = np.arange(4.0)
        >>> print(fg.scipy.interpolate.BarycentricInterpolator(x, x**3)(1.5))
        3.375
    """

    def __init__(
        self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        if yi is None:
            raise ArgumentError("BarycentricInterpolator: pass the values, yi=...")
        self.xi, self.yi, self.axis = _given("BarycentricInterpolator", xi, yi, axis)
        if wi is not None:
            self.wi = wi
            return
        n = self.xi.shape[0]
        # Distances relative to the width, so that products neither grow nor vanish.
        width = (fnp.max(self.xi) - fnp.min(self.xi)) / 4 if n > 1 else 1.0
        gaps = (self.xi[:, None] - self.xi) / width + np.eye(n)
        self.wi = 1 / fnp.prod(gaps, axis=1)

    def _at(self, x: Any) -> Any:
        gaps = x[:, None] - self.xi
        is_node = gaps == 0
        touches = fnp.any(is_node, axis=1)
        terms = self.wi / fnp.where(is_node, 1.0, gaps)
        flat = fnp.reshape(self.yi, (self.yi.shape[0], -1))
        far = (terms @ flat) / fnp.sum(terms, axis=1)[:, None]
        values = far
        if is_traced(touches) or np.any(touches):
            # At a place itself: its value, with the derivatives of Newton's form.
            newton = _newton_form(self.xi, _differences(self.xi, flat), x)
            own = fnp.astype(is_node, x.dtype) @ flat + (newton - stop_gradient.bind(newton))
            values = fnp.where(touches[:, None], own, far)
        return fnp.reshape(values, (x.shape[0], *self.yi.shape[1:]))


class KroghInterpolator(_Polynomial):
    """Polynomial through values and derivatives, as `scipy.interpolate.KroghInterpolator`.

    Args: xi: Places, ascending. Where one is repeated, and known, the values after the first are
            derivatives there.
    Example: print(fg.scipy.interpolate.KroghInterpolator([0.0, 0.0, 1.0], [0.0, 0.0, 1.0])(0.5))
        -> 0.25
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        self.xi, y, self.axis = _given("KroghInterpolator", xi, yi, axis)
        n = self.xi.shape[0]
        repeats = [0] * n
        if not is_traced(self.xi):
            for k in range(1, n):
                repeats[k] = repeats[k - 1] + 1 if self.xi[k] == self.xi[k - 1] else 0
        if not any(repeats):
            self.c = _differences(self.xi, y)
            return
        found, rows = [y[0]], [y[0]] * (n + 1)
        for k in range(1, n):
            s = repeats[k]
            rows[0] = y[k] / math.factorial(s)
            for i in range(k - s):
                top = found[i] - rows[i] if s == 0 else rows[i + 1] - rows[i]
                rows[i + 1] = top / (self.xi[i] - self.xi[k])
            found.append(rows[k - s])
        self.c = fnp.stack(found)

    def _at(self, x: Any) -> Any:
        return _newton_form(self.xi, self.c, x)


def _differences(places: Any, values: Any) -> Any:
    """Newton's divided differences, of places that are all different."""
    n = places.shape[0]
    found, column = [values[0]], values
    for k in range(1, n):
        width = fnp.reshape(places[k:] - places[: n - k], (-1, *(1,) * (values.ndim - 1)))
        column = fnp.diff(column, axis=0) / width
        found.append(column[0])
    return fnp.stack(found)


def _newton_form(places: Any, differences: Any, x: Any) -> Any:
    shape = (-1, *(1,) * (differences.ndim - 1))
    total = fnp.broadcast_to(differences[-1], (x.shape[0], *differences.shape[1:]))
    for k in range(places.shape[0] - 2, -1, -1):
        total = differences[k] + fnp.reshape(x - places[k], shape) * total
    return total


def _register(kind: Any, names: tuple[str, ...]) -> None:
    def flatten(p: Any) -> tuple[list[Any], int]:
        return [getattr(p, name) for name in names], p.axis

    def unflatten(axis: int, children: Any) -> Any:
        p = object.__new__(kind)
        p.__dict__.update(zip(names, children, strict=True))
        p.axis = axis
        return p

    register_pytree_node(kind, flatten, unflatten)


_register(BarycentricInterpolator, ("xi", "yi", "wi"))
_register(KroghInterpolator, ("xi", "c"))


def barycentric_interpolate(
    xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None
) -> Any:
    """`BarycentricInterpolator` at places, as `scipy.interpolate.barycentric_interpolate`.

    Args: x: Where it is evaluated.
    Returns: Values, or an array of them.

    Example:
        >>> fg.scipy.interpolate.barycentric_interpolate(
        ...     np.arange(3.0), np.array([0.0, 1.0, 4.0]), np.array([0.5, 1.5])
        ... )
        array([0.25, 2.25])
    """
    return _evaluated(BarycentricInterpolator(xi, yi, axis), x, der)


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """`KroghInterpolator` at places, as `scipy.interpolate.krogh_interpolate`.

    Args:
        yi: Values, and derivatives.
        x: Where it is evaluated.
    Returns: Values, or an array of them.

    Example:
        >>> fg.scipy.interpolate.krogh_interpolate(
        ...     np.arange(3.0), np.array([0.0, 1.0, 4.0]), np.array([0.5, 1.5])
        ... )
        array([0.25, 2.25])
    """
    return _evaluated(KroghInterpolator(xi, yi, axis), x, der)


def _evaluated(p: _Polynomial, x: Any, der: Any) -> Any:
    if isinstance(der, list | tuple | np.ndarray):
        return fnp.stack([p.derivative(x, int(k)) for k in der])
    return p.derivative(x, der) if der else p(x)


def _thin_plate(r: Any) -> Any:
    safe = fnp.where(r == 0, 1.0, r)
    return fnp.where(r == 0, 0.0, safe * safe * fnp.log(safe))


_KERNELS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "linear": (lambda r: -r, 0),
    "thin_plate_spline": (_thin_plate, 1),
    "cubic": (lambda r: r**3, 1),
    "quintic": (lambda r: -(r**5), 2),
    "multiquadric": (lambda r: -elementwise.sqrt(1 + r * r), 0),
    "inverse_multiquadric": (lambda r: 1 / elementwise.sqrt(1 + r * r), -1),
    "inverse_quadratic": (lambda r: 1 / (1 + r * r), -1),
    "gaussian": (lambda r: elementwise.exp(-r * r), -1),
}
"""Functions of the distance, and the least degree of the polynomial beside them."""

_FREE = ("linear", "thin_plate_spline", "cubic", "quintic")


class RBFInterpolator:
    """Radial functions through scattered values, as `scipy.interpolate.RBFInterpolator`.

    A pytree, differentiable in the values, in their places, and where it is evaluated.

    Args:
        y: Places of values, of shape ``(n, d)``.
        d: Values, the first axis for places.
        neighbors: Must be ``None``: all places count.
        smoothing: What is added to the diagonal of the system.
        kernel: SciPy's names.
        epsilon: Scale of distances; needed by kernels that have one.
        degree: Of the polynomial beside them, -1 for none.

    Example:
        >>> places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> f = fg.scipy.interpolate.RBFInterpolator(places, places.sum(1))
        >>> print(f(np.array([[0.5, 0.25]])).round(6))
        [0.75]
    """

    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: int | None = None,
        smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: int | None = None,
    ) -> None:
        if kernel not in _KERNELS:
            raise ArgumentError(
                f"RBFInterpolator: kernel must be one of {', '.join(map(repr, _KERNELS))}, got "
                f"{kernel!r}."
            )
        if neighbors is not None:
            raise ArgumentError(
                "RBFInterpolator: neighbors= is not supported, since the nearest neighbours change "
                "discontinuously; leave it out."
            )
        if epsilon is None:
            if kernel not in _FREE:
                raise ArgumentError(f"RBFInterpolator: the kernel {kernel!r} needs epsilon=.")
            epsilon = 1.0
        self.y = fnp.astype(fnp.asarray(as_value(y, "RBFInterpolator")), np.float64)
        d = fnp.asarray(as_value(d, "RBFInterpolator"))
        if self.y.ndim != 2 or not d.ndim or d.shape[0] != self.y.shape[0]:
            raise ShapeError(
                f"RBFInterpolator: places {aval_of(self.y)} and values {aval_of(d)} do not fit."
            )
        self.kernel, self.epsilon = kernel, epsilon
        n, dimensions = self.y.shape
        degree = max(_KERNELS[kernel][1], 0) if degree is None else degree
        self.powers = tuple(
            tuple(int(np.sum(np.array(c) == i)) for i in range(dimensions))
            for k in range(degree + 1)
            for c in combinations_with_replacement(range(dimensions), k)
        )
        self.shift = fnp.mean(self.y, axis=0)
        functions = self._functions(self.y)
        m = len(self.powers)
        own = functions[:, :n] + fnp.eye(n) * smoothing
        beside = functions[:, n:]
        system = fnp.concatenate(
            [
                fnp.concatenate([own, beside], axis=1),
                fnp.concatenate([beside.T, np.zeros((m, m))], axis=1),
            ]
        )
        self.values_shape = d.shape[1:]
        flat = fnp.reshape(d, (n, -1))
        right = fnp.concatenate([flat, np.zeros((m, flat.shape[1]), np.dtype(flat.dtype))])
        self.weights = fnp.linalg.solve(system, right)

    def _functions(self, x: Any) -> Any:
        """All functions at places, one row for each."""
        gaps = (x[:, None] - self.y) * self.epsilon
        squares = fnp.sum(gaps * gaps, axis=-1)
        is_same = squares == 0  # the root has no slope there
        r = fnp.where(is_same, 0.0, fnp.sqrt(fnp.where(is_same, 1.0, squares)))
        parts = [_KERNELS[self.kernel][0](r)]
        moved = x - self.shift
        for powers in self.powers:
            term: Any = fnp.ones(x.shape[:1])
            for i, k in enumerate(powers):
                term = term * moved[:, i] ** k
            parts.append(term[:, None])
        return fnp.concatenate(parts, axis=1)

    def __call__(self, x: Any) -> Any:
        """Values at places of shape ``(m, d)``."""
        x = fnp.astype(fnp.asarray(as_value(x, "RBFInterpolator")), np.float64)
        if x.ndim != 2 or x.shape[1] != self.y.shape[1]:
            raise ShapeError(
                f"RBFInterpolator: places need {self.y.shape[1]} coordinates in rows, got "
                f"{aval_of(x)}."
            )
        values = self._functions(x) @ self.weights
        return fnp.reshape(values, (x.shape[0], *self.values_shape))


_RBF_PARTS = ("y", "epsilon", "shift", "weights")
_RBF_FACTS = ("kernel", "powers", "values_shape")


def _flatten_rbf(f: RBFInterpolator) -> tuple[list[Any], Any]:
    facts = tuple(getattr(f, name) for name in _RBF_FACTS)
    return [getattr(f, name) for name in _RBF_PARTS], facts


def _unflatten_rbf(facts: Any, children: Any) -> RBFInterpolator:
    f = object.__new__(RBFInterpolator)
    f.__dict__.update(zip(_RBF_FACTS, facts, strict=True))
    f.__dict__.update(zip(_RBF_PARTS, children, strict=True))
    return f


register_pytree_node(RBFInterpolator, _flatten_rbf, _unflatten_rbf)
