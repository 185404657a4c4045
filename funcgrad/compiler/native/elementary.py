"""The elementary functions in LLVM: formulas of `vecmath`, one instruction, or a call of libm.

A formula is a private function of the kernel's module, written once for its name and type. It is
inlined, so that loops around it vectorise; only a formula of vectors that an unrolled program uses
many times is called, for LLVM takes as long for every copy as for the first one. What powers of one
number have in common is computed once. Functions without a formula call libm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from funcgrad.base.imports import load
from funcgrad.compiler.native.llvm import Function, Module, Type, structure_of
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

    table = _table()
    if name not in table.SHARED or not first.builder.shares:
        return _call(name, first.type, table.FORMULAS[name, first.width], args)
    part, rest = table.SHARED[name]
    return _call(f"{name}.rest", first.type, rest, (*args, *_parts(part, first)))


@cache
def _table() -> Any:
    """Load the formulas, when the first of them is needed."""
    return load("funcgrad.compiler.native.vecmath.formulas")


def _parts(part: Callable[..., Any], x: Emitted) -> list[Emitted]:
    """The values of a formula that has several, as one of the structure of them."""
    # Their number and type are those of the formula.
    scratch = Builder(Module(), Function("", x.type, [x.type]))
    types = [value.type for value in part(*scratch.arguments("f"))]
    whole = structure_of(types)
    values = _call(part.__name__, whole, lambda x: _structure(whole, part(x)), [x])
    builder = x.builder
    return [
        builder.once_here(
            (values.text, k), partial(builder.let, f"extractvalue {values}, {k}", type, "f")
        )
        for k, type in enumerate(types)
    ]


def _structure(whole: Type, values: Sequence[Emitted]) -> Emitted:
    builder = values[0].builder
    found = Emitted(builder, "poison", whole, "f")
    for k, value in enumerate(values):
        found = found.made(f"insertvalue {found}, {value}, {k}")
    return found


def _call(name: str, result: Type, formula: Callable[..., Any], args: Sequence[Emitted]) -> Emitted:
    """The call of a formula, which is written if no kernel has called it before.

    Equal calls of a block are one: rules of derivatives name functions of what others name, too.
    """
    first = args[0]

    def write(module: Module, symbol: str) -> None:
        builder = Builder(module, Function(symbol, result, [x.type for x in args], ""))
        values: list[Any] = builder.arguments("f" * len(args))
        builder.end(f"ret {formula(*values)}")

    module, symbol = first.builder.module, f"{name}.{first.suffix}"

    def made() -> Emitted:
        module.helper(symbol, write)
        module.n_calls[symbol] += 1
        return first.builder.call(symbol, result, "f", *args)

    return first.builder.once_here((symbol, *map(str, args)), made)


def decide_inlining(module: Module) -> None:
    """Decide for every formula of a kernel that is written whether it is inlined."""
    for symbol, count in module.n_calls.items():
        is_called = module.functions[symbol].result.count and count > MOST_COPIES
        module.attributes[symbol] = "noinline" if is_called else "alwaysinline"
