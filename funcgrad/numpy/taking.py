"""Elements at places: looked up, left out, put between, repeated, and the places themselves."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import BOOL, INT64
from funcgrad.errors import ConcretizationTypeError, OutOfBoundsError
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import shaping
from funcgrad.numpy.creating import zeros
from funcgrad.numpy.indexing import at, demanded_places, getitem, indexed
from funcgrad.numpy.joining import concatenate, stack
from funcgrad.numpy.ordering import nonzero, searchsorted
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axis,
    promote,
    strong,
    to_dtype,
)
from funcgrad.numpy.rearranging import tile
from funcgrad.numpy.reducing import refuse_out
from funcgrad.numpy.running import cumsum
from funcgrad.numpy.selecting import clip, isin, truth_of, where
from funcgrad.observers.messages import message
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.indexing import as_index, index_within
from funcgrad.primitives.indexing import take_along_axis as gather_along_axis
from funcgrad.primitives.ordering import ArgSort
from funcgrad.primitives.shape import shape_of

__all__ = [
    "block", "choose", "compress", "delete", "diag_indices", "extract", "indices", "insert", "ix_",
    "mgrid", "ogrid", "ravel_multi_index", "repeat", "resize", "take", "take_along_axis",
    "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from", "unravel_index",
]  # fmt: skip

# Functions of numbers that are known before tracing are NumPy's own.
diag_indices, indices, ix_ = np.diag_indices, np.indices, np.ix_
mgrid, ogrid = np.mgrid, np.ogrid


def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Any, ...]:
    """Index of each axis from indices of the flattened array.

    As `numpy.unravel_index`; ``indices`` may be traced.

    Args:
        indices: Places in an array of the shape, counted along a line.
        shape: Lengths of the axes.
        order: ``"C"`` or ``"F"``: the axis that counts fastest is the last or the first.
    Example: print(fg.jit(lambda x: np.unravel_index(np.argmax(x), x.shape))(np.eye(2)[::-1]))
        -> (np.int64(0), np.int64(1))
    """
    place = as_value(indices, "unravel_index")
    if not isinstance(place, Tracer):
        return np.unravel_index(place, shape, order)
    if place.dtype.kind not in "iu":
        raise TypeError(f"unravel_index: places are integers, got {place.aval}.")
    lengths = [int(n) for n in np.atleast_1d(shape)]
    size = int(np.prod(lengths, dtype=np.int64))
    message = f"unravel_index: {{}} is out of bounds for an array of size {size}."
    place = clip(demanded_places(place, 0, size - 1, message), 0, size - 1)
    found = []
    for n in reversed(lengths) if order == "C" else lengths:
        found.append(e.remainder(place, n))
        place = e.floor_divide(place, n)
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C", *, dtype: Any = None
) -> Any:
    """Indices of the flattened array from an index of each axis, as `numpy.ravel_multi_index`.

    Args:
        multi_index: One array of integers per axis.
        dims: Lengths of the axes.
        mode: What becomes of indices that are none: ``"raise"``, ``"clip"`` or ``"wrap"``, one for
            all axes or one for each.
        order: ``"C"`` or ``"F"``: the axis that counts fastest is the last or the first.
        dtype: Dtype of the result, by default int64.
    Example: print(fg.numpy.ravel_multi_index(([0, 1], [2, 1]), (2, 3))) -> [2 4]
    """
    wanted = np.dtype(np.int64) if dtype is None else checked_dtype(dtype, "ravel_multi_index")
    indices = [as_value(i, "ravel_multi_index") for i in multi_index]
    lengths = [int(n) for n in np.atleast_1d(dims)]
    modes = [mode] * len(lengths) if isinstance(mode, str) else list(mode)
    for kind in modes:
        if kind not in ("raise", "clip", "wrap"):
            raise ValueError(f"mode must be 'raise', 'clip' or 'wrap', got {kind!r}.")
    rows = zip(indices, lengths, modes, strict=True)
    places = [index_within(*row) for row in rows]
    if not any(isinstance(i, Tracer) for i in indices):
        return np.ravel_multi_index(tuple(places), tuple(lengths), order=order).astype(wanted)
    number: Any = np.int64(0)
    axes = range(len(lengths))
    for axis in axes if order == "C" else reversed(axes):
        place, n = places[axis], lengths[axis]
        if modes[axis] == "raise":
            message = f"ravel_multi_index: {{}} is no index of axis {axis}, which has length {n}."
            place = demanded_places(place, 0, n - 1, message)
        number = e.add(e.multiply(number, n), place)
    return to_dtype(number, wanted)


tril_indices, triu_indices = np.tril_indices, np.triu_indices


def part(x: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    """``x[start:stop:step]`` along one axis, non-negative."""
    return getitem(x, (*(slice(None),) * axis, slice(start, stop, step)))


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Elements chosen from several arrays by index, as `numpy.choose`.

    Args: choices: Arrays to choose from.

    Example:
        >>> fg.numpy.choose(
        ...     np.array([0, 1, 0]), [np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])]
        ... )
        array([ 1., 20.,  3.])
    """
    refuse_out(out, "choose")
    values = promote(*[as_value(c, "choose") for c in choices])
    index, *rows = shaping.broadcast_arrays(as_value(a, "choose"), *values)
    index = p.convert(index, INT64) if aval_of(index).dtype == BOOL else index
    return getitem_along(stack(rows), shaping.reshape(index, (1, *shape_of(index))), 0, mode)[0]


