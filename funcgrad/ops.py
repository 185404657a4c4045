"""Reductions of segments: rows of an array that have the same number, in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.base.namespaces import present
from funcgrad.base.placement import check_placement
from funcgrad.base.signatures import docstring
from funcgrad.core.avals import aval_of
from funcgrad.errors import ConcretizationTypeError, DtypeError, ShapeError
from funcgrad.lax import GatherScatterMode
from funcgrad.numpy.indexing import at
from funcgrad.numpy.promotion import as_value, strong
from funcgrad.primitives.objects import is_traced
from funcgrad.primitives.shape import shape_of

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _checked_ids(data: Any, segment_ids: Any, function: str) -> Any:
    ids = as_value(segment_ids, function)
    if aval_of(ids).dtype.kind not in "iu":
        raise DtypeError(f"{function}: segment_ids must be integers, got {aval_of(ids)}.")
    if len(shape_of(ids)) != 1 or shape_of(data)[:1] != shape_of(ids):
        raise ShapeError(
            f"{function} needs one segment number for every row, got data {aval_of(data)} and "
            f"segment_ids {aval_of(ids)}."
        )
    return ids


def _count(ids: Any, num_segments: int | None, function: str) -> int:
    if num_segments is not None:
        return int(num_segments.__index__())
    if is_traced(ids):
        raise ConcretizationTypeError(
            f"{function}: the length of the result depends on a traced {ids.aval}: pass "
            "num_segments=."
        )
    return int(ids.max(initial=-1)) + 1


_MEANINGS = {
    "data": "Rows, ``(m, ...)``.",
    "segment_ids": (
        "The segment of each row, integers ``(m,)``. Rows with numbers outside of ``0 .. "
        "num_segments - 1`` are left out."
    ),
    "num_segments": (
        "How many segments there are; one more than the greatest number by default, which needs "
        "known numbers."
    ),
    "indices_are_sorted": "Accepted and of no use here.",
    "unique_indices": "The caller's promise that no segment has two rows.",
    "bucket_size": "Accepted and of no use here.",
    "mode": (
        'Treatment of numbers outside: ``"drop"``, the default, leaves their rows out, ``"clip"`` '
        "counts them to the first or the last segment."
    ),
    "out_sharding": "The CPU, if anything.",
}
_RAISES = {"ShapeError": "If there is not one number for every row."}


def _reduction(name: str, summary: str, start: Callable[[Any], Any], empty: str, shown: str) -> Any:
    """Make a reduction of segments.

    Args:
        name: ``segment_`` and the method of `funcgrad.numpy.at` that writes an element.
        summary: The first line of the docstring.
        start: From the dtype to the neutral element.
        empty: Name of the neutral element.
        shown: Example: the result for the rows 1, 2 and 4 in the segments 0, 1 and 0 of three.
    """
    kind = name.removeprefix("segment_")
    method = {"sum": "add", "prod": "mul"}.get(kind, kind)

    def reduce_segments(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        *,
        out_sharding: Any = None,
    ) -> Any:
        check_placement(f"ops.{name}", out_sharding=out_sharding)
        data = strong(as_value(data, name))
        ids = _checked_ids(data, segment_ids, name)
        n = _count(ids, num_segments, name)
        is_clipped = mode is not None and GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP
        dtype = aval_of(data).dtype
        full = np.full((n, *shape_of(data)[1:]), start(dtype), dtype)
        return getattr(at(full)[ids], method)(
            data,
            mode="clip" if is_clipped and n else "drop",
            unique_indices=unique_indices,
            wrap_negative_indices=False,
        )

    reduce_segments.__name__ = reduce_segments.__qualname__ = name
    call = f"fg.ops.{name}(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), 3) -> {shown}"
    returns = f"One row per segment, ``(num_segments, ...)``: {empty} for those without rows."
    reduce_segments.__doc__ = docstring(summary, _MEANINGS, call, returns=returns, raises=_RAISES)
    return reduce_segments


def _least(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _greatest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


segment_sum = _reduction(
    "segment_sum", "Sums of the rows of every segment.", lambda dtype: 0, "0", "array([5., 2., 0.])"
)
segment_prod = _reduction(
    "segment_prod",
    "Products of the rows of every segment.",
    lambda dtype: 1,
    "1",
    "array([4., 2., 1.])",
)
segment_max = _reduction(
    "segment_max",
    "Greatest elements of every segment.",
    _least,
    "the least number of the dtype, -inf if it is floating,",
    "array([  4.,   2., -inf])",
)
segment_min = _reduction(
    "segment_min",
    "Least elements of every segment.",
    _greatest,
    "the greatest number of the dtype, inf if it is floating,",
    "array([ 1.,  2., inf])",
)

present(__name__)
