"""Small products of matrices as sums over products of elements.

In a loop, a call of what multiplies matrices would take longer than a small product: written out,
it shares kernels with what comes before and after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from funcgrad.compiler.machine import SEVERAL, SMALL
from funcgrad.compiler.nest.layout import Operand, Value, View, contiguous_strides, whole
from funcgrad.compiler.nest.nodes import Fold, Graph, Node, Point, Product, rewrite
from funcgrad.lowering import Reduction


def write_out_products(graph: Graph) -> None:
    """Put sums in the place of small products."""
    rewrite(graph, lambda node: [*_written(node)] if _is_small(node) else None)


def _is_small(node: Node) -> bool:
    if not isinstance(node, Product) or node.tables is not None:
        return False
    sizes = [math.prod(x.shape) for x in (*node.operands, node.out)]
    return min(sizes) > 0 and (max(sizes) <= SEVERAL or _has_one_row(node, sizes))


def _has_one_row(product: Product, sizes: Sequence[int]) -> bool:
    """Whether it is a row times a matrix whose rows lie side by side: they are added up."""
    _, b = product.operands
    (k, n), (down, along) = b.shape[1:3], b.strides[1:3]
    return sizes[0] == k and sizes[1] == k * n <= SMALL and n > 1 == along <= down


def _written(node: Node) -> Iterator[Node]:
    assert isinstance(node, Product)
    a, b = node.operands
    has_one_row = max(math.prod(x.shape) for x in node.operands) > SEVERAL
    return sums_of_products(a, b, node.out, 1, is_down=has_one_row)


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
