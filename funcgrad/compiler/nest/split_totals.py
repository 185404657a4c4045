"""Folds of whole arrays are folds of rows, and then of the rows' results.

``split_totals : graph -> graph``. What is added up over a whole array keeps the walk over it from
being shared by threads, and with it everything that is computed on the way, such as the gradient
of a mean. Rows are independent of each other; their results are few. How an array is cut depends on
its shape alone, so that its sum does, too, whatever the number of threads is.
"""

from __future__ import annotations

import math
from dataclasses import replace

from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import Fold, Graph, Node

MIN_ELEMENTS = 1 << 19
"""Smaller arrays are walked by one thread."""

MIN_ROWS = 16
"""Rows that several threads can share evenly."""

MIN_ROW = 64
"""Elements of the shortest row beside which its result takes no memory to speak of."""


def split_totals(graph: Graph) -> None:
    """Let folds of large arrays be folds of their rows; changes the graph."""
    nodes: list[Node] = []
    for node in graph.nodes:
        n_outer = _outer_axes(node) if isinstance(node, Fold) else 0
        if n_outer:
            assert isinstance(node, Fold)
            nodes += _split(node, n_outer)
        else:
            nodes.append(node)
    graph.nodes = nodes


def _outer_axes(node: Fold) -> int:
    """How many axes of a fold count rows; none if it is left as it is."""
    space = node.space
    is_total = len(node.form.axes) == len(space) and isinstance(node.operands[0], View)
    if not is_total or math.prod(space) < MIN_ELEMENTS:
        return 0
    for k in range(1, len(space)):
        if math.prod(space[:k]) >= MIN_ROWS:
            return k if math.prod(space[k:]) >= MIN_ROW else 0
    return 0


def _split(node: Fold, n_outer: int) -> tuple[Fold, Fold]:
    """A fold of rows, and one of its results."""
    space, form = node.space, node.form
    rows = Value(space[:n_outer], node.out.dtype)
    inner = replace(form, axes=tuple(range(n_outer, len(space))))
    outer = replace(form, axes=tuple(range(n_outer)))
    first, then = Fold(node.operands, (rows,), inner), Fold((whole(rows),), node.outs, outer)
    return first.like(node), then.like(node)
