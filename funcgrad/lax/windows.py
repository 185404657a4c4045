"""Folds of windows that slide over arrays (pooling), and the padding that both ends need."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import isinf, prod
from typing import Any

import numpy as np

from funcgrad.core.avals import aval_of
from funcgrad.core.trace import Tracer
from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.higher_order.staging import check_function
from funcgrad.lax import elementwise
from funcgrad.lax.operands import Array, ArrayLike, array_operand, check_kinds, checked, same_dtype
from funcgrad.lax.reductions import monoid, reduce
from funcgrad.lax.shapes import pad, stack
from funcgrad.lowering import Slide
from funcgrad.primitives import windows
from funcgrad.primitives.families import shape_of
from funcgrad.primitives.objects import flatten_numbers
from funcgrad.primitives.shape import Slice

Pads = Sequence[tuple[int, int]]

_KINDS: dict[Any, tuple[type[Any], str]] = {
    elementwise.add: (windows.WindowSum, "iufc"),
    elementwise.max: (windows.WindowMax, "biuf"),
    elementwise.min: (windows.WindowMin, "biuf"),
    elementwise.bitwise_or: (windows.WindowMax, "b"),
    elementwise.bitwise_and: (windows.WindowMin, "b"),
}


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """The ``(low, high)`` that a name of a padding stands for, along every axis.

    Args:
        in_shape: Lengths of the axes.
        window_shape: Lengths of the windows, dilation included.
        padding: ``"VALID"`` for none; ``"SAME"`` for so much that there is one window for every
            ``stride`` elements, the larger part behind; ``"SAME_LOWER"`` likewise, the larger part
            in front.
    Returns: One pair per axis.
    Raises: ArgumentError: If the name is another one.
    Example: fg.lax.padtype_to_pads((5, 6), (2, 4), (1, 2), "SAME") -> [(0, 1), (1, 1)]
    """
    name = padding.upper()
    if name not in ("SAME", "SAME_LOWER", "VALID"):
        raise ArgumentError(
            f"padding {padding!r} is not known: use 'SAME', 'SAME_LOWER', 'VALID' or one "
            "(low, high) per axis."
        )
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        both = int(max((-(-int(n) // int(stride)) - 1) * int(stride) + int(window) - int(n), 0))
        low = both // 2 if name == "SAME" else both - both // 2
        pads.append((low, both - low))
    return pads


def per_axis(
    name: str, what: str, values: Sequence[int] | None, count: int, least: int = 1
) -> tuple[int, ...]:
    """One integer for each of ``count`` axes, 1 by default.

    Raises: ArgumentError: If there are more or fewer, or one is below ``least``.
    """
    found = (1,) * count if values is None else tuple(int(v) for v in values)
    if len(found) != count or any(v < least for v in found):
        raise ArgumentError(
            f"lax.{name}: {what} must be {count} integers of at least {least}, one per axis, got "
            f"{tuple(values or ())}."
        )
    return found


def slides_of(
    name: str,
    shape: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    pads: Pads,
    base: Sequence[int],
    dilation: Sequence[int],
) -> tuple[Slide, ...]:
    """How windows slide along axes, with as many windows as there is room for.

    Raises: ShapeError: If negative padding takes more than there is.
    """
    slides = []
    rows = zip(shape, taps, strides, pads, base, dilation, strict=True)
    for axis, (n, k, stride, (low, high), gap, step) in enumerate(rows):
        length = (n - 1) * gap + 1 if n else 0
        room = low + length + high
        if room < 0:
            raise ShapeError(
                f"lax.{name}: padding {(low, high)} takes more than the {length} elements that "
                f"there are along axis {axis} of the window."
            )
        rest = room - ((k - 1) * step + 1)
        slides.append(Slide(rest // stride + 1 if rest >= 0 else 0, k, stride, step, low, gap))
    return tuple(slides)


def checked_pads(name: str, padding: Any, count: int) -> list[tuple[int, int]]:
    """Explicit padding as pairs.

    Raises: ArgumentError: If it is not one pair of integers per axis.
    """
    try:
        pads = [(int(low), int(high)) for low, high in padding]
    except (TypeError, ValueError):
        pads = []
    if len(pads) != count:
        raise ArgumentError(
            f"lax.{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or {count} pairs "
            f"(low, high), one per axis, got {padding!r}."
        )
    return pads


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Pads = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """A fold of every window that slides over an array: pooling.

    Sums and extremes (``add``, ``max``, ``min`` of `lax`, `operator` or NumPy, ``bitwise_or`` and
    ``bitwise_and`` of bools) are operations of their own. Other computations work on a copy of all
    elements of all windows. Where several elements of a window are its maximum (minimum), the
    derivative is that of the first of them in row-major order.

    Args:
        operand: Array, or pytree of arrays of one shape, which are folded together.
        init_value: Scalar that the fold of every window starts with, and that stands beyond the
            ends of the array and in the holes of ``base_dilation``. Of integers and bools, an
            infinite one is the extreme value of their dtype.
        padding: ``"SAME"``, ``"VALID"``, ``"SAME_LOWER"``, or ``(low, high)`` for every axis;
            negative ones cut.
    Returns: An array with one element for every window.

    Raises:
        ArgumentError: If there is not one number, or one pair, for every axis.
        ShapeError: If negative padding takes more than there is.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> print(fg.lax.reduce_window(x, -np.inf, fg.lax.max, (2, 2), (2, 2), "VALID"))
        [[ 5.  7.]
         [13. 15.]]
        >>> print(fg.lax.reduce_window(np.arange(5.0), 0.0, fg.lax.add, (3,), (1,), "SAME") / 3)
        [0.33333333 1.         2.         3.         2.33333333]
    """
    check_function(computation, "computation", "reduce_window")
    leaves, treedef = flatten_numbers(operand)
    starts, start_tree = flatten_numbers(init_value)
    if start_tree != treedef or not leaves:
        raise ArgumentError(
            "lax.reduce_window: init_value must have the structure of operand.\n"
            f"  expected      {treedef}\n  got           {start_tree}"
        )
    pairs = [
        same_dtype("reduce_window", x, _finite_start(v, aval_of(x).dtype))
        for x, v in zip((array_operand("reduce_window", x) for x in leaves), starts, strict=True)
    ]
    shape = shape_of(pairs[0][0])
    if any(shape_of(x) != shape or shape_of(v) for x, v in pairs):
        types = ", ".join(str(aval_of(z)) for pair in pairs for z in pair)
        raise ShapeError(
            "lax.reduce_window: operands must have one shape and init values must be scalars, got "
            f"{types}."
        )
    strides = (1,) * len(shape) if window_strides is None else window_strides
    slides = _slides(shape, window_dimensions, strides, padding, base_dilation, window_dilation)
    known = monoid(computation) if treedef.is_leaf else None
    if known is not None and known[0] in _KINDS:
        combine = known[0]
        kind, kinds = _KINDS[combine]
        ((x, init),) = pairs
        dtype = aval_of(x).dtype
        check_kinds("reduce_window", dtype, kinds)
        if not isinstance(init, Tracer) and init == windows.neutral(kind.init, dtype):
            return checked(kind(slides), x)
        x, slides = _padded(x, init, slides)
        return combine(init, checked(kind(slides), x))
    stacks = [_taps(*_padded(x, init, slides)) for x, init in pairs]
    inits = [v for _, v in pairs]
    return reduce(treedef.unflatten(stacks), treedef.unflatten(inits), computation, (0,))


def _finite_start(init: ArrayLike, dtype: np.dtype[Any]) -> ArrayLike:
    """An init value, with the extreme of an exact dtype for an infinite one."""
    if type(init) is not float or not isinf(init) or dtype.kind not in "biu":
        return init
    return windows.neutral("{lowest}" if init < 0 else "{highest}", dtype)


def _slides(
    shape: tuple[int, ...],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> tuple[Slide, ...]:
    n = len(shape)
    taps = per_axis("reduce_window", "window_dimensions", window_dimensions, n)
    strides = per_axis("reduce_window", "window_strides", window_strides, n)
    base = per_axis("reduce_window", "base_dilation", base_dilation, n)
    dilation = per_axis("reduce_window", "window_dilation", window_dilation, n)
    if isinstance(padding, str):
        spans = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
        pads = padtype_to_pads(shape, spans, strides, padding)
    else:
        pads = checked_pads("reduce_window", padding, n)
    return slides_of("reduce_window", shape, taps, strides, pads, base, dilation)


def _padded(
    x: Array, init: ArrayLike, slides: tuple[Slide, ...]
) -> tuple[Array, tuple[Slide, ...]]:
    """The array with a value wherever windows meet no element, and windows that lie inside."""
    config, inside = [], []
    for n, s in zip(shape_of(x), slides, strict=True):
        length = (n - 1) * s.base + 1 if n else 0
        size = s.reach[1] + 1 if s.windows else s.low + length
        config.append((s.low, size - s.low - length, s.base - 1))
        inside.append(Slide(s.windows, s.taps, s.stride, s.dilation))
    return pad(x, init, config), tuple(inside)


def _taps(x: Array, slides: tuple[Slide, ...]) -> Array:
    """All taps of windows that lie inside, along a new first axis."""
    parts = []
    for place in itertools.product(*(range(s.taps) for s in slides)):
        starts = tuple(k * s.dilation for k, s in zip(place, slides, strict=True))
        limits = tuple(
            a + (s.windows - 1) * s.stride + 1 if s.windows else a
            for a, s in zip(starts, slides, strict=True)
        )
        if prod(s.windows for s in slides):
            parts.append(Slice(starts, limits, tuple(s.stride for s in slides)).bind(x))
        else:
            parts.append(np.zeros([s.windows for s in slides], aval_of(x).dtype))
    return stack(parts)
