"""Folds over assembled arrays fold the parts: whether anything has changed, and by how much.

``fold_parts : graph, test -> graph``. A loop that replaces the inner part of an array asks whether
anything has changed, or for the greatest difference. The array has to be put together, since the
next iteration reads it; but what is folded need not wait for that. An extreme of an array is one of
the extremes of its parts, and most elements are folded in the kernel that computes them. Elements
that stay as they are differ in nothing from themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from funcgrad.compiler.machine import FEW, KERNEL_CYCLES, QUESTIONS, SCALAR
from funcgrad.compiler.nest.access import Pieces, box_of, box_size
from funcgrad.compiler.nest.accumulate import is_idempotent
from funcgrad.compiler.nest.bounds import parts_of
from funcgrad.compiler.nest.cost import cycles_of
from funcgrad.compiler.nest.kernel import neutral
from funcgrad.compiler.nest.layout import Box, Operand, Uniform, Value, View, cut, whole
from funcgrad.compiler.nest.nodes import (
    Copies,
    Fold,
    Graph,
    Node,
    Point,
    ordered,
    readers_of,
    values_read,
    without_unread,
)

_OF_ITSELF = {"less": False, "greater": False}
"""Comparisons of any number with itself, NaN included."""

_OF_THE_SAME = {**_OF_ITSELF, "not_equal": False, "equal": True, "subtract": 0, "bitwise_xor": 0}
"""Words whose result is known where both operands are the same integer."""

Part = tuple[Operand, Box]
"""A box of an array, after the operand that is read there."""


def fold_parts(graph: Graph, is_stored: Callable[[Copies], bool]) -> None:
    """Let folds over stored assemblies fold their parts; changes the graph.

    Args:
        graph: The graph.
        is_stored: Whether an assembly is put together, as not all who read it can read its parts.
    """
    readers, instead = readers_of(graph.nodes), dict[Node, list[Node]]()
    own = _leading_to_folds(graph, readers)
    for node in graph.nodes if own else ():
        if not isinstance(node, Copies) or not is_stored(node):
            continue
        reading = _reading(node, readers, own)
        folds = [x for x in reading if isinstance(x, Fold)]
        if not folds or not instead.keys().isdisjoint(folds):
            continue
        found = _Folded(node, [x for x in reading if isinstance(x, Point)], folds)
        if found.is_less():
            instead.update({fold: [] for fold in folds})
            instead[folds[0]] = [*found.nodes()]
    if instead:
        nodes = ordered([new for node in graph.nodes for new in instead.get(node, [node])])
        graph.nodes = without_unread(nodes, graph.outputs, (Point,))


def _leading_to_folds(graph: Graph, readers: Mapping[Value, Sequence[Node]]) -> dict[Node, int]:
    """Extremes of everything, and points that only these read, element by element.

    Returns: These nodes, each with its number in the graph.
    """
    own: dict[Node, int] = {}
    outputs = {*graph.outputs}
    for k, node in reversed([*enumerate(graph.nodes)]):
        is_between = type(node) is Point and node.out not in outputs and bool(readers[node.out])
        is_between = is_between and _are_alike(readers[node.out], node, own)
        if (is_between or _is_extreme(node)) and _reads_in_place(node):
            own[node] = k
    return own


def _reading(
    node: Copies, readers: Mapping[Value, Sequence[Node]], own: Mapping[Node, int]
) -> list[Node]:
    """All that leads from an assembly to folds, if it is read by nothing else, in its order."""
    if not _are_alike(readers[node.out], node, own):
        return []
    found, waiting = {*readers[node.out]}, [*readers[node.out]]
    while waiting:
        at = waiting.pop()
        more = {*readers[at.out]} - found if isinstance(at, Point) else set[Node]()
        found |= more
        waiting += more
    more = found
    while more:
        makers = {v.maker for x in more for v in values_read(x)} - found
        more = {x for x in makers if x in own and found.issuperset(readers[x.out])}
        found |= more
    return sorted(found, key=own.__getitem__)


def _are_alike(nodes: Sequence[Node], node: Node, own: Mapping[Node, int]) -> bool:
    """Whether all nodes are among some that compute the same elements as another one."""
    space, epoch = node.out.shape, node.epoch
    return all(x in own and (x.space, x.epoch) == (space, epoch) for x in nodes)


class _Folded:
    """The folds of an assembled array, and the points that lead to them.

    Attributes:
        whole: The assembly.
        points: The points, in an order in which they can run.
        folds: The folds, likewise.
        parts: The boxes of the array.
    """

    def __init__(self, whole: Copies, points: Sequence[Point], folds: Sequence[Fold]) -> None:
        self.whole = whole
        self.points = points
        self.folds = folds
        self.parts = _disjoint(whole)
        self.made = [self._made(part) for part in self.parts]

    def is_less(self) -> bool:
        """Whether most elements are folded where they are computed, and few are elsewhere."""
        if not 2 <= len(self.parts) <= QUESTIONS + 1:
            return False
        most = max(range(len(self.parts)), key=lambda k: box_size(self.parts[k][1]))
        x, box = self.parts[most]
        is_made = isinstance(x, View) and x.is_value and type(x.value.maker) is Point
        if not is_made or 2 * box_size(box) < math.prod(self.whole.out.shape):
            return False
        others = (k for k in range(len(self.parts)) if k != most)
        extra = sum(
            _cycles(self.parts[k][1]) for k in others for x in self.made[k][1] if x is not None
        )
        return extra < cycles_of([*self.points, *self.folds])

    def _made(self, part: Part) -> tuple[list[Node], list[Operand | None]]:
        """The points of a part, and for every fold what is folded, if that changes anything."""
        operand, box = part
        starts, shape = cut([a for a, _ in box]), tuple(b - a for a, b in box)
        known: dict[Value, Operand] = {self.whole.out: operand}
        nodes: list[Node] = []

        def seen(x: Operand) -> Operand:
            found = known.get(x.value) if isinstance(x, View) else None
            return x.reindexed(starts, shape) if found is None else found

        for node in self.points:
            outs = (Value(shape, node.out.dtype),)
            point = replace(node, operands=tuple(map(seen, node.operands)), outs=outs).like(node)
            number = _number_of(point)
            known[node.out] = whole(point.out) if number is None else number
            nodes += [point] if number is None else []
        folded = [(fold, seen(fold.operands[0])) for fold in self.folds]
        return nodes, [None if _is_nothing(fold, x) else x for fold, x in folded]

    def nodes(self) -> Iterator[Node]:
        """The folds of the parts, and what puts their results together."""
        for points, _ in self.made:
            yield from points
        for k, fold in enumerate(self.folds):
            found = [x for _, folded in self.made if (x := folded[k]) is not None]
            if not found:
                found = [Uniform(neutral(fold.form.init, fold.out.dtype), self.whole.out.shape)]
            before: Operand | None = None
            for i, x in enumerate(found, 1):
                outs = fold.outs if i == len(found) else (Value((), fold.out.dtype),)
                own = outs if before is None else (Value((), fold.out.dtype),)
                some = replace(fold, operands=(x,), outs=own).like(fold)
                yield some
                if before is not None:
                    yield Point((before, whole(some.out)), outs, fold.form.step).like(fold)
                before = whole(outs[0])


def _is_extreme(node: Node) -> bool:
    """Whether it folds everything to one number, and elements in any order, and more than once."""
    if not isinstance(node, Fold) or node.out.shape or node.out.dtype.kind not in "biuf":
        return False
    return is_idempotent(node)


def _reads_in_place(node: Node) -> bool:
    """Whether it reads, at every index, what was computed at that index."""
    views = (x for x in node.operands if isinstance(x, View) and x.value.maker is not None)
    return all(x.is_value or x.value.shape != node.space for x in views)


def _disjoint(node: Copies) -> list[Part]:
    """The boxes of an array; none where its parts are no boxes."""
    found: list[tuple[Operand, View]] = []
    for x, place in node.pieces:
        rest = Pieces.of(found).without(place)
        if rest is None:
            return []
        found = [*rest, (x, place)]
    boxes = [(x, box_of(place)) for x, place in found]
    known = [(x, box) for x, box in boxes if box is not None]
    is_all = sum(box_size(box) for _, box in known) == math.prod(node.out.shape)
    return known if is_all and len(known) == len(boxes) else []


def _cycles(box: Box) -> float:
    """Cycles of folding a part by itself: elements of short rows wait for each other."""
    is_short = box[-1][1] - box[-1][0] <= FEW
    return KERNEL_CYCLES + is_short * SCALAR * box_size(box)


def _number_of(point: Point) -> Uniform | None:
    """The number that a point is everywhere, since its operands are the same."""
    word, operands = parts_of(point)
    if len(operands) != 2 or operands[0] != operands[1] or operands[0].dtype.kind == "c":
        return None
    known = _OF_THE_SAME if operands[0].dtype.kind in "biu" else _OF_ITSELF
    if word not in known:
        return None
    return Uniform(np.asarray(known[word], point.out.dtype)[()], point.out.shape)


def _is_nothing(fold: Fold, x: Operand) -> bool:
    """Whether folding an operand changes nothing."""
    zero = neutral(fold.form.init, fold.out.dtype)
    return isinstance(x, Uniform) and x.dtype == zero.dtype and bool(x.scalar == zero)
