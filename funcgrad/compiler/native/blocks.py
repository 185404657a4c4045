"""Kernel source to basic blocks of assignments.

``write : source -> Written``. Kernels are written in a few statements of Python, whose blocks the
syntax tree gives directly: assignment, ``if``, ``while``, ``for ... in range(a, b, literal step)``,
``break``, ``return`` and calls of words. Anything else is refused. Of a loop over ``seldom(a, b)``
few iterations run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from funcgrad.compiler.native.hoist import hoist
from funcgrad.intrinsics import OPERATORS


class UnsupportedError(Exception):
    """The source of a kernel has a statement or an expression that kernels do not have."""


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
        values: What the expressions of its source became.
    """

    blocks: list[Block]
    in_memory: set[str]
    is_in_vectors: bool
    values: dict[ast.expr, Value]


def write(source: str, words: Mapping[str, Word]) -> Written:
    """The blocks of a kernel, with what does not vary in its loops moved out of them.

    All variables but the second result are assigned once, and before every use: they are values.

    Args:
        source: Text of ``def kernel(slots, args): ...``.
        words: What the kernel may call, by name.

    Raises:
        UnsupportedError: The source has a statement that kernels do not have.
    """
    return Writer(words).write(read(source, words))


def read(source: str, words: Mapping[str, Word]) -> ast.FunctionDef:
    """The definition of a kernel, with what does not vary in its loops moved out of them.

    Args:
        source: Text of ``def kernel(slots, args): ...``.
        words: What the kernel may call, by name.
    """
    [function] = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    hoist(function, lambda name: name in words and words[name].is_pure)
    return function


_VECTORS = {"lanes", "first_lanes"}


class Writer:
    """Appends statements to the current block and opens new blocks where control flow needs them.

    Labels grow along the source, so that typing meets definitions before uses.
    """

    def __init__(self, words: Mapping[str, Word]) -> None:
        self.words = words
        self.line = 1
        self.blocks: list[Block] = []
        self.values: dict[ast.expr, Value] = {}
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

    def write(self, function: ast.FunctionDef) -> Written:
        self.open_block()
        for index, argument in enumerate(function.args.args):
            self.assign(argument.arg, Argument(argument.arg, index))
        self.statements(function.body)
        if not self.is_closed():
            self.give_back(ast.Constant(0))
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
            raise self.refusal(f"{name!r} is not a word of kernels")
        return WordCall(self.words[name], tuple(operands))

    def refusal(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{what}, in line {self.line}")

    # Statements.
    def suite(self, body: list[ast.stmt]) -> None:
        """Statements that may be skipped or repeated."""
        self.suites.append(self.n_suites)
        self.n_suites += 1
        self.statements(body)
        self.suites.pop()

    def statements(self, body: list[ast.stmt]) -> None:
        for node in body:
            if self.is_closed():
                return  # never reached
            self.line = node.lineno
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                raise self.refusal(f"kernels have no {type(node).__name__}")
            method(node)

    def do_Assign(self, node: ast.Assign) -> None:
        [target] = node.targets
        if isinstance(target, ast.Name):
            self.assign(target.id, self.expression(node.value))
            return
        assert isinstance(target, ast.Subscript)
        parts = (target.value, target.slice, node.value)
        self.temporary(self.call("write_word", list(map(self.value, parts))))

    def do_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def do_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def do_Return(self, node: ast.Return) -> None:
        assert node.value is not None
        self.give_back(node.value)

    def give_back(self, node: ast.expr) -> None:
        self.block.append(Return(self.temporary(Result(self.value(node)))))

    def do_If(self, node: ast.If) -> None:
        branch = self.branch(self.value(node.test))
        branch.if_true = self.open_block()
        self.suite(node.body)
        leave = [self.jump()]
        branch.if_false = self.open_block()
        if node.orelse:
            self.suite(node.orelse)
            leave.append(self.jump())
            self.open_block()
        for jump in leave:
            jump.target = len(self.blocks) - 1

    def do_While(self, node: ast.While) -> None:
        self.jump(len(self.blocks))
        header = self.open_block()
        branch = self.branch(self.value(node.test))
        branch.if_true = self.open_block()
        self.open_loop()
        self.suite(node.body)
        self.jump(header)
        branch.if_false = self.close_loop()

    def do_For(self, node: ast.For) -> None:
        # The test is repeated at the end of the body: the form that LLVM's loop passes want.
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        start, stop, step, is_seldom = self.range_of(node.iter)
        index = self.assign(name, self.call("i64", [start]))
        before = self.branch(self.compare(index, step, stop))
        body = before.if_true = self.open_block()
        self.open_loop(is_seldom)
        self.suite(node.body)
        self.jump(len(self.blocks))
        self.open_block()
        self.assign(name, self.call("step_index", [index, self.temporary(Number(step))]))
        again = self.branch(self.compare(index, step, stop), is_seldom)
        again.if_true = body
        before.if_false = again.if_false = self.close_loop()

    def range_of(self, node: ast.expr) -> tuple[str, str, int, bool]:
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        assert node.func.id in ("range", "seldom")
        arguments = node.args
        start = self.temporary(Number(0)) if len(arguments) == 1 else self.value(arguments[0])
        end = self.value(arguments[min(1, len(arguments) - 1)])
        step = ast.literal_eval(arguments[2]) if len(arguments) == 3 else 1
        # The end is fixed before the loop, as Python's is.
        stop = self.temporary(self.call("i64", [end]))
        return start, stop, step, node.func.id == "seldom"

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

    def do_Break(self, node: ast.Break) -> None:
        self.loops[-1][0].append(self.jump())

    # Expressions.
    def value(self, node: ast.expr) -> str:
        """The name of a variable that holds the value of an expression."""
        value = self.expression(node)
        return value.name if isinstance(value, Variable) else self.temporary(value)

    def expression(self, node: ast.expr) -> Value:
        found = self.values[node] = self._expression(node)
        return found

    def _expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                return Variable(self.variable(name))
            case ast.Constant(value=number):
                return Number(number)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return self.call(OPERATORS[type(op)], [self.value(left), self.value(right)])
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return Number(-number)
            case ast.UnaryOp(op=op, operand=operand):
                return self.call(OPERATORS[type(op)], [self.value(operand)])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.call(OPERATORS[type(op)], [self.value(left), self.value(right)])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, [self.value(argument) for argument in args])
            case ast.Subscript(value=words, slice=index):
                return self.call("read_word", [self.value(words), self.value(index)])
        raise self.refusal(f"kernels have no {ast.unparse(node)!r}")
