"""A process in which ``import autograd`` means funcgrad."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from funcgrad.errors import ArgumentError

_OURS = __name__.rpartition(".")[0]
_NOT_THEIRS = ("adopting", "boxes", "installing", "vector_spaces", "__main__")


def install() -> None:
    """Let ``import autograd`` and its modules mean those of this package, in this process.

    Raises:
        ArgumentError: If autograd itself was imported before.

    Example:
        >>> from funcgrad.interop import autograd
        >>> autograd.install()  # doctest: +SKIP
    """
    known = sys.modules.get("autograd")
    package = sys.modules[_OURS]
    if known is not None and known is not package:
        raise ArgumentError(
            "install() comes too late: autograd was imported by this process before, from "
            f"{getattr(known, '__file__', None)}. Call it first."
        )
    for info in pkgutil.walk_packages(package.__path__, _OURS + "."):
        if info.name.removeprefix(_OURS + ".") not in _NOT_THEIRS:
            importlib.import_module(info.name)
    for path, module in list(sys.modules.items()):
        name = path.removeprefix(_OURS + ".")
        if name != path and name not in _NOT_THEIRS:
            sys.modules[f"autograd.{name}"] = module
    sys.modules["autograd"] = package
