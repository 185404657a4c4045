"""Diagonals of matrices: lookups at known places, of which compiled programs make strides."""

from __future__ import annotations

import builtins
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape
from funcgrad.core.trace import current_trace
from funcgrad.dtypes import BOOL
from funcgrad.numpy.boxes import Part, is_read_at_once
from funcgrad.numpy.creating import eye
from funcgrad.numpy.promotion import as_value, normalize_axis, strong
from funcgrad.numpy.reducing import refuse_out, summand
from funcgrad.numpy.shaping import constant_pad, moveaxis, ravel, reshape, traced_integer
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.indexing import Gather
from funcgrad.primitives.shape import ReduceSum, shape_of

__all__ = ["diag", "diagflat", "diagonal", "trace"]


def _axes(x: Any, axis1: int, axis2: int, function: str) -> tuple[int, int]:
    ndim = len(shape_of(x))
    i, j = normalize_axis(axis1, ndim, function), normalize_axis(axis2, ndim, function)
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    return i, j


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Diagonal of matrices.

    As `numpy.diagonal`.

    Their length depends on ``offset``, which must be known.

    Example: fg.numpy.diagonal(np.array([[1.0, 2.0], [3.0, 4.0]])) -> array([1., 4.])
    """
    x, offset = strong(as_value(a, "diagonal")), offset.__index__()
    i, j = _axes(x, axis1, axis2, "diagonal")
    last = len(shape_of(x)) - 1
    if (i, j) != (last - 1, last):
        x = moveaxis(x, (i, j), (-2, -1))
    part = _diagonal(shape_of(x), offset)
    return current_trace().process(part, (x,)) if is_read_at_once(x) else part.read(x)


@lru_cache(1024)
def _diagonal(shape: Shape, offset: int) -> Part:
    """A diagonal along the last two axes."""
    *stack, rows, columns = shape
    first, second = builtins.max(-offset, 0), builtins.max(offset, 0)
    n = builtins.max(builtins.min(rows - first, columns - second), 0)

    def read(x: Any) -> Any:
        last, numbers = len(shape) - 1, np.arange(n)
        found = Gather((last - 1, last)).bind(x, first + numbers, second + numbers)
        return moveaxis(found, 0, -1) if last > 1 else found

    start = first * columns + second
    places = slice(start, start + n * (columns + 1), columns + 1) if n else slice(0)
    return Part(read, shape, (*stack, rows * columns), (..., places), (*stack, n))


def diag(v: Any, k: int = 0) -> Any:
    """Diagonal of a matrix, or a matrix with that diagonal.

    As `numpy.diag`.

    Example: fg.numpy.diag(np.array([[1.0, 2.0], [3.0, 4.0]])) -> array([1., 4.])
    """
    x, k = strong(as_value(v, "diag")), k.__index__()
    if len(shape_of(x)) == 2:
        return diagonal(x, k)
    if len(shape_of(x)) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = shape_of(x)[0] + builtins.abs(k)
    # Every row and every column has at most one element: for k >= 0 spread columns of rows.
    padded = constant_pad(x, [(0, builtins.abs(k))])
    lines = reshape(padded, (n, 1) if k >= 0 else (1, n))
    return p.select.bind(np.eye(n, k=k, dtype=BOOL), lines, p.zero_of(x))


def diagflat(v: Any, k: int = 0) -> Any:
    """Matrix with the elements of an array on a diagonal, as `numpy.diagflat`.

    Example: fg.numpy.diagflat([1.0, 2.0])
        -> array([[1., 0.],
                  [0., 2.]])
    """
    return diag(ravel(as_value(v, "diagflat")), k)


def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Any:
    """Sum of a diagonal.

    As `numpy.trace`; ``offset`` may be traced.

    Example: fg.numpy.trace(np.array([[1.0, 2.0], [3.0, 4.0]])) -> np.float64(5.0)
    """
    refuse_out(out, "trace")
    x = summand(a, dtype, "trace")
    i, j = _axes(x, axis1, axis2, "trace")
    if traced_integer(offset, "trace") is None:
        elements = diagonal(x, offset, i, j)
        return ReduceSum((len(shape_of(elements)) - 1,)).bind(elements)
    shape = shape_of(x)
    mask = eye(shape[i], shape[j], offset, BOOL)
    mask = mask if i < j else mask.T
    mask = mask.reshape([n if k in (i, j) else 1 for k, n in enumerate(shape)])
    axes = tuple(builtins.sorted((i, j)))
    return ReduceSum(axes).bind(p.select.bind(mask, x, p.zero_of(x)))
