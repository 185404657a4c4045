"""Calls of libm for rare arguments, in loops that stay vectorised.

A formula may not cover all arguments. A call under a condition would keep LLVM from vectorising the
loop around it, unless the called function has variants that take vectors and a mask; so they are
written here, and declared as LLVM's vector function ABI demands. A variant asks once per vector
whether any argument is rare; `llvm_backend.optimize` puts this question into the loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from funcgrad.compiler.native.scalars import F64, I1, POINTER, Emitted, declare, each

_LENGTHS = (2, 4, 8)
_USED = "llvm.compiler.used"


class _Attributes(ir.values.FunctionAttributes):
    """Attributes of a pure function, and more of them as text."""

    def __init__(self, *texts: str) -> None:
        super().__init__(("nounwind", "readnone"))
        self.texts = texts

    def _to_list(self, type: Any) -> list[str]:
        return [*super()._to_list(type), "willreturn", *self.texts]


def call_where(rare: Emitted, name: str, x: Emitted, usual: Emitted) -> Emitted:
    """The function ``name`` of libm at a 64-bit ``x`` where the flag is set, else ``usual``."""
    builder = x.builder
    if x.lanes:
        function = each(builder.module, name, x.type, 1)
        condition = builder.bitcast(rare.value, ir.IntType(x.lanes))
        condition = builder.icmp_unsigned("!=", condition, condition.type(0))
    else:
        function, condition = _rare_function(builder.module, name), rare.value
    before = builder.block
    with builder.if_then(condition, likely=False):
        value = builder.call(function, [x.value])
        if x.lanes:
            value = builder.select(rare.value, value, usual.value)
        inside = builder.block
    result = builder.phi(x.type)
    result.add_incoming(usual.value, before)
    result.add_incoming(value, inside)
    return x.like(result)


def _define(module: Any, kind: Any, symbol: str, *texts: str) -> ir.IRBuilder:
    function = ir.Function(module, kind, symbol)
    function.linkage = "internal"
    function.attributes = _Attributes(*texts)
    return ir.IRBuilder(function.append_basic_block())


def _rare_function(module: Any, name: str) -> ir.Function:
    """A function that calls libm, with variants for vectors."""
    symbol = f"{name}.rare"
    found = module.globals.get(symbol)
    if found is not None:
        return found
    variants = [_variant(module, name, n) for n in _LENGTHS]
    mapping = ",".join(
        f"_ZGV_LLVM_M{n}v_{symbol}({variant.name})"
        for n, variant in zip(_LENGTHS, variants, strict=True)
    )
    attribute = f'"vector-function-abi-variant"="{mapping}"'
    builder = _define(module, ir.FunctionType(F64, [F64]), symbol, "cold", "noinline", attribute)
    builder.ret(_call(builder, name, builder.function.args[0]))
    _keep(module, variants)
    return builder.function


def _call(builder: ir.IRBuilder, name: str, value: Any) -> Any:
    return builder.call(declare(builder, name, F64, 1), [value])


def _variant(module: Any, name: str, n: int) -> ir.Function:
    """The function of a vector and a mask; without any set flag its result is undefined."""
    vector, mask = ir.VectorType(F64, n), ir.VectorType(I1, n)
    every = each(module, name, vector, 1)
    builder = _define(
        module, ir.FunctionType(vector, [vector, mask]), f"{name}.rare{n}", "alwaysinline"
    )
    x, flags = builder.function.args
    flags = builder.bitcast(flags, ir.IntType(n))
    start = builder.block
    with builder.if_then(builder.icmp_unsigned("!=", flags, flags.type(0)), likely=False):
        value = builder.call(every, [x])
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
