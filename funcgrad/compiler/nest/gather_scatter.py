"""Kernels of what no walk of points computes: deposits, searches, places of extremes, recurrences.

As in `codegen` the text depends on structure only: dtypes, how many loops remain after neighbouring
axes were merged, and which operands are contiguous or repeated. Indices that a primitive refuses
end the kernel: it leaves the number of the `Site`, the index and its position in the slots.

Of several wrong indices the one is reported that NumPy would meet first: arrays are looked through
one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from funcgrad.compiler.nest.accumulate import Accumulator, Vectors
from funcgrad.compiler.nest.codegen import REGISTER, REGISTERS, generate_copy
from funcgrad.compiler.nest.layout import (
    Operand,
    Uniform,
    Value,
    View,
    contiguous_strides,
    whole,
)
from funcgrad.compiler.nest.nodes import (
    ArgFold,
    Checked,
    Copies,
    Node,
    Put,
    Scan,
    Search,
)
from funcgrad.compiler.nest.places import is_wrong, refuse, resolve, resolve_or_refuse, signed
from funcgrad.compiler.nest.source import BLOCK, Kernel, Site, Source, neutral
from funcgrad.compiler.nest.walk import Cursor, Loop, Walk
from funcgrad.intrinsics import expression
from funcgrad.lowering import ArgReduction, Reduction

Generator = Callable[[Any], Iterable[Kernel]]
GENERATORS: dict[type[Node], Generator] = {}
"""What writes the kernels of nodes that share them with no other, by the types of these."""


def generates(kind: type[Node]) -> Callable[[Generator], Generator]:
    """Register what writes the kernels of a type of nodes."""

    def register(generate: Generator) -> Generator:
        GENERATORS[kind] = generate
        return generate

    return register


@generates(Checked)
def generate_check(node: Checked) -> Iterator[Kernel]:
    """The kernel that makes indices places, and looks for the first wrong one if there is any."""
    (index,) = node.operands
    source = Source(has_span=True)
    given, out = Cursor(source, index, "i", 1), Cursor(source, whole(node.out), "y", 2)
    source.add(f"n = {source.word(node.length)}")
    assert node.equation is not None
    site = source.word(Site(node.equation, node.number))
    moved = [(given, given.strides), (out, out.strides)]
    walk = Walk(source, "a", node.out.shape, moved, is_outermost=True)
    source.add("low = i64(0)")
    source.add("high = i64(-1)")
    with walk.inside():
        source.add(f"at = {signed(given.load(), index.dtype)}")
        source.add("low = minimum(low, at)")
        source.add("high = maximum(high, at)")
        source.add(out.store("select(at < 0, at + n, at)"))
    with source.block("if (low < -n) | (high >= n):"), walk.inside():
        source.add(f"at = {signed(given.load(), index.dtype)}")
        with source.block(f"if {is_wrong('at', 'n')}:"):
            refuse(source, site, "at", walk.number())
    yield Kernel(source.text(), source.words, walk.length, work=2 * math.prod(node.out.shape))


@generates(Put)
def generate_put(node: Put) -> Iterator[Kernel]:
    """The kernels of a deposit: a copy, into which elements are then taken."""
    yield from _copied(node.operands[0], whole(node.out))
    yield _Put(node).kernel


class _Put:
    """Elements are taken in one after the other, as far as they may go to the same place.

    So threads share lanes, or the elements of rows; or numbers whose places ascend, each thread
    those of some places, if that is how they turn out to be.
    """

    def __init__(self, node: Put) -> None:
        _, updates, *indices = node.operands
        self.node = node
        self.source = source = Source(has_span=True)
        self.target, self.given = (
            Cursor(source, node.target, "t", 1),
            Cursor(source, updates, "x", 2),
        )
        self.indices = [Cursor(source, x, f"i{k}", 3 + k) for k, x in enumerate(indices)]
        for k, (length, step) in enumerate(zip(node.lengths, node.steps, strict=True)):
            source.add(f"n{k} = {source.word(length)}")
            size = node.out.dtype.itemsize
            source.add(f"s{k} = {size if step == 1 else source.word(step * size)}")
        self.sites = [None if site is None else source.word(site) for site in node.sites]
        shape, n = updates.shape, len(updates.shape) - node.n_rest
        cursors = (self.target, self.given, *self.indices)
        long = [axis for axis in range(n) if shape[axis] != 1]
        is_row = math.prod(shape[n:]) > 1
        has_lanes = bool(long) and long[0] in node.lanes
        moved = [(c, c.strides[:n]) for c in cursors]
        self.places = Walk(source, "a", shape[:n], moved, has_lanes or not is_row)
        moved = [(c, c.strides[n:]) for c in cursors[:2]]
        self.row = Walk(source, "b", shape[n:], moved, is_row and not has_lanes)
        first = self.row if is_row and not has_lanes else self.places
        is_line = math.prod(shape[n:]) == 1 and len(self.places.loops) == 1
        is_line = is_line and not has_lanes and n > 0 and bool(self.indices)
        if is_line:
            source.add(f"total = {source.word(math.prod(shape))}")
            self.zero = source.literal(node.out.dtype.type(0))
            self._write_line(self.places.loops[0])
        else:
            self._write()
        is_parallel = has_lanes or is_row or is_line
        work = math.prod(shape)
        self.kernel = Kernel(
            source.text(), source.words, first.length, [], is_parallel, work, (node,)
        )
        if not has_lanes:
            self.kernel.per_thread = 1

    def _place(self, is_written: bool = False) -> tuple[str, str]:
        """How many bytes further the place of the current element is, and whether there is one."""
        source, tests = self.source, []
        for k, cursor in enumerate(self.indices):
            index, mode = cursor.load(), self.node.mode
            site = self.sites[k] if is_written and self.sites else None
            if site is not None:
                resolve_or_refuse(source, f"k{k}", index, cursor.dtype, f"n{k}", site)
                continue
            test = resolve(source, mode, f"k{k}", index, cursor.dtype, f"n{k}")
            tests += [f"({test})"] if test else []
        moves = " + ".join(f"k{k} * s{k}" for k in range(len(self.indices)))
        return moves, " & ".join(tests)

    def _write(self, span: str = "") -> None:
        source, target = self.source, self.target
        with self.places.inside(span=span):
            moves, test = self._place(is_written=True)
            with source.block(f"if {test}:") if test else nullcontext():
                if target.index != "0":
                    source.add(f"t_at = advance({target.pointer}, {target.index})")
                    target.pointer, target.index = "t_at", "0"
                if moves:
                    source.add(f"t_row = offset({target.pointer}, {moves})")
                    target.pointer = "t_row"
                with self.row.inside():
                    source.add(target.store(self._taken(target.load())))

    def _taken(self, value: str) -> str:
        return self.node.step.format(value, self.given.load())

    # Numbers, one after the other.

    def _write_line(self, loop: Loop) -> None:
        """Where places ascend, a number stays in a register until elements go to another one."""
        source = self.source
        self._compare(loop)
        with source.block("if falls > 0:"), source.block("if begin == 0:"):
            self._write("0, total")
        with source.block("else:"):
            self._share(loop)
            source.add("here = i64(-1)")
            source.add(f"value = {self.zero}")
            with self.places.over(loop):
                moves, test = self._place(is_written=True)
                with source.block(f"if {test}:") if test else nullcontext():
                    source.add(f"place = {moves}")
                    with source.block("if place != here:"):
                        self._leave()
                        source.add("here = place")
                        source.add("value = load(offset(t, here), 0, 1)")
                    source.add(f"value = {self._taken('value')}")
            self._leave()

    def _leave(self) -> None:
        with self.source.block("if here >= 0:"):
            self.source.add("store(offset(t, here), 0, value, 1)")

    def _compare(self, loop: Loop) -> None:
        """Whether a place is before the one that comes before it: known soon if it often is."""
        source = self.source
        source.add("before = i64(-(1 << 62))")
        source.add("falls = i64(0)")
        with source.block(f"for q in range(0, total, {BLOCK}):"):
            source.add(f"stop = minimum(q + {BLOCK}, total)")
            with self.places.over(loop, "q, stop"):
                source.add(f"place = {self._place()[0]}")
                source.add("falls = maximum(falls, i64(place < before))")
                source.add("before = place")
            with source.block("if falls > 0:"):
                source.add("break")

    def _share(self, loop: Loop) -> None:
        """Begin and end where places change."""
        source = self.source
        with source.block("for side in range(2):"):
            source.add("edge = select(side == 0, begin, end)")
            with source.block("if (edge > 0) & (edge < total):"):
                with self.places.over(loop, "edge - 1, edge"):
                    source.add(f"before = {self._place()[0]}")
                source.add("moved = total")
                with self.places.over(loop, "edge, total"):
                    source.add(f"place = {self._place()[0]}")
                    with source.block("if place != before:"):
                        source.add(f"moved = {loop.variable}")
                        source.add("break")
                source.add("edge = moved")
            source.add("begin = select(side == 0, edge, begin)")
            source.add("end = select(side == 0, end, edge)")


def is_there(operand: Operand, place: View) -> bool:
    """Whether an operand need not be copied to a place, since it is changed where it is."""
    if isinstance(operand, Uniform):
        return False
    if operand.value.part is not None and operand.is_whole:
        part = operand.value.part
        return (part.value, part.offset) == (place.value, place.offset)
    if not (operand.is_whole and place.is_whole):
        return False
    return operand.value.home is place.value.home


@generates(Copies)
def generate_copies(node: Copies) -> Iterator[Kernel]:
    """The kernels of an assembly."""
    for operand, place in zip(node.operands, node.places, strict=True):
        yield from _copied(operand, place)


def _copied(operand: Operand, place: View) -> Iterator[Kernel]:
    if not is_there(operand, place):
        yield generate_copy(operand, place)


# Places of extremes.

ARG_BLOCK = 1024
"""Elements of the part of a line that is looked through for its extreme a second time."""

LEAST_LINE = 8
"""Length of lines from which they are looked through twice, in vectors if possible."""


@generates(ArgFold)
def generate_argfold(node: ArgFold) -> Iterator[Kernel]:
    """The kernel that finds extreme elements along an axis."""
    (x,) = node.operands
    assert isinstance(x, View)
    axis = node.form.axis
    is_column = axis < len(x.shape) - 1 and x.strides[-1] == 1 and x.strides[axis] != 1
    yield _argfold_by_columns(node, x) if is_column else _argfold_by_rows(node, x)


def _argfold_by_rows(node: ArgFold, x: View) -> Kernel:
    """One line after the other: its blocks first, then the block that has the extreme."""
    source, form = Source(has_span=True), node.form
    line, out = Cursor(source, x, "x", 1), Cursor(source, whole(node.out), "y", 2)
    others = [i for i in range(len(x.shape)) if i != form.axis]
    shape = tuple(x.shape[i] for i in others)
    moved = [(line, [x.strides[i] for i in others]), (out, out.strides)]
    walk = Walk(source, "a", shape, moved, is_outermost=True)
    along = Walk(source, "j", (x.shape[form.axis],), [(line, (x.strides[form.axis],))])
    if not along.loops:
        with walk.inside():
            source.add(out.store("0"))
        return Kernel(source.text(), source.words, walk.length)
    is_long = x.shape[form.axis] >= LEAST_LINE
    is_dense = x.strides[form.axis] == 1 and x.dtype.kind in "fiu"
    kind = _ExtremeOfVectors if is_dense and is_long else _ExtremeOfNumbers
    search = kind(source, form, line, along)
    with walk.inside():
        source.add(f"best = {line.load()}")
        source.add("place = i64(0)")
        if not is_long:
            search.fold("best", f"0, {search.loop.end}")
            search.find("most", f"0, {search.loop.end}")
        else:
            source.add("first = i64(0)")
            search.begin()
            with along.blocks(search.loop, ARG_BLOCK):
                search.fold("best", "q, stop")
                with source.block(f"if {form.better.format('most', 'best')}:"):
                    source.add("best = most")
                    source.add("first = q")
            source.add(f"stop = minimum(first + {ARG_BLOCK}, {search.loop.end})")
            search.find("best", "first, stop")
        source.add(out.store("place"))
    return Kernel(source.text(), source.words, walk.length, [], True, math.prod(x.shape))


class _ExtremeOfNumbers:
    """The most extreme element of a block, and the first of a block that is as extreme as one."""

    def __init__(self, source: Source, form: ArgReduction, line: Cursor, along: Walk) -> None:
        self.source = source
        self.form = form
        self.line = line
        self.along = along
        (self.loop,) = along.loops

    def begin(self) -> None:
        """What comes before the blocks of a line."""

    def fold(self, best: str, span: str) -> None:
        """Set ``most`` to the most extreme one of some elements and of a number before them."""
        self.source.add(f"most = {best}")
        with self.along.over(self.loop, span):
            self.source.add(f"most = {self.form.step.format('most', self.line.load())}")

    def find(self, best: str, span: str) -> None:
        """Set ``place`` to the first of some elements that is as extreme as ``best``."""
        source = self.source
        with self.along.over(self.loop, span):
            source.add(f"here = {self.line.load()}")
            with source.block(f"if not ({self.form.better.format(best, 'here')}):"):
                source.add(f"place = {self.loop.variable}")
                source.add("break")


class _ExtremeOfVectors(_ExtremeOfNumbers):
    """The same in vectors, where elements lie side by side."""

    def __init__(self, source: Source, form: ArgReduction, line: Cursor, along: Walk) -> None:
        super().__init__(source, form, line, along)
        narrow = REGISTER // line.dtype.itemsize
        self.vectors = Vectors(REGISTERS * narrow, narrow)
        (combines,) = expression(form.step).uses
        init = {"max": "{lowest}", "min": "{highest}"}[combines.across]
        fold = Reduction((form.axis,), init, form.step)
        self.most = Accumulator(source, fold, line.dtype, "m")
        self.most.vectors = self.vectors

    def begin(self) -> None:
        self.row = self.line.pointer
        if self.line.index != "0":
            self.source.add(f"row = advance({self.line.pointer}, {self.line.index})")
            self.row = "row"

    def fold(self, best: str, span: str) -> None:
        begin, stop = span.split(", ")
        source, vectors = self.source, self.vectors
        load = f"load({self.row}, {{}}, {self.line.scope})"
        self.most.start()
        source.add(f"whole = {stop} - (({stop} - {begin}) & {vectors.wide - 1})")
        with source.block(f"for w in range({begin}, whole, {vectors.wide}):"):
            source.add(f"i_w = lanes(w, {vectors.wide})")
            self.most.step(load.format("i_w"))
        with source.block(f"for w in range(whole, {stop}, {vectors.narrow}):"):
            source.add(f"i_r = first_lanes(w, {stop}, {vectors.narrow})")
            self.most.step(load.format("i_r"), "i_r", True)
        source.add(f"most = {self.most.result()}")

    def find(self, best: str, span: str) -> None:
        begin, stop = span.split(", ")
        source, narrow = self.source, self.vectors.narrow
        with source.block(f"for w in range({begin}, {stop}, {narrow}):"):
            source.add(f"i_s = first_lanes(w, {stop}, {narrow})")
            source.add(f"here = load({self.row}, i_s, {self.line.scope})")
            source.add(f"is_less = {self.form.better.format(best, 'here')}")
            source.add(f"at = across_minimum(select(present(i_s, is_less, True), {stop}, i_s))")
            with source.block(f"if at < {stop}:"):
                source.add("place = at")
                source.add("break")


def _argfold_by_columns(node: ArgFold, x: View) -> Kernel:
    """All lines beside each other at once: their extremes so far are kept in memory."""
    source, form = Source(has_span=True), node.form
    axis = form.axis
    leading, trailing = x.shape[:axis], x.shape[axis + 1 :]
    best = Value(trailing, x.dtype)
    line, out = Cursor(source, x, "x", 1), Cursor(source, whole(node.out), "y", 2)
    extreme = Cursor(source, whole(best), "z", 3)
    moved = [(line, x.strides[:axis]), (out, out.strides[:axis])]
    walk = Walk(source, "a", leading, moved, is_outermost=True)
    along = Walk(source, "j", (x.shape[axis],), [(line, (x.strides[axis],))])
    moved = [
        (line, x.strides[axis + 1 :]),
        (out, contiguous_strides(trailing)),
        (extreme, best.strides),
    ]
    row = Walk(source, "b", trailing, moved)
    with walk.inside():
        with row.inside():
            source.add(extreme.store(line.load()))
            source.add(out.store("0"))
        for loop in along.loops:
            with along.over(loop, f"1, {loop.length}"), row.inside():
                source.add(f"here = {line.load()}")
                source.add(f"best = {extreme.load()}")
                source.add(f"is_new = {form.better.format('here', 'best')}")
                source.add(extreme.store("select(is_new, here, best)"))
                source.add(out.store(f"select(is_new, {loop.variable}, {out.load()})"))
    return Kernel(source.text(), source.words, walk.length, [best], work=math.prod(x.shape))


@generates(Search)
def generate_search(node: Search) -> Iterator[Kernel]:
    """The kernel of binary searches: all those of a block make each step together.

    They do not wait for each other's loads, and no step takes a branch.
    """
    ordered, values = node.operands
    assert isinstance(ordered, View)
    source, n = Source(has_span=True), node.form.lanes
    line = Cursor(source, ordered, "x", 1)
    value, out = Cursor(source, values, "v", 2), Cursor(source, whole(node.out), "y", 3)
    lanes = (*ordered.strides[:n], *(0,) * (len(values.shape) - n))
    moved = [(line, lanes), (value, value.strides), (out, out.strides)]
    walk = Walk(source, "a", values.shape, moved, is_outermost=True)
    source.add(f"length = {source.word(ordered.shape[-1])}")
    is_dense = ordered.strides[-1] == 1
    if not is_dense:
        source.add(f"step = {source.word(ordered.strides[-1] * ordered.dtype.itemsize)}")

    def advance(by: str, at: str) -> None:
        """Go forward in every search of the block if an element comes before its value."""
        with walk.over(last, "q, stop"):
            source.add(f"low = {out.load()}")
            if line.index != "0":
                source.add(f"row = advance({line.pointer}, {line.index})")
            pointer = line.pointer if line.index == "0" else "row"
            place = f"{pointer}, {at}" if is_dense else f"offset({pointer}, ({at}) * step), 0"
            source.add(f"here = load({place}, 1)")
            source.add(f"wanted = {value.load()}")
            test = node.form.before.format("here", "wanted")
            source.add(out.store(f"select({test}, low + {by}, low)"))

    *outer, last = walk.loops
    with walk.inside(outer), walk.blocks(last):
        with walk.over(last, "q, stop"):
            source.add(out.store("i64(0)"))
        source.add("left = length")
        with source.block("while left > 1:"):
            source.add("half = right_shift(left, 1)")
            source.add("left = left - half")
            advance("half", "low + half - 1")
        with source.block("if left > 0:"):
            advance("1", "low")
    work = math.prod(values.shape) * max(ordered.shape[-1].bit_length(), 1)
    yield Kernel(source.text(), source.words, walk.length, [], True, work)


ROWS = 4
"""Lines along which results run at the same time: each waits for the operation before."""


@generates(Scan)
def generate_scan(node: Scan) -> Iterator[Kernel]:
    """The kernel of a running fold.

    Loops over the other axes, then along the axis, with the results so far in registers.
    """
    form, axis = node.form, node.form.axis
    source, shape = Source(has_span=True), node.out.shape
    given = [Cursor(source, x, f"p{k}", k + 1) for k, x in enumerate(node.operands)]
    cursors = [*given, Cursor(source, whole(node.out), "y", len(given) + 1)]
    others = [i for i in range(len(shape)) if i != axis]
    moved = [(c, tuple(c.strides[i] for i in others)) for c in cursors]
    walk = Walk(source, "i", tuple(shape[i] for i in others), moved, is_outermost=True)
    moved = [(c, (c.strides[axis],)) for c in cursors]
    along = Walk(source, "j", (shape[axis],), moved, is_reverse=form.reverse)
    first = source.literal(neutral(form.init, node.out.dtype))

    def run(lines: Sequence[str]) -> None:
        for line in lines:
            source.add(f"h{line} = {first}")
        with along.inside():
            for line in lines:
                names = [f"x{k}{line}" for k in range(len(given))]
                for name, cursor in zip(names, given, strict=True):
                    source.add(f"{name} = {cursor.load(line)}")
                source.add(f"h{line} = {form.step.format(f'h{line}', *names)}")
                source.add(cursors[-1].store(f"h{line}", line))

    *outer, last = walk.loops
    with walk.inside(outer):
        if not along.loops or last.size < ROWS:
            with walk.over(last):
                run([""])
        else:
            lines = [f"_{r}" for r in range(ROWS)]
            with walk.together(last, lines):
                run(lines)
            with walk.over(last, f"whole, {last.end}"):
                run([""])
    yield Kernel(source.text(), source.words, walk.length, [], True, math.prod(shape))
