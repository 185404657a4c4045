"""State of compiled functions: values that change behind their back, and programs for each call."""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from funcgrad.api.compilation import Jitted
from funcgrad.base.transformed import MadeOf
from funcgrad.linting.rule import Findings, rule
from funcgrad.linting.subject import Subject
from funcgrad.observers.source import SourceLocation, is_users

RETRACES = 4
"""Traces of a compiled function that are too many."""


@rule("changing-state", "note")
def changing(subject: Subject) -> Findings:
    """A global or an attribute that the function reads and that another function assigns."""
    for function, owner in _functions(subject.f):
        places = {"global": _readers(function.__code__, "LOAD_GLOBAL")}
        written = {"global": _stored(_of_module(function), "STORE_GLOBAL")}
        if owner is not None:
            places["attribute"] = _readers(function.__code__, "LOAD_ATTR", "LOAD_METHOD")
            written["attribute"] = _stored(_methods(owner, function), "STORE_ATTR")
        for kind, names in places.items():
            for name, line in names.items():
                if name in written[kind]:
                    yield (
                        SourceLocation(function.__code__, line),
                        f"the {kind} `{name}` is read here and assigned in {written[kind][name]}: "
                        "a compiled function keeps the value of its first call",
                        "an argument of the function in its place",
                    )


@rule("retraced", "note")
def retraced(subject: Subject) -> Findings:
    """A compiled function that was traced again and again, with the cause."""
    layer: Any = subject.f
    while isinstance(layer, MadeOf):
        if isinstance(layer, Jitted):
            info = layer.cache_info()
            if info.traces >= RETRACES:
                reason, n = Counter(info.reasons[1:]).most_common(1)[0]
                code = getattr(_plain(layer.original), "__code__", None)
                yield (
                    None if code is None else SourceLocation(code, code.co_firstlineno),
                    f"{info.traces} programs were traced for {info.calls} calls, {n} of them "
                    f"because: {reason}",
                    "arrays of one shape and dtype in each call; numbers as arguments that are not "
                    "static",
                )
        layer = layer.original


def _plain(f: Any) -> Any:
    """The function of the user's below transformations."""
    while isinstance(f, MadeOf):
        f = f.original
    return f


def _functions(f: Any) -> Iterator[tuple[FunctionType, type | None]]:
    """The function of the user's, and the class that it is a method of."""
    plain = _plain(f)
    owner = type(plain.__self__) if isinstance(plain, MethodType) else None
    function = plain.__func__ if isinstance(plain, MethodType) else plain
    if isinstance(function, FunctionType) and is_users(function.__code__):
        yield function, owner


def _of_module(function: FunctionType) -> Iterator[tuple[str, CodeType]]:
    """The functions of a module, and the methods of its classes."""
    for name, value in list(function.__globals__.items()):
        if isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            yield name, value.__code__
        elif isinstance(value, type) and value.__module__ == function.__module__:
            for inner, method in vars(value).items():
                if isinstance(method, FunctionType):
                    yield f"{name}.{inner}", method.__code__


def _methods(owner: type, function: FunctionType) -> Iterator[tuple[str, CodeType]]:
    for cls in owner.__mro__:
        for name, value in vars(cls).items():
            if isinstance(value, FunctionType) and value is not function and name != "__init__":
                yield f"{cls.__name__}.{name}", value.__code__


def _readers(code: CodeType, *names: str) -> dict[str, int]:
    """Names that code reads, and the first lines."""
    found: dict[str, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.starts_line is not None and instruction.positions is not None:
            line = instruction.positions.lineno or line
        if instruction.opname in names:
            found.setdefault(str(instruction.argval), line)
    return found


def _stored(codes: Iterable[tuple[str, CodeType]], name: str) -> dict[str, str]:
    """Names that functions assign, with one of the functions."""
    return {
        str(instruction.argval): f"`{function}`"
        for function, code in codes
        for instruction in dis.get_instructions(code)
        if instruction.opname == name
    }
