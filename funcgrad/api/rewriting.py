"""Python's branches and loops as calls: the source of a function, rewritten.

``rewritten : function -> function``

Every `if`, `while` and `for` becomes a call of `funcgrad.api.branching`, whose arms are functions
inside of the function:

    if test:            def then(): nonlocal y; y = 1.0
        y = 1.0         def otherwise(): nonlocal y; y = x
    else:               branch(test, then, otherwise, state)
        y = x

``state`` reads and writes the variables that the arms assign. ``break``, ``continue`` and
``return`` inside of loops become variables that say so. What follows an `if` one of whose arms
ends the function, or the step of a loop, moves into the arm that does not. New names hold a blank,
so they meet none of the user's; every other node keeps its place in the file. Nothing is decided
here: with values that are known, the calls do what the statements did.
"""

from __future__ import annotations
import __future__

import ast
import inspect
from collections.abc import Iterable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from funcgrad.errors import ArgumentError

_RUNTIME = "<control flow>"
"""The name by which rewritten code knows the module that it calls."""

_RETURNED, _RESULT = "<returned>", "<result>"
"""Variables that say whether a loop has ended the function, and with what."""

RESERVED = "<"
"""Begins the names of variables that are none of the user's."""

_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_GENERATORS = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_BLOCKS = ("body", "orelse", "finalbody")
_WRAPPED_BUILTINS = frozenset({"float", "int", "max", "min", "range"})


