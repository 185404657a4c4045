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
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from funcgrad.base.tables import keep
from funcgrad.observers.captures import codes_of, content_of, underlying
from funcgrad.observers.source import is_own

_FUNCTIONS = frozenset(
    ("__setitem__", "copyto", "fill", "fill_diagonal", "partition", "place", "put",
     "put_along_axis", "putmask", "sort")
)  # fmt: skip
_ATTRIBUTES = frozenset(("flat", "imag", "real", "shape"))

_MAX_CODES = 4096
_MAX_FUNCTIONS = 512
_MAX_ENTRIES = 64
"""Longer lists are taken for data."""

_facts: dict[int, tuple[CodeType, bool, frozenset[str]]] = {}


def may_assign(function: Any) -> bool:
    """Whether a function, or one of the user's that it calls, may change arrays in place.

    It is asked anew each time, which takes microseconds: names may stand for other functions.

    Args:
        function: Any callable.
    """
    waiting, seen = [function], dict[int, Any]()
    names, objects = set[str](), list[Any]()
    while waiting and len(seen) < _MAX_FUNCTIONS:
        value = waiting.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            found = None if isinstance(value, partial) else underlying(value)
            if found is None:
                waiting += _held_in(value)
                objects.append(value)
            else:
                if isinstance(value, MethodType):
                    objects.append(value.__self__)
                waiting += map(content_of, found.__closure__ or ())
                waiting += found.__defaults__ or ()
                # A transformation's has the user's function in a cell.
                if not is_own(found.__code__):
                    assigns, own = _facts_of(found.__code__)
                    if assigns:
                        return True
                    names |= own
                    waiting += (found.__globals__[x] for x in own if x in found.__globals__)
        if not waiting:
            methods = [x for each in objects for x in _members(each, names)]
            waiting += (x for x in methods if id(x) not in seen)
    return False


def _held_in(value: Any) -> Iterable[Any]:
    if isinstance(value, partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, dict):
        value = list(value.values())
    return value if isinstance(value, list | tuple) and len(value) <= _MAX_ENTRIES else ()


def _facts_of(code: CodeType) -> tuple[bool, frozenset[str]]:
    """Whether a code changes arrays, and the names that it uses."""
    known = _facts.get(id(code))
    if known is None:
        codes = list(codes_of(code))
        names = frozenset(name for each in codes for name in each.co_names)
        assigns = any(map(_assigns, codes))
        known = code, assigns, names
        keep(_facts, id(code), known, _MAX_CODES)
    return known[1:]


def _assigns(code: CodeType) -> bool:
    """Whether a code assigns to elements, or calls what does."""
    has_out = any(type(x) is tuple and "out" in x for x in code.co_consts)  # names of keywords
    return has_out or any(map(_changes, dis.get_instructions(code)))


def _changes(instruction: dis.Instruction) -> bool:
    name, value = instruction.opname, instruction.argval
    match name:
        case "STORE_SUBSCR" | "STORE_SLICE":
            return True
        case "BINARY_OP":
            return instruction.argrepr.endswith("=")
        case "STORE_ATTR":
            return value in _ATTRIBUTES
        case "LOAD_GLOBAL" | "LOAD_ATTR" | "LOAD_METHOD":
            # `x.at[i]` is an attribute, `np.add.at(x, i)` a method, which newer Pythons mark.
            is_method = name == "LOAD_METHOD" or instruction.argrepr.startswith("NULL|self")
            return value in _FUNCTIONS or (is_method and value == "at")
    return False


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
