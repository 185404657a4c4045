"""LLVM assembly, written function by function: all native code that is not generated of kernels.

Values are names, or numbers as text. `Assembly` has words, addresses and the flow of control;
`VectorAssembly` has numbers in vectors. What LLVM or C calls by a name is declared where it is
called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import LANES_SLOT

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
    """What `Code` says of it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = ""
        """The block that is being written; none where it has ended."""
        self._numbers = itertools.count()
        self._returns = ""
        self._declared: dict[str, None] = {}
        self._called: dict[str, Callable[[], None]] = {}
        self._seen: list[str] = []
        self._rooms: list[str] = []

    def finished(self) -> Code:
        """The text, with what was called by `use`, and declarations of what is defined elsewhere.

        Its function is the first one that is seen from outside.
        """
        n_written = 0
        while n_written < len(self._called):
            list(self._called.values())[n_written]()
            n_written += 1
        text = "\n".join([*self.lines, *self._declared, ""])
        return Code(text, self._seen[0], self.is_brief)

    def use(self, name: str, arguments: str, write: Callable[[], None] | None = None) -> None:
        """Call a function, and have it written: by what is given, or by ``write_`` and its name."""
        if name not in self._called:
            self._called[name] = write or getattr(self, f"write_{name}")
        self.do(f"call void @{name}({arguments})")

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

    def use_by_number(
        self, code: str, functions: Mapping[int, tuple[str, Callable[[], None]]], arguments: str
    ) -> None:
        """Call the function that belongs to a number, if there is one."""
        n = next(self._numbers)
        cases = " ".join(f"i64 {key}, label %case{n}.{key}" for key in functions)
        self.do(f"switch i64 {code}, label %end{n} [ {cases} ]")
        for key, (name, write) in functions.items():
            self.start(f"case{n}.{key}")
            self.use(name, arguments, write)
            self.go(f"end{n}")
        self.start(f"end{n}")

    @contextmanager
    def count(self, first: str, end: str, step: Value = 1) -> Iterator[str]:
        """A loop: yields its counter, which may reach its end before the first turn."""
        with self.fold(first, end, step=step) as (i, _, _):
            yield i

    @contextmanager
    def fold(
        self, first: str, end: str, *carried: tuple[str, str], step: Value = 1
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """A loop that carries values: yields its counter, their names, and a list for the next.

        After the loop the names stand for what the last turn has left.

        Args:
            first: The counter at first.
            end: What it does not reach.
            carried: Types of the values, and what they are at first.
            step: How far it counts at a time.
        """
        n = next(self._numbers)
        before = self.block
        self.go(f"head{n}")
        self.start(f"head{n}")
        self.do(f"%i{n} = phi i64 [ {first}, %{before} ], [ %next{n}, %latch{n} ]")
        names = [f"%carried{n}.{k}" for k in range(len(carried))]
        place = len(self.lines)
        self.fork(self.test("slt", f"%i{n}", end), f"body{n}", f"exit{n}")
        self.start(f"body{n}")
        after: list[str] = []
        yield f"%i{n}", names, after
        if self.block:
            self.go(f"latch{n}")
        self.start(f"latch{n}")
        self.do(f"%next{n} = add nsw i64 %i{n}, {step}")
        self.go(f"head{n}")
        self.start(f"exit{n}")
        self.lines[place:place] = [
            f"  {name} = phi {kind} [ {initial}, %{before} ], [ {new}, %latch{n} ]"
            for name, (kind, initial), new in zip(names, carried, after, strict=True)
        ]

    @contextmanager
    def turns(
        self, first: str, end: str, *carried: tuple[str, str], is_certain: bool = True
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """The same as `fold`, but asks for more after each turn: the list has what is left.

        Args:
            first: As of `fold`.
            end: As of `fold`.
            carried: As of `fold`.
            is_certain: Whether there is a first turn in any case.
        """
        n, before = next(self._numbers), self.block
        if is_certain:
            self.go(f"turn{n}")
        else:
            self.fork(self.test("slt", first, end), f"turn{n}", f"exit{n}")
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
        if not is_certain:
            after[:] = [self.let(phi) for phi in phis[1:]]

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

    def least(self, a: Value, b: Value) -> str:
        return self.invoke("i64", "llvm.smin.i64", ("i64", a), ("i64", b))

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

    def room(self, kind: str, align: int = 8) -> str:
        """The address of a few bytes on the stack, which the function has from its beginning on.

        Memory that may be large is not here: threads may have little stack (`claim`).
        """
        name = f"%room{next(self._numbers)}"
        self._rooms.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def claim(self) -> tuple[str, str]:
        """Take a lane of the step's scratch memory, whose words (`SCRATCH_WORDS`) have names.

        Returns:
            The address of the lane, and what `release` is given.
        """
        n = next(self._numbers)
        lanes = self.entry("%slots", LANES_SLOT)
        self.go(f"look{n}")
        self.start(f"look{n}")
        taken = self.let(f"load atomic i64, ptr {lanes} monotonic, align 8")
        free = self.let(f"xor i64 {taken}, -1")
        lane = self.invoke("i64", "llvm.cttz.i64", ("i64", free), ("i1", "false"))
        bit = self.let(f"shl i64 1, {lane}")
        claimed = self.let(f"or i64 {taken}, {bit}")
        pair = self.let(f"cmpxchg ptr {lanes}, i64 {taken}, i64 {claimed} acquire monotonic")
        won = self.let(f"extractvalue {{ i64, i1 }} {pair}, 1")
        self.fork(won, f"claimed{n}", f"look{n}")
        self.start(f"claimed{n}")
        return self.at(self.array("%scratch", "%scratch_offset"), (lane, "%lane")), bit

    def release(self, bit: str) -> None:
        """Give a lane back."""
        others = self.let(f"xor i64 {bit}, -1")
        self.let(f"atomicrmw and ptr {self.entry('%slots', LANES_SLOT)}, i64 {others} release")

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
        """Where an array begins: some bytes behind what a slot points to."""
        return self.after(self.word("%slots", slot, "ptr"), offset)


class VectorAssembly(Assembly):
    """The same with numbers in vectors.

    Attributes:
        size: Bytes of a real number.
        scalar: Its type.
        lanes: Numbers in a vector.
        vector: The type of vectors.
        line: Bytes of a vector.
    """

    def __init__(self, size: int, lanes: int) -> None:
        super().__init__()
        self.size = size
        self.lanes = lanes
        self.scalar = "float" if size == 4 else "double"
        self.vector = f"<{lanes} x {self.scalar}>"
        self.line = lanes * size

    @property
    def suffix(self) -> str:
        """What the names of intrinsics on vectors end with."""
        return f"v{self.lanes}f{8 * self.size}"

    def fused(self, x: str, y: str, z: str) -> str:
        """``x y + z``."""
        kind = self.vector
        return self.invoke(kind, f"llvm.fmuladd.{self.suffix}", (kind, x), (kind, y), (kind, z))

    def filled(self, kind: str, number: str) -> str:
        """A constant number in all lanes."""
        return "<" + ", ".join([f"{kind} {number}"] * self.lanes) + ">"

    def copy(self, kind: str, to: str, source: str) -> None:
        self.store(self.load(source, kind=kind), to, kind=kind)

    def load(self, place: str, mask: str = "", kind: str = "", size: int = 0) -> str:
        """A vector, or what else; zeros where there is a mask that does not hold."""
        kind, size = kind or self.vector, size or self.size
        if not mask:
            return self.let(f"load {kind}, ptr {place}, align {size}")
        flags = f"<{self.lanes} x i1>"
        arguments = ("ptr", place), ("i32", str(size)), (flags, mask), (kind, "zeroinitializer")
        return self.invoke(kind, f"llvm.masked.load.v{self.lanes}f{8 * size}.p0", *arguments)

    def store(self, value: str, place: str, mask: str = "", kind: str = "", size: int = 0) -> None:
        """The reverse, where a mask holds if there is one."""
        kind, size = kind or self.vector, size or self.size
        if not mask:
            self.do(f"store {kind} {value}, ptr {place}, align {size}")
            return
        arguments = (
            (kind, value),
            ("ptr", place),
            ("i32", str(size)),
            (f"<{self.lanes} x i1>", mask),
        )
        self.invoke("void", f"llvm.masked.store.v{self.lanes}f{8 * size}.p0", *arguments)

    def mask(self, count: str) -> str:
        """The first lanes of a vector."""
        numbers = ", ".join(f"i64 {i}" for i in range(self.lanes))
        ends = self.spread(count, "i64")
        return self.let(f"icmp slt <{self.lanes} x i64> <{numbers}>, {ends}")

    def spread(self, number: str, kind: str = "") -> str:
        """A number in all lanes."""
        kind = kind or self.scalar
        vector = f"<{self.lanes} x {kind}>"
        one = self.let(f"insertelement {vector} poison, {kind} {number}, i64 0")
        return self.let(
            f"shufflevector {vector} {one}, {vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    # Numbers that change their lanes.

    def shuffled(self, pair: Sequence[str], places: Sequence[int]) -> str:
        """Numbers of a pair of vectors."""
        vectors = ", ".join(f"{self.vector} {x}" for x in pair)
        mask = ", ".join(f"i32 {t}" for t in places)
        return self.let(f"shufflevector {vectors}, <{self.lanes} x i32> <{mask}>")

    def transposed(self, rows: Sequence[str]) -> list[str]:
        """As many vectors as there are lanes: blocks of 1, 2, 4, ... numbers change places."""
        rows, step = list(rows), 1
        while step < self.lanes:
            new = list(rows)
            for i in (i for i in range(self.lanes) if not i & step):
                pair = rows[i], rows[i + step]
                numbers = range(self.lanes)
                new[i] = self.shuffled(
                    pair, [self.lanes + t - step if t & step else t for t in numbers]
                )
                new[i + step] = self.shuffled(
                    pair, [self.lanes + t if t & step else t + step for t in numbers]
                )
            rows = new
            step *= 2
        return rows

    def apart(self, parts: Sequence[str]) -> tuple[str, ...]:
        """Elements that are neighbours in vectors, part by part: real numbers have one."""
        if len(parts) == 1:
            return tuple(parts)
        return tuple(self.shuffled(parts, range(q, 2 * self.lanes, 2)) for q in range(2))

    def together(self, x: Sequence[str]) -> list[str]:
        """The reverse."""
        n = self.lanes
        if len(x) == 1:
            return list(x)
        places = [t // 2 + t % 2 * n for t in range(2 * n)]
        return [self.shuffled(x, places[q * n : (q + 1) * n]) for q in range(2)]

    # Products of matrices, whose sums are in registers.

    def multiplied(
        self, places: Iterable[str], panel: Sequence[str], sums: Sequence[str]
    ) -> list[str]:
        """Sums, row by row, with products of a number of each row and the vectors of a panel."""
        found = []
        for r, place in enumerate(places):
            number = self.spread(self.load(place, kind=self.scalar))
            row = sums[r * len(panel) : (r + 1) * len(panel)]
            found += [self.fused(number, x, total) for x, total in zip(panel, row, strict=True)]
        return found

    def put_sums(
        self, sums: Sequence[str], places: Sequence[tuple[str, Value]], masks: Sequence[str]
    ) -> None:
        """Add vectors to those in memory if ``%adds``, else write them; ends the function.

        Args:
            sums: The vectors.
            places: For each an address and how many bytes it is after that.
            masks: Which of its numbers there are.
        """
        self.fork("%adds", "add", "set")
        for is_sum, label in enumerate(("set", "add")):
            self.start(label)
            for total, (base, distance), mask in zip(sums, places, masks, strict=True):
                place = self.after(base, distance)
                if is_sum:
                    total = self.let(f"fadd {self.vector} {self.load(place, mask)}, {total}")
                self.store(total, place, mask)
            self.leave()
