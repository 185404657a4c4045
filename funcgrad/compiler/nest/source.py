"""Kernels as source text, line by line, and the words that they are called with.

``words`` may hold `Place` entries, which become a slot and a byte offset once memory is planned,
and `Site` entries, which become numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.compiler.abi import ITERATIONS
from funcgrad.compiler.nest.layout import Value
from funcgrad.compiler.nest.nodes import Node, Site
from funcgrad.compiler.nest.split import PARTS_PER_THREAD, part_ranges
from funcgrad.dtypes import BOOL, short_name
from funcgrad.records import dataclass

LOOK = "look(slots)"
"""What a kernel with long loops asks: whether to stop."""

BLOCK = 512
"""Length of the blocks in which sums are formed."""


@dataclass(frozen=True)
class Place:
    """Two words: the slot and the byte offset of an element of a value."""

    value: Value
    offset: int


@dataclass
class Kernel:
    """Source and arguments of one step.

    Attributes:
        source: Text of ``def kernel(slots, args)``.
        words: Its arguments, after begin and end.
        length: Iterations of the outermost loop.
        scratch: Values that it needs memory for while it runs.
        is_parallel: Whether parts of the outermost loop may run at the same time, if each has its
            own scratch memory.
        work: Elements that it reads and writes; an elementary function counts as several.
        nodes: What it computes.
        per_thread: How many parts there are for each thread.
        parts: Ranges of the outermost loop that are run, possibly at the same time.
    """

    source: str
    words: list[int | Place | Site] = field(default_factory=list)
    length: int = 1
    scratch: list[Value] = field(default_factory=list)
    is_parallel: bool = False
    work: int = 0
    nodes: Sequence[Node] = ()
    per_thread: int = PARTS_PER_THREAD
    parts: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = [(0, self.length)]

    def split(self, n_threads: int) -> None:
        """Form parts for several threads, if it is large enough."""
        if not self.is_parallel:
            return
        looks_itself = LOOK in self.source
        self.parts = part_ranges(
            self.length, self.work, n_threads, self.per_thread, is_bounded=not looks_itself
        )
        for value in self.scratch:
            value.shape = (len(self.parts), *value.shape)


class Source:
    """Lines of a kernel under construction, and its words.

    Args:
        has_span: Whether it names the range of its outermost loop first of all.
    """

    def __init__(self, has_span: bool = False) -> None:
        self.lines: list[str] = []
        self.words: list[int | Place | Site] = []
        self.n_words = 2
        self.depth = 1
        self._literals: dict[Any, str] = {}
        if has_span:
            self.add("begin = args[0]")
            self.add("end = args[1]")

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def iterations(self, counter: str, length: int) -> Iterator[None]:
        """A loop of so many iterations, which stops where the program has to."""
        total, first = f"{counter}_n", f"{counter}_0"
        self.add(f"{total} = {self.word(length)}")
        with self.block(f"for {first} in range(0, {total}, {ITERATIONS}):"):
            with self.block(f"if {first} > 0:"):
                self._look(counter)
            last = f"minimum({first} + {ITERATIONS}, {total})"
            with self.block(f"for {counter} in range({first}, {last}):"):
                yield

    @contextmanager
    def repeated(self, counter: str, holds: str) -> Iterator[None]:
        """A loop for as long as a variable holds, likewise."""
        self.add(f"{counter} = i64(0)")
        with self.block(f"while {holds}:"):
            self.add(f"{counter} = {counter} + 1")
            with self.block(f"if ({counter} & {ITERATIONS - 1}) == 0:"):
                self._look(counter)
            yield

    def _look(self, counter: str) -> None:
        self.add(f"{counter}_s = {LOOK}")
        with self.block(f"if {counter}_s != 0:"):
            self.add(f"return {counter}_s")

    def word(self, value: int | Site) -> str:
        """A word, as the expression that reads it."""
        self.words.append(value)
        self.n_words += 1
        return f"args[{self.n_words - 1}]"

    def pointer(self, name: str, value: Value, offset: int) -> None:
        """A pointer to an element of a value."""
        self.words.append(Place(value, offset * value.dtype.itemsize))
        k = self.n_words
        self.n_words += 2
        self.add(f"{name} = ptr_{word_of(value.dtype)}(slots[args[{k}]] + args[{k + 1}])")

    def literal(self, scalar: Any) -> str:
        """A variable that holds a scalar."""
        key = (scalar.dtype.char, scalar.tobytes())
        if key not in self._literals:
            name = f"c{len(self._literals)}"
            self._literals[key] = name
            self.add(f"{name} = {self._reads(scalar)}")
        return self._literals[key]

    def _reads(self, scalar: Any) -> str:
        dtype = scalar.dtype
        if dtype.kind == "c":
            parts = ", ".join(self._reads(part) for part in (scalar.real, scalar.imag))
            return f"{word_of(dtype)}({parts})"
        if dtype.kind == "f":
            bits = np.asarray(scalar).view(f"i{dtype.itemsize}")
            word = self.word(int(bits))
            return (
                f"bitcast_i64_f64({word})"
                if dtype.itemsize == 8
                else f"bitcast_i32_f32(i32({word}))"
            )
        word = self.word(int(np.asarray(scalar).astype(np.int64)))
        return f"{word} != 0" if dtype.kind == "b" else f"{word_of(dtype)}({word})"

    def text(self) -> str:
        lines = ["def kernel(slots, args):"]
        for line, following in itertools.pairwise([*self.lines, "    return 0"]):
            lines.append(line)
            if line.endswith(":") and _indent(following) <= _indent(line):
                lines.append(" " * (_indent(line) + 4) + "pass")
        return "\n".join([*lines, "    return 0", ""])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def word_of(dtype: np.dtype[Any]) -> str:
    """What kernels call a dtype."""
    return "b1" if dtype == BOOL else short_name(dtype)


def neutral(init: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a fold as a scalar."""
    if init in ("{lowest}", "{highest}"):
        sign = -1 if init == "{lowest}" else 1
        if dtype.kind == "f":
            return dtype.type(sign * np.inf)
        if dtype.kind == "b":
            return np.bool_(sign > 0)
        info = np.iinfo(dtype)
        return dtype.type(info.min if sign < 0 else info.max)
    return dtype.type({"0": 0, "1": 1, "True": True, "False": False}[init])


def written(template: str, names: Sequence[str], dtypes: Iterable[Any], out: Any) -> str:
    """A node's expression over variables, as a value of dtype ``out``."""
    text = template.format(*names)
    cast = f"{word_of(out)}({{}})"
    if all(d == out for d in dtypes) or out.kind == "b" or template == cast.format("{0}"):
        return text
    return cast.format(text)
