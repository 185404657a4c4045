"""Common iteration spaces of arrays that are reshaped on the way.

``refine : graph -> graph``. What is computed in one shape and read in another one is stored in
between, for a kernel iterates over one index space: repeated rows, tiles and groups of channels
would be written out before anything is done with them. Where both shapes split into the axes of a
third one, as ``(2, 600, 3, 500)`` and ``(1200, 1500)`` do, elementwise operations and folds on both
sides are computed in that one, so that fusion finds points of equal indices.

Memory stays as it is: an axis that is split lies where it did.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from funcgrad.compiler.machine import FEW, KERNEL_NODES, SHORT_AXIS
from funcgrad.compiler.nest.access import ranges_of
from funcgrad.compiler.nest.layout import (
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    contiguous_strides,
    reindex_of,
    reshaped,
)
from funcgrad.compiler.nest.nodes import (
    Copies,
    External,
    Fold,
    Graph,
    Nest,
    Node,
    Pick,
    Point,
    readers_of,
)

MOST = KERNEL_NODES // 2
"""Nodes that get another iteration space for one array: more than that share no kernel."""


def refine(graph: Graph) -> None:
    """Let what reads an array in another shape be computed with it; changes the graph."""
    readers = readers_of(graph.nodes)
    outputs = set(graph.outputs)
    for node in graph.nodes:
        if isinstance(node, Point | Pick | Fold) and 1 in node.space:
            change = _Change(graph, readers, outputs, tuple(n for n in node.space if n != 1))
            if change.takes(node):
                change.make()
    for node in graph.nodes:
        if not isinstance(node, Point | Fold):
            continue
        space = _space_of_parts(node, readers, outputs)
        if space is not None:
            _Change(graph, readers, outputs, space).make_if_possible([node])
        for x in node.operands:
            maker = _maker(x, node)
            if maker is None or maker.out.shape == node.space or maker.out in outputs:
                continue
            space = common_refinement(maker.space, node.space)
            if space:
                _Change(graph, readers, outputs, space).make_if_possible([maker, node])


def common_refinement(a: Shape, b: Shape) -> Shape | None:
    """The shape with the fewest axes into which those of both split, if there is one.

    It has no axes of length 1.
    """
    if not math.prod(a):
        return None
    products = {math.prod(shape[k:]) for shape in (a, b) for k in range(len(shape) + 1)}
    ascending = sorted(products)
    if any(m % n for n, m in itertools.pairwise(ascending)):
        return None
    return tuple(m // n for n, m in itertools.pairwise(ascending))[::-1]


def _maker(x: Operand, node: Node) -> Point | Pick | Copies | None:
    """Return the node that computes a whole value, element by element or part by part."""
    maker = x.value.maker if isinstance(x, View) and x.is_whole else None
    is_point = isinstance(maker, Point | Pick | Copies) and maker.epoch == node.epoch
    return maker if is_point else None


def _space_of_parts(
    node: Point | Fold, readers: Mapping[Value, Sequence[Node]], outputs: set[Value]
) -> Shape | None:
    """The axes by which parts of assemblies that lie apart in these are boxes.

    Then their reader reads these where they come from (`read_through`), piece by piece of a short
    axis (`specialize`).
    """
    space: Shape | None = node.space
    for maker in (_maker(x, node) for x in node.operands):
        if not isinstance(maker, Copies) or maker.space != node.space or maker.out in outputs:
            continue
        if not all(isinstance(reader, Point | Fold) for reader in readers[maker.out]):
            continue
        for place in maker.places:
            steps = zip(node.space, ranges_of(place) or (), strict=False)
            split = [(n // step, step) for n, (_, step, _) in steps]
            if (
                space is None
                or math.prod(sum(split, ())) != math.prod(space)
                or any(step > SHORT_AXIS for _, step in split)
            ):
                return None
            space = common_refinement(space, sum(split, ()))
    return None if space == tuple(n for n in node.space if n != 1) else space


class _Change:
    """Nodes that are to get another iteration space."""

    def __init__(
        self,
        graph: Graph,
        readers: Mapping[Value, Sequence[Node]],
        outputs: set[Value],
        space: Shape,
    ) -> None:
        self.graph = graph
        self.readers = readers
        self.outputs = outputs
        self.space = space
        self.members: dict[Node, tuple[dict[str, Any], Shape]] = {}
        """For each node the fields that change, and the new shape of its result."""

    def reaches(self, nodes: Sequence[Node]) -> bool:
        """Whether nodes, and all that would be computed with them, can have that space."""
        waiting = [node for node in nodes if node.space != self.space]
        while waiting:
            node = waiting.pop()
            if node in self.members:
                continue
            if len(self.members) == MOST or not self.takes(node):
                return False
            waiting += [other for other in self._beside(node) if other.space != self.space]
        return bool(self.members)

    def takes(self, node: Node) -> bool:
        """Whether one more node can have that space."""
        runs = _runs(node.space, self.space)
        found = None if runs is None else self._changed(node, runs)
        if found is None:
            return False
        self.members[node] = found
        return self._may_have(node.out, found[1])

    def _changed(self, node: Node, runs: Sequence[range]) -> tuple[dict[str, Any], Shape] | None:
        """Attributes and shape of a node in the refined space, ``None`` if it has none there."""
        if isinstance(node, Copies):
            pieces = node.pieces.split(runs, self.space)
            return None if pieces is None else (vars(pieces), self.space)
        pairs = [(x, reshaped(x, self.space)) for x in node.operands]
        if not all(isinstance(x, Uniform) or _is_as_readable(x, y) for x, y in pairs):
            return None
        changes: dict[str, Any] = {"operands": tuple(split for _, split in pairs)}
        shape = self.space
        if isinstance(node, Fold):
            axes = tuple(axis for a in node.form.axes for axis in runs[a])
            if not axes or not _is_splittable(node, runs):
                return None
            changes["form"] = replace(node.form, axes=axes)
            shape = tuple(n for axis, n in enumerate(shape) if axis not in axes)
        return changes, shape

    def _beside(self, node: Node) -> Iterator[Node]:
        """The nodes that read what it computes, or compute what it reads, index by index."""
        for x in node.operands if not isinstance(node, Copies) else ():
            maker = _maker(x, node)
            if maker is not None and _runs(maker.space, self.space) is not None:
                yield maker
        if isinstance(node, Fold):
            return
        for reader in self.readers[node.out]:
            if isinstance(reader, Point | Fold | Pick) and reader.epoch == node.epoch:
                whole = [x for x in reader.operands if isinstance(x, View) and x.value is node.out]
                if any(x.is_whole for x in whole):
                    yield reader

    def _may_have(self, value: Value, shape: Shape) -> bool:
        """Whether a value can have another shape, as far as those who read it can tell."""
        if value in self.outputs and not self.graph.out_shapes:
            return False
        for reader in self.readers[value]:
            if isinstance(reader, External | Nest):
                return False
            for x in reader.operands:
                if isinstance(x, View) and x.value is value and not x.is_whole:
                    split = View(Value(shape, value.dtype), x.shape, x.strides, x.offset)
                    if reindex_of(x) is not None and reindex_of(split) is None:
                        return False
        return True

    def make_if_possible(self, nodes: Sequence[Node]) -> None:
        """Move nodes, and all that is computed with them, to the other space."""
        if self.reaches(nodes):
            self.make()

    def make(self) -> None:
        """Move the members to the other space."""
        for node, (changes, shape) in self.members.items():
            for name, value in changes.items():
                setattr(node, name, value)
            node.out.shape, node.out.strides = shape, contiguous_strides(shape)


def _runs(shape: Shape, space: Shape) -> list[range] | None:
    """The axes of a space that those of a shape split into, if they do."""
    runs: list[range] = []
    axis = 0
    for n in shape:
        first, length = axis, 1
        while length < n and axis < len(space):
            length *= space[axis]
            axis += 1
        if length != n:
            return None
        runs.append(range(first, axis))
    return runs if all(n == 1 for n in space[axis:]) else None


def _is_splittable(node: Fold, runs: Sequence[range]) -> bool:
    """Whether a fold's results go where they went, for those who read them on the way.

    The numbers of rows are read by other elements of the rows; all other results exist only when
    the loop nest is over, and lie in memory.
    """
    kept = [axis for axis in range(len(runs)) if axis not in node.form.axes]
    is_of_rows = not kept or node.form.axes[0] > kept[-1]
    return not is_of_rows or all(len(runs[axis]) <= 1 for axis in kept)


def _is_as_readable(x: View, split: Operand | None) -> bool:
    """Whether what is read need not be stored for being seen through more axes."""
    maker = x.value.maker
    if split is None or (isinstance(maker, Copies) and x.is_whole):
        return split is not None and _runs(maker.space, split.shape) is not None
    if x.is_whole or not isinstance(maker, Point | Pick | Copies):
        return True
    if reindex_of(x) is None or FEW * math.prod(x.value.shape) <= math.prod(x.shape):
        return True
    return isinstance(split, View) and reindex_of(split) is not None
