"""Borders around arrays: `pad`.

Elements of borders are slices of the array and sums of such, as far as a few are enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import BOOL, FLOAT64, is_inexact
from funcgrad.errors import DtypeError, ShapeError
from funcgrad.higher_order.staging import name_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import moments, quantiles, reducing
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.mapping import apply_along_axis
from funcgrad.numpy.promotion import as_value, strong, to_dtype
from funcgrad.numpy.rearranging import flip
from funcgrad.numpy.shaping import broadcast_to, constant_pad, pad_widths
from funcgrad.numpy.taking import part
from funcgrad.numpy.writable import copied, unwrapped_in
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import shape_of

__all__ = ["pad"]

_OF_REFLECTIONS = ("reflect_type",)
_OF_STATISTICS = ("stat_length",)
KEYWORDS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": _OF_STATISTICS,
    "mean": _OF_STATISTICS,
    "median": _OF_STATISTICS,
    "minimum": _OF_STATISTICS,
    "reflect": _OF_REFLECTIONS,
    "symmetric": _OF_REFLECTIONS,
    "wrap": (),
}
"""Keywords of each mode."""
STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reducing.max,
    "minimum": reducing.min,
    "mean": moments.mean,
    "median": quantiles.median,
}


def pad(
    array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any
) -> Any:
    """An array with a margin, as `numpy.pad`.

    Args:
        pad_width: Known widths, in any of NumPy's spellings.
        mode: "constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum",
            "minimum", "mean", "median" or "empty" (zeros); or a function of a line with zeros at
            its ends, of the pair of their widths, of the axis, and of the dict of further keyword
            arguments. It either changes the line, as in NumPy, or returns what takes its place, as
            in JAX. It is called once for each axis, with a traced line that stands for all.
        kwargs: ``constant_values``, ``end_values``, ``stat_length``, ``reflect_type`` as in NumPy,
            each with its modes; any, for a function.
    Returns: The array with a border.

    Raises:
        ValueError: If a width is negative, or the mode is not known or takes no such keyword.
        DtypeError: If odd reflections of bools are asked for.

    Example:
        >>> import numpy as np, funcgrad.numpy as fnp
        >>> def ends(line, widths, axis, options):
        ...     line[: widths[0]] = options["value"]
        >>> print(fnp.pad(np.array([1.0, 2.0]), (2, 1), ends, value=9.0))
        [9. 9. 1. 2. 0.]
    """
    x = strong(as_value(array, "pad"))
    widths = pad_widths(pad_width, len(shape_of(x)))
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _pad_by(x, widths, mode, kwargs)
    _check_keywords(mode, kwargs)
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    is_odd = kwargs.get("reflect_type", "even") == "odd"
    for axis, (low, high) in enumerate(widths):
        if not low and not high:
            continue
        if not shape_of(x)[axis]:
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant'")
        if is_odd and shape_of(x)[axis] > 1:
            x = _pad_oddly(x, axis, low, high, shape_of(x)[axis] - (mode == "reflect"))
        elif not KEYWORDS[mode] or KEYWORDS[mode] is _OF_REFLECTIONS:
            index = np.pad(np.arange(shape_of(x)[axis]), (low, high), mode=mode)  # type: ignore[call-overload]
            x = _picked(x, axis, index)
        elif mode == "linear_ramp":
            ends = _pair(kwargs.get("end_values", 0), axis, len(widths))
            x = _bordered(
                x, axis, _ramp(x, axis, low, ends[0]), _ramp(x, axis, high, ends[1], True)
            )
        else:
            x = _pad_statistic(x, axis, (low, high), mode, kwargs.get("stat_length"), len(widths))
    return x


def _check_keywords(mode: str, given: dict[str, Any]) -> None:
    """Refuse unknown modes, and keywords that a mode does not have."""
    if mode not in KEYWORDS:
        names = ", ".join(map(repr, KEYWORDS))
        raise ValueError(f"pad: mode must be a function or one of {names}, got {mode!r}.")
    others = sorted(set(given) - set(KEYWORDS[mode]))
    if others:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {', '.join(others)}")
    kind = given.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}.")


def _pad_by(
    x: Any, widths: list[tuple[int, int]], function: Callable[..., Any], kwargs: dict[str, Any]
) -> Any:
    """Borders that a function writes, of one axis after the other."""
    x = constant_pad(x, widths)
    for axis, width in enumerate(widths):

        def with_border(line: Any, axis: int = axis, width: tuple[int, int] = width) -> Any:
            border = copied(line)
            out = function(border, width, axis, kwargs)
            found = as_value(unwrapped_in(border if out is None else out), "pad")
            if shape_of(found) != shape_of(line):
                raise ShapeError(
                    f"pad: {name_of(function)} must return a line like the one that it is given, "
                    f"{aval_of(line)}, but returned {aval_of(found)}."
                )
            return to_dtype(found, aval_of(line).dtype)

        x = apply_along_axis(with_border, axis, x)
    return x


def _pad_oddly(x: Any, axis: int, low: int, high: int, period: int) -> Any:
    """Borders that go on beyond the ends as the array came there, rotated by 180 degrees.

    With ends ``a`` and ``b`` of the array it is ``q (b - a)`` above the array in the part ``q`` of
    the line, if ``q`` is even, else ``(1 - q) a + (1 + q) b`` minus the reversed array.

    Args:
        x: The array.
        axis: The axis.
        low: How much to put in front.
        high: How much to put behind.
        period: The length of the parts.
    """
    dtype, n = aval_of(x).dtype, shape_of(x)[axis]
    if dtype == BOOL:
        raise DtypeError(f"pad: reflect_type='odd' subtracts elements, but {aval_of(x)} has bools.")
    a, b = part(x, axis, 0, 1), part(x, axis, -1, None)

    def border(start: int, stop: int) -> Iterator[Any]:
        for q in range(start // period, -(-stop // period)):
            r = range(max(start - q * period, 0), min(stop - q * period, period))
            if q % 2:
                seen, factors = flip(part(x, axis, n - r.stop, n - r.start), axis), (1 - q, 1 + q)
                seen = p.neg.bind(seen)
            else:
                seen, factors = part(x, axis, r.start, r.stop), (-q, q)
            for end, factor in zip((a, b), factors, strict=True):
                if factor:  # the other end may be infinite
                    times = np.full(shape_of(end), factor).astype(dtype)
                    moved = p.mul.bind(end, times)
                    seen = p.add.bind(seen, broadcast_to(moved, shape_of(seen)))
            yield seen

    return concatenate([*border(-low, 0), x, *border(n, n + high)], axis)


MOST_RUNS = 8
"""Parts of an axis of which a border may be made; borders of more repetitions are looked up."""


def _runs(index: np.ndarray) -> Iterator[tuple[int, int]]:
    """Bounds of the runs of an index that go up or down by one, or stay."""
    start = 0
    while start < index.size:
        steps = np.diff(index[start:])
        if not steps.size or steps[0] not in (-1, 0, 1):
            end = start + 1
        else:
            changes = np.flatnonzero(steps != steps[0])
            end = start + 1 + int(changes[0]) if changes.size else index.size
        yield start, end
        start = end


def _picked(x: Any, axis: int, index: np.ndarray) -> Any:
    """Elements along an axis at known places, by slices where a few are enough."""
    runs = list(itertools.islice(_runs(index), MOST_RUNS + 1))
    if len(runs) > MOST_RUNS:
        return getitem(x, (*(slice(None),) * axis, index))
    parts = []
    for start, end in runs:
        first, last = int(index[start]), int(index[end - 1])
        if first <= last:
            run = part(x, axis, first, last + 1)
        else:
            run = flip(part(x, axis, last, first + 1), axis)
        if first == last and end - start > 1:
            shape = shape_of(x)
            run = broadcast_to(run, (*shape[:axis], end - start, *shape[axis + 1 :]))
        parts.append(run)
    return concatenate(parts, axis)


def _pair(values: Any, axis: int, ndim: int) -> tuple[Any, Any]:
    """Values for the two borders of an axis, from a number, a pair, or pairs for all axes."""
    values = as_value(values, "pad")
    pairs = broadcast_to(values, (ndim, 2))
    return getitem(pairs, (axis, 0)), getitem(pairs, (axis, 1))


def _bordered(x: Any, axis: int, before: Any, after: Any) -> Any:
    return concatenate([b for b in (before, x, after) if shape_of(b)[axis]], axis)


def _pad_constant(x: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    dtype = aval_of(x).dtype
    values = as_value(values, "pad")
    if not shape_of(values):
        return constant_pad(x, widths, values)
    for axis in range(len(widths)):
        for k, value in enumerate(_pair(values, axis, len(widths))):
            own = [(0, 0)] * len(widths)
            own[axis] = (widths[axis][0], 0) if k == 0 else (0, widths[axis][1])
            x = constant_pad(x, own, to_dtype(value, dtype))
    return x


def _ramp(x: Any, axis: int, width: int, end: Any, is_after: bool = False) -> Any:
    """Values from ``end``, outermost, towards the edge of ``x``."""
    edge = part(x, axis, -1, None) if is_after else part(x, axis, 0, 1)
    dtype = aval_of(x).dtype
    real = dtype if is_inexact(dtype) else FLOAT64
    weights = np.arange(width).reshape([-1 if i == axis else 1 for i in range(len(shape_of(x)))])
    weights = (weights / max(width, 1)).astype(real)
    edge, end = p.convert(edge, real), to_dtype(end, real)
    ramp = p.add.bind(end, p.mul.bind(p.sub.bind(edge, end), weights))
    ramp = p.convert(ramp if is_inexact(dtype) else p.floor.bind(ramp), dtype)
    return flip(ramp, axis) if is_after else ramp


def _pad_statistic(
    x: Any, axis: int, widths: tuple[int, int], mode: str, length: Any, ndim: int
) -> Any:
    lengths = [None] * 2 if length is None else np.broadcast_to(length, (ndim, 2))[axis]
    borders = []
    for k, (width, m) in enumerate(zip(widths, lengths, strict=True)):
        n = shape_of(x)[axis]
        m = n if m is None else min(int(m), n)
        seen = part(x, axis, n - m, None) if k else part(x, axis, 0, m)
        value = STATISTICS[mode](seen, axis=axis, keepdims=True)
        dtype = aval_of(x).dtype
        value = value if is_inexact(dtype) else p.convert(e.rint(value), dtype)
        shape = tuple(width if i == axis else v for i, v in enumerate(shape_of(value)))
        borders.append(broadcast_to(p.convert(value, dtype), shape))
    return _bordered(x, axis, *borders)
