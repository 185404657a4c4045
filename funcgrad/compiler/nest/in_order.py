"""Running folds and scatters in the kernels of what makes their operands and reads their results.

``share_in_order : groups -> groups``. Both take elements one after the other, so their kernels are
loops of single elements. What a few operations make of an element for them, or of theirs, is
computed there, and needs no memory: a cumulative sum of flags, an index of a bin, a product of a
sparse matrix. Functions of elements stay kernels of vectors, which threads share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from funcgrad.compiler import machine
from funcgrad.compiler.nest.fuse import Fuser, Group, LoopNest, is_aligned, scan_nest
from funcgrad.compiler.nest.layout import Shape, View
from funcgrad.compiler.nest.nodes import (
    Graph,
    Guard,
    Node,
    Pick,
    Point,
    Put,
    Scan,
    readers_of,
    values_read,
)


def share_in_order(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """The groups, of which some take in those around them; changes the order of the graph.

    Under a limit of bytes none do, as what shares a kernel is computed again together.
    """
    if graph.limit is not None or not any(
        isinstance(group.nodes[0], Put | Scan) for group in groups
    ):
        return [*groups]
    fuser = Fuser(_Sharing(graph).united)
    for i, old in enumerate(groups):
        group = Group(i, old.nodes[0])
        group.nodes, group.space, group.nest = [*old.nodes], old.space, old.nest
        group.precision = old.precision
        fuser.register(group)
    for index in sorted(fuser.groups):
        group = fuser.groups[index]
        for dep in sorted(group.deps, reverse=True):
            if dep in fuser.groups:
                group = fuser.merge(fuser.groups[dep], group)
    found = fuser.ordered()
    graph.nodes = [node for group in found for node in group.nodes]
    return found


class _Sharing:
    """Finds the loop nests of unions of groups."""

    def __init__(self, graph: Graph) -> None:
        self.outputs = {*graph.outputs}
        self.readers = readers_of(graph.nodes)

    def united(self, a: Group, b: Group) -> tuple[Shape, LoopNest] | None:
        """Space and loop nest of two groups, the second of which reads the first, if one has any.

        Something that the one has made for the other is to need no memory any more.
        """
        nodes = [*a.nodes, *b.nodes]
        if a.space != b.space or a.nodes[0].epoch != b.nodes[0].epoch or not _is_in_order(nodes):
            return None
        if a.precision and b.precision and a.precision != b.precision:
            return None
        nest = _nest_of(nodes)
        if nest is None or not _are_streamed(nodes, a.space, nest):
            return None
        together = {*nodes}
        read = {value for node in b.nodes for value in values_read(node)}
        is_saved = any(
            node.out in read
            and node.out not in self.outputs
            and all(x in together or isinstance(x, Put | Scan) for x in self.readers[node.out])
            for node in a.nodes
        )
        return (a.space, nest) if is_saved else None


def _is_in_order(nodes: Sequence[Node]) -> bool:
    """Whether nodes take elements in their order, and do little else."""
    if not any(isinstance(node, Put | Scan) for node in nodes):
        return False
    if not all(isinstance(node, Point | Pick | Put | Scan) for node in nodes):
        return False
    if any(isinstance(node, Put) and not _is_of_elements(node) for node in nodes):
        return False
    points = [node for node in nodes if isinstance(node, Point)]
    cost = sum(node.cost for node in points)
    return cost <= machine.HEAVY and not any(node.is_expensive for node in points)


def _is_of_elements(put: Put) -> bool:
    """Whether a scatter takes many single elements in."""
    shape = put.space
    n_rows = math.prod(shape[: len(shape) - put.n_rest])
    return machine.SEVERAL < n_rows == math.prod(shape)


def _nest_of(nodes: Iterable[Node]) -> LoopNest | None:
    """The order in which all of some nodes take their elements, if there is one.

    Rows may run apart along the outer axes of a running fold, and those of lanes of a scatter.
    """
    found: LoopNest | None = None
    for node in nodes:
        if isinstance(node, Scan):
            nest = scan_nest(node)
        elif isinstance(node, Put):
            rank = len(node.space)
            n_alone = next((axis for axis in range(rank) if axis not in node.lanes), rank - 1)
            nest = LoopNest(tuple(range(rank)), rank - n_alone, direction=1)
        else:
            continue
        if found not in (None, nest):
            return None
        found = nest
    return found


def _are_streamed(nodes: Sequence[Node], space: Shape, nest: LoopNest) -> bool:
    """Whether each node reads what others make at the index at which it was made.

    An array that a scatter changes is read by nothing else. Indices that scatters refuse end a
    kernel at once, those of lookups behind its loops: NumPy would meet the latter first.
    """
    made = {node.out: node for node in nodes}
    bases = [node.operands[0] for node in nodes if isinstance(node, Put)]
    changed = [x.value for x in bases if isinstance(x, View)]
    for node in nodes:
        if node.space != space or (nest.direction < 0 and isinstance(node, Guard)):
            return False
        for k, x in enumerate(node.operands):
            if not isinstance(x, View):
                continue
            if x.value in changed and not (isinstance(node, Put) and k == 0):
                return False
            maker = made.get(x.value)
            if maker is None:
                continue
            if node.looks_around(k) or isinstance(maker, Put):
                return False
            if not is_aligned(x, node, space, None):
                return False
    return len({*changed}) == len(changed) and not _refuses_twice(nodes)


def _refuses_twice(nodes: Sequence[Node]) -> bool:
    """Whether scatters refuse other indices than lookups do, whose places they share."""
    looked_at = {
        (x, length)
        for node in nodes
        if isinstance(node, Pick) and any(node.sites)
        for x, length in zip(node.operands[1:], node.lengths, strict=True)
    }
    refused = {
        (x, length)
        for node in nodes
        if isinstance(node, Put) and any(node.sites)
        for x, length in zip(node.operands[2:], node.lengths, strict=True)
    }
    return bool(looked_at) and not refused <= looked_at
