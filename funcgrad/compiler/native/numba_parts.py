"""The parts of Numba that kernels are compiled with, imported without the rest of it.

``import numba`` runs what every part of Numba needs: decorators, parallel loops, typed containers
and an overload for each function of NumPy. That takes five times as long as the intermediate
representation and its lowering to LLVM, which are all that a kernel passes through. So those
modules are imported while the code of others is put off: that of the package, and of modules that
are imported for names which kernels do not touch, with half of NumPy behind them. It runs when
somebody imports one of them or asks it for a name, in the same module and under the import
system's own locks, and finds the modules that are here already. Where Numba was imported before, or
where a version of it does not let itself be parted, this file only takes names from the whole.

No other file imports Numba. What is relied on:

- ``ir``: blocks of assignments, branches, jumps and returns (`numba_ir` writes them).
- ``types`` and ``Signature``: scalar types, literals, and classes of types to derive from.
- ``lowering.Lower``: its order of blocks, and what it asks of a context, a library and a calling
  convention (`numba_frontend` has its own).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from funcgrad.compiler.native.put_off import PutOff, put_away, put_off

_NAME = "numba"
_PARTS = ("types", "lowering")
_PUT_OFF = (
    _NAME,
    "numba.core.cgutils",
    "numba.core.ir_utils",
    "numba.core.itanium_mangler",
    "numba.core.typing",
    "numba.np.numpy_support",
    "numba.np.types",
)
"""What lets itself be put off; a module that is asked for a name after all is simply loaded."""

_FUNCTIONS = {"numba.core.analysis": ("compute_use_defs", "must_use_alloca")}
"""Modules of which the parts import functions, for what kernels do not do."""

_BEHIND = {"numba.core.funcdesc", "numba.core.targetconfig", "numba.core.typing.templates"}
"""What is needed besides the parts, which bring it along in most versions."""


class _Logger:
    """A logger, which is asked for where the parts are imported, and not used by them."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        logging = importlib.import_module("logging")
        return getattr(logging.getLogger(self.name), attribute)


_COVERAGE = "numba.misc.coverage_support"
"""It imports the package `coverage`, which takes longer than all parts together."""


def _told_of_lines() -> Sequence[Any]:
    """Who is told of the lines that Numba compiles: nobody, unless it is to report coverage."""
    if not importlib.import_module(f"{_NAME}.core.config").JIT_COVERAGE:
        return ()
    found: Sequence[Any] = importlib.import_module(_COVERAGE).get_registered_loc_notify()
    return found


def _terminal_size() -> os.terminal_size:
    """For the width of Numba's messages."""
    try:
        return os.get_terminal_size()
    except (OSError, ValueError):
        return os.terminal_size((80, 24))


_BESIDE: dict[str, dict[str, Any]] = {
    "yaml": {},
    "base64": {},
    "shutil": {"get_terminal_size": _terminal_size},
    "traceback": {},
    "logging": {"getLogger": _Logger},
    _COVERAGE: {"get_registered_loc_notify": _told_of_lines},
}
"""What Numba imports for settings, caches, debuggers and messages."""


class _Part(PutOff):
    """A module of Numba whose own code has not been run."""

    def __getattr__(self, name: str) -> Any:
        if self.__name__ == _NAME:
            if name == "__version__":  # what some modules put into their messages
                return importlib.import_module(f"{_NAME}._version").get_versions()["version"]
            if getattr(self.__spec__, "_initializing", False):  # its parts are being loaded
                raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
        return super().__getattr__(name)

    def load(self) -> ModuleType:
        importlib.import_module(_NAME)  # the whole, if the parts are there: they want it first
        return importlib.import_module(self.__name__)  # it may no longer be put off


def _called_later(module: str, name: str) -> Callable[..., Any]:
    """Stands for a function of a module that is put off."""
    return lambda *args: getattr(importlib.import_module(module), name)(*args)


class _Loader:
    """Finder and loader of a module: at first without its code, at the next import with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = _Part(name)
        for function in _FUNCTIONS.get(name, ()):
            setattr(self.module, function, _called_later(name, function))
        self.spec: ModuleSpec | None = None
        self.is_made = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        self.spec = self.spec or PathFinder.find_spec(name, path)
        if self.spec is None:
            return None
        places = self.spec.submodule_search_locations
        found = ModuleSpec(name, self, origin=self.spec.origin, is_package=places is not None)  # type: ignore[arg-type]
        found.submodule_search_locations = places
        found.cached, found.has_location = self.spec.cached, True
        return found

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        if not self.is_made:
            self.is_made = True
            if self.name == _NAME:
                _load_parts()
            return
        sys.meta_path.remove(self)
        module.__class__ = ModuleType
        assert self.spec is not None
        assert self.spec.loader is not None
        self.spec.loader.exec_module(module)
        module.__loader__ = self.spec.loader
        module.__spec__ = self.spec


def _load_parts() -> None:
    """Import all parts, under the lock of the package.

    They import each other in circles, which two threads must not enter at two places.
    """
    for name in _PARTS:
        importlib.import_module(f"{_NAME}.core.{name}")
    for name in (*_PUT_OFF[1:], *_FUNCTIONS):
        put_away(sys.modules.get(name))


def _import_parts() -> None:
    """Import the modules that are named below, and no more where that can be."""
    if _NAME in sys.modules or importlib.util.find_spec(_NAME) is None:
        importlib.import_module(_NAME)  # another thread may be at it
        return
    loaders = [_Loader(name) for name in (*_PUT_OFF, *_FUNCTIONS) if name not in sys.modules]
    sys.meta_path[:0] = loaders
    try:
        with ExitStack() as stack:
            for name, names in _BESIDE.items():
                stack.enter_context(put_off(name, **names))
            put_away(importlib.import_module(_NAME))
    except (ImportError, AttributeError):  # a part wants a name that only the whole defines
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in loaders]
    if not sys.modules.keys() >= _BEHIND:  # would load the package of which it is a part, too late
        importlib.import_module(_NAME)


_import_parts()

from numba.core import funcdesc, ir, lowering, targetconfig, types  # noqa: E402
from numba.core.errors import TypingError, UnsupportedError  # noqa: E402
from numba.core.typing.templates import Signature, signature  # noqa: E402

__all__ = [
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
