"""Builders of functions of the loop language.

`FunctionBuilder` opens and closes blocks. `ProgramBuilder` also names variables, for the programs
of `loops.library`: there, a value that is used again is a variable (`let`), and one that changes in
a loop is given another value (`change`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

from funcgrad.compiler.abi import SCRATCH_WORDS
from funcgrad.compiler.loops.jam import jam
from funcgrad.compiler.loops.language import (
    SLOTS,
    WORDS,
    Apply,
    Assign,
    Break,
    Evaluate,
    Expression,
    For,
    Function,
    If,
    NamedFunction,
    Return,
    Statement,
    Variable,
    While,
    call,
    equal,
    of,
)


class FunctionBuilder:
    """The statements of a function under construction.

    They go to the block that is open; `loop`, `when`, `otherwise` and `repeat` open others.
    """

    def __init__(self) -> None:
        self.body: list[Statement] = []

    def assign(self, name: str, value: Expression | float) -> Variable:
        """Give a variable a value."""
        self.body.append(Assign(name, of(value)))
        return Variable(name)

    def evaluate(self, value: Apply) -> None:
        """Compute a value for what it does to memory."""
        self.body.append(Evaluate(value))

    def store(
        self, pointer: Expression, index: Expression | float, value: Expression | float, scope: int
    ) -> None:
        """Write an element."""
        self.evaluate(call("store", pointer, index, value, scope))

    def leave(self) -> None:
        """Leave the innermost loop."""
        self.body.append(Break())

    def jam(self, count: int, carried: Iterable[str] = ()) -> None:
        """Compute several iterations at once of the loop that was made last (`jam`)."""
        loop = self.body.pop()
        assert isinstance(loop, For)
        self.body += jam(loop, count, carried)

    def give_back(self, value: Expression | float) -> None:
        """Leave the kernel."""
        self.body.append(Return(of(value)))

    @contextmanager
    def _inside(self, body: list[Statement]) -> Iterator[None]:
        outer, self.body = self.body, body
        yield
        self.body = outer

    @contextmanager
    def loop(
        self,
        index: str,
        start: Expression | float,
        stop: Expression | float,
        step: int = 1,
        is_cold: bool = False,
    ) -> Iterator[Variable]:
        """A loop over a range."""
        body: list[Statement] = []
        self.body.append(For(index, of(start), of(stop), step, body, is_cold))
        with self._inside(body):
            yield Variable(index)

    @contextmanager
    def blocks(
        self, name: str, start: Expression | float, stop: Expression | float, length: int
    ) -> Iterator[tuple[Expression, Expression]]:
        """A loop over the blocks of a range: where each begins and ends (strip-mining)."""
        with self.loop(name, start, stop, length) as first:
            yield first, self.assign(f"{name}_end", call("minimum", first + length, of(stop)))

    @contextmanager
    def repeat(self, test: Expression) -> Iterator[None]:
        """A loop for as long as a test holds."""
        body: list[Statement] = []
        self.body.append(While(test, body))
        with self._inside(body):
            yield

    @contextmanager
    def when(self, test: Expression) -> Iterator[None]:
        """Statements that run if a test holds."""
        body: list[Statement] = []
        self.body.append(If(test, body))
        with self._inside(body):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Statements that run if the test of the last `when` does not hold."""
        decided = self.body[-1]
        assert isinstance(decided, If)
        body: list[Statement] = []
        self.body[-1] = If(decided.test, decided.body, body)
        with self._inside(body):
            yield


