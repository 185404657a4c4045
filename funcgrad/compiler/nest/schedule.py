"""Inline, stream or store: one decision for every value, by what each of them costs.

``schedule : graph -> graph``, ``schedule_groups : groups -> groups``. What follows element by
element is streamed: fusion computes it in a register, in the kernel that reads it. A value that is
read at other indices than its own, such as a neighbour's, or in another kernel, is either stored or
computed again by its readers (inlined). `Choice` compares the cycles of both: operations and loads
that are repeated, with bytes that are moved and a kernel that is called. So a stencil of a stencil
is one pass over its input, while a long formula that seven neighbours ask for is stored.

Before fusion, readers at other indices get copies in their own index space, which they fuse with.
After it, values that still go from one kernel to another are computed again by the second one where
that is less.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler import machine
from funcgrad.compiler.nest.access import common_box, everything, is_empty, seen_box
from funcgrad.compiler.nest.accumulate import is_accurate
from funcgrad.compiler.nest.bounds import parts_of
from funcgrad.compiler.nest.cost import cycles_of_computing
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import (
    Box,
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    reindex_of,
    whole,
)
from funcgrad.compiler.nest.nodes import (
    Fold,
    Graph,
    Guard,
    Node,
    Pick,
    Point,
    cloned,
    is_copy,
    ordered,
    readers_of,
    reading,
    values_read,
    without_unread,
)
from funcgrad.compiler.nest.unswitch import asks_index, is_bounded
from funcgrad.dtypes import INT64
from funcgrad.lowering import Reindex


@dataclass(frozen=True)
class _Way:
    """How a value is read: its indices, the reader's space, the box outside of which it is not."""

    form: Reindex
    shape: Shape
    box: Box | None

    def is_plain(self, node: Node) -> bool:
        """Whether a reader reads, at every index, what a node made at that index."""
        if self.shape != node.out.shape or self.box is not None:
            return False
        steps = zip(self.shape, self.form.axes, self.form.steps, strict=True)
        return all(n == 1 or (a == k and s == 1) for k, (n, a, s) in enumerate(steps))

    def seen(self, box: Box) -> Box | None:
        """The reader's indices at which it reads in a box of the value, if there are any."""
        found = seen_box(box, self.form, self.shape)
        if found is None or self.box is None:
            return found
        found = common_box(found, self.box)
        return None if is_empty(found) else found

    @property
    def is_across(self) -> bool:
        """Whether the reader's rows go across those of the value."""
        axes = zip(self.form.axes, self.shape, strict=True)
        long = [axis for axis, n in axes if axis is not None and n > machine.FEW]
        return bool(long) and long[-1] != max(long)


class _Chain:
    """Expression of a value at one index: pointwise nodes that read each other, and their loads.

    Args:
        node: The last of them.
        may_belong: Whether it may read what another node makes where that is computed.
    """

    def __init__(self, node: Node, may_belong: Callable[[Node], bool]) -> None:
        self.node = node
        self.nodes: dict[Node, None] = {}
        self.leaves: dict[View, None] = {}
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at in self.nodes:
                continue
            self.nodes[at] = None
            for x in at.operands:
                if not isinstance(x, View):
                    continue
                maker = x.value.maker
                if (
                    isinstance(maker, Point | Pick)
                    and maker.epoch == node.epoch
                    and x.shape == node.out.shape
                    and x.is_value
                    and may_belong(maker)
                ):
                    waiting.append(maker)
                else:
                    self.leaves[x] = None
        is_apart = any(_loading(x) == machine.ACROSS for x in self.leaves)
        self.slowness = machine.SCALAR if is_apart else 1
        self.cycles = self.slowness * sum(map(cycles_of_computing, self.nodes))


def _loading(x: View) -> float:
    """Cycles of loading a vector of a row from the nearest cache, at least."""
    step = next((abs(s) for n, s in zip(x.shape[::-1], x.strides[::-1], strict=True) if n > 1), 0)
    return machine.UNALIGNED * step if step < 2 else machine.ACROSS


def schedule(graph: Graph) -> None:
    """Let readers compute values for themselves where that costs less; changes the graph."""
    _Inlining(graph).run()


