"""Locks that a forked child finds open.

A fork copies one thread, and the memory of all. A lock that another thread held would stay closed
in the child for ever. Nor may a fork wait for it in the parent: whoever forks may hold a lock that
the other thread waits for, within an import, a callback or a finalizer of somebody else's. So every
lock of this library is made anew in children whose parent's other threads held it, and what they
left half done is mended there.
"""

from __future__ import annotations

import os
import threading
import time
from _thread import RLock
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, overload

T = TypeVar("T")


class Lock(RLock):  # type: ignore[misc]  # final for the types, not for Python
    """A reentrant lock of this process, which forks do not wait for.

    It is entered and left by native code alone: Ctrl-C may arrive wherever Python runs, and a lock
    that were taken or left by a method in Python could stay closed for all other threads.

    Args: mend: Called in a child whose parent's other thread held the lock; by default there is
            nothing to mend, for what the lock guards is whole after every statement.
    """

    def __new__(cls, mend: Callable[[], Any] | None = None) -> Lock:
        return super().__new__(cls)

    def __init__(self, mend: Callable[[], Any] | None = None) -> None:
        self._mend = mend
        in_children(self._renew)

    def _renew(self) -> None:
        if self.acquire(blocking=False):  # free, or held by the thread that forked
            self.release()
            return
        self._at_fork_reinit()  # type: ignore[attr-defined]  # as logging does
        if self._mend is not None:
            self._mend()


def between_forks(function: Callable[..., T], *args: Any) -> T:
    """Call native code that a fork would catch with locks of its own held.

    A fork waits until such calls have ended, and none begins meanwhile. No Python code runs within
    them that could wait for the thread that forks; and after `MOST_SECONDS` a fork goes on anyway.

    Args:
        function: Releases the interpreter's lock, and calls nothing of Python.
        args: Its arguments.
    Returns: What it returns.
    """
    is_over = threading.Lock()
    is_over.acquire()
    try:
        with _Calls.entrance:
            _Calls.under_way[is_over] = threading.get_ident()
        return function(*args)
    finally:
        _Calls.under_way.pop(is_over, None)
        is_over.release()


MOST_SECONDS = 10.0
"""How long a fork waits at most."""


class _Calls:
    """The calls of `between_forks`."""

    entrance = threading.RLock()
    under_way: ClassVar[dict[Any, int]] = {}
    """For each a lock that is held until it is over, and the thread that makes it."""
    held: ClassVar[dict[int, list[Any]]] = {}
    """Locks that a forking thread has taken."""

    @classmethod
    def await_end(cls) -> None:
        deadline = time.monotonic() + MOST_SECONDS
        me = threading.get_ident()
        held = cls.held[me] = []

        def take(lock: Any) -> None:
            if lock.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
                held.append(lock)

        take(cls.entrance)
        for lock, thread in list(cls.under_way.items()):
            if thread != me:
                take(lock)

    @classmethod
    def go_on(cls) -> None:
        for lock in reversed(cls.held.pop(threading.get_ident())):
            lock.release()

    @classmethod
    def forget(cls) -> None:
        cls.entrance = threading.RLock()
        cls.under_way.clear()
        cls.held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_Calls.await_end, after_in_parent=_Calls.go_on, after_in_child=_Calls.forget
    )


def in_children(function: Callable[[], Any]) -> None:
    """Call a function in every forked child; Windows has none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class cached_property(Generic[T]):
    """Property that is computed once, without the lock that `functools.cached_property` has.

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
