"""Locks that a forked child finds open.

A fork copies one thread, and the memory of all. A lock that another thread held stays closed in the
child for ever, and what it guards is half done. So a fork waits for the locks of this library, in
the opposite order of their making: a module's own before those of the modules that it imports,
which is the order in which threads take them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


def held_by_forks() -> threading.RLock:
    """A lock that a fork takes before, and gives back after, in parent and child."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


def in_children(function: Callable[[], Any]) -> None:
    """Call a function in every forked child; Windows has none.

    Args:
        function: It takes nothing.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class cached_property(Generic[T]):
    """As `functools.cached_property`, which has a lock for all objects in Python 3.11.

    Two threads that ask at once may both compute it; both find what the last one has computed.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self.__doc__ = make.__doc__
        self.name = make.__name__

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: Any, owner: type | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = self.make(instance)
        instance.__dict__[self.name] = value
        return value