class _Inlining:
    """Copies of points for those who read them at other indices than their own."""

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
        if isinstance(node, Guard):
            self._choose_sides(node)
        if asks_index(node):
            self._bound_rows(node)
        readers = list(self.readers[node.out])
        ways = self._ways(node, readers)
        if ways is None or not self._is_less(node, list(dict.fromkeys(ways))):
            return
        known: dict[_Way, Operand] = {}
        for (reader, i), way in zip(readers, ways, strict=True):
            if way.is_plain(node):
                continue
            if way not in known:
                known[way] = self._copy(node, way)
            if isinstance(reader, Guard) and reader.is_fence and i == 0:
                # There is something to be computed everywhere, so nothing is to be fenced off.
                # A view counts places in memory: what it is of has to lie there in the same order.
                made = known[way]
                assert isinstance(made, Uniform) or made.is_whole
                for other, k in self.readers.pop(reader.out, {}):
                    x = other.operands[k]
                    self._replace(other, k, made.restrided(x.shape, x.strides, x.offset))
            del self.readers[node.out][reader, i]
            self._replace(reader, i, known[way])

    def _choose_sides(self, node: Guard) -> None:
        """Let readers that see only one side of a guard's box read what is there."""
        for reader, i in list(self.readers[node.out]):
            way = _way(node, reader, i)
            if way is None:
                continue
            inner = way.seen(node.box)
            if inner in (None, way.box or everything(way.shape)):
                side = node.operands[inner is None]
                del self.readers[node.out][reader, i]
                self._replace(reader, i, side.reindexed(way.form, way.shape))

    def _bound_rows(self, node: Point | Pick) -> None:
        """Let conditions bound rows, or the loop over them, of those who read them (`unswitch`)."""
        for reader, i in list(self.readers[node.out]):
            way = _way(node, reader, i) if isinstance(reader, Point) else None
            if way is None or way.is_plain(node) or not way.shape or way.box is not None:
                continue
            along = [axis for axis in way.form.axes[-2:] if axis is not None]
            if along[-1:] == [len(node.out.shape) - 1]:
                del self.readers[node.out][reader, i]
                self._replace(reader, i, self._copy(node, way))

    def _replace(self, node: Node, i: int, operand: Operand) -> None:
        operands = list(node.operands)
        operands[i] = operand
        node.operands = tuple(operands)
        if isinstance(operand, View):
            self.readers[operand.value][node, i] = None

    def _ways(self, node: Point | Pick, readers: list[tuple[Node, int]]) -> list[_Way] | None:
        """How each reader reads a value, if all of them could compute it and not all do."""
        if node.out in self.outputs or not readers:
            return None
        ways: list[_Way] = []
        for reader, i in readers:
            way = _way(node, reader, i)
            if way is None or (way.box is not None and not self._may_go_beyond(node, reader)):
                return None
            is_repeated = 4 * math.prod(way.shape) > 5 * math.prod(node.out.shape)
            if is_repeated and not is_copy(node) and not is_copy(reader):
                return None  # it is a number of a row, which its kernel computes once for it
            ways.append(way)
        return None if all(way.is_plain(node) for way in ways) else ways

    def _is_less(self, node: Point | Pick, ways: Sequence[_Way]) -> bool:
        """Whether it takes less to compute a value in all these ways than to store it."""
        if is_copy(node):
            return True
        chain = _Chain(node, lambda maker: maker.out not in self.outputs)
        if len(chain.nodes) * (len(ways) - 1) > machine.KERNEL_NODES:
            return False
        loads: dict[tuple[Value, tuple[int, ...], int], float] = {}
        for way in ways:
            seen = [x.reindexed(way.form, way.shape) for x in chain.leaves]
            loads |= {(x.value, x.strides, x.offset): _loading(x) for x in seen}
            n_across = sum(_loading(x) == machine.ACROSS for x in seen if way.is_across)
            asks = any(isinstance(each, Guard | Pick) for each in chain.nodes)
            if n_across > machine.MOST_TRANSPOSED or (n_across and asks):
                return False
        size = max(math.prod(node.out.shape), 1)
        repeats = sum(max(math.prod(way.shape) / size, 1.0) for way in ways)
        inlined = repeats * chain.cycles + sum(loads.values())
        stored = chain.cycles + sum(map(_loading, chain.leaves))
        stored += sum(machine.ACROSS if way.is_across else machine.UNALIGNED for way in ways)
        n_vectors = max(node.out.nbytes / machine.VECTOR_BYTES, 1.0)
        stored += 2 * machine.cycles_of_moving(node.out.nbytes) + machine.KERNEL_CYCLES / n_vectors
        return inlined <= stored

    def _copy(self, node: Point | Pick, way: _Way) -> Operand:
        """A point as seen in another space; outside of the box, if there is one, it is anything."""
        form, shape, box = way.form, way.shape, way.box
        if isinstance(node, Pick) and box is not None:
            return self._add(self._within(node, way, box), node)

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
        inner, found = way.seen(node.box), inside.reindexed(form, shape)
        assert inner is not None  # else its reader would have chosen the other side
        out = Value(shape, node.out.dtype)
        return self._add(Guard((found, seen(outside)), (out,), inner, node.is_fence), node)

    def _within(self, node: Pick, way: _Way, box: Box) -> Pick:
        """A lookup as seen in a box of another space; beyond it, it finds the nearest element."""
        table, *places = (x.reindexed(way.form, way.shape) for x in node.operands)
        lengths, steps = [*node.lengths], [*node.steps]
        for axis, (a, b) in enumerate(box):
            step, n = table.strides[axis], way.shape[axis]
            if not step or (a, b) == (0, n):
                continue
            numbers = Value((n,), INT64)
            numbers.array = np.clip(np.arange(n) - a, 0, b - a - 1)
            self.graph.constants.append(numbers)
            places.append(whole(numbers).reindexed(_along(axis, way.shape), way.shape))
            lengths.append(b - a)
            steps.append(step)
            strides = (*table.strides[:axis], 0, *table.strides[axis + 1 :])
            table = table.restrided(table.shape, strides, table.offset + a * step)
        return replace(
            node,
            operands=(table, *places),
            outs=(Value(way.shape, node.out.dtype),),
            lengths=tuple(lengths),
            steps=tuple(steps),
            sites=(*node.sites, *(None for _ in places[len(node.sites) :])) if node.sites else (),
        )

    def _may_go_beyond(self, node: Node, reader: Node) -> bool:
        """Whether a node may be computed beyond the box in which a reader wants it.

        A lookup finds something there, too, which takes time where all of it is asked for.
        """
        return not isinstance(node, Pick) or (not any(node.sites) and self._is_bounded(reader))

    def _is_bounded(self, node: Node) -> bool:
        """Whether all that reads a node takes it only where a condition on the index holds.

        A sum whose terms are looked up one by one would have another order.
        """
        readers = self.readers[node.out]
        return bool(readers) and all(
            (_takes_in_part(reader, i) and not any(map(_is_sum, self.readers[reader.out])))
            or (isinstance(reader, Point) and self._is_bounded(reader))
            for reader, i in readers
        )

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