def _resolved(index: Any, n: int, mode: str, function: str) -> tuple[Any, str]:
    """Integer indices, and the mode in which to read with them.

    Indices must lie inside, unless ``mode`` says otherwise. By JAX's rule (`index_rule`) traced
    ones are counted from the end if negative and clamped to the array.
    """
    index = strong(as_value(index, function))
    if aval_of(index).dtype.kind not in "iu":
        raise IndexError(f"{function}: indices must be integers, got {aval_of(index)}.")
    if mode in ("clip", "wrap"):
        return index, mode
    if mode != "raise":
        raise ValueError(f"{function}: mode must be 'raise', 'clip' or 'wrap', got {mode!r}.")
    if not (isinstance(index, Tracer) and INDEX_RULE.clamps):
        return index, "raise"
    index = as_index(index)
    is_negative = p.less.bind(index, np.int64(0))
    return p.select.bind(is_negative, p.add.bind(index, np.int64(n)), index), "clip"


def getitem_along(x: Any, index: Any, axis: int, mode: str = "raise") -> Any:
    """``x`` at ``index`` along ``axis``, element by element in the other axes."""
    index, reading = _resolved(index, shape_of(x)[axis], mode, "take_along_axis")
    return gather_along_axis(x, index, axis, reading)


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Any:
    """Elements at indices along an axis, an index for each place, as `numpy.take_along_axis`.

    Args:
        indices: Integers; its other axes broadcast with those of ``arr``.
        axis: The axis, or None for one line.
        mode: What becomes of places that are none: ``"clip"``, ``"wrap"``, ``"fill"``. By default
            they raise.
        fill_value: What ``"fill"`` reads there; by default nan, or an extreme integer.
        wrap_negative_indices: Whether negative places count from the end. Otherwise they are none.
    Raises: OutOfBoundsError: If a place is none, without ``mode``.

    Example:
        >>> fg.numpy.take_along_axis(
        ...     np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [0]]), axis=1
        ... )
        array([[2.],
               [3.]])
    """
    x, index = strong(as_value(arr, "take_along_axis")), as_value(indices, "take_along_axis")
    if axis is None:
        if len(shape_of(index)) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        x, axis = shaping.ravel(x), 0
    if len(shape_of(index)) != len(shape_of(x)):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = normalize_axis(axis, len(shape_of(x)), "take_along_axis")
    if not wrap_negative_indices:
        # Indices that count from the end are replaced by one that is out of bounds.
        index = where(e.less(index, 0), shape_of(x)[axis], as_index(index))
    mode = mode or ("raise" if fill_value is None else "fill")
    if mode in ("raise", "clip", "wrap"):
        return getitem_along(x, index, axis, mode)
    if mode == "promise_in_bounds":
        return getitem_along(x, index, axis)
    if mode != "fill":
        raise ValueError(
            f"take_along_axis: mode must be 'raise', 'clip', 'wrap' or 'fill', got {mode!r}."
        )
    return gather_along_axis(x, strong(index), axis, "fill", fill_value)


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = "raise",
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Elements at indices along an axis.

    As `numpy.take`. Traced indices out of bounds raise, too, as in ``x[index]``.

    ``mode="fill"`` reads ``fill_value`` there, by default nan or an extreme integer;
    ``unique_indices`` and ``indices_are_sorted`` are promises that are not needed.

    Args:
        indices: Indices along the axis.
        axis: The axis, counted from the end if negative. By default the array is flattened.
        unique_indices: Accepted for JAX's signature; without effect.
        indices_are_sorted: Accepted for JAX's signature; without effect.
    Example: fg.numpy.take(np.array([1.0, 4.0, 9.0]), np.array([2, 0])) -> array([9., 1.])
    """
    refuse_out(out, "take")
    x = strong(as_value(a, "take"))
    if axis is None:
        x, axis = shaping.ravel(x), 0
    axis = normalize_axis(axis, len(shape_of(x)), "take")
    index = strong(as_value(indices, "take"))
    place = (*(slice(None),) * axis, index)
    if mode in ("clip", "wrap"):
        return at(x)[place].get(mode=mode, wrap_negative_indices=False)
    if mode == "fill" or (mode is None and fill_value is not None):
        return at(x)[place].get(mode="fill", fill_value=fill_value)
    if mode not in ("raise", "promise_in_bounds", None):
        raise ValueError(f"take: mode must be 'raise', 'clip', 'wrap' or 'fill', got {mode!r}.")
    return indexed(x, place)


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """Slices along an axis where a condition holds.

    As `numpy.compress`; a condition that is traced needs ``size``.

    Args:
        condition: Truth values of places along the axis; those that it does not reach are left.
        axis: The axis; by default ``a`` is one line.
        size: How many places to return, of any condition.
        fill_value: What places hold that are missing.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> x = fnp.arange(4.0)
        >>> print(fg.jit(lambda x: fnp.compress(x > 1, x, size=3, fill_value=-1))(x))
        [ 2.  3. -1.]
    """
    refuse_out(out, "compress")
    x = strong(as_value(a, "compress"))
    if axis is None:
        x, axis = shaping.ravel(x), 0
    axis = normalize_axis(axis, len(shape_of(x)), "compress")
    mask = truth_of(condition, "compress")
    if size is not None:
        n = shape_of(x)[axis]
        (places,) = nonzero(shaping.ravel(mask), size=size, fill_value=n)
        rest = (1,) * (len(shape_of(x)) - axis - 1)
        places = shaping.reshape(places, (*(1,) * axis, size, *rest))
        return take_along_axis(x, places, axis, mode="fill", fill_value=fill_value)
    if isinstance(mask, Tracer):
        return getitem(x, (*(slice(None),) * axis, mask))
    return getitem(x, (*(slice(None),) * axis, np.flatnonzero(mask)))


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """Elements where a condition holds.

    As `numpy.extract`; a condition that is traced needs ``size``, see `compress`.

    Args: condition: Mask of the elements to select.
    Example: fg.numpy.extract(np.array([True, False, True]), np.array([1.0, 2.0, 3.0]))
        -> array([1., 3.])
    """
    return compress(shaping.ravel(condition), shaping.ravel(arr), size=size, fill_value=fill_value)


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Any:
    """An array without some of its slices along an axis.

    As `numpy.delete`, at known places or at one traced place.

    With ``assume_unique_indices``, which promises that no place is named twice, at any number of
    traced places.

    Args:
        axis: The axis, counted from the end if negative. By default the array is flattened.
        assume_unique_indices: Accepted for JAX's signature; without effect.
    Example: fg.numpy.delete(np.arange(4.0), 1) -> array([0., 2., 3.])
    """
    x = strong(as_value(arr, "delete"))
    if axis is None:
        x, axis = shaping.ravel(x), 0
    axis = normalize_axis(axis, len(shape_of(x)), "delete")
    n = shape_of(x)[axis]
    traced = _traced_places(obj, "delete")
    if traced is None:
        kept = np.delete(np.arange(n), obj)
    elif traced.size == 1 and n:
        kept = np.arange(n - 1)
        place = _counted_from_start(shaping.ravel(traced), n, n - 1, "delete")
        kept = where(e.greater_equal(kept, place), kept + 1, kept)
    elif assume_unique_indices and traced.size <= n:
        places = _counted_from_start(shaping.ravel(traced), n, n - 1, "delete")
        is_kept = e.logical_not(isin(np.arange(n), places))
        (kept,) = nonzero(is_kept, size=n - traced.size)
    else:
        raise ConcretizationTypeError(
            f"the length of delete's result depends on how many places a traced {traced.aval} "
            "names: delete one at a time, promise with assume_unique_indices=True that they are "
            "all different, or keep the shape with np.where."
        )
    return getitem(x, (*(slice(None),) * axis, kept))


def _traced_places(obj: Any, function: str) -> Any:
    """Places in an array that are traced integers, ``None`` for known ones."""
    if isinstance(obj, slice):
        return None
    places = as_value(obj, function)
    if not isinstance(places, Tracer):
        return None
    if places.dtype.kind not in "iu":
        raise ConcretizationTypeError(
            f"{function} needs integers as places if they are traced, got a traced {places.aval}. "
            "A mask would decide the length of the result; keep the shape with np.where."
        )
    return as_index(places)


def _counted_from_start(places: Any, n: int, last: int, function: str) -> Any:
    """Traced places between 0 and ``last``, negative ones counted from the end of ``n``."""
    message = f"{function}: place {{}} is out of bounds for an axis of length {n}."
    places = demanded_places(places, -n, last, message, OutOfBoundsError)
    return clip(where(places < 0, places + n, places), 0, last)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values inserted along an axis.

    As `numpy.insert`; places may be traced.

    Args: axis: The axis, counted from the end if negative. By default the array is flattened.
    Example: print(fg.numpy.insert(np.array([1.0, 2.0]), 1, 5.0)) -> [1. 5. 2.]
    """
    x = strong(as_value(arr, "insert"))
    if axis is None:
        x, axis = shaping.ravel(x), 0
    shape = shape_of(x)
    axis = normalize_axis(axis, len(shape), "insert")
    added = to_dtype(as_value(values, "insert"), aval_of(x).dtype)
    added = shaping.reshape(added, (1,) * (len(shape) - len(shape_of(added))) + shape_of(added))
    n = shape[axis]
    traced = _traced_places(obj, "insert")
    places = traced if traced is not None else obj
    if not isinstance(places, slice) and not np.ndim(places):
        added = shaping.moveaxis(added, 0, axis)
    places = np.arange(n)[places] if isinstance(places, slice) else shaping.atleast_1d(places)
    count = shape_of(added)[axis] if len(places) == 1 else len(places)
    if traced is None:
        order = np.insert(np.arange(n), obj, n + np.arange(count))
    else:
        # New elements stand before old ones of their place, and in their own order.
        new = shaping.broadcast_to(_counted_from_start(places, n, n, "insert"), (count,))
        ranks = ArgSort(0, True).bind(concatenate([new, np.arange(n)]))
        order = (ranks + n) % (n + count)
    added = shaping.broadcast_to(added, (*shape[:axis], count, *shape[axis + 1 :]))
    return getitem(concatenate([x, added], axis), (*(slice(None),) * axis, order))


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Elements repeated along an axis, as `numpy.repeat`.

    Args:
        repeats: How often to take every element, one number for all or one for each. They must be
            known, unless ``total_repeat_length`` is given.
        axis: The axis to repeat along; ``None`` for the flattened array.
        total_repeat_length: Length of the result along ``axis``: cut there, or filled up with the
            last element.
    Example: fg.numpy.repeat(np.array([1.0, 2.0]), 2) -> array([1., 1., 2., 2.])
    """
    check_placement("repeat", out_sharding=out_sharding)
    x = strong(as_value(a, "repeat"))
    if axis is None or not shape_of(x):
        x, axis = shaping.ravel(x), axis or 0
    axis = normalize_axis(axis, len(shape_of(x)), "repeat")
    shape = shape_of(x)
    if total_repeat_length is not None:
        index = _repeated_places(repeats, shape[axis], total_repeat_length)
        return getitem(x, (*(slice(None),) * axis, index))
    if isinstance(repeats, Tracer):
        raise ConcretizationTypeError(
            message(
                repeats,
                "the length of the result of repeat depends on values, but `repeats` is",
                "Fix the length: funcgrad.numpy.repeat(x, repeats, total_repeat_length=n); NumPy's "
                "function does not take it.",
            )
        )
    counts = np.asarray(repeats)
    if counts.size != 1:
        index = np.repeat(np.arange(shape[axis]), counts)
        return getitem(x, (*(slice(None),) * axis, index))
    times = int(counts.reshape(()))
    if times < 0:
        raise ValueError("repeats may not contain negative values.")
    before, after = shape[: axis + 1], shape[axis + 1 :]
    wide = s.broadcast_to(shaping.reshape(x, (*before, 1, *after)), (*before, times, *after))
    return shaping.reshape(wide, (*shape[:axis], shape[axis] * times, *after))


def _repeated_places(repeats: Any, n: int, total: int) -> Any:
    """Index of the element, of ``n``, that stands at each of ``total`` places."""
    ends = cumsum(shaping.broadcast_to(as_value(repeats, "repeat"), (n,)))
    return e.minimum(searchsorted(ends, np.arange(total), "right"), n - 1)


def resize(a: Any, new_shape: Any) -> Any:
    """Elements repeated to fill a shape.

    As `numpy.resize`: repeated copies under another shape.

    Args: new_shape: Shape of the result; elements are repeated or left out.
    Example: fg.numpy.resize(np.array([1.0, 2.0]), (3,)) -> array([1., 2., 1.])
    """
    x = shaping.ravel(strong(as_value(a, "resize")))
    shape = (new_shape,) if isinstance(new_shape, int | np.integer) else tuple(new_shape)
    size, own = int(np.prod(shape, dtype=np.int64)), aval_of(x).size
    if not size or not own:
        return zeros(shape, aval_of(x).dtype)
    return shaping.reshape(part(tile(x, -(-size // own)), 0, 0, size), shape)


def block(arrays: Any) -> Any:
    """An array joined from nested lists of blocks, as `numpy.block`.

    Example: fg.numpy.block([[np.eye(2), np.zeros((2, 1))]])
        -> array([[1., 0., 0.],
                  [0., 1., 0.]])
    """

    def depth(rows: Any) -> int:
        return 1 + depth(rows[0]) if isinstance(rows, list) else 0

    def ndim(rows: Any) -> int:
        if isinstance(rows, list):
            return builtins.max(map(ndim, rows))
        return len(shape_of(as_value(rows, "block")))

    levels = depth(arrays)
    rank = builtins.max(levels, ndim(arrays))

    def joined(rows: Any, level: int) -> Any:
        if not isinstance(rows, list):
            x = strong(as_value(rows, "block"))
            return shaping.reshape(x, (*(1,) * (rank - len(shape_of(x))), *shape_of(x)))
        return concatenate([joined(r, level - 1) for r in rows], rank - level)

    return joined(arrays, levels)


def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Indices of the lower triangle of a matrix, as `numpy.tril_indices_from`.

    Example: fg.numpy.tril_indices_from(np.ones((2, 2))) -> (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = shape_of(as_value(arr))
    return np.tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Indices of the upper triangle of a matrix, as `numpy.triu_indices_from`.

    Example: fg.numpy.triu_indices_from(np.ones((2, 2))) -> (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = shape_of(as_value(arr))
    return np.triu_indices(rows, k, columns)
