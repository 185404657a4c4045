"""Cost model of nodes: cycles of the nominal processor, and the bytes that they move."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from funcgrad.compiler.machine import (
    FUNCTION_CYCLES,
    OPERATIONS_PER_CYCLE,
    VECTOR_BYTES,
    cycles_of_moving,
)
from funcgrad.compiler.nest.layout import Operand, Uniform, Value, View
from funcgrad.compiler.nest.nodes import Guard, Node, Pick, Point, Product, Put
from funcgrad.intrinsics import expression


def cycles_of(nodes: Sequence[Node]) -> float:
    """Cycles of nodes that run together: of computing or of moving, whichever are more."""
    nbytes = traffic_of(nodes)
    moving = cycles_of_moving(int(nbytes)) * nbytes / VECTOR_BYTES
    return max(sum(map(_cycles_of_all, nodes)), moving, 1.0)


def _cycles_of_all(node: Node) -> float:
    """Cycles of computing all elements of a node."""
    match node:
        case Product():
            count, cycles = math.prod(node.sizes), 2 / OPERATIONS_PER_CYCLE
        case _:
            count, cycles = math.prod(node.space), cycles_of_computing(node)
    itemsize = min((out.dtype.itemsize for out in node.outs), default=1)
    return cycles * count * itemsize / VECTOR_BYTES


def cycles_of_computing(node: Node) -> float:
    """Cycles of a vector of elements, without what it loads; lookups are made one by one."""
    if isinstance(node, Pick):
        return VECTOR_BYTES / node.out.dtype.itemsize
    if not isinstance(node, Point) or isinstance(node, Guard):
        return 1 / OPERATIONS_PER_CYCLE
    costs = [x.cost for x in expression(node.expr).uses]
    cycles = sum(n * FUNCTION_CYCLES if n > 1 else n / OPERATIONS_PER_CYCLE for n in costs)
    return 2 * cycles if node.out.dtype.kind == "c" else cycles


def traffic_of(nodes: Sequence[Node]) -> float:
    """Bytes that nodes move which run together: what they make of each other stays in registers."""
    return float(sum(moves_of(nodes)))


def moves_of(nodes: Sequence[Node]) -> Iterator[int]:
    """The bytes of each of these nodes: what several read counts for the first of them."""
    made = {value for node in nodes for value in node.outs}
    read: dict[Value, int] = {}
    for node in nodes:
        operands, moved = _operands(node)
        for x in operands:
            if isinstance(x, View) and x.value not in made:
                before = read.get(x.value, 0)
                read[x.value] = min(before + _extent(x), x.value.nbytes)
                moved += read[x.value] - before
        yield moved


def _operands(node: Node) -> tuple[Sequence[Operand], int]:
    """The operands that a node reads as a whole, and the bytes that it moves otherwise."""
    if isinstance(node, Pick):
        return node.operands[1:], node.out.nbytes * (1 + node.out.is_stored)
    if isinstance(node, Put):
        # The copy of the array that it changes is a kernel of its own.
        _, updates, *places = node.operands
        return [updates, *places], 2 * math.prod(updates.shape) * node.out.dtype.itemsize
    return node.operands, sum(value.nbytes for value in node.outs if value.is_stored)


def _extent(x: Operand) -> int:
    """Bytes of the different elements of an operand."""
    if isinstance(x, Uniform):
        return 0
    lengths = (n for n, s in zip(x.shape, x.strides, strict=True) if s)
    return math.prod(lengths) * x.dtype.itemsize if math.prod(x.shape) else 0
