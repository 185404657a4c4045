"""Nodes as statements on variables: every element of every value is one.

Views, concatenations and stacks are only other names of the same variables. Among variables, a
place that is computed is found by comparing it with all. What comes from outside, and how it gets
into variables, is for those who use this: `scalarize` and `interchange`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

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
from funcgrad.compiler.nest.places import is_wrong, refuse, resolve, resolve_or_refuse, signed
from funcgrad.compiler.nest.source import Site, Source, neutral, written
from funcgrad.intrinsics import expression

Names = Mapping[int, str]
"""Variables that hold the elements of a value, by their place in its storage."""


# Formulas are made for vectors. Of few numbers libm's branches and tables give these sooner; of
# more, those that LLVM does not join to vectors here, or that are long.
_FEW = 4


def is_walking(node: Nest) -> bool:
    return any(link.step for link in node.links)


def places_of(view: View) -> list[int]:
    """Where the elements of a view are, in row-major order."""
    places = np.full(view.shape, view.offset)
    for axis, (n, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        places += (np.arange(n) * stride).reshape((n,) + (1,) * (len(view.shape) - axis - 1))
    found: list[int] = places.ravel().tolist()
    return found


def reach_of(view: View, node: Pick | Put) -> np.ndarray:
    """For every element of a view, where a lookup or deposit may lead from there: a row of places.

    One for each combination of its integers, of which the last one counts fastest.
    """
    places = np.array(places_of(view), np.int64)[:, None]
    for length, step in zip(node.lengths, node.steps, strict=True):
        further = places[:, :, None] + np.arange(length) * step
        places = further.reshape(len(places), places.shape[1] * length)
    return places


class Memory:
    """Which inner values are parts of arrays outside of the kernel."""

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
        self.source = Source()
        self.names: dict[Value, Names] = {}
        self.n_variables = 0
        self.memory = memory
        self.calls_libm = calls_libm
        self.pointers: dict[Value, tuple[str, int]] = {}
        self.scopes: dict[Value, int] = {}
        self.parts: dict[Value, tuple[Value, int]] = {}
        """Arrays in memory under inner names: those at the outermost level, and where."""

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
                elif isinstance(node, Checked):
                    self._number(node.length)
                elif isinstance(node, Pick | Put):
                    self._place_literals(node)
                elif isinstance(node, Nest):
                    self._literals(node.bodies)

    def _place_literals(self, node: Pick | Put) -> None:
        for length in node.lengths:
            self._number(length)
        if isinstance(node, Pick):
            for step in node.steps:
                self._number(step)
            if node.mode == "fill":
                self.source.literal(node.fill)

    def _number(self, n: int) -> str:
        """A variable that holds a size or a stride."""
        return self.source.literal(np.int64(n))

    def _neutral(self, node: Fold | Scan) -> str:
        return self.source.literal(neutral(node.form.init, node.out.dtype))

    def _elements(self, operand: Operand) -> list[str]:
        """Variables that hold an operand, in row-major order."""
        if isinstance(operand, Uniform):
            return [self.source.literal(operand.scalar)] * math.prod(operand.shape)
        names = self.names.get(operand.value, {})  # nothing is kept of empty arrays
        return [names[i] for i in places_of(operand)]

    # Memory.

    def _pointer(self, inner: Value, outer: Value, offset: int) -> None:
        name = f"p{len(self.pointers)}"
        scope = self.scopes.setdefault(outer.home, len(self.scopes) + 1)
        self.pointers[inner] = name, scope
        self.source.pointer(name, outer, offset)

    def _load(self, pointer: str, scope: int, places: Iterable[int]) -> Names:
        return {i: self._new(f"load({pointer}, {i}, {scope})") for i in sorted(places)}

    def _walk(self, links: Iterable[Link], t: str, needs: Mapping[Value, set[int]]) -> None:
        """Move on along the arrays that change from step to step, and read what is needed."""
        for link in (k for k in links if k.step and k.inner in self.pointers):
            pointer, scope = self.pointers[link.inner]
            step = self.source.word(link.step * link.inner.dtype.itemsize)
            self.source.add(f"{pointer}_{t} = offset({pointer}, {t} * {step})")
            self.pointers[link.inner] = f"{pointer}_{t}", scope
            if link.inner.maker is None:
                places = needs.get(link.inner, set())
                self.names[link.inner] = self._load(f"{pointer}_{t}", scope, places)

    def _store(self, value: Value, pointer: str, scope: int) -> None:
        for i, name in self.names[value].items():
            self.source.add(f"store({pointer}, {i}, {name}, {scope})")

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
            with self.source.repeated(t, holds):
                yield t
                self._advance(node.carries, variables)
                self.source.add(f"{holds} = {self._condition(node)}")
            return
        with self.source.iterations(t, node.length):
            yield t
            self._advance(node.carries, variables)

    def _condition(self, node: Loop) -> str:
        self._graph(node.bodies[0])
        return self.names[node.bodies[0].outputs[0]][0]

    def _advance(self, carries: Sequence[Carry], variables: Sequence[Names]) -> None:
        """All carried variables take their new values at once."""
        targets = [
            (name, self.names[carry.next][i])
            for carry, own in zip(carries, variables, strict=True)
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
        if expression(node.expr).is_copy and dtypes[0] == node.out.dtype:
            self.names[node.out] = dict(enumerate(rows[0]))
            return
        count = math.prod(node.out.shape)
        expr = node.expr
        if self.calls_libm:
            sooner = ("always", "few") if count <= _FEW else ("always",)
            expr = expression(expr).renamed(
                lambda x: f"libm_{x.name}" if x.libm in sooner else x.name
            )
        self.names[node.out] = {
            i: self._new(written(expr, [row[i] for row in rows], dtypes, node.out.dtype))
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

    def _folded(self, node: Fold | Scan, rows: Iterable[Sequence[str]]) -> list[str]:
        """All partial results, after what they begin with."""
        found = [self._neutral(node)]
        for names in rows:
            found.append(self._new(node.form.step.format(found[-1], *names)))
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
                total = self._new(f"radd({total}, {x} * {y})" if t else f"{x} * {y}")
            results.append(total)
        self.names[node.out] = dict(enumerate(results))

    def _copies(self, node: Copies) -> None:
        names: dict[int, str] = {}
        for operand, place in zip(node.operands, node.places, strict=True):
            names.update(zip(places_of(place), self._elements(operand), strict=True))
        self.names[node.out] = names

    # Places that are computed.

    def _checked(self, node: Checked) -> None:
        length = self._number(node.length)
        assert node.equation is not None
        known: dict[str, str] = {}
        names = self._elements(node.operands[0])
        for position, name in enumerate(names):
            if name not in known:
                at = self._new(signed(name, node.operands[0].dtype))
                site = self.source.word(Site(node.equation, node.number))
                with self.source.block(f"if {is_wrong(at, length)}:"):
                    refuse(self.source, site, at, str(position))
                known[name] = self._new(f"select({at} < 0, {at} + {length}, {at})")
        self.names[node.out] = {i: known[name] for i, name in enumerate(names)}

    def _resolved(
        self, node: Pick | Put, indices: Sequence[Operand]
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """For every index: the place along every axis, and whether there is one."""
        known: dict[tuple[int, str], tuple[str, str]] = {}
        tests: dict[tuple[str, ...], str] = {}
        for names in zip(*map(self._elements, indices), strict=True):
            found = []
            for k, name in enumerate(names):
                if (k, name) not in known:
                    known[k, name] = self._place(node, k, name, indices[k])
                found.append(known[k, name])
            places = tuple(place for place, _ in found)
            if places not in tests:
                asked = [f"({test})" for _, test in found if test]
                tests[places] = self._new(" & ".join(asked)) if asked else ""
            yield places, tests[places]

    def _place(self, node: Pick | Put, k: int, name: str, index: Operand) -> tuple[str, str]:
        """The place of one of its integers, and a test of whether it exists."""
        place, length = f"v{self.n_variables}", self._number(node.lengths[k])
        self.n_variables += 1
        site = node.sites[k] if node.sites else None
        if site is not None:
            number = self.source.word(site)
            resolve_or_refuse(self.source, place, name, index.dtype, length, number)
            return place, ""
        return place, resolve(self.source, node.mode, place, name, index.dtype, length)

    def _chosen(self, number: str, names: Sequence[str]) -> str:
        """The variable of a number; the first one where there is none."""
        found, *others = names
        for i, name in enumerate(others, 1):
            if name != found:
                found = self._new(f"select({number} == {i}, {name}, {found})")
        return found

    def _counted(self, places: Sequence[str], lengths: Sequence[int]) -> str:
        """The row-major number of a place."""
        number = "i64(0)"
        for place, n in zip(places, lengths, strict=True):
            number = f"({number}) * {n} + {place}"
        return self._new(number)

    def _pick(self, node: Pick) -> None:
        table, *indices = node.operands
        assert isinstance(table, View)
        results: dict[int, str] = {}
        firsts: dict[tuple[str, ...], str] = {}
        in_memory = self.memory.holds(table)
        rows = places_of(table) if in_memory else reach_of(table, node).tolist()
        for i, (row, (places, test)) in enumerate(
            zip(rows, self._resolved(node, indices), strict=True)
        ):
            if in_memory:
                if places not in firsts:
                    firsts[places] = self._address(table, node.steps, places, test)
                pointer, scope = self._memory_of(table)[:2]
                name = self._new(f"load({pointer}, {firsts[places]} + {row}, {scope})")
            else:
                if places not in firsts:
                    firsts[places] = self._counted(places, node.lengths)
                name = self._chosen(firsts[places], [self.names[table.value][k] for k in row])
            if test:
                name = self._new(f"select({test}, {name}, {self.source.literal(node.fill)})")
            results[i] = name
        self.names[node.out] = results

    def _memory_of(self, x: View) -> tuple[str, int, int]:
        """Pointer and scope of an array in memory, and its first element from there."""
        root, start = self.parts.get(x.value, (x.value, 0))
        return *self.pointers[root], start

    def _address(self, x: View, steps: Sequence[int], places: Sequence[str], test: str) -> str:
        """How many elements it is in memory to some places along axes; nothing is read outside."""
        terms = [str(self._memory_of(x)[2])]
        for place, step in zip(places, steps, strict=True):
            inside = self._new(f"select({test}, {place}, 0)") if test else place
            terms.append(f"{inside} * {self._number(step)}")
        return self._new(f"i64({' + '.join(terms)})")

    def _put(self, node: Put) -> None:
        x, updates, *indices = node.operands
        state, names = self._elements(x), self._elements(updates)
        flags: dict[tuple[tuple[str, ...], int], str] = {}
        numbers: dict[tuple[str, ...], str] = {}
        rows = reach_of(node.target, node).tolist()
        resolved = self._resolved(node, indices) if indices else [((), "")] * len(names)
        for name, row, (places, test) in zip(names, rows, resolved, strict=True):
            if places not in numbers:
                numbers[places] = self._counted(places, node.lengths) if places else ""
            for r, i in enumerate(row):
                value = self._new(node.step.format(state[i], name))
                if not places:
                    state[i] = value
                    continue
                if (places, r) not in flags:
                    is_here = f"({numbers[places]} == {r})" + (f" & {test}" if test else "")
                    flags[places, r] = self._new(is_here)
                state[i] = self._new(f"select({flags[places, r]}, {value}, {state[i]})")
        self.names[node.out] = dict(enumerate(state))

    def _argfold(self, node: ArgFold) -> None:
        (x,) = node.operands
        names = np.array(self._elements(x), object).reshape(x.shape)
        lines = np.moveaxis(names, node.form.axis, -1).reshape(-1, x.shape[node.form.axis])
        results = []
        for first, *rest in lines.tolist():
            best, place = first, self._new("i64(0)")
            for i, name in enumerate(rest, 1):
                is_new = self._new(node.form.better.format(name, best))
                best = self._new(f"select({is_new}, {name}, {best})")
                place = self._new(f"select({is_new}, {i}, {place})")
            results.append(place)
        self.names[node.out] = dict(enumerate(results))

    # Loops and branches inside.

    def _loop(self, node: Loop) -> None:
        if is_walking(node):
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
        # Strides of a walked element are those of the array that it is a part of.
        start = link.offset + t * link.step
        names = self.names.get(link.outer, {})
        root, before = self.parts.get(link.outer, (link.outer, 0))
        self.parts[link.inner] = root, before + start
        self.names[link.inner] = {i - start: name for i, name in names.items()}

    def _initial(self, link: Link, now: Value) -> Names:
        names = self.names.get(link.outer, {})
        return {i: names[link.offset + i] for i in range(math.prod(now.shape))}
