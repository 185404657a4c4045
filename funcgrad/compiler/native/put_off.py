"""Modules whose code is put off: imported for one name, or for none that is ever used.

Such a module stands in ``sys.modules`` without its code while those that import it are loaded. It
runs when somebody imports it afterwards, or asks what stood for it for another name.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class PutOff(ModuleType):
    """A module whose own code has not been run."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        put_away(self)
        return getattr(self.load(), name)

    def load(self) -> ModuleType:
        """The module with its code."""
        return importlib.import_module(self.__name__)


def put_away(module: ModuleType | None) -> None:
    """Let the next import of a module find it anew, unless its own code has begun to run."""
    if isinstance(module, PutOff) and sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]


@contextmanager
def put_off(name: str, **given: Any) -> Iterator[None]:
    """Put a module off, unless it is there, or is not installed.

    Args:
        name: The module.
        given: What stands for some of its names.
    """
    # To look for a module within a package would import the package.
    if name in sys.modules or importlib.util.find_spec(name.partition(".")[0]) is None:
        yield
        return
    module = sys.modules[name] = PutOff(name)
    vars(module).update(given)
    try:
        yield
    finally:
        put_away(module)
