"""The elementary functions in LLVM: formulas of `vecmath`, one instruction, or a call of libm.

A formula becomes a private function of the kernel's module, written once per use of its name and
width. It is inlined, so that loops around it vectorise; only a formula of vectors that an unrolled
program uses many times is called, for LLVM takes as long for every copy as for the first one.
Functions without a formula call libm.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from funcgrad.compiler.native import vecmath
from funcgrad.compiler.native.scalars import Emitted
from funcgrad.intrinsics import INTRINSICS

MOST_COPIES = 4
"""How often a formula of vectors is inlined; the call of one that is not takes a tenth of it."""


class Formula(ir.Function):
    """The function of a formula.

    Attributes:
        is_of_vectors: Whether it computes vectors.
        n_calls: How many calls the kernel has.
    """

    is_of_vectors = False
    n_calls = 0


def emit(name: str, *args: Emitted) -> Emitted:
    """The value of the elementary function ``name`` at floats of one type."""
    first, *others = args
    code = INTRINSICS[name].code
    if code == "llvm":
        return first.intrinsic(name, *others)
    if code == "formula":
        function = _function(first.builder.module, name, first, len(args))
        function.n_calls += 1
        return first.like(first.builder.call(function, [x.value for x in args]))
    assert code == "libm", name
    return first.call(name, *others)


def _function(module: ir.Module, name: str, like: Emitted, count: int) -> Formula:
    symbol = f"{name}.{like.suffix}"
    found = module.globals.get(symbol)
    if found is not None:
        assert isinstance(found, Formula)
        return found
    function = Formula(module, ir.FunctionType(like.type, [like.type] * count), symbol)
    function.linkage = "internal"
    function.is_of_vectors = like.lanes > 0
    builder = ir.IRBuilder(function.append_basic_block())
    values: list[Any] = [Emitted(builder, value, "f") for value in function.args]
    builder.ret(vecmath.FORMULAS[name, like.width](*values).value)
    return function


def settle_formulas(module: ir.Module) -> None:
    """Decide for every formula of a kernel that is written whether it is inlined."""
    for function in module.functions:
        if isinstance(function, Formula):
            is_called = function.is_of_vectors and function.n_calls > MOST_COPIES
            function.attributes.add("noinline" if is_called else "alwaysinline")
