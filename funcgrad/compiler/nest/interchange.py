"""Loops whose steps treat many lanes alike: the lanes become the outer loop.

`vmap` of a loop over few numbers is a loop over arrays whose first axis is that of the lanes. Step
by step, every operation would be a pass over all lanes; but no lane needs another one. So the loops
are interchanged::

    for 64 lanes at a time:              (shared among threads)
        for all steps:
            what all lanes share         (times, counters)
            for each of these lanes: ... (unrolled over its elements, vectorised over the lanes)

What a lane carries from step to step stays in the first-level cache, element by element side by
side with the other lanes'. A loop that folds over its lanes, or whose length its values decide,
is left to others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace

from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.language import Expression, Number, Variable, call
from funcgrad.compiler.machine import LOOP_OPERATIONS, VECTOR_BYTES, VECTORS
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.nest.layout import Operand, Uniform, Value, View
from funcgrad.compiler.nest.nodes import (
    Carry,
    Copies,
    Fold,
    Graph,
    Link,
    Loop,
    Node,
    Point,
    Product,
    Scan,
)
from funcgrad.compiler.nest.scalarize import needs_of, node_cost
from funcgrad.compiler.nest.unroll import Memory, Names, Unroller, places_of

BLOCK = VECTORS * VECTOR_BYTES // 4
"""Lanes that go through the steps together."""

_LANE = Variable("l")
"""The number of a lane among them."""


@dataclass
class Lanes:
    """A loop, taken apart.

    Attributes:
        node: The loop.
        count: How many lanes.
        shared: Nodes that are computed once per step.
        each: Nodes of one lane.
        own: For every value of all lanes that the loop carries or makes, that of one lane.
        inputs: Values of one lane in memory, by the inner value and the distance of the lanes.
        cost: Statements of one step of one lane.
    """

    node: Loop
    count: int
    shared: list[Node] = field(default_factory=list)
    each: list[Node] = field(default_factory=list)
    own: dict[Value, Value] = field(default_factory=dict)
    inputs: dict[tuple[Value, int], Value] = field(default_factory=dict)
    cost: float = 0.0


def lanes_of(node: Loop) -> Lanes | None:
    """A loop taken apart by lanes, if that is possible."""
    shapes = [carry.now.shape for carry in node.carries]
    if node.length is None or not any(shapes):
        return None
    _, count = max((math.prod(shape), shape[0]) for shape in shapes if shape)
    try:
        found = _Splitter(Lanes(node, count)).lanes
    except _NotAlikeError:
        return None
    return found if found.cost <= LOOP_OPERATIONS else None


class _NotAlikeError(Exception):
    """One lane needs another one, or something that is not known here."""


class _Splitter:
    """Finds what belongs to one lane."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.carried = {carry.now for carry in lanes.node.carries}
        for carry in lanes.node.carries:
            if self._is_wide(carry.now):
                lanes.own[carry.now] = Value(carry.now.shape[1:], carry.now.dtype)
        for node in lanes.node.bodies[-1].nodes:
            self._place(node)
        for carry in lanes.node.carries:
            if (carry.now in lanes.own) != (carry.next in lanes.own):
                raise _NotAlikeError

    def _is_wide(self, value: Value) -> bool:
        return value.shape[:1] == (self.lanes.count,)

    def _place(self, node: Node) -> None:
        """Sort a node in, and count what it costs."""
        is_own = any(isinstance(x, View) and x.value in self.lanes.own for x in node.operands)
        if not isinstance(node, Point | Fold | Scan | Copies | Product):
            raise _NotAlikeError
        if not is_own and not any(map(self._is_wide, node.outs)):
            self.lanes.shared.append(node)
            self.lanes.cost += node_cost(node)
            return
        narrow = self._narrowed(node)
        self.lanes.own[node.out] = narrow.out
        self.lanes.each.append(narrow)
        self.lanes.cost += node_cost(narrow)

    def _narrowed(self, node: Node) -> Node:
        """A node of one lane."""
        if not self._is_wide(node.out):
            raise _NotAlikeError
        out = Value(node.out.shape[1:], node.out.dtype)
        match node:
            case Point():
                return Point(self._all(node.operands), (out,), node.expr)
            case Fold() if 0 not in node.form.axes:
                axes = tuple(axis - 1 for axis in node.form.axes)
                return Fold(self._all(node.operands), (out,), replace(node.form, axes=axes))
            case Scan() if node.form.axis:
                form = replace(node.form, axis=node.form.axis - 1)
                return Scan(self._all(node.operands), (out,), form)
            case Copies():
                size = math.prod(out.shape)
                places = tuple(self._within(out, size, place) for place in node.places)
                return Copies(self._all(node.operands), (out,), places)
            case Product():
                return self._product(node, out)
        raise _NotAlikeError

    def _all(self, operands: Iterable[Operand]) -> tuple[Operand, ...]:
        return tuple(map(self._operand, operands))

    def _operand(self, x: Operand) -> Operand:
        """An operand of one lane."""
        if x.shape[:1] != (self.lanes.count,):
            raise _NotAlikeError
        if isinstance(x, Uniform):
            return x.element(0)
        if x.value in self.lanes.own:
            return self._within(self.lanes.own[x.value], math.prod(x.value.shape[1:]), x)
        rest = x.element(0)
        return rest.of(self._input(x.value, x.strides[0])) if x.strides[0] else rest

    def _input(self, value: Value, step: int) -> Value:
        """A value in memory of which every lane reads elements of its own."""
        if value.maker is not None or value in self.carried:
            raise _NotAlikeError  # the same for all lanes, but not read alike
        return self.lanes.inputs.setdefault((value, step), Value((), value.dtype))

    def _within(self, own: Value, size: int, x: View) -> View:
        """A view of all lanes, whose first axis they are, as one of the value of one lane."""
        rest = x.element(0).of(own)
        places = places_of(rest)
        if x.shape[0] != self.lanes.count or x.strides[0] != size:
            raise _NotAlikeError
        if places and not 0 <= min(places) <= max(places) < size:
            raise _NotAlikeError
        return rest

    def _product(self, node: Product, out: Value) -> Product:
        """A product of one lane: of a stack of as many, or a row of the first matrix."""
        a, b = node.operands
        count = self.lanes.count
        if a.shape[:2] == (1, count) != (1, 1):
            a = a.permuted((1, 0, 2))
            b = b.walked((count, *b.shape[1:]), (0, *b.strides[1:]), b.offset)
        return Product(tuple(self._operand(x).as_stack() for x in (a, b)), (out,))


