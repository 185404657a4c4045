"""Kernels of points and folds: one group of nodes, one function of the kernel ABI.

The function depends on the structure of the group only: expressions, dtypes, how many loops remain
after neighbouring axes were merged, and which operands are contiguous or repeated. Sizes, strides,
places in memory and scalars are words of the step's arguments; so kernels serve all shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.loops.language import (
    Expression,
    Number,
    Variable,
    all_of,
    applied,
    call,
    equal,
    of,
    sum_of,
)
from funcgrad.compiler.machine import (
    FUNCTION,
    HEAVY,
    LOOKUP,
    MOST_LIVE,
    MOST_TRANSPOSED,
    RARE,
    SEVERAL,
    SHORT_AXIS,
    SUM_BLOCK,
    VECTOR_BYTES,
    VECTORS,
    WORD_BYTES,
    cycles_of_moving,
)
from funcgrad.compiler.nest.accumulate import Accumulator, Vectors, is_across
from funcgrad.compiler.nest.cost import cycles_of_computing
from funcgrad.compiler.nest.fuse import Group, Walk, kind_of
from funcgrad.compiler.nest.kernel import Kernel, KernelBuilder, value_of
from funcgrad.compiler.nest.layout import (
    Box,
    Operand,
    Shape,
    Uniform,
    Value,
    View,
    box_size,
    common_box,
    contiguous_strides,
    largest_beside,
    whole,
)
from funcgrad.compiler.nest.nodes import Fold, Guard, Node, Pick, Point, Site
from funcgrad.compiler.nest.places import refuse_worst, resolve, resolve_or_refuse, watch
from funcgrad.dtypes import BOOL

TILE = 2 * VECTOR_BYTES // 4
"""Columns of a tile, in kernels that walk some arrays along their rows and others across them: what
is read or written across stays in the nearest cache until all of a cache line was used."""

_SCRATCH_SCOPE = 1000
"""The first scope of memory for tiles that were turned."""

SHORT = 2 * VECTOR_BYTES // 4
"""Greatest length of rows that kernels are specialised for, of views with literal steps."""

LEAST_ROW = VECTORS * VECTOR_BYTES
"""Length of rows from which long vectors take what is left, too, and columns are folded in them."""

LONG = SUM_BLOCK
"""Length of rows from which threads may divide them, where columns are folded."""

SHORT_REGISTERS = VECTORS // 2
"""Vectors that an iteration computes at once of short rows, where that is much work.

