"""Functions that close over traced values, made functions of those values.

``lift : (b -> c) that uses a -> ((a, b) -> c)``

A custom rule runs at another time, and below another transformation, than the function it was
written for; the traced values that it closes over mean nothing there. So they are found when the
function is called, become inputs of the call, and are replaced by what the inputs are when a rule
runs. The replacement is a trace: whatever operation meets a closed-over value gets its stand-in.

Values are found in closures, partial applications, bound methods, containers and attributes, not in
global variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from funcgrad.core.primitive import Primitive
from funcgrad.core.program import Program
from funcgrad.core.trace import Trace, Tracer, current_trace, run_under

T = TypeVar("T")

# Searching ends here: a closure may hold an object from which the whole program can be reached.
_MAX_VISITED = 10_000
_ATOMS = (
    bool, int, float, complex, str, bytes, np.ndarray, np.generic, np.ufunc, np.dtype, type,
    ModuleType, BuiltinFunctionType, Trace, Program, Primitive,
)  # fmt: skip


class LiftedTrace(Trace):
    """Replaces closed-over values by their stand-ins, values of the parent trace.

    Args:
        parent: Receives every operation.
        stand_ins: From the identity of a closed-over tracer to its stand-in.
    """

    __slots__ = ("stand_ins",)

    def __init__(self, parent: Trace, stand_ins: dict[int, Any]) -> None:
        super().__init__(parent, parent.what)
        self.stand_ins = stand_ins

    def process(self, primitive: Any, args: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        return self.parent.process(primitive, tuple(map(self.replace, args)))

    def replace(self, value: Any) -> Any:
        """The stand-in of a closed-over tracer; any other value itself."""
        return self.stand_ins.get(id(value), value) if isinstance(value, Tracer) else value


class Captured(list[Tracer]):
    """The traced values that functions hold, and the variables that they close over.

    A variable may be given another value once the call is over, before a rule runs.

    Attributes:
        bound: Variables with their values, but for numbers and what else cannot hold traced values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bound: list[tuple[CellType, Any]] = []

    def joined(self, other: Captured) -> Captured:
        """Join these and those of other functions."""
        made = Captured()
        made.extend([*self, *other])
        made.bound = [*self.bound, *other.bound]
        return made

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A block in which the variables have the values that they had, unless it assigns some."""
        changed = []
        for cell, value in self.bound:
            now = _content_of(cell)
            if now is not value:
                changed.append((cell, value, now))
                cell.cell_contents = value
        try:
            yield
        finally:
            for cell, value, now in changed:
                if _content_of(cell) is not value:
                    continue
                if now is _NOTHING:
                    del cell.cell_contents
                else:
                    cell.cell_contents = now


_NOTHING = object()


def _content_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable was deleted, or has not been assigned yet
        return _NOTHING


class HoldsFunctions:
    """Base of objects that call functions of the user, and also hold what is none of the user's."""

    def functions(self) -> Iterable[Any]:
        """The functions in which to look for traced values."""
        raise NotImplementedError


def run_lifted(
    captured: Captured, values: Sequence[Any], function: Callable[[], Sequence[Any]]
) -> list[Any]:
    """Flat results of ``function``, where ``values`` stand in for ``captured``."""
    if not captured:
        return list(function())
    stand_ins = {id(tracer): value for tracer, value in zip(captured, values, strict=True)}
    trace = LiftedTrace(current_trace(), stand_ins)
    with _usable(captured), captured.restored():
        return [trace.replace(out) for out in run_under(trace, function)]


@contextmanager
def _usable(tracers: Sequence[Tracer]) -> Iterator[None]:
    """Let tracers be used within a block, also those whose transformation is over."""
    finished = {id(t.owner): t.owner for t in tracers if not t.owner.is_live}.values()
    for owner in finished:
        owner.is_live = True
    try:
        yield
    finally:
        for owner in finished:
            owner.is_live = False


def tracers_in(*roots: Any) -> Captured:
    """The usable tracers that functions and containers hold, each once, in a fixed order."""
    found: dict[int, Tracer] = {}
    captured = Captured()
    # Visited objects are kept, so that no identity is used twice.
    visited: dict[int, Any] = {}
    pending = list(reversed(roots))
    while pending and len(visited) < _MAX_VISITED:
        item = pending.pop()
        if item is None or isinstance(item, _ATOMS) or id(item) in visited:
            continue
        visited[id(item)] = item
        if isinstance(item, Tracer):
            if item.owner.is_live:
                found[id(item)] = item
            continue
        if isinstance(item, FunctionType):
            captured.bound += _bound_by(item)
        pending.extend(reversed(list(_parts_of(item))))
    captured.extend(found.values())
    return captured


def _bound_by(function: FunctionType) -> Iterator[tuple[CellType, Any]]:
    """Names and values of the variables that a function closes over."""
    for cell in function.__closure__ or ():
        value = _content_of(cell)
        if value is not None and value is not _NOTHING and not isinstance(value, _ATOMS):
            yield cell, value


def _parts_of(item: Any) -> Iterable[Any]:
    if isinstance(item, FunctionType):
        return _parts_of_function(item)
    if isinstance(item, MethodType):
        return (item.__self__, item.__func__)
    if isinstance(item, partial):
        return (item.func, *item.args, *item.keywords.values())
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if isinstance(item, HoldsFunctions):
        return item.functions()
    if callable(item) and hasattr(item, "__wrapped__"):
        # Ignore the rest of such an object: caches with the arguments of other calls.
        return (item.__wrapped__,)
    return _attributes_of(item)


def _parts_of_function(function: FunctionType) -> Iterable[Any]:
    yield from (value for _, value in _bound_by(function))
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from function.__dict__.values()


def _attributes_of(item: Any) -> Iterable[Any]:
    kind: type = type(item)
    for name in _slots_of(kind):
        if hasattr(item, name):
            yield getattr(item, name)
    yield from getattr(item, "__dict__", {}).values()


@lru_cache(4096)
def _slots_of(kind: type) -> tuple[str, ...]:
    """Names of the slots that instances of a class have."""
    slots = (_as_tuple(base.__dict__.get("__slots__", ())) for base in kind.__mro__)
    return tuple(name for names in slots for name in names if not name.startswith("__"))


def _as_tuple(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)
