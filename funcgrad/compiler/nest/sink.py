"""Sinking of guards: where all sides compute the same expression, guards choose its operands.

A periodic neighbour of ``u * u``, written ``roll(u * u, 1)``, would be two products of which a
guard takes one. Here it is one product, of neighbours of ``u``. Guards that only load need no flags
where they ask nothing along a row (`plan.Plan.chosen`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from funcgrad.compiler.nest.access import everything, outside_of
from funcgrad.compiler.nest.layout import Box, Operand, Uniform, Value, View, whole
from funcgrad.compiler.nest.nodes import (
    Graph,
    Guard,
    Node,
    Point,
    readers_of,
    rewrite,
    without_unread,
)

Part = tuple[Box, Operand]
"""A box, and what is read in it where no part before has been read."""


def sink_guards(graph: Graph) -> None:
    """Let guards choose among operands instead of results; changes the graph."""
    rewrite(graph, _Sinking(graph).rule)
    graph.nodes = without_unread(graph.nodes, graph.outputs, (Point,))


class _Sinking:
    """Guards by what their sides have in common."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = set(graph.nodes)
        self.readers = readers_of(graph.nodes)
        self.outputs = set(graph.outputs)
        self.known: dict[Hashable, Operand] = {}
        """The operands that guards have chosen already, by the epoch and the parts."""
        self.epoch = 0

    def rule(self, node: Node) -> list[Node] | None:
        """The nodes in the place of one, if it is the last of guards with the same sides."""
        if not isinstance(node, Guard) or node.is_fence:
            return None
        if any(isinstance(x, Guard) and _goes_on(x, node) for x in self.readers[node.out]):
            return None
        self.epoch, parts = node.epoch, self._parts(node)
        if self._common(parts) is None:
            found = self.known.setdefault(self._key(parts), whole(node.out))
            is_new = isinstance(found, View) and found.value is node.out
            return None if is_new else [Point((found,), node.outs, "{0}")]
        made: list[Node] = []
        self._merge(parts, node.out, made)
        return made

    def _parts(self, node: Guard) -> list[Part]:
        """Operands of guards, until together they have one for every index."""
        found: list[Part] = []
        rest = [everything(node.space)]
        at: Node | None = node
        while isinstance(at, Guard) and not at.is_fence:
            inside, outside = at.operands
            found.append((at.box, inside))
            rest = [left for x in rest for left in outside_of(x, at.box)]
            if not rest:
                return found
            at = self._only_made_for(outside)
        return [*found, (everything(node.space), outside)]

    def _key(self, parts: Sequence[Part]) -> Hashable:
        return self.epoch, *((box, _name(x)) for box, x in parts)

    def _only_made_for(self, x: Operand) -> Node | None:
        """Return the maker of an operand that nobody else reads."""
        if not isinstance(x, View) or not x.is_value or x.value in self.outputs:
            return None
        maker = x.value.maker
        return maker if maker in self.nodes and len(self.readers[x.value]) == 1 else None

    def _common(self, parts: Sequence[Part]) -> list[Point] | None:
        """The points that compute all parts, if they have one expression."""
        points = [self._only_made_for(x) for _, x in parts]
        found = [x for x in points if type(x) is Point]
        if len(found) < len(points):
            return None
        kinds = {(x.expr, x.epoch, *(operand.dtype for operand in x.operands)) for x in found}
        return found if len(kinds) == 1 else None

    def _merge(self, parts: Sequence[Part], out: Value, made: list[Node]) -> Operand:
        """An operand that is one of the parts at each index; nodes for it, if it takes any."""
        points = self._common(parts)
        if points is None:
            return self._chosen(parts, out, made)
        columns = zip(*(point.operands for point in points), strict=True)
        operands = []
        for column in columns:
            sides = [(box, _inside(x, box)) for (box, _), x in zip(parts, column, strict=True)]
            first = sides[0][1]
            if len({_name(x) for _, x in sides}) == 1:
                operands.append(first)
            else:
                operands.append(self._merge(sides, Value(out.shape, first.dtype), made))
        made.append(Point(tuple(operands), (out,), points[0].expr))
        return whole(out)

    def _chosen(self, parts: Sequence[Part], out: Value, made: list[Node]) -> Operand:
        """Return the operand that guards choose among some parts."""
        key = self._key(parts)
        if key not in self.known:
            *_, (box, found) = parts
            if box == everything(out.shape):
                parts = parts[:-1]
            else:
                found = Uniform(np.zeros((), out.dtype)[()], out.shape)
            for k, (box, x) in enumerate(reversed(parts), 1):
                value = out if k == len(parts) else Value(out.shape, out.dtype)
                made.append(Guard((x, found), (value,), box))
                found = whole(value)
            self.known[key] = found
        return self.known[key]


def _inside(x: Operand, box: Box) -> Operand:
    """An operand without the fence around it, in a box in which that is not asked."""
    maker = x.value.maker if isinstance(x, View) and x.is_value else None
    if isinstance(maker, Guard) and maker.is_fence and not [*outside_of(box, maker.box)]:
        return maker.operands[0]
    return x


def _goes_on(reader: Guard, node: Guard) -> bool:
    """Whether a guard reads, outside of its box, what another one chooses."""
    outside = reader.operands[1]
    return isinstance(outside, View) and outside.value is node.out


def _name(x: Operand) -> Hashable:
    """A key that tells operands apart; scalars differ by their bits."""
    return (x.dtype.char, x.scalar.tobytes(), x.shape) if isinstance(x, Uniform) else x
