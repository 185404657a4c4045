"""Functions that make, move, repeat and join elements."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.base.defaults import only_defaults
from funcgrad.base.dialect import dialect
from funcgrad.base.placement import check_placement
from funcgrad.base.signatures import explain
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import INT64, PYTHON_SCALARS, float0, is_complex, real_dtype
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.numpy.meanings import MEANINGS
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axes,
    normalize_axis,
    promote,
    strong,
    to_dtype,
)
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.bits import Bitcast
from funcgrad.primitives.creation import Full, Iota
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.objects import HoldsArray, settled
from funcgrad.primitives.shape import shape_of

__all__ = [
    "append", "arange", "array", "array_split", "asarray", "astype", "atleast_1d", "atleast_2d",
    "atleast_3d", "broadcast_arrays", "broadcast_to", "column_stack", "concat", "concatenate",
    "dstack", "empty", "empty_like", "expand_dims", "eye", "flip", "fliplr", "flipud", "full",
    "full_like", "hsplit", "hstack", "identity", "linspace", "matrix_transpose", "meshgrid",
    "moveaxis", "ones", "ones_like", "permute_dims", "ravel", "reshape", "roll", "rollaxis",
    "rot90", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "tri", "tril",
    "triu", "unstack", "vsplit", "vstack", "zeros", "zeros_like",
]  # fmt: skip


def _ints(shape: Any) -> tuple[int, ...]:
    """A shape from an int or a sequence of ints."""
    if isinstance(shape, tuple | list | np.ndarray):
        return tuple(int(n.__index__()) for n in shape)
    return (int(shape.__index__()),)


def array(
    object: Any,
    dtype: Any = None,
    copy: bool = True,
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An array made from numbers or nested sequences.

    As `numpy.array`; traced values, also inside lists, stay traced.

    Args:
        object: Array, number, nested sequence, or traced value.
        ndmin: Least number of axes of the result.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.array([1.0, 2.0])
        array([1., 2.])
    """
    if device is not None or out_sharding is not None:
        check_placement("array", device=device, out_sharding=out_sharding)
    x = as_value(object, "array")
    if isinstance(x, Tracer):
        x = strong(x) if dtype is None else p.convert(x, checked_dtype(dtype, "array"))
    else:
        x = np.array(x, dtype)
        aval_of(x)
    missing = ndmin - len(shape_of(x))
    return s.reshape(x, (*(1,) * missing, *shape_of(x))) if missing > 0 else x


