"""Rematerialisation: recompute residuals of a loop in its backward loop, where memory costs more.

``rematerialize : graph -> graph``. The derivative of a loop runs backwards over its residuals: a
stack per operation that is not linear. In long loops over large arrays these stacks exceed any
cache, while most of them follow from the carried values by a few cheap operations. So the backward
loop repeats those operations, and the forward loop keeps only its carried values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from funcgrad.compiler.machine import CACHES, cycles_of_moving
from funcgrad.compiler.nest.bounds import bounds_of
from funcgrad.compiler.nest.cost import cycles_of_computing
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import (
    Copies,
    Graph,
    Link,
    Loop,
    Nest,
    Node,
    Pick,
    Point,
    cloned,
    depth_first,
    is_copy,
    readers_of,
    reading,
    values_read,
    without_unread,
)
from funcgrad.compiler.nest.take_back import take_back, writes_of
from funcgrad.compiler.nest.unswitch import asks_index

MIN_BYTES = 2 * CACHES[1][0]
"""Stacks that are smaller in all stay in the cache."""


def rematerialize(graph: Graph) -> None:
    """Let loops compute again what earlier loops would keep for them; changes the graph."""
    loops = [node for node in graph.nodes if isinstance(node, Loop) and node.length is not None]
    if len(loops) < 2:
        return
    readers = readers_of(graph.nodes)
    for second in loops:
        sliced = (k.outer.maker for k in second.links if k.step and k.inner.maker is None)
        for first in dict.fromkeys(maker for maker in sliced if maker in loops):
            only = {v for v in first.outs if readers[v] == [second] and v not in graph.outputs}
            _Pair(first, second, only, graph.limit is not None).run()
    # Nothing may be left of a loop that only maps: the later one does all that it did.
    graph.nodes = [node for node in graph.nodes if node.outs or not isinstance(node, Loop)]


class _Pair:
    """Two loops, of which the second reads slices of stacks of the first.

    Args:
        first: The loop that comes first.
        second: The loop that reads its stacks.
        only: The results of the first loop that nobody else reads.
        is_limited: Whether memory is what counts, not time.
    """

    def __init__(self, first: Loop, second: Loop, only: set[Value], is_limited: bool) -> None:
        self.is_limited = is_limited
        self.first = first
        self.second = second
        self.body = first.bodies[-1]
        self.made = {out: node for node in self.body.nodes for out in node.outs}
        self.stacked = {
            k.inner: k for k in first.links if k.inner.maker is not None and k.inner in self.made
        }
        self.carried = {carry.now for carry in first.carries}
        self.given = {k.inner: k for k in first.links if k.inner.maker is None}
        self.only = only

    def run(self) -> None:
        length = self.first.length
        if length is None or length != self.second.length or length < 2:
            return
        self.length = length
        self.slices = self._slices()
        self.writes = writes_of(self.first) if self.is_reverse else {}
        # Everything; or conditions on the index, which bound the rows of those who compute them
        # (`unswitch`).
        again = self._choose()
        if not self._is_worth_it(again):
            again = self._choose(_is_condition)
        if again:
            self._repeat(again)
            self._drop()

    # Candidates for recomputation, and its profit.

    def _slices(self) -> dict[Value, list[Link]]:
        """For every stacked value the links by which the second loop has it, step by step.

        All of them go the same way: with the first loop, or against it.
        """
        inside = {v for node in _nests(self.second.bodies[-1]) for v in values_read(node)}
        with_it: dict[Value, list[Link]] = {}
        against: dict[Value, list[Link]] = {}
        stacks = {link.outer: link for link in self.stacked.values()}
        for link in self.second.links:
            own = stacks.get(link.outer)
            if own is None or link.inner.maker is not None or link.inner in inside or not own.step:
                continue
            if math.prod(link.inner.shape) != math.prod(own.inner.shape):
                continue
            if (link.offset, link.step) == (own.offset, own.step):
                with_it.setdefault(own.inner, []).append(link)
            elif (link.offset, link.step) == (own.offset + (self.length - 1) * own.step, -own.step):
                against.setdefault(own.inner, []).append(link)
        self.is_reverse = len(against) > len(with_it)
        return against if self.is_reverse else with_it

    def _choose(self, is_wanted: Callable[[Node], bool] = lambda _: True) -> list[Node]:
        """Nodes that the second loop repeats, in order.

        A value is repeated if everything that it needs is carried, given, kept anyway or repeated.
        """
        nexts = {carry.next for carry in self.first.carries}
        inner = {v for node in _nests(self.body) for v in values_read(node)}
        again: set[Node] = set()
        self.kept: dict[Value, Value] = {}
        """Values of the first loop that the second one has, by its own names for them."""
        self.gone: list[Value] = []
        for node in self.body.nodes:
            value = node.outs[0] if len(node.outs) == 1 else None
            if value is None or value not in self.slices:
                continue
            links = [k for k in self.second.links if k.outer is self.stacked[value].outer]
            is_free = (
                is_wanted(node)
                and self.stacked[value].outer in self.only
                and len(links) == len(self.slices[value])
                and value not in nexts
                and value not in inner
            )
            carried = self._copied(node)
            needed = self._needs(value) if is_free and carried is None else None
            if needed is None:
                self.kept[value if carried is None else carried] = self.slices[value][0].inner
                continue
            again |= needed
            self.gone.append(value)
        return [node for node in self.body.nodes if node in again]

    def _copied(self, node: Node) -> Value | None:
        """The carried value that a node only copies, so that a stack of it is there."""
        if isinstance(node, Point) and node.expr == "{0}":
            [x] = node.operands
            if isinstance(x, View) and x.value in self.carried and x == whole(x.value):
                return None if x.value in self.writes else x.value
        return None

    def _needs(self, value: Value) -> set[Node] | None:
        """The nodes that compute a value from what the second loop has."""

        def needs(node: Node) -> list[Node]:
            read = values_read(node)
            return [self.made[x] for x in read if x in self.made and x not in self.kept]

        found = depth_first([self.made[value]], needs)
        for node in found:
            if not isinstance(node, Point | Copies | Pick):
                return None
            if node.is_expensive and not self.is_limited:
                return None
        return set(found)

    def _is_worth_it(self, again: Sequence[Node]) -> bool:
        if not again:
            return False
        carried = {v for node in again for v in values_read(node)} & self.carried
        size = sum(math.prod(value.shape) for value in self.gone)
        for now in (now for now in carried if now not in self.kept):
            size -= 2 * (self.writes[now].size if now in self.writes else math.prod(now.shape))
        work = sum(cycles_of_computing(node) * math.prod(node.out.shape) for node in again)
        nbytes = size * self.length * min(value.dtype.itemsize for value in self.gone)
        if self.is_limited:
            return nbytes > 0
        return nbytes >= MIN_BYTES and work <= 2 * cycles_of_moving(nbytes) * size

    # The change.

    def _repeat(self, again: Iterable[Node]) -> None:
        """Have the second loop compute what is gone."""
        body = self.second.bodies[-1]
        own = self.kept
        self.clones: list[Node] = []
        for node in again:
            for value in values_read(node):
                if value not in own:
                    own[value] = self._given(value)
            self.clones.append(cloned(node, own))
        for clone in self.clones:
            clone.epoch = body.nodes[0].epoch
        instead = {k.inner: own[v] for v in self.gone for k in self.slices[v]}
        for node in body.nodes:
            node.operands = tuple(reading(x, instead) for x in node.operands)
        body.nodes[:0] = self.clones

    def _given(self, value: Value) -> Value:
        """Return an input of the first loop as the second one has it."""
        if value in self.writes:
            writes = self.writes[value]
            return take_back(self.second, self.clones, writes, self.body, self._kept)
        link = self._stack(value) if value in self.carried else self.given.get(value)
        return value if link is None else self._slice(link)  # a constant

    def _kept(self, value: Value) -> Value:
        """Any value of an iteration of the first loop as the second one has it."""
        if value not in self.kept:
            is_made = value.maker is not None
            self.kept[value] = self._slice(self._stack(value)) if is_made else self._given(value)
        return self.kept[value]

    def _slice(self, link: Link) -> Value:
        """The value that the second loop has at the place of a link of the first one."""
        offset, step = link.offset, link.step
        if self.is_reverse:
            offset, step = offset + (self.length - 1) * step, -step
        inner = Value(link.inner.shape, link.inner.dtype)
        inner.array, inner.bounds = link.inner.array, bounds_of(whole(link.inner))
        self.second.links += (Link(inner, link.outer, offset, step),)
        return inner

    def _stack(self, value: Value) -> Link:
        """A stack of a value of each iteration: a carried one as it is when steps begin."""
        size = math.prod(value.shape)
        out, stack = value, Value((self.length, *value.shape), value.dtype)
        nodes = self.body.nodes
        if value.maker is None or value in self.body.outputs:
            out = Value(value.shape, value.dtype)
            out.bounds = bounds_of(whole(value))
            kept = Point((whole(value),), (out,), "{0}")
            kept.epoch = nodes[0].epoch
            nodes.insert(0 if value.maker is None else nodes.index(value.maker) + 1, kept)
        self.body.outputs.append(out)
        stack.maker = self.first
        stack.is_stored = False
        self.first.outs += (stack,)
        goes_back = any(link.step < 0 for link in self.stacked.values())
        start, step = ((self.length - 1) * size, -size) if goes_back else (0, size)
        self.first.links += (Link(out, stack, start, step),)
        return self.first.links[-1]

    def _drop(self) -> None:
        """Forget what is gone, and who only made that."""
        gone, read = set(self.gone), {k.inner for v in self.gone for k in self.slices[v]}
        stacks = {self.stacked[value].outer for value in gone}
        self.first.links = tuple(k for k in self.first.links if k.inner not in gone)
        self.first.outs = tuple(out for out in self.first.outs if out not in stacks)
        self.second.links = tuple(k for k in self.second.links if k.inner not in read)
        self.body.outputs = [value for value in self.body.outputs if value not in gone]
        self.body.nodes = without_unread(self.body.nodes, self.body.outputs, (Point, Copies, Pick))
        for loop in (self.first, self.second):
            loop.operands = Loop.reads(loop.links, loop.carries, loop.outs)


def _is_condition(node: Node) -> bool:
    """Whether a node is a condition on loop indices, or a copy of one."""
    if is_copy(node):
        [x] = node.operands
        node = x.value.maker if isinstance(x, View) and x.value.maker is not None else node
    return asks_index(node)


def _nests(graph: Graph) -> Iterator[Nest]:
    return (node for node in graph.nodes if isinstance(node, Nest))
