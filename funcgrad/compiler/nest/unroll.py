"""Nodes as statements on variables: every element of every value is one.

Views, concatenations and stacks are only other names of the same variables. Among variables, a
place that is computed is found by comparing it with all. What comes from outside, and how it gets
into variables, is for those who use this: `scalarize` and `interchange`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from funcgrad.compiler.loops.language import (
    Expression,
    Number,
    Variable,
    all_of,
    applied,
    call,
    equal,
    sum_of,
)
from funcgrad.compiler.machine import FEW
from funcgrad.compiler.nest.kernel import KernelBuilder, Site, neutral, value_of
from funcgrad.compiler.nest.layout import Operand, Uniform, Value, View
from funcgrad.compiler.nest.nodes import (
    ArgFold,
    Branch,
    Carry,
    Checked,
    Copies,
    Fold,
    Graph,
    Link,
    Loop,
    Nest,
    Pick,
    Point,
    Product,
    Put,
    Scan,
)
from funcgrad.compiler.nest.places import is_wrong, refuse, resolve, signed
from funcgrad.intrinsics import expression

Names = Mapping[int, Variable]
"""Variables that hold the elements of a value, by their place in its storage."""


def is_scanning(node: Nest) -> bool:
    return any(link.step for link in node.links)


def places_of(view: View) -> list[int]:
    """Positions of the elements of a view, in row-major order."""
    places = np.full(view.shape, view.offset)
    for axis, (n, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        places += (np.arange(n) * stride).reshape((n,) + (1,) * (len(view.shape) - axis - 1))
    found: list[int] = places.ravel().tolist()
    return found


def reach_of(view: View, node: Pick | Put) -> np.ndarray:
    """For every element of a view, where a lookup or scatter may lead from there: a row of places.

    One for each combination of its integers, of which the last one counts fastest.
    """
    places = np.array(places_of(view), np.int64)[:, None]
    for length, step in zip(node.lengths, node.steps, strict=True):
        further = places[:, :, None] + np.arange(length) * step
        places = further.reshape(len(places), places.shape[1] * length)
    return places


class Memory:
    """Inner values that are parts of arrays outside of the kernel."""

    def __init__(self, node: Nest) -> None:
        self.carried: set[Value] = set()
        self.outer: dict[Value, Value] = {}
        self._collect(node)
        for link in node.links:
            self.outer.pop(link.inner, None)

    def _collect(self, node: Nest) -> None:
        if isinstance(node, Loop):
            self.carried.update(carry.now for carry in node.carries)
        self.outer.update((k.inner, k.outer) for k in node.links if k.inner.maker is None)
        for inner in (n for body in node.bodies for n in body.nodes if isinstance(n, Nest)):
            self._collect(inner)

    def holds(self, operand: Operand) -> bool:
        """Whether an operand can be read at a place that is not known before."""
        if isinstance(operand, Uniform):
            return False
        value = operand.value
        while value in self.outer:
            value = self.outer[value]
        return value.maker is None and value not in self.carried


class Unroller:
    """Writes statements for the nodes of graphs.

    Args:
        memory: What can be read at a place that is computed.
        calls_libm: Whether elementary functions are those of libm, which are sooner for single
            numbers, instead of formulas.
    """

    def __init__(self, memory: Memory, calls_libm: bool) -> None:
        self.source = KernelBuilder()
        self.names: dict[Value, Names] = {}
        self.n_variables = 0
        self.memory = memory
        self.calls_libm = calls_libm
        self.pointers: dict[Value, tuple[Variable, int]] = {}
        self.scopes: dict[Value, int] = {}
        self.parts: dict[Value, tuple[Value, int]] = {}
        """Arrays in memory under inner names: those at the outermost level, and where."""

    # Variables.

    def _new(self, value: Expression) -> Variable:
        self.n_variables += 1
        return self.source.assign(f"v{self.n_variables - 1}", value)

    def _number(self, n: int) -> Variable:
        """A variable that holds a size or a stride."""
        return self.source.literal(np.int64(n))

    def _neutral(self, node: Fold | Scan) -> Variable:
        return self.source.literal(neutral(node.form.init, node.out.dtype))

    def _elements(self, operand: Operand) -> list[Variable]:
        """Variables that hold an operand, in row-major order."""
        if isinstance(operand, Uniform):
            return [self.source.literal(operand.scalar)] * math.prod(operand.shape)
        names = self.names.get(operand.value, {})  # nothing is kept of empty arrays
        return [names[i] for i in places_of(operand)]

    # Memory.

    def _pointer(self, inner: Value, outer: Value, offset: int) -> None:
        scope = self.scopes.setdefault(outer.home, len(self.scopes) + 1)
        pointer = self.source.pointer(f"p{len(self.pointers)}", outer, offset)
        self.pointers[inner] = pointer, scope

    def _load(self, pointer: Variable, scope: int, places: Iterable[int]) -> Names:
        return {i: self._new(call("load", pointer, i, scope)) for i in sorted(places)}

    def _move_on(self, links: Iterable[Link], t: Variable, needs: Mapping[Value, set[int]]) -> None:
        """Move on along the arrays that change from step to step, and read what is needed."""
        for link in (k for k in links if k.step and k.inner in self.pointers):
            pointer, scope = self.pointers[link.inner]
            step = self.source.word(link.step * link.inner.dtype.itemsize)
            moved = self.source.assign(f"{pointer}_{t}", call("offset", pointer, t * step))
            self.pointers[link.inner] = moved, scope
            if link.inner.maker is None:
                places = needs.get(link.inner, set())
                self.names[link.inner] = self._load(moved, scope, places)

    def _store(self, value: Value, pointer: Variable, scope: int) -> None:
        for i, name in self.names[value].items():
            self.source.store(pointer, i, name, scope)

    # Control flow.

    @contextmanager
    def _iterations(self, node: Loop, starts: Sequence[Names]) -> Iterator[Variable]:
        """A loop: its carried variables are set before it and after each iteration."""
        variables = [{i: self._new(name) for i, name in start.items()} for start in starts]
        for carry, own in zip(node.carries, variables, strict=True):
            self.names[carry.now] = own
            if carry.final is not None:
                self.names[carry.final] = own
        t = f"t{self.n_variables}"
        if node.length is None:
            holds = self._new(self._condition(node))
            with self.source.repeated(t, holds) as index:
                yield index
                self._advance(node.carries, variables)
                self.source.assign(holds.name, self._condition(node))
            return
        with self.source.iterations(t, node.length) as index:
            yield index
            self._advance(node.carries, variables)

    def _condition(self, node: Loop) -> Variable:
        self._graph(node.bodies[0])
        return self.names[node.bodies[0].outputs[0]][0]

    def _advance(self, carries: Sequence[Carry], variables: Sequence[Names]) -> None:
        """All carried variables take their new values at once."""
        targets = [
            (name, self.names[carry.next][i])
            for carry, own in zip(carries, variables, strict=True)
            for i, name in own.items()
        ]
        carried = {target.name for target, _ in targets}
        targets = [(a, self._new(b) if b.name in carried else b) for a, b in targets]
        for target, value in targets:
            self.source.assign(target.name, value)

    def _arms(self, index: Variable, graphs: Sequence[Graph]) -> Iterator[Graph]:
        """Every graph, within the block that runs if it is chosen."""
        with ExitStack() as stack:
            for i, graph in enumerate(graphs[:-1]):
                with self.source.when(index <= 0 if i == 0 else equal(index, i)):
                    yield graph
                stack.enter_context(self.source.otherwise())
            yield graphs[-1]

    # Nodes.

    def _graph(self, graph: Graph) -> None:
        for node in graph.nodes:
            treat = getattr(self, f"_{type(node).__name__.lower()}")
            treat(node)

    def _point(self, node: Point) -> None:
        rows = [self._elements(x) for x in node.operands]
        dtypes = [x.dtype for x in node.operands]
        if expression(node.expr).is_copy and dtypes[0] == node.out.dtype:
            self.names[node.out] = dict(enumerate(rows[0]))
            return
        count = math.prod(node.out.shape)
        expr = node.expr
        if self.calls_libm:
            sooner = ("always", "few") if count <= FEW else ("always",)
            expr = expression(expr).renamed(
                lambda x: f"libm_{x.name}" if x.libm in sooner else x.name
            )
        self.names[node.out] = {
            i: self._new(value_of(expr, [row[i] for row in rows], dtypes, node.out.dtype))
            for i in range(count)
        }

    def _fold(self, node: Fold) -> None:
        axes = node.form.axes
        kept = [i for i in range(len(node.space)) if i not in axes]
        names = np.array(self._elements(node.operands[0]), object).reshape(node.space)
        length = math.prod(node.space[i] for i in axes)
        rows = names.transpose((*kept, *axes)).reshape(math.prod(node.out.shape), length)
        self.names[node.out] = {
            i: self._folded(node, zip(row, strict=True))[-1] for i, row in enumerate(rows.tolist())
        }

    def _folded(self, node: Fold | Scan, rows: Iterable[Sequence[Variable]]) -> list[Variable]:
        """All partial results, after what they begin with."""
        found = [self._neutral(node)]
        for names in rows:
            found.append(self._new(applied(node.form.step, [found[-1], *names])))
        return found

    def _scan(self, node: Scan) -> None:
        axis, step = node.form.axis, -1 if node.form.reverse else 1
        names = [np.array(self._elements(x), object).reshape(node.space) for x in node.operands]
        rows = np.moveaxis(np.stack(names, axis=-1), axis, -2)
        found = np.empty(rows.shape[:-1], object)
        for place in np.ndindex(*rows.shape[:-2]):
            found[place] = self._folded(node, rows[place][::step].tolist())[1:][::step]
        results = np.moveaxis(found, -1, axis)
        self.names[node.out] = dict(enumerate(results.ravel().tolist()))

    def _product(self, node: Product) -> None:
        batch, m, n, k = node.sizes
        a, b = (np.array(self._elements(x), object).reshape(x.shape) for x in node.operands)
        results = []
        for p, i, j in np.ndindex(batch, m, n):
            total = self.source.literal(node.out.dtype.type(0))
            for t in range(k):
                x, y = a[p, i, t], b[p, t, j]
                total = self._new(call("radd", total, x * y) if t else x * y)
            results.append(total)
        self.names[node.out] = dict(enumerate(results))

    def _copies(self, node: Copies) -> None:
        names: dict[int, Variable] = {}
        for operand, place in zip(node.operands, node.places, strict=True):
            names.update(zip(places_of(place), self._elements(operand), strict=True))
        self.names[node.out] = names

    # Places that are computed.

    def _checked(self, node: Checked) -> None:
        length = self._number(node.length)
        assert node.equation is not None
        known: dict[str, Variable] = {}
        elements = self._elements(node.operands[0])
        for position, x in enumerate(elements):
            if x.name not in known:
                at = self._new(signed(x, node.operands[0].dtype))
                site = self.source.word(Site(node.equation, node.number))
                with self.source.when(is_wrong(at, length)):
                    refuse(self.source, site, at, Number(position))
                known[x.name] = self._new(call("select", at < 0, at + length, at))
        self.names[node.out] = {i: known[x.name] for i, x in enumerate(elements)}

    def _resolved(
        self, node: Pick | Put, indices: Sequence[Operand]
    ) -> Iterator[tuple[tuple[str, ...], Variable | None]]:
        """For every index: the place along every axis, and whether there is one."""
        known: dict[tuple[int, str], tuple[str, Expression | None]] = {}
        tests: dict[tuple[str, ...], Variable | None] = {}
        for elements in zip(*map(self._elements, indices), strict=True):
            found = []
            for k, x in enumerate(elements):
                if (k, x.name) not in known:
                    known[k, x.name] = self._place(node, k, x, indices[k])
                found.append(known[k, x.name])
            places = tuple(place for place, _ in found)
            if places not in tests:
                asked = [test for _, test in found if test is not None]
                tests[places] = self._new(all_of(asked)) if asked else None
            yield places, tests[places]

    def _place(
        self, node: Pick | Put, k: int, x: Variable, index: Operand
    ) -> tuple[str, Expression | None]:
        """The variable of the place of one of its integers, and a test of whether it exists."""
        place, length = f"v{self.n_variables}", self._number(node.lengths[k])
        self.n_variables += 1
        site = node.sites[k] if node.sites else None
        number = None if site is None else self.source.word(site)
        return place, resolve(self.source, node.mode, place, x, index.dtype, length, number)

    def _chosen(self, number: Variable, choices: Sequence[Variable]) -> Variable:
        """The variable of a number; the first one where there is none."""
        found, *others = choices
        for i, x in enumerate(others, 1):
            if x.name != found.name:
                found = self._new(call("select", equal(number, i), x, found))
        return found

    def _counted(self, places: Sequence[str], lengths: Sequence[int]) -> Variable:
        """The row-major number of a place."""
        number: Expression = call("i64", 0)
        for place, n in zip(places, lengths, strict=True):
            number = number * n + Variable(place)
        return self._new(number)

    def _pick(self, node: Pick) -> None:
        table, *indices = node.operands
        assert isinstance(table, View)
        results: dict[int, Variable] = {}
        firsts: dict[tuple[str, ...], Variable] = {}
        in_memory = self.memory.holds(table)
        rows = places_of(table) if in_memory else reach_of(table, node).tolist()
        for i, (row, (places, test)) in enumerate(
            zip(rows, self._resolved(node, indices), strict=True)
        ):
            if in_memory:
                if places not in firsts:
                    firsts[places] = self._address(table, node.steps, places, test)
                pointer, scope = self._memory_of(table)[:2]
                x = self._new(call("load", pointer, firsts[places] + row, scope))
            else:
                if places not in firsts:
                    firsts[places] = self._counted(places, node.lengths)
                x = self._chosen(firsts[places], [self.names[table.value][k] for k in row])
            if test is not None:
                x = self._new(call("select", test, x, self.source.literal(node.fill)))
            results[i] = x
        self.names[node.out] = results

    def _memory_of(self, x: View) -> tuple[Variable, int, int]:
        """Pointer and scope of an array in memory, and its first element from there."""
        root, start = self.parts.get(x.value, (x.value, 0))
        return *self.pointers[root], start

    def _address(
        self, x: View, steps: Sequence[int], places: Sequence[str], test: Variable | None
    ) -> Variable:
        """The number of elements to some places along axes; nothing is read outside."""
        terms: list[Expression] = [Number(self._memory_of(x)[2])]
        for place, step in zip(map(Variable, places), steps, strict=True):
            inside = place if test is None else self._new(call("select", test, place, 0))
            terms.append(inside * self._number(step))
        return self._new(call("i64", sum_of(terms)))

    def _put(self, node: Put) -> None:
        x, updates, *indices = node.operands
        state, given = self._elements(x), self._elements(updates)
        flags: dict[tuple[tuple[str, ...], int], Variable] = {}
        numbers: dict[tuple[str, ...], Variable] = {}
        rows = reach_of(node.target, node).tolist()
        resolved = self._resolved(node, indices) if indices else [((), None)] * len(given)
        for update, row, (places, test) in zip(given, rows, resolved, strict=True):
            if places and places not in numbers:
                numbers[places] = self._counted(places, node.lengths)
            for r, i in enumerate(row):
                value = self._new(applied(node.step, [state[i], update]))
                if not places:
                    state[i] = value
                    continue
                if (places, r) not in flags:
                    is_here = equal(numbers[places], r)
                    flags[places, r] = self._new(is_here if test is None else is_here & test)
                state[i] = self._new(call("select", flags[places, r], value, state[i]))
        self.names[node.out] = dict(enumerate(state))

    def _argfold(self, node: ArgFold) -> None:
        (x,) = node.operands
        names = np.array(self._elements(x), object).reshape(x.shape)
        lines = np.moveaxis(names, node.form.axis, -1).reshape(-1, x.shape[node.form.axis])
        results = []
        for first, *rest in lines.tolist():
            best, place = first, self._new(call("i64", 0))
            for i, x_i in enumerate(rest, 1):
                is_new = self._new(applied(node.form.better, [x_i, best]))
                best = self._new(call("select", is_new, x_i, best))
                place = self._new(call("select", is_new, i, place))
            results.append(place)
        self.names[node.out] = dict(enumerate(results))

    # Loops and branches inside.

    def _loop(self, node: Loop) -> None:
        if is_scanning(node):
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
        stacked: dict[Value, dict[int, Variable]] = {}
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
        results: dict[Value, dict[int, Variable]] = {
            out: {i: Variable(f"r{self.n_variables}_{k}_{i}") for i in range(math.prod(out.shape))}
            for k, out in enumerate(node.outs)
        }
        self.n_variables += 1
        outer = {k.inner: k.outer for k in node.links}
        for graph in self._arms(self._elements(node.operands[0])[0], node.bodies):
            self._graph(graph)
            for value in graph.outputs:
                for i, x in self.names[value].items():
                    self.source.assign(results[outer[value]][i].name, x)
        self.names.update(results)

    def _alias(self, link: Link, t: int) -> None:
        """An inner value by the names of the outer one."""
        # Strides of a scanned element are those of the array that it is a part of.
        start = link.offset + t * link.step
        names = self.names.get(link.outer, {})
        root, before = self.parts.get(link.outer, (link.outer, 0))
        self.parts[link.inner] = root, before + start
        self.names[link.inner] = {i - start: name for i, name in names.items()}

    def _initial(self, link: Link, now: Value) -> Names:
        names = self.names.get(link.outer, {})
        return {i: names[link.offset + i] for i in range(math.prod(now.shape))}