def asarray(
    a: Any,
    dtype: Any = None,
    copy: bool | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An array made from what is given.

    As `numpy.asarray`; traced values stay traced.

    Raises:
        ValueError: If ``copy`` is false and there is no array of that dtype yet.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.asarray([1.0, 2.0])
        array([1., 2.])
    """
    if device is not None or out_sharding is not None:
        check_placement("asarray", device=device, out_sharding=out_sharding)
    x = as_value(a, "asarray")
    if isinstance(x, Tracer):
        return x if dtype is None else p.convert(x, checked_dtype(dtype, "asarray"))
    found = np.array(x, dtype) if copy else np.asarray(x, dtype)
    if copy is False and found is not a:
        raise ValueError("asarray(copy=False): what is given is no array of that dtype.")
    aval_of(found)
    return found


def astype(x: Any, dtype: Any, copy: bool = False, *, device: Any = None) -> Any:
    """``x`` converted to ``dtype``; complex to real drops the imaginary part.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.astype(np.array([1.7, -1.7]), np.int64)
        array([ 1, -1])
    """
    check_placement("astype", device=device)
    if isinstance(x, HoldsArray):
        return x.astype(dtype)
    x, target = as_value(x, "astype"), checked_dtype(dtype, "astype")
    found = p.Convert(target).bind(x) if type(x) in PYTHON_SCALARS else p.convert(x, target)
    if (rule := dialect().converted) is not None and isinstance(found, Tracer):
        found = rule(found, np.dtype(dtype))
    return found.copy() if copy and found is x and isinstance(x, np.ndarray) else found


def full(
    shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Array filled with a value.

    As `numpy.full`; the fill value may be traced.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.full((2,), 7.0)
        array([7., 7.])
    """
    check_placement("full", device=device, out_sharding=out_sharding)
    shape, fill = _ints(shape), as_value(fill_value, "full")
    fill = strong(fill) if dtype is None else to_dtype(fill, checked_dtype(dtype, "full"))
    fill = fill[()] if isinstance(fill, np.ndarray) and fill.ndim == 0 else fill
    if shape_of(fill):
        return s.broadcast_to(fill, shape)
    return Full(shape).bind(fill)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of zeros, as `numpy.zeros`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.zeros((2, 3))
        array([[0., 0., 0.],
               [0., 0., 0.]])
    """
    check_placement("zeros", device=device, out_sharding=out_sharding)
    if dtype == float0:  # what has no tangents has these
        return np.zeros(_ints(shape), float0)
    return full(shape, 0, np.float64 if dtype is None else dtype)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of ones, as `numpy.ones`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.ones((2, 3))
        array([[1., 1., 1.],
               [1., 1., 1.]])
    """
    check_placement("ones", device=device, out_sharding=out_sharding)
    return full(shape, 1, np.float64 if dtype is None else dtype)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of a shape; here its elements are zero.

    As `numpy.zeros`: a pure function has no arbitrary contents.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.empty((2, 3)).shape
        (2, 3)
    """
    check_placement("empty", device=device, out_sharding=out_sharding)
    return zeros(shape, dtype)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Array of the shape of another one, filled with a value, as `numpy.full_like`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.full_like(np.ones(2), 7.0)
        array([7., 7.])
    """
    check_placement("full_like", device=device, out_sharding=out_sharding)
    aval = aval_of(as_value(a, "full_like"))
    return full(aval.shape if shape is None else shape, fill_value, dtype or aval.dtype)


def zeros_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Array of zeros, of the shape and dtype of another one, as `numpy.zeros_like`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.zeros_like([1.0, 2.0])
        array([0., 0.])
    """
    return full_like(a, 0, dtype, shape, device=device, out_sharding=out_sharding)


def ones_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Array of ones, of the shape and dtype of another one, as `numpy.ones_like`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.ones_like([1.0, 2.0])
        array([1., 1.])
    """
    return full_like(a, 1, dtype, shape, device=device, out_sharding=out_sharding)


def empty_like(
    prototype: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Array of the shape and dtype of another one; here its elements are zero.

    As `numpy.zeros_like`: a pure function has no arbitrary contents.

    Args:
        prototype: Array whose shape and dtype are used.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.empty_like(np.ones(2)).shape
        (2,)
    """
    return zeros_like(prototype, dtype, shape, device=device, out_sharding=out_sharding)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Numbers at equal distances, the end excluded.

    As `numpy.arange`, with known bounds.

    Args:
        step: Distance between neighbouring values.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.arange(0.0, 1.0, 0.25)
        array([0.  , 0.25, 0.5 , 0.75])
    """
    check_placement("arange", device=device, out_sharding=out_sharding)
    start, stop, step = (v.__index__() if isinstance(v, Tracer) else v for v in (start, stop, step))
    for bound in (start, stop, step):
        if bound is not None and is_complex(aval_of(bound).dtype):
            raise DtypeError(
                f"arange: complex numbers have no order, got {bound}. Use dtype=complex for a "
                "complex result."
            )
    stop_, start_ = (start, 0) if stop is None else (stop, start)
    if dtype is None and all(type(v) is int for v in (start_, stop_, step or 1)):
        dtype = np.int64
    if dtype is not None and start_ == 0 and step in (None, 1) and type(stop_) is int:
        return Iota((max(stop_, 0),), 0, checked_dtype(dtype, "arange")).bind()
    values = np.arange(start_, stop_, step, dtype=dtype)
    aval_of(values)
    return values


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Numbers at equal distances, with given ends.

    As `numpy.linspace`; the bounds may be traced.

    Args:
        retstep: Whether to return the step, too.
        axis: The axis, counted from the end if negative.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.linspace(0.0, 1.0, 5)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    check_placement("linspace", device=device)
    start, stop = (strong(v) for v in promote(*map(as_value, (start, stop)), 0.0)[:2])
    ends = p.add.bind(start, p.mul.bind(stop, aval_of(stop).dtype.type(0)))
    wanted = aval_of(ends).dtype
    divisions = max(num - 1 if endpoint else num, 1)
    places = np.arange(num).reshape((num, *(1,) * len(shape_of(ends))))
    counts = places.astype(wanted)
    span = p.sub.bind(stop, start)
    step = p.div.bind(span, wanted.type(divisions))
    # As NumPy: multiples of the step, and parts of the span where the step vanishes.
    vanishes = p.equal.bind(step, wanted.type(0))
    parts = p.mul.bind(counts / wanted.type(divisions), span)
    line = p.add.bind(p.select.bind(vanishes, parts, p.mul.bind(counts, step)), start)
    if endpoint and num > 1:
        line = p.select.bind(places == num - 1, stop, line)
    line = s.moveaxis_from_front(line, normalize_axis(axis, len(shape_of(line)), "linspace"))
    if dtype is not None:
        is_whole = checked_dtype(dtype, "linspace").kind in "iu"
        line = astype(p.floor.bind(line) if is_whole else line, dtype)
    return (line, step) if retstep else line


def _diagonals(rows: int, columns: int) -> np.ndarray:
    """The number of the diagonal on which every element of a matrix lies."""
    return np.arange(columns)[None, :] - np.arange(rows)[:, None]


def traced_integer(k: Any, function: str) -> Any:
    """A number of a diagonal, a distance or a count as a traced int64, or None if it is known."""
    k = settled(k)
    if not isinstance(k, Tracer):
        return None
    if k.dtype.kind not in "iu" or k.shape:
        raise ArgumentError(
            f"{function} needs an integer, got a traced {k.aval} inside {k.owner.what}. Convert it "
            "with .astype(int)."
        )
    return p.convert(k, INT64)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """Matrix with ones on a diagonal and zeros elsewhere.

    As `numpy.eye`; ``k`` may be traced.

    Args:
        M: Number of points; of matrices, of columns.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.eye(3)
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
    """
    check_placement("eye", device=device)
    wanted = checked_dtype(dtype or np.float64, "eye")
    diagonal = traced_integer(k, "eye")
    if diagonal is None:
        return np.eye(N, M, k, dtype=wanted)
    (rows,), (columns,) = _ints(N), _ints(N if M is None else M)
    return p.convert(p.equal.bind(_diagonals(rows, columns), diagonal), wanted)


def identity(n: int, dtype: Any = None) -> Any:
    """Identity matrix, as `numpy.identity`.

    Args:
        n: Number of rows.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.identity(3)
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Matrix with ones at and below a diagonal.

    As `numpy.tri`; ``k`` may be traced.

    Args:
        M: Number of points; of matrices, of columns.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.tri(3)
        array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]])
    """
    (rows,), (columns,) = _ints(N), _ints(N if M is None else M)
    wanted = checked_dtype(dtype or np.float64, "tri")
    return p.convert(_triangle(rows, columns, k, "tri"), wanted)


def _masked(x: Any, mask: Any) -> Any:
    x = strong(as_value(x))
    return p.select.bind(mask, x, aval_of(x).dtype.type(0))


def _triangle(rows: int, columns: int, k: Any, function: str) -> Any:
    """Mask of the entries on or below the diagonal ``k``."""
    diagonal = traced_integer(k, function)
    if diagonal is None:
        return np.tri(rows, columns, int(k.__index__()), dtype=np.bool_)
    return p.less_equal.bind(_diagonals(rows, columns), diagonal)


def _matrices(m: Any, name: str) -> tuple[Any, int, int]:
    """Matrices and the lengths of their axes; a single line is each of its own length."""
    m = as_value(m, name)
    shape = shape_of(m)
    if not shape:
        raise ShapeError(f"{name} needs at least one axis, got {aval_of(m)}.")
    rows, columns = shape[-2:] if len(shape) > 1 else shape * 2
    return m if len(shape) > 1 else broadcast_to(m, (rows, columns)), rows, columns


def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle, as `numpy.tril`; ``k`` may be traced.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.tril(np.ones((3, 3)))
        array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]])
    """
    m, rows, columns = _matrices(m, "tril")
    return _masked(m, _triangle(rows, columns, k, "tril"))


def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle, as `numpy.triu`; ``k`` may be traced.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.triu(np.ones((3, 3)))
        array([[1., 1., 1.],
               [0., 1., 1.],
               [0., 0., 1.]])
    """
    m, rows, columns = _matrices(m, "triu")
    diagonal = traced_integer(k, "triu")
    if diagonal is None:
        return _masked(m, ~np.tri(rows, columns, int(k.__index__()) - 1, dtype=np.bool_))
    return _masked(m, p.greater_equal.bind(_diagonals(rows, columns), diagonal))


