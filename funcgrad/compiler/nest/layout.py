"""Layouts of values: strided views of contiguous memory.

A `Value` is stored contiguously, in row-major order; everything that moves elements only
(transposition, slices, broadcasting, most reshapes) is a `View` of it and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


Interval = tuple[int, int]
"""The least of some integers, and the greatest."""


class Value:
    """An array of the plan: computed by a kernel, given by the caller, or constant.

    Attributes:
        shape: Its shape.
        dtype: Its dtype.
        array: Its elements, if they are known now: those of a constant.
        maker: The node that computes it; ``None`` for inputs and constants.
        bounds: Of integers, what is known of them when they are lowered, if no node tells.
        is_free: Whether nobody has asked for the order in which its axes lie in memory (`orders`).
        is_stored: Whether it has memory; values that only their own kernel reads have none.
        slot: Index of the word that holds the address of its memory, once that is decided.
        offset: Bytes from that address to its first element.
        home: The value whose memory it is written to: itself, a donated input, an array that it is
            a part of.
        part: Where in an assembled array it is written; ``None`` if nowhere.
        placed_by: The scatter whose integers say how much further that is, if one does.
    """

    __slots__ = (
        "array", "bounds", "dtype", "home", "is_free", "is_stored", "maker", "offset", "part",
        "placed_by", "shape", "slot", "strides",
    )  # fmt: skip

    def __init__(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.array: np.ndarray | None = None
        self.maker: Any = None
        self.bounds: Interval | None = None
        self.strides = contiguous_strides(shape)
        self.is_free = False
        self.is_stored = True
        self.home: Value = self
        self.part: View | None = None
        self.placed_by: Any = None
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

    def restrided(self, shape: Shape, strides: tuple[int, ...], offset: int) -> Self:
        """The same array with other strides."""
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
        return self.restrided(shape, strides, offset if math.prod(shape) else 0)

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
        return self.restrided(shape, strides, self.offset)

    def element(self, i: int) -> Self:
        """One element along the first axis."""
        return self.restrided(self.shape[1:], self.strides[1:], self.offset + i * self.strides[0])

    def narrowed(self, axis: int, first: int, end: int) -> Self:
        """A range of its elements along an axis."""
        shape = (*self.shape[:axis], end - first, *self.shape[axis + 1 :])
        return self.restrided(shape, self.strides, self.offset + first * self.strides[axis])

    def as_stack(self) -> Self:
        """Itself, stacked alone."""
        return self.restrided((1, *self.shape), (0, *self.strides), self.offset)

    def divided(self, lengths: Sequence[Shape]) -> Self:
        """Itself with each of its axes as several."""
        strides = [
            stride * s
            for ns, stride in zip(lengths, self.strides, strict=True)
            for s in contiguous_strides(ns)
        ]
        return self.restrided(tuple(n for ns in lengths for n in ns), tuple(strides), self.offset)

    def without_ones(self) -> Self:
        """Itself without its axes of length 1."""
        axes = [axis for axis, n in enumerate(self.shape) if n != 1]
        shape = tuple(self.shape[axis] for axis in axes)
        return self.restrided(shape, tuple(self.strides[axis] for axis in axes), self.offset)

    def around(self, box: Box, shape: Shape) -> Self:
        """Itself, as large as a box, by the indices of a space that the box is a part of."""
        strides = tuple(0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        before = sum(a * s for (a, _), s in zip(box, strides, strict=True))
        return self.restrided(shape, strides, self.offset - before)


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

    def restrided(self, shape: Shape, strides: tuple[int, ...], offset: int) -> View:
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
        if self.shape == self.value.shape and self.strides == self.value.strides:
            return self.offset == 0
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

    def restrided(self, shape: Shape, strides: tuple[int, ...], offset: int) -> Uniform:
        return Uniform(self.scalar, shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.scalar.dtype


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
    return tuple(1 if n and all(x == (n, 0) for x in own) else n for n, *own in lengths)


def first(operand: S, shape: Shape) -> S:
    """The first elements of an operand along its axes."""
    return operand.restrided(shape, operand.strides, operand.offset)


def factored(view: View) -> tuple[list[Shape], Reindex] | None:
    """The axes that those of a view split into so that each goes along one axis of its value.

    Returns: The lengths of the axes that each of the view's is split into, and their strides;
        nothing where there are no such axes.
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
            whole_steps = (a for a, s in enumerate(strides) if shape[a] > 1 and stride % s == 0)
            axis = next(whole_steps, None)
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
    """Strides of a view in its value, if every axis of it goes along an axis of its own there."""
    found = factored(view)
    return None if found is None or any(len(own) > 1 for own in found[0]) else found[1]


def of_source(view: View, source: Operand) -> Operand | None:
    """A view of a copy as a view of what is copied, if strides describe it there, too.

    Args:
        view: Elements of a value.
        source: The elements of that value, in its shape.
    """
    shape, contiguous = view.value.shape, view.value.strides
    starts = [view.offset // s % n if n else 0 for n, s in zip(shape, contiguous, strict=True)]
    lows, highs = [*starts], [*starts]
    strides: list[int] = []
    for n, stride in zip(view.shape, view.strides, strict=True):
        rest, sign, own = abs(stride), 1 if stride > 0 else -1, 0
        for axis, s in enumerate(contiguous):
            steps, rest = divmod(rest, s) if shape[axis] > 1 else (0, rest)
            reached = highs if sign > 0 else lows
            reached[axis] += sign * steps * max(n - 1, 0)
            own += sign * steps * source.strides[axis]
        strides.append(own)
    # No index goes on from the end of one axis along the next one.
    if any(low < 0 or high >= n for low, high, n in zip(lows, highs, shape, strict=True)):
        return None
    offset = sum(start * s for start, s in zip(starts, source.strides, strict=True))
    return source.restrided(view.shape, tuple(strides), source.offset + offset)


def without(items: tuple[T, ...], i: int) -> tuple[T, ...]:
    """All items but one."""
    return items[:i] + items[i + 1 :]


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
