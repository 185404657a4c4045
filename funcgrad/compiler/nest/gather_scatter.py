"""Kernels that read or write at computed places: lookups, deposits, windows, places of extremes.

As in `codegen` the text depends on structure only: dtypes, how many loops remain after neighbouring
axes were merged, and which operands are contiguous or repeated. Indices that a primitive refuses
end the kernel: it leaves the number of the `Site`, the index and its position in the slots.

Of several wrong indices the one is reported that NumPy would meet first: all are looked through
again, array by array, once a block holds a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from funcgrad.compiler.abi import REFUSED
from funcgrad.compiler.nest.codegen import generate_copy
from funcgrad.compiler.nest.layout import (
    Operand,
    Uniform,
    Value,
    View,
    broadcast,
    contiguous_strides,
    whole,
)
from funcgrad.compiler.nest.nodes import (
    ArgFold,
    Deposit,
    Lookup,
    Recurrence,
    Replace,
    Search,
    Window,
)
from funcgrad.compiler.nest.places import clamped, is_wrong, refuse, resolve
from funcgrad.compiler.nest.source import BLOCK, Kernel, Site, Source
from funcgrad.compiler.nest.walk import Cursor, Loop, Walk


class _Access:
    """What lookups and deposits share: a walk over places, each with a row of elements.

    Args:
        node: The node.
        target: The array whose places are named.
        indices: The index arrays.
        others: Further operands, with the axes of the places first and then those of the row.
    """

    def __init__(
        self,
        node: Lookup | Deposit,
        target: View,
        indices: Sequence[Operand],
        others: Sequence[Operand],
    ) -> None:
        self.node = node
        self.mode = node.form.mode
        self.source = Source()
        self.source.add("begin = args[0]")
        self.source.add("end = args[1]")
        self.scopes: dict[Value, int] = {}
        axes, shape = node.form.axes, node.index_shape
        rest = [i for i in range(len(target.shape)) if i not in axes]
        self.target = self._cursor(target, "t")
        self.others = [self._cursor(x, f"x{k}") for k, x in enumerate(others)]
        self.operands = list(indices)
        self.indices = [self._cursor(x, f"i{k}") for k, x in enumerate(indices)]
        self.lengths = [f"n{k}" for k in range(len(axes))]
        for k, axis in enumerate(axes):
            self.source.add(f"n{k} = {self.source.word(target.shape[axis])}")
            nbytes = target.strides[axis] * target.dtype.itemsize
            self.source.add(f"s{k} = {self.source.word(nbytes)}")
        n = len(shape)
        moved = [(c, c.strides[:n]) for c in self.others]
        for cursor, x in zip(self.indices, indices, strict=True):
            repeated = broadcast(x, shape)
            moved.append((cursor, repeated.strides if isinstance(repeated, View) else (0,) * n))
        self.places = Walk(self.source, "a", shape, moved, is_outermost=True)
        moved = [(c, c.strides[n:]) for c in self.others]
        moved.append((self.target, tuple(target.strides[i] for i in rest)))
        self.row = Walk(self.source, "b", tuple(target.shape[i] for i in rest), moved)
        self._literals()
        self._write()

    def _literals(self) -> None:
        """Scalars that rows need."""

    def _cursor(self, operand: Operand, name: str) -> Cursor:
        scope = 0
        if isinstance(operand, View):
            scope = self.scopes.setdefault(operand.value.home, len(self.scopes) + 1)
        return Cursor(self.source, operand, name, scope)

    def kernel(self) -> Kernel:
        work = math.prod(self.node.index_shape) * max(math.prod(x.size for x in self.row.loops), 1)
        return Kernel(self.source.text(), self.source.words, self.places.length, work=work)

    # Places.

    def _write(self) -> None:
        loops = self.places.loops
        if self.mode not in ("raise", "wrap"):
            with self.places.inside():
                self._place(self.mode)
            return
        if not loops:
            if self.mode == "raise":
                self._check_one()
            self._place(self.mode)
            return
        last = loops[-1]
        with self.places.inside(loops[:-1]):
            depth = self.source.depth + 1
            begin, end = ("begin", "end") if last is loops[0] else ("0", last.length)
            with self.source.block(f"for q in range({begin}, {end}, {BLOCK}):"):
                self.source.add(f"stop = minimum(q + {BLOCK}, {end})")
                tests = self._extremes(last)
                if self.mode == "raise":
                    self._refuse_any(tests)
                else:
                    self._wrapped(last, tests)
                    self.source.add("else:")
                    self.source.depth += 1
                with self.places.over(last, "q, stop"):
                    self._place("raise")
                self.source.depth = depth

    def _check_one(self) -> None:
        for k, cursor in enumerate(self.indices):
            self.source.add(f"at{k} = i64({cursor.load()})")
        self._refuse_any([is_wrong(f"at{k}", n) for k, n in enumerate(self.lengths)])

    def _wrapped(self, loop: Loop, tests: Sequence[str]) -> None:
        """A block with indices out of bounds: quotients cost more than all the rest."""
        test = " | ".join(f"({test})" for test in tests)
        with self.source.block(f"if {test}:"), self.places.over(loop, "q, stop"):
            self._place("wrap")

    def _extremes(self, loop: Loop) -> list[str]:
        """Tests of whether the extreme indices of a block are out of bounds."""
        numbers = range(len(self.indices))
        for k in numbers:
            self.source.add(f"low{k} = i64(0)")
            self.source.add(f"high{k} = i64(0)")
        with self.places.over(loop, "q, stop"):
            for k, cursor in enumerate(self.indices):
                self.source.add(f"at{k} = i64({cursor.load()})")
                self.source.add(f"low{k} = minimum(low{k}, at{k})")
                self.source.add(f"high{k} = maximum(high{k}, at{k})")
        return [f"(low{k} < -{n}) | (high{k} >= {n})" for k, n in enumerate(self.lengths)]

    def _refuse_any(self, tests: Sequence[str]) -> None:
        """Find the first wrong index if there is one."""
        if not tests:
            return
        with self.source.block(f"if {' | '.join(f'({test})' for test in tests)}:"):
            for k in range(len(tests)):
                self._find_wrong(k)
            self.source.add(f"return {REFUSED}")

    def _find_wrong(self, k: int) -> None:
        source, cursor, operand = self.source, self.indices[k], self.operands[k]
        assert self.node.equation is not None
        site = source.word(Site(self.node.equation, k))
        saved = cursor.pointer, cursor.index
        cursor.pointer, cursor.index = cursor.name, "0"
        shape = operand.shape if isinstance(operand, View) else ()
        walk = Walk(source, f"r{k}_", shape, [(cursor, cursor.strides)])
        with walk.inside():
            number = "i64(0)"
            for loop in walk.loops:
                number = f"({number}) * {loop.length} + {loop.variable}"
            source.add(f"at{k} = i64({cursor.load()})")
            with source.block(f"if {is_wrong(f'at{k}', self.lengths[k])}:"):
                refuse(source, site, f"at{k}", number)
        cursor.pointer, cursor.index = saved

    def _place(self, mode: str) -> None:
        """The row of one place."""
        source, tests = self.source, []
        moves = []
        for k, (cursor, n) in enumerate(zip(self.indices, self.lengths, strict=True)):
            source.add(f"at{k} = i64({cursor.load()})")
            tests.append(resolve(source, mode, f"k{k}", f"at{k}", n))
            moves.append(f"k{k} * s{k}")
        test = " & ".join(f"({test})" for test in tests if test)
        if not test:
            self._row(moves)
            return
        with source.block(f"if {test}:"):
            self._row(moves)
        self._missing()

    def _row(self, moves: Sequence[str]) -> None:
        saved = self.target.pointer
        if moves:
            self.source.add(f"{self.target.name}_row = offset({saved}, {' + '.join(moves)})")
            self.target.pointer = f"{self.target.name}_row"
        with self.row.inside():
            self._element()
        self.target.pointer = saved

    def _element(self) -> None:
        """One element of a row."""
        raise NotImplementedError

    def _missing(self) -> None:
        """What happens to a row whose place does not exist."""


class _Lookup(_Access):
    def __init__(self, node: Lookup) -> None:
        x, *indices = node.operands
        assert isinstance(x, View)
        super().__init__(node, x, indices, [whole(node.out)])

    def _literals(self) -> None:
        if self.mode == "fill":
            assert isinstance(self.node, Lookup)
            self.fill = self.source.literal(self.node.form.fill)

    def _element(self) -> None:
        self.source.add(self.others[0].store(self.target.load()))

    def _missing(self) -> None:
        self.source.add("else:")
        self.source.depth += 1
        with self.row.inside():
            self.source.add(self.others[0].store(self.fill))
        self.source.depth -= 1


class _Deposit(_Access):
    def __init__(self, node: Deposit) -> None:
        _, updates, *indices = node.operands
        super().__init__(node, whole(node.out), indices, [updates])

    def _element(self) -> None:
        assert isinstance(self.node, Deposit)
        value = self.node.form.step.format(self.target.load(), self.others[0].load())
        self.source.add(self.target.store(value))


def generate_lookup(node: Lookup) -> Iterator[Kernel]:
    """The kernel of a lookup."""
    yield _Lookup(node).kernel()


def generate_deposit(node: Deposit) -> Iterator[Kernel]:
    """The kernels of a deposit: a copy, into which elements are then taken."""
    yield from _copied(node.operands[0], whole(node.out))
    yield _Deposit(node).kernel()


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


def _copied(operand: Operand, place: View) -> Iterator[Kernel]:
    if not is_there(operand, place):
        yield generate_copy(operand, place)


# Windows.


def generate_window(node: Window) -> Iterator[Kernel]:
    """The kernel that copies a window out of an array."""
    x, *starts = node.operands
    yield _window_kernel(x, starts, whole(node.out))


def generate_replace(node: Replace) -> Iterator[Kernel]:
    """The kernels of a replaced window: a copy of all, and one of the window."""
    x, update, *starts = node.operands
    yield from _copied(x, whole(node.out))
    yield _window_kernel(whole(node.out), starts, update, node.step)


def _window_kernel(
    array: Operand, starts: Sequence[Operand], part: Operand, step: str = ""
) -> Kernel:
    """Copies a window out of an array, or takes a part into it."""
    assert isinstance(array, View)
    source = Source()
    source.add("begin = args[0]")
    source.add("end = args[1]")
    large, small = Cursor(source, array, "x", 1), Cursor(source, part, "w", 2)
    moves = []
    for k, start in enumerate(starts):
        room = array.shape[k] - part.shape[k]
        if not room:
            continue
        cursor = Cursor(source, start, f"i{k}", 3 + k)
        source.add(f"room{k} = {source.word(room)}")
        source.add(f"k{k} = {clamped(cursor.load(), cursor.dtype, f'room{k}')}")
        moves.append(f"k{k} * {source.word(array.strides[k] * array.dtype.itemsize)}")
    if moves:
        source.add(f"at = offset(x, {' + '.join(moves)})")
        large.pointer = "at"
    moved = [(large, array.strides), (small, small.strides)]
    walk = Walk(source, "a", part.shape, moved, is_outermost=True)
    with walk.inside():
        if step:
            source.add(large.store(step.format(large.load(), small.load())))
        else:
            source.add(small.store(large.load()))
    return Kernel(source.text(), source.words, walk.length, work=math.prod(part.shape))


# Places of extremes.


def generate_argfold(node: ArgFold) -> Iterator[Kernel]:
    """The kernel that finds extreme elements along an axis."""
    (x,) = node.operands
    assert isinstance(x, View)
    axis = node.form.axis
    is_column = axis < len(x.shape) - 1 and x.strides[-1] == 1 and x.strides[axis] != 1
    yield _argfold_by_columns(node, x) if is_column else _argfold_by_rows(node, x)


def _argfold_by_rows(node: ArgFold, x: View) -> Kernel:
    """One line after the other: blocks first, then within a block that has a new extreme."""
    source, form = Source(), node.form
    source.add("begin = args[0]")
    source.add("end = args[1]")
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
    (loop,) = along.loops
    j = loop.variable
    with walk.inside():
        source.add(f"best = {line.load()}")
        source.add("place = i64(0)")
        with source.block(f"for q in range(0, {loop.length}, {BLOCK}):"):
            source.add(f"stop = minimum(q + {BLOCK}, {loop.length})")
            source.add("most = best")
            with along.over(loop, "q, stop"):
                source.add(f"most = {form.step.format('most', line.load())}")
            with source.block(f"if {form.better.format('most', 'best')}:"):
                source.add("best = most")
                with along.over(loop, "q, stop"):
                    source.add(f"here = {line.load()}")
                    with source.block(f"if not ({form.better.format('most', 'here')}):"):
                        source.add(f"place = {j}")
                        source.add("break")
        source.add(out.store("place"))
    return Kernel(source.text(), source.words, walk.length, work=math.prod(x.shape))


def _argfold_by_columns(node: ArgFold, x: View) -> Kernel:
    """All lines beside each other at once: their extremes so far are kept in memory."""
    source, form = Source(), node.form
    source.add("begin = args[0]")
    source.add("end = args[1]")
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


def generate_search(node: Search) -> Iterator[Kernel]:
    """The kernel of binary searches, one after the other."""
    ordered, values = node.operands
    assert isinstance(ordered, View)
    source, n = Source(), node.form.lanes
    source.add("begin = args[0]")
    source.add("end = args[1]")
    line = Cursor(source, ordered, "x", 1)
    value, out = Cursor(source, values, "v", 2), Cursor(source, whole(node.out), "y", 3)
    lanes = (*ordered.strides[:n], *(0,) * (len(values.shape) - n))
    moved = [(line, lanes), (value, value.strides), (out, out.strides)]
    walk = Walk(source, "a", values.shape, moved, is_outermost=True)
    source.add(f"length = {source.word(ordered.shape[-1])}")
    source.add(f"halvings = {source.word(ordered.shape[-1].bit_length())}")
    source.add(f"step = {source.word(ordered.strides[-1] * ordered.dtype.itemsize)}")
    with walk.inside():
        if line.index != "0":
            source.add(f"row = advance({line.pointer}, {line.index})")
            line.pointer = "row"
        source.add(f"wanted = {value.load()}")
        source.add("low = i64(0)")
        source.add("high = length")
        with source.block("for j in range(halvings):"), source.block("if low < high:"):
            source.add("middle = right_shift(low + high, 1)")
            source.add(f"here = load(offset({line.pointer}, middle * step), 0, 1)")
            with source.block(f"if {node.form.before.format('here', 'wanted')}:"):
                source.add("low = middle + 1")
            with source.block("else:"):
                source.add("high = middle")
        source.add(out.store("low"))
    work = math.prod(values.shape) * max(ordered.shape[-1].bit_length(), 1)
    yield Kernel(source.text(), source.words, walk.length, [], bool(walk.loops), work)


def generate_recurrence(node: Recurrence) -> Iterator[Kernel]:
    """The kernel of a recurrence: loops over the other axes, then along the axis."""
    form, shape = node.form, node.out.shape
    source = Source()
    source.add("begin = args[0]")
    source.add("end = args[1]")
    a, b = (Cursor(source, x, f"x{k}", k + 1) for k, x in enumerate(node.operands))
    out = Cursor(source, whole(node.out), "y", 3)
    others = [i for i in range(len(shape)) if i != form.axis]
    moved = [(cursor, [cursor.strides[i] for i in others]) for cursor in (a, b, out)]
    walk = Walk(source, "i", tuple(shape[i] for i in others), moved, is_outermost=True)
    source.add(f"length = {source.word(shape[form.axis])}")
    zero = source.literal(node.out.dtype.type(0))
    steps = [
        source.word(cursor.strides[form.axis] * cursor.dtype.itemsize) for cursor in (a, b, out)
    ]
    with walk.inside():
        for cursor in (a, b, out):
            if cursor.index != "0" and not cursor.literal:
                source.add(f"{cursor.name}_row = advance({cursor.pointer}, {cursor.index})")
                cursor.pointer = f"{cursor.name}_row"
        source.add(f"h = {zero}")
        with source.block("for j in range(length):"):
            source.add(f"k = {'length - 1 - j' if form.reverse else 'j'}")
            for name, cursor, step in (("a", a, steps[0]), ("b", b, steps[1])):
                read = f"load(offset({cursor.pointer}, k * {step}), 0, {cursor.scope})"
                source.add(f"{name} = {cursor.literal or read}")
            source.add(f"h = {form.step.format('h', 'a', 'b')}")
            source.add(f"store(offset({out.pointer}, k * {steps[2]}), 0, h, {out.scope})")
    yield Kernel(source.text(), source.words, walk.length, [], bool(walk.loops), math.prod(shape))
