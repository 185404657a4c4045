"""Fusion: which nodes share a kernel.

A *group* is a set of nodes that one kernel computes in one loop nest over an index space. Its axes
are traversed in three nested segments::

    for batch axes:
        for outer axes:
            for row axes: ...        (once per stage)

Reductions fix the segments. One over the row axes (*inner*) gives one number per row, on which
later stages of the same row may depend, as in a softmax. One over the outer axes (*column*) is
summed up in memory while the rows pass; one of per-row numbers over the outer axes (*post*) in a
register. Results of the last two exist only after the loop nest.

Nodes join greedily, each to the groups of its operands, if no other group would have to run in
between and no barrier is; at last those that read the same array. Those of single precision do not
join those of double: subnormal numbers are zero for the ones alone (`pipeline`). Everything else
(matrix products, calls of NumPy) is a group of its own.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from funcgrad.base.records import dataclass
from funcgrad.compiler.machine import KERNEL_NODES, SEVERAL
from funcgrad.compiler.nest.layout import Shape, Value, View, contiguous_strides, same_strides
from funcgrad.compiler.nest.nodes import (
    Copies,
    Fold,
    Graph,
    Node,
    Pick,
    Point,
    Scan,
    depth_first,
    is_move,
    precision,
    values_read,
)
from funcgrad.compiler.nest.segment import segments


@dataclass(frozen=True)
class LoopNest:
    """Order in which a group with reductions traverses its index space.

    Attributes:
        order: The axes, outermost first.
        row: How many of them, from the end, are row axes.
        batch: How many of them, from the front, are batch axes; ``None`` where no reduction over
            outer axes has fixed it (then there are none).
        direction: 1 or -1 where it takes rows element by element, from their near or far ends.
    """

    order: tuple[int, ...]
    row: int
    batch: int | None = None
    direction: int = 0


class Group:
    """Nodes that run together.

    Attributes:
        index: Its number: that of its first node when it was alone.
        nodes: The nodes.
        space: The index space.
        nest: How its loops traverse it, if a reduction has fixed that.
        precision: That of its nodes, as of `nodes.precision`; "" where they only move numbers.
        deps: Groups whose results it reads.
        users: Groups that read its results.
        ancestors: The bits of all groups that must run before it.
    """

    __slots__ = ("ancestors", "deps", "index", "nest", "nodes", "precision", "space", "users")

    def __init__(self, index: int, node: Node) -> None:
        self.index = index
        self.nodes: list[Node] = [node]
        self.space: Shape = node.space
        self.nest: LoopNest | None = None
        self.precision = "" if is_move(node) else precision([node])
        self.deps: set[int] = set()
        self.users: set[int] = set()
        self.ancestors = 0

    @property
    def is_fusable(self) -> bool:
        is_in_order = self.nest is not None and self.nest.direction
        return isinstance(self.nodes[0], Point | Fold | Pick) and not is_in_order


Unite = Callable[[Group, Group], "tuple[Shape, LoopNest | None] | None"]
"""Functions that find the space and the loop nest of two groups, if one kernel computes both."""


def scan_nest(scan: Scan) -> LoopNest:
    """The loop nest of a running fold: along its axis, for each index of the others."""
    axis, others = scan.form.axis, [*range(len(scan.space))]
    others.remove(axis)
    return LoopNest((*others, axis), 1, direction=-1 if scan.form.reverse else 1)


def reduction_nest(fold: Fold) -> LoopNest:
    """The loop nest of a reduction by itself."""
    d, axes = len(fold.space), fold.form.axes
    kept = tuple(i for i in range(d) if i not in axes)
    if not kept or axes[-1] > kept[-1]:
        return LoopNest(kept + axes, len(axes))
    trailing = tuple(i for i in kept if i > axes[-1])
    leading = tuple(i for i in kept if i < axes[-1])
    return LoopNest(leading + axes + trailing, len(trailing), len(leading))


def row_shapes(space: Shape, nest: LoopNest) -> tuple[Shape, Shape]:
    """Shape of one number per row: without the row axes, and with them kept at length 1."""
    n = len(space) - nest.row
    return space[:n], space[:n] + (1,) * nest.row


def fuse(graph: Graph) -> list[Group]:
    """The groups of a graph, in an order in which they can run."""
    # Two results at once take more memory than one after the other.
    is_free = graph.limit is None
    return [group for part in segments(graph.nodes) for group in fuse_nodes(part, is_free)]


def fuse_nodes(nodes: Sequence[Node], has_siblings: bool = True) -> list[Group]:
    """The groups of some nodes, likewise; those that only read the same arrays may be one."""
    fuser = Fuser(_united)
    for i, node in enumerate(nodes):
        fuser.append(i, node)
    fuser.merge_again()
    if has_siblings:
        fuser.merge_siblings()
    return fuser.ordered()


class Fuser:
    """Groups that become fewer, where a function finds space and loop nest of a union of two."""

    def __init__(self, unite: Unite) -> None:
        self.unite = unite
        self.groups: dict[int, Group] = {}
        self.group_of: dict[Node, Group] = {}
        self.scalars: dict[str, Group] = {}
        self.effect: Group | None = None

    def register(self, group: Group) -> set[int]:
        """Add a group behind those that it reads; the numbers of these."""
        self.groups[group.index] = group
        self.group_of.update(dict.fromkeys(group.nodes, group))
        makers = {v.maker for node in group.nodes for v in values_read(node)} - {*group.nodes}
        producers = {self.group_of[maker].index for maker in makers if maker in self.group_of}
        for index in producers:
            self._depend(group, self.groups[index])
        if any(node.is_effectful for node in group.nodes):
            if self.effect is not None:
                self._depend(group, self.effect)
            self.effect = group
        return producers

    def merge_again(self) -> None:
        """Join what could not be joined before a later reduction had fixed the nest."""
        for index in sorted(self.groups, reverse=True):
            group = self.groups.get(index)
            if group is None or not group.is_fusable:
                continue
            for dep in sorted(group.deps, reverse=True):
                producer = self.groups.get(dep)
                if producer is not None:
                    group = self.merge(producer, group)

    def merge_siblings(self) -> None:
        """Join kernels that read the same cache lines, so that these are loaded once.

        They read the same elements of an array, or are parts of one that lie in turn.
        """
        traversals: dict[tuple[Value, Shape, Shape], list[tuple[Node, int]]] = defaultdict(list)
        for index in sorted(self.groups):
            for node in self.groups[index].nodes:
                for x, maker in _views_read(node):
                    if maker in self.group_of:
                        traversals[x.value, x.shape, x.strides].append((maker, x.offset))
        for (_, shape, strides), found in traversals.items():
            for (node, offset), (other, further) in itertools.pairwise(found):
                a, b = self.group_of[node], self.group_of[other]
                is_alike = b.is_fusable and (a.space, a.nest) == (b.space, b.nest)
                if is_alike and _is_near(further - offset, shape, strides):
                    self.merge(a, b)

    def append(self, i: int, node: Node) -> None:
        """Add a node, and merge its group with those that it reads."""
        group = Group(i, node)
        if isinstance(node, Fold):
            group.nest = reduction_nest(node)
        producers = self.register(group)
        if not group.is_fusable:
            return
        for index in sorted(producers, reverse=True):
            producer = self.groups.get(index)
            if producer is not None:
                group = self.merge(producer, group)
        if group.space == () and group.nest is None:
            for scalars in (self.scalars.get(kind) for kind in (group.precision, "")):
                if scalars is not None and scalars.index in self.groups:
                    group = self.merge(scalars, group)
            self.scalars[group.precision] = group

    def _depend(self, group: Group, on: Group) -> None:
        group.deps.add(on.index)
        on.users.add(group.index)
        group.ancestors |= on.ancestors | 1 << on.index

    def merge(self, a: Group, b: Group) -> Group:
        """One group of two if that is possible; otherwise ``b``."""
        if a is b or len(a.nodes) + len(b.nodes) > KERNEL_NODES:
            return b
        if self._is_between(a, b):
            return b
        merged = self.unite(a, b)
        if merged is None:
            return b
        a.space, a.nest = merged
        a.precision = a.precision or b.precision
        a.nodes += b.nodes
        for dep in b.deps:
            users = self.groups[dep].users
            users.discard(b.index)
            users.add(a.index)
        for user in b.users:
            deps = self.groups[user].deps
            deps.discard(b.index)
            deps.add(a.index)
        a.deps = (a.deps | b.deps) - {a.index, b.index}
        a.users = (a.users | b.users) - {a.index, b.index}
        a.ancestors = (a.ancestors | b.ancestors) & ~(1 << a.index | 1 << b.index)
        del self.groups[b.index]
        for node in b.nodes:
            self.group_of[node] = a
        self._tell_descendants(a, b)
        return a

    def _tell_descendants(self, a: Group, b: Group) -> None:
        """Replace the bit of ``b``, which is now a part of ``a``, in all that come after."""
        waiting = [self.groups[i] for i in a.users]
        told = set(a.users)
        while waiting:
            group = waiting.pop()
            group.ancestors = group.ancestors & ~(1 << b.index) | 1 << a.index | a.ancestors
            fresh = group.users - told
            told |= fresh
            waiting += [self.groups[i] for i in fresh]

    def _is_between(self, a: Group, b: Group) -> bool:
        """Whether another group depends on one of the two and is needed by the other."""
        for first, last in ((a, b), (b, a)):
            bit = 1 << first.index
            if any(self.groups[i].ancestors & bit for i in last.deps if i != first.index):
                return True
        return False

    def ordered(self) -> list[Group]:
        """Depth first, groups with the earliest last node first."""
        position = {node: i for i, node in enumerate(self.group_of)}
        roots = sorted(self.groups.values(), key=lambda g: position[g.nodes[-1]])
        order = depth_first(roots, lambda group: [self.groups[d] for d in sorted(group.deps)])
        for group in order:
            group.nodes.sort(key=position.__getitem__)
        return order


def _views_read(node: Node) -> Iterator[tuple[View, Node]]:
    """The arrays that a node reads once; the parts of an assembly, each with what computes it."""
    if not isinstance(node, Copies):
        for x in node.operands:
            if isinstance(x, View) and not x.is_repeated:
                yield x, node
        return
    for x, place in zip(node.operands, node.places, strict=True):
        if isinstance(x, View) and x.value.maker is not None:
            yield place, x.value.maker


def _is_near(distance: int, shape: Shape, strides: Shape) -> bool:
    """Whether two equal traversals of an array, so far apart, meet most cache lines in common."""
    for step, n in sorted(zip(map(abs, strides), shape, strict=True), reverse=True):
        if step and n > 1:
            indices = round(distance / step)
            if 2 * abs(indices) >= n:
                return False
            distance -= indices * step
    return abs(distance) < SEVERAL


def _united(a: Group, b: Group) -> tuple[Shape, LoopNest | None] | None:
    """Space and loop nest of the union, or ``None`` if one kernel cannot compute it."""
    found = _same_space(a, b) if a.is_fusable else None
    if found is None or a.nodes[0].epoch != b.nodes[0].epoch:
        return None
    if a.precision and b.precision and a.precision != b.precision:
        return None
    space, nest = found
    for group, other in ((a, b), (b, a)):
        is_same = (group.space, group.nest) == (space, nest)
        if is_same and other.index not in group.deps:
            continue  # it was possible alone, and reads nothing of the other
        if not _fits(group.nodes, a.nodes + b.nodes, space, nest):
            return None
    return space, nest


def _fits(
    nodes: Sequence[Node], made_by: Sequence[Node], space: Shape, nest: LoopNest | None
) -> bool:
    """Whether one loop nest can compute nodes together with those whose results they read."""
    if nest is not None and nest.batch:
        folds = [node for node in nodes if isinstance(node, Fold)]
        if any(kind_of(fold, space, nest) in ("post", "total") for fold in folds):
            return False
    together = set(made_by)
    for node in nodes:
        for k, operand in enumerate(node.operands):
            maker = operand.value.maker if isinstance(operand, View) else None
            if maker not in together:
                continue
            assert isinstance(operand, View)
            if node.looks_around(k) or is_late(maker, space, nest):
                return False
            if not is_aligned(operand, node, space, nest):
                return False
    return True


def _same_space(a: Group, b: Group) -> tuple[Shape, LoopNest | None] | None:
    """The space and the loop nest for both."""
    if a.space == b.space:
        nest = _common_nest(a.nest, b.nest, len(a.space))
        return None if nest is _CONFLICT else (a.space, nest)
    for large, small in ((a, b), (b, a)):
        nest = large.nest
        if nest is None or not nest.row or nest.order != tuple(range(len(large.space))):
            continue
        if small.space not in row_shapes(large.space, nest):
            continue
        if small.nest is None or (_is_total(small.nest) and not nest.batch):
            return large.space, nest
    return None


_CONFLICT = LoopNest((), -1)


def _is_total(nest: LoopNest) -> bool:
    """Whether it is that of a reduction over all axes."""
    return nest.row == len(nest.order)


def _common_nest(a: LoopNest | None, b: LoopNest | None, rank: int) -> LoopNest | None:
    if a is None or b is None:
        return a or b
    if a.order == b.order and a.row == b.row:
        if a.batch is None or b.batch is None or a.batch == b.batch:
            return replace(a, batch=b.batch if a.batch is None else a.batch)
        return _CONFLICT
    # A total reduction may also be formed from its rows.
    for total, other in ((a, b), (b, a)):
        if _is_total(total) and not other.batch and other.order == tuple(range(rank)):
            return other
    return _CONFLICT


def kind_of(fold: Fold, space: Shape, nest: LoopNest) -> str:
    """How a group with this space and loop nest computes a reduction of it.

    Returns: ``"inner"``: one number per row; ``"column"``: over the outer axes, one per place in
        the row; ``"post"``: of per-row numbers over the outer axes; ``"total"``: over row and outer
        axes.
    """
    if fold.space != space:
        return "post"
    axes = set(fold.form.axes)
    n = len(space)
    row = set(nest.order[n - nest.row :])
    if axes == row:
        return "inner"
    return "total" if row <= axes and row else "column"


def is_late(node: Node, space: Shape, nest: LoopNest | None) -> bool:
    """Whether its result exists only after the loop nest."""
    return nest is not None and isinstance(node, Fold) and kind_of(node, space, nest) != "inner"


def is_aligned(operand: View, node: Node, space: Shape, nest: LoopNest | None) -> bool:
    """Whether a node reads, at every index, what the same index of the loop nest computed."""
    shape = operand.value.shape
    if operand.offset:
        return False
    if shape == space and operand.shape == space:
        return same_strides(space, operand.strides, contiguous_strides(space))
    if nest is None or nest.order != tuple(range(len(space))):
        return False
    if isinstance(operand.value.maker, Point | Pick) and shape == space:
        return False
    dropped = row_shapes(space, nest)[0]
    if math.prod(shape) != math.prod(dropped):
        return False
    expected = contiguous_strides(dropped)
    if operand.shape == dropped:
        return same_strides(dropped, operand.strides, expected)
    if len(operand.shape) == len(space):
        padded = expected + (0,) * nest.row
        return operand.shape[: len(dropped)] == dropped and same_strides(
            operand.shape, operand.strides, padded
        )
    return False
