"""Loop-invariant code motion on the source of a kernel.

``hoist : kernel -> kernel``. What does not vary in a loop is computed once, before it: statements
whose operands the loop does not assign, and what does not vary inside of statements that do.

This is not left to LLVM, for two reasons. A formula may hold a branch (libm for rare arguments),
and LLVM moves no branches. And LLVM's loop vectoriser asks of every instruction in a loop whether
it is uniform, by following its operands along every path: in a chain of formulas on an invariant
number, whose instructions use each other more than once, there are exponentially many. It must not
get to see one.

What is moved can be computed at any time: words without side effects neither trap nor read memory.
A loop that does not run at all has then computed a few numbers in vain.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator


def hoist(function: ast.FunctionDef, is_pure: Callable[[str], bool]) -> None:
    """Move what does not vary out of the loops of a kernel, in place.

    Args:
        function: The definition of the kernel.
        is_pure: Whether the word of a name neither reads nor writes memory.
    """
    _Hoister(function, is_pure).treat(function.body)


class _Hoister:
    def __init__(self, function: ast.FunctionDef, is_pure: Callable[[str], bool]) -> None:
        self.is_pure = is_pure
        self.assignments = Counter(_assigned(function.body))
        self.n_moved = 0

    def treat(self, body: list[ast.stmt]) -> None:
        """Hoist out of all loops among some statements, inner ones first."""
        treated: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, ast.If):
                self.treat(statement.body)
                self.treat(statement.orelse)
            elif isinstance(statement, ast.For | ast.While):
                self.treat(statement.body)
                treated += _Loop(self, statement).moved
            treated.append(statement)
        body[:] = treated

    def new_name(self) -> str:
        self.n_moved += 1
        return f"h{self.n_moved}"


class _Loop(ast.NodeTransformer):
    """Takes what does not vary out of one loop, whose inner loops are treated already."""

    def __init__(self, hoister: _Hoister, loop: ast.For | ast.While) -> None:
        self.hoister = hoister
        self.moved: list[ast.stmt] = []
        self.varying = set(_assigned([loop]))
        self.known: dict[ast.expr, bool] = {}
        loop.body[:] = self._kept(loop.body)

    def _kept(self, body: list[ast.stmt]) -> list[ast.stmt]:
        kept = [statement for statement in body if not self._moves(statement)]
        return kept or [ast.copy_location(ast.Pass(), body[0])]

    def _moves(self, statement: ast.stmt) -> bool:
        """Move a statement, or what does not vary in it."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if self.hoister.assignments[name] == 1 and self._is_invariant(value):
                    self.varying.discard(name)
                    self.moved.append(statement)
                    return True
                statement.value = self.visit(value)
            case ast.Expr():
                statement.value = self.visit(statement.value)
            case ast.If():
                statement.test = self.visit(statement.test)
                statement.body[:] = self._kept(statement.body)
                if statement.orelse:
                    statement.orelse[:] = self._kept(statement.orelse)
        return False

    def _named(self, node: ast.expr) -> ast.expr:
        """Give a value that does not vary a name of its own."""
        if not self._is_invariant(node) or not _is_computed(node):
            self.generic_visit(node)
            return node
        name = self.hoister.new_name()
        target = ast.copy_location(ast.Name(name, ast.Store()), node)
        self.moved.append(ast.copy_location(ast.Assign([target], node), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    visit_Call = visit_Compare = visit_BinOp = visit_UnaryOp = _named

    def _is_invariant(self, value: ast.expr) -> bool:
        """Asked of an expression, and then of its parts: one answer for each."""
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = self._is_invariant_here(value) and all(
                map(self._is_invariant, _operands(value))
            )
        return found

    def _is_invariant_here(self, value: ast.expr) -> bool:
        match value:
            case ast.Call(func=ast.Name(id=name)):
                return self.hoister.is_pure(name)
            case ast.Name(id=name):
                return name not in self.varying
            case ast.Subscript(value=ast.Name(id="slots")):
                return False
        return True


def _operands(value: ast.expr) -> list[ast.expr]:
    match value:
        case ast.Name() | ast.Constant():
            return []
        case ast.Call(args=args):
            return args
        case ast.BinOp(left=left, right=right):
            return [left, right]
    return [part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr)]


def _is_computed(value: ast.expr) -> bool:
    """Whether a value is more than a number that is written down."""
    return isinstance(value, ast.Name | ast.Call) or any(map(_is_computed, _operands(value)))


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements assign, once for each assignment."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.For(target=ast.Name(id=name), body=inner):
                yield name
                yield from _assigned(inner)
            case ast.While(body=inner):
                yield from _assigned(inner)
            case ast.If(body=inner, orelse=others):
                yield from _assigned(inner)
                yield from _assigned(others)
