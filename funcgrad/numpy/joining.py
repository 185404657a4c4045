"""Concatenation and splitting of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.errors import ShapeError
from funcgrad.numpy import shaping
from funcgrad.numpy.promotion import as_value, normalize_axis, promote, strong
from funcgrad.primitives import shape as s
from funcgrad.primitives.shape import shape_of

__all__ = [
    "append", "array_split", "column_stack", "concat", "concatenate", "dstack", "hsplit", "hstack",
    "meshgrid", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip


def _rows(arrays: Any, function: str) -> list[Any]:
    values = [as_value(a, function) for a in arrays]
    if not values:
        raise ValueError(f"{function} needs at least one array.")
    return [strong(v) for v in promote(*values)]


def concatenate(arrays: Sequence[Any], axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays joined along an axis that they have, as `numpy.concatenate`.

    Example: fg.numpy.concatenate([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        -> array([1., 2., 3., 4.])
    """
    rows = _rows(arrays, "concatenate")
    if axis is None:
        rows, axis = [shaping.ravel(r) for r in rows], 0
    if dtype is not None:
        rows = [shaping.astype(r, dtype) for r in rows]
    index = normalize_axis(axis, len(shape_of(rows[0])), "concatenate")
    return s.Concatenate(index).bind(*rows)


concat = concatenate


def stack(arrays: Sequence[Any], axis: int = 0, dtype: Any = None) -> Any:
    """Arrays joined along a new axis, as `numpy.stack`.

    Example: fg.numpy.stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        -> array([[1., 2.],
                  [3., 4.]])
    """
    rows = _rows(arrays, "stack")
    shapes = {shape_of(r) for r in rows}
    if len(shapes) > 1:
        raise ShapeError(f"stack: all arrays must have one shape, got {sorted(shapes)}.")
    index = normalize_axis(axis, len(shape_of(rows[0])) + 1, "stack")
    return concatenate([shaping.expand_dims(r, index) for r in rows], index, dtype)


def vstack(tup: Sequence[Any], dtype: Any = None) -> Any:
    """Arrays joined along the first axis, vectors as rows, as `numpy.vstack`.

    Example: fg.numpy.vstack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        -> array([[1., 2.],
                  [3., 4.]])
    """
    return concatenate([shaping.atleast_2d(a) for a in tup], 0, dtype)


def hstack(tup: Sequence[Any], dtype: Any = None) -> Any:
    """Arrays joined along the second axis, vectors along the first, as `numpy.hstack`.

    Example: fg.numpy.hstack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        -> array([1., 2., 3., 4.])
    """
    rows = [shaping.atleast_1d(a) for a in tup]
    return concatenate(rows, 0 if len(shape_of(rows[0])) == 1 else 1, dtype)


def dstack(tup: Sequence[Any], dtype: Any = None) -> Any:
    """Arrays joined along the third axis, as `numpy.dstack`.

    Example: fg.numpy.dstack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        -> array([[[1., 3.],
                   [2., 4.]]])
    """
    return concatenate([shaping.atleast_3d(a) for a in tup], 2, dtype)


def column_stack(tup: Sequence[Any]) -> Any:
    """Vectors as the columns of a matrix, as `numpy.column_stack`.

    Example: fg.numpy.column_stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        -> array([[1., 3.],
                  [2., 4.]])
    """
    values = [strong(as_value(a)) for a in tup]
    return concatenate([shaping.atleast_2d(v).T if len(shape_of(v)) < 2 else v for v in values], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Arrays joined along an axis, as `numpy.append`.

    Args: axis: The axis, counted from the end if negative. By default the array is flattened.
    Example: fg.numpy.append([1.0, 2.0], [3.0, 4.0]) -> array([1., 2., 3., 4.])
    """
    return concatenate([arr, values], axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts of an array, which need not be of equal length, as `numpy.array_split`.

    Example: fg.numpy.array_split(np.arange(6.0), 2) -> [array([0., 1., 2.]), array([3., 4., 5.])]
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
        places = map(int, indices_or_sections)
        inner = [min(max(i + n if i < 0 else i, 0), n) for i in places]
        bounds = [0, *inner, n]
    pairs = pairwise(bounds)
    return [s.cut(ary, index, a, max(a, b)) for a, b in pairs]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts of an array along an axis, as `numpy.split`.

    Example: fg.numpy.split(np.arange(6.0), 2) -> [array([0., 1., 2.]), array([3., 4., 5.])]
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

    Example: fg.numpy.hsplit(np.arange(6.0), 2) -> [array([0., 1., 2.]), array([3., 4., 5.])]
    """
    return split(ary, indices_or_sections, 0 if len(shape_of(as_value(ary))) == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Equal parts of an array along the first axis, as `numpy.vsplit`.

    Example: fg.numpy.vsplit(np.arange(4.0).reshape(2, 2), 2)
        -> [array([[0., 1.]]), array([[2., 3.]])]
    """
    return split(ary, indices_or_sections, 0)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The subarrays along an axis, as a tuple.

    Example: fg.numpy.unstack(np.array([[1.0, 2.0], [3.0, 4.0]]))
        -> (array([1., 2.]), array([3., 4.]))
    """
    x = as_value(x, "unstack")
    front = s.moveaxis_to_front(x, normalize_axis(axis, len(shape_of(x)), "unstack"))
    n, *rest = shape_of(front)
    return tuple(s.reshape(s.cut(front, 0, i, i + 1), tuple(rest)) for i in range(n))


def meshgrid(
    *xi: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True
) -> tuple[Any, ...]:
    """Grids of coordinates from vectors of coordinates, as `numpy.meshgrid`.

    Args:
        *xi: One-dimensional arrays.
        indexing: ``"xy"`` or ``"ij"``: which axis comes first.
        sparse: Whether arrays have length 1 along the other axes.
    Example: fg.numpy.meshgrid(np.arange(2.0), np.arange(3.0))
        -> (array([[0., 1.],
                  [0., 1.],
                  [0., 1.]]), array([[0., 0.],
                  [1., 1.],
                  [2., 2.]]))
    """
    values = [shaping.atleast_1d(x) for x in xi]
    n = len(values)
    grids = [
        s.reshape(v, tuple(shape_of(v)[0] if i == k else 1 for i in range(n)))
        for k, v in enumerate(values)
    ]
    if indexing == "xy" and n > 1:
        grids = [shaping.swapaxes(g, 0, 1) for g in grids]
    return tuple(grids) if sparse else shaping.broadcast_arrays(*grids)
