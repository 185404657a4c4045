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
from collections.abc import Callable, Sequence, Set
from typing import Any

from funcgrad.base.forking import cached_property
from funcgrad.compiler.loops.language import (
    Apply,
    Assign,
    Body,
    Break,
    Evaluate,
    Expression,
    For,
    If,
    Number,
    Statement,
    Variable,
    accesses,
    assigned,
    call,
    every,
    expressions,
    rebuilt,
    uses,
    variables,
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
    if isinstance(x, Apply) and x.word == "i64":
        (x,) = x.operands
    return x.value if isinstance(x, Number) and isinstance(x.value, int) else None


def unroll(
    body: Body, longest: int, change: Callable[[Apply], Expression] = lambda x: x
) -> list[Statement]:
    """Statements without loops of known ranges.

    Args:
        body: The statements.
        longest: The most iterations of a loop that is unrolled.
        change: What becomes of a word and its operands before.
    """
    return _Unroller(body, longest, change).treated(body)


class _Unroller:
    def __init__(self, body: Body, longest: int, change: Callable[[Apply], Expression]) -> None:
        self.body = body
        self.longest = longest
        self.change = change
        self.counts = Counter(assigned(body))
        self.known: dict[str, Expression] = {}
        self.flags: dict[str, bool] = {}
        self.names: dict[str, str] = {}
        self.copies = itertools.count()

    @cached_property
    def uses(self) -> Counter[str]:
        """How often each variable is used."""
        return uses(self.body)

    def treated(self, body: Body) -> list[Statement]:
        made: list[Statement] = []
        for statement in body:
            for found in self._treated(statement):
                if made and _replaces(found, made[-1]):
                    made.pop()
                made.append(found)
        return made

    def _treated(self, statement: Statement) -> list[Statement]:
        target, operands, blocks = statement.parts()
        operands = [self._folded(x) for x in operands]
        name = self.names.get(target, target)
        match statement:
            case Assign() if self.counts[target] == 1:
                flag = self._flag(operands[0])
                if flag is not None:
                    self.flags[name] = flag
                if flag is not None or number_of(operands[0]) is not None:
                    self.known[name] = operands[0]
                    return []
            case If(_, then, otherwise) if (flag := self._flag(operands[0])) is not None:
                return self.treated(then if flag else otherwise)
            case For() if (span := self._span(statement, operands)) is not None:
                return self._iterations(statement, span)
        return [statement.of_parts(name, operands, [*map(self.treated, blocks)])]

    def _span(self, loop: For, operands: list[Expression]) -> range | None:
        """The indices of a loop that is to be unrolled."""
        start, stop = map(number_of, operands)
        if start is None or stop is None or any(isinstance(x, Break) for x in every(loop.body)):
            return None
        span = range(start, stop, loop.step)
        return span if len(span) <= self.longest else None

    def _iterations(self, loop: For, span: range) -> list[Statement]:
        """The iterations of a loop, whose own variables have other names in each.

        Each statement of all of them, one after the other, if they may run side by side: so the
        processor finds what to do while it waits for one.
        """
        counts, used = Counter(assigned(loop.body)), uses(loop.body)
        own = {n for n, k in counts.items() if k == self.counts[n] and used[n] == self.uses[n]}
        outer, index = self.names, self.names.get(loop.index, loop.index)
        iterations = []
        for i in span:
            k = next(self.copies)
            self.names = outer | {name: f"{outer.get(name, name)}u{k}" for name in own}
            self.known[index] = call("i64", i)
            iterations.append(self.treated(loop.body))
        self.names = outer
        self.known.pop(index, None)  # there may be no iteration
        if _are_apart(loop.body, counts.keys() - own, iterations):
            return [x for row in zip(*iterations, strict=True) for x in row]
        return [*itertools.chain(*iterations)]

    def _folded(self, x: Expression) -> Expression:
        """An expression in which what is known has its value."""
        if isinstance(x, Variable):
            name = self.names.get(x.name, x.name)
            if name in self.known:
                return self.known[name]
            return x if name == x.name else Variable(name)
        if not isinstance(x, Apply):
            return x
        folded = rebuilt(x, self._folded)
        assert isinstance(folded, Apply)
        x = self.change(folded)
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
        if x.word in _TESTS:
            numbers = [number_of(y) for y in x.operands]
            return None if None in numbers else _TESTS[x.word](*numbers)
        if x.word in _CONNECTIVES:
            flags = [self._flag(y) for y in x.operands]
            return None if None in flags else _CONNECTIVES[x.word](*flags)
        return None


def _replaces(statement: Statement, previous: Statement) -> bool:
    """Whether a statement gives a variable another value than the one that it was just given."""
    if not (isinstance(statement, Assign) and isinstance(previous, Assign)):
        return False
    is_same = statement.name == previous.name and not isinstance(previous.value, Apply)
    return is_same and statement.name not in variables(statement.value)


def _are_apart(body: Body, shared: Set[str], iterations: Sequence[Body]) -> bool:
    """Whether no statement of an iteration needs what a later one of another has done.

    Args:
        body: What the loop does.
        shared: The variables that it assigns and that are the same ones in all iterations: sums.
        iterations: The statements of each, which correspond to each other.
    """
    if len({*map(len, iterations)}) != 1:
        return False
    for x in itertools.chain(*iterations):  # each computes or stores an element, and nothing else
        if not (isinstance(x, Assign) or (isinstance(x, Evaluate) and x.value.word == "store")):
            return False
    mentioned = [shared & {*assigned([x]), *uses([x])} for x in body] if shared else []
    if any(names and not isinstance(x, Assign) for x, names in zip(body, mentioned, strict=False)):
        return False
    memory = [access for x in expressions(body) for access in accesses(x)]
    loaded = {scope for is_load, scope in memory if is_load}
    stored = {scope for is_load, scope in memory if not is_load}
    return sum(map(len, mentioned)) == len(shared) and not loaded & stored
