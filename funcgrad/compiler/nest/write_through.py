"""Parts of an assembled array are computed where they belong, not copied there.

``write_through : groups -> groups``. A point that only its own kernel and one assembly read gets
its place in the assembled array as its memory, and so does a product of matrices whose elements lie
side by side there. Parts that it covers are cut out of what was there before, so that the order in
which parts are written does not matter.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from funcgrad.compiler.machine import FEW, QUESTIONS
from funcgrad.compiler.nest import nodes
from funcgrad.compiler.nest.access import Pieces, are_apart, box_of
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import Operand, Value, View, reshaped, same_strides

MAX_PIECES = FEW * QUESTIONS
"""Pieces that are copied for one array: more are more steps than memory is saved."""


class _Plan:
    def __init__(self, graph: nodes.Graph, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.outputs = set(graph.outputs)
        self.home = {node: i for i, group in enumerate(groups) for node in group.nodes}
        self.readers: dict[Value, list[nodes.Node]] = defaultdict(list)
        for node in self.home:
            for value in nodes.values_read(node):
                self.readers[value].append(node)

    def is_movable(self, operand: Operand, node: nodes.Copies) -> bool:
        """Whether an operand of an assembly can be written where it belongs."""
        if not isinstance(operand, View) or not operand.is_whole:
            return False
        value, maker = operand.value, operand.value.maker
        if not isinstance(maker, nodes.Point | nodes.Product) or value in self.outputs:
            return False
        if maker not in self.home or value.home is not value or value.part is not None:
            return False
        group = self.groups[self.home[maker]]
        if group.space != value.shape or value.dtype != node.out.dtype:
            return False
        own = set(group.nodes)
        return self.readers[value].count(node) == 1 and all(
            reader is node or reader in own for reader in self.readers[value]
        )

    def reads_elsewhere(self, maker: nodes.Node, value: Value, place: View) -> bool:
        """Whether the kernel of a point reads an array at other indices than it would write."""
        for node in self.groups[self.home[maker]].nodes:
            for k, x in enumerate(node.operands):
                if isinstance(x, View) and x.value is value:
                    own = (x.shape, x.strides, x.offset)
                    if node.looks_around(k) or own != (place.shape, place.strides, place.offset):
                        return True
        return False


def prefer_fresh(graph: nodes.Graph, groups: Sequence[Group]) -> None:
    """Mark assemblies whose main part is better written into new memory.

    To change an array where it is, a part that reads other elements of it has to be computed beside
    it first; into new memory it is written at once, and only the rest is copied.
    """
    plan = _Plan(graph, groups)
    for node in list(plan.home):
        if not isinstance(node, nodes.Copies) or not node.places or not node.places[0].is_whole:
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


def write_through(graph: nodes.Graph, groups: Sequence[Group]) -> None:
    """Give points the places of parts that they are; changes nodes and values."""
    plan = _Plan(graph, groups)
    for node in plan.home:
        if isinstance(node, nodes.Copies) and node.places:
            while _move(node, plan):
                pass


def _move(node: nodes.Copies, plan: _Plan) -> bool:
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
        if not isinstance(operand.value.maker, nodes.Point) and not is_dense:
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


def _may_change(node: nodes.Copies, operand: View, place: View, plan: _Plan) -> bool:
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
