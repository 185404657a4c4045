"""The loop language: expressions, statements and functions, as data.

A kernel is a `Function`: statements over variables, in which every operation applies a word to
expressions. The words are the intrinsics and the accesses to memory, which `native.vocabulary`
types and makes instructions of; the language knows none of them but those that operators stand for.
Python's operators make expressions: ``x + 1`` is the sum of a variable and one. Expressions and
statements are not changed once they are made; a pass makes new ones.

``str`` of an expression, and `Function.text`, is how people read them. The text is a Python
function, which also is the name of a kernel in memory and, as a digest, on disk: two functions
that have the same text are the same.

Left out: what a word means (`native.vocabulary`), and the types of variables
(`native.signatures`).
"""

from __future__ import annotations

import ast
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from funcgrad.base.digests import digest
from funcgrad.base.forking import cached_property
from funcgrad.base.records import dataclass
from funcgrad.intrinsics import OPERATORS

SCOPES = 1 << 20
"""The most scopes of accesses of a kernel, and of each of several that are joined."""

LANES = ("lanes", "first_lanes")
"""The words for indices of vectors."""


def _operator(word: str) -> Callable[[Expression, Expression | float], Expression]:
    """The method of a binary operator, which applies an operation by its name."""
    return lambda self, other: call(word, self, other)


def _reflected(word: str) -> Callable[[Expression, float], Expression]:
    """The reflected method, for a number as the left operand."""
    return lambda self, other: call(word, other, self)


class Expression:
    """A value; operators make others of it."""

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__ = _operator("divide")
    __floordiv__ = _operator("floor_divide")
    __mod__ = _operator("remainder")
    __rshift__ = _operator("right_shift")
    __and__ = _operator("bitwise_and")
    __or__ = _operator("bitwise_or")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")

    def __neg__(self) -> Expression:
        return call("negative", self)

    def __invert__(self) -> Expression:
        return call("logical_not", self)

    def __bool__(self) -> bool:
        raise TypeError("an expression of a kernel has no value before the kernel runs")


Rewriter = Callable[[Expression], Expression]
"""A function that makes another expression of one."""


