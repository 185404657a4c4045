"""Cheap values are computed again by those who read them elsewhere than where they were made.

``recompute : graph -> graph``. A kernel computes what follows element by element; a neighbour's
value is not there yet, so it would have to be written to memory first. Where it takes few
operations, every reader computes it for itself, in its own index space, and fusion finds points of
equal indices only. So a stencil of a stencil is one walk over its input.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np

from funcgrad.compiler.nest.layout import (
    Box,
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    common_box,
    is_empty,
    is_everything,
    reindex_of,
    seen_box,
    whole,
)
from funcgrad.compiler.nest.nodes import (
    Fold,
    Graph,
    Guard,
    Node,
    Pick,
    Point,
    is_copy,
    without_unread,
)
from funcgrad.lowering import Reindex

MAX_COST = 32
"""Operations by which a value may be computed, over all places where it is."""

MAX_COST_ACROSS = 6
"""The same of everything that leads to a value, where rows of it are columns of the reader: what
walks across rows is computed one by one, while a copy of the value is transposed in tiles."""

SHORT = 4
"""Greatest length of axes along which it does not matter how one walks."""

_Way = tuple[Reindex, Shape, Box | None]
"""How a value is read: its indices, the space of the reader, the box outside of which it is not."""


def recompute(graph: Graph) -> None:
    """Let readers compute cheap values for themselves; changes the graph."""
    _Recomputation(graph).run()


class _Recomputation:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outputs = set(graph.outputs)
        self.readers: dict[Value, dict[tuple[Node, int], None]] = defaultdict(dict)
        """Who reads a value, and as which operand: a set that keeps its order."""
        self.copies: dict[Node | None, list[Point | Pick]] = defaultdict(list)
        """Copies of every point, which run where it did."""
        self.fences: dict[Node | None, list[Node]] = defaultdict(list)
        """Guards of every node's result; they come after its copies."""
        self.fenced: dict[tuple[View, Box, int], Operand] = {}
        for node in graph.nodes:
            self._register(node)

    def _register(self, node: Node) -> None:
        for i, x in enumerate(node.operands):
            if isinstance(x, View):
                self.readers[x.value][node, i] = None

    def run(self) -> None:
        for node in reversed(self.graph.nodes):
            if isinstance(node, Point | Pick):
                self._copy_for_readers(node)
                for copy in self.copies[node]:
                    self._forget_if_unread(copy)
                self._forget_if_unread(node)
        order: list[Node] = [*self.fences[None]]
        for node in self.graph.nodes:
            order += [node, *self.copies[node], *self.fences[node]]
            for copy in self.copies[node]:
                order += self.fences[copy]
        self.graph.nodes = without_unread(order, self.outputs, (Point, Pick))

    def _forget_if_unread(self, node: Point | Pick) -> None:
        """A point that nobody reads any more reads nothing."""
        if node.out not in self.outputs and not self.readers[node.out]:
            for i, x in enumerate(node.operands):
                if isinstance(x, View):
                    self.readers[x.value].pop((node, i), None)

    def _copy_for_readers(self, node: Point | Pick) -> None:
        """Let readers read copies of a point in their own space, if that is worth it."""
        readers = list(self.readers[node.out])
        ways = self._ways(node, readers)
        if ways is None:
            return
        known: dict[_Way, Operand] = {}
        for (reader, i), way in zip(readers, ways, strict=True):
            if _is_plain(way, node):
                continue
            if way not in known:
                known[way] = self._copy(node, way)
            if isinstance(reader, Guard) and reader.is_fence and i == 0:
                # There is something to be computed everywhere, so nothing is to be fenced off.
                for other, k in self.readers.pop(reader.out, {}):
                    self._replace(other, k, _through(other.operands[k], known[way]))
            del self.readers[node.out][reader, i]
            self._replace(reader, i, known[way])

    def _replace(self, node: Node, i: int, operand: Operand) -> None:
        operands = list(node.operands)
        operands[i] = operand
        node.operands = tuple(operands)
        if isinstance(operand, View):
            self.readers[operand.value][node, i] = None

    def _ways(self, node: Point | Pick, readers: list[tuple[Node, int]]) -> list[_Way] | None:
        """How each reader reads it, if it is to be computed again where that differs."""
        if node.out in self.outputs or not readers:
            return None
        ways: list[_Way] = []
        for reader, i in readers:
            view = reader.operands[i]
            assert isinstance(view, View)
            box = reader.box if isinstance(reader, Guard) and i == 0 else None
            form = reindex_of(view) if box is None else _within(view, box)
            if form is None or not isinstance(reader, Point | Fold | Pick):
                return None
            if reader.looks_around(i) or reader.epoch != node.epoch:
                return None
            if isinstance(node, Pick) and box is not None:
                return None  # only what is read at an index of its own can be fenced off
            if 4 * math.prod(view.shape) > 5 * math.prod(node.out.shape) and not is_copy(node):
                return None
            ways.append((form, view.shape, box))
        different = set(ways)
        if all(_is_plain(way, node) for way in different):
            return None
        if any(_is_across(way) for way in different) and self._is_long(node):
            return None
        if len(different) > 1 and (isinstance(node, Pick) or node.is_expensive):
            return None
        return ways if cost_of(node) * len(different) <= MAX_COST else None

    def _is_long(self, node: Point | Pick) -> bool:
        """Whether much is computed on the way to a value, in its own space.

        What looks elements up is computed one by one in any case.
        """
        cost, seen, waiting = 0, {node.out}, [node]
        while waiting and cost <= MAX_COST_ACROSS:
            at = waiting.pop()
            if isinstance(at, Pick):
                return False
            cost += cost_of(at)
            for x in at.operands:
                if isinstance(x, View) and x.value not in seen and x.shape == node.out.shape:
                    seen.add(x.value)
                    if isinstance(x.value.maker, Point | Pick):
                        waiting.append(x.value.maker)
        return cost > MAX_COST_ACROSS

    def _copy(self, node: Point | Pick, way: _Way) -> Operand:
        """A point as seen in another space; outside of the box, if there is one, it is anything."""
        form, shape, box = way

        def seen(operand: Operand) -> Operand:
            found = operand.reindexed(form, shape)
            if box is None or isinstance(found, Uniform):
                return found
            return self._fence(found, box, node)

        if not isinstance(node, Guard):
            operands = tuple(seen(x) for x in node.operands)
            out = Value(shape, node.out.dtype)
            return self._add(replace(node, operands=operands, outs=(out,)), node)
        inside, outside = node.operands
        inner = seen_box(node.box, form, shape)
        if inner is not None and box is not None:
            inner = common_box(inner, box)
        if inner is None or is_empty(inner):
            return seen(outside)
        found = inside.reindexed(form, shape)
        if is_everything(inner, shape):
            return found
        out = Value(shape, node.out.dtype)
        return self._add(Guard((found, seen(outside)), (out,), inner, node.is_fence), node)

    def _add(self, copy: Point | Pick, node: Node) -> Operand:
        self._register(copy.like(node))
        self.copies[node].append(copy)
        return whole(copy.out)

    def _fence(self, view: View, box: Box, reader: Node) -> Operand:
        """A view that is read in a box only, and is anything elsewhere."""
        key = view, box, reader.epoch
        if key not in self.fenced:
            zeros = Uniform(np.zeros((), view.dtype)[()], view.shape)
            fence = Guard((view, zeros), (Value(view.shape, view.dtype),), box, True).like(reader)
            self._register(fence)
            self.fences[view.value.maker].append(fence)
            self.fenced[key] = whole(fence.out)
        return self.fenced[key]


