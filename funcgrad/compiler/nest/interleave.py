"""Interleaved parts of an array are computed by one kernel, which writes contiguous memory.

``interleave : graph -> graph``. Stacking along the last axis, repeating each element, and parts of
short rows put one element of every part beside each other. One kernel for each part would stream
through all of the array's memory as often as there are parts. Here parts become points of one
iteration space, which share a kernel (`fuse`) and write in place (`write_through`).

Stacks of products of matrices with up to four rows and columns are written out likewise: one point
for every element of a result, a chain of fused multiplications and additions as in
`loops.library.tiles`, of which the stack makes the loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from funcgrad.compiler.machine import FEW, SEVERAL
from funcgrad.compiler.nest.layout import Operand, Shape, Value, View, contiguous_strides, whole
from funcgrad.compiler.nest.nodes import Copies, Graph, Node, Point, Product, rewrite


def _lie_in_turn(places: Sequence[View]) -> bool:
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


def interleave(graph: Graph) -> None:
    """Let parts that lie in turn, and elements of tiny products, be points; changes the graph."""
    rewrite(graph, _as_points)


def _as_points(node: Node) -> Iterator[Node] | None:
    if isinstance(node, Product) and _is_tiny(node):
        return _written_out(node)
    if not isinstance(node, Copies):
        return None
    places = [place.without_ones() for place in node.places]
    # Single numbers are most often the results of folds, which no point copies for less.
    is_some = _lie_in_turn(places) and math.prod(places[0].shape) > 1
    return _in_turn(node, places) if is_some else None


def _in_turn(node: Copies, places: Sequence[View]) -> Iterator[Node]:
    """An assembly with its parts as points."""
    parts = []
    for operand, place in zip(node.operands, places, strict=True):
        point = Point((operand.without_ones(),), (Value(place.shape, node.out.dtype),), "{0}")
        parts.append(whole(point.out))
        yield point
    yield Copies(tuple(parts), node.outs, tuple(places), node.is_fresh)


# Products.


def _is_tiny(node: Product) -> bool:
    batch, *sizes = node.sizes
    return (
        batch >= SEVERAL
        and node.out.dtype.kind == "f"
        and all(1 <= n <= FEW for n in sizes)
        and all(isinstance(x, View) for x in node.operands)
        and _rank_of_stack(node) is not None
    )


def _rank_of_stack(node: Product) -> int | None:
    """How many axes of a result count products."""
    shape, batch = node.out.shape, node.sizes[0]
    return next((n for n in range(len(shape) + 1) if math.prod(shape[:n]) == batch), None)


def _written_out(node: Product) -> Iterator[Node]:
    """The elements of all products, of which those at one place are a part of the result."""
    _, m, n, k = node.sizes
    rank = _rank_of_stack(node)
    stack = node.out.shape[:rank]
    a, b = node.operands
    parts, places = [], []
    for i, j in np.ndindex(m, n):
        expr = "{0} * {1}"
        for p in range(1, k):
            expr = f"fma({{{2 * p}}}, {{{2 * p + 1}}}, {expr})"
        pairs = ((_place(a, i, p, stack), _place(b, p, j, stack)) for p in range(k))
        factors = tuple(x for pair in pairs for x in pair)
        point = Point(factors, (Value(stack, node.out.dtype),), expr)
        yield point
        parts.append(whole(point.out))
        places.append(View(node.out, stack, node.out.strides[:rank], i * n + j))
    yield Copies(tuple(parts), node.outs, tuple(places))


def _place(x: Operand, row: int, column: int, stack: Shape) -> Operand:
    """The elements at one place of all matrices."""
    step, *steps = x.strides
    offset = x.offset + row * steps[0] + column * steps[1]
    return x.walked(stack, tuple(step * s for s in contiguous_strides(stack)), offset)
