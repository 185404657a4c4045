"""LLVM's library, mapped into the process while Python does something else.

It needs the interpreter for none of that: a call of the C library from `ctypes` lets other threads
run, which the import of a module does not.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache, partial

from funcgrad.base.forking import between_forks
from funcgrad.base.stacks import start
from funcgrad.compiler.runtime.dependencies import llvm_files


@cache
def preload() -> None:
    """Begin with it. llvmlite finds the library there; if it cannot be loaded, that says so."""
    if hasattr(os, "RTLD_NOW"):
        for path in llvm_files():
            with suppress(RuntimeError):  # none can be started any more, as the process ends
                start(partial(_open, path))


def _open(path: str) -> None:
    between_forks(ctypes.CDLL(None).dlopen, os.fsencode(path), os.RTLD_NOW)
