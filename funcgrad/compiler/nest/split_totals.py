"""Folds of whole arrays are folds of rows, and then of the rows' results.

``split_totals : graph -> graph``. What is added up over a whole array keeps the walk over it from
being shared by threads, and with it everything that is computed on the way, such as the gradient
of a mean. Rows are independent of each other; their results are few. How an array is cut depends on
its shape alone, so that its sum does, too, whatever the number of threads is.
"""

from __future__ import annotations

import math
from dataclasses import replace

from funcgrad.compiler.machine import EVEN_PARTS, FEW, SEVERAL, THREAD_WORK
from funcgrad.compiler.nest.layout import Shape, Value, View, whole
from funcgrad.compiler.nest.nodes import Fold, Graph, rewrite

MIN_ELEMENTS = 2 * THREAD_WORK
"""Smaller arrays are walked by one thread."""

MIN_ROW = FEW * SEVERAL
"""Elements of the shortest row beside which its result takes no memory to speak of."""


def split_totals(graph: Graph) -> None:
    """Let folds of large arrays be folds of their rows; changes the graph."""
    rewrite(graph, lambda node: _split(node) if isinstance(node, Fold) else None)


def _outer_axes(node: Fold) -> int:
    """How many axes of a fold count rows; none if it is left as it is."""
    space = node.space
    is_total = len(node.form.axes) == len(space) and isinstance(node.operands[0], View)
    if not is_total or math.prod(space) < MIN_ELEMENTS:
        return 0
    for k in range(1, len(space)):
        if math.prod(space[:k]) >= EVEN_PARTS:
            return k if math.prod(space[k:]) >= MIN_ROW else 0
    return 0


def _split(node: Fold) -> tuple[Fold, Fold] | None:
    """A fold of rows, and one of its results, if it is to be two."""
    n, space = _outer_axes(node), node.space
    return in_two(node, space[:n], tuple(range(n, len(space)))) if n else None


def in_two(node: Fold, parts: Shape, axes: tuple[int, ...]) -> tuple[Fold, Fold]:
    """A fold of parts, and one of their results.

    Args:
        node: The fold of everything.
        parts: The shape of what the first one gives: axes that count parts come first.
        axes: The axes that the first one folds.
    """
    some = Value(parts, node.out.dtype)
    counting = tuple(range(len(parts) - len(node.out.shape)))
    first = Fold(node.operands, (some,), replace(node.form, axes=axes))
    then = Fold((whole(some),), node.outs, replace(node.form, axes=counting))
    return first.like(node), then.like(node)
