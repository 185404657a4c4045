"""Functions of ``jax.numpy`` whose arguments or results differ from those of NumPy's."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from funcgrad import numpy
from funcgrad.core.trace import Tracer
from funcgrad.errors import ConcretizationTypeError, DtypeError
from funcgrad.interop.jax.arrays import Adopted, Array

Array.searchsorted = Adopted(numpy.searchsorted)  # type: ignore[method-assign]


@Adopted
@functools.wraps(numpy.bincount)
def bincount(x: Any, *args: Any, **options: Any) -> Any:
    """`numpy.bincount`, which counts negative numbers as 0."""
    given = numpy.asarray(x)
    clipped = numpy.maximum(given, 0) if given.dtype.kind == "i" else given
    return numpy.bincount(clipped, *args, **options)


@Adopted
@functools.wraps(numpy.take_along_axis)
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Any:
    """`numpy.take_along_axis`, where places outside are filled by default, as in JAX."""
    x, places = numpy.asarray(arr), numpy.asarray(indices)
    if places.dtype.kind not in "iu":
        raise DtypeError(f"take_along_axis: indices must be integers, got {places.dtype}.")
    x, axis = (numpy.ravel(x), 0) if axis is None else (x, axis)
    length = x.shape[axis]
    places = numpy.astype(places, np.int64)
    if wrap_negative_indices:
        places = numpy.where(places < 0, places + length, places)
    mode = str(getattr(mode, "name", mode or "fill")).lower()
    if mode in ("clip", "promise_in_bounds"):
        places, mode = numpy.clip(places, 0, length - 1), "clip"
    if mode == "one_hot":
        mode, fill_value = "fill", 0 if fill_value is None else fill_value
    return numpy.take_along_axis(
        x, places, axis, mode, fill_value, wrap_negative_indices=mode != "fill"
    )


@Adopted
@functools.wraps(numpy.ravel_multi_index)
def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", dtype: Any = None
) -> Any:
    """`numpy.ravel_multi_index`; with ``mode="ignore"`` indices may lie anywhere."""
    if mode == "raise" and any(isinstance(index, Tracer) for index in multi_index):
        raise ConcretizationTypeError(
            "ravel_multi_index: traced indices cannot be checked; pass mode='clip', 'wrap' or "
            "'ignore'."
        )
    if mode != "ignore":
        found = numpy.ravel_multi_index(multi_index, dims, mode, order)
    else:
        pairs = list(zip(multi_index, dims, strict=True))
        found = np.int64(0)
        for index, length in pairs if order == "C" else pairs[::-1]:
            found = found * int(length) + numpy.astype(numpy.asarray(index), np.int64)
    return found if dtype is None else numpy.astype(found, dtype)


@Adopted
@functools.wraps(numpy.unravel_index)
def unravel_index(indices: Any, shape: Any) -> Any:
    """`numpy.unravel_index`; indices out of bounds count from the end, or are those of an end."""
    lengths = list(numpy.atleast_1d(shape) if isinstance(shape, Tracer) else np.atleast_1d(shape))
    size: Any = functools.reduce(operator.mul, lengths, 1)
    given = numpy.asarray(indices)
    rest = numpy.astype(given, np.int64)
    rest = numpy.clip(numpy.where(rest < 0, rest + size, rest), 0, size - 1)
    parts = []
    for length in lengths[::-1]:
        parts.append(numpy.astype(rest % length, given.dtype))
        rest = rest // length
    return tuple(parts[::-1])