def _is_across(way: _Way) -> bool:
    """Whether the reader's rows go across those of the value."""
    form, shape, _ = way
    axes = [a for a, n in zip(form.axes, shape, strict=True) if a is not None and n > SHORT]
    return bool(axes) and axes[-1] != max(axes)


def _through(view: Operand, operand: Operand) -> Operand:
    """An operand as a view of a value of its shape shows it."""
    assert isinstance(view, View)
    # A view counts places in memory: what it is a view of has to lie there in the same order.
    assert isinstance(operand, Uniform) or operand.is_whole
    return operand.walked(view.shape, view.strides, view.offset)


def _within(view: View, box: Box) -> Reindex | None:
    """How a view walks its value in a box of its indices; elsewhere it has no elements."""
    offset = view.offset + sum(a * s for (a, _), s in zip(box, view.strides, strict=True))
    form = reindex_of(View(view.value, tuple(b - a for a, b in box), view.strides, offset))
    if form is None:
        return None
    starts = list(form.starts)
    for (first, _), axis, step in zip(box, form.axes, form.steps, strict=True):
        if axis is not None:
            starts[axis] -= step * first
    return Reindex(form.axes, tuple(starts), form.steps)


def _is_plain(way: _Way, node: Node) -> bool:
    """Whether a reader reads, at every index, what was made at that index."""
    form, shape, box = way
    if shape != node.out.shape or box is not None:
        return False
    return all(
        n == 1 or (axis == k and step == 1)
        for k, (n, axis, step) in enumerate(zip(shape, form.axes, form.steps, strict=True))
    )


def cost_of(node: Point | Pick) -> int:
    """Operations of a point, its loads included."""
    n_loads = sum(isinstance(x, View) for x in node.operands)
    if isinstance(node, Pick):
        return 4 * n_loads
    return n_loads + (1 if isinstance(node, Guard) else node.cost)
