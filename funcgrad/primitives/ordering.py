"""Positions found by comparing: the order that sorts, and places in a sorted array.

The results are integers, so the derivatives are zero. What moves values accordingly, and has
derivatives, is in `primitives.sorting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.core.avals import ShapedArray, shaped
from funcgrad.core.primitive import BatchDim, Primitive, Value
from funcgrad.dtypes import INT64
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.lowering import Array, Extern, Form, Routine, Search, SortCall
from funcgrad.primitives.families import shape_of, zero_jvp
from funcgrad.primitives.shape import broadcast_to


def stacked(args: Sequence[Value], dims: Sequence[BatchDim]) -> list[Value]:
    """All arguments with a batch axis in front; those that are not mapped are repeated."""
    size = next(shape_of(a)[0] for a, d in zip(args, dims, strict=True) if d is not None)
    return [
        a if d is not None else broadcast_to(a, (size, *shape_of(a)))
        for a, d in zip(args, dims, strict=True)
    ]


class ArgSort(Primitive):
    """The order that sorts along ``axis``, int64; of several keys the first decides first.

    ``bind(*keys)``, all of one shape. nan comes last, as in NumPy.

    Args:
        axis: Axis to sort along, non-negative.
        stable: Whether equal elements keep their order. With several keys they always do.
    """

    axis: int
    stable: bool = True

    jvp = zero_jvp

    def impl(self, *keys: Any) -> Any:
        if len(keys) > 1:
            return np.lexsort(keys[::-1], self.axis)
        return np.argsort(keys[0], self.axis, kind="stable" if self.stable else None)

    def lower(self, *keys: ShapedArray) -> Form:
        # By one key after the other, the last one first: each keeps what those before have ordered.
        n, shape = len(keys), keys[0].shape
        order = axis_last(keys[0].ndim, self.axis)
        arrays = [Array(shape, key.dtype, order) for key in keys]
        is_stable = self.stable or n > 1
        calls = tuple(SortCall(k, n, is_stable) for k in reversed(range(n)))
        return Routine((*arrays, Array(shape, INT64, order, counts=True)), (n,), calls)

    def abstract_eval(self, *keys: ShapedArray) -> ShapedArray:
        if any(k.shape != keys[0].shape for k in keys):
            types = ", ".join(map(str, keys))
            raise ShapeError(f"{self.name}: all keys must have one shape, got {types}.")
        return shaped(keys[0].shape, INT64)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        return replace(self, axis=self.axis + 1).bind(*stacked(args, dims)), 0


def axis_last(ndim: int, axis: int) -> tuple[int, ...]:
    """The axes with one of them last."""
    return (*(i for i in range(ndim) if i != axis), axis)


_searchsorted: Any = np.searchsorted
"""Untyped: NumPy declares the side as two literals."""


class SearchSorted(Primitive):
    """Positions at which ``values`` are inserted into an ascending array, int64.

    ``bind(ordered, values)``: ``ordered`` has one axis, ``values`` any.

    Args:
        side: "left" or "right" of equal elements.
        lanes: Number of leading axes of both arguments that count separate searches.
    """

    side: str = "left"
    lanes: int = 0

    jvp = zero_jvp

    def lower(self, ordered: ShapedArray, values: ShapedArray) -> Form:
        if ordered.dtype.kind == "c":
            return Extern()
        before = "{0} < {1}" if self.side == "left" else "{0} <= {1}"
        if ordered.dtype.kind == "f":  # nan comes last
            before = "({0} == {0}) & (not ({1} <= {0}))"
            if self.side == "right":
                before = "({0} <= {1}) | isnan({1})"
        return Search(self.lanes, before)

    def impl(self, ordered: Any, values: Any) -> Any:
        if not self.lanes:
            return _searchsorted(ordered, values, self.side)
        out = np.empty(np.shape(values), np.int64)
        for lane in np.ndindex(ordered.shape[:-1]):
            out[lane] = _searchsorted(ordered[lane], values[lane], self.side)
        return out

    def abstract_eval(self, ordered: ShapedArray, values: ShapedArray) -> ShapedArray:
        if ordered.ndim != self.lanes + 1 or ordered.shape[:-1] != values.shape[: self.lanes]:
            raise ShapeError(
                f"{self.name}: the sorted array must have one axis, got {ordered} for {values}."
            )
        if ordered.dtype != values.dtype:
            raise DtypeError(
                f"{self.name} needs arguments of one dtype, got {ordered} and {values}."
            )
        return shaped(values.shape, INT64)

    def batch(self, args: Sequence[Value], dims: Sequence[BatchDim]) -> tuple[Any, Any]:
        if dims[0] is None and not self.lanes:
            return self.bind(*args), 0
        return replace(self, lanes=self.lanes + 1).bind(*stacked(args, dims)), 0
