"""Short axes are written out: three coordinates, two states, four rows.

``specialize : groups -> groups``. Where a kernel would loop over a short axis in its innermost
loop, or add up along it, it computes instead one value for every element of that axis. What is left
is a loop over the next axis, which is long enough for vectors, and sums in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from funcgrad.base.records import dataclass
from funcgrad.compiler.machine import FEW, KERNEL_NODES, SHORT_AXIS
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.kernel import neutral
from funcgrad.compiler.nest.layout import (
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    cut,
    reindex_of,
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
from funcgrad.lowering import Reindex


def specialize(graph: Graph, groups: Sequence[Group], is_inner: bool = False) -> bool:
    """Write out short axes; changes the graph.

    Args:
        graph: The graph.
        groups: Its groups.
        is_inner: Whether it is that of a loop's body, in which short sums are written out, too:
            every iteration waits for them.

    Returns:
        Whether anything changed, so that groups are to be formed anew.
    """
    readers = readers_of(graph.nodes)
    replaced: dict[Node, list[Node]] = {}
    written: dict[Value, _Parts] = {}
    for group in groups:
        axis = _short_axis(group, is_inner)
        if axis is None:
            continue
        try:
            writing = _Writing(group, axis, readers, set(graph.outputs))
        except _NotAligned:
            # What was written so far is nobody's: the values are made by the nodes of before.
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
    return bool(replaced)


def _reading_parts(
    nodes: Sequence[Node], written: Mapping[Value, _Parts], outputs: set[Value]
) -> list[Node]:
    """The nodes, which read elements of short axes where they were computed, not put together."""
    for node in nodes:
        if isinstance(node, Point | Fold):
            node.operands = tuple(_of_one_part(x, written, node) for x in node.operands)
    assemblies = {value.maker for value in written if isinstance(value.maker, Copies)}
    read = {value for node in nodes for value in values_read(node)} | outputs
    return [node for node in nodes if node not in assemblies or node.out in read]


def _of_one_part(x: Operand, written: Mapping[Value, _Parts], reader: Node) -> Operand:
    """An operand as a view of the part that it sees, if that is one."""
    parts = written.get(x.value) if isinstance(x, View) else None
    if parts is None or parts.values[0].maker.epoch != reader.epoch:
        return x
    assert isinstance(x, View)
    form = reindex_of(x)
    if form is None or parts.position in form.axes:
        return x
    return parts.at(form.starts[parts.position]).reindexed(parts.without_axis(form), x.shape)


def _short_axis(group: Group, is_inner: bool) -> int | None:
    """The axis of a group that is worth being written out."""
    # Only the last axis: others may be batches, and a new batch size must need no new kernel. For
    # that reason nothing is asked of the lengths of the others.
    space, axis = group.space, len(group.space) - 1
    if not group.is_fusable or axis < 0 or not 2 <= space[axis] <= SHORT_AXIS:
        return None
    n_repeated = sum(len(node.space) > axis for node in group.nodes)
    if len(group.nodes) + n_repeated * (space[axis] - 1) > KERNEL_NODES:
        return None
    is_short_sum = is_inner and max(space) <= SHORT_AXIS and _is_folded(group, axis)
    return axis if is_short_sum or (axis and _is_worth_it(group, axis)) else None


def _is_folded(group: Group, axis: int) -> bool:
    return any(isinstance(node, Fold) and axis in node.form.axes for node in group.nodes)


def _is_worth_it(group: Group, axis: int) -> bool:
    for node in group.nodes:
        if node.space != group.space:
            continue
        if isinstance(node, Fold) and node.form.axes == (axis,):
            return True
        if isinstance(node, Fold) and axis not in node.form.axes:
            is_computed = any(isinstance(x, View) and x.value.maker for x in node.operands)
            if is_computed or group.space[axis] <= FEW:
                return True  # a few results, or what they are made of, would be kept in memory
        # Rows at computed places are read row by row.
        for x in node.operands if isinstance(node, Point) else ():
            if isinstance(x, View) and not x.strides[axis] and any(x.strides):
                return True  # no loop can walk this axis and the next one as one
    return False


@dataclass(frozen=True)
class _Parts:
    """What a value is written as: one value for every element of one of its axes.

    Attributes:
        values: The values, without that axis.
        position: The axis.
    """

    values: list[Value]
    position: int

    def at(self, e: int) -> View:
        """All of the part at one element of the axis."""
        return whole(self.values[e])

    def without_axis(self, form: Reindex) -> Reindex:
        """How a part is walked where the value is walked at one element of the axis."""
        axes = tuple(None if a is None else a - (a > self.position) for a in form.axes)
        return Reindex(axes, without(form.starts, self.position), form.steps)


class _NotAligned(Exception):
    """An operand does not walk the axis as the group does."""


class _Writing:
    """The nodes of a group with one axis written out."""

    def __init__(
        self, group: Group, axis: int, readers: Mapping[Value, Sequence[Node]], outputs: set[Value]
    ) -> None:
        self.axis = axis
        self.parts: dict[Value, _Parts] = {}
        """For every value that had the axis."""
        self.nodes: list[Node] = []
        own = set(group.nodes)
        for node in group.nodes:
            self.origin = node
            self._write(node)
        for value, parts in self.parts.items():
            if value in outputs or not own.issuperset(readers[value]):
                self._assemble(value, parts)

    def _write(self, node: Node) -> None:
        if len(node.space) <= self.axis:
            self._add(self._renamed(node))
        elif isinstance(node, Fold):
            self._write_fold(node)
        else:
            assert isinstance(node, Point | Pick)
            parts = self._make_parts(node.out, self.axis)
            for e, out in enumerate(parts):
                self._write_point(node, e, out)

    def _renamed(self, node: Node) -> Node:
        """A node that does not have the axis."""
        operands = tuple(self._operand(x, None, 0) for x in node.operands)
        return replace(node, operands=operands)

    def _write_point(self, node: Point | Pick, e: int, out: Value) -> None:
        operands = tuple(self._operand(x, self.axis, e) for x in node.operands)
        if not isinstance(node, Guard):
            self._add(replace(node, operands=operands, outs=(out,)))
            return
        begin, end = node.box[self.axis]
        box = without(node.box, self.axis)
        if not begin <= e < end:
            self._add(Point((operands[1],), (out,), "{0}"))
        elif all(a == 0 and b == n for (a, b), n in zip(box, out.shape, strict=True)):
            self._add(Point((operands[0],), (out,), "{0}"))
        else:
            self._add(Guard(operands, (out,), box, node.is_fence))

    def _write_fold(self, node: Fold) -> None:
        (operand,) = node.operands
        extent = node.space[self.axis]
        rows = [self._operand(operand, self.axis, e) for e in range(extent)]
        axes = tuple(a - (a > self.axis) for a in node.form.axes if a != self.axis)
        form = replace(node.form, axes=axes)
        if self.axis not in node.form.axes:
            position = self.axis - sum(a < self.axis for a in node.form.axes)
            for row, out in zip(rows, self._make_parts(node.out, position), strict=True):
                self._add(Fold((row,), (out,), form))
            return
        if operand.dtype != node.out.dtype:
            raise _NotAligned
        total: Operand = rows[0]
        if not axes:
            zero = neutral(form.init, operand.dtype)
            rows, total = [*rows], Uniform(zero, rows[0].shape)
        else:
            rows = rows[1:]
        for i, row in enumerate(rows):
            is_last = not axes and i == len(rows) - 1
            out = node.out if is_last else Value(row.shape, operand.dtype)
            self._add(Point((total, row), (out,), form.step))
            total = whole(out)
        if axes:
            self._add(Fold((total,), (node.out,), form))

    def _make_parts(self, value: Value, position: int) -> list[Value]:
        shape = without(value.shape, position)
        parts = [Value(shape, value.dtype) for _ in range(value.shape[position])]
        self.parts[value] = _Parts(parts, position)
        return parts

    def _add(self, node: Node) -> None:
        self.nodes.append(node.like(self.origin))

    def _operand(self, operand: Operand, axis: int | None, e: int) -> Operand:
        """An operand at one element of the axis."""
        shape = operand.shape if axis is None else without(operand.shape, axis)
        if isinstance(operand, View) and operand.value in self.parts:
            return self._part(operand, axis, e, shape)
        if axis is None:
            return operand
        offset = operand.offset + e * operand.strides[axis]
        return operand.walked(shape, without(operand.strides, axis), offset)

    def _part(self, operand: View, axis: int | None, e: int, shape: Shape) -> Operand:
        parts = self.parts[operand.value]
        position = parts.position
        form = reindex_of(operand)
        if form is None:
            raise _NotAligned
        axes, steps = form.axes, form.steps
        if axis is not None:
            if axes[axis] not in (None, position):
                raise _NotAligned
            walks = axes[axis] == position
            if walks and (form.starts[position], steps[axis]) != (0, 1):
                raise _NotAligned
            axes, steps = without(axes, axis), without(steps, axis)
        else:
            walks = False
        if position in axes:
            raise _NotAligned
        part = parts.at(e if walks else form.starts[position])
        return part.reindexed(parts.without_axis(Reindex(axes, form.starts, steps)), shape)

    def _assemble(self, value: Value, parts: _Parts) -> None:
        """Put a value together that others read."""
        position = parts.position
        n = len(value.shape)
        operands, places = [], []
        for e, part in enumerate(parts.values):
            shape = (*part.shape[:position], 1, *part.shape[position:])
            strides = (*part.strides[:position], 0, *part.strides[position:])
            operands.append(View(part, shape, strides))
            starts = tuple(e if a == position else 0 for a in range(n))
            places.append(whole(value).reindexed(cut(starts), shape))
        self._add(Copies(tuple(operands), (value,), tuple(places)))
