"""Common subexpressions.

``name_common : function -> function``. What a block computes several times from the same variables
is computed once, and has a name from there on: value numbering (Cocke and Schwartz, 1970), where
what a block knows holds in the blocks inside of it.

LLVM does that as well, but after it was given all of it, and not for formulas that are called
(`native.elementary`): those would be called again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from funcgrad.compiler.loops import language


def name_common(function: language.Function, is_pure: Callable[[str], bool]) -> language.Function:
    """A kernel in which no block computes a value that it knows.

    Args:
        function: The kernel.
        is_pure: Whether the word of a name neither reads nor writes memory.
    """
    namer = _Namer(function, is_pure)
    return language.Function(namer.treated(function.body, {}))


class _Namer:
    def __init__(self, function: language.Function, is_pure: Callable[[str], bool]) -> None:
        self.is_pure = is_pure
        counts = Counter(language.assigned(function.body, of_indices=False))
        # An index is one value in its loop, and what follows from it is forgotten behind it.
        loops = [loop for loop in language.every(function.body) if isinstance(loop, language.For)]
        self.varying = {name for name, count in counts.items() if count > 1}
        n_loops = Counter(loop.index for loop in loops)
        for loop in loops:
            index = loop.index
            if index in counts or (n_loops[index] > 1 and index in language.assigned(loop.body)):
                self.varying.add(index)
        self.numbers: dict[Any, int] = {}
        self.known: dict[language.Expression, int] = {}
        self.uses: Counter[int] = Counter()
        for x in language.expressions(function.body):
            self._count(x)
        self.n_names = 0

    def _count(self, x: language.Expression) -> int | None:
        """Number a value and all that it is made of; nothing if it may be another one each time."""
        key: Any
        if isinstance(x, language.Apply):
            parts = [self._count(y) for y in x.operands]
            if None in parts or not self.is_pure(x.word):
                return None
            key = (x.word, *parts)
        elif isinstance(x, language.Variable):
            if x.name in self.varying:
                return None
            key = x.name
        else:
            assert isinstance(x, language.Number)
            key = type(x.value), repr(x.value)
        number = self.numbers.setdefault(key, len(self.numbers))
        if isinstance(x, language.Apply):
            self.uses[number] += 1
            self.known[x] = number
        return number

    def treated(
        self, body: language.Body, outer: dict[int, language.Variable]
    ) -> list[language.Statement]:
        """A block, of which is known what the blocks around it have computed before."""
        made: list[language.Statement] = []
        known = dict(outer)

        def named(x: language.Expression) -> language.Expression:
            if not isinstance(x, language.Apply):
                return x
            number = self.known.get(x)
            if number is None or self.uses[number] < 2:
                return language.rebuilt(x, named)
            if number not in known:
                self.n_names += 1
                known[number] = language.Variable(f"e{self.n_names}")
                made.append(language.Assign(known[number].name, language.rebuilt(x, named)))
            return known[number]

        for statement in body:
            match statement:
                case language.Assign(name, value):
                    number = self.known.get(value)
                    if number is None or number in known:
                        made.append(language.Assign(name, named(value)))
                    else:
                        made.append(language.Assign(name, language.rebuilt(value, named)))
                        if name not in self.varying:
                            known[number] = language.Variable(name)
                case _:
                    target, operands, blocks = statement.parts()
                    if not isinstance(
                        statement, language.While
                    ):  # whose test is another one each time
                        operands = [named(x) for x in operands]
                    blocks = [self.treated(block, known) for block in blocks]
                    made.append(statement.of_parts(target, operands, blocks))
        return made
