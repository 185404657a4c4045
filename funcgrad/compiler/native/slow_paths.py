"""Calls of libm for rare arguments, in loops that stay vectorised.

A formula may not cover all arguments. A call under a condition would keep LLVM from vectorising the
loop around it, unless the called function has variants that take vectors and a mask; so they are
written here, and declared as LLVM's vector function ABI demands. A variant asks once per vector
whether any argument is rare; `llvm_backend` puts this question into the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from funcgrad.compiler.native.llvm import F64, I1, Function, Module, vector_of
from funcgrad.compiler.native.scalars import Builder, Emitted, by_element, each

_LENGTHS = (2, 4, 8)
_PURE = "nounwind readnone willreturn"


def choose_where(rare: Emitted, usual: Emitted, compute: Callable[[], Emitted]) -> Emitted:
    """Compute where the flag is set, else take ``usual``; nothing runs if no flag is set."""
    if rare.lanes:
        return rare.builder.if_any(rare, usual, lambda: rare.select(compute(), usual))
    return rare.builder.if_any(rare, usual, compute)


def call_where(rare: Emitted, name: str, args: Sequence[Emitted], usual: Emitted) -> Emitted:
    """The function ``name`` of libm at 64-bit numbers where the flag is set, else ``usual``."""
    module, count = rare.builder.module, len(args)
    if usual.lanes:
        symbol = each(module, name, usual.type, count)
    else:
        symbol = _rare_function(module, name, count)
    return choose_where(
        rare, usual, lambda: rare.builder.call(symbol, usual.type, usual.kind, *args)
    )


def every_quotient(a: Emitted, b: Emitted) -> Emitted:
    """The quotients of integers one by one, by a function of the module."""
    symbol = f"divide.{a.kind}{a.suffix}"
    by_element(a.builder.module, symbol, a.type, a.kind, 2, Emitted.divided)
    return a.builder.call(symbol, a.type, a.kind, a, b)


def _rare_function(module: Module, name: str, count: int) -> str:
    """The symbol of a function that calls libm, with variants for vectors."""

    def write(module: Module, symbol: str) -> None:
        attributes = f"{_PURE} cold noinline"
        if module.has_hints:  # which Numba's vectoriser does without
            module.kept += [_variant(module, name, n, count) for n in _LENGTHS]
            mapping = ",".join(
                f"_ZGV_LLVM_M{n}{'v' * count}_{symbol}({name}.rare{n})" for n in _LENGTHS
            )
            attributes += f' "vector-function-abi-variant"="{mapping}"'
        builder = Builder(module, Function(symbol, F64, [F64] * count, attributes))
        builder.end(f"ret {builder.call(name, F64, 'f', *builder.arguments('f' * count))}")

    return module.helper(f"{name}.rare", write).symbol


def _variant(module: Module, name: str, n: int, count: int) -> str:
    """The function of vectors and a mask; without any set flag its result is undefined."""
    vector, mask = vector_of(F64, n), vector_of(I1, n)
    every = each(module, name, vector, count)
    kinds = [*[vector] * count, mask]
    symbol = f"{name}.rare{n}"
    builder = Builder(module, Function(symbol, vector, kinds, f"{_PURE} alwaysinline"))
    *args, flags = builder.arguments("f" * count + "b")
    nothing = Emitted(builder, "undef", vector, "f")
    found = builder.if_any(flags, nothing, lambda: builder.call(every, vector, "f", *args))
    builder.end(f"ret {found}")
    return symbol