@dataclass(eq=False)
class Variable(Expression):
    """The value of a variable."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class Number(Expression):
    """A number that is written down: an integer, a float or a flag of Python."""

    value: float

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(eq=False)
class Apply(Expression):
    """The value of a word at others.

    Attributes:
        word: Its name.
        operands: What it is applied to.
    """

    word: str
    operands: tuple[Expression, ...]

    def __str__(self) -> str:
        symbol = SYMBOLS.get(self.word)
        if symbol is not None and len(self.operands) == 2:
            left, right = map(_operand_text, self.operands)
            return f"{left} {symbol} {right}"
        if self.word == "read_word":
            return f"{_operand_text(self.operands[0])}[{self.operands[1]}]"
        return f"{self.word}({', '.join(map(str, self.operands))})"


SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
"""Symbols of words that are printed between their two operands."""


def _operand_text(x: Expression) -> str:
    """The text of an operand beside a symbol."""
    is_compound = isinstance(x, Apply) and x.word in SYMBOLS and len(x.operands) == 2
    return f"({x})" if is_compound or str(x).startswith("-") else str(x)


def of(x: Expression | float) -> Expression:
    """An expression, or a number as one."""
    return x if isinstance(x, Expression) else Number(x)


def call(word: str, *operands: Expression | float) -> Apply:
    """A word at expressions and numbers."""
    return Apply(word, tuple(map(of, operands)))


def equal(a: Expression | float, b: Expression | float) -> Expression:
    """Whether two values are equal."""
    return call("equal", a, b)


def all_of(tests: Sequence[Expression]) -> Expression:
    """Whether all of some tests hold; of none there is nothing to ask."""
    found, *others = tests
    for test in others:
        found = found & test
    return found


def sum_of(terms: Sequence[Expression]) -> Expression:
    """The sum of some values, one at least."""
    found, *others = terms
    for term in others:
        found = found + term
    return found


SLOTS = Variable("slots")
"""The first argument of a kernel: the addresses of arrays (`abi`)."""

WORDS = Variable("args")
"""The second argument of a kernel: its words."""


# Statements.


class Statement:
    """One statement."""

    def parts(self) -> tuple[str, list[Expression], Sequence[Body]]:
        """The variable that it assigns, or "", what it computes, and the blocks inside."""
        return "", [], ()

    def of_parts(self, target: str, operands: Sequence[Any], blocks: Sequence[Body]) -> Statement:
        """A statement with other parts, as `parts` gives them."""
        return self

    def lines(self) -> Iterator[str]:
        """Its text."""
        raise NotImplementedError


Body = Sequence[Statement]


@dataclass(eq=False)
class Assign(Statement):
    """Give a variable a value."""

    name: str
    value: Expression

    def parts(self) -> tuple[str, list[Expression], Sequence[Body]]:
        return self.name, [self.value], ()

    def of_parts(self, target: str, operands: Sequence[Any], blocks: Sequence[Body]) -> Assign:
        return Assign(target, operands[0])

    def lines(self) -> Iterator[str]:
        yield f"{self.name} = {self.value}"


@dataclass(eq=False)
class Evaluate(Statement):
    """Compute a value for what it does to memory."""

    value: Apply

    def parts(self) -> tuple[str, list[Expression], Sequence[Body]]:
        return "", [self.value], ()

    def of_parts(self, target: str, operands: Sequence[Any], blocks: Sequence[Body]) -> Evaluate:
        return Evaluate(operands[0])

    def lines(self) -> Iterator[str]:
        match self.value:
            case Apply("write_word", (table, index, value)):
                yield f"{_operand_text(table)}[{index}] = {value}"
            case _:
                yield str(self.value)


@dataclass(eq=False)
class For(Statement):
    """Run statements for every index of a range.

    Attributes:
        index: The variable of the index.
        start: The first index.
        stop: What the indices are below; above, if they descend.
        step: From one to the next.
        body: The statements.
        is_cold: Whether few iterations run, so that the loop is left as it is.
    """

    index: str
    start: Expression
    stop: Expression
    step: int
    body: Body
    is_cold: bool = False

    def parts(self) -> tuple[str, list[Expression], Sequence[Body]]:
        return self.index, [self.start, self.stop], (self.body,)

    def of_parts(self, target: str, operands: Sequence[Any], blocks: Sequence[Body]) -> For:
        start, stop = operands
        return For(target, start, stop, self.step, blocks[0], self.is_cold)

    def lines(self) -> Iterator[str]:
        step = "" if self.step == 1 else f", {self.step}"
        kind = "cold" if self.is_cold else "range"
        yield f"for {self.index} in {kind}({self.start}, {self.stop}{step}):"
        yield from indented(self.body)


@dataclass(eq=False)
class While(Statement):
    """Run statements as long as a test holds, which is made before each time."""

    test: Expression
    body: Body

    def parts(self) -> tuple[str, list[Expression], Sequence[Body]]:
        return "", [self.test], (self.body,)

    def of_parts(self, target: str, operands: Sequence[Any], blocks: Sequence[Body]) -> While:
        return While(operands[0], blocks[0])

    def lines(self) -> Iterator[str]:
        yield f"while {self.test}:"
        yield from indented(self.body)


@dataclass(eq=False)
class If(Statement):
    """Run statements if a test holds, and others if it does not."""

    test: Expression
    body: Body
    otherwise: Body = ()

    def parts(self) -> tuple[str, list[Expression], Sequence[Body]]:
        return "", [self.test], (self.body, self.otherwise)

    def of_parts(self, target: str, operands: Sequence[Any], blocks: Sequence[Body]) -> If:
        return If(operands[0], *blocks)

    def lines(self) -> Iterator[str]:
        yield f"if {self.test}:"
        yield from indented(self.body)
        if self.otherwise:
            yield "else:"
            yield from indented(self.otherwise)


class Break(Statement):
    """Leave the innermost loop."""

    def lines(self) -> Iterator[str]:
        yield "break"


@dataclass(eq=False)
class Return(Statement):
    """Leave the kernel with a result."""

    value: Expression

    def parts(self) -> tuple[str, list[Expression], Sequence[Body]]:
        return "", [self.value], ()

    def of_parts(self, target: str, operands: Sequence[Any], blocks: Sequence[Body]) -> Return:
        return Return(operands[0])

    def lines(self) -> Iterator[str]:
        yield f"return {self.value}"


def indented(body: Body) -> Iterator[str]:
    """The text of statements inside of another one."""
    for statement in body:
        for line in statement.lines():
            yield f"    {line}"
    if not body:
        yield "    pass"


class Function:
    """A kernel, ``int64 kernel(int64* slots, int64* args)``, or another function; it returns 0.

    Attributes:
        body: Its statements.
        parameters: The types of its arguments by their names: types of numbers, as the words that
            cast to them are called, or ``slots`` and ``args``.
        result: The type of what it returns.
        is_brief: Whether it decides and calls, and leaves loops over numbers to others: so it
            takes no time to speak of, however it is translated.
        inner: Functions that are compiled with it, whose names stand for their addresses.
    """

    parameters: Mapping[str, str] = {SLOTS.name: "slots", WORDS.name: "args"}
    result = "i64"
    is_brief = False
    inner: Mapping[str, Function] = {}

    def __init__(self, body: Body) -> None:
        self.body = body

    @property
    def name(self) -> str:
        """Its key in memory: its text."""
        return self.text

    @cached_property
    def digest(self) -> str:
        """Digest of its name, by which its code is known."""
        return digest(self.name.encode())

    @cached_property
    def text(self) -> str:
        """The function as Python prints it."""
        head = f"def kernel({', '.join(self.parameters)}):"
        return "\n".join([head, *indented([*self.body, END]), ""])


class NamedFunction(Function):
    """A function that is written when it is compiled: it is known by a name that says all of it.

    Args:
        name: What it computes, and for which types and vectors.
        write: What gives its statements.
        facts: Attributes in which it is no kernel.
    """

    def __init__(self, name: str, write: Callable[[], Body], **facts: Any) -> None:
        self._name = name
        self._write = write
        vars(self).update(facts)

    @property
    def name(self) -> str:
        return self._name

    @cached_property
    def body(self) -> Body:
        """Its statements, written when they are first needed."""
        return self._write()


def rewritten(
    body: Body,
    change: Rewriter,
    rename: Callable[[str], str] = str,
    replace: Callable[[Statement], Iterable[Statement] | None] = lambda _: None,
) -> list[Statement]:
    """Statements with other expressions and other names.

    Args:
        body: The statements.
        change: What becomes of an expression.
        rename: What becomes of a name that is assigned.
        replace: What takes the place of a statement as it was; nothing where it is only changed.
    """
    made: list[Statement] = []
    for statement in body:
        found = replace(statement)
        if found is None:
            target, operands, blocks = statement.parts()
            operands = [change(x) for x in operands]
            blocks = [rewritten(block, change, rename, replace) for block in blocks]
            found = (statement.of_parts(rename(target), operands, blocks),)
        made += found
    return made


def renamed(
    body: Body, names: Mapping[str, str], values: Mapping[str, Expression] | None = None
) -> list[Statement]:
    """Statements with variables renamed, or replaced by expressions."""

    def change(x: Expression) -> Expression:
        if not isinstance(x, Variable):
            return rebuilt(x, change)
        if values and x.name in values:
            return values[x.name]
        return Variable(names[x.name]) if x.name in names else x

    return rewritten(body, change, lambda name: names.get(name, name))


def every(body: Body) -> Iterator[Statement]:
    """Statements, each before those inside of it."""
    waiting = [*reversed(body)]
    while waiting:
        statement = waiting.pop()
        yield statement
        for block in reversed(statement.parts()[2]):
            waiting += reversed(block)


def assigned(body: Body, of_indices: bool = True) -> Iterator[str]:
    """The names that statements assign, once for each assignment.

    Args:
        body: The statements, and those inside of them.
        of_indices: Whether a loop assigns its index.
    """
    for statement in every(body):
        if (name := statement.parts()[0]) and (of_indices or not isinstance(statement, For)):
            yield name


def expressions(body: Body) -> Iterator[Expression]:
    """Expressions of statements and of those inside of them."""
    for statement in every(body):
        yield from statement.parts()[1]


def variables(x: Expression) -> Iterator[str]:
    """The names of the variables of an expression, once for each use."""
    waiting = [x]
    while waiting:
        x = waiting.pop()
        if isinstance(x, Variable):
            yield x.name
        elif isinstance(x, Apply):
            waiting += x.operands


def accesses(x: Expression) -> Iterator[tuple[bool, float]]:
    """Whether each access of an expression to memory only reads, and its scope."""
    if isinstance(x, Apply):
        for y in x.operands:
            yield from accesses(y)
        if x.word.startswith(("load", "store")) and isinstance(x.operands[-1], Number):
            yield x.word.startswith("load"), x.operands[-1].value


def uses(body: Body) -> Counter[str]:
    """How often statements, and those inside of them, use each variable."""
    return Counter(name for x in expressions(body) for name in variables(x))


def without_unused(body: Body, is_pure: Callable[[str], bool]) -> list[Statement]:
    """Statements but for those that give a value to a variable which nothing uses.

    Args:
        body: The statements.
        is_pure: Whether a value of a word may be dropped.
    """

    def may_go(x: Expression) -> bool:
        return not isinstance(x, Apply) or (is_pure(x.word) and all(map(may_go, x.operands)))

    used, values = uses(body), defaultdict(list)
    for statement in every(body):
        if isinstance(statement, Assign) and may_go(statement.value):
            values[statement.name].append(statement.value)
            # A value that only the next one of its variable needs is not used.
            used[statement.name] -= [*variables(statement.value)].count(statement.name)
    # Operands of unused values alone are not used either.
    waiting = [name for name in values if not used[name]]
    while waiting:
        unused = waiting.pop()
        for name in [y for x in values.pop(unused, ()) for y in variables(x) if y != unused]:
            used[name] -= 1
            if not used[name]:
                waiting.append(name)

    def replace(statement: Statement) -> Body | None:
        if isinstance(statement, Assign) and not used[statement.name] and may_go(statement.value):
            return ()
        return None

    return rewritten(body, lambda x: x, replace=replace)


END = Return(Number(0))
"""The end of every kernel: nothing went wrong."""


# Templates of forms.


@dataclass(eq=False)
class _Argument(Expression):
    """The place of an argument in a template."""

    number: int


def applied(template: str, operands: Sequence[Expression]) -> Expression:
    """The expression that a template of a form stands for.

    Args:
        template: Its text, such as ``"exp({0}) * {1}"``.
        operands: What stands for its arguments.
    """
    return _filled(_parsed(template), operands)


def _filled(x: Expression, operands: Sequence[Expression]) -> Expression:
    if isinstance(x, Apply):
        return Apply(x.word, tuple([_filled(y, operands) for y in x.operands]))
    return operands[x.number] if isinstance(x, _Argument) else x


@lru_cache(4096)
def _parsed(template: str) -> Expression:
    # To Python, an argument ``{0}`` is a set of one number: the text can be parsed as it stands.
    return _of_tree(ast.parse(template, mode="eval").body)


def _of_tree(tree: ast.expr) -> Expression:
    match tree:
        case ast.Set(elts=[ast.Constant(value=number)]):
            return _Argument(operator.index(number))  # type: ignore[arg-type]
        case ast.Constant(value=bool() | int() | float() as number):
            return Number(number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return Number(-number)
        case ast.BinOp(left=left, op=op, right=right):
            return call(OPERATORS[type(op)], _of_tree(left), _of_tree(right))
        case ast.UnaryOp(op=op, operand=operand):
            return call(OPERATORS[type(op)], _of_tree(operand))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return call(OPERATORS[type(op)], _of_tree(left), _of_tree(right))
        case ast.Call(func=ast.Name(id=word), args=args, keywords=[]):
            return call(word, *map(_of_tree, args))
    raise ValueError(f"{ast.unparse(tree)!r} is not made of operators and intrinsics")


def rebuilt(x: Expression, change: Rewriter) -> Expression:
    """An expression with its operands changed; itself if none of them is."""
    if not isinstance(x, Apply):
        return x
    operands = tuple([change(y) for y in x.operands])
    return x if operands == x.operands else Apply(x.word, operands)  # each equals itself alone
