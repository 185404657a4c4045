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
import weakref
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from funcgrad.base.tables import keep
from funcgrad.observers.captures import codes_of, content_of, underlying
from funcgrad.observers.source import is_own

_FUNCTIONS = frozenset(
    ("copyto", "fill", "fill_diagonal", "partition", "place", "put", "put_along_axis", "putmask",
     "sort")
)  # fmt: skip
_ATTRIBUTES = frozenset(("flat", "imag", "real", "shape"))

_MAX_CODES = 4096
_MAX_FUNCTIONS = 256
_facts: dict[int, tuple[CodeType, bool, frozenset[str]]] = {}
_known: weakref.WeakKeyDictionary[FunctionType, bool] = weakref.WeakKeyDictionary()


def may_assign(function: Any) -> bool:
    """Whether a function, or one of the user's that it calls, may change arrays in place.

    Args:
        function: Any callable.
    """
    if type(function) is not FunctionType:
        return _search(function)
    found = _known.get(function)
    if found is None:
        found = _known[function] = _search(function)
    return found


def _search(function: Any) -> bool:
    waiting, seen = [function], set[int]()
    while waiting and len(seen) < _MAX_FUNCTIONS:
        value = waiting.pop()
        found = underlying(value)
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        cells = [content_of(cell) for cell in found.__closure__ or ()]
        if is_own(found.__code__):  # a transformation's, that has the user's function in a cell
            waiting += cells
            continue
        assigns, names = _facts_of(found.__code__)
        if assigns:
            return True
        owner = [value.__self__] if isinstance(value, MethodType) else []
        globals_ = found.__globals__
        for each in (*owner, *cells, *(globals_[name] for name in names if name in globals_)):
            waiting += (each, *_members(each, names))
    return False


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
    if isinstance(value, ModuleType):
        places = [vars(value)]
    elif isinstance(value, FunctionType | MethodType):
        return
    else:
        kind = value if isinstance(value, type) else type(value)
        places = [vars(base) for base in kind.__mro__ if base.__module__ != "builtins"]
    for place in places:
        for name in names:
            found = place.get(name)
            if isinstance(found, FunctionType):
                yield found
