"""Named axes: which are in scope, and which one a batch rule is mapping now.

An axis is an array's, mapped by `vmap`, or one of processes (`Ranks`), each of which computes its
own lane. The name of the latter in programs is the object that knows the processes.

The scope is that of the user's functions: collectives look up lengths in it when they are called.
What is being mapped concerns rules: a rule of a primitive that holds programs with collectives maps
these programs under the name, however deep they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from funcgrad.core.observers import current_location
from funcgrad.errors import AxisNameError

Axes = tuple[tuple[Hashable, int], ...]


class Ranks:
    """An axis whose lanes are processes: the name of such an axis in programs.

    Attributes:
        label: What users call it.
        size: The number of processes.
        index: The number of this one.
        deterministic: Whether sums are formed in an order that does not depend on the machine.
        has_background: Whether compiled programs may move messages, and compute while they are
            under way.

    Subclasses exchange arrays: contiguous ones of equal shapes in all processes.
    """

    label: Hashable
    size: int
    index: int
    deterministic: bool
    has_background: bool = False

    def total(self, x: Any) -> Any:
        """The sum of the arrays of all processes."""
        raise NotImplementedError

    def gathered(self, x: Any) -> Any:
        """The arrays of all processes, stacked."""
        raise NotImplementedError

    def part_of_total(self, x: Any) -> Any:
        """The element of the sum, along its first axis, that has the number of this process."""
        raise NotImplementedError

    def exchanged(self, x: Any) -> Any:
        """Element ``i`` goes to process ``i``; what arrives, in the order of its senders."""
        raise NotImplementedError

    def passed(self, x: Any, destination: int | None, source: int | None) -> Any:
        """What ``source`` sends here while this process sends to ``destination``."""
        raise NotImplementedError

    def native(self, operation: str, *details: Any) -> Any:
        """How native code calls one of the operations above; ``None`` where it cannot."""
        return None

    def failure(self, operation: str, code: int) -> Exception:
        """The error for a call of native code that has failed."""
        raise NotImplementedError

    def demand_agreement(self, value: int, what: str) -> None:
        """Raise an error, in all processes, unless they give the same number."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return repr(self.label)


_scope: ContextVar[Axes] = ContextVar("funcgrad_axes", default=())
_mapped: ContextVar[tuple[Hashable, int] | None] = ContextVar("funcgrad_mapped", default=None)

axes_in_scope = _scope.get
"""Names and lengths of the named axes around the current code, outermost first."""

mapped_axis = _mapped.get
"""Name and length of the axis that the current batch rule maps, if it has a name."""


def mapped_name() -> Hashable:
    """Name of the axis that the current batch rule maps, or ``None``."""
    axis = _mapped.get()
    return None if axis is None else axis[0]


MAPPED_NOW = object()
"""Stands for the name of `mapped_axis`, where a name is given."""


@contextmanager
def axis_scope(name: Hashable, size: int) -> Iterator[None]:
    """Bring a named axis into scope (none if the name is ``None``); nothing is being mapped."""
    scope = _scope.get() if name is None else (*_scope.get(), (name, size))
    tokens = _scope.set(scope), _mapped.set(None)
    try:
        yield
    finally:
        _scope.reset(tokens[0])
        _mapped.reset(tokens[1])


@contextmanager
def mapping_axis(name: Hashable, size: int) -> Iterator[None]:
    """Run a batch rule that maps a named axis."""
    token = _mapped.set((name, size))
    try:
        yield
    finally:
        _mapped.reset(token)


def named_axis(name: Hashable, operation: str) -> tuple[Hashable, int]:
    """The innermost axis of this name, as programs call it, and its length.

    Raises:
        AxisNameError: If there is none.
    """
    for known, size in reversed(_scope.get()):
        if known == name or (isinstance(known, Ranks) and known.label == name):
            return known, size
    raise unbound_axis((name,), operation)


def ranks_in(names: Iterable[Hashable]) -> frozenset[Ranks]:
    """Those of the axes that are processes."""
    return frozenset(name for name in names if isinstance(name, Ranks))


def demand_agreement(names: Iterable[Hashable], value: int, what: str) -> None:
    """Raise an error unless a number is equal in all processes of the axes.

    Args:
        names: Of axes, of which those of arrays do not matter.
        value: The number, on which it depends whether processes meet in collectives.
        what: What messages call it.

    Raises:
        DistributedError: In all processes.
    """
    for axis in sorted(ranks_in(names), key=lambda axis: str(axis.label)):
        axis.demand_agreement(value, what)


def unbound_axis(names: Sequence[Any], operation: str) -> AxisNameError:
    """The error for a collective along an axis that is not mapped."""
    scope = ", ".join(f"{name!r} (length {size})" for name, size in _scope.get()) or "none"
    listed = ", ".join(map(repr, names))
    location = current_location()
    place = f"\n  at            {location}" if location is not None else ""
    return AxisNameError(
        f"{operation}: no mapped axis is named {listed} here.{place}\n"
        f"  in scope      {scope}\n"
        f"Call the function inside vmap(f, axis_name={names[0]!r}), or use a name that is in scope."
    )
