"""LLVM assembly, written function by function: what kernels of products are made with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager


class Assembly:
    """Lines of LLVM assembly.

    Counters are counted by `count`; everything else is written once and never changed.

    Attributes:
        size: Bytes of a real number.
        scalar: Its type.
        lanes: Numbers in a vector.
        vector: The type of vectors.
    """

    def __init__(self, size: int, lanes: int) -> None:
        self.size = size
        self.lanes = lanes
        self.scalar = "float" if size == 4 else "double"
        self.vector = f"<{lanes} x {self.scalar}>"
        self.lines: list[str] = []
        self.block = ""
        self._numbers = itertools.count()

    @property
    def suffix(self) -> str:
        """What the names of intrinsics on vectors end with."""
        return f"v{self.lanes}f{8 * self.size}"

    @contextmanager
    def function(self, name: str, arguments: str, returns: str = "void") -> Iterator[None]:
        linkage = "" if returns == "i64" else "internal "
        self.lines.append(f"define {linkage}{returns} @{name}({arguments}) nounwind noinline {{")
        self.start("entry")
        yield
        self.lines += [f"  ret {returns}" + (" 0" if returns == "i64" else ""), "}", ""]

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def do(self, instruction: str) -> None:
        self.lines.append("  " + instruction)

    def let(self, instruction: str) -> str:
        name = f"%v{next(self._numbers)}"
        self.do(f"{name} = {instruction}")
        return name

    def add(self, a: str, b: str) -> str:
        return self.let(f"add nsw i64 {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.let(f"sub nsw i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        return self.let(f"mul nsw i64 {a}, {b}")

    def least(self, a: str, b: str) -> str:
        return self.let(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def at(self, base: str, *steps: tuple[str, str | int]) -> str:
        """The address some products of bytes after another one."""
        for count, nbytes in steps:
            distance = self.mul(count, nbytes)
            base = self.let(f"getelementptr inbounds i8, ptr {base}, i64 {distance}")
        return base

    def copy(self, kind: str, to: str, source: str) -> None:
        self.do(f"store {kind} {self._load(kind, source)}, ptr {to}, align {self.size}")

    def _load(self, kind: str, place: str) -> str:
        return self.let(f"load {kind}, ptr {place}, align {self.size}")

    def _mask(self, count: str) -> str:
        """The first lanes of a vector."""
        numbers = ", ".join(f"i64 {i}" for i in range(self.lanes))
        ends = self._spread(count, "i64")
        return self.let(f"icmp slt <{self.lanes} x i64> <{numbers}>, {ends}")

    def _spread(self, number: str, kind: str = "") -> str:
        """A number in all lanes."""
        kind = kind or self.scalar
        vector = f"<{self.lanes} x {kind}>"
        one = self.let(f"insertelement {vector} poison, {kind} {number}, i64 0")
        return self.let(
            f"shufflevector {vector} {one}, {vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    @contextmanager
    def count(self, first: str, end: str, step: str | int = 1) -> Iterator[str]:
        """A loop: yields its counter, which may reach its end before the first turn."""
        n = next(self._numbers)
        before = self.block
        self.do(f"br label %head{n}")
        self.start(f"head{n}")
        self.do(f"%i{n} = phi i64 [ {first}, %{before} ], [ %next{n}, %latch{n} ]")
        more = self.let(f"icmp slt i64 %i{n}, {end}")
        self.do(f"br i1 {more}, label %body{n}, label %exit{n}")
        self.start(f"body{n}")
        yield f"%i{n}"
        self.do(f"br label %latch{n}")
        self.start(f"latch{n}")
        self.do(f"%next{n} = add nsw i64 %i{n}, {step}")
        self.do(f"br label %head{n}")
        self.start(f"exit{n}")

    @contextmanager
    def fold(
        self, first: str, end: str, *carried: tuple[str, str]
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """A loop that carries values: yields its counter, their names, and a list for the next.

        After the loop the names stand for what the last turn has left.

        Args:
            first: The counter at first.
            end: What it does not reach.
            carried: Types of the values, and what they are at first.
        """
        n = next(self._numbers)
        before = self.block
        self.do(f"br label %head{n}")
        self.start(f"head{n}")
        self.do(f"%i{n} = phi i64 [ {first}, %{before} ], [ %next{n}, %latch{n} ]")
        names = [f"%carried{n}.{k}" for k in range(len(carried))]
        place = len(self.lines)
        more = self.let(f"icmp slt i64 %i{n}, {end}")
        self.do(f"br i1 {more}, label %body{n}, label %exit{n}")
        self.start(f"body{n}")
        after: list[str] = []
        yield f"%i{n}", names, after
        self.do(f"br label %latch{n}")
        self.start(f"latch{n}")
        self.do(f"%next{n} = add nsw i64 %i{n}, 1")
        self.do(f"br label %head{n}")
        self.start(f"exit{n}")
        self.lines[place:place] = [
            f"  {name} = phi {kind} [ {initial}, %{before} ], [ {new}, %latch{n} ]"
            for name, (kind, initial), new in zip(names, carried, after, strict=True)
        ]

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        n = next(self._numbers)
        self.do(f"br i1 {condition}, label %then{n}, label %end{n}")
        self.start(f"then{n}")
        yield
        self.do(f"br label %end{n}")
        self.start(f"end{n}")
