"""Words of the system: calls, memory that threads share, clocks, the floating-point control word.

They are for functions that are no kernels, in which addresses are integers of 64 bits. All that
they are given and give are such words, but for flags.

The control word of a thread says how numbers are rounded, which are zero, and what was: on x86
MXCSR; on ARM FPCR, with FPSR, the flags, in the upper half of the word. Other processors have none
that is known here: their word is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from funcgrad.compiler.abi import OWN_WORD
from funcgrad.compiler.native.llvm import I1, I32, I64
from funcgrad.compiler.native.memory import pointer_to
from funcgrad.compiler.native.processor import is_arm, is_x86
from funcgrad.compiler.native.scalars import Builder, Emitted
from funcgrad.compiler.native.types import BOOL, INT64, NONE, Signature, signature
from funcgrad.compiler.native.words import define, expect

Emission = Callable[[Builder, Signature, list[Any]], Any]


def _define(name: str, count: int | None, result: Any = INT64) -> Callable[[Emission], Emission]:
    """Register a word of so many operands; of any number, where none is given."""

    def rule(args: Any) -> Signature:
        expect(count is None or len(args) == count, f"{name} of {count} words", args)
        return signature(result, *[INT64] * len(args))

    return define(name, rule, is_pure=False, is_mapped=False)


# Calls.
@_define("call_address", None)
def _call_address(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """Call the function at an address; what is behind its own arguments it does not look at."""
    function, *given = values
    called = f"call i64 {pointer_to(function).text}({', '.join(map(str, given))})"
    return builder.let(called, I64, "i")


def _call_c(name: str, builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    kinds = ", ".join(["i64"] * len(values))
    builder.module.declarations[name] = f"declare i64 @{name}({kinds})"
    return builder.call(name, I64, "i", *values)


for _name, _count in {"pthread_self": 0, "clock_gettime": 2, "malloc": 1, "free": 1}.items():
    _define(_name, _count)(partial(_call_c, _name))


@_define("futex", 5)
def _futex(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """Linux's call to sleep on an address, or to wake who does.

    Its operands are the address, an operation, a number, a time, and the bits of those that sleep.
    """
    builder.module.declarations["syscall"] = "declare i64 @syscall(i64, ...)"
    *rest, bits = values
    number = builder.number(I64, 202 if is_x86() else 98)
    given = ", ".join(map(str, (number, *rest, builder.number(I64, 0), bits)))
    return builder.let(f"call i64 (i64, ...) @syscall({given})", I64, "i")


@_define("own_word", 0)
def _own_word(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """A constant for which each copy of a function has another one."""
    builder.module.declarations["own"] = f"@own = internal constant i64 {OWN_WORD}"
    return builder.let("load volatile i64, ptr @own", I64, "i")


# Words that threads share.
@_define("load_shared", 1)
def _load_shared(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    return builder.let(f"load atomic i64, {pointer_to(values[0])} seq_cst, align 8", I64, "i")


@_define("store_shared", 2, NONE)
def _store_shared(builder: Builder, sig: Signature, values: list[Any]) -> None:
    place, value = values
    builder.do(f"store atomic {value}, {pointer_to(place)} seq_cst, align 8")


@_define("add_shared", 2)
def _add_shared(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """Atomic fetch-and-add: the value of a word before the addition."""
    place, value = values
    return builder.let(f"atomicrmw add {pointer_to(place)}, {value} seq_cst", I64, "i")


@_define("replace_shared", 3, BOOL)
def _replace_shared(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """Atomic compare-and-swap: whether the word had the expected value and was replaced."""
    place, old, new = values
    pair = f"cmpxchg {pointer_to(place)}, {old}, {new} seq_cst seq_cst"
    swapped = builder.let(pair, I64, "i").text
    return builder.let(f"extractvalue {{ i64, i1 }} {swapped}, 1", I1, "b")


@_define("pause", 0, NONE)
def _pause(builder: Builder, sig: Signature, values: list[Any]) -> None:
    """Say that this thread waits for another one."""
    if is_x86():
        builder.run("llvm.x86.sse2.pause")
    elif is_arm():
        builder.run("llvm.aarch64.hint", builder.number(I32, 1))


# Clocks.
@_define("cycles", 0)
def _cycles(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """The processor's counter, which all threads share on x86."""
    return builder.call("llvm.readcyclecounter", I64, "i")


# The control word.
_FLUSHING_X86 = 1 << 15 | 1 << 6
"""Results that are subnormal are zero, and so are operands."""

_FLUSHING_ARM = 1 << 24
"""Both of them."""


@_define("read_control", 0)
def _read_control(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """The control word of this thread."""
    if is_x86():
        place = builder.room(I32)
        builder.run("llvm.x86.sse.stmxcsr", place)
        return builder.let(f"load i32, {place}", I32, "u").cast(I64, "i")
    if is_arm():
        control, flags = (builder.call(f"llvm.aarch64.get.{x}", I64, "i") for x in _OF_ARM)
        return control | (flags << 32)
    return builder.number(I64, 0)


@_define("write_control", 1, NONE)
def _write_control(builder: Builder, sig: Signature, values: list[Any]) -> None:
    """Give this thread another control word."""
    (word,) = values
    if is_x86():
        place = builder.room(I32)
        builder.do(f"store {word.cast(I32, 'u')}, {place}")
        builder.run("llvm.x86.sse.ldmxcsr", place)
    if is_arm():
        halves = word & (1 << 32) - 1, word.of_kind("u") >> 32
        for name, half in zip(_OF_ARM, halves, strict=True):
            builder.run(f"llvm.aarch64.set.{name}", half)


_OF_ARM = ("fpcr", "fpsr")


@_define("flushing", 1)
def _flushing(builder: Builder, sig: Signature, values: list[Any]) -> Emitted:
    """The control word with which subnormal numbers are zero, and all else is the same."""
    bits = _FLUSHING_X86 if is_x86() else _FLUSHING_ARM if is_arm() else 0
    return values[0] | bits
