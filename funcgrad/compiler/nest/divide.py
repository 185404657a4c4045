"""Parallel reductions: split loops that carry sums from row to row into parts with partial sums.

``divide_sums : graph -> graph``. A scatter-add to few places is serial: each part of its elements
gets an accumulator of its own. A product of few rows and columns has few tiles: threads share parts
of its long sums.

``divide : groups -> groups``. A kernel that reduces columns, or everything, while it computes
functions of its rows cannot divide its rows among threads. Its iteration space is therefore tiled
into parts of rows: every part has partial sums, and these few are added at the end. Of what is
reduced to one number rows are parts, where they cannot be counted off evenly. The number of parts
depends on the shape alone, so that results do not depend on threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from funcgrad.compiler import machine
from funcgrad.compiler.nest import layout
from funcgrad.compiler.nest.builder import sum_over
from funcgrad.compiler.nest.fuse import Group, LoopNest, fuse_nodes, kind_of
from funcgrad.compiler.nest.nodes import (
    Fold,
    Graph,
    Guard,
    Matrices,
    Node,
    Point,
    Product,
    Put,
    rewrite,
    values_read,
)
from funcgrad.compiler.nest.plan import LONG, is_function
from funcgrad.compiler.nest.split import even_parts
from funcgrad.intrinsics import expression

MIN_WORK = 2 * machine.THREAD_WORK
"""Numbers that a loop nest reads, and eight for each function, below which one thread takes it."""

MIN_PART = machine.SEVERAL * machine.SUM_BLOCK
"""Elements of a part beside which its own sums are few."""

MIN_ROW = machine.FEW * machine.SEVERAL
"""Elements of the shortest row beside which one number takes no memory to speak of."""

MIN_DEPOSITS = machine.THREAD_WORK // 2
"""Elements that are taken in, fewer of which are left to one thread."""

MANY = machine.FEW * machine.SEVERAL
"""How many times as many elements are taken in as there are places, at least."""

MIN_TERMS = machine.SUM_BLOCK // 2
"""Terms of a product of matrices in the smallest part of its sums."""

MIN_PRODUCTS, MOST_SUMS = (
    machine.PRODUCT * machine.THREAD_WORK,
    machine.THREAD_WORK // (machine.FEW * machine.SEVERAL),
)
"""Multiplications of the least product whose sums are divided, and elements of the largest one."""


def divide_sums(graph: Graph) -> None:
    """Divide sums at computed places, and those of products; changes the graph."""
    rewrite(graph, lambda node: _divided_product(node) or _divided_scatter(node))


def _divided_product(node: Node) -> list[Node] | None:
    """A stack of products of parts, and the sum of these."""
    if not isinstance(node, Product) or node.tables is not None:
        return None
    batch, m, n, k = node.sizes
    if batch != 1 or m * n > MOST_SUMS or k * m * n < MIN_PRODUCTS:
        return None
    n_parts = even_parts(k, MIN_TERMS)
    if not n_parts:
        return None
    terms = k // n_parts
    a, b = node.operands
    (_, row, column), (_, down, along) = a.strides, b.strides
    a = a.restrided((n_parts, m, terms), (terms * column, row, column), a.offset)
    b = b.restrided((n_parts, terms, n), (terms * down, down, along), b.offset)
    if not all(isinstance(x, layout.View) and Matrices.of(x) is not None for x in (a, b)):
        return None
    parts = layout.Value((n_parts, *node.out.shape), node.out.dtype)
    product = Product((a, b), (parts,), is_of_pairs=node.is_of_pairs)
    return [product, Fold((layout.whole(parts),), node.outs, sum_over((0,)))]


def _n_scatter_parts(node: Put) -> int:
    shape, size = node.operands[1].shape, math.prod(node.operands[1].shape)
    if size < max(MIN_DEPOSITS, MANY * math.prod(node.out.shape)) or 0 in node.lanes:
        return 0
    # Lanes of rows of floats are shared by threads anyway, and come in NumPy's order.
    is_number = math.prod(shape[len(shape) - node.n_rest :]) == 1
    is_sum = expression(node.step).is_sum and node.out.dtype.kind in ("iufc" if is_number else "iu")
    if not is_sum or len(shape) == node.n_rest or node.operands[1].dtype != node.out.dtype:
        return 0
    return even_parts(shape[0], 1) or (machine.EVEN_PARTS if shape[0] > machine.EVEN_PARTS else 0)


def _divided_scatter(node: Node) -> list[Node] | None:
    if not isinstance(node, Put) or not (n_parts := _n_scatter_parts(node)):
        return None
    x, *taken = node.operands
    dtype, length = node.out.dtype, taken[0].shape[0]
    even = length - length % n_parts
    # The remainder, which no part has, is added last.
    out = node.out if even == length else layout.Value(node.out.shape, dtype)
    parts = layout.Value((n_parts, *out.shape), dtype)
    target = _split(node.target.narrowed(0, 0, even), n_parts)
    strides = (target.strides[0] + math.prod(out.shape), *target.strides[1:])
    shares = [_split(y.narrowed(0, 0, even), n_parts) for y in taken]
    put = replace(
        node,
        operands=(layout.Uniform(dtype.type(0), parts.shape), *shares),
        outs=(parts,),
        target=layout.View(parts, target.shape, strides, target.offset),
        lanes=frozenset({0, *(axis + 1 for axis in node.lanes)}),
    )
    nodes: list[Node] = [put]
    form = sum_over((0,))
    if isinstance(x, layout.Uniform) and x.scalar == 0:
        nodes.append(Fold((layout.whole(parts),), (out,), form))
    else:
        total = Fold((layout.whole(parts),), (layout.Value(out.shape, dtype),), form)
        nodes += [total, Point((x, layout.whole(total.out)), (out,), "{0} + {1}")]
    if even < length:
        rest = [y.narrowed(0, even, length) for y in taken]
        last = node.target.narrowed(0, even, length)
        nodes.append(replace(node, operands=(layout.whole(out), *rest), target=last))
    return nodes


def divide(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """The groups, of which some are divided; changes the graph."""
    found: list[Group] = []
    replaced: dict[Node, tuple[Node, ...]] = {}
    for group in groups:
        found.append(group)
        if not _is_divided(group):
            continue
        n_parts = even_parts(group.space[0], -(-MIN_PART // math.prod(group.space[1:])))
        if n_parts or _n_rows(group):
            after = _after_all(group)
            group.nodes = [node for node in group.nodes if node not in after]
            divided = _divided(group, n_parts) if n_parts else _by_rows(group, _n_rows(group))
            replaced |= divided
            found += fuse_nodes([*(total for _, total in divided.values()), *after])
    if replaced:
        graph.nodes = [new for node in graph.nodes for new in replaced.get(node, (node,))]
    return found


def _is_divided(group: Group) -> bool:
    """Whether the rows of a group are to be parts of a nest, and can be."""
    nest, space = group.nest, group.space
    if nest is None or nest.batch or nest.order != tuple(range(len(space))):
        return False
    if _work(group) < MIN_WORK or not _is_serial(group, nest):
        return False
    after = _after_all(group)
    if not all(_is_divisible(node, space[0]) for node in group.nodes if node not in after):
        return False
    # Values that are complete after all rows, which later nodes of the group may not read.
    late = {*after, *(n for n in group.nodes if isinstance(n, Fold) and 0 in n.form.axes)}
    return not any(v.maker in late for n in group.nodes if n not in after for v in values_read(n))


def _n_rows(group: Group) -> int:
    """How many axes of a group that has one row count parts as they are; 0 if none do."""
    space, nest = group.space, group.nest
    if nest is None or nest.row < len(space):
        return 0
    enough = (k for k in range(1, len(space)) if math.prod(space[:k]) >= machine.EVEN_PARTS)
    n = next(enough, 0)
    return n if math.prod(space[n:]) >= MIN_ROW else 0


def _by_rows(group: Group, n: int) -> dict[Node, tuple[Fold, Fold]]:
    """Divide a group that has one row by its first axes; likewise."""
    space = group.space
    axes = tuple(range(n, len(space)))
    folds = [node for node in group.nodes if isinstance(node, Fold)]
    found: dict[Node, tuple[Fold, Fold]] = {node: _in_two(node, space[:n], axes) for node in folds}
    group.nodes = [found[node][0] if node in found else node for node in group.nodes]
    group.nest = LoopNest(tuple(range(len(space))), len(axes))
    return found


def _work(group: Group) -> int:
    made = {out for node in group.nodes for out in node.outs}
    operands = [x for node in group.nodes for x in node.operands if isinstance(x, layout.View)]
    n_read = len({(x.value, x.strides, x.offset) for x in operands if x.value not in made})
    return math.prod(group.space) * (n_read + machine.FUNCTION * sum(map(is_function, group.nodes)))


def _after_all(group: Group) -> dict[Node, None]:
    """The nodes of a group that have no rows: functions of what is added up over all of them."""
    return dict.fromkeys(n for n in group.nodes if math.prod(n.space) == 1)


def _is_serial(group: Group, nest: LoopNest) -> bool:
    """Whether something goes from row to row, and nothing else can be shared."""
    space = group.space
    if nest.row == len(space):
        return True  # there is one row
    folds = [node for node in group.nodes if isinstance(node, Fold)]
    kinds = {kind_of(fold, space, nest) for fold in folds}
    is_columns_alone = kinds == {"column"} and all(node.space == space for node in group.nodes)
    return kinds != {"inner"} and not (is_columns_alone and _has_long_rows(group, nest))


def _has_long_rows(group: Group, nest: LoopNest) -> bool:
    """Whether threads read enough of each row if they share the columns.

    Pieces of rows that are less than half a page, for two threads with four parts each, are read
    slower than whole rows by one thread: the processor fetches little ahead. Parts of few rows have
    as many partial sums as rows.
    """
    row = math.prod(group.space[len(group.space) - nest.row :])
    if group.space[0] < machine.EVEN_PARTS * machine.SHORT_AXIS:
        return row >= LONG
    sizes = [x.dtype.itemsize for node in group.nodes for x in node.operands]
    return row * max(sizes) >= machine.CACHES[0][0] // 2


def _is_divisible(node: Node, length: int) -> bool:
    """Whether a node counts rows by its first axis, all of them alike."""
    if not node.space or node.space[0] != length:
        return False
    return not isinstance(node, Guard) or node.box[0] == (0, length)


def _divided(group: Group, n_parts: int) -> dict[Node, tuple[Fold, Fold]]:
    """Divide a group; by the sums over its rows, those over parts and those of these."""
    found: dict[Node, tuple[Fold, Fold]] = {}
    for i, node in enumerate(group.nodes):
        node.operands = tuple(_split(x, n_parts) for x in node.operands)
        if isinstance(node, Fold) and 0 in node.form.axes:
            axes = tuple(a + 1 for a in node.form.axes)
            found[node] = _in_two(node, (n_parts, *node.out.shape), axes)
            group.nodes[i] = found[node][0]
            continue
        if isinstance(node, Fold):
            node.form = replace(node.form, axes=tuple(a + 1 for a in node.form.axes))
        if isinstance(node, Guard):
            length = node.out.shape[0] // n_parts
            node.box = ((0, n_parts), (0, length), *node.box[1:])
        for out in node.outs:
            out.shape = _split_shape(out.shape, n_parts)
            out.strides = layout.contiguous_strides(out.shape)
    assert group.nest is not None
    is_row = group.nest.row == len(group.space)
    group.space = _split_shape(group.space, n_parts)
    order = tuple(range(len(group.space)))
    group.nest = LoopNest(order, group.nest.row, None if is_row else 1)
    return found


def _in_two(node: Fold, parts: layout.Shape, axes: tuple[int, ...]) -> tuple[Fold, Fold]:
    """A fold of parts, and one of their results.

    Args:
        node: The fold of everything.
        parts: The shape of what the first one gives: axes that count parts come first.
        axes: The axes that the first one folds.
    """
    some = layout.Value(parts, node.out.dtype)
    counting = tuple(range(len(parts) - len(node.out.shape)))
    first = Fold(node.operands, (some,), replace(node.form, axes=axes))
    then = Fold((layout.whole(some),), node.outs, replace(node.form, axes=counting))
    return first.like(node), then.like(node)


def _split_shape(shape: layout.Shape, n_parts: int) -> layout.Shape:
    return n_parts, shape[0] // n_parts, *shape[1:]


def _split(operand: layout.S, n_parts: int) -> layout.S:
    """An operand with its first axis as two."""
    first, *rest = operand.shape
    return operand.divided([(n_parts, first // n_parts), *((n,) for n in rest)])
