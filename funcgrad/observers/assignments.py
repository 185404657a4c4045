"""Functions that assign to elements of arrays, found by reading their code before they run.

``may_assign : function -> bool``

Traced values are not changed; those that functions of `funcgrad.numpy` make are names for values,
which assignments replace (`funcgrad.numpy.writable`). A function whose code assigns to elements,
or changes arrays in another way, gets its arguments as such names, so that all that it computes
from them can be assigned to. Other functions get traced values, which cost less.

The user's functions that it finds by name, in cells, in modules and in classes are read, too.
Functions that are reached otherwise, as methods of an argument, are not seen.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any, NamedTuple

import numpy as np

from funcgrad.base.tables import keep
from funcgrad.base.transformed import Wrapper
from funcgrad.observers.captures import codes_of, content_of, underlying
from funcgrad.observers.source import is_own

_FUNCTIONS = frozenset(
    ("__setitem__", "copyto", "fill", "fill_diagonal", "partition", "place", "put",
     "put_along_axis", "putmask", "sort")
)  # fmt: skip
_ATTRIBUTES = frozenset(("flat", "imag", "real", "shape"))

_DATA = frozenset(
    (bool, int, float, complex, str, bytes, NoneType, range, slice, np.ndarray, np.float32,
     np.float64, np.int64, np.dtype, np.ufunc, type(np.sum), BuiltinFunctionType)
)  # fmt: skip
"""Types of values that reach no function of the user's."""

_LIBRARIES = frozenset(("math", "numpy", "funcgrad", "funcgrad.numpy", "scipy"))
"""Modules that are not searched, for speed."""

_MAX_CODES = 4096
_MAX_FUNCTIONS = 512
_MAX_ENTRIES = 64
"""Longer lists are taken for data."""


class _Facts(NamedTuple):
    """Contents of a code and of the functions inside of it.

    Args:
        code: The code.
        assigns: Whether it changes arrays.
        variables: Names of globals.
        names: Names of attributes.
    """

    code: CodeType
    assigns: bool
    variables: tuple[str, ...]
    names: frozenset[str]


_facts: dict[int, _Facts] = {}


def may_assign(function: Any) -> bool:
    """Whether a function, or one of the user's that it calls, may change arrays in place.

    It is asked anew each time, which takes a microsecond: names may stand for other functions.

    Args:
        function: Any callable.
    """
    if type(function) is FunctionType:
        reached = _reached(function)
        if not reached:
            return reached is None
    waiting = [function]
    seen: dict[int, Any] = {}
    objects: list[Any] = []
    names: set[str] = set()
    while waiting and len(seen) < _MAX_FUNCTIONS:
        value = waiting.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            found = value if type(value) is FunctionType else _function_of(value, waiting, objects)
            if found is not None:
                reached = _reached(found)
                if reached is None:
                    return True
                waiting += reached
                names |= _facts_of(found.__code__).names
        if objects and not waiting:
            waiting += (x for each in objects for x in _members(each, names) if id(x) not in seen)
    return False


def _reached(function: FunctionType) -> list[Any] | None:
    """Values that a function finds by name, in cells and in defaults; ``None`` if it assigns."""
    code, space = function.__code__, function.__globals__
    facts = _facts_of(code)
    if facts.assigns:
        return None
    held = list(map(space.get, facts.variables))
    if function.__closure__ is not None:
        held += map(content_of, function.__closure__)
    if function.__defaults__ is not None:
        held += function.__defaults__
    return [
        x for x in held if type(x) not in _DATA and getattr(x, "__name__", "") not in _LIBRARIES
    ]


def _function_of(value: Any, waiting: list[Any], objects: list[Any]) -> FunctionType | None:
    """The function that a callable runs; what else may be called through it is added to lists."""
    if type(value) in _DATA:
        return None
    if isinstance(value, Wrapper) and value.gives_arguments:
        return None  # it asks for its original itself, whose arguments these are not
    found = None if isinstance(value, partial) else underlying(value)
    if found is None:
        waiting += _held_in(value)
        objects.append(value)
    elif isinstance(value, MethodType):
        objects.append(value.__self__)
    return found


def _held_in(value: Any) -> Iterable[Any]:
    if isinstance(value, partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, dict):
        value = list(value.values())
    return value if isinstance(value, list | tuple) and len(value) <= _MAX_ENTRIES else ()


