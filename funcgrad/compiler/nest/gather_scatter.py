"""Kernels of what no walk of points computes: deposits, searches, places of extremes, recurrences.

As in `codegen` the text depends on structure only: dtypes, how many loops remain after neighbouring
axes were merged, and which operands are contiguous or repeated. Indices that a primitive refuses
end the kernel: it leaves the number of the `Site`, the index and its position in the slots.

Of several wrong indices the one is reported that NumPy would meet first: arrays are looked through
one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

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
    Checked,
    Deposit,
    Recurrence,
    Replace,
    Search,
)
from funcgrad.compiler.nest.places import clamped, is_wrong, refuse, resolve
from funcgrad.compiler.nest.source import Kernel, Site, Source
from funcgrad.compiler.nest.walk import Cursor, Walk


def generate_check(node: Checked) -> Iterator[Kernel]:
    """The kernel that makes indices places, and looks for the first wrong one if there is any."""
    (index,) = node.operands
    source = Source()
    source.add("begin = args[0]")
    source.add("end = args[1]")
    given, out = Cursor(source, index, "i", 1), Cursor(source, whole(node.out), "y", 2)
    source.add(f"n = {source.word(node.length)}")
    assert node.equation is not None
    site = source.word(Site(node.equation, node.number))
    moved = [(given, given.strides), (out, out.strides)]
    walk = Walk(source, "a", node.out.shape, moved, is_outermost=True)
    source.add("low = i64(0)")
    source.add("high = i64(-1)")
    with walk.inside():
        source.add(f"at = i64({given.load()})")
        source.add("low = minimum(low, at)")
        source.add("high = maximum(high, at)")
        source.add(out.store("select(at < 0, at + n, at)"))
    with source.block("if (low < -n) | (high >= n):"), walk.inside():
        source.add(f"at = i64({given.load()})")
        with source.block(f"if {is_wrong('at', 'n')}:"):
            refuse(source, site, "at", walk.number())
    yield Kernel(source.text(), source.words, walk.length, work=2 * math.prod(node.out.shape))


def generate_deposit(node: Deposit) -> Iterator[Kernel]:
    """The kernels of a deposit: a copy, into which elements are then taken."""
    yield from _copied(node.operands[0], whole(node.out))
    yield _deposit_kernel(node)


def _deposit_kernel(node: Deposit) -> Kernel:
    _, updates, *indices = node.operands
    target, axes, shape = whole(node.out), node.form.axes, node.index_shape
    rest = [i for i in range(len(target.shape)) if i not in axes]
    source, n = Source(), len(shape)
    source.add("begin = args[0]")
    source.add("end = args[1]")
    row, given = Cursor(source, target, "t", 1), Cursor(source, updates, "x", 2)
    cursors = [Cursor(source, x, f"i{k}", 3 + k) for k, x in enumerate(indices)]
    for k, axis in enumerate(axes):
        source.add(f"n{k} = {source.word(target.shape[axis])}")
        nbytes = target.strides[axis] * target.dtype.itemsize
        source.add(f"s{k} = {source.word(nbytes)}")
    moved = [(given, given.strides[:n])]
    for cursor, x in zip(cursors, indices, strict=True):
        repeated = broadcast(x, shape)
        moved.append((cursor, repeated.strides if isinstance(repeated, View) else (0,) * n))
    places = Walk(source, "a", shape, moved, is_outermost=True)
    lengths = tuple(target.shape[i] for i in rest)
    moved = [(given, given.strides[n:]), (row, tuple(target.strides[i] for i in rest))]
    along = Walk(source, "b", lengths, moved)
    with places.inside():
        tests = []
        for k, cursor in enumerate(cursors):
            source.add(f"at{k} = i64({cursor.load()})")
            test = resolve(source, node.form.mode, f"k{k}", f"at{k}", f"n{k}")
            tests += [f"({test})"] if test else []
        with source.block(f"if {' & '.join(tests)}:") if tests else nullcontext():
            if cursors:
                moves = " + ".join(f"k{k} * s{k}" for k in range(len(cursors)))
                source.add(f"t_row = offset(t, {moves})")
                row.pointer = "t_row"
            with along.inside():
                source.add(row.store(node.form.step.format(row.load(), given.load())))
    work = math.prod(shape) * max(math.prod(lengths), 1)
    return Kernel(source.text(), source.words, places.length, work=work)


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


def generate_replace(node: Replace) -> Iterator[Kernel]:
    """The kernels of a replaced window: a copy of all, and one of the window."""
    x, update, *starts = node.operands
    yield from _copied(x, whole(node.out))
    yield _replacement(whole(node.out), starts, update, node.step)


def _replacement(array: View, starts: Sequence[Operand], part: Operand, step: str) -> Kernel:
    """Takes a part into an array."""
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
        source.add(large.store(step.format(large.load(), small.load())))
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
        with along.blocks(loop):
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
    """The kernel of binary searches: all those of a block make each step together.

    They do not wait for each other's loads, and no step takes a branch.
    """
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
    source.add(f"step = {source.word(ordered.strides[-1] * ordered.dtype.itemsize)}")

    def advance(by: str, at: str) -> None:
        """Go forward in every search of the block if an element comes before its value."""
        with walk.over(last, "q, stop"):
            source.add(f"low = {out.load()}")
            if line.index != "0":
                source.add(f"row = advance({line.pointer}, {line.index})")
            pointer = line.pointer if line.index == "0" else "row"
            source.add(f"here = load(offset({pointer}, ({at}) * step), 0, 1)")
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
    yield Kernel(source.text(), source.words, walk.length, [], True, math.prod(shape))
