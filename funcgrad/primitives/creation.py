"""Arrays made from nothing but a scalar and a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import Shape, ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.dtypes import short_name
from funcgrad.errors import ShapeError
from funcgrad.lowering import Array, Constant, Form, Reindex, Routine
from funcgrad.primitives.families import linear_jvp, shape_of
from funcgrad.primitives.shape import ReduceSum, broadcast_to, reshape


class Full(Primitive):
    """A new, writable array of ``shape`` filled with a scalar."""

    shape: Shape

    jvp = linear_jvp
    makes_no_nans = True

    @property
    def but_lengths(self) -> int:
        return len(self.shape)

    def impl(self, fill: Any) -> Any:
        return np.full(self.shape, fill)

    def abstract_eval(self, fill: ShapedArray) -> ShapedArray:
        if fill.shape:
            raise ShapeError(f"full: the fill value must be a scalar, got {fill}.")
        return shaped(self.shape, fill.dtype)

    def transpose(self, ct: Any, fill: Any) -> Sequence[Any]:
        return (ReduceSum(tuple(range(len(self.shape)))).bind(ct),)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        (size,) = shape_of(args[0])
        column = reshape(args[0], (size, *(1,) * len(self.shape)))
        return broadcast_to(column, (size, *self.shape)), 0

    def lower(self, fill: ShapedArray) -> Form:
        ndim = len(self.shape)
        return Reindex((None,) * ndim, (), (1,) * ndim)


class Iota(Primitive):
    """``0, 1, 2, ...`` along ``axis``, repeated along the other axes of ``shape``."""

    shape: Shape
    axis: int
    dtype: np.dtype[Any]

    def impl(self) -> Any:
        line = np.arange(self.shape[self.axis], dtype=self.dtype)
        column = line.reshape([-1 if i == self.axis else 1 for i in range(len(self.shape))])
        return np.broadcast_to(column, self.shape).copy()

    def abstract_eval(self) -> ShapedArray:
        return shaped(self.shape, self.dtype)

    def lower(self) -> Form:
        return Constant()

    def params(self) -> dict[str, Any]:
        return {"shape": self.shape, "axis": self.axis, "dtype": short_name(self.dtype)}


class Unset(Primitive):
    """Memory whose elements are set before anybody reads them: compiled, they may be anything.

    Attributes:
        shape: Its shape.
        dtype: Its dtype.
        number: Tells two of them in a program apart.
    """

    shape: Shape
    dtype: np.dtype[Any]
    number: int = 0

    def impl(self) -> Any:
        return np.zeros(self.shape, self.dtype)

    def abstract_eval(self) -> ShapedArray:
        return shaped(self.shape, self.dtype)

    def lower(self) -> Form:
        return Routine((Array(self.shape, self.dtype),), (0,), ())

    def params(self) -> dict[str, Any]:
        return {"dtype": short_name(self.dtype), "shape": self.shape}
