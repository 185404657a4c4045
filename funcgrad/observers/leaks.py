"""Traced values that outlive their transformation, found where it ends.

Without this a leak is only noticed when the value is used.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, FunctionType, ModuleType
from typing import Any
from weakref import WeakSet

from funcgrad.core.observers import Observer, attach, detach
from funcgrad.core.trace import Trace, Tracer
from funcgrad.errors import UnexpectedTracerError


class KeepsTracers:
    """Base of parts of programs that refer to traced values for a good reason.

    Functions with rules close over such values; programs put others in their place before they call
    the functions. That they stay alive is no leak.
    """

    captured: Sequence[Tracer] = ()
    """The values."""


class _Search:
    """A search for leaks."""

    def __init__(self) -> None:
        self.keepers: WeakSet[KeepsTracers] = WeakSet()


_search: ContextVar[_Search | None] = ContextVar("funcgrad_checking_leaks", default=None)
"""`None` if leaks are not looked for."""
_MAX_DEPTH = 4


@contextmanager
def checking_leaks(enable: bool = True) -> Iterator[None]:
    """Raise at the end of every transformation of which a traced value is still alive.

    Looking for such values is to traverse all objects of the process, so this is for finding a
    known leak.

    Args: enable: Whether to check.
    Raises: UnexpectedTracerError: Where a transformation ends; it says what holds the value.

    Example:
        >>> stash = []
        >>> with fg.checking_leaks():
        ...     try:
        ...         fg.jit(lambda x: stash.append(x) or x)(1.0)
        ...     except fg.errors.UnexpectedTracerError as error:
        ...         print(str(error).splitlines()[0])
        jit(<lambda>) has ended, but a traced ~f64[] of it is still alive.
    """
    token = _search.set(_Search() if enable else None)
    attach(_LEAKS)
    try:
        yield
    finally:
        detach(_LEAKS)
        _search.reset(token)


def excuse(keeper: KeepsTracers) -> None:
    """While leaks are looked for: do not take for one what this object keeps."""
    search = _search.get()
    if search is not None and keeper.captured:
        search.keepers.add(keeper)


def _kept(keepers: Iterable[KeepsTracers]) -> set[int]:
    """Identities of the values that objects keep, and of those that these consist of."""
    pending: list[Any] = [tracer for keeper in keepers for tracer in keeper.captured]
    found: set[int] = set()
    while pending:
        tracer = pending.pop()
        if id(tracer) not in found:
            found.add(id(tracer))
            names = [n for kind in type(tracer).__mro__ for n in getattr(kind, "__slots__", ())]
            parts = [getattr(tracer, name, None) for name in names]
            pending += [part for part in parts if isinstance(part, Tracer)]
    return found


class _Leaks(Observer):
    """The observer, attached while a block looks for leaks in any thread."""

    def ended(self, *traces: Trace) -> None:
        check_ended(*traces)


_LEAKS = _Leaks()


def check_ended(*traces: Trace) -> None:
    """Look for live values of traces that have ended, if that is asked for."""
    search = _search.get()
    if search is None:
        return
    gc.collect()
    kept = _kept(list(search.keepers))
    leaked = [
        x
        for x in gc.get_objects()
        if issubclass(type(x), Tracer) and _is_owned(x, traces) and id(x) not in kept
    ]
    if leaked:
        raise UnexpectedTracerError(_message(leaked[0], len(leaked)))


def _is_owned(tracer: Tracer, traces: tuple[Trace, ...]) -> bool:
    return any(getattr(tracer, "owner", None) is trace for trace in traces)


def _message(tracer: Tracer, count: int) -> str:
    lines = [f"{tracer.owner.what} has ended, but a traced {tracer.aval} of it is still alive."]
    lines += tracer.origin()
    unknown = "a local variable or a container"
    if gc.get_freeze_count():
        unknown += ", or an object that gc.freeze hides"
    lines.append(f"  held by       {_holder(tracer) or unknown}")
    if count > 1:
        lines.append(f"  in all        {count} such values")
    lines.append(
        "A traced function must not store values in globals, attributes or lists that outlive the "
        "call: return them instead (grad and value_and_grad pass extra results through has_aux)."
    )
    return "\n".join(lines)


def _holder(value: Any) -> str | None:
    """Name the object that keeps a value alive, as far as it has a name.

    To ask who refers to something is to traverse all objects of the process, which may be many. So
    it is asked for all objects of a level at once.
    """
    level, known = [value], {id(value)}
    words = {id(value): ""}
    for _ in range(_MAX_DEPTH + 1):
        known.add(id(level))
        referrers = [r for r in gc.get_referrers(*level) if id(r) not in known and _is_holder(r)]
        outer: dict[int, str] = {}
        names = _names_of_cells([r for r in referrers if isinstance(r, CellType)])
        for referrer in referrers:
            held = next((x for x in gc.get_referents(referrer) if id(x) in words), None)
            if held is None:  # it has let go of it meanwhile
                continue
            name = names.get(id(referrer)) or _named(referrer, held)
            if name is not None:
                return words[id(held)] + name
            known.add(id(referrer))
            outer[id(referrer)] = f"{words[id(held)]}a {type(referrer).__name__} in "
        level, words = [r for r in referrers if id(r) in outer], outer
    return None


def _is_holder(referrer: Any) -> bool:
    return isinstance(referrer, dict | list | tuple | set | CellType | FunctionType) or hasattr(
        referrer, "__dict__"
    )


def _named(referrer: Any, value: Any) -> str | None:
    if isinstance(referrer, dict):
        for name, module in list(sys.modules.items()):
            if isinstance(module, ModuleType) and vars(module) is referrer:
                keys = [k for k, v in referrer.items() if v is value]
                return f"the global variable `{keys[0] if keys else '?'}` of {name}"
        return None
    if isinstance(referrer, list | tuple | set | CellType | FunctionType):
        return None
    names = [k for k, v in vars(referrer).items() if v is value]
    return f"the attribute `{names[0]}` of a {type(referrer).__name__}" if names else None


def _names_of_cells(cells: list[CellType]) -> dict[int, str]:
    """Variables that functions close over, by the identities of their cells."""
    if not cells:
        return {}
    wanted = {id(cell) for cell in cells}
    closures = [x for x in gc.get_referrers(*cells) if isinstance(x, tuple)]
    found = {}
    for function in gc.get_referrers(*closures) if closures else ():
        if isinstance(function, FunctionType):
            for name, cell in zip(
                function.__code__.co_freevars, function.__closure__ or (), strict=True
            ):
                if id(cell) in wanted:
                    found[id(cell)] = f"the variable `{name}` of {function.__qualname__}"
    return found
