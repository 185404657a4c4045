"""Named axes: which are in scope, and which one a batch rule is mapping now.

A name is anything that has a hash; an object with a ``label`` (such as one that knows processes,
each of which computes its own lane) is also found by it.

The scope is that of the user's functions: collectives look up lengths in it when they are called.
What is being mapped concerns rules: a rule of a primitive that holds programs with collectives maps
these programs under the name, however deep they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from funcgrad.core.observers import current_location, describe_location
from funcgrad.errors import AxisNameError

Axes = tuple[tuple[Hashable, int], ...]

_scope: ContextVar[Axes] = ContextVar("funcgrad_axes", default=())
_mapped: ContextVar[tuple[Hashable, int] | None] = ContextVar("funcgrad_mapped", default=None)


class DividedAxis:
    """Base of the names of axes of a mesh, whose lanes may be shared out among processes.

    A lane is one of the calls that are mapped along an axis, with its slice of each argument.
    A value that is not mapped along such an axis is equal in all processes; of a mapped value a
    process has its own lanes. The methods are the collectives that derivatives need between the two
    (`higher_order/mesh_lanes.py` implements them).

    Attributes:
        label: Its name in the user's program.
        size: The number of lanes in all processes.
        n_own: The number of lanes in this one.
        is_divided: Whether there is more than one process.
        is_tracked: Whether cotangents vary along the axis only where their primals do, which
            `restored` and `varied_like` ensure.
        ranks: The name of the axis of the processes; `None` if this one has all lanes.
    """

    label: Hashable
    size: int
    n_own: int
    is_divided: bool
    is_tracked: bool
    ranks: Any

    def trace(self, parent: Any, what: str, size: int, is_weak: bool) -> Any:
        """The trace that maps a function over the lanes of this process."""
        raise NotImplementedError

    def varied(self, x: Any) -> Any:
        """A value that is equal in all processes, as one that varies between lanes."""
        raise NotImplementedError

    def total(self, x: Any) -> Any:
        """The sum of the values of all processes."""
        raise NotImplementedError

    def restored(self, ct: Any, primal: Any) -> Any:
        """Cotangent of a primal that is equal in all lanes: the sum of the lanes' cotangents."""
        raise NotImplementedError

    def varied_like(self, ct: Any, out: Any) -> Any:
        """Cotangent of a result that varies between lanes: one for each lane."""
        raise NotImplementedError


axes_in_scope = _scope.get
"""Names and lengths of the named axes around the current code, outermost first."""

mapped_axis = _mapped.get
"""Name and length of the axis that the current batch rule maps, if it has a name."""


def mapped_name() -> Hashable:
    """Name of the axis that the current batch rule maps, or ``None``."""
    return (_mapped.get() or (None,))[0]


MAPPED_NOW = object()
"""Default of parameters that take the name of an axis: the name of `mapped_axis`."""


def divided_axis(name: Hashable = MAPPED_NOW) -> DividedAxis | None:
    """The axis of this name, by default that of `mapped_axis`, if it is of several processes."""
    name = mapped_name() if name is MAPPED_NOW else name
    return name if isinstance(name, DividedAxis) and name.is_divided else None


def tracked_axes() -> list[DividedAxis]:
    """The axes in scope along which cotangents are equal in as many lanes as their primals."""
    return [x for x, _ in _scope.get() if isinstance(x, DividedAxis) and x.is_tracked]


@contextmanager
def _within(scope: Axes, mapped: tuple[Hashable, int] | None) -> Iterator[None]:
    tokens = _scope.set(scope), _mapped.set(mapped)
    try:
        yield
    finally:
        _scope.reset(tokens[0])
        _mapped.reset(tokens[1])


def axis_scope(name: Hashable, size: int) -> AbstractContextManager[None]:
    """Bring a named axis into scope (none if the name is ``None``); nothing is being mapped."""
    return _within(_scope.get() if name is None else (*_scope.get(), (name, size)), None)


def mapping_axis(name: Hashable, size: int) -> AbstractContextManager[None]:
    """Run a batch rule that maps an axis, which may have a name.

    An axis of a mesh is out of scope inside the rule, which sees its lanes as an array.
    """
    return _within(_around(name) if isinstance(name, DividedAxis) else _scope.get(), (name, size))


def outside_axis(name: Hashable) -> AbstractContextManager[None]:
    """Leave an axis for an operation that is the same in all its lanes."""
    return _within(_around(name), _mapped.get())


def _around(name: Hashable) -> Axes:
    """The axes around the innermost one of this name."""
    scope = _scope.get()
    names = [known for known, _ in scope]
    return scope[: len(names) - 1 - names[::-1].index(name)] if name in names else scope


def named_axis(name: Hashable, operation: str) -> tuple[Hashable, int]:
    """The innermost axis of this name, as programs call it, and its length.

    Raises: AxisNameError: If there is none.
    """
    for known, size in reversed(_scope.get()):
        if known == name or getattr(known, "label", None) == name:
            return known, size
    raise unbound_axis((name,), operation)


def unbound_axis(names: Sequence[Any], operation: str) -> AxisNameError:
    """The error for a collective along an axis that is not mapped."""
    scope = ", ".join(f"{name!r} (length {size})" for name, size in _scope.get()) or "none"
    listed = ", ".join(map(repr, names))
    place = "".join(f"\n{line}" for line in describe_location(current_location(), "at"))
    return AxisNameError(
        f"{operation}: no mapped axis is named {listed} here.{place}\n"
        f"  in scope      {scope}\n"
        f"Call the function inside vmap(f, axis_name={names[0]!r}), or use a name that is in scope."
    )
