"""Rows of arrays are computed where they belong, at indices that are known when a program runs.

``put_through : groups -> groups``. What replaces one row of an array that is changed where it is,
or one of its planes, is written there by the kernel that computes it, if nothing in between needs
the array as it was. The kernel itself may read rows of the array, each of them at the index that it
writes: whichever rows these are, an element is read before another one takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcgrad.compiler.loops.language import Variable, call, sum_of
from funcgrad.compiler.machine import SEVERAL
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import Operand, Strided, Uniform, View, reshaped
from funcgrad.compiler.nest.nodes import Graph, Node, Pick, Point, Put, readers_of, values_read
from funcgrad.compiler.nest.places import resolve
from funcgrad.compiler.nest.plan import Plan
from funcgrad.compiler.nest.registers import is_small

_EVERYWHERE = ("clip", "start", "place", "raise")
"""Modes in which every index means a place, or the program ends."""


def put_through(graph: Graph, groups: Sequence[Group]) -> None:
    """Give points the places of rows that they replace; changes values."""
    mover = _Mover(graph, groups)
    for i, group in enumerate(groups):
        node = group.nodes[0]
        if isinstance(node, Put):
            mover.move(node, i)


class _Mover:
    """The groups of a graph, among which rows get their places in the order of the changes."""

    def __init__(self, graph: Graph, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.outputs = set(graph.outputs)
        self.home = {node: i for i, group in enumerate(groups) for node in group.nodes}
        self.readers = readers_of(self.home)
        self.moved: dict[Node, int] = {}
        """Changes that have nothing left to do, each with the group that does it."""

    def move(self, put: Put, i: int) -> None:
        """Let the row of a change be written by what computes it, if that can be."""
        base, updates, *indices = put.operands
        if not isinstance(updates, View) or not isinstance(base, View):
            return
        value, own = updates.value, self.home.get(updates.value.maker, i)
        if own >= i or not self._is_movable(updates, put, own):
            return
        part = reshaped(put.target, value.shape)
        is_changed = base.is_whole and base.value.home is put.out.home
        if not is_changed or not all(self._is_known(x, own) for x in indices):
            return
        if put.mode not in _EVERYWHERE and not self._is_looked_at(put, own):
            return
        if not isinstance(part, View) or self._is_touched_between(put, own, i):
            return
        if not self._is_apart(part, put, own):
            return
        value.home, value.part, value.placed_by = put.out.home, part, put
        self.moved[put] = own

    def _is_movable(self, updates: View, put: Put, own: int) -> bool:
        """Whether the points of a kernel without folds make the updates, for themselves alone."""
        value, group = updates.value, self.groups[own]
        if put.step != "{1}" or is_small(put.out):
            return False
        if not isinstance(value.maker, Point) or value in self.outputs or is_small(value, SEVERAL):
            return False
        if not updates.is_whole or value.home is not value or value.dtype != put.out.dtype:
            return False
        if group.nest is not None or group.space != value.shape:
            return False
        readers = self.readers[value]
        return readers.count(put) == 1 and all(
            reader is put or self.home[reader] == own for reader in readers
        )

    def _is_known(self, x: Operand, own: int) -> bool:
        """Whether an index is one number, which is there when a kernel runs."""
        is_number = not any(s for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
        if isinstance(x, Uniform):
            return is_number
        assert isinstance(x, View)
        return is_number and self.home.get(x.value.maker, -1) < own

    def _is_looked_at(self, put: Put, own: int) -> bool:
        """Whether the kernel ends where an index means no place, since it reads there."""
        group = self.groups[own]
        seen = {
            (_number(x), length)
            for node in group.nodes
            if isinstance(node, Pick) and node.mode == "raise" and node.space == group.space
            for x, length in zip(node.operands[1:], node.lengths, strict=True)
        }
        indices = zip(put.operands[2:], put.lengths, strict=True)
        return all((_number(x), length) in seen for x, length in indices)

    def _is_touched_between(self, put: Put, own: int, i: int) -> bool:
        """Whether anything between a kernel and a change reads or writes the array."""
        memory = put.out.home
        return any(
            value.home is memory and self.moved.get(node) != own
            for group in self.groups[own + 1 : i]
            for node in group.nodes
            for value in (*values_read(node), *node.outs)
        )

    def _is_apart(self, part: View, put: Put, own: int) -> bool:
        """Whether a kernel has no element of the array but at the index that it writes."""
        if not _is_injective(part.shape, part.strides):
            return False
        updates, memory, order = put.operands[1], put.out.home, [*self.groups[own].nodes]
        assert isinstance(updates, View)
        last = order.index(updates.value.maker)
        for k, node in enumerate(order):
            if node.out.home is memory:
                other, place = node.out.placed_by, node.out.part
                if other is None or place is None or k > last:
                    return False
                if not _is_same_access(place, other, part, put):
                    return False
            for x in node.operands:
                if isinstance(x, View) and x.value.home is memory:
                    if not isinstance(node, Pick) or x is not node.operands[0]:
                        return False
                    if not _is_same_access(x, node, part, put):
                        return False
        return True


def _number(x: Operand) -> tuple[object, int]:
    return (x.scalar.tobytes(), 0) if isinstance(x, Uniform) else (x.value, x.offset)


def _is_same_access(x: Strided, node: Pick | Put, part: View, put: Put) -> bool:
    """Whether two accesses have no element in common but at the same index."""
    own = (x.shape, x.strides, x.offset, node.lengths, node.steps)
    if own != (part.shape, part.strides, part.offset, put.lengths, put.steps):
        return False
    # Windows that begin elsewhere have the same elements at other indices.
    own_indices = node.operands[len(node.operands) - len(node.lengths) :]
    is_same = node.mode == put.mode and all(
        _number(a) == _number(b) for a, b in zip(own_indices, put.operands[2:], strict=True)
    )
    return is_same or _is_injective((*x.shape, *node.lengths), (*x.strides, *node.steps))


def _is_injective(lengths: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether different indices mean different elements."""
    reach = 0
    for step, n in sorted(zip(map(abs, steps), lengths, strict=True)):
        if n > 1:
            if step <= reach:
                return False
            reach += (n - 1) * step
    return True


def move_pointers(plan: Plan) -> None:
    """Statements before the loops of a kernel: its rows begin at the places that integers mean."""
    source, space = plan.source, plan.space
    for node, access in plan.outs.items():
        put = node.out.placed_by
        if put is None:
            continue
        moves = []
        for k, (x, index) in enumerate(zip(put.operands[2:], plan.indices(node), strict=True)):
            name, length = f"{access.name}k{k}", source.word(put.lengths[k])
            site = put.sites[k] if put.sites else None
            refused = None if site is None else source.word(site)
            resolve(source, put.mode, name, space.load(index), x.dtype, length, refused)
            moves.append(Variable(name) * source.word(put.steps[k] * access.dtype.itemsize))
        row = call("offset", access.pointer, sum_of(moves))
        access.pointers[0] = source.assign(f"{access.name}_place", row)
