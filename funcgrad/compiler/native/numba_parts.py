"""The parts of Numba that kernels are compiled with, imported without the rest of it.

``import numba`` runs what every part of Numba needs: decorators, parallel loops, typed containers
and an overload for each function of NumPy. That takes twice as long as the intermediate
representation and its lowering to LLVM, which are all that a kernel passes through. So those
modules are imported while the package's own code is put off. It runs when somebody imports Numba,
in the same package and under the import system's own locks, and finds the modules that are here
already. Where Numba was imported before, or where a version of it does not let itself be parted,
this file only takes names from the whole.

No other file imports Numba. What is relied on:

- ``ir``: blocks of assignments, branches, jumps and returns (`numba_ir` writes them).
- ``types`` and ``Signature``: scalar types, literals, and classes of types to derive from.
- ``lowering.Lower``: its order of blocks, and what it asks of a context, a library and a calling
  convention (`numba_frontend` has its own).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NAME = "numba"
_PARTS = ("types", "lowering", "bytecode")


class _Package(ModuleType):
    """``numba``, whose own code has not been run."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":  # what some modules put into their messages
            return importlib.import_module(f"{_NAME}._version").get_versions()["version"]
        is_initializing = getattr(self.__spec__, "_initializing", False)
        if is_initializing or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
        # Somebody has got hold of it in the moment before it was put away.
        put_away(self)
        return getattr(importlib.import_module(_NAME), name)


def put_away(package: ModuleType) -> None:
    """Let the next import of Numba find it anew, unless its own code has begun to run."""
    if isinstance(package, _Package) and sys.modules.get(_NAME) is package:
        del sys.modules[_NAME]


class _Loader:
    """Finder and loader of Numba: at first its parts, at the next import the rest."""

    def __init__(self, spec: ModuleSpec) -> None:
        self.spec = spec
        self.package = _Package(_NAME)
        self.has_parts = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _NAME:
            return None
        found = ModuleSpec(name, self, origin=self.spec.origin, is_package=True)  # type: ignore[arg-type]
        found.submodule_search_locations = self.spec.submodule_search_locations
        found.cached, found.has_location = self.spec.cached, True
        return found

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.package

    def exec_module(self, module: ModuleType) -> None:
        if not self.has_parts:
            # All of them here, under the lock of the package: the modules import each other in
            # circles, which two threads must not enter at two places.
            for name in _PARTS:
                importlib.import_module(f"{_NAME}.core.{name}")
            self.has_parts = True
            return
        sys.meta_path.remove(self)
        module.__class__ = ModuleType
        assert self.spec.loader is not None
        self.spec.loader.exec_module(module)
        module.__loader__ = self.spec.loader
        module.__spec__ = self.spec


def _import_parts() -> None:
    """Import the modules that are named below, and no more where that can be."""
    spec = None if _NAME in sys.modules else importlib.util.find_spec(_NAME)
    if spec is None:
        importlib.import_module(_NAME)  # another thread may be at it
        return
    loader = _Loader(spec)
    sys.meta_path.insert(0, loader)
    try:
        put_away(importlib.import_module(_NAME))
    except (ImportError, AttributeError):  # a part wants a name that only the whole defines
        sys.meta_path.remove(loader)


_import_parts()

from numba.core import funcdesc, ir, lowering, targetconfig, types  # noqa: E402
from numba.core.bytecode import FunctionIdentity  # noqa: E402
from numba.core.errors import TypingError, UnsupportedError  # noqa: E402
from numba.core.typing.templates import Signature, signature  # noqa: E402

__all__ = [
    "FunctionIdentity",
    "Signature",
    "TypingError",
    "UnsupportedError",
    "funcdesc",
    "ir",
    "lowering",
    "signature",
    "targetconfig",
    "types",
]
