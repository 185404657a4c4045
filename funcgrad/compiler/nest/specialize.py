"""Short axes, element by element.

``specialize : groups -> groups``. Where a kernel would loop over a short axis in its innermost
loop, or add up along it, it computes instead one value for every element of that axis: three
coordinates, two states, four rows. What is left is a loop over the next axis, which is long enough
for vectors, and sums in registers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.compiler import machine
from funcgrad.compiler.nest.access import Pieces, is_everything, seen_box
from funcgrad.compiler.nest.accumulate import is_idempotent
from funcgrad.compiler.nest.coalesce import rows_of
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.kernel import neutral
from funcgrad.compiler.nest.layout import (
    Operand,
    S,
    Shape,
    Uniform,
    Value,
    View,
    cut,
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
    ordered,
    readers_of,
    values_read,
)
from funcgrad.compiler.nest.read_through import flatten
from funcgrad.intrinsics import expression

MOST_PARTS = machine.FEW * machine.SHORT_AXIS
"""Parts in which a large array in a loop is computed: those that some axes are written out to."""

MOST_TERMS = machine.SHORT_AXIS**2
"""The same with the terms of the sums that they are."""


def specialize(graph: Graph, groups: Sequence[Group], is_inner: bool = False) -> bool:
    """Write out short axes; changes the graph.

    Args:
        graph: The graph.
        groups: Its groups.
        is_inner: Whether it is that of a loop's body, in which short sums are written out, too:
            every iteration waits for them.
    Returns: Whether anything changed, so that groups are to be formed anew.
    """
    readers = readers_of(graph.nodes)
    replaced: dict[Node, list[Node]] = {}
    written: dict[Value, Pieces] = {}
    for group in groups:
        axis = _written_axis(group, is_inner, readers)
        if axis is None:
            continue
        try:
            writing = _Writing(group, axis, readers, set(graph.outputs))
        except _NotAligned:
            # Discard the partial rewrite: the original nodes make the values again.
            for node in group.nodes:
                for out in node.outs:
                    out.maker = node
            continue
        last = group.nodes[-1]
        replaced.update((node, []) for node in group.nodes)
        replaced[last] = writing.nodes
        written.update(writing.parts)
    if replaced:
        nodes = ordered([n for node in graph.nodes for n in replaced.get(node, [node])])
        graph.nodes = _reading_parts(nodes, written, set(graph.outputs))
        flatten(graph)
    return bool(replaced)


def _reading_parts(
    nodes: Sequence[Node], written: Mapping[Value, Pieces], outputs: set[Value]
) -> list[Node]:
    """The nodes, which read elements of short axes where they were computed, not put together."""
    for node in nodes:
        if isinstance(node, Point | Fold):
            node.operands = tuple(
                written[x.value].only(x) or x
                if isinstance(x, View) and x.value in written and x.value.maker.epoch == node.epoch
                else x
                for x in node.operands
            )
    assemblies = {value.maker for value in written if isinstance(value.maker, Copies)}
    read = {value for node in nodes for value in values_read(node)} | outputs
    return [node for node in nodes if node not in assemblies or node.out in read]


def _written_axis(
    group: Group, is_inner: bool, readers: Mapping[Value, Sequence[Node]]
) -> int | None:
    """The axis of a group whose elements are worth being written out, if there is one."""
    space, axis = group.space, len(group.space) - 1
    if not group.is_fusable or axis < 0:
        return None
    for sparse in range(axis, -1, -1) if axis > 0 else ():
        if _is_sparse(group, sparse, readers):
            return sparse
    # Only the last axis: others may be batches, and a new batch size must need no new kernel. For
    # that reason nothing is asked of the lengths of the others. In loops lanes may come last.
    if is_inner and axis > 0 and space[axis] > machine.SEVERAL:
        axis = 0
    if not 2 <= space[axis] <= machine.SHORT_AXIS:
        return None
    if not _are_few_parts(group, axis, is_inner):
        return None
    if rows_of(group) or _has_extremes_of_rows(group, axis):
        return None  # several rows are one, of whole vectors, or one is enough to do
    if space[axis] * sum(x.space == space for x in group.nodes) > machine.KERNEL_NODES:
        return None
    is_small = is_inner and max(space) <= machine.SHORT_AXIS
    if is_small and _is_read_whole(group, axis, readers):
        return None
    if is_small and _is_folded(group, axis):
        return axis
    is_whole = len(space) == 1 or _is_one_with_next(group, axis)
    return None if is_whole or not _is_worth_it(group, axis, readers) else axis


def _are_few_parts(group: Group, axis: int, is_inner: bool) -> bool:
    """Whether arrays are computed in few parts yet, if one more axis is written out.

    In loops, where lengths are known, small arrays are variables, however many. Others in more
    parts take long to compile, and longer to run.
    """
    n_parts = max(node.n_parts for node in group.nodes)
    if not is_inner or n_parts * math.prod(group.space) <= machine.SMALL:
        most = machine.SMALL
    else:
        most = MOST_TERMS if _is_folded(group, axis) else MOST_PARTS
    return n_parts * group.space[axis] <= most


def _is_sparse(group: Group, axis: int, readers: Mapping[Value, Sequence[Node]]) -> bool:
    """Whether most operands are at few elements of a short axis, which may be longer therefore.

    So are gradients of columns, each of which is a term of one element. Parts of an array are
    divided again where they stay as few as one kernel writes.
    """
    length = group.space[axis]
    full = [x for x in group.nodes if x.space == group.space]
    guards = [x for x in full if isinstance(x, Guard)]
    if not 2 <= length <= machine.SEVERAL or len(guards) < 2:
        return False
    present = sum(guard.box[axis][1] - guard.box[axis][0] for guard in guards)
    n_parts = sum(any(isinstance(y, Copies) for y in readers[x.out]) for x in full)
    return 2 * present <= len(guards) * length and n_parts * length <= machine.SEVERAL


def _is_read_whole(group: Group, axis: int, readers: Mapping[Value, Sequence[Node]]) -> bool:
    """Whether elements would be put together again for what does not read them one by one."""
    outs = [out for node in group.nodes if len(node.space) > axis for out in node.outs]
    large = [out for out in outs if math.prod(out.shape) > machine.SEVERAL]
    others = [reader for out in large for reader in readers.get(out, ())]
    return not all(isinstance(reader, Point | Fold | Copies) for reader in others)


def _is_folded(group: Group, axis: int) -> bool:
    return any(isinstance(node, Fold) and axis in node.form.axes for node in group.nodes)


def _has_extremes_of_rows(group: Group, axis: int) -> bool:
    """Whether rows of more than a few elements are folded into one by extremes.

    A vector takes as many instructions for them as a single element, which are several.
    """
    folds = (x for x in group.nodes if isinstance(x, Fold) and axis not in x.form.axes)
    return group.space[axis] > machine.FEW and any(map(is_idempotent, folds))


def _is_one_with_next(group: Group, axis: int) -> bool:
    """Whether an axis and the next one are one long axis for all nodes, which fold neither.

    Arrays that are put together of such parts have been divided along it.
    """
    full = [node for node in group.nodes if node.space == group.space]
    if not axis or any(isinstance(x, Fold) and {axis, axis - 1} & {*x.form.axes} for x in full):
        return False
    views = [x for node in full for x in node.operands if isinstance(x, View)]
    if any(isinstance(x.value.maker, Copies) for x in views):
        return False
    return all(x.strides[axis - 1] == x.shape[axis] * x.strides[axis] for x in views)


def _is_worth_it(group: Group, axis: int, readers: Mapping[Value, Sequence[Node]]) -> bool:
    read = [value for node in group.nodes for value in values_read(node)]
    is_assembled = any(isinstance(value.maker, Copies) for value in read)
    # Rows that are stored for others than points would be put together of so many parts.
    is_row = axis == len(group.space) - 1 and group.space[axis] > machine.FEW
    full = [x for x in group.nodes if isinstance(x, Point) and x.space == group.space]
    others = (reader for x in full for reader in readers[x.out])
    has_parts = is_row and (
        not all(readers[x.out] for x in full)
        or not all(isinstance(reader, Point | Fold) for reader in others)
    )
    for node in group.nodes:
        if node.space != group.space:
            continue
        if isinstance(node, Fold) and node.form.axes == (axis,):
            return True
        if isinstance(node, Fold) and axis not in node.form.axes:
            is_computed = any(isinstance(x, View) and x.value.maker for x in node.operands)
            if is_computed or group.space[axis] <= machine.FEW:
                return True  # a few results, or what they are made of, would be kept in memory
        # Rows at computed places are read row by row. Rows of whole vectors are vectors, unless
        # their elements would be put together first.
        is_vector = group.space[axis] * node.out.dtype.itemsize >= machine.VECTOR_BYTES
        is_vector |= has_parts
        is_exempt = not isinstance(node, Point) or (is_vector and not is_assembled)
        for x in () if is_exempt else node.operands:
            if isinstance(x, View) and not x.strides[axis] and any(x.strides):
                return True  # no loop can iterate over this axis and the next one as one
    return False


def _is_zero(x: Operand) -> bool:
    if not isinstance(x, Uniform) or x.scalar != 0:
        return False
    return not (np.signbit(x.scalar.real) or np.signbit(x.scalar.imag))


class _NotAligned(Exception):
    """An operand does not go along the axis as the group does."""


class _Writing:
    """The nodes of a group with one axis written out.

    Nodes of elements are without the axis; their operands have it, of length 1.
    """

    def __init__(
        self, group: Group, axis: int, readers: Mapping[Value, Sequence[Node]], outputs: set[Value]
    ) -> None:
        self.axis = axis
        self.length = group.space[axis]
        self.parts: dict[Value, Pieces] = {}
        """For every value that had the axis, an operand for each of its elements."""
        self.nodes: list[Node] = []
        self.sums: set[Value] = set()
        """Sums with 0, which are never -0: adding 0 again changes nothing."""
        own = set(group.nodes)
        for node in group.nodes:
            self.origin = node
            self._write(node)
        for value, parts in self.parts.items():
            if value in outputs or not own.issuperset(readers[value]):
                self._assemble(value, parts)

    def _write(self, node: Node) -> None:
        if node.space[self.axis : self.axis + 1] != (self.length,):
            # It does not have the axis, or keeps one of length 1, as results of sums do.
            operands = tuple(self._operand(x, None, 0) for x in node.operands)
            self._add(replace(node, operands=operands))
            return
        rows = [
            tuple(self._operand(x, self.axis, k) for x in node.operands) for k in range(self.length)
        ]
        if isinstance(node, Fold):
            self._write_fold(node, [x for (x,) in rows])
        else:
            assert isinstance(node, Point | Pick)
            self._has_parts(node, (self._point(node, row, k) for k, row in enumerate(rows)))

    def _has_parts(self, node: Node, operands: Iterable[Operand], position: int = -1) -> None:
        position = self.axis if position < 0 else position
        places = (whole(node.out).narrowed(position, k, k + 1) for k in range(self.length))
        self.parts[node.out] = Pieces(tuple(operands), tuple(places))

    def _point(self, node: Point | Pick, operands: Sequence[Operand], k: int) -> Operand:
        """The result of a point at one element."""
        shape = operands[0].shape
        if isinstance(node, Guard):
            starts = [k if axis == self.axis else 0 for axis in range(len(shape))]
            box = seen_box(node.box, cut(starts), shape)
            if box is None or is_everything(box, shape):
                return operands[box is None]
            return self._made(node, operands, shape, box=without(box, self.axis))
        if isinstance(node, Point) and expression(node.expr).is_sum:
            return self._sum(node, operands, shape)
        return self._made(node, operands, shape)

    def _sum(self, node: Point, operands: Sequence[Operand], shape: Shape) -> Operand:
        """A sum at one element, where terms may not be there."""
        there = [x for x in operands if not _is_zero(x)]
        if not there:
            return operands[0]
        are_sums = [isinstance(x, View) and x.value in self.sums for x in there]
        if len(there) == 1 and are_sums[0]:
            return there[0]
        found = self._made(node, operands, shape)
        if len(there) == 1 or any(are_sums):
            self.sums.add(found.value)
        return found

    def _write_fold(self, node: Fold, rows: list[Operand]) -> None:
        axes = tuple(a - (a > self.axis) for a in node.form.axes if a != self.axis)
        form = replace(node.form, axes=axes)
        if self.axis not in node.form.axes:
            position = self.axis - sum(a < self.axis for a in node.form.axes)
            shape = (*node.out.shape[:position], 1, *node.out.shape[position + 1 :])
            folds = (self._made(node, [row], shape, position, form=form) for row in rows)
            self._has_parts(node, folds, position)
            return
        rows = [self._dropped(row) for row in rows]
        total, dtype = rows.pop(0), rows[0].dtype
        if dtype != node.out.dtype:
            raise _NotAligned
        if not axes:
            rows.insert(0, total)
            total = Uniform(neutral(form.init, dtype), total.shape)
        for i, row in enumerate(rows, 1):
            out = node.out if i == len(rows) and not axes else Value(row.shape, dtype)
            self._add(Point((total, row), (out,), form.step))
            total = whole(out)
        if axes:
            self._add(Fold((total,), (node.out,), form))

    def _add(self, node: Node) -> None:
        self.nodes.append(node.like(self.origin))
        if self.origin.space[self.axis : self.axis + 1] == (self.length,):
            node.n_parts *= self.length

    def _made(
        self,
        node: Node,
        operands: Sequence[Operand],
        shape: Shape,
        position: int = -1,
        **changes: Any,
    ) -> View:
        """The result of a node at one element, which is added."""
        position = self.axis if position < 0 else position
        out = Value(without(shape, position), node.out.dtype)
        own = tuple(map(self._dropped, operands))
        self._add(replace(node, operands=own, outs=(out,), **changes))
        strides = [*out.strides]
        strides.insert(position, 0)
        return View(out, shape, tuple(strides))

    def _dropped(self, x: S) -> S:
        """An operand at one element of the axis, without it."""
        return x.restrided(without(x.shape, self.axis), without(x.strides, self.axis), x.offset)

    def _operand(self, x: Operand, axis: int | None, k: int) -> Operand:
        """An operand at an element of the axis."""
        x = x if axis is None else x.narrowed(axis, k, k + 1)
        if isinstance(x, Uniform) or x.value not in self.parts:
            return x
        found = self.parts[x.value].only(x)
        if found is None:
            raise _NotAligned
        return found

    def _assemble(self, value: Value, parts: Pieces) -> None:
        """Materialise a value that other nodes read."""
        operands = []
        for part in parts.operands:
            if not (isinstance(part, View) and part.is_whole and part.value.maker in self.nodes):
                # Results of folds are always new: this is a point's, which has the axis.
                copy = Point((part,), (Value(part.shape, part.dtype),), "{0}")
                part = self._made(copy, [part], part.shape)
            operands.append(part)
        self._add(Copies(tuple(operands), (value,), parts.places))
