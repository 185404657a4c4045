"""The first lanes of vectors in pieces, of which each is half of the one before.

For processors without a fast access to some lanes: x86 before AVX-512 has none to elements shorter
than a word, and stores through a mask by a long program of its own, which costs a row of a few
vectors most of its time, and from which later loads have to wait until it has reached the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from funcgrad.compiler.native.llvm import I8, I64, Type, vector_of
from funcgrad.compiler.native.scalars import Builder, Emitted


def store_first(pointer: Emitted, count: Emitted, value: Emitted) -> None:
    """Write so many of the first lanes, but not all, the largest piece first."""
    builder = pointer.builder
    for size in _sizes(value.lanes):
        before, there, end = builder.block, builder.new_block("piece"), builder.new_block("next")
        low, high = (
            (value.half(False), value.half(True)) if size > 1 else (value.lane(0), value.lane(1))
        )
        builder.fork((count & size) != 0, there, end)
        builder.begin(there)
        builder.do(f"store {low}, {pointer}, align {low.type.nbytes}")
        moved = builder.moved(pointer, builder.number(I64, size * low.type.nbytes), I8)
        builder.jump(end)
        builder.begin(end)
        pointer = builder.phi([(moved, there), (pointer, before)])
        value = builder.phi([(high, there), (low, before)])


def load_first(pointer: Emitted, count: Emitted, type: Type) -> Emitted:
    """So many of the first lanes, but not all, and zeros: the last ones are the smallest piece."""
    builder = pointer.builder
    found = builder.number(type.element, 0, "u")
    for size in reversed([*_sizes(type.count)]):
        before, there, end = builder.block, builder.new_block("piece"), builder.new_block("next")
        kind = vector_of(type.element, size) if size > 1 else type.element
        rest = _joined(builder, found, builder.number(kind, 0, "u"))
        builder.fork((count & size) != 0, there, end)
        builder.begin(there)
        place = builder.moved(pointer, (count & -2 * size).cast(I64, "i"), type.element)
        piece = builder.let(f"load {kind}, {place}, align {kind.nbytes}", kind, "u")
        more = _joined(builder, piece, found)
        builder.jump(end)
        builder.begin(end)
        found = builder.phi([(more, there), (rest, before)])
    return found


def _sizes(count: int) -> Iterator[int]:
    """The sizes of pieces, from half of a vector down to one element."""
    while count > 1:
        count //= 2
        yield count


def _joined(builder: Builder, low: Emitted, high: Emitted) -> Emitted:
    """Two pieces as one vector."""
    if low.lanes:
        return low.mixed(high, range(2 * low.lanes))
    empty = Emitted(builder, "poison", vector_of(low.type, 2), low.kind)
    return empty.with_lane(0, low).with_lane(1, high)
