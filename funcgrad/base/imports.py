"""Modules that are imported at their first use, by any thread: those of others, and our large ones.

Python's locks of modules stay closed in a child that is forked while another thread imports. Nor
may a fork wait for that thread: an import runs code of others. So a child opens the locks of those
imports that this file has begun, and forgets the modules that were half executed.

The name of the module is written out where it is loaded: the test of the import ladder reads it.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

from funcgrad.base.forking import in_children
from funcgrad.errors import LibraryError

_IMPORTING: list[int] = []
"""The threads that are importing something for this file."""


def load(name: str, missing: str = "") -> Any:
    """Import a module, or return it if that was done before.

    Args:
        name: Its full name.
        missing: Text of the error if it is not installed; by default that of Python.

    Raises:
        LibraryError: It is not installed, and ``missing`` says what that means.
        ImportError: Likewise, without ``missing``.
    """
    me = threading.get_ident()
    _IMPORTING.append(me)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if not missing:
            raise
        raise LibraryError(missing) from error
    finally:
        _IMPORTING.remove(me)


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
