"""Parts of arrays are computed where they belong, not copied there.

``write_through : groups -> groups``. A point that only its own kernel and one assembly read gets
its place in the assembled array as its memory, and so does a product of matrices whose elements lie
side by side there. Parts that it covers are cut out of what was there before, so that the order in
which parts are written does not matter.

So is a row, or a plane, that replaces one at an index that is known when a program runs, in an
array that is changed where it is, if nothing in between needs the array as it was. The kernel
itself may read rows of the array, each of them at the index that it writes: whichever rows these
are, an element is read before another one takes its place.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from funcgrad.compiler.machine import FEW, QUESTIONS, SEVERAL
from funcgrad.compiler.nest.access import Pieces, are_apart, box_of
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import (
    Operand,
    Strided,
    Uniform,
    Value,
    View,
    reshaped,
    same_strides,
)
from funcgrad.compiler.nest.nodes import Copies, Graph, Node, Pick, Point, Product, Put, values_read
from funcgrad.compiler.nest.registers import is_small

MAX_PIECES = FEW * QUESTIONS
"""Pieces that are copied for one array: more are more steps than memory is saved."""

_EVERYWHERE = ("clip", "start", "place", "raise")
"""Modes in which every index means a place, or the program ends."""


def prefer_fresh(graph: Graph, groups: Sequence[Group]) -> None:
    """Mark assemblies whose main part is better written into new memory.

    To change an array where it is, a part that reads other elements of it has to be computed beside
    it first; into new memory it is written at once, and only the rest is copied.
    """
    plan = _Plan(graph, groups)
    for node in list(plan.home):
        if not isinstance(node, Copies) or not node.places or not node.places[0].is_whole:
            continue
        base = node.operands[0]
        if not isinstance(base, View):
            continue
        for operand, place in zip(node.operands[1:], node.places[1:], strict=True):
            if 2 * math.prod(place.shape) < math.prod(node.out.shape):
                continue
            if plan.is_movable(operand, node) and box_of(place) is not None:
                assert isinstance(operand, View)
                node.is_fresh |= plan.reads_elsewhere(operand.value.maker, base.value, place)


def write_through(graph: Graph, groups: Sequence[Group]) -> None:
    """Give points the places of rows and parts that they are; changes nodes and values."""
    plan = _Plan(graph, groups)
    for i, group in enumerate(groups):
        for node in group.nodes:
            if isinstance(node, Put):
                plan.put(node, i)
    for node in plan.home:
        if isinstance(node, Copies) and node.places:
            while _move(node, plan):
                pass


def _move(node: Copies, plan: _Plan) -> bool:
    """Give one operand its place, if there is one that can have it."""
    operands, places = list(node.operands), list(node.places)
    base = operands[0]
    is_changed = (  # the first operand is not copied, but changed where it is
        isinstance(base, View)
        and base.is_whole
        and places[0].is_whole
        and base.value.home is node.out.home
    )
    for k in range(len(operands) - 1, -1, -1):
        operand, place = operands[k], places[k]
        if not plan.is_movable(operand, node):
            continue
        assert isinstance(operand, View)
        part = reshaped(place, operand.value.shape)
        if not isinstance(part, View):
            continue
        # Products have no other strides.
        is_dense = same_strides(part.shape, operand.value.strides, part.strides)
        if not isinstance(operand.value.maker, Point) and not is_dense:
            continue
        if not all(are_apart(place, later) for later in places[k + 1 :]):
            continue
        if is_changed:
            if k == 0 or not _may_change(node, operand, place, plan):
                continue
            first = 1
        else:
            first = 0
        pieces = Pieces(tuple(operands[first:k]), tuple(places[first:k])).without(place)
        if pieces is None:
            continue
        if first + len(pieces) + len(operands) - k > max(MAX_PIECES, len(operands)):
            continue
        operand.value.home, operand.value.part = node.out.home, part
        operands[first:k] = [x for x, _ in pieces]
        places[first:k] = [p for _, p in pieces]
        node.operands, node.places = tuple(operands), tuple(places)
        return True
    return False


def _may_change(node: Copies, operand: View, place: View, plan: _Plan) -> bool:
    """Whether an array that is changed where it is may be changed as soon as a part is computed."""
    base = node.operands[0]
    assert isinstance(base, View)
    maker = operand.value.maker
    own = plan.home[maker]
    if base.value.maker is not None and plan.home.get(base.value.maker, -1) >= own:
        return False  # it would overwrite the part
    if plan.reads_elsewhere(maker, base.value, place):
        return False
    return all(plan.home[reader] <= own or reader is node for reader in plan.readers[base.value])


class _Plan:
    """The groups of a graph, among which rows get their places in the order of the changes."""

    def __init__(self, graph: Graph, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.outputs = set(graph.outputs)
        self.home = {node: i for i, group in enumerate(groups) for node in group.nodes}
        self.readers: dict[Value, list[Node]] = defaultdict(list)
        for node in self.home:
            for value in values_read(node):
                self.readers[value].append(node)
        self.moved: dict[Node, int] = {}
        """Changes that have nothing left to do, each with the group that does it."""

    def is_movable(self, operand: Operand, node: Copies | Put) -> bool:
        """Whether what makes an operand can write it where it belongs: nobody else needs it."""
        if not isinstance(operand, View) or not operand.is_whole:
            return False
        value, maker = operand.value, operand.value.maker
        if not isinstance(maker, Point | Product) or value in self.outputs:
            return False
        if maker not in self.home or value.home is not value or value.part is not None:
            return False
        own = self.home[maker]
        if self.groups[own].space != value.shape or value.dtype != node.out.dtype:
            return False
        readers = self.readers[value]
        return readers.count(node) == 1 and all(
            reader is node or self.home[reader] == own for reader in readers
        )

    def reads_elsewhere(self, maker: Node, value: Value, place: View) -> bool:
        """Whether the kernel of a point reads an array at other indices than it would write."""
        for node in self.groups[self.home[maker]].nodes:
            for k, x in enumerate(node.operands):
                if isinstance(x, View) and x.value is value:
                    own = (x.shape, x.strides, x.offset)
                    if node.looks_around(k) or own != (place.shape, place.strides, place.offset):
                        return True
        return False

    # Rows at computed indices.

    def put(self, put: Put, i: int) -> None:
        """Let the row of a change be written by what computes it, if that can be."""
        base, updates, *indices = put.operands
        if put.step != "{1}" or is_small(put.out, SEVERAL) or not isinstance(base, View):
            return
        if not isinstance(updates, View) or not self.is_movable(updates, put):
            return
        value, own = updates.value, self.home[updates.value.maker]
        has_folds = self.groups[own].nest is not None or not isinstance(value.maker, Point)
        if own >= i or has_folds or is_small(value, SEVERAL):
            return
        part = reshaped(put.target, value.shape)
        is_changed = base.is_whole and base.value.home is put.out.home
        if not is_changed or not all(self._is_known(x, own) for x in indices):
            return
        if put.mode not in _EVERYWHERE and not self._is_looked_at(put, own):
            return
        if not isinstance(part, View) or self._is_touched_between(put, own, i):
            return
        if not self._is_apart(part, put, own):
            return
        value.home, value.part, value.placed_by = put.out.home, part, put
        self.moved[put] = own

    def _is_known(self, x: Operand, own: int) -> bool:
        """Whether an index is one number, which is there when a kernel runs."""
        is_number = not any(s for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
        if isinstance(x, Uniform):
            return is_number
        assert isinstance(x, View)
        return is_number and self.home.get(x.value.maker, -1) < own

    def _is_looked_at(self, put: Put, own: int) -> bool:
        """Whether the kernel ends where an index means no place, since it reads there."""
        group = self.groups[own]
        seen = {
            (_number(x), length)
            for node in group.nodes
            if isinstance(node, Pick) and node.mode == "raise" and node.space == group.space
            for x, length in zip(node.operands[1:], node.lengths, strict=True)
        }
        indices = zip(put.operands[2:], put.lengths, strict=True)
        return all((_number(x), length) in seen for x, length in indices)

    def _is_touched_between(self, put: Put, own: int, i: int) -> bool:
        """Whether anything between a kernel and a change reads or writes the array."""
        memory = put.out.home
        return any(
            value.home is memory and self.moved.get(node) != own
            for group in self.groups[own + 1 : i]
            for node in group.nodes
            for value in (*values_read(node), *node.outs)
        )

    def _is_apart(self, part: View, put: Put, own: int) -> bool:
        """Whether a kernel has no element of the array but at the index that it writes."""
        if not _is_injective(part.shape, part.strides):
            return False
        updates, memory, order = put.operands[1], put.out.home, [*self.groups[own].nodes]
        assert isinstance(updates, View)
        last = order.index(updates.value.maker)
        for k, node in enumerate(order):
            if node.out.home is memory:
                other, place = node.out.placed_by, node.out.part
                if other is None or place is None or k > last:
                    return False
                if not _is_same_access(place, other, part, put):
                    return False
            for x in node.operands:
                if isinstance(x, View) and x.value.home is memory:
                    if not isinstance(node, Pick) or x is not node.operands[0]:
                        return False
                    if not _is_same_access(x, node, part, put):
                        return False
        return True


def _number(x: Operand) -> tuple[object, int]:
    return (x.scalar.tobytes(), 0) if isinstance(x, Uniform) else (x.value, x.offset)


def _is_same_access(x: Strided, node: Pick | Put, part: View, put: Put) -> bool:
    """Whether two accesses have no element in common but at the same index."""
    own = (x.shape, x.strides, x.offset, node.lengths, node.steps)
    if own != (part.shape, part.strides, part.offset, put.lengths, put.steps):
        return False
    # Windows that begin elsewhere have the same elements at other indices.
    own_indices = node.operands[len(node.operands) - len(node.lengths) :]
    is_same = node.mode == put.mode and all(
        _number(a) == _number(b) for a, b in zip(own_indices, put.operands[2:], strict=True)
    )
    return is_same or _is_injective((*x.shape, *node.lengths), (*x.strides, *node.steps))


def _is_injective(lengths: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether different indices mean different elements."""
    reach = 0
    for step, n in sorted(zip(map(abs, steps), lengths, strict=True)):
        if n > 1:
            if step <= reach:
                return False
            reach += (n - 1) * step
    return True
