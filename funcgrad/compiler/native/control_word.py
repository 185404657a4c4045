"""The floating-point control word of a thread: how numbers are rounded, which are zero, what was.

On x86 that is MXCSR; on ARM FPCR, with FPSR, the flags, in the upper half of the word. Other
processors have none that is known here: their word is 0.
"""

from __future__ import annotations

import platform

from funcgrad.compiler.native.assembly import Assembly

_FLUSHING_X86 = 1 << 15 | 1 << 6
"""Results that are subnormal are zero, and so are operands."""

_FLUSHING_ARM = 1 << 24
"""Both of them."""


def is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def is_arm() -> bool:
    return platform.machine().lower() in ("aarch64", "arm64")


class ControlWords(Assembly):
    """Assembly that reads and writes the word."""

    def control(self) -> str:
        """The word of this thread."""
        if is_x86():
            place = self.room("i32")
            self.invoke("void", "llvm.x86.sse.stmxcsr", ("ptr", place))
            return self.let(f"zext i32 {self.let(f'load i32, ptr {place}')} to i64")
        if is_arm():
            control = self.invoke("i64", "llvm.aarch64.get.fpcr")
            flags = self.let(f"shl i64 {self.invoke('i64', 'llvm.aarch64.get.fpsr')}, 32")
            return self.let(f"or i64 {control}, {flags}")
        return "0"

    def set_control(self, word: str) -> None:
        """Give this thread another word."""
        if is_x86():
            place = self.room("i32")
            self.do(f"store i32 {self.let(f'trunc i64 {word} to i32')}, ptr {place}")
            self.invoke("void", "llvm.x86.sse.ldmxcsr", ("ptr", place))
        if is_arm():
            control = self.let(f"and i64 {word}, {(1 << 32) - 1}")
            self.invoke("void", "llvm.aarch64.set.fpcr", ("i64", control))
            flags = self.let(f"lshr i64 {word}, 32")
            self.invoke("void", "llvm.aarch64.set.fpsr", ("i64", flags))

    def flushing(self, word: str) -> str:
        """The word with which subnormal numbers are zero, and all else is the same."""
        bits = _FLUSHING_X86 if is_x86() else _FLUSHING_ARM if is_arm() else 0
        return self.let(f"or i64 {word}, {bits}")
