"""Access maps with piecewise domains: which part of an assembled array an index leads to.

What is concatenated, padded, stacked or replaced is a map in `Pieces`: each has a place, a regular
set of indices, and an operand that is read there; later pieces cover earlier ones. Passes ask what
a view sees of them, how they lie by the axes of another shape, what one leaves of the others, and
whether all of them are one view of an array that exists already.

A place is a range of indices along each axis, or a box if there is nothing between them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass
from funcgrad.compiler.nest import layout
from funcgrad.lowering import Reindex


@dataclass(frozen=True)
class Pieces:
    """An array by its pieces.

    Attributes:
        operands: What is read at each place.
        places: The places, views of one value.
    """

    operands: tuple[layout.Operand, ...]
    places: tuple[layout.View, ...]

    def __iter__(self) -> Iterator[tuple[layout.Operand, layout.View]]:
        return zip(self.operands, self.places, strict=True)

    @staticmethod
    def of(pairs: Iterable[tuple[layout.Operand, layout.View]]) -> Pieces:
        """Pieces given one by one."""
        pairs = [*pairs]
        return Pieces(tuple(x for x, _ in pairs), tuple(place for _, place in pairs))

    @property
    def boxes(self) -> list[layout.Box] | None:
        """The places, if all of them are boxes."""
        boxes = [box for box in self._boxes if box is not None]
        return boxes if len(boxes) == len(self.places) else None

    @cached_property
    def _boxes(self) -> list[layout.Box | None]:
        """For every place its box: each of many elements may look for its piece."""
        return list(map(box_of, self.places))

    def only(self, view: layout.View) -> layout.Operand | None:
        """Return the operand that a view shows, if all of it belongs to one piece that is a box."""
        form = layout.reindex_of(view)
        if form is None:
            return None
        for operand, box in zip(reversed(self.operands), reversed(self._boxes), strict=True):
            if box is None:
                return None
            seen = seen_box(box, form, view.shape)
            if seen is not None:
                starts = tuple(s - a for s, (a, _) in zip(form.starts, box, strict=True))
                shown = operand.reindexed(Reindex(form.axes, starts, form.steps), view.shape)
                return shown if is_everything(seen, view.shape) else None
        return None

    def inside(self, place: layout.View, shape: layout.Shape) -> Pieces | None:
        """The pieces of a larger array in which this one, of a shape, lies at a place."""
        outer = layout.reshaped(place, shape)
        if not isinstance(outer, layout.View):
            return None
        found: list[tuple[layout.Operand, layout.View]] = []
        for x, inner in self:
            form = layout.reindex_of(inner)
            if form is None:
                return None
            part = outer.reindexed(form, inner.shape)
            if not is_in_order(part):  # it may be along one axis, if its own axes are
                size = (math.prod(part.shape),)
                row, spot = layout.reshaped(x, size), layout.reshaped(part, size)
                if row is not None and isinstance(spot, layout.View):
                    x, part = row, spot
            found.append((x, part))
        return Pieces.of(found)

    def without(self, part: layout.View) -> list[tuple[layout.Operand, layout.View]] | None:
        """Pieces without what a part covers; ``None`` where the rest would be no boxes."""
        found: list[tuple[layout.Operand, layout.View]] = []
        box = box_of(part)
        for operand, place in self:
            if are_apart(part, place):
                found.append((operand, place))
                continue
            own = box_of(place)
            if own is None or box is None:
                return None
            for rest in difference(own, box):
                form = layout.cut([a - b for (a, _), (b, _) in zip(rest, own, strict=True)])
                sizes = tuple(b - a for a, b in rest)
                found.append((operand.reindexed(form, sizes), place.reindexed(form, sizes)))
        return found

    def split(self, runs: Sequence[range], space: layout.Shape) -> Pieces | None:
        """The same in a space into whose axes those of the array split, if each is regular there.

        Args:
            runs: For every axis those that it becomes.
            space: The space.
        """
        found: list[tuple[layout.Operand, layout.View]] = []
        for x, place in self:
            ranges = ranges_of(place) if is_in_order(place) else None
            split = None if ranges is None else split_ranges(ranges, runs, space)
            if split is None:
                return None
            starts, steps, sizes = zip(*split, strict=True) if split else ((), (), ())
            lengths = [tuple(sizes[axis] for axis in run) for run in runs]
            spot = layout.whole(layout.Value(space, x.dtype)).reindexed(
                replace(layout.cut(starts), steps=steps), sizes
            )
            found.append((x.divided(lengths), spot.of(place.value)))
        return Pieces.of(found)

    def as_view(self) -> layout.View | None:
        """The view that shows the same, if all pieces lie in one array like that.

        Slices of one array, stacked at even distances, lie in that array already: a view with an
        axis more shows them. Pieces come in the order of their places, which they fill.
        """
        parts, first = self.operands, self.operands[0] if self.operands else None
        if len(parts) < 2 or not isinstance(first, layout.View):
            return None
        out = self.places[0].value
        if len(parts) * math.prod(first.shape) != math.prod(out.shape):
            return None
        axis = next((a for a, n in enumerate(out.shape) if n != first.shape[a]), 0)
        offsets: list[int] = []
        for k, (part, place) in enumerate(self):
            begin = k * first.shape[axis] * out.strides[axis]
            if (place.offset, place.strides) != (begin, out.strides):
                return None
            if not isinstance(part, layout.View) or part.value is not first.value:
                return None
            if (part.shape, part.strides) != (first.shape, first.strides):
                return None
            offsets.append(part.offset)
        found = _even(offsets)
        if found is None:
            return None
        shape = (*first.shape[:axis], *(n for n, _ in found), *first.shape[axis:])
        strides = (*first.strides[:axis], *(s for _, s in found), *first.strides[axis:])
        view = layout.View(first.value, shape, strides, offsets[0])
        return (
            view
            if layout.is_overlapping(view) or layout.reshaped(view, out.shape) is not None
            else None
        )


def _even(offsets: Sequence[int]) -> list[tuple[int, int]] | None:
    """The lengths and distances of axes along which the distances are even, if there are."""
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


def ranges_of(place: layout.View) -> list[layout.Range] | None:
    """The indices that a view has along every axis of its value, if it is regular there."""
    form = layout.reindex_of(place)
    return None if form is None else _ranges(place, form)


def _ranges(place: layout.View, form: Reindex) -> list[layout.Range]:
    found = [(start, 1, 1) for start in form.starts]
    for n, axis, step in zip(place.shape, form.axes, form.steps, strict=True):
        if axis is not None:
            found[axis] = form.starts[axis] + min(0, (n - 1) * step), abs(step), n
    return found


def is_in_order(place: layout.View) -> bool:
    """Whether every axis of a view goes up the same axis of its value, if it goes along any."""
    form = layout.reindex_of(place)
    return form is not None and _goes_up(place, form)


def _goes_up(place: layout.View, form: Reindex) -> bool:
    if len(place.shape) != len(place.value.shape):
        return False
    steps = enumerate(zip(form.axes, form.steps, strict=True))
    return all(axis in (None, k) and step > 0 for k, (axis, step) in steps)


def box_of(place: layout.View) -> layout.Box | None:
    """The box of its value that a view with the same axes covers, if it is one."""
    form = layout.reindex_of(place)
    if form is None or not _goes_up(place, form):
        return None
    ranges = _ranges(place, form)
    if any(step != 1 for _, step, _ in ranges):
        return None
    return tuple((a, a + n) for a, _, n in ranges)


def are_apart(one: layout.View, other: layout.View) -> bool:
    """Whether two places are known to have no element in common."""
    first, second = ranges_of(one), ranges_of(other)
    if first is None or second is None:
        return False
    return any(never_meet(a, b) for a, b in zip(first, second, strict=True))


def never_meet(a: layout.Range, b: layout.Range) -> bool:
    """Whether two ranges of indices are known to have none in common."""
    (first, step, n), (start, pace, m) = a, b
    if first + step * (n - 1) < start or start + pace * (m - 1) < first:
        return True
    return (start - first) % math.gcd(step, pace) != 0


def split_ranges(
    ranges: Sequence[layout.Range], runs: Sequence[range], space: layout.Shape
) -> list[layout.Range] | None:
    """The same indices of a space with more axes, if they are ranges there."""
    found: list[layout.Range] = [(0, 1, n) for n in space]
    for (start, step, count), run in zip(ranges, runs, strict=True):
        for axis in run[:0:-1]:
            n = space[axis]
            if step % n == 0 or count == 1:
                found[axis] = start % n, 1, 1
                start, step = start // n, max(step // n, 1)
            elif step == 1 and start % n == count % n == 0:
                start, count = start // n, count // n
            else:
                return None
        for axis in run[:1]:
            found[axis] = start, step, count
    return found


def seen_box(box: layout.Box, form: Reindex, shape: layout.Shape) -> layout.Box | None:
    """The indices of a reindexed array that lead into a box of it, or ``None`` if there are none.

    Every axis of the array is read along by one axis at most.
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


