"""Loops and branches over few numbers: one kernel in which every number is a variable.

Between kernels, a loop over arrays of a few elements would spend its time on everything but their
arithmetic. Here the body is unrolled over the elements. What comes from outside is read before the
loop, elements of scanned arrays in it; so are elements of larger arrays at places that the loop
computes. Larger bodies are left to `interchange` and to the executor (`pipeline`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from funcgrad.compiler.loops.language import call
from funcgrad.compiler.machine import FUNCTION, LOOP_OPERATIONS, SEVERAL
from funcgrad.compiler.nest.kernel import Kernel
from funcgrad.compiler.nest.layout import Operand, Value, View
from funcgrad.compiler.nest.nodes import (
    ArgFold,
    Branch,
    Checked,
    Copies,
    Fold,
    Graph,
    Link,
    Loop,
    Nest,
    Node,
    Pick,
    Point,
    Product,
    Put,
    Scan,
)
from funcgrad.compiler.nest.unroll import Memory, Names, Unroller, is_scanning, places_of, reach_of


def is_small(node: Nest) -> bool:
    """Whether one kernel of variables can run a loop or branch."""
    if isinstance(node, Loop) and any(c.now.nbytes > _limit(c.now) for c in node.carries):
        return False
    return sum(map(_cost, node.bodies)) <= LOOP_OPERATIONS


def generate_small(node: Nest) -> Kernel:
    """The kernel of a small loop or branch."""
    return _NestUnroller(node).source.kernel()


def _limit(value: Value) -> int:
    return SEVERAL * value.dtype.itemsize


def _cost(graph: Graph) -> float:
    """Statements of an inner graph, or infinity where it cannot be unrolled."""
    return sum(map(node_cost, graph.nodes))


def node_cost(node: Node) -> float:
    if any(value.nbytes > _limit(value) for value in node.outs):
        return math.inf
    if isinstance(node, Point):
        each = FUNCTION if node.is_expensive else 1
        return each * math.prod(node.out.shape)
    if isinstance(node, Fold | Scan):
        return math.prod(node.space)
    if isinstance(node, Product):
        return math.prod(node.sizes)
    if isinstance(node, Copies):
        return 0
    if isinstance(node, Pick | Put | Checked | ArgFold):
        return _places_cost(node)
    if isinstance(node, Branch):
        return sum(map(_cost, node.bodies))
    if isinstance(node, Loop):
        times = node.length if is_scanning(node) else 1
        assert times is not None  # only loops of known length scan
        return times * sum(map(_cost, node.bodies))
    return math.inf


def _places_cost(node: Pick | Put | Checked | ArgFold) -> int:
    """Statements that read or write at computed places, or look for them."""
    if isinstance(node, Checked | ArgFold):
        return 3 * math.prod(node.operands[0].shape)
    size = math.prod(node.out.shape if isinstance(node, Pick) else node.operands[1].shape)
    rows = 1 if _is_large(node) else math.prod(node.lengths)
    return (len(node.lengths) + 2 * rows) * size


def _is_large(node: Node) -> bool:
    """Whether the first operand is so large that it cannot be variables: it is read from memory."""
    x = node.operands[0]
    return isinstance(x, View) and x.value.nbytes > _limit(x.value)


class _NestUnroller(Unroller):
    """Writes the kernel of one loop or branch."""

    def __init__(self, node: Nest) -> None:
        super().__init__(Memory(node), calls_libm=True)
        self.inputs = {k.inner: k for k in node.links if k.inner.maker is None}
        self.results = [k for k in node.links if k.inner.maker is not None and k.inner.nbytes]
        needs = needs_of(node.bodies, self.memory)
        self._outside(node, needs)
        if isinstance(node, Loop):
            self._root_loop(node, needs)
        else:
            self._root_branch(node)

    # Memory.

    def _outside(self, node: Nest, needs: Mapping[Value, set[int]]) -> None:
        """Pointers to everything, and what stays the same read through them."""
        scanned = {k.inner for k in node.links if k.step}
        carried = {c.now for c in node.carries} if isinstance(node, Loop) else set()
        for value, places in needs.items():
            if value.maker is not None or value in carried:
                continue
            link = self.inputs.get(value, Link(value, value))
            self._pointer(value, link.outer, link.offset)
            if value not in scanned:
                self.names[value] = self._load(*self.pointers[value], places)
        for link in self.results:
            if link.inner not in self.pointers:
                self._pointer(link.inner, link.outer, link.offset)

    # The outermost loop or branch.

    def _root_loop(self, node: Loop, needs: Mapping[Value, set[int]]) -> None:
        starts: list[Names] = []
        for carry in node.carries:
            self._pointer(carry.now, carry.initial.outer, carry.initial.offset)
            if carry.final is not None:
                self._pointer(carry.final, carry.final, 0)
            size = math.prod(carry.now.shape)
            starts.append(self._load(*self.pointers[carry.now], range(size)))
        with self._iterations(node, starts) as t:
            self._move_on(node.links, t, needs)
            self._graph(node.bodies[-1])
            for link in self.results:
                self._store(link.inner, *self.pointers[link.inner])
        for carry in node.carries:
            if carry.final is not None:
                self._store(carry.final, *self.pointers[carry.final])

    def _root_branch(self, node: Nest) -> None:
        index = node.operands[0]
        assert isinstance(index, View)
        self._pointer(index.value, index.value, index.offset)
        chosen = self._new(call("load", self.pointers[index.value][0], 0, 0))
        for graph in self._arms(chosen, node.bodies):
            self._graph(graph)
            for link in self.results:
                if link.inner in graph.outputs:
                    self._store(link.inner, *self.pointers[link.inner])


def needs_of(graphs: Iterable[Graph], memory: Memory) -> dict[Value, set[int]]:
    """Elements of every value that are variables, in these graphs and inside of them.

    An array in memory that is only read at computed places has an entry without elements.
    """
    needs: dict[Value, set[int]] = {}
    for node in (node for graph in graphs for node in graph.nodes):
        if isinstance(node, Nest):
            _add_nested_needs(node, needs, memory)
            continue
        operands: Sequence[Operand] = node.operands
        if isinstance(node, Pick):
            table, *operands = operands
            assert isinstance(table, View)
            reach = () if memory.holds(table) else reach_of(table, node).ravel().tolist()
            needs.setdefault(table.value, set()).update(reach)
        for x in operands:
            if isinstance(x, View):
                needs.setdefault(x.value, set()).update(places_of(x))
    return needs


def _add_nested_needs(node: Nest, needs: dict[Value, set[int]], memory: Memory) -> None:
    inside = needs_of(node.bodies, memory)
    iterations = range(node.length) if isinstance(node, Loop) and node.length else range(1)
    for link in node.links:
        if link.inner.maker is not None:
            continue
        places = inside.pop(link.inner, set())
        for t in iterations if link.step else range(1):
            start = link.offset + t * link.step
            needs.setdefault(link.outer, set()).update(start + i for i in places)
    if isinstance(node, Loop):
        for carry in node.carries:
            inside.pop(carry.now, None)
            first = carry.initial.offset
            whole = range(first, first + math.prod(carry.now.shape))
            needs.setdefault(carry.initial.outer, set()).update(whole)
    if isinstance(node, Branch):
        index = node.operands[0]
        assert isinstance(index, View)
        needs.setdefault(index.value, set()).update(places_of(index))
    for value, places in inside.items():
        if value.maker is None:
            needs.setdefault(value, set()).update(places)
