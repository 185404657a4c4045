"""Lanes of loops: elements along the first axis of all that a loop carries, if none needs another.

A loop whose iterations run over all lanes reads and writes all of its arrays each time. If no lane
needs another one, blocks of lanes can go through all iterations, one block after the other (loop
interchange after strip-mining)::

    for block of lanes:            (shared among threads)
        for all iterations:
            numbers of all lanes   (times, counters)
            every kernel, over these lanes

So what a block carries stays in the nearest caches. Kernels have ranges of their outermost loop as
arguments, and nothing but these changes. `join` writes the loops.
"""

from __future__ import annotations

import math
from typing import Any

from funcgrad.compiler.machine import CACHES, SEVERAL, VECTOR_BYTES, VECTORS
from funcgrad.compiler.nest.allocate import Nested
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.nest.layout import Value, View, whole
from funcgrad.compiler.nest.nodes import Fold, Guard, Loop, Node, Point, Scan
from funcgrad.compiler.nest.registers import Registers, is_number


def lanes_of(job: Nested, registers: Registers) -> tuple[int, int]:
    """The number of lanes of a loop that do not need each other, and that of a block; 0 if none.

    What a block of lanes carries and computes fits into half of the nearest cache, or at least a
    vector of lanes into the next one.

    Args:
        job: The loop, arranged.
        registers: The numbers of it that have variables.
    """
    node = job.node
    if not isinstance(node, Loop) or (node.length is None and not _has_flags(node)):
        return 0, 0
    if any(carry.is_in_place and registers.of(carry.now) is not None for carry in node.carries):
        return 0, 0  # every block begins with the numbers that were there before the first one
    jobs = [inner for row in job.sections[-1].jobs for inner in row]
    count = max((inner.lanes[1] for inner in jobs if isinstance(inner, Kernel)), default=0)
    lanes = _Lanes(node, count, registers)
    if count <= SEVERAL or not all(map(lanes.are_split, jobs)):
        return 0, 0
    stored = {out.home for inner in jobs for n in inner.nodes for out in n.outs if out.is_stored}
    nbytes = max(2 * sum(value.nbytes for value in stored) // count, 1)
    (nearest, _), (following, _), *_ = CACHES
    if nbytes * VECTOR_BYTES > following:
        return 0, 0
    most = max(nearest // (2 * nbytes), VECTOR_BYTES)
    # Of lanes that stop one by one, the fewer wait for the last one of a block the better.
    most = SEVERAL if node.length is None else most
    return count, min(1 << (most.bit_length() - 1), VECTORS * VECTOR_BYTES)


def _has_flags(node: Loop) -> bool:
    """Whether a loop of unknown length leaves lanes that have stopped where they are."""
    return node.has_flags and all(carry.is_in_place for carry in node.carries)


class _Lanes:
    """The lanes of a loop.

    Attributes:
        changing: The arrays that it writes to. What is carried has the same memory now and next,
            in turn.
        steps: For each of them, how many elements one lane is from the next.
    """

    def __init__(self, node: Loop, count: int, registers: Registers) -> None:
        self.count = count
        self.registers = registers
        self.changing: dict[Value, Value] = {}
        for inner in node.bodies[-1].nodes:
            self.changing.update((out.home, out.home) for out in inner.outs)
        for carry in node.carries:
            self.changing.update(dict.fromkeys((carry.now.home, carry.next.home), carry.now))
        self.steps: dict[Value, int] = {}

    def are_split(self, job: Any) -> bool:
        """Whether what a loop runs computes the numbers of all lanes, or each lane of itself."""
        if not isinstance(job, Kernel) or job.scratch:
            return False
        if all(self.registers.of(out) is not None for node in job.nodes for out in node.outs):
            read = {x.value.home for n in job.nodes for x in n.operands if isinstance(x, View)}
            return all(map(is_number, read & self.changing.keys()))
        axis, count = job.lanes
        are_alone = all(self._is_alone(node, axis) for node in job.nodes)
        return job.is_parallel and count == self.count and are_alone

    def _is_alone(self, node: Node, axis: int) -> bool:
        """Whether the elements of a node at a lane are made of those at the same lane."""
        if not node.space or node.space[axis] != self.count or node.out.placed_by is not None:
            return False
        match node:
            case Fold() if axis % len(node.space) in node.form.axes:
                return False
            case Scan() if axis % len(node.space) == node.form.axis:
                return False
            case Point() | Fold() | Scan():
                pass
            case _:
                return False
        if isinstance(node, Guard) and node.box[axis] != (0, self.count):
            return False
        read = [x for x in node.operands if isinstance(x, View) and x.value.home in self.changing]
        return all(self._is_aligned(x, axis) for x in (*read, node.out.part or whole(node.out)))

    def _is_aligned(self, x: View, axis: int) -> bool:
        """Whether a view shows in each lane elements of this lane alone, of an array in memory."""
        home = x.value.home
        if is_number(home):
            return True
        size, rest = divmod(math.prod(home.shape), self.count)
        step = x.strides[axis]
        if rest or step not in (1, size):
            return False
        if self.steps.setdefault(self.changing.get(home, home), step) != step:
            return False
        steps = [*zip(x.shape, x.strides, strict=True)]
        del steps[axis]
        if step != size:
            # Rows of lanes: no element leads to another lane.
            return not any(s % self.count for s in (x.offset, *(s for n, s in steps if n > 1)))
        moves = [(n - 1) * s for n, s in steps]
        first, last = (x.offset + sum(f(move, 0) for move in moves) for f in (min, max))
        return 0 <= first <= last < size
