"""The elementary functions in LLVM: formulas of `vecmath`, one instruction, or a call of libm.

A formula is a private function of the kernel's module, written once for its name and type. It is
inlined, so that loops around it vectorise; only a formula of vectors that an unrolled program uses
many times is called, for LLVM takes as long for every copy as for the first one. Functions without
a formula call libm.
"""

from __future__ import annotations

from typing import Any

from funcgrad.compiler.native import vecmath
from funcgrad.compiler.native.llvm import Function, Module
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.intrinsics import INTRINSICS

MOST_COPIES = 4
"""How often a formula of vectors is inlined; the call of one that is not takes a tenth of it."""


def emit(name: str, *args: Emitted) -> Emitted:
    """The value of the elementary function ``name`` at floats of one type."""
    first, *others = args
    code = INTRINSICS[name].code
    if code == "llvm":
        return first.intrinsic(name, *others)
    if code == "libm":
        return first.call(name, *others)
    assert code == "formula", name

    def write(module: Module, symbol: str) -> None:
        builder = Builder(module, Function(symbol, first.type, [first.type] * len(args), ""))
        values: list[Any] = builder.arguments("f" * len(args))
        builder.end(f"ret {vecmath.FORMULAS[name, first.width](*values)}")

    module, symbol = first.builder.module, f"{name}.{first.suffix}"
    module.helper(symbol, write)
    module.n_calls[symbol] += 1
    return first.builder.call(symbol, first.type, "f", *args)


def decide_inlining(module: Module) -> None:
    """Decide for every formula of a kernel that is written whether it is inlined."""
    for symbol, count in module.n_calls.items():
        is_called = module.functions[symbol].result.count and count > MOST_COPIES
        module.attributes[symbol] = "noinline" if is_called else "alwaysinline"
