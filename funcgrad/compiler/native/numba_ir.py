"""Kernel source to Numba's intermediate representation: basic blocks of assignments.

``write : source -> Written``. Numba would read the bytecode that Python
compiles the source to, and recover loops and variables from jumps and stack slots. Kernels are
written in a few statements, whose blocks the syntax tree gives directly: assignment,
``if``, ``while``, ``for ... in range(a, b, literal step)``, ``break``, ``return`` and calls of
words. Anything else is refused. Of a loop over ``seldom(a, b)`` few iterations run.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from funcgrad.compiler.native.hoist import hoist
from funcgrad.compiler.native.numba_parts import UnsupportedError, ir
from funcgrad.intrinsics import OPERATORS


class Word(Protocol):
    """What is asked here of a word that kernels may call."""

    is_pure: bool
    """Whether it neither reads nor writes memory."""


def _kernel(slots: Any, args: Any) -> int:
    """Stands for every kernel where Numba wants to know the Python function."""
    raise NotImplementedError


class _Identity:
    """What Numba wants to know about that."""

    func = staticmethod(_kernel)
    func_name = func_qualname = unique_name = "kernel"
    unique_id = 0
    is_generator = False


class Written(NamedTuple):
    """A kernel as basic blocks.

    Attributes:
        function: The blocks.
        in_memory: The variables that are more than one value.
        is_in_vectors: Whether every innermost loop computes vectors.
    """

    function: ir.FunctionIR
    in_memory: set[str]
    is_in_vectors: bool


def write(source: str, words: Mapping[str, Word]) -> Written:
    """The blocks of a kernel, with what does not vary in its loops moved out of them.

    All variables but the second result are assigned once, and before every use: they are values.

    Args:
        source: Text of ``def kernel(slots, args): ...``.
        words: What the kernel may call, by name.

    Raises:
        UnsupportedError: The source has a statement that kernels do not have.
    """
    [function] = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    hoist(function, lambda name: name in words and words[name].is_pure)
    return Writer(words).write(function)


class Seldom(ir.Branch):
    """What repeats a loop of which few iterations run."""


_VECTORS = {"lanes", "first_lanes"}


class Writer:
    """Appends statements to the current block and opens new blocks where control flow needs them.

    Labels grow along the source, so that type inference meets definitions before uses.
    """

    def __init__(self, words: Mapping[str, Word]) -> None:
        self.words = words
        self.loc = ir.Loc("<kernel>", 1)
        self.scope = ir.Scope(None, self.loc)
        self.blocks: dict[int, ir.Block] = {}
        self.called: dict[str, ir.Var] = {}
        self.temporaries = 0
        # The suites of statements around the current one; the suite of every first assignment.
        self.suites = [0]
        self.n_suites = 1
        self.homes: dict[str, int] = {}
        self.in_memory: set[str] = set()
        # For every enclosing loop: branches that await the label after it, and the counts of loops
        # and of uses of vectors before its body.
        self.loops: list[tuple[list[ir.Jump], tuple[int, int]]] = []
        self.n_loops = self.n_vectors = 0
        self.is_in_vectors = True

    def write(self, function: ast.FunctionDef) -> Written:
        names = tuple(argument.arg for argument in function.args.args)
        self.open_block()
        for index, name in enumerate(names):
            self.assign(name, ir.Arg(name, index, self.loc))
        self.statements(function.body)
        if not self.is_closed():
            self.give_back(ast.Constant(0))
        written = ir.FunctionIR(
            self.blocks, False, _Identity, self.loc, defaultdict(list), len(names), names
        )
        return Written(written, self.in_memory, self.is_in_vectors)

    # Blocks and values.
    def open_block(self) -> int:
        label = len(self.blocks)
        self.block = self.blocks[label] = ir.Block(self.scope, self.loc)
        return label

    def is_closed(self) -> bool:
        body = self.block.body
        return bool(body) and body[-1].is_terminator

    def jump(self, label: int = -1) -> ir.Jump:
        """Leave the current block, for a block whose label may be filled in later."""
        jump = ir.Jump(label, self.loc)
        if not self.is_closed():
            self.block.append(jump)
        return jump

    def branch(self, condition: ir.Var, kind: type[ir.Branch] = ir.Branch) -> ir.Branch:
        branch = kind(condition, -1, -1, self.loc)
        self.block.append(branch)
        return branch

    def variable(self, name: str) -> ir.Var:
        """A variable that is used: in memory unless its assignment comes before in every case."""
        if self.homes.get(name) not in self.suites:
            self.in_memory.add(name)
        return self.scope.get_or_define(name, self.loc)

    def assign(self, name: str, value: Any) -> ir.Var:
        if name in self.homes:
            self.in_memory.add(name)
        self.homes[name] = self.suites[-1]
        target = self.scope.get_or_define(name, self.loc)
        self.block.append(ir.Assign(value, target, self.loc))
        return target

    def new_name(self) -> str:
        self.temporaries += 1
        return f"${self.temporaries}"

    def temporary(self, value: Any) -> ir.Var:
        return self.assign(self.new_name(), value)

    def constant(self, number: Any) -> ir.Var:
        return self.temporary(ir.Const(number, self.loc))

    def call(self, name: str, args: list[ir.Var]) -> ir.Expr:
        self.n_vectors += name in _VECTORS
        function = self.called.get(name)
        if function is None:
            if name not in self.words:
                raise UnsupportedError(f"{name!r} is not a word of kernels", self.loc)
            function = self.scope.get_or_define(f"${name}", self.loc)
            known = ir.Assign(ir.Global(name, self.words[name], self.loc), function, self.loc)
            self.blocks[0].prepend(known)
            self.called[name] = function
        return ir.Expr.call(function, args, (), self.loc)

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
            self.loc = ir.Loc("<kernel>", node.lineno)
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                raise UnsupportedError(f"kernels have no {type(node).__name__}", self.loc)
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
        value = self.temporary(ir.Expr.cast(self.value(node), self.loc))
        self.block.append(ir.Return(value, self.loc))

    def do_If(self, node: ast.If) -> None:
        branch = self.branch(self.value(node.test))
        branch.truebr = self.open_block()
        self.suite(node.body)
        leave = [self.jump()]
        branch.falsebr = self.open_block()
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
        branch.truebr = self.open_block()
        self.open_loop()
        self.suite(node.body)
        self.jump(header)
        branch.falsebr = self.close_loop()

    def do_For(self, node: ast.For) -> None:
        # The test is repeated at the end of the body: the form that LLVM's loop passes want.
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        start, stop, step, is_seldom = self.range_of(node.iter)
        index = self.assign(name, self.call("i64", [start]))
        before = self.branch(self.compare(index, step, stop))
        body = before.truebr = self.open_block()
        self.open_loop(is_seldom)
        self.suite(node.body)
        self.jump(len(self.blocks))
        self.open_block()
        self.assign(name, self.call("step_index", [index, self.constant(step)]))
        kind = Seldom if is_seldom else ir.Branch
        again = self.branch(self.compare(index, step, stop), kind)
        again.truebr = body
        before.falsebr = again.falsebr = self.close_loop()

    def range_of(self, node: ast.expr) -> tuple[ir.Var, ir.Var, int, bool]:
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        assert node.func.id in ("range", "seldom")
        arguments = node.args
        start = self.constant(0) if len(arguments) == 1 else self.value(arguments[0])
        end = self.value(arguments[min(1, len(arguments) - 1)])
        step = ast.literal_eval(arguments[2]) if len(arguments) == 3 else 1
        # The end is fixed before the loop, as Python's is.
        stop = self.temporary(self.call("i64", [end]))
        return start, stop, step, node.func.id == "seldom"

    def compare(self, index: ir.Var, step: int, stop: ir.Var) -> ir.Var:
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
    def value(self, node: ast.expr) -> ir.Var:
        """A variable that holds the value of an expression."""
        value = self.expression(node)
        return value if isinstance(value, ir.Var) else self.temporary(value)

    def expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                return self.variable(name)
            case ast.Constant(value=number):
                return ir.Const(number, self.loc)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return self.call(OPERATORS[type(op)], [self.value(left), self.value(right)])
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return ir.Const(-number, self.loc)
            case ast.UnaryOp(op=op, operand=operand):
                return self.call(OPERATORS[type(op)], [self.value(operand)])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.call(OPERATORS[type(op)], [self.value(left), self.value(right)])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, [self.value(argument) for argument in args])
            case ast.Subscript(value=words, slice=index):
                return self.call("read_word", [self.value(words), self.value(index)])
        raise UnsupportedError(f"kernels have no {ast.unparse(node)!r}", self.loc)