def generate_lanes(lanes: Lanes) -> Kernel:
    """The kernel of a loop taken apart."""
    writer = _LaneWriter(lanes)
    assert lanes.node.length is not None
    work = int(lanes.count * lanes.node.length * max(lanes.cost, 1))
    return writer.source.kernel(lanes.count, scratch=writer.scratch, is_parallel=True, work=work)


class _LaneWriter(Unroller):
    """Writes that kernel."""

    def __init__(self, lanes: Lanes) -> None:
        super().__init__(Memory(lanes.node), calls_libm=False)
        self.lanes = lanes
        self.node = lanes.node
        self.scratch: list[Value] = []
        self.links = {link.inner: link for link in self.node.links}
        body = Graph(nodes=[*lanes.shared, *lanes.each])
        self.needs = needs_of([body], self.memory)
        for value in self._given():
            self.links.setdefault(value, Link(value, value))  # a constant
        self._declare()
        self._blocks()

    # What comes from outside.

    def _given(self) -> Iterator[Value]:
        """Values that are read from memory, apart from those that are carried."""
        own = {*self.lanes.own.values(), *self.lanes.inputs.values()}
        carried = {carry.now for carry in self.node.carries}
        for value in (*self.needs, *(value for value, _ in self.lanes.inputs)):
            if value.maker is None and value not in own and value not in carried:
                yield value

    def _declare(self) -> None:
        """Pointers to all memory, and what stays the same for all lanes and steps."""
        source = self.source
        for known in self.links.values():
            self._pointer(known.inner, known.outer, known.offset)
        self.buffers: dict[Value, Variable] = {}
        for value, size in self._kept():
            memory = Value((size * BLOCK,), value.dtype)
            self.scratch.append(memory)
            self.buffers[value] = source.pointer(f"b{len(self.buffers)}", memory, 0)
        for carry in self.node.carries:
            self._pointer(carry.now, carry.initial.outer, carry.initial.offset)
            if carry.final is not None:
                self._pointer(carry.final, carry.final, 0)
        for value, places in self.needs.items():
            link = self.links.get(value)
            if link is not None and link.inner.maker is None and not link.step:
                self.names[value] = self._load(*self.pointers[value], places)

    def _kept(self) -> Iterator[tuple[Value, int]]:
        """Values of one lane that have buffers: what is carried, and what does not change."""
        for carry in self.node.carries:
            if carry.now in self.lanes.own:
                own = self.lanes.own[carry.now]
                yield own, math.prod(own.shape)
        for (value, _), own in self.lanes.inputs.items():
            if not self.links[value].step:
                yield own, len(self.needs[own])

    def _constants(self) -> list[tuple[tuple[Value, int], Value]]:
        return [(key, own) for key, own in self.lanes.inputs.items() if own in self.buffers]

    def _scope(self, own: Value) -> int:
        """Buffers overlap with nothing else."""
        return self.scopes.setdefault(own, 1 + len(self.scopes))

    # The loops.

    def _blocks(self) -> None:
        source = self.source
        with source.blocks("q", *source.span(), BLOCK) as (q, stop):
            source.assign("n", stop - q)
            with self._each_lane():
                for carry in self._carries(wide=True):
                    own = self.lanes.own[carry.now]
                    self._fill(own, range(math.prod(own.shape)), carry.now, math.prod(own.shape))
                for (value, step), own in self._constants():
                    self._fill(own, sorted(self.needs[own]), value, step)
            self._start_shared()
            self._steps()
            with self._each_lane():
                for carry in self._carries(wide=True):
                    if carry.final is not None:
                        own = self.lanes.own[carry.now]
                        self.names[own] = self._from_buffer(own, range(math.prod(own.shape)))
                        self._store_lane(own, carry.final, math.prod(own.shape))
            for carry in self._carries(wide=False):
                if carry.final is not None:
                    self._store(carry.now, *self.pointers[carry.final])

    def _carries(self, wide: bool) -> list[Carry]:
        return [c for c in self.node.carries if (c.now in self.lanes.own) == wide]

    @contextmanager
    def _each_lane(self) -> Iterator[None]:
        with self.source.loop("l", 0, Variable("n")):
            yield

    def _place_of(self, step: int, place: int) -> Expression:
        """Index of an element of lane ``q + l``; short distances are known to LLVM."""
        distance = Number(step) if abs(step) <= BLOCK else self._number(step)
        return (Variable("q") + _LANE) * distance + place

    def _fill(self, own: Value, places: Sequence[int], value: Value, step: int) -> None:
        for k, x in enumerate(self._of_lane(value, step, places).values()):
            self.source.store(self.buffers[own], k * BLOCK + _LANE, x, self._scope(own))

    def _of_lane(self, value: Value, step: int, places: Sequence[int]) -> Names:
        pointer, scope = self.pointers[value]
        return {i: self._new(call("load", pointer, self._place_of(step, i), scope)) for i in places}

    def _from_buffer(self, own: Value, places: Sequence[int]) -> Names:
        buffer, scope = self.buffers[own], self._scope(own)
        return {
            place: self._new(call("load", buffer, k * BLOCK + _LANE, scope))
            for k, place in enumerate(places)
        }

    def _store_lane(self, own: Value, target: Value, step: int) -> None:
        pointer, scope = self.pointers[target]
        for i, name in self.names[own].items():
            self.source.store(pointer, self._place_of(step, i), name, scope)

    def _start_shared(self) -> None:
        for carry in self._carries(wide=False):
            loaded = self._load(*self.pointers[carry.now], range(math.prod(carry.now.shape)))
            self.names[carry.now] = {i: self._new(name) for i, name in loaded.items()}

    def _steps(self) -> None:
        source = self.source
        with source.iterations("t", self.node.length or 0) as t:
            kept = dict(self.pointers)
            self._move_on(self.node.links, t, self.needs)
            self._graph(Graph(nodes=self.lanes.shared))
            with self._each_lane():
                self._step_of_lane()
            for link in self._results(wide=False):
                self._store(link.inner, *self.pointers[link.inner])
            self._advance(
                self._carries(wide=False),
                [self.names[c.now] for c in self._carries(wide=False)],
            )
            self.pointers = kept

    def _results(self, wide: bool) -> list[Link]:
        """Links of values that are stacked."""
        return [
            link
            for link in self.node.links
            if link.inner.maker is not None
            and link.inner.nbytes
            and (link.inner in self.lanes.own) == wide
        ]

    def _step_of_lane(self) -> None:
        """Everything is read before anything is written."""
        for carry in self._carries(wide=True):
            own = self.lanes.own[carry.now]
            self.names[own] = self._from_buffer(own, range(math.prod(own.shape)))
        for (value, step), own in self.lanes.inputs.items():
            places = sorted(self.needs[own])
            if own in self.buffers:
                self.names[own] = self._from_buffer(own, places)
            else:
                self.names[own] = self._of_lane(value, step, places)
        self._graph(Graph(nodes=self.lanes.each))
        for link in self._results(wide=True):
            own = self.lanes.own[link.inner]
            self._store_lane(own, link.inner, math.prod(own.shape))
        for carry in self._carries(wide=True):
            own, new = self.lanes.own[carry.now], self.lanes.own[carry.next]
            for i, name in self.names[new].items():
                self.source.store(self.buffers[own], i * BLOCK + _LANE, name, self._scope(own))
