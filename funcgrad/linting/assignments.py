"""Variables, attributes and entries that a function reads and its file assigns later.

``later : CodeType -> [(what, line that reads, line that assigns)]``

Names are globals and variables of functions around it, attributes, and entries of dicts and arrays.
Assignments count in other functions, and behind the function in the block that defines it, since
what runs before its definition is not later. The text alone is read: nothing is run.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from funcgrad.base.records import dataclass

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True)
class Change:
    """Something that a function reads, and that changes later.

    Attributes:
        what: As it is written, such as ``self.rate``.
        line: The line that reads it.
        assigned: The line that assigns it.
        function: The function that does, or ``None`` for the block around.
    """

    what: str
    line: int
    assigned: int
    function: str | None


def later(code: CodeType) -> Iterator[Change]:
    """Yield variables that a function reads and that are assigned elsewhere, once a name."""
    module = _module(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    node = None if module is None else module.function(code)
    if module is None or node is None:
        return
    seen: set[str] = set()
    for read in module.reads(node):
        what = ast.unparse(read)
        writer = None if what in seen else module.writer(read, node)
        if writer is not None:
            seen.add(what)
            scope = module.scope(writer)
            name = None if scope in module.around(node) else getattr(scope, "name", "<lambda>")
            yield Change(what, read.lineno, writer.lineno, name)


Place = ast.Name | ast.Attribute | ast.Subscript
"""Expressions that can be read and assigned."""


class _Module:
    """Syntax tree of a file with the parents of its nodes, its functions and its assignments."""

    def __init__(self, tree: ast.Module) -> None:
        self.parents = {kid: node for node in ast.walk(tree) for kid in ast.iter_child_nodes(node)}
        self.functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
        self.stores: list[Place] = [
            node
            for node in ast.walk(tree)
            if isinstance(node, Place) and isinstance(node.ctx, ast.Store)
        ]

    def function(self, code: CodeType) -> ast.AST | None:
        """Function that a code object belongs to."""
        for node in self.functions:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
                return node
        return None

    def around(self, node: ast.AST) -> list[ast.AST]:
        """The nodes around a node, from the inside outwards."""
        found = []
        while (outer := self.parents.get(node)) is not None:
            found.append(outer)
            node = outer
        return found

    def scope(self, node: ast.AST) -> ast.AST:
        """The function or the module that a node runs in."""
        return next(x for x in self.around(node) if isinstance(x, (*FUNCTIONS, ast.Module)))

    def owner(self, name: str, scope: ast.AST) -> ast.AST:
        """The function or the module whose variable a name is, where it is read or assigned."""
        rest = [scope, *(x for x in self.around(scope) if isinstance(x, (*FUNCTIONS, ast.Module)))]
        for place in rest:
            said = _declared(place, name)
            if said == "global":
                break
            if said is None and not isinstance(place, ast.Module) and self._binds(place, name):
                return place
        return rest[-1]

    def _binds(self, function: ast.AST, name: str) -> bool:
        arguments = getattr(function, "args", None)
        if arguments is not None and any(
            isinstance(x, ast.arg) and x.arg == name for x in ast.walk(arguments)
        ):
            return True
        return any(
            isinstance(x, ast.Name) and x.id == name and self.scope(x) is function
            for x in self.stores
        )

    def reads(self, node: ast.AST) -> Iterator[Place]:
        """Reads of variables that are not the function's own."""
        for read in ast.walk(node):
            if not isinstance(read, Place) or not isinstance(read.ctx, ast.Load):
                continue
            root = _root(read)
            if root is None:
                continue
            owner = self.owner(root.id, self.scope(read))
            is_inner = owner is node or node in self.around(owner)
            if not is_inner or (_is_self(root, node) and not isinstance(read, ast.Name)):
                yield read

    def writer(self, read: Place, function: ast.AST) -> Place | None:
        """An assignment to the same, which runs after the function was defined."""
        root = _root(read)
        assert root is not None
        text = ast.unparse(read)
        for store in self.stores:
            if type(store) is not type(read) or ast.unparse(store) != text:
                continue
            other = _root(store)
            assert other is not None
            scope = self.scope(store)
            if function in (scope, *self.around(store)):
                continue
            if _is_self(root, function):
                is_same = self._is_method_of_same(scope, function)
            else:
                is_same = self.owner(root.id, self.scope(read)) is self.owner(other.id, scope)
            if is_same and self._runs_later(store, scope, function):
                return store
        return None

    def _is_method_of_same(self, method: ast.AST, function: ast.AST) -> bool:
        """Whether a method other than the first one is of the class of a method, or derived."""
        ours, theirs = self.parents.get(function), self.parents.get(method)
        if not isinstance(ours, ast.ClassDef) or not isinstance(theirs, ast.ClassDef):
            return False
        bases = {ast.unparse(base) for base in theirs.bases} | {theirs.name}
        is_related = ours.name in bases or theirs.name in map(ast.unparse, ours.bases)
        return is_related and getattr(method, "name", "") not in ("__init__", "__post_init__")

    def _runs_later(self, store: ast.AST, scope: ast.AST, function: ast.AST) -> bool:
        """Whether it is in another function, or behind the definition and not in its loop."""
        around = self.around(function)
        if scope not in around:
            return True
        loop = next((x for x in self.around(store) if isinstance(x, LOOPS)), None)
        is_behind = store.lineno > (getattr(function, "end_lineno", None) or 0)  # type: ignore[attr-defined]
        return is_behind and loop not in around


def _root(node: ast.AST) -> ast.Name | None:
    """The name at the beginning of ``a.b["c"]``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _is_self(root: ast.Name, function: ast.AST) -> bool:
    return root.id == "self" and any(x.arg == "self" for x in function.args.args)  # type: ignore[attr-defined]


def _declared(scope: ast.AST, name: str) -> str | None:
    """``"global"`` or ``"nonlocal"``, if a function says so of a name."""
    body = getattr(scope, "body", None)
    for node in body if isinstance(body, list) else ():
        if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
            return "global" if isinstance(node, ast.Global) else "nonlocal"
    return None


@lru_cache(maxsize=16)
def _module(file: str, text: str) -> _Module | None:
    try:
        return _Module(ast.parse(text, file))
    except SyntaxError:
        return None
