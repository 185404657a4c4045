"""Functions and methods whose arguments or results differ from those of NumPy and SciPy."""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import numpy as np

from funcgrad import lax, numpy
from funcgrad.api import vectorization
from funcgrad.base.imports import load
from funcgrad.base.pytree import tree_leaves, tree_structure, tree_unflatten
from funcgrad.core.trace import Tracer
from funcgrad.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    ShapeError,
)
from funcgrad.interop.jax.arrays import Adopted, Array, weakly_of
from funcgrad.numpy.padding import KEYWORDS
from funcgrad.numpy.promotion import promote_inexact
from funcgrad.random.key_arrays import KeyArray

_of_arrays = functools.partial(Adopted, stores=True, keeps_weak=True)
"""Functions that give 16 bits for such arguments, and weak arrays for weak ones."""

Array.searchsorted = Adopted(numpy.searchsorted)  # type: ignore[method-assign]


@Adopted
@functools.wraps(numpy.bincount)
def bincount(x: Any, *args: Any, **options: Any) -> Any:
    """`numpy.bincount`, which counts negative numbers as 0."""
    given = numpy.asarray(x)
    clipped = numpy.maximum(given, 0) if given.dtype.kind == "i" else given
    return numpy.bincount(clipped, *args, **options)


@Adopted
@functools.wraps(numpy.take_along_axis)
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Any:
    """`numpy.take_along_axis`, where places outside are filled by default, as in JAX."""
    x, places = numpy.asarray(arr), numpy.asarray(indices)
    if places.dtype.kind not in "iu":
        raise DtypeError(f"take_along_axis: indices must be integers, got {places.dtype}.")
    x, axis = (numpy.ravel(x), 0) if axis is None else (x, axis)
    length = x.shape[axis]
    places = numpy.astype(places, np.int64)
    if wrap_negative_indices:
        places = numpy.where(places < 0, places + length, places)
    mode = str(getattr(mode, "name", mode or "fill")).lower()
    if mode in ("clip", "promise_in_bounds"):
        places, mode = numpy.clip(places, 0, length - 1), "clip"
    if mode == "one_hot":
        mode, fill_value = "fill", 0 if fill_value is None else fill_value
    return numpy.take_along_axis(
        x, places, axis, mode, fill_value, wrap_negative_indices=mode != "fill"
    )


@_of_arrays
@functools.wraps(numpy.take)
def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: Any = None,
    **options: Any,
) -> Any:
    """`numpy.take`, where places outside are filled by default, as in JAX."""
    length = np.size(a) if axis is None else np.shape(a)[axis]
    if not length and np.size(indices):
        raise IndexError("take: there is nothing to take from an axis without elements.")
    return numpy.take(a, indices, axis, out, "fill" if mode is None else mode, **options)


@Adopted
def ix_(*args: Any) -> tuple[Any, ...]:
    """`numpy.ix_`, also of traced vectors."""
    made = []
    for i, x in enumerate(map(numpy.asarray, args)):
        if x.ndim != 1:
            raise ShapeError(f"ix_: arguments must have one axis, got shape {x.shape}.")
        index = numpy.nonzero(x)[0] if x.dtype == np.bool_ else x
        made.append(index.reshape((*(1,) * i, -1, *(1,) * (len(args) - i - 1))))
    return tuple(made)


@_of_arrays
@functools.wraps(numpy.choose)
def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """`numpy.choose`, which cannot check traced indices."""
    if mode == "raise":
        if isinstance(a, Tracer):
            raise ConcretizationTypeError(
                "choose: traced indices cannot be checked; pass mode='clip' or 'wrap'."
            )
        if np.any((np.asarray(a) < 0) | (np.asarray(a) >= len(choices))):
            raise ValueError("invalid entry in choice array")
    return numpy.choose(a, choices, out, mode)


def _of_floats(function: Any) -> Any:
    """A function of two vectors, which integers are floats for."""

    @functools.wraps(function)
    def compute(a: Any, v: Any, *args: Any, **options: Any) -> Any:
        lines = promote_inexact(*map(numpy.asarray, (a, v)))
        return function(*lines, *args, **options)

    return _of_arrays(compute)


convolve, correlate = _of_floats(numpy.convolve), _of_floats(numpy.correlate)


