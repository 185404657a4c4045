"""Parts of the compiler that are imported when they are first needed, by any thread.

Python's locks of modules stay closed in a child that is forked while another thread imports. Nor
may a fork wait for that thread: an import runs code of others. So a child opens the locks of those
imports that this file has begun, and forgets the modules that were half executed.
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType
from typing import Any

from funcgrad.base.forking import in_children
from funcgrad.errors import CompilerError

_IMPORTING: list[int] = []
"""The threads that are importing something for this file."""


def load(name: str) -> ModuleType:
    """Import a module of the compiler.

    Args:
        name: Its full name.

    Raises:
        CompilerError: This thread is in the middle of that import.
    """
    me = threading.get_ident()
    _IMPORTING.append(me)
    try:
        module = importlib.import_module(name)
    finally:
        _IMPORTING.remove(me)
    if getattr(module.__spec__, "_initializing", False):
        raise CompilerError(
            "a compiled function was called by a module that the compiler imports. A file of yours "
            "has the name of a module of Python or of a library, such as glob.py: rename it."
        )
    return module


def _begin_anew() -> None:
    """In a child: forget what threads of the parent were importing."""
    me = threading.get_ident()
    lost = {thread for thread in _IMPORTING if thread != me}
    _IMPORTING[:] = [thread for thread in _IMPORTING if thread == me]
    locks: dict[str, Any] = sys.modules["_frozen_importlib"].__dict__["_module_locks"]
    for name, reference in list(locks.items()) if lost else []:
        lock = reference()
        if lock is not None and lock.owner in lost:
            del locks[name]
            sys.modules.pop(name, None)


in_children(_begin_anew)
