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
    parent, _, _ = name.rpartition(".")
    known = name if not parent or parent in sys.modules else name.partition(".")[0]
    spec = None if name in sys.modules else importlib.util.find_spec(known)
    if spec is None:
        yield
        return
    module = PutOff(name)
    vars(module).update(given)
    if known == name and spec.submodule_search_locations is not None:
        # Other threads may import a module of the package meanwhile.
        module.__path__ = spec.submodule_search_locations
    sys.modules[name] = module
    try:
        yield
    finally:
        put_away(module)
        _adopt(name)


def _adopt(name: str) -> None:
    """Give a package the modules of it that were imported while it was put off."""
    found = [path for path in list(sys.modules) if path.startswith(f"{name}.")]
    for path in found:
        child = path.removeprefix(f"{name}.")
        if "." not in child:
            vars(importlib.import_module(name)).setdefault(child, sys.modules[path])
