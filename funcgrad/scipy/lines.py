"""Lines of samples: their dtype, the axis of the lines, and both ends."""

from __future__ import annotations

from typing import Any

from funcgrad.core.avals import aval_of
from funcgrad.dtypes import is_complex
from funcgrad.errors import ArgumentError
from funcgrad.numpy import padding, taking
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.promotion import as_value, normalize_axis, promote_inexact, strong
from funcgrad.numpy.rearranging import flip
from funcgrad.numpy.shaping import broadcast_to
from funcgrad.primitives.fft import along
from funcgrad.primitives.shape import shape_of

__all__ = [
    "along", "cut", "extended", "floating", "is_complex_value", "line_axis", "odd_extended",
    "repeated_ends", "zeros_added",
]  # fmt: skip


def floating(function: str, *args: Any) -> list[Any]:
    """Strong floating or complex values of one dtype."""
    return [strong(x) for x in promote_inexact(*[as_value(a, function) for a in args])]


def is_complex_value(x: Any) -> bool:
    """Whether a value is complex."""
    return is_complex(aval_of(x).dtype)


def line_axis(x: Any, axis: int, function: str) -> int:
    """A non-negative axis of ``x``."""
    return normalize_axis(axis, len(shape_of(x)), function)


def cut(x: Any, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Any:
    """``x[start:stop:step]`` along an axis."""
    return taking.part(x, axis % len(shape_of(x)), start, stop, step)


_NUMPY_MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}
"""Names of `scipy.ndimage` for extensions, and those of `numpy.pad`."""


def extended(x: Any, axis: int, before: int, after: int, mode: str, cval: Any = 0.0) -> Any:
    """``x`` with more elements at both ends of an axis.

    Args:
        x: Array.
        axis: The axis, not negative.
        before: Number of elements in front.
        after: Number of elements behind.
        mode: As in `scipy.ndimage`.
        cval: What stands there in mode "constant".
    Raises: ArgumentError: If there is no such mode.
    """
    widths = [(before, after) if i == axis else (0, 0) for i in range(len(shape_of(x)))]
    if mode in ("constant", "grid-constant"):
        return padding.pad(x, widths, "constant", constant_values=cval)
    if mode not in _NUMPY_MODES:
        known = ", ".join(map(repr, ("constant", "grid-constant", *_NUMPY_MODES)))
        raise ArgumentError(f"mode must be one of {known}, got {mode!r}.")
    return padding.pad(x, widths, _NUMPY_MODES[mode])


def odd_extended(x: Any, n: int, axis: int, is_odd: bool = True) -> Any:
    """``x`` with ``n`` elements at both ends, mirrored there: at the point itself, or evenly."""
    if n < 1:
        return x
    size = shape_of(x)[axis]
    left = flip(cut(x, axis, 1, n + 1), axis)
    right = flip(cut(x, axis, size - n - 1, size - 1), axis)
    if is_odd:
        left = 2 * cut(x, axis, 0, 1) - left
        right = 2 * cut(x, axis, size - 1, size) - right
    return concatenate([left, x, right], axis)


def repeated_ends(x: Any, n: int, axis: int) -> Any:
    """``x`` with ``n`` copies of its first and of its last element."""
    if n < 1:
        return x
    shape = list(shape_of(x))
    size, shape[axis] = shape[axis], n
    ends = [broadcast_to(cut(x, axis, i, i + 1), tuple(shape)) for i in (0, size - 1)]
    return concatenate([ends[0], x, ends[1]], axis)


def zeros_added(x: Any, before: int, after: int, axis: int) -> Any:
    """``x`` with zeros at both ends of an axis."""
    widths = [(before, after) if i == axis else (0, 0) for i in range(len(shape_of(x)))]
    return padding.pad(x, widths)
