"""Arrays from data, of one value, of ranges; identities and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.dtypes import float0, is_complex
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.numpy.promotion import (
    as_value,
    checked_dtype,
    normalize_axis,
    promote_quotient,
    strong,
    to_dtype,
)
from funcgrad.numpy.shaping import astype, broadcast_to, static_ints, traced_integer
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.creation import Full, Iota
from funcgrad.primitives.shape import shape_of

__all__ = [
    "arange", "array", "asarray", "empty", "empty_like", "eye", "full", "full_like", "identity",
    "linspace", "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


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
    Example: fg.numpy.array([1.0, 2.0]) -> array([1., 2.])
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

    Raises: ValueError: If ``copy`` is false and there is no array of that dtype yet.
    Example: fg.numpy.asarray([1.0, 2.0]) -> array([1., 2.])
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


def full(
    shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Array filled with a value.

    As `numpy.full`; the fill value may be traced.

    Example: fg.numpy.full((2,), 7.0) -> array([7., 7.])
    """
    check_placement("full", device=device, out_sharding=out_sharding)
    shape, fill = static_ints(shape), as_value(fill_value, "full")
    if any(n < 0 for n in shape):
        raise ShapeError(f"negative dimensions are not allowed, got {shape}.")
    fill = strong(fill) if dtype is None else to_dtype(fill, checked_dtype(dtype, "full"))
    fill = fill[()] if isinstance(fill, np.ndarray) and fill.ndim == 0 else fill
    return s.broadcast_to(fill, shape) if shape_of(fill) else Full(shape).bind(fill)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of zeros, as `numpy.zeros`.

    Example: fg.numpy.zeros((2, 3))
        -> array([[0., 0., 0.],
                  [0., 0., 0.]])
    """
    check_placement("zeros", device=device, out_sharding=out_sharding)
    if dtype == float0:  # what has no tangents has these
        return np.zeros(static_ints(shape), float0)
    return full(shape, 0, np.float64 if dtype is None else dtype)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of ones, as `numpy.ones`.

    Example: fg.numpy.ones((2, 3))
        -> array([[1., 1., 1.],
                  [1., 1., 1.]])
    """
    check_placement("ones", device=device, out_sharding=out_sharding)
    return full(shape, 1, np.float64 if dtype is None else dtype)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of a shape; here its elements are zero.

    As `numpy.zeros`: a pure function has no arbitrary contents.

    Example: fg.numpy.empty((2, 3)).shape -> (2, 3)
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

    Example: fg.numpy.full_like(np.ones(2), 7.0) -> array([7., 7.])
    """
    check_placement("full_like", device=device, out_sharding=out_sharding)
    aval = aval_of(as_value(a, "full_like"))
    return full(aval.shape if shape is None else shape, fill_value, dtype or aval.dtype)


def zeros_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Array of zeros, of the shape and dtype of another one, as `numpy.zeros_like`.

    Example: fg.numpy.zeros_like([1.0, 2.0]) -> array([0., 0.])
    """
    return full_like(a, 0, dtype, shape, device=device, out_sharding=out_sharding)


def ones_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Array of ones, of the shape and dtype of another one, as `numpy.ones_like`.

    Example: fg.numpy.ones_like([1.0, 2.0]) -> array([1., 1.])
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

    Args: prototype: Array whose shape and dtype are used.
    Example: fg.numpy.empty_like(np.ones(2)).shape -> (2,)
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

    Args: step: Distance between neighbouring values.
    Example: fg.numpy.arange(0.0, 1.0, 0.25) -> array([0.  , 0.25, 0.5 , 0.75])
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

    Args: retstep: Whether to return the step, too.
    Example: fg.numpy.linspace(0.0, 1.0, 5) -> array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    check_placement("linspace", device=device)
    start, stop = map(strong, promote_quotient(*map(as_value, (start, stop))))
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
    if not (num - 1 if endpoint else num) > 0:
        step = wanted.type(np.nan)  # there is none
    return (line, step) if retstep else line


def _diagonals(rows: int, columns: int) -> np.ndarray:
    """The number of the diagonal on which every element of a matrix lies."""
    return np.arange(columns)[None, :] - np.arange(rows)[:, None]


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """Matrix with ones on a diagonal and zeros elsewhere.

    As `numpy.eye`; ``k`` may be traced.

    Example: fg.numpy.eye(3)
        -> array([[1., 0., 0.],
                  [0., 1., 0.],
                  [0., 0., 1.]])
    """
    check_placement("eye", device=device)
    wanted = checked_dtype(dtype or np.float64, "eye")
    diagonal = traced_integer(k, "eye")
    if diagonal is None:
        return np.eye(N, M, k, dtype=wanted)
    (rows,), (columns,) = static_ints(N), static_ints(N if M is None else M)
    return p.convert(p.equal.bind(_diagonals(rows, columns), diagonal), wanted)


def identity(n: int, dtype: Any = None) -> Any:
    """Identity matrix, as `numpy.identity`.

    Args: n: Number of rows.
    Example: fg.numpy.identity(3)
        -> array([[1., 0., 0.],
                  [0., 1., 0.],
                  [0., 0., 1.]])
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Matrix with ones at and below a diagonal.

    As `numpy.tri`; ``k`` may be traced.

    Example: fg.numpy.tri(3)
        -> array([[1., 0., 0.],
                  [1., 1., 0.],
                  [1., 1., 1.]])
    """
    (rows,), (columns,) = static_ints(N), static_ints(N if M is None else M)
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

    Example: fg.numpy.tril(np.ones((3, 3)))
        -> array([[1., 0., 0.],
                  [1., 1., 0.],
                  [1., 1., 1.]])
    """
    m, rows, columns = _matrices(m, "tril")
    return _masked(m, _triangle(rows, columns, k, "tril"))


def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle, as `numpy.triu`; ``k`` may be traced.

    Example: fg.numpy.triu(np.ones((3, 3)))
        -> array([[1., 1., 1.],
                  [0., 1., 1.],
                  [0., 0., 1.]])
    """
    m, rows, columns = _matrices(m, "triu")
    diagonal = traced_integer(k, "triu")
    if diagonal is None:
        return _masked(m, ~np.tri(rows, columns, int(k.__index__()) - 1, dtype=np.bool_))
    return _masked(m, p.greater_equal.bind(_diagonals(rows, columns), diagonal))
