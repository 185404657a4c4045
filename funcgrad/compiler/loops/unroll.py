"""Complete unrolling.

``unroll : statements -> statements``. A loop whose range is known, and short, becomes its
iterations, in each of which the index is a number. What follows from such numbers is known as well:
further ranges, tests, and how far pointers are moved. So elements of small arrays are at known
places, where variables can stand for them.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from funcgrad.compiler.loops.language import (
    Apply,
    Assign,
    Body,
    Break,
    Expression,
    For,
    If,
    Number,
    Statement,
    Variable,
    assigned,
    call,
    every,
    expressions,
    of_parts,
    parts_of,
    rebuilt,
    renamed,
)

_WORDS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "minimum": min,
    "maximum": max,
    "i64": operator.index,
}
"""Results of words at integers that are known."""

_TESTS: dict[str, Callable[..., bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
}
"""The same, where they are flags."""

_CONNECTIVES: dict[str, Callable[..., bool]] = {"bitwise_and": operator.and_}
"""Results of words at flags."""


def number_of(x: Expression) -> int | None:
    """The integer that an expression is, if it is known: a number, or one of 64 bits."""
    match x:
        case Number(int() as n):
            return n
        case Apply("i64", (Number(int() as n),)):
            return n
    return None


def unroll(body: Body, longest: int) -> list[Statement]:
    """Statements without loops of known ranges.

    Args:
        body: The statements.
        longest: The most iterations of a loop that is unrolled.
    """
    return _Unroller(body, longest).treated(body)


def variables(x: Expression) -> Iterator[str]:
    """The names of the variables of an expression, once for each use."""
    if isinstance(x, Variable):
        yield x.name
    elif isinstance(x, Apply):
        for y in x.operands:
            yield from variables(y)


def _uses(body: Body) -> Counter[str]:
    return Counter(name for x in expressions(body) for name in variables(x))


class _Unroller:
    def __init__(self, body: Body, longest: int) -> None:
        self.longest = longest
        self.counts = Counter(assigned(body))
        self.uses = _uses(body)
        self.known: dict[str, Expression] = {}
        self.flags: dict[str, bool] = {}
        self.copies = itertools.count()

    def treated(self, body: Body) -> list[Statement]:
        made: list[Statement] = []
        for statement in body:
            made += self._treated(statement)
        return made

    def _treated(self, statement: Statement) -> list[Statement]:
        target, operands, blocks = parts_of(statement)
        operands = [self._folded(x) for x in operands]
        match statement:
            case Assign(name, _) if self.counts[name] == 1 and number_of(operands[0]) is not None:
                self.known[name] = operands[0]
                return []
            case Assign(name, _) if self.counts[name] == 1:
                flag = self._flag(operands[0])
                if flag is not None:
                    self.flags[name] = flag
            case If(_, then, otherwise) if (flag := self._flag(operands[0])) is not None:
                return self.treated(then if flag else otherwise)
            case For() if (span := self._span(statement, operands)) is not None:
                return [x for i in span for x in self._iteration(statement, i)]
        return [of_parts(statement, target, operands, [*map(self.treated, blocks)])]

    def _span(self, loop: For, operands: list[Expression]) -> range | None:
        """The indices of a loop that is to be unrolled."""
        start, stop = map(number_of, operands)
        if start is None or stop is None or any(isinstance(x, Break) for x in every(loop.body)):
            return None
        span = range(start, stop, loop.step)
        return span if len(span) <= self.longest else None

    def _iteration(self, loop: For, i: int) -> list[Statement]:
        """One iteration, whose own variables have other names in each."""
        inside, uses = Counter(assigned(loop.body)), _uses(loop.body)
        k = next(self.copies)
        own = {
            name: f"{name}u{k}"
            for name, count in inside.items()
            if count == self.counts[name] and uses[name] == self.uses[name]
        }
        for name, new in own.items():
            self.counts[new], self.uses[new] = inside[name], uses[name]
        return self.treated(renamed(loop.body, own, {loop.index: call("i64", i)}))

    def _folded(self, x: Expression) -> Expression:
        """An expression in which what is known has its value."""
        if isinstance(x, Variable):
            return self.known.get(x.name, x)
        x = rebuilt(x, self._folded)
        if not isinstance(x, Apply) or x.word not in _WORDS:
            return x
        numbers = [number_of(y) for y in x.operands]
        if None in numbers or (x.word != "i64" and all(isinstance(y, Number) for y in x.operands)):
            return x
        return call("i64", _WORDS[x.word](*numbers))

    def _flag(self, x: Expression) -> bool | None:
        """The flag that a test is, if it is known."""
        if isinstance(x, Variable):
            return self.flags.get(x.name)
        if not isinstance(x, Apply):
            return None
        numbers = [*map(number_of, x.operands)]
        if x.word in _TESTS and None not in numbers:
            return _TESTS[x.word](*numbers)
        if x.word not in _CONNECTIVES:
            return None
        flags = [*map(self._flag, x.operands)]
        return None if None in flags else _CONNECTIVES[x.word](*flags)
