"""Vectors of elements that lie a few steps apart.

They are every third number of points in space, or a row that is read backwards. All that lies
between them is loaded, a register at a time, and those that are meant are taken out of it: far
fewer instructions than a load for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from llvmlite import ir

from funcgrad.compiler.native.scalars import F32, F64, I32, I64, POINTER, declared

_I1 = ir.IntType(1)
_PIECE = 64
"""Bytes of the vectors that are put together, at most."""


def loader(module: Any, type: Any, step: int, name: str) -> ir.Function:
    """The function that loads a vector of elements: ``(first, flags, whether all are there)``.

    Args:
        module: The module that the function is in.
        type: The vector.
        step: How many elements it is from one to the next: not 0 or 1.
        name: What LLVM calls the vector's type in names of intrinsics, after the count.
    """
    symbol = f"apart{step}.v{type.count}{name}"
    found = module.globals.get(symbol)
    if found is not None:
        return found
    flags = ir.VectorType(_I1, type.count)
    function = ir.Function(module, ir.FunctionType(type, [POINTER, flags, _I1]), symbol)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    function.attributes.add("nounwind")
    entry, every, some = map(function.append_basic_block, ("", "all", "some"))
    branch = ir.IRBuilder(entry).cbranch(function.args[2], every, some)
    branch.set_metadata("prof", module.usually)
    for block in (every, some):
        builder = ir.IRBuilder(block)
        there = _count(builder, function.args[1]) if block is some else None
        parts = list(_pieces(builder, function.args[0], type, step, name, there))
        while len(parts) > 1:
            size = parts[0].type.count
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [_taken(builder, a, b, range(2 * size)) for a, b in pairs]
        builder.ret(parts[0])
    return function


def _count(builder: ir.IRBuilder, flags: Any) -> Any:
    """How many flags are set."""
    kind = ir.IntType(flags.type.count)
    function = declared(builder, f"llvm.ctpop.{kind}", ir.FunctionType(kind, [kind]))
    found = builder.call(function, [builder.bitcast(flags, kind)])
    if kind.width == 32:
        return found
    return builder.zext(found, I32) if kind.width < 32 else builder.trunc(found, I32)


def _pieces(
    builder: ir.IRBuilder, pointer: Any, type: Any, step: int, name: str, there: Any
) -> Iterator[Any]:
    """The vector in pieces of a register; only so many of its first elements may be there."""
    element = type.element
    nbytes = _nbytes(element)
    count = min(type.count, _PIECE // nbytes)
    span = ir.VectorType(element, count * abs(step))
    kind = ir.VectorType(_I1, span.count)
    load = declared(
        builder,
        f"llvm.masked.load.v{span.count}{name}.p0",
        ir.FunctionType(span, [POINTER, I32, kind, span]),
    )
    places = range(0, span.count, abs(step))[:: 1 if step > 0 else -1]
    for k in range(type.count // count):
        # Of a piece that is read backwards, the last element comes first in memory.
        start = k * span.count if step > 0 else ((k + 1) * count - 1) * step
        address = builder.gep(pointer, [I64(start)], source_etype=element)
        if there is None:
            yield _chosen(builder, address, ir.VectorType(element, count), places, nbytes)
            continue
        # Lanes that are there come first, so what lies between them is one stretch.
        n_there = builder.sub(there, I32(k * count))
        numbers = ir.Constant(ir.VectorType(I32, span.count), [*range(span.count)])
        reach = builder.mul(n_there, I32(abs(step)))
        if step > 0:
            mask = builder.icmp_signed("<=", numbers, _filled(builder, reach, I32(-step), span))
        else:
            reach = builder.neg(reach)
            mask = builder.icmp_signed(
                ">=", numbers, _filled(builder, reach, I32(span.count), span)
            )
            kept = [place <= max(places) for place in range(span.count)]
            mask = builder.and_(mask, ir.Constant(kind, kept))
        found = builder.call(load, [address, I32(nbytes), mask, ir.Constant(span, None)])
        yield _taken(builder, found, found, places)


def _filled(builder: ir.IRBuilder, x: Any, y: Any, type: Any) -> Any:
    """The sum of two numbers, as often as a vector has elements."""
    vector = ir.Constant(ir.VectorType(I32, type.count), None)
    first = builder.insert_element(vector, builder.add(x, y), I32(0))
    return _taken(builder, first, vector, [0] * type.count)


def _chosen(
    builder: ir.IRBuilder, address: Any, type: Any, places: Iterable[int], nbytes: int
) -> Any:
    """Elements out of whole registers, of which the last one ends with the last element."""
    found, last = ir.Constant(type, None), max(places)
    for start in range(0, last + 1, type.count):
        begin = min(start, last + 1 - type.count)
        place = builder.gep(address, [I64(begin)], source_etype=type.element)
        register = builder.load(place, typ=type, align=nbytes)
        # Lanes from this register, and those that others have given or will give.
        inside = range(start, start + type.count)
        mixed = [
            type.count + at - begin if at in inside else lane for lane, at in enumerate(places)
        ]
        found = _taken(builder, found, register, mixed)
    return found


def _nbytes(element: Any) -> int:
    return element.width // 8 if isinstance(element, ir.IntType) else {F32: 4, F64: 8}[element]


def _taken(builder: ir.IRBuilder, low: Any, high: Any, places: Iterable[int]) -> Any:
    """Elements of two vectors, counted through both."""
    numbers = list(places)
    mask = ir.Constant(ir.VectorType(I32, len(numbers)), numbers)
    return builder.shuffle_vector(low, high, mask)
