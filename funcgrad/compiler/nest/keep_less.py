"""Kernels keep less for each other: cheap values are computed again by those who read them.

``keep_less : groups -> groups``. What one kernel computes element by element on the way, such as
the differences from a mean of which it adds up the squares, another one may need, too. Written to
memory and read again, it costs as much as what it was made of, which is there in any case: so it is
computed again from that, if that takes few operations and no more memory than the value has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from funcgrad.compiler.nest.fuse import MAX_NODES, Group
from funcgrad.compiler.nest.layout import Uniform, Value, View
from funcgrad.compiler.nest.nodes import (
    Graph,
    Guard,
    Node,
    Point,
    cloned,
    readers_of,
    reading,
    values_read,
    without_unread,
)

MAX_COST = 8
"""Operations by which a value may be computed again."""

LEAST = 1 << 16
"""Bytes of a value that is worth it: less stays in the nearest caches."""

SMALL = 16
"""How many times as large a value is as those that may be kept in its place."""


def keep_less(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """The groups, which read and write less; changes the graph."""
    return _Keeping(graph, groups).run()


class _Keeping:
    def __init__(self, graph: Graph, groups: Sequence[Group]) -> None:
        self.graph = graph
        self.groups = groups
        self.outputs = set(graph.outputs)
        self.home = {node: group for group in groups for node in group.nodes}
        self.readers = readers_of(self.home)
        self.copies: dict[Node, list[Node]] = defaultdict(list)
        """By the node that they come before."""

    def run(self) -> list[Group]:
        for group in self.groups:
            if group.is_fusable:
                for node in list(group.nodes):
                    self._try(node, group)
        if not self.copies:
            return list(self.groups)
        nodes = [n for node in self.graph.nodes for n in (*self.copies[node], node)]
        self.graph.nodes = without_unread(nodes, self.outputs, (Point,))
        kept = set(self.graph.nodes)
        for group in self.groups:
            group.nodes = [node for node in group.nodes if node in kept]
        return [group for group in self.groups if group.nodes]

    def _try(self, node: Node, group: Group) -> None:
        """Let all other groups compute a value for themselves, if that is worth it for each."""
        if not _is_plain_point(node) or node.out in self.outputs or node.out.nbytes < LEAST:
            return
        readers: dict[Group, list[Node]] = defaultdict(list)
        for reader in self.readers[node.out]:
            if self.home[reader] is not group:
                readers[self.home[reader]].append(reader)
        if not readers:
            return
        chain = self._chain(node, group)
        if chain is None:
            return
        own = set(chain)
        leaves = {v for n in chain for v in values_read(n) if v.maker not in own}
        if all(self._may_repeat(node, leaves, chain, other, readers[other]) for other in readers):
            for other, nodes in readers.items():
                self._repeat(node, chain, other, nodes)

    def _chain(self, node: Node, group: Group) -> list[Node] | None:
        """The points by which a value is computed, if they are few."""
        own = set(group.nodes)
        found: dict[Node, None] = {}
        waiting, cost = [node], 0
        while waiting:
            at = waiting.pop()
            if at in found:
                continue
            if not _is_plain_point(at) or at.out.shape != node.out.shape:
                return None
            found[at] = None
            cost += at.cost
            if cost > MAX_COST or at.is_expensive:
                return None
            for x in at.operands:
                if not isinstance(x, View) or x.value.maker not in own:
                    continue
                if SMALL * x.value.nbytes > node.out.nbytes:
                    if not x.is_value or x.shape != node.out.shape:
                        return None
                    waiting.append(x.value.maker)
        return [n for n in group.nodes if n in found]

    def _may_repeat(
        self,
        node: Node,
        leaves: set[Value],
        chain: Sequence[Node],
        other: Group,
        readers: Sequence[Node],
    ) -> bool:
        """Whether another group can compute a value instead of reading it, and reads no more."""
        value = node.out
        if not other.is_fusable or other.space != value.shape:
            return False
        if len(other.nodes) + len(chain) > MAX_NODES:
            return False
        for reader in readers:
            if reader.epoch != node.epoch or reader.space != value.shape:
                return False
            for k, x in enumerate(reader.operands):
                if isinstance(x, Uniform) or x.value is not value:
                    continue
                if not x.is_value or reader.looks_around(k):
                    return False
        own = set(other.nodes)
        if any(leaf.maker in own for leaf in leaves):
            return False
        read = {v for n in own for v in values_read(n)}
        return sum(leaf.nbytes for leaf in leaves - read) <= value.nbytes * (1 + 1 / SMALL)

    def _repeat(
        self, node: Node, chain: Sequence[Node], other: Group, readers: Sequence[Node]
    ) -> None:
        known: dict[Value, Value] = {}
        copies: list[Node] = []
        for old in chain:
            copy = cloned(old, known)
            copies.append(copy)
            self.home[copy] = other
            for value in dict.fromkeys(values_read(copy)):
                self.readers[value].append(copy)
        first = min(map(other.nodes.index, readers))
        before = other.nodes[first]
        other.nodes[first:first] = copies
        self.copies[before] += copies
        for reader in readers:
            reader.operands = tuple(reading(x, known) for x in reader.operands)
            self.readers[node.out].remove(reader)
            self.readers[known[node.out]].append(reader)


def _is_plain_point(node: Node) -> bool:
    return isinstance(node, Point) and not isinstance(node, Guard)
