"""Kernels of scatters and searches.

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
from typing import Any

from funcgrad.compiler.loops.language import Expression, applied, call, of
from funcgrad.compiler.machine import PARTS_PER_THREAD, SUM_BLOCK
from funcgrad.compiler.nest import nodes
from funcgrad.compiler.nest.codegen import generate_copy
from funcgrad.compiler.nest.iteration import FIRST, Access, IterationSpace, Loop, Span
from funcgrad.compiler.nest.kernel import Kernel, KernelBuilder, Site
from funcgrad.compiler.nest.layout import (
    Operand,
    Shape,
    Uniform,
    View,
    whole,
)
from funcgrad.compiler.nest.places import is_wrong, refuse, signed
from funcgrad.compiler.nest.scatters import Scatter


def _space(
    source: KernelBuilder,
    shape: Shape,
    accesses: Sequence[Access],
    segments: Iterable[tuple[str, Sequence[int]]],
) -> IterationSpace:
    """Loops over axes, of which those of length 1 are left out."""
    long = [(prefix, [i for i in axes if shape[i] != 1], 1) for prefix, axes in segments]
    return IterationSpace(source, shape, accesses, long)


def _declared(space: IterationSpace, loops: list[Loop] | None = None) -> Loop:
    """The outermost loop of a segment, or of all, which is divided among threads.

    If there is none, it is a loop of one iteration.
    """
    loops = space.segments[0] if loops is None else loops
    if not loops:
        loops.append(Loop("i0", 1, -1, dict.fromkeys(space.accesses, 0)))
        space.loops = [loop for segment in space.segments for loop in segment]
    space.declare(loops[0])
    return loops[0]


Generator = Callable[[Any], Iterable[Kernel]]
GENERATORS: dict[type[nodes.Node], Generator] = {}
"""Functions that write the kernels of nodes that share them with no other, by their types."""


def generates(kind: type[nodes.Node]) -> Callable[[Generator], Generator]:
    """Register the function that writes the kernels of a type of nodes."""

    def register(generate: Generator) -> Generator:
        GENERATORS[kind] = generate
        return generate

    return register


@generates(nodes.Checked)
def generate_check(node: nodes.Checked) -> Iterator[Kernel]:
    """The kernel that makes indices places, and looks for the first wrong one if there is any."""
    (index,) = node.operands
    source = KernelBuilder()
    given, out = Access(index), Access(whole(node.out))
    space = _space(source, node.out.shape, [given, out], [("i", range(len(node.out.shape)))])
    first = _declared(space)
    n = source.assign("n", source.word(node.length))
    assert node.equation is not None
    site = source.word(Site(node.equation, node.number))
    low = source.assign("low", call("i64", 0))
    high = source.assign("high", call("i64", -1))
    with space.inside(space.loops):
        at = source.assign("at", signed(space.load(given), index.dtype))
        source.assign("low", call("minimum", low, at))
        source.assign("high", call("maximum", high, at))
        space.store(out, call("select", at < 0, at + n, at))
    with source.when((low < -n) | (high >= n)), space.inside(space.loops):
        at = source.assign("at", signed(space.load(given), index.dtype))
        with source.when(is_wrong(at, n)):
            refuse(source, site, at, space.number(space.loops))
    yield source.kernel(first.size, work=2 * math.prod(node.out.shape))


@generates(nodes.Put)
def generate_scatter(node: nodes.Put) -> Iterator[Kernel]:
    """The kernels of a scatter: a copy, into which elements are then taken.

    None if what computes the elements has put them there.
    """
    updates = node.operands[1]
    if isinstance(updates, View) and updates.value.placed_by is node:
        return
    yield from begun(node)
    yield _taken_in(node)


def begun(node: nodes.Put) -> Iterator[Kernel]:
    """The kernel that copies the array which a scatter changes, if it is not changed in place."""
    for kernel in _copied(node.operands[0], whole(node.out)):
        kernel.nodes[0].equation = node.equation
        yield kernel


def _taken_in(node: nodes.Put) -> Kernel:
    """The kernel that takes elements in, one after the other as far as they may go to one place.

    So threads share lanes, or the elements of rows.
    """
    _, updates, *indices = node.operands
    source, shape, n = KernelBuilder(), updates.shape, len(updates.shape) - node.n_rest
    target, given, rest = Access(node.target), Access(updates), (0,) * node.n_rest
    accesses = [Access(x, (*x.strides[:n], *rest)) for x in indices]
    segments = ("i", range(n)), ("j", range(n, len(shape)))
    space = _space(source, shape, [target, given, *accesses], segments)
    places, row = space.segments
    long = [axis for axis in range(n) if shape[axis] != 1]
    has_lanes, is_row = bool(long) and long[0] in node.lanes, math.prod(shape[n:]) > 1
    first = _declared(space, row if is_row and not has_lanes else places)
    scatter = Scatter(source, node)
    with space.inside(places):
        start, at = space.address(target), map(space.load, accesses)
        with (
            scatter.placed(start, at) as pointer,
            space.counted_from(target, pointer),
            space.inside(row),
        ):
            value = applied(node.step, [space.load(target), space.load(given)])
            space.store(target, value)
    return source.kernel(
        first.size, is_parallel=has_lanes or is_row, work=math.prod(shape), nodes=(node,),
        per_thread=PARTS_PER_THREAD if has_lanes else 1,
    )  # fmt: skip


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


@generates(nodes.Copies)
def generate_copies(node: nodes.Copies) -> Iterator[Kernel]:
    """The kernels of an assembly."""
    for operand, place in zip(node.operands, node.places, strict=True):
        yield from _copied(operand, place)


def _copied(operand: Operand, place: View) -> Iterator[Kernel]:
    if not is_there(operand, place):
        yield generate_copy(operand, place)


@generates(nodes.Search)
def generate_search(node: nodes.Search) -> Iterator[Kernel]:
    """The kernel of binary searches: all those of a block make each step together.

    They do not wait for each other's loads, and no step takes a branch.
    """
    ordered, values = node.operands
    assert isinstance(ordered, View)
    source, n, rank = KernelBuilder(), node.form.lanes, len(values.shape)
    line = Access(ordered, (*ordered.strides[:n], *(0,) * (rank - n)))
    value, out = Access(values), Access(whole(node.out))
    space = _space(source, values.shape, [line, value, out], [("i", range(rank))])
    first = _declared(space)
    length = source.assign("length", source.word(ordered.shape[-1]))
    step = None
    if ordered.strides[-1] != 1:
        nbytes = source.word(ordered.strides[-1] * ordered.dtype.itemsize)
        step = source.assign("step", nbytes)

    def advance(span: Span, by: Expression, is_last: bool) -> None:
        """Go forward in every search of the block if an element comes before its value."""
        with space.over(last, span):
            low = source.assign("low", space.load(out))
            row, at = space.address(line), low if is_last else low + by - 1
            place = (row, at) if step is None else (call("offset", row, at * step), FIRST)
            here = source.assign("here", call("load", *place, line.scope))
            wanted = source.assign("wanted", space.load(value))
            test = applied(node.form.before, [here, wanted])
            space.store(out, call("select", test, low + by, low))

    *outer, last = space.loops
    with space.inside(outer), source.blocks("block", last.begin, last.end, SUM_BLOCK) as block:
        with space.over(last, block):
            space.store(out, call("i64", 0))
        left = source.assign("left", length)
        with source.repeat(left > 1):
            half = source.assign("half", call("right_shift", left, 1))
            source.assign("left", left - half)
            advance(block, half, False)
        with source.when(left > 0):
            advance(block, of(1), True)
    work = math.prod(values.shape) * max(ordered.shape[-1].bit_length(), 1)
    yield source.kernel(first.size, is_parallel=True, work=work)
