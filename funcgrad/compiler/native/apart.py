"""Vectors of elements that lie a few steps apart.

They are every third number of points in space, or a row that is read backwards. All that lies
between them is loaded, a register at a time, and those that are meant are taken out of it: far
fewer instructions than a load for each of them. Processors that cannot permute two registers by one
instruction (x86 before AVX-512) load each element, where others would need many registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from funcgrad.compiler.machine import FEW
from funcgrad.compiler.native import llvm_backend
from funcgrad.compiler.native.control_word import is_x86
from funcgrad.compiler.native.llvm import (
    I1,
    I32,
    I64,
    POINTER,
    Function,
    Module,
    Type,
    vector_of,
)
from funcgrad.compiler.native.scalars import Builder, Emitted

_PIECE = 64
"""Bytes of the vectors that are put together, at most."""


def loader(module: Module, type: Type, step: int) -> str:
    """The symbol of the function that loads a vector: ``(first, flags, whether all are there)``.

    Args:
        module: The module that the function is in.
        type: The vector.
        step: How many elements it is from one to the next: not 0 or 1.
    """

    def write(module: Module, symbol: str) -> None:
        arguments = [POINTER, vector_of(I1, type.count), I1]
        builder = Builder(module, Function(symbol, type, arguments, "alwaysinline nounwind"))
        pointer, flags, is_whole = builder.arguments("pbb")
        if abs(step) > FEW and not _has_permutations():
            builder.end(f"ret {_each(pointer, flags, type, step)}")
            return
        every, some = builder.new_block("all"), builder.new_block("some")
        builder.fork(is_whole, every, some, module.usually)
        for block in (every, some):
            builder.begin(block)
            there = _count(flags) if block is some else None
            parts = list(_pieces(pointer, type, step, there))
            while len(parts) > 1:
                size = 2 * parts[0].lanes
                pairs = zip(parts[::2], parts[1::2], strict=True)
                parts = [a.mixed(b, range(size)) for a, b in pairs]
            builder.end(f"ret {parts[0]}")

    return module.helper(f"apart{step}.{type.suffix}", write).symbol


def _has_permutations() -> bool:
    """Whether one instruction takes the elements of a register out of two others."""
    _, features = llvm_backend.cpu()
    return not is_x86() or "+avx512f" in features.split(",")


def _each(pointer: Emitted, flags: Emitted, type: Type, step: int) -> Emitted:
    """The vector, of which every element is loaded by itself: the first one is always there.

    It takes the place of those that are not, so that nothing is asked lane by lane.
    """
    builder, element, count = pointer.builder, type.element, type.count
    kind = vector_of(I64, count)
    places = ", ".join([f"i64 {k * step}" for k in range(count)])
    text = f"select {flags}, {kind} <{places}>, {kind} zeroinitializer"
    offsets = builder.let(text, kind, "i")
    found = builder.number(type, 0)
    for k in range(count):
        place = builder.moved(pointer, offsets.lane(k), element)
        loaded = builder.let(f"load {element}, {place}, align {element.nbytes}", element, "i")
        found = found.with_lane(k, loaded)
    return flags.select(found, builder.number(type, 0))


def _count(flags: Emitted) -> Emitted:
    """How many flags are set."""
    return flags.packed().intrinsic("ctpop").cast(I32, "i")


def _pieces(pointer: Emitted, type: Type, step: int, there: Emitted | None) -> Iterator[Emitted]:
    """The vector in pieces of a register; only so many of its first elements may be there."""
    builder, element = pointer.builder, type.element
    count = min(type.count, _PIECE // element.nbytes)
    span = vector_of(element, count * abs(step))
    places = range(0, span.count, abs(step))[:: 1 if step > 0 else -1]
    for k in range(type.count // count):
        # Of a piece that is read backwards, the last element comes first in memory.
        start = k * span.count if step > 0 else ((k + 1) * count - 1) * step
        address = builder.moved(pointer, builder.number(I64, start), element)
        if there is None:
            yield _chosen(address, vector_of(element, count), places)
        else:
            mask = _stretch(there - k * count, span.count, step, max(places))
            yield _some(address, span, mask).mixed(None, places)


def _stretch(n_there: Emitted, span: int, step: int, last: int) -> Emitted:
    """The mask of what lies between lanes that are there: they come first, so it is one stretch."""
    builder = n_there.builder
    numbers = _list(builder, range(span))
    reach = n_there * abs(step)
    if step > 0:
        return numbers.compare("<=", (reach - step).splat(span))
    kept = ", ".join([f"i1 {int(place <= last)}" for place in range(span)])
    mask = numbers.compare(">=", (builder.number(I32, span) - reach).splat(span))
    return mask & Emitted(builder, f"<{kept}>", mask.type, "b")


def _list(builder: Builder, numbers: Sequence[int]) -> Emitted:
    text = ", ".join([f"i32 {k}" for k in numbers])
    return Emitted(builder, f"<{text}>", vector_of(I32, len(numbers)), "i")


def _some(address: Emitted, span: Type, mask: Emitted) -> Emitted:
    """Elements of memory that a mask lets through, and zeros."""
    builder = address.builder
    size, zeros = builder.number(I32, span.element.nbytes), builder.number(span, 0)
    name = f"llvm.masked.load.{span.suffix}.p0"
    return builder.call(name, span, "i", address, size, mask, zeros)


def _chosen(address: Emitted, type: Type, places: Sequence[int]) -> Emitted:
    """Elements out of whole registers, of which the last one ends with the last element."""
    builder, last = address.builder, max(places)
    found = builder.number(type, 0)
    for start in range(0, last + 1, type.count):
        begin = min(start, last + 1 - type.count)
        place = builder.moved(address, builder.number(I64, begin), type.element)
        register = builder.let(f"load {type}, {place}, align {type.nbytes}", type, "i")
        # Lanes from this register, and those that others have given or will give.
        inside = range(start, start + type.count)
        mixed = [
            type.count + at - begin if at in inside else lane for lane, at in enumerate(places)
        ]
        found = found.mixed(register, mixed)
    return found