class ProgramBuilder(FunctionBuilder):
    """The same, for programs that a person writes.

    Attributes:
        facts: What is said of its functions, as by attributes of `Function`.
    """

    facts: Mapping[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self._fresh = itertools.count()

    @classmethod
    @cache
    def named(cls, *facts: Any) -> NamedFunction:
        """The program for the arguments of its class, written when it is needed."""

        def write() -> Sequence[Statement]:
            program = cls(*facts)
            program.write()
            return program.body

        return NamedFunction(f"{cls.__name__} {facts}", write, **cls.facts)

    def write(self) -> None:
        """Append the statements of the step."""
        raise NotImplementedError

    def address(self, words: Mapping[str, Expression], x: str) -> Variable:
        """The address at which an array of the arguments begins."""
        return self.let(read_word(SLOTS, words[f"slot_{x}"]) + words[f"offset_{x}"])

    def let(self, value: Expression | float) -> Variable:
        """A variable that has a value."""
        return self.assign(f"v{next(self._fresh)}", value)

    def change(self, variable: Variable, value: Expression | float) -> None:
        """Give a variable another value."""
        self.assign(variable.name, value)

    def count(
        self, start: Expression | float, stop: Expression | float, step: int = 1
    ) -> AbstractContextManager[Variable]:
        """A loop over a range, with an index of its own."""
        return self.loop(f"i{next(self._fresh)}", start, stop, step)

    def by_number(
        self, value: Expression, cases: Mapping[int, Callable[[], None]], otherwise: int
    ) -> None:
        """Statements that belong to a number, which is one of some, or else the last one."""
        with ExitStack() as stack:
            for case in (case for case in cases if case != otherwise):
                with self.when(equal(value, case)):
                    cases[case]()
                stack.enter_context(self.otherwise())
            cases[otherwise]()

    def transposed(self, rows: Sequence[Expression]) -> list[Expression]:
        """Transpose as many vectors as each has lanes: blocks of 1, 2, 4, ... change places."""
        rows, block = list(rows), 1
        while block < len(rows):
            for i in (i for i in range(len(rows)) if not i & block):
                pair = rows[i], rows[i + block]
                rows[i], rows[i + block] = (
                    self.let(call(word, *pair, block)) for word in ("trade_low", "trade_high")
                )
            block *= 2
        return rows

    def given(self, names: Sequence[str]) -> dict[str, Expression]:
        """The first words of the arguments, by their names."""
        return self.words_of(WORDS, names)

    def words_of(self, table: Expression, names: Sequence[str]) -> dict[str, Expression]:
        """The first words of a table, by their names."""
        return {name: read_word(table, k) for k, name in enumerate(names)}

    def claimed(self, words: Mapping[str, Expression]) -> tuple[Expression, Variable]:
        """Take a lane of scratch memory: its address, and what `release` is given.

        Args: words: The arguments, with `abi.SCRATCH_WORDS`.
        """
        scratch, offset, nbytes = (words[name] for name in SCRATCH_WORDS)
        lane = self.let(call("claim", SLOTS))
        return self.let(read_word(SLOTS, scratch) + offset + lane * nbytes), lane

    def release(self, lane: Expression) -> None:
        """Give a lane back."""
        self.evaluate(call("release", SLOTS, lane))


class SystemProgram(ProgramBuilder):
    """Functions that are no kernels: they run others, and everything is a word of 64 bits.

    What they call has effects, so that its value is a variable at once.
    """

    facts: Mapping[str, Any] = {
        "parameters": {SLOTS.name: "i64", WORDS.name: "i64"},
        "is_brief": True,
    }

    @staticmethod
    def facts_of(*parameters: str, **inner: Function) -> Mapping[str, Any]:
        """Facts of functions with other parameters, and with functions that they know."""
        return {"parameters": dict.fromkeys(parameters, "i64"), "is_brief": True, "inner": inner}

    def word(self, table: Expression, k: Expression | int = 0) -> Variable:
        """A word of a table."""
        return self.let(read_word(table, k))

    def put_word(self, table: Expression, k: Expression | int, value: Expression | float) -> None:
        """Write a word of a table."""
        self.evaluate(call("write_word", table, k, value))

    def run(self, word: str, *operands: Expression | float) -> Variable:
        """Apply an operation with a side effect, and bind its value to a variable."""
        return self.let(call(word, *operands))

    def do(self, word: str, *operands: Expression | float) -> None:
        """Apply an operation for its side effect alone."""
        self.evaluate(call(word, *operands))

    def call(self, function: Expression, *operands: Expression | float) -> Variable:
        """Call a function by its address."""
        return self.run("call_address", function, *operands)

    def stop_if_failed(self, code: Expression) -> None:
        """Leave the function with an error code, if it is one."""
        with self.when(is_other(code, 0)):
            self.give_back(code)


def is_other(a: Expression, b: Expression | float) -> Expression:
    """Whether two values differ."""
    return call("not_equal", a, b)


def read_word(words: Expression, index: Expression | int) -> Expression:
    """A word of the slots or of the arguments."""
    return call("read_word", words, index)
