"""Layouts of values: strided views of contiguous memory.

A `Value` is stored contiguously, in row-major order; everything that moves elements only
(transposition, slices, broadcasting, most reshapes) is a `View` of it and costs nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Self, TypeVar

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.lowering import Reindex

Shape = tuple[int, ...]

Box = tuple[tuple[int, int], ...]
"""For every axis of an index space the first index inside, and the first one after it."""

Range = tuple[int, int, int]
"""Indices along an axis: the first one, their distance, and their number."""


class Value:
    """An array of the plan: computed by a kernel, given by the caller, or constant.

    Attributes:
        shape: Its shape.
        dtype: Its dtype.
        array: Its elements, if they are known now: those of a constant.
        maker: The node that computes it; ``None`` for inputs and constants.
        is_free: Whether nobody has asked for the order in which its axes lie in memory (`orders`).
        is_stored: Whether it has memory; values that only their own kernel reads have none.
        slot: Index of the word that holds the address of its memory, once that is decided.
        offset: Bytes from that address to its first element.
        home: The value whose memory it is written to: itself, a donated input, an array that it is
            a part of.
        part: Where in an assembled array it is written; ``None`` if nowhere.
    """

    __slots__ = (
        "array", "dtype", "home", "is_free", "is_stored", "maker", "offset", "part", "shape",
        "slot", "strides",
    )  # fmt: skip

    def __init__(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.array: np.ndarray | None = None
        self.maker: Any = None
        self.strides = contiguous_strides(shape)
        self.is_free = False
        self.is_stored = True
        self.home: Value = self
        self.part: View | None = None
        self.slot = -1
        self.offset = 0

    @property
    def nbytes(self) -> int:
        itemsize: int = self.dtype.itemsize
        return math.prod(self.shape) * itemsize


class Strided:
    """Base of operands whose elements are at constant strides."""

    shape: Shape
    strides: tuple[int, ...]
    offset: int

    def walked(self, shape: Shape, strides: tuple[int, ...], offset: int) -> Self:
        """The same array walked in another way."""
        raise NotImplementedError

    def reindexed(self, form: Reindex, shape: Shape) -> Self:
        """Itself, seen through a `Reindex`."""
        offset = self.offset + sum(
            start * stride for start, stride in zip(form.starts, self.strides, strict=True)
        )
        strides = tuple(
            0 if axis is None else self.strides[axis] * step
            for axis, step in zip(form.axes, form.steps, strict=True)
        )
        return self.walked(shape, strides, offset if math.prod(shape) else 0)

    def permuted(self, order: Sequence[int]) -> Self:
        """Itself with its axes in another order."""
        return self.reindexed(moved_axes(order), tuple(self.shape[axis] for axis in order))

    def broadcast(self, shape: Shape) -> Self:
        """Itself, repeated to a shape by NumPy's rule."""
        if self.shape == shape:
            return self
        lead = len(shape) - len(self.shape)
        strides = (0,) * lead + tuple(
            0 if n == 1 and shape[lead + i] != 1 else s
            for i, (n, s) in enumerate(zip(self.shape, self.strides, strict=True))
        )
        return self.walked(shape, strides, self.offset)

    def element(self, i: int) -> Self:
        """One element along the first axis."""
        return self.walked(self.shape[1:], self.strides[1:], self.offset + i * self.strides[0])

    def narrowed(self, axis: int, first: int, end: int) -> Self:
        """A range of its elements along an axis."""
        shape = (*self.shape[:axis], end - first, *self.shape[axis + 1 :])
        return self.walked(shape, self.strides, self.offset + first * self.strides[axis])

    def as_stack(self) -> Self:
        """Itself, stacked alone."""
        return self.walked((1, *self.shape), (0, *self.strides), self.offset)

    def divided(self, lengths: Sequence[Shape]) -> Self:
        """Itself with each of its axes as several."""
        strides = [
            stride * s
            for ns, stride in zip(lengths, self.strides, strict=True)
            for s in contiguous_strides(ns)
        ]
        return self.walked(tuple(n for ns in lengths for n in ns), tuple(strides), self.offset)

    def without_ones(self) -> Self:
        """Itself without its axes of length 1."""
        axes = [axis for axis, n in enumerate(self.shape) if n != 1]
        shape = tuple(self.shape[axis] for axis in axes)
        return self.walked(shape, tuple(self.strides[axis] for axis in axes), self.offset)

    def around(self, box: Box, shape: Shape) -> Self:
        """Itself, as large as a box, by the indices of a space that the box is a part of."""
        strides = tuple(0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        before = sum(a * s for (a, _), s in zip(box, strides, strict=True))
        return self.walked(shape, strides, self.offset - before)


@dataclass(frozen=True)
class View(Strided):
    """Elements of a value: strides and offset count elements of its contiguous storage."""

    value: Value
    shape: Shape
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    def walked(self, shape: Shape, strides: tuple[int, ...], offset: int) -> View:
        return View(self.value, shape, strides, offset)

    def of(self, value: Value) -> View:
        """The same view of another value."""
        return View(value, self.shape, self.strides, self.offset)

    @property
    def first_byte(self) -> int:
        """Bytes from the address in the slot of its value to its first element."""
        return self.value.offset + self.offset * self.dtype.itemsize

    @property
    def is_value(self) -> bool:
        """Whether it is the value itself, under its own shape."""
        return self.shape == self.value.shape and self.is_whole

    @property
    def is_repeated(self) -> bool:
        """Whether it is the same along an axis: a fact of its shape, not of its size."""
        return any(n > 1 and s == 0 for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def is_whole(self) -> bool:
        """Whether it is the value itself, possibly under another shape."""
        return (
            self.offset == 0
            and same_strides(self.shape, self.strides, contiguous_strides(self.shape))
            and math.prod(self.shape) == math.prod(self.value.shape)
        )


@dataclass(frozen=True)
class Uniform(Strided):
    """An array of one and the same scalar, which has no memory."""

    scalar: Any
    shape: Shape
    strides: tuple[int, ...] = field(init=False)
    offset: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strides", (0,) * len(self.shape))

    def walked(self, shape: Shape, strides: tuple[int, ...], offset: int) -> Uniform:
        return Uniform(self.scalar, shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.scalar.dtype
        return dtype


Operand = View | Uniform


def is_overlapping(view: View) -> bool:
    """Whether it shows most elements several times."""
    return math.prod(view.shape) > 2 * math.prod(view.value.shape)


S = TypeVar("S", bound=Strided)
T = TypeVar("T")


def contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(strides[::-1])


def same_strides(shape: Shape, a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether strides are equal along all axes on which they matter."""
    return all(n == 1 or s == t for n, s, t in zip(shape, a, b, strict=True))


def whole(value: Value) -> View:
    """The view of all of a value."""
    return View(value, value.shape, value.strides)


def cut(starts: Sequence[int]) -> Reindex:
    """The part of an array that begins at an index."""
    return Reindex(tuple(range(len(starts))), tuple(starts), (1,) * len(starts))


def moved_axes(axes: Sequence[int | None]) -> Reindex:
    """An array with axes in this order; repeated along those that are nothing's."""
    n = len([axis for axis in axes if axis is not None])
    return Reindex(tuple(axes), (0,) * n, (1,) * len(axes))


def domain(operands: Sequence[Operand], shape: Shape) -> Shape:
    """A shape with length 1 along axes along which each operand goes on and stays the same."""
    lengths = zip(shape, *(zip(x.shape, x.strides, strict=True) for x in operands), strict=True)
    return tuple(1 if n and all(x == (n, 0) for x in walked) else n for n, *walked in lengths)


def first(operand: S, shape: Shape) -> S:
    """The first elements of an operand along its axes."""
    return operand.walked(shape, operand.strides, operand.offset)


def factored(view: View) -> tuple[list[Shape], Reindex] | None:
    """The axes that those of a view split into so that each walks along one axis of its value.

    Returns:
        The lengths of the axes that each of the view's is split into, and how these walk; nothing
        where there are no such axes.
    """
    shape, strides = view.value.shape, view.value.strides
    lowest = view.offset
    for n, stride in zip(view.shape, view.strides, strict=True):
        lowest += min(0, (n - 1) * stride)
    starts = [lowest // s % n if n else 0 for n, s in zip(shape, strides, strict=True)]
    lengths: list[Shape] = []
    axes: list[int | None] = []
    steps: list[int] = []
    for n, stride in zip(view.shape, view.strides, strict=True):
        own: list[tuple[int, int | None, int]] = []
        while n != 1 and stride:
            walked = (a for a, s in enumerate(strides) if shape[a] > 1 and stride % s == 0)
            axis = next(walked, None)
            if axis is None or axis in axes or any(axis == a for _, a, _ in own):
                return None
            step, count = stride // strides[axis], n
            if starts[axis] + abs(step) * (n - 1) >= shape[axis]:
                # It goes on along another axis, from the end of this one.
                count = shape[axis] // abs(step)
                if starts[axis] >= abs(step) or shape[axis] % step or n % max(count, 1):
                    return None
            starts[axis] -= min(step, 0) * (count - 1)
            own.insert(0, (count, axis, step))
            if count == n:
                break
            n, stride = n // count, stride * count
        own = own or [(n, None, 1)]
        lengths.append(tuple(count for count, _, _ in own))
        axes += [axis for _, axis, _ in own]
        steps += [step for _, _, step in own]
    return lengths, Reindex(tuple(axes), tuple(starts), tuple(steps))


def reindex_of(view: View) -> Reindex | None:
    """How a view walks its value, if every axis of it walks along an axis of its own there."""
    found = factored(view)
    return None if found is None or any(len(own) > 1 for own in found[0]) else found[1]


def ranges_of(place: View) -> list[Range] | None:
    """The indices that a view has along every axis of its value, if it is regular there."""
    form = reindex_of(place)
    if form is None:
        return None
    found = [(start, 1, 1) for start in form.starts]
    for n, axis, step in zip(place.shape, form.axes, form.steps, strict=True):
        if axis is not None:
            found[axis] = form.starts[axis] + min(0, (n - 1) * step), abs(step), n
    return found


def is_in_order(place: View) -> bool:
    """Whether every axis of a view goes up the same axis of its value, if it goes along any."""
    form = reindex_of(place)
    if form is None or len(place.shape) != len(place.value.shape):
        return False
    walks = enumerate(zip(form.axes, form.steps, strict=True))
    return all(axis in (None, k) and step > 0 for k, (axis, step) in walks)


def box_of(place: View) -> Box | None:
    """The box of its value that a view with the same axes covers, if it is one."""
    ranges = ranges_of(place)
    if ranges is None or not is_in_order(place) or any(step != 1 for _, step, _ in ranges):
        return None
    return tuple((a, a + n) for a, _, n in ranges)


def seen_box(box: Box, form: Reindex, shape: Shape) -> Box | None:
    """The indices of a reindexed array that lead into a box of it, or ``None`` if there are none.

    Every axis of the array is walked along by one axis at most.
    """
    seen = [(0, n) for n in shape]
    for axis, (a, b) in enumerate(box):
        start = form.starts[axis]
        if axis not in form.axes:
            if not a <= start < b:
                return None
            continue
        k = form.axes.index(axis)
        step, n = form.steps[k], shape[k]
        if step < 0:  # the same axis, counted from its other end
            start, step, a, b = -start, -step, 1 - b, 1 - a
        low, high = -((start - a) // step), -((start - b) // step)
        seen[k] = (min(max(low, 0), n), min(max(high, 0), n))
    return None if is_empty(seen) else tuple(seen)


def without(items: tuple[T, ...], i: int) -> tuple[T, ...]:
    """All items but one."""
    return items[:i] + items[i + 1 :]


def is_empty(box: Sequence[tuple[int, int]]) -> bool:
    return any(a >= b for a, b in box)


def everything(shape: Shape) -> Box:
    """The box of all indices."""
    return tuple((0, n) for n in shape)


def is_everything(box: Box, shape: Shape) -> bool:
    return box == everything(shape)


def box_size(box: Box) -> int:
    """How many indices it has."""
    return math.prod(max(b - a, 0) for a, b in box)


def largest_beside(box: Box, hole: Box) -> Box:
    """The largest part of a box, itself a box, that has nothing in common with a part of it."""
    if is_empty(hole):
        return box
    parts = []
    for axis, ((a, b), (begin, end)) in enumerate(zip(box, hole, strict=True)):
        for side in ((a, begin), (end, b)):
            parts.append((*box[:axis], side, *box[axis + 1 :]))
    return max(parts, key=box_size, default=hole)


def core_of(space: Shape, boxes: Iterable[Box]) -> tuple[Box, list[bool]]:
    """A large box that lies inside or outside of each of some boxes, and inside of which."""
    core, sides = everything(space), []
    for box in boxes:
        inside = common_box(box, core)
        outside = largest_beside(core, inside)
        sides.append(box_size(inside) >= box_size(outside))
        core = inside if sides[-1] else outside
    return core, sides


def common_box(a: Box, b: Box) -> Box:
    """Intersection of two boxes."""
    return tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))


def reshaped(operand: Operand, shape: Shape) -> Operand | None:
    """An operand under another shape, or ``None`` if that needs a copy."""
    if isinstance(operand, Uniform):
        return Uniform(operand.scalar, shape)
    if not math.prod(shape):
        return View(operand.value, shape, contiguous_strides(shape))
    # Maximal runs of old axes that are contiguous with each other, as (length, stride).
    runs: list[tuple[int, int]] = []
    for n, s in zip(operand.shape, operand.strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    strides: list[int] = []
    rest = iter(runs)
    length, stride = 1, 1
    for n in shape:
        if n == 1:
            strides.append(length * stride)
            continue
        if length == 1:
            length, stride = next(rest)
        if length % n:
            return None
        length //= n
        strides.append(length * stride)
    return View(operand.value, shape, tuple(strides), operand.offset)


def view_of_parts(parts: Sequence[Operand], places: Sequence[View]) -> View | None:
    """The view that shows what is assembled of parts, if they lie in one array like that.

    Slices of one array, stacked at even distances, lie in that array already: a view with an axis
    more shows them.

    Args:
        parts: Parts of one shape, in the order of their places.
        places: Where they go, in an array that they fill.
    """
    if len(parts) < 2 or not isinstance(parts[0], View):
        return None
    first, out = parts[0], places[0].value
    if len(parts) * math.prod(first.shape) != math.prod(out.shape):
        return None
    axis = next((a for a, n in enumerate(out.shape) if n != first.shape[a]), 0)
    offsets: list[int] = []
    for k, (part, place) in enumerate(zip(parts, places, strict=True)):
        begin = k * first.shape[axis] * out.strides[axis]
        if place.offset != begin or place.strides != out.strides or part.shape != first.shape:
            return None
        if not isinstance(part, View) or part.value is not first.value:
            return None
        if part.strides != first.strides:
            return None
        offsets.append(part.offset)
    found = _even(offsets)
    if found is None:
        return None
    shape = (*first.shape[:axis], *(n for n, _ in found), *first.shape[axis:])
    strides = (*first.strides[:axis], *(s for _, s in found), *first.strides[axis:])
    view = View(first.value, shape, strides, offsets[0])
    return view if is_overlapping(view) or reshaped(view, out.shape) is not None else None


def _even(offsets: Sequence[int]) -> list[tuple[int, int]] | None:
    """The lengths and distances of axes along which so many distances are walked, if there are."""
    if len(offsets) == 1:
        return []
    distance = offsets[1] - offsets[0]
    steps = (b - a for a, b in itertools.pairwise(offsets))
    length = next((k for k, step in enumerate(steps, 1) if step != distance), len(offsets))
    rows = offsets[::length]
    if [*offsets] != [row + j * distance for row in rows for j in range(length)]:
        return None
    outer = _even(rows)
    return None if outer is None else [*outer, (length, distance)]
