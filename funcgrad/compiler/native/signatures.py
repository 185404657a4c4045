"""The types of a kernel's variables and the signatures of its calls: given by its words.

``give_types : blocks -> types of variables, calls``. A kernel's arguments are known, and every word
says what it gives for what it is given; so types are read off in the order of the blocks, in which
every variable is assigned before it is used. Only where a loop's body assigns a variable of a
stronger type than before (a literal, say, that becomes a float32) they are read once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.compiler.native.blocks import (
    Argument,
    Assign,
    Block,
    Number,
    Result,
    Value,
    Variable,
    WordCall,
)
from funcgrad.compiler.native.types import (
    ARGS,
    BOOL,
    INT64,
    SLOTS,
    WEAK_FLOAT,
    Signature,
    TypingError,
    is_weak,
    literal,
)
from funcgrad.compiler.native.vocabulary import promote

ARGUMENTS = (SLOTS, ARGS)
"""The types of a kernel's arguments."""


def give_types(blocks: Sequence[Block]) -> tuple[dict[str, Any], dict[WordCall, Signature]]:
    """The types of all variables, and the signature of every call.

    Raises:
        TypingError: A word takes no such arguments, or two types have no common one.
    """
    typing = _Typing()
    while typing.has_changed:
        typing.has_changed = False
        for block in blocks:
            for statement in block:
                if isinstance(statement, Assign):
                    typing.note(statement.name, typing.type_of(statement.value))
    return typing.types, typing.calls


class _Typing:
    def __init__(self) -> None:
        self.types: dict[str, Any] = {}
        self.calls: dict[WordCall, Signature] = {}
        self.has_changed = True

    def note(self, name: str, t: Any) -> None:
        old = self.types.get(name)
        if old is None:
            self.types[name] = t
        elif old != t:
            new = unified(old, t)
            if new != old:
                self.types[name] = new
                self.has_changed = True

    def type_of(self, value: Value) -> Any:
        match value:
            case WordCall(word=word, operands=operands):
                signature = word.sign(tuple([self.types[name] for name in operands]))
                self.calls[value] = signature
                return signature.return_type
            case Variable(name=name):
                return self.types[name]
            case Number(value=number):
                return type_of_number(number)
            case Argument(position=position):
                return ARGUMENTS[position]
            case Result():
                return INT64  # what a kernel returns


def type_of_number(number: Any) -> Any:
    """The type of a literal or a flag."""
    if isinstance(number, float):
        return WEAK_FLOAT
    return BOOL if isinstance(number, bool) else literal(number)


def unified(first: Any, second: Any) -> Any:
    """The type of a variable that values of two types are assigned to."""
    if is_weak(first) or is_weak(second):
        return promote((first, second))
    raise TypingError(f"a variable is both {first} and {second}")
