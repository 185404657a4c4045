"""Taking writes back: a backward loop restores arrays that the forward loop has written into.

A loop that writes elements into an array carries another array in every iteration. Its derivative
reads parts of them. A stack of these parts may be as large as the array for every iteration. What
was overwritten in an iteration is little: the backward loop puts it back, beginning with the array
at the end, and so it has every array in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from funcgrad.base.records import dataclass
from funcgrad.compiler.nest.layout import Operand, Value, View, whole
from funcgrad.compiler.nest.nodes import Carry, Copies, Graph, Link, Loop, Node, Pick, Point, Put

Write = Put | Copies
"""Something that replaces a part of its first operand."""


@dataclass(frozen=True)
class Writes:
    """Changes of a carried array in an iteration.

    Attributes:
        carry: The array.
        nodes: The writes, each into the result of the one before.
    """

    carry: Carry
    nodes: tuple[Write, ...]

    @property
    def size(self) -> int:
        """How many elements of an iteration must be kept, places counted."""
        return sum(math.prod(x.shape) for node in self.nodes for x in node.operands[1:])


def writes_of(loop: Loop) -> dict[Value, Writes]:
    """By carried array, what iterations write into it, where they do nothing else with it."""
    found = {}
    for carry in loop.carries:
        nodes: list[Write] = []
        value = carry.next
        while value is not carry.now:
            node = value.maker
            if not _is_write(node):
                break
            nodes.insert(0, node)
            value = node.operands[0].value
        if value is carry.now and nodes and carry.final is not None:
            found[carry.now] = Writes(carry, tuple(nodes))
    return found


def _is_write(node: Node | None) -> bool:
    """Whether a node replaces a part of an array, whose other elements stay where they are."""
    if isinstance(node, Copies) and (len(node.places) != 2 or not node.is_of_one_dtype):
        return False
    if not isinstance(node, Write):
        return False
    x = node.operands[0]
    stays = not isinstance(node, Copies) or node.places[0].is_value
    return stays and isinstance(x, View) and x.is_value and x.shape == node.out.shape


def take_back(
    second: Loop, nodes: list[Node], writes: Writes, body: Graph, keep: Callable[[Value], Value]
) -> Value:
    """The array of each iteration, in a loop that goes back; the loop carries it.

    Args:
        second: The loop.
        nodes: What is to run at the beginning of its body.
        writes: What the forward loop writes.
        body: The body of the forward loop.
        keep: From a value of the forward loop to that of the same iteration of the second one.
    """
    final = writes.carry.final
    assert final is not None
    now = Value(writes.carry.now.shape, writes.carry.now.dtype)
    array = now
    for node in reversed(writes.nodes):
        old = _overwritten(node)
        body.nodes.insert(body.nodes.index(node), old)
        places = node.operands[2:]
        kept = [x.of(keep(x.value)) if isinstance(x, View) else x for x in places]
        nodes.append(_put_back(node, array, keep(old.out), kept))
        array = nodes[-1].out
    second.bodies[-1].outputs.append(array)
    last = Value(now.shape, now.dtype)
    last.maker, last.is_stored = second, False
    second.outs += (last,)
    second.carries += (Carry(now, array, Link(now, final), last),)
    return array


def _overwritten(node: Write) -> Pick | Point:
    """Node of what a write replaces."""
    x = node.operands[0]
    assert isinstance(x, View)
    if isinstance(node, Copies):
        place = node.places[1].of(x.value)
        return Point((place,), (Value(place.shape, x.dtype),), "{0}").like(node)
    out = Value(node.operands[1].shape, x.dtype)
    operands = (node.target.of(x.value), *node.operands[2:])
    fill = x.dtype.type(0)
    return Pick(
        operands, (out,), node.mode, node.lengths, node.steps, fill, (None,) * len(node.steps)
    ).like(node)


def _put_back(node: Write, array: Value, old: Value, places: Sequence[Operand]) -> Write:
    """The write of what was there before."""
    out = Value(array.shape, array.dtype)
    if isinstance(node, Copies):
        targets = tuple(place.of(out) for place in node.places)
        return Copies((whole(array), whole(old)), (out,), targets)
    operands, sites = (whole(array), whole(old), *places), (None,) * len(node.steps)
    target = node.target.of(out)
    return replace(node, operands=operands, outs=(out,), target=target, step="{1}", sites=sites)
