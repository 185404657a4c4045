"""Shortening: integers of 64 bits that are known to need 32 are computed with these.

``shorten : graph -> graph``. NumPy counts flags and adds up short integers with 64 bits. Where the
bounds of such a number, and of all that leads to it, lie within 32 bits (`bounds`), vectors of
twice as many lanes give the same, which AVX2 can also multiply and compare. What needs 64 bits,
such as a result of the program, gets them at the end.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from funcgrad.compiler.loops.language import Expression, Variable, applied
from funcgrad.compiler.machine import SEVERAL
from funcgrad.compiler.nest.bounds import bounds_of, is_bounded_throughout, is_within
from funcgrad.compiler.nest.layout import Operand, Uniform, Value, View, whole
from funcgrad.compiler.nest.nodes import (
    Fold,
    Graph,
    Guard,
    Node,
    Pick,
    Point,
    without_unread,
)
from funcgrad.dtypes import BOOL, INT32, INT64, UINT64
from funcgrad.intrinsics import CASTS

HALF: dict[np.dtype[Any], np.dtype[Any]] = {INT64: INT32, UINT64: np.dtype(np.uint32)}
"""The dtypes of 64 bits, each with the one of 32."""


def shorten(graph: Graph) -> None:
    """Compute integers with 32 bits if these suffice, and readers take them; changes the graph."""
    found: set[Value] = set()
    for node in graph.nodes:
        if _can_be_short(node, found):
            found.add(node.out)
            node.out.bounds = bounds_of(whole(node.out))
    if not found:
        return
    wanted: set[Value] = set()
    for node in reversed(graph.nodes):
        is_fold = isinstance(node, Fold) and node.out in found
        if is_fold or (node.outs and node.out in wanted) or _takes_short(node, found):
            wanted.update({node.out} if is_fold else ())
            wanted.update(x.value for x in _numbers(node) if isinstance(x, View))
    wanted &= found
    if wanted:
        _Shortened(graph, wanted).run()


def _is_short(x: Operand, found: Collection[Value]) -> bool:
    """Whether an operand of 64 bits has 32 where some values have: constants are known."""
    if isinstance(x, View) and x.value.array is None:
        return x.value in found
    return is_within(bounds_of(x), HALF[x.dtype])


def _can_be_short(node: Node, found: Collection[Value]) -> bool:
    """Whether 32 bits suffice for a result of 64, given the values for which they do."""
    if not node.outs or node.out.dtype not in HALF or math.prod(node.space) <= SEVERAL:
        return False
    match node:
        case Fold() | Guard() | Pick():
            is_short = _are_short(_numbers(node), found) and getattr(node, "mode", "") != "fill"
        case Point():
            is_short = _is_short_point(node, found)
        case _:
            return False
    return is_short and is_within(bounds_of(whole(node.out)), HALF[node.out.dtype])


def _numbers(node: Node) -> tuple[Operand, ...]:
    """The operands of a node but for indices of a lookup."""
    return node.operands[:1] if isinstance(node, Pick) else node.operands


def _are_short(operands: Collection[Operand], found: Collection[Value]) -> bool:
    """Whether all of some operands have 32 bits, and one of them because others have."""
    return any(isinstance(x, View) and x.value in found for x in operands) and all(
        _is_short(x, found) for x in operands if x.dtype in HALF
    )


def _is_short_point(node: Point, found: Collection[Value]) -> bool:
    """Whether it converts shorter integers, or computes with integers of 32 bits throughout."""
    if _converted(node):
        (x,) = node.operands
        is_source = isinstance(x, View) and x.dtype.kind in "biu" and x.value.array is None
        return is_source and (x.dtype.itemsize <= 4 or _are_short([x], found))
    if any(x.dtype not in (node.out.dtype, BOOL) for x in node.operands):
        return False
    return _are_short(node.operands, found) and is_bounded_throughout(node, HALF[node.out.dtype])


def _converted(node: Point) -> bool:
    """Whether all that a point does is to convert its operand."""
    if isinstance(node, Guard) or len(node.operands) != 1:
        return False
    tree: Expression = applied(node.expr, [Variable("x")])
    return str(tree) == "x" or any(str(tree) == f"{word}(x)" for word in CASTS)


def _takes_short(node: Node, found: Collection[Value]) -> bool:
    """Whether a node whose result is no integer of 64 bits can read ones of 32."""
    if type(node) is not Point or node.out.dtype in HALF or not _are_short(node.operands, found):
        return False
    if _converted(node):
        return node.out.dtype.kind in "biuf"
    wide, *others = {x.dtype for x in node.operands} - {BOOL}
    return node.out.dtype == BOOL and not others and is_bounded_throughout(node, HALF[wide])


class _Shortened:
    """A graph in which some values get 32 bits."""

    def __init__(self, graph: Graph, wanted: Collection[Value]) -> None:
        self.graph = graph
        self.wanted = wanted
        self.short: dict[Value, Value] = {}

    def run(self) -> None:
        nodes: list[Node] = []
        for node in self.graph.nodes:
            if node.outs and node.out in self.wanted:
                nodes += self._both(node)
            else:
                if _takes_short(node, self.wanted):
                    node.operands = tuple(map(self._seen, node.operands))
                nodes.append(node)
        self.graph.nodes = without_unread(nodes, self.graph.outputs, (Point,))

    def _both(self, node: Node) -> list[Node]:
        """A node with 32 bits, and what makes 64 of these for those who need them."""
        wide = node.out
        short = self.short[wide] = Value(wide.shape, HALF[wide.dtype])
        short.bounds = wide.bounds
        numbers = _numbers(node)
        operands = (*map(self._seen, numbers), *node.operands[len(numbers) :])
        if isinstance(node, Point) and _converted(node):
            computed: Node = Point(operands, (short,), "{0}")
        else:
            computed = replace(node, operands=operands, outs=(short,))
        return [computed.like(node), Point((whole(short),), (wide,), "{0}").like(node)]

    def _seen(self, x: Operand) -> Operand:
        """An operand with 32 bits, if it has 64."""
        if x.dtype not in HALF:
            return x
        if isinstance(x, Uniform):
            return Uniform(HALF[x.dtype].type(x.scalar), x.shape)
        if x.value not in self.short and x.value.array is not None:
            known = self.short[x.value] = Value(x.value.shape, HALF[x.dtype])
            known.array = x.value.array.astype(known.dtype)
            self.graph.constants.append(known)
        return x.of(self.short[x.value])
