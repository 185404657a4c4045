"""A process in which ``import autograd`` means funcgrad, and the names of autograd's modules."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from funcgrad.base.imports import load
from funcgrad.errors import ArgumentError
from funcgrad.interop.missing import recorded_names, stand_in

NAMES = recorded_names(__file__)
_OURS = __name__.rpartition(".")[0]
_NOT_THEIRS = (
    "adopting",
    "boxes",
    "installing",
    "vector_spaces",
    "__main__",
)
_HOMES = (
    "extend", "core", "tracer", "builtins", "util", "numpy.numpy_vjps", "numpy.numpy_boxes",
    "numpy.numpy_wrapper", "differential_operators", "wrap_util",
)  # fmt: skip
"""Modules whose names the others import from each other."""


class _Package(ModuleType):
    """The package ``autograd``, without the modules that only funcgrad has."""


def _names_of(path: str, before: Callable[[str], Any]) -> Callable[[str], Any]:
    """``__getattr__`` of a module that also has the names which autograd's module has.

    Args:
        path: The module in autograd.
        before: What the module answers otherwise.
    """
    names = frozenset(NAMES[path].split())

    def __getattr__(name: str) -> Any:
        if name not in names:
            return before(name)
        if name == "anp":
            return sys.modules[f"{_OURS}.numpy"]
        for home in _HOMES:
            found = vars(sys.modules[f"{_OURS}.{home}"])
            if name in found:
                return found[name]
        return stand_in(f"{path}.{name}")

    return __getattr__


def complete() -> None:
    """Let the modules of this package, which are loaded, have all names of autograd's."""
    for path in NAMES:
        module = sys.modules[_OURS + path.removeprefix("autograd")]
        if isinstance(module, ModuleType):
            before = vars(module).get("__getattr__", _refusal(module))
            vars(module)["__getattr__"] = _names_of(path, before)


def _refusal(module: ModuleType) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        message = f"module {module.__name__!r} has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=module)

    return __getattr__


def install() -> None:
    """Let ``import autograd`` and its modules mean those of this package, until `uninstall`.

    Raises: ArgumentError: If autograd itself was imported before.

    Example:
        >>> fg.interop.autograd.install()  # doctest: +SKIP
    """
    known = sys.modules.get("autograd")
    if isinstance(known, _Package):
        return
    if known is not None:
        raise ArgumentError(
            "install() comes too late: autograd was imported by this process before, from "
            f"{getattr(known, '__file__', None)}. Call it first."
        )
    package = sys.modules[_OURS]
    for info in pkgutil.walk_packages(package.__path__, _OURS + "."):
        if info.name.removeprefix(_OURS + ".") not in _NOT_THEIRS:
            load(info.name)
    for path, module in list(sys.modules.items()):
        name = path.removeprefix(_OURS + ".")
        if name != path and name not in _NOT_THEIRS:
            sys.modules[f"autograd.{name}"] = module
    stands = _Package("autograd", package.__doc__)
    names = [n for n in vars(package) if not n.startswith("_") and n not in _NOT_THEIRS]
    vars(stands).update({name: getattr(package, name) for name in names})
    # Modules that are not in `sys.modules` by now are none of autograd's.
    vars(stands).update(__getattr__=package.__getattr__, __path__=[], __all__=package.__all__)
    sys.modules["autograd"] = stands


def uninstall() -> None:
    """Let ``import autograd`` mean autograd again, if it is installed.

    Modules that were imported meanwhile keep what they have imported. Nothing happens where
    `install` was not called.

    Example:
        >>> fg.interop.autograd.uninstall()
    """
    if not isinstance(sys.modules.get("autograd"), _Package):
        return
    for path in list(sys.modules):
        if path.partition(".")[0] == "autograd":
            del sys.modules[path]