def is_empty(box: Sequence[tuple[int, int]]) -> bool:
    return any(a >= b for a, b in box)


def everything(shape: layout.Shape) -> layout.Box:
    """The box of all indices."""
    return tuple((0, n) for n in shape)


def is_everything(box: layout.Box, shape: layout.Shape) -> bool:
    return box == everything(shape)


def box_size(box: layout.Box) -> int:
    """Number of indices in a box."""
    return math.prod(max(b - a, 0) for a, b in box)


def difference(a: layout.Box, b: layout.Box) -> Iterator[layout.Box]:
    """Set difference of two overlapping boxes, as disjoint boxes."""
    rest = list(a)
    for axis, ((low, high), (begin, end)) in enumerate(zip(a, b, strict=True)):
        if low < begin:
            yield (*rest[:axis], (low, begin), *rest[axis + 1 :])
        if end < high:
            yield (*rest[:axis], (end, high), *rest[axis + 1 :])
        rest[axis] = (max(low, begin), min(high, end))


def outside_of(box: layout.Box, other: layout.Box) -> Iterator[layout.Box]:
    """The indices of one box outside of another, as disjoint boxes."""
    return iter((box,)) if is_empty(common_box(box, other)) else difference(box, other)


class Core(NamedTuple):
    """Indices of a space that are on the same side of every box.

    These are the indices in a box, without those in some *holes*: each begins or ends a row.
    """

    box: layout.Box
    holes: list[layout.Box]
    is_inside: list[bool]
    """For each of the boxes that were asked about, whether it contains the core."""

    @property
    def size(self) -> int:
        """Number of indices, or less where holes overlap."""
        return box_size(self.box) - sum(box_size(common_box(hole, self.box)) for hole in self.holes)


def core_of(space: layout.Shape, boxes: Iterable[layout.Box], axis: int) -> Core:
    """Find a large core, whose rows go along an axis."""
    core, holes, sides = everything(space), set[layout.Box](), []
    for box in boxes:
        inside, (a, b) = common_box(box, core), box[axis]
        lost = (0, b) if b < space[axis] - a else (a, space[axis])
        hole = (*box[:axis], lost, *box[axis + 1 :])
        size = box_size(core) - box_size(common_box(hole, core))
        sides.append(box_size(inside) >= size)
        if sides[-1]:
            core = inside
        elif not is_empty(hole):
            holes.add(hole)
    return Core(core, sorted(holes), sides)


def common_box(a: layout.Box, b: layout.Box) -> layout.Box:
    """Intersection of two boxes."""
    return tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))
