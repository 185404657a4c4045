"""Verifier: invariants of every graph between two passes.

It changes nothing. Tests, and ``FUNCGRAD_VERIFY=1``, run it after each pass, so that an error names
the pass that breaks an invariant, and not the kernel that comes out wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import Box, Uniform, Value, View
from funcgrad.compiler.nest.nodes import Copies, Fold, Graph, Guard, Nest, Node, Point, values_read
from funcgrad.errors import CompilerError
from funcgrad.intrinsics import expression


def verify_graph(graph: Graph, after: str, outer: frozenset[Value] = frozenset()) -> None:
    """Check a graph.

    Args:
        graph: The graph.
        after: What was done to it last.
        outer: Values that it may read from around it.
    Raises: CompilerError: Something does not hold, with the pass that is to blame.
    """
    known = {*graph.inputs, *graph.constants, *outer}
    for node in graph.nodes:
        if not known.issuperset(values_read(node)):
            _fail(after, node, "reads a value that nothing has made yet")
        _verify_shapes(node, after, outer)
        for out in node.outs:
            if out in known:
                _fail(after, node, "makes a value that was made before")
            if out.maker is not node:
                _fail(after, node, "is not the maker of its result")
            known.add(out)
        if isinstance(node, Nest):
            for body in node.bodies:
                links = frozenset(k.inner for k in node.links if k.inner.maker is None)
                carried = (carry.now for carry in getattr(node, "carries", ()))
                verify_graph(body, after, links.union(known, carried))
    for value in graph.outputs:
        if value not in known:
            raise CompilerError(f"after {after}: an output is made by nothing. {_ADVICE}")


def verify_groups(graph: Graph, groups: Sequence[Group], after: str) -> None:
    """Check that groups have all nodes once, in an order in which they can run."""
    home = {node: i for i, group in enumerate(groups) for node in group.nodes}
    if sum(len(group.nodes) for group in groups) != len(graph.nodes):
        raise CompilerError(f"after {after}: groups and graph differ in their nodes. {_ADVICE}")
    for node, i in home.items():
        if any(home.get(value.maker, i) > i for value in values_read(node)):
            _fail(after, node, "runs before what it reads")
        for out in node.outs:
            if out.part is not None and out.part.value.home is not out.home:
                _fail(after, node, "is a part of an array in whose memory it is not")


_ADVICE = "This is a defect of funcgrad; please report it with the function that is compiled."


def _fail(after: str, node: Node, what: str) -> None:
    types = ", ".join(f"{out.dtype}{list(out.shape)}" for out in node.outs)
    raise CompilerError(f"after {after}: a {type(node).__name__} of {types} {what}. {_ADVICE}")


def _verify_shapes(node: Node, after: str, outer: frozenset[Value]) -> None:
    if isinstance(node, Point):
        if any(x.shape != node.out.shape for x in node.operands):
            _fail(after, node, "has an operand of another shape")
        if expression(node.expr).arity > len(node.operands):
            _fail(after, node, "has too few operands")
    if isinstance(node, Fold):
        (x,) = node.operands
        kept = tuple(n for axis, n in enumerate(x.shape) if axis not in node.form.axes)
        if kept != node.out.shape:
            _fail(after, node, "does not have the shape of its operand without the folded axes")
    if isinstance(node, Copies):
        for x, place in zip(node.operands, node.places, strict=True):
            if x.shape != place.shape or place.value is not node.out:
                _fail(after, node, "puts something where it does not fit")
            if not _is_inside(place, None):
                _fail(after, node, "writes beside its memory")
    for i, x in enumerate(node.operands):
        if isinstance(x, Uniform) or x.value in outer:
            continue  # parts of outer arrays have the strides of those
        box = node.box if isinstance(node, Guard) and i == 0 else None
        if not _is_inside(x, box):
            _fail(after, node, "reads beside the memory of an operand")


def _is_inside(view: View, box: Box | None) -> bool:
    """Whether the elements of a view, or those in a box of its indices, are its value's."""
    ranges = box if box is not None else tuple((0, n) for n in view.shape)
    if any(a >= b for a, b in ranges):
        return True
    ends = [(a * s, (b - 1) * s) for (a, b), s in zip(ranges, view.strides, strict=True)]
    low = view.offset + sum(map(min, ends))
    high = view.offset + sum(map(max, ends))
    return low >= 0 and high < math.prod(view.value.shape)