Rows that are no longer than these are one vector each, whose values stay in registers.
"""


class _Access:
    """An operand at the elements of a walk: strides in elements, one per axis of the space."""

    __slots__ = (
        "base", "dtype", "neighbour", "offset", "pointers", "scope", "steps", "strides", "value",
    )  # fmt: skip

    def __init__(self, value: Value, strides: Sequence[int], offset: int) -> None:
        self.value = value
        self.dtype = value.dtype
        self.strides = tuple(strides)
        self.offset = offset
        self.steps: list[int] = []
        self.pointers: list[Variable] = []
        self.base = ""
        self.scope = 0
        self.neighbour: _Access | None = None
        """An access to the same elements but for a small distance: both count from one pointer, so
        that LLVM sees that they lie beside each other."""


@dataclass(frozen=True)
class _Loop:
    """Several axes walked as one; ``axis`` is the last of them."""

    variable: str
    size: int
    strides: tuple[int, ...]
    axis: int

    @property
    def index(self) -> Variable:
        """The variable of its index."""
        return Variable(self.variable)


Side = tuple[_Loop, str, Expression]
"""What is asked of the index of a loop: a comparison, and with what."""


def _width(dtypes: Iterable[np.dtype[Any]]) -> int:
    """Bytes of the elements that are to fill a register; parts of complex ones fill two."""
    sizes = {d.itemsize // (1 + (d.kind == "c")) for d in dtypes if d != BOOL}
    return min((n for n in sizes if n >= 4), default=max(sizes, default=1))


def is_function(node: Node) -> bool:
    """Whether it takes as long as an elementary function."""
    return isinstance(node, Pick) or node.is_expensive


def generate(group: Group) -> Kernel:
    """The kernel of a group of points and folds."""
    return _Writer(group.nodes, group.space, group.walk).kernel


def generate_copy(operand: Operand, place: View) -> Kernel:
    """The kernel that writes an operand to a part of a value."""
    node = Point((operand,), (Value(operand.shape, operand.dtype),), "{0}")
    node.out.is_stored, node.out.part = True, place
    return _Writer([node], operand.shape, None).kernel


class _Writer:
    """Writes one kernel."""

    def __init__(self, nodes: list[Node], space: Shape, walk: Walk | None) -> None:
        self.nodes = nodes
        self.space = space
        self.walk = walk
        self.source = KernelBuilder()
        self.made = {node.out: node for node in nodes}
        self.names: dict[Value, Expression] = {}
        self.accesses: dict[Any, _Access] = {}
        self.loaded: dict[Any, Variable] = {}
        self.scratch: list[Value] = []
        self.scratch_of: dict[Value, Value] = {}
        self.brief: Vectors | None = None
        """The vector that holds a whole row, if there is one."""
        self.suffix = ""
        """What the names of the current loop's vectors end with: each is one value."""
        self.n_vectorised = 0
        self.is_seldom = False
        """Whether few elements are in the loop that is written."""
        rank = len(space)
        self.order = tuple(range(rank)) if walk is None else walk.order
        self.n_row = 0 if walk is None else walk.row
        self.n_batch = 0 if walk is None else walk.batch or 0
        self.kernel = self._write()

    # Levels, stages, and what crosses from one stage to another.

    def _is_full(self, node: Node) -> bool:
        return node.space == self.space

    def _kind(self, node: Node) -> str:
        """``"point"``, or the kind of a fold."""
        if isinstance(node, Fold):
            assert self.walk is not None
            return kind_of(node, self.space, self.walk)
        return "point"

    def _find_stages(self) -> None:
        """The stage of every node: that of the pass over the row in which it can be computed."""
        self.stage: dict[Node, int] = {}
        for node in self.nodes:
            stage = 0
            for maker in self._makers(node):
                stage = max(stage, self.stage[maker] + (self._kind(maker) == "inner"))
            self.stage[node] = stage
        self.n_stages = 1 + max(self.stage.values())

    def _makers(self, node: Node) -> Iterator[Node]:
        for x in node.operands:
            if isinstance(x, View) and x.value in self.made:
                yield self.made[x.value]

    def _plan_stages(self) -> None:
        """Which full nodes every stage computes; some are kept in a row for later ones."""
        self.kept: set[Value] = {n.out for n in self.nodes if n.out.is_stored}
        later: dict[Node, set[int]] = {}
        for node in self.nodes:
            for maker in self._makers(node):
                crosses = self._is_full(maker) and self.stage[maker] < self.stage[node]
                if crosses and self._kind(maker) == "point" and maker.out not in self.kept:
                    later.setdefault(maker, set()).add(self.stage[node])
        for maker in self.nodes:
            if maker in later and self.brief is None and self._is_kept(maker, len(later[maker])):
                shape = tuple(self.space[a] for a in self.order[len(self.space) - self.n_row :])
                self.scratch_of[maker.out] = Value(shape, maker.out.dtype)
                self.scratch.append(self.scratch_of[maker.out])
                self.kept.add(maker.out)
        self.bodies: list[list[Node]] = []
        for stage in range(self.n_stages):
            wanted = [n for n in self.nodes if self._starts(n, stage)]
            self.bodies.append(self._with_operands(wanted, stage))

    def _is_kept(self, node: Node, n_stages: int) -> bool:
        """Whether a row of memory costs less than computing a value again in some later stages."""
        chain: dict[Node, None] = {}
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at not in chain:
                chain[at] = None
                waiting += [m for m in self._makers(at) if self._is_again(m)]
        again = sum(map(cycles_of_computing, chain))
        row = math.prod(self.space[a] for a in self.order[len(self.space) - self.n_row :])
        moving = cycles_of_moving(row * node.out.dtype.itemsize)
        return is_function(node) or again * n_stages > moving * (1 + n_stages)

    def _is_again(self, node: Node) -> bool:
        """Whether a later stage that wants a value computes it again."""
        return self._is_full(node) and self._kind(node) == "point" and node.out not in self.kept

    def _starts(self, node: Node, stage: int) -> bool:
        """Whether a stage has to compute a full node for its own sake."""
        if not self._is_full(node) or self.stage[node] != stage:
            return False
        return isinstance(node, Fold) or node.out in self.kept

    def _with_operands(self, wanted: list[Node], stage: int) -> list[Node]:
        """Nodes after all that they need, each as late as may be: so few values wait at a time."""
        found: dict[Node, None] = {}
        stack = [(node, False) for node in reversed(wanted)]
        while stack:
            node, is_ready = stack.pop()
            if is_ready:
                found[node] = None
            elif node not in found:
                stack.append((node, True))
                for maker in [*self._makers(node)][::-1]:
                    if not self._is_full(maker) or self._kind(maker) != "point":
                        continue
                    if maker.out not in self.kept or self.stage[maker] == stage:
                        stack.append((maker, False))
        return [*found]

    def _most_waiting(self, body: list[Node]) -> int:
        """The most values of an element that are known and not yet read for the last time."""
        reads: list[list[Any]] = []
        for node in body:
            views = [x for x in node.operands if isinstance(x, View)]
            reads.append(
                [x.value if x.value in self.made else self._operand_access(x, node) for x in views]
            )
        last = {key: k for k, keys in enumerate(reads) for key in keys}
        waiting: set[Any] = set()
        most = 0
        for k, (node, keys) in enumerate(zip(body, reads, strict=True)):
            waiting.update(keys)
            most = max(most, len(waiting))
            waiting = {key for key in waiting if last[key] > k}
            if node.out in last:
                waiting.add(node.out)
        return most

    # Accesses.

    def _strides(self, operand: View, is_full: bool) -> tuple[int, ...]:
        """Strides along the axes of the space."""
        if is_full:
            return operand.strides
        n = len(self.space) - self.n_row
        return operand.strides[:n] + (0,) * self.n_row

    def _out_strides(self, node: Node, strides: tuple[int, ...]) -> tuple[int, ...]:
        """Strides of a node's result along the axes of the space; 0 where it is reduced."""
        kind = self._kind(node)
        if kind == "point":
            return self._strides(View(node.out, node.out.shape, strides), self._is_full(node))
        if kind in ("post", "total"):
            return strides[: self.n_batch] + (0,) * (len(self.space) - self.n_batch)
        assert isinstance(node, Fold)
        along = iter(strides)
        return tuple(0 if i in node.form.axes else next(along) for i in range(len(self.space)))

    def _memory_strides(self) -> tuple[int, ...]:
        """Strides of scratch memory that holds one row."""
        n = len(self.space) - self.n_row
        row = contiguous_strides(tuple(self.space[a] for a in self.order[n:]))
        found = dict(zip(self.order[n:], row, strict=True))
        return tuple(found.get(i, 0) for i in range(len(self.space)))

    def _access(self, value: Value, strides: Sequence[int], offset: int = 0) -> _Access:
        key = (value.home, tuple(strides), offset)
        if key not in self.accesses:
            self.accesses[key] = _Access(value.home, strides, offset)
        return self.accesses[key]

    def _operand_access(self, operand: View, node: Node) -> _Access:
        return self._access(
            operand.value, self._strides(operand, self._is_full(node)), operand.offset
        )

    def _collect(self) -> None:
        self.outs: dict[Node, _Access] = {}
        self.sums: dict[Node, _Access] = {}
        for node in self.nodes:
            for x in node.operands:
                if isinstance(x, View) and x.value not in self.made:
                    self._operand_access(x, node)
            if node.out.is_stored:
                place = node.out.part or whole(node.out)
                strides = self._out_strides(node, place.strides)
                self.outs[node] = self._access(place.value, strides, place.offset)
            elif node.out in self.scratch_of:
                self.outs[node] = self._access(self.scratch_of[node.out], self._memory_strides())
            if self._kind(node) == "column":
                self.sums[node] = self._column_access(node)
        operands = (x for node in self.nodes for x in node.operands if isinstance(x, View))
        read = {x.value.home for x in operands if x.value not in self.made}
        self.only_written = {access.value for access in self.outs.values()} - read

    def _column_access(self, node: Node) -> _Access:
        """Where a column fold accumulates: in the result, sums of floats in float64 beside it."""
        assert isinstance(node, Fold)
        if not (node.form.accurate and node.out.dtype.kind == "f"):
            return self.outs[node]
        shape = tuple(self.space[a] for a in self.order[len(self.space) - self.n_row :])
        memory = Value(shape, np.dtype(np.float64))
        self.scratch.append(memory)
        return self._access(memory, self._memory_strides())

    # Loops.

    def _loops(self, axes: Sequence[int], prefix: str) -> list[_Loop]:
        """Axes as loops; neighbours are merged where every access walks them as one."""
        accesses = list(self.accesses.values())
        loops: list[_Loop] = []
        for axis in axes:
            size, strides = self.space[axis], tuple(a.strides[axis] for a in accesses)
            if loops and not {axis, loops[-1].axis} & self.guarded:
                outer = loops[-1]
                if all(s == t * size for s, t in zip(outer.strides, strides, strict=True)):
                    loops[-1] = _Loop(outer.variable, outer.size * size, strides, axis)
                    continue
            loops.append(_Loop(f"{prefix}{len(loops)}", size, strides, axis))
        return loops

    def _arrange(self) -> None:
        # Axes along which something is asked of the index, which has to have a variable.
        self.guarded = {
            axis
            for node in self.nodes
            if isinstance(node, Guard)
            for axis, (a, b) in enumerate(node.box)
            if (a, b) != (0, node.space[axis])
        }
        rank = len(self.space)
        n = rank - self.n_row
        if self.walk is None:
            self.order = self._order()
            self._walk_in_order()
            crossed = self._crossed_axis()
            if crossed is not None and not self._is_crossed():
                *others, inner = self.order
                self.order = (*(axis for axis in others if axis != crossed), crossed, inner)
                self._walk_in_order()
        else:
            self.batch = self._loops(self.order[: self.n_batch], "b")
            self.outer = self._loops(self.order[self.n_batch : n], "i")
            self.row = self._loops(self.order[n:], "j")
            self.loops = [*self.batch, *self.outer, *self.row]
        is_walkable = self.walk is None or len(self.loops) > len(self.row)
        self.first = self.loops[0] if self.loops and is_walkable else None
        if self._has_columns_alone():
            self.first = self.row[0]
        self.is_crossed = self._is_crossed()

    def _walk_in_order(self) -> None:
        """The loops of a walk without folds."""
        self.loops = self._loops(self.order, "i")
        self.batch, self.outer, self.row = [], self.loops[:-1], self.loops[-1:]

    def _crossed_axis(self) -> int | None:
        """An axis along which elements lie side by side that lie apart along the innermost one."""
        if len(self.order) < 3:
            return None
        *others, inner = self.order
        for access in self.accesses.values():
            if abs(access.strides[inner]) > SHORT_AXIS and 1 in access.strides:
                axis = access.strides.index(1)
                if axis in others and self.space[axis] > SHORT_AXIS:
                    return axis
        return None

    def _has_columns_alone(self) -> bool:
        """Whether the places of a long row have nothing to do with each other: they are divided."""
        kinds = {self._kind(node) for node in self.nodes}
        return (
            not self.batch
            and "column" in kinds <= {"point", "column"}
            and all(map(self._is_full, self.nodes))
            and self.row[0].size >= LONG
        )

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
        axes = [last, *(a for a in reversed(others) if self.space[a] > SHORT_AXIS)]
        inner = min(axes, key=n_apart)
        return (*(axis for axis in self.order if axis != inner), inner)

    def _is_crossed(self) -> bool:
        """Whether it walks some arrays along their rows and others across, as transpositions do."""
        if self.walk is not None or len(self.loops) < 2:
            return False
        inner, outer = self.row[-1].axis, self.loops[-2].axis
        strides = [(a.strides[outer], a.strides[inner]) for a in self.accesses.values()]
        return any(abs(along) == 1 and abs(apart) > SHORT_AXIS for along, apart in strides)

    def _ends(self, loop: _Loop) -> tuple[Expression, Expression]:
        """Where a loop begins and ends."""
        if self.is_crossed and loop is self.row[-1]:
            return Variable("t"), Variable("edge")
        if loop is self.first:
            return Variable("begin"), Variable("end")
        return Number(0), self.sizes[loop.variable]

    def _declare(self) -> None:
        """Names for sizes, pointers and byte strides, at the top of the kernel."""
        source = self.source
        if self.first is not None:
            for name, word in zip(("begin", "end"), source.span(), strict=True):
                source.assign(name, word)
        for k, access in enumerate(self.accesses.values()):
            access.steps = [loop.strides[k] for loop in self.loops]
        self.sizes: dict[str, Variable] = {}
        for loop in self.loops:
            if loop is not self.first:
                size = loop.size if self._is_short(loop) else source.word(loop.size)
                self.sizes[loop.variable] = source.assign(f"n_{loop.variable}", size)
        scopes: dict[Value | _Access, int] = {}
        for k, access in enumerate(self.accesses.values()):
            access.base = f"p{k}"
            access.neighbour = self._neighbour(access)
            root = access.neighbour or access
            # Parts of one array that is only written have no element in common.
            alone = root if access.value in self.only_written else access.value
            access.scope = scopes.setdefault(alone, len(scopes) + 1)
            if access.neighbour is not None:
                continue
            access.pointers = [source.pointer(access.base, access.value, access.offset)]
            for loop, step in zip(self.loops, access.steps, strict=True):
                if step and not self._is_near(loop, step):
                    nbytes = step * access.dtype.itemsize
                    source.assign(self._step_name(access, loop), source.word(nbytes))

        self.turned = self._find_turned()
        for access, name in self.turned.items():
            n = VECTOR_BYTES // access.dtype.itemsize
            self.scratch.append(Value((n * n,), access.dtype))
            source.pointer(name, self.scratch[-1], 0)
        self._declare_boxes()
        self._declare_places()

    def _declare_boxes(self) -> None:
        """The questions whether an index lies in a box, for every guard."""
        self.questions: dict[Node, str] = {}
        self.tests: dict[str, list[Side]] = {}
        known: dict[tuple[Shape, Box], str] = {}
        for node in self.nodes:
            if isinstance(node, Guard):
                key = node.space, node.box
                if key not in known:
                    known[key] = f"g{len(known)}"
                    self.tests[known[key]] = list(self._sides(*key))
                self.questions[node] = known[key]

    def _sides(self, space: Shape, box: Box, but: int | None = None) -> Iterator[Side]:
        """What is asked of the indices of loops that lie in a box, one axis perhaps left out."""
        loops = {loop.axis: loop for loop in self.loops}
        for axis, (a, b) in enumerate(box):
            if a > 0 and axis != but:
                yield loops[axis], "greater_equal", self.source.word(a)
            if b < space[axis] and axis != but:
                yield loops[axis], "less", self.source.word(b)

    def _declare_places(self) -> None:
        """The lengths of axes along which places are computed, and bytes from place to place."""
        self.sites: dict[Site, Expression] = {}
        self.watched: dict[Site, tuple[str, Variable]] = {}
        self.placed: dict[tuple[Node, int], Expression | None] = {}
        for i, node in enumerate(self.nodes):
            if not isinstance(node, Pick):
                continue
            for k, (length, step) in enumerate(zip(node.lengths, node.steps, strict=True)):
                self.source.assign(f"m{i}_{k}", self.source.word(length))
                if step != 1:
                    nbytes = step * node.out.dtype.itemsize
                    self.source.assign(f"d{i}_{k}", self.source.word(nbytes))
            for k, site in enumerate(node.sites):
                if site is None or site in self.sites:
                    continue
                self.sites[site] = self.source.word(site)
                if not self._is_fixed(node, node.operands[k + 1]):
                    self.watched[site] = f"w{len(self.watched)}", Variable(f"m{i}_{k}")
                    watch(self.source, self.watched[site][0])
            if node.mode == "fill":
                self.source.literal(node.fill)

    def _ask(self, nodes: Iterable[Node]) -> None:
        """Answers to the questions of some nodes, under their names."""
        asked = (self.questions[node] for node in nodes if isinstance(node, Guard))
        for name in dict.fromkeys(asked):
            tests = [call(test, self._index_of(x), bound) for x, test, bound in self.tests[name]]
            self.source.assign(f"{name}{self.suffix}", all_of(tests))

    def _index_of(self, loop: _Loop) -> Variable:
        """The index of a loop: in the innermost one that of lanes where there are vectors."""
        is_row = loop is self.row[-1]
        return Variable(f"{loop.variable}{self.suffix}") if is_row else loop.index

    def _neighbour(self, access: _Access) -> _Access | None:
        """An earlier access to elements between which those of this one lie."""
        if not self.row or not 2 <= self._step(access, self.row[-1]) <= SEVERAL:
            return None
        for other in self.accesses.values():
            if other is access:
                return None
            distance = access.offset - other.offset
            near = other.neighbour is None and 0 < distance < self._step(access, self.row[-1])
            if near and (other.value, other.strides) == (access.value, access.strides):
                return other
        return None

    def _is_near(self, loop: _Loop, step: int) -> bool:
        """Whether a step is a part of the text, along the innermost loop."""
        is_innermost = bool(self.row) and loop is self.row[-1]
        return is_innermost and 0 < abs(step) <= SHORT_AXIS

    def _is_short(self, loop: _Loop) -> bool:
        """Whether the text says how long a loop is.

        Every other element of rows that are shorter than a few vectors: LLVM would leave most of
        them to what follows the loop over vectors.
        """
        k = self.loops.index(loop)
        skips = any(1 < a.steps[k] <= SHORT_AXIS for a in self.accesses.values())
        # The only loop may be one over a batch, whose length is to be any.
        is_row = bool(self.row) and loop is self.row[-1] and len(self.loops) > 1
        return is_row and skips and loop.size <= SHORT

    def _step_name(self, access: _Access, loop: _Loop) -> str:
        return f"s{access.base[1:]}_{loop.variable}"

    def _step(self, access: _Access, loop: _Loop) -> int:
        return access.steps[self.loops.index(loop)]

    def _step_variable(self, access: _Access, loop: _Loop) -> Variable:
        return Variable(self._step_name(access, loop))

    @contextmanager
    def _over(
        self, loop: _Loop, span: tuple[Expression, Expression] | None = None
    ) -> Iterator[None]:
        """A loop with pointers moved to its elements."""
        with self.source.loop(loop.variable, *(span or self._ends(loop))) as index:
            moved = []
            for access in self.accesses.values():
                if self._step(access, loop) and access.neighbour is None:
                    nbytes = index * self._step_variable(access, loop)
                    pointer = call("offset", access.pointers[-1], nbytes)
                    name = f"{access.base}_{loop.variable}"
                    access.pointers.append(self.source.assign(name, pointer))
                    moved.append(access)
            yield
            for access in moved:
                access.pointers.pop()

    @contextmanager
    def _inside(self, loops: Iterable[_Loop]) -> Iterator[None]:
        """Loops from the outside in."""
        with ExitStack() as stack:
            for loop in loops:
                stack.enter_context(self._over(loop))
            yield

    def _index(self, access: _Access) -> tuple[Expression, Expression]:
        """Pointer and index of the current element inside the innermost row loop."""
        loop = self.row[-1]
        step = self._step(access, loop)
        if access.neighbour is not None:
            distance = access.offset - access.neighbour.offset
            pointer = access.neighbour.pointers[-1]
            if self._is_near(loop, step):
                return pointer, loop.index * step + distance
            move = loop.index * self._step_variable(access.neighbour, loop)
            return call("offset", pointer, move), Number(distance)
        pointer = access.pointers[-1]
        if step == 1:
            return pointer, self._index_of(loop)
        if self._is_near(loop, step):
            return pointer, loop.index * step
        if step == 0:
            return pointer, Number(0)
        return call("offset", pointer, loop.index * self._step_variable(access, loop)), Number(0)

    def _element_of(self, access: _Access, is_full: bool) -> tuple[Expression, Expression]:
        """Pointer and index of the current element of a row, or of all of it."""
        is_of_row = is_full and self.row
        return self._index(access) if is_of_row else (access.pointers[-1], Number(0))

    def _load(self, access: _Access, is_full: bool) -> Expression:
        if is_full and self.suffix and self._is_apart(access):
            return self._load_apart(access)
        return call("load", *self._element_of(access, is_full), access.scope)

    def _is_apart(self, access: _Access) -> bool:
        """Whether its elements lie apart along the row, but near each other."""
        step = self._step(access, self.row[-1])
        return step not in (0, 1) and self._is_near(self.row[-1], step)

    def _load_apart(self, access: _Access) -> Expression:
        """Elements of lanes that lie apart."""
        loop = self.row[-1]
        first: Expression
        if access.neighbour is None:
            first = access.pointers[-1]
        else:
            distance = access.offset - access.neighbour.offset
            first = call("advance", access.neighbour.pointers[-1], distance)
        return self._load_lanes(first, self._step(access, loop), access)

    def _load_lanes(self, pointer: Expression, step: int, access: _Access) -> Expression:
        """Elements of lanes, one or a few steps apart, or one for all."""
        lanes = self._index_of(self.row[-1])
        if step in (0, 1):
            return call("load", pointer, lanes if step else 0, access.scope)
        return call("load_apart", pointer, lanes, step, access.scope)

    def _store(self, access: _Access, value: Expression, is_full: bool) -> None:
        self.source.store(*self._element_of(access, is_full), value, access.scope)

    # Statements.

    def _plan(self) -> None:
        """What is kept where, and how the space is walked."""
        self.scratch, self.scratch_of, self.accesses = [], {}, {}
        self._plan_stages()
        self._collect()
        self._arrange()

    def _brief_vectors(self) -> Vectors | None:
        """The vector that holds a row, if all that the row takes is one for each of its values.

        Then no pass over the row reads anything from memory that another one has read or computed.
        """
        if self.walk is None or len(self.row) != 1 or self.first in (None, *self.row):
            return None
        (loop,) = self.row
        full = [node for node in self.nodes if self._is_full(node)]
        if any(isinstance(node, Guard | Pick) for node in full) or not all(
            self._kind(n) == "inner" and is_across(n) for n in self.nodes if isinstance(n, Fold)
        ):
            return None
        written = [self.outs[n] for n in full if n in self.outs and not isinstance(n, Fold)]
        touched = []
        for node in full:
            views = [x for x in node.operands if isinstance(x, View) and x.value not in self.made]
            touched += [self._operand_access(x, node) for x in views]
        dtypes = {x.dtype for node in full for x in (*node.operands, node.out)}
        if any(access.strides[loop.axis] != 1 for access in written):
            return None
        if any(access.strides[loop.axis] not in (0, 1) for access in touched):
            return None
        narrow = VECTOR_BYTES // _width(dtypes)
        if loop.size > SHORT_REGISTERS * narrow:
            return None
        count = narrow if loop.size <= narrow else SHORT_REGISTERS * narrow
        return Vectors(count, count, register=narrow)

    def _write(self) -> Kernel:
        self._find_stages()
        self._plan()
        self.brief = self._brief_vectors()
        if self.brief is not None:
            self._plan()
        self._declare()
        self._literals()
        self._accumulators()
        with self._inside(self.batch):
            self._walked()
        for site, (worst, bound) in self.watched.items():
            refuse_worst(self.source, worst, bound, self.sites[site])
        length = self.first.size if self.first is not None else 1
        work = 1
        for n in self.space:
            work *= n
        return self.source.kernel(
            length,
            scratch=self.scratch,
            is_parallel=self.first is not None
            and (bool(self.batch) or not self.crossing or self.first is self.row[0]),
            work=work * (len(self.accesses) + FUNCTION * sum(map(is_function, self.nodes))),
            nodes=self.nodes,
        )

    def _literals(self) -> None:
        for node in self.nodes:
            for x in node.operands:
                if isinstance(x, Uniform):
                    self.source.literal(x.scalar)

    def _accumulators(self) -> None:
        self.folds: dict[Node, Accumulator] = {
            node: Accumulator(self.source, node.form, node.out.dtype, f"a{i}")
            for i, node in enumerate(self.nodes)
            if isinstance(node, Fold)
        }
        for body in self.bodies:
            vectors = self._vectors(body)
            for node in body:
                if self._kind(node) in ("inner", "total"):
                    self.folds[node].vectors = vectors
                    self.folds[node].is_accurate &= self.brief is None
        # Folds that carry something from one outer iteration to the next.
        self.crossing = [n for n in self.folds if self._kind(n) != "inner"]
        # Columns of float64: blocks of rows are summed beside the result and then added to it.
        self.blocks = [n for n in self.sums if self._beside(n) and n.out.dtype == np.float64]

    def _walked(self) -> None:
        """All of the space, or of one element of the batch."""
        if self.turned:
            self._in_turned_tiles()
            return
        if self.is_crossed:
            size = self.sizes[self.row[-1].variable]
            with self.source.loop("t", 0, size, TILE) as t:
                self.source.assign("edge", call("minimum", t + TILE, size))
                self._rows()
            return
        for node in self.crossing:
            if self._kind(node) == "column":
                self._over_row(self._start_column, node)
            else:
                self.folds[node].start()
        self._rows()
        for node in self.crossing:
            if self._kind(node) == "column":
                if self._beside(node) and node not in self.blocks:
                    self._over_row(self._end_column, node)
            else:
                self._store(self.outs[node], self.folds[node].result(), False)

    def _find_turned(self) -> dict[_Access, str]:
        """What is walked across and lies in memory so that tiles of it can be turned in registers.

        Everything else lies side by side along the row.
        """
        if not self.is_crossed or any(isinstance(n, Guard | Pick) for n in self.nodes):
            return {}
        k, written = self.loops.index(self.row[-1]), set(self.outs.values())
        homes = {access.value for access in written}
        turned: dict[_Access, str] = {}
        for access in self.accesses.values():
            along, apart = access.steps[k - 1], access.steps[k]
            if access.dtype.kind == "c" or (access in written and apart != 1):
                return {}
            if apart in (0, 1):
                continue
            is_near = access.neighbour is not None or abs(apart) <= SHORT_AXIS
            if abs(along) != 1 or is_near or access.value in homes:
                return {}
            if access.dtype.itemsize not in (4, 8):
                return {}
            turned[access] = f"q{len(turned)}"
        sizes = {access.dtype.itemsize for access in turned}
        return turned if len(sizes) == 1 and len(turned) <= MOST_TRANSPOSED else {}

    def _in_turned_tiles(self) -> None:
        """Square tiles, of which those that are whole are turned before they are walked over."""
        source, (*others, across), along, (body,) = (
            self.source, self.outer, self.row[-1], self.bodies,
        )  # fmt: skip
        n = VECTOR_BYTES // next(iter(self.turned)).dtype.itemsize
        begin, end = self._ends(across)
        size = self.sizes[along.variable]
        with (
            self._inside(others),
            source.loop("t", 0, size, n) as t,
            source.loop("s", begin, end, n) as s,
        ):
            edge = source.assign("edge", call("minimum", t + n, size))
            last = source.assign("last", call("minimum", s + n, end))
            with source.when(equal(edge - t, n) & equal(last - s, n)):
                for k, (access, name) in enumerate(self.turned.items()):
                    apart, near = (self._step_variable(access, x) for x in (across, along))
                    # Where the other loop walks backwards, a tile begins at its last element.
                    first = s if self._step(access, across) == 1 else last - 1
                    place = call("offset", access.pointers[-1], first * apart + t * near)
                    scopes = access.scope, _SCRATCH_SCOPE + k
                    source.evaluate(call("turn", Variable(name), place, near, n, *scopes))
                with self._over(across, (s, last)):
                    self._new_suffix()
                    source.assign(f"{along.variable}{self.suffix}", call("lanes", t, n))
                    self.loaded = {}
                    for k, (access, name) in enumerate(self.turned.items()):
                        line = across.index - s
                        if self._step(access, across) != 1:
                            line = last - 1 - across.index
                        at = source.assign(f"at{k}", call("lanes", line * n, n))
                        load = call("load", Variable(name), at, _SCRATCH_SCOPE + k)
                        x = source.assign(f"x{access.base[1:]}{self.suffix}", load)
                        self.loaded[access] = x
                    self._statements(body)
                    self.suffix = ""
            with source.otherwise(), self._over(across, (s, last)):
                self.loaded = {}
                self._hoist(body)
                self._new_suffix()
                with source.loop(along.variable, t, edge) as index:
                    # A vector, too, so that LLVM need not look for any.
                    source.assign(f"{along.variable}{self.suffix}", call("lanes", index, 1))
                    self._statements(body)
                self.suffix = ""

    def _start_column(self, node: Node) -> None:
        access = self.sums[node]
        is_wider = access.dtype != node.out.dtype
        zero = Number(0.0) if is_wider else self.folds[node].zero
        self._store(access, zero, True)
        if node in self.blocks:
            self._store(self.outs[node], zero, True)

    def _beside(self, node: Node) -> bool:
        """Whether a column fold accumulates beside its result."""
        return self.sums[node] is not self.outs[node]

    def _end_block(self, node: Node) -> None:
        total, block = (self._load(a, True) for a in (self.outs[node], self.sums[node]))
        self._store(self.outs[node], total + block, True)
        self._store(self.sums[node], self.folds[node].zero, True)

    def _end_column(self, node: Node) -> None:
        total = self._load(self.sums[node], True)
        self._store(self.outs[node], call("f32", total), True)

    def _over_row(self, body: Callable[[Node], None], node: Node) -> None:
        """A statement for every element of a column fold."""
        loop = self.row[-1]
        steps = {self._step(access, loop) for access in (self.outs[node], self.sums[node])}
        vectors = None
        if steps == {1}:
            count = VECTORS * VECTOR_BYTES // _width([node.out.dtype])
            vectors = Vectors(count, count)
        with self._inside(self.row[:-1]):
            self._elements(loop, *self._ends(loop), vectors, lambda *lanes: body(node))

    def _rows(self) -> None:
        """The outer loops, and what is in them."""
        if not (self.blocks and self.outer):
            with self._inside(self.outer):
                self._all_stages()
            return
        *others, loop = self.outer
        with self._inside(others):
            begin, end = self._ends(loop)
            with self.source.loop("r", begin, end, SUM_BLOCK) as r:
                last = self.source.assign("last", call("minimum", r + SUM_BLOCK, end))
                with self._over(loop, (r, last)):
                    self._all_stages()
                for node in self.blocks:
                    self._over_row(self._end_block, node)

    def _all_stages(self) -> None:
        """One row."""
        self.loaded = {}
        if self.brief is not None:
            self._new_suffix()
            (loop,) = self.row
            lanes = call("first_lanes", 0, self.sizes[loop.variable], self.brief.wide)
            self.source.assign(f"{loop.variable}{self.suffix}", lanes)
            self.brief_suffix, self.suffix = self.suffix, ""
        for stage in range(self.n_stages):
            self._row_nodes(stage)
            if self.bodies[stage]:
                self._full_nodes(stage)

    def _row_nodes(self, stage: int) -> None:
        """Per-row numbers that the stage can know before it passes over the row."""
        for node in self.nodes:
            if self._is_full(node) or self.stage[node] != stage:
                continue
            if isinstance(node, Fold):
                self.folds[node].add(self._name(node.operands[0], node, self.loaded))
            else:
                self._ask([node])
                self._element(node, self.loaded)

    def _full_nodes(self, stage: int) -> None:
        """One pass over the row."""
        body = self.bodies[stage]
        inner = [n for n in body if self._kind(n) == "inner"]
        blocked = [
            n for n in body if self._kind(n) in ("inner", "total") and self.folds[n].is_accurate
        ]
        for node in blocked:
            self.folds[node].is_wide = not self._is_contiguous(body)
        for node in inner:
            self.folds[node].start()
        self._hoist(body)
        with self._inside(self.row[:-1]):
            self._row_loop(body, blocked)
        for node in inner:
            result = self.folds[node].result()
            result = self.source.assign(f"v{self.nodes.index(node)}", result)
            self.names[node.out] = result
            if node in self.outs:
                self._store(self.outs[node], result, False)

    def _is_contiguous(self, body: list[Node]) -> bool:
        """Whether a pass over the row reads neighbours one after the other."""
        return all(
            0 <= self._step(self._operand_access(x, node), self.row[-1]) <= SHORT_AXIS
            for node in body
            for x in node.operands
            if self._is_full(node) and isinstance(x, View) and x.value not in self.made
        )

    def _hoist(self, body: list[Node]) -> None:
        """Loads that are the same all along the row."""
        for node in body:
            # What a guard reads need not be there everywhere.
            for x in node.operands[isinstance(node, Guard | Pick) :]:
                if isinstance(x, View) and x.value not in self.made:
                    access = self._operand_access(x, node)
                    if not any(self._step(access, loop) for loop in self.row):
                        self._name(x, node, self.loaded)
            if isinstance(node, Pick) and self._is_full(node):
                self._hoist_places(node)

    def _is_fixed(self, node: Pick, x: Operand) -> bool:
        """Whether an index is the same all along the row."""
        if isinstance(x, Uniform):
            return True
        if x.value in self.made:
            return self._is_full(node) and not self._is_full(self.made[x.value])
        access = self._operand_access(x, node)
        return not any(self._step(access, loop) for loop in self.row)

    def _hoist_places(self, node: Pick) -> None:
        """Places that are the same all along the row."""
        for k, x in enumerate(node.operands[1:]):
            if self._is_fixed(node, x):
                index = self._name(x, node, self.loaded)
                self.placed[node, k] = self._resolve(node, k, index, is_once=True)

    def _row_loop(self, body: list[Node], blocked: list[Node]) -> None:
        if not self.row:
            self._statements(body)
            return
        loop = self.row[-1]
        if self.brief is not None:
            self.suffix = self.brief_suffix
            self._statements(body, "", self._index_of(loop))
            self.suffix = ""
            return
        vectors = self._vectors(body)
        if not blocked:
            # The edges of a core take two iterations, at least.
            is_brief = vectors is not None and loop.size <= 2 * vectors.narrow
            if not is_brief and self._has_core(body):
                self._around_core(loop, body)
                return
            begin, end = self._ends(loop)
            self._elements(
                loop, begin, end, vectors, lambda *lanes: self._statements(body, "", *lanes)
            )
            return
        size = self.sizes[loop.variable]
        steps = (self._step(access, loop) for access in self.accesses.values())
        # Where elements do not lie beside each other, fewer lanes share the additions.
        block = SUM_BLOCK if vectors is not None or max(steps) <= 1 else SUM_BLOCK // 8
        with self.source.loop("q", 0, size, block) as q:
            stop = self.source.assign("stop", call("minimum", q + block, size))
            for node in blocked:
                self.folds[node].start_block()
            self._elements(
                loop, q, stop, vectors, lambda *lanes: self._statements(body, "", *lanes)
            )
            for node in blocked:
                self.folds[node].end_block()

    def _elements(
        self,
        loop: _Loop,
        begin: Expression,
        end: Expression,
        vectors: Vectors | None,
        body: Callable[..., None],
    ) -> None:
        """The innermost loop: one by one, or in vectors and what is left.

        The body is told the index of lanes if not all of them are there, and whether they are what
        is left.
        """
        source, j = self.source, loop.variable
        if vectors is None:
            with source.loop(j, begin, end, is_seldom=self.is_seldom):
                body()
            return
        wide, narrow = vectors.wide, vectors.narrow
        if vectors.has_rest:
            whole = source.assign("whole", end - ((end - begin) & (wide - 1)))
            self._new_suffix()
            with source.loop("m", begin, whole, wide) as m:
                source.assign(f"{j}{self.suffix}", call("lanes", m, wide))
                body()
            begin = whole
        self._new_suffix()
        with source.loop("m", begin, end, narrow) as m:
            lanes = source.assign(f"{j}{self.suffix}", call("first_lanes", m, end, narrow))
            body(lanes, vectors.has_rest or vectors.is_rest)
        self.suffix = ""

    def _new_suffix(self) -> None:
        self.n_vectorised += 1
        self.suffix = f"_{self.n_vectorised}"

    def _vectors(self, body: list[Node]) -> Vectors | None:
        """How a pass over the row is written in vectors, if all that it touches lies side by side.

        Elsewhere LLVM finds out what to do.
        """
        if not self.row or self.brief is not None:
            return self.brief
        k = self.loops.index(self.row[-1])
        dtypes: set[np.dtype[Any]] = set()
        apart: set[_Access] = set()
        cost = picks = 0
        is_chain = False
        for node in body:
            dtypes.update(x.dtype for x in node.operands)
            dtypes.add(node.out.dtype)
            # Lanes of a lookup read its table wherever they have to, those of a row in their order.
            is_row = isinstance(node, Pick) and self._is_of_row(node)
            read = node.operands[:1] if is_row else node.operands[isinstance(node, Pick) :]
            views = [x for x in read if isinstance(x, View)]
            accesses = [self._operand_access(x, node) for x in views if x.value not in self.made]
            # What an earlier pass over the row has left in memory.
            earlier = {self.made[x.value] for x in views if x.value in self.made} - {*body}
            accesses += [self.outs[maker] for maker in earlier if maker in self.outs]
            written = [a for a in (self.outs.get(node), self.sums.get(node)) if a is not None]
            if self._kind(node) in ("inner", "total"):
                written = []
            apart.update(a for a in accesses if a.steps[k] not in (0, 1))
            if any(a.steps[k] != 1 for a in written):
                return None
            if isinstance(node, Guard) and self.row[-1].axis in self.guarded:
                # Whether there is one element for all lanes is not to be asked of each.
                axis = self.row[-1].axis
                is_asked = node.box[axis] != (0, node.space[axis])
                inside = node.operands[0]
                is_fixed = isinstance(inside, View) and not inside.strides[axis]
                if is_asked and is_fixed:
                    return None
            if isinstance(node, Fold) and not is_across(node):
                return None
            if isinstance(node, Pick):
                picks += not is_row
            else:
                cost += node.cost if isinstance(node, Point) else 1
            # A formula is a chain of operations: waiting takes longer than a trip to memory.
            is_chain |= is_function(node) and not is_row
        is_guarded = any(isinstance(node, Guard) for node in body)
        if (apart or picks) and (cost < max(HEAVY, LOOKUP * picks) or is_guarded):
            return None
        if not all(map(self._can_take, apart)) or (picks and not self._can_pick(body)):
            return None
        kinds = {self._kind(node) for node in body}
        narrow = VECTOR_BYTES // _width(dtypes)
        # Of short rows, accesses to a part of long vectors would be most; they take their time.
        is_short = len(self.loops) > 1 and self.row[-1].size < LEAST_ROW
        if is_short and not kinds & {"inner", "total"}:
            if kinds != {"point"}:
                # Sums of columns would wait for what the row before has left of its last vector.
                return None
            if any(isinstance(node, Guard) for node in body):
                return Vectors(narrow, narrow)
            if self.row[-1].size < narrow or (cost >= HEAVY and not is_chain):
                return None
            if is_chain:
                return Vectors(narrow, narrow)
        # A complex vector is two.
        parts = 2 if any(dtype.kind == "c" for dtype in dtypes) else 1
        registers, waiting = VECTORS // parts, parts * self._most_waiting(body)
        registers = 1 if picks else registers  # each lane is loaded by instructions of its own
        while registers > 1 and registers * waiting > MOST_LIVE and not is_chain:
            registers //= 2
        wide = registers * narrow
        if cost >= HEAVY:
            count = min(SHORT_REGISTERS * narrow, wide) if is_short else wide
            return Vectors(count, count)
        return Vectors(wide, narrow if is_short or kinds & {"inner", "total"} else wide)

    def _can_take(self, access: _Access) -> bool:
        """Whether vectors can be taken out of what lies between the elements.

        LLVM has instructions for permuting words. Without AVX-512 it searches for minutes for those
        that permute bytes.
        """
        if access.dtype.itemsize < WORD_BYTES:
            return False
        is_forward = self._step(access, self.row[-1]) > 0
        has_sums = any(fold.is_accurate for fold in self.folds.values())
        return self._is_apart(access) and access.dtype.kind != "c" and (is_forward or not has_sums)

    def _can_pick(self, body: list[Node]) -> bool:
        """Whether the lookups of a body can be made in vectors: of real numbers, all of the row."""
        picks = [n for n in body if isinstance(n, Pick) and not self._is_of_row(n)]
        return all(self._is_full(node) and node.out.dtype.kind != "c" for node in picks)

    def _is_of_row(self, node: Pick) -> bool:
        """Whether a lookup reads a row of its table: at places that are the same all along it."""
        return self._is_full(node) and all(self._is_fixed(node, x) for x in node.operands[1:])

    def _has_core(self, body: list[Node]) -> bool:
        """Whether most indices lie on the same side of every guard: then those need ask nothing."""
        guards = [node for node in body if isinstance(node, Guard)]
        if not guards or not all(map(self._is_full, guards)):
            return False
        self.core: Box = tuple((0, n) for n in self.space)
        self.is_inside: dict[Node, bool] = {}
        for guard in guards:
            inside = common_box(guard.box, self.core)
            outside = largest_beside(self.core, inside)
            self.is_inside[guard] = box_size(inside) >= box_size(outside)
            self.core = inside if self.is_inside[guard] else outside
        return 2 * box_size(self.core) > math.prod(self.space)

    def _around_core(self, loop: _Loop, body: list[Node]) -> None:
        """The innermost loop in three parts, of which the middle one asks nothing.

        There every guard is known; in rows that lie outside it is empty.
        """
        source = self.source
        begin, end = self._ends(loop)
        sides = self._sides(self.space, self.core, but=loop.axis)
        tests = [call(test, x.index, bound) for x, test, bound in sides]
        a, b = self.core[loop.axis] if loop.axis in self.guarded else (0, loop.size)
        low = call("minimum", call("maximum", source.word(a), begin), end)
        low_ = source.assign("low", low)
        high = call("maximum", call("minimum", source.word(b), end), low_)
        high_ = source.assign("high", high)
        if tests:
            test = all_of(tests)
            source.assign("low", call("select", test, low_, begin))
            source.assign("high", call("select", test, high_, begin))
        vectors = self._vectors(body)
        edges = vectors and Vectors(vectors.narrow, vectors.narrow, vectors.has_rest)
        total = math.prod(self.space)
        if RARE * (total - box_size(self.core)) <= total:
            self.is_seldom, edges = True, None
        with source.loop("side", 0, 2) as side:
            left = source.assign("left", call("select", equal(side, 0), begin, high_))
            right = source.assign("right", call("select", equal(side, 0), low_, end))
            self._elements(
                loop,
                left,
                right,
                edges,
                lambda *lanes: self._statements(body, "edge", *lanes),
            )
        self.is_seldom = False
        self._elements(
            loop,
            low_,
            high_,
            vectors,
            lambda *lanes: self._statements(body, "core", *lanes),
        )

    def _statements(
        self,
        body: list[Node],
        zone: str = "",
        lanes: Expression | None = None,
        is_rest: bool = False,
    ) -> None:
        if self.brief is not None:  # what an earlier pass has made is there
            loaded, body = self.loaded, [node for node in body if node.out not in self.names]
        else:
            loaded = dict(self.loaded)
        stage_names = self.names if self.brief is not None else dict(self.names)
        if zone != "core":
            self._ask(body)
        self._load_overwritten(body, loaded)
        for node in body:
            if not isinstance(node, Fold):
                self._element(node, loaded, zone)
                continue
            value = self._name(node.operands[0], node, loaded)
            if self._kind(node) == "column":
                access = self.sums[node]
                value = value if access.dtype == node.out.dtype else call("f64", value)
                step = applied(node.form.step, [self._load(access, True), value])
                self._store(access, step, True)
            else:
                self.folds[node].step(value, lanes, is_rest)
        self.names = stage_names

    def _load_overwritten(self, body: list[Node], loaded: dict[Any, Variable]) -> None:
        """Load what results replace before the first of them is stored."""
        written = {self.outs[node] for node in body if node in self.outs}
        for node in body:
            for x in node.operands[isinstance(node, Pick) :]:
                if isinstance(x, Uniform) or x.value in self.made:
                    continue
                if self._operand_access(x, node) in written:
                    self._name(x, node, loaded)

    def _finish(self, node: Node, result: Expression) -> None:
        """The variable that holds the result of a node, which is stored if it has a place."""
        self.names[node.out] = result
        if node in self.outs:
            self._store(self.outs[node], result, self._is_full(node))

    def _element(self, node: Node, loaded: dict[Any, Variable], zone: str = "") -> None:
        """What a node computes for one index, or for neighbours."""
        if isinstance(node, Guard):
            self._guard(node, loaded, zone)
        elif isinstance(node, Pick):
            self._pick(node, loaded)
        else:
            assert isinstance(node, Point)
            values = [self._name(x, node, loaded) for x in node.operands]
            dtypes = [x.dtype for x in node.operands]
            value = value_of(node.expr, values, dtypes, node.out.dtype)
            self._finish(node, self.source.assign(self._result_name(node), value))

    def _result_name(self, node: Node) -> str:
        return f"v{self.nodes.index(node)}{self.suffix}"

    def _guard(self, node: Guard, loaded: dict[Any, Variable], zone: str = "") -> None:
        """One operand or the other; the first one is read only where it is there.

        In the core of the index space nothing is asked. At its edge a load that is not wanted goes
        to an element that is there, which takes no branch; without a core there is one, because
        loads of neighbours can then be joined.
        """
        inside, outside = node.operands
        if zone == "core":
            operand = inside if self.is_inside[node] else outside
            self._finish(node, self._name(operand, node, loaded))
            return
        test, name = Variable(self.questions[node] + self.suffix), self._result_name(node)
        otherwise = self._name(outside, node, loaded)
        access = None
        if isinstance(inside, View) and inside.value not in self.made:
            access = self._operand_access(inside, node)
        if access is None or access in loaded:
            value = call("select", test, self._name(inside, node, loaded), otherwise)
        elif self.suffix and self._step(access, self.row[-1]):
            value = call("load_where", *self._index(access), test, otherwise, access.scope)
        elif zone == "edge" or self.suffix:
            value = call("select", test, self._load_safely(access, node, test), otherwise)
        else:
            self.source.assign(name, otherwise)
            with self.source.when(test):
                self.source.assign(name, self._load(access, self._is_full(node)))
            self._finish(node, Variable(name))
            return
        self._finish(node, self.source.assign(name, value))

    def _pick(self, node: Pick, loaded: dict[Any, Variable]) -> None:
        """An element at a place that is computed."""
        source, number = self.source, self.nodes.index(node)
        name = f"v{number}"
        table, *indices = node.operands
        assert isinstance(table, View)
        tests: list[Expression] = []
        moves: list[Expression] = []
        far: list[Expression] = []
        for k, (operand, step) in enumerate(zip(indices, node.steps, strict=True)):
            place = Variable(f"{name}k{k}")
            if (node, k) in self.placed:
                test = self.placed[node, k]
            else:
                test = self._resolve(node, k, self._name(operand, node, loaded))
            tests += [] if test is None else [test]
            if step == 1:
                moves.append(place)
            else:
                far.append(place * Variable(f"d{number}_{k}"))
        access = self._operand_access(table, node)
        is_there = source.assign(f"{name}t", all_of(tests)) if tests else None
        if self.suffix:
            value = self._pick_lanes(access, node, moves, far, is_there)
            self._finish(node, source.assign(self._result_name(node), value))
            return
        if is_there is not None:
            moves = [call("select", is_there, sum_of(moves), 0)] if moves else []
            far = [call("select", is_there, sum_of(far), 0)] if far else []
        pointer, index = self._element_of(access, self._is_full(node))
        if far:
            pointer = call("offset", pointer, sum_of(far))
        if moves:
            is_first = isinstance(index, Number) and index.value == 0
            index = sum_of(moves if is_first else [*moves, index])
        value = call("load", pointer, index, access.scope)
        if is_there is not None:
            value = call("select", is_there, value, source.literal(node.fill))
        self._finish(node, source.assign(name, value))

    def _pick_lanes(
        self,
        access: _Access,
        node: Pick,
        near: Sequence[Expression],
        far: Sequence[Expression],
        is_there: Expression | None,
    ) -> Expression:
        """An element for every lane; those beyond the end of the row load the first one."""
        size, lanes, loop = access.dtype.itemsize, self._index_of(self.row[-1]), self.row[-1]
        pointer, step = access.pointers[-1], self._step(access, loop)
        moves = [*(place * size for place in near), *far]
        if is_there is not None:
            moves = [call("select", is_there, sum_of(moves), 0)]
        if self._is_of_row(node):
            row = call("offset", pointer, sum_of(moves)) if moves else pointer
            value = self._load_lanes(row, step, access)
        else:
            if step:
                is_near = self._is_near(loop, step)
                along = Number(step * size) if is_near else self._step_variable(access, loop)
                moves.append(call("i64", lanes) * along)
            nbytes = call("present", lanes, sum_of(moves), 0)
            value = call("load_each", pointer, nbytes, access.scope)
        if is_there is None:
            return value
        return call("select", is_there, value, self.source.literal(node.fill))

    def _resolve(
        self, node: Pick, k: int, index: Expression, is_once: bool = False
    ) -> Expression | None:
        """Make one of its integers a place; whether there is one, if that is to be asked.

        Once for all of a row a branch costs least; one for each element would keep LLVM from
        computing several at once.
        """
        number, dtype = self.nodes.index(node), node.operands[k + 1].dtype
        site = node.sites[k] if node.sites else None
        name, length = f"v{number}k{k}", Variable(f"m{number}_{k}")
        if site is not None and (is_once or site not in self.watched):
            resolve_or_refuse(self.source, name, index, dtype, length, self.sites[site])
            return None
        worst = "" if site is None else self.watched[site][0]
        lanes = self._index_of(self.row[-1]) if self.suffix else None
        return resolve(self.source, node.mode, name, index, dtype, length, worst, lanes)

    def _load_safely(self, access: _Access, node: Guard, test: Expression) -> Expression:
        """An element of a full guard's operand, or the first one in its box if it is not there."""
        size = access.dtype.itemsize
        near, distance = access, 0
        if access.neighbour is not None:
            near, distance = access.neighbour, access.offset - access.neighbour.offset
        terms, first = [of(distance * size)], distance * size
        for loop, step in zip(self.loops, access.steps, strict=True):
            if step:
                is_near = self._is_near(loop, step)
                terms.append(
                    loop.index * (step * size if is_near else self._step_variable(near, loop))
                )
        first += sum(
            a * stride * size for (a, _), stride in zip(node.box, access.strides, strict=True)
        )
        moved = call("select", test, sum_of(terms), self.source.word(first))
        return call("load", call("offset", Variable(near.base), moved), 0, access.scope)

    def _name(self, operand: Operand, node: Node, loaded: dict[Any, Variable]) -> Expression:
        """The variable that holds an operand, loaded if it is not there yet."""
        if isinstance(operand, Uniform):
            return self.source.literal(operand.scalar)
        if operand.value in self.names:
            return self.names[operand.value]
        if operand.value in self.made:
            access = self.outs[self.made[operand.value]]
        else:
            access = self._operand_access(operand, node)
        if access not in loaded:
            load = self._load(access, self._is_full(node))
            loaded[access] = self.source.assign(f"x{access.base[1:]}{self.suffix}", load)
        return loaded[access]
