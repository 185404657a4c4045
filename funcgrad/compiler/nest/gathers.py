"""Lookups of kernels: elements at places that are computed (`nodes.Pick`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from funcgrad.compiler.loops.language import Expression, Number, Variable, all_of, call, sum_of
from funcgrad.compiler.machine import VECTOR_BYTES
from funcgrad.compiler.nest.bounds import run_of
from funcgrad.compiler.nest.iteration import Access
from funcgrad.compiler.nest.kernel import Length
from funcgrad.compiler.nest.layout import Operand, Value, View
from funcgrad.compiler.nest.lookups import known_numbers
from funcgrad.compiler.nest.nodes import Pick, Site
from funcgrad.compiler.nest.places import refuse_worst, resolve, watch
from funcgrad.compiler.nest.plan import Plan

Terms = list[Expression]
Test = Expression | None


def is_chosen(plan: Plan, node: Pick) -> bool:
    """Whether a lookup chooses among elements of a table that a vector holds all of.

    A choice for every element but one takes less time than loads of all lanes.
    """
    if node.mode not in ("raise", "place") or len(node.lengths) != 1 or not plan.is_full(node):
        return False
    table, index = node.operands
    width, (length,) = max(table.dtype.itemsize, index.dtype.itemsize), node.lengths
    if not plan.row or not 1 < length <= VECTOR_BYTES // width or 4 * length > plan.row[-1].size:
        return False
    is_number = table.dtype.kind in "biuf" and index.dtype.kind in "iu"
    return is_number and plan.is_fixed(node, table) and not plan.is_fixed(node, index)


class Gathers:
    """The lookups among the nodes of a kernel."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source = plan.source
        self.sites: dict[Site, Expression] = {}
        self.watched: dict[Site, tuple[str, Variable]] = {}
        self.placed: dict[tuple[Pick, int], Test] = {}
        self.steps: dict[tuple[Pick, int], Variable] = {}
        self.of_rows: dict[tuple[Operand, int], Variable] = {}
        self.tables: dict[Pick, list[Variable]] = {}
        self.of_elements: dict[tuple[Operand, int], Variable] = {}

    def declare(self) -> None:
        """The lengths of axes along which places are computed, and bytes from place to place.

        Lookups in one array share the latter, so that processors multiply and keep them once.
        """
        shared: dict[tuple[Value, int, int], Variable] = {}
        for i, node in enumerate(self.plan.nodes):
            if not isinstance(node, Pick):
                continue
            table = node.operands[0]
            assert isinstance(table, View)
            for k, (length, step) in enumerate(zip(node.lengths, node.steps, strict=True)):
                self.source.assign(f"m{i}_{k}", self.source.word(Length(length)))
                if step != 1:
                    nbytes = step * node.out.dtype.itemsize
                    key = table.value, k, nbytes
                    if key not in shared:
                        steps = self.source.step(nbytes, node.out.dtype.itemsize)
                        shared[key] = self.source.assign(f"d{i}_{k}", steps)
                    self.steps[node, k] = shared[key]
            for k, site in enumerate(node.sites):
                if site is None or site in self.sites:
                    continue
                self.sites[site] = self.source.word(site)
                if not self.plan.is_fixed(node, node.operands[k + 1]):
                    self.watched[site] = f"w{len(self.watched)}", Variable(f"m{i}_{k}")
                    watch(self.source, self.watched[site][0], node.operands[k + 1].dtype)

    def is_watched(self, node: Pick) -> bool:
        """Whether some of its indices are looked at wherever it is computed."""
        return any(site in self.watched for site in node.sites)

    def refuse(self) -> None:
        """End the kernel, behind its loops, if an index was wrong."""
        for site, (worst, bound) in self.watched.items():
            refuse_worst(self.source, worst, bound, self.sites[site])

    def hoist(self, node: Pick, value_of: Callable[[Operand], Expression]) -> None:
        """Compute places that are the same all along the row."""
        for k, x in enumerate(node.operands[1:]):
            if self.plan.is_fixed(node, x):
                self.placed[node, k] = self._resolve(node, k, value_of(x), is_once=True)
        if is_chosen(self.plan, node):
            self._load_table(node)

    def _load_table(self, node: Pick) -> None:
        """Have all elements of a table in variables."""
        (table, _), (length,), (step,) = node.operands, node.lengths, node.steps
        assert isinstance(table, View)
        access, number = self.plan.operand_access(table, node), self.plan.nodes.index(node)
        start = self.plan.space.start(access)
        nbytes: Expression | int = 0 if step == 1 else self.steps[node, 0]
        self.tables[node] = [
            self.source.assign(
                f"t{number}_{i}",
                call("load", start, i, access.scope)
                if step == 1
                else call("load", call("offset", start, nbytes * i), 0, access.scope),
            )
            for i in range(length)
        ]

    def begin(self) -> None:
        """Forget the places of elements: statements for others begin."""
        self.of_elements = {}

    def element(
        self,
        node: Pick,
        name: str,
        value_of: Callable[[Operand], Expression],
        core: tuple[int, int] | None,
    ) -> Expression:
        """The element at a place, or those of lanes; in the core of a row, its range is given."""
        source, space, number = self.source, self.plan.space, self.plan.nodes.index(node)
        table, *indices = node.operands
        assert isinstance(table, View)
        tests: Terms = []
        near: Terms = []
        far: Terms = []
        for k, (operand, step) in enumerate(zip(indices, node.steps, strict=True)):
            place: Expression = Variable(f"v{number}k{k}")
            counted = None if core is None else self._counted(node, operand, *core)
            if counted is not None:
                place, test = counted, None
            elif (node, k) in self.placed:
                test = self.placed[node, k]
            else:
                test = self._resolve(node, k, value_of(operand))
            tests += [] if test is None else [test]
            if step == 1:
                near.append(place)
            else:
                far.append(place * self.steps[node, k])
        is_there = source.assign(f"v{number}t", all_of(tests)) if tests else None
        access = self.plan.operand_access(table, node)
        if node in self.tables:
            value = self._choose(node, value_of(indices[0]))
        elif space.in_vectors:
            moves = [*(place * access.dtype.itemsize for place in near), *far]
            value = self._load_lanes(node, access, moves, is_there)
        else:
            value = self._load(access, near, far, is_there)
        if is_there is not None:
            value = call("select", is_there, value, source.literal(node.fill))
        return source.assign(name, value)

    def _counted(self, node: Pick, x: Operand, begin: int, end: int) -> Expression | None:
        """The places that integers mean in a range of the row, if they are known and count there.

        Beyond the core, each stands for the nearest place in it (`schedule`), which is not even.
        """
        row, numbers = self.plan.row[-1], known_numbers(x)
        if self.plan.space.in_vectors or node.mode != "place" or numbers is None:
            return None
        if not self.plan.is_full(node) or not row.size == numbers.size == numbers.shape[row.axis]:
            return None
        found = numbers.reshape(-1)[begin:end]
        if len(found) < 2 or not (np.diff(found) == 1).all():
            return None
        first = int(found[0]) - begin
        return row.index + self.source.word(first) if first else row.index

    def _choose(self, node: Pick, index: Expression) -> Expression:
        """The element of a short table, chosen by one bit of its place after the other."""
        entries: list[Expression] = [*self.tables[node]]
        number, dtype = self.plan.nodes.index(node), node.operands[1].dtype
        if dtype.kind != "u" and node.mode != "place":
            length = call(f"{dtype.kind}{8 * dtype.itemsize}", node.lengths[0])
            index = call("select", index < 0, index + length, index)
        bit = 1
        while len(entries) > 1:
            entries += entries[-1:] * (len(entries) % 2)
            test = self.source.assign(f"v{number}b{bit}", call("not_equal", index & bit, 0))
            pairs = zip(entries[::2], entries[1::2], strict=True)
            entries = [call("select", test, odd, even) for even, odd in pairs]
            bit *= 2
        return entries[0]

    def _load(self, access: Access, near: Terms, far: Terms, is_there: Test) -> Expression:
        """The element so many elements and bytes further than the current one."""
        if is_there is not None:
            near = [call("select", is_there, sum_of(near), 0)] if near else []
            far = [call("select", is_there, sum_of(far), 0)] if far else []
        pointer, index = self.plan.space.place(access)
        if far:
            pointer = call("offset", pointer, sum_of(far))
        if near:
            is_first = isinstance(index, Number) and index.value == 0
            index = sum_of(near if is_first else [*near, index])
        return call("load", pointer, index, access.scope)

    def _load_lanes(self, node: Pick, access: Access, moves: Terms, is_there: Test) -> Expression:
        """An element for every lane; those beyond the end of the row load the first one."""
        space, loop, size = self.plan.space, self.plan.row[-1], access.dtype.itemsize
        if is_there is not None:
            moves = [call("select", is_there, sum_of(moves), 0)]
        if self.plan.is_of_row(node):
            first = space.start(access)
            row = call("offset", first, sum_of(moves)) if moves else first
            return space.load_lanes(row, access)
        lanes, step = space.index_of(loop), loop.steps[access]
        if step:
            root = access.neighbour or access
            along = Number(step * size) if loop.is_near(access) else space.step(root, loop)
            moves = [*moves, call("i64", lanes) * along]
        nbytes = call("present", lanes, sum_of(moves), 0)
        run = run_of(node)
        if run and not step:
            return call("load_run", space.start(access), nbytes, run, access.scope)
        return call("load_each", space.start(access), nbytes, access.scope)

    def _resolve(self, node: Pick, k: int, index: Expression, is_once: bool = False) -> Test:
        """Make one of its integers a place; whether there is one, if that is to be asked.

        Once for all of a row a branch costs least; one for each element would keep LLVM from
        computing several at once.
        """
        number, dtype = self.plan.nodes.index(node), node.operands[k + 1].dtype
        site = node.sites[k] if node.sites else None
        name, length = f"v{number}k{k}", Variable(f"m{number}_{k}")
        space, fatal, worst = self.plan.space, None, ""
        places = self.of_rows if is_once else self.of_elements
        key = node.operands[k + 1], node.lengths[k]
        if node.mode == "raise":
            for found in (self.of_rows, places):
                if key in found:  # it is looked at once
                    self.source.assign(name, found[key])
                    return None
            places[key] = Variable(name)
        if site is not None and not is_once and site in self.watched:
            worst = self.watched[site][0]
        elif site is not None:
            fatal = self.sites[site]
        lanes = space.index_of(self.plan.row[-1]) if space.in_vectors else None
        return resolve(self.source, node.mode, name, index, dtype, length, fatal, worst, lanes)


def move_pointers(plan: Plan) -> None:
    """Statements before the loops of a kernel: its rows begin at the places that integers mean."""
    source, space = plan.source, plan.space
    for node, access in plan.outs.items():
        put = node.out.placed_by
        if put is None or len(put.operands) == 2:  # places that are known are those of the view
            continue
        moves = []
        for k, (x, index) in enumerate(zip(put.operands[2:], plan.indices(node), strict=True)):
            name, length = f"{access.name}k{k}", source.word(Length(put.lengths[k]))
            site = put.sites[k] if put.sites else None
            refused = None if site is None else source.word(site)
            resolve(source, put.mode, name, space.load(index), x.dtype, length, refused)
            moves.append(Variable(name) * source.word(put.steps[k] * access.dtype.itemsize))
        row = call("offset", access.pointer, sum_of(moves))
        access.pointers[0] = source.assign(f"{access.name}_place", row)
