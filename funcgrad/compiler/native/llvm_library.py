"""LLVM's library as llvmlite brings it, without llvmlite's Python.

To import that takes four times as long as to load the library. What is called here are functions of
the library, by their names without ``LLVMPY_``; llvmlite does not promise them, and with a release
of it that was not tested `llvmlite_path` takes their place.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite.utils import get_library_name

from funcgrad.base.forking import between_forks


class Made(ctypes.c_void_p):
    """Something that LLVM has made."""


class Library:
    """The functions of llvmlite's library.

    Args: path: Its file.
    """

    def __init__(self, path: str) -> None:
        handle = None
        if sys.platform != "win32":
            # Where ctypes keeps the interpreter's lock while a library is read, others would wait.
            open_library = ctypes.CDLL(None)["dlopen"]
            open_library.restype = ctypes.c_void_p
            handle = between_forks(open_library, os.fsencode(path), os.RTLD_NOW)
        self._short = ctypes.PyDLL(path, handle=handle)
        self._long = ctypes.CDLL(path, handle=handle)

    def call(self, name: str, *args: Any) -> Made:
        """Call a function that takes less time than to wait for the interpreter's lock."""
        return self._function(self._short, name)(*args)

    def run(self, name: str, *args: Any) -> Made:
        """Call a function without the interpreter's lock."""
        return between_forks(self._function(self._long, name), *args)

    def _function(self, library: Any, name: str) -> Any:
        found = library[f"LLVMPY_{name}"]
        found.restype = Made
        return found

    def text(self, name: str, *args: Any) -> str:
        """The text that a function gives by its last argument."""
        found = ctypes.c_char_p()
        self.call(name, *args, ctypes.byref(found))
        return self._taken(found)

    def checked(self, name: str, *args: Any) -> Made:
        """The result of a long call, whose last argument is the message of an error.

        Raises: RuntimeError: There is one.
        """
        message = ctypes.c_char_p()
        found = self.run(name, *args, ctypes.byref(message))
        error = self._taken(message)
        if error or not found:
            raise RuntimeError(error)
        return found

    def _taken(self, text: ctypes.c_char_p) -> str:
        found = (text.value or b"").decode()
        if text:
            self.call("DisposeString", text)
        return found


@cache
def library() -> Library:
    """The library, which is read on the first call."""
    return Library(str(Path(llvmlite.__file__).parent / "binding" / get_library_name()))
