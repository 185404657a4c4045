"""Plans of kernels: what each pass over a row computes, from where and to where, in which loops.

The axes of the space are batch, outer and row axes (`fuse`). A kernel passes over a row as often as
its nodes need numbers of the whole row first: once for each *stage*. What a later stage needs of an
earlier one is computed again, or kept in a row of memory. A row that is no longer than a few
vectors is in registers all the time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.compiler import machine
from funcgrad.compiler.nest import layout
from funcgrad.compiler.nest.access import everything, outside_of
from funcgrad.compiler.nest.accumulate import is_accurate, is_across
from funcgrad.compiler.nest.bounds import run_of
from funcgrad.compiler.nest.cost import cycles_of_computing
from funcgrad.compiler.nest.fuse import LoopNest, kind_of
from funcgrad.compiler.nest.iteration import Access, IterationSpace, Segment, Vectors
from funcgrad.compiler.nest.kernel import KernelBuilder, lanes_along
from funcgrad.compiler.nest.nodes import Fold, Guard, Node, Pick, Put, Scan, depth_first
from funcgrad.dtypes import BOOL

LONG = machine.SUM_BLOCK
"""Length of rows from which threads may divide them, where columns are folded."""

LONGEST_KEPT = machine.VECTORS // 2
"""Vectors of the longest row that is one vector for each of its values, which registers keep."""


def width(dtypes: Iterable[np.dtype[Any]]) -> int:
    """Bytes of the elements that are to fill a register; parts of complex ones fill two."""
    sizes = {d.itemsize // (1 + (d.kind == "c")) for d in dtypes if d != BOOL}
    return min((n for n in sizes if n >= 4), default=max(sizes, default=1))


def is_function(node: Node) -> bool:
    """Whether it takes as long as an elementary function."""
    return (isinstance(node, Pick) and not run_of(node)) or node.is_expensive


class Plan:
    """The plan of the kernel of some nodes.

    Attributes:
        first: The loop that is divided among threads, if there is one.
        bodies: The nodes that each stage computes of all elements.
        outs: Where results are stored.
        sums: Where column folds accumulate.
        row_vectors: The vector that holds a whole row, if there is one.
        held: How many vectors the registers hold, or enough for what only moves elements.
        is_crossed: Whether some arrays are read along their rows and others across.
        chosen: Guards that choose a row of one array, of which the last is read where all
            others are not.
    """

    def __init__(
        self,
        source: KernelBuilder,
        nodes: list[Node],
        shape: layout.Shape,
        nest: LoopNest | None,
        is_small: bool = False,
        held: int = machine.VECTORS * machine.FEW,
    ) -> None:
        self.source = source
        self.held = held
        self.nodes = nodes
        self.shape = shape
        self.nest = nest
        self.made = {node.out: node for node in nodes}
        self.order = tuple(range(len(shape))) if nest is None else nest.order
        self.n_outer = len(shape) - (0 if nest is None else nest.row)
        self.n_batch = 0 if nest is None else nest.batch or 0
        # Axes along which something is asked of the index, which has to have a variable.
        self.guarded = {
            axis
            for node in nodes
            if isinstance(node, Guard)
            for axis, (a, b) in enumerate(node.box)
            if (a, b) != (0, node.space[axis])
        }
        self._find_stages()
        self.row_vectors: Vectors | None = None
        self._plan_scratch()
        self.row_vectors = None if is_small else self._vectors_of_rows()
        if self.row_vectors is not None:
            self._plan_scratch()
        self.chosen: dict[Node, list[tuple[layout.Box, Access]]] = {}
        if not is_small:
            self._choose_rows()

    @property
    def at_once(self) -> int:
        """Vectors that an iteration computes at once: what it waits for has to be kept as well."""
        return max(min(machine.VECTORS, self.held // machine.FEW), 1)

    @property
    def least_row(self) -> int:
        """Length of rows from which long vectors take what is left, too."""
        return self.at_once * machine.VECTOR_BYTES

    def _plan_scratch(self) -> None:
        self.scratch: list[layout.Value] = []
        self.scratch_of: dict[layout.Value, layout.Value] = {}
        self.accesses: dict[Any, Access] = {}
        self._plan_stages()
        self._collect()
        self._arrange()

    # Levels, stages, and what crosses from one stage to another.

    def is_full(self, node: Node) -> bool:
        return node.space == self.shape

    def kind(self, node: Node) -> str:
        """``"point"``, or the kind of a fold."""
        if isinstance(node, Fold):
            assert self.nest is not None
            return kind_of(node, self.shape, self.nest)
        return "point"

    def _find_stages(self) -> None:
        """The stage of every node: that of the pass over the row in which it can be computed."""
        self.stage: dict[Node, int] = {}
        for node in self.nodes:
            stage = 0
            for maker in self._makers(node):
                stage = max(stage, self.stage[maker] + (self.kind(maker) == "inner"))
            self.stage[node] = stage
        self.n_stages = 1 + max(self.stage.values())

    def _makers(self, node: Node) -> Iterator[Node]:
        for x in node.operands:
            if isinstance(x, layout.View) and x.value in self.made:
                yield self.made[x.value]

    def _plan_stages(self) -> None:
        """Find the full nodes of every stage; some are kept in a row for later ones."""
        self.kept: set[layout.Value] = {n.out for n in self.nodes if n.out.is_stored}
        later: dict[Node, set[int]] = {}
        for node in self.nodes:
            for maker in self._makers(node):
                crosses = self.is_full(maker) and self.stage[maker] < self.stage[node]
                if crosses and self.kind(maker) == "point" and maker.out not in self.kept:
                    later.setdefault(maker, set()).add(self.stage[node])
        for maker in self.nodes:
            if (
                maker in later
                and self.row_vectors is None
                and self._is_kept(maker, len(later[maker]))
            ):
                shape = tuple(self.shape[a] for a in self.order[self.n_outer :])
                self.scratch_of[maker.out] = layout.Value(shape, maker.out.dtype)
                self.scratch.append(self.scratch_of[maker.out])
                self.kept.add(maker.out)
        self.bodies: list[list[Node]] = []
        for stage in range(self.n_stages):
            wanted = [n for n in self.nodes if self._starts(n, stage)]
            self.bodies.append(self._with_operands([*self._rows_read(), *wanted], stage))

    def _is_kept(self, node: Node, n_stages: int) -> bool:
        """Whether a row of memory costs less than computing a value again in some later stages."""
        chain = depth_first([node], lambda at: filter(self._is_again, self._makers(at)))
        again = sum(map(cycles_of_computing, chain))
        row = math.prod(self.shape[a] for a in self.order[self.n_outer :])
        moving = machine.cycles_of_moving(row * node.out.dtype.itemsize)
        return is_function(node) or again * n_stages > moving * (1 + n_stages)

    def _is_again(self, node: Node) -> bool:
        """Whether a later stage that wants a value computes it again."""
        return self.is_full(node) and self.kind(node) == "point" and node.out not in self.kept

    def _rows_read(self) -> Iterator[Node]:
        """Lookups in arrays of which rows are replaced: they come before that."""
        replaced = {node.out.home for node in self.nodes if node.out.placed_by is not None}
        for node in self.nodes if replaced else ():
            table = node.operands[0] if isinstance(node, Pick) else None
            if isinstance(table, layout.View) and table.value.home in replaced:
                yield node

    def _starts(self, node: Node, stage: int) -> bool:
        """Whether a stage has to compute a full node for its own sake."""
        if not self.is_full(node) or self.stage[node] != stage:
            return False
        return isinstance(node, Fold) or node.out in self.kept

    def _with_operands(self, wanted: list[Node], stage: int) -> list[Node]:
        """Nodes after all that they need, each as late as may be: so few values wait at a time."""

        def needs(node: Node) -> Iterator[Node]:
            for maker in self._makers(node):
                is_known = maker.out in self.kept and self.stage[maker] != stage
                if self.is_full(maker) and self.kind(maker) == "point" and not is_known:
                    yield maker

        return depth_first(wanted, needs)

    def most_waiting(self, body: list[Node]) -> int:
        """The most vectors that are known at a time and not yet read for the last time.

        Elements that are wider than those that fill a vector take several.
        """
        reads: list[list[Any]] = []
        for node in body:
            views = [x for x in node.operands if isinstance(x, layout.View)]
            reads.append(
                [x.value if x.value in self.made else self.operand_access(x, node) for x in views]
            )
        last = {key: k for k, keys in enumerate(reads) for key in keys}
        narrow = width(key.dtype for key in last)
        waiting: set[Any] = set()
        most = 0
        for k, (node, keys) in enumerate(zip(body, reads, strict=True)):
            waiting.update(keys)
            most = max(most, sum(max(key.dtype.itemsize // narrow, 1) for key in waiting))
            waiting = {key for key in waiting if last[key] > k}
            if node.out in last:
                waiting.add(node.out)
        return most

    # Accesses.

    def _strides(self, operand: layout.View, is_full: bool) -> tuple[int, ...]:
        """Strides along the axes of the space."""
        if is_full:
            return operand.strides
        n = self.n_outer
        return operand.strides[:n] + (0,) * (len(self.shape) - n)

    def _out_strides(self, node: Node, strides: tuple[int, ...]) -> tuple[int, ...]:
        """Strides of a node's result along the axes of the space; 0 where it is reduced."""
        kind = self.kind(node)
        if kind == "point":
            return self._strides(layout.View(node.out, node.out.shape, strides), self.is_full(node))
        if kind in ("post", "total"):
            return strides[: self.n_batch] + (0,) * (len(self.shape) - self.n_batch)
        assert isinstance(node, Fold)
        along = iter(strides)
        return tuple(0 if i in node.form.axes else next(along) for i in range(len(self.shape)))

    def _memory_strides(self) -> tuple[int, ...]:
        """Strides of scratch memory that holds one row."""
        n = self.n_outer
        row = layout.contiguous_strides(tuple(self.shape[a] for a in self.order[n:]))
        found = dict(zip(self.order[n:], row, strict=True))
        return tuple(found.get(i, 0) for i in range(len(self.shape)))

    def _access(
        self, value: layout.Value, strides: Sequence[int], offset: int = 0, by: Any = None
    ) -> Access:
        key = (value.home, tuple(strides), offset, by)
        if key not in self.accesses:
            self.accesses[key] = Access(value.home, strides, offset)
        return self.accesses[key]

    def indices(self, node: Node) -> list[Access]:
        """The integers that say where a result is written, if any do."""
        put, still = node.out.placed_by, (0,) * len(self.shape)
        return [
            Access(x, still)
            if isinstance(x, layout.Uniform)
            else self._access(x.value, still, x.offset)
            for x in (() if put is None else put.operands[2:])
        ]

    def operand_access(self, operand: layout.View, node: Node) -> Access:
        return self._access(
            operand.value, self._strides(operand, self.is_full(node)), operand.offset
        )

    def read(self, node: Node, operands: Iterable[layout.Operand] | None = None) -> list[Access]:
        """The arrays that a node reads from memory, of its operands or of some of them."""
        if operands is None:
            operands = node.elements if isinstance(node, Put) else node.operands
        views = [x for x in operands if isinstance(x, layout.View)]
        return [self.operand_access(x, node) for x in views if x.value not in self.made]

    def _collect(self) -> None:
        self.outs: dict[Node, Access] = {}
        self.sums: dict[Node, Access] = {}
        for node in self.nodes:
            self.read(node)
            if isinstance(node, Put):
                target = node.target
                self.outs[node] = self._access(target.value, target.strides, target.offset, node)
            elif node.out.is_stored:
                place = node.out.part or layout.whole(node.out)
                strides = self._out_strides(node, place.strides)
                put = node.out.placed_by
                self.outs[node] = self._access(place.value, strides, place.offset, put)
                self.indices(node)
            elif node.out in self.scratch_of:
                self.outs[node] = self._access(self.scratch_of[node.out], self._memory_strides())
            if self.kind(node) == "column":
                self.sums[node] = self._column_access(node)
        operands = (x for node in self.nodes for x in node.operands if isinstance(x, layout.View))
        read = {x.value.home for x in operands if x.value not in self.made}
        # Rows whose places are computed may be the same.
        shared = {node.out.home for node in self.outs if node.out.placed_by is not None}
        self.only_written = {access.value for access in self.outs.values()} - read - shared

    def _column_access(self, node: Node) -> Access:
        """The memory that rows are folded into: the result, or float64 for sums of floats."""
        assert isinstance(node, Fold)
        if not is_accurate(node) or self.row_vectors is not None:
            return self.outs[node]
        shape = tuple(self.shape[a] for a in self.order[self.n_outer :])
        memory = layout.Value(shape, np.dtype(np.float64))
        self.scratch.append(memory)
        return self._access(memory, self._memory_strides())

    # Loops.

    def _arrange(self) -> None:
        if self.nest is None:
            self.order = self._order()
            self._nest()
            crossed = self._crossed_axis()
            if crossed is not None and not self._is_crossed():
                *others, inner = self.order
                self.order = (*(axis for axis in others if axis != crossed), crossed, inner)
                self._nest()
        else:
            self._nest()
        is_divisible = self.nest is None or len(self.space.loops) > len(self.row)
        self.first = self.space.loops[0] if self.space.loops and is_divisible else None
        self.is_crossed = self._is_crossed()
        # Where nothing is folded, a few long rows are better divided than shared.
        is_row = self.nest is None and len(self.space.loops) > 1 and not self.is_crossed
        if self._has_columns_alone() or (is_row and self._is_long()):
            self.first = self.row[0]

    @property
    def lanes(self) -> tuple[int, int]:
        """`Kernel.lanes`, if the outermost axis of the first loop is the first or last one."""
        if self.first is None:
            return 0, 0
        before = self.space.loops[: self.space.loops.index(self.first)]
        axis = self.order[self.order.index(before[-1].axis) + 1 if before else 0]
        return lanes_along(axis, self.shape)

    def _nest(self) -> None:
        """The loops, in the order of axes."""
        segments: list[Segment] = [("i", self.order, machine.SHORT_AXIS)]
        if self.nest is not None:
            batch, outer = self.order[: self.n_batch], self.order[self.n_batch : self.n_outer]
            segments = [
                ("b", batch, 0),
                ("i", outer, 0),
                ("j", self.order[self.n_outer :], machine.SHORT_AXIS),
            ]
        self.space = IterationSpace(
            self.source, self.shape, self.accesses.values(), segments, self.guarded
        )
        if self.nest is not None:
            self.batch, self.outer, self.row = self.space.segments
        else:
            self.batch, self.outer, self.row = [], self.space.loops[:-1], self.space.loops[-1:]

    def _crossed_axis(self) -> int | None:
        """An axis along which elements lie side by side that lie apart along the innermost one."""
        if len(self.order) < 3:
            return None
        *others, inner = self.order
        for access in self.accesses.values():
            if abs(access.strides[inner]) > machine.SHORT_AXIS and 1 in access.strides:
                axis = access.strides.index(1)
                if axis in others and self.shape[axis] > machine.SHORT_AXIS:
                    return axis
        return None

    def _has_columns_alone(self) -> bool:
        """Whether the places of a long row have nothing to do with each other: they are divided."""
        kinds = {self.kind(node) for node in self.nodes}
        return (
            not self.batch
            and "column" in kinds <= {"point", "column"}
            and all(map(self.is_full, self.nodes))
            and (self.row[0].size >= LONG or self._is_long())
        )

    def _is_long(self) -> bool:
        """Whether a row is long, and there are few of them."""
        n_rows = math.prod(loop.size for loop in self.space.loops if loop not in self.row)
        return n_rows <= machine.SHORT_AXIS and self.row[0].size > machine.VECTOR_BYTES

    def _order(self) -> tuple[int, ...]:
        """The axes, that one innermost along which the fewest elements lie apart."""
        written = set(self.outs.values())

        def n_apart(axis: int) -> int:
            return sum(
                1 + (access in written)
                for access in self.accesses.values()
                if access.strides[axis] not in (0, 1)
            )

        if not self.order:
            return ()
        # The last axis if there is nothing between them; other short ones are not worth a loop.
        *others, last = self.order
        axes = [last, *(a for a in reversed(others) if self.shape[a] > machine.SHORT_AXIS)]
        inner = min(axes, key=n_apart)
        return (*(axis for axis in self.order if axis != inner), inner)

    def _is_crossed(self) -> bool:
        """Whether some arrays are read along their rows and others across, as transpositions do."""
        if self.nest is not None or len(self.space.loops) < 2:
            return False
        inner, outer = self.row[-1].axis, self.space.loops[-2].axis
        strides = [(a.strides[outer], a.strides[inner]) for a in self.accesses.values()]
        return any(abs(along) == 1 and abs(apart) > machine.SHORT_AXIS for along, apart in strides)

    def _choose_rows(self) -> None:
        """Find guards that ask nothing along a row: they need the address of one, and no lanes.

        What lies around a periodic box is assembled like that, and an array with repeated edges.
        """
        if not self.row:
            return
        readers = Counter(maker for node in self.nodes for maker in self._makers(node))
        passed: set[Node] = set()
        for node in reversed(self.nodes):
            if isinstance(node, Guard) and node not in passed and self.is_full(node):
                chain = [*self._chain(node, readers)]
                rows = self._rows_of(chain)
                if rows is not None:
                    self.chosen[node] = rows
                    passed.update(chain[1 : len(rows)])
        self.bodies = [[node for node in body if node not in passed] for body in self.bodies]

    def _chain(self, node: Guard, readers: Counter[Node]) -> Iterator[Guard]:
        """A guard, and those that nobody but the one before reads."""
        at: Node | None = node
        while isinstance(at, Guard):
            yield at
            outside = at.operands[1]
            at = self.made.get(outside.value) if isinstance(outside, layout.View) else None
            if at is not None and (readers[at] > 1 or at.out in self.kept):
                return

    def _rows_of(self, chain: Iterable[Guard]) -> list[tuple[layout.Box, Access]] | None:
        """The rows of one array that guards read, by the boxes, if there is one at every index."""
        row, rest = self.row[-1], [everything(self.shape)]
        written = {access.value for access in self.outs.values()}
        found: list[tuple[layout.Box, Access]] = []
        for guard in chain:
            inside, box = guard.operands[0], guard.box
            if not isinstance(inside, layout.View) or inside.value in self.made:
                return None
            access = self.operand_access(inside, guard)
            is_same = access.value not in written and row.steps[access] == 1
            if not is_same or (found and access.value is not found[0][1].value):
                return None
            if box[row.axis] != (0, self.shape[row.axis]):
                return None
            found.append((box, access))
            rest = [left for x in rest for left in outside_of(x, box)]
            if not rest:
                return found
        return None

    def is_fixed(self, node: Node, x: layout.Operand) -> bool:
        """Whether an operand is the same all along the row."""
        if isinstance(x, layout.Uniform):
            return True
        if x.value in self.made:
            return self.is_full(node) and not self.is_full(self.made[x.value])
        access = self.operand_access(x, node)
        return not any(loop.steps[access] for loop in self.row)

    def is_of_row(self, node: Pick) -> bool:
        """Whether a lookup reads a row of its table: at places that are the same all along it."""
        return self.is_full(node) and all(self.is_fixed(node, x) for x in node.operands[1:])

    def _vectors_of_rows(self) -> Vectors | None:
        """The vector that holds a row, if all that the row takes is one for each of its values.

        Then no pass over the row reads anything from memory that another one has read or computed.
        """
        if self.nest is None or len(self.row) != 1 or self.first in (None, *self.row):
            return None
        (loop,) = self.row
        full = [node for node in self.nodes if self.is_full(node)]
        if any(isinstance(node, Guard | Pick | Put | Scan) for node in full) or not all(
            self.kind(n) in ("inner", "column") and is_across(n)
            for n in self.nodes
            if isinstance(n, Fold)
        ):
            return None
        written = [self.outs[n] for n in full if n in self.outs and self.kind(n) != "inner"]
        touched = [access for node in full for access in self.read(node)]
        dtypes = {x.dtype for node in full for x in (*node.operands, node.out)}
        if any(access.strides[loop.axis] != 1 for access in written):
            return None
        if any(access.strides[loop.axis] not in (0, 1) for access in touched):
            return None
        narrow = machine.VECTOR_BYTES // width(dtypes)
        if loop.size > LONGEST_KEPT * narrow:
            return None
        count = narrow if loop.size <= narrow else LONGEST_KEPT * narrow
        return Vectors(count, count, register=narrow)
