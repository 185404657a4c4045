"""LLVM's library, mapped into the process while Python does something else.

It takes as long as a tenth of Numba's modules, and needs the interpreter for none of it: a call of
the C library from `ctypes` lets other threads run, which the import of a module does not.
"""

from __future__ import annotations

import _thread
import ctypes
import os
from contextlib import suppress
from functools import cache

from funcgrad.compiler.runtime.dependencies import files_of
from funcgrad.forking import held_by_forks

_LOCK = held_by_forks()
"""Held by the thread: a fork amid its work would leave a child whose own loader is half done."""


@cache
def preload() -> None:
    """Begin with it. llvmlite finds the library there; if it cannot be loaded, that says so."""
    if hasattr(os, "RTLD_NOW"):
        for path in files_of("llvmlite"):
            with suppress(RuntimeError):  # none can be started any more, as the process ends
                _thread.start_new_thread(_open, (path,))


def _open(path: str) -> None:
    with _LOCK:
        ctypes.CDLL(None).dlopen(os.fsencode(path), os.RTLD_NOW)