def _facts_of(code: CodeType) -> _Facts:
    known = _facts.get(id(code))
    if known is not None:
        return known
    # A transformation's function has the user's in a cell, and its own names tell nothing.
    codes = [] if is_own(code) else list(codes_of(code))
    of_each = [list(dis.get_instructions(c)) for c in codes]
    instructions = [each for listed in of_each for each in listed]
    has_out = any(
        type(x) is tuple and "out" in x for c in codes for x in c.co_consts
    )  # names of keywords
    variables = {i.argval for i in instructions if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    known = _Facts(
        code,
        has_out or any(map(_changes, instructions)) or any(map(_augments, codes, of_each)),
        tuple(sorted(variables)),
        frozenset(name for c in codes for name in c.co_names) - variables,
    )
    keep(_facts, id(code), known, _MAX_CODES)
    return known


def _changes(instruction: dis.Instruction) -> bool:
    name, value = instruction.opname, instruction.argval
    match name:
        case "STORE_SUBSCR" | "STORE_SLICE":
            return True
        case "STORE_ATTR":
            return value in _ATTRIBUTES
        case "LOAD_GLOBAL" | "LOAD_ATTR" | "LOAD_METHOD":
            # `x.at[i]` is an attribute, `np.add.at(x, i)` a method, which newer Pythons mark.
            is_method = name == "LOAD_METHOD" or instruction.argrepr.startswith("NULL|self")
            return value in _FUNCTIONS or (is_method and value == "at")
    return False


def _augments(code: CodeType, instructions: Sequence[dis.Instruction]) -> bool:
    """Whether ``x += value`` may change an array that has another name.

    A sum that begins with a number, or with the result of an operator, and of which only operators
    and `return` read has no other name, so that to bind the name anew is the same.
    """
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    after = [*instructions[1:], None]
    for each, following in zip(instructions, after, strict=True):
        if each.opname == "BINARY_OP" and each.argrepr.endswith("="):
            if following is None or following.opname != "STORE_FAST" or following.argval in given:
                return True
            name = following.argval
            if _start(each) is None or not all(
                _keeps_alone(instructions, i)
                for i, x in enumerate(instructions)
                if "FAST" in x.opname and (x.argval == name or type(x.argval) is tuple)
            ):
                return True
    return False


def _keeps_alone(instructions: Sequence[dis.Instruction], i: int) -> bool:
    """Whether an instruction gives a local variable no value that has another name."""
    each, rest = instructions[i], instructions[i + 1 : i + 3]
    if each.opname.startswith("STORE_FAST"):
        before = instructions[i - 1]
        is_new = _is_operator(before) or before.opname == "LOAD_CONST"
        return i > 0 and is_new and not each.is_jump_target
    if not each.opname.startswith("LOAD_FAST") or not rest:
        return False
    reader = rest[-1] if rest[0].opname.startswith(("LOAD_FAST", "LOAD_CONST")) else rest[0]
    return (
        rest[0].opname == "RETURN_VALUE"
        or _is_operator(reader)
        or any(
            x.opname == "BINARY_OP" and x.argrepr.endswith("=") and _start(x) == _start(each)
            for x in instructions[i:]
        )
    )


def _is_operator(instruction: dis.Instruction) -> bool:
    """Whether an instruction makes a new array: since Python 3.14 ``x[i]`` is a `BINARY_OP`."""
    name, shown = instruction.opname, instruction.argrepr
    return name == "COMPARE_OP" or (name == "BINARY_OP" and not shown.startswith("["))


def _start(instruction: dis.Instruction) -> tuple[int, int] | None:
    """Line and column where the expression begins."""
    found = instruction.positions
    if found is None or found.lineno is None or found.col_offset is None:
        return None
    return found.lineno, found.col_offset


def _members(value: Any, names: Iterable[str]) -> Iterator[Any]:
    """Functions of a module, or of the class of an object, that a code may name."""
    places: list[Mapping[str, Any]]
    if isinstance(value, ModuleType):
        places = [vars(value)]
    else:
        kind = value if isinstance(value, type) else type(value)
        places = [vars(base) for base in kind.__mro__ if base.__module__ != "builtins"]
    for place in places:
        for name in names:
            found = place.get(name)
            if isinstance(found, FunctionType):
                yield found
