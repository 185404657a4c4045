"""Arrays that are zero but on a few planes are computed there only.

``follow_planes : graph -> graph``. Jacobians and Hessians are made by derivatives in all directions
at once: the tangents of all lanes are an identity, and what becomes of them where elements depend
on few others is nearly all zeros. Such an array is described by *planes*: along one axis, that of
the *lanes*, there is at most one element for every index of the other axes, at the lane
``slopes . index + distance``. For the Hessian of a sum over neighbours these are three diagonals.

Sums, multiples and what else makes zeros of zeros are computed for the elements on planes, which
are arrays without the axis of lanes. An array that is a result, or that something else than points
and folds reads, is filled with zeros into which the planes are written; points and folds that need
all of an array have it computed as before. Zeros beside planes are positive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.compiler.nest.layout import (
    Box,
    Operand,
    S,
    Shape,
    Uniform,
    Value,
    View,
    box_size,
    common_box,
    contiguous_strides,
    is_empty,
    reindex_of,
    seen_box,
    whole,
    without,
)
from funcgrad.compiler.nest.nodes import (
    Copies,
    Fold,
    Graph,
    Guard,
    Node,
    Pick,
    Point,
    values_read,
)
from funcgrad.compiler.nest.read_through import box_of
from funcgrad.intrinsics import expression, is_zero
from funcgrad.lowering import Reindex
from funcgrad.records import dataclass

LEAST = 1024
"""Elements of an array from which it is worth to look for planes."""

FEW = 4
"""How many times as many elements an array has, at least, as there are on its planes."""

MAX_PLANES = 16
"""Planes of one array: each has kernels of its own."""


def follow_planes(graph: Graph) -> None:
    """Compute arrays that are nearly all zeros on their planes; changes the graph."""
    found = ((value, _identity(value.array)) for value in graph.constants)
    sources = {value: diagonal for value, diagonal in found if diagonal is not None}
    if sources:
        _Planes(graph, sources).run()


_Plane = tuple[tuple[int, ...], int]
"""Slopes along all axes, 0 along that of the lanes, and distance."""


@dataclass(frozen=True)
class _Part:
    """The elements on a plane.

    Attributes:
        box: The indices at which there are some; along the lanes it is everything.
        operand: The elements, by these indices without the axis of lanes.
    """

    box: Box
    operand: Operand


@dataclass(frozen=True)
class _Sparse:
    """An array as its planes, along one axis that counts lanes."""

    lane: int
    parts: dict[_Plane, _Part]


def _identity(array: np.ndarray | None) -> np.ndarray | None:
    """The diagonal of an array that is zero elsewhere, as a matrix of its first axis and others."""
    if array is None or array.ndim < 2 or array.size < LEAST or array.size != array.shape[0] ** 2:
        return None
    matrix = array.reshape(array.shape[0], -1)
    # Most arrays are told from one by their first row.
    if np.count_nonzero(matrix[0]) > 1:
        return None
    diagonal = matrix.diagonal()
    return diagonal if np.count_nonzero(matrix) == np.count_nonzero(diagonal) else None


class _Planes:
    def __init__(self, graph: Graph, sources: dict[Value, np.ndarray]) -> None:
        self.graph = graph
        self.sources = sources
        self.sparse: dict[Value, _Sparse] = {}
        self.added: list[Node] = []

    def run(self) -> None:
        for value, diagonal in self.sources.items():
            self.sparse[value] = _of_identity(value, diagonal)
        rows: list[tuple[Node, list[Node]]] = []
        for node in self.graph.nodes:
            self.added = []
            found = self._followed(node)
            if found is not None:
                self.sparse[node.out] = found
            for new in self.added:
                new.like(node)
            rows.append((node, self.added))
        self.graph.nodes = self._needed(rows)

    def _needed(self, rows: Sequence[tuple[Node, list[Node]]]) -> list[Node]:
        """The nodes that are needed, and those that take the place of others."""
        needed = set(self.graph.outputs)
        walked: set[Value] = set()  # what kernels read element by element
        kept: list[Node] = []
        for node, added in reversed(rows):
            is_sparse = bool(node.outs) and node.out in self.sparse
            if is_sparse and node.out in needed and node.out not in walked:
                filled = self._filled(node)
                kept.append(filled)
                needed.update(values_read(filled))
            elif not is_sparse or node.out in needed:
                kept.append(node)
                needed.update(values_read(node))
                if isinstance(node, Point | Fold | Pick):
                    walked.update(values_read(node))
            for new in reversed(added):
                if new.out in needed:
                    kept.append(new)
                    needed.update(values_read(new))
        return kept[::-1]

    def _filled(self, node: Node) -> Copies:
        """The whole array: zeros, and the elements on its planes where they belong."""
        out, found = node.out, self.sparse[node.out]
        operands: list[Operand] = [Uniform(out.dtype.type(0), out.shape)]
        places = [whole(out)]
        for plane, part in found.parts.items():
            operands.append(part.operand)
            places.append(_along(whole(out), found.lane, plane, part.box))
        return Copies(tuple(operands), (out,), tuple(places)).like(node)

    # What becomes of planes.

    def _followed(self, node: Node) -> _Sparse | None:
        """The planes of the result of a node, if it has any; adds what computes them."""
        if not any(value in self.sparse for value in values_read(node)):
            return None
        if isinstance(node, Copies):
            return self._assembled(node)
        if isinstance(node, Point) and not isinstance(node, Guard):
            return self._computed(node)
        return None

    def _seen(self, operand: Operand) -> _Sparse | None:
        """An operand as planes of its own index space."""
        if isinstance(operand, Uniform) or operand.value not in self.sparse:
            return None
        form = reindex_of(operand)
        found = self.sparse[operand.value]
        return None if form is None else _reindexed(found, form, operand)

    def _computed(self, node: Point) -> _Sparse | None:
        seen = [self._seen(x) for x in node.operands]
        lanes = {x.lane for x in seen if x is not None}
        if len(lanes) != 1 or not self._is_zero_beside(node, seen):
            return None
        (lane,) = lanes
        slopes = _slopes([x.parts for x in seen if x is not None])
        seen = [x and _Sparse(lane, _with_slopes(x.parts, slopes)) for x in seen]
        boxes = _boxes(lane, [x.parts for x in seen if x is not None], node.space)
        if boxes is None:
            return None
        parts = {}
        for plane, box in boxes.items():
            operands = tuple(
                _along(x, lane, plane, box) if on is None else self._spread(on, plane, box, x.dtype)
                for x, on in zip(node.operands, seen, strict=True)
            )
            if expression(node.expr).is_copy and operands[0].dtype == node.out.dtype:
                parts[plane] = _Part(box, operands[0])
                continue
            parts[plane] = _Part(box, self._add(node.expr, operands, node.out.dtype))
        return _Sparse(lane, parts)

    def _is_zero_beside(self, node: Point, seen: Sequence[_Sparse | None]) -> bool:
        """Whether a point is zero where the operands that have planes are."""
        known: list[Any] = []
        for x, on in zip(node.operands, seen, strict=True):
            known.append(0 if on is not None else x.scalar if isinstance(x, Uniform) else None)
        return is_zero(node.expr, known)

    def _spread(self, found: _Sparse, plane: _Plane, box: Box, dtype: Any) -> Operand:
        """Elements on a plane in a box that is at least as large, zero where there are none."""
        shape = _sizes(box, found.lane)
        zeros = Uniform(dtype.type(0), shape)
        part = found.parts.get(plane)
        return zeros if part is None else self._over(part, zeros, found.lane, box)

    def _over(self, part: _Part, other: Operand, lane: int, box: Box) -> Operand:
        """The elements of a part where it has some, in a box around it, and others elsewhere."""
        inner, outer = without(part.box, lane), without(box, lane)
        if inner == outer:
            return part.operand
        inside = tuple((a - c, b - c) for (a, b), (c, _) in zip(inner, outer, strict=True))
        return self._guard(part.operand.around(inside, other.shape), other, inside)

    def _add(self, expr: str, operands: Sequence[Operand], dtype: Any) -> View:
        """What a point computes of operands; axes of length 1 are none of its kernel."""
        inner = tuple(x.without_ones() for x in operands)
        out = Value(inner[0].shape, dtype)
        self.added.append(Point(inner, (out,), expr))
        return _with_shape(out, operands[0].shape)

    def _guard(self, inside: Operand, outside: Operand, box: Box) -> View:
        """One operand in a box, another one elsewhere."""
        shape = outside.shape
        long = tuple(x for x, n in zip(box, shape, strict=True) if n != 1)
        operands = inside.without_ones(), outside.without_ones()
        out = Value(operands[0].shape, outside.dtype)
        self.added.append(Guard(operands, (out,), long))
        return _with_shape(out, shape)

    def _assembled(self, node: Copies) -> _Sparse | None:
        """Planes of what is put together of arrays with planes and of zeros."""
        shape = node.out.shape
        placed: list[tuple[Box, dict[_Plane, _Part]]] = []
        lanes: set[int] = set()
        for operand, place in zip(node.operands, node.places, strict=True):
            box = box_of(place)
            if box is None or operand.dtype != node.out.dtype:
                return None
            found = self._seen(operand)
            if found is not None:
                lanes.add(found.lane)
                placed.append((box, _moved(found, box)))
            elif isinstance(operand, Uniform) and operand.scalar == 0:
                placed.append((box, {}))
            else:
                return None
        if len(lanes) != 1:
            return None
        (lane,) = lanes
        if any(box[lane] != (0, shape[lane]) for box, _ in placed):
            return None
        slopes = _slopes([parts for _, parts in placed])
        placed = [(box, _with_slopes(parts, slopes)) for box, parts in placed]
        boxes = _boxes(lane, [parts for _, parts in placed], shape)
        if boxes is None:
            return None
        parts = {plane: self._put(plane, box, lane, placed, node) for plane, box in boxes.items()}
        return _Sparse(lane, parts)

    def _put(
        self,
        plane: _Plane,
        box: Box,
        lane: int,
        placed: Sequence[tuple[Box, dict[_Plane, _Part]]],
        node: Copies,
    ) -> _Part:
        """The elements on one plane of what is put together; later parts cover earlier ones."""
        zeros = Uniform(node.out.dtype.type(0), _sizes(box, lane))
        found: Operand = zeros
        for covered, parts in placed:
            common = common_box(covered, box)
            if is_empty(common):
                continue
            if found is not zeros:  # what was there before is covered
                found = self._over(_Part(common, _cut(zeros, common, lane)), found, lane, box)
            if plane in parts:
                found = self._over(parts[plane], found, lane, box)
        return _Part(box, found)


def _of_identity(value: Value, diagonal: np.ndarray) -> _Sparse:
    _, *rest = value.shape
    slopes = (0, *value.strides[1:])
    box = tuple((0, n) for n in value.shape)
    operand: Operand
    if (diagonal == diagonal[0]).all():
        operand = Uniform(diagonal[0], tuple(rest))
    else:
        operand = _along(whole(value), 0, (slopes, 0), box)
    return _Sparse(0, {(slopes, 0): _Part(box, operand)})


def _with_shape(value: Value, shape: Shape) -> View:
    """A value under a shape that has more axes of length 1."""
    return View(value, shape, contiguous_strides(shape))


def _sizes(box: Box, lane: int) -> Shape:
    return tuple(b - a for a, b in without(box, lane))


def _first_lane(plane: _Plane, box: Box) -> int:
    """The lane of the first element in a box."""
    slopes, distance = plane
    return distance + sum(c * a for c, (a, _) in zip(slopes, box, strict=True))


def _along(operand: S, lane: int, plane: _Plane, box: Box) -> S:
    """What an operand has on a plane."""
    step = operand.strides[lane]
    strides = tuple(s + step * c for s, c in zip(operand.strides, plane[0], strict=True))
    first = sum(
        a * s for k, ((a, _), s) in enumerate(zip(box, operand.strides, strict=True)) if k != lane
    )
    offset = operand.offset + first + step * _first_lane(plane, box)
    return operand.walked(_sizes(box, lane), without(strides, lane), offset)


def _cut(zeros: Uniform, box: Box, lane: int) -> Uniform:
    return Uniform(zeros.scalar, _sizes(box, lane))


def _hull(a: Box, b: Box) -> Box:
    return tuple((min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True))


def _slopes(given: Sequence[dict[_Plane, _Part]]) -> tuple[int, ...]:
    """The slopes of the plane with the most elements."""
    planes = [(box_size(part.box), plane) for parts in given for plane, part in parts.items()]
    return max(planes)[1][0]


def _with_slopes(parts: dict[_Plane, _Part], slopes: tuple[int, ...]) -> dict[_Plane, _Part]:
    """The same planes with other slopes along axes on which they have one element only."""
    found = {}
    for (own, distance), part in parts.items():
        new, moved = list(own), distance
        for axis, (a, b) in enumerate(part.box):
            if b - a == 1:
                new[axis] = slopes[axis]
                moved += (own[axis] - slopes[axis]) * a
        plane = tuple(new), moved
        found[(own, distance) if plane in found else plane] = part
    return found


def _boxes(
    lane: int, given: Sequence[dict[_Plane, _Part]], shape: Shape
) -> dict[_Plane, Box] | None:
    """The planes of an array that is made of others, if these are few and never meet."""
    boxes: dict[_Plane, Box] = {}
    for parts in given:
        for plane, part in parts.items():
            boxes[plane] = _hull(boxes[plane], part.box) if plane in boxes else part.box
    if len({slopes for slopes, _ in boxes}) > 1 or len(boxes) > MAX_PLANES:
        return None
    n_elements = sum(box_size(without(box, lane)) for box in boxes.values())
    if n_elements * FEW > math.prod(shape):
        return None
    is_inside = all(_is_inside(plane, box, shape[lane]) for plane, box in boxes.items())
    return boxes if is_inside else None


def _is_inside(plane: _Plane, box: Box, n_lanes: int) -> bool:
    """Whether there is a lane for every index in a box."""
    ends = [(c * a, c * (b - 1)) for c, (a, b) in zip(plane[0], box, strict=True)]
    low = plane[1] + sum(map(min, ends))
    return low >= 0 and plane[1] + sum(map(max, ends)) < n_lanes


def _moved(found: _Sparse, box: Box) -> dict[_Plane, _Part]:
    """The planes of an array that is a box of a larger one, in the indices of that."""
    parts = {}
    for (slopes, distance), part in found.parts.items():
        before = sum(c * a for c, (a, _) in zip(slopes, box, strict=True))
        moved = tuple((a + c, b + c) for (a, b), (c, _) in zip(part.box, box, strict=True))
        parts[slopes, distance - before] = _Part(moved, part.operand)
    return parts


def _reindexed(found: _Sparse, form: Reindex, view: View) -> _Sparse | None:
    """Planes as a view shows them, if it shows all lanes."""
    lane, shape = found.lane, view.shape
    if lane not in form.axes:
        return None
    at = form.axes.index(lane)
    sign = form.steps[at]
    if abs(sign) != 1 or shape[at] != view.value.shape[lane]:
        return None
    parts = {}
    for (slopes, distance), part in found.parts.items():
        inner = seen_box(part.box, form, shape)
        if inner is None:
            continue
        starts = sum(c * a for c, a in zip(slopes, form.starts, strict=True))
        new = tuple(
            0 if axis is None else sign * slopes[axis] * step
            for axis, step in zip(form.axes, form.steps, strict=True)
        )
        plane = new, sign * (distance + starts - form.starts[lane])
        parts[plane] = _Part(inner, _part_seen(part, lane, form, inner, at))
    return _Sparse(at, parts)


def _part_seen(part: _Part, lane: int, form: Reindex, inner: Box, at: int) -> Operand:
    """The elements of a part as a view of the array shows them in a box of its indices."""
    own = part.operand.strides
    strides = (*own[:lane], 0, *own[lane:])
    offset = part.operand.offset + sum(
        (start - low) * s for start, (low, _), s in zip(form.starts, part.box, strides, strict=True)
    )
    found = []
    for axis, step, (low, _) in zip(form.axes, form.steps, inner, strict=True):
        found.append(0 if axis is None else step * strides[axis])
        offset += low * found[-1]
    return part.operand.walked(_sizes(inner, at), without(tuple(found), at), offset)