def _way(node: Node, reader: Node, i: int) -> _Way | None:
    """How a value is read as an operand, if its reader could compute it in its own space."""
    view = reader.operands[i]
    assert isinstance(view, View)
    box = reader.box if isinstance(reader, Guard) and i == 0 else None
    form = reindex_of(view) if box is None else _within(view, box)
    if form is None or not isinstance(reader, Point | Fold | Pick):
        return None
    if reader.looks_around(i) or reader.epoch != node.epoch:
        return None
    return _Way(form, view.shape, box)


def _takes_in_part(node: Node, i: int) -> bool:
    """Whether a node takes an operand only where a condition on the index holds, or does not."""
    word, operands = parts_of(node) if type(node) is Point else ("", [])
    is_choice = word.startswith("select") and node.operands[i] is not operands[0]
    return is_choice and is_bounded(operands[0])


def _is_sum(read: tuple[Node, int]) -> bool:
    """Whether who reads something adds floats up."""
    return isinstance(read[0], Fold) and is_accurate(read[0])


def _along(axis: int, shape: Shape) -> Reindex:
    """A vector along one of the axes of a space, repeated along the others."""
    axes = tuple(0 if k == axis else None for k in range(len(shape)))
    return Reindex(axes, (0,), (1,) * len(shape))


def _within(view: View, box: Box) -> Reindex | None:
    """Strides of a view in its value, in a box of its indices; elsewhere it has no elements."""
    offset = view.offset + sum(a * s for (a, _), s in zip(box, view.strides, strict=True))
    form = reindex_of(View(view.value, tuple(b - a for a, b in box), view.strides, offset))
    if form is None:
        return None
    starts = list(form.starts)
    for (first, _), axis, step in zip(box, form.axes, form.steps, strict=True):
        if axis is not None:
            starts[axis] -= step * first
    return Reindex(form.axes, tuple(starts), form.steps)


