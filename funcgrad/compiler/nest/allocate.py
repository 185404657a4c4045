"""Memory allocation: slots for what the caller sees, one arena for all intermediate values.

Live ranges are known, so memory of the arena is reused as soon as the last reader has run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import FIRST_SLOT, OWN_SLOT
from funcgrad.compiler.nest.arena import Buffer, Offset, live_bytes, packed
from funcgrad.compiler.nest.fuse import Group
from funcgrad.compiler.nest.layout import Uniform, Value
from funcgrad.compiler.nest.nodes import (
    Carry,
    Fold,
    Graph,
    Link,
    Loop,
    Nest,
    Pick,
    Point,
    Routine,
    Scan,
    all_nodes,
    values_read,
)
from funcgrad.lowering import Background


@dataclass
class Memory:
    """Numbers that a call needs to set up its memory.

    Attributes:
        n_objects: Inputs and outputs.
        n_slots: Words of the slot array.
        arena_slot: Slot of the arena's address.
        arena_bytes: Size of the arena.
        live_bytes: What lives in it at once, at most.
        arenas: Of the inner graphs of loops and branches: the slots of their addresses, and the
            values whose memory they are.
        states: Of calls that go on in the background: the slots of their words, which stay where
            they are, and the calls.
    """

    n_objects: int = 0
    n_slots: int = 0
    arena_slot: int = 0
    arena_bytes: int = 0
    live_bytes: int = 0
    arenas: list[tuple[int, Value]] = field(default_factory=list)
    states: list[tuple[int, Background]] = field(default_factory=list)


def mark_stored(graph: Graph, groups: Sequence[Group]) -> None:
    """Decide which values have memory: outputs, and those that another group reads."""
    home = {node: group for group in groups for node in group.nodes}
    for value in graph.outputs:
        value.is_stored = True
    for node, group in home.items():
        if not isinstance(node, Point | Fold | Pick | Scan):
            for value in node.outs:
                value.is_stored = True
        for x in node.operands:
            if isinstance(x, Uniform) or x.value.maker is None:
                continue
            if home[x.value.maker] is not group:
                x.value.is_stored = True


def place(graph: Graph, groups: Sequence[Group], jobs: Sequence[Sequence[Any]]) -> Memory:
    """Give every stored value of a program a slot and an offset.

    Args:
        graph: The graph.
        groups: Its groups, in the order in which they run.
        jobs: For every group, what runs it: kernels, nested sections, other nodes.
    """
    slot = FIRST_SLOT
    fresh = [value for value in graph.outputs if value.home is value]
    for value in (*graph.inputs, *fresh):
        value.slot = slot
        slot += 1
    for value in graph.outputs:
        value.slot = value.home.slot
    memory = Memory(n_objects=slot - FIRST_SLOT, arena_slot=slot)
    slot += 1
    for value in graph.constants:
        value.slot = slot
        slot += 1
    for node in all_nodes(graph):
        background = node.background if isinstance(node, Routine) else None
        if background is not None:
            _, state = node.outs
            state.slot, state.offset = OWN_SLOT, 8 * slot
            memory.states.append((slot, background))
            slot += math.prod(state.shape)
    memory.n_slots = slot
    memory.arena_bytes = _fill_arena(graph, groups, jobs, memory.arena_slot, memory)
    return memory


@dataclass
class Section:
    """An inner graph, arranged.

    Attributes:
        graph: The graph.
        groups: Its groups, in the order in which they run.
        jobs: For every group, what runs it.
    """

    graph: Graph
    groups: list[Group]
    jobs: list[list[Any]]


@dataclass
class Nested:
    """A loop or branch with its inner graphs arranged.

    Attributes:
        node: The node.
        sections: Its inner graphs.
        spares: For every carried value without a stack, memory for results that are not the last.
        spare_slots: For each of them, the slot of the memory that is not in use.
        arenas: Memory for the arena of every section.
        arena_slots: Their slots.
    """

    node: Nest
    sections: list[Section]
    spares: list[list[Value]] = field(default_factory=list)
    spare_slots: list[int] = field(default_factory=list)
    arena_slots: list[int] = field(default_factory=list)
    arenas: list[Value] = field(default_factory=list)

    @property
    def scratch(self) -> list[Value]:
        """All memory that it needs while it runs."""
        return [*self.arenas, *(v for row in self.spares for v in row)]

    # Its rows in the tables of the executor, when everything has its place.

    def sets(self) -> list[tuple[int, int, int]]:
        """Slots of the inner graphs, each from a slot of the outer one and so many bytes further.

        Made before the first iteration.
        """
        return [(slot, x.slot, x.offset + nbytes) for slot, x, nbytes in self._aims()]

    def _aims(self) -> Iterator[tuple[int, Value, int]]:
        """Slots of the inner graphs, each with the outer value that it is aimed at, and where."""
        for k in self.node.links:
            yield k.inner.slot, k.outer, _bytes_from(k)
        for slot, arena in zip(self.arena_slots, self.arenas, strict=True):
            yield slot, arena, 0
        for carry, spares, spare_slot in self._carries():
            initial, final = carry.initial, carry.final
            if carry.is_in_place:
                assert final is not None
                yield from ((v.slot, final, 0) for v in (carry.now, carry.next))
                continue
            yield carry.now.slot, initial.outer, _bytes_from(initial)
            if final is None:
                continue
            length = self.node.length if isinstance(self.node, Loop) else 1
            pair = spares if length is None else [*spares, final]
            if length is not None and length % 2:
                pair = pair[::-1]  # the last iteration writes the final value
            for slot, value in zip((carry.next.slot, spare_slot), pair, strict=True):
                yield slot, value, 0

    def turns(self) -> list[tuple[int, int, int]]:
        """Slots of carried values, of the next ones and of the memory that is not in use."""
        return [
            (c.now.slot, c.next.slot, c.next.slot if c.final is None else spare_slot)
            for c, _, spare_slot in self._carries()
            if not c.is_in_place
        ]

    def moves(self) -> list[tuple[int, int]]:
        """Slots that move on by so many bytes after each iteration."""
        return [
            (link.inner.slot, link.step * link.inner.dtype.itemsize)
            for link in self.node.links
            if link.step
        ]

    def _carries(self) -> Iterator[tuple[Carry, list[Value], int]]:
        """Carried values, with their spare memory and its slot, if they have any."""
        buffers = zip(self.spares, self.spare_slots, strict=True)
        for carry in self.node.carries if isinstance(self.node, Loop) else ():
            has_spares = carry.final is not None and not carry.is_in_place
            yield carry, *(next(buffers) if has_spares else ([], -1))


def _bytes_from(link: Link) -> int:
    """Bytes from the first element of the outer value to that of the inner one."""
    return link.offset * link.inner.dtype.itemsize


def _place_nested(nested: Nested, memory: Memory) -> None:
    """Slots of what the inner graphs see, and the sizes of their arenas."""

    def new_slot() -> int:
        memory.n_slots += 1
        return memory.n_slots - 1

    for link in nested.node.links:
        link.inner.slot = new_slot()
    if isinstance(nested.node, Loop):
        for carry in nested.node.carries:
            carry.now.slot = new_slot()
            if carry.final is None:
                continue
            carry.next.slot = new_slot()
            if carry.is_in_place:
                continue
            nested.spare_slots.append(new_slot())
            n_spares = 2 if nested.node.length is None else 1
            shape, dtype = carry.now.shape, carry.now.dtype
            nested.spares.append([Value(shape, dtype) for _ in range(n_spares)])
    for section in nested.sections:
        slot = new_slot()
        nbytes = _fill_arena(section.graph, section.groups, section.jobs, slot, memory)
        nested.arena_slots.append(slot)
        nested.arenas.append(Value((nbytes,), np.dtype(np.uint8)))
        memory.arenas.append((slot, nested.arenas[-1]))


def _fill_arena(
    graph: Graph,
    groups: Sequence[Group],
    jobs: Sequence[Sequence[Any]],
    arena_slot: int,
    memory: Memory,
) -> int:
    """Place what is stored in a graph, and the scratch memory of its jobs; the arena's size."""
    last: dict[Value, int] = {}
    for i, group in enumerate(groups):
        for node in group.nodes:
            last.update(dict.fromkeys((*node.outs, *values_read(node)), i))
    last.update((value, len(groups)) for value in graph.outputs)
    buffers: dict[Value, Buffer] = {}
    shared: list[Value] = []
    for i, group in enumerate(groups):
        for job in jobs[i]:
            if isinstance(job, Nested):
                _place_nested(job, memory)
        stored = [v for node in group.nodes for v in node.outs if v.is_stored and v.slot < 0]
        for value in stored:
            if value.home.slot < 0 and value.home not in buffers:
                buffers[value.home] = Buffer(value.home.nbytes, i, last[value.home])
        for value in (v for job in jobs[i] for v in getattr(job, "scratch", ())):
            buffers[value] = Buffer(value.nbytes, i, i)
        shared += stored
    size = packed([*buffers.values()])
    for value, buffer in buffers.items():
        value.slot, value.offset = arena_slot, Offset(buffer.offset, value, buffer.offset)
    for value in shared:
        first = 0 if value.part is None else value.part.offset * value.dtype.itemsize
        value.slot, value.offset = value.home.slot, value.home.offset + first
    memory.live_bytes = live_bytes(buffers.values())
    return size
