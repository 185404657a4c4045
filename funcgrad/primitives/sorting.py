"""Values in sorted order.

Sorting is a permutation that is constant almost everywhere: the tangent is permuted like the
values. Among equal values the permutation is the stable one, so that derivatives do not depend on
the algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.dtypes import INT64
from funcgrad.errors import ShapeError
from funcgrad.lowering import Array, Form, Routine, SelectCall, SortCall
from funcgrad.primitives.elementwise import sub
from funcgrad.primitives.families import Recipe, shape_of
from funcgrad.primitives.indexing import Gather, along_axis_indices, take_along_axis
from funcgrad.primitives.ordering import ArgSort, axis_last
from funcgrad.primitives.shape import Reverse, Slice


class Sort(Primitive):
    """The elements in ascending order along ``axis``, nan last."""

    axis: int

    def impl(self, x: Any) -> Any:
        return np.sort(x, self.axis)

    def lower(self, x: ShapedArray) -> Form:
        order = axis_last(x.ndim, self.axis)
        arrays = (Array(x.shape, x.dtype, order), Array(x.shape, x.dtype, order, start=0))
        return Routine(arrays, (1,), (SortCall(1, stable=False),))

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        if not 0 <= self.axis < x.ndim:
            raise ShapeError(f"{self.name}: {x} has no axis {self.axis}.")
        return x.strong()

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        order = ArgSort(self.axis).bind(x)
        return take_along_axis(x, order, self.axis), take_along_axis(t, order, self.axis)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return Sort(self.axis + 1).bind(*args), 0


def sort_together(operands: Sequence[Value], axis: int, num_keys: int = 1) -> list[Value]:
    """All operands in the stable order of the first ``num_keys``; the first key decides first."""
    order = ArgSort(axis).bind(*operands[:num_keys])
    return [take_along_axis(x, order, axis) for x in operands]


_FEW = 4
"""So many times fewer elements than there are, are found faster without sorting all of them."""


def _descending(x: Any) -> Any:
    """The order of the elements along the last axis, the greatest first."""
    # Ascending and stable from the far end is descending and stable from the near end.
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]


def _selected(x: Any, k: int) -> Any:
    """The places of the ``k`` greatest elements along the last axis, ascending."""
    worst = np.partition(x, x.shape[-1] - k, -1)[..., -k, None]
    is_in, is_worst = x > worst, x == worst
    if x.dtype.kind == "f":
        is_in |= np.isnan(x) & ~np.isnan(worst)
        is_worst |= np.isnan(x) & np.isnan(worst)
    left = k - is_in.sum(-1, keepdims=True)
    is_in |= is_worst & (np.cumsum(is_worst, -1) <= left)
    return np.nonzero(is_in)[-1].reshape(*x.shape[:-1], k)


class TopK(Primitive):
    """The ``k`` largest elements along the last axis, descending, and their places (int64).

    nan counts as largest; of equal elements the first comes first.
    """

    k: int

    multiple_results = True

    def impl(self, x: Any) -> Any:
        x = np.asarray(x)
        if x.ndim and 0 < self.k * _FEW <= x.shape[-1] and x.dtype.kind != "c":
            places = _selected(x, self.k)
            order = _descending(np.take_along_axis(x, places, -1))
            places = np.take_along_axis(places, order, -1)
        else:
            places = _descending(x)[..., : self.k]
        return [np.take_along_axis(x, places, -1), places]

    def lower(self, x: ShapedArray) -> Form:
        shape = (*x.shape[:-1], self.k)
        if self.k * _FEW <= x.shape[-1] and x.dtype.kind != "c":
            arrays = (Array(x.shape, x.dtype), Array(shape, x.dtype), Array(shape, INT64))
            return Routine(arrays, (1, 2), (SelectCall(0, 1, 2),))
        recipe, last = Recipe(x), x.ndim - 1
        turn = Reverse((last,))
        ascending = recipe(ArgSort(last), recipe(turn, *recipe.inputs))
        ones, zeros = (1,) * x.ndim, (0,) * x.ndim
        first = recipe(Slice(zeros, shape, ones), recipe(turn, ascending))
        places = recipe(sub, np.int64(x.shape[-1] - 1), first)
        indices = along_axis_indices(x.shape, places, last)
        values = recipe(Gather(tuple(range(x.ndim))), *recipe.inputs, *indices)
        return recipe.form(values, places)

    def abstract_eval(self, x: ShapedArray) -> list[ShapedArray]:
        if not x.ndim or not 0 <= self.k <= x.shape[-1]:
            raise ShapeError(
                f"{self.name}: k={self.k} must be between 0 and the length of the last axis of {x}."
            )
        shape = (*x.shape[:-1], self.k)
        return [shaped(shape, x.dtype), shaped(shape, INT64)]

    def jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        values, places = self.bind(x)
        return [values, places], [take_along_axis(t, places, len(shape_of(x)) - 1), None]

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return self.bind(*args), [0, 0]