def schedule_groups(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """Let kernels compute again what others would store for them; changes the graph."""
    return _Sharing(graph, groups).run()


class _Sharing:
    """Copies of points for the groups that would read them from memory."""

    def __init__(self, graph: Graph, groups: Sequence[Group]) -> None:
        self.graph = graph
        self.groups = groups
        self.home = {node: group for group in groups for node in group.nodes}
        self.readers = readers_of(self.home)
        self.outputs = set(graph.outputs)
        self.stored = {
            node.out: node
            for node, group in self.home.items()
            if len(node.outs) == 1
            and any(self.home[reader] is not group for reader in self.readers[node.out])
        }
        """Values that cross groups through memory, with the nodes that make them."""
        self.copies: dict[Group, dict[Value, Value]] = defaultdict(dict)
        """For every group the values that it computes again, with its own ones."""

    def run(self) -> list[Group]:
        self.between: dict[Group, int] = defaultdict(int)
        """Bytes that a group writes for others, before they are read."""
        for value, node in self.stored.items():
            self.between[self.home[node]] += value.nbytes
        # The least first: kernels have room for so many nodes.
        chains = [self._chain(n) for value, n in self.stored.items() if value not in self.outputs]
        for chain in sorted(chains, key=lambda chain: len(chain.nodes)):
            self._decide(chain.node)
        if not self.copies:
            return list(self.groups)
        for group in self.copies:
            group.nodes = ordered(group.nodes)
        nodes = [node for group in self.groups for node in group.nodes]
        self.graph.nodes = without_unread(nodes, self.outputs, (Point,))
        kept = set(self.graph.nodes)
        for group in self.groups:
            group.nodes = [node for node in group.nodes if node in kept]
        return [group for group in self.groups if group.nodes]

    def _chain(self, node: Node) -> _Chain:
        group = self.home[node]

        def may_belong(maker: Node) -> bool:
            is_stored = maker.out in self.stored or maker.out in self.outputs
            return self.home.get(maker) is group and not is_stored

        return _Chain(node, may_belong)

    def _decide(self, node: Node) -> None:
        """Let all other groups compute a value for themselves, if that is less than storing it."""
        group = self.home[node]
        readers: dict[Group, list[Node]] = defaultdict(list)
        for reader in self.readers[node.out]:
            if self.home[reader] is not group:
                readers[self.home[reader]].append(reader)
        chain = self._chain(node)
        if self._is_possible(node, chain, readers) and self._is_less(node, chain, readers):
            self.between[group] -= node.out.nbytes
            del self.stored[node.out]
            order = ordered([*chain.nodes])
            for other, nodes in readers.items():
                self._repeat(node, order, other, nodes)

    def _is_possible(self, node: Node, chain: _Chain, readers: dict[Group, list[Node]]) -> bool:
        """Whether other groups can compute a value, at each index what they read there."""
        value = node.out
        if not self.home[node].is_fusable:
            return False
        if not all(isinstance(n, Point) and n.space == value.shape for n in chain.nodes):
            return False
        leaves = {v for n in chain.nodes for v in values_read(n) if v.maker not in chain.nodes}
        for other, nodes in readers.items():
            if not other.is_fusable or other.space != value.shape:
                return False
            if len(other.nodes) + len(chain.nodes) > machine.KERNEL_NODES:
                return False
            if any(leaf.maker in other.nodes for leaf in leaves):
                return False
            if not all(_reads_in_place(reader, value, node.epoch) for reader in nodes):
                return False
        return True

    def _is_less(self, node: Node, chain: _Chain, readers: Iterable[Group]) -> bool:
        """Whether it takes less to compute a value in other groups than to store it for them."""
        moving = machine.cycles_of_moving(self.between[self.home[node]])
        inlined, stored = 0.0, moving
        for other in readers:
            read = {v for n in other.nodes for v in values_read(n)}
            missing = [x for x in chain.leaves if x.value not in read]
            fresh = (n for n in chain.nodes if n.out not in self.copies[other])
            inlined += chain.slowness * sum(map(cycles_of_computing, fresh))
            inlined += sum(map(_loading, missing))
            # An operand that is broadcast along an axis, such as a bias, is in the nearest cache.
            moved = {x.value for x in missing if not x.is_repeated}
            inlined += sum(machine.cycles_of_moving(v.nbytes) for v in moved)
            stored += moving + machine.UNALIGNED
        return inlined <= stored

    def _repeat(
        self, node: Node, chain: Sequence[Node], other: Group, readers: Sequence[Node]
    ) -> None:
        known = self.copies[other]
        fresh = [cloned(old, known) for old in chain if old.out not in known]
        for copy in fresh:
            self.home[copy] = other
            for value in dict.fromkeys(values_read(copy)):
                self.readers[value].append(copy)
        other.nodes += fresh
        for reader in readers:
            reader.operands = tuple(reading(x, known) for x in reader.operands)
            self.readers[node.out].remove(reader)
            self.readers[known[node.out]].append(reader)


def _reads_in_place(reader: Node, value: Value, epoch: int) -> bool:
    """Whether a node reads a value at each index of its own, and nowhere else."""
    if reader.epoch != epoch or reader.space != value.shape:
        return False
    return all(
        x.is_value and not reader.looks_around(k)
        for k, x in enumerate(reader.operands)
        if isinstance(x, View) and x.value is value
    )