@_of_arrays
@functools.wraps(numpy.hypot)
def hypot(x1: Any, x2: Any) -> Any:
    """`numpy.hypot` of real numbers."""
    if any(numpy.iscomplexobj(x) for x in (x1, x2)):
        raise DtypeError("hypot is not defined for complex arguments.")
    return numpy.hypot(x1, x2)


@Adopted
@functools.wraps(numpy.isclose)
def isclose(a: Any, b: Any, *args: Any, **options: Any) -> Any:
    """`numpy.isclose`; random keys are close if they are equal."""
    if isinstance(a, KeyArray) and isinstance(b, KeyArray):
        return a == b
    return numpy.isclose(a, b, *args, **options)


@_of_arrays
@functools.wraps(numpy.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """`numpy.pad`, of which JAX says that other modes are not implemented."""
    if not callable(mode) and mode not in KEYWORDS:
        raise NotImplementedError(f"Unimplemented padding mode {mode!r} for np.pad.")
    return numpy.pad(array, pad_width, mode, **options)


_reshape = _of_arrays(numpy.reshape)


@functools.wraps(numpy.reshape)
def reshape(a: Any, shape: Any, order: str = "C", **options: Any) -> Any:
    """`numpy.reshape`, where arrays of NumPy remain such, also while a program is traced."""
    is_numpys = type(a) is np.ndarray and options.get("out_sharding") is None
    return a.reshape(shape, order=order) if is_numpys else _reshape(a, shape, order, **options)


@Adopted
@functools.wraps(lax.associative_scan)
def associative_scan(fn: Any, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """`lax.associative_scan`, where a result may be of another structure with such leaves."""
    structure = tree_structure(elems)

    def combine(a: Any, b: Any) -> Any:
        return tree_unflatten(structure, tree_leaves(fn(a, b)))

    return lax.associative_scan(combine, elems, reverse, axis)


def _cumulative(function: Any) -> Any:
    """A cumulative sum or product, of what has axes."""

    @functools.wraps(function)
    def compute(x: Any, /, **options: Any) -> Any:
        if not np.ndim(x):
            raise ShapeError(f"{function.__name__}: the input must be non-scalar.")
        return function(x, **options)

    return _of_arrays(compute)


cumulative_prod = _cumulative(numpy.cumulative_prod)
cumulative_sum = _cumulative(numpy.cumulative_sum)


@functools.wraps(numpy.tensordot)
def _tensordot(a: Any, b: Any, *args: Any, **options: Any) -> Any:
    try:
        return numpy.tensordot(a, b, *args, **options)
    except ValueError as error:
        raise ShapeError(str(error)) from None


tensordot = _of_arrays(_tensordot)


@Adopted
def sici(x: Any) -> Any:
    """`scipy.special.sici` of real numbers."""
    if numpy.iscomplexobj(x):
        raise DtypeError("sici: the argument must be real.")
    return load("funcgrad.scipy.special").sici(x)


def _contains(self: Any, item: Any) -> bool:
    """``item in x``, of a number and a vector."""
    if not isinstance(item, np.ndarray | np.generic | Tracer | int | float | complex):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(item).__name__!r}.")
    if self.ndim != 1 or np.ndim(item):
        raise ValueError(
            "Array.__contains__: the array must have one axis and the value none, got shapes "
            f"{self.shape} and {np.shape(item)}."
        )
    return bool(numpy.any(numpy.equal(self, item)))


Array.__contains__ = _contains  # type: ignore[method-assign]

_map = Adopted(lax.map)


def map_rows(f: Any, xs: Any, *, batch_size: int | None = None) -> Any:
    """`lax.map`; a batch size of 0 stands for one batch of all rows."""
    if batch_size == 0:
        return Adopted(vectorization.vmap(f))(xs)
    return _map(f, xs, batch_size=batch_size)


def _solver(name: str) -> Any:
    """An iterative solver, whose solution is weak as the right-hand side is."""

    def solved(A: Any, b: Any, *args: Any, **options: Any) -> Any:
        if isinstance(A, list | tuple):
            raise TypeError(f"{name}: A must be a function or an array, got a {type(A).__name__}.")
        solve = getattr(load("funcgrad.scipy.sparse.linalg"), name)
        matvec = (lambda v: A(v)) if callable(A) else A  # also of objects that have a shape
        x, info = Adopted(solve)(matvec, b, *args, **options)
        return weakly_of(x, (b,)), info

    solved.__name__ = solved.__qualname__ = name
    return solved


def _of_linalg(name: str) -> Any:
    return getattr(load("funcgrad.scipy.linalg"), name)


@Adopted
def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """`scipy.linalg.solve_sylvester`; nan where eigenvalues of both sum to less than ``tol``."""
    x = _of_linalg("solve_sylvester")(A, B, C)
    a, b = (numpy.linalg.eigvals(lax.stop_gradient(numpy.asarray(m))) for m in (A, B))
    is_singular = numpy.abs(a[..., :, None] + b[..., None, :]) < tol
    return numpy.where(numpy.any(is_singular), numpy.asarray(np.nan, x.dtype), x)


@Adopted
def fiedler_companion(a: Any) -> Any:
    """`scipy.linalg.fiedler_companion`; of one coefficient it has no rows."""
    found = _of_linalg("fiedler_companion")(a)
    length = max(np.shape(a)[-1] - 1, 0)
    return found.reshape((*np.shape(a)[:-1], length, length))


@Adopted
def helmert(n: int, full: bool = False) -> Any:
    """`scipy.linalg.helmert` of a positive order."""
    if n <= 0:
        raise ArgumentError(f"helmert: n must be a positive integer, got {n}.")
    return _of_linalg("helmert")(n, full)


@Adopted
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """`scipy.linalg.convolution_matrix` of vectors."""
    if not np.ndim(a):
        raise ShapeError("convolution_matrix: a must be at least 1-dimensional, got a number.")
    return _of_linalg("convolution_matrix")(a, n, mode)


LINALG = {
    name: globals()[name]
    for name in ("convolution_matrix", "fiedler_companion", "helmert", "solve_sylvester")
}


class OptimizeResults(NamedTuple):
    """Result of an optimization, a tuple as in JAX.

    Args:
        x: The minimizer.
        success: Whether it converged.
        status: A number that says why it stopped.
        fun: The value there.
        jac: The gradient there.
        hess_inv: An estimate of the inverse Hessian.
        nfev: Evaluations of the function.
        njev: Evaluations of the gradient.
        nit: Iterations.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


@Adopted
def minimize(fun: Any, x0: Any, *args: Any, **options: Any) -> OptimizeResults:
    """`scipy.optimize.minimize`."""
    found = load("funcgrad.scipy.optimize").minimize(fun, x0, *args, **options)
    return OptimizeResults(*(getattr(found, name, None) for name in OptimizeResults._fields))


OPTIMIZERS = {"OptimizeResults": OptimizeResults, "minimize": minimize}

SOLVERS = {name: _solver(name) for name in ("bicgstab", "cg", "gmres")}


@Adopted
@functools.wraps(numpy.ravel_multi_index)
def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", dtype: Any = None
) -> Any:
    """`numpy.ravel_multi_index`; with ``mode="ignore"`` indices may lie anywhere."""
    if mode == "raise" and any(isinstance(index, Tracer) for index in multi_index):
        raise ConcretizationTypeError(
            "ravel_multi_index: traced indices cannot be checked; pass mode='clip', 'wrap' or "
            "'ignore'."
        )
    if mode != "ignore":
        found = numpy.ravel_multi_index(multi_index, dims, mode, order)
    else:
        pairs = list(zip(multi_index, dims, strict=True))
        found = np.int64(0)
        for index, length in pairs if order == "C" else pairs[::-1]:
            found = found * int(length) + numpy.astype(numpy.asarray(index), np.int64)
    return numpy.astype(found, numpy.result_type(*multi_index) if dtype is None else dtype)


@Adopted
@functools.wraps(numpy.unravel_index)
def unravel_index(indices: Any, shape: Any) -> Any:
    """`numpy.unravel_index`; indices out of bounds count from the end, or are those of an end."""
    lengths = list(shape if isinstance(shape, tuple | list) else numpy.atleast_1d(shape))
    size: Any = functools.reduce(operator.mul, lengths, 1)
    given = numpy.asarray(indices)
    rest = numpy.astype(given, np.int64)
    rest = numpy.clip(numpy.where(rest < 0, rest + size, rest), 0, size - 1)
    parts = []
    for length in lengths[::-1]:
        parts.append(numpy.astype(rest % length, given.dtype))
        rest = rest // length
    return tuple(parts[::-1])
