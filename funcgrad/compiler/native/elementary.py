"""The elementary functions in LLVM: formulas of `vecmath`, one instruction, or a call of libm.

A formula becomes a private function of the kernel's module, written once per use of its name and
width, and always inlined: loops around it vectorise. Functions without a formula call libm.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from funcgrad.compiler.native import vecmath
from funcgrad.compiler.native.scalars import Emitted
from funcgrad.intrinsics import INTRINSICS


def emit(name: str, *args: Emitted) -> Emitted:
    """The value of the elementary function ``name`` at floats of one type."""
    first, *others = args
    code = INTRINSICS[name].code
    if code == "llvm":
        return first.intrinsic(name, *others)
    if code == "formula":
        function = _function(first.builder.module, name, first, len(args))
        return first.like(first.builder.call(function, [x.value for x in args]))
    assert code == "libm", name
    return first.call(name, *others)


def _function(module: ir.Module, name: str, like: Emitted, count: int) -> ir.Function:
    symbol = f"{name}.{like.suffix}"
    found = module.globals.get(symbol)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(like.type, [like.type] * count), symbol)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    values: list[Any] = [Emitted(builder, value, "f") for value in function.args]
    builder.ret(vecmath.FORMULAS[name, like.width](*values).value)
    return function
