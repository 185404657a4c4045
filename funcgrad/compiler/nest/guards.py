"""Guards of kernels: which of two operands an index reads (`nodes.Guard`).

If most indices of a space are on the same side of every guard, the innermost loop is divided: its
middle part, the *core*, asks nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from funcgrad.compiler.loops.language import (
    Expression,
    Variable,
    all_of,
    call,
    equal,
    of,
    sum_of,
)
from funcgrad.compiler.machine import RARE, SHORT_AXIS
from funcgrad.compiler.nest.access import Core, core_of
from funcgrad.compiler.nest.iteration import Access, Loop, Span, Vectors
from funcgrad.compiler.nest.layout import Box, Operand, Shape, View
from funcgrad.compiler.nest.nodes import Fold, Guard, Node
from funcgrad.compiler.nest.plan import Plan

Side = tuple[Loop, bool, Expression]
"""A bound of the index of a loop: whether it is the end of a range or its begin, and the bound."""


def _test(side: Side) -> Expression:
    """Whether the index of a loop is on the inner side of a bound."""
    loop, is_end, bound = side
    return loop.index < bound if is_end else loop.index >= bound


def core_of_most(plan: Plan, body: Iterable[Node]) -> Core | None:
    """The core of the guards among some nodes, if most indices are in it."""
    guards = asked(plan, body)
    if not guards or not all(map(plan.is_full, guards)):
        return None
    core = core_of(plan.shape, (guard.box for guard in guards), plan.row[-1].axis)
    return core if 2 * core.size > math.prod(plan.shape) else None


def asked(plan: Plan, body: Iterable[Node]) -> list[Guard]:
    """The guards among some nodes that ask something of single elements."""
    return [x for x in body if isinstance(x, Guard) and x not in plan.chosen]


class Row:
    """A row that is chosen among those of one array, by the indices of the loops around it.

    Attributes:
        access: The access to its elements.
    """

    def __init__(self, plan: Plan, name: str, rows: list[tuple[list[Side], Access]]) -> None:
        self.source, self.space, self.rows = plan.source, plan.space, rows
        first = rows[0][1]
        assert first.value is not None
        self.access = Access(first.value, first.strides)
        self.access.name, self.access.scope, self.access.loop = name, first.scope, first.loop
        for loop in self.space.loops:
            loop.steps[self.access] = loop.steps[first] if loop is first.loop else 0

    def choose(self) -> None:
        """Set the pointer to its first element."""
        *tested, (_, last) = self.rows
        found = self.space.start(last)
        for sides, access in reversed(tested):
            found = call("select", all_of([*map(_test, sides)]), self.space.start(access), found)
        self.access.pointers = [self.source.assign(self.access.name, found)]


class Guards:
    """The guards among the nodes of a kernel."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source = plan.source
        self.questions: dict[Node, str] = {}
        self.loads: Counter[str] = Counter()
        self.tests: dict[str, list[Side]] = {}

    def declare(self) -> None:
        """The questions whether an index lies in a box, for every guard."""
        known: dict[tuple[Shape, Box], str] = {}
        for node in asked(self.plan, self.plan.nodes):
            key = node.space, node.box
            if key not in known:
                known[key] = f"g{len(known)}"
                self.tests[known[key]] = list(self._sides(*key))
            self.questions[node] = known[key]
            self.loads[known[key]] += self._loaded(node) is not None
        self.rows = {
            node: Row(
                self.plan, f"row{k}", [([*self._sides(node.space, box)], x) for box, x in rows]
            )
            for k, (node, rows) in enumerate(self.plan.chosen.items())
        }

    def _loaded(self, node: Guard) -> Access | None:
        """The access by which a guard loads where indices lie in its box, if it does."""
        inside = node.operands[0]
        if not isinstance(inside, View) or inside.value in self.plan.made:
            return None
        return self.plan.operand_access(inside, node)

    def _sides(self, shape: Shape, box: Box, but: int | None = None) -> Iterator[Side]:
        """Questions whether indices lie in a box, one axis perhaps left out."""
        loops = {loop.axis: loop for loop in self.plan.space.loops}
        for axis, (a, b) in enumerate(box):
            if a > 0 and axis != but:
                yield loops[axis], False, self.source.word(a)
            if b < shape[axis] and axis != but:
                yield loops[axis], True, self.source.word(b)

    def choose(self, nodes: Iterable[Node]) -> None:
        """Choose the rows of some nodes, where all indices but that along the row are known."""
        for node in nodes:
            if isinstance(node, Guard) and node in self.rows:
                self.rows[node].choose()

    def ask(self, nodes: Iterable[Node]) -> None:
        """Answers to the questions of some nodes, under their names: flags, or ranges of lanes."""
        space = self.plan.space
        for name in dict.fromkeys(self.questions[node] for node in asked(self.plan, nodes)):
            sides = self.tests[name]
            answer = self._lanes(sides) if space.in_vectors else all_of([*map(_test, sides)])
            self.source.assign(f"{name}{space.suffix}", answer)

    def _lanes(self, sides: Iterable[Side]) -> Expression:
        """The lanes whose indices lie in a box, and none where others lie outside."""
        row = self.plan.row[-1]
        lanes: Expression = self.plan.space.index_of(row)
        tests: list[Expression] = []
        end: Expression = row.end
        for side in sides:
            loop, is_end, bound = side
            if loop is not row:
                tests.append(_test(side))
            elif is_end:
                end = bound
            else:
                lanes = call("lanes_from", lanes, bound)
        if tests:
            end = call("select", all_of(tests), end, 0)
        return lanes if end is row.end else call("lanes_before", lanes, end)

    # The core.

    def has_core(self, body: list[Node]) -> bool:
        """Whether most indices lie on the same side of every guard: then those need ask nothing."""
        found = core_of_most(self.plan, body)
        if found is None:
            return False
        self.core = found
        self.is_inside = dict(zip(asked(self.plan, body), found.is_inside, strict=True))
        return True

    def is_within_core(self, least: int, most: int) -> bool:
        """Whether all indices of the innermost loop from one on, and before another, are in it."""
        axis, core = self.plan.row[-1].axis, self.core
        if axis not in self.plan.guarded or self._tests_of_row(core.box):
            return False
        is_clear = all(most <= hole[axis][0] or hole[axis][1] <= least for hole in core.holes)
        return is_clear and core.box[axis][0] <= least and most <= core.box[axis][1]

    def around_core(
        self,
        span: Span,
        body: list[Node],
        vectors: Vectors | None,
        carried: Mapping[str, str],
        write: Callable[[str], None],
    ) -> None:
        """Split a span of the innermost loop into edge, core and edge; the core has no guards.

        In rows that lie outside, the core is empty. The function that emits statements gets the
        part, "edge" or "core".
        """
        source, space, total = self.source, self.plan.space, math.prod(self.plan.shape)
        loop, (begin, end), core = self.plan.row[-1], span, self.core
        is_guarded = loop.axis in self.plan.guarded
        a, b = core.box[loop.axis] if is_guarded else (0, loop.size)
        # Folds in lanes take no single elements.
        in_lanes = vectors is not None and any(isinstance(node, Fold) for node in body)
        is_cold = RARE * (total - core.size) <= total and not in_lanes
        # Vectors of LLVM's gather what is selected: they save less than it takes to make them.
        n_boxes = len({node.box for node in asked(self.plan, body)})
        is_cold |= vectors is None and n_boxes > SHORT_AXIS
        edges, each = None, 1
        if vectors is not None and not is_cold:
            edges, each = Vectors(vectors.narrow, vectors.narrow, vectors.has_rest), vectors.narrow
            vectors = replace(vectors, is_exact=True)
        if vectors is not None and self._shortest(a, b, each) < vectors.narrow:
            vectors = replace(vectors, is_overlapping=False)

        # Edges of whole vectors: those of the core then lie in whole cache lines.
        def up(place: int) -> Expression:
            return source.word(-(-place // each) * each)

        def down(place: int) -> Expression:
            return source.word(place if place == loop.size else place // each * each)

        low = source.assign("low", call("minimum", call("maximum", up(a), begin), end))
        high = source.assign("high", call("maximum", call("minimum", down(b), end), low))
        if tests := self._tests_of_row(core.box):
            test = all_of(tests)
            source.assign("low", call("select", test, low, begin))
            source.assign("high", call("select", test, high, begin))
        for hole in core.holes:
            tests = self._tests_of_row(hole)
            first, last = hole[loop.axis] if is_guarded else (0, loop.size)
            if first:
                name, side, cut = "high", high, call("minimum", high, down(first))
            else:
                name, side = "low", low
                cut = call("minimum", call("maximum", low, up(last)), end)
            source.assign(name, call("select", all_of(tests), cut, side) if tests else cut)
        if core.holes:
            source.assign("high", call("maximum", low, high))
        if edges is not None:  # what vectors leave of the core needs masks, as edges do
            source.assign("high", low + ((high - low) & -each))
        with source.loop("side", 0, 2) as side:
            left = source.assign("left", call("select", equal(side, 0), begin, high))
            right = source.assign("right", call("select", equal(side, 0), low, end))
            with space.elements((left, right), edges, carried, is_cold):
                write("edge")
            # In the order of the row, which the processor foresees.
            with source.when(equal(side, 0)), space.elements((low, high), vectors, carried):
                write("core")

    def _shortest(self, begin: int, end: int, each: int) -> int:
        """The fewest elements of the core in a row of which not all lie outside.

        Args:
            begin: The first index of the core along the row.
            end: The index behind its last one.
            each: The number of elements of a vector at the edges.
        """
        loop = self.plan.row[-1]
        for hole in self.core.holes:
            first, last = hole[loop.axis]
            if first:
                end = min(end, first)
            elif last < loop.size:
                begin = max(begin, last)
        return end - begin - 2 * each

    def _tests_of_row(self, box: Box) -> list[Expression]:
        """Questions whether a row of the innermost loop goes through a box."""
        return [*map(_test, self._sides(self.plan.shape, box, but=self.plan.row[-1].axis))]

    # Elements.

    def element(
        self,
        node: Guard,
        name: str,
        zone: str,
        loaded: Collection[Access],
        value_of: Callable[[Operand], Expression],
    ) -> Expression:
        """One operand or the other; the first one is read only where it is there.

        In the core of the index space nothing is asked. At its edge a load that is not wanted goes
        to an element that is there, which takes no branch; without a core there is one, because
        loads of neighbours can then be joined.
        """
        source, space = self.source, self.plan.space
        inside, outside = node.operands
        if node in self.rows:
            return source.assign(name, space.load(self.rows[node].access))
        if zone == "core":
            return value_of(inside if self.is_inside[node] else outside)
        question, access = self.questions[node], self._loaded(node)
        test, otherwise = Variable(question + space.suffix), value_of(outside)
        choose = "present" if space.in_vectors else "select"
        if access is None or access in loaded:
            value = call(choose, test, value_of(inside), otherwise)
        elif space.in_vectors and self.plan.row[-1].steps[access] == 1:
            pointer, _ = space.place(access)
            # Registers keep flags for a few loads; of many, most are of all lanes or of none.
            n_loads = self.loads[question] if self.loads.total() <= SHORT_AXIS else 1
            value = call("load_where", pointer, test, otherwise, n_loads, access.scope)
        elif zone == "edge" or space.in_vectors:
            value = call(choose, test, self._load_safely(access, node, test), otherwise)
        else:
            source.assign(name, otherwise)
            with source.when(test):
                return source.assign(name, space.load(access))
        return source.assign(name, value)

    def _load_safely(self, access: Access, node: Guard, test: Expression) -> Expression:
        """An element of a full guard's operand, or the first one in its box if it is not there."""
        space, size, row = self.plan.space, access.dtype.itemsize, self.plan.row[-1]
        if in_one_place := space.in_vectors and not row.steps[access]:
            # One for all lanes, which is there where the other indices allow it.
            tests = self._tests_of_row(node.box)
            if not tests:
                return space.load(access)
            test = all_of(tests)
        root = access.neighbour or access
        distance = (access.offset - root.offset) * size
        terms: list[Expression] = [of(distance)]
        for loop in (loop for loop in space.loops if loop.steps[access]):
            is_near = loop.is_near(access)
            step = loop.steps[access] * size if is_near else space.step(root, loop)
            is_lanes = loop is row and space.in_vectors and not in_one_place
            terms.append((call("i64", space.index_of(loop)) if is_lanes else loop.index) * step)
        box = zip(node.box, access.strides, strict=True)
        first = self.source.word(distance + sum(a * stride * size for (a, _), stride in box))
        if space.in_vectors and not in_one_place:
            moved = call("present", test, sum_of(terms), first)
            return call("load_each", Variable(root.name), moved, access.scope)
        moved = call("select", test, sum_of(terms), first)
        return call("load", call("offset", Variable(root.name), moved), 0, access.scope)