def rewritten(function: FunctionType, runtime: ModuleType) -> FunctionType:
    """A function of the same code, whose branches and loops are calls.

    Args:
        function: Made by ``def``.
        runtime: The module that is called.
    Raises: ArgumentError: If there is no source, or it holds what cannot be rewritten.
    """
    code = function.__code__
    node = _definition(function)
    owner = function.__qualname__.split(".")[-2:-1]
    _check(node, code)
    closed = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    arguments = node.args
    arguments.defaults = [_at(node, ast.Constant(None)) for _ in arguments.defaults]
    arguments.kw_defaults = [d and _at(node, ast.Constant(None)) for d in arguments.kw_defaults]
    node.decorator_list = []
    body = _Function(node, "".join(owner), frozenset(closed)).rewritten()
    body.name = "<function>"  # which hides no global, among them the function itself
    factory = _define(node, "<factory>", [body, ast.Return(_name(body.name))])
    factory.args.args = [ast.arg(name) for name in (*closed, _RUNTIME)]
    module = ast.Module([factory], [])
    ast.fix_missing_locations(module)
    flags = code.co_flags & _FUTURES
    compiled = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    (outer,) = (c for c in compiled.co_consts if isinstance(c, CodeType))
    (inner,) = (c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == body.name)
    closed[_RUNTIME] = CellType(runtime)
    inner = inner.replace(co_name=code.co_name, co_qualname=function.__qualname__)
    cells = tuple(closed[name] for name in inner.co_freevars)
    made = FunctionType(
        inner, function.__globals__, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def is_rewritable(function: FunctionType) -> bool:
    """Whether the source of a function is at hand, and nothing in it is in the way."""
    try:
        _check(_definition(function), function.__code__)
    except ArgumentError:
        return False
    return True


def _definition(function: FunctionType) -> ast.FunctionDef:
    """The definition of a function, with the lines of its file."""
    code = function.__code__
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        raise _refused(
            f"its source is not at hand ({code.co_filename})", code, "Define it in a file."
        ) from None
    is_indented = lines[0][:1].isspace()
    try:
        tree = ast.parse("".join(["if 1:\n", *lines] if is_indented else lines))
    except SyntaxError:  # of a lambda: part of a statement
        tree = ast.Module([], [])
    ast.increment_lineno(tree, first - 1 - is_indented)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            if isinstance(node, ast.AsyncFunctionDef):
                raise _refused("it is a coroutine", node_code(code, node.lineno))
            return node
    raise _refused("its source holds no `def` of that name", code, "Define it by `def`.")


def node_code(code: CodeType, line: int) -> CodeType:
    """The code at another line, for messages."""
    return code.replace(co_firstlineno=line)


def _refused(why: str, code: CodeType, *lines: str) -> ArgumentError:
    return ArgumentError(
        "\n".join(
            [
                f"the branches and loops of {code.co_name} cannot be rewritten: {why}.",
                f"  at            {code.co_filename}:{code.co_firstlineno}",
                *lines,
            ]
        )
    )


def _check(node: ast.FunctionDef, code: CodeType) -> None:
    for each in _own_nodes(node.body):
        if isinstance(each, _GENERATORS):
            raise _refused(
                "it is a generator", node_code(code, each.lineno), "Return lists or arrays instead."
            )


def _own_nodes(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of statements but those inside of functions and classes that they define."""
    pending = list(statements)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, _OWN_SCOPE):
            pending += getattr(node, "decorator_list", [])
            continue
        pending += ast.iter_child_nodes(node)


def _bound(statements: Iterable[ast.AST]) -> list[str]:
    """Names that statements give to values, or delete, in the scope that they belong to."""
    found: dict[str, None] = {}
    pending: list[tuple[ast.AST, bool]] = [(s, False) for s in reversed(list(statements))]
    while pending:
        node, is_inner = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = None
        if isinstance(node, _OWN_SCOPE):
            continue
        if isinstance(node, ast.NamedExpr):
            found[node.target.id] = None
        if isinstance(node, ast.Name) and not is_inner and not isinstance(node.ctx, ast.Load):
            found[node.id] = None
        if isinstance(node, ast.alias):
            found[(node.asname or node.name).split(".")[0]] = None
        if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found[node.name] = None
        if isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] = None
        is_inner = is_inner or isinstance(node, _COMPREHENSIONS)
        pending += [(child, is_inner) for child in reversed(list(ast.iter_child_nodes(node)))]
    return list(found)


def _read(nodes: Iterable[ast.AST]) -> list[str]:
    """Names that occur anywhere in statements."""
    names = (x.id for n in nodes for x in ast.walk(n) if isinstance(x, ast.Name))
    return list(dict.fromkeys(names))


def _changed(nodes: Iterable[ast.AST]) -> set[str]:
    """Names of what statements change in place, as far as they show it.

    Those of attributes are dotted; ``x.y[]`` are elements of one.
    """
    found = set()
    for node in nodes:
        for each in ast.walk(node):
            target = each.target if isinstance(each, ast.AugAssign) else each
            if isinstance(target, ast.Subscript) and isinstance(target.ctx, ast.Store):
                target = target.value
            elif isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store):
                found.add(ast.unparse(target))
                continue
            elif target is each:
                continue
            if isinstance(target, ast.Name):
                found.add(target.id)
            elif isinstance(target, ast.Attribute):
                found.add(f"{ast.unparse(target)}[]")
    return found


def _acts(statements: Iterable[ast.AST]) -> bool:
    """Whether statements call methods, or `print`, for what they do alone."""
    for node in _own_nodes(statements):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if not isinstance(function, ast.Name) or function.id == "print":
                return True
    return False


def _falls(statements: Sequence[ast.stmt]) -> bool:
    """Whether the end of statements can be reached."""
    if not statements:
        return True
    last = statements[-1]
    if isinstance(last, ast.If):
        return _falls(last.body) or _falls(last.orelse)
    return not isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _exits(node: ast.AST) -> bool:
    """Whether a statement can end the function, or the step of the loop, that it stands in.

    Loops inside of it end by their conditions alone.
    """
    if isinstance(node, ast.Return | ast.Continue):
        return True
    if isinstance(node, (*_OWN_SCOPE, ast.For, ast.While)):
        return False
    return any(map(_exits, ast.iter_child_nodes(node)))


# New nodes.


def _at(place: ast.AST, node: Any) -> Any:
    """A node at the place of another one; of a statement with blocks, at that of its head."""
    if isinstance(place, ast.If | ast.While):
        place = place.test
    elif isinstance(place, ast.For):
        place = place.iter
    return ast.fix_missing_locations(ast.copy_location(node, place))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(_arguments(), body)


def _call(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(_RUNTIME), function, ast.Load()), list(args), [])


def _define(place: ast.AST, name: str, body: Sequence[Any], *args: str) -> ast.FunctionDef:
    return _at(
        place,
        ast.FunctionDef(name, _arguments(*args), list(body) or [ast.Pass()], [], None, lineno=0),
    )


class _Function:
    """One function, whose body is rewritten.

    Args:
        node: Its definition.
        owner: The class whose method it may be, for the names that Python mangles.
        closed: Names of functions around it.
    """

    def __init__(self, node: ast.FunctionDef, owner: str, closed: frozenset[str]) -> None:
        self.node = node
        self.owner = owner
        args = node.args
        all_args = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
        self.params = [a.arg for a in all_args if a is not None]
        self.globals = _declared(node.body, ast.Global)
        outer = _declared(node.body, ast.Nonlocal)
        self.locals = [
            name for name in _bound(node.body) if name not in self.globals and name not in outer
        ]
        self.known = closed | {*self.params, *self.locals, *outer}
        self.count = 0
        self.left: dict[ast.stmt, str] = {}
        """By loop: the variable that tells that it has been left, or an empty string."""
        self.rests: dict[str, Sequence[ast.stmt]] = {}
        """The statements of functions of ours that arms call."""

    def rewritten(self) -> ast.FunctionDef:
        """The definition with a new body."""
        node = self.node
        body = self._without_exits(node.body, [])
        names = _bound(body)
        if _RETURNED in names:
            body.insert(0, _at(node.body[0], _assign(_RETURNED, ast.Constant(False))))
        new = [name for name in names if name not in self.params and name not in self.globals]
        new = [name for name in new if name in self.locals or name.startswith(RESERVED)]
        body = self.block(body)
        if new:  # never runs: inner functions assign these variables
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in new]
            declared: ast.stmt = ast.Assign(targets, ast.Constant(None))
            body.insert(0, _at(node, ast.If(ast.Constant(False), [declared], [])))
        for name in self.globals:
            body.insert(0, _at(node, ast.Global([name])))
        outer = _declared(node.body, ast.Nonlocal)
        if outer:
            body.insert(0, _at(node, ast.Nonlocal(sorted(outer))))
        if ast.get_docstring(node, clean=False) is not None:
            body.insert(0, node.body[0])
        node.body = body
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            arg.annotation = None
        node.returns = None
        return node

    def _new(self, kind: str) -> str:
        self.count += 1
        return f"<{kind} {self.count}>"

    # Exits of loops as variables.

    def _without_exits(self, statements: Sequence[ast.stmt], loops: list[str]) -> list[ast.stmt]:
        """Statements in which loops are left by their condition alone.

        Args:
            statements: Of one block.
            loops: The variables that tell that the loops around it have been left, from inside.
        """
        result: list[ast.stmt] = []
        for node in statements:
            result += self._without_exit(node, loops)
        return result

    def _without_exit(self, node: ast.stmt, loops: list[str]) -> list[ast.stmt]:
        new: list[ast.stmt]
        if isinstance(node, ast.Break):
            new = [_assign(loops[-1], ast.Constant(True)), ast.Continue()]
            return [_at(node, x) for x in new]
        if isinstance(node, ast.Return) and loops:
            value = node.value or ast.Constant(None)
            new = [_assign(_RESULT, value), _assign(_RETURNED, ast.Constant(True))]
            new += [_assign(loops[-1], ast.Constant(True)), ast.Continue()]
            return [_at(node, x) for x in new]
        if isinstance(node, ast.While | ast.For):
            return self._left_loop(node, loops)
        if not isinstance(node, _OWN_SCOPE):
            for name in (*_BLOCKS, "handlers", "cases"):
                part = getattr(node, name, None)
                if isinstance(part, list):
                    setattr(node, name, self._without_exits(part, loops))
        return [node]

    def _left_loop(self, node: ast.While | ast.For, loops: list[str]) -> list[ast.stmt]:
        own = list(_own_nodes(node.body))
        returns = any(isinstance(n, ast.Return) for n in own)
        left = self._new("left") if returns or _breaks(node.body) else ""
        orelse = self._without_exits(node.orelse, loops)
        node.body = self._without_exits(node.body, [*loops, left])
        node.orelse = []
        self.left[node] = left
        result: list[ast.stmt] = [node]
        if left:
            result.insert(0, _at(node, _assign(left, ast.Constant(False))))
        if orelse and left:
            test = ast.UnaryOp(ast.Not(), _name(left))
            result.append(_at(node, ast.If(test, orelse, [])))
        else:
            result += orelse
        if returns:
            end = self._without_exit(_at(node, ast.Return(_name(_RESULT))), loops)
            result.append(_at(node, ast.If(_name(_RETURNED), end, [])))
        return result

    # Statements.

    def block(self, statements: Sequence[ast.stmt], is_plain: bool = False) -> list[ast.stmt]:
        """A block, rewritten.

        Args:
            statements: The block.
            is_plain: Whether it stands in a statement that is none of ours, so that what follows
                an `if` cannot move into it.
        """
        result: list[ast.stmt] = []
        for i, node in enumerate(statements):
            if isinstance(node, ast.If) and _exits(node) and not is_plain:
                return result + self._last_branch(node, statements[i + 1 :])
            result += self._statement(node, is_plain)
        return result

    def _statement(self, node: ast.stmt, is_plain: bool) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            return self._plain_branch(node) if _exits(node) else self._branch(node)
        if isinstance(node, ast.While):
            return self._while(node)
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, ast.Continue):
            return [_at(node, ast.Return(None))]
        if isinstance(node, ast.FunctionDef):
            return [self._inner(node)]
        if isinstance(node, ast.Global | ast.Nonlocal):
            return []
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is None:
                return []
            node = _at(node, ast.Assign([node.target], node.value))
        if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef):
            return [node]
        return [self._plain(node)]

    def _plain(self, node: Any) -> Any:
        """A statement that stays Python's, with its parts rewritten."""
        for name, part in ast.iter_fields(node):
            if name in ("handlers", "cases"):
                part = list(map(self._plain, part))
            elif name in _BLOCKS and isinstance(part, list):
                part = self.block(part, True)
            elif isinstance(part, ast.AST):
                part = self.expressions(part)
            elif isinstance(part, list):
                part = [self.expressions(x) if isinstance(x, ast.AST) else x for x in part]
            setattr(node, name, part)
        return node

    def _inner(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function inside of the function: rewritten as well, unless it is a generator."""
        node.decorator_list = [self.expressions(d) for d in node.decorator_list]
        node.args.defaults = [self.expressions(d) for d in node.args.defaults]
        if any(isinstance(n, _GENERATORS) for n in _own_nodes(node.body)):
            return node
        return _Function(node, self.owner, self.known).rewritten()

    def _scope(self, names: Sequence[str]) -> list[ast.stmt]:
        """The declarations of names that an arm assigns."""
        result: list[ast.stmt] = []
        ours = [n for n in names if n not in self.globals]
        if ours:
            result.append(ast.Nonlocal(ours))
        theirs = [n for n in names if n in self.globals]
        if theirs:
            result.append(ast.Global(theirs))
        return result

    def _state(self, place: ast.stmt, nodes: Sequence[ast.AST]) -> Any:
        """The definition of what writes variables, and the argument that stands for them.

        Args:
            place: The statement.
            nodes: All that runs in it.
        """
        nodes = self._with_called(nodes)
        names = _bound(nodes)
        write, given = self._new("write"), "<values>"
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
        body: list[ast.stmt] = self._scope(names)
        if names:
            body.append(ast.Assign([ast.Tuple(targets, ast.Store())], _name(given)))
        for name in names:
            nothing = ast.Attribute(_name(_RUNTIME), "UNDEFINED", ast.Load())
            test = ast.Compare(_name(name), [ast.Is()], [nothing])
            body.append(ast.If(test, [ast.Delete([ast.Name(name, ast.Del())])], []))
        read = [n for n in _read(nodes) if n in self.known]
        changed = _changed(nodes)
        state = _call(
            "State",
            _strings(names),
            _values(names),
            _name(write),
            _strings(read),
            _values(read),
            _strings([n for n in sorted(changed) if n in self.known or "." in n]),
        )
        return _define(place, write, body, given), state

    def _with_called(self, nodes: Sequence[ast.AST]) -> list[ast.AST]:
        """Nodes and the statements of functions of ours that run with them."""
        found, seen = list(nodes), set[str]()
        for node in found:  # which grows
            names = [n for n in _read([node]) if n in self.rests and n not in seen]
            seen.update(names)
            found += [part for name in names for part in self.rests[name]]
        return found

    def _arm(self, place: ast.stmt, name: str, body: Sequence[ast.stmt], *args: str) -> Any:
        scope = self._scope(_bound(body))
        return _define(place, name, [*scope, *self.block(body)], *args)

    def _branch(self, node: ast.If) -> list[ast.stmt]:
        write, state = self._state(node, [node])
        then, otherwise = self._new("then"), self._new("else")
        arms = [self._arm(node, then, node.body), self._arm(node, otherwise, node.orelse)]
        test = self.expressions(node.test)
        call = _call("branch", test, _name(then), _name(otherwise), state)
        return [*arms, write, _at(node, ast.Expr(call))]

    def _last_branch(self, node: ast.If, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A branch one of whose arms ends the function: the rest belongs to the other one."""
        before: list[ast.stmt] = []
        body, orelse, end = list(node.body), list(node.orelse), rest
        parts = [*body, *orelse, *rest]
        write, state = self._state(node, [node.test, *parts])
        if rest and _falls(body) and _falls(orelse):
            name = self._new("rest")
            self.rests[name] = parts
            before = [self._arm(node, name, rest)]
            end = [_at(node, ast.Return(ast.Call(_name(name), [], [])))]
        both = [[*arm, *(end if _falls(arm) else [])] for arm in (body, orelse)]
        then, otherwise = self._new("then"), self._new("else")
        arms = [
            self._arm(node, name, arm) for name, arm in zip((then, otherwise), both, strict=True)
        ]
        test = self.expressions(node.test)
        call = _call("branch", test, _name(then), _name(otherwise), state)
        return [*before, *arms, write, _at(node, ast.Return(call))]

    def _plain_branch(self, node: ast.If) -> list[ast.stmt]:
        """A branch that stays Python's, and says so if its condition is traced."""
        why = "an `if` that ends a loop or the function from inside of `with`, `try` or `match`"
        node.test = _at(node, _call("known", self.expressions(node.test), ast.Constant(why)))
        node.body, node.orelse = self.block(node.body, True), self.block(node.orelse, True)
        return [node]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        left = self.left[node]
        write, state = self._state(node, [node])
        test, body = self._new("test"), self._new("step")
        condition: ast.expr = node.test
        if left:
            go_on = ast.UnaryOp(ast.Not(), _name(left))
            condition = _at(node, ast.BoolOp(ast.And(), [go_on, condition]))
        scope = self._scope(_bound([node.test]))
        asked = [*scope, ast.Return(self.expressions(condition))]
        definitions = [_define(node, test, asked), self._arm(node, body, node.body)]
        call = _call("repeat", _name(test), _name(body), state)
        return [*definitions, write, _at(node, ast.Expr(call))]

    def _for(self, node: ast.For) -> list[ast.stmt]:
        left = self.left[node]
        item = "<item>"
        body = [_at(node, ast.Assign([node.target], _name(item))), *node.body]
        write, state = self._state(node, body)
        name = self._new("step")
        step = self._arm(node, name, body, item)
        stopped: ast.expr = _lambda(_name(left)) if left else ast.Constant(None)
        acts = ast.Constant(_acts(node.body))
        call = _call("iterate", self.expressions(node.iter), _name(name), stopped, acts, state)
        return [step, write, _at(node, ast.Expr(call))]

    # Expressions.

    def expressions(self, node: Any) -> Any:
        """An expression, or a statement without blocks of ours, in which choices are calls."""
        return _Expressions(self).visit(node)


class _Expressions(ast.NodeTransformer):
    """Choices inside of expressions."""

    def __init__(self, function: _Function) -> None:
        self.function = function

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _leave

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if _binds(node):
            return node
        first, *rest = node.values
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _at(node, _call(name, first, *map(_lambda, rest)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _at(node, _call("negation", node.operand)) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if _binds(node):
            return node
        return _at(node, _call("choice", node.test, _lambda(node.body), _lambda(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        middle = node.comparators[:-1]
        if not middle or not all(isinstance(x, ast.Name | ast.Constant) for x in middle):
            return node
        sides = [node.left, *node.comparators]
        links = [
            ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return _at(node, _call("both", links[0], *map(_lambda, links[1:])))

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        why = ast.Constant("the condition of a comprehension")
        node.ifs = [_at(test, _call("known", test, why)) for test in node.ifs]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not isinstance(function, ast.Name):
            return node
        params = self.function.params
        if function.id == "super" and not node.args and params:
            node.args = [_at(node, _name("__class__")), _at(node, _name(params[0]))]
        elif function.id in _WRAPPED_BUILTINS and function.id not in self.function.known:
            node.func = _at(function, _call("builtin", function))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        owner = self.function.owner.lstrip("_")
        if node.attr.startswith("__") and not node.attr.endswith("__") and owner.isidentifier():
            node.attr = f"_{owner}{node.attr}"
        return node


def _binds(node: ast.expr) -> bool:
    """Whether an expression gives names to values, which a function inside would keep."""
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    """Whether the loop of a body can be left."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.For | ast.While):
            pending += node.orelse
        elif not isinstance(node, _OWN_SCOPE):
            pending += ast.iter_child_nodes(node)
    return False


def _declared(statements: Iterable[ast.AST], kind: type[ast.Global | ast.Nonlocal]) -> set[str]:
    return {name for n in _own_nodes(statements) if isinstance(n, kind) for name in n.names}


def _strings(names: Sequence[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _values(names: Sequence[str]) -> ast.Lambda:
    """A function of the values of variables, which may not have any."""
    gets: list[ast.expr] = [_call("read", _lambda(_name(name))) for name in names]
    return _lambda(ast.Tuple(gets, ast.Load()))