def reshape(
    a: Any,
    shape: Any = None,
    order: str = "C",
    *,
    newshape: Any = None,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Any:
    """Elements in another shape.

    As `numpy.reshape`, in the orders ``"C"`` and ``"F"``; one length may be -1.

    With ``copy=True`` the result shares no memory with an ndarray.

    Args:
        order: ``"C"`` or ``"F"``: the order in which elements are read.
        newshape: Old name of ``shape``.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.reshape(np.arange(6.0), (2, 3))
        array([[0., 1., 2.],
               [3., 4., 5.]])
    """
    check_placement("reshape", out_sharding=out_sharding)
    if order != "C":
        return _reshape_by_columns(a, _ints(newshape if shape is None else shape), order)
    a = as_value(a, "reshape")
    shape = _ints(newshape if shape is None else shape)
    size = aval_of(a).size
    if -1 in shape:
        known = int(np.prod([n for n in shape if n != -1], dtype=np.int64))
        if shape.count(-1) > 1 or not known or size % known:
            raise ShapeError(
                f"reshape: {aval_of(a)} with {size} elements does not fit shape {shape}."
            )
        shape = tuple(size // known if n == -1 else n for n in shape)
    found = s.reshape(a, shape)
    if copy is None or not isinstance(found, np.ndarray):
        return found
    if not copy and not np.shares_memory(found, a):
        raise ValueError("reshape(copy=False): this shape needs a copy of the array.")
    return found.copy() if copy else found


def _reshape_by_columns(a: Any, shape: tuple[int, ...], order: str) -> Any:
    """With the first axis counting fastest: the transpose of the transpose, reshaped."""
    if order != "F":
        raise ShapeError(
            f"reshape: order={order!r} is that of an array's memory, which traced arrays have not: "
            "give 'C' or 'F'."
        )
    return transpose(reshape(transpose(a), shape[::-1]))


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """Elements as a vector.

    As `numpy.ravel`, in the orders ``"C"`` and ``"F"``.

    Args:
        order: ``"C"`` or ``"F"``: the order in which elements are read.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.ravel(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([1., 2., 3., 4.])
    """
    check_placement("ravel", out_sharding=out_sharding)
    return reshape(a, (-1,) if aval_of(as_value(a)).size else (0,), order)


def transpose(a: Any, axes: Any = None) -> Any:
    """An array with its axes in another order, reversed by default, as `numpy.transpose`.

    Args:
        axes: Axes, as integers.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.transpose(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[1., 3.],
               [2., 4.]])
    """
    a = as_value(a, "transpose")
    ndim = len(shape_of(a))
    if axes is None:
        order = tuple(reversed(range(ndim)))
    else:
        order = tuple(normalize_axis(i, ndim, "transpose") for i in np.atleast_1d(axes))
    return a if order == tuple(range(ndim)) else s.Transpose(order).bind(a)


permute_dims = transpose


def matrix_transpose(x: Any) -> Any:
    """The last two axes exchanged.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.matrix_transpose(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[1., 3.],
               [2., 4.]])
    """
    return swapaxes(x, -1, -2)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An array with an axis moved back to a position.

    As `numpy.rollaxis`: move an axis to before another.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.rollaxis(np.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    ndim = len(shape_of(as_value(a, "rollaxis")))
    axis = normalize_axis(axis, ndim, "rollaxis")
    start = ndim if start == ndim else normalize_axis(start, ndim, "rollaxis")
    return moveaxis(a, axis, start - 1 if axis < start else start)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """An array with two axes exchanged, as `numpy.swapaxes`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.swapaxes(np.array([[1.0, 2.0], [3.0, 4.0]]), 0, 1)
        array([[1., 3.],
               [2., 4.]])
    """
    a = as_value(a, "swapaxes")
    ndim = len(shape_of(a))
    i, j = normalize_axis(axis1, ndim, "swapaxes"), normalize_axis(axis2, ndim, "swapaxes")
    order = list(range(ndim))
    order[i], order[j] = j, i
    return transpose(a, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """An array with axes in other positions, as `numpy.moveaxis`.

    Args:
        source: Axes that move.
        destination: New positions of these axes.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    a = as_value(a, "moveaxis")
    ndim = len(shape_of(a))
    pairs = zip(np.atleast_1d(destination), np.atleast_1d(source), strict=True)
    placed = {
        normalize_axis(int(d), ndim, "moveaxis"): normalize_axis(int(o), ndim, "moveaxis")
        for d, o in pairs
    }
    rest = iter(i for i in range(ndim) if i not in placed.values())
    return transpose(a, [placed[i] if i in placed else next(rest) for i in range(ndim)])


def expand_dims(a: Any, axis: Any) -> Any:
    """An array with further axes of length 1, as `numpy.expand_dims`.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.expand_dims(np.array([1.0, 2.0]), 0)
        array([[1., 2.]])
    """
    a = as_value(a, "expand_dims")
    count = len(axis) if isinstance(axis, tuple | list) else 1
    axes = normalize_axes(axis, len(shape_of(a)) + count, "expand_dims")
    rest = iter(shape_of(a))
    shape = tuple(1 if i in axes else next(rest) for i in range(len(shape_of(a)) + count))
    return s.reshape(a, shape)


def squeeze(a: Any, axis: Any = None) -> Any:
    """An array without axes of length 1, as `numpy.squeeze`.

    Args:
        axis: Axis, or tuple of axes, to remove; by default all of length 1.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.squeeze(np.ones((1, 2)))
        array([1., 1.])
    """
    a = as_value(a, "squeeze")
    shape = shape_of(a)
    if axis is None:
        axes = tuple(i for i, n in enumerate(shape) if n == 1)
    else:
        axes = normalize_axes(axis, len(shape), "squeeze")
    if any(shape[i] != 1 for i in axes):
        raise ShapeError(
            f"squeeze: an axis of {aval_of(a)} among {axes} has a length other than 1."
        )
    return s.reshape(a, s.drop_axes(shape, axes))


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """An array broadcast to a shape, as `numpy.broadcast_to`.

    Args:
        array: Array, number or traced value.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.broadcast_to(np.array([1.0, 2.0]), (2, 2))
        array([[1., 2.],
               [1., 2.]])
    """
    check_placement("broadcast_to", out_sharding=out_sharding)
    return s.broadcast_to(strong(as_value(array, "broadcast_to")), _ints(shape))


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Arrays broadcast against each other, as `numpy.broadcast_arrays`.

    Args:
        *args: Operands: arrays, numbers or traced values. They broadcast.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.broadcast_arrays([1.0, 2.0], [3.0, 4.0])
        (array([1., 2.]), array([3., 4.]))
    """
    values = [strong(as_value(a)) for a in args]
    shape = np.broadcast_shapes(*map(shape_of, values))
    return tuple(s.broadcast_to(v, shape) for v in values)


def _at_least(*arrays: Any, shape: Any) -> Any:
    results = []
    for a in arrays:
        a = as_value(a)
        results.append(s.reshape(strong(a), shape(shape_of(a))))
    return results[0] if len(results) == 1 else results


def atleast_1d(*arrays: Any) -> Any:
    """Arrays with at least one axis, as `numpy.atleast_1d`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.atleast_1d([1.0, 2.0])
        array([1., 2.])
    """
    return _at_least(*arrays, shape=lambda n: n or (1,))


def atleast_2d(*arrays: Any) -> Any:
    """Arrays with at least two axes, as `numpy.atleast_2d`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.atleast_2d([1.0, 2.0])
        array([[1., 2.]])
    """
    return _at_least(*arrays, shape=lambda n: (1,) * (2 - len(n)) + n)


def atleast_3d(*arrays: Any) -> Any:
    """Arrays with at least three axes, as `numpy.atleast_3d`.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.atleast_3d([1.0, 2.0])
        array([[[1.],
                [2.]]])
    """
    table = {0: (1, 1, 1)}
    return _at_least(
        *arrays,
        shape=lambda n: (
            table.get(len(n)) or ((1, *n, 1) if len(n) == 1 else (*n, 1) if len(n) == 2 else n)
        ),
    )


def _rows(arrays: Any, function: str) -> list[Any]:
    values = [as_value(a, function) for a in arrays]
    if not values:
        raise ValueError(f"{function} needs at least one array.")
    return [strong(v) for v in promote(*values)]


def concatenate(arrays: Sequence[Any], axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays joined along an axis that they have, as `numpy.concatenate`.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.concatenate([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([1., 2., 3., 4.])
    """
    rows = _rows(arrays, "concatenate")
    if axis is None:
        rows, axis = [ravel(r) for r in rows], 0
    if dtype is not None:
        rows = [astype(r, dtype) for r in rows]
    index = normalize_axis(axis, len(shape_of(rows[0])), "concatenate")
    return s.Concatenate(index).bind(*rows)


concat = concatenate


def stack(arrays: Sequence[Any], axis: int = 0, dtype: Any = None) -> Any:
    """Arrays joined along a new axis, as `numpy.stack`.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([[1., 2.],
               [3., 4.]])
    """
    rows = _rows(arrays, "stack")
    shapes = {shape_of(r) for r in rows}
    if len(shapes) > 1:
        raise ShapeError(f"stack: all arrays must have one shape, got {sorted(shapes)}.")
    index = normalize_axis(axis, len(shape_of(rows[0])) + 1, "stack")
    return concatenate([expand_dims(r, index) for r in rows], index, dtype)


def vstack(tup: Sequence[Any], dtype: Any = None) -> Any:
    """Arrays joined along the first axis, vectors as rows, as `numpy.vstack`.

    Args:
        tup: Sequence of arrays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.vstack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([[1., 2.],
               [3., 4.]])
    """
    return concatenate([atleast_2d(a) for a in tup], 0, dtype)


def hstack(tup: Sequence[Any], dtype: Any = None) -> Any:
    """Arrays joined along the second axis, vectors along the first, as `numpy.hstack`.

    Args:
        tup: Sequence of arrays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.hstack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([1., 2., 3., 4.])
    """
    rows = [atleast_1d(a) for a in tup]
    return concatenate(rows, 0 if len(shape_of(rows[0])) == 1 else 1, dtype)


def dstack(tup: Sequence[Any], dtype: Any = None) -> Any:
    """Arrays joined along the third axis, as `numpy.dstack`.

    Args:
        tup: Sequence of arrays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.dstack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([[[1., 3.],
                [2., 4.]]])
    """
    return concatenate([atleast_3d(a) for a in tup], 2, dtype)


def column_stack(tup: Sequence[Any]) -> Any:
    """Vectors as the columns of a matrix, as `numpy.column_stack`.

    Args:
        tup: Sequence of arrays.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.column_stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([[1., 3.],
               [2., 4.]])
    """
    values = [strong(as_value(a)) for a in tup]
    return concatenate([atleast_2d(v).T if len(shape_of(v)) < 2 else v for v in values], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Arrays joined along an axis, as `numpy.append`.

    Args:
        arr: Array.
        values: Values to insert, append or put, with a matching shape.
        axis: The axis, counted from the end if negative. By default the array is flattened.

    Example:
        >>> import funcgrad as fg
        >>> fg.numpy.append([1.0, 2.0], [3.0, 4.0])
        array([1., 2., 3., 4.])
    """
    return concatenate([arr, values], axis)


def _cut(a: Any, axis: int, start: int, stop: int) -> Any:
    shape = shape_of(a)
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(stop if i == axis else n for i, n in enumerate(shape))
    return s.Slice(starts, limits, (1,) * len(shape)).bind(a)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts of an array, which need not be of equal length, as `numpy.array_split`.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.array_split(np.arange(6.0), 2)
        [array([0., 1., 2.]), array([3., 4., 5.])]
    """
    ary = as_value(ary, "array_split")
    index = normalize_axis(axis, len(shape_of(ary)), "array_split")
    n = shape_of(ary)[index]
    if not np.iterable(indices_or_sections):
        k = int(indices_or_sections)
        if k < 1:
            raise ValueError(f"array_split: the number of parts must be positive, got {k}.")
        sizes = [n // k + (i < n % k) for i in range(k)]
        bounds = [0, *np.cumsum(sizes).tolist()]
    else:
        inner = [min(max(int(i) + n if i < 0 else int(i), 0), n) for i in indices_or_sections]
        bounds = [0, *inner, n]
    pairs = pairwise(bounds)
    return [_cut(ary, index, a, max(a, b)) for a, b in pairs]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts of an array along an axis, as `numpy.split`.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.split(np.arange(6.0), 2)
        [array([0., 1., 2.]), array([3., 4., 5.])]
    """
    ary = as_value(ary, "split")
    n = shape_of(ary)[normalize_axis(axis, len(shape_of(ary)), "split")]
    if not np.iterable(indices_or_sections):
        k = int(indices_or_sections)
        if k < 1 or n % k:
            raise ValueError(
                f"split: an axis of length {n} has no {k} equal parts; use array_split for "
                "unequal ones."
            )
    return array_split(ary, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Equal parts of an array along the second axis, as `numpy.hsplit`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.hsplit(np.arange(6.0), 2)
        [array([0., 1., 2.]), array([3., 4., 5.])]
    """
    return split(ary, indices_or_sections, 0 if len(shape_of(as_value(ary))) == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Equal parts of an array along the first axis, as `numpy.vsplit`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.vsplit(np.arange(4.0).reshape(2, 2), 2)
        [array([[0., 1.]]), array([[2., 3.]])]
    """
    return split(ary, indices_or_sections, 0)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The subarrays along an axis, as a tuple.

    Args:
        axis: The axis, counted from the end if negative.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.unstack(np.array([[1.0, 2.0], [3.0, 4.0]]))
        (array([1., 2.]), array([3., 4.]))
    """
    x = as_value(x, "unstack")
    front = s.moveaxis_to_front(x, normalize_axis(axis, len(shape_of(x)), "unstack"))
    n, *rest = shape_of(front)
    return tuple(s.reshape(_cut(front, 0, i, i + 1), tuple(rest)) for i in range(n))


def flip(m: Any, axis: Any = None) -> Any:
    """Elements in reversed order along axes, as `numpy.flip`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.flip(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
        array([[3., 4.],
               [1., 2.]])
    """
    m = as_value(m, "flip")
    return s.Reverse(normalize_axes(axis, len(shape_of(m)), "flip")).bind(m)


def fliplr(m: Any) -> Any:
    """Elements in reversed order along the second axis, as `numpy.fliplr`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.fliplr(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[2., 1.],
               [4., 3.]])
    """
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """Elements in reversed order along the first axis, as `numpy.flipud`.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.flipud(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[3., 4.],
               [1., 2.]])
    """
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """An array rotated by multiples of 90 degrees.

    As `numpy.rot90`; for squares ``k`` may be traced.

    Args:
        axes: Axes, as integers.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.rot90(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[2., 4.],
               [1., 3.]])
    """
    turns = traced_integer(k, "rot90")
    if turns is not None:
        return _rotated(strong(as_value(m, "rot90")), turns, axes)
    i, j = axes
    k %= 4
    if k == 0:
        return as_value(m)
    if k == 2:
        return flip(m, (i, j))
    return swapaxes(flip(m, j), i, j) if k == 1 else flip(swapaxes(m, i, j), j)


def _rotated(m: Any, turns: Any, axes: tuple[int, int]) -> Any:
    """A square turned by a traced number of quarters."""
    lengths = {shape_of(m)[axis] for axis in axes}
    if len(lengths) > 1:
        raise ShapeError(
            f"rot90: by a traced number of quarters, the shape of {aval_of(m)} would depend on a "
            "value. Pass a known k, or a square."
        )
    quarter = p.remainder.bind(turns, np.int64(4))
    out = m
    for k in (1, 2, 3):
        out = p.select.bind(p.equal.bind(quarter, np.int64(k)), rot90(m, k, axes), out)
    return out


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements shifted along axes, those that leave at one end entering at the other.

    As `numpy.roll`; the distances may be traced.

    Args:
        a: Array, number or traced value.
        shift: Number of positions by which elements are shifted.
        axis: Axis, or tuple of axes, counted from the end if negative. By default elements move
            along the flattened array.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.roll(np.arange(4.0), 1)
        array([3., 0., 1., 2.])
    """
    a = as_value(a, "roll")
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), shape_of(a))
    shift = as_value(shift, "roll")
    if isinstance(shift, Tracer):
        return _rolled(a, shift, np.atleast_1d(axis))
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    for distance, ax in zip(shifts.tolist(), axes.tolist(), strict=True):
        index = normalize_axis(ax, len(shape_of(a)), "roll")
        n = shape_of(a)[index]
        k = distance % n if n else 0
        if k:
            a = concatenate([_cut(a, index, n - k, n), _cut(a, index, 0, n - k)], index)
    return a


def _rolled(a: Any, shift: Tracer, axes: np.ndarray) -> Any:
    """``a`` moved by traced distances."""
    if shift.dtype.kind not in "iu":
        raise ArgumentError(f"roll needs integer distances, got {shift.aval}: use .astype(int).")
    (count,) = np.broadcast_shapes(atleast_1d(shift).shape, axes.shape)
    distances = s.broadcast_to(p.convert(strong(shift), INT64), (count,))
    for i, axis in enumerate(np.broadcast_to(axes, (count,)).tolist()):
        index = normalize_axis(axis, len(shape_of(a)), "roll")
        n = shape_of(a)[index]
        if n:
            distance = s.reshape(_cut(distances, 0, i, i + 1), ())
            places = p.remainder.bind(p.sub.bind(np.arange(n), distance), np.int64(n))
            a = s.moveaxis_from_front(Gather((index,)).bind(a, places), index)
    return a


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Windows as `numpy.lib.stride_tricks.sliding_window_view`; a copy where ``x`` is traced."""
    x = as_value(x, "sliding_window_view")
    if writeable:
        raise ArgumentError(
            "sliding_window_view: traced arrays are immutable. Leave `writeable` away."
        )
    lengths = _ints(window_shape)
    ndim = len(shape_of(x))
    given = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    axes = [normalize_axis(i, ndim, "sliding_window_view") for i in given]
    if len(lengths) != len(axes):
        raise ValueError(
            f"sliding_window_view: {len(lengths)} window lengths were given for {len(axes)} axes."
        )
    for i, length in zip(axes, lengths, strict=True):
        count = shape_of(x)[i] - length + 1
        if length < 0 or count < 1:
            raise ValueError(
                f"sliding_window_view: a window of length {length} does not fit into axis {i} of "
                f"{aval_of(x)}."
            )
        places = np.arange(count)[:, None] + np.arange(length)
        # The axes of the index come first: one takes the place of the axis, one becomes the last.
        windows = moveaxis(Gather((i,)).bind(x, places), 1, -1)
        x = moveaxis(windows, 0, i)
    return x


def view(x: Any, dtype: Any = None, type: Any = None) -> Any:
    """Read the bytes of the last axis as another dtype, in a copy, as `numpy.ndarray.view`.

    Complex numbers and their parts keep derivatives; other bits have none.
    """
    only_defaults("view", type=None if type is np.ndarray else type)
    if dtype is None or (isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray)):
        return x
    x, wanted = strong(x), checked_dtype(dtype, "view")
    own, shape = aval_of(x).dtype, shape_of(x)
    if wanted == own:
        return x
    if wanted.itemsize != own.itemsize and (
        not shape or shape[-1] * own.itemsize % wanted.itemsize
    ):
        raise ShapeError(
            f"x.view({wanted}): the last axis of {aval_of(x)} does not hold a whole number of "
            "elements of that dtype."
        )
    if own.kind == "c" and wanted == real_dtype(own):
        parts = stack([p.real.bind(x), p.imag.bind(x)], -1)
        return s.reshape(parts, (*shape[:-1], 2 * shape[-1]))
    if wanted.kind == "c" and own == real_dtype(wanted):
        pairs = s.reshape(x, (*shape[:-1], shape[-1] // 2, 2))
        return p.from_parts.bind(*unstack(pairs, -1))
    if own.kind == "b" and wanted.itemsize == 1:
        return p.convert(x, wanted)
    ratio = wanted.itemsize // own.itemsize
    if ratio > 1:
        return Bitcast(wanted).bind(s.reshape(x, (*shape[:-1], shape[-1] // ratio, ratio)))
    bits = Bitcast(wanted).bind(x)
    if ratio:
        return bits
    return s.reshape(bits, (*shape[:-1], shape[-1] * own.itemsize // wanted.itemsize))


def tile(A: Any, reps: Any) -> Any:
    """An array repeated along its axes, as `numpy.tile`.

    Args:
        A: Array that is repeated.
        reps: How often, for each axis.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.tile(np.array([1.0, 2.0]), 2)
        array([1., 2., 1., 2.])
    """
    a = strong(as_value(A, "tile"))
    counts = _ints(reps)
    ndim = max(len(counts), len(shape_of(a)))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - len(shape_of(a))) + shape_of(a)
    column = s.reshape(a, tuple(n for m in shape for n in (1, m)))
    wide = s.broadcast_to(
        column, tuple(n for c, m in zip(counts, shape, strict=True) for n in (c, m))
    )
    return s.reshape(wide, tuple(c * m for c, m in zip(counts, shape, strict=True)))


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad_widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """``(before, after)`` for every axis, in any of NumPy's spellings."""
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(i, pad_width.get(i - ndim, 0)) for i in range(ndim)]
        pad_width = [(w, w) if isinstance(w, int) else w for w in pad_width]
    widths = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    return [(int(low), int(high)) for low, high in widths]


def constant_pad(array: Any, widths: Sequence[tuple[int, int]], fill: Any = 0) -> Any:
    """``array`` with ``fill`` around it."""
    array = strong(array)
    fill = to_dtype(fill, aval_of(array).dtype)
    lows, highs = [w[0] for w in widths], [w[1] for w in widths]
    return s.Pad(tuple(lows), tuple(highs), (0,) * len(lows)).bind(array, fill)


def meshgrid(
    *xi: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True
) -> tuple[Any, ...]:
    """Grids of coordinates from vectors of coordinates, as `numpy.meshgrid`.

    Args:
        *xi: One-dimensional arrays.
        indexing: ``"xy"`` or ``"ij"``: which axis comes first.
        sparse: Whether arrays have length 1 along the other axes.
        copy: Whether the result never shares memory with the argument.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.numpy.meshgrid(np.arange(2.0), np.arange(3.0))
        (array([[0., 1.],
               [0., 1.],
               [0., 1.]]), array([[0., 0.],
               [1., 1.],
               [2., 2.]]))
    """
    values = [atleast_1d(x) for x in xi]
    n = len(values)
    grids = [
        s.reshape(v, tuple(shape_of(v)[0] if i == k else 1 for i in range(n)))
        for k, v in enumerate(values)
    ]
    if indexing == "xy" and n > 1:
        grids = [swapaxes(g, 0, 1) for g in grids]
    return tuple(grids) if sparse else broadcast_arrays(*grids)


explain(globals(), MEANINGS)
