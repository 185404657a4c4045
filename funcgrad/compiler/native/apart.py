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
    for block, mask in ((every, None), (some, function.args[1])):
        builder = ir.IRBuilder(block)
        parts = list(_pieces(builder, function.args[0], type, step, name, mask))
        while len(parts) > 1:
            size = parts[0].type.count
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [_taken(builder, a, b, range(2 * size)) for a, b in pairs]
        builder.ret(parts[0])
    return function


def _pieces(
    builder: ir.IRBuilder, pointer: Any, type: Any, step: int, name: str, flags: Any
) -> Iterator[Any]:
    """The vector in pieces of a register; without flags all elements are there."""
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
        if flags is None:
            # What comes after the last element need not be there.
            there: Any = ir.Constant(kind, [i <= max(places) for i in range(span.count)])
        else:
            lanes = {place: k * count + lane for lane, place in enumerate(places)}
            none = ir.Constant(flags.type, None)
            spread = [lanes.get(i, type.count) for i in range(span.count)]
            there = _taken(builder, flags, none, spread)
        found = builder.call(load, [address, I32(nbytes), there, ir.Constant(span, None)])
        yield _taken(builder, found, found, places)


def _nbytes(element: Any) -> int:
    return element.width // 8 if isinstance(element, ir.IntType) else {F32: 4, F64: 8}[element]


def _taken(builder: ir.IRBuilder, low: Any, high: Any, places: Iterable[int]) -> Any:
    """Elements of two vectors, counted through both."""
    numbers = list(places)
    mask = ir.Constant(ir.VectorType(I32, len(numbers)), numbers)
    return builder.shuffle_vector(low, high, mask)
