"""Vectors of elements that lie a few steps apart.

They are every third number of points in space, or a row that is read backwards. All that lies
between them is loaded, a register at a time, and those that are meant are taken out of it: far
fewer instructions than a load for each of them. Processors that cannot permute two registers by one
instruction (x86 before AVX-512) load each element, where others would need many registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from funcgrad.compiler.machine import FEW
from funcgrad.compiler.native import llvm, llvm_backend
from funcgrad.compiler.native.processor import is_x86
from funcgrad.compiler.native.scalars import Builder, Emitted

_PIECE = 64
"""Bytes of the vectors that are put together, at most."""


def loader(module: llvm.Module, type: llvm.Type, step: int) -> str:
    """The symbol of the function that loads a vector: ``(first, how many, whether all)``.

    Args:
        module: The module that the function is in.
        type: The vector.
        step: How many elements it is from one to the next: not 0 or 1.
    """

    def write(module: llvm.Module, symbol: str) -> None:
        arguments = [llvm.POINTER, llvm.I32, llvm.I1]
        builder = Builder(module, llvm.Function(symbol, type, arguments, "alwaysinline nounwind"))
        pointer, left, is_whole = builder.arguments("pib")
        if abs(step) > FEW and not _has_permutations():
            builder.end(f"ret {_each(pointer, left.before(type), type, step)}")
            return
        every, some = builder.new_block("all"), builder.new_block("some")
        builder.fork(is_whole, every, some, module.likely)
        builder.begin(every)
        parts = list(_pieces(pointer, type, step))
        while len(parts) > 1:
            size = 2 * parts[0].lanes
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [a.mixed(b, range(size)) for a, b in pairs]
        builder.end(f"ret {parts[0]}")
        builder.begin(some)
        count = left.cast(llvm.I64, "i")
        first = _first_ones(module, type, step)
        builder.end(f"ret {builder.call(first, type, 'u', pointer, count)}")

    return module.helper(f"apart{step}.{type.suffix}", write).symbol


def _first_ones(module: llvm.Module, type: llvm.Type, step: int) -> str:
    """The symbol of a function that loads so many of the first lanes: ``(first, count)``."""

    def write(module: llvm.Module, symbol: str) -> None:
        attributes = "alwaysinline nounwind"
        builder = Builder(module, llvm.Function(symbol, type, [llvm.POINTER, llvm.I64], attributes))
        pointer, count = builder.arguments("pi")
        element, room = type.element, builder.room(type)
        builder.do(f"store {builder.number(type, 0)}, {room}")

        def one(index: Emitted) -> None:
            place = builder.moved(pointer, index * step, element)
            text = f"load {element}, {place}, align {element.nbytes}"
            found = builder.let(text, element, "i")
            builder.do(f"store {found}, {builder.moved(room, index, element)}")

        builder.in_turn(count, one)
        builder.end(f"ret {builder.let(f'load {type}, {room}', type, 'u')}")

    return module.helper(f"apart{step}.first.{type.suffix}", write).symbol


def _has_permutations() -> bool:
    """Whether one instruction takes the elements of a register out of two others."""
    _, features = llvm_backend.cpu()
    return not is_x86() or "+avx512f" in features.split(",")


def _each(pointer: Emitted, flags: Emitted, type: llvm.Type, step: int) -> Emitted:
    """The vector, of which every element is loaded by itself: the first one is always there.

    It takes the place of those that are not, so that nothing is asked lane by lane.
    """
    builder, element, count = pointer.builder, type.element, type.count
    kind = llvm.vector_of(llvm.I64, count)
    places = ", ".join([f"i64 {k * step}" for k in range(count)])
    text = f"select {flags}, {kind} <{places}>, {kind} zeroinitializer"
    offsets = builder.let(text, kind, "i")
    found = builder.number(type, 0)
    for k in range(count):
        place = builder.moved(pointer, offsets.lane(k), element)
        loaded = builder.let(f"load {element}, {place}, align {element.nbytes}", element, "i")
        found = found.with_lane(k, loaded)
    return flags.select(found, builder.number(type, 0))


def _pieces(pointer: Emitted, type: llvm.Type, step: int) -> Iterator[Emitted]:
    """The vector in pieces of a register."""
    builder, element = pointer.builder, type.element
    count = min(type.count, _PIECE // element.nbytes)
    span = count * abs(step)
    places = range(0, span, abs(step))[:: 1 if step > 0 else -1]
    for k in range(type.count // count):
        # Of a piece that is read backwards, the last element comes first in memory.
        start = k * span if step > 0 else ((k + 1) * count - 1) * step
        address = builder.moved(pointer, builder.number(llvm.I64, start), element)
        yield _chosen(address, llvm.vector_of(element, count), places)


def _chosen(address: Emitted, type: llvm.Type, places: Sequence[int]) -> Emitted:
    """Elements out of whole registers, of which the last one ends with the last element."""
    builder, last = address.builder, max(places)
    found = builder.number(type, 0)
    for start in range(0, last + 1, type.count):
        begin = min(start, last + 1 - type.count)
        place = builder.moved(address, builder.number(llvm.I64, begin), type.element)
        register = builder.let(f"load {type}, {place}, align {type.nbytes}", type, "i")
        # Lanes from this register, and those that others have given or will give.
        inside = range(start, start + type.count)
        mixed = [
            type.count + at - begin if at in inside else lane for lane, at in enumerate(places)
        ]
        found = found.mixed(register, mixed)
    return found
