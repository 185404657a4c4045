"""Kernels to basic blocks of assignments.

``write : function -> Written``. The statements of the loop language give their blocks directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.common import name_common
from funcgrad.compiler.loops.hoist import hoist
from funcgrad.compiler.loops.language import END, SLOTS, WORDS, Body, Expression, Function
from funcgrad.compiler.loops.language import Statement as Node


class UnsupportedError(Exception):
    """A kernel applies something that is no word of kernels."""


class Word(Protocol):
    """What is asked here of a word that kernels may call."""

    is_pure: bool
    """Whether it neither reads nor writes memory."""


class Argument(NamedTuple):
    """The value of an argument of the kernel."""

    name: str
    position: int


class Variable(NamedTuple):
    """The value of a variable."""

    name: str


class Number(NamedTuple):
    """The value of a literal, or of a flag."""

    value: Any


class Result(NamedTuple):
    """The value of a variable as what the kernel returns."""

    name: str


class WordCall:
    """The value of a word at variables; every call is a value of its own.

    Attributes:
        word: The word.
        operands: Names of the variables.
    """

    __slots__ = ("operands", "word")

    def __init__(self, word: Any, operands: tuple[str, ...]) -> None:
        self.word = word
        self.operands = operands


Value = Argument | Variable | Number | Result | WordCall


class Assign(NamedTuple):
    """Give a variable a value."""

    name: str
    value: Value


class Jump:
    """Go on in another block, whose label may be filled in later."""

    __slots__ = ("target",)

    def __init__(self, target: int = -1) -> None:
        self.target = target


class Branch:
    """Go on in one of two blocks, whose labels are filled in later.

    Attributes:
        condition: Name of the variable that decides.
        if_true: Label of the block for true.
        if_false: Label of the block for false.
        is_seldom: Whether it repeats a loop of which few iterations run.
    """

    __slots__ = ("condition", "if_false", "if_true", "is_seldom")

    def __init__(self, condition: str, is_seldom: bool) -> None:
        self.condition = condition
        self.is_seldom = is_seldom
        self.if_true = self.if_false = -1


class Return(NamedTuple):
    """Leave the kernel with the value of a variable."""

    name: str


Statement = Assign | Jump | Branch | Return
Block = list[Statement]
"""Assignments, and one statement of another kind at the end."""


class Written(NamedTuple):
    """A kernel as basic blocks.

    Attributes:
        blocks: The blocks, by their labels; the first is entered first.
        in_memory: The variables that are more than one value.
        is_in_vectors: Whether every innermost loop computes vectors.
        values: What its expressions became.
    """

    blocks: list[Block]
    in_memory: set[str]
    is_in_vectors: bool
    values: dict[Expression, Value]


def write(function: Function, words: Mapping[str, Word]) -> Written:
    """The blocks of a kernel, once it is simplified.

    All variables but the second result are assigned once, and before every use: they are values.

    Args:
        function: The kernel.
        words: What the kernel may call, by name.

    Raises:
        UnsupportedError: The kernel applies something that is no word.
    """
    return Writer(words).write(simplified(function, words))


def simplified(function: Function, words: Mapping[str, Word]) -> Function:
    """A kernel that computes nothing twice, and nothing in a loop that does not vary in it.

    Args:
        function: The kernel.
        words: What the kernel may call, by name.
    """

    def is_pure(name: str) -> bool:
        return name in words and words[name].is_pure

    return hoist(name_common(function, is_pure), is_pure)


_VECTORS = {"lanes", "first_lanes"}


class Writer:
    """Appends statements to the current block and opens new blocks where control flow needs them.

    Labels grow along the source, so that typing meets definitions before uses.
    """

    def __init__(self, words: Mapping[str, Word]) -> None:
        self.words = words
        self.blocks: list[Block] = []
        self.values: dict[Expression, Value] = {}
        self.temporaries = 0
        # The suites of statements around the current one; the suite of every first assignment.
        self.suites = [0]
        self.n_suites = 1
        self.homes: dict[str, int] = {}
        self.in_memory: set[str] = set()
        # For every enclosing loop: branches that await the label after it, and the counts of loops
        # and of uses of vectors before its body.
        self.loops: list[tuple[list[Jump], tuple[int, int]]] = []
        self.n_loops = self.n_vectors = 0
        self.is_in_vectors = True

    def write(self, function: Function) -> Written:
        self.open_block()
        for index, argument in enumerate((SLOTS, WORDS)):
            self.assign(argument.name, Argument(argument.name, index))
        self.statements([*function.body, END])
        return Written(self.blocks, self.in_memory, self.is_in_vectors, self.values)

    # Blocks and values.
    def open_block(self) -> int:
        self.block: Block = []
        self.blocks.append(self.block)
        return len(self.blocks) - 1

    def is_closed(self) -> bool:
        return bool(self.block) and not isinstance(self.block[-1], Assign)

    def jump(self, label: int = -1) -> Jump:
        """Leave the current block, for a block whose label may be filled in later."""
        jump = Jump(label)
        if not self.is_closed():
            self.block.append(jump)
        return jump

    def branch(self, condition: str, is_seldom: bool = False) -> Branch:
        branch = Branch(condition, is_seldom)
        self.block.append(branch)
        return branch

    def variable(self, name: str) -> str:
        """A variable that is used: in memory unless its assignment comes before in every case."""
        if self.homes.get(name) not in self.suites:
            self.in_memory.add(name)
        return name

    def assign(self, name: str, value: Value) -> str:
        if name in self.homes:
            self.in_memory.add(name)
        self.homes[name] = self.suites[-1]
        self.block.append(Assign(name, value))
        return name

    def temporary(self, value: Value) -> str:
        self.temporaries += 1
        return self.assign(f"${self.temporaries}", value)

    def call(self, name: str, operands: list[str]) -> WordCall:
        self.n_vectors += name in _VECTORS
        if name not in self.words:
            raise UnsupportedError(f"{name!r} is not a word of kernels")
        return WordCall(self.words[name], tuple(operands))

    # Statements.
    def suite(self, body: Body) -> None:
        """Statements that may be skipped or repeated."""
        self.suites.append(self.n_suites)
        self.n_suites += 1
        self.statements(body)
        self.suites.pop()

    def statements(self, body: Body) -> None:
        for statement in body:
            if self.is_closed():
                return  # never reached
            self.treat(statement)

    def treat(self, statement: Node) -> None:
        match statement:
            case language.Assign(name, value):
                self.assign(name, self.expression(value))
            case language.Evaluate(value):
                self.value(value)
            case language.If():
                self.decide(statement)
            case language.While(test, body):
                self.jump(len(self.blocks))
                header = self.open_block()
                branch = self.branch(self.value(test))
                branch.if_true = self.open_block()
                self.open_loop()
                self.suite(body)
                self.jump(header)
                branch.if_false = self.close_loop()
            case language.For():
                self.count(statement)
            case language.Break():
                self.loops[-1][0].append(self.jump())
            case language.Return(value):
                self.block.append(Return(self.temporary(Result(self.value(value)))))

    def decide(self, statement: language.If) -> None:
        branch = self.branch(self.value(statement.test))
        branch.if_true = self.open_block()
        self.suite(statement.body)
        leave = [self.jump()]
        branch.if_false = self.open_block()
        if statement.otherwise:
            self.suite(statement.otherwise)
            leave.append(self.jump())
            self.open_block()
        for jump in leave:
            jump.target = len(self.blocks) - 1

    def count(self, loop: language.For) -> None:
        # The test is repeated at the end of the body: the form that LLVM's loop passes want.
        start = self.value(loop.start)
        # The end is fixed before the loop, as Python's is.
        stop = self.temporary(self.call("i64", [self.value(loop.stop)]))
        index = self.assign(loop.index, self.call("i64", [start]))
        before = self.branch(self.compare(index, loop.step, stop))
        body = before.if_true = self.open_block()
        self.open_loop(loop.is_seldom)
        self.suite(loop.body)
        self.jump(len(self.blocks))
        self.open_block()
        step = self.temporary(Number(loop.step))
        self.assign(index, self.call("step_index", [index, step]))
        again = self.branch(self.compare(index, loop.step, stop), loop.is_seldom)
        again.if_true = body
        before.if_false = again.if_false = self.close_loop()

    def compare(self, index: str, step: int, stop: str) -> str:
        return self.temporary(self.call("less" if step > 0 else "greater", [index, stop]))

    def open_loop(self, is_seldom: bool = False) -> None:
        """Begin the body of a loop."""
        self.n_loops += 1
        self.loops.append(([], (self.n_loops, -1 if is_seldom else self.n_vectors)))

    def close_loop(self) -> int:
        """Open the block after a loop; returns its label."""
        label = self.open_block()
        jumps, before = self.loops.pop()
        for jump in jumps:
            jump.target = label
        if before == (self.n_loops, self.n_vectors):
            self.is_in_vectors = False
        return label

    # Expressions.
    def value(self, x: Expression) -> str:
        """The name of a variable that holds the value of an expression."""
        value = self.expression(x)
        return value.name if isinstance(value, Variable) else self.temporary(value)

    def expression(self, x: Expression) -> Value:
        found = self.values[x] = self.value_of(x)
        return found

    def value_of(self, x: Expression) -> Value:
        match x:
            case language.Variable(name):
                return Variable(self.variable(name))
            case language.Number(value):
                return Number(value)
            case language.Apply(word, operands):
                return self.call(word, [self.value(operand) for operand in operands])
        raise UnsupportedError(f"{x} is no expression of a kernel")
