"""Loop fission: functions of row reductions alone leave the loop over the rows.

``detach : groups -> groups``. A reduction along rows and the readers of its results fuse into one
loop nest, because a softmax needs them in the next pass over the same row. Where the row is not
read again, this has a price: functions of the reduced values are computed one by one, since the
loop over rows is not vectorised, and a sum of them keeps the rows from being divided among threads.
A reduced value takes little memory beside its row; so those nodes get a loop of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from funcgrad.compiler.machine import FEW, KERNEL_CYCLES, SHORT_AXIS, SUM_BLOCK, THREAD_WORK
from funcgrad.compiler.nest.cost import cycles_of, cycles_of_computing
from funcgrad.compiler.nest.fuse import Group, fuse_nodes, is_late, row_shapes
from funcgrad.compiler.nest.nodes import Fold, Graph, Node, values_read

MIN_ROWS = SHORT_AXIS
"""Functions of fewer numbers take less time than another kernel to start."""

MAX_ROW = FEW * SUM_BLOCK
"""Elements of a row beside which a function of one number takes no time."""

MIN_WORK = 2 * THREAD_WORK
"""Elements of a loop nest that is worth several threads."""


def detach(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """The groups, some of them in two parts or more."""
    found: list[Group] = []
    for group in groups:
        after = _followers(group)
        if not after or not _is_worth_it(group, after):
            found.append(group)
            continue
        group.nodes = [node for node in group.nodes if node not in after]
        found += [group, *fuse_nodes(list(after))]
    return found


def _followers(group: Group) -> dict[Node, None]:
    """The nodes of a group on numbers of rows from which nothing follows for elements of rows."""
    if group.nest is None or not 0 < group.nest.row < len(group.space) or group.nest.batch:
        return {}
    own = set(group.nodes)
    needed: set[Node] = set()
    found: dict[Node, None] = {}
    spaces = row_shapes(group.space, group.nest)
    for node in reversed(group.nodes):
        if node in needed or node.space not in spaces or node.space == group.space:
            needed.update(v.maker for v in values_read(node) if v.maker in own)
        else:
            found[node] = None
    return dict.fromkeys(node for node in group.nodes if node in found)


def _is_worth_it(group: Group, after: dict[Node, None]) -> bool:
    assert group.nest is not None
    rows = math.prod(row_shapes(group.space, group.nest)[0])
    if any(is_late(node, group.space, group.nest) for node in group.nodes if node not in after):
        return False  # it stays on one thread, and holds on to what it has
    if rows < MIN_ROWS or not any(isinstance(node, Fold) for node in group.nodes):
        return False
    is_slow = any(node.is_expensive for node in after) or _takes_long(group, after, rows)
    if is_slow and math.prod(group.space) <= MAX_ROW * rows:
        return True
    is_late_sum = any(isinstance(node, Fold) for node in after)
    return is_late_sum and math.prod(group.space) >= MIN_WORK


def _takes_long(group: Group, after: dict[Node, None], rows: int) -> bool:
    """Whether functions without any that is expensive are seen in the time of the rows.

    About half of their time, one by one, is hidden behind that of the elements.
    """
    own = [node for node in group.nodes if node not in after]
    one_by_one = rows * sum(map(cycles_of_computing, after)) / 2
    return one_by_one > KERNEL_CYCLES + cycles_of(list(after)) + cycles_of(own) / FEW
