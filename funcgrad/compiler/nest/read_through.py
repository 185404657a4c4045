"""Assembled arrays are read where their parts come from, not put together first.

``read_through : graph -> graph``. A sum of padded arrays, a slice of a concatenation, neighbours in
an array whose inner part was replaced: what computes with them reads the part that an index leads
to (`Guard`), so that neither the assembled array nor its memory exists. An array is still put
together where something else than points and folds needs it, or where its elements are read so
often that the test costs more than memory.

Where parts lie in turn (stacks along the last axis, repeated elements, parts of short rows), one
kernel for each of them would go through all of the array's memory as often as there are parts. They
become points of one space, which share a kernel (`fuse`) and write where they belong
(`write_through`). Parts of an array that is itself only a part of another one go there at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from funcgrad.compiler.machine import QUESTIONS, SEVERAL
from funcgrad.compiler.nest import layout
from funcgrad.compiler.nest.access import Pieces, is_everything, seen_box
from funcgrad.compiler.nest.nodes import (
    Copies,
    Fold,
    Graph,
    Guard,
    Node,
    Point,
    readers_of,
    rewrite,
    without_unread,
)
from funcgrad.lowering import Reindex


def read_through(graph: Graph) -> None:
    """Let points and folds read the parts of assembled arrays; changes the graph."""
    if not any(isinstance(node, Copies) for node in graph.nodes):
        return
    readers = readers_of(graph.nodes)
    outputs = set(graph.outputs)

    def readable(node: Copies) -> list[layout.Box] | None:
        """The boxes of its parts, if all who read it can ask for these."""
        is_apart = node.out.nbytes and node.out not in outputs and node.is_of_one_dtype
        boxes = node.pieces.boxes if is_apart else None
        is_readable = boxes is not None and _is_readable(node, boxes, readers[node.out])
        return boxes if is_readable else None

    def rule(node: Node) -> Iterable[Node] | None:
        if not isinstance(node, Copies):
            return None
        boxes = readable(node)
        if boxes is not None:
            return _guards(node, boxes)
        places = [place.without_ones() for place in node.places]
        # Single numbers are most often the results of folds, which no point copies for less.
        is_some = _lie_in_turn(places) and math.prod(places[0].shape) > 1
        return _in_turn(node, places) if is_some else None

    rewrite(graph, rule)
    flatten(graph)


def flatten(graph: Graph) -> None:
    """Let assemblies of assemblies that nothing else reads have the parts of these."""
    readers = readers_of(graph.nodes)
    outputs = set(graph.outputs)

    def rule(node: Node) -> Iterable[Node] | None:
        if not isinstance(node, Copies):
            return None
        parts: list[tuple[layout.Operand, layout.View]] = []
        for x, place in node.pieces:
            maker = x.value.maker if isinstance(x, layout.View) and x.is_whole else None
            inner = None
            if isinstance(maker, Copies) and maker.out not in outputs and not maker.is_fresh:
                is_own = readers[maker.out] == [node] and maker.epoch == node.epoch
                if is_own and maker.is_of_one_dtype:
                    inner = maker.pieces.inside(place, maker.out.shape)
            parts += [(x, place)] if inner is None else inner
        if len(parts) == len(node.operands):
            return None
        pieces = Pieces.of(parts)
        return [Copies(pieces.operands, node.outs, pieces.places, node.is_fresh)]

    rewrite(graph, rule)
    graph.nodes = without_unread(graph.nodes, graph.outputs, (Copies,))


def _is_readable(node: Copies, boxes: Sequence[layout.Box], readers: Sequence[Node]) -> bool:
    """Whether all who read it can ask for its parts, and there are not too many questions."""
    asked: dict[tuple[Reindex, layout.Shape], int] = {}
    for reader in readers:
        if not isinstance(reader, Point | Fold) or reader.epoch != node.epoch:
            return False
        for x in reader.operands:
            if not isinstance(x, layout.View) or x.value is not node.out:
                continue
            form = layout.reindex_of(x)
            if form is None or math.prod(x.shape) > 2 * math.prod(node.out.shape):
                return False
            seen = [seen_box(box, form, x.shape) for box in boxes]
            asked[form, x.shape] = sum(
                box is not None and not is_everything(box, x.shape) for box in seen
            )
    return sum(asked.values()) <= QUESTIONS


def _guards(node: Copies, boxes: Sequence[layout.Box]) -> list[Node]:
    """One guard for each part, of which later ones cover earlier ones."""
    shape, dtype = node.out.shape, node.out.dtype
    found: layout.Operand = layout.Uniform(np.zeros((), dtype)[()], shape)
    asked: list[tuple[layout.Operand, layout.Box]] = []
    for part, box in zip(node.operands, boxes, strict=True):
        if is_everything(box, shape):
            found, asked = part, []
        else:
            asked.append((part.around(box, shape), box))
    nodes: list[Node] = [] if asked else [Point((found,), node.outs, "{0}")]
    for k, (part, box) in enumerate(asked, 1):
        out = node.out if k == len(asked) else layout.Value(shape, dtype)
        nodes.append(Guard((part, found), (out,), box))
        found = layout.whole(out)
    return nodes


def _lie_in_turn(places: Sequence[layout.View]) -> bool:
    """Whether parts of an array have their elements beside each other, perhaps again and again."""
    if not 2 <= len(places) <= SEVERAL:
        return False
    first, offsets = places[0], {place.offset for place in places}
    steps = [abs(s) for n, s in zip(first.shape, first.strides, strict=True) if n != 1]
    apart = min(steps, default=SEVERAL)
    if len(offsets) < len(places) or apart > SEVERAL:
        return False
    return max(offsets) - min(offsets) < apart and all(
        (place.shape, place.strides) == (first.shape, first.strides) for place in places
    )


def _in_turn(node: Copies, places: Sequence[layout.View]) -> Iterator[Node]:
    """An assembly with its parts as points."""
    parts = []
    for operand, place in zip(node.operands, places, strict=True):
        point = Point(
            (operand.without_ones(),), (layout.Value(place.shape, node.out.dtype),), "{0}"
        )
        parts.append(layout.whole(point.out))
        yield point
    yield Copies(tuple(parts), node.outs, tuple(places), node.is_fresh)
