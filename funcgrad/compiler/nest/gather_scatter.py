"""Kernels of what no walk of points computes: deposits, searches, places of extremes, recurrences.

As in `codegen` the function depends on structure only: dtypes, how many loops remain after
neighbouring axes were merged, and which operands are contiguous or repeated. Indices that a
primitive refuses end the kernel: it leaves the number of the `Site`, the index and its position in
the slots.

Of several wrong indices the one is reported that NumPy would meet first: arrays are looked through
one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from funcgrad.compiler.loops.language import (
    Expression,
    Variable,
    all_of,
    applied,
    call,
    equal,
    of,
    sum_of,
)
from funcgrad.compiler.machine import FEW, SHORT_AXIS, SUM_BLOCK, VECTOR_BYTES, VECTORS
from funcgrad.compiler.nest.accumulate import Accumulator, Vectors
from funcgrad.compiler.nest.codegen import generate_copy
from funcgrad.compiler.nest.kernel import Kernel, KernelBuilder, Site, neutral
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
from funcgrad.compiler.nest.walk import FIRST, Cursor, Loop, Span, Walk
from funcgrad.intrinsics import expression
from funcgrad.lowering import ArgReduction, Reduction

_BEGIN, _END = Variable("begin"), Variable("end")


def _builder() -> KernelBuilder:
    """A kernel that names the range of its outermost loop first of all."""
    source = KernelBuilder()
    for variable, word in zip((_BEGIN, _END), source.span(), strict=True):
        source.assign(variable.name, word)
    return source


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
    source = _builder()
    given, out = Cursor(source, index, "i", 1), Cursor(source, whole(node.out), "y", 2)
    n = source.assign("n", source.word(node.length))
    assert node.equation is not None
    site = source.word(Site(node.equation, node.number))
    moved = [(given, given.strides), (out, out.strides)]
    walk = Walk(source, "a", node.out.shape, moved, is_outermost=True)
    low = source.assign("low", call("i64", 0))
    high = source.assign("high", call("i64", -1))
    with walk.inside():
        at = source.assign("at", signed(given.load(), index.dtype))
        source.assign("low", call("minimum", low, at))
        source.assign("high", call("maximum", high, at))
        out.store(call("select", at < 0, at + n, at))
    with source.when((low < -n) | (high >= n)), walk.inside():
        at = source.assign("at", signed(given.load(), index.dtype))
        with source.when(is_wrong(at, n)):
            refuse(source, site, at, walk.number())
    yield source.kernel(walk.length, work=2 * math.prod(node.out.shape))


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
        self.source = source = _builder()
        self.target, self.given = (
            Cursor(source, node.target, "t", 1),
            Cursor(source, updates, "x", 2),
        )
        self.indices = [Cursor(source, x, f"i{k}", 3 + k) for k, x in enumerate(indices)]
        for k, (length, step) in enumerate(zip(node.lengths, node.steps, strict=True)):
            source.assign(f"n{k}", source.word(length))
            size = node.out.dtype.itemsize
            source.assign(f"s{k}", size if step == 1 else source.word(step * size))
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
            self.total = source.assign("total", source.word(math.prod(shape)))
            self.zero = source.literal(node.out.dtype.type(0))
            self._write_line(self.places.loops[0])
        else:
            self._write()
        is_parallel = has_lanes or is_row or is_line
        self.kernel = source.kernel(
            first.length, is_parallel=is_parallel, work=math.prod(shape), nodes=(node,)
        )
        if not has_lanes:
            self.kernel.per_thread = 1

    def _place(self, is_written: bool = False) -> tuple[Expression | None, Expression | None]:
        """How many bytes further the place of the current element is, and whether there is one."""
        source, tests = self.source, []
        for k, cursor in enumerate(self.indices):
            index, mode, length = cursor.load(), self.node.mode, Variable(f"n{k}")
            site = self.sites[k] if is_written and self.sites else None
            if site is not None:
                resolve_or_refuse(source, f"k{k}", index, cursor.dtype, length, site)
                continue
            test = resolve(source, mode, f"k{k}", index, cursor.dtype, length)
            tests += [] if test is None else [test]
        moves = [Variable(f"k{k}") * Variable(f"s{k}") for k in range(len(self.indices))]
        return sum_of(moves) if moves else None, all_of(tests) if tests else None

    def _distance(self) -> Expression:
        """How many bytes further the place of the current element is."""
        moves, _ = self._place()
        assert moves is not None
        return moves

    def _write(self, span: Span | None = None) -> None:
        source, target = self.source, self.target
        with self.places.inside(span=span):
            moves, test = self._place(is_written=True)
            with nullcontext() if test is None else source.when(test):
                if target.index is not FIRST:
                    advanced = call("advance", target.pointer, target.index)
                    target.pointer, target.index = source.assign("t_at", advanced), FIRST
                if moves is not None:
                    target.pointer = source.assign("t_row", call("offset", target.pointer, moves))
                with self.row.inside():
                    target.store(self._taken(target.load()))

    def _taken(self, value: Expression) -> Expression:
        return applied(self.node.step, [value, self.given.load()])

    # Numbers, one after the other.

    def _write_line(self, loop: Loop) -> None:
        """Where places ascend, a number stays in a register until elements go to another one."""
        source = self.source
        self._compare(loop)
        with source.when(Variable("falls") > 0), source.when(equal(_BEGIN, 0)):
            self._write((FIRST, self.total))
        with source.otherwise():
            self._share(loop)
            here = source.assign("here", call("i64", -1))
            value = source.assign("value", self.zero)
            with self.places.over(loop):
                moves, test = self._place(is_written=True)
                assert moves is not None
                with nullcontext() if test is None else source.when(test):
                    place = source.assign("place", moves)
                    with source.when(call("not_equal", place, here)):
                        self._leave(here, value)
                        source.assign("here", place)
                        source.assign("value", call("load", self._element(here), 0, 1))
                    source.assign("value", self._taken(value))
            self._leave(here, value)

    def _element(self, place: Expression) -> Expression:
        return call("offset", Variable("t"), place)

    def _leave(self, here: Expression, value: Expression) -> None:
        with self.source.when(here >= 0):
            self.source.store(self._element(here), 0, value, 1)

    def _compare(self, loop: Loop) -> None:
        """Whether a place is before the one that comes before it: known soon if it often is."""
        source = self.source
        before = source.assign("before", call("i64", -(1 << 62)))
        falls = source.assign("falls", call("i64", 0))
        with source.loop("q", 0, self.total, SUM_BLOCK) as q:
            stop = source.assign("stop", call("minimum", q + SUM_BLOCK, self.total))
            with self.places.over(loop, (q, stop)):
                place = source.assign("place", self._distance())
                falls = source.assign("falls", call("maximum", falls, call("i64", place < before)))
                source.assign("before", place)
            with source.when(falls > 0):
                source.leave()

    def _share(self, loop: Loop) -> None:
        """Begin and end where places change."""
        source = self.source
        with source.loop("side", 0, 2) as side:
            is_first = equal(side, 0)
            edge = source.assign("edge", call("select", is_first, _BEGIN, _END))
            with source.when((edge > 0) & (edge < self.total)):
                with self.places.over(loop, (edge - 1, edge)):
                    before = source.assign("before", self._distance())
                moved = source.assign("moved", self.total)
                with self.places.over(loop, (edge, self.total)):
                    place = source.assign("place", self._distance())
                    with source.when(call("not_equal", place, before)):
                        source.assign("moved", loop.index)
                        source.leave()
                source.assign("edge", moved)
            source.assign("begin", call("select", is_first, edge, _BEGIN))
            source.assign("end", call("select", is_first, _END, edge))


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

ARG_BLOCK = 2 * SUM_BLOCK
"""Elements of the part of a line that is looked through for its extreme a second time."""


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
    source, form = _builder(), node.form
    line, out = Cursor(source, x, "x", 1), Cursor(source, whole(node.out), "y", 2)
    others = [i for i in range(len(x.shape)) if i != form.axis]
    shape = tuple(x.shape[i] for i in others)
    moved = [(line, [x.strides[i] for i in others]), (out, out.strides)]
    walk = Walk(source, "a", shape, moved, is_outermost=True)
    along = Walk(source, "j", (x.shape[form.axis],), [(line, (x.strides[form.axis],))])
    if not along.loops:
        with walk.inside():
            out.store(0)
        return source.kernel(walk.length)
    is_long = x.shape[form.axis] >= SHORT_AXIS
    is_dense = x.strides[form.axis] == 1 and x.dtype.kind in "fiu"
    kind = _ExtremeOfVectors if is_dense and is_long else _ExtremeOfNumbers
    search = kind(source, form, line, along)
    with walk.inside():
        best = source.assign("best", line.load())
        place = source.assign("place", call("i64", 0))
        if not is_long:
            line_span = FIRST, search.loop.end
            search.find(search.fold(best, line_span), line_span)
        else:
            first = source.assign("first", call("i64", 0))
            search.begin()
            with along.blocks(search.loop, ARG_BLOCK) as span:
                most = search.fold(best, span)
                with source.when(applied(form.better, [most, best])):
                    source.assign("best", most)
                    source.assign("first", span[0])
            stop = source.assign("stop", call("minimum", first + ARG_BLOCK, search.loop.end))
            search.find(best, (first, stop))
        out.store(place)
    return source.kernel(walk.length, is_parallel=True, work=math.prod(x.shape))


class _ExtremeOfNumbers:
    """The most extreme element of a block, and the first of a block that is as extreme as one."""

    def __init__(
        self, source: KernelBuilder, form: ArgReduction, line: Cursor, along: Walk
    ) -> None:
        self.source = source
        self.form = form
        self.line = line
        self.along = along
        (self.loop,) = along.loops

    def begin(self) -> None:
        """What comes before the blocks of a line."""

    def fold(self, best: Expression, span: Span) -> Expression:
        """Set ``most`` to the most extreme one of some elements and of a number before them."""
        most = self.source.assign("most", best)
        with self.along.over(self.loop, span):
            self.source.assign("most", applied(self.form.step, [most, self.line.load()]))
        return most

    def find(self, best: Expression, span: Span) -> None:
        """Set ``place`` to the first of some elements that is as extreme as ``best``."""
        source = self.source
        with self.along.over(self.loop, span):
            here = source.assign("here", self.line.load())
            with source.when(~applied(self.form.better, [best, here])):
                source.assign("place", self.loop.index)
                source.leave()


class _ExtremeOfVectors(_ExtremeOfNumbers):
    """The same in vectors, where elements lie side by side."""

    def __init__(
        self, source: KernelBuilder, form: ArgReduction, line: Cursor, along: Walk
    ) -> None:
        super().__init__(source, form, line, along)
        narrow = VECTOR_BYTES // line.dtype.itemsize
        self.vectors = Vectors(VECTORS * narrow, narrow)
        (combines,) = expression(form.step).uses
        init = {"max": "{lowest}", "min": "{highest}"}[combines.across]
        fold = Reduction((form.axis,), init, form.step)
        self.most = Accumulator(source, fold, line.dtype, "m")
        self.most.vectors = self.vectors

    def begin(self) -> None:
        self.row = self.line.pointer
        if self.line.index is not FIRST:
            advanced = call("advance", self.line.pointer, self.line.index)
            self.row = self.source.assign("row", advanced)

    def _load(self, lanes: Expression) -> Expression:
        return call("load", self.row, lanes, self.line.scope)

    def fold(self, best: Expression, span: Span) -> Expression:
        source, (begin, stop), wide = self.source, span, self.vectors.wide
        self.most.start()
        whole = source.assign("whole", stop - ((stop - begin) & (wide - 1)))
        with source.loop("w", begin, whole, wide) as w:
            self.most.step(self._load(source.assign("i_w", call("lanes", w, wide))))
        narrow = self.vectors.narrow
        with source.loop("w", whole, stop, narrow) as w:
            lanes = source.assign("i_r", call("first_lanes", w, stop, narrow))
            self.most.step(self._load(lanes), lanes, True)
        return source.assign("most", self.most.result())

    def find(self, best: Expression, span: Span) -> None:
        source, (begin, stop), narrow = self.source, span, self.vectors.narrow
        with source.loop("w", begin, stop, narrow) as w:
            lanes = source.assign("i_s", call("first_lanes", w, stop, narrow))
            here = source.assign("here", self._load(lanes))
            is_less = source.assign("is_less", applied(self.form.better, [best, here]))
            is_other = call("present", lanes, is_less, True)
            place = call("across_minimum", call("select", is_other, stop, lanes))
            at = source.assign("at", place)
            with source.when(at < stop):
                source.assign("place", at)
                source.leave()


def _argfold_by_columns(node: ArgFold, x: View) -> Kernel:
    """All lines beside each other at once: their extremes so far are kept in memory."""
    source, form = _builder(), node.form
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
            extreme.store(line.load())
            out.store(0)
        for loop in along.loops:
            with along.over(loop, (of(1), loop.end)), row.inside():
                here = source.assign("here", line.load())
                most = source.assign("best", extreme.load())
                is_new = source.assign("is_new", applied(form.better, [here, most]))
                extreme.store(call("select", is_new, here, most))
                out.store(call("select", is_new, loop.index, out.load()))
    return source.kernel(walk.length, scratch=[best], work=math.prod(x.shape))


@generates(Search)
def generate_search(node: Search) -> Iterator[Kernel]:
    """The kernel of binary searches: all those of a block make each step together.

    They do not wait for each other's loads, and no step takes a branch.
    """
    ordered, values = node.operands
    assert isinstance(ordered, View)
    source, n = _builder(), node.form.lanes
    line = Cursor(source, ordered, "x", 1)
    value, out = Cursor(source, values, "v", 2), Cursor(source, whole(node.out), "y", 3)
    lanes = (*ordered.strides[:n], *(0,) * (len(values.shape) - n))
    moved = [(line, lanes), (value, value.strides), (out, out.strides)]
    walk = Walk(source, "a", values.shape, moved, is_outermost=True)
    length = source.assign("length", source.word(ordered.shape[-1]))
    step = None
    if ordered.strides[-1] != 1:
        nbytes = source.word(ordered.strides[-1] * ordered.dtype.itemsize)
        step = source.assign("step", nbytes)

    def advance(span: Span, by: Expression, is_last: bool) -> None:
        """Go forward in every search of the block if an element comes before its value."""
        with walk.over(last, span):
            low = source.assign("low", out.load())
            row, at = line.pointer, low if is_last else low + by - 1
            if line.index is not FIRST:
                row = source.assign("row", call("advance", line.pointer, line.index))
            place = (row, at) if step is None else (call("offset", row, at * step), FIRST)
            here = source.assign("here", call("load", *place, 1))
            wanted = source.assign("wanted", value.load())
            test = applied(node.form.before, [here, wanted])
            out.store(call("select", test, low + by, low))

    *outer, last = walk.loops
    with walk.inside(outer), walk.blocks(last) as span:
        with walk.over(last, span):
            out.store(call("i64", 0))
        left = source.assign("left", length)
        with source.repeat(left > 1):
            half = source.assign("half", call("right_shift", left, 1))
            source.assign("left", left - half)
            advance(span, half, False)
        with source.when(left > 0):
            advance(span, of(1), True)
    work = math.prod(values.shape) * max(ordered.shape[-1].bit_length(), 1)
    yield source.kernel(walk.length, is_parallel=True, work=work)


@generates(Scan)
def generate_scan(node: Scan) -> Iterator[Kernel]:
    """The kernel of a running fold.

    Loops over the other axes, then along the axis, with the results so far in registers.
    """
    form, axis = node.form, node.form.axis
    source, shape = _builder(), node.out.shape
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
            source.assign(f"h{line}", first)
        with along.inside():
            for line in lines:
                elements = [
                    source.assign(f"x{k}{line}", cursor.load(line))
                    for k, cursor in enumerate(given)
                ]
                here = Variable(f"h{line}")
                source.assign(here.name, applied(form.step, [here, *elements]))
                cursors[-1].store(here, line)

    *outer, last = walk.loops
    with walk.inside(outer):
        if not along.loops or last.size < FEW:
            with walk.over(last):
                run([""])
        else:
            lines = [f"_{r}" for r in range(FEW)]
            with walk.together(last, lines):
                run(lines)
            with walk.over(last, (Variable("whole"), last.end)):
                run([""])
    yield source.kernel(walk.length, is_parallel=True, work=math.prod(shape))
