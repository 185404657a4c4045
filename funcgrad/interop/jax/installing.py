"""A process in which ``import jax`` means funcgrad: a finder of modules, and the modules.

Modules are made when they are imported, and their names when they are asked for. What JAX has and
funcgrad has not is a `missing.Missing`, which can be imported; using it is an error.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.arrays import install_methods
from funcgrad.interop.jax.missing import stand_in
from funcgrad.interop.jax.modules import SOURCES, Source, distribution
from funcgrad.interop.jax.recorded import NAMES

_ROOTS = ("jax", "jaxlib")
_OPEN = (
    "jax.experimental",
    "jax.example_libraries",
    "jax.extend",
    "jax.interpreters",
    "jax.lib",
)
"""Packages with more modules than the recorded ones."""


class Module(ModuleType):
    """A module of the package ``jax``."""

    def __getattr__(self, name: str) -> Any:
        path = self.__name__
        if name.startswith("__"):
            raise AttributeError(f"module {path!r} has no attribute {name!r}", name=name)
        value = _found(path, name)
        vars(self)[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *SOURCES.get(self.__name__, _NONE).names()})


_NONE = Source({})


def _found(path: str, name: str) -> Any:
    whole = f"{path}.{name}"
    source = SOURCES.get(path, _NONE)
    of_distribution = distribution(path)
    if of_distribution is not None:
        return of_distribution(name)
    if whole not in SOURCES or name in source.own:
        try:
            return source.find(name)
        except LookupError:
            pass
    if whole in SOURCES or distribution(whole) is not None:
        return importlib.import_module(whole)
    if path not in NAMES or name in NAMES[path].split():
        return stand_in(whole)
    raise AttributeError(f"module {path!r} has no attribute {name!r}", name=name)


def _may_be_imported(path: str) -> bool:
    """Whether there may be a module of that name in JAX; of what lies open all names are known."""
    parent, _, name = path.rpartition(".")
    if path in SOURCES or path in NAMES or distribution(path) is not None:
        return True
    is_closed = parent in NAMES and parent not in _OPEN
    return not is_closed or name.startswith("_") or name in NAMES[parent].split()


class Finder(MetaPathFinder, Loader):
    """Finds ``jax`` and everything below, whether there is something in it or not."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of that name, if it is one of JAX's."""
        if fullname.split(".")[0] not in _ROOTS or not _may_be_imported(fullname):
            return None
        return ModuleSpec(fullname, self, is_package=True, origin="funcgrad.interop.jax")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module, which finds its names by itself."""
        return Module(spec.name, "See docs/interop_jax.md.")

    def exec_module(self, module: ModuleType) -> None:
        """Names that are asked for without being looked up: those of ``import *`` and versions."""
        source = SOURCES.get(module.__name__, _NONE)
        own = {k: v for k, v in source.own.items() if k.startswith("__")}
        listed = [n for n in source.names() if not n.startswith("_")]
        vars(module).update(own, __all__=listed)


def install() -> None:
    """Let ``import jax`` and its modules mean funcgrad, in this process.

    Raises:
        ArgumentError: If JAX itself was imported before.

    Example:
        >>> from funcgrad.interop import jax
        >>> jax.install()  # doctest: +SKIP
    """
    known = sys.modules.get("jax")
    if isinstance(known, Module):
        return
    for name in _ROOTS:
        if name in sys.modules:
            raise ArgumentError(
                f"install() comes too late: {name} was imported by this process before, from "
                f"{getattr(sys.modules[name], '__file__', None)}. Call it first."
            )
    install_methods()
    sys.meta_path.insert(0, Finder())
