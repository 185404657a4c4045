"""Places in objects, lists and dictionaries that statements assign: variables of their own.

A statement with a traced condition (`funcgrad.api.branching`) may assign ``self.x``, ``state["x"]``
or ``values[0]`` as it may assign ``x``, if the place is there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from funcgrad.base.records import dataclass


@dataclass(frozen=True)
class Attribute:
    """An attribute of an object.

    Attributes:
        name: As it is written.
        owner: The object.
        attribute: Its name there.
    """

    name: str
    owner: Any
    attribute: str

    def read(self) -> Any:
        """The value there."""
        return getattr(self.owner, self.attribute)

    def write(self, value: Any) -> None:
        """Replace the value."""
        setattr(self.owner, self.attribute, value)


@dataclass(frozen=True)
class Item:
    """An item of a list or dictionary.

    Attributes:
        name: As it is written.
        owner: The container.
        key: Its key or number.
    """

    name: str
    owner: Any
    key: Any

    def read(self) -> Any:
        """The value there."""
        return self.owner[self.key]

    def write(self, value: Any) -> None:
        """Replace the value."""
        self.owner[self.key] = value


Place = Attribute | Item


def attribute(name: str, values: Mapping[str, Any]) -> Attribute | None:
    """The attribute that a dotted name means, if it is there.

    Args:
        name: The name, such as ``self.x``.
        values: Values of variables.
    """
    first, *parts, last = name.split(".")
    if first not in values or not all(map(str.isidentifier, (first, *parts, last))):
        return None
    owner = values[first]
    for part in parts:
        owner = getattr(owner, part, None)
    return Attribute(name, owner, last) if hasattr(owner, last) else None


def containers(values: Iterable[tuple[str, Any]]) -> list[tuple[str, Any, Any]]:
    """The lists, dictionaries and sets among values and in each other, with copies of them.

    Args: values: What they are called, and the values.
    """
    found: dict[int, tuple[str, Any, Any]] = {}
    pending = list(values)
    while pending:
        name, value = pending.pop()
        if isinstance(value, list | dict | set) and id(value) not in found:
            found[id(value)] = name, value, value.copy()
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            pending += [(f"{name}[{key!r}]", item) for key, item in pairs]
    return list(found.values())


def changed_items(name: str, owner: Any, before: Any) -> list[Item] | None:
    """The items of a list or dictionary that have changed; ``None`` if others have come or gone.

    Args:
        name: What it is called.
        owner: The container.
        before: A copy of it as it was.
    """
    if isinstance(owner, set) or len(owner) != len(before):
        return None if owner != before else []
    keys = range(len(owner)) if isinstance(owner, list) else owner
    if isinstance(owner, dict) and [*owner] != [*before]:
        return None
    return [Item(f"{name}[{key!r}]", owner, key) for key in keys if owner[key] is not before[key]]


def items(containers: Iterable[tuple[str, Any, Any]]) -> Iterator[Item]:
    """The items of lists and dictionaries.

    Args: containers: As of `containers`.
    """
    for name, owner, _ in containers:
        if not isinstance(owner, set):
            for key in range(len(owner)) if isinstance(owner, list) else owner:
                yield Item(f"{name}[{key!r}]", owner, key)
