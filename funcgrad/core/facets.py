"""Facets: what a primitive may say besides its six rules, declared where it is asked for."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Facet(Generic[T]):
    """An optional attribute or method of primitives, with what holds for those that have none.

    Args:
        name: The attribute.
        default: Its value for primitives without it.

    Example:
        >>> import funcgrad as fg
        >>> from funcgrad.core.facets import Facet
        >>> is_fast = Facet("is_fast", True)
        >>> class Slow(fg.extend.Primitive):
        ...     is_fast = False
        >>> is_fast(Slow()), is_fast(fg.extend.Primitive())
        (False, True)
    """

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: T) -> None:
        self.name = name
        self.default = default

    def __call__(self, primitive: Any) -> T:
        found: T = getattr(primitive, self.name, self.default)
        return found
