"""Functions of one line, one reduction or one element, applied to all of an array.

Where NumPy calls the function again and again, it is called once here, with traced values that
stand for all calls, as under `vmap`: a Python ``if`` on such a value cannot be decided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from funcgrad.base.annotations import Function, Values
from funcgrad.base.dialect import NUMPY, default_dtype, dialect
from funcgrad.base.pytree import held_in, tree_unflatten
from funcgrad.base.transformed import Transformed
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.higher_order.staging import name_of
from funcgrad.numpy.promotion import as_value, normalize_axis, strong
from funcgrad.numpy.shaping import expand_dims, moveaxis
from funcgrad.primitives.elementwise import convert
from funcgrad.primitives.objects import HoldsArray, flatten_held
from funcgrad.primitives.shape import broadcast_to, reshape, shape_of
from funcgrad.transforms.batch import batch_flat

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]


def _mapped(function: Function, stacks: Sequence[Any], what: str) -> Any:
    """Results, stacked in front, of a function of the rows of arrays of equal length."""
    size = shape_of(stacks[0])[0]
    trees: list[Any] = []

    def flat(*rows: Any) -> list[Any]:
        leaves, tree = flatten_held(function(*rows))
        trees.append(tree)
        return [strong(as_value(x, what)) for x in leaves]

    outs, dims = batch_flat(flat, stacks, [0] * len(stacks), size, what, None)
    full = [
        out if dim is not None else broadcast_to(out, (size, *shape_of(out)))
        for out, dim in zip(outs, dims, strict=True)
    ]
    return tree_unflatten(trees[0], full)


def apply_along_axis(func1d: Function, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """A function applied to the vectors along an axis.

    As `numpy.apply_along_axis`: a function of every line along an axis.

    Args:
        func1d: Takes an array of one axis, and returns an array of any shape. It is called once,
            with a traced array that stands for all lines.
        axis: The axis of the lines.
        *args: Further arguments of ``func1d``.
        **kwargs: Further keyword arguments of ``func1d``.
    Returns: The results, with their axes in the place of ``axis``.

    Example:
        >>> x = np.array([[1.0, 3.0], [4.0, 2.0]])
        >>> print(fg.numpy.apply_along_axis(lambda line: line / line.sum(), 0, x))
        [[0.2 0.6]
         [0.8 0.4]]
    """
    x = strong(as_value(arr, "apply_along_axis"))
    shape = shape_of(x)
    axis = normalize_axis(axis, len(shape), "apply_along_axis")
    lead = shape[:axis] + shape[axis + 1 :]
    size = int(np.prod(lead, dtype=np.int64))
    lines = reshape(moveaxis(x, axis, -1), (size, shape[axis]))
    what = f"apply_along_axis({name_of(func1d)})"
    out = _mapped(lambda line: func1d(line, *args, **kwargs), [lines], what)
    own = shape_of(out)[1:]
    places = range(len(own))
    out = reshape(out, (*lead, *own))
    return moveaxis(out, [len(lead) + i for i in places], [axis + i for i in places])


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: int | Sequence[int]) -> Any:
    """A function applied over several axes, one after the other.

    As `numpy.apply_over_axes`: a reduction along one axis after another, which are kept.

    Args:
        func: Function of an array and an axis.
        axes: Axes, as integers.
    Example: fg.numpy.apply_over_axes(np.sum, np.arange(4.0).reshape(2, 2), [0])
        -> array([[2., 4.]])
    """
    x = as_value(a, "apply_over_axes")
    ndim = len(shape_of(x))
    for given in np.atleast_1d(np.asarray(axes)):
        axis = normalize_axis(int(given), ndim, "apply_over_axes")
        out = func(x, axis)
        x = out if len(shape_of(out)) == ndim else expand_dims(out, axis)
        if len(shape_of(x)) != ndim:
            raise ShapeError(
                f"apply_over_axes: {name_of(func)} must keep the number of axes, {ndim}, or leave "
                f"out one, but returned {len(shape_of(out))}."
            )
    return x


_CORE = r"\(\s*(?:\w+(?:\s*,\s*\w+)*)?\s*\)"
_SIGNATURE = re.compile(rf"\s*{_CORE}(?:\s*,\s*{_CORE})*\s*->\s*{_CORE}(?:\s*,\s*{_CORE})*\s*")


Cores = list[list[str]]
"""The names of the core axes of every argument, or of every result."""


def _core_axes(signature: str | None, count: int, what: str) -> tuple[Cores, Cores | None]:
    """The core axes of arguments and results; without a signature there are none."""
    if signature is None:
        return [[]] * count, None
    if not _SIGNATURE.fullmatch(signature):
        raise ArgumentError(f"{what}: {signature!r} is no signature such as '(m,n),(n)->(m)'.")
    cores, results = (re.findall(_CORE, side) for side in signature.split("->"))
    if len(cores) != count:
        raise ArgumentError(
            f"{what}: the signature {signature!r} has {len(cores)} arguments, but {count} are "
            "mapped."
        )
    names, result_names = ([re.findall(r"\w+", c) for c in side] for side in (cores, results))
    return names, result_names


def _check_core(values: Values, cores: Sequence[Sequence[str]], what: str) -> dict[str, int]:
    """The lengths of core axes; those of one name have one length."""
    lengths: dict[str, int] = {}
    for x, names in zip(values, cores, strict=True):
        shape = shape_of(x)
        if len(shape) < len(names):
            raise ShapeError(f"{what}: an argument of shape {shape} lacks core axes {names}.")
        for name, n in zip(names, shape[len(shape) - len(names) :], strict=True):
            if lengths.setdefault(name, n) != n:
                raise ShapeError(
                    f"{what}: the core axis {name!r} has lengths {lengths[name]}, {n}."
                )
    return lengths


def _check_results(leaves: Values, cores: Cores | None, lengths: dict[str, int], what: str) -> None:
    """Results, stacked in front, have the core axes that the signature says; by default none."""
    if cores is not None and len(leaves) != len(cores):
        raise ArgumentError(
            f"{what}: the signature has {len(cores)} results, but the function returned "
            f"{len(leaves)}."
        )
    for x, names in zip(leaves, [[]] * len(leaves) if cores is None else cores, strict=True):
        shape = shape_of(x)[1:]
        fits = len(shape) == len(names)
        if not fits or any(
            lengths.setdefault(c, n) != n for c, n in zip(names, shape, strict=True)
        ):
            expected = ", ".join(f"{c}={lengths[c]}" if c in lengths else c for c in names)
            raise ShapeError(
                f"{what}: a result has shape {shape}, but its core axes are ({expected}). "
                "Say them in signature=, such as '(n)->(n)'."
            )


def vectorize(
    pyfunc: Function, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Function:
    """A function of elements, or of core arrays, made one of arrays that broadcast.

    `numpy.vectorize` cannot be differentiated through; this can.

    Args:
        pyfunc: Takes scalars, or arrays with the axes that ``signature`` names. It is called once,
            with traced values that stand for all elements.
        excluded: Positions of arguments that are passed on as they are. Keyword arguments always
            are, and so is ``None``.
        signature: Core axes of arguments and results, such as ``"(m,n),(n)->(m)"``.
    Returns: The function of arrays.

    Raises:
        ArgumentError: If the signature cannot be read or does not fit the number of arguments or
            results.
        ShapeError: If the core axes of arguments or results are not those of the signature.

    Example:
        >>> dot = fg.numpy.vectorize(lambda x, y: x @ y, signature="(n),(n)->()")
        >>> print(dot(np.eye(3), np.array([1.0, 2.0, 3.0])))
        [1. 2. 3.]
    """
    what = f"vectorize({name_of(pyfunc)})"
    if any(not isinstance(x, str | int | np.integer) for x in excluded):
        raise DtypeError(f"{what}: excluded= needs positions, got {set(excluded)}.")
    if any(not isinstance(x, str) and x < 0 for x in excluded):
        raise ArgumentError(f"{what}: excluded= needs positions from 0, got {set(excluded)}.")

    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        mapped = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        given = [as_value(held_in(args[i]), what) for i in mapped]
        values = [convert(strong(x), default_dtype(aval_of(x).dtype)) for x in given]
        cores, result_cores = _core_axes(signature, len(values), what)
        lengths = _check_core(values, cores, what)
        ends = [len(shape_of(x)) - len(c) for x, c in zip(values, cores, strict=True)]
        lead = np.broadcast_shapes(*[shape_of(x)[:n] for x, n in zip(values, ends, strict=True)])
        size = int(np.prod(lead, dtype=np.int64))

        def of_rows(*rows: Any) -> Any:
            full = list(args)
            for i, row in zip(mapped, rows, strict=True):
                is_held = isinstance(full[i], HoldsArray)
                full[i] = full[i].dtype.holding(row) if is_held else row
            return pyfunc(*full, **kwargs)

        if not values:
            return of_rows()
        stacks = []
        for x, n in zip(values, ends, strict=True):
            core = shape_of(x)[n:]
            stacks.append(reshape(broadcast_to(x, (*lead, *core)), (size, *core)))
        leaves, tree = flatten_held(_mapped(of_rows, stacks, what))
        if result_cores is not None or dialect() is NUMPY:
            _check_results(leaves, result_cores, lengths, what)
        return tree_unflatten(tree, [reshape(x, (*lead, *shape_of(x)[1:])) for x in leaves])

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return of_arrays(*args, **kwargs)

    return Transformed(run, vectorize, pyfunc, excluded=excluded, signature=signature)
