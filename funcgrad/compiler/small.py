"""Loops and branches over few numbers: one kernel in which every number is a variable.

Between kernels, a loop over arrays of a few elements would spend its time on everything but their
arithmetic. Here the body is unrolled over the elements; views, concatenations and stacks are only
other names of the same variables. What comes from outside is read before the loop, elements of
walked arrays in it. Larger bodies are left to the executor (`pipeline`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from funcgrad.compiler.codegen import Kernel, Source, expression, is_expensive, neutral
from funcgrad.compiler.graph import (
    Branch,
    Copies,
    Fold,
    Graph,
    Link,
    Loop,
    Matrices,
    Nest,
    Node,
    Point,
    Product,
    Scan,
)
from funcgrad.compiler.layout import Operand, Uniform, Value, View

MAX_ELEMENTS = 16
"""Larger arrays are worth loops of their own."""

MAX_COST = 1200
"""Statements of the longest kernel; an elementary function counts as several."""

_FUNCTION_COST = 8

Names = Mapping[int, str]
"""Variables that hold the elements of a value, by their place in its storage."""


def is_small(node: Nest) -> bool:
    """Whether one kernel of variables can run a loop or branch."""
    if isinstance(node, Loop) and any(c.now.nbytes > _limit(c.now) for c in node.carries):
        return False
    return sum(map(_cost, node.bodies)) <= MAX_COST


def generate_small(node: Nest) -> Kernel:
    """That kernel."""
    writer = _Unroller(node)
    return Kernel(writer.source.text(), writer.source.words)


def _limit(value: Value) -> int:
    return MAX_ELEMENTS * value.dtype.itemsize


def _cost(graph: Graph) -> float:
    """Statements of an inner graph, or infinity where it cannot be unrolled."""
    return sum(map(_node_cost, graph.nodes))


def _node_cost(node: Node) -> float:
    if any(value.nbytes > _limit(value) for value in node.outs):
        return math.inf
    if isinstance(node, Point):
        each = _FUNCTION_COST if is_expensive(node.expr) else 1
        return each * math.prod(node.out.shape)
    if isinstance(node, Fold | Scan):
        return math.prod(node.space)
    if isinstance(node, Product):
        return math.prod(node.sizes)
    if isinstance(node, Copies):
        return 0
    if isinstance(node, Branch):
        return sum(map(_cost, node.bodies))
    if isinstance(node, Loop):
        times = node.length if _is_walking(node) else 1
        assert times is not None  # only loops of known length walk
        return times * sum(map(_cost, node.bodies))
    return math.inf


def _is_walking(node: Nest) -> bool:
    return any(link.step for link in node.links)


def _places(view: View) -> list[int]:
    """Where the elements of a view are, in row-major order."""
    places = np.full(view.shape, view.offset)
    for axis, (n, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        places += (np.arange(n) * stride).reshape((n,) + (1,) * (len(view.shape) - axis - 1))
    found: list[int] = places.ravel().tolist()
    return found


def _matrix_places(view: View, layout: Matrices, batch: int, row: int, column: int) -> int:
    if layout.is_transposed:
        row, column = column, row
    return view.offset + batch * layout.batch_stride + row * layout.row_stride + column


class _Unroller:
    """Writes the kernel of one loop or branch."""

    def __init__(self, node: Nest) -> None:
        self.source = Source()
        self.names: dict[Value, Names] = {}
        self.n_variables = 0
        self.inputs = {k.inner: k for k in node.links if k.inner.maker is None}
        self.results = [k for k in node.links if k.inner.maker is not None and k.inner.nbytes]
        self.pointers: dict[Value, tuple[str, int]] = {}
        self.scopes: dict[Value, int] = {}
        self._literals(node.bodies)
        needs = _needs(node.bodies)
        self._outside(node, needs)
        if isinstance(node, Loop):
            self._root_loop(node, needs)
        else:
            self._root_branch(node)

    # Variables.

    def _new(self, value: str) -> str:
        name = f"v{self.n_variables}"
        self.n_variables += 1
        self.source.add(f"{name} = {value}")
        return name

    def _literals(self, graphs: Iterable[Graph]) -> None:
        """Scalars are read first of all, where every block sees them."""
        for graph in graphs:
            for node in graph.nodes:
                for x in node.operands:
                    if isinstance(x, Uniform):
                        self.source.literal(x.scalar)
                if isinstance(node, Fold | Scan):
                    self._neutral(node)
                elif isinstance(node, Product):
                    self.source.literal(node.out.dtype.type(0))
                elif isinstance(node, Nest):
                    self._literals(node.bodies)

    def _neutral(self, node: Fold | Scan) -> str:
        return self.source.literal(neutral(node.form.init, node.out.dtype))

    def _elements(self, operand: Operand) -> list[str]:
        """Variables that hold an operand, in row-major order."""
        if isinstance(operand, Uniform):
            return [self.source.literal(operand.scalar)] * math.prod(operand.shape)
        names = self.names.get(operand.value, {})  # nothing is kept of empty arrays
        return [names[i] for i in _places(operand)]

    # Memory.

    def _pointer(self, inner: Value, outer: Value, offset: int) -> None:
        name = f"p{len(self.pointers)}"
        scope = self.scopes.setdefault(outer.home, len(self.scopes) + 1)
        self.pointers[inner] = name, scope
        self.source.pointer(name, outer, offset)

    def _load(self, pointer: str, scope: int, places: Iterable[int]) -> Names:
        return {i: self._new(f"load({pointer}, {i}, {scope})") for i in sorted(places)}

    def _store(self, value: Value, pointer: str, scope: int) -> None:
        for i, name in self.names[value].items():
            self.source.add(f"store({pointer}, {i}, {name}, {scope})")

    def _outside(self, node: Nest, needs: Mapping[Value, set[int]]) -> None:
        """Pointers to everything, and what stays the same read through them."""
        walked = {k.inner for k in node.links if k.step}
        carried = {c.now for c in node.carries} if isinstance(node, Loop) else set()
        for value, places in needs.items():
            if value.maker is not None or value in carried:
                continue
            link = self.inputs.get(value, Link(value, value))
            self._pointer(value, link.outer, link.offset)
            if value not in walked:
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
            for link in (k for k in node.links if k.step and k.inner in self.pointers):
                pointer, scope = self.pointers[link.inner]
                step = self.source.word(link.step * link.inner.dtype.itemsize)
                self.source.add(f"{pointer}_{t} = offset({pointer}, {t} * {step})")
                self.pointers[link.inner] = f"{pointer}_{t}", scope
                if link.inner.maker is None:
                    places = needs.get(link.inner, set())
                    self.names[link.inner] = self._load(f"{pointer}_{t}", scope, places)
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
        chosen = self._new(f"load({self.pointers[index.value][0]}, 0, 0)")
        for graph in self._arms(chosen, node.bodies):
            self._graph(graph)
            for link in self.results:
                if link.inner in graph.outputs:
                    self._store(link.inner, *self.pointers[link.inner])

    # Control flow.

    @contextmanager
    def _iterations(self, node: Loop, starts: Sequence[Names]) -> Iterator[str]:
        """A loop: its carried variables are set before it and after each iteration."""
        variables = [{i: self._new(name) for i, name in start.items()} for start in starts]
        for carry, own in zip(node.carries, variables, strict=True):
            self.names[carry.now] = own
            if carry.final is not None:
                self.names[carry.final] = own
        t = f"t{self.n_variables}"
        if node.length is None:
            holds = self._new(self._condition(node))
            with self.source.block(f"while {holds}:"):
                yield t
                self._advance(node, variables)
                self.source.add(f"{holds} = {self._condition(node)}")
            return
        with self.source.block(f"for {t} in range({self.source.word(node.length)}):"):
            yield t
            self._advance(node, variables)

    def _condition(self, node: Loop) -> str:
        self._graph(node.bodies[0])
        return self.names[node.bodies[0].outputs[0]][0]

    def _advance(self, node: Loop, variables: Sequence[Names]) -> None:
        """All carried variables take their new values at once."""
        targets = [
            (name, self.names[carry.next][i])
            for carry, own in zip(node.carries, variables, strict=True)
            for i, name in own.items()
        ]
        carried = {target for target, _ in targets}
        targets = [(a, self._new(b) if b in carried else b) for a, b in targets]
        for target, value in targets:
            self.source.add(f"{target} = {value}")

    def _arms(self, index: str, graphs: Sequence[Graph]) -> Iterator[Graph]:
        """Every graph, within the block that runs if it is chosen."""
        for i, graph in enumerate(graphs[:-1]):
            test = f"{index} <= 0" if i == 0 else f"{index} == {i}"
            with self.source.block(f"if {test}:"):
                yield graph
            self.source.add("else:")
            self.source.depth += 1
        yield graphs[-1]
        self.source.depth -= len(graphs) - 1

    # Nodes.

    def _graph(self, graph: Graph) -> None:
        for node in graph.nodes:
            treat = getattr(self, f"_{type(node).__name__.lower()}")
            treat(node)

    def _point(self, node: Point) -> None:
        rows = [self._elements(x) for x in node.operands]
        dtypes = [x.dtype for x in node.operands]
        if node.expr == "{0}" and dtypes[0] == node.out.dtype:
            self.names[node.out] = dict(enumerate(rows[0]))
            return
        self.names[node.out] = {
            i: self._new(expression(node.expr, [row[i] for row in rows], dtypes, node.out.dtype))
            for i in range(math.prod(node.out.shape))
        }

    def _fold(self, node: Fold) -> None:
        axes = node.form.axes
        kept = [i for i in range(len(node.space)) if i not in axes]
        names = np.array(self._elements(node.operands[0]), object).reshape(node.space)
        length = math.prod(node.space[i] for i in axes)
        rows = names.transpose((*kept, *axes)).reshape(math.prod(node.out.shape), length)
        start = self._neutral(node)
        self.names[node.out] = {
            i: self._folded(node, row, start)[-1] for i, row in enumerate(rows.tolist())
        }

    def _folded(self, node: Fold | Scan, row: Sequence[str], start: str) -> list[str]:
        """All partial results."""
        found = [start]
        for name in row:
            found.append(self._new(node.form.step.format(found[-1], name)))
        return found

    def _scan(self, node: Scan) -> None:
        axis = node.form.axis
        names = np.array(self._elements(node.operands[0]), object).reshape(node.space)
        rows = np.moveaxis(names, axis, -1)
        found = np.empty_like(rows)
        for place in np.ndindex(*rows.shape[:-1]):
            row = rows[place][::-1] if node.form.reverse else rows[place]
            partial = self._folded(node, row.tolist(), self._neutral(node))[1:]
            found[place] = partial[::-1] if node.form.reverse else partial
        results = np.moveaxis(found, -1, axis)
        self.names[node.out] = dict(enumerate(results.ravel().tolist()))

    def _product(self, node: Product) -> None:
        batch, m, n, k = node.sizes
        a, b = node.operands
        assert isinstance(a, View)
        assert isinstance(b, View)
        results = []
        for index in np.ndindex(batch, m, n):
            total = self.source.literal(node.out.dtype.type(0))
            for j in range(k):
                x = self.names[a.value][_matrix_places(a, node.layouts[0], index[0], index[1], j)]
                y = self.names[b.value][_matrix_places(b, node.layouts[1], index[0], j, index[2])]
                total = self._new(f"radd({total}, {x} * {y})" if j else f"{x} * {y}")
            results.append(total)
        self.names[node.out] = dict(enumerate(results))

    def _copies(self, node: Copies) -> None:
        names: dict[int, str] = {}
        for operand, place in zip(node.operands, node.places, strict=True):
            names.update(zip(_places(place), self._elements(operand), strict=True))
        self.names[node.out] = names

    def _loop(self, node: Loop) -> None:
        if _is_walking(node):
            self._unrolled(node)
            return
        for link in node.links:
            self._alias(link, 0)
        starts = [self._initial(c.initial, c.now) for c in node.carries]
        with self._iterations(node, starts):
            self._graph(node.bodies[-1])

    def _unrolled(self, node: Loop) -> None:
        """A loop along arrays that are variables: one iteration after the other."""
        assert node.length is not None
        state = [self._initial(c.initial, c.now) for c in node.carries]
        stacked: dict[Value, dict[int, str]] = {}
        for t in range(node.length):
            for carry, names in zip(node.carries, state, strict=True):
                self.names[carry.now] = names
            for link in node.links:
                if link.inner.maker is None:
                    self._alias(link, t)
            self._graph(node.bodies[-1])
            state = [self.names[c.next] for c in node.carries]
            for link in node.links:
                if link.inner.maker is not None:
                    start = link.offset + t * link.step
                    stack = stacked.setdefault(link.outer, {})
                    stack.update((start + i, x) for i, x in self.names[link.inner].items())
        for carry, names in zip(node.carries, state, strict=True):
            if carry.final is not None:
                self.names[carry.final] = names
        self.names.update(stacked)

    def _branch(self, node: Branch) -> None:
        for link in node.links:
            if link.inner.maker is None:
                self._alias(link, 0)
        results: dict[Value, dict[int, str]] = {
            out: {i: f"r{self.n_variables}_{k}_{i}" for i in range(math.prod(out.shape))}
            for k, out in enumerate(node.outs)
        }
        self.n_variables += 1
        outer = {k.inner: k.outer for k in node.links}
        for graph in self._arms(self._elements(node.operands[0])[0], node.bodies):
            self._graph(graph)
            for value in graph.outputs:
                for i, name in self.names[value].items():
                    self.source.add(f"{results[outer[value]][i]} = {name}")
        self.names.update(results)

    def _alias(self, link: Link, t: int) -> None:
        """An inner value by the names of the outer one."""
        start = link.offset + t * link.step
        size = math.prod(link.inner.shape)
        names = self.names.get(link.outer, {})
        if link.step:
            # Strides of a walked element are those of the array that it is a part of.
            self.names[link.inner] = {i - start: name for i, name in names.items()}
        else:
            self.names[link.inner] = {
                i: names[start + i] for i in range(size) if start + i in names
            }

    def _initial(self, link: Link, now: Value) -> Names:
        names = self.names.get(link.outer, {})
        return {i: names[link.offset + i] for i in range(math.prod(now.shape))}


def _needs(graphs: Iterable[Graph]) -> dict[Value, set[int]]:
    """Which elements of every value are read, in these graphs and inside of them."""
    needs: dict[Value, set[int]] = {}
    for node in (node for graph in graphs for node in graph.nodes):
        if isinstance(node, Nest):
            _add_nested_needs(node, needs)
            continue
        for x in node.operands:
            if isinstance(x, View):
                needs.setdefault(x.value, set()).update(_places(x))
    return needs


def _add_nested_needs(node: Nest, needs: dict[Value, set[int]]) -> None:
    inside = _needs(node.bodies)
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
        needs.setdefault(index.value, set()).update(_places(index))
    for value, places in inside.items():
        if value.maker is None:
            needs.setdefault(value, set()).update(places)
