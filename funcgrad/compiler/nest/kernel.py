"""Kernels under construction: functions of the loop language, and the words they are called with.

``words`` may hold `Place` entries, which become a slot and a byte offset once memory is planned,
and `Site` entries, which become numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from funcgrad.base.records import dataclass
from funcgrad.compiler.abi import ITERATIONS
from funcgrad.compiler.loops.builder import FunctionBuilder, read_word
from funcgrad.compiler.loops.language import (
    SLOTS,
    WORDS,
    Assign,
    Expression,
    Function,
    Variable,
    applied,
    call,
    equal,
)
from funcgrad.compiler.machine import PARTS_PER_THREAD
from funcgrad.compiler.nest.layout import Shape, Value
from funcgrad.compiler.nest.nodes import Node, Site
from funcgrad.compiler.nest.split import part_ranges
from funcgrad.dtypes import BOOL, short_name

SHORT_LOOP = int(np.iinfo(np.int32).max) // 4
"""Iterations that 32 bits count, with room for small distances between them."""


@dataclass(frozen=True)
class Place:
    """Two words: the slot and the byte offset of an element of a value."""

    value: Value
    offset: int


class Length(int):
    """A word that holds the length of an axis: where functions are joined, equal ones share it.

    So LLVM sees that a place that one of them has found is that of another one, which asks again.
    """


class Bits(int):
    """A word that holds a scalar of the program, and is no size or distance."""


class Whole(Bits):
    """An integer of the program."""


@dataclass
class Kernel:
    """Function and arguments of one step.

    Attributes:
        function: What it does.
        words: Its arguments, after begin and end.
        length: Iterations of the outermost loop.
        scratch: Values that it needs memory for while it runs.
        is_parallel: Whether parts of the outermost loop may run at the same time, if each has its
            own scratch memory.
        work: Elements that it reads and writes; an elementary function counts as several.
        nodes: What it computes.
        lanes: The axis whose indices its outermost loop runs over, with those of others within
            each: the first one, 0, or the last one, -1; and how many these are.
        per_thread: How many parts there are for each thread.
        looks: Whether it asks, in its loops, whether to stop.
        joined: The kernels that were put together in it, by what the names of each begin with.
        parts: Ranges of the outermost loop that are run, possibly at the same time.
    """

    function: Function
    words: list[int | Place | Site] = field(default_factory=list)
    length: int = 1
    scratch: list[Value] = field(default_factory=list)
    is_parallel: bool = False
    work: int = 0
    nodes: Sequence[Node] = ()
    lanes: tuple[int, int] = (0, 0)
    per_thread: int = PARTS_PER_THREAD
    looks: bool = False
    joined: dict[str, Kernel] = field(default_factory=dict)
    parts: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = [(0, self.length)]

    @property
    def text(self) -> str:
        """Its function as text, which is its name in memory."""
        return self.function.text

    @property
    def places(self) -> dict[int, Place]:
        """The places among its words, by the numbers of the first of their two words."""
        return {number: word for number, word in self.numbered() if isinstance(word, Place)}

    def numbered(self) -> Iterator[tuple[int, int | Place | Site]]:
        """Its words behind the range, with their numbers."""
        number = 2
        for word in self.words:
            yield number, word
            number += 2 if isinstance(word, Place) else 1

    def split(self, n_threads: int) -> None:
        """Form parts for several threads, if it is large enough."""
        if not self.is_parallel:
            return
        self.parts = part_ranges(
            self.length, self.work, n_threads, self.per_thread, is_bounded=not self.looks
        )
        for value in self.scratch:
            value.shape = (len(self.parts), *value.shape)


class KernelBuilder(FunctionBuilder):
    """The function of a kernel under construction, and its words."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[int | Place | Site] = []
        self.n_words = 2
        self.looks = False
        self.joined: dict[str, Kernel] = {}
        self._literals: dict[Any, Assign] = {}

    @property
    def function(self) -> Function:
        """The function, with scalars read first of all, where every block sees them."""
        return Function([*self._literals.values(), *self.body])

    def kernel(self, length: int = 1, **more: Any) -> Kernel:
        """The kernel; the arguments are those of `Kernel`."""
        return Kernel(
            self.function, self.words, length, looks=self.looks, joined=self.joined, **more
        )

    @contextmanager
    def iterations(
        self, counter: str, length: int, is_cold: bool = False, is_short: bool = False
    ) -> Iterator[Variable]:
        """A loop of so many iterations, which stops where the program has to.

        LLVM is told where there are so few that 32 bits count them.
        """
        n = self.word(length)
        total = self.assign(f"{counter}_n", call("minimum", n, SHORT_LOOP) if is_short else n)
        with self.blocks(f"{counter}_0", 0, total, ITERATIONS) as (first, last):
            with self.when(first > 0):
                self._look(counter)
            with self.loop(counter, first, last, is_cold=is_cold) as index:
                yield index

    @contextmanager
    def repeated(self, counter: str, holds: Variable) -> Iterator[Variable]:
        """A loop for as long as a variable holds, likewise."""
        self.assign(counter, call("i64", 0))
        with self.repeated_on(counter, holds) as index:
            yield index

    @contextmanager
    def repeated_on(self, counter: str, holds: Variable) -> Iterator[Variable]:
        """The same with a counter that has begun: loops in a loop stop after as many in all."""
        index = Variable(counter)
        with self.repeat(holds):
            self.assign(counter, index + 1)
            with self.when(equal(index & (ITERATIONS - 1), 0)):
                self._look(counter)
            yield index

    def _look(self, counter: str) -> None:
        """Ask whether to stop."""
        self.looks = True
        answer = self.assign(f"{counter}_s", call("look", SLOTS))
        with self.when(call("not_equal", answer, 0)):
            self.give_back(answer)

    # Words.

    def span(self) -> tuple[Expression, Expression]:
        """The range of the outermost loop."""
        return read_word(WORDS, 0), read_word(WORDS, 1)

    def word(self, value: int | Site) -> Expression:
        """A word, as the expression that reads it."""
        self.words.append(value)
        self.n_words += 1
        return read_word(WORDS, self.n_words - 1)

    def step(self, nbytes: int, size: int) -> Expression:
        """Bytes from one element of a size to the next, which is none of the neighbours.

        As a multiple of the size: of a number that it knows nothing of, LLVM asks whether it is 1,
        and makes vectors for that case alone.
        """
        word = self.word(nbytes)
        return word if size == 1 else word & -size

    def pointer(self, name: str, value: Value, offset: int) -> Variable:
        """A pointer to an element of a value."""
        self.words.append(Place(value, offset * value.dtype.itemsize))
        k = self.n_words
        self.n_words += 2
        address = read_word(SLOTS, read_word(WORDS, k)) + read_word(WORDS, k + 1)
        return self.assign(name, call(f"ptr_{word_of(value.dtype)}", address))

    def literal(self, scalar: Any) -> Variable:
        """A variable that holds a scalar."""
        key = (scalar.dtype.char, scalar.tobytes())
        if key not in self._literals:
            self._literals[key] = Assign(f"c{len(self._literals)}", self._read(scalar))
        return Variable(self._literals[key].name)

    def _read(self, scalar: Any) -> Expression:
        dtype = scalar.dtype
        if dtype.kind == "c":
            return call(word_of(dtype), self._read(scalar.real), self._read(scalar.imag))
        if dtype.kind == "f":
            word = self.word(Bits(int(np.asarray(scalar).view(f"i{dtype.itemsize}"))))
            if dtype.itemsize == 8:
                return call("bitcast_i64_f64", word)
            return call("bitcast_i32_f32", call("i32", word))
        word = self.word(Whole(int(np.asarray(scalar).astype(np.int64))))
        return call("not_equal", word, 0) if dtype.kind == "b" else call(word_of(dtype), word)


def word_of(dtype: np.dtype[Any]) -> str:
    """The word of a dtype in kernels."""
    return "b1" if dtype == BOOL else short_name(dtype)


def lanes_along(axis: int, shape: Shape) -> tuple[int, int]:
    """`Kernel.lanes` of a loop over an axis of a shape and those after it."""
    return (-1 if axis else 0, shape[axis]) if axis in (0, len(shape) - 1) else (0, 0)


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


def value_of(
    template: str, operands: Sequence[Expression], dtypes: Iterable[Any], out: Any
) -> Expression:
    """A node's expression over values, as one of dtype ``out``."""
    x = applied(template, operands)
    cast = word_of(out)
    is_cast = template == f"{cast}({{0}})"
    return x if all(d == out for d in dtypes) or out.kind == "b" or is_cast else call(cast, x)
