"""The types of a kernel's variables and the signatures of its calls: given by its words.

``give_types : FunctionIR -> types of variables, calls``. A kernel's arguments are known, and every
word says what it gives for what it is given; so types are read off in the order of the blocks, in
which every variable is assigned before it is used. Only where a loop's body assigns a variable of
a stronger type than before (a literal, say, that becomes a float32) they are read once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from funcgrad.compiler.native.numba_parts import Signature, TypingError, ir, types
from funcgrad.compiler.native.vocabulary import (
    ARGS,
    SLOTS,
    WEAK_FLOAT,
    Literal,
    Word,
    is_weak,
    promote,
)


class Call(NamedTuple):
    """A word, what it takes and gives, and the variables that it is given."""

    word: Word
    signature: Signature
    operands: Sequence[ir.Var]


def give_types(function: ir.FunctionIR) -> tuple[dict[str, Any], dict[Any, Call]]:
    """The types of all variables, and what every call calls.

    Raises:
        TypingError: A word takes no such arguments, or two types have no common one.
    """
    typing = _Typing()
    while typing.has_changed:
        typing.has_changed = False
        for block in function.blocks.values():
            for statement in block.body:
                typing.read(statement)
    return typing.types, typing.calls


class _Typing:
    def __init__(self) -> None:
        self.types: dict[str, Any] = {"arg.slots": SLOTS, "arg.args": ARGS}
        self.calls: dict[Any, Call] = {}
        self.has_changed = True

    def read(self, statement: Any) -> None:
        if isinstance(statement, ir.Assign):
            self.note(statement.target.name, self.type_of(statement.value))

    def note(self, name: str, t: Any) -> None:
        old = self.types.get(name)
        if old is None:
            self.types[name] = t
        elif old != t:
            new = unified(old, t)
            if new != old:
                self.types[name] = new
                self.has_changed = True

    def type_of(self, value: Any) -> Any:
        if isinstance(value, ir.Expr):
            method = getattr(self, f"type_of_{value.op}")
            return method(value)
        if isinstance(value, ir.Var):
            return self.types[value.name]
        if isinstance(value, ir.Const):
            return type_of_constant(value.value)
        if isinstance(value, ir.Global):
            return value.value.type
        return self.types[f"arg.{value.name}"]

    def type_of_call(self, value: Any) -> Any:
        word = self.types[value.func.name].word
        signature = word.sign(tuple([self.types[x.name] for x in value.args]))
        self.calls[value] = Call(word, signature, value.args)
        return signature.return_type

    def type_of_cast(self, value: Any) -> Any:
        return types.int64  # what a kernel returns


def type_of_constant(number: Any) -> Any:
    if isinstance(number, float):
        return WEAK_FLOAT
    return types.boolean if isinstance(number, bool) else _integer(number)


@lru_cache(4096)
def _integer(number: int) -> Any:
    return Literal(number)


def unified(first: Any, second: Any) -> Any:
    """The type of a variable that values of two types are assigned to."""
    if is_weak(first) or is_weak(second):
        return promote((first, second))
    raise TypingError(f"a variable is both {first} and {second}")
