"""Facets: optional attributes of primitives, declared in the modules that read them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Facet(Generic[T]):
    """An optional attribute or method of primitives, with a default for those without it.

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
        return getattr(primitive, self.name, self.default)
