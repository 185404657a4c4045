"""The elementary functions in LLVM: formulas of `vecmath`, one instruction, or a call of libm.

A formula becomes a private function of the kernel's module, written once per use of its name and
width, and always inlined: loops around it vectorise. Functions without a formula call libm.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from funcgrad.compiler.native import vecmath
from funcgrad.compiler.native.scalars import Emitted

# One LLVM intrinsic that every CPU turns into instructions.
INTRINSICS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "copysign": "copysign",
    "maximum": "maximum",
    "minimum": "minimum",
    "fma": "fma",
}

# What libm has under the same name.
LIBM = frozenset(
    (
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "cbrt",
        "pow",
        "atan2",
        "hypot",
        "erf",
        "erfc",
        "lgamma",
        "tgamma",
        "fmod",
        "nextafter",
    )
)


def emit(name: str, *args: Emitted) -> Emitted:
    """The value of the elementary function ``name`` at floats of one type."""
    first, *others = args
    if name in INTRINSICS:
        return first.intrinsic(INTRINSICS[name], *others)
    if (name, first.width) in vecmath.FORMULAS:
        function = _function(first.builder.module, name, first, len(args))
        return first.like(first.builder.call(function, [x.value for x in args]))
    assert name in LIBM, name
    return first.call(name, *others)


def _function(module: ir.Module, name: str, like: Emitted, count: int) -> ir.Function:
    symbol = f"{name}.f{like.width}"
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
