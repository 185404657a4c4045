"""Calls of libm for rare arguments, in loops that stay vectorised.

A formula may not cover all arguments. A call under a condition would keep LLVM from vectorising the
loop around it, unless the called function has variants that take vectors and a mask; so they are
written here, and declared as LLVM's vector function ABI demands. A variant asks once per vector
whether any argument is rare; `llvm_backend` puts this question into the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from funcgrad.compiler.native.scalars import F64, I1, POINTER, Emitted, by_element, declare, each

_LENGTHS = (2, 4, 8)
_USED = "llvm.compiler.used"


class _Attributes(ir.values.FunctionAttributes):
    """Attributes of a pure function, and more of them as text."""

    def __init__(self, *texts: str) -> None:
        super().__init__(("nounwind", "readnone"))
        self.texts = texts

    def _to_list(self, type: Any) -> list[str]:
        return [*super()._to_list(type), "willreturn", *self.texts]


def choose_where(rare: Emitted, usual: Emitted, compute: Callable[[], Emitted]) -> Emitted:
    """What is computed where the flag is set, else ``usual``; nothing is if no flag is set."""
    builder = rare.builder
    condition = rare.value
    if rare.lanes:
        bits = builder.bitcast(rare.value, ir.IntType(rare.lanes))
        condition = builder.icmp_unsigned("!=", bits, bits.type(0))
    before = builder.block
    with builder.if_then(condition, likely=False):
        value = compute().value
        if rare.lanes:
            value = builder.select(rare.value, value, usual.value)
        inside = builder.block
    result = builder.phi(usual.type)
    result.add_incoming(usual.value, before)
    result.add_incoming(value, inside)
    return usual.like(result)


def call_where(rare: Emitted, name: str, args: Sequence[Emitted], usual: Emitted) -> Emitted:
    """The function ``name`` of libm at 64-bit numbers where the flag is set, else ``usual``."""
    builder, count = rare.builder, len(args)
    function = (
        each(builder.module, name, usual.type, count)
        if usual.lanes
        else _rare_function(builder.module, name, count)
    )
    return choose_where(
        rare, usual, lambda: usual.like(builder.call(function, [x.value for x in args]))
    )


def every_quotient(a: Emitted, b: Emitted) -> Emitted:
    """The quotients of integers one by one, by a function of the module."""
    symbol, name = f"divide.{a.kind}{a.suffix}", "sdiv" if a.kind == "i" else "udiv"
    function = by_element(
        a.builder.module, symbol, a.type, 2, lambda inner, x, y: getattr(inner, name)(x, y)
    )
    return a.like(a.builder.call(function, [a.value, b.value]))


def _define(module: Any, kind: Any, symbol: str, *texts: str) -> ir.IRBuilder:
    function = ir.Function(module, kind, symbol)
    function.linkage = "internal"
    function.attributes = _Attributes(*texts)
    return ir.IRBuilder(function.append_basic_block())


def _rare_function(module: Any, name: str, count: int) -> ir.Function:
    """A function that calls libm, with variants for vectors."""
    symbol = f"{name}.rare"
    found = module.globals.get(symbol)
    if found is not None:
        return found
    variants = [_variant(module, name, n, count) for n in _LENGTHS]
    mapping = ",".join(
        f"_ZGV_LLVM_M{n}{'v' * count}_{symbol}({variant.name})"
        for n, variant in zip(_LENGTHS, variants, strict=True)
    )
    attribute = f'"vector-function-abi-variant"="{mapping}"'
    kind = ir.FunctionType(F64, [F64] * count)
    builder = _define(module, kind, symbol, "cold", "noinline", attribute)
    builder.ret(builder.call(declare(builder, name, F64, count), builder.function.args))
    _keep(module, variants)
    return builder.function


def _variant(module: Any, name: str, n: int, count: int) -> ir.Function:
    """The function of vectors and a mask; without any set flag its result is undefined."""
    vector, mask = ir.VectorType(F64, n), ir.VectorType(I1, n)
    every = each(module, name, vector, count)
    kind = ir.FunctionType(vector, [*[vector] * count, mask])
    builder = _define(module, kind, f"{name}.rare{n}", "alwaysinline")
    *args, flags = builder.function.args
    flags = builder.bitcast(flags, ir.IntType(n))
    start = builder.block
    with builder.if_then(builder.icmp_unsigned("!=", flags, flags.type(0)), likely=False):
        value = builder.call(every, args)
        inside = builder.block
    result = builder.phi(vector)
    result.add_incoming(ir.Constant(vector, ir.Undefined), start)
    result.add_incoming(value, inside)
    builder.ret(result)
    return builder.function


def _keep(module: Any, functions: list[ir.Function]) -> None:
    """Let LLVM not remove functions that only its vectoriser may call."""
    used = module.globals.get(_USED)
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(POINTER, 0), _USED)
        used.linkage = "appending"
        used.section = "llvm.metadata"
    kept = [*(used.initializer.constant if used.initializer else []), *functions]
    used.value_type = ir.ArrayType(POINTER, len(kept))
    used.initializer = ir.Constant(used.value_type, kept)
