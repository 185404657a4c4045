"""Small products of matrices as sums over products of elements.

In a loop, a call of what multiplies matrices would take longer than a small product: written out,
it shares kernels with what comes before and after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from funcgrad.compiler.machine import SEVERAL, SMALL
from funcgrad.compiler.nest.layout import Operand, Value, View, contiguous_strides, whole
from funcgrad.compiler.nest.nodes import Fold, Graph, Node, Point, Product, rewrite
from funcgrad.lowering import Reduction


def write_out_products(graph: Graph) -> None:
    """Put sums in the place of small products."""
    rewrite(graph, _written)


def _written(node: Node) -> Iterable[Node] | None:
    if not isinstance(node, Product) or node.tables is not None or node.is_of_pairs:
        return None
    a, b = node.operands
    sizes = [math.prod(x.shape) for x in (a, b, node.out)]
    (k, n), (down, along) = b.shape[1:3], b.strides[1:3]
    # Rows of a matrix that lie side by side are added up, if it is multiplied with one row.
    is_down = sizes[0] == k and sizes[1] == k * n <= SMALL and n > 1 == along <= down
    if not min(sizes) or (max(sizes) > SEVERAL and not is_down):
        return None
    return sums_of_products(a, b, node.out, 1, is_down=max(sizes[:2]) > SEVERAL)


def sums_of_products(
    a: Operand, b: Operand, out: Value, n_stack: int, is_down: bool = False
) -> Iterator[Node]:
    """The nodes of a product.

    Args:
        a: The first matrices: axes of a stack, rows, columns, and other axes that both have.
        b: The second ones.
        out: The result, whose axes of length 1 may be left out.
        n_stack: The number of axes of the stack.
        is_down: Whether rows of the second matrices are added up, of which there are no stacks.
    """
    m, k = a.shape[n_stack : n_stack + 2]
    row, column = a.strides[n_stack : n_stack + 2]
    down, along = b.strides[n_stack : n_stack + 2]
    common = [*zip(a.shape, a.strides, b.strides, strict=True)]
    axes = [*common[:n_stack], (m, row, 0), (b.shape[n_stack + 1], 0, along)]
    axes = [axis for axis in axes if axis[0] != 1]
    summed = 0 if is_down else len(axes)
    axes.insert(summed, (k, column, down))
    axes += common[n_stack + 2 :]
    shape, *strides = (tuple(x) for x in zip(*axes, strict=True))
    views = (x.restrided(shape, s, x.offset) for x, s in zip((a, b), strides, strict=True))
    terms = Value(shape, out.dtype)
    yield Point(tuple(views), (terms,), "{0} * {1}")
    form = Reduction((summed,), "0", "radd({0}, {1})")
    kept = (*shape[:summed], *shape[summed + 1 :])
    if kept == out.shape:
        yield Fold((whole(terms),), (out,), form)
        return
    sums = Value(kept, out.dtype)
    yield Fold((whole(terms),), (sums,), form)
    yield Point((View(sums, out.shape, contiguous_strides(out.shape)),), (out,), "{0}")
