"""Threads with as much stack as their work needs, whatever the program gives to its own.

`threading.stack_size` is a setting of the whole process, which other threads see, and which a
program may have set to little: kernels need `compiler.abi.MOST_STACK`, LLVM and the compiler's
Python need more. So such work is done by threads that are made with a size of their own.
"""

from __future__ import annotations

import _thread
import ctypes
import itertools
import platform
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

SIZE = 1 << 23
"""Bytes of stack of such a thread, of which only those exist that are used: Linux's default."""

ENOUGH = 1 << 19
"""A thread with so much stack does such work itself."""

_ATTRIBUTES = 256
"""Bytes that are enough for what C calls ``pthread_attr_t``."""


@cache
def _library() -> Any:
    """The C library, if its threads are POSIX's; else nothing."""
    if sys.platform == "win32":
        return None
    library = ctypes.CDLL(None)
    names = ("attr_init", "attr_setstacksize", "attr_destroy", "create", "detach")
    return library if all(hasattr(library, f"pthread_{name}") for name in names) else None


def start(function: Callable[[], object]) -> None:
    """Call a function in a thread with `SIZE` bytes of stack, for which nobody waits.

    Where threads are not POSIX's, it has as much stack as the other threads of the process.

    Raises: RuntimeError: No thread can be started: because the process ends, for example.
    """
    library = _library()
    if library is None:
        _thread.start_new_thread(function, ())
        return
    if sys.is_finalizing():
        raise RuntimeError("no thread can be started while the interpreter ends")
    number = next(_numbers)
    _waiting[number] = function
    attributes = (ctypes.c_longdouble * (_ATTRIBUTES // 16))()
    thread = ctypes.c_void_p()
    library.pthread_attr_init(attributes)
    library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(SIZE))
    failed = library.pthread_create(
        ctypes.byref(thread), attributes, _begin, ctypes.c_void_p(number)
    )
    library.pthread_attr_destroy(attributes)
    if failed:
        del _waiting[number]
        raise RuntimeError(f"no thread can be started: the C library's error {failed}")
    library.pthread_detach(thread)


_numbers = itertools.count(1)
_waiting: dict[int, Callable[[], object]] = {}
"""Functions of threads that were started and have not begun."""


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def _begin(number: int) -> None:
    """Run the function of a new thread. There is one entry, as none may end in itself."""
    _waiting.pop(number)()


def with_room(function: Callable[[], T]) -> T:
    """Call a function that needs more stack than this thread may have, and return its result.

    Where this thread has little, another one calls it, with the same context variables, while this
    one waits.

    Raises: BaseException: What it raises.
    """
    return function() if has_room() else elsewhere(function, or_here=True)


def has_room() -> bool:
    """Whether this thread has as much stack as such work needs."""
    if _OWN.has_room is None:
        size = thread_size()
        _OWN.has_room = size is None or size >= ENOUGH
    return _OWN.has_room


def elsewhere(function: Callable[[], T], or_here: bool = False) -> T:
    """Call a function in another thread, with the same context variables; return its result.

    Args:
        function: What to call.
        or_here: Whether this thread calls it where no other can be started.

    Raises:
        BaseException: What it raises.
        RuntimeError: No thread can be started.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    context = copy_context()

    def work() -> None:
        try:
            results.append(context.run(function))
        except BaseException as error:  # raised where it is waited for
            errors.append(error)
        finally:
            done.set()

    try:
        start(work)
    except RuntimeError:
        if not or_here:
            raise
        return function()
    done.wait()
    if errors:
        raise errors[0]
    return results[0]


class _Own(threading.local):
    """Start and length of this thread's stack, if they are known."""

    bounds: tuple[int, int] | None = None
    is_known = False
    has_room: bool | None = None


_OWN = _Own()


def thread_size() -> int | None:
    """Bytes of stack that this thread has been made with, or ``None`` where nobody says so.

    The main thread's stack grows.
    """
    bounds = _bounds()
    return None if bounds is None else bounds[1]


def _bounds() -> tuple[int, int] | None:
    if not _OWN.is_known:
        _OWN.bounds = _found_bounds()
        _OWN.is_known = True
    return _OWN.bounds


def _found_bounds() -> tuple[int, int] | None:
    """The lowest address of this thread's stack, and its bytes."""
    library = _library()
    if threading.get_ident() == threading.main_thread().ident:
        return None
    if library is None or not hasattr(library, "pthread_getattr_np"):
        return None
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    attributes = (ctypes.c_longdouble * (_ATTRIBUTES // 16))()
    if library.pthread_getattr_np(ctypes.c_void_p(threading.get_ident()), attributes):
        return None
    library.pthread_attr_getstack(attributes, ctypes.byref(start), ctypes.byref(size))
    library.pthread_attr_destroy(attributes)
    return start.value or 0, size.value


_POINTER = {"x86_64": 160, "aarch64": 432}
"""Bytes from the beginning of C's ``ucontext_t`` to the stack pointer, on Linux."""

_CONTEXT = 1 << 13
"""Bytes that are enough for one."""


def left() -> int | None:
    """Bytes of stack that this thread has left; ``None`` where it has enough, or nobody knows."""
    bounds = _bounds()
    if bounds is None or bounds[1] >= ENOUGH:
        return None
    library, place = _library(), _POINTER.get(platform.machine())
    if place is None or not hasattr(library, "getcontext"):
        return None
    context = (ctypes.c_longdouble * (_CONTEXT // 16))()
    if library.getcontext(context):
        return None
    found = ctypes.c_uint64.from_buffer(context, place).value - bounds[0]
    return found if 0 < found < bounds[1] else None
