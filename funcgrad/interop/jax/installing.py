"""A process in which ``import jax`` means funcgrad: a finder of modules, and the modules.

Modules are made when they are imported, and their names when they are asked for. What JAX has and
funcgrad has not is a `missing.Missing`, which can be imported; using it is an error. What JAX has
not either is no module, so that ``try: import ...`` takes the branch that it takes with JAX.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from funcgrad.base import environment
from funcgrad.base.imports import load
from funcgrad.errors import ArgumentError
from funcgrad.interop.jax.devices import DEVICES
from funcgrad.interop.jax.jaxprs import native
from funcgrad.interop.jax.modules import NAMES, SOURCES, VERSION, Source, distribution
from funcgrad.interop.jax.widths import SWITCH
from funcgrad.interop.missing import stand_in

_ROOTS = ("jax", "jaxlib")
_WITHOUT_NAMES = {path for path, names in NAMES.items() if names == "*"}
_CLOSED = ("jax._src", "jaxlib")
"""Private packages of which only the modules are recorded: they have no other names."""


class Module(ModuleType):
    """A module of the package ``jax``."""

    def __getattr__(self, name: str) -> Any:
        path = self.__name__
        if name.startswith("__"):
            raise AttributeError(f"module {path!r} has no attribute {name!r}", name=name)
        value = _found(path, name)
        setattr(self, name, value)
        return value

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All names with their values: programs that copy them have asked for none before."""
        for name in dir(self):
            getattr(self, name)
        return asked_for(self)

    def __dir__(self) -> list[str]:
        listed = {*asked_for(self), *SOURCES.get(self.__name__, _NONE).names()}
        known = NAMES.get(self.__name__, "*").split()
        return sorted(n for n in listed if n.startswith("_") or n in known or "*" in known)


_NONE = Source({})


def asked_for(module: ModuleType) -> dict[str, Any]:
    """The names that a module has found already, with their values."""
    return vars(ModuleType)["__dict__"].__get__(module)


def _found(path: str, name: str) -> Any:
    whole = f"{path}.{name}"
    source = SOURCES.get(path, _NONE)
    of_distribution = distribution(path)
    if of_distribution is not None:
        return of_distribution(name)
    is_module = _is_module(whole) if path == "jax" else whole in SOURCES
    if not is_module or name in source.own:
        try:
            return source.find(name)
        except LookupError:
            pass
    if _is_module(whole):
        return load(whole)
    if path.startswith("jax._src."):
        try:
            return _public(path).find(name)
        except LookupError:
            pass
    if name in NAMES.get(path, "").split() or path in _WITHOUT_NAMES - {*_CLOSED}:
        return native(name.removesuffix("_p")) if name.endswith("_p") else stand_in(whole)
    raise AttributeError(f"module {path!r} has no attribute {name!r}", name=name)


def _public(path: str) -> Source:
    """The names of the public module that tells those of a private one: itself, or one around."""
    path = path.replace("jax._src", "jax", 1)
    while path not in SOURCES:
        path = path.rpartition(".")[0]
    return SOURCES[path]


def _is_module(path: str) -> bool:
    """Whether JAX has a module of that name."""
    known = (SOURCES, NAMES, _CLOSED)
    return any(path in paths for paths in known) or distribution(path) is not None


class Finder(MetaPathFinder, Loader):
    """Finds ``jax`` and its modules, whether there is something in them or not."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of that name, if it is one of JAX's.

        Raises: ModuleNotFoundError: If it is imported, and JAX has none of that name.
        """
        if fullname.split(".")[0] not in _ROOTS:
            return None
        if _is_module(fullname):
            return ModuleSpec(fullname, self, is_package=True, origin="funcgrad.interop.jax")
        if sys._getframe(2).f_code is importlib.util.find_spec.__code__:
            return None
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: this program runs on funcgrad, which answers to the "
            f"name jax as JAX {VERSION} does. docs/interop_jax.md lists what there is.",
            name=fullname,
        )

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module, which finds its names by itself."""
        return Module(spec.name, "See docs/interop_jax.md.")

    def exec_module(self, module: ModuleType) -> None:
        """Names that are asked for without being looked up: those of ``import *`` and versions."""
        source = SOURCES.get(module.__name__, _NONE)
        own = {k: v for k, v in source.own.items() if k.startswith("__")}
        listed = [n for n in source.names() if not n.startswith("_")]
        asked_for(module).update(own, __all__=listed)
        if module.__name__ == "jax":
            _read_environment()


def _is_true(name: str, default: bool) -> bool:
    """Whether a variable that JAX reads is true, or what it is if it is not set."""
    value = environment.of_jax(name).lower()
    return value in ("1", "true", "y", "yes", "on", "t") if value else default


def _read_environment() -> None:
    """Set what the environment says when a program imports ``jax``: it may have set it itself."""
    SWITCH.is_on = _is_true("JAX_ENABLE_X64", False)
    SWITCH.is_partitionable = _is_true("JAX_THREEFRY_PARTITIONABLE", True)
    number = environment.of_jax("JAX_NUM_CPU_DEVICES")
    DEVICES.reads_flags = True
    DEVICES.ask_for(int(number) if number else None)


def install() -> None:
    """Let ``import jax`` and its modules mean funcgrad, in this process, until `uninstall`.

    Raises: ArgumentError: If JAX itself was imported before.

    Example:
        >>> fg.interop.jax.install()  # doctest: +SKIP
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    for name in _ROOTS:
        if name in sys.modules:
            raise ArgumentError(
                f"install() comes too late: {name} was imported by this process before, from "
                f"{getattr(sys.modules[name], '__file__', None)}. Call it first."
            )
    sys.meta_path.insert(0, Finder())


def uninstall() -> None:
    """Let ``import jax`` mean JAX again, if it is installed.

    Modules that were imported meanwhile keep what they have imported. Nothing happens where
    `install` was not called.

    Example:
        >>> fg.interop.jax.uninstall()
    """
    for finder in [x for x in sys.meta_path if isinstance(x, Finder)]:
        sys.meta_path.remove(finder)
    for path, module in list(sys.modules.items()):
        if isinstance(module, Module):
            del sys.modules[path]
