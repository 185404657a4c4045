"""LLVM assembly, written function by function: all native code that is not generated of kernels.

Values are names, or numbers as text. What LLVM or C calls by a name is declared where it is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from funcgrad.base.records import dataclass

Value = str | int
"""A name, or a number."""


@dataclass(frozen=True)
class Code:
    """Native code that is written by hand: LLVM assembly, final as it is, and its function.

    Attributes:
        text: The assembly.
        symbol: The name of the function.
        is_brief: Whether it decides and calls, and leaves loops over numbers to others: so it
            takes no time to speak of, however it is translated.
    """

    text: str
    symbol: str
    is_brief: bool = False


class Assembly:
    """Lines of LLVM assembly.

    Counters are counted by `count` and `turns`; everything else is written once and never changed.
    """

    is_brief = False
    """Short form, as `Code` describes it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = ""
        """The block that is being written; none where it has ended."""
        self._numbers = itertools.count()
        self._returns = ""
        self._declared: dict[str, None] = {}
        self._seen: list[str] = []
        self._rooms: list[str] = []

    def finished(self) -> Code:
        """The text, with declarations of what is defined elsewhere.

        Its function is the first one that is seen from outside.
        """
        text = "\n".join([*self.lines, *self._declared, ""])
        return Code(text, self._seen[0], self.is_brief)

    @contextmanager
    def function(self, name: str, arguments: str, returns: str = "void") -> Iterator[None]:
        """A function, which is seen from outside if its name begins with ``fg_``.

        Where nothing else was said it returns 0.
        """
        linkage = "" if name.startswith("fg_") else "internal "
        if not linkage:
            self._seen.append(name)
        self.lines.append(f"define {linkage}{returns} @{name}({arguments}) nounwind noinline {{")
        self._returns = returns
        self.start("entry")
        first = len(self.lines)
        yield
        if self.block:
            self.leave("" if returns == "void" else "0")
        self.lines[first:first] = self._rooms
        self._rooms = []
        self.lines += ["}", ""]

    # Flow of control.

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def go(self, label: str) -> None:
        self.do(f"br label %{label}")
        self.block = ""

    def fork(self, condition: str, then: str, otherwise: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")
        self.block = ""

    def leave(self, value: str = "") -> None:
        """Return from the function."""
        self.do(f"ret {self._returns} {value}".rstrip())
        self.block = ""

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        n = next(self._numbers)
        self.fork(condition, f"then{n}", f"end{n}")
        self.start(f"then{n}")
        yield
        if self.block:
            self.go(f"end{n}")
        self.start(f"end{n}")

    @contextmanager
    def count(self, first: str, end: str, step: Value = 1) -> Iterator[str]:
        """A loop: yields its counter, which may reach its end before the first turn."""
        n = next(self._numbers)
        before = self.block
        self.go(f"head{n}")
        self.start(f"head{n}")
        self.do(f"%i{n} = phi i64 [ {first}, %{before} ], [ %next{n}, %latch{n} ]")
        self.fork(self.test("slt", f"%i{n}", end), f"body{n}", f"exit{n}")
        self.start(f"body{n}")
        yield f"%i{n}"
        if self.block:
            self.go(f"latch{n}")
        self.start(f"latch{n}")
        self.do(f"%next{n} = add nsw i64 %i{n}, {step}")
        self.go(f"head{n}")
        self.start(f"exit{n}")

    @contextmanager
    def turns(
        self, first: str, end: str, *carried: tuple[str, str]
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """A loop that has a first turn in any case, and carries values.

        Yields its counter, their names, and a list for the next ones, which has what is left then.

        Args:
            first: The counter at first.
            end: What it does not reach.
            carried: Types of the values, and what they are at first.
        """
        n, before = next(self._numbers), self.block
        self.go(f"turn{n}")
        self.start(f"turn{n}")
        place = len(self.lines)
        names = [f"%carried{n}.{k}" for k in range(len(carried))]
        after: list[str] = []
        yield f"%i{n}", names, after
        self.do(f"%next{n} = add nsw i64 %i{n}, 1")
        known = [("i64", first), *carried]
        phis = [
            f"phi {kind} [ {initial}, %{before} ], [ {new}, %{self.block} ]"
            for (kind, initial), new in zip(known, [f"%next{n}", *after], strict=True)
        ]
        self.lines[place:place] = [
            f"  {name} = {phi}" for name, phi in zip([f"%i{n}", *names], phis, strict=True)
        ]
        self.fork(self.test("slt", f"%next{n}", end), f"turn{n}", f"exit{n}")
        self.start(f"exit{n}")

    # Instructions.

    def do(self, instruction: str) -> None:
        self.lines.append("  " + instruction)

    def let(self, instruction: str) -> str:
        name = f"%v{next(self._numbers)}"
        self.do(f"{name} = {instruction}")
        return name

    def invoke(self, returns: str, name: str, *arguments: tuple[str, Value]) -> str:
        """Call a function of LLVM's or C's, whose arguments have types: what it returns."""
        self._declared[f"declare {returns} @{name}({', '.join(kind for kind, _ in arguments)})"] = (
            None
        )
        given = ", ".join(f"{kind} {x}" for kind, x in arguments)
        if returns == "void":
            self.do(f"call void @{name}({given})")
            return ""
        return self.let(f"call {returns} @{name}({given})")

    def add(self, a: Value, b: Value) -> str:
        return self.let(f"add nsw i64 {a}, {b}")

    def sub(self, a: Value, b: Value) -> str:
        return self.let(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Value, b: Value) -> str:
        return self.let(f"mul nsw i64 {a}, {b}")

    def test(self, relation: str, a: Value, b: Value, kind: str = "i64") -> str:
        return self.let(f"icmp {relation} {kind} {a}, {b}")

    def every(self, *conditions: str) -> str:
        first, *others = conditions
        for other in others:
            first = self.let(f"and i1 {first}, {other}")
        return first

    def lacks(self, condition: str) -> str:
        return self.let(f"xor i1 {condition}, true")

    def pick(self, condition: str, a: Value, b: Value, kind: str = "i64") -> str:
        return self.let(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def phi(self, kind: str, values: Mapping[str, str]) -> str:
        """The value that belongs to the block from which this one was reached."""
        pairs = ", ".join(f"[ {value}, %{block} ]" for block, value in values.items())
        return self.let(f"phi {kind} {pairs}")

    # Memory.

    def room(self, kind: str) -> str:
        """The address of a few bytes on the stack, which the function has from its beginning on.

        Memory that may be large is not here: threads may have little stack (`claim`).
        """
        name = f"%room{next(self._numbers)}"
        self._rooms.append(f"  {name} = alloca {kind}, align 8")
        return name

    def at(self, base: str, *steps: tuple[str, Value]) -> str:
        """The address some products of bytes after another one."""
        for count, nbytes in steps:
            base = self.after(base, self.mul(count, nbytes))
        return base

    def after(self, base: str, nbytes: Value) -> str:
        """The address some bytes after another one."""
        return self.let(f"getelementptr inbounds i8, ptr {base}, i64 {nbytes}")

    def entry(self, table: str, k: Value = 0) -> str:
        """The address of a word of a table."""
        return self.let(f"getelementptr inbounds i64, ptr {table}, i64 {k}") if k != 0 else table

    def word(self, table: str, k: Value = 0, kind: str = "i64") -> str:
        """A word of a table: a number, or an address if ``kind`` is ``ptr``."""
        return self.let(f"load {kind}, ptr {self.entry(table, k)}")

    def put_word(self, value: str, table: str, k: Value = 0, kind: str = "i64") -> None:
        self.do(f"store {kind} {value}, ptr {self.entry(table, k)}")

    def name_words(self, names: Sequence[str], table: str = "%args") -> None:
        """Load the first words of a table, each under its name."""
        for k, name in enumerate(names):
            self.do(f"%{name} = load i64, ptr {self.entry(table, k)}")

    def array(self, slot: str, offset: str) -> str:
        """Address of the first element of an array: some bytes behind the target of a slot."""
        return self.after(self.word("%slots", slot, "ptr"), offset)
