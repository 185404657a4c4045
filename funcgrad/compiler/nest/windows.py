"""Windows that a program has copied side by side, as views of the array that they were cut from.

Slices of one array, stacked at even distances, lie in that array already: a view with an axis more
shows them. Where such a view is given another shape it has to be copied; but a contraction needs
no such copy, whose axes can all be told apart again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from funcgrad.compiler.nest.layout import (
    Operand,
    Shape,
    View,
    factored,
    is_overlapping,
    reshaped,
)
from funcgrad.compiler.nest.nodes import is_copy

_Axis = tuple[int, int]
"""Length and stride."""


def view_of_parts(parts: Sequence[Operand], places: Sequence[View]) -> View | None:
    """The view that shows what is assembled of parts, if they lie in one array like that.

    Args:
        parts: Parts of one shape, in the order of their places.
        places: Where they go, in an array that they fill.
    """
    if len(parts) < 2:
        return None
    first, place = parts[0], places[0]
    if not isinstance(first, View) or place.offset:
        return None
    offsets: list[int] = []
    for part in parts:
        if not isinstance(part, View) or part.value is not first.value:
            return None
        if (part.shape, part.strides) != (first.shape, first.strides):
            return None
        offsets.append(part.offset)
    out = place.value
    step = places[1].offset
    axis = next((a for a, n in enumerate(out.shape) if n != first.shape[a]), None)
    if axis is None or step != first.shape[axis] * out.strides[axis]:
        return None
    if len(parts) * math.prod(first.shape) != math.prod(out.shape):
        return None
    if any(p.offset != k * step or p.strides != out.strides for k, p in enumerate(places)):
        return None
    found = _even(offsets)
    if found is None:
        return None
    shape = (*first.shape[:axis], *(n for n, _ in found), *first.shape[axis:])
    strides = (*first.strides[:axis], *(s for _, s in found), *first.strides[axis:])
    view = View(first.value, shape, strides, offsets[0])
    return view if is_overlapping(view) or reshaped(view, out.shape) is not None else None


def _even(offsets: Sequence[int]) -> list[_Axis] | None:
    """The axes along which so many distances are walked, if there are no more than two."""
    distance = offsets[1] - offsets[0]
    steps = [b - a for a, b in itertools.pairwise(offsets)]
    length = next((k for k, step in enumerate(steps, 1) if step != distance), len(offsets))
    rows = offsets[::length]
    if len(rows) == 1:
        return [(length, distance)]
    apart = rows[1] - rows[0]
    expected = [rows[0] + i * apart + j * distance for i in range(len(rows)) for j in range(length)]
    return [(len(rows), apart), (length, distance)] if [*offsets] == expected else None


def copied_windows(x: Operand) -> tuple[View, list[Shape]] | None:
    """The windows that an operand is a copy of, and the axes that each of its axes joins."""
    maker = x.value.maker if isinstance(x, View) else None
    if not isinstance(x, View) or maker is None or not is_copy(maker):
        return None
    (windows,) = maker.operands
    found = factored(x)
    if found is None or not isinstance(windows, View) or not is_overlapping(windows):
        return None
    lengths, form = found
    return windows.reindexed(form, sum(lengths, ())), lengths
