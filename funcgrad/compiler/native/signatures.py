"""The types of a kernel's variables and the signatures of its words, read off its statements.

``give_types : statements -> types``. A kernel's arguments are known, and every word says what it
gives for what it is given, so one look at the statements, in their order, gives all types. Only
where a loop's body assigns a variable of a stronger type than before (a literal, say, that becomes
a float32) they are read once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from funcgrad.compiler.loops import language
from funcgrad.compiler.loops.language import Apply, Body, Expression, Number, Statement, Variable
from funcgrad.compiler.native.types import (
    ARGS,
    BOOL,
    INT64,
    SCALARS,
    SLOTS,
    WEAK_FLOAT,
    Signature,
    TypingError,
    is_weak,
    literal,
)
from funcgrad.compiler.native.vocabulary import WORDS
from funcgrad.compiler.native.words import promote


class UnsupportedError(Exception):
    """A kernel applies something that is no word of kernels."""


class Types:
    """The types of a kernel.

    Attributes:
        variables: The types of its variables.
        words: The signature of every expression that applies a word.
        in_memory: The variables that are more than one value, or used where their assignment need
            not come before.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.variables = dict(given)
        self.words: dict[Apply, Signature] = {}
        self.in_memory: set[str] = set()
        self.has_changed = True

    def read(self, body: Body) -> None:
        """Read the statements of a kernel, as often as it takes."""
        while self.has_changed:
            self.has_changed = False
            # The suite of statements of every first assignment, and those around the current one.
            self._homes = dict.fromkeys(self.given, 0)
            self._indices: set[str] = set()
            self._suites = [0]
            self._n_suites = 1
            self._statements(body)

    def _suite(self, body: Body, index: str = "") -> None:
        """Statements that may be skipped or repeated, of a loop perhaps that has an index."""
        self._suites.append(self._n_suites)
        self._n_suites += 1
        if index:
            is_used = self._homes.get(index) in self._suites
            if is_used or (index in self._homes and index not in self._indices):
                self.in_memory.add(index)
            self._indices.add(index)
            self._homes[index] = self._suites[-1]
            self._note(index, INT64)
        self._statements(body)
        self._suites.pop()

    def _statements(self, body: Body) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case language.Assign(name, value):
                t = self.type_of(value)
                if name in self._homes:
                    self.in_memory.add(name)
                self._homes[name] = self._suites[-1]
                self._note(name, t)
            case language.Evaluate(value) | language.Return(value):
                self.type_of(value)
            case language.If(test, body, otherwise):
                self.type_of(test)
                self._suite(body)
                self._suite(otherwise)
            case language.While(test, body):
                self.type_of(test)
                self._suite(body)
            case language.For(index, start, stop, _, body):
                self.type_of(start)
                self.type_of(stop)
                self._suite(body, index)

    def _note(self, name: str, t: Any) -> None:
        old = self.variables.get(name)
        if old is None:
            self.variables[name] = t
        elif old != t:
            if not (is_weak(old) or is_weak(t)):
                raise TypingError(f"a variable is both {old} and {t}")
            new = promote((old, t))
            if new != old:
                self.variables[name] = new
                self.has_changed = True

    def type_of(self, x: Expression) -> Any:
        """The type of an expression, where it stands."""
        if isinstance(x, Apply):
            word = WORDS.get(x.word)
            if word is None:
                raise UnsupportedError(f"{x.word!r} is not a word of kernels")
            signature = word.sign(tuple([self.type_of(y) for y in x.operands]))
            self.words[x] = signature
            return signature.return_type
        if isinstance(x, Variable):
            if self._homes.get(x.name) not in self._suites:
                self.in_memory.add(x.name)
            return self.variables[x.name]
        if isinstance(x, Number):
            return type_of_number(x.value)
        raise UnsupportedError(f"{x} is no expression of a kernel")


def parameter_types(function: language.Function) -> list[Any]:
    """The types of the arguments of a function."""
    return [_PARAMETERS[name] for name in function.parameters.values()]


_PARAMETERS = {**SCALARS, "slots": SLOTS, "args": ARGS}


def give_types(function: language.Function) -> Types:
    """The types of all variables, and the signature of every word that is applied.

    Args: function: A kernel, or another function.

    Raises:
        UnsupportedError: The kernel applies something that is no word.
        TypingError: A word takes no such arguments, or two types have no common one.
    """
    given = dict(zip(function.parameters, parameter_types(function), strict=True))
    types = Types(given | dict.fromkeys(function.inner, INT64))
    types.read(function.body)
    return types


def type_of_number(number: Any) -> Any:
    """The type of a literal or a flag."""
    if isinstance(number, float):
        return WEAK_FLOAT
    return BOOL if isinstance(number, bool) else literal(number)
