"""Loop coalescing: several short rows are one long row.

``coalesce : groups -> groups``. A kernel whose rows are shorter than its vectors spends its time on
remainders. Where rows are adjacent in memory, several of them become one row of whole vectors
(Polychronopoulos, 1987). What is the same in all rows, as a bias, is repeated as often,
once. A fold over rows folds long rows, and then what these consist of. How many rows are one
depends on the shape alone, and divides their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from funcgrad.compiler.machine import FEW, SEVERAL, VECTOR_BYTES, VECTORS
from funcgrad.compiler.nest import layout
from funcgrad.compiler.nest.fuse import Group, fuse_nodes
from funcgrad.compiler.nest.nodes import Fold, Graph, Node, Point
from funcgrad.compiler.nest.plan import width


def coalesce(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """The groups, of which some have longer rows; changes the graph."""
    found: list[Group] = []
    replaced: dict[Node, list[Node]] = {}
    for group in groups:
        count = rows_of(group)
        if not count:
            found.append(group)
            continue
        before, after = _coalesced(group, count, replaced)
        found += [*fuse_nodes(before), group, *fuse_nodes(after)]
    if replaced:
        graph.nodes = [new for node in graph.nodes for new in replaced.get(node, [node])]
    return found


def rows_of(group: Group) -> int:
    """How many rows of a group are to be one; 0 for none."""
    return _count(group) if _is_coalesced(group) else 0


def _is_coalesced(group: Group) -> bool:
    """Whether neighbouring rows of a group can be one, and are not anyway."""
    space, nest, n = group.space, group.nest, len(group.space)
    if n < 2 or any(type(node) not in (Point, Fold) or node.space != space for node in group.nodes):
        return False
    if nest is not None and (
        nest.order != tuple(range(n)) or nest.row != 1 or nest.batch not in (None, n - 2)
    ):
        return False
    folds = [node for node in group.nodes if isinstance(node, Fold)]
    if any(fold.form.axes != (n - 2,) for fold in folds):
        return False
    if folds and space[-1] <= FEW:
        return False  # a few results stay in registers (`specialize`)
    outs = [out for node in group.nodes if isinstance(node, Point) for out in node.outs]
    if not all(
        layout.same_strides(out.shape, out.strides, layout.contiguous_strides(space))
        for out in outs
    ):
        return False
    operands = [x for node in group.nodes for x in node.operands]
    is_repeated = any(_is_same_in_all(x) for x in operands)
    return (bool(folds) or is_repeated) and all(
        _is_joined(x) or _is_same_in_all(x) for x in operands
    )


def _is_joined(x: layout.Operand) -> bool:
    """Whether rows of an operand follow each other, or all elements are the same."""
    return isinstance(x, layout.Uniform) or x.strides[-2] == x.shape[-1] * x.strides[-1]


def _is_same_in_all(x: layout.Operand) -> bool:
    """Whether all rows of an operand are the same one."""
    return isinstance(x, layout.View) and not any(x.strides[:-1]) and x.strides[-1] != 0


def _count(group: Group) -> int:
    *_, n_rows, length = group.space
    wide = VECTORS * VECTOR_BYTES // width([x.dtype for node in group.nodes for x in node.outs])
    if not 1 < length < wide:
        return 0
    counts = range(-(-wide // length), 2 * FEW * wide // length + 1)
    found = [r for r in counts if n_rows % r == 0 and n_rows >= SEVERAL * r]
    # Whole vectors, and enough of them that sums of one row do not wait for those of the last one.
    return max(
        found,
        key=lambda r: (r * length * VECTORS % wide == 0, -abs(math.log(r * length / (FEW * wide)))),
        default=0,
    )


def _coalesced(
    group: Group, count: int, replaced: dict[Node, list[Node]]
) -> tuple[list[Node], list[Node]]:
    """Make rows of a group one; what is to be computed before it and after it."""
    space, joined = group.space, _joined_shape(group.space, count)
    before: list[Node] = []
    after: list[Node] = []
    tiles: dict[layout.Operand, Node] = {}
    for i, node in enumerate(group.nodes):
        made: list[Node] = []
        for x in node.operands:
            if isinstance(x, layout.View) and not _is_joined(x) and x not in tiles:
                tiles[x] = _repeated(x, count).like(node)
                made.append(tiles[x])
        before += made
        node.operands = tuple(
            _joined(x, count)
            if _is_joined(x)
            else layout.View(tiles[x].out, joined, (*(0 for _ in joined[1:]), 1))
            for x in node.operands
        )
        last = [node]
        if isinstance(node, Fold):
            some = layout.Value((*joined[:-2], joined[-1]), node.out.dtype)
            parts = layout.whole(some).divided([*((n,) for n in space[:-2]), (count, space[-1])])
            group.nodes[i] = Fold(node.operands, (some,), node.form).like(node)
            after.append(Fold((parts,), node.outs, node.form).like(node))
            last = [group.nodes[i], after[-1]]
        else:
            for out in node.outs:
                out.shape, out.strides = joined, layout.contiguous_strides(joined)
        replaced[node] = [*made, *last]
    group.space = joined
    return before, after


def _joined_shape(shape: layout.Shape, count: int) -> layout.Shape:
    *stack, n_rows, length = shape
    return (*stack, n_rows // count, count * length)


def _joined(x: layout.Operand, count: int) -> layout.Operand:
    """Operand with adjacent axes collapsed into one."""
    *stack, _, step = x.strides
    strides = (*stack, count * x.shape[-1] * step, step)
    return x.restrided(_joined_shape(x.shape, count), strides, x.offset)


def _repeated(x: layout.View, count: int) -> Point:
    """The row that all rows are, some times."""
    shape = (count, x.shape[-1])
    row = x.restrided(shape, (0, x.strides[-1]), x.offset)
    return Point((row,), (layout.Value(shape, x.dtype),), "{0}")
