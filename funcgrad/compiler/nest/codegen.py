"""Kernels of points and folds: one group of nodes, one function of the kernel ABI.

The function depends on the structure of the group only: expressions, dtypes, how many loops remain
after neighbouring axes were merged, and which operands are contiguous or repeated. Sizes, strides,
places in memory and scalars are words of the step's arguments; so kernels serve all shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from funcgrad.compiler import machine
from funcgrad.compiler.loops.language import Expression, Variable, all_of, applied, call, equal
from funcgrad.compiler.nest.accumulate import Accumulator
from funcgrad.compiler.nest.arrange import is_on
from funcgrad.compiler.nest.columns import Columns
from funcgrad.compiler.nest.fuse import Group, LoopNest, scan_nest
from funcgrad.compiler.nest.gathers import Gathers, move_pointers
from funcgrad.compiler.nest.guards import Guards
from funcgrad.compiler.nest.iteration import Access, Loop, Span, Vectors
from funcgrad.compiler.nest.kernel import Kernel, KernelBuilder, neutral, value_of
from funcgrad.compiler.nest.layout import Operand, Shape, Uniform, Value, View
from funcgrad.compiler.nest.limits import Indices, Limits, first_of
from funcgrad.compiler.nest.nodes import Fold, Guard, Node, Pick, Point, Put, Scan, depth_first
from funcgrad.compiler.nest.plan import Plan, is_function
from funcgrad.compiler.nest.scatters import Scatters
from funcgrad.compiler.nest.tiles import TransposedTiles
from funcgrad.compiler.nest.unswitch import NOTHING, Part, Side, Split, Unswitcher
from funcgrad.compiler.nest.vectorize import can_overlap, has_rows_at_once, vectors_of

PAGE_BYTES = machine.CACHES[0][0] // machine.SHORT_AXIS
"""Bytes of a page, which are those of a way of the nearest cache."""

TILE = 2 * machine.VECTOR_BYTES // 4
"""Columns of a tile, in kernels that read some arrays along their rows and others across them: what
is read or written across stays in the nearest cache until all of a cache line was used."""


def generate(group: Group, held: int, is_inner: bool = False) -> Kernel:
    """The kernel of a group of points and folds; in a loop, one of few elements is in numbers.

    Args:
        group: The group.
        held: How many vectors the registers of the processor hold.
        is_inner: Whether it is in a loop.
    """
    is_small = is_inner and _is_in_numbers(group)
    nodes, nest = _as_needed(group.nodes), group.nest
    if nest is None and isinstance(nodes[0], Scan):
        nest = scan_nest(nodes[0])
    return _Writer(nodes, group.space, nest, is_small, is_inner, held).kernel


def _as_needed(nodes: list[Node]) -> list[Node]:
    """Nodes in the order in which results need them: names do not depend on that of a program."""
    made = {node.out: node for node in nodes}

    def needs(node: Node) -> Iterator[Node]:
        return (made[x.value] for x in node.operands if isinstance(x, View) and x.value in made)

    roots = [node for node in nodes if isinstance(node, Fold) or node.out.is_stored]
    return depth_first([*roots, *nodes], needs)


def _is_in_numbers(group: Group) -> bool:
    """Whether a variable for each element is best: vectors take a trip to memory before and after.

    Functions of several elements take longer than that trip, unless it is to elements elsewhere in
    what was just written.
    """
    n = math.prod(group.space)
    cost = sum(x.cost for x in group.nodes if isinstance(x, Point) and x.is_expensive)
    is_long = n > machine.FEW and n * cost >= machine.HEAVY * machine.SHORT_AXIS
    looks_around = any(isinstance(x, Guard) for x in group.nodes)
    return n <= machine.SEVERAL and (looks_around or not is_long)


def generate_copy(operand: Operand, place: View) -> Kernel:
    """The kernel that writes an operand to a part of a value."""
    node = Point((operand,), (Value(operand.shape, operand.dtype),), "{0}")
    node.out.is_stored, node.out.part = True, place
    return _Writer([node], operand.shape, None).kernel


class _Writer:
    """Writes one kernel."""

    def __init__(
        self,
        nodes: list[Node],
        shape: Shape,
        nest: LoopNest | None,
        is_small: bool = False,
        is_inner: bool = False,
        held: int = machine.VECTORS * machine.FEW,
    ) -> None:
        self.nodes = nodes
        self.is_small = is_small
        self.source = KernelBuilder()
        self.plan = plan = Plan(self.source, nodes, shape, nest, is_small, held)
        self.space = plan.space
        self.guards = Guards(plan)
        self.gathers = Gathers(plan)
        self.scatters = Scatters(plan)
        self.unswitcher = Unswitcher(plan, self.gathers.is_watched)
        self.tiles = TransposedTiles(plan)
        self.names: dict[Value, Expression] = {}
        self.loaded: dict[Access, Variable] = {}
        self.skipped = 1
        self.vectors = [
            None if is_small else vectors_of(plan, body, is_inner) for body in plan.bodies
        ]
        self.space.declare(plan.first, plan.only_written)
        move_pointers(plan)
        self.tiles.declare()
        self.guards.declare()
        self.gathers.declare()
        self.scatters.declare()
        self.splits: list[Split | None] = [None] * len(plan.bodies)
        self.is_in_order = nest is not None and nest.direction != 0
        if is_on("unswitch") and not self.is_in_order:
            self.splits = [*map(self.unswitcher.split, plan.bodies, self.vectors)]
        self.bounds = self._bounds_of_rows()
        self.rows_at_once = self._rows_at_once(is_inner)
        self._accumulators()
        with self.space.inside(plan.batch):
            self._batch()
        self.gathers.refuse()
        self.kernel = self._finished()

    def _rows_at_once(self, is_inner: bool) -> int:
        """How many rows are written at once: if several, their vectors are single registers."""
        found = [x for x, body in zip(self.vectors, self.plan.bodies, strict=True) if body]
        bodies, count = [*self.plan.bodies], machine.FEW
        if any(self.splits):
            # Parts of rows are short: an iteration has as many vectors of several as of one.
            (split,) = self.splits if len(self.splits) == 1 else (None,)
            if split is None or {*split.of_whole_rows} != {*self.bounds} or self._folds():
                return 1
            bodies, count = [split.inner.body], self.plan.at_once
        elif not self._folds():
            return 1
        if count == 1 or None in found or not has_rows_at_once(self.plan, bodies, is_inner):
            return 1
        self.vectors = [x and Vectors(x.narrow, x.narrow, is_split=True) for x in self.vectors]
        return count

    def _share_pages(self) -> bool:
        """Whether rows come from memory, several from a page: then one is read after the other.

        Processors fetch ahead what is read in order in a page, but not in several places of it. And
        while such short rows wait for their additions, the next ones have begun; the sums are the
        same ones. With four rows at once, sums of 160 columns took twice the time.
        """
        row, outer = self.plan.row[-1], self.plan.outer[-1]
        found = {access for node in self.nodes for access in self.plan.read(node)}
        streamed = [x.value for x in found if row.steps[x] and outer.steps[x]]
        sizes = [value.dtype.itemsize for value in streamed if value is not None]
        is_far = 2 * math.prod(self.plan.shape) * sum(sizes) > machine.CACHES[-1][0]
        return is_far and row.size * max(sizes) < PAGE_BYTES

    def _carried_by_rows(self) -> Iterator[str]:
        """The variables in which a fold keeps what it has of the rows before."""
        for fold in (self.folds[node] for node in self.crossing):
            yield from (f"{fold.name}s", f"{fold.name}e") if fold.is_accurate else (fold.name,)

    def _finished(self) -> Kernel:
        plan, first = self.plan, self.plan.first
        is_parallel = (
            bool(plan.batch) or not (self.crossing or self.columns.folds) or first is plan.row[0]
        )
        if self.is_in_order:
            is_parallel = bool(plan.outer)
        each = len(plan.accesses) + machine.FUNCTION * sum(map(is_function, self.nodes))
        return self.source.kernel(
            first.size if first is not None else 1,
            scratch=plan.scratch,
            is_parallel=first is not None and is_parallel,
            work=math.prod(plan.shape) * each // self.skipped,
            nodes=self.nodes,
            lanes=plan.lanes,
        )

    def _accumulators(self) -> None:
        plan = self.plan
        self.folds: dict[Node, Accumulator] = {
            node: Accumulator(self.source, node.form, node.out.dtype, f"a{i}")
            for i, node in enumerate(self.nodes)
            if isinstance(node, Fold) and plan.kind(node) != "column"
        }
        self.columns = Columns(plan)
        for body, vectors in zip(plan.bodies, self.vectors, strict=True):
            for node in body:
                if plan.kind(node) in ("inner", "total"):
                    self.folds[node].vectors = vectors
                    self.folds[node].is_accurate &= plan.row_vectors is None and not self.is_small
        # Results of vectorised loops, with their names in the remainder loop.
        self.carried = {fold.name: f"{fold.name}r" for fold in self.folds.values()}
        self.carried |= {worst: worst for worst, _ in self.gathers.watched.values()}
        # Folds that carry something from one outer iteration to the next.
        self.crossing = [n for n in self.folds if plan.kind(n) != "inner"]

    def _batch(self) -> None:
        """All of the space, or of one element of the batch."""
        if self.tiles.buffers:
            (body,) = self.plan.bodies
            self.tiles.write(
                lambda: self._hoist(body), partial(self._statements, Part(body, NOTHING))
            )
            return
        if self.plan.is_crossed:
            row = self.plan.row[-1]
            with self.source.blocks("t", 0, row.end, TILE) as (row.begin, row.end):
                self._rows()
            return
        self.columns.start()
        for node in self.crossing:
            self.folds[node].start()
        self._rows()
        self.columns.end()
        for node in self.crossing:
            self.space.store(self.plan.outs[node], self.folds[node].result())

    def _rows(self) -> None:
        """The outer loops, and what is in them."""
        if not (self.columns.blocks and self.plan.outer):
            with self.space.inside(self.plan.outer[:-1]):
                with self.space.inside(self.plan.outer[-1:], self._span_of_rows()):
                    self._row()
                if self.rows_at_once > 1 and not self._share_pages():
                    self.source.jam(self.rows_at_once, self._carried_by_rows())
            return
        *others, loop = self.plan.outer
        with (
            self.space.inside(others),
            self.source.blocks("rows", loop.begin, loop.end, machine.SUM_BLOCK) as block,
        ):
            with self.space.over(loop, block):
                self._row()
            self.columns.end_block()

    def _folds(self) -> bool:
        return any(isinstance(node, Fold) for node in self.nodes)

    def _bounds_of_rows(self) -> tuple[Side, ...]:
        """Bounds of the loop over rows, where nothing happens in rows beyond them."""
        nodes, (split, *others) = self.nodes, self.splits
        if split is None or others or self._folds():
            return ()
        # Indices of all rows are looked at, and numbers of all rows are stored.
        looked_up = (node for node in nodes if isinstance(node, Pick))
        of_rows = (node for node in nodes if not self.plan.is_full(node))
        if any(any(x.sites) for x in looked_up) or any(x in self.plan.outs for x in of_rows):
            return ()
        return tuple(side for side in split.of_whole_rows if side.loop is not None)

    def _span_of_rows(self) -> Span | None:
        """The part of the loop over rows within its bounds, if there are any."""
        if not self.bounds:
            return None
        self.loaded = {}
        return self._limits(self.plan.outer[-1], self.bounds).span()

    def _row(self) -> None:
        """One row, pass by pass."""
        self.loaded = {}
        if self.plan.row_vectors is not None:
            (loop,) = self.plan.row
            lanes = call("first_lanes", 0, loop.end, self.plan.row_vectors.wide)
            self.row_suffix = self.space.lanes(lanes)
        for stage in range(self.plan.n_stages):
            self._row_nodes(stage)
            if self.plan.bodies[stage]:
                self._full_nodes(self.plan.bodies[stage], self.vectors[stage])

    def _row_nodes(self, stage: int) -> None:
        """Numbers of rows that the stage can know before it passes over the row."""
        for node in self.nodes:
            if self.plan.is_full(node) or self.plan.stage[node] != stage:
                continue
            if isinstance(node, Fold):
                self.folds[node].add(self._name(node, self.loaded, node.operands[0]))
            else:
                self.guards.ask([node])
                self._element(node, self.loaded)

    def _full_nodes(self, body: list[Node], vectors: Vectors | None) -> None:
        """Emit one pass over the row."""
        inner = [n for n in body if self.plan.kind(n) == "inner"]
        blocked = [
            n for n in body if self.plan.kind(n) in ("inner", "total") and self.folds[n].is_accurate
        ]
        for node in blocked:
            self.folds[node].is_wide = not self._is_contiguous(body)
        for node in inner:
            self.folds[node].start()
        self._hoist(body)
        for node in body:
            if isinstance(node, Scan):
                start = self.source.literal(neutral(node.form.init, node.out.dtype))
                self.source.assign(self._running(node), start)
        with self.space.inside(self.plan.row[:-1]):
            self._row_loop(body, blocked, vectors)
        for node in inner:
            result = self.folds[node].result()
            result = self.source.assign(f"v{self.nodes.index(node)}", result)
            self.names[node.out] = result
            if node in self.plan.outs:
                self.space.store(self.plan.outs[node], result)

    def _is_contiguous(self, body: list[Node]) -> bool:
        """Whether a pass over the row reads neighbours one after the other."""
        full = filter(self.plan.is_full, body)
        steps = (self.plan.row[-1].steps[x] for node in full for x in self.plan.read(node))
        return all(0 <= step <= machine.SHORT_AXIS for step in steps)

    def _hoist(self, body: list[Node]) -> dict[Access, Variable]:
        """Loads that are the same all along the row, among what has been read for it."""
        self.gathers.of_rows = {}
        for node in body:
            # Operands of a guard need not exist at every index: they are not hoisted.
            for x in node.operands[1:] if isinstance(node, Guard) else node.elements:
                if isinstance(x, View) and x.value not in self.plan.made:
                    access = self.plan.operand_access(x, node)
                    if not any(loop.steps[access] for loop in self.plan.row):
                        self._name(node, self.loaded, x)
            if isinstance(node, Pick) and self.plan.is_full(node):
                self.gathers.hoist(node, partial(self._name, node, self.loaded))
        return self.loaded

    def _row_loop(self, body: list[Node], blocked: list[Node], vectors: Vectors | None) -> None:
        """The innermost loop of a pass; in blocks, where there are sums."""
        plan, space, loaded = self.plan, self.space, self.loaded
        if not plan.row:
            self._statements(Part(body, NOTHING), loaded)
            return
        if plan.row_vectors is not None:
            with space.in_lanes(self.row_suffix):
                self._statements(Part(body, NOTHING), loaded)
            return
        row = plan.row[-1]
        self.guards.choose(body)
        split = self.splits[plan.bodies.index(body)]
        sides = () if split is None or blocked else split.of_whole_rows
        rest = () if split is None else [side for side in split.sides if side not in sides]
        limits = self._limits(row, rest)
        tests = [limits.holds(x) for x in sides if x not in self.bounds]
        if not blocked:
            with self.source.when(all_of(tests)) if tests else nullcontext():
                self._pass(body, vectors, limits)
            return
        # Where elements do not lie beside each other, fewer lanes share the additions.
        is_dense = vectors is not None or max(row.steps.values()) <= 1
        length = machine.SUM_BLOCK if is_dense else machine.SUM_BLOCK // 8
        # As many additions as long vectors take.
        if row.size >= self.plan.least_row:
            length //= self.rows_at_once
        with self.source.blocks("block", row.begin, row.end, length) as block:
            for node in blocked:
                self.folds[node].start_block()
            for (first, last), part in self._parts(block, body, vectors, limits):
                with space.elements((first.at, last.at), vectors, self.carried):
                    self._statements(part, loaded)
            self._end_blocks(blocked, equal(block[0], row.begin))

    def _limits(self, loop: Loop, sides: Iterable[Side]) -> Limits:
        return Limits(self.plan, loop, sides, lambda node, x: self._name(node, self.loaded, x))

    def _pass(self, body: list[Node], vectors: Vectors | None, limits: Limits) -> None:
        """The innermost loop of a pass without blocks."""
        row = self.plan.row[-1]
        for indices, part in self._parts((row.begin, row.end), body, vectors, limits):
            if limits.stride is not None:
                self.skipped = machine.SEVERAL  # of so many elements one is computed, by a guess
                first, last = indices
                with self.space.strided(*limits.over_multiples((first.at, last.at))):
                    self._statements(part, self.loaded)
            else:
                self._elements(indices, part, vectors)

    def _end_blocks(self, blocked: list[Node], is_first: Expression) -> None:
        """Add the sums of a block, but the first ones, to those of the blocks before."""
        plan, sums = self.plan, {node: self.folds[node].over_lanes() for node in blocked}
        begun = [
            node
            for node in blocked
            if len(plan.row) == 1 and not (plan.outer and plan.kind(node) == "total")
        ]
        # Nobody waits for additions to 0 where there is one block.
        if begun:
            with self.source.when(is_first):
                for node in begun:
                    self.folds[node].begin_with(sums[node])
            with self.source.otherwise():
                for node in begun:
                    self.folds[node].add_block(sums[node])
        for node in blocked:
            if node not in begun:
                self.folds[node].add_block(sums[node])

    def _parts(
        self, span: Span, body: list[Node], vectors: Vectors | None, limits: Limits
    ) -> Iterator[tuple[Indices, Part]]:
        """The parts of a span, in their order, with what is to be computed in each."""
        indices, split = limits.whole_of(span), self.splits[self.plan.bodies.index(body)]
        if split is None:
            yield indices, Part(body, NOTHING)
            return
        inner = limits.within(indices, body, vectors)
        needed = first_of if split.is_same else lambda x: x
        if split.outer.body and limits.has_low:
            yield needed((indices[0], inner[0])), split.outer
        yield inner, split.inner
        if split.outer.body and limits.has_high:
            yield needed((inner[1], indices[1])), split.outer

    def _elements(self, indices: Indices, part: Part, vectors: Vectors | None) -> None:
        """The elements of a part of the innermost loop, which has no blocks."""
        row, span = self.plan.row[-1], (indices[0].at, indices[1].at)
        if self.plan.nest is not None and self.plan.nest.direction < 0:
            with self.space.over(row, span, is_reverse=True):
                self._statements(part, self.loaded)
            return
        # The edges of a core take two iterations, at least.
        is_brief = vectors is not None and row.size <= 2 * vectors.narrow
        if span == (row.begin, row.end) and vectors is not None:
            is_whole = can_overlap(self.plan, part.body, vectors.narrow)
            vectors = replace(vectors, is_overlapping=is_whole)
        if not is_brief and self.guards.has_core(part.body):
            write = partial(self._statements, part, self.loaded)
            if self.guards.is_within_core(indices[0].interval[0], indices[1].interval[1]):
                with self.space.elements(span, vectors, self.carried):
                    write("core")
                return
            self.guards.around_core(span, part.body, vectors, self.carried, write)
            return
        with self.space.elements(span, vectors, self.carried):
            self._statements(part, self.loaded)

    def _statements(self, part: Part, loaded: dict[Access, Variable], zone: str = "") -> None:
        """Statements of nodes at one index, or in lanes, of which not all may be there."""
        plan, names, body = self.plan, self.names, part.body
        if plan.row_vectors is not None:  # what an earlier pass has made is there
            body = [node for node in body if node.out not in names]
        else:
            loaded, self.names = dict(loaded), dict(names)
            self.gathers.begin()
        if zone != "core":
            self.guards.ask(body)
        self._load_overwritten(body, loaded)
        for node in body:
            if not isinstance(node, Fold):
                self._element(node, loaded, zone, part.chosen.get(node))
                continue
            value = self._name(node, loaded, node.operands[0])
            if plan.kind(node) == "column":
                self.columns.step(node, value)
            else:
                lanes = self.space.index_of(plan.row[-1]) if self.space.in_vectors else None
                self.folds[node].step(value, lanes)
        self.names = names

    def _load_overwritten(self, body: list[Node], loaded: dict[Access, Variable]) -> None:
        """Load what results replace before the first of them is stored."""
        written = {self.plan.outs[node] for node in body if node in self.plan.outs}
        for node in body:
            for x in node.elements:
                if isinstance(x, Uniform) or x.value in self.plan.made:
                    continue
                if self.plan.operand_access(x, node) in written:
                    self._name(node, loaded, x)

    def _element(
        self,
        node: Node,
        loaded: dict[Access, Variable],
        zone: str = "",
        chosen: Operand | None = None,
    ) -> None:
        """The result of a node, or the operand that it is, at one index, or at neighbours."""
        name = f"v{self.nodes.index(node)}{self.space.suffix}"

        of = partial(self._name, node, loaded)
        result: Expression
        if chosen is not None:
            result = self.source.assign(name, of(chosen))
        elif isinstance(node, Guard):
            result = self.guards.element(node, name, zone, loaded, of)
        elif isinstance(node, Pick):
            core = self.guards.core.box[self.plan.row[-1].axis] if zone == "core" else None
            result = self.gathers.element(node, name, of, core)
        elif isinstance(node, Put):
            self.scatters.take_in(node, of, self.gathers.of_elements)
            return
        elif isinstance(node, Scan):
            here = Variable(self._running(node))
            step = applied(node.form.step, [here, *map(of, node.operands)])
            result = self.source.assign(str(here), step)
        else:
            assert isinstance(node, Point)
            dtypes = [x.dtype for x in node.operands]
            value = value_of(node.expr, [*map(of, node.operands)], dtypes, node.out.dtype)
            result = self.source.assign(name, value)
        self.names[node.out] = result
        if node in self.plan.outs:
            self.space.store(self.plan.outs[node], result)

    def _running(self, node: Scan) -> str:
        """The variable that holds the last result of a running fold."""
        return f"a{self.nodes.index(node)}"

    def _name(self, node: Node, loaded: dict[Access, Variable], operand: Operand) -> Expression:
        """The variable that holds an operand, loaded if it is not there yet."""
        if isinstance(operand, Uniform):
            return self.source.literal(operand.scalar)
        if operand.value in self.names:
            return self.names[operand.value]
        if operand.value in self.plan.made:
            access = self.plan.outs[self.plan.made[operand.value]]
        else:
            access = self.plan.operand_access(operand, node)
        if access not in loaded:
            name = f"x{access.name[1:]}{self.space.suffix}"
            loaded[access] = self.source.assign(name, self.space.load(access))
        return loaded[access]
