"""Operands and operations of the body of a loop that was found in a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Var
from funcgrad.higher_order.bounded import Bounded, Moved, Places, within
from funcgrad.higher_order.counted import with_count
from funcgrad.higher_order.scan import Scan
from funcgrad.primitives.elementwise import add, mul
from funcgrad.primitives.indexing import DynamicSlice
from funcgrad.primitives.shape import Reverse, Slice, moveaxis_to_front, reshape, shape_of

Find = Callable[[Any], Any]
"""The value of an operand in this iteration."""


@dataclass(frozen=True)
class ScannedWindows:
    """Windows of all iterations, if they follow each other along one axis.

    Attributes:
        starts: Where the window of the first iteration begins.
        sizes: How long windows are along each axis.
        strides: The distances of their elements.
        axis: The axis along which iterations differ; windows have one element along it.
        step: By how much.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    axis: int
    step: int

    def rows(self, x: Any, steps: int) -> Any:
        """All windows, one behind the other, without the axis along which they differ."""
        axis = self.axis
        starts, strides = list(self.starts), list(self.strides)
        limits = [
            a + (m and (m - 1) * s + 1) for a, m, s in zip(starts, self.sizes, strides, strict=True)
        ]
        last = starts[axis] + (steps - 1) * self.step
        starts[axis], limits[axis] = min(starts[axis], last), max(starts[axis], last) + 1
        strides[axis] = abs(self.step)
        part = Slice(tuple(starts), tuple(limits), tuple(strides)).bind(x)
        return moveaxis_to_front(Reverse((axis,)).bind(part) if self.step < 0 else part, axis)


Begins = np.ndarray[Any, np.dtype[np.int64]]
"""Places where the windows of all iterations begin, along each axis."""


def shared_rows(
    windows: Sequence[tuple[Var | None, Sequence[int], Begins]], uses: Mapping[Var, int]
) -> dict[Var, ScannedWindows]:
    """Arrays of which each iteration reads one row along an axis common to all windows.

    Their cotangents are rows, too: nothing is added to a whole array in any iteration.

    Args:
        windows: Arrays that are the same in all iterations, the lengths of windows of them, and
            their places.
        uses: How often iterations read each of these arrays.
    Returns: By array, the windows that are its rows.
    """
    moves: dict[Var, list[tuple[int, set[ScannedWindows]]]] = {}
    for source, sizes, places in windows:
        if source is not None:
            shape = source.aval.shape
            moving = np.flatnonzero((places != places[0]).any(0)).tolist()
            found = set()
            for axis in moving:
                step, *others = set(np.diff(places[:, axis]).tolist())
                if sizes[axis] == 1 and not others:
                    at = tuple(int(places[0, axis]) if i == axis else 0 for i in range(len(shape)))
                    row = tuple(1 if i == axis else n for i, n in enumerate(shape))
                    found.add(ScannedWindows(at, row, (1,) * len(shape), axis, step))
            moves.setdefault(source, []).append((len(moving), found))
    rows = {}
    for source, ways in moves.items():
        numbers, windows = zip(*ways, strict=True)
        common = set.intersection(*windows)
        if common and len(ways) == uses[source] and min(numbers) == 1 < max(numbers):
            (rows[source],) = common
    return rows


