"""Reductions of segments: rows of an array that have the same number, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.base.namespaces import present
from funcgrad.base.placement import check_placement
from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ConcretizationTypeError, DtypeError, ShapeError
from funcgrad.lax import GatherScatterMode
from funcgrad.numpy.indexing import at
from funcgrad.numpy.promotion import as_value, strong
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
    if isinstance(ids, Tracer):
        raise ConcretizationTypeError(
            f"{function}: the length of the result depends on a traced {ids.aval}: pass "
            "num_segments=."
        )
    return int(ids.max(initial=-1)) + 1


def _reduced(
    function: str,
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    start: float | np.generic,
    unique_indices: bool,
    mode: Any,
    out_sharding: Any,
) -> Any:
    check_placement(f"ops.{function}", out_sharding=out_sharding)
    data = strong(as_value(data, function))
    ids = _checked_ids(data, segment_ids, function)
    n = _count(ids, num_segments, function)
    kind = function.removeprefix("segment_")
    is_clipped = mode is not None and GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP
    full = np.full((n, *shape_of(data)[1:]), start, aval_of(data).dtype)
    method = getattr(at(full)[ids], "mul" if kind == "prod" else "add" if kind == "sum" else kind)
    return method(
        data,
        mode="clip" if is_clipped and n else "drop",
        unique_indices=unique_indices,
        wrap_negative_indices=False,
    )


def _extreme(data: Any, is_max: bool) -> Any:
    """Neutral element of a maximum (or minimum)."""
    dtype = aval_of(as_value(data, "segment_max")).dtype
    if dtype.kind == "b":
        return dtype.type(not is_max)
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if is_max else np.iinfo(dtype).max
    return dtype.type(-np.inf if is_max else np.inf)


def segment_sum(
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
    """Sums of the rows of every segment.

    Args:
        data: Rows, ``(m, ...)``.
        segment_ids: The segment of each row, integers ``(m,)``. Rows with numbers outside of
            ``0 .. num_segments - 1`` are left out.
        num_segments: How many segments there are; one more than the greatest number by default,
            which needs known numbers.
        indices_are_sorted: Accepted and of no use here.
        unique_indices: The caller's promise that no segment has two rows.
        bucket_size: Accepted and of no use here.
        mode: What numbers outside stand for: ``"drop"``, the default, leaves their rows out,
            ``"clip"`` counts them to the first or the last segment.
        out_sharding: The CPU, if anything.

    Returns:
        One row per segment, ``(num_segments, ...)``: 0 for those without rows.

    Raises:
        ShapeError: If there is not one number for every row.

    Example:
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> print(fg.ops.segment_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), 3))
        [5. 2. 0.]
    """
    return _reduced(
        "segment_sum", data, segment_ids, num_segments, 0, unique_indices, mode, out_sharding
    )


def segment_prod(
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
    """Products of the rows of every segment, 1 without rows; arguments as of `segment_sum`.

    Args:
        data: Array whose first axis is divided into segments.
        segment_ids: Number of the segment of each row.
        num_segments: Number of segments, which ``jit`` has to know.
        indices_are_sorted: Without effect.
        unique_indices: Without effect.
        bucket_size: Without effect.
        mode: ``"drop"``, the default, leaves out rows of segments that do not exist; ``"clip"``
            assigns them to the nearest segment.
        out_sharding: The CPU, if anything.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.ops.segment_prod(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), 2)
        array([2., 3.])
    """
    return _reduced(
        "segment_prod", data, segment_ids, num_segments, 1, unique_indices, mode, out_sharding
    )


def segment_max(
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
    """Greatest elements of every segment; arguments as of `segment_sum`.

    Segments without rows have the least number of the dtype, -inf if it is floating.

    Args:
        data: Array whose first axis is divided into segments.
        segment_ids: Number of the segment of each row.
        num_segments: Number of segments, which ``jit`` has to know.
        indices_are_sorted: Without effect.
        unique_indices: Without effect.
        bucket_size: Without effect.
        mode: ``"drop"``, the default, leaves out rows of segments that do not exist; ``"clip"``
            assigns them to the nearest segment.
        out_sharding: The CPU, if anything.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.ops.segment_max(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), 2)
        array([2., 3.])
    """
    start = _extreme(data, is_max=True)
    return _reduced(
        "segment_max", data, segment_ids, num_segments, start, unique_indices, mode, out_sharding
    )


def segment_min(
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
    """Least elements of every segment; arguments as of `segment_sum`.

    Segments without rows have the greatest number of the dtype, inf if it is floating.

    Args:
        data: Array whose first axis is divided into segments.
        segment_ids: Number of the segment of each row.
        num_segments: Number of segments, which ``jit`` has to know.
        indices_are_sorted: Without effect.
        unique_indices: Without effect.
        bucket_size: Without effect.
        mode: ``"drop"``, the default, leaves out rows of segments that do not exist; ``"clip"``
            assigns them to the nearest segment.
        out_sharding: The CPU, if anything.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> fg.ops.segment_min(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), 2)
        array([1., 3.])
    """
    start = _extreme(data, is_max=False)
    return _reduced(
        "segment_min", data, segment_ids, num_segments, start, unique_indices, mode, out_sharding
    )


present(__name__)
