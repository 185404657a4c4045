"""Calls of compiled functions, and why they need a new program again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import CodeType
from typing import Any

from funcgrad.api.compilation import Jitted, difference
from funcgrad.base.records import dataclass
from funcgrad.base.transformed import MadeOf
from funcgrad.core.observers import Observer, attach, detach
from funcgrad.errors import FuncgradError
from funcgrad.linting.rule import Findings, Place, Said
from funcgrad.observers.source import SourceLocation, current_location

RETRACES = 4
"""Traces of a compiled function that are too many."""
ARGUMENTS = (
    "arrays of one shape and dtype in each call (pad them, or put those of a shape together); "
    "numbers as arguments that are not static"
)
FUNCTIONS = "jit once, outside of what is called again and again, and what changes as an argument"


@dataclass(frozen=True)
class Call:
    """A call of a compiled function.

    Attributes:
        function: The function, kept so that its identity stays its own.
        key: What its program is looked up by.
        types: Its arguments with their types.
        place: The user's line.
    """

    function: Jitted
    key: Any
    types: list[str]
    place: Place


class CallLog(Observer):
    """Keeps the calls of compiled functions that look for a program."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def calling(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            key, types = function.signature(*args, **kwargs)
        except FuncgradError:  # the call says so
            return
        self.calls.append(Call(function, key, types, current_location()))


@contextmanager
def watching(observer: Observer) -> Iterator[None]:
    """Have an observer listen within a block."""
    attach(observer)
    try:
        yield
    finally:
        detach(observer)


def code_of(f: Any) -> CodeType | None:
    """The code of the user's function below transformations."""
    while isinstance(f, MadeOf):
        f = f.original
    return getattr(getattr(f, "__func__", f), "__code__", None)


def retraces(calls: Sequence[Call]) -> Findings:
    """Functions that need a program for each of many calls, with the cause."""
    by_code: dict[CodeType | None, list[Call]] = {}
    for call in calls:
        by_code.setdefault(code_of(call.function), []).append(call)
    for code, of_code in by_code.items():
        first = list({(id(call.function), call.key): call for call in of_code[::-1]}.values())[::-1]
        if code is not None and len(first) >= RETRACES:
            yield _said(code, first, len(of_code))


def retraces_so_far(function: Jitted) -> Iterator[Said]:
    """The same of the calls that a function had before."""
    info, code = function.cache_info(), code_of(function)
    if info.traces >= RETRACES and code is not None:
        rows = zip(info.reasons[1:], info.places[1:], strict=True)
        yield _of_reasons(code, [*rows], info.traces, info.calls)


def _said(code: CodeType, first: Sequence[Call], n_calls: int) -> Said:
    if len({id(call.function) for call in first}) > len(first) // 2:
        return (
            first[-1].place,
            f"{code.co_name} is made and compiled anew in {len(first)} of {n_calls} calls: each "
            "is another function for jit",
            FUNCTIONS,
        )
    rows = [(difference(a.types, b.types), b.place) for a, b in pairwise(first)]
    return _of_reasons(code, rows, len(first), n_calls)


def _of_reasons(
    code: CodeType, rows: Sequence[tuple[str, Any]], n_traces: int, n_calls: int
) -> Said:
    """The most frequent cause: the same arguments that change."""
    kinds = Counter(_changing(reason) for reason, _ in rows)
    kind, n = kinds.most_common(1)[0]
    reason, place = next(row for row in rows[::-1] if _changing(row[0]) == kind)
    return (
        place or SourceLocation(code, code.co_firstlineno),
        f"{code.co_name} needed {n_traces} programs in {n_calls} calls, {n} of them because of "
        f"{kind}: the last time {reason}",
        ARGUMENTS,
    )


def _changing(reason: str) -> str:
    """The arguments of a reason, without what they were and are."""
    names = [part.rpartition(" -> ")[0] or part for part in reason.split("; ")]
    return ", ".join(name.partition(": ")[0].partition(" = ")[0] for name in names)