@dataclass(frozen=True)
class Window:
    """How the body reads a window.

    Attributes:
        sizes: Its lengths along each axis.
        strides: The distances of its elements.
        shape: That of the result: the lengths, or none for a single element.
        starts: By axis: a number, or the argument of the body that is it; none if windows are
            scanned.
        scanned: Which argument of the body it is in that case, or that it is a part of.
        axis: The axis that the latter lacks.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    starts: tuple[Any, ...]
    scanned: Any = None
    axis: int = 0

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], find: Find) -> Any:
        """The window of this iteration: of an array, if it is not scanned.

        Args:
            primitive: The operation that read it.
            operands: The array, if it is not scanned.
            find: The value of an operand of the body.
        """
        if self.scanned is not None:
            row = find(self.scanned)
            if not self.starts:
                return reshape(row, self.shape)
            shape = shape_of(row)
            operands = [reshape(row, (*shape[: self.axis], 1, *shape[self.axis :]))]
        (x,) = operands
        spans = tuple(m and (m - 1) * s + 1 for m, s in zip(self.sizes, self.strides, strict=True))
        window = DynamicSlice(spans).bind(x, *map(find, self.starts))
        if spans != self.sizes:
            window = Slice((0,) * len(spans), spans, self.strides).bind(window)
        return reshape(window, self.shape)


@dataclass(frozen=True)
class Argument:
    """An argument of the body: its kind (const, carry, scanned), and its number among these."""

    kind: str
    number: int


@dataclass(frozen=True)
class Growing:
    """A number that grows by equal steps.

    Attributes:
        counter: The argument of the body that counts iterations from 0.
        first: The number in the first iteration, or the argument that is it.
        step: By how much it grows.
    """

    counter: Argument
    first: int | Argument
    step: int

    def evaluate(self, find: Find) -> Any:
        """The number in this iteration."""
        steps = find(self.counter)
        grown = steps if self.step == 1 else mul.bind(steps, np.int64(self.step))
        return add.bind(grown, find(self.first)) if self.first else grown


@dataclass(frozen=True)
class Entry:
    """An entry of a table of scalars.

    Attributes:
        table: The argument of the body that is the table.
        place: Where it is.
    """

    table: Argument
    place: Argument | Growing

    def evaluate(self, find: Find) -> Any:
        """The entry of this iteration."""
        entry = DynamicSlice((1,)).bind(find(self.table), find(self.place))
        return reshape(entry, ())


@dataclass(frozen=True)
class Local:
    """A result of an equation of the body."""

    equation: int
    result: int


@dataclass(frozen=True)
class Constant:
    """A scalar, compared by type and bits."""

    kind: type
    bits: bytes
    literal: Any = field(compare=False)


Operand = Argument | Growing | Entry | Local | Constant


Bounds = tuple[Operand | int, Operand | int]
"""Begin and end of a part of an axis."""


@dataclass(frozen=True)
class Step:
    """An operation on arrays whose iterations use parts of them.

    Attributes:
        shifts: By operand and axis: by how much its elements are moved towards the beginning, so
            that all have the same places; ``None`` if they have.
    """

    shifts: tuple[tuple[Operand | int | None, ...], ...]

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], find: Find) -> Any:
        """The result in this iteration.

        Args:
            primitive: The operation.
            operands: Its operands.
            find: The value of an operand of the body.
        """
        return primitive.bind(*self.aligned(operands, find))

    def aligned(self, operands: Sequence[Any], find: Find) -> list[Any]:
        """The operands, with elements that belong together at the same places."""
        found = list(operands)
        for i, shifts in enumerate(self.shifts):
            for axis, shift in enumerate(shifts):
                if shift is not None:
                    found[i] = Moved(axis).bind(found[i], find(shift))
        return found


@dataclass(frozen=True)
class Counted:
    """A loop whose number of steps differs between iterations.

    Attributes:
        count: How many steps it takes.
    """

    count: Operand | int

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], find: Find) -> Any:
        """Results of the loop; that of the primitive has the most steps."""
        assert isinstance(primitive, Scan)
        return with_count(primitive, primitive.length).bind(find(self.count), *operands)


@dataclass(frozen=True)
class FoldOfParts(Step):
    """A fold, or a product, of parts of arrays.

    Attributes:
        bounds: Begin and end of each part.
        parts: By operand and axis: which part is taken.
        places: By operand and axis: the part at whose places its elements belong.
        result: By axis of the result: which part of it is computed.
        sides: By part: where it begins or ends with the axis, as in `Bounded`.
    """

    bounds: tuple[Bounds, ...]
    parts: tuple[Places, ...]
    places: tuple[Places, ...]
    result: Places
    sides: tuple[str, ...]

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], find: Find) -> Any:
        fold = Bounded(primitive, self.parts, self.places, self.result, self.sides)
        return fold.bind(*operands, *(find(x) for pair in self.bounds for x in pair))


@dataclass(frozen=True)
class UpdateOfPart(Step):
    """A window, of which a part is replaced.

    Attributes:
        starts: By axis: where the window begins, if that is not the operand.
        bounds: By axis: begin and end of the part, if it is not all.
    """

    starts: tuple[int | None, ...]
    bounds: tuple[Bounds | None, ...]

    def evaluate(self, primitive: Primitive, operands: Sequence[Any], find: Find) -> Any:
        x, update, *given = self.aligned(operands, find)
        starts = [
            own if fixed is None else np.int64(fixed)
            for own, fixed in zip(given, self.starts, strict=True)
        ]
        old = DynamicSlice(tuple(shape_of(update))).bind(x, *starts)
        bounds = [None if b is None else (find(b[0]), find(b[1])) for b in self.bounds]
        return primitive.bind(x, within(update, old, bounds), *starts)


__all__ = [
    "Argument",
    "Bounds",
    "Constant",
    "Counted",
    "Entry",
    "FoldOfParts",
    "Growing",
    "Local",
    "Operand",
    "ScannedWindows",
    "Step",
    "UpdateOfPart",
    "Window",
    "shared_rows",
]  # fmt: skip
