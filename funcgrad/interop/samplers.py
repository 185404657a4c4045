"""Log densities for samplers: parameters as trees, with constraints, on vectors of real numbers.

A sampler moves in all of R^n. With parameters ``theta = f(x)`` the density of the vector ``x`` is
``p(f(x)) |det df/dx|``, so a `LogDensity` adds the logarithms of the determinants of its
constraints. It is a function that transformations take, and code with an address.

References: Stan Reference Manual, "Constraint transforms".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.api.arguments import check_callable, name_of
from funcgrad.api.compilation import jit
from funcgrad.api.differentiation import value_and_grad
from funcgrad.api.vectorization import vmap
from funcgrad.base.forking import cached_property
from funcgrad.base.namespaces import present
from funcgrad.base.pytree import (
    broadcast_prefix,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
)
from funcgrad.base.records import dataclass
from funcgrad.errors import ArgumentError
from funcgrad.interop.c.calling import CompiledFunction, cfunc
from funcgrad.nn.activations import sigmoid  # SciPy's module takes longer to load than all else

__all__ = ["Constraint", "LogDensity", "interval", "ordered", "positive", "real", "simplex"]


@dataclass(frozen=True)
class Constraint:
    """A smooth map from all real arrays onto the values of a parameter.

    Attributes:
        name: What messages call it.
        forward: The parameter of a real array.
        inverse: The real array of a parameter.
        log_jacobian: The logarithm of the absolute determinant of ``forward``, of a real array.
        n_fewer: How many elements fewer than the parameter the real array has, on its last axis.
    """

    name: str
    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    log_jacobian: Callable[[Any], Any]
    n_fewer: int = 0

    def __repr__(self) -> str:
        return self.name


real = Constraint("real", lambda x: x, lambda y: y, lambda x: 0.0)
"""No constraint."""

positive = Constraint("positive", fnp.exp, fnp.log, fnp.sum)
"""Positive numbers: ``exp(x)``."""


def interval(low: float, high: float) -> Constraint:
    """Numbers between two others: ``low + (high - low) sigmoid(x)``.

    Args:
        low: The lower end, which is not reached.
        high: The upper end.
    Returns: The constraint.
    """
    width = high - low

    def inverse(y: Any) -> Any:
        share = (y - low) / width
        return fnp.log(share) - fnp.log1p(-share)

    def log_jacobian(x: Any) -> Any:
        return fnp.sum(math.log(width) + x - 2 * fnp.logaddexp(0.0, x))

    return Constraint(
        f"interval({low}, {high})", lambda x: low + width * sigmoid(x), inverse, log_jacobian
    )


def _ordered(x: Any) -> Any:
    return fnp.cumsum(fnp.concatenate([x[..., :1], fnp.exp(x[..., 1:])], -1), -1)


def _differences(y: Any) -> Any:
    return fnp.concatenate([y[..., :1], fnp.log(fnp.diff(y, axis=-1))], -1)


ordered = Constraint("ordered", _ordered, _differences, lambda x: fnp.sum(x[..., 1:]))
"""Numbers that ascend along the last axis: the first one, and logarithms of the differences."""


def _odds(x: Any) -> Any:
    """Log odds of the shares of what is left of a stick of length 1 that are broken off."""
    return x - np.log(np.arange(x.shape[-1], 0, -1))


def _simplex(x: Any) -> Any:
    odds = _odds(x)
    left = fnp.cumprod(sigmoid(-odds), -1)
    before = fnp.concatenate([fnp.ones_like(left[..., :1]), left[..., :-1]], -1)
    return fnp.concatenate([sigmoid(odds) * before, left[..., -1:]], -1)


def _stick(y: Any) -> Any:
    left = 1 - fnp.cumsum(y, -1)[..., :-1]
    before = fnp.concatenate([fnp.ones_like(left[..., :1]), left[..., :-1]], -1)
    share = y[..., :-1] / before
    n = y.shape[-1] - 1
    return fnp.log(share) - fnp.log1p(-share) + np.log(np.arange(n, 0, -1))


def _log_breaks(x: Any) -> Any:
    odds, n = _odds(x), x.shape[-1]
    # Of a share p its own slope p (1 - p), and 1 - p for every part that is broken off later.
    return fnp.sum(odds - np.arange(n + 1, 1, -1) * fnp.logaddexp(0.0, odds))


simplex = Constraint("simplex", _simplex, _stick, _log_breaks, 1)
"""Positive numbers with the sum 1 along the last axis, by breaking a stick."""


class LogDensity:
    """The log density of a vector of real numbers, for samplers.

    Calling it gives the log density at a vector, for transformations and for samplers that are
    written for JAX. `address` is code for samplers that call C.

    Args:
        fun: The log density of the parameters, up to a constant.
        example: Parameters, as a tree of numbers and arrays: their values do not matter.
        constraints: A tree of `Constraint`, which may end before that of the parameters does; keys
            of a dict may be left out for `real`.

    Attributes:
        n: Length of the vectors.
    Raises: ArgumentError: The constraints are of another form.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> from funcgrad.interop.samplers import LogDensity, positive
        >>> y = np.array([1.0, 2.0, 4.0])
        >>> def log_density(p):
        ...     z = (y - p["mu"]) / p["sigma"]
        ...     return -0.5 * np.sum(z**2) - len(y) * np.log(p["sigma"]) - p["sigma"]
        >>> density = LogDensity(log_density, {"mu": 0.0, "sigma": 1.0}, {"sigma": positive})
        >>> {name: float(x) for name, x in density.unflatten(np.array([2.0, 0.0])).items()}
        {'mu': 2.0, 'sigma': 1.0}
        >>> value, gradient = density.value_and_grad(np.array([2.0, 0.0]))
        >>> float(value), gradient
        (-3.5, array([1., 2.]))
    """

    def __init__(self, fun: Callable[[Any], Any], example: Any, constraints: Any = None) -> None:
        check_callable(fun, "LogDensity")
        self._fun = fun
        rows, self._tree = tree_flatten_with_path(example)
        self._shapes = [np.shape(x) for _, x in rows]
        self._paths = [keystr(path, simple=True, separator=".") for path, _ in rows]
        self._constraints = _completed(constraints, example, name_of(fun))
        self._inner = []
        for path, shape, constraint in zip(
            self._paths, self._shapes, self._constraints, strict=True
        ):
            if constraint.n_fewer and (not shape or shape[-1] <= constraint.n_fewer):
                raise ArgumentError(
                    f"LogDensity({name_of(fun)}): the parameter {path} of shape {shape} cannot be "
                    f"{constraint}: its last axis is too short."
                )
            last = shape[-1:] and (shape[-1] - constraint.n_fewer,)
            self._inner.append((*shape[:-1], *last))
        sizes = [math.prod(shape) for shape in self._inner]
        self._ends = list(itertools.accumulate(sizes))
        self.n = sum(sizes)

    def __repr__(self) -> str:
        parts = zip(self._paths, self._constraints, strict=True)
        return f"LogDensity({name_of(self._fun)}: {', '.join(f'{p} {c}' for p, c in parts)})"

    @property
    def names(self) -> list[str]:
        """Names of the elements of vectors, such as ``theta[2]``."""
        return [
            path + (f"[{', '.join(map(str, index))}]" if index else "")
            for path, shape in zip(self._paths, self._inner, strict=True)
            for index in np.ndindex(*shape)
        ]

    def __call__(self, vector: Any) -> Any:
        parts = self._parts(vector)
        parameters = [c.forward(x) for c, x in zip(self._constraints, parts, strict=True)]
        total = self._fun(tree_unflatten(self._tree, parameters))
        for constraint, x in zip(self._constraints, parts, strict=True):
            total = total + constraint.log_jacobian(x)
        return total

    def unflatten(self, vector: Any) -> Any:
        """The parameters of a vector.

        Args: vector: An array of shape ``(n,)``.
        """
        parts = zip(self._constraints, self._parts(vector), strict=True)
        return tree_unflatten(self._tree, [c.forward(x) for c, x in parts])

    def flatten(self, parameters: Any) -> Any:
        """The vector of parameters.

        Args: parameters: A tree like the example.
        Raises: ArgumentError: It is another tree.
        """
        leaves, tree = tree_flatten(parameters)
        if tree != self._tree:
            raise ArgumentError(f"{self!r}: the parameters are {self._tree}, got {tree}.")
        parts = zip(self._constraints, leaves, strict=True)
        return fnp.concatenate([fnp.reshape(c.inverse(fnp.asarray(x)), -1) for c, x in parts])

    @cached_property
    def value_and_grad(self) -> Callable[[Any], tuple[Any, Any]]:
        """The log density of a vector and its gradient, compiled."""
        return jit(value_and_grad(self))

    @cached_property
    def batch(self) -> Callable[[Any], Any]:
        """The log densities of the rows of a matrix, compiled: for ensembles of walkers."""

        def densities(vectors: Any) -> Any:
            if np.ndim(vectors) != 2 or np.shape(vectors)[1] != self.n:
                raise ArgumentError(
                    f"{self!r}.batch takes a matrix with {self.n} columns, got the shape "
                    f"{np.shape(vectors)}. One vector is for the density itself."
                )
            return vmap(self)(vectors)

        return jit(densities)

    @cached_property
    def parameters(self) -> Callable[[Any], Any]:
        """The parameters of draws, an array ``(chains, draws, n)``: arrays with these axes."""
        return jit(vmap(vmap(self.unflatten)))

    @cached_property
    def compiled(self) -> CompiledFunction:
        """The log density and its gradient by address, with a status (`funcgrad.cfunc`)."""
        return cfunc(value_and_grad(self), f"float64[{self.n}] -> float64, float64[{self.n}]")

    @property
    def address(self) -> int:
        """Code without Python: a callback of samplers that are written in C or Rust.

        ``int (size_t n, const double *x, double *gradient, double *value, void *data)``, which is
        0, or a status that ``compiled.message`` explains. It lives as long as this object.
        """
        return self.compiled.entry_address("density")

    def _parts(self, vector: Any) -> list[Any]:
        """The real array of every parameter."""
        if np.shape(vector) != (self.n,):
            raise ArgumentError(
                f"{self!r} takes a vector of {self.n} numbers, got the shape {np.shape(vector)}."
            )
        starts = [0, *self._ends]
        return [
            vector[start:end].reshape(shape)
            for (start, end), shape in zip(itertools.pairwise(starts), self._inner, strict=True)
        ]


def _completed(constraints: Any, example: Any, name: str) -> list[Constraint]:
    """The constraint of every parameter."""
    if isinstance(constraints, dict) and isinstance(example, dict):
        unknown = [key for key in constraints if key not in example]
        if unknown:
            raise ArgumentError(
                f"LogDensity({name}): there are constraints of {unknown}, which are no parameters; "
                f"the parameters are {list(example)}."
            )
        constraints = {key: constraints.get(key, real) for key in example}
    if constraints is None:
        constraints = real
    found = broadcast_prefix(constraints, example, is_leaf=lambda x: isinstance(x, Constraint))
    if not all(isinstance(x, Constraint) for x in found):
        raise ArgumentError(
            f"LogDensity({name}): constraints are of funcgrad.interop.samplers, such as positive."
        )
    return found


present(__name__)
